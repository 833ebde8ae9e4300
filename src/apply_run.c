/*-------------------------------------------------------------------------
 *
 * apply_run.c
 *		Applying a changelog: running statements over stored rows.
 *
 * Stored rows are put before the planner as a relation that lives for one
 * statement, with their exact number.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_run.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/resowner.h"
#include "utils/snapshot.h"

#include "apply_internal.h"

static SPIPlanPtr prepare(const char *sql, ApplyJoin join);
static int64 run_deferred(SPIPlanPtr plan, DestReceiver *dest);

/*
 * Runs a statement over stored rows, or over none if "rows" is NULL.  The
 * result goes to "dest", or nowhere.  Returns the number of rows that the
 * statement produced or changed.
 */
int64
apply_run(ApplyState *state, Tuplestorestate *rows, const char *sql,
		  ApplyJoin join, DestReceiver *dest)
{
	EphemeralNamedRelation relation = &state->relation;
	SPIPlanPtr	plan;
	int64		processed;
	int			rc;

	/* one may be left over from a statement that failed */
	(void) SPI_unregister_relation(APPLY_ROWS);
	if (rows != NULL)
	{
		relation->md.name = APPLY_ROWS;
		relation->md.tupdesc = state->store_desc;
		relation->md.enrtype = ENR_NAMED_TUPLESTORE;
		relation->md.enrtuples = tuplestore_tuple_count(rows);
		relation->reldata = rows;
		rc = SPI_register_relation(relation);
		if (rc != SPI_OK_REL_REGISTER)
			elog(ERROR, "SPI_register_relation failed: %s",
				 SPI_result_code_string(rc));
	}

	plan = prepare(sql, join);
	if (state->options->defer_triggers)
		processed = run_deferred(plan, dest);
	else
	{
		SPIExecuteOptions options = {0};

		options.dest = dest != NULL ? dest : None_Receiver;
		rc = SPI_execute_plan_extended(plan, &options);
		if (rc < 0)
			elog(ERROR, "SPI_execute_plan_extended failed: %s",
				 SPI_result_code_string(rc));
		processed = (int64) SPI_processed;
	}
	SPI_freeplan(plan);
	if (rows != NULL)
		(void) SPI_unregister_relation(APPLY_ROWS);
	return processed;
}

/*
 * Runs a plan without firing AFTER triggers: they are queued for the query
 * level that the caller of cdc_apply has begun.  SPI gives no choice of the
 * receiver here, so rows come to it by way of SPI's own table.
 */
static int64
run_deferred(SPIPlanPtr plan, DestReceiver *dest)
{
	int64		processed;
	int			rc;

	rc = SPI_execute_snapshot(plan, NULL, NULL, InvalidSnapshot,
							  InvalidSnapshot, false, false, 0);
	if (rc < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s",
			 SPI_result_code_string(rc));
	processed = (int64) SPI_processed;

	if (SPI_tuptable != NULL && dest != NULL)
	{
		SPITupleTable *table = SPI_tuptable;
		TupleTableSlot *slot = MakeSingleTupleTableSlot(table->tupdesc,
														&TTSOpsHeapTuple);

		for (uint64 i = 0; i < table->numvals; i++)
		{
			ExecStoreHeapTuple(table->vals[i], slot, false);
			dest->receiveSlot(slot, dest);
		}
		ExecDropSingleTupleTableSlot(slot);
	}
	if (SPI_tuptable != NULL)
		SPI_freetuptable(SPI_tuptable);
	return processed;
}

/*
 * Plans a statement.  Settings for the planner are in force no longer than
 * that, because triggers that the statement fires plan for themselves.
 */
