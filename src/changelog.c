/*-------------------------------------------------------------------------
 *
 * changelog.c
 *		The set-returning changelog functions and their planner support.
 *
 * One C function serves cdc.changelog(), which takes the table as an argument
 * and returns records, and the typed functions that cdc.track() makes, whose
 * catalog entry tells the table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/changelog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "cdc_changelog.h"
#include "consumer.h"
#include "horizon.h"
#include "log.h"
#include "range.h"
#include "reader.h"
#include "tracked.h"
#include "typed.h"

/* Most snapshots that the planner looks at for an estimate */
#define ESTIMATE_SNAPSHOTS	1000

PG_FUNCTION_INFO_V1(cdc_changelog);
PG_FUNCTION_INFO_V1(cdc_changelog_relative);
PG_FUNCTION_INFO_V1(cdc_changelog_typed);
PG_FUNCTION_INFO_V1(cdc_changelog_support);

/* How a caller's columns are found among those of the changelog */
typedef enum ColumnMapping
{
	MAP_NONE,					/* they are the same */
	MAP_BY_NAME,				/* typed functions */
	MAP_BY_LOG					/* views: by the log's names of them */
} ColumnMapping;

static Datum changelog_rows(FunctionCallInfo fcinfo, Oid relid, int firstarg,
							ColumnMapping mapping);
static CdcRange *open_for_consumer(FunctionCallInfo fcinfo, Oid relid,
								   int firstarg);
static int *map_by_name(CdcRange *range, Oid funcid, TupleDesc expected,
						TupleDesc desc);
static int *map_by_log(CdcRange *range, List *columns, TupleDesc expected,
					   TupleDesc desc, CdcReadOptions *options);
static void check_mapped_type(const char *relname, Form_pg_attribute want,
							  Form_pg_attribute have);
static void project_rows(Tuplestorestate *from, TupleDesc fromdesc,
						 Tuplestorestate *to, TupleDesc todesc,
						 const int *map);
static Oid	typed_function_relation(Oid funcid);
static bool read_options(FunctionCallInfo fcinfo, int firstarg,
						 CdcReadOptions *options);
static bool only_added(CdcRange *range, const char *consumer,
					   Tuplestorestate *rows, TupleDesc desc);
static List *names_from_array(ArrayType *array);
static void check_result_type(const char *relname, TupleDesc expected,
							  TupleDesc desc);
static double estimate_rows(int32 table_id, bool start_null, int64 start,
							bool end_null, int64 end);

/*
 * cdc.changelog(relation regclass, ...) returns setof record
 */
Datum
cdc_changelog(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table whose changelog to read must not be null")));
	return changelog_rows(fcinfo, PG_GETARG_OID(0), 1, MAP_NONE);
}

/*
 * cdc.changelog_relative(relation regclass, ...) returns setof record
 *
 * As cdc.changelog, but ordinals count from the first snapshot of the range.
 */
Datum
cdc_changelog_relative(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table whose changelog to read must not be null")));
	return changelog_rows(fcinfo, PG_GETARG_OID(0), 1, MAP_BY_LOG);
}

/*
 * <table>_changelog(...) returns table(...)
 */
Datum
cdc_changelog_typed(PG_FUNCTION_ARGS)
{
	return changelog_rows(fcinfo, typed_function_relation(fcinfo->flinfo->fn_oid),
						  0, MAP_BY_NAME);
}

/*
 * The table that a typed changelog function reads.
 */
static Oid
typed_function_relation(Oid funcid)
{
	CdcTracked	tracked;
	int32		table_id = cdc_function_table_id(funcid);

	if (table_id == 0 || !cdc_tracked_lookup_id(table_id, &tracked))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("function \"%s\" does not belong to a tracked table",
						get_func_name(funcid)),
				 errhint("Call cdc.track for its table.")));
	return tracked.relid;
}

/*
 * The common part: check the arguments, read the range, return the rows.
 * "firstarg" is the number of the argument start_snapshot.
 */
