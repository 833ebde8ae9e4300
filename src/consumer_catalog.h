/*-------------------------------------------------------------------------
 *
 * consumer_catalog.h
 *		The catalog tables of consumers.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/consumer_catalog.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CONSUMER_CATALOG_H
#define CDC_CONSUMER_CATALOG_H

#include "apply.h"
#include "catalog.h"

/* cdc.consumer */
#define Natts_cdc_consumer					11
#define Anum_cdc_consumer_consumer			1
#define Anum_cdc_consumer_owner				2
#define Anum_cdc_consumer_last_run			3
#define Anum_cdc_consumer_last_run_at		4
#define Anum_cdc_consumer_last_mode			5
#define Anum_cdc_consumer_inserted			6
#define Anum_cdc_consumer_updated			7
#define Anum_cdc_consumer_deleted			8
#define Anum_cdc_consumer_unchanged			9
#define Anum_cdc_consumer_missing			10
#define Anum_cdc_consumer_stale				11

/* cdc.consumer_position */
#define Natts_cdc_consumer_position			5
#define Anum_cdc_consumer_position_consumer 1
#define Anum_cdc_consumer_position_table_id 2
#define Anum_cdc_consumer_position_position 3
#define Anum_cdc_consumer_position_tx		4
#define Anum_cdc_consumer_position_time		5

/* cdc.consumer_target */
#define Natts_cdc_consumer_target			8
#define Anum_cdc_consumer_target_consumer	1
#define Anum_cdc_consumer_target_target		2
#define Anum_cdc_consumer_target_fingerprint 3
#define Anum_cdc_consumer_target_run		4
#define Anum_cdc_consumer_target_sources	5
#define Anum_cdc_consumer_target_meaning	6
#define Anum_cdc_consumer_target_append		7
#define Anum_cdc_consumer_target_columns	8

/* One row of cdc.consumer, as far as runs need it */
typedef struct CdcConsumerRow
{
	Oid			owner;
	int64		last_run;		/* number of the last run, 0 before the first */
} CdcConsumerRow;

/* One row of cdc.consumer_position */
typedef struct CdcPosition
{
	int32		table_id;
	int64		position;		/* number of a snapshot, and what tells it */
	int64		tx;				/* from one of the same number in a history */
	TimestampTz time;			/* that is not ours: see CdcSnapshotRow */
} CdcPosition;

/* One row of cdc.consumer_target */
typedef struct CdcConsumerTarget
{
	int64		fingerprint;	/* see fingerprint.h */
	int64		run;			/* the last run it took part in */
	List	   *sources;		/* of int: numbers of the tables it is made
								 * of, negative for those that run did not
								 * read, or that were renamed since */
	int64		meaning;		/* of the query in that run, 0 if unknown: see
								 * meaning.h */
	List	   *columns;		/* of int: those the fingerprint is about */
} CdcConsumerTarget;

extern void cdc_consumer_require_extension(void);
extern bool cdc_consumer_fetch(const char *name, CdcConsumerRow *row);
extern void cdc_consumer_create(const char *name, CdcConsumerRow *row);
extern void cdc_consumer_check_owner(const char *name,
									 const CdcConsumerRow *row);
extern void cdc_consumer_note_run(const char *name, int64 run,
								  const char *mode,
								  const CdcApplyResult *result);
extern List *cdc_consumer_positions(const char *name);
extern void cdc_consumer_set_position(const char *name,
									  const CdcPosition *position);
extern void cdc_consumer_delete_position(const char *name, int32 table_id);
extern bool cdc_consumer_fetch_target(const char *name, Oid target,
									  CdcConsumerTarget *row);
extern bool cdc_consumer_any_target(const char *name, int64 run);
extern bool cdc_consumer_appends(const char *name);
extern void cdc_consumer_set_target(const char *name, Oid target, int64 run,
									List *sources, int64 meaning, bool append,
									List *columns);
extern bool cdc_consumer_source_needed(const char *name, Oid target, int64 run,
									   int32 table_id);
extern void cdc_consumer_source_moved(const char *name, Oid target, int64 run,
									  int32 table_id);
extern void cdc_consumer_source_renamed(int32 table_id);
extern void cdc_consumer_settle_target(const char *name, Oid target,
									   int64 run);
extern bool cdc_consumer_delete_rows(const char *name, bool itself);
extern int64 cdc_consumer_oldest_position(int32 table_id);
extern void cdc_consumer_table_gone(int32 table_id);
extern void cdc_consumer_target_gone(Oid target);

#endif							/* CDC_CONSUMER_CATALOG_H */
