/*-------------------------------------------------------------------------
 *
 * consumer.h
 *		Named positions in the changelogs of tables.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/consumer.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CONSUMER_H
#define CDC_CONSUMER_H

#include "apply.h"
#include "utils/snapshot.h"

/* What a consumer reads of a table in the current transaction */
typedef struct CdcPin
{
	bool		incremental;	/* if not, the whole content at "to" */
	int64		from;			/* excluded; its position */
	int64		to;				/* included; where the transaction cuts */
	Snapshot	snapshot;		/* sees all up to there; stays registered
								 * until the transaction ends */
} CdcPin;

/* An application of what a consumer reads to a target */
typedef struct CdcConsumerRun CdcConsumerRun;

extern void cdc_consumer_init(void);
extern void cdc_consumer_pin(const char *consumer, Oid relid, bool nowait,
							 CdcPin *pin);
extern bool cdc_consumer_decline(const char *consumer);
extern void cdc_consumer_pin_group(List *consumers, bool nowait);

/*
 * Pins what the consumer has read before, as the others here do, and tells
 * whether there is nothing for it to do: it has positions, all of them are
 * usable for the target, and there is nothing after them.
 */
extern bool cdc_consumer_idle(const char *consumer, Oid target, bool nowait);

/*
 * What the query meant that the target was last brought up to date with, as
 * meaning.h has it; 0 where that is not known.  The consumer must be locked.
 */
extern int64 cdc_consumer_meaning(const char *consumer, Oid target);

extern CdcConsumerRun *cdc_consumer_begin(const char *consumer, Oid target,
										  bool nowait, bool full);
extern bool cdc_consumer_full(const CdcConsumerRun *run);

/* Not the first run?  Then it must not append all. */
extern bool cdc_consumer_ran_before(const CdcConsumerRun *run);
extern bool cdc_consumer_again(CdcConsumerRun *run);
extern char *cdc_consumer_ranges(const CdcConsumerRun *run);
extern int64 cdc_consumer_newest(const CdcConsumerRun *run);
extern void cdc_consumer_finish(CdcConsumerRun *run,
								const CdcApplyOptions *options,
								const CdcApplyResult *result, int64 meaning,
								List *columns);

/*
 * A run that has nothing to write may be abandoned instead, if nothing is new in
 * the tables that it has read, and the query and they are the same as before.
 */
extern bool cdc_consumer_nothing_new(const CdcConsumerRun *run,
									 int64 meaning);
extern void cdc_consumer_abandon(CdcConsumerRun *run);

extern bool cdc_consumer_lock(const char *consumer);
extern void cdc_consumer_forget(const char *consumer);
extern bool cdc_consumer_is_incremental(const char *consumer, Oid relid);

#endif							/* CDC_CONSUMER_H */
