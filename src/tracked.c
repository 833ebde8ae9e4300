/*-------------------------------------------------------------------------
 *
 * tracked.c
 *		Beginning and ending the tracking of a table.
 *
 * cdc.track() and cdc.untrack() hold a lock on the table that keeps writers
 * out: a transaction that has written before and is still open makes track()
 * wait, so all that it wrote is in the baseline, and all later writes fire
 * the triggers.
 *
 * What belongs to a tracked table besides the rows in the catalog tables: its
 * log and its sequence in schema "cdc_log", the triggers, and the typed
 * changelog function in the table's own schema.  Log and function depend on
 * the table in pg_depend; ddl.c drops what is left.  They are made and
 * removed with the rights of the extension's owner, and belong to the table's
 * owner.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/tracked.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/array.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/alter.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "commands/sequence.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "capture.h"
#include "cdc_changelog.h"
#include "horizon.h"
#include "log.h"
#include "partition.h"
#include "tracked.h"
#include "typed.h"

PG_FUNCTION_INFO_V1(cdc_track);
PG_FUNCTION_INFO_V1(cdc_untrack);

/*
 * Transaction nesting levels at which the extension itself runs DDL, so that
 * an aborted (sub)transaction takes its own with it.
 */
#define MAX_DDL_DEPTH	32
static int	ddl_levels[MAX_DDL_DEPTH];
static int	ddl_depth = 0;

static Relation open_to_track(Oid relid);
static Relation drop_foreign_triggers(Relation rel);
static int32 choose_table_id(void);
static void check_kind(Relation rel);
static void check_columns(Relation rel);
static void check_transaction_snapshot(Relation rel);
static void create_sequence(Relation rel, CdcTracked *tracked);
static void create_triggers(const char *table);
static void record_unique_indexes(Relation rel, int32 table_id);

/*
 * An aborted transaction runs no more DDL of ours.
 */
static void
privileges_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		ddl_depth = 0;
}

static void
privileges_subxact_callback(SubXactEvent event, SubTransactionId mySubid,
							SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		while (ddl_depth > 0 &&
			   ddl_levels[ddl_depth - 1] >= GetCurrentTransactionNestLevel())
			ddl_depth--;
}

/*
 * Take the rights of the extension's owner, with a search_path that holds
 * nothing of anybody else.  The caller restores what is saved here; in case of
 * an error the end of the transaction does.
 */
void
cdc_raise_privileges(CdcPrivileges *saved)
{
	static bool registered = false;

	if (!registered)
	{
		RegisterXactCallback(privileges_xact_callback, NULL);
		RegisterSubXactCallback(privileges_subxact_callback, NULL);
		registered = true;
	}

	GetUserIdAndSecContext(&saved->userid, &saved->sec_context);
	SetUserIdAndSecContext(cdc_extension_owner(),
						   saved->sec_context | SECURITY_LOCAL_USERID_CHANGE);
	saved->nestlevel = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
							 0, false);
	if (ddl_depth == MAX_DDL_DEPTH)
		elog(ERROR, "commands of the extension are nested too deeply");
	ddl_levels[ddl_depth++] = GetCurrentTransactionNestLevel();
}

/*
 * Give back what cdc_raise_privileges() took.
 */
void
cdc_restore_privileges(const CdcPrivileges *saved)
{
	ddl_depth--;
	AtEOXact_GUC(false, saved->nestlevel);
	SetUserIdAndSecContext(saved->userid, saved->sec_context);
}

/*
 * Is the extension itself running DDL, so that the event triggers have nothing
 * to do?
 */
bool
cdc_ddl_in_progress(void)
{
	return ddl_depth > 0;
}

/*
 * Is this the name of a column that a changelog adds?
 */
bool
cdc_meta_column(const char *name)
{
	return strcmp(name, CDC_COL_TYPE) == 0 ||
		strcmp(name, CDC_COL_ORDINAL) == 0 ||
		strcmp(name, CDC_COL_SNAPSHOT) == 0 ||
		strcmp(name, CDC_COL_TIMESTAMP) == 0;
}

/*
 * cdc.track(relation regclass) returns bigint
 *
 * Starts tracking and returns the number of the baseline snapshot.
 */
