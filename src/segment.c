/*-------------------------------------------------------------------------
 *
 * segment.c
 *		The segments that the log of a tracked table consists of.
 *
 * A log is a series of heap tables.  New transactions write to the newest one,
 * which cdc.tracked_table names; a transaction stays in the segment it began
 * to write to.  Old segments are dropped as a whole when all snapshots that
 * have rows in them are expired (retention.c): the space goes back to the
 * operating system, and nobody has to wait for it.
 *
 * How that goes without a lock that writers would wait for:
 *
 * - Whoever starts or drops segments of a table holds a lock on them that is
 *	 of no interest to anybody else (cdc_segments_lock), until the end of the
 *	 transaction.
 * - Starting a segment invalidates the relcache entry of the table, which
 *	 makes the sessions look up the newest segment anew.  Those that have not
 *	 seen the message yet may go on with the segment before.
 * - A writer pins the segment before its first row goes there: it locks it and
 *	 then makes sure that it still is the newest one.  Taking a lock brings in
 *	 all messages sent so far.  So once the transaction that started the next
 *	 segment has ended, nobody pins the one before any more.
 * - A segment is dropped only when it is not the newest, and its lock can be
 *	 had at once: then nobody has it pinned either, and all that was written to
 *	 it is committed and visible, or was rolled back.  A reader that still uses
 *	 it just puts this off to the next time.
 *
 * A segment's rows can be told from rows that somebody changed or added by
 * hand: the latter have another inserting transaction than the snapshot they
 * claim to belong to.  Where the extension itself has a segment rewritten,
 * this is recorded with it.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/segment.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"

#include "log.h"
#include "segment.h"

static SysScanDesc begin_scan(Relation *rel, ScanKey key, int32 table_id,
							  const int32 *segment, LOCKMODE lockmode);
static void end_scan(SysScanDesc scan, Relation rel, LOCKMODE lockmode);
static void decode_segment(HeapTuple tuple, TupleDesc desc, CdcSegment *row);

/*
 * Lock the segments of a table against others that start or drop some, until
 * the end of the transaction.  Returns false if that would take waiting, and
 * "wait" is false.
 */
bool
cdc_segments_lock(int32 table_id, bool wait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, cdc_catalog_oid(CDC_TRACKED_TABLE),
					   (uint32) table_id, 0);
	if (LockAcquire(&tag, ExclusiveLock, false, !wait) == LOCKACQUIRE_NOT_AVAIL)
		return false;

	/* what others have done while we waited */
	AcceptInvalidationMessages();
	return true;
}

/*
 * Begin a scan of the segments of a table, or of one of them.
 */
static SysScanDesc
begin_scan(Relation *rel, ScanKey key, int32 table_id, const int32 *segment,
		   LOCKMODE lockmode)
{
	int			nkeys = 1;

	ScanKeyInit(&key[0], Anum_cdc_log_segment_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(table_id));
	if (segment)
	{
		ScanKeyInit(&key[1], Anum_cdc_log_segment_segment,
					BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(*segment));
		nkeys = 2;
	}
	*rel = table_open(cdc_catalog_oid(CDC_LOG_SEGMENT), lockmode);
	return systable_beginscan(*rel, cdc_catalog_oid(CDC_LOG_SEGMENT_PKEY), true,
							  NULL, nkeys, key);
}

static void
end_scan(SysScanDesc scan, Relation rel, LOCKMODE lockmode)
{
	systable_endscan(scan);
	table_close(rel, lockmode);
}

/*
 * Take a row of cdc.log_segment apart.
 */
