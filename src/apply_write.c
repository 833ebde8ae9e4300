/*-------------------------------------------------------------------------
 *
 * apply_write.c
 *		Applying a changelog: changing the target.
 *
 * The statements of one call are, in this order, and only if there are rows
 * for them:
 *
 *	DELETE		or, with soft_delete, an UPDATE that marks rows
 *	UPDATE		of rows that would change
 *	INSERT		of rows that were not updated and are not there
 *
 * Deletes first, so that values move from one row to another as they did in
 * the source.  No MERGE and no ON CONFLICT, because one statement would do
 * the three things in any order, and foreign tables and views know neither.
 *
 * In statements, t is the target and c the stored rows.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_write.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/queryenvironment.h"
#include "utils/relcache.h"
#include "utils/plancache.h"
#include "utils/resowner.h"

#include "apply_internal.h"
#include "cdc_changelog.h"

static void check_target_keys(ApplyState *state, ApplyGroup *group,
							  ApplyRowSet *seen);
static void append_rows(ApplyState *state);
static bool proven_unique(ApplyState *state, ApplyGroup *group);
static void update_rows(ApplyState *state);
static void update_groups(ApplyState *state);
static void check_identity(ApplyState *state);
static ErrorData *try_update(ApplyState *state, List *vacate, bool trial);
static bool vacating_matters(ApplyState *state, List *columns);
static const char *vacated_differ(ApplyState *state, List *columns);
static void vacate_columns(ApplyState *state, List *columns);
static List *columns_to_vacate(ApplyState *state);
static bool has_user_trigger(Relation rel);
static ApplyColumn *column_to_vacate(ApplyState *state, Relation rel,
									 Oid indexoid);
static void insert_rows(ApplyState *state, ApplyGroup *group, ApplyKind kind);
static Tuplestorestate *other_rows(ApplyState *state, Tuplestorestate *rows,
								   const ApplyRowSet *set);
static int64 insert_new(ApplyState *state, ApplyKind kind,
						Tuplestorestate *rows);

static void append_differs(StringInfo buf, ApplyState *state);
static const char *new_value(ApplyState *state, ApplyColumn *column);
static bool anything_to_update(ApplyState *state);
static const char *identity_differs(ApplyState *state);

static bool receive_match(TupleTableSlot *slot, DestReceiver *self);
static bool receive_updated(TupleTableSlot *slot, DestReceiver *self);

PG_FUNCTION_INFO_V1(cdc_image_differs);

/*
 * cdc.image_differs("any", "any"): are two values of one type different in
 * any byte?  NULL is like NULL and different from everything else.
 */
Datum
cdc_image_differs(PG_FUNCTION_ARGS)
{
	struct
	{
		int16		typlen;
		bool		typbyval;
	}		   *type = fcinfo->flinfo->fn_extra;

	if (type == NULL)
	{
		Oid			left = get_fn_expr_argtype(fcinfo->flinfo, 0);
		Oid			right = get_fn_expr_argtype(fcinfo->flinfo, 1);

		if (!OidIsValid(left) || !OidIsValid(right))
			elog(ERROR, "could not determine the types of the arguments");
		if (getBaseType(left) != getBaseType(right))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("arguments must be of one type, not %s and %s",
							format_type_be(left), format_type_be(right))));
		type = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(*type));
		get_typlenbyval(left, &type->typlen, &type->typbyval);
		fcinfo->flinfo->fn_extra = type;
	}

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_BOOL(PG_ARGISNULL(0) != PG_ARGISNULL(1));
	PG_RETURN_BOOL(!datum_image_eq(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1),
								   type->typbyval, type->typlen));
}

/*
 * Applies the groups that apply_read left in the state.  SPI must be
 * connected.
 */
