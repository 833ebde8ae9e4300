/*-------------------------------------------------------------------------
 *
 * apply_history.c
 *		Applying a changelog to a table that keeps the versions of each row.
 *
 * A version is a row of the target with the key, the columns, and where in
 * the order of changes it begins and ends: [valid_from, valid_to).  The order
 * is that of the column of sequence_by, or else that of snapshot numbers.
 *
 * The versions of all keys that the changelog touches are read, and together
 * with its own changes they make a series of events for each key.
 * apply_versions.c makes versions of them.  Then those that differ from what
 * is in the target are written, by plain statements: DELETE of versions that
 * are merged with others, UPDATE, INSERT.  All of it is known before the first
 * one is run.
 *
 * As in all modules of the apply engine, the lock that apply.c holds on the
 * target keeps other applications out.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_history.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "apply_history.h"
#include "cdc_changelog.h"

/* Columns of the target that say when a version is valid */
#define COL_FROM				"valid_from"
#define COL_TO					"valid_to"
#define COL_FROM_TIME			"valid_from_time"
#define COL_TO_TIME				"valid_to_time"

/* Columns that are added to stored rows, see apply_history_describe_store() */
#define HISTORY_NUM_COLUMNS		7
/* Receives versions of the target */
typedef struct VersionReceiver
{
	DestReceiver pub;
	ApplyState *state;
	TupleTableSlot *slot;		/* the row to store */
} VersionReceiver;
static ApplyColumn *time_column(ApplyState *state, const char *name);
static void resolve_order(ApplyState *state);
static void resolve_excluded(ApplyState *state);
static HistoryGroup *load_group(ApplyState *state, ApplyGroup *group);
static void load_rows(ApplyState *state, HistoryGroup *group,
					  Tuplestorestate *rows, HistoryKind kind);
static Tuplesortstate *begin_sort(ApplyState *state);
static void read_versions(ApplyState *state, HistoryGroup *group);
static void split_changes(ApplyState *state, HistoryGroup *group);
static bool receive_version(TupleTableSlot *slot, DestReceiver *self);
static void write_group(ApplyState *state, HistoryGroup *group,
						HistoryWrite how);
static void append_validity(StringInfo buf, ApplyState *state, bool begins);

/* ----------------------------------------------------------------
 *		The target and the columns of stored rows
 * ----------------------------------------------------------------
 */

/*
 * Finds the columns that make a history of the target.  Raises an error if it
 * lacks any, or if the options do not fit.
 */
void
apply_history_resolve(ApplyState *state)
{
	ApplyHistory *history = palloc0(sizeof(ApplyHistory));

	state->history = history;
	history->from = apply_target_column(state, COL_FROM, "history");
	history->to = apply_target_column(state, COL_TO, "history");
	history->from_time = time_column(state, COL_FROM_TIME);
	history->to_time = time_column(state, COL_TO_TIME);
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (apply_history_column(state, column) &&
			(column->is_key || column->generated ||
			 column == state->sequence || column == state->soft_delete))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("history column \"%s\" cannot be a %s column",
							column->name,
							column->is_key ? "key" :
							column->generated ? "generated" :
							column == state->sequence ? "sequence" :
							"soft-delete")));
	}
	resolve_order(state);
	resolve_excluded(state);
}

/*
 * A column that says when a version began or ended, if the target has it.
 */
static ApplyColumn *
time_column(ApplyState *state, const char *name)
{
	ApplyColumn *column = apply_find_column(state, name);

	if (column != NULL && column->type != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("history column \"%s\" must be of type timestamp with time zone, not %s",
						name, format_type_be(column->type))));
	return column;
}

/*
 * Looks up how places in the order of changes compare.  Both columns of the
 * target have to hold them as they are.
 */
