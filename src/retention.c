/*-------------------------------------------------------------------------
 *
 * retention.c
 *		Expiry of old snapshots, which gives their space back.
 *
 * cdc.expire_snapshots() raises the oldest readable snapshot of a table,
 * deletes the rows of the older ones from cdc.snapshot and drops the segments
 * of the log that no readable range needs any more.  A range (a, b] needs the
 * rows of the snapshots after a, so the oldest readable snapshot itself needs
 * none.  If the segment that is being written to begins with rows that are not
 * needed, the next one is started, so that it can be dropped later.
 *
 * Writers and readers are never waited for, and do not wait, see segment.c: a
 * segment in use stays until the next call.  A call is one transaction and has
 * all or no effect; cdc.expire_all() does the same for all tables of a user, in
 * transactions of its own, and also drops the segments that it has ended.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/retention.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "cdc_changelog.h"
#include "commit.h"
#include "consumer_catalog.h"
#include "horizon.h"
#include "segment.h"
#include "tracked.h"

/* Snapshot numbers looked at at a time, which bounds the memory in use */
#define EXPIRE_BATCH		10000

/* A segment is ended for the sake of so many blocks that are not needed */
#define WORTH_BLOCKS		128

/* How often and at what interval (ms) cdc.expire_all() tries segments in use */
#define BUSY_TRIES			100
#define BUSY_PAUSE			10L

/* What is to be kept */
typedef struct ExpireLimits
{
	bool		by_time;
	TimestampTz older_than;		/* snapshots committed since then */
	bool		by_count;
	int64		retain_last;	/* so many of the newest ones */
	bool		ignore_consumers;	/* else also what they have to read */
} ExpireLimits;

/* What was done, or would be */
typedef struct ExpireResult
{
	int64		oldest;
	int64		removed;
	int64		dropped;
	int64		bytes;
	int			busy;			/* segments that had to be left */
} ExpireResult;

PG_FUNCTION_INFO_V1(cdc_expire_snapshots);
PG_FUNCTION_INFO_V1(cdc_expire_all);

static void read_limits(FunctionCallInfo fcinfo, int firstarg,
						ExpireLimits *limits);
static void expire_table(Oid relid, const ExpireLimits *limits, bool dry_run,
						 ExpireResult *result);
static int64 choose_oldest(const CdcTracked *tracked,
						   const ExpireLimits *limits, int64 newest,
						   Snapshot snapshot);
static int64 nth_newest(const CdcTracked *tracked, int64 newest, int64 n,
						Snapshot snapshot);
static int64 remove_snapshots(int32 table_id, int64 before, bool dry_run);
static void drop_segments(const CdcTracked *tracked, bool dry_run,
						  ExpireResult *result);
static int	find_last_snapshots(const CdcTracked *tracked,
								CdcSegment *segments, int n);
static bool drop_segment(const CdcTracked *tracked, const CdcSegment *segment,
						 bool dry_run, ExpireResult *result);
static bool worth_ending(const CdcTracked *tracked);

/*
 * cdc.expire_snapshots(relation regclass, older_than timestamptz,
 *						retain_last bigint, dry_run boolean,
 *						ignore_consumers boolean)
 *
 * Returns one row.  Only the owner of the table may call it.
 */
Datum
cdc_expire_snapshots(PG_FUNCTION_ARGS)
{
	ExpireLimits limits;
	ExpireResult result;
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};
	bool		dry_run = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("table whose snapshots to expire must not be null")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	read_limits(fcinfo, 1, &limits);
	limits.ignore_consumers = !PG_ARGISNULL(4) && PG_GETARG_BOOL(4);
	if (!dry_run)
		PreventCommandIfReadOnly("cdc.expire_snapshots()");

	expire_table(PG_GETARG_OID(0), &limits, dry_run, &result);
	if (result.busy > 0)
		ereport(NOTICE,
				(errmsg_plural("%d segment of the log of table \"%s\" is in use and is left to the next call",
							   "%d segments of the log of table \"%s\" are in use and are left to the next call",
							   result.busy, result.busy,
							   get_rel_name(PG_GETARG_OID(0)))));

	values[0] = Int64GetDatum(result.oldest);
	values[1] = Int64GetDatum(result.removed);
	values[2] = Int64GetDatum(result.dropped);
	values[3] = Int64GetDatum(result.bytes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc),
													  values, nulls)));
}

/*
 * CALL cdc.expire_all(older_than timestamptz, retain_last bigint,
 *					   ignore_consumers boolean)
 *
 * Expires snapshots of all tracked tables that the caller owns, and commits
 * after each step.
 */
