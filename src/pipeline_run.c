/*-------------------------------------------------------------------------
 *
 * pipeline_run.c
 *		Stored pipelines: running them.
 *
 * A run reads what the pipeline's consumer has not read yet, applies it to the
 * target and moves the consumer, all in the transaction of the caller.
 *
 * It has the rights of the pipeline's owner, so that it does the same whoever
 * starts it.  Where that is somebody else, the query, the target's triggers
 * and all that they use must not be able to leave anything behind for the one
 * who called: they run in a security-restricted operation, as those of REFRESH
 * MATERIALIZED VIEW do, and settings that they change are put back.
 *
 * The runs of a group see all sources at one point and write all targets
 * before the first AFTER trigger fires, the checks of foreign keys among them.
 * So it does not matter which of parent and child comes first.
 *
 * Where nothing is new, a run only has to make sure that the query still means
 * what it meant when the target was last brought up to date (meaning.c).  If it
 * does not, or cannot be looked through, the run reads.
 *
 * cdc.pipeline_run holds the last runs of each pipeline that had something to
 * do.  A run that had not writes nothing at all.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/pipeline_run.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "consumer.h"
#include "pipeline.h"

/* What a run did */
typedef struct PipelineRun
{
	TimestampTz started_at;
	TimestampTz finished_at;
	const char *mode;			/* "full", "incremental" or "none" */
	Jsonb	   *ranges;			/* of each source, what was read */
	CdcApplyResult result;
}			PipelineRun;

/* Result columns of cdc.run and cdc.dry_run; cdc.run_group has the name first */
#define RUN_COLS			9

PG_FUNCTION_INFO_V1(cdc_run);
PG_FUNCTION_INFO_V1(cdc_run_group);
PG_FUNCTION_INFO_V1(cdc_dry_run);

static Datum run_result(FunctionCallInfo fcinfo, const PipelineRun * run);
static void run_values(const PipelineRun * run, Datum *values);
static List *group_argument(FunctionCallInfo fcinfo);
static int	compare_names(const ListCell *a, const ListCell *b);
static void require_runnable(const char *name, bool nowait,
							 CdcPipeline * pipeline);
static void run_pipeline(const CdcPipeline * pipeline, bool nowait,
						 bool defer_triggers, bool dry, PipelineRun * run);
static void run_callback(void *arg);
static Jsonb *jsonb_from_text(const char *text);
static void record_run(const CdcPipeline * pipeline, const PipelineRun * run);
static int64 newest_run(Relation rel, const char *name);
static void forget_runs(Relation rel, const char *name, int64 upto);

/* ----------------------------------------------------------------
 *		SQL functions
 * ----------------------------------------------------------------
 */

/*
 * cdc.run(name, nowait)
 */
Datum
cdc_run(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool		nowait = PG_GETARG_BOOL(1);
	CdcPipeline pipeline;
	CdcPipelineRights rights;
	PipelineRun run;

	require_runnable(name, nowait, &pipeline);
	cdc_pipeline_enter(&pipeline, &rights);
	run_pipeline(&pipeline, nowait, false, false, &run);
	cdc_pipeline_leave(&rights);
	record_run(&pipeline, &run);
	return run_result(fcinfo, &run);
}

/*
 * cdc.dry_run(name)
 *
 * Everything is done and rolled back.  The limit for deletes does not apply,
 * because this is how one finds out what is behind it.
 */
Datum
cdc_dry_run(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	MemoryContext oldcontext = CurrentMemoryContext;
	ResourceOwner oldowner = CurrentResourceOwner;
	CdcPipeline pipeline;
	CdcPipelineRights rights;
	PipelineRun run;

	/* begun here, because locks are to go with it */
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(oldcontext);

	PG_TRY();
	{
		require_runnable(name, false, &pipeline);
		cdc_pipeline_enter(&pipeline, &rights);
		run_pipeline(&pipeline, false, false, true, &run);
		cdc_pipeline_leave(&rights);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(oldcontext);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(oldcontext);
		CurrentResourceOwner = oldowner;
		ReThrowError(error);
	}
	PG_END_TRY();

	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(oldcontext);
	CurrentResourceOwner = oldowner;
	return run_result(fcinfo, &run);
}