Datum
cdc_track(PG_FUNCTION_ARGS)
{
	Relation	rel;
	CdcTracked	tracked;
	CdcSnapshotRow baseline;
	CdcPrivileges saved;
	bool		partitioned;
	char	   *name;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table to track must not be null")));

	PreventCommandIfReadOnly("cdc.track()");
	rel = open_to_track(PG_GETARG_OID(0));

	if (cdc_tracked_lookup(RelationGetRelid(rel), &tracked))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("table \"%s\" is already tracked",
						RelationGetRelationName(rel))));

	cdc_raise_privileges(&saved);
	rel = drop_foreign_triggers(rel);
	tracked.relid = RelationGetRelid(rel);
	tracked.table_id = choose_table_id();
	tracked.segment = 1;
	tracked.oldest = 0;
	tracked.tracked_at = GetCurrentTimestamp();
	tracked.notify = false;
	tracked.logrelid = cdc_log_create(rel, tracked.table_id, tracked.segment,
									  InvalidOid);
	create_sequence(rel, &tracked);
	cdc_tracked_insert(&tracked);

	memset(&baseline, 0, sizeof(baseline));
	/* drawn, so that a sequence that was never used is one out of a dump */
	baseline.snapshot_id = cdc_sequence_next(tracked.seqid);
	baseline.segment = tracked.segment;
	baseline.xid = U64FromFullTransactionId(GetTopFullTransactionId());
	baseline.next_xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	baseline.committed_at = tracked.tracked_at;
	baseline.kind = CDC_KIND_BASELINE;
	cdc_snapshot_insert(tracked.table_id, &baseline);
	record_unique_indexes(rel, tracked.table_id);

	cdc_typed_create(rel, &tracked);
	name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
									  RelationGetRelationName(rel));
	partitioned = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	table_close(rel, NoLock);
	if (partitioned)
		cdc_partition_begin(&tracked);
	else
		create_triggers(name);
	cdc_restore_privileges(&saved);
	PG_RETURN_INT64(baseline.snapshot_id);
}

/*
 * cdc.untrack(relation regclass)
 *
 * Ends tracking and removes all that belongs to it.
 */
Datum
cdc_untrack(PG_FUNCTION_ARGS)
{
	Oid			relid;
	CdcTracked	tracked;
	CdcPrivileges saved;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table to untrack must not be null")));

	PreventCommandIfReadOnly("cdc.untrack()");
	relid = PG_GETARG_OID(0);
	if (get_rel_name(relid) != NULL && !cdc_tracked_lookup(relid, &tracked))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not tracked", get_rel_name(relid))));
	cdc_tracked_require(relid, &tracked);
	if (!cdc_relation_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
	LockRelationOid(relid, AccessExclusiveLock);
	cdc_tracked_require(relid, &tracked);

	cdc_raise_privileges(&saved);
	cdc_drop_objects(&tracked, true, DROP_RESTRICT);
	cdc_tracked_delete(tracked.table_id);
	cdc_restore_privileges(&saved);
	PG_RETURN_VOID();
}

/*
 * Open and lock a table that shall be tracked, after checking that it may be.
 */
static Relation
open_to_track(Oid relid)
{
	Relation	rel;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));

	/* Whoever is not the owner shall not get as far as locking it. */
	if (!cdc_relation_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));

	rel = relation_open(relid, ShareRowExclusiveLock);
	check_kind(rel);
	check_columns(rel);
	cdc_log_check_width(rel);
	check_transaction_snapshot(rel);
	return rel;
}

/*
 * Drop the capture triggers of a table that is not tracked: it was restored
 * without the extension's catalog rows.  They do nothing, but have the names
 * of those that are to come.  Returns the table, which is opened again for
 * that.
 */
static Relation
drop_foreign_triggers(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	List	   *name = list_make2(makeString(CDC_SCHEMA), makeString("capture"));
	Oid			capture = LookupFuncName(name, 0, NULL, false);
	ObjectAddresses *objects = new_object_addresses();
	int			count = 0;

	for (int i = 0; rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];
		ObjectAddress object;

		if (trigger->tgfoid != capture || trigger->tgisinternal)
			continue;
		ObjectAddressSet(object, TriggerRelationId, trigger->tgoid);
		add_exact_object_address(&object, objects);
		count++;
	}
	if (count > 0)
	{
		ereport(NOTICE,
				(errmsg("capture triggers of table \"%s\" belong to no log, and are made anew",
						RelationGetRelationName(rel))));
		table_close(rel, NoLock);
		performMultipleDeletions(objects, DROP_RESTRICT, 0);
		CommandCounterIncrement();
		rel = table_open(relid, NoLock);
	}
	free_object_addresses(objects);
	return rel;
}

