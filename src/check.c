/*-------------------------------------------------------------------------
 *
 * check.c
 *		Finding out whether the tracking of tables is in good order.
 *
 * cdc.check() looks at what belongs to each tracked table of the caller, or,
 * for a superuser, to all of them, and at what the extension needs besides.  It
 * looks at definitions only and is cheap; whether what is in a log is right,
 * cdc.verify() tells.
 *
 * Each problem comes with a statement that ends it, or several separated by
 * semicolons; NULL where there is none.  The levels:
 *
 * - error: changes are being missed, or the changelog cannot be read
 * - warning: something is missing or held back, but nothing is lost
 * - info: may be as wanted
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/check.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_event_trigger.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "armed.h"
#include "capture.h"
#include "cdc_changelog.h"
#include "consumer_catalog.h"
#include "horizon.h"
#include "log.h"
#include "partition.h"
#include "pipeline.h"
#include "segment.h"
#include "tracked.h"

/* Result columns of cdc.check */
#define CHECK_COLS			4

/* Snapshot numbers looked at at a time, which bounds the memory in use */
#define CHECK_BATCH			10000

/* A prepared transaction is only mentioned until it is so many ms old */
#define PREPARED_AGE		(5 * 60 * 1000)

#define LEVEL_ERROR			"error"
#define LEVEL_WARNING		"warning"
#define LEVEL_INFO			"info"

/* Where the problems go */
typedef struct CheckState
{
	Tuplestorestate *store;
	TupleDesc	desc;
} CheckState;

/* An event trigger, on what, and with which function */
static const char *const own_event_triggers[][3] = {
	{"cdc_changelog_ddl_start", "ddl_command_start", CDC_SCHEMA ".ddl_start()"},
	{"cdc_changelog_ddl_end", "ddl_command_end", CDC_SCHEMA ".ddl_end()"},
	{"cdc_changelog_ddl_drop", "sql_drop", CDC_SCHEMA ".ddl_drop()"},
	{"cdc_changelog_ddl_rewrite", "table_rewrite", CDC_SCHEMA ".ddl_rewrite()"}
};

PG_FUNCTION_INFO_V1(cdc_check);

static void report(CheckState *state, const char *level, const char *object,
				   const char *problem, const char *fix);
static char *relation_name(Oid relid);
static char *track_again(Oid relid);
static void check_event_triggers(CheckState *state);
static void check_table(CheckState *state, const CdcTracked *tracked);
static void check_triggers(CheckState *state, Relation rel);
static void check_shape(CheckState *state, const CdcTracked *tracked,
						Relation rel);
static List *inheritance_parents(Oid relid);
static void check_log(CheckState *state, const CdcTracked *tracked,
					  Relation rel);
static void check_function(CheckState *state, const CdcTracked *tracked);
static void check_history(CheckState *state, const CdcTracked *tracked);
static void check_prepared(CheckState *state, const CdcTracked *tracked);
static void check_untracked(CheckState *state);
static void check_orphans(CheckState *state);
static void check_pipelines(CheckState *state);
static void check_consumers(CheckState *state);

/*
 * cdc.check()
 *
 * Returns one row for each problem.
 */
Datum
cdc_check(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CheckState	state;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	state.store = rsinfo->setResult;
	state.desc = rsinfo->setDesc;

	check_event_triggers(&state);
	foreach(lc, cdc_tracked_list())
	{
		CdcTracked *tracked = lfirst(lc);

		CHECK_FOR_INTERRUPTS();
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked->relid)))
		{
			if (cdc_relation_ownercheck(tracked->relid, GetUserId()))
				check_table(&state, tracked);
		}
		else if (superuser())
			report(&state, LEVEL_WARNING,
				   psprintf("tracked table %d", tracked->table_id),
				   "the table does not exist any more",
				   psprintf("DELETE FROM " CDC_SCHEMA ".tracked_table WHERE table_id = %d",
							tracked->table_id));
	}
	check_untracked(&state);
	check_pipelines(&state);
	check_consumers(&state);
	if (superuser())
		check_orphans(&state);
	return (Datum) 0;
}

