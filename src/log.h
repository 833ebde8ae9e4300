/*-------------------------------------------------------------------------
 *
 * log.h
 *		The log of a tracked table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/log.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_LOG_H
#define CDC_LOG_H

#include "access/heapam.h"
#include "access/tupconvert.h"
#include "catalog.h"
#include "executor/tuptable.h"

/*
 * A log row has one column of its own, 8 bytes wide, before the data columns.
 * It holds the number of the transaction, negative for a row version that
 * went.  Data column n of the tracked table is column n + 1 of the log, for
 * dropped columns too.
 */
#define CDC_LOG_PREFIX		sizeof(int64)
#define CDC_LOG_FIRST_COL	2

/* Space between the blocks of a transaction that does not end an interval */
#define CDC_RUN_GAP			32
/* Most intervals recorded for one transaction */
#define CDC_MAX_RUNS		32

/* How rows of one relation become rows of the log */
typedef struct CdcLogMap
{
	bool		same_layout;	/* data can be copied as it is */
	int			natts;			/* columns of the tracked table */
	TupleDesc	logdesc;
	AttrMap    *attrmap;		/* NULL, or attribute numbers of a partition
								 * for each column of the tracked table */
	Datum	   *values;			/* room for the columns of one log row */
	bool	   *nulls;
} CdcLogMap;

/* A growing list of block intervals, ascending and apart from each other */
typedef struct CdcRunList
{
	int			nruns;
	CdcBlockRun runs[CDC_MAX_RUNS];
} CdcRunList;

extern void cdc_log_check_width(Relation source);
extern Oid	cdc_log_create(Relation source, int32 table_id, int32 segment,
						   Oid like);
extern List *cdc_log_column_names(Oid logrelid);
extern bool cdc_log_matches(TupleDesc source, TupleDesc log);
extern CdcLogMap *cdc_log_map(Relation source, TupleDesc logdesc,
							  TupleDesc rootdesc, MemoryContext context);

extern HeapTuple cdc_log_form_minimal(const CdcLogMap *map,
									  MinimalTuple tuple, int64 tx);
extern HeapTuple cdc_log_form_slot(const CdcLogMap *map, TupleTableSlot *slot,
								   int64 tx);

extern BulkInsertState cdc_log_begin_bulk(void);
extern void cdc_log_append(Relation log, HeapTuple *tuples, int ntuples,
						   BulkInsertState bistate, CdcRunList *runs);
extern void cdc_log_abort(void);
extern void cdc_runs_add(CdcRunList *list, BlockNumber first, BlockNumber last);

#endif							/* CDC_LOG_H */