static void
decode_segment(HeapTuple tuple, TupleDesc desc, CdcSegment *row)
{
	Datum		values[Natts_cdc_log_segment];
	bool		nulls[Natts_cdc_log_segment];

	heap_deform_tuple(tuple, desc, values, nulls);
	row->segment = DatumGetInt32(values[Anum_cdc_log_segment_segment - 1]);
	row->logrelid = DatumGetObjectId(values[Anum_cdc_log_segment_log_table - 1]);
	row->last_snapshot = nulls[Anum_cdc_log_segment_last_snapshot - 1] ? -1 :
		DatumGetInt64(values[Anum_cdc_log_segment_last_snapshot - 1]);
	row->rewritten_xid = nulls[Anum_cdc_log_segment_rewritten - 1] ? 0 :
		DatumGetUInt64(values[Anum_cdc_log_segment_rewritten - 1]);
	row->rewritten_next = nulls[Anum_cdc_log_segment_rewritten_next - 1] ? 0 :
		DatumGetUInt64(values[Anum_cdc_log_segment_rewritten_next - 1]);
}

/*
 * Read the segments of a table, oldest first.  Returns how many; the array is
 * allocated in the current memory context.
 */
int
cdc_segments_fetch(int32 table_id, CdcSegment **segments)
{
	Relation	rel;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	int			n = 0;
	int			space = 8;
	CdcSegment *result = palloc(sizeof(CdcSegment) * space);

	scan = begin_scan(&rel, key, table_id, NULL, AccessShareLock);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		int			i = n;

		if (n == space)
		{
			space *= 2;
			result = repalloc(result, sizeof(CdcSegment) * space);
		}
		decode_segment(tuple, RelationGetDescr(rel), &result[n++]);

		/* an index scan brings them in order, but it may not be one */
		for (; i > 0 && result[i - 1].segment > result[i].segment; i--)
		{
			CdcSegment	swap = result[i];

			result[i] = result[i - 1];
			result[i - 1] = swap;
		}
	}
	end_scan(scan, rel, AccessShareLock);
	*segments = result;
	return n;
}

/*
 * Add a row to cdc.log_segment for the segment that a table writes to.
 */
void
cdc_segment_insert(const CdcTracked *tracked)
{
	Datum		values[Natts_cdc_log_segment] = {0};
	bool		nulls[Natts_cdc_log_segment];
	Relation	rel;

	memset(nulls, true, sizeof(nulls));
	values[Anum_cdc_log_segment_table_id - 1] = Int32GetDatum(tracked->table_id);
	nulls[Anum_cdc_log_segment_table_id - 1] = false;
	values[Anum_cdc_log_segment_segment - 1] = Int32GetDatum(tracked->segment);
	nulls[Anum_cdc_log_segment_segment - 1] = false;
	values[Anum_cdc_log_segment_log_table - 1] = ObjectIdGetDatum(tracked->logrelid);
	nulls[Anum_cdc_log_segment_log_table - 1] = false;

	rel = table_open(cdc_catalog_oid(CDC_LOG_SEGMENT), RowExclusiveLock);
	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values,
											nulls));
	table_close(rel, RowExclusiveLock);
}

/*
 * Change what may change in a row of cdc.log_segment: all that is not its
 * identity.
 */
