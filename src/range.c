/*-------------------------------------------------------------------------
 *
 * range.c
 *		A range of snapshots that is to be read: bounds, gaps, and what is
 *		known about the uniqueness of keys in it.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/range.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "armed.h"
#include "cdc_changelog.h"
#include "horizon.h"
#include "partition.h"
#include "range.h"
#include "restore.h"

static CdcRange *create_range(Oid relid);
static void open_horizon(CdcRange *range, int64 upto, int64 *newest);
static void check_inheritance(CdcRange *range);
static void check_restored(CdcRange *range);
static void check_capture(CdcRange *range);
static void check_bound(CdcRange *range, const char *name, int64 value,
						int64 newest);
static void check_retained(CdcRange *range, int64 value);
static void check_gaps(CdcRange *range, int first, int last);
static void start_from_oldest(CdcRange *range);
static bool index_proves(CdcRange *range, Relation source, Oid indexid,
						 const CdcRowCompare *cmp, List **nullable);

/*
 * Resolve and check the bounds of a range, and load its snapshots.
 *
 * The caller must be allowed to read the table, or insufficient_privilege is
 * raised.  Raises object_not_in_prerequisite_state for a table that is not
 * tracked, for history that is not there any more and for gaps, and
 * invalid_parameter_value for all other bad bounds.
 *
 * The result is allocated in the current memory context and holds a
 * registered snapshot, which cdc_range_close() gives back.
 */
CdcRange *
cdc_range_open(Oid relid, bool start_null, int64 start, bool end_null,
			   int64 end)
{
	CdcRange   *range = create_range(relid);
	int64		newest;

	open_horizon(range, end_null ? PG_INT64_MAX : end, &newest);
	if (!start_null && !end_null && start > end)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("start snapshot %lld of table \"%s\" is after end snapshot %lld",
						(long long) start, range->relname, (long long) end),
				 errdetail("The oldest readable snapshot is %lld, the newest is %lld.",
						   (long long) range->tracked.oldest, (long long) newest)));
	if (!start_null)
		check_bound(range, "start ", start, newest);
	if (!end_null)
		check_bound(range, "end ", end, newest);

	/*
	 * The horizon can go back a little when a transaction that is not
	 * finished comes up; what was complete for an earlier reader stays so.
	 */
	if (end_null)
		end = start_null ? newest : Max(newest, start);
	range->start = start;
	range->end = end;
	range->from_start = start_null;
	if (start_null || end_null)
		check_capture(range);
	if (!start_null)
		check_retained(range, start);
	check_retained(range, end);

	if (start_null)
		start_from_oldest(range);
	else
	{
		range->nsnaps = cdc_snapshot_fetch(range->tracked.table_id, start, end,
										   range->snapshot, &range->snaps);
		range->nrange = range->nsnaps;
		check_gaps(range, 0, range->nrange);
	}
	return range;
}

/*
 * Open the empty range at a snapshot, with what tells the content there.
 *
 * Raises the errors of cdc_range_open().
 */
CdcRange *
cdc_range_open_content(Oid relid, int64 at)
{
	CdcRange   *range = create_range(relid);
	int64		newest;

	open_horizon(range, at, &newest);
	check_bound(range, "", at, newest);
	check_capture(range);
	check_retained(range, at);
	range->start = range->end = at;
	range->from_start = true;
	cdc_range_load_tail(range);
	return range;
}

/*
 * Open a range whose bounds are settled, to be read with the given snapshot,
 * which sees all of it; or with "content", the content at its end.
 *
 * Raises the errors of cdc_range_open().
 */
