/*-------------------------------------------------------------------------
 *
 * commit.h
 *		What the current transaction has captured.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/commit.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_COMMIT_H
#define CDC_COMMIT_H

#include "catalog.h"
#include "log.h"

/* A tracked table that the current transaction has changed */
typedef struct CdcXactTable CdcXactTable;

/* Rows of the current transaction in a log, for readers */
typedef struct CdcOwnRows
{
	int64		tx;
	int32		segment;
	int64		inserted;
	int64		deleted;
	CdcRunList	runs;
	bool		unwritten;		/* some rows are not in the log yet */
	bool		gap;			/* not all changes are among them */
} CdcOwnRows;

extern void cdc_commit_init(void);
extern CdcXactTable *cdc_xact_table(const CdcTracked *tracked);
extern int64 cdc_xact_number(void);
extern MemoryContext cdc_xact_context(CdcXactTable *table);
extern void cdc_xact_add(CdcXactTable *table, HeapTuple tuple, bool inserted,
						 BulkInsertState bistate);
extern void cdc_xact_flush(CdcXactTable *table, BulkInsertState bistate);
extern void cdc_xact_flush_all(void);
extern void cdc_xact_flush_all_levels(void);
extern void cdc_xact_log_rewritten(const CdcTracked *tracked);
extern void cdc_xact_gap(CdcXactTable *table, const char *reason);
extern void cdc_xact_truncate(CdcXactTable *table, Relation rel);
extern bool cdc_xact_truncating(const CdcTracked *tracked, Relation rel);
extern bool cdc_xact_changed(const CdcTracked *tracked);
extern bool cdc_xact_own_rows(const CdcTracked *tracked, CdcOwnRows *own);

#endif							/* CDC_COMMIT_H */