static void
resolve_order(ApplyState *state)
{
	ApplyHistory *history = state->history;
	ApplyColumn *columns[] = {history->from, history->to};
	ApplyColumn *sequence = state->sequence;
	TypeCacheEntry *type;

	for (int i = 0; i < lengthof(columns); i++)
	{
		Oid			wanted = sequence != NULL ? sequence->type : INT8OID;
		int32		typmod = sequence != NULL ? sequence->typmod : -1;

		if (columns[i]->type != wanted ||
			(columns[i]->typmod >= 0 && columns[i]->typmod != typmod) ||
			(sequence != NULL && columns[i]->collation != sequence->collation))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("history column \"%s\" must be of type %s, not %s",
							columns[i]->name,
							format_type_with_typemod(wanted, typmod),
							format_type_with_typemod(columns[i]->type,
													 columns[i]->typmod)),
					 sequence != NULL ?
					 errdetail("It holds values of the sequence column \"%s\".",
							   sequence->name) :
					 errdetail("It holds snapshot numbers.")));
	}

	type = lookup_type_cache(history->from->type,
							 TYPECACHE_CMP_PROC_FINFO | TYPECACHE_LT_OPR |
							 TYPECACHE_EQ_OPR);
	history->order.column = history->from;
	history->order.typlen = type->typlen;
	history->order.typbyval = type->typbyval;
	history->order.equal_op = type->eq_opr;
	history->order.less_op = type->lt_opr;
	fmgr_info_copy(&history->order_cmp, &type->cmp_proc_finfo,
				   state->context);

	/* versions are found by sorting their keys */
	for (int i = 0; i < state->nkeys; i++)
		if (!OidIsValid(state->keys[i].less_op))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_FUNCTION),
					 errmsg("could not identify an ordering operator for type %s",
							format_type_be(state->keys[i].column->type)),
					 errdetail("Column \"%s\" cannot be a key column of a history.",
							   state->keys[i].column->name)));
}

/*
 * Marks the columns that make no version.  Where a change of other columns
 * only is none, a change of the sequence alone is none, either.
 */
static void
resolve_excluded(ApplyState *state)
{
	ListCell   *lc;

	foreach(lc, state->options->history_exclude)
	{
		ApplyColumn *column = apply_target_column(state, lfirst(lc),
												  "excluded");

		if (column->is_key || column == state->soft_delete ||
			apply_history_column(state, column))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("excluded column \"%s\" cannot be a %s column",
							column->name,
							column->is_key ? "key" :
							column == state->soft_delete ? "soft-delete" :
							"history")));
		column->excluded = true;
	}
	if (state->options->history_exclude != NIL && state->sequence != NULL)
	{
		state->sequence->excluded = true;
		state->history->merges = true;
	}
}

/*
 * Is it a column that says when a version is valid?
 */
bool
apply_history_column(ApplyState *state, const ApplyColumn *column)
{
	ApplyHistory *history = state->history;

	return history != NULL &&
		(column == history->from || column == history->to ||
		 column == history->from_time || column == history->to_time);
}

/*
 * The number of columns that stored rows have in addition.
 */
int
apply_history_num_columns(ApplyState *state)
{
	return state->history != NULL ? HISTORY_NUM_COLUMNS : 0;
}

/*
 * Adds these columns, as the last ones, to the description of stored rows.
 */
void
apply_history_describe_store(ApplyState *state, int first)
{
	ApplyHistory *history = state->history;
	ApplyColumn *from = history->from;
	TupleDesc	desc = state->store_desc;
	int			column = first;

	state->store_time = column++;
	TupleDescInitEntry(desc, state->store_time, "vf_time", TIMESTAMPTZOID,
					   -1, 0);
	history->store_event = column++;
	TupleDescInitEntry(desc, history->store_event, "event", INT4OID, -1, 0);
	history->store_from = column++;
	TupleDescInitEntry(desc, history->store_from, "vf", from->type, -1, 0);
	TupleDescInitEntryCollation(desc, history->store_from, from->collation);
	history->store_to = column++;
	TupleDescInitEntry(desc, history->store_to, "vt", from->type, -1, 0);
	TupleDescInitEntryCollation(desc, history->store_to, from->collation);
	history->store_to_time = column++;
	TupleDescInitEntry(desc, history->store_to_time, "vt_time",
					   TIMESTAMPTZOID, -1, 0);
	history->store_old = column++;
	TupleDescInitEntry(desc, history->store_old, "old", from->type, -1, 0);
	TupleDescInitEntryCollation(desc, history->store_old, from->collation);
	history->store_mark = column++;
	TupleDescInitEntry(desc, history->store_mark, "mark", BOOLOID, -1, 0);
	Assert(column == first + HISTORY_NUM_COLUMNS);
}