/*
 * Add a problem to the result.
 */
static void
report(CheckState *state, const char *level, const char *object,
	   const char *problem, const char *fix)
{
	Datum		values[CHECK_COLS] = {0};
	bool		nulls[CHECK_COLS] = {0};

	values[0] = CStringGetTextDatum(level);
	values[1] = CStringGetTextDatum(object);
	values[2] = CStringGetTextDatum(problem);
	if (fix)
		values[3] = CStringGetTextDatum(fix);
	else
		nulls[3] = true;
	tuplestore_putvalues(state->store, state->desc, values, nulls);
}

/*
 * The quoted name of a relation with its schema.
 */
static char *
relation_name(Oid relid)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * The statements that begin a table's changelog anew.
 */
static char *
track_again(Oid relid)
{
	char	   *name = quote_literal_cstr(relation_name(relid));

	return psprintf("SELECT " CDC_SCHEMA ".untrack(%s); SELECT " CDC_SCHEMA ".track(%s)",
					name, name);
}

/*
 * Are the event triggers there and enabled, for all kinds of sessions?
 */
static void
check_event_triggers(CheckState *state)
{
	for (int i = 0; i < lengthof(own_event_triggers); i++)
	{
		const char *name = own_event_triggers[i][0];
		HeapTuple	tuple = SearchSysCache1(EVENTTRIGGERNAME,
											CStringGetDatum(name));
		char	   *enable = psprintf("ALTER EVENT TRIGGER %s ENABLE ALWAYS", name);

		if (!HeapTupleIsValid(tuple))
		{
			report(state, LEVEL_ERROR, psprintf("event trigger %s", name),
				   "the event trigger is missing: changes of definitions go unnoticed",
				   psprintf("CREATE EVENT TRIGGER %s ON %s EXECUTE FUNCTION %s; %s; "
							"ALTER EXTENSION cdc_changelog ADD EVENT TRIGGER %s",
							name, own_event_triggers[i][1], own_event_triggers[i][2],
							enable, name));
			continue;
		}
		if (((Form_pg_event_trigger) GETSTRUCT(tuple))->evtenabled !=
			TRIGGER_FIRES_ALWAYS)
			report(state, LEVEL_ERROR, psprintf("event trigger %s", name),
				   "the event trigger is not enabled always: changes of definitions go unnoticed",
				   enable);
		ReleaseSysCache(tuple);
	}
}

/*
 * Check a tracked table.
 */
static void
check_table(CheckState *state, const CdcTracked *tracked)
{
	Relation	rel = try_relation_open(tracked->relid, AccessShareLock);

	/* dropped meanwhile */
	if (rel == NULL)
		return;
	check_triggers(state, rel);
	check_shape(state, tracked, rel);
	check_log(state, tracked, rel);
	check_function(state, tracked);
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked->seqid)))
	{
		check_history(state, tracked);
		check_prepared(state, tracked);
	}
	else
		report(state, LEVEL_ERROR, relation_name(tracked->relid),
			   "the sequence of snapshot numbers does not exist",
			   track_again(tracked->relid));
	relation_close(rel, NoLock);
}

/*
 * Are all capture triggers there, and enabled as they must be?
 */
static void
check_triggers(CheckState *state, Relation rel)
{
	char	   *table = relation_name(RelationGetRelid(rel));

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return;

	for (int i = 0; i < CDC_NUM_CAPTURE_TRIGGERS; i++)
	{
		const CdcCaptureTrigger *want = &cdc_capture_triggers[i];
		const char *how = want->enabled == TRIGGER_FIRES_ALWAYS ? "ALWAYS " :
			want->enabled == TRIGGER_FIRES_ON_REPLICA ? "REPLICA " : "";
		Trigger    *have = NULL;

		for (int j = 0; rel->trigdesc && j < rel->trigdesc->numtriggers; j++)
			if (strcmp(rel->trigdesc->triggers[j].tgname, want->name) == 0)
				have = &rel->trigdesc->triggers[j];

		if (have == NULL)
			report(state, LEVEL_ERROR, table,
				   psprintf("capture trigger \"%s\" is missing: changes are missed",
							want->name),
				   track_again(RelationGetRelid(rel)));
		else if (have->tgenabled != want->enabled)
			report(state, LEVEL_ERROR, table,
				   psprintf(have->tgenabled == TRIGGER_DISABLED ?
							"capture trigger \"%s\" is disabled: changes are missed" :
							"capture trigger \"%s\" is enabled for the wrong sessions: changes are missed or come twice",
							want->name),
				   psprintf("ALTER TABLE %s ENABLE %sTRIGGER %s", table, how,
							quote_identifier(want->name)));
	}
}

