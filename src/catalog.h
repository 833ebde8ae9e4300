/*-------------------------------------------------------------------------
 *
 * catalog.h
 *		Access to the extension's catalog tables.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/catalog.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CATALOG_H
#define CDC_CATALOG_H

#include "access/htup.h"
#include "access/transam.h"
#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "storage/block.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/* cdc.tracked_table */
#define Natts_cdc_tracked_table				8
#define Anum_cdc_tracked_table_table_id		1
#define Anum_cdc_tracked_table_segment		2
#define Anum_cdc_tracked_table_oldest		3
#define Anum_cdc_tracked_table_tracked_at	4
#define Anum_cdc_tracked_table_relation		5
#define Anum_cdc_tracked_table_log_table	6
#define Anum_cdc_tracked_table_sequence		7
#define Anum_cdc_tracked_table_notify		8

/* cdc.log_segment */
#define Natts_cdc_log_segment				6
#define Anum_cdc_log_segment_table_id		1
#define Anum_cdc_log_segment_segment		2
#define Anum_cdc_log_segment_log_table		3
#define Anum_cdc_log_segment_last_snapshot	4
#define Anum_cdc_log_segment_rewritten		5
#define Anum_cdc_log_segment_rewritten_next 6

/* cdc.snapshot */
#define Natts_cdc_snapshot					14
#define Anum_cdc_snapshot_table_id			1
#define Anum_cdc_snapshot_segment			2
#define Anum_cdc_snapshot_snapshot_id		3
#define Anum_cdc_snapshot_tx				4
#define Anum_cdc_snapshot_xid				5
#define Anum_cdc_snapshot_next_xid			6
#define Anum_cdc_snapshot_committed_at		7
#define Anum_cdc_snapshot_inserted			8
#define Anum_cdc_snapshot_deleted			9
#define Anum_cdc_snapshot_first_block		10
#define Anum_cdc_snapshot_last_block		11
#define Anum_cdc_snapshot_kind				12
#define Anum_cdc_snapshot_reason			13
#define Anum_cdc_snapshot_blocks			14

/* cdc.unique_index */
#define Natts_cdc_unique_index				3
#define Anum_cdc_unique_index_table_id		1
#define Anum_cdc_unique_index_since			2
#define Anum_cdc_unique_index_index			3

/* cdc.partition */
#define Natts_cdc_partition					2
#define Anum_cdc_partition_table_id			1
#define Anum_cdc_partition_relation			2

/* cdc.snapshot.kind */
#define CDC_KIND_BASELINE		'b' /* the table as track() found it */
#define CDC_KIND_CHANGES		'c' /* an ordinary transaction */
#define CDC_KIND_GAP			'g' /* something happened that the log missed */

/* Which of the extension's relations cdc_catalog_oid() shall look up */
typedef enum CdcCatalogRel
{
	CDC_TRACKED_TABLE,
	CDC_TRACKED_TABLE_PKEY,		/* (table_id) */
	CDC_TRACKED_TABLE_RELATION, /* unique index on (relation) */
	CDC_LOG_SEGMENT,
	CDC_LOG_SEGMENT_PKEY,		/* (table_id, segment) */
	CDC_SNAPSHOT,
	CDC_SNAPSHOT_PKEY,			/* (table_id, snapshot_id) */
	CDC_UNIQUE_INDEX,
	CDC_UNIQUE_INDEX_PKEY,		/* (table_id, index) */
	CDC_PARTITION,
	CDC_PARTITION_PKEY,			/* (table_id, relation) */
	CDC_PARTITION_RELATION,		/* unique index on (relation) */
	CDC_CONSUMER,
	CDC_CONSUMER_PKEY,			/* (consumer) */
	CDC_CONSUMER_POSITION,
	CDC_CONSUMER_POSITION_PKEY, /* (consumer, table_id) */
	CDC_CONSUMER_TARGET,
	CDC_CONSUMER_TARGET_PKEY,	/* (consumer, target) */
	CDC_PIPELINE,
	CDC_PIPELINE_PKEY,			/* (name) */
	CDC_PIPELINE_RUN,
	CDC_PIPELINE_RUN_PKEY,		/* (name, run_id) */
	CDC_TRANSACTION_NUMBER,		/* sequence */
	CDC_TABLE_NUMBER,			/* sequence */
	CDC_NUM_CATALOG_RELS
} CdcCatalogRel;

/* One row of cdc.tracked_table */
typedef struct CdcTracked
{
	int32		table_id;		/* survives dump and restore, unlike an OID */
	Oid			relid;			/* the tracked table */
	Oid			logrelid;		/* segment that new transactions write to */
	int32		segment;		/* its number */
	Oid			seqid;			/* sequence of snapshot numbers */
	int64		oldest;			/* oldest readable snapshot */
	TimestampTz tracked_at;
	bool		notify;			/* tell listeners of its changes, see notify.c */
} CdcTracked;

/* An interval of blocks, both ends included */
typedef struct CdcBlockRun
{
	BlockNumber first;
	BlockNumber last;
} CdcBlockRun;

/* One row of cdc.snapshot */
typedef struct CdcSnapshotRow
{
	int32		segment;
	int64		snapshot_id;
	int64		tx;				/* number that marks its rows in the log */
	uint64		xid;			/* full transaction id */
	uint64		next_xid;		/* next full transaction id when it drew its
								 * number */
	TimestampTz committed_at;
	int64		inserted;
	int64		deleted;
	char		kind;			/* CDC_KIND_xxx */
	char	   *reason;			/* NULL, or why this is a gap */
	int			nruns;			/* block intervals of its rows, ascending */
	CdcBlockRun *runs;
	bool		native;			/* the row was written by that xid itself, so
								 * its log rows were too; false after a
								 * restore.  Set by cdc_snapshot_decode(). */
} CdcSnapshotRow;

extern Oid	cdc_catalog_oid(CdcCatalogRel which);
extern void cdc_catalog_reset(void);
extern Oid	cdc_extension_owner(void);
extern bool cdc_is_own_relation(Oid relid);

extern bool cdc_tracked_lookup(Oid relid, CdcTracked *tracked);
extern bool cdc_tracked_lookup_id(int32 table_id, CdcTracked *tracked);
extern void cdc_tracked_require(Oid relid, CdcTracked *tracked);
extern bool cdc_tracked_any(void);
extern List *cdc_tracked_list(void);
extern void cdc_tracked_insert(const CdcTracked *tracked);
extern void cdc_tracked_update(const CdcTracked *tracked);
extern int64 cdc_tracked_oldest(const CdcTracked *tracked, Snapshot snapshot);
extern void cdc_tracked_delete(int32 table_id);

extern void cdc_snapshot_insert(int32 table_id, const CdcSnapshotRow *row);
extern void cdc_snapshot_decode(HeapTuple tuple, TupleDesc tupdesc,
								CdcSnapshotRow *row);
extern bool cdc_snapshot_is_restored(int32 table_id, const CdcSnapshotRow *row,
									 Snapshot snapshot);
extern int	cdc_snapshot_fetch(int32 table_id, int64 after, int64 upto,
							   Snapshot snapshot, CdcSnapshotRow **rows);

#endif							/* CDC_CATALOG_H */