static Datum
changelog_rows(FunctionCallInfo fcinfo, Oid relid, int firstarg,
			   ColumnMapping mapping)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CdcReadOptions options;
	CdcRange   *range;
	Relation	source;
	TupleDesc	desc;
	Tuplestorestate *store;
	MemoryContext oldcontext;
	bool		random_access;
	bool		append_only;
	int		   *map = NULL;
	char	   *consumer = NULL;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("materialize mode required, but it is not allowed in this context")));

	options.relative = mapping == MAP_BY_LOG;
	append_only = read_options(fcinfo, firstarg, &options);
	if (mapping != MAP_BY_LOG && PG_NARGS() > firstarg + 6 &&
		!PG_ARGISNULL(firstarg + 5))
	{
		consumer = text_to_cstring(PG_GETARG_TEXT_PP(firstarg + 5));
		range = open_for_consumer(fcinfo, relid, firstarg);
	}
	else
		range = cdc_range_open(relid,
							   PG_ARGISNULL(firstarg),
							   PG_ARGISNULL(firstarg) ? 0 : PG_GETARG_INT64(firstarg),
							   PG_ARGISNULL(firstarg + 1),
							   PG_ARGISNULL(firstarg + 1) ? 0 : PG_GETARG_INT64(firstarg + 1));
	source = table_open(relid, AccessShareLock);

	oldcontext = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	desc = cdc_changelog_desc(source);
	if (mapping == MAP_BY_NAME)
		map = map_by_name(range, fcinfo->flinfo->fn_oid, rsinfo->expectedDesc,
						  desc);
	else if (mapping == MAP_BY_LOG && !PG_ARGISNULL(firstarg + 5))
		map = map_by_log(range,
						 names_from_array(PG_GETARG_ARRAYTYPE_P(firstarg + 5)),
						 rsinfo->expectedDesc, desc, &options);
	else
		check_result_type(range->relname, rsinfo->expectedDesc, desc);
	random_access = (rsinfo->allowedModes & SFRM_Materialize_Random) != 0;
	store = tuplestore_begin_heap(random_access, false, work_mem);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = store;
	rsinfo->setDesc = map ? CreateTupleDescCopy(rsinfo->expectedDesc) : desc;
	MemoryContextSwitchTo(oldcontext);

	if (map || append_only)
	{
		Tuplestorestate *all = tuplestore_begin_heap(append_only, false,
													 work_mem);

		cdc_read_changelog(range, source, &options, all, desc);
		if (!append_only || only_added(range, consumer, all, desc))
			project_rows(all, desc, store, rsinfo->setDesc, map);
		tuplestore_end(all);
	}
	else
		cdc_read_changelog(range, source, &options, store, desc);

	table_close(source, NoLock);
	cdc_range_close(range);
	return (Datum) 0;
}

/*
 * The range that a consumer reads: from its position up to the transaction's
 * cut, or the whole content there.
 */
static CdcRange *
open_for_consumer(FunctionCallInfo fcinfo, Oid relid, int firstarg)
{
	char	   *consumer = text_to_cstring(PG_GETARG_TEXT_PP(firstarg + 5));
	bool		nowait = !PG_ARGISNULL(firstarg + 6) &&
		PG_GETARG_BOOL(firstarg + 6);
	CdcPin		pin;

	if (!PG_ARGISNULL(firstarg) || !PG_ARGISNULL(firstarg + 1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a changelog that is read through a consumer cannot have a start or end snapshot"),
				 errdetail("The position of consumer \"%s\" tells where it starts.",
						   consumer),
				 errhint("Use cdc.rewind to move it back.")));

	/* before the consumer is made for somebody who may not read the table */
	cdc_check_readable(relid);
	cdc_consumer_pin(consumer, relid, nowait, &pin);
	return cdc_range_open_pinned(relid, !pin.incremental, pin.from, pin.to,
								 pin.snapshot);
}

/*
 * For mode "append_only": are all rows of the changelog of a range INSERT rows?
 * If not, returns false where a run of the consumer (or NULL) is in progress
 * that is going to read everything instead, else raises an error.
 */
