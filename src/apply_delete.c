/*-------------------------------------------------------------------------
 *
 * apply_delete.c
 *		Applying a changelog: deleting rows of the target, or marking them.
 *
 * There are the deletes that the changelog asks for, and, if the changelog is
 * the complete content, those of all rows whose key it does not have.  The
 * latter are looked up first and stored, so that they are deleted by key, like
 * any, from whatever kind of relation the target is.
 *
 * No more rows may go than the option "max_deletes" says.  A percentage of
 * the target's rows is taken from statistics where these leave no doubt that
 * it is kept, so that small batches need not count a large table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_delete.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/syscache.h"

#include "apply_internal.h"
#include "cdc_changelog.h"

/* Statistics must promise so many times the rows that are needed */
#define STATISTICS_MARGIN		2

/* Receives the keys of rows that the changelog does not have */
typedef struct ExtraReceiver
{
	DestReceiver pub;
	ApplyState *state;
	Datum	   *values;			/* of a row to store */
	bool	   *isnull;
}			ExtraReceiver;

static void delete_rows(ApplyState *state, ApplyGroup *group);
static void mark_rows(ApplyState *state, ApplyGroup *group);
static void append_pattern(StringInfo buf, ApplyState *state, uint64 nulls);
static bool receive_extra(TupleTableSlot *slot, DestReceiver *self);
static void delete_extra_rows(ApplyState *state, ApplyGroup *group);
static bool parse_limit(const char *text, double *limit, bool *percent);
static double promised_rows(Oid relid);
static int64 rows_before(ApplyState *state);

/*
 * Deletes, or with soft_delete marks, what the changelog says.  Raises an
 * error if these are more rows than max_deletes allows.
 */
void
apply_deletes(ApplyState *state)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		if (state->soft_delete == NULL)
			delete_rows(state, lfirst(lc));
		else
			mark_rows(state, lfirst(lc));
	}
	if (state->complete)
	{
		apply_find_extra_rows(state);
		foreach(lc, state->groups)
			delete_extra_rows(state, lfirst(lc));
	}
	apply_check_deletes(state);
}

/*
 * Deletes the rows of the target that have a deleted key.
 */
static void
delete_rows(ApplyState *state, ApplyGroup *group)
{
	Tuplestorestate *rows = group->rows[APPLY_DELETE];
	StringInfoData sql;
	int64		deleted;
	int64		there = 0;

	if (rows == NULL)
		return;
	initStringInfo(&sql);
	appendStringInfo(&sql, "DELETE FROM %s AS t USING " APPLY_ROWS " AS c WHERE ",
					 state->target_sql);
	apply_append_match(&sql, state, group, false);
	apply_append_newer(&sql, state);
	deleted = apply_run(state, rows, sql.data, apply_join(state), NULL);

	/* of the others, which are still there? */
	if (deleted < tuplestore_tuple_count(rows) &&
		(state->newer || state->refuses_deletes))
		there = apply_find_rows(state, group, rows)->count;

	state->result->deleted += deleted;
	state->result->missing += tuplestore_tuple_count(rows) - deleted - there;
	if (state->newer)
		state->result->stale += there;
	else
		state->result->unchanged += there;
}

/*
 * Marks the rows of the target that have a deleted key.
 */
static void
mark_rows(ApplyState *state, ApplyGroup *group)
{
	StringInfoData sql;
	ApplyNumberReceiver receiver;

	if (group->rows[APPLY_DELETE] == NULL)
		return;
	initStringInfo(&sql);
	appendStringInfo(&sql, "UPDATE %s AS t SET %s = true", state->target_sql,
					 state->soft_delete->quoted);
	if (state->sequence != NULL)
		appendStringInfo(&sql, ", %s = c.c%d", state->sequence->quoted,
						 state->sequence->store);
	appendStringInfoString(&sql, " FROM " APPLY_ROWS " AS c WHERE ");
	apply_append_match(&sql, state, group, false);
	if (state->newer)
		apply_append_newer(&sql, state);
	else
	{
		appendStringInfo(&sql, " AND (t.%s IS NOT TRUE",
						 state->soft_delete->quoted);
		if (state->sequence != NULL)
			appendStringInfo(&sql, " OR " CDC_SCHEMA ".image_differs(t.%s, c.c%d)",
							 state->sequence->quoted, state->sequence->store);
		appendStringInfoChar(&sql, ')');
	}
	appendStringInfoString(&sql, " RETURNING c.n");

	apply_receive_numbers(&receiver, state, &state->marked);
	state->result->deleted += apply_run(state, group->rows[APPLY_DELETE],
										sql.data, apply_join(state),
										&receiver.pub);
}

/* ----------------------------------------------------------------
 *		Rows that the changelog does not have
 * ----------------------------------------------------------------
 */

/*
 * Stores the keys of the target's rows that no upsert has, in their groups.
 * Keys with NULLs in the same columns are looked for together, as for all
 * statements; then come those which have NULLs where no upsert has.
 */
