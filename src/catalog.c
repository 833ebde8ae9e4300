/*-------------------------------------------------------------------------
 *
 * catalog.c
 *		Access to the extension's catalog tables.
 *
 * The catalog tables are ordinary tables in schema "cdc" on which nobody has
 * privileges; they are read and written here with the table access layer, so
 * no user code and no search_path is involved and no right of the caller is
 * needed.
 *
 * Two caches belong to this module: the OIDs of the extension's own relations
 * and the rows of cdc.tracked_table by table OID.  Both are marked invalid by
 * relcache invalidation of the relation concerned and refilled at next use.
 * Whoever changes a row of cdc.tracked_table sends an invalidation of the
 * tracked table; the functions here do it.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/catalog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tupmacs.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "consumer_catalog.h"
#include "segment.h"

/* Names of the relations, in the order of CdcCatalogRel */
static const char *const catalog_names[CDC_NUM_CATALOG_RELS] = {
	"tracked_table",
	"tracked_table_pkey",
	"tracked_table_relation_key",
	"log_segment",
	"log_segment_pkey",
	"snapshot",
	"snapshot_pkey",
	"unique_index",
	"unique_index_pkey",
	"partition",
	"partition_pkey",
	"partition_relation_key",
	"consumer",
	"consumer_pkey",
	"consumer_position",
	"consumer_position_pkey",
	"consumer_target",
	"consumer_target_pkey",
	"pipeline",
	"pipeline_pkey",
	"pipeline_run",
	"pipeline_run_pkey",
	"transaction_number",
	"table_number"
};

static Oid	catalog_oids[CDC_NUM_CATALOG_RELS];

/* Is it known that cdc.snapshot has no index but its primary key? */
static bool snapshot_index_known = false;

/* Does the pattern for rows of cdc.snapshot fit the table? */
static bool snapshot_pattern_known = false;

/* Entry of the cache of tracked tables */
typedef struct TrackedEntry
{
	Oid			relid;			/* hash key, must be first */
	bool		valid;			/* false once invalidated, or while filling */
	CdcTracked	tracked;
} TrackedEntry;

static HTAB *tracked_cache = NULL;

static void relcache_callback(Datum arg, Oid relid);
static void decode_tracked(HeapTuple tuple, TupleDesc tupdesc,
						   CdcTracked *tracked);
static bool lookup_tracked(CdcCatalogRel index, ScanKey key,
						   CdcTracked *tracked);
static void insert_snapshot_tuple(Relation rel, HeapTuple tuple,
								  const Datum *values);
static void decode_runs(Datum blocks, CdcSnapshotRow *row);

/*
 * Set up the caches.  Called at the first use in a session.
 */
static void
init_caches(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(TrackedEntry);
	ctl.hcxt = AllocSetContextCreate(CacheMemoryContext,
									 "cdc_changelog tracked tables",
									 ALLOCSET_SMALL_SIZES);
	tracked_cache = hash_create("cdc_changelog tracked tables", 32, &ctl,
								HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
}

/*
 * Relcache invalidation: only flags, the work is done at next use.
 */
static void
relcache_callback(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	TrackedEntry *entry;

	if (relid != InvalidOid)
	{
		entry = hash_search(tracked_cache, &relid, HASH_FIND, NULL);
		if (entry)
			entry->valid = false;
		for (int i = 0; i < CDC_NUM_CATALOG_RELS; i++)
		{
			if (catalog_oids[i] == relid)
			{
				catalog_oids[i] = InvalidOid;
				snapshot_index_known = snapshot_pattern_known = false;
			}
		}
		return;
	}

	memset(catalog_oids, 0, sizeof(catalog_oids));
	snapshot_index_known = snapshot_pattern_known = false;
	hash_seq_init(&status, tracked_cache);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->valid = false;
}

/*
 * OID of one of the extension's own relations, or InvalidOid where the
 * extension is not there (not created in this database, being dropped, or its
 * script is still running).
 */
Oid
cdc_catalog_oid(CdcCatalogRel which)
{
	if (tracked_cache == NULL)
		init_caches();

	if (!OidIsValid(catalog_oids[which]))
	{
		Oid			nspid = get_namespace_oid(CDC_SCHEMA, true);

		if (OidIsValid(nspid))
			catalog_oids[which] = get_relname_relid(catalog_names[which],
													nspid);
	}
	return catalog_oids[which];
}

/*
 * Like cdc_catalog_oid, but raises an error where the relation is missing.
 */
static Oid
require_catalog_oid(CdcCatalogRel which)
{
	Oid			result = cdc_catalog_oid(which);

	if (!OidIsValid(result))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" is not installed in this database",
						"cdc_changelog"),
				 errhint("Run CREATE EXTENSION cdc_changelog.")));
	return result;
}

