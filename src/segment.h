/*-------------------------------------------------------------------------
 *
 * segment.h
 *		The segments that the log of a tracked table consists of.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/segment.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SEGMENT_H
#define CDC_SEGMENT_H

#include "catalog.h"

/* One row of cdc.log_segment */
typedef struct CdcSegment
{
	int32		segment;
	Oid			logrelid;
	int64		last_snapshot;	/* none after this one has rows in it; -1
								 * while that is not known */
	uint64		rewritten_xid;	/* transaction ids, from this one ... */
	uint64		rewritten_next; /* ... to before this one, under which all of
								 * it was rewritten; both 0 if it was not */
} CdcSegment;

/*
 * Was a log row of this snapshot written by the transaction that the snapshot
 * stands for?  "xmin" is the row's raw inserting transaction.  Subtransactions
 * have ids between that of the top transaction and the next one at commit.
 */
static inline bool
cdc_row_is_original(const CdcSnapshotRow *row, TransactionId xmin)
{
	return (uint32) (xmin - (TransactionId) row->xid) <
		(uint32) (row->next_xid - row->xid);
}

/* Was it written when the whole segment was rewritten? */
static inline bool
cdc_row_is_rewritten(const CdcSegment *segment, TransactionId xmin)
{
	return (uint32) (xmin - (TransactionId) segment->rewritten_xid) <
		(uint32) (segment->rewritten_next - segment->rewritten_xid);
}

extern bool cdc_segments_lock(int32 table_id, bool wait);
extern int	cdc_segments_fetch(int32 table_id, CdcSegment **segments);
extern void cdc_segment_insert(const CdcTracked *tracked);
extern void cdc_segment_update(int32 table_id, const CdcSegment *segment);
extern void cdc_segment_delete(int32 table_id, int32 segment);
extern bool cdc_segment_start(const CdcTracked *tracked, bool wait);
extern bool cdc_segment_pin(CdcTracked *tracked);
extern void cdc_segments_rewritten(int32 table_id);

#endif							/* CDC_SEGMENT_H */