void
apply_write(ApplyState *state)
{
	ApplyRowSet seen = {0};
	ListCell   *lc;

	if (state->options->append)
	{
		append_rows(state);
		return;
	}
	seen.context = state->context;
	foreach(lc, state->groups)
		check_target_keys(state, lfirst(lc), &seen);
	apply_deletes(state);
	update_rows(state);
	foreach(lc, state->groups)
	{
		insert_rows(state, lfirst(lc), APPLY_UPSERT);
		if (state->soft_delete != NULL)
			insert_rows(state, lfirst(lc), APPLY_DELETE);
	}
}

/* ----------------------------------------------------------------
 *		The steps
 * ----------------------------------------------------------------
 */

/*
 * Inserts all rows of the changelog.
 */
static void
append_rows(ApplyState *state)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		Tuplestorestate *rows = ((ApplyGroup *) lfirst(lc))->rows[APPLY_UPSERT];
		int64		inserted = insert_new(state, APPLY_UPSERT, rows);

		/* a trigger may have turned some down */
		state->result->inserted += inserted;
		state->result->unchanged += tuplestore_tuple_count(rows) - inserted;
	}
}

/*
 * Raises an error if a key of the group has several rows in the target.
 */
static void
check_target_keys(ApplyState *state, ApplyGroup *group, ApplyRowSet *seen)
{
	StringInfoData sql;
	ApplyNumberReceiver receiver;

	if (proven_unique(state, group))
		return;

	initStringInfo(&sql);
	appendStringInfoString(&sql, "SELECT c.n");
	for (int i = 0; i < state->nkeys; i++)
		appendStringInfo(&sql, ", c.c%d", state->keys[i].column->store);
	appendStringInfo(&sql, " FROM " APPLY_ROWS " AS c JOIN %s AS t ON ",
					 state->target_sql);
	apply_append_match(&sql, state, group, false);

	apply_init_receiver(&receiver.pub, receive_match);
	receiver.state = state;
	receiver.numbers = seen;
	for (int kind = 0; kind < APPLY_NUM_KINDS; kind++)
		if (group->rows[kind] != NULL)
			apply_run(state, group->rows[kind], sql.data, apply_join(state), &receiver.pub);
}

/*
 * Does an index of the target prove that keys of the group are unique there?
 */
static bool
proven_unique(ApplyState *state, ApplyGroup *group)
{
	ListCell   *lc;

	foreach(lc, state->proofs)
	{
		uint64	   *columns = lfirst(lc);

		if ((*columns & group->nulls) == 0)
			return true;
	}
	return false;
}

/*
 * Updates the rows of the target that are to change.
 *
 * Where a unique value moves between updated rows, the order in which one
 * statement updates them can make it fail.  Then it is tried again with the
 * column set to NULL beforehand, if nobody can take offence at that.
 */
static void
update_rows(ApplyState *state)
{
	bool		trial = state->options->defer_triggers;
	List	   *columns;
	ErrorData  *error;
	ErrorData  *second;

	if (!anything_to_update(state))
	{
		check_identity(state);
		return;
	}
	columns = columns_to_vacate(state);

	/* few updates change such columns, and only they can fail like that */
	if (columns == NIL || (trial && !vacating_matters(state, columns)))
		update_groups(state);
	else if ((error = try_update(state, NIL, trial)) != NULL)
	{
		if (error->sqlerrcode != ERRCODE_UNIQUE_VIOLATION &&
			error->sqlerrcode != ERRCODE_EXCLUSION_VIOLATION)
			ReThrowError(error);
		second = try_update(state, columns, trial);
		if (second != NULL)
			ReThrowError(ERRCODE_TO_CATEGORY(second->sqlerrcode) ==
						 ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION ?
						 error : second);
		if (trial)
		{
			vacate_columns(state, columns);
			update_groups(state);
		}
	}
	else if (trial)
		update_groups(state);
	state->result->updated += state->updated.count;
}