CdcRange *
cdc_range_open_pinned(Oid relid, bool content, int64 start, int64 end,
					  Snapshot snapshot)
{
	CdcRange   *range = create_range(relid);
	SnapshotData own;
	List	   *locked = NIL;

	/* of the own transaction it has to see what there is now */
	own = *snapshot;
	own.curcid = GetCurrentCommandId(false);
	own.copied = false;
	own.active_count = own.regd_count = 0;
	snapshot = RegisterSnapshot(&own);
	range->pinned = true;
	range->snapshot = snapshot;
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
	{
		(void) cdc_partition_lock(range->tracked.table_id, NULL, &locked);
		(void) cdc_partition_lock(range->tracked.table_id, snapshot, &locked);
		list_free(locked);
	}
	range->tracked.oldest = cdc_tracked_oldest(&range->tracked, snapshot);
	check_capture(range);
	range->end = end;
	if (content)
	{
		CdcSnapshotRow *row;

		check_retained(range, end);
		range->start = end;
		range->from_start = true;
		if (cdc_snapshot_fetch(range->tracked.table_id, end - 1, end, snapshot,
							   &row) > 0)
			range->start_time = row->committed_at;
		cdc_range_load_tail(range);
		return range;
	}
	range->start = start;
	check_retained(range, start);
	range->nsnaps = cdc_snapshot_fetch(range->tracked.table_id, start, end,
									   snapshot, &range->snaps);
	range->nrange = range->nsnaps;
	check_gaps(range, 0, range->nrange);
	return range;
}

/*
 * Open all that the log has, to verify it: also before gaps, and also what is
 * beyond the horizon but committed already.
 */
CdcRange *
cdc_range_open_all(Oid relid)
{
	CdcRange   *range = create_range(relid);

	open_horizon(range, PG_INT64_MAX, &range->end);
	range->start = range->tracked.oldest;
	range->from_start = true;
	range->nsnaps = cdc_snapshot_fetch(range->tracked.table_id, range->start,
									   PG_INT64_MAX, range->snapshot,
									   &range->snaps);
	range->nrange = range->nsnaps;
	range->tail_loaded = true;
	for (int i = 0; i < range->nsnaps; i++)
		if (range->snaps[i].kind == CDC_KIND_GAP)
			range->after_gap = i + 1;
	return range;
}

/*
 * Make a range for a table that the caller may read.
 */
static CdcRange *
create_range(Oid relid)
{
	CdcRange   *range = palloc0(sizeof(CdcRange));

	cdc_tracked_require(relid, &range->tracked);
	cdc_check_readable(relid);

	/*
	 * What TRUNCATE and rewrites do is not subject to snapshots: keep them
	 * out from before one is taken.
	 */
	LockRelationOid(relid, AccessShareLock);
	cdc_tracked_require(relid, &range->tracked);
	range->relname = get_rel_name(relid);
	check_inheritance(range);
	check_restored(range);
	return range;
}

/*
 * Take the range's snapshot, and what it says about the retained history.
 */
static void
open_horizon(CdcRange *range, int64 upto, int64 *newest)
{
	bool		partitioned =
		get_rel_relkind(range->tracked.relid) == RELKIND_PARTITIONED_TABLE;
	List	   *locked = NIL;

	for (;;)
	{
		if (partitioned)
			(void) cdc_partition_lock(range->tracked.table_id, NULL, &locked);
		range->snapshot = cdc_horizon_upto(&range->tracked, upto, newest);
		if (!partitioned ||
			!cdc_partition_lock(range->tracked.table_id, range->snapshot, &locked))
			break;
		/* a partition came in between and was not locked soon enough */
		UnregisterSnapshot(range->snapshot);
	}
	list_free(locked);
	range->tracked.oldest = cdc_tracked_oldest(&range->tracked,
											   range->snapshot);
}

/*
 * Give back what cdc_range_open() holds.
 */
void
cdc_range_close(CdcRange *range)
{
	UnregisterSnapshot(range->snapshot);
	range->snapshot = NULL;
}

/*
 * Where changes are not captured now, what the table has become since the last
 * snapshot is not known.
 */