/*
 * cdc.run_group(names, nowait)
 */
Datum
cdc_run_group(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	List	   *names = group_argument(fcinfo);
	bool		nowait = PG_GETARG_BOOL(1);
	int			npipelines = list_length(names);
	CdcPipeline *pipelines = palloc(sizeof(CdcPipeline) * Max(npipelines, 1));
	PipelineRun *runs = palloc0(sizeof(PipelineRun) * Max(npipelines, 1));
	List	   *sorted = list_copy(names);
	CdcPipelineRights rights;
	EState	   *estate;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	if (names == NIL)
		return (Datum) 0;

	/* in one order, whatever the caller's, so that there is no deadlock */
	list_sort(sorted, compare_names);
	foreach(lc, sorted)
		cdc_pipeline_lock(lfirst(lc), nowait);
	foreach(lc, names)
	{
		CdcPipeline *pipeline = &pipelines[foreach_current_index(lc)];

		require_runnable(lfirst(lc), nowait, pipeline);
		if (pipeline->owner != pipelines[0].owner)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("pipelines of a group must have one owner"),
					 errdetail("Pipeline \"%s\" belongs to role \"%s\", and pipeline \"%s\" to role \"%s\".",
							   pipelines[0].name,
							   GetUserNameFromId(pipelines[0].owner, false),
							   pipeline->name,
							   GetUserNameFromId(pipeline->owner, false))));
	}

	/* AFTER triggers fire with the search_path of the first */
	cdc_pipeline_enter(&pipelines[0], &rights);
	cdc_consumer_pin_group(sorted, nowait);
	estate = CreateExecutorState();
	AfterTriggerBeginQuery();
	for (int i = 0; i < npipelines; i++)
	{
		CdcPipelineRights nested;

		cdc_pipeline_enter(&pipelines[i], &nested);
		run_pipeline(&pipelines[i], nowait, true, false, &runs[i]);
		cdc_pipeline_leave(&nested);
	}
	AfterTriggerEndQuery(estate);
	ExecCloseResultRelations(estate);
	ExecResetTupleTable(estate->es_tupleTable, false);
	FreeExecutorState(estate);
	cdc_pipeline_leave(&rights);

	for (int i = 0; i < npipelines; i++)
	{
		Datum		values[RUN_COLS + 1];
		bool		nulls[RUN_COLS + 1] = {0};

		record_run(&pipelines[i], &runs[i]);
		values[0] = CStringGetTextDatum(pipelines[i].name);
		run_values(&runs[i], values + 1);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
							 nulls);
	}
	return (Datum) 0;
}

/*
 * The row that cdc.run returns.
 */
static Datum
run_result(FunctionCallInfo fcinfo, const PipelineRun * run)
{
	TupleDesc	desc;
	Datum		values[RUN_COLS];
	bool		nulls[RUN_COLS] = {0};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	run_values(run, values);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values,
											 nulls));
}

static void
run_values(const PipelineRun * run, Datum *values)
{
	int			n = 0;

	values[n++] = CStringGetTextDatum(run->mode);
	values[n++] = JsonbPGetDatum(run->ranges);
	values[n++] = Int64GetDatum(run->result.inserted);
	values[n++] = Int64GetDatum(run->result.updated);
	values[n++] = Int64GetDatum(run->result.deleted);
	values[n++] = Int64GetDatum(run->result.unchanged);
	values[n++] = Int64GetDatum(run->result.missing);
	values[n++] = Int64GetDatum(run->result.stale);
	values[n++] = DirectFunctionCall2(timestamp_mi,
									  TimestampTzGetDatum(run->finished_at),
									  TimestampTzGetDatum(run->started_at));
	Assert(n == RUN_COLS);
}

