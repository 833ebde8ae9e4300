/*-------------------------------------------------------------------------
 *
 * horizon.h
 *		The newest complete snapshot of a tracked table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/horizon.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_HORIZON_H
#define CDC_HORIZON_H

#include "catalog.h"
#include "cut.h"

extern Snapshot cdc_horizon_upto(const CdcTracked *tracked, int64 upto,
								 int64 *newest);
extern Snapshot cdc_horizon_several(int ntables, CdcCutTable *tables);
extern void cdc_horizon_check_visible(const CdcTracked *tracked, int64 upto,
									  Snapshot snapshot);
extern int64 cdc_newest_visible(const CdcTracked *tracked, int64 upto,
								Snapshot snapshot);
extern Snapshot cdc_horizon(const CdcTracked *tracked, int64 *newest);
extern int64 cdc_snapshot_before(const CdcTracked *tracked, TimestampTz at,
								 int64 newest, Snapshot snapshot);
extern int64 cdc_sequence_last_value(Oid seqid);
extern int64 cdc_sequence_next(Oid seqid);
extern bool cdc_may_see_snapshots(Oid relid);
extern void cdc_check_readable(Oid relid);

#endif							/* CDC_HORIZON_H */