static bool
only_added(CdcRange *range, const char *consumer, Tuplestorestate *rows,
		   TupleDesc desc)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	AttrNumber	type = desc->natts - CDC_NUM_META_COLS + 1;
	int64		removed = -1;

	while (removed < 0 && tuplestore_gettupleslot(rows, true, false, slot))
	{
		bool		isnull;
		text	   *change = DatumGetTextPP(slot_getattr(slot, type, &isnull));

		CHECK_FOR_INTERRUPTS();
		if (VARSIZE_ANY_EXHDR(change) != strlen("INSERT") ||
			memcmp(VARDATA_ANY(change), "INSERT", strlen("INSERT")) != 0)
			removed = DatumGetInt64(slot_getattr(slot, type + 1, &isnull));
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_rescan(rows);
	if (removed < 0)
		return true;
	if (consumer == NULL || !cdc_consumer_decline(consumer))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("changelog of table \"%s\" is not append-only",
						range->relname),
				 errdetail("Snapshot %lld removes or updates rows.",
						   (long long) removed),
				 errhint("Use one of the changelog modes, such as \"latest\" with identifiers or \"net\" without.")));
	return false;
}

/*
 * Read and check the arguments identifiers, mode and validate.  Returns whether
 * the mode is append_only, which is "all" without identifiers where rows are
 * only added.
 */
static bool
read_options(FunctionCallInfo fcinfo, int firstarg, CdcReadOptions *options)
{
	int			arg = firstarg + 2;
	bool		append_only = false;

	options->identifiers = NIL;
	if (!PG_ARGISNULL(arg))
	{
		options->identifiers = names_from_array(PG_GETARG_ARRAYTYPE_P(arg));
		if (options->identifiers == NIL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("list of identifier columns must not be empty"),
					 errhint("Pass NULL for a changelog without identifiers.")));
	}

	if (PG_ARGISNULL(arg + 1))
		options->mode = options->identifiers ? CDC_MODE_LATEST : CDC_MODE_NET;
	else
	{
		char	   *mode = text_to_cstring(PG_GETARG_TEXT_PP(arg + 1));

		if (strcmp(mode, "append_only") == 0)
		{
			append_only = true;
			options->mode = CDC_MODE_ALL;
		}
		else if (!cdc_parse_mode(mode, &options->mode))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unrecognized changelog mode \"%s\"", mode),
					 errhint("The modes are \"net\", \"all\", \"latest\", \"latest_pair\" and \"append_only\".")));
	}
	if (options->identifiers == NIL && options->mode != CDC_MODE_NET &&
		options->mode != CDC_MODE_ALL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changelog mode \"%s\" needs identifier columns",
						text_to_cstring(PG_GETARG_TEXT_PP(arg + 1))),
				 errhint("Pass identifiers, or use mode \"net\" or \"all\".")));

	if (append_only && options->identifiers != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changelog mode \"%s\" takes no identifier columns",
						"append_only")));

	options->validate = PG_ARGISNULL(arg + 2) ? true : PG_GETARG_BOOL(arg + 2);
	return append_only;
}

/*
 * The names in a text array, as a list of char *.
 */
static List *
names_from_array(ArrayType *array)
{
	List	   *result = NIL;
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &elems, &nulls, &nelems);
	for (int i = 0; i < nelems; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("name of an identifier column must not be null")));
		result = lappend(result, TextDatumGetCString(elems[i]));
	}
	return result;
}

/*
 * Raise datatype_mismatch if the caller expects other columns than there are.
 */
static void
check_result_type(const char *relname, TupleDesc expected, TupleDesc desc)
{
	if (expected == NULL)
		return;

	if (expected->natts != desc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("changelog of table \"%s\" has %d columns, but %d are expected",
						relname, desc->natts, expected->natts),
				 errhint("The columns are those of the table, followed by %s text, %s bigint, %s bigint and %s timestamptz.",
						 CDC_COL_TYPE, CDC_COL_ORDINAL, CDC_COL_SNAPSHOT,
						 CDC_COL_TIMESTAMP)));

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute want = TupleDescAttr(expected, i);
		Form_pg_attribute have = TupleDescAttr(desc, i);

		if (want->atttypid != have->atttypid)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column %d of the changelog of table \"%s\" is \"%s\" of type %s",
							i + 1, relname, NameStr(have->attname),
							format_type_be(have->atttypid)),
					 errdetail("Type %s is expected.",
							   format_type_be(want->atttypid))));
	}
}

