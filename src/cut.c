/*-------------------------------------------------------------------------
 *
 * cut.c
 *		One consistent cut through the changelogs of several tables.
 *
 * A transaction that changes several tables gets a number in each of them.  A
 * cut says up to which number each table is read, and it is consistent if
 * every transaction is before it in all tables that it has changed, or behind
 * it in all of them.
 *
 * The horizons of the tables, taken one after the other, are not that: a
 * transaction may draw its number in the first table after we have looked
 * there, and in the second one before we do.  Locks that keep others from
 * drawing numbers meanwhile would do, but then writers wait for readers.  So
 * the numbers are corrected instead.  All tables are looked at with one MVCC
 * snapshot.  A transaction that it sees with a number beyond the horizon of one
 * table has to be left out of all others as well; the horizon there becomes
 * lower than its number, which leaves out more transactions, and so on until
 * nothing changes.  Numbers only ever get smaller, so this ends.
 *
 * This needs no lock, and the result is as good for prepared transactions
 * that hold numbers for a long time.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/cut.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "cut.h"
#include "horizon.h"

/* Snapshots that are read at a time when looking back */
#define LOOK_BACK	100

/* The transactions behind the cut */
typedef struct Excluded
{
	HTAB	   *txs;			/* by the number that marks their rows */
	uint64		oldest_xid;		/* the smallest full transaction id of them */
} Excluded;

static void make_consistent(int ntables, CdcCutTable *tables,
							Snapshot snapshot);
static void exclude(Excluded *excluded, const CdcSnapshotRow *rows, int n);
static bool lower(CdcCutTable *table, Excluded *excluded, Snapshot snapshot);

/*
 * Take a cut through some tables, of which "tracked" is given and "newest" is
 * set.
 *
 * Returns a registered MVCC snapshot that sees all that is before the cut, and
 * maybe some of what is behind it; the caller unregisters it.  In REPEATABLE
 * READ and above this is the transaction's snapshot, and serialization_failure
 * is raised if it does not see something that is committed before the cut.
 *
 * May wait up to cdc_changelog.horizon_timeout, and raises a NOTICE for a table
 * for which that was not enough.
 */
Snapshot
cdc_cut_take(int ntables, CdcCutTable *tables)
{
	Snapshot	snapshot = cdc_horizon_several(ntables, tables);

	if (ntables > 1)
		make_consistent(ntables, tables, snapshot);
	return snapshot;
}

/*
 * Lower the numbers in "newest" until no transaction is before the cut in one
 * table and behind it in another.
 */
static void
make_consistent(int ntables, CdcCutTable *tables, Snapshot snapshot)
{
	MemoryContext context;
	MemoryContext oldcontext;
	HASHCTL		ctl;
	Excluded	excluded;
	bool		changed = true;

	context = AllocSetContextCreate(CurrentMemoryContext, "cdc_changelog cut",
									ALLOCSET_DEFAULT_SIZES);
	oldcontext = MemoryContextSwitchTo(context);
	ctl.keysize = sizeof(int64);
	ctl.entrysize = sizeof(int64);
	ctl.hcxt = context;
	excluded.txs = hash_create("cdc_changelog cut", 64, &ctl,
							   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	excluded.oldest_xid = PG_UINT64_MAX;

	for (int i = 0; i < ntables; i++)
	{
		CdcSnapshotRow *rows;
		int			n = cdc_snapshot_fetch(tables[i].tracked.table_id,
										   tables[i].newest, PG_INT64_MAX,
										   snapshot, &rows);

		exclude(&excluded, rows, n);
	}

	while (changed && hash_get_num_entries(excluded.txs) > 0)
	{
		changed = false;
		for (int i = 0; i < ntables; i++)
			changed |= lower(&tables[i], &excluded, snapshot);
	}
	MemoryContextSwitchTo(oldcontext);
	MemoryContextDelete(context);
}

/*
 * Note the transactions of some snapshots as being behind the cut.
 */
static void
exclude(Excluded *excluded, const CdcSnapshotRow *rows, int n)
{
	for (int i = 0; i < n; i++)
	{
		(void) hash_search(excluded->txs, &rows[i].tx, HASH_ENTER, NULL);
		excluded->oldest_xid = Min(excluded->oldest_xid, rows[i].xid);
	}
}

/*
 * Let the cut go through a table before the first number of a transaction that
 * is behind it.  Returns whether that makes a difference.
 *
 * A number that was drawn when no xid as large as the oldest of them had been
 * assigned, and all before it, are none of theirs.
 */
static bool
lower(CdcCutTable *table, Excluded *excluded, Snapshot snapshot)
{
	int64		from = table->newest;
	int64		cut = table->newest;
	bool		done = false;
	CdcSnapshotRow *rows;
	int			n;

	while (!done && from >= table->tracked.oldest)
	{
		n = cdc_snapshot_fetch(table->tracked.table_id, from - LOOK_BACK, from,
							   snapshot, &rows);
		for (int i = n - 1; i >= 0 && !done; i--)
		{
			CHECK_FOR_INTERRUPTS();
			if (hash_search(excluded->txs, &rows[i].tx, HASH_FIND, NULL))
				cut = rows[i].snapshot_id - 1;
			done = !rows[i].native || rows[i].next_xid <= excluded->oldest_xid;
		}
		from -= LOOK_BACK;
	}
	if (cut == table->newest)
		return false;

	n = cdc_snapshot_fetch(table->tracked.table_id, cut, table->newest, snapshot,
						   &rows);
	exclude(excluded, rows, n);
	table->newest = cdc_newest_visible(&table->tracked, cut, snapshot);
	return true;
}

/*
 * Let a cut that was taken before, through "ntables" tables, go through one more
 * table, whose "tracked" is given.
 *
 * Raises serialization_failure if no number of the table separates what is
 * before the cut from what is behind it.
 */
void
cdc_cut_add(Snapshot snapshot, int ntables, const CdcCutTable *tables,
			CdcCutTable *table)
{
	MemoryContext context;
	MemoryContext oldcontext;
	CdcCutTable *all;
	bool		moved = false;

	table->newest = cdc_newest_visible(&table->tracked, PG_INT64_MAX, snapshot);
	cdc_horizon_check_visible(&table->tracked, table->newest, snapshot);

	context = AllocSetContextCreate(CurrentMemoryContext, "cdc_changelog cut",
									ALLOCSET_DEFAULT_SIZES);
	oldcontext = MemoryContextSwitchTo(context);
	all = palloc(sizeof(CdcCutTable) * (ntables + 1));
	if (ntables > 0)
		memcpy(all, tables, sizeof(CdcCutTable) * ntables);
	all[ntables] = *table;
	make_consistent(ntables + 1, all, snapshot);
	table->newest = all[ntables].newest;
	for (int i = 0; i < ntables; i++)
		moved |= all[i].newest != tables[i].newest;
	MemoryContextSwitchTo(oldcontext);
	MemoryContextDelete(context);

	/* what has been read of the others stays as it is */
	if (moved)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to the changelog of table \"%s\"",
						get_rel_name(table->tracked.relid)),
				 errdetail("It does not fit to what this transaction has read of other tables."),
				 errhint("The transaction might succeed if retried.")));
}