static void
update_groups(ApplyState *state)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		ApplyGroup *group = lfirst(lc);
		StringInfoData sql;
		ApplyNumberReceiver receiver;
		const char *separator = "";

		if (group->rows[APPLY_UPSERT] == NULL)
			continue;
		initStringInfo(&sql);
		appendStringInfo(&sql, "UPDATE %s AS t SET ", state->target_sql);
		for (int i = 0; i < state->ncolumns; i++)
		{
			ApplyColumn *column = &state->columns[i];

			if (!column->in_update &&
				!(column == state->soft_delete && column->store == 0))
				continue;
			appendStringInfo(&sql, "%s%s = %s", separator, column->quoted,
							 new_value(state, column));
			separator = ", ";
		}
		appendStringInfoString(&sql, " FROM " APPLY_ROWS " AS c WHERE ");
		apply_append_match(&sql, state, group, false);
		if (state->newer)
			apply_append_newer(&sql, state);
		else
			append_differs(&sql, state);
		appendStringInfo(&sql, " RETURNING c.n%s", identity_differs(state));

		apply_init_receiver(&receiver.pub, receive_updated);
		receiver.state = state;
		receiver.numbers = &state->updated;
		apply_run(state, group->rows[APPLY_UPSERT], sql.data, apply_join(state), &receiver.pub);
	}
}

/*
 * Raises an error if an identity column that UPDATE cannot write would have to
 * change.  For a target where there is nothing else to update; otherwise the
 * updates find out.
 */
static void
check_identity(ApplyState *state)
{
	const char *differs = identity_differs(state);
	ListCell   *lc;

	if (differs[0] == '\0')
		return;
	foreach(lc, state->groups)
	{
		ApplyGroup *group = lfirst(lc);
		StringInfoData sql;
		ApplyNumberReceiver receiver;
		ApplyRowSet looked_at = {0};

		if (group->rows[APPLY_UPSERT] == NULL)
			continue;
		initStringInfo(&sql);
		appendStringInfo(&sql, "SELECT c.n%s FROM " APPLY_ROWS
						 " AS c JOIN %s AS t ON ", differs, state->target_sql);
		apply_append_match(&sql, state, group, false);
		apply_append_newer(&sql, state);

		looked_at.context = state->context;
		apply_init_receiver(&receiver.pub, receive_updated);
		receiver.state = state;
		receiver.numbers = &looked_at;
		(void) apply_run(state, group->rows[APPLY_UPSERT], sql.data,
						 apply_join(state), &receiver.pub);
	}
}

/*
 * Updates in a subtransaction, first setting some columns to NULL.  Returns
 * NULL if that worked, and the error if it did not.
 *
 * A trial is rolled back in any case.  Where triggers are deferred there is no
 * other way: what a subtransaction queues for a query level that was begun
 * outside of it stays there when it is rolled back.
 */
static ErrorData *
try_update(ApplyState *state, List *vacate, bool trial)
{
	MemoryContext oldcontext = CurrentMemoryContext;
	ResourceOwner oldowner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(oldcontext);
	PG_TRY();
	{
		if (trial)
			AfterTriggerBeginQuery();
		if (vacate != NIL)
			vacate_columns(state, vacate);
		update_groups(state);
		if (!trial)
			ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(oldcontext);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		apply_rowset_clear(&state->updated);
	}
	PG_END_TRY();
	if (trial && error == NULL)
	{
		RollbackAndReleaseCurrentSubTransaction();
		apply_rowset_clear(&state->updated);
	}
	MemoryContextSwitchTo(oldcontext);
	CurrentResourceOwner = oldowner;
	return error;
}

/*
 * Is an update going to change any of the columns?
 */
static bool
vacating_matters(ApplyState *state, List *columns)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		ApplyGroup *group = lfirst(lc);
		StringInfoData sql;

		if (group->rows[APPLY_UPSERT] == NULL)
			continue;
		initStringInfo(&sql);
		appendStringInfo(&sql, "SELECT FROM " APPLY_ROWS " AS c JOIN %s AS t ON ",
						 state->target_sql);
		apply_append_match(&sql, state, group, false);
		apply_append_newer(&sql, state);
		appendStringInfo(&sql, " AND (%s) LIMIT 1",
						 vacated_differ(state, columns));
		if (apply_run(state, group->rows[APPLY_UPSERT], sql.data,
					  apply_join(state), NULL) > 0)
			return true;
	}
	return false;
}

