/*-------------------------------------------------------------------------
 *
 * snapshots.c
 *		SQL functions that show the snapshots of a tracked table.
 *
 * This module owns cdc.current_snapshot, cdc.snapshot_at, cdc.snapshots and
 * cdc.wait_for_changes,
 * and the rule who may call them.  They show numbers, times and row counts,
 * never a row, so the right to read any column of the table is enough; the
 * rows themselves are guarded by cdc_check_readable().
 *
 * All of them stop at the horizon (see horizon.c): a snapshot whose
 * predecessors may still be in flight is not shown, so whatever they return
 * can be kept as a position.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/snapshots.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "horizon.h"

/* Result columns of cdc.snapshots */
#define SNAPSHOTS_COLS			6

/* Snapshot numbers looked up at a time, which bounds the memory in use */
#define SNAPSHOTS_BATCH			10000

/* Milliseconds between two looks of cdc.wait_for_changes */
#define WAIT_SHORTEST			5
#define WAIT_LONGEST			200

PG_FUNCTION_INFO_V1(cdc_current_snapshot);
PG_FUNCTION_INFO_V1(cdc_snapshot_at);
PG_FUNCTION_INFO_V1(cdc_snapshots);
PG_FUNCTION_INFO_V1(cdc_wait_for_changes);

static int64 newest_after(Oid relid, int64 after, bool quiet);
static void check_visible(Oid relid);
static const char *kind_name(char kind);

/*
 * cdc.current_snapshot(relation regclass) RETURNS bigint
 *
 * Returns the number of the newest complete snapshot.  Raises 42501 if the
 * caller may not see the table and 55000 if it is not tracked.
 */
Datum
cdc_current_snapshot(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	CdcTracked	tracked;
	Snapshot	snapshot;
	int64		newest;

	check_visible(relid);
	cdc_tracked_require(relid, &tracked);

	snapshot = cdc_horizon(&tracked, &newest);
	UnregisterSnapshot(snapshot);

	PG_RETURN_INT64(newest);
}

/*
 * cdc.snapshot_at(relation regclass, at timestamptz) RETURNS bigint
 *
 * Returns the number of the newest complete snapshot committed at or before
 * "at", or NULL if the oldest one is younger.  Raises as
 * cdc_current_snapshot.
 */
Datum
cdc_snapshot_at(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	TimestampTz at = PG_GETARG_TIMESTAMPTZ(1);
	CdcTracked	tracked;
	Snapshot	snapshot;
	int64		newest;
	int64		found;

	check_visible(relid);
	cdc_tracked_require(relid, &tracked);

	snapshot = cdc_horizon(&tracked, &newest);
	found = cdc_snapshot_before(&tracked, at, newest, snapshot);
	UnregisterSnapshot(snapshot);

	if (found < 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(found);
}

/*
 * cdc.snapshots(relation regclass)
 *
 * Returns one row for every complete snapshot that can still be read, in
 * ascending order.  Raises as cdc_current_snapshot.
 */
Datum
cdc_snapshots(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CdcTracked	tracked;
	Snapshot	snapshot;
	int64		newest;
	int64		after;
	MemoryContext batchcxt;

	check_visible(relid);
	cdc_tracked_require(relid, &tracked);
	InitMaterializedSRF(fcinfo, 0);

	snapshot = cdc_horizon(&tracked, &newest);
	batchcxt = AllocSetContextCreate(CurrentMemoryContext,
									 "cdc snapshots batch",
									 ALLOCSET_DEFAULT_SIZES);

	for (after = tracked.oldest - 1; after < newest; after += SNAPSHOTS_BATCH)
	{
		MemoryContext oldcxt = MemoryContextSwitchTo(batchcxt);
		CdcSnapshotRow *rows;
		int			nrows;

		CHECK_FOR_INTERRUPTS();

		nrows = cdc_snapshot_fetch(tracked.table_id, after,
								   Min(newest, after + SNAPSHOTS_BATCH),
								   snapshot, &rows);
		for (int i = 0; i < nrows; i++)
		{
			Datum		values[SNAPSHOTS_COLS];
			bool		nulls[SNAPSHOTS_COLS] = {0};

			values[0] = Int64GetDatum(rows[i].snapshot_id);
			values[1] = TimestampTzGetDatum(rows[i].committed_at);
			values[2] = Int64GetDatum(rows[i].inserted);
			values[3] = Int64GetDatum(rows[i].deleted);
			values[4] = CStringGetTextDatum(kind_name(rows[i].kind));
			if (rows[i].reason)
				values[5] = CStringGetTextDatum(rows[i].reason);
			else
				nulls[5] = true;
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc,
								 values, nulls);
		}

		MemoryContextSwitchTo(oldcxt);
		MemoryContextReset(batchcxt);
	}

	MemoryContextDelete(batchcxt);
	UnregisterSnapshot(snapshot);

	return (Datum) 0;
}