/*
 * Forget all that is cached.
 */
void
cdc_catalog_reset(void)
{
	if (tracked_cache != NULL)
		relcache_callback((Datum) 0, InvalidOid);
}

/*
 * The role with whose rights the extension makes and removes its objects.
 */
Oid
cdc_extension_owner(void)
{
	Oid			relid = require_catalog_oid(CDC_TRACKED_TABLE);
	HeapTuple	tuple;
	Oid			result;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	result = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Is this relation in one of the extension's own schemas?
 */
bool
cdc_is_own_relation(Oid relid)
{
	Oid			nspid = get_rel_namespace(relid);

	return OidIsValid(nspid) &&
		(nspid == get_namespace_oid(CDC_SCHEMA, true) ||
		 nspid == get_namespace_oid(CDC_LOG_SCHEMA, true));
}

/*
 * Take a row of cdc.tracked_table apart.
 */
static void
decode_tracked(HeapTuple tuple, TupleDesc tupdesc, CdcTracked *tracked)
{
	Datum		values[Natts_cdc_tracked_table];
	bool		nulls[Natts_cdc_tracked_table];

	heap_deform_tuple(tuple, tupdesc, values, nulls);
	tracked->table_id = DatumGetInt32(values[Anum_cdc_tracked_table_table_id - 1]);
	tracked->segment = DatumGetInt32(values[Anum_cdc_tracked_table_segment - 1]);
	tracked->oldest = DatumGetInt64(values[Anum_cdc_tracked_table_oldest - 1]);
	tracked->tracked_at = DatumGetTimestampTz(values[Anum_cdc_tracked_table_tracked_at - 1]);
	tracked->relid = DatumGetObjectId(values[Anum_cdc_tracked_table_relation - 1]);
	tracked->logrelid = DatumGetObjectId(values[Anum_cdc_tracked_table_log_table - 1]);
	tracked->seqid = DatumGetObjectId(values[Anum_cdc_tracked_table_sequence - 1]);
	tracked->notify = DatumGetBool(values[Anum_cdc_tracked_table_notify - 1]);
}

/*
 * Find the row of cdc.tracked_table that matches the key of the given index.
 */
static bool
lookup_tracked(CdcCatalogRel index, ScanKey key, CdcTracked *tracked)
{
	Relation	rel;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	rel = table_open(require_catalog_oid(CDC_TRACKED_TABLE), AccessShareLock);
	scan = systable_beginscan(rel, require_catalog_oid(index), true, NULL, 1,
							  key);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found)
		decode_tracked(tuple, RelationGetDescr(rel), tracked);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * Look up the tracking of a table.  Returns false where it is not tracked or
 * the extension is not there.
 */
bool
cdc_tracked_lookup(Oid relid, CdcTracked *tracked)
{
	TrackedEntry *entry;
	ScanKeyData key;
	bool		found;

	if (!OidIsValid(cdc_catalog_oid(CDC_TRACKED_TABLE)))
		return false;

	entry = hash_search(tracked_cache, &relid, HASH_FIND, NULL);
	if (entry && entry->valid)
	{
		*tracked = entry->tracked;
		return true;
	}

	ScanKeyInit(&key, Anum_cdc_tracked_table_relation, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	if (!lookup_tracked(CDC_TRACKED_TABLE_RELATION, &key, tracked))
		return false;

	/* An invalidation may have come while we read; then do not cache. */
	entry = hash_search(tracked_cache, &relid, HASH_ENTER, &found);
	entry->tracked = *tracked;
	entry->valid = true;
	return true;
}

/*
 * As cdc_tracked_lookup, by the number of the tracked table.
 */
bool
cdc_tracked_lookup_id(int32 table_id, CdcTracked *tracked)
{
	ScanKeyData key;

	if (!OidIsValid(cdc_catalog_oid(CDC_TRACKED_TABLE)))
		return false;
	ScanKeyInit(&key, Anum_cdc_tracked_table_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(table_id));
	return lookup_tracked(CDC_TRACKED_TABLE_PKEY, &key, tracked);
}

/*
 * Is any table tracked in this database?
 */
bool
cdc_tracked_any(void)
{
	Relation	rel;
	SysScanDesc scan;
	bool		result;

	if (!OidIsValid(cdc_catalog_oid(CDC_TRACKED_TABLE)))
		return false;
	rel = table_open(require_catalog_oid(CDC_TRACKED_TABLE), AccessShareLock);
	scan = systable_beginscan(rel, require_catalog_oid(CDC_TRACKED_TABLE_PKEY),
							  true, NULL, 0, NULL);
	result = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * All tracked tables, as a list of CdcTracked in the current memory context.
 */
List *
cdc_tracked_list(void)
{
	List	   *result = NIL;
	Relation	rel;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!OidIsValid(cdc_catalog_oid(CDC_TRACKED_TABLE)))
		return NIL;
	rel = table_open(require_catalog_oid(CDC_TRACKED_TABLE), AccessShareLock);
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CdcTracked *tracked = palloc(sizeof(CdcTracked));

		decode_tracked(tuple, RelationGetDescr(rel), tracked);
		result = lappend(result, tracked);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * As cdc_tracked_lookup, but raises an error where the table is not tracked.
 */
void
cdc_tracked_require(Oid relid, CdcTracked *tracked)
{
	char	   *relname = get_rel_name(relid);

	if (relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (!cdc_tracked_lookup(relid, tracked))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not tracked", relname),
				 errhint("Call cdc.track(%s) first.",
						 quote_literal_cstr(quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
																	   relname)))));
	pfree(relname);
}

/*
 * Add a row to cdc.tracked_table and the first row to cdc.log_segment.
 */
void
cdc_tracked_insert(const CdcTracked *tracked)
{
	Datum		values[Natts_cdc_tracked_table];
	bool		nulls[Natts_cdc_tracked_table] = {0};
	Relation	rel;

	values[Anum_cdc_tracked_table_table_id - 1] = Int32GetDatum(tracked->table_id);
	values[Anum_cdc_tracked_table_segment - 1] = Int32GetDatum(tracked->segment);
	values[Anum_cdc_tracked_table_oldest - 1] = Int64GetDatum(tracked->oldest);
	values[Anum_cdc_tracked_table_tracked_at - 1] = TimestampTzGetDatum(tracked->tracked_at);
	values[Anum_cdc_tracked_table_relation - 1] = ObjectIdGetDatum(tracked->relid);
	values[Anum_cdc_tracked_table_log_table - 1] = ObjectIdGetDatum(tracked->logrelid);
	values[Anum_cdc_tracked_table_sequence - 1] = ObjectIdGetDatum(tracked->seqid);
	values[Anum_cdc_tracked_table_notify - 1] = BoolGetDatum(tracked->notify);

	rel = table_open(require_catalog_oid(CDC_TRACKED_TABLE), RowExclusiveLock);
	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values,
											nulls));
	table_close(rel, RowExclusiveLock);

	cdc_segment_insert(tracked);
	CacheInvalidateRelcacheByRelid(tracked->relid);
	CommandCounterIncrement();
}