static void
check_capture(CdcRange *range)
{
	Relation	rel = table_open(range->tracked.relid, AccessShareLock);
	bool		complete = cdc_triggers_complete(rel);

	table_close(rel, NoLock);
	if (!complete)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("changes of table \"%s\" are not captured", range->relname),
				 errdetail("Capture triggers of the table are missing or disabled."),
				 errhint("Use ALTER TABLE ... ENABLE TRIGGER, or call cdc.untrack and cdc.track for the table.")));
}

/*
 * Rows of inheritance children are not in the log, but in what the user sees
 * of the table; and statements on a parent do not fire the triggers.
 */
static void
check_inheritance(CdcRange *range)
{
	Oid			relid = range->tracked.relid;
	const char *detail = NULL;

	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
	{
		detail = cdc_partition_broken(&range->tracked);
		if (detail)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("changelog of table \"%s\" cannot be read",
							range->relname),
					 errdetail_internal("%s", detail),
					 errhint("Enable the triggers, or call cdc.untrack and cdc.track for the table; then rebuild the targets.")));
		return;
	}
	if (has_subclass(relid) && find_inheritance_children(relid, NoLock) != NIL)
		detail = "It has inheritance children, whose rows are not in its log.";
	else if (get_rel_relispartition(relid))
		detail = "It is a partition of another table, through which it can be changed unnoticed.";
	else if (has_superclass(relid))
		detail = "It inherits from another table, through which it can be changed unnoticed.";
	if (detail)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("changelog of table \"%s\" cannot be read",
						range->relname),
				 errdetail_internal("%s", detail),
				 get_rel_relispartition(relid) ?
				 errhint("Use ALTER TABLE ... DETACH PARTITION, and rebuild the targets; or untrack the table and track the one it is a partition of.") :
				 errhint("End the inheritance with ALTER TABLE ... NO INHERIT, and rebuild the targets.")));
}

/*
 * A restore sets sequences and creates the capture triggers last.  Where it has
 * not, there is no gap yet that would tell that changes are missing.
 */
static void
check_restored(CdcRange *range)
{
	Relation	rel = table_open(range->tracked.relid, NoLock);

	if (cdc_sequence_last_value(range->tracked.seqid) < 0 ||
		(!cdc_triggers_complete(rel) && cdc_restore_pending(&range->tracked)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("changelog of table \"%s\" cannot be read", range->relname),
				 errdetail("The table was not restored completely."),
				 errhint("Restore all of the dump, with the section post-data at last; or call cdc.untrack and cdc.track.")));
	table_close(rel, NoLock);
}

/*
 * Raise an error if a bound is not a snapshot number that exists, or existed.
 */
static void
check_bound(CdcRange *range, const char *name, int64 value, int64 newest)
{
	if (value >= 0 && value <= newest)
		return;

	/* beyond the horizon, but complete for an earlier reader */
	if (value > newest)
	{
		CdcSnapshotRow *rows;

		if (cdc_snapshot_fetch(range->tracked.table_id, value - 1, value,
							   range->snapshot, &rows) > 0)
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%ssnapshot %lld of table \"%s\" does not exist",
					name, (long long) value, range->relname),
			 errdetail("The oldest readable snapshot is %lld, the newest is %lld.",
					   (long long) range->tracked.oldest, (long long) newest)));
}

/*
 * Raise an error if a snapshot is older than the retained history.
 */
static void
check_retained(CdcRange *range, int64 value)
{
	int64		oldest = range->tracked.oldest;
	CdcSnapshotRow *row;

	if (value >= oldest)
		return;

	/* history may have been given up because it has become unreadable */
	if (cdc_snapshot_fetch(range->tracked.table_id, oldest - 1, oldest,
						   range->snapshot, &row) == 0 ||
		row->kind != CDC_KIND_GAP)
		row = NULL;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("snapshot %lld of table \"%s\" is not retained any more",
					(long long) value, range->relname),
			 row && row->reason ?
			 errdetail("The oldest readable snapshot is %lld, a gap: %s.",
					   (long long) oldest, row->reason) :
			 errdetail("The oldest readable snapshot is %lld.",
					   (long long) oldest),
			 errhint("Rebuild the target from the full table.")));
}