/*
 * The condition that a row t of the target is the current version of its key.
 */
const char *
apply_history_current(ApplyState *state)
{
	return psprintf("t.%s IS NOT DISTINCT FROM NULL",
					state->history->to->quoted);
}

/* ----------------------------------------------------------------
 *		From changes and versions to versions
 * ----------------------------------------------------------------
 */

/*
 * Applies the groups that apply_read left in the state.  SPI must be
 * connected.  "run" is that of the consumer, if there is one.
 */
void
apply_history(ApplyState *state, const CdcConsumerRun *run)
{
	ApplyHistory *history = state->history;
	ListCell   *lc;

	if (state->complete)
		apply_find_extra_rows(state);
	history->key_context = AllocSetContextCreate(state->context,
												 "cdc apply history",
												 ALLOCSET_DEFAULT_SIZES);
	foreach(lc, state->groups)
		history->groups = lappend(history->groups,
								  load_group(state, lfirst(lc)));

	/* an empty table: only the consumer knows how far it has been read */
	if (!history->any && run != NULL && state->sequence == NULL)
	{
		history->any = true;
		history->newest = Int64GetDatum(cdc_consumer_newest(run));
		history->newest_time_null = true;
	}
	foreach(lc, history->groups)
	{
		history->group = lfirst(lc);
		split_changes(state, history->group);
		read_versions(state, history->group);
		apply_versions_walk(state, history->group);
	}

	apply_check_deletes(state);
	for (HistoryWrite how = 0; how < HISTORY_NUM_WRITES; how++)
		foreach(lc, history->groups)
			write_group(state, lfirst(lc), how);
}

/*
 * Sorts the changes of a group.
 */
static HistoryGroup *
load_group(ApplyState *state, ApplyGroup *group)
{
	HistoryGroup *result = palloc0(sizeof(HistoryGroup));

	result->group = group;
	result->changes = begin_sort(state);
	load_rows(state, result, group->rows[APPLY_UPSERT], EVENT_UPSERT);
	load_rows(state, result, group->rows[APPLY_DELETE], EVENT_DELETE);
	load_rows(state, result, group->extra, EVENT_ABSENT);
	if (group->extra != NULL)
	{
		tuplestore_end(group->extra);
		group->extra = NULL;
	}
	tuplesort_performsort(result->changes);
	return result;
}

/*
 * Makes events of stored rows, or of none if "rows" is NULL.
 */