/*
 * Change what may change in a row of cdc.tracked_table: the segment that is
 * written to, the oldest readable snapshot, and whether listeners are told of
 * changes.  The caller holds the lock on the table's segments (segment.c).
 */
void
cdc_tracked_update(const CdcTracked *tracked)
{
	Datum		values[Natts_cdc_tracked_table] = {0};
	bool		nulls[Natts_cdc_tracked_table] = {0};
	bool		replaces[Natts_cdc_tracked_table] = {0};
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	values[Anum_cdc_tracked_table_segment - 1] = Int32GetDatum(tracked->segment);
	replaces[Anum_cdc_tracked_table_segment - 1] = true;
	values[Anum_cdc_tracked_table_log_table - 1] = ObjectIdGetDatum(tracked->logrelid);
	replaces[Anum_cdc_tracked_table_log_table - 1] = true;
	values[Anum_cdc_tracked_table_oldest - 1] = Int64GetDatum(tracked->oldest);
	replaces[Anum_cdc_tracked_table_oldest - 1] = true;
	values[Anum_cdc_tracked_table_notify - 1] = BoolGetDatum(tracked->notify);
	replaces[Anum_cdc_tracked_table_notify - 1] = true;

	ScanKeyInit(&key, Anum_cdc_tracked_table_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	rel = table_open(require_catalog_oid(CDC_TRACKED_TABLE), RowExclusiveLock);
	scan = systable_beginscan(rel, require_catalog_oid(CDC_TRACKED_TABLE_PKEY),
							  true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "tracked table %d does not exist", tracked->table_id);
	tuple = heap_modify_tuple(tuple, RelationGetDescr(rel), values, nulls,
							  replaces);
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);

	CacheInvalidateRelcacheByRelid(tracked->relid);
	CommandCounterIncrement();
}