/*
 * Raise datatype_mismatch if a column is not of the type that the caller
 * expects.
 */
static void
check_mapped_type(const char *relname, Form_pg_attribute want,
				  Form_pg_attribute have)
{
	if (want->atttypid != have->atttypid)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" is of type %s now",
						NameStr(have->attname), relname,
						format_type_be(have->atttypid)),
				 errdetail("Type %s is expected.",
						   format_type_be(want->atttypid)),
				 errhint("Create the view or function again.")));
}

/*
 * Where the output columns of a typed function are in the changelog: an array
 * of positions, -1 for columns that only keep a place; NULL if they are the
 * same.
 */
static int *
map_by_name(CdcRange *range, Oid funcid, TupleDesc expected, TupleDesc desc)
{
	int		   *map;
	bool		same;

	if (expected == NULL)
		return NULL;
	map = palloc(sizeof(int) * expected->natts);
	same = expected->natts == desc->natts;
	for (int i = 0; i < expected->natts; i++)
	{
		Form_pg_attribute want = TupleDescAttr(expected, i);

		map[i] = -1;
		for (int j = 0; j < desc->natts && map[i] < 0; j++)
			if (strcmp(NameStr(want->attname),
					   NameStr(TupleDescAttr(desc, j)->attname)) == 0)
				map[i] = j;
		if (map[i] < 0 && !cdc_typed_placeholder(NameStr(want->attname)))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of function \"%s\" is no column of the tracked table",
							NameStr(want->attname), get_func_name(funcid)),
					 errhint("Call cdc.untrack and cdc.track for the table.")));
		if (map[i] >= 0)
			check_mapped_type(range->relname, want,
							  TupleDescAttr(desc, map[i]));
		same = same && map[i] == i;
	}
	return same ? NULL : map;
}

/*
 * Where the columns of a changelog view are in the changelog.  "columns" are
 * the names that the log has for them; those that a changelog adds come last.
 * The identifiers, named as in the view, get the names that they have now.
 */
static int *
map_by_log(CdcRange *range, List *columns, TupleDesc expected, TupleDesc desc,
		   CdcReadOptions *options)
{
	List	   *present = cdc_log_column_names(range->tracked.logrelid);
	int			ndata = list_length(columns);
	int		   *map;
	ListCell   *lc;

	if (expected == NULL || expected->natts != ndata + CDC_NUM_META_COLS ||
		list_length(present) + CDC_NUM_META_COLS != desc->natts)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("list of columns does not match the changelog of table \"%s\"",
						range->relname)));

	map = palloc(sizeof(int) * expected->natts);
	for (int i = 0; i < expected->natts; i++)
	{
		map[i] = i - ndata + list_length(present);
		if (i < ndata)
		{
			map[i] = -1;
			foreach(lc, present)
				if (strcmp(lfirst(lc), list_nth(columns, i)) == 0)
				map[i] = foreach_current_index(lc);
			if (map[i] < 0)
				ereport(ERROR,
						(errcode(ERRCODE_UNDEFINED_COLUMN),
						 errmsg("column \"%s\" of the changelog view does not exist in table \"%s\" any more",
								NameStr(TupleDescAttr(expected, i)->attname),
								range->relname),
						 errhint("Create the view again.")));
		}
		check_mapped_type(range->relname, TupleDescAttr(expected, i),
						  TupleDescAttr(desc, map[i]));
	}

	foreach(lc, options->identifiers)
	{
		for (int i = 0; i < ndata; i++)
			if (strcmp(lfirst(lc), NameStr(TupleDescAttr(expected, i)->attname)) == 0)
			{
				lfirst(lc) = pstrdup(NameStr(TupleDescAttr(desc, map[i])->attname));
				break;
			}
	}
	return map;
}