void
apply_find_extra_rows(ApplyState *state)
{
	List	   *groups = list_copy(state->groups);
	uint64		all_null = state->nkeys == 64 ? ~UINT64CONST(0) :
		(UINT64CONST(1) << state->nkeys) - 1;
	ExtraReceiver receiver = {0};
	StringInfoData select;
	StringInfoData others;
	ListCell   *lc;
	bool		any_others = true;

	apply_init_receiver(&receiver.pub, receive_extra);
	receiver.state = state;
	receiver.values = palloc0(sizeof(Datum) * state->store_desc->natts);
	receiver.isnull = palloc(sizeof(bool) * state->store_desc->natts);

	initStringInfo(&select);
	initStringInfo(&others);
	for (int i = 0; i < state->nkeys; i++)
		appendStringInfo(&select, "%s t.%s", i > 0 ? "," : "SELECT",
						 state->keys[i].column->quoted);
	appendStringInfo(&select, " FROM %s AS t WHERE ", state->target_sql);
	if (state->history != NULL)
		appendStringInfo(&select, "%s AND ", apply_history_current(state));
	if (state->soft_delete != NULL)
		appendStringInfo(&select, "t.%s IS NOT TRUE AND ",
						 state->soft_delete->quoted);

	foreach(lc, groups)
	{
		ApplyGroup *group = lfirst(lc);
		StringInfoData pattern;
		StringInfoData sql;

		if (group->rows[APPLY_UPSERT] == NULL)
			continue;
		initStringInfo(&pattern);
		append_pattern(&pattern, state, group->nulls);
		if (pattern.len == 0)
			any_others = false;
		else
			appendStringInfo(&others, "%sNOT (%s)",
							 others.len > 0 ? " AND " : "", pattern.data);

		/* one key, and it is there */
		if (group->nulls == all_null)
			continue;
		initStringInfo(&sql);
		appendStringInfo(&sql, "%s%s%sNOT EXISTS (SELECT FROM " APPLY_ROWS
						 " AS c WHERE ", select.data, pattern.data,
						 pattern.len > 0 ? " AND " : "");
		apply_append_match(&sql, state, group, true);
		appendStringInfoChar(&sql, ')');
		(void) apply_run(state, group->rows[APPLY_UPSERT], sql.data,
						 APPLY_JOIN_HASH, &receiver.pub);
	}
	if (any_others)
		(void) apply_run(state, NULL,
						 psprintf("%s%s", select.data,
								  others.len > 0 ? others.data : "true"),
						 APPLY_JOIN_ANY, &receiver.pub);
}

/*
 * The condition that a row of the target has NULL in these key columns and no
 * others; nothing if that is sure.
 */
static void
append_pattern(StringInfo buf, ApplyState *state, uint64 nulls)
{
	for (int i = 0; i < state->nkeys; i++)
	{
		ApplyColumn *column = state->keys[i].column;
		bool		null = (nulls & (UINT64CONST(1) << i)) != 0;

		/* nobody makes sure of that in a foreign table */
		if (!null && column->not_null &&
			(state->relkind == RELKIND_RELATION ||
			 state->relkind == RELKIND_PARTITIONED_TABLE))
			continue;
		appendStringInfo(buf, "%st.%s %s NULL", buf->len > 0 ? " AND " : "",
						 column->quoted,
						 null ? "IS NOT DISTINCT FROM" : "IS DISTINCT FROM");
	}
}

/*
 * Stores the key of a row as one to delete.
 */
static bool
receive_extra(TupleTableSlot *slot, DestReceiver *self)
{
	ExtraReceiver *receiver = (ExtraReceiver *) self;
	ApplyState *state = receiver->state;
	ApplyGroup *group;

	slot_getallattrs(slot);
	memset(receiver->isnull, true, sizeof(bool) * state->store_desc->natts);
	receiver->values[APPLY_STORE_NUMBER - 1] = Int64GetDatum(++state->nstored);
	receiver->isnull[APPLY_STORE_NUMBER - 1] = false;
	for (int i = 0; i < state->nkeys; i++)
	{
		int			at = state->keys[i].column->store - 1;

		receiver->values[at] = slot->tts_values[i];
		receiver->isnull[at] = slot->tts_isnull[i];
	}
	group = apply_group_of(state, receiver->values, receiver->isnull);
	if (group->extra == NULL)
	{
		MemoryContext oldcontext = MemoryContextSwitchTo(state->context);

		group->extra = apply_begin_store();
		MemoryContextSwitchTo(oldcontext);
	}
	tuplestore_putvalues(group->extra, state->store_desc, receiver->values,
						 receiver->isnull);
	return true;
}

/*
 * Deletes or marks the rows of the target that find_extra_rows has found.
 */