Datum
cdc_expire_all(PG_FUNCTION_ARGS)
{
	ExpireLimits limits;
	List	   *relids = NIL;
	ListCell   *lc;

	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		((CallContext *) fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("%s cannot be called in a transaction block or a function",
						"cdc.expire_all"),
				 errhint("Call it by itself, or use cdc.expire_snapshots.")));
	read_limits(fcinfo, 0, &limits);
	limits.ignore_consumers = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);
	PreventCommandIfReadOnly("cdc.expire_all()");

	/* this list outlives the transactions below */
	foreach(lc, cdc_tracked_list())
	{
		CdcTracked *tracked = lfirst(lc);

		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked->relid)) &&
			cdc_relation_ownercheck(tracked->relid, GetUserId()))
			relids = lappend_oid(relids, tracked->relid);
	}

	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	foreach(lc, relids)
	{
		/* The second time drops the segment that the first time has ended. */
		for (int i = 0; i < BUSY_TRIES; i++)
		{
			ExpireResult result;
			CdcTracked	tracked;

			EnsurePortalSnapshotExists();
			if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))) ||
				!cdc_tracked_lookup(lfirst_oid(lc), &tracked))
				break;
			expire_table(lfirst_oid(lc), &limits, false, &result);
			SPI_commit();
			if (i > 0 && result.busy == 0)
				break;
			if (i > 0)
			{
				(void) WaitLatch(MyLatch,
								 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								 BUSY_PAUSE, PG_WAIT_EXTENSION);
				ResetLatch(MyLatch);
			}
			CHECK_FOR_INTERRUPTS();
		}
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	PG_RETURN_VOID();
}

/*
 * Read the arguments older_than and retain_last.
 */
static void
read_limits(FunctionCallInfo fcinfo, int firstarg, ExpireLimits *limits)
{
	limits->by_time = !PG_ARGISNULL(firstarg);
	limits->by_count = !PG_ARGISNULL(firstarg + 1);
	if (!limits->by_time && !limits->by_count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("one of older_than and retain_last is needed")));
	if (limits->by_time)
		limits->older_than = PG_GETARG_TIMESTAMPTZ(firstarg);
	if (limits->by_count)
	{
		limits->retain_last = PG_GETARG_INT64(firstarg + 1);
		if (limits->retain_last < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("retain_last must be at least 1"),
					 errdetail("The newest snapshot is always kept.")));
	}
}

/*
 * Expire snapshots of one table.
 */
static void
expire_table(Oid relid, const ExpireLimits *limits, bool dry_run,
			 ExpireResult *result)
{
	CdcTracked	tracked;
	Snapshot	snapshot;
	int64		newest;

	memset(result, 0, sizeof(ExpireResult));
	cdc_tracked_require(relid, &tracked);
	if (!cdc_relation_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));

	/* This keeps the table as it is, and writers do not mind. */
	LockRelationOid(relid, AccessShareLock);
	cdc_tracked_require(relid, &tracked);
	if (!dry_run)
	{
		if (cdc_xact_changed(&tracked))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("cannot expire snapshots of table \"%s\" in a transaction that has changed it",
							get_rel_name(relid))));
		(void) cdc_segments_lock(tracked.table_id, true);
		cdc_tracked_require(relid, &tracked);
	}

	snapshot = cdc_horizon(&tracked, &newest);
	result->oldest = choose_oldest(&tracked, limits, newest, snapshot);
	UnregisterSnapshot(snapshot);

	result->removed = remove_snapshots(tracked.table_id, result->oldest, dry_run);
	if (result->oldest != tracked.oldest)
	{
		tracked.oldest = result->oldest;
		if (!dry_run)
			cdc_tracked_update(&tracked);
	}
	drop_segments(&tracked, dry_run, result);
	if (!dry_run && worth_ending(&tracked))
		(void) cdc_segment_start(&tracked, true);
}

/*
 * The snapshot that becomes the oldest readable one: the first that is not
 * expired.  A snapshot is expired if each limit that is given says so, and all
 * before it are; the newest complete one never is, nor is one that a consumer
 * continues from.
 */