/*
 * The oldest readable snapshot of a table as of an MVCC snapshot.  A reader
 * must take it from the same one as the rows of cdc.snapshot: the cached value
 * may be older, and what is expired meanwhile would just be missing.
 */
int64
cdc_tracked_oldest(const CdcTracked *tracked, Snapshot snapshot)
{
	int64		result = tracked->oldest;
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_cdc_tracked_table_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	rel = table_open(require_catalog_oid(CDC_TRACKED_TABLE), AccessShareLock);
	scan = systable_beginscan(rel, require_catalog_oid(CDC_TRACKED_TABLE_PKEY),
							  true, snapshot, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		CdcTracked	row;

		decode_tracked(tuple, RelationGetDescr(rel), &row);
		result = row.oldest;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Delete the rows of one catalog table whose first key column is table_id.
 */
static void
delete_rows(CdcCatalogRel table, CdcCatalogRel index, int32 table_id)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	/* table_id is the first column of every catalog table */
	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ,
				Int32GetDatum(table_id));
	rel = table_open(require_catalog_oid(table), RowExclusiveLock);
	scan = systable_beginscan(rel, require_catalog_oid(index), true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		CatalogTupleDelete(rel, &tuple->t_self);
	}
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
}

/*
 * Remove all that the catalog tables hold of a tracked table.
 */
void
cdc_tracked_delete(int32 table_id)
{
	CdcTracked	tracked;

	if (!cdc_tracked_lookup_id(table_id, &tracked))
		return;
	delete_rows(CDC_TRACKED_TABLE, CDC_TRACKED_TABLE_PKEY, table_id);
	delete_rows(CDC_LOG_SEGMENT, CDC_LOG_SEGMENT_PKEY, table_id);
	delete_rows(CDC_SNAPSHOT, CDC_SNAPSHOT_PKEY, table_id);
	delete_rows(CDC_UNIQUE_INDEX, CDC_UNIQUE_INDEX_PKEY, table_id);
	delete_rows(CDC_PARTITION, CDC_PARTITION_PKEY, table_id);
	cdc_consumer_table_gone(table_id);

	/* The table may be gone already when this runs for a DROP. */
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked.relid)))
		CacheInvalidateRelcacheByRelid(tracked.relid);
	else
		cdc_catalog_reset();
	CommandCounterIncrement();
}

/*
 * The columns of a row of cdc.snapshot.  What they point to is allocated in the
 * current memory context.
 */