/*
 * cdc.wait_for_changes(relation regclass, after bigint, timeout interval)
 * RETURNS bigint
 *
 * Waits until there is a complete snapshot newer than "after" (NULL: any), and
 * returns the newest.  Returns NULL if there is none after "timeout" (NULL:
 * wait for ever).  Raises 25000 where the transaction sees one state of the
 * data only, so that waiting is in vain, and else as cdc_current_snapshot.
 *
 * This looks again and again, ever less often, rather than listening: a
 * snapshot is not complete at the moment it is committed, and a standby is not
 * told of notifications.
 */
Datum
cdc_wait_for_changes(PG_FUNCTION_ARGS)
{
	int64		after;
	TimestampTz end = DT_NOEND;
	long		pause = WAIT_SHORTEST;
	bool		quiet = false;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	after = PG_ARGISNULL(1) ? -1 : PG_GETARG_INT64(1);
	if (!PG_ARGISNULL(2))
		end = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
													  TimestampTzGetDatum(GetCurrentTimestamp()),
													  PG_GETARG_DATUM(2)));
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot wait for changes in a transaction of isolation level %s",
						XactIsoLevel == XACT_SERIALIZABLE ?
						"SERIALIZABLE" : "REPEATABLE READ"),
				 errdetail("It does not see what is committed meanwhile."),
				 errhint("Wait in a transaction of isolation level READ COMMITTED.")));

	for (;;)
	{
		int64		newest = newest_after(PG_GETARG_OID(0), after, quiet);
		long		left;

		if (newest > after)
			PG_RETURN_INT64(newest);
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
		if (left <= 0)
			PG_RETURN_NULL();

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(left, pause), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		pause = Min(pause * 2, WAIT_LONGEST);
		quiet = true;
	}
}

/*
 * The newest complete snapshot of a table as of now, or -1 if it is clear
 * without a closer look that there is none newer than "after".  With "quiet",
 * the user is not told of transactions that hold it back.
 */
static int64
newest_after(Oid relid, int64 after, bool quiet)
{
	int			nestlevel;
	CdcTracked	tracked;
	Snapshot	snapshot;
	int64		newest;

	AcceptInvalidationMessages();
	check_visible(relid);
	cdc_tracked_require(relid, &tracked);
	if (cdc_sequence_last_value(tracked.seqid) <= after)
		return -1;

	nestlevel = NewGUCNestLevel();
	if (quiet)
		(void) set_config_option("client_min_messages", "warning",
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
	snapshot = cdc_horizon(&tracked, &newest);
	UnregisterSnapshot(snapshot);
	AtEOXact_GUC(false, nestlevel);
	return newest;
}

/*
 * Check that the current user may know about the snapshots of a table: its
 * owner, and whoever may read at least one of its columns.
 *
 * Raises 42P01 if there is no such table and 42501 if it must not be seen.
 */
static void
check_visible(Oid relid)
{
	char	   *relname = get_rel_name(relid);

	if (relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));

	if (!cdc_may_see_snapshots(relid))
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_relkind_objtype(get_rel_relkind(relid)), relname);
}

/*
 * Returns the word that cdc.snapshots shows for a kind of snapshot.
 */
static const char *
kind_name(char kind)
{
	switch (kind)
	{
		case CDC_KIND_BASELINE:
			return "baseline";
		case CDC_KIND_CHANGES:
			return "changes";
		case CDC_KIND_GAP:
			return "gap";
	}
	elog(ERROR, "unrecognized kind of snapshot: %d", (int) kind);
	return NULL;				/* keep compiler quiet */
}