/*
 * Does the table take part in an inheritance, past which it can be changed, or
 * have partitions that are not as they have to be?
 */
static void
check_shape(CheckState *state, const CdcTracked *tracked, Relation rel)
{
	Oid			relid = tracked->relid;
	char	   *table = relation_name(relid);
	ListCell   *lc;

	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		char	   *broken = cdc_partition_broken(tracked);

		if (broken)
			report(state, LEVEL_ERROR, table, broken, track_again(relid));
		return;
	}

	foreach(lc, inheritance_parents(relid))
		report(state, LEVEL_ERROR, table,
			   "the table inherits from another: its changelog cannot be read",
			   psprintf(rel->rd_rel->relispartition ?
						"ALTER TABLE %s DETACH PARTITION %s" :
						"ALTER TABLE %2$s NO INHERIT %1$s",
						relation_name(lfirst_oid(lc)), table));
	foreach(lc, find_inheritance_children(relid, NoLock))
		report(state, LEVEL_ERROR, table,
			   "the table has an inheritance child: its changelog cannot be read",
			   psprintf("ALTER TABLE %s NO INHERIT %s",
						relation_name(lfirst_oid(lc)), table));
}

/*
 * The tables that a table inherits from directly.
 */
static List *
inheritance_parents(Oid relid)
{
	Relation	rel = table_open(InheritsRelationId, AccessShareLock);
	List	   *result = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, InheritsRelidSeqnoIndexId, true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		result = lappend_oid(result,
							 ((Form_pg_inherits) GETSTRUCT(tuple))->inhparent);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Is the log there, and has it the table's columns?
 */
static void
check_log(CheckState *state, const CdcTracked *tracked, Relation rel)
{
	char	   *table = relation_name(tracked->relid);
	CdcSegment *segments;
	int			n = cdc_segments_fetch(tracked->table_id, &segments);
	bool		newest = false;

	for (int i = 0; i < n; i++)
	{
		Relation	log = try_relation_open(segments[i].logrelid, AccessShareLock);

		if (segments[i].logrelid == tracked->logrelid)
			newest = true;
		if (log == NULL)
		{
			report(state, LEVEL_ERROR, table,
				   psprintf("segment %d of the log does not exist",
							segments[i].segment),
				   track_again(tracked->relid));
			continue;
		}
		if (!cdc_log_matches(RelationGetDescr(rel), RelationGetDescr(log)))
			report(state, LEVEL_ERROR, table,
				   psprintf("segment %d of the log does not match the columns of the table",
							segments[i].segment),
				   track_again(tracked->relid));
		relation_close(log, AccessShareLock);
	}
	if (!newest)
		report(state, LEVEL_ERROR, table,
			   "the segment of the log that is written to is not registered",
			   track_again(tracked->relid));
}

/*
 * Is the typed changelog function there?
 */
static void
check_function(CheckState *state, const CdcTracked *tracked)
{
	ListCell   *lc;

	foreach(lc, cdc_owned_objects(tracked))
	{
		ObjectAddress *object = lfirst(lc);

		if (object->classId == ProcedureRelationId)
			return;
	}
	report(state, LEVEL_WARNING, relation_name(tracked->relid),
		   "the typed changelog function does not exist; cdc.changelog works without it",
		   track_again(tracked->relid));
}

/*
 * Is there a gap in the history?
 */
static void
check_history(CheckState *state, const CdcTracked *tracked)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64		oldest = cdc_tracked_oldest(tracked, snapshot);
	int64		last = cdc_sequence_last_value(tracked->seqid);
	int64		gap = -1;
	int64		since = 0;		/* snapshots from the gap on */
	char	   *reason = NULL;
	bool		found = false;
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext,
												"cdc_changelog check",
												ALLOCSET_DEFAULT_SIZES);

	for (int64 after = oldest - 1; after < last; after += CHECK_BATCH)
	{
		MemoryContext oldcontext = MemoryContextSwitchTo(batch);
		CdcSnapshotRow *rows;
		int			n = cdc_snapshot_fetch(tracked->table_id, after,
										   after + CHECK_BATCH, snapshot, &rows);

		MemoryContextSwitchTo(oldcontext);
		for (int i = 0; i < n; i++)
		{
			found |= rows[i].snapshot_id == oldest;
			since++;
			if (rows[i].kind == CDC_KIND_GAP && rows[i].snapshot_id > oldest)
			{
				gap = rows[i].snapshot_id;
				reason = rows[i].reason ? pstrdup(rows[i].reason) : NULL;
				since = 1;
			}
		}
		MemoryContextReset(batch);
	}
	MemoryContextDelete(batch);
	if (gap >= 0)
		report(state, LEVEL_WARNING, relation_name(tracked->relid),
			   psprintf("there is a gap at snapshot %lld: %s",
						(long long) gap, reason ? reason : "unknown"),
			   psprintf("SELECT * FROM " CDC_SCHEMA ".expire_snapshots(%s, retain_last => %lld)",
						quote_literal_cstr(relation_name(tracked->relid)),
						(long long) since));
	if (!found)
		report(state, LEVEL_ERROR, relation_name(tracked->relid),
			   psprintf("the oldest readable snapshot, %lld, does not exist",
						(long long) oldest),
			   track_again(tracked->relid));
	UnregisterSnapshot(snapshot);
}