void
cdc_segment_update(int32 table_id, const CdcSegment *segment)
{
	Datum		values[Natts_cdc_log_segment] = {0};
	bool		nulls[Natts_cdc_log_segment] = {0};
	bool		replaces[Natts_cdc_log_segment] = {0};
	Relation	rel;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	values[Anum_cdc_log_segment_last_snapshot - 1] = Int64GetDatum(segment->last_snapshot);
	nulls[Anum_cdc_log_segment_last_snapshot - 1] = segment->last_snapshot < 0;
	replaces[Anum_cdc_log_segment_last_snapshot - 1] = true;
	values[Anum_cdc_log_segment_rewritten - 1] = UInt64GetDatum(segment->rewritten_xid);
	nulls[Anum_cdc_log_segment_rewritten - 1] = segment->rewritten_next == 0;
	replaces[Anum_cdc_log_segment_rewritten - 1] = true;
	values[Anum_cdc_log_segment_rewritten_next - 1] = UInt64GetDatum(segment->rewritten_next);
	nulls[Anum_cdc_log_segment_rewritten_next - 1] = segment->rewritten_next == 0;
	replaces[Anum_cdc_log_segment_rewritten_next - 1] = true;

	scan = begin_scan(&rel, key, table_id, &segment->segment, RowExclusiveLock);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		tuple = heap_modify_tuple(tuple, RelationGetDescr(rel), values, nulls,
								  replaces);
		CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	}
	end_scan(scan, rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * Remove a row from cdc.log_segment.
 */
void
cdc_segment_delete(int32 table_id, int32 segment)
{
	Relation	rel;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	scan = begin_scan(&rel, key, table_id, &segment, RowExclusiveLock);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		CatalogTupleDelete(rel, &tuple->t_self);
	end_scan(scan, rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * Start a new segment for a table, to which transactions write that begin to
 * write after this one has committed.  "tracked" says which segment the caller
 * found to be the newest; nothing is done if it is not.
 *
 * Nothing is done either if a lock would have to be waited for and "wait" is
 * false.  Returns whether there is a new segment.
 */
bool
cdc_segment_start(const CdcTracked *tracked, bool wait)
{
	Relation	source;
	CdcTracked	now;

	if (!cdc_segments_lock(tracked->table_id, wait))
		return false;
	if (wait)
		LockRelationOid(tracked->relid, AccessShareLock);
	else if (!ConditionalLockRelationOid(tracked->relid, AccessShareLock))
		return false;
	if (!cdc_tracked_lookup(tracked->relid, &now) ||
		now.table_id != tracked->table_id || now.segment != tracked->segment)
		return false;

	source = table_open(now.relid, NoLock);
	now.segment++;
	now.logrelid = cdc_log_create(source, now.table_id, now.segment, now.logrelid);
	table_close(source, NoLock);
	cdc_segment_insert(&now);
	cdc_tracked_update(&now);
	return true;
}

/*
 * Make sure that "tracked" names a segment that rows may be written to by the
 * current transaction, and lock it so that it stays.  Returns false if the
 * table is not tracked any more.
 *
 * This waits only if the newest segment itself is locked.  The lock belongs to
 * the current resource owner, and is lost if a subtransaction aborts that took
 * it.
 */
bool
cdc_segment_pin(CdcTracked *tracked)
{
	bool		wait = false;

	for (;;)
	{
		Oid			logrelid = tracked->logrelid;
		bool		locked = true;
		CdcTracked	now;

		CHECK_FOR_INTERRUPTS();
		if (wait)
			LockRelationOid(logrelid, RowExclusiveLock);
		else
			locked = ConditionalLockRelationOid(logrelid, RowExclusiveLock);
		if (!locked)
			AcceptInvalidationMessages();

		if (!cdc_tracked_lookup(tracked->relid, &now) ||
			now.table_id != tracked->table_id)
		{
			if (locked)
				UnlockRelationOid(logrelid, RowExclusiveLock);
			return false;
		}
		if (now.logrelid == logrelid)
		{
			if (locked)
				return true;
			wait = true;
			continue;
		}
		if (locked)
			UnlockRelationOid(logrelid, RowExclusiveLock);
		*tracked = now;
		wait = false;
	}
}

/*
 * Record that the current transaction has rewritten all segments of a table,
 * so that all their rows are its own by now.  To be called after that was
 * done, in the same subtransaction, and with no other than metadata changed
 * since.
 */
void
cdc_segments_rewritten(int32 table_id)
{
	CdcSegment *segments;
	int			n = cdc_segments_fetch(table_id, &segments);

	for (int i = 0; i < n; i++)
	{
		segments[i].rewritten_xid =
			U64FromFullTransactionId(GetCurrentFullTransactionId());
		segments[i].rewritten_next =
			U64FromFullTransactionId(ReadNextFullTransactionId());
		cdc_segment_update(table_id, &segments[i]);
	}
	pfree(segments);
}