/*
 * A number for a newly tracked table.  Where only the definitions of a
 * database were restored, the log of another table may be there under it.
 */
static int32
choose_table_id(void)
{
	Oid			nspid = get_namespace_oid(CDC_LOG_SCHEMA, false);

	for (;;)
	{
		int32		result;

		CHECK_FOR_INTERRUPTS();
		result = (int32) cdc_sequence_next(cdc_catalog_oid(CDC_TABLE_NUMBER));
		if (!OidIsValid(get_relname_relid(psprintf("t%d_1", result), nspid)) &&
			!OidIsValid(get_relname_relid(psprintf("t%d_snapshot", result), nspid)))
			return result;
	}
}

/*
 * Raise an error for relations that cannot be tracked.
 */
static void
check_kind(Relation rel)
{
	const char *name = RelationGetRelationName(rel);
	Oid			relid = RelationGetRelid(rel);
	Oid			nspid = RelationGetNamespace(rel);

	if (rel->rd_rel->relkind != RELKIND_RELATION &&
		rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot track \"%s\"", name),
				 errdetail_relkind_not_supported(rel->rd_rel->relkind)));
	if (IsCatalogRelation(rel) || IsCatalogNamespace(nspid) ||
		IsToastNamespace(nspid) ||
		nspid == get_namespace_oid("information_schema", true))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot track system catalog \"%s\"", name)));
	if (cdc_is_own_relation(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot track \"%s\", which belongs to the extension \"%s\"",
						name, "cdc_changelog")));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track temporary table \"%s\"", name),
				 errdetail("Its log would outlive it.")));
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track unlogged table \"%s\"", name),
				 errdetail("A crash would empty it without a trace in its log."),
				 errhint("Use ALTER TABLE ... SET LOGGED first.")));
	if (rel->rd_rel->relispartition)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track partition \"%s\"", name),
				 errdetail("Rows can be written to it through the partitioned table."),
				 errhint("Track the partitioned table.")));
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		cdc_partition_check(rel);
		return;
	}
	if (has_subclass(relid) &&
		find_inheritance_children(relid, NoLock) != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track table \"%s\", which has inheritance children",
						name)));
	if (has_superclass(relid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot track table \"%s\", which inherits from another",
						name),
				 errdetail("Statements on its parent would change it unnoticed.")));
}

/*
 * Raise an error if a column is named like one that a changelog adds.
 */
static void
check_columns(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && cdc_meta_column(NameStr(att->attname)))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("cannot track table \"%s\" because of its column \"%s\"",
							RelationGetRelationName(rel), NameStr(att->attname)),
					 errdetail("The changelog has a column of this name."),
					 errhint("Rename the column of the table.")));
	}
}

/*
 * In REPEATABLE READ and above the transaction may not see what was committed
 * since it took its snapshot, but the baseline holds it.  Who copies the table
 * in this transaction, to start from the baseline, would miss it for ever; so
 * raise serialization_failure if anybody committed in the meantime.
 */
static void
check_transaction_snapshot(Relation rel)
{
	Snapshot	mine;
	Snapshot	latest;
	bool		stale;

	if (!IsolationUsesXactSnapshot())
		return;

	mine = GetTransactionSnapshot();
	latest = GetLatestSnapshot();
	stale = latest->xmin != mine->xmin || latest->xcnt != mine->xcnt;
	if (!stale)
	{
		/* transactions that began since, and are still running, do not count */
		for (uint32 i = 0; i < mine->xcnt && !stale; i++)
			stale = !XidInMVCCSnapshot(mine->xip[i], latest);
		for (TransactionId xid = mine->xmax;
			 !stale && TransactionIdPrecedes(xid, latest->xmax);)
		{
			stale = !XidInMVCCSnapshot(xid, latest) &&
				!TransactionIdIsCurrentTransactionId(xid);
			TransactionIdAdvance(xid);
		}
	}
	if (stale)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to table \"%s\"",
						RelationGetRelationName(rel)),
				 errdetail("Other transactions were committed after this one took its snapshot, which might not see all of the baseline."),
				 errhint("Track the table at the beginning of a transaction, or in READ COMMITTED.")));
}

/*
 * Create the sequence of snapshot numbers.
 *
 * It must not depend on the table: pg_dump takes a sequence that depends on a
 * table for one of its columns' and crashes where there is none.
 */