/*
 * Raise an error if the start of the range has been expired since the range's
 * snapshot was taken.
 */
void
cdc_range_recheck(CdcRange *range)
{
	CdcTracked	now;

	AcceptInvalidationMessages();
	if (cdc_tracked_lookup(range->tracked.relid, &now) &&
		now.table_id == range->tracked.table_id)
	{
		range->tracked.oldest = Max(range->tracked.oldest, now.oldest);
		check_retained(range, range->start);
	}
}

/*
 * Raise an error because a segment is not there that snapshots of the range
 * have rows in.
 */
void
cdc_range_segment_missing(CdcRange *range, int32 segment)
{
	cdc_range_recheck(range);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("log of table \"%s\" is damaged", range->relname),
			 errdetail("Its segment %d does not exist.", segment),
			 errhint("Call cdc.untrack and cdc.track for the table, and rebuild the targets.")));
}

/*
 * Raise an error if there is a gap among the snapshots at positions first to
 * last - 1.
 */
static void
check_gaps(CdcRange *range, int first, int last)
{
	for (int i = first; i < last; i++)
	{
		CdcSnapshotRow *row = &range->snaps[i];

		if (row->kind == CDC_KIND_GAP)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("changelog of table \"%s\" has a gap at snapshot %lld",
							range->relname, (long long) row->snapshot_id),
					 errdetail("Reason: %s.", row->reason ? row->reason : "unknown"),
					 errhint("Rebuild the target from the full table and continue after snapshot %lld.",
							 (long long) row->snapshot_id)));
	}
}

/*
 * Start a range at the oldest content that can be told: that of the oldest
 * readable snapshot, or of the newest gap.
 */
static void
start_from_oldest(CdcRange *range)
{
	CdcSnapshotRow *rows;
	int			n;
	int			first = 0;

	n = cdc_snapshot_fetch(range->tracked.table_id, range->tracked.oldest - 1,
						   range->end, range->snapshot, &rows);
	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("table \"%s\" has no snapshot %lld",
						range->relname, (long long) range->tracked.oldest)));
	for (int i = 0; i < n; i++)
		if (rows[i].kind == CDC_KIND_GAP)
			first = i;

	range->start = rows[first].snapshot_id;
	range->start_time = rows[first].committed_at;
	range->snaps = rows + first + 1;
	range->nrange = range->nsnaps = n - first - 1;
}

/*
 * Load the snapshots after the range's end as well, which tell the content at
 * its start.  Raises an error if there is a gap among them.
 */
void
cdc_range_load_tail(CdcRange *range)
{
	CdcSnapshotRow *tail;
	CdcSnapshotRow *all;
	int			n;

	if (range->tail_loaded)
		return;
	n = cdc_snapshot_fetch(range->tracked.table_id, range->end, PG_INT64_MAX,
						   range->snapshot, &tail);
	all = MemoryContextAllocHuge(CurrentMemoryContext,
								 sizeof(CdcSnapshotRow) * (range->nrange + n + 1));
	if (range->nrange > 0)
		memcpy(all, range->snaps, sizeof(CdcSnapshotRow) * range->nrange);
	memcpy(all + range->nrange, tail, sizeof(CdcSnapshotRow) * n);
	pfree(tail);
	range->snaps = all;
	range->nsnaps = range->nrange + n;
	range->tail_loaded = true;
	check_gaps(range, range->nrange, range->nsnaps);
}

/*
 * Does a unique index that held all through the range, and before, prove that
 * no key occurs twice?
 *
 * If so, *nullable is set to the attribute numbers of the index columns: keys
 * with a NULL in one of them are not proven, unless the list is NIL.
 */