static void
load_rows(ApplyState *state, HistoryGroup *group, Tuplestorestate *rows,
		  HistoryKind kind)
{
	ApplyHistory *history = state->history;
	TupleTableSlot *slot;
	TupleTableSlot *event;

	if (rows == NULL)
		return;
	slot = MakeSingleTupleTableSlot(state->store_desc, &TTSOpsMinimalTuple);
	event = MakeSingleTupleTableSlot(state->store_desc, &TTSOpsVirtual);
	tuplestore_rescan(rows);
	while (tuplestore_gettupleslot(rows, true, false, slot))
	{
		int			place = state->sequence != NULL ?
			state->sequence->store : state->store_ordinal;
		Datum	   *values = event->tts_values;
		bool	   *isnull = event->tts_isnull;

		CHECK_FOR_INTERRUPTS();
		ExecCopySlot(event, slot);
		values[history->store_event - 1] = Int32GetDatum(kind);
		isnull[history->store_event - 1] = false;
		if (kind != EVENT_ABSENT)
		{
			values[history->store_from - 1] = values[place - 1];
			isnull[history->store_from - 1] = false;
		}
		if (state->soft_delete != NULL)
		{
			int			store = state->soft_delete->store;

			if (store == 0)
				store = history->store_mark;
			if (kind == EVENT_DELETE || state->soft_delete->store == 0)
			{
				values[store - 1] = BoolGetDatum(kind == EVENT_DELETE);
				isnull[store - 1] = false;
			}
			values[history->store_mark - 1] = values[store - 1];
			isnull[history->store_mark - 1] = isnull[store - 1];
		}
		tuplesort_puttupleslot(group->changes, event);

		if (kind == EVENT_ABSENT ||
			(history->any &&
			 DatumGetInt32(FunctionCall2Coll(&history->order_cmp,
											 history->from->collation,
											 values[place - 1],
											 history->newest)) <= 0))
			continue;
		history->any = true;
		history->newest = datumCopy(values[place - 1], history->order.typbyval,
									history->order.typlen);
		history->newest_time = values[state->store_time - 1];
		history->newest_time_null = isnull[state->store_time - 1];
	}
	ExecDropSingleTupleTableSlot(event);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * An empty sort of events by key, place in the order, and kind.  An absence
 * has no place and comes last.
 */
static Tuplesortstate *
begin_sort(ApplyState *state)
{
	ApplyHistory *history = state->history;
	AttrNumber	columns[APPLY_MAX_KEYS + 2];
	Oid			operators[APPLY_MAX_KEYS + 2];
	Oid			collations[APPLY_MAX_KEYS + 2] = {0};
	bool		nulls_first[APPLY_MAX_KEYS + 2] = {0};
	int			n = state->nkeys;

	for (int i = 0; i < state->nkeys; i++)
	{
		columns[i] = state->keys[i].column->store;
		operators[i] = state->keys[i].less_op;
		collations[i] = state->keys[i].column->collation;
	}
	columns[n] = history->store_from;
	operators[n] = history->order.less_op;
	collations[n++] = history->from->collation;
	columns[n] = history->store_event;
	operators[n++] = Int4LessOperator;
	return tuplesort_begin_heap(state->store_desc, n, columns, operators,
								collations, nulls_first,
								Max(work_mem, maintenance_work_mem), NULL,
								TUPLESORT_NONE);
}

/*
 * Moves the changes of a group to its events, and puts the first one of each
 * key aside.
 */
static void
split_changes(ApplyState *state, HistoryGroup *group)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(state->store_desc,
													&TTSOpsMinimalTuple);
	HistoryEvent *first = NULL;

	group->events = begin_sort(state);
	group->firsts = apply_begin_store();
	while (tuplesort_gettupleslot(group->changes, true, false, slot, NULL))
	{
		HistoryEvent event = {0};

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		event.values = slot->tts_values;
		event.isnull = slot->tts_isnull;
		tuplesort_puttupleslot(group->events, slot);
		if (first != NULL && apply_event_same_key(state, first, &event))
			continue;
		MemoryContextReset(state->history->key_context);
		first = apply_event_copy(state, slot);
		tuplestore_puttupleslot(group->firsts, slot);
	}
	MemoryContextReset(state->history->key_context);
	tuplesort_end(group->changes);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Reads the versions of the group's keys into its events: those that are
 * still valid at the first change of the key, or later.
 */
static void
read_versions(ApplyState *state, HistoryGroup *group)
{
	ApplyHistory *history = state->history;
	ApplyColumn *valid[] = {history->from, history->to,
	history->from_time, history->to_time};
	VersionReceiver receiver = {0};
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT ");
	for (int i = 0; i < state->ncolumns; i++)
		if (state->columns[i].store > 0)
			appendStringInfo(&sql, "t.%s, ", state->columns[i].quoted);
	if (state->soft_delete != NULL)
		appendStringInfo(&sql, "t.%s", state->soft_delete->quoted);
	else
		appendStringInfoString(&sql, "false");
	for (int i = 0; i < lengthof(valid); i++)
		if (valid[i] != NULL)
			appendStringInfo(&sql, ", t.%s", valid[i]->quoted);
		else
			appendStringInfoString(&sql, ", CAST(NULL AS pg_catalog.timestamptz)");
	appendStringInfo(&sql, " FROM " APPLY_ROWS " AS c JOIN %s AS t ON ",
					 state->target_sql);
	apply_append_match(&sql, state, group->group, false);
	appendStringInfo(&sql, " AND (%s OR NOT ", apply_history_current(state));
	generate_operator_clause(&sql, psprintf("t.%s", history->to->quoted),
							 history->to->declared_type,
							 history->order.less_op, "c.vf",
							 history->from->type);
	appendStringInfoChar(&sql, ')');

	apply_init_receiver(&receiver.pub, receive_version);
	receiver.state = state;
	receiver.slot = MakeSingleTupleTableSlot(state->store_desc,
											 &TTSOpsVirtual);
	(void) apply_run(state, group->firsts, sql.data, apply_join(state),
					 &receiver.pub);
	ExecDropSingleTupleTableSlot(receiver.slot);
	tuplestore_end(group->firsts);
	tuplesort_performsort(group->events);
}

/*
 * Makes events of a version: it begins, ends, and where the sequence makes no
 * version, it was confirmed by the last change that it stands for.
 */
static bool
receive_version(TupleTableSlot *slot, DestReceiver *self)
{
	VersionReceiver *receiver = (VersionReceiver *) self;
	ApplyState *state = receiver->state;
	ApplyHistory *history = state->history;
	TupleTableSlot *event = receiver->slot;
	Datum	   *values = event->tts_values;
	bool	   *isnull = event->tts_isnull;
	HistoryEvent version = {0};
	int			column = 0;

	slot_getallattrs(slot);
	ExecClearTuple(event);
	memset(isnull, true, sizeof(bool) * state->store_desc->natts);
	for (int i = 0; i < state->ncolumns; i++)
	{
		int			store = state->columns[i].store;

		if (store == 0)
			continue;
		values[store - 1] = slot->tts_values[column];
		isnull[store - 1] = slot->tts_isnull[column++];
	}

#define TAKE(at) \
	(values[(at) - 1] = slot->tts_values[column], \
	 isnull[(at) - 1] = slot->tts_isnull[column++])
	TAKE(history->store_mark);
	TAKE(history->store_from);
	TAKE(history->store_to);
	TAKE(state->store_time);
	TAKE(history->store_to_time);
#undef TAKE

	version.values = values;
	version.isnull = isnull;
	if (isnull[history->store_from - 1])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("null value in history column \"%s\" of \"%s\"",
						history->from->name, state->target),
				 errdetail("Key %s.",
						   apply_stored_key_detail(state, values, isnull))));
	values[history->store_old - 1] = values[history->store_from - 1];
	isnull[history->store_old - 1] = false;
	values[history->store_event - 1] = Int32GetDatum(EVENT_VERSION);
	isnull[history->store_event - 1] = false;
	ExecStoreVirtualTuple(event);
	tuplesort_puttupleslot(history->group->events, event);

	if (history->merges && !isnull[state->sequence->store - 1])
	{
		HistoryEvent again = version;
		Datum	   *places = palloc(sizeof(Datum) * state->store_desc->natts);

		memcpy(places, values, sizeof(Datum) * state->store_desc->natts);
		places[history->store_from - 1] = values[state->sequence->store - 1];
		again.values = places;
		if (apply_event_compare(state, &again, &version) > 0)
		{
			values[history->store_from - 1] = places[history->store_from - 1];
			values[history->store_event - 1] = Int32GetDatum(EVENT_AGAIN);
			isnull[state->store_time - 1] = true;
			tuplesort_puttupleslot(history->group->events, event);
		}
		pfree(places);
	}
	if (!isnull[history->store_to - 1])
	{
		values[history->store_from - 1] = values[history->store_to - 1];
		values[state->store_time - 1] = values[history->store_to_time - 1];
		isnull[state->store_time - 1] = isnull[history->store_to_time - 1];
		values[history->store_event - 1] = Int32GetDatum(EVENT_END);
		tuplesort_puttupleslot(history->group->events, event);
	}
	return true;
}