static int64
choose_oldest(const CdcTracked *tracked, const ExpireLimits *limits,
			  int64 newest, Snapshot snapshot)
{
	int64		keep_from = newest;
	int64		found = -1;
	MemoryContext batch;

	if (limits->by_count)
		keep_from = nth_newest(tracked, newest, limits->retain_last, snapshot);
	if (!limits->ignore_consumers)
	{
		int64		position = cdc_consumer_oldest_position(tracked->table_id);

		if (position >= 0)
			keep_from = Min(keep_from, position);
	}
	keep_from = Max(keep_from, tracked->oldest);
	if (!limits->by_time)
		return keep_from;

	batch = AllocSetContextCreate(CurrentMemoryContext, "cdc_changelog expiry",
								  ALLOCSET_DEFAULT_SIZES);
	for (int64 after = tracked->oldest - 1;
		 after < keep_from && found < 0; after += EXPIRE_BATCH)
	{
		MemoryContext oldcontext = MemoryContextSwitchTo(batch);
		CdcSnapshotRow *rows;
		int			n = cdc_snapshot_fetch(tracked->table_id, after,
										   Min(keep_from, after + EXPIRE_BATCH),
										   snapshot, &rows);

		for (int i = 0; i < n && found < 0; i++)
			if (rows[i].committed_at >= limits->older_than)
				found = rows[i].snapshot_id;
		MemoryContextSwitchTo(oldcontext);
		MemoryContextReset(batch);
	}
	MemoryContextDelete(batch);
	return found < 0 ? keep_from : found;
}

/*
 * The number of the n-th newest snapshot, or of the oldest one if there are
 * not so many.
 */
