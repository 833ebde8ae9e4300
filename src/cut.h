/*-------------------------------------------------------------------------
 *
 * cut.h
 *		One consistent cut through the changelogs of several tables.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/cut.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CUT_H
#define CDC_CUT_H

#include "catalog.h"

/* Where the cut goes through one table */
typedef struct CdcCutTable
{
	CdcTracked	tracked;
	int64		newest;			/* the last snapshot before the cut */
} CdcCutTable;

extern Snapshot cdc_cut_take(int ntables, CdcCutTable *tables);
extern void cdc_cut_add(Snapshot snapshot, int ntables,
						const CdcCutTable *tables, CdcCutTable *table);

#endif							/* CDC_CUT_H */