static void
encode_snapshot(int32 table_id, const CdcSnapshotRow *row, Datum *values,
				bool *nulls)
{
	memset(nulls, 0, sizeof(bool) * Natts_cdc_snapshot);
	values[Anum_cdc_snapshot_table_id - 1] = Int32GetDatum(table_id);
	values[Anum_cdc_snapshot_segment - 1] = Int32GetDatum(row->segment);
	values[Anum_cdc_snapshot_snapshot_id - 1] = Int64GetDatum(row->snapshot_id);
	values[Anum_cdc_snapshot_tx - 1] = Int64GetDatum(row->tx);
	values[Anum_cdc_snapshot_xid - 1] = UInt64GetDatum(row->xid);
	values[Anum_cdc_snapshot_next_xid - 1] = UInt64GetDatum(row->next_xid);
	values[Anum_cdc_snapshot_committed_at - 1] = TimestampTzGetDatum(row->committed_at);
	values[Anum_cdc_snapshot_inserted - 1] = Int64GetDatum(row->inserted);
	values[Anum_cdc_snapshot_deleted - 1] = Int64GetDatum(row->deleted);
	values[Anum_cdc_snapshot_kind - 1] = CharGetDatum(row->kind);

	if (row->nruns > 0)
	{
		values[Anum_cdc_snapshot_first_block - 1] =
			Int64GetDatum((int64) row->runs[0].first);
		values[Anum_cdc_snapshot_last_block - 1] =
			Int64GetDatum((int64) row->runs[row->nruns - 1].last);
	}
	else
	{
		nulls[Anum_cdc_snapshot_first_block - 1] = true;
		nulls[Anum_cdc_snapshot_last_block - 1] = true;
	}

	if (row->reason)
		values[Anum_cdc_snapshot_reason - 1] = CStringGetTextDatum(row->reason);
	else
		nulls[Anum_cdc_snapshot_reason - 1] = true;

	/* The intervals in full only where there is more than one. */
	if (row->nruns > 1)
	{
		Datum	   *blocks = palloc(sizeof(Datum) * row->nruns * 2);

		for (int i = 0; i < row->nruns; i++)
		{
			blocks[2 * i] = Int64GetDatum((int64) row->runs[i].first);
			blocks[2 * i + 1] = Int64GetDatum((int64) row->runs[i].last);
		}
		values[Anum_cdc_snapshot_blocks - 1] =
			PointerGetDatum(construct_array(blocks, row->nruns * 2, INT8OID,
											sizeof(int64), FLOAT8PASSBYVAL,
											TYPALIGN_DOUBLE));
	}
	else
		nulls[Anum_cdc_snapshot_blocks - 1] = true;
}

/*
 * Make a row of cdc.snapshot, to be freed by the caller.
 *
 * By far most rows have values of fixed width in the same columns.  They are
 * made from a copy of the one before.
 */
static HeapTuple
form_snapshot_tuple(TupleDesc desc, Datum *values, bool *nulls)
{
	static HeapTuple pattern = NULL;
	static int	offsets[Natts_cdc_snapshot];
	HeapTuple	tuple;
	char	   *data;

	if (nulls[Anum_cdc_snapshot_first_block - 1] ||
		!nulls[Anum_cdc_snapshot_reason - 1] ||
		!nulls[Anum_cdc_snapshot_blocks - 1])
		return heap_form_tuple(desc, values, nulls);

	if (pattern == NULL || !snapshot_pattern_known)
	{
		MemoryContext oldcontext = MemoryContextSwitchTo(TopMemoryContext);
		int			offset = 0;

		if (pattern)
			heap_freetuple(pattern);
		pattern = NULL;
		pattern = heap_form_tuple(desc, values, nulls);
		MemoryContextSwitchTo(oldcontext);
		for (int i = 0; i < Natts_cdc_snapshot; i++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, i);

			if (nulls[i])
				continue;
			Assert(att->attbyval);
			offset = att_align_nominal(offset, att->attalign);
			offsets[i] = offset;
			offset += att->attlen;
		}
		snapshot_pattern_known = true;
	}

	tuple = heap_copytuple(pattern);
	data = (char *) tuple->t_data + tuple->t_data->t_hoff;
	for (int i = 0; i < Natts_cdc_snapshot; i++)
		if (!nulls[i])
			store_att_byval(data + offsets[i], values[i],
							TupleDescAttr(desc, i)->attlen);
	return tuple;
}