/*
 * The condition that an update changes any of the columns.
 */
static const char *
vacated_differ(ApplyState *state, List *columns)
{
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, columns)
	{
		ApplyColumn *column = lfirst(lc);

		appendStringInfo(&buf, "%s" CDC_SCHEMA ".image_differs(t.%s, %s)",
						 buf.len > 0 ? " OR " : "", column->quoted,
						 new_value(state, column));
	}
	return buf.data;
}

/*
 * Sets columns to NULL where an update is going to change them.
 */
static void
vacate_columns(ApplyState *state, List *columns)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		ApplyGroup *group = lfirst(lc);
		StringInfoData sql;
		ApplyNumberReceiver receiver;
		const char *separator = "";
		ListCell   *lc2;

		if (group->rows[APPLY_UPSERT] == NULL)
			continue;
		initStringInfo(&sql);
		appendStringInfo(&sql, "UPDATE %s AS t SET ", state->target_sql);
		foreach(lc2, columns)
		{
			ApplyColumn *column = lfirst(lc2);

			appendStringInfo(&sql, "%s%s = CASE WHEN " CDC_SCHEMA
							 ".image_differs(t.%s, %s) THEN NULL ELSE t.%s END",
							 separator, column->quoted, column->quoted,
							 new_value(state, column), column->quoted);
			separator = ", ";
		}
		appendStringInfoString(&sql, " FROM " APPLY_ROWS " AS c WHERE ");
		apply_append_match(&sql, state, group, false);
		apply_append_newer(&sql, state);
		appendStringInfo(&sql, " AND (%s) RETURNING c.n",
						 vacated_differ(state, columns));

		apply_receive_numbers(&receiver, state, &state->updated);
		apply_run(state, group->rows[APPLY_UPSERT], sql.data,
				  apply_join(state), &receiver.pub);
	}
}

/*
 * One column of each unique or exclusion constraint that an update can break
 * on the way, and that can be NULL for the moment.  Not if a trigger of the
 * user's would see that.
 */
static List *
columns_to_vacate(ApplyState *state)
{
	List	   *columns = NIL;
	Relation	rel;

	if (state->relkind != RELKIND_RELATION)
		return NIL;
	rel = table_open(state->relid, RowExclusiveLock);
	if (!has_subclass(state->relid) && !has_user_trigger(rel))
	{
		ListCell   *lc;

		foreach(lc, RelationGetIndexList(rel))
		{
			ApplyColumn *column = column_to_vacate(state, rel, lfirst_oid(lc));

			if (column != NULL)
				columns = list_append_unique_ptr(columns, column);
		}
	}
	table_close(rel, NoLock);
	return columns;
}

/*
 * Does an update of the table run a trigger other than those of constraints
 * and our own?
 */
static bool
has_user_trigger(Relation rel)
{
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (!trigger->tgisinternal &&
			TRIGGER_FOR_UPDATE(trigger->tgtype) &&
			get_func_namespace(trigger->tgfoid) != get_namespace_oid(CDC_SCHEMA, true))
			return true;
	}
	return false;
}

/*
 * The column to set to NULL so that updates cannot break the constraint of an
 * index on the way, or NULL if there is none.
 */
static ApplyColumn *
column_to_vacate(ApplyState *state, Relation rel, Oid indexoid)
{
	Relation	index = index_open(indexoid, AccessShareLock);
	Form_pg_index form = index->rd_index;
	ApplyColumn *result = NULL;
	bool		eligible = (form->indisunique || form->indisexclusion) &&
		form->indimmediate && !form->indnullsnotdistinct;

	/* a foreign key that refers to the index would take part */
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (trigger->tgconstrindid == indexoid &&
			RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK)
			eligible = false;
	}

	for (int i = 0; eligible && i < form->indnkeyatts && result == NULL; i++)
	{
		for (int k = 0; k < state->ncolumns; k++)
		{
			ApplyColumn *column = &state->columns[k];

			if (column->attnum == form->indkey.values[i] &&
				column->in_update && !column->not_null && !column->is_key &&
				column != state->sequence && column != state->soft_delete)
				result = column;
		}
	}
	index_close(index, NoLock);
	return result;
}

