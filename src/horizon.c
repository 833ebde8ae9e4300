/*-------------------------------------------------------------------------
 *
 * horizon.c
 *		The newest complete snapshot of a tracked table.
 *
 * A transaction draws the snapshot number of each table it changed while it
 * commits, and becomes visible a little later; with PREPARE TRANSACTION much
 * later.  So the largest number that a reader sees can have smaller ones
 * before it that are still to come.  The horizon is the largest number such
 * that every number up to it is committed and visible to the reader, or was
 * rolled back and will never come.
 *
 * The protocol: nextval() takes RowExclusiveLock on the sequence before it
 * draws, and the lock stays until the transaction has ended, which is after
 * it has become visible to others (commit.c does nothing else with the
 * sequence).  A reader
 *
 * 1. reads the sequence's last value h,
 * 2. waits until every transaction that holds a conflicting lock at this
 *	  moment has ended,
 * 3. takes an MVCC snapshot.
 *
 * Every number up to h was drawn before step 1 by a transaction that already
 * held the lock then, so after step 2 all of them have ended, and those that
 * committed are visible in the snapshot of step 3.  The reader waits for the
 * transactions, it does not queue for the lock: writers never wait for it.
 *
 * The wait is bounded by cdc_changelog.horizon_timeout.  If transactions are
 * left after it, their numbers are looked up: the row of cdc.snapshot that a
 * transaction in progress has inserted is found with a dirty snapshot.  The
 * horizon is then below the smallest of them.  A transaction whose row is not
 * there yet is accounted for with xids: a row of cdc.snapshot says which xid
 * was the next to be assigned when it drew its number, so all smaller numbers
 * were drawn by transactions with smaller xids.
 *
 * On a standby neither locks nor the sequence's value can be relied on; only
 * this last rule and the absence of holes are used there.
 *
 * Rows that come out of a dump have been drawn on another server: the xids in
 * them mean nothing here, and nobody who is running here can have drawn a
 * smaller number.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/horizon.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "horizon.h"

/* Scan of the rows of one table in cdc.snapshot, newest first */
typedef struct SnapshotScan
{
	Relation	rel;
	Relation	index;
	SysScanDesc scan;
	ScanKeyData key[2];
} SnapshotScan;

static int	wait_for_drawers(Oid seqid, int timeout);
static int64 hold_back(const CdcTracked *tracked, int64 last, int unfinished,
					   int64 upto, Snapshot snapshot);
static int64 below_unfinished(const CdcTracked *tracked, int64 last,
							  int unfinished, Snapshot snapshot);
static int64 standby_horizon(const CdcTracked *tracked, Snapshot snapshot);
static void check_all_visible(const CdcTracked *tracked, int64 upto,
							  Snapshot snapshot, Snapshot latest);

/*
 * Begin a scan of cdc.snapshot for the numbers up to "upto", newest first.
 */
