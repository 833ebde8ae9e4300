/*-------------------------------------------------------------------------
 *
 * range.h
 *		A range of snapshots that is to be read.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/range.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_RANGE_H
#define CDC_RANGE_H

#include "commit.h"
#include "compat.h"
#include "rowcmp.h"

typedef struct CdcRange
{
	CdcTracked	tracked;
	const char *relname;		/* of the tracked table */
	Snapshot	snapshot;		/* registered; sees all of the range */
	bool		from_start;		/* the first content belongs to the result */
	int64		start;			/* excluded; the first content's snapshot */
	int64		end;			/* included */
	TimestampTz start_time;		/* when "start" was committed */
	int			nrange;			/* snapshots in the range ... */
	int			nsnaps;			/* ... and with those after it, if loaded */
	CdcSnapshotRow *snaps;		/* ascending */
	bool		pinned;			/* the snapshot may be older than the locks */
	bool		tail_loaded;
	int			after_gap;		/* of cdc_range_open_all(): position of the
								 * first snapshot after the newest gap */
} CdcRange;

extern CdcRange *cdc_range_open(Oid relid, bool start_null, int64 start,
								bool end_null, int64 end);
extern CdcRange *cdc_range_open_content(Oid relid, int64 at);
extern CdcRange *cdc_range_open_pinned(Oid relid, bool content, int64 start,
									   int64 end, Snapshot snapshot);
extern CdcRange *cdc_range_open_all(Oid relid);
extern void cdc_range_load_tail(CdcRange *range);
extern void cdc_range_close(CdcRange *range);
extern void cdc_range_recheck(CdcRange *range);
extern void cdc_range_check_storage(CdcRange *range, Relation rel);
cdc_noreturn extern void cdc_range_segment_missing(CdcRange *range,
												   int32 segment) pg_attribute_noreturn();
extern bool cdc_range_keys_proven(CdcRange *range, Relation source,
								  const CdcRowCompare *cmp, List **nullable);

#endif							/* CDC_RANGE_H */