/*
 * Copy rows, with other columns unless the map is NULL.
 */
static void
project_rows(Tuplestorestate *from, TupleDesc fromdesc, Tuplestorestate *to,
			 TupleDesc todesc, const int *map)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(fromdesc,
													&TTSOpsMinimalTuple);
	Datum	   *values = palloc(sizeof(Datum) * todesc->natts);
	bool	   *nulls = palloc(sizeof(bool) * todesc->natts);

	while (tuplestore_gettupleslot(from, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		for (int i = 0; i < todesc->natts; i++)
		{
			int			j = map ? map[i] : i;

			nulls[i] = j < 0 || slot->tts_isnull[j];
			values[i] = nulls[i] ? (Datum) 0 : slot->tts_values[j];
		}
		tuplestore_putvalues(to, todesc, values, nulls);
	}
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Planner support: the number of rows, from what the snapshots recorded.
 */
Datum
cdc_changelog_support(PG_FUNCTION_ARGS)
{
	Node	   *rawreq = (Node *) PG_GETARG_POINTER(0);
	SupportRequestRows *req;
	FuncExpr   *call;
	List	   *args;
	int32		table_id;
	Const	   *start;
	Const	   *end;

	if (!IsA(rawreq, SupportRequestRows))
		PG_RETURN_POINTER(NULL);
	req = (SupportRequestRows *) rawreq;
	if (!is_funcclause(req->node))
		PG_RETURN_POINTER(NULL);
	call = (FuncExpr *) req->node;
	args = call->args;

	table_id = cdc_function_table_id(call->funcid);
	if (table_id == 0)
	{
		Const	   *relation = list_length(args) >= 6 ? linitial(args) : NULL;
		CdcTracked	tracked;

		if (relation == NULL || !IsA(relation, Const) || relation->constisnull ||
			!cdc_tracked_lookup(DatumGetObjectId(relation->constvalue), &tracked))
			PG_RETURN_POINTER(NULL);
		table_id = tracked.table_id;
		args = list_copy_tail(args, 1);
	}

	if (list_length(args) < 5)
		PG_RETURN_POINTER(NULL);
	start = linitial(args);
	end = lsecond(args);
	if (!IsA(start, Const) || !IsA(end, Const))
		PG_RETURN_POINTER(NULL);
	req->rows = estimate_rows(table_id, start->constisnull,
							  start->constisnull ? 0 : DatumGetInt64(start->constvalue),
							  end->constisnull,
							  end->constisnull ? 0 : DatumGetInt64(end->constvalue));
	PG_RETURN_POINTER(req);
}

/*
 * About how many rows a range has.  A long range is judged by its beginning.
 */
static double
estimate_rows(int32 table_id, bool start_null, int64 start, bool end_null,
			  int64 end)
{
	CdcSnapshotRow *rows;
	CdcTracked	tracked;
	Snapshot	snapshot;
	double		result = 0;
	int64		limit = end_null ? PG_INT64_MAX : end;
	int			n;

	/* how much a table has changed is not for everybody */
	if (!cdc_tracked_lookup_id(table_id, &tracked) ||
		!cdc_may_see_snapshots(tracked.relid))
		return 1;
	if (start_null)
		start = -1;
	if (start < limit && limit - start > ESTIMATE_SNAPSHOTS)
		limit = start + ESTIMATE_SNAPSHOTS;

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	n = cdc_snapshot_fetch(table_id, start, limit, snapshot, &rows);
	UnregisterSnapshot(snapshot);
	for (int i = 0; i < n; i++)
		result += rows[i].inserted + rows[i].deleted;
	if (!end_null && limit < end)
		result *= (double) (end - start) / ESTIMATE_SNAPSHOTS;
	if (start_null)
	{
		Relation	rel = table_open(tracked.relid, AccessShareLock);

		result += Max(rel->rd_rel->reltuples, 0);
		table_close(rel, AccessShareLock);
	}
	return Max(result, 1);
}