bool
cdc_range_keys_proven(CdcRange *range, Relation source,
					  const CdcRowCompare *cmp, List **nullable)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		proven = false;
	List	   *indexes = RelationGetIndexList(source);

	*nullable = NIL;
	ScanKeyInit(&key, Anum_cdc_unique_index_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(range->tracked.table_id));
	rel = table_open(cdc_catalog_oid(CDC_UNIQUE_INDEX), AccessShareLock);
	scan = systable_beginscan(rel, cdc_catalog_oid(CDC_UNIQUE_INDEX_PKEY), true,
							  NULL, 1, &key);
	while (!proven && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[Natts_cdc_unique_index];
		bool		nulls[Natts_cdc_unique_index];
		Oid			indexid;

		heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
		indexid = DatumGetObjectId(values[Anum_cdc_unique_index_index - 1]);
		if (DatumGetInt64(values[Anum_cdc_unique_index_since - 1]) <= range->start &&
			list_member_oid(indexes, indexid))
			proven = index_proves(range, source, indexid, cmp, nullable);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return proven;
}

/*
 * Does this index allow each key only once?
 */
static bool
index_proves(CdcRange *range, Relation source, Oid indexid,
			 const CdcRowCompare *cmp, List **nullable)
{
	Relation	index = index_open(indexid, AccessShareLock);
	Form_pg_index form = index->rd_index;
	bool		result;
	List	   *columns = NIL;

	result = form->indisunique && form->indisvalid &&
		RelationGetIndexPredicate(index) == NIL &&
		RelationGetIndexExpressions(index) == NIL;

	for (int i = 0; result && i < form->indnkeyatts; i++)
	{
		AttrNumber	attno = form->indkey.values[i];
		const CdcKeyColumn *column = NULL;
		TypeCacheEntry *type;

		for (int j = 0; j < cmp->nkeys; j++)
			if (cmp->keys[j].attno == attno)
				column = &cmp->keys[j];
		if (column == NULL)
		{
			result = false;
			break;
		}

		/* the index must mean the same by "equal" as we do */
		type = lookup_type_cache(getBaseType(TupleDescAttr(RelationGetDescr(source),
														   attno - 1)->atttypid),
								 TYPECACHE_EQ_OPR);
		if (get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
								index->rd_opcintype[i],
								BTEqualStrategyNumber) != type->eq_opr ||
			index->rd_indcollation[i] != column->collation)
			result = false;
		columns = lappend_int(columns, attno);
	}

	if (result)
		*nullable = form->indnullsnotdistinct ? NIL : columns;
	index_close(index, NoLock);
	return result;
}

/*
 * Raise serialization_failure if a relation that is to be read has got another
 * file since the transaction took its snapshot: TRUNCATE and rewrites by ALTER
 * TABLE leave nothing in it that the snapshot sees.
 */
void
cdc_range_check_storage(CdcRange *range, Relation rel)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		same;

	/* the transaction's own doing is something else */
	if ((!IsolationUsesXactSnapshot() && !range->pinned) ||
		rel->rd_createSubid != InvalidSubTransactionId ||
		cdc_relation_new_storage(rel))
		return;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationGetRelid(rel)));
	catalog = table_open(RelationRelationId, AccessShareLock);
	scan = systable_beginscan(catalog, ClassOidIndexId, true, range->snapshot,
							  1, &key);
	tuple = systable_getnext(scan);
	same = HeapTupleIsValid(tuple) &&
		((Form_pg_class) GETSTRUCT(tuple))->relfilenode == rel->rd_rel->relfilenode;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	if (!same)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to the changelog of table \"%s\"",
						range->relname),
				 errdetail("\"%s\" was rewritten or truncated after this transaction took its snapshot.",
						   RelationGetRelationName(rel)),
				 errhint("The transaction might succeed if retried.")));
}