/*
 * Does a prepared transaction hold a snapshot number, so that readers cannot
 * go beyond?
 */
static void
check_prepared(CheckState *state, const CdcTracked *tracked)
{
	LOCKTAG		tag;
	int			count;

	if (RecoveryInProgress() || max_prepared_xacts == 0)
		return;
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, tracked->seqid);
	(void) GetLockConflicts(&tag, ShareLock, &count);
	if (count == 0)
		return;

	/* their locks belong to no process */
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(psprintf("SELECT p.gid, p.prepared "
							 "FROM pg_catalog.pg_locks s, pg_catalog.pg_locks x, "
							 "pg_catalog.pg_prepared_xacts p "
							 "WHERE s.locktype OPERATOR(pg_catalog.=) 'relation' "
							 "AND s.database OPERATOR(pg_catalog.=) %u::pg_catalog.oid "
							 "AND s.relation OPERATOR(pg_catalog.=) %u::pg_catalog.oid "
							 "AND s.mode OPERATOR(pg_catalog.=) 'RowExclusiveLock' "
							 "AND s.pid IS NULL AND s.granted "
							 "AND x.locktype OPERATOR(pg_catalog.=) 'transactionid' "
							 "AND x.virtualtransaction OPERATOR(pg_catalog.=) s.virtualtransaction "
							 "AND x.pid IS NULL AND x.granted "
							 "AND p.transaction OPERATOR(pg_catalog.=) x.transactionid "
							 "ORDER BY p.prepared",
							 MyDatabaseId, tracked->seqid),
					true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not read the prepared transactions");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		char	   *gid = SPI_getvalue(tuple, SPI_tuptable->tupdesc, 1);
		bool		isnull;
		TimestampTz prepared;

		prepared = DatumGetTimestampTz(SPI_getbinval(tuple, SPI_tuptable->tupdesc,
													 2, &isnull));
		report(state,
			   TimestampDifferenceExceeds(prepared, GetCurrentTimestamp(),
										  PREPARED_AGE) ?
			   LEVEL_WARNING : LEVEL_INFO,
			   relation_name(tracked->relid),
			   psprintf("prepared transaction \"%s\" holds back all snapshots after its own",
						gid),
			   psprintf("COMMIT PREPARED %s", quote_literal_cstr(gid)));
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/*
 * Are there tables with capture triggers that are not tracked?  They were
 * restored without the extension's tables.
 */
static void
check_untracked(CheckState *state)
{
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(triggers, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger trigger = (Form_pg_trigger) GETSTRUCT(tuple);
		CdcTracked	tracked;
		StringInfoData fix;

		if (OidIsValid(trigger->tgparentid) ||
			strcmp(NameStr(trigger->tgname), CDC_TRIGGER_TRUNCATE) != 0 ||
			!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(trigger->tgrelid)) ||
			cdc_tracked_lookup(trigger->tgrelid, &tracked) ||
			cdc_partition_tracked(trigger->tgrelid, &tracked) ||
			!cdc_relation_ownercheck(trigger->tgrelid, GetUserId()))
			continue;

		initStringInfo(&fix);
		for (int i = 0; i < CDC_NUM_CAPTURE_TRIGGERS; i++)
			appendStringInfo(&fix, "%sDROP TRIGGER IF EXISTS %s ON %s",
							 i > 0 ? "; " : "",
							 quote_identifier(cdc_capture_triggers[i].name),
							 relation_name(trigger->tgrelid));
		report(state, LEVEL_WARNING, relation_name(trigger->tgrelid),
			   "the table has capture triggers but is not tracked", fix.data);
	}
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
}