/*
 * Inserts the rows of the group that have not found one in the target, and
 * counts what became of those of its kind.
 */
static void
insert_rows(ApplyState *state, ApplyGroup *group, ApplyKind kind)
{
	Tuplestorestate *all = group->rows[kind];
	Tuplestorestate *rest;
	Tuplestorestate *new;
	int64		nrest;
	int64		inserted = 0;

	if (all == NULL)
		return;
	rest = other_rows(state, all, kind == APPLY_UPSERT ? &state->updated :
					  &state->marked);
	if (rest == NULL)
		return;
	nrest = tuplestore_tuple_count(rest);

	new = other_rows(state, rest, apply_find_rows(state, group, rest));
	if (new != NULL)
		inserted = insert_new(state, kind, new);

	if (kind == APPLY_UPSERT)
		state->result->inserted += inserted;
	else
		state->result->missing += inserted;
	if (state->newer)
		state->result->stale += nrest - inserted;
	else
		state->result->unchanged += nrest - inserted;

	if (new != NULL && new != rest)
		tuplestore_end(new);
	if (rest != all)
		tuplestore_end(rest);
}

/*
 * The rows that are not in the set: the store itself if none is, NULL if all
 * are.
 */
static Tuplestorestate *
other_rows(ApplyState *state, Tuplestorestate *rows, const ApplyRowSet *set)
{
	if (set->count == 0)
		return rows;
	return apply_rows_without(state, rows, set);
}

/*
 * The numbers of the rows that are in the target.
 */
ApplyRowSet *
apply_find_rows(ApplyState *state, ApplyGroup *group, Tuplestorestate *rows)
{
	ApplyRowSet *found = palloc0(sizeof(ApplyRowSet));
	StringInfoData sql;
	ApplyNumberReceiver receiver;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT c.n FROM " APPLY_ROWS " AS c JOIN %s AS t ON ",
					 state->target_sql);
	apply_append_match(&sql, state, group, false);

	found->context = state->context;
	apply_receive_numbers(&receiver, state, found);

	/* most of a complete content that is there already: read all once */
	apply_run(state, rows, sql.data,
			  state->complete &&
			  tuplestore_tuple_count(rows) > state->nstored / 10 ?
			  APPLY_JOIN_HASH : apply_join(state), &receiver.pub);
	return found;
}

/*
 * Inserts rows into the target.  Deletes become rows that are marked as
 * deleted.
 */
static int64
insert_new(ApplyState *state, ApplyKind kind, Tuplestorestate *rows)
{
	StringInfoData sql;
	StringInfoData values;
	bool		identity = false;

	initStringInfo(&sql);
	initStringInfo(&values);
	appendStringInfo(&sql, "INSERT INTO %s (", state->target_sql);
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (!column->in_insert && column != state->soft_delete)
			continue;
		if (values.len > 0)
		{
			appendStringInfoString(&sql, ", ");
			appendStringInfoString(&values, ", ");
		}
		appendStringInfoString(&sql, column->quoted);
		if (column == state->soft_delete &&
			(kind == APPLY_DELETE || column->store == 0))
			appendStringInfoString(&values,
								   kind == APPLY_DELETE ? "true" : "false");
		else
			appendStringInfo(&values, "c.c%d", column->store);
		identity |= column->identity != '\0';
	}
	if (values.len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_GENERATED_ALWAYS),
				 errmsg("changelog has no column that can be inserted into target \"%s\"",
						state->target)));
	appendStringInfo(&sql, ")%s SELECT %s FROM " APPLY_ROWS " AS c",
					 identity ? " OVERRIDING SYSTEM VALUE" : "", values.data);
	return apply_run(state, rows, sql.data, apply_join(state), NULL);
}