static void
begin_snapshot_scan(SnapshotScan *s, const CdcTracked *tracked, int64 upto,
					Snapshot snapshot)
{
	s->rel = table_open(cdc_catalog_oid(CDC_SNAPSHOT), AccessShareLock);
	s->index = index_open(cdc_catalog_oid(CDC_SNAPSHOT_PKEY), AccessShareLock);
	ScanKeyInit(&s->key[0], Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	ScanKeyInit(&s->key[1], Anum_cdc_snapshot_snapshot_id,
				BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(upto));
	s->scan = systable_beginscan_ordered(s->rel, s->index, snapshot, 2, s->key);
}

/*
 * Next row of the scan; false at the end.  *xmin, if not NULL, is set to the
 * transaction that inserted the row.
 */
static bool
next_snapshot_row(SnapshotScan *s, CdcSnapshotRow *row, TransactionId *xmin)
{
	HeapTuple	tuple;

	CHECK_FOR_INTERRUPTS();
	tuple = systable_getnext_ordered(s->scan, BackwardScanDirection);
	if (!HeapTupleIsValid(tuple))
		return false;
	cdc_snapshot_decode(tuple, RelationGetDescr(s->rel), row);
	if (xmin)
		*xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	return true;
}

static void
end_snapshot_scan(SnapshotScan *s)
{
	systable_endscan_ordered(s->scan);
	index_close(s->index, AccessShareLock);
	table_close(s->rel, AccessShareLock);
}

/*
 * The newest complete snapshot of a tracked table, that is, the largest
 * number up to the horizon that exists, in *newest.
 *
 * "upto" limits what the caller is going to read (PG_INT64_MAX: everything);
 * it matters in REPEATABLE READ and above only.
 *
 * Returns a registered MVCC snapshot which sees everything up to there; the
 * caller unregisters it.  In REPEATABLE READ and above it is the
 * transaction's snapshot, and serialization_failure is raised if a number up
 * to the horizon is committed but not visible to it.
 *
 * May wait up to cdc_changelog.horizon_timeout, and raises a NOTICE if that
 * was not enough.
 */
Snapshot
cdc_horizon_upto(const CdcTracked *tracked, int64 upto, int64 *newest)
{
	Snapshot	latest;
	Snapshot	result;
	int64		last;
	int			unfinished;

	if (RecoveryInProgress())
	{
		result = RegisterSnapshot(GetTransactionSnapshot());
		*newest = standby_horizon(tracked, result);
		return result;
	}

	last = cdc_sequence_last_value(tracked->seqid);
	unfinished = wait_for_drawers(tracked->seqid, cdc_horizon_timeout);
	latest = RegisterSnapshot(GetLatestSnapshot());
	if (unfinished > 0)
		last = hold_back(tracked, last, unfinished, upto, latest);

	if (!IsolationUsesXactSnapshot())
		result = latest;
	else
	{
		result = RegisterSnapshot(GetTransactionSnapshot());
		check_all_visible(tracked, Min(last, upto), result, latest);
		UnregisterSnapshot(latest);
	}

	*newest = cdc_newest_visible(tracked, last, result);
	return result;
}

/*
 * The horizons of several tables, of which "tracked" is given and "newest" is
 * set, as of one snapshot.
 *
 * They do not fit together yet, see cut.c; for the rest this is as
 * cdc_horizon().  Not for a standby.
 */
Snapshot
cdc_horizon_several(int ntables, CdcCutTable *tables)
{
	Snapshot	latest;
	Snapshot	result;
	int		   *unfinished = palloc(sizeof(int) * ntables);
	TimestampTz start = GetCurrentTimestamp();

	for (int i = 0; i < ntables; i++)
		tables[i].newest = cdc_sequence_last_value(tables[i].tracked.seqid);
	for (int i = 0; i < ntables; i++)
	{
		long		passed = TimestampDifferenceMilliseconds(start,
															 GetCurrentTimestamp());

		unfinished[i] = wait_for_drawers(tables[i].tracked.seqid,
										 Max(cdc_horizon_timeout - passed, 0));
	}

	latest = RegisterSnapshot(GetLatestSnapshot());
	for (int i = 0; i < ntables; i++)
		if (unfinished[i] > 0)
			tables[i].newest = hold_back(&tables[i].tracked, tables[i].newest,
										 unfinished[i], PG_INT64_MAX, latest);
	pfree(unfinished);

	if (!IsolationUsesXactSnapshot())
		result = latest;
	else
	{
		result = RegisterSnapshot(GetTransactionSnapshot());
		for (int i = 0; i < ntables; i++)
			check_all_visible(&tables[i].tracked, tables[i].newest, result,
							  latest);
		UnregisterSnapshot(latest);
	}
	for (int i = 0; i < ntables; i++)
		tables[i].newest = cdc_newest_visible(&tables[i].tracked,
											  tables[i].newest, result);
	return result;
}

/*
 * Raise serialization_failure if a transaction draws, or has drawn, a number up
 * to "upto" that has committed but is not visible to the snapshot, or still
 * may commit.
 */
void
cdc_horizon_check_visible(const CdcTracked *tracked, int64 upto,
						  Snapshot snapshot)
{
	int			unfinished = wait_for_drawers(tracked->seqid,
											  cdc_horizon_timeout);
	Snapshot	latest = RegisterSnapshot(GetLatestSnapshot());

	if (unfinished > 0 &&
		below_unfinished(tracked, upto, unfinished, latest) < upto)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to the changelog of table \"%s\"",
						get_rel_name(tracked->relid)),
				 errdetail("A transaction that is prepared or still committing holds a snapshot number up to %lld.",
						   (long long) upto),
				 errhint("The transaction might succeed if retried.")));
	check_all_visible(tracked, upto, snapshot, latest);
	UnregisterSnapshot(latest);
}

/*
 * The horizon where "unfinished" transactions hold numbers up to "last", with a
 * NOTICE if somebody who reads up to "upto" gets less for that.
 */
static int64
hold_back(const CdcTracked *tracked, int64 last, int unfinished, int64 upto,
		  Snapshot snapshot)
{
	int64		limit = below_unfinished(tracked, last, unfinished, snapshot);

	if (limit < last && upto > limit)
		ereport(NOTICE,
				(errmsg("changes of table \"%s\" after snapshot %lld are held back",
						get_rel_name(tracked->relid), (long long) limit),
				 errdetail("A transaction that is prepared or still committing holds a snapshot number.")));
	return limit;
}

/*
 * As cdc_horizon_upto, without a limit.
 */
Snapshot
cdc_horizon(const CdcTracked *tracked, int64 *newest)
{
	return cdc_horizon_upto(tracked, PG_INT64_MAX, newest);
}