/*
 * Find the rows of one catalog table that belong to no tracked table.
 */
static void
check_orphan_rows(CheckState *state, CdcCatalogRel table, CdcCatalogRel index)
{
	Relation	rel = table_open(cdc_catalog_oid(table), AccessShareLock);
	Relation	pkey = index_open(cdc_catalog_oid(index), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int32		after = PG_INT32_MIN;

	/* from one table number to the next larger one */
	for (;;)
	{
		ScanKeyData key;
		SysScanDesc scan;
		HeapTuple	tuple;
		CdcTracked	tracked;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		ScanKeyInit(&key, 1, BTGreaterStrategyNumber, F_INT4GT,
					Int32GetDatum(after));
		scan = systable_beginscan_ordered(rel, pkey, snapshot, 1, &key);
		tuple = systable_getnext_ordered(scan, ForwardScanDirection);
		if (HeapTupleIsValid(tuple))
			after = DatumGetInt32(heap_getattr(tuple, 1, RelationGetDescr(rel),
											   &isnull));
		systable_endscan_ordered(scan);
		if (!HeapTupleIsValid(tuple))
			break;
		if (!cdc_tracked_lookup_id(after, &tracked))
			report(state, LEVEL_WARNING,
				   relation_name(RelationGetRelid(rel)),
				   psprintf("there are rows of table number %d, which is not tracked",
							after),
				   psprintf("DELETE FROM %s WHERE table_id = %d",
							relation_name(RelationGetRelid(rel)), after));
	}
	UnregisterSnapshot(snapshot);
	index_close(pkey, AccessShareLock);
	table_close(rel, AccessShareLock);
}

/*
 * Find what the extension has left behind: rows of its catalog tables, and
 * relations in the schema of the logs, that belong to no tracked table.
 */
static void
check_orphans(CheckState *state)
{
	Oid			nspid = get_namespace_oid(CDC_LOG_SCHEMA, true);
	List	   *known = NIL;
	ListCell   *lc;
	Relation	rel;
	SysScanDesc scan;
	HeapTuple	tuple;

	check_orphan_rows(state, CDC_SNAPSHOT, CDC_SNAPSHOT_PKEY);
	check_orphan_rows(state, CDC_LOG_SEGMENT, CDC_LOG_SEGMENT_PKEY);
	check_orphan_rows(state, CDC_UNIQUE_INDEX, CDC_UNIQUE_INDEX_PKEY);

	foreach(lc, cdc_tracked_list())
	{
		CdcTracked *tracked = lfirst(lc);
		CdcSegment *segments;
		int			n = cdc_segments_fetch(tracked->table_id, &segments);

		known = lappend_oid(known, tracked->seqid);
		known = lappend_oid(known, tracked->logrelid);
		for (int i = 0; i < n; i++)
			known = lappend_oid(known, segments[i].logrelid);
	}

	rel = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		bool		sequence = form->relkind == RELKIND_SEQUENCE;

		if (form->relnamespace != nspid ||
			(!sequence && form->relkind != RELKIND_RELATION) ||
			list_member_oid(known, form->oid))
			continue;
		report(state, LEVEL_WARNING, relation_name(form->oid),
			   "the relation belongs to no tracked table",
			   psprintf("DROP %s %s", sequence ? "SEQUENCE" : "TABLE",
						relation_name(form->oid)));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
}

/*
 * Pipelines that cannot be run.
 */
static void
check_pipelines(CheckState *state)
{
	ListCell   *lc;

	foreach(lc, cdc_pipeline_list())
	{
		CdcPipeline *pipeline = lfirst(lc);
		char	   *hint;
		char	   *problem;

		if (!has_privs_of_role(GetUserId(), pipeline->owner))
			continue;
		problem = cdc_pipeline_problem(pipeline, &hint);
		if (problem != NULL)
			report(state, LEVEL_ERROR,
				   psprintf("pipeline %s", quote_literal_cstr(pipeline->name)),
				   psprintf("it cannot be run: %s", problem),
				   psprintf("SELECT " CDC_SCHEMA ".drop_pipeline(%s)",
							quote_literal_cstr(pipeline->name)));
	}
}

/*
 * Consumers of the caller that have not run for a day and keep history from
 * expiring that is as old.
 *
 * Where a pipeline can be run, that ends it.  A consumer that nobody needs is
 * reset: it holds nothing then, and reads everything should it run again.  One
 * that appends would put everything there once more, so it is dropped, and there
 * is a warning.
 */
static void
check_consumers(CheckState *state)
{
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute("SELECT consumer, relation::pg_catalog.oid, position, "
					"newest_snapshot "
					"FROM " CDC_SCHEMA ".consumers "
					"WHERE holds_history "
					"AND last_run_at OPERATOR(pg_catalog.<) (pg_catalog.now() "
					"OPERATOR(pg_catalog.-) '1 day'::pg_catalog.interval) "
					"AND lag_seconds OPERATOR(pg_catalog.>) 86400 "
					"ORDER BY 1, 2", true, 0) != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute failed");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		char	   *name = SPI_getvalue(tuple, desc, 1);
		Oid			relid = atooid(SPI_getvalue(tuple, desc, 2));
		bool		appends = cdc_consumer_appends(name);
		bool		runs = false;
		StringInfoData problem;
		ListCell   *lc;

		foreach(lc, cdc_pipeline_list())
		{
			CdcPipeline *pipeline = lfirst(lc);
			char	   *hint;

			if (strcmp(pipeline->name, name) == 0)
				runs = cdc_pipeline_problem(pipeline, &hint) == NULL;
		}
		initStringInfo(&problem);
		appendStringInfo(&problem,
						 "it has not run for a day, and keeps snapshots %s to %s of %s from expiring",
						 SPI_getvalue(tuple, desc, 3),
						 SPI_getvalue(tuple, desc, 4), relation_name(relid));
		if (appends && !runs)
			appendStringInfoString(&problem,
								   "; should it be used again after it was dropped, it appends everything, so empty its target before");
		report(state, LEVEL_WARNING,
			   psprintf("consumer %s", quote_literal_cstr(name)), problem.data,
			   psprintf(runs ? "SELECT * FROM " CDC_SCHEMA ".run(%s)" :
						appends ? "SELECT " CDC_SCHEMA ".drop_consumer(%s)" :
						"SELECT " CDC_SCHEMA ".reset(%s)",
						quote_literal_cstr(name)));
	}
	SPI_finish();
}