static SPIPlanPtr
prepare(const char *sql, ApplyJoin join)
{
	static const char *const by_index[] =
	{"enable_hashjoin", "enable_mergejoin", "enable_seqscan", "jit", NULL};
	static const char *const by_hash[] =
	{"enable_nestloop", "enable_mergejoin", "jit", NULL};
	SPIPlanPtr	plan = SPI_prepare(sql, 0, NULL);

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s",
			 SPI_result_code_string(SPI_result));
	if (join != APPLY_JOIN_ANY)
	{
		int			nest_level = NewGUCNestLevel();
		CachedPlan *cached;

		for (const char *const *setting =
			 join == APPLY_JOIN_INDEX ? by_index : by_hash;
			 *setting != NULL; setting++)
			(void) set_config_option(*setting, "off", PGC_USERSET,
									 PGC_S_SESSION, GUC_ACTION_SAVE,
									 true, 0, false);
		cached = SPI_plan_get_cached_plan(plan);
		AtEOXact_GUC(true, nest_level);

		/* the plan keeps it, too, and it will be used as it is */
		if (cached != NULL)
			ReleaseCachedPlan(cached, NULL);
	}
	return plan;
}

static void
receive_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
}

static void
receive_nothing(DestReceiver *self)
{
}

/*
 * Makes a receiver of one that is the first field of something larger.
 */
void
apply_init_receiver(DestReceiver *receiver,
					bool (*receive) (TupleTableSlot *, DestReceiver *))
{
	receiver->receiveSlot = receive;
	receiver->rStartup = receive_startup;
	receiver->rShutdown = receive_nothing;
	receiver->rDestroy = receive_nothing;
	receiver->mydest = DestTuplestore;
}

/*
 * Takes note of a stored row; its number is the first column.
 */
static bool
receive_number(TupleTableSlot *slot, DestReceiver *self)
{
	ApplyNumberReceiver *receiver = (ApplyNumberReceiver *) self;
	bool		isnull;

	(void) apply_rowset_add(receiver->numbers,
							DatumGetInt64(slot_getattr(slot, 1, &isnull)));
	return true;
}

/*
 * Makes a receiver of row numbers.
 */
void
apply_receive_numbers(ApplyNumberReceiver * receiver, ApplyState *state,
					  ApplyRowSet *numbers)
{
	apply_init_receiver(&receiver->pub, receive_number);
	receiver->state = state;
	receiver->numbers = numbers;
}

/* ----------------------------------------------------------------
 *		Parts of statements
 * ----------------------------------------------------------------
 */

/*
 * The condition that a stored row and one of the target have the same key.
 * With "skip_nulls", only columns without NULL are compared; there must be one.
 */
void
apply_append_match(StringInfo buf, ApplyState *state, ApplyGroup *group,
				   bool skip_nulls)
{
	bool		first = true;

	for (int i = 0; i < state->nkeys; i++)
	{
		ApplyKey   *key = &state->keys[i];
		char	   *theirs = psprintf("t.%s", key->column->quoted);

		if (skip_nulls && (group->nulls & (UINT64CONST(1) << i)) != 0)
			continue;
		if (!first)
			appendStringInfoString(buf, " AND ");
		first = false;

		/* unlike IS NULL, this does not look into composite values */
		if (group->nulls & (UINT64CONST(1) << i))
			appendStringInfo(buf, "%s IS NOT DISTINCT FROM NULL", theirs);
		else
			generate_operator_clause(buf, theirs,
									 key->column->declared_type,
									 key->equal_op,
									 psprintf("c.c%d", key->column->store),
									 key->column->type);
	}
}

/*
 * " AND the stored row is newer", if that matters.
 */
void
apply_append_newer(StringInfo buf, ApplyState *state)
{
	char	   *theirs;

	if (!state->newer)
		return;
	theirs = psprintf("t.%s", state->sequence->quoted);
	appendStringInfo(buf, " AND (%s IS NOT DISTINCT FROM NULL OR ", theirs);
	generate_operator_clause(buf,
							 psprintf("c.c%d", state->sequence->store),
							 state->sequence->type,
							 state->sequence_gt,
							 theirs, state->sequence->declared_type);
	appendStringInfoChar(buf, ')');
}