/*
 * Last value that was drawn from a sequence, -1 where none was, which is so only
 * in the middle of a restore, or where there is no such sequence any more.
 *
 * This reads the sequence's only tuple like nextval() does, without its
 * privilege check: the readers have no rights on the sequence.
 */
int64
cdc_sequence_last_value(Oid seqid)
{
	Relation	rel = try_relation_open(seqid, AccessShareLock);
	Buffer		buf;
	Page		page;
	ItemId		lp;
	HeapTupleData tuple;
	Form_pg_sequence_data data;
	int64		result;

	if (rel == NULL)
		return -1;				/* dropped meanwhile */
	if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence",
						RelationGetRelationName(rel))));
	buf = ReadBuffer(rel, 0);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	lp = PageGetItemId(page, FirstOffsetNumber);
	Assert(ItemIdIsNormal(lp));
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, lp);
	tuple.t_len = ItemIdGetLength(lp);
	data = (Form_pg_sequence_data) GETSTRUCT(&tuple);
	result = data->is_called ? data->last_value : -1;
	UnlockReleaseBuffer(buf);
	relation_close(rel, AccessShareLock);
	return result;
}

/*
 * Draw a value from a sequence, without asking for privileges.
 *
 * With wal_level = minimal nothing is logged of a sequence before the
 * transaction that creates it commits, but nextval() marks values as logged in
 * advance nevertheless, and they would be drawn once more after a crash.
 * setval() leaves no such mark.
 */
int64
cdc_sequence_next(Oid seqid)
{
	int64		result = nextval_internal(seqid, false);
	Relation	rel = relation_open(seqid, NoLock);

	if (!RelationNeedsWAL(rel))
	{
		Oid			userid;
		int			sec_context;

		GetUserIdAndSecContext(&userid, &sec_context);
		SetUserIdAndSecContext(rel->rd_rel->relowner,
							   sec_context | SECURITY_LOCAL_USERID_CHANGE);
		(void) DirectFunctionCall2(setval_oid, ObjectIdGetDatum(seqid),
								   Int64GetDatum(result));
		SetUserIdAndSecContext(userid, sec_context);
	}
	relation_close(rel, NoLock);
	return result;
}

/*
 * Wait until the transactions that have drawn a number from the sequence, and
 * are still running, have ended, at most "timeout" milliseconds.  Returns how
 * many are left.
 */
static int
wait_for_drawers(Oid seqid, int timeout)
{
	LOCKTAG		tag;
	VirtualTransactionId *vxids;
	int			count;
	TimestampTz start = 0;
	int			rounds = 0;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, seqid);
	vxids = GetLockConflicts(&tag, ShareLock, &count);

	for (;;)
	{
		int			left = 0;

		for (int i = 0; i < count; i++)
			if (!VirtualXactLock(vxids[i], false))
				vxids[left++] = vxids[i];
		count = left;
		if (count == 0)
			break;

		if (start == 0)
			start = GetCurrentTimestamp();
		else if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(), timeout))
			break;
		if (timeout == 0)
			break;

		/* Commits are short: look again soon at first, then less often. */
		if (rounds++ < 20)
			pg_usleep(100L);
		else
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 1L, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
		}
		CHECK_FOR_INTERRUPTS();
	}
	return count;
}

/*
 * Have all transactions ended that drew smaller numbers than that of a visible
 * row, if no transaction older than "oldest_running" is running?
 */
static inline bool
smaller_ones_ended(const CdcSnapshotRow *row, uint64 oldest_running)
{
	return row->next_xid <= oldest_running || !row->native;
}

/*
 * The horizon where "unfinished" transactions hold numbers up to "last".
 */
static int64
below_unfinished(const CdcTracked *tracked, int64 last, int unfinished,
				 Snapshot snapshot)
{
	SnapshotData dirty;
	SnapshotScan scan;
	CdcSnapshotRow row;
	int64		limit = last;
	int64		safe = tracked->oldest;
	int			found = 0;
	uint64		oldest_running;
	FullTransactionId next = ReadNextFullTransactionId();

	/* Widen the snapshot's xmin: it is not newer than the next xid. */
	oldest_running = U64FromFullTransactionId(next) -
		(uint32) (XidFromFullTransactionId(next) - snapshot->xmin);

	InitDirtySnapshot(dirty);
	begin_snapshot_scan(&scan, tracked, last, &dirty);
	while (next_snapshot_row(&scan, &row, NULL))
	{
		if (TransactionIdIsValid(dirty.xmin))
		{
			found++;
			limit = row.snapshot_id - 1;
		}
		else if (smaller_ones_ended(&row, oldest_running))
		{
			safe = row.snapshot_id;
			break;
		}
	}
	end_snapshot_scan(&scan);

	/* Somebody's row is not there yet, so we do not know its number. */
	if (found < unfinished)
		limit = Min(limit, safe);
	return limit;
}