static void
create_sequence(Relation rel, CdcTracked *tracked)
{
	CreateSeqStmt *stmt = makeNode(CreateSeqStmt);
	ObjectAddress sequence;

	stmt->sequence = makeRangeVar(CDC_LOG_SCHEMA,
								  psprintf("t%d_snapshot", tracked->table_id), -1);
	stmt->options = list_make2(makeDefElem("minvalue", (Node *) makeInteger(0), -1),
							   makeDefElem("start", (Node *) makeInteger(0), -1));
	stmt->ownerId = InvalidOid;
	sequence = DefineSequence(NULL, stmt);
	tracked->seqid = sequence.objectId;
	CommandCounterIncrement();

	ATExecChangeOwner(tracked->seqid, rel->rd_rel->relowner, true,
					  AccessExclusiveLock);
	CommandCounterIncrement();
}

/*
 * Run one command through SPI, which is connected.
 */
void
cdc_run_ddl(const char *command)
{
	int			result = SPI_execute(command, false, 0);

	if (result != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\": %s", command,
			 SPI_result_code_string(result));
}

/*
 * Create the capture triggers on the table, which is named with its schema and
 * quoted, and not open here: ALTER TABLE refuses tables that are in use.
 */
static void
create_triggers(const char *table)
{
	const char *call = "EXECUTE FUNCTION " CDC_SCHEMA ".capture()";

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	cdc_run_ddl(psprintf("CREATE TRIGGER " CDC_TRIGGER_INSERT " AFTER INSERT ON %s "
						 "REFERENCING NEW TABLE AS cdc_new "
						 "FOR EACH STATEMENT %s", table, call));
	cdc_run_ddl(psprintf("CREATE TRIGGER " CDC_TRIGGER_UPDATE " AFTER UPDATE ON %s "
						 "REFERENCING OLD TABLE AS cdc_old NEW TABLE AS cdc_new "
						 "FOR EACH STATEMENT %s", table, call));
	cdc_run_ddl(psprintf("CREATE TRIGGER " CDC_TRIGGER_DELETE " AFTER DELETE ON %s "
						 "REFERENCING OLD TABLE AS cdc_old "
						 "FOR EACH STATEMENT %s", table, call));
	cdc_run_ddl(psprintf("CREATE TRIGGER " CDC_TRIGGER_REPLICA " AFTER INSERT OR UPDATE OR DELETE ON %s "
						 "FOR EACH ROW %s", table, call));
	cdc_run_ddl(psprintf("CREATE TRIGGER \"" CDC_TRIGGER_TRUNCATE "\" BEFORE TRUNCATE ON %s "
						 "FOR EACH STATEMENT %s", table, call));
	cdc_run_ddl(psprintf("ALTER TABLE %s ENABLE REPLICA TRIGGER " CDC_TRIGGER_REPLICA ", "
						 "ENABLE ALWAYS TRIGGER \"" CDC_TRIGGER_TRUNCATE "\"", table));

	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/*
 * Add an object to a list of objects.
 */
static List *
add_object(List *objects, Oid classid, Oid objid)
{
	ObjectAddress *object = palloc(sizeof(ObjectAddress));

	ObjectAddressSet(*object, classid, objid);
	return lappend(objects, object);
}

/*
 * What belongs to a tracked table and is still there: the segments of its log,
 * its sequence and its typed function, as a list of ObjectAddress in the
 * current memory context.
 */
List *
cdc_owned_objects(const CdcTracked *tracked)
{
	List	   *objects = NIL;
	Oid			owner = InvalidOid;
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	ListCell   *lc;

	ScanKeyInit(&key, Anum_cdc_log_segment_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	rel = table_open(cdc_catalog_oid(CDC_LOG_SEGMENT), AccessShareLock);
	scan = systable_beginscan(rel, cdc_catalog_oid(CDC_LOG_SEGMENT_PKEY), true,
							  NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		HeapTuple	log;
		bool		isnull;
		Oid			logrelid;

		logrelid = DatumGetObjectId(heap_getattr(tuple,
												 Anum_cdc_log_segment_log_table,
												 RelationGetDescr(rel), &isnull));
		log = SearchSysCache1(RELOID, ObjectIdGetDatum(logrelid));
		if (!HeapTupleIsValid(log))
			continue;
		/* the table's owner, or the former one while that changes */
		owner = ((Form_pg_class) GETSTRUCT(log))->relowner;
		ReleaseSysCache(log);
		objects = add_object(objects, RelationRelationId, logrelid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);

	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked->seqid)))
		objects = add_object(objects, RelationRelationId, tracked->seqid);
	foreach(lc, cdc_typed_find(tracked->table_id, owner))
		objects = add_object(objects, ProcedureRelationId, lfirst_oid(lc));
	return objects;
}