/* ----------------------------------------------------------------
 *		Parts of statements
 * ----------------------------------------------------------------
 */

/*
 * " AND an update would change the target's row".
 */
static void
append_differs(StringInfo buf, ApplyState *state)
{
	const char *separator = " AND (";

	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (!column->in_update &&
			!(column == state->soft_delete && column->store == 0) &&
			!(column->store > 0 && !column->is_key && !column->generated))
			continue;
		appendStringInfo(buf, "%s" CDC_SCHEMA ".image_differs(t.%s, %s)",
						 separator, column->quoted, new_value(state, column));
		separator = " OR ";
	}
	appendStringInfoChar(buf, ')');
}

/*
 * The value of a column after an update.
 */
static const char *
new_value(ApplyState *state, ApplyColumn *column)
{
	if (column->store == 0)
		return "false";			/* soft_delete */
	if (state->options->ignore_null_updates)
		return psprintf("COALESCE(c.c%d, t.%s)", column->store,
						column->quoted);
	return psprintf("c.c%d", column->store);
}

static bool
anything_to_update(ApplyState *state)
{
	for (int i = 0; i < state->ncolumns; i++)
		if (state->columns[i].in_update || &state->columns[i] == state->soft_delete)
			return true;
	return false;
}

/*
 * For each identity column that UPDATE cannot write, whether it would have to,
 * as further columns of a result.
 */
static const char *
identity_differs(ApplyState *state)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (column->store > 0 && !column->is_key &&
			column->identity == ATTRIBUTE_IDENTITY_ALWAYS)
			appendStringInfo(&buf, ", " CDC_SCHEMA ".image_differs(t.%s, %s)",
							 column->quoted, new_value(state, column));
	}
	return buf.data;
}

/* ----------------------------------------------------------------
 *		What comes back
 * ----------------------------------------------------------------
 */

/*
 * Takes note of a stored row that has a match in the target.  A second one is
 * an error; the key comes after the number.
 */
static bool
receive_match(TupleTableSlot *slot, DestReceiver *self)
{
	ApplyNumberReceiver *receiver = (ApplyNumberReceiver *) self;

	slot_getallattrs(slot);
	if (!apply_rowset_add(receiver->numbers, DatumGetInt64(slot->tts_values[0])))
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("apply_changelog failed: multiple rows in destination table match key [%s]",
						apply_key_names(receiver->state)),
				 errdetail("Key %s has more than one row in \"%s\".",
						   apply_key_detail(receiver->state,
											&slot->tts_values[1],
											&slot->tts_isnull[1]),
						   receiver->state->target)));
	return true;
}

/*
 * Takes note of a stored row that has updated the target.
 */
static bool
receive_updated(TupleTableSlot *slot, DestReceiver *self)
{
	ApplyNumberReceiver *receiver = (ApplyNumberReceiver *) self;
	ApplyState *state = receiver->state;
	int			identity = 0;

	slot_getallattrs(slot);
	(void) apply_rowset_add(receiver->numbers,
							DatumGetInt64(slot->tts_values[0]));

	/* see identity_differs() */
	for (int i = 0; i < state->ncolumns &&
		 identity < slot->tts_tupleDescriptor->natts - 1; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (column->store == 0 || column->is_key ||
			column->identity != ATTRIBUTE_IDENTITY_ALWAYS)
			continue;
		if (DatumGetBool(slot->tts_values[++identity]))
			ereport(ERROR,
					(errcode(ERRCODE_GENERATED_ALWAYS),
					 errmsg("cannot update identity column \"%s\" of target \"%s\"",
							column->name, state->target),
					 errdetail("Column \"%s\" is an identity column defined as GENERATED ALWAYS.",
							   column->name)));
	}
	return true;
}