/*
 * Add a row to cdc.snapshot.
 */
void
cdc_snapshot_insert(int32 table_id, const CdcSnapshotRow *row)
{
	Datum		values[Natts_cdc_snapshot];
	bool		nulls[Natts_cdc_snapshot];
	Relation	rel;
	HeapTuple	tuple;

	encode_snapshot(table_id, row, values, nulls);
	rel = table_open(require_catalog_oid(CDC_SNAPSHOT), RowExclusiveLock);
	tuple = form_snapshot_tuple(RelationGetDescr(rel), values, nulls);
	insert_snapshot_tuple(rel, tuple, values);
	heap_freetuple(tuple);
	table_close(rel, RowExclusiveLock);
}

/*
 * Insert a row into cdc.snapshot and its index.
 *
 * This is in the way of every commit, so where there is just the primary key,
 * as there should be, it is served without the executor's general machinery.
 */
static void
insert_snapshot_tuple(Relation rel, HeapTuple tuple, const Datum *values)
{
	Oid			indexid = require_catalog_oid(CDC_SNAPSHOT_PKEY);
	Relation	index;
	IndexInfo	info;
	Datum		keys[2];
	bool		keynulls[2] = {false, false};

	if (!snapshot_index_known)
	{
		List	   *indexes = RelationGetIndexList(rel);

		if (list_length(indexes) != 1 || linitial_oid(indexes) != indexid)
		{
			CatalogTupleInsert(rel, tuple);
			return;
		}
		snapshot_index_known = true;
	}

	simple_heap_insert(rel, tuple);

	/* a btree has no use for more of this */
	memset(&info, 0, sizeof(info));
	NodeSetTag(&info, T_IndexInfo);
	info.ii_NumIndexAttrs = info.ii_NumIndexKeyAttrs = 2;
	info.ii_IndexAttrNumbers[0] = Anum_cdc_snapshot_table_id;
	info.ii_IndexAttrNumbers[1] = Anum_cdc_snapshot_snapshot_id;
	info.ii_Unique = true;
	info.ii_ReadyForInserts = true;
	info.ii_Am = BTREE_AM_OID;
	info.ii_Context = CurrentMemoryContext;

	/* the lock on the table protects the index as well */
	index = RelationIdGetRelation(indexid);
	if (!RelationIsValid(index))
		elog(ERROR, "could not open relation with OID %u", indexid);
	keys[0] = values[Anum_cdc_snapshot_table_id - 1];
	keys[1] = values[Anum_cdc_snapshot_snapshot_id - 1];
	index_insert(index, keys, keynulls, &tuple->t_self, rel,
				 UNIQUE_CHECK_YES, false, &info);
	RelationClose(index);
}

/*
 * Take the column "blocks" of cdc.snapshot apart.
 */
static void
decode_runs(Datum blocks, CdcSnapshotRow *row)
{
	Datum	   *elems;
	int			nelems;

	deconstruct_array(DatumGetArrayTypeP(blocks), INT8OID, sizeof(int64),
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elems, NULL, &nelems);
	row->nruns = nelems / 2;
	row->runs = palloc(sizeof(CdcBlockRun) * row->nruns);
	for (int i = 0; i < row->nruns; i++)
	{
		row->runs[i].first = (BlockNumber) DatumGetInt64(elems[2 * i]);
		row->runs[i].last = (BlockNumber) DatumGetInt64(elems[2 * i + 1]);
	}
}

/*
 * Take a row of cdc.snapshot apart.  What it points to is allocated in the
 * current memory context.
 */