/*
 * Drop what belongs to a tracked table: its log, sequence and typed function,
 * and the triggers where the table stays.  "behavior" says what becomes of
 * objects of somebody else that depend on them.
 */
void
cdc_drop_objects(const CdcTracked *tracked, bool triggers,
				 DropBehavior behavior)
{
	static const char *const names[] = {
		CDC_TRIGGER_INSERT, CDC_TRIGGER_UPDATE, CDC_TRIGGER_DELETE,
		CDC_TRIGGER_REPLICA, CDC_TRIGGER_ROW, CDC_TRIGGER_TRUNCATE
	};
	ObjectAddresses *objects = new_object_addresses();
	ObjectAddress object;
	ListCell   *lc;

	for (int i = 0; triggers && i < lengthof(names); i++)
	{
		Oid			trigger = get_trigger_oid(tracked->relid, names[i], true);

		if (!OidIsValid(trigger))
			continue;
		ObjectAddressSet(object, TriggerRelationId, trigger);
		add_exact_object_address(&object, objects);
	}
	if (triggers)
		cdc_partition_add_triggers(tracked->relid, objects);
	foreach(lc, cdc_owned_objects(tracked))
		add_exact_object_address((ObjectAddress *) lfirst(lc), objects);

	performMultipleDeletions(objects, behavior, 0);
	free_object_addresses(objects);
}

/*
 * Give an object that belongs to a tracked table to another owner.  Nothing is
 * locked where it has that owner already: this is called for many commands, of
 * which some let writers go on.
 */
void
cdc_set_owner(const ObjectAddress *object, Oid owner)
{
	HeapTuple	tuple;
	bool		same;

	if (object->classId == ProcedureRelationId)
	{
		Relation	rel;

		tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(object->objectId));
		same = HeapTupleIsValid(tuple) &&
			((Form_pg_proc) GETSTRUCT(tuple))->proowner == owner;
		if (HeapTupleIsValid(tuple))
			ReleaseSysCache(tuple);
		if (same)
			return;
		rel = table_open(ProcedureRelationId, RowExclusiveLock);
		cdc_alter_owner(rel, object->objectId, owner);
		table_close(rel, NoLock);
		return;
	}

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(object->objectId));
	same = HeapTupleIsValid(tuple) &&
		((Form_pg_class) GETSTRUCT(tuple))->relowner == owner;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	if (!same)
		ATExecChangeOwner(object->objectId, owner, true, AccessExclusiveLock);
}

/*
 * Remember that a unique index has held since a snapshot.
 */
void
cdc_record_unique_index(int32 table_id, Oid indexid, int64 since)
{
	Datum		values[Natts_cdc_unique_index];
	bool		nulls[Natts_cdc_unique_index] = {0};
	Relation	rel;

	values[Anum_cdc_unique_index_table_id - 1] = Int32GetDatum(table_id);
	values[Anum_cdc_unique_index_since - 1] = Int64GetDatum(since);
	values[Anum_cdc_unique_index_index - 1] = ObjectIdGetDatum(indexid);
	rel = table_open(cdc_catalog_oid(CDC_UNIQUE_INDEX), RowExclusiveLock);
	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values,
											nulls));
	table_close(rel, RowExclusiveLock);
}

/*
 * Remember the unique indexes that a table has when its tracking begins.
 */
static void
record_unique_indexes(Relation rel, int32 table_id)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (index->rd_index->indisunique && index->rd_index->indisvalid)
			cdc_record_unique_index(table_id, lfirst_oid(lc), 0);
		index_close(index, NoLock);
	}
	CommandCounterIncrement();
}

/*
 * Let an object that belongs to a tracked table be dropped with it.  A dump
 * does not hold these dependencies.
 */
void
cdc_depend_on_table(const ObjectAddress *object, Relation rel)
{
	ObjectAddress table;
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(object->classId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(object->objectId));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2, key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		found = form->refclassid == RelationRelationId &&
			form->refobjid == RelationGetRelid(rel) &&
			form->deptype == DEPENDENCY_AUTO;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	if (found)
		return;

	ObjectAddressSet(table, RelationRelationId, RelationGetRelid(rel));
	recordDependencyOn(object, &table, DEPENDENCY_AUTO);
	CommandCounterIncrement();
}
