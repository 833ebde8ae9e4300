/*-------------------------------------------------------------------------
 *
 * restore.h
 *		Tracked tables that come out of a dump.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/restore.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_RESTORE_H
#define CDC_RESTORE_H

#include "nodes/primnodes.h"

#include "catalog.h"

extern void cdc_restore_check_disable(RangeVar *name);
extern bool cdc_has_capture_triggers(Relation rel);
extern bool cdc_restore_pending(const CdcTracked *tracked);
extern bool cdc_restore_settled(const CdcTracked *tracked);
extern bool cdc_restore_abandon(const CdcTracked *tracked);

#endif							/* CDC_RESTORE_H */