void
cdc_snapshot_decode(HeapTuple tuple, TupleDesc tupdesc, CdcSnapshotRow *row)
{
	Datum		values[Natts_cdc_snapshot];
	bool		nulls[Natts_cdc_snapshot];

	heap_deform_tuple(tuple, tupdesc, values, nulls);
	row->segment = DatumGetInt32(values[Anum_cdc_snapshot_segment - 1]);
	row->snapshot_id = DatumGetInt64(values[Anum_cdc_snapshot_snapshot_id - 1]);
	row->tx = DatumGetInt64(values[Anum_cdc_snapshot_tx - 1]);
	row->xid = DatumGetUInt64(values[Anum_cdc_snapshot_xid - 1]);
	row->next_xid = DatumGetUInt64(values[Anum_cdc_snapshot_next_xid - 1]);
	row->committed_at = DatumGetTimestampTz(values[Anum_cdc_snapshot_committed_at - 1]);
	row->inserted = DatumGetInt64(values[Anum_cdc_snapshot_inserted - 1]);
	row->deleted = DatumGetInt64(values[Anum_cdc_snapshot_deleted - 1]);
	row->kind = DatumGetChar(values[Anum_cdc_snapshot_kind - 1]);
	row->reason = nulls[Anum_cdc_snapshot_reason - 1] ? NULL :
		TextDatumGetCString(values[Anum_cdc_snapshot_reason - 1]);
	row->native = HeapTupleHeaderGetRawXmin(tuple->t_data) ==
		(TransactionId) row->xid;
	row->nruns = 0;
	row->runs = NULL;
	if (!nulls[Anum_cdc_snapshot_blocks - 1])
		decode_runs(values[Anum_cdc_snapshot_blocks - 1], row);
	else if (!nulls[Anum_cdc_snapshot_first_block - 1])
	{
		row->nruns = 1;
		row->runs = palloc(sizeof(CdcBlockRun));
		row->runs[0].first = (BlockNumber)
			DatumGetInt64(values[Anum_cdc_snapshot_first_block - 1]);
		row->runs[0].last = (BlockNumber)
			DatumGetInt64(values[Anum_cdc_snapshot_last_block - 1]);
	}
}

/*
 * Was a row of cdc.snapshot restored, although it is from the transaction it
 * names?  A transaction adds one row for a table; a restore adds them all.
 */
bool
cdc_snapshot_is_restored(int32 table_id, const CdcSnapshotRow *row,
						 Snapshot snapshot)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	int			count = 0;

	ScanKeyInit(&key, Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(table_id));
	rel = table_open(require_catalog_oid(CDC_SNAPSHOT), AccessShareLock);
	scan = systable_beginscan(rel, require_catalog_oid(CDC_SNAPSHOT_PKEY), true,
							  snapshot, 1, &key);
	while (count < 2 && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		if (HeapTupleHeaderGetRawXmin(tuple->t_data) == (TransactionId) row->xid)
			count++;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return count > 1;
}

/*
 * Read the snapshots of a table with after < number <= upto that the given
 * MVCC snapshot sees, in ascending order.  Returns how many; the array and
 * what it points to are allocated in the current memory context.
 */
int
cdc_snapshot_fetch(int32 table_id, int64 after, int64 upto, Snapshot snapshot,
				   CdcSnapshotRow **rows)
{
	Relation	rel;
	Relation	index;
	SysScanDesc scan;
	ScanKeyData key[3];
	HeapTuple	tuple;
	int			n = 0;
	int			space = 64;
	CdcSnapshotRow *result = palloc(sizeof(CdcSnapshotRow) * space);

	ScanKeyInit(&key[0], Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(table_id));
	ScanKeyInit(&key[1], Anum_cdc_snapshot_snapshot_id, BTGreaterStrategyNumber,
				F_INT8GT, Int64GetDatum(after));
	ScanKeyInit(&key[2], Anum_cdc_snapshot_snapshot_id, BTLessEqualStrategyNumber,
				F_INT8LE, Int64GetDatum(upto));

	rel = table_open(require_catalog_oid(CDC_SNAPSHOT), AccessShareLock);
	index = index_open(require_catalog_oid(CDC_SNAPSHOT_PKEY), AccessShareLock);
	scan = systable_beginscan_ordered(rel, index, snapshot, 3, key);
	while ((tuple = systable_getnext_ordered(scan, ForwardScanDirection)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (n == space)
		{
			space *= 2;
			result = repalloc_huge(result, sizeof(CdcSnapshotRow) * space);
		}
		cdc_snapshot_decode(tuple, RelationGetDescr(rel), &result[n++]);
	}
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);

	*rows = result;
	return n;
}
