/*-------------------------------------------------------------------------
 *
 * verify.c
 *		The content of a table at a snapshot, and the proof of its log.
 *
 * cdc.as_of() shows the table as it was: what reader.c computes where a range
 * begins.  cdc.verify() reads all of the log and of the table and tells what
 * does not fit:
 *
 * - a snapshot with another number of log rows than it has recorded: rows were
 *	 deleted or added;
 * - a log row from another transaction than that of its snapshot, or of none:
 *	 it was changed or added (see segment.c);
 * - an image of which there would have been less than no rows at some time,
 *	 going back from the live table: it says that a row came which is not there
 *	 and did not go, or that one went which was not there.
 *
 * The baseline itself is not stored anywhere, and so it is what the rest says
 * it was.
 *
 * Both ask for the same privileges as reading a changelog.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/verify.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "cdc_changelog.h"
#include "reader.h"

/* Result columns of cdc.verify */
#define VERIFY_COLS		4

/* Where the problems go */
typedef struct VerifyState
{
	Relation	source;
	Tuplestorestate *store;
	TupleDesc	desc;			/* of the result */
	MemoryContext context;		/* reset for each row */
} VerifyState;

PG_FUNCTION_INFO_V1(cdc_as_of);
PG_FUNCTION_INFO_V1(cdc_verify);

static Oid	row_type_relation(Oid typid);
static Tuplestorestate *begin_result(FunctionCallInfo fcinfo);
static void report_problem(void *arg, int sign, int64 snapshot_id,
						   const char *problem, TupleTableSlot *slot,
						   int shift);
static char *row_text(Relation source, TupleTableSlot *slot, int shift);

/*
 * cdc.as_of(row anyelement, snapshot bigint) RETURNS SETOF anyelement
 *
 * Returns the rows that the table had after a snapshot; the type of the first
 * argument, whose value does not matter, tells the table.  Raises the errors
 * of reading a changelog that starts at that snapshot.
 */
Datum
cdc_as_of(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			relid = row_type_relation(get_fn_expr_argtype(fcinfo->flinfo, 0));
	Tuplestorestate *store;
	CdcRange   *range;
	Relation	source;
	MemoryContext oldcontext;

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("snapshot must not be null")));

	range = cdc_range_open_content(relid, PG_GETARG_INT64(1));
	source = table_open(relid, AccessShareLock);
	store = begin_result(fcinfo);
	oldcontext = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	rsinfo->setDesc = CreateTupleDescCopy(RelationGetDescr(source));
	MemoryContextSwitchTo(oldcontext);

	cdc_read_content(range, source, store, rsinfo->setDesc);

	table_close(source, NoLock);
	cdc_range_close(range);
	return (Datum) 0;
}

/*
 * The table with this row type.
 */
static Oid
row_type_relation(Oid typid)
{
	Oid			relid = OidIsValid(typid) ? get_typ_typrelid(typid) : InvalidOid;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("first argument of %s must have the row type of a table",
						"cdc.as_of"),
				 OidIsValid(typid) ?
				 errdetail("It is of type %s.", format_type_be(typid)) : 0,
				 errhint("Write NULL::table_name.")));
	return relid;
}

/*
 * Begin a result that is materialized.
 */
static Tuplestorestate *
begin_result(FunctionCallInfo fcinfo)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext oldcontext;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("materialize mode required, but it is not allowed in this context")));

	oldcontext = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	rsinfo->setResult = tuplestore_begin_heap((rsinfo->allowedModes &
											   SFRM_Materialize_Random) != 0,
											  false, work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	MemoryContextSwitchTo(oldcontext);
	return rsinfo->setResult;
}

/*
 * cdc.verify(relation regclass)
 *
 * Returns what is wrong with the log of a table; no rows if nothing is.
 */
Datum
cdc_verify(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			relid = PG_GETARG_OID(0);
	CdcRange   *range;
	VerifyState state;

	range = cdc_range_open_all(relid);
	InitMaterializedSRF(fcinfo, 0);
	state.source = table_open(relid, AccessShareLock);
	state.store = rsinfo->setResult;
	state.desc = rsinfo->setDesc;
	state.context = AllocSetContextCreate(CurrentMemoryContext,
										  "cdc_changelog verify",
										  ALLOCSET_DEFAULT_SIZES);

	cdc_verify_log(range, state.source, report_problem, &state);

	MemoryContextDelete(state.context);
	table_close(state.source, NoLock);
	cdc_range_close(range);
	return (Datum) 0;
}

/*
 * Add a problem to the result; a CdcVerifyReport.
 */
static void
report_problem(void *arg, int sign, int64 snapshot_id, const char *problem,
			   TupleTableSlot *slot, int shift)
{
	VerifyState *state = arg;
	MemoryContext oldcontext = MemoryContextSwitchTo(state->context);
	Datum		values[VERIFY_COLS] = {0};
	bool		nulls[VERIFY_COLS] = {0};

	values[0] = Int32GetDatum(sign);
	nulls[0] = sign == 0;
	values[1] = Int64GetDatum(snapshot_id);
	nulls[1] = snapshot_id < 0;
	values[2] = CStringGetTextDatum(problem);
	if (slot)
		values[3] = CStringGetTextDatum(row_text(state->source, slot, shift));
	else
		nulls[3] = true;
	tuplestore_putvalues(state->store, state->desc, values, nulls);

	MemoryContextSwitchTo(oldcontext);
	MemoryContextReset(state->context);
}

/*
 * A row of the table or its log as text that can be cast to the table's row
 * type.
 */
static char *
row_text(Relation source, TupleTableSlot *slot, int shift)
{
	TupleDesc	desc = RelationGetDescr(source);
	HeapTuple	tuple;
	Datum		row;

	slot_getallattrs(slot);
	tuple = heap_form_tuple(desc, slot->tts_values + shift,
							slot->tts_isnull + shift);
	row = heap_copy_tuple_as_datum(tuple, desc);
	return OidOutputFunctionCall(F_RECORD_OUT, row);
}