/* ----------------------------------------------------------------
 *		Writing
 * ----------------------------------------------------------------
 */

/*
 * Runs one of the statements that write versions.  Every version that is to
 * change has been found, so it is an error if one does not.
 */
static void
write_group(ApplyState *state, HistoryGroup *group, HistoryWrite how)
{
	ApplyHistory *history = state->history;
	Tuplestorestate *rows = group->rows[how];
	StringInfoData sql;
	StringInfoData values;
	bool		identity = false;
	int64		wanted;
	int64		written;

	if (rows == NULL)
		return;
	initStringInfo(&sql);
	initStringInfo(&values);
	if (how == WRITE_INSERT)
	{
		appendStringInfo(&sql, "INSERT INTO %s (", state->target_sql);
		for (int i = 0; i < state->ncolumns; i++)
		{
			ApplyColumn *column = &state->columns[i];

			if (!column->in_insert)
				continue;
			appendStringInfo(&sql, "%s, ", column->quoted);
			appendStringInfo(&values, "c.c%d, ", column->store);
			identity |= column->identity != '\0';
		}
		if (state->soft_delete != NULL && state->soft_delete->store == 0)
		{
			appendStringInfo(&sql, "%s, ", state->soft_delete->quoted);
			appendStringInfoString(&values, "c.mark, ");
		}
		append_validity(&sql, state, true);
		appendStringInfo(&sql, ")%s SELECT %sc.vf, c.vt%s%s FROM " APPLY_ROWS
						 " AS c", identity ? " OVERRIDING SYSTEM VALUE" : "",
						 values.data,
						 history->from_time != NULL ? ", c.vf_time" : "",
						 history->to_time != NULL ? ", c.vt_time" : "");
	}
	else
	{
		if (how == WRITE_DELETE)
			appendStringInfo(&sql, "DELETE FROM %s AS t USING ",
							 state->target_sql);
		else
		{
			appendStringInfo(&sql, "UPDATE %s AS t SET ", state->target_sql);
			for (int i = 0; how == WRITE_UPDATE && i < state->ncolumns; i++)
				if (state->columns[i].in_update)
					appendStringInfo(&sql, "%s = c.c%d, ",
									 state->columns[i].quoted,
									 state->columns[i].store);
			if (how == WRITE_UPDATE && state->soft_delete != NULL &&
				state->soft_delete->store == 0)
				appendStringInfo(&sql, "%s = c.mark, ",
								 state->soft_delete->quoted);
			append_validity(&sql, state, how == WRITE_UPDATE);
			appendStringInfoString(&sql, " FROM ");
		}
		appendStringInfoString(&sql, APPLY_ROWS " AS c WHERE ");
		apply_append_match(&sql, state, group->group, false);
		appendStringInfoString(&sql, " AND ");
		generate_operator_clause(&sql, psprintf("t.%s", history->from->quoted),
								 history->from->declared_type,
								 history->order.equal_op, "c.old",
								 history->from->type);
	}

	wanted = tuplestore_tuple_count(rows);
	written = apply_run(state, rows, sql.data, apply_join(state), NULL);
	tuplestore_end(rows);
	if (how == WRITE_INSERT)
	{
		/* a trigger may have put some elsewhere */
		int64		lost = Min(wanted - written, state->result->inserted);

		state->result->inserted -= lost;
		state->result->unchanged += lost;
	}
	else if (written < wanted)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not change " INT64_FORMAT " versions in \"%s\"",
						wanted - written, state->target),
				 errhint("A trigger or policy of the table keeps them as they are.")));
}

/*
 * The columns that say when a version is valid, for INSERT, or with values for
 * UPDATE; of the latter, only where it ends unless "begins".
 */
static void
append_validity(StringInfo buf, ApplyState *state, bool begins)
{
	ApplyHistory *history = state->history;
	bool		insert = strncmp(buf->data, "INSERT", 6) == 0;

	if (insert)
	{
		appendStringInfo(buf, "%s, %s", history->from->quoted,
						 history->to->quoted);
		if (history->from_time != NULL)
			appendStringInfo(buf, ", %s", history->from_time->quoted);
		if (history->to_time != NULL)
			appendStringInfo(buf, ", %s", history->to_time->quoted);
		return;
	}
	appendStringInfo(buf, "%s = c.vt", history->to->quoted);
	if (history->to_time != NULL)
		appendStringInfo(buf, ", %s = c.vt_time", history->to_time->quoted);
	if (!begins)
		return;
	appendStringInfo(buf, ", %s = c.vf", history->from->quoted);
	if (history->from_time != NULL)
		appendStringInfo(buf, ", %s = c.vf_time", history->from_time->quoted);
}