static void
delete_extra_rows(ApplyState *state, ApplyGroup *group)
{
	StringInfoData sql;
	int64		found;
	int64		deleted;

	if (group->extra == NULL)
		return;
	initStringInfo(&sql);
	if (state->soft_delete == NULL)
		appendStringInfo(&sql, "DELETE FROM %s AS t USING " APPLY_ROWS
						 " AS c WHERE ", state->target_sql);
	else
		appendStringInfo(&sql, "UPDATE %s AS t SET %s = true FROM " APPLY_ROWS
						 " AS c WHERE t.%s IS NOT TRUE AND ",
						 state->target_sql, state->soft_delete->quoted,
						 state->soft_delete->quoted);
	apply_append_match(&sql, state, group, false);
	found = tuplestore_tuple_count(group->extra);
	deleted = apply_run(state, group->extra, sql.data, apply_join(state),
						NULL);
	state->result->deleted += deleted;

	/* a trigger or policy may have objected */
	if (deleted < found)
		state->result->unchanged += found - deleted;
	tuplestore_end(group->extra);
	group->extra = NULL;
}

/* ----------------------------------------------------------------
 *		The limit
 * ----------------------------------------------------------------
 */

/*
 * Raises an error unless the text is a limit for deletes: a number of rows, or
 * a percentage of the target's.
 */
void
cdc_apply_check_max_deletes(const char *max_deletes)
{
	double		limit;
	bool		percent;

	if (!parse_limit(max_deletes, &limit, &percent))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for \"max_deletes\": \"%s\"",
						max_deletes),
				 errhint("Give a number of rows, such as \"100\", or a percentage of the target's rows, such as \"5%%\".")));
}

/*
 * Takes a limit apart.  Returns false if it is none.
 */
static bool
parse_limit(const char *text, double *limit, bool *percent)
{
	size_t		number = strspn(text, "0123456789");
	const char *end = text +number;

	*percent = text[0] != '\0' && text[strlen(text) - 1] == '%';

	if (number == 0 || number > 18)
		return false;
	if (*percent && *end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (strcmp(end, *percent ? "%" : "") != 0)
		return false;
	*limit = strtod(text, NULL);
	return !*percent || *limit <= 100;
}

/*
 * Raises an error if more rows have been deleted than the options allow.  The
 * target must not have been changed otherwise.
 */
void
apply_check_deletes(ApplyState *state)
{
	const char *max_deletes = state->options->max_deletes;
	int64		deleted = state->result->deleted;
	double		limit;
	bool		percent;
	int64		before;

	if (max_deletes == NULL || deleted == 0)
		return;
	(void) parse_limit(max_deletes, &limit, &percent);
	if (!percent)
	{
		if (deleted <= limit)
			return;
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg_plural("changelog deletes %lld row of \"%s\", more than the limit of %s",
							   "changelog deletes %lld rows of \"%s\", more than the limit of %s",
							   (unsigned long) deleted, (long long) deleted,
							   state->target, max_deletes),
				 errhint("If the deletes are right, repeat this with a higher limit (\"max_deletes\").")));
	}

	if (state->history == NULL &&
		state->relkind != RELKIND_VIEW &&
		state->relkind != RELKIND_FOREIGN_TABLE &&
		deleted * STATISTICS_MARGIN <=
		promised_rows(state->relid) * limit / 100)
		return;
	before = rows_before(state);
	if (deleted > before * limit / 100)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg_plural("changelog deletes %lld row of \"%s\", more than the limit of %s",
							   "changelog deletes %lld rows of \"%s\", more than the limit of %s",
							   (unsigned long) deleted, (long long) deleted,
							   state->target, max_deletes),
				 errdetail_plural("The target had %lld row.",
								  "The target had %lld rows.",
								  (unsigned long) before, (long long) before),
				 errhint("If the deletes are right, repeat this with a higher limit (\"max_deletes\").")));
}

/*
 * The number of rows that a table has according to both VACUUM and the
 * cumulative statistics, whatever is less.
 */
static double
promised_rows(Oid relid)
{
	double		sum = 0;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		HeapTuple	tuple = SearchSysCache1(RELOID,
											ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_class form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_class) GETSTRUCT(tuple);
		if (form->relkind == RELKIND_RELATION && form->reltuples > 0)
		{
			int64		live =
				DatumGetInt64(DirectFunctionCall1(pg_stat_get_live_tuples,
												  ObjectIdGetDatum(lfirst_oid(lc))));

			sum += Min(form->reltuples, (double) live);
		}
		ReleaseSysCache(tuple);
	}
	return sum;
}

/*
 * Counts the rows that the target had before some were deleted.
 */
static int64
rows_before(ApplyState *state)
{
	StringInfoData sql;
	bool		isnull;
	int64		now;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT pg_catalog.count(*) FROM %s AS t WHERE %s",
					 state->target_sql,
					 state->history != NULL ? apply_history_current(state) :
					 "true");
	if (state->soft_delete != NULL)
		appendStringInfo(&sql, " AND t.%s IS NOT TRUE",
						 state->soft_delete->quoted);
	if (SPI_execute(sql.data, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not count the rows of \"%s\"", state->target);
	now = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
									  SPI_tuptable->tupdesc, 1, &isnull));
	SPI_freetuptable(SPI_tuptable);

	/* versions are not deleted before this has been looked at */
	return state->history != NULL ? now : now + state->result->deleted;
}