static int64
nth_newest(const CdcTracked *tracked, int64 newest, int64 n,
		   Snapshot snapshot)
{
	Relation	rel = table_open(cdc_catalog_oid(CDC_SNAPSHOT), AccessShareLock);
	Relation	index = index_open(cdc_catalog_oid(CDC_SNAPSHOT_PKEY), AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple = NULL;
	int64		result = tracked->oldest;

	ScanKeyInit(&key[0], Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	ScanKeyInit(&key[1], Anum_cdc_snapshot_snapshot_id,
				BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(newest));
	scan = systable_beginscan_ordered(rel, index, snapshot, 2, key);
	while (n > 0)
	{
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		tuple = systable_getnext_ordered(scan, BackwardScanDirection);
		if (!HeapTupleIsValid(tuple))
			break;
		n--;
		result = DatumGetInt64(heap_getattr(tuple, Anum_cdc_snapshot_snapshot_id,
											RelationGetDescr(rel), &isnull));
	}
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Delete the rows of the snapshots before the given one, and return how many
 * there were.
 */
static int64
remove_snapshots(int32 table_id, int64 before, bool dry_run)
{
	Relation	rel = table_open(cdc_catalog_oid(CDC_SNAPSHOT), RowExclusiveLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	int64		count = 0;

	ScanKeyInit(&key[0], Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(table_id));
	ScanKeyInit(&key[1], Anum_cdc_snapshot_snapshot_id, BTLessStrategyNumber,
				F_INT8LT, Int64GetDatum(before));
	scan = systable_beginscan(rel, cdc_catalog_oid(CDC_SNAPSHOT_PKEY), true,
							  NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CHECK_FOR_INTERRUPTS();
		if (!dry_run)
			CatalogTupleDelete(rel, &tuple->t_self);
		count++;
	}
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	if (!dry_run)
		CommandCounterIncrement();
	return count;
}

/*
 * Drop the segments that hold no row of a snapshot after the oldest readable
 * one.  The newest segment stays, and so does any that is in use.
 *
 * A segment that is not the newest and that nobody has locked for writing gets
 * no more rows; what was written there is committed by now, or rolled back.
 * From then on the newest snapshot that has rows in it is known for good.
 */
static void
drop_segments(const CdcTracked *tracked, bool dry_run, ExpireResult *result)
{
	CdcSegment *segments;
	CdcSegment *ended;
	int			n = cdc_segments_fetch(tracked->table_id, &segments);
	int			nended = 0;

	ended = palloc(sizeof(CdcSegment) * (n + 1));
	for (int i = 0; i < n; i++)
	{
		if (segments[i].segment == tracked->segment ||
			segments[i].last_snapshot >= 0)
			continue;
		if (dry_run ||
			ConditionalLockRelationOid(segments[i].logrelid, ShareLock))
			ended[nended++] = segments[i];
		else
			result->busy++;
	}

	if (nended > 0)
	{
		nended = find_last_snapshots(tracked, ended, nended);
		for (int i = 0; i < nended; i++)
		{
			for (int j = 0; j < n; j++)
				if (segments[j].segment == ended[i].segment)
					segments[j] = ended[i];
			if (!dry_run)
				cdc_segment_update(tracked->table_id, &ended[i]);
		}
	}

	for (int i = 0; i < n; i++)
	{
		if (segments[i].segment == tracked->segment ||
			segments[i].last_snapshot < 0 ||
			segments[i].last_snapshot > tracked->oldest)
			continue;
		if (!drop_segment(tracked, &segments[i], dry_run, result))
			result->busy++;
	}
	pfree(ended);
	pfree(segments);
}

/*
 * Find the newest snapshot that has rows in each of the given segments, of
 * those after the oldest readable one, which stands for all before it.  Returns
 * the number of segments.
 */
static int
find_last_snapshots(const CdcTracked *tracked, CdcSegment *segments, int n)
{
	Relation	rel = table_open(cdc_catalog_oid(CDC_SNAPSHOT), AccessShareLock);
	Relation	index = index_open(cdc_catalog_oid(CDC_SNAPSHOT_PKEY), AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	int			unknown = n;

	ScanKeyInit(&key[0], Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	ScanKeyInit(&key[1], Anum_cdc_snapshot_snapshot_id,
				BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(tracked->oldest));
	scan = systable_beginscan_ordered(rel, index, snapshot, 2, key);
	while (unknown > 0 &&
		   (tuple = systable_getnext_ordered(scan, BackwardScanDirection)) != NULL)
	{
		bool		isnull;
		int32		segment;

		CHECK_FOR_INTERRUPTS();
		segment = DatumGetInt32(heap_getattr(tuple, Anum_cdc_snapshot_segment,
											 RelationGetDescr(rel), &isnull));
		for (int i = 0; i < n; i++)
		{
			if (segments[i].segment == segment && segments[i].last_snapshot < 0)
			{
				segments[i].last_snapshot =
					DatumGetInt64(heap_getattr(tuple,
											   Anum_cdc_snapshot_snapshot_id,
											   RelationGetDescr(rel), &isnull));
				unknown--;
			}
		}
	}
	systable_endscan_ordered(scan);
	UnregisterSnapshot(snapshot);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);

	for (int i = 0; i < n; i++)
		if (segments[i].last_snapshot < 0)
			segments[i].last_snapshot = tracked->oldest;
	return n;
}

/*
 * Drop one segment.  Returns false if it is in use.  Raises
 * dependent_objects_still_exist where somebody has made something that depends
 * on it.
 */
static bool
drop_segment(const CdcTracked *tracked, const CdcSegment *segment,
			 bool dry_run, ExpireResult *result)
{
	ObjectAddress object;
	CdcPrivileges saved;
	bool		exists;

	if (!dry_run &&
		!ConditionalLockRelationOid(segment->logrelid, AccessExclusiveLock))
		return false;

	exists = SearchSysCacheExists1(RELOID, ObjectIdGetDatum(segment->logrelid));
	result->dropped++;
	if (exists)
		result->bytes +=
			DatumGetInt64(DirectFunctionCall1(pg_total_relation_size,
											  ObjectIdGetDatum(segment->logrelid)));
	if (dry_run)
		return true;

	cdc_segment_delete(tracked->table_id, segment->segment);
	if (exists)
	{
		ObjectAddressSet(object, RelationRelationId, segment->logrelid);
		cdc_raise_privileges(&saved);
		performDeletion(&object, DROP_RESTRICT, 0);
		cdc_restore_privileges(&saved);
	}
	return true;
}

/*
 * Does the segment that is being written to begin with rows that are not
 * needed any more, enough of them that it is worth having it dropped some day?
 */
static bool
worth_ending(const CdcTracked *tracked)
{
	Relation	log = table_open(tracked->logrelid, AccessShareLock);
	int64		nblocks = RelationGetNumberOfBlocks(log);
	int64		unneeded = nblocks;
	int64		after = tracked->oldest;
	int64		last = cdc_sequence_last_value(tracked->seqid);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	bool		found = false;

	table_close(log, AccessShareLock);

	/* up to where the first snapshot begins that is needed */
	while (!found && after < last)
	{
		CdcSnapshotRow *rows;
		int			n;

		n = cdc_snapshot_fetch(tracked->table_id, after, after + 100, snapshot,
							   &rows);
		for (int i = 0; i < n && !found; i++)
		{
			if (rows[i].nruns == 0)
				continue;
			found = true;
			unneeded = rows[i].segment == tracked->segment ?
				Min(nblocks, rows[i].runs[0].first) : 0;
		}
		after += 100;
	}
	UnregisterSnapshot(snapshot);

	return unneeded >= Min(WORTH_BLOCKS, cdc_segment_size / (BLCKSZ / 1024));
}