/*
 * The horizon on a standby: start from the newest snapshot that was drawn
 * before any transaction that is still running got its xid, and go on from
 * there as long as there is no hole.
 */
static int64
standby_horizon(const CdcTracked *tracked, Snapshot snapshot)
{
	SnapshotScan scan;
	CdcSnapshotRow row;
	FullTransactionId next = ReadNextFullTransactionId();
	uint64		oldest_running;
	int64		horizon = tracked->oldest;
	int64		candidate = -1; /* newest number of the run without hole */
	int64		previous = -1;

	oldest_running = U64FromFullTransactionId(next) -
		(uint32) (XidFromFullTransactionId(next) - snapshot->xmin);

	begin_snapshot_scan(&scan, tracked, PG_INT64_MAX, snapshot);
	while (next_snapshot_row(&scan, &row, NULL))
	{
		if (previous < 0 || row.snapshot_id != previous - 1)
			candidate = row.snapshot_id;
		previous = row.snapshot_id;
		horizon = candidate;
		if (smaller_ones_ended(&row, oldest_running))
			break;
	}
	end_snapshot_scan(&scan);
	return horizon;
}

/*
 * The largest number up to "upto" that the snapshot sees.
 */
int64
cdc_newest_visible(const CdcTracked *tracked, int64 upto, Snapshot snapshot)
{
	SnapshotScan scan;
	CdcSnapshotRow row;
	int64		result = tracked->oldest;

	begin_snapshot_scan(&scan, tracked, upto, snapshot);
	if (next_snapshot_row(&scan, &row, NULL))
		result = row.snapshot_id;
	end_snapshot_scan(&scan);
	return result;
}

/*
 * Raise serialization_failure if a number up to "upto" is visible to the
 * latest snapshot but not to the transaction's.
 */
static void
check_all_visible(const CdcTracked *tracked, int64 upto, Snapshot snapshot,
				  Snapshot latest)
{
	SnapshotScan scan;
	CdcSnapshotRow row;
	TransactionId xmin;
	FullTransactionId next = ReadNextFullTransactionId();
	uint64		oldest_running;

	oldest_running = U64FromFullTransactionId(next) -
		(uint32) (XidFromFullTransactionId(next) - snapshot->xmin);

	begin_snapshot_scan(&scan, tracked, upto, latest);
	while (next_snapshot_row(&scan, &row, &xmin))
	{
		if (!TransactionIdIsCurrentTransactionId(xmin) &&
			XidInMVCCSnapshot(xmin, snapshot))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access to the changelog of table \"%s\"",
							get_rel_name(tracked->relid)),
					 errdetail("Snapshot %lld was committed after this transaction took its snapshot.",
							   (long long) row.snapshot_id),
					 errhint("The transaction might succeed if retried.")));
		if (smaller_ones_ended(&row, oldest_running))
			break;
	}
	end_snapshot_scan(&scan);
}

/*
 * The newest snapshot, not newer than "newest", that was committed at or
 * before the given time; -1 where there is none.
 */
int64
cdc_snapshot_before(const CdcTracked *tracked, TimestampTz at, int64 newest,
					Snapshot snapshot)
{
	SnapshotScan scan;
	CdcSnapshotRow row;
	int64		result = -1;

	begin_snapshot_scan(&scan, tracked, newest, snapshot);
	while (next_snapshot_row(&scan, &row, NULL))
	{
		if (row.committed_at <= at)
		{
			result = row.snapshot_id;
			break;
		}
	}
	end_snapshot_scan(&scan);
	return result;
}

/*
 * May the current user know about the snapshots of a table, which tell when it
 * changed and how much, but not what?  Its owner may, and whoever may read at
 * least one of its columns.
 */
bool
cdc_may_see_snapshots(Oid relid)
{
	Oid			userid = GetUserId();

	return pg_class_aclcheck(relid, userid, ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck_all(relid, userid, ACL_SELECT,
								  ACLMASK_ANY) == ACLCHECK_OK ||
		cdc_relation_ownercheck(relid, userid);
}

/*
 * May the current user read all rows and columns of the table?  Raises
 * insufficient_privilege if not.
 */
void
cdc_check_readable(Oid relid)
{
	Oid			userid = GetUserId();
	bool		allowed;

	allowed = pg_class_aclcheck(relid, userid, ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck_all(relid, userid, ACL_SELECT,
								  ACLMASK_ALL) == ACLCHECK_OK;
	if (!allowed)
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("changelog of table \"%s\" cannot be read under row-level security",
						get_rel_name(relid)),
				 errdetail("The policies of the table would hide rows from the current user."),
				 errhint("Read it as a role that bypasses row-level security, and give others a view.")));
}