/*
 * The names that cdc.run_group was called with, each once.
 */
static List *
group_argument(FunctionCallInfo fcinfo)
{
	return cdc_apply_names(PG_GETARG_ARRAYTYPE_P(0), "names");
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* ----------------------------------------------------------------
 *		Rights
 * ----------------------------------------------------------------
 */

/*
 * From here on, what is done is done with the rights and the search_path of
 * the pipeline.  "rights" is for cdc_pipeline_leave; an error does not need
 * it.
 *
 * The owner's own calls are not restricted, as those of cdc.apply_changelog
 * are not: deferred constraints work in them.
 */
void
cdc_pipeline_enter(const CdcPipeline * pipeline, CdcPipelineRights * rights)
{
	GetUserIdAndSecContext(&rights->userid, &rights->sec_context);
	if (rights->userid != pipeline->owner)
		SetUserIdAndSecContext(pipeline->owner,
							   rights->sec_context |
							   SECURITY_RESTRICTED_OPERATION);
	rights->guc_nest_level = NewGUCNestLevel();
	(void) set_config_option("search_path", pipeline->search_path,
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
}

/*
 * Puts back what cdc_pipeline_enter has changed, and the settings that were
 * changed since.
 */
void
cdc_pipeline_leave(const CdcPipelineRights * rights)
{
	AtEOXact_GUC(false, rights->guc_nest_level);
	SetUserIdAndSecContext(rights->userid, rights->sec_context);
}

/* ----------------------------------------------------------------
 *		Running
 * ----------------------------------------------------------------
 */

/*
 * Locks and reads a pipeline.  Raises an error if the current user may not run
 * it, or if it cannot be run.
 */
static void
require_runnable(const char *name, bool nowait, CdcPipeline * pipeline)
{
	char	   *problem;
	char	   *hint;

	cdc_pipeline_lock(name, nowait);
	cdc_pipeline_require(name, pipeline);
	problem = cdc_pipeline_problem(pipeline, &hint);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pipeline \"%s\" cannot be run", name),
				 errdetail_internal("%s", problem),
				 errhint("%s", hint)));
}

/*
 * Runs a pipeline, with its rights.  With "dry", which is going to be rolled
 * back, any number of rows may be deleted.  "run" is filled in.
 */
static void
run_pipeline(const CdcPipeline * pipeline, bool nowait, bool defer_triggers,
			 bool dry, PipelineRun * run)
{
	CdcApplyOptions options = pipeline->options;
	CdcMeaning	meaning = {0};
	ErrorContextCallback callback;
	bool		idle;
	bool		known;
	int64		before;

	memset(run, 0, sizeof(PipelineRun));
	run->started_at = GetCurrentTimestamp();
	callback.callback = run_callback;
	callback.arg = unconstify(CdcPipeline *, pipeline);
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	/* the lock of the consumer comes before those of views in the query */
	idle = cdc_consumer_idle(pipeline->name, options.target, nowait);
	before = cdc_consumer_meaning(pipeline->name, options.target);
	known = cdc_meaning_comparable(before);
	cdc_apply_meaning(&options, &meaning);

	if (!idle || !known || meaning.opaque || before != meaning.number)
	{
		options.consumer = pipeline->name;
		options.nowait = nowait;
		options.defer_triggers = defer_triggers;
		options.skip_idle = true;
		options.meaning = meaning.number;
		options.rebuild = known && before != meaning.number && !options.append;
		if (dry)
			options.max_deletes = NULL;
		cdc_apply(&options, &run->result);
		idle = run->result.idle;
	}
	if (idle)
	{
		run->mode = "none";
		run->ranges = jsonb_from_text("{}");
	}
	else
	{
		run->mode = run->result.full ? "full" : "incremental";
		run->ranges = jsonb_from_text(run->result.ranges);
	}

	error_context_stack = callback.previous;
	run->finished_at = GetCurrentTimestamp();
}

static void
run_callback(void *arg)
{
	errcontext("pipeline \"%s\"", ((CdcPipeline *) arg)->name);
}

static Jsonb *
jsonb_from_text(const char *text)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in,
											  CStringGetDatum(text)));
}

/* ----------------------------------------------------------------
 *		History
 * ----------------------------------------------------------------
 */

/*
 * Adds a run to the pipeline's history, if it did something, and forgets what
 * is too old.  The caller holds the lock of the pipeline.
 */
static void
record_run(const CdcPipeline * pipeline, const PipelineRun * run)
{
	Relation	rel;
	int64		run_id;

	if (strcmp(run->mode, "none") == 0)
		return;
	rel = table_open(cdc_pipeline_catalog(CDC_PIPELINE_RUN), RowExclusiveLock);
	run_id = newest_run(rel, pipeline->name) + 1;
	if (pipeline->keep_runs > 0)
	{
		Datum		values[Natts_cdc_pipeline_run];
		bool		nulls[Natts_cdc_pipeline_run] = {0};

		values[Anum_cdc_pipeline_run_name - 1] =
			CStringGetTextDatum(pipeline->name);
		values[Anum_cdc_pipeline_run_run_id - 1] = Int64GetDatum(run_id);
		values[Anum_cdc_pipeline_run_started_at - 1] =
			TimestampTzGetDatum(run->started_at);
		values[Anum_cdc_pipeline_run_finished_at - 1] =
			TimestampTzGetDatum(run->finished_at);
		values[Anum_cdc_pipeline_run_mode - 1] =
			CStringGetTextDatum(run->mode);
		values[Anum_cdc_pipeline_run_ranges - 1] =
			JsonbPGetDatum(run->ranges);
		values[Anum_cdc_pipeline_run_inserted - 1] =
			Int64GetDatum(run->result.inserted);
		values[Anum_cdc_pipeline_run_updated - 1] =
			Int64GetDatum(run->result.updated);
		values[Anum_cdc_pipeline_run_deleted - 1] =
			Int64GetDatum(run->result.deleted);
		values[Anum_cdc_pipeline_run_unchanged - 1] =
			Int64GetDatum(run->result.unchanged);
		values[Anum_cdc_pipeline_run_missing - 1] =
			Int64GetDatum(run->result.missing);
		values[Anum_cdc_pipeline_run_stale - 1] =
			Int64GetDatum(run->result.stale);
		CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values,
												nulls));
	}
	forget_runs(rel, pipeline->name, run_id - pipeline->keep_runs);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * The number of the newest run in the history of a pipeline, or 0.
 */
static int64
newest_run(Relation rel, const char *name)
{
	Relation	index = index_open(cdc_pipeline_catalog(CDC_PIPELINE_RUN_PKEY),
								   AccessShareLock);
	int64		result = 0;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_cdc_pipeline_run_name, BTEqualStrategyNumber,
				F_TEXTEQ, CStringGetTextDatum(name));
	scan = systable_beginscan_ordered(rel, index, NULL, 1, &key);
	tuple = systable_getnext_ordered(scan, BackwardScanDirection);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;

		result = DatumGetInt64(heap_getattr(tuple,
											Anum_cdc_pipeline_run_run_id,
											RelationGetDescr(rel), &isnull));
	}
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	return result;
}

/*
 * Deletes the runs of a pipeline up to a number.
 */
static void
forget_runs(Relation rel, const char *name, int64 upto)
{
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_cdc_pipeline_run_name, BTEqualStrategyNumber,
				F_TEXTEQ, CStringGetTextDatum(name));
	ScanKeyInit(&keys[1], Anum_cdc_pipeline_run_run_id,
				BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(upto));
	scan = systable_beginscan(rel, cdc_pipeline_catalog(CDC_PIPELINE_RUN_PKEY),
							  true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		CatalogTupleDelete(rel, &tuple->t_self);
	systable_endscan(scan);
}
