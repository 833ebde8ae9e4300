/*-------------------------------------------------------------------------
 *
 * commit.c
 *		What the current transaction has captured, and its snapshot numbers.
 *
 * For every tracked table that the transaction has changed there is a stack
 * of levels, one for each subtransaction that captured something.  A level
 * holds log rows that are not written yet, and the counts and block intervals
 * of those that are.  When a subtransaction commits its level is merged into
 * its parent's; when it aborts, the level is thrown away.  Rows are only ever
 * written under the (sub)transaction whose level they are in, so what happens
 * to the level is what happens to its rows in the log.  Rows wait in memory
 * because a transaction's changes are not readable before it commits anyway,
 * and many small statements can so be written with one insert.
 *
 * At PRE_COMMIT and PRE_PREPARE, for each changed table in ascending order of
 * its OID, the rest is written, a number is drawn from the table's sequence
 * and a row is added to cdc.snapshot.  See horizon.c for how readers rely on
 * the lock that nextval() keeps on the sequence until the transaction ends.
 *
 * All of this is in the memory of the top transaction, and needs no lock.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/commit.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "commit.h"
#include "compat.h"
#include "horizon.h"
#include "notify.h"
#include "segment.h"

/* A level is written when it holds so many rows or bytes ... */
#define MAX_LEVEL_ROWS		1000
#define MAX_LEVEL_BYTES		(256 * 1024)
/* ... and all levels of the current subtransaction when together so many */
#define MAX_TOTAL_BYTES		(4 * 1024 * 1024)

/* Increment of the sequence cdc.transaction_number */
#define XACT_NUMBER_STEP	32

/*
 * A relation whose rows are logged as gone, because TRUNCATE is about to empty
 * it.
 */
typedef struct XactTruncate
{
	struct XactTruncate *next;
	Oid			relid;
	Oid			relfilenode;	/* as long as it has this, it is not emptied */
	bool		in_place;		/* or it is, and has this all the same */
	int			depth;			/* of triggers */
	TimestampTz statement;		/* when the client's command began */
} XactTruncate;

/* What one (sub)transaction has captured of one table */
typedef struct XactLevel
{
	struct XactLevel *parent;
	int			nest_level;		/* of the (sub)transaction */
	int64		inserted;		/* rows, written or not */
	int64		deleted;
	CdcRunList	runs;			/* where the written ones are */
	MemoryContext context;		/* holds the rows that are not written */
	HeapTuple  *rows;
	int			nrows;
	int			maxrows;
	Size		bytes;
	int			lent_at;		/* the rows were also written by an inner
								 * subtransaction of this level; 0: not */
	const char *gap;			/* why this is a gap, or NULL */
	XactTruncate *truncates;	/* relations that were about to be emptied */
} XactLevel;

struct CdcXactTable
{
	CdcXactTable *next;
	CdcTracked	tracked;		/* as it was at the first change */
	bool		pinned;			/* its segment is locked, and written to */
	bool		notify;			/* it has got a snapshot that is to be told of */
	XactLevel  *level;			/* innermost */
};

static CdcXactTable *xact_tables = NULL;
static int64 xact_number = 0;	/* 0 until drawn */
static Size total_bytes = 0;	/* of all rows not yet written */
static bool any_truncates = false;	/* in this transaction */
static bool finished = false;	/* its snapshots are made */

static XactLevel *current_level(CdcXactTable *table);
static void write_level(CdcXactTable *table, XactLevel *level,
						BulkInsertState bistate);
static void flush_outer_levels(CdcXactTable *table);
static void lend_level(CdcXactTable *table, XactLevel *level);
static void settle_loans(CdcXactTable *table, int nest_level, bool commit);
static void discard_rows(XactLevel *level);
static void drop_level(CdcXactTable *table);
static void unpin(CdcXactTable *table);
static void merge_level(CdcXactTable *table);
static void finish_transaction(bool prepare);
static void finish_table(CdcXactTable *table, bool prepare);
static void xact_callback(XactEvent event, void *arg);
static void subxact_callback(SubXactEvent event, SubTransactionId mySubid,
							 SubTransactionId parentSubid, void *arg);

/*
 * Register the callbacks.
 */
void
cdc_commit_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}

/*
 * The state of a tracked table in the current transaction, made if it is not
 * there yet.
 */
CdcXactTable *
cdc_xact_table(const CdcTracked *tracked)
{
	CdcXactTable *table;

	for (table = xact_tables; table; table = table->next)
		if (table->tracked.relid == tracked->relid &&
			table->tracked.table_id == tracked->table_id)
			return table;

	table = MemoryContextAllocZero(TopTransactionContext, sizeof(CdcXactTable));
	table->tracked = *tracked;
	table->next = xact_tables;
	xact_tables = table;
	return table;
}

/*
 * The number that marks this transaction's rows in the logs.
 *
 * Numbers have to be unique but come in no order, so a session draws as many
 * as the sequence's increment says and uses them one by one.
 */
int64
cdc_xact_number(void)
{
	static Oid	seqid = InvalidOid;
	static int64 next = 0;
	static int	left = 0;

	if (xact_number == 0)
	{
		Oid			current = cdc_catalog_oid(CDC_TRANSACTION_NUMBER);

		/* the extension may have been dropped and created again */
		if (left == 0 || seqid != current)
		{
			next = cdc_sequence_next(current);
			left = XACT_NUMBER_STEP;
			seqid = current;
		}
		xact_number = next++;
		left--;
	}
	return xact_number;
}

/*
 * The level of the current (sub)transaction.  Raises an error if the
 * transaction has got its snapshot numbers already: changes would be lost.
 */
static XactLevel *
current_level(CdcXactTable *table)
{
	int			nest_level = GetCurrentTransactionNestLevel();
	XactLevel  *level = table->level;

	/* another library's callback may come after ours */
	if (finished)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot change tracked table \"%s\" in the middle of the commit",
						get_rel_name(table->tracked.relid)),
				 errdetail("The transaction has got its snapshot number.")));

	if (level && level->nest_level == nest_level)
		return level;

	Assert(level == NULL || level->nest_level < nest_level);
	level = MemoryContextAllocZero(TopTransactionContext, sizeof(XactLevel));
	level->nest_level = nest_level;
	level->parent = table->level;
	table->level = level;
	return level;
}

/*
 * The memory context in which a row must be made that is going to be given to
 * cdc_xact_add().
 */
MemoryContext
cdc_xact_context(CdcXactTable *table)
{
	XactLevel  *level = current_level(table);

	if (level->context == NULL)
		level->context = GenerationContextCreate(TopTransactionContext,
												 "cdc_changelog captured rows",
												 ALLOCSET_SMALL_SIZES);
	return level->context;
}

/*
 * Add a log row, allocated in cdc_xact_context(), to what the transaction has
 * captured.  It may be written at once or later.
 */
void
cdc_xact_add(CdcXactTable *table, HeapTuple tuple, bool inserted,
			 BulkInsertState bistate)
{
	XactLevel  *level = current_level(table);

	if (level->nrows == level->maxrows)
	{
		level->maxrows = level->maxrows ? level->maxrows * 2 : 8;
		level->rows = level->rows ?
			repalloc(level->rows, sizeof(HeapTuple) * level->maxrows) :
			MemoryContextAlloc(TopTransactionContext,
							   sizeof(HeapTuple) * level->maxrows);
	}
	level->rows[level->nrows++] = tuple;
	level->bytes += tuple->t_len;
	total_bytes += tuple->t_len;
	if (inserted)
		level->inserted++;
	else
		level->deleted++;

	if (level->nrows >= MAX_LEVEL_ROWS || level->bytes >= MAX_LEVEL_BYTES)
		write_level(table, level, bistate);
	else if (total_bytes >= MAX_TOTAL_BYTES)
		cdc_xact_flush_all();
}

/*
 * Write what the current (sub)transaction has captured of a table.
 */
void
cdc_xact_flush(CdcXactTable *table, BulkInsertState bistate)
{
	XactLevel  *level = table->level;

	if (level && level->nest_level == GetCurrentTransactionNestLevel())
		write_level(table, level, bistate);
}

/*
 * Write what the current (sub)transaction has captured of all tables.
 */
void
cdc_xact_flush_all(void)
{
	for (CdcXactTable *table = xact_tables; table; table = table->next)
		cdc_xact_flush(table, NULL);
}

/*
 * Write all that waits, also what the (sub)transactions around the current one
 * have captured: the log is going to take another form.
 */
void
cdc_xact_flush_all_levels(void)
{
	cdc_xact_flush_all();
	for (CdcXactTable *table = xact_tables; table; table = table->next)
		flush_outer_levels(table);
}

/*
 * Write what the (sub)transactions around the current one have captured of a
 * table and not written yet.
 */
static void
flush_outer_levels(CdcXactTable *table)
{
	int			nest_level = GetCurrentTransactionNestLevel();

	for (XactLevel *level = table->level; level; level = level->parent)
		if (level->nest_level < nest_level && level->nrows > 0 &&
			level->lent_at == 0)
			lend_level(table, level);
}

/*
 * The current (sub)transaction has rewritten the log of a table: the blocks
 * that rows were written to are others now.
 */
void
cdc_xact_log_rewritten(const CdcTracked *tracked)
{
	for (CdcXactTable *table = xact_tables; table; table = table->next)
	{
		Relation	log;
		BlockNumber nblocks;

		if (table->tracked.table_id != tracked->table_id)
			continue;
		log = table_open(table->tracked.logrelid, AccessShareLock);
		nblocks = RelationGetNumberOfBlocks(log);
		table_close(log, NoLock);
		if (nblocks == 0)
			continue;
		for (XactLevel *level = table->level; level; level = level->parent)
		{
			if (level->runs.nruns == 0)
				continue;
			/* all of it, in the old form too, should that come back */
			level->runs.runs[0].first = 0;
			level->runs.runs[0].last = Max(nblocks - 1,
										   level->runs.runs[level->runs.nruns - 1].last);
			level->runs.nruns = 1;
		}
	}
}

/*
 * Make the snapshot of the current transaction a gap.
 */
void
cdc_xact_gap(CdcXactTable *table, const char *reason)
{
	XactLevel  *level = current_level(table);

	if (level->gap == NULL)
		level->gap = MemoryContextStrdup(TopTransactionContext, reason);
}

/*
 * Our BEFORE TRUNCATE trigger has logged all rows of a relation as gone.  The
 * triggers of other tables in the same command, and those that sort behind
 * ours, have yet to fire, and may still change the relation.
 */
void
cdc_xact_truncate(CdcXactTable *table, Relation rel)
{
	XactLevel  *level = current_level(table);
	SubTransactionId subid = GetCurrentSubTransactionId();
	XactTruncate *truncate;

	truncate = MemoryContextAlloc(TopTransactionContext, sizeof(XactTruncate));
	truncate->relid = RelationGetRelid(rel);
	truncate->relfilenode = rel->rd_rel->relfilenode;
	/* as ExecuteTruncateGuts() decides it */
	truncate->in_place = rel->rd_createSubid == subid ||
		cdc_relation_storage_subid(rel) == subid;
	truncate->depth = DatumGetInt32(OidFunctionCall0(F_PG_TRIGGER_DEPTH));
	truncate->statement = GetCurrentStatementStartTimestamp();
	truncate->next = level->truncates;
	level->truncates = truncate;
	any_truncates = true;
}

/*
 * Is a relation about to be emptied by a TRUNCATE that has been logged?  What
 * is changed in it now never becomes visible, and must not be logged.
 *
 * A relation that the (sub)transaction itself has made keeps its storage when
 * it is emptied, and then it cannot always be told whether that has happened.
 * If in doubt, the transaction's snapshot becomes a gap.
 */
bool
cdc_xact_truncating(const CdcTracked *tracked, Relation rel)
{
	CdcXactTable *table;

	if (!any_truncates)
		return false;

	table = cdc_xact_table(tracked);
	for (XactLevel *level = table->level; level; level = level->parent)
		for (XactTruncate *t = level->truncates; t; t = t->next)
		{
			if (t->relid != RelationGetRelid(rel) ||
				t->relfilenode != rel->rd_rel->relfilenode)
				continue;
			if (!t->in_place)
				return true;
			if (t->statement == GetCurrentStatementStartTimestamp() &&
				t->depth < DatumGetInt32(OidFunctionCall0(F_PG_TRIGGER_DEPTH)))
				cdc_xact_gap(table, "the table was changed by triggers while it was truncated");
		}
	return false;
}

/*
 * Append the waiting rows of a level to the log.  The level must be the
 * current (sub)transaction's.
 */
static void
write_level(CdcXactTable *table, XactLevel *level, BulkInsertState bistate)
{
	Relation	log;
	int			nrows = level->nrows;

	if (nrows == 0)
		return;

	Assert(level->nest_level == GetCurrentTransactionNestLevel());
	if (!table->pinned)
	{
		/* another segment may be the newest one by now */
		if (!cdc_segment_pin(&table->tracked))
		{
			/* the transaction itself has untracked or dropped the table */
			discard_rows(level);
			return;
		}
		table->pinned = true;
	}
	log = table_open(table->tracked.logrelid, NoLock);
	/* cdc_log_append() frees the rows even where it fails half way */
	level->nrows = 0;
	total_bytes -= level->bytes;
	level->bytes = 0;
	cdc_log_append(log, level->rows, nrows, bistate, &level->runs);
	table_close(log, NoLock);
}

/*
 * Write the waiting rows of an outer level under the current subtransaction.
 * They go on waiting as well, until it is known how that ends: if it is
 * aborted, the log has its old form again, and they can be written as they
 * are.
 */
static void
lend_level(CdcXactTable *table, XactLevel *level)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(cdc_xact_context(table));
	int			nrows = level->nrows;
	HeapTuple  *rows = palloc(sizeof(HeapTuple) * nrows);
	Relation	log;

	for (int i = 0; i < nrows; i++)
		rows[i] = heap_copytuple(level->rows[i]);
	MemoryContextSwitchTo(oldcontext);

	if (!table->pinned)
	{
		if (!cdc_segment_pin(&table->tracked))
			return;				/* untracked or dropped, for the time being */
		table->pinned = true;
	}
	log = table_open(table->tracked.logrelid, NoLock);
	cdc_log_append(log, rows, nrows, NULL, &table->level->runs);
	table_close(log, NoLock);
	level->lent_at = table->level->nest_level;
}

/*
 * A subtransaction has ended that may have written rows of outer levels.
 */
static void
settle_loans(CdcXactTable *table, int nest_level, bool commit)
{
	for (XactLevel *level = table->level; level; level = level->parent)
	{
		if (level->lent_at < nest_level)
			continue;
		if (!commit)
			level->lent_at = 0;
		else if (level->nest_level < nest_level - 1)
			level->lent_at = nest_level - 1;
		else
		{
			discard_rows(level);
			level->lent_at = 0;
		}
	}
}

/*
 * Throw the waiting rows of a level away.
 */
static void
discard_rows(XactLevel *level)
{
	total_bytes -= level->bytes;
	level->bytes = 0;
	level->nrows = 0;
	if (level->context)
		MemoryContextReset(level->context);
}

/*
 * Throw the innermost level of a table away.
 */
static void
drop_level(CdcXactTable *table)
{
	XactLevel  *level = table->level;

	total_bytes -= level->bytes;
	if (level->context)
		MemoryContextDelete(level->context);
	if (level->rows)
		pfree(level->rows);
	table->level = level->parent;
	pfree(level);
}

/*
 * A subtransaction has aborted, and with it the lock on the segment may be
 * gone.  If rows are left that were written there, it is not.
 */
static void
unpin(CdcXactTable *table)
{
	table->pinned = false;
	for (XactLevel *level = table->level; level; level = level->parent)
		if (level->runs.nruns > 0)
			table->pinned = true;
}

/*
 * Merge the innermost level of a table into the one around it, whose
 * (sub)transaction goes on.
 */
static void
merge_level(CdcXactTable *table)
{
	XactLevel  *level = table->level;
	XactLevel  *parent = level->parent;

	if (parent == NULL || parent->nest_level < level->nest_level - 1)
	{
		level->nest_level--;
		return;
	}

	parent->inserted += level->inserted;
	parent->deleted += level->deleted;
	if (parent->gap == NULL)
		parent->gap = level->gap;
	while (level->truncates)
	{
		XactTruncate *truncate = level->truncates;

		level->truncates = truncate->next;
		truncate->next = parent->truncates;
		parent->truncates = truncate;
	}
	for (int i = 0; i < level->runs.nruns; i++)
		cdc_runs_add(&parent->runs, level->runs.runs[i].first,
					 level->runs.runs[i].last);

	if (level->nrows > 0)
	{
		MemoryContext oldcontext;

		if (parent->context == NULL)
			parent->context = AllocSetContextCreate(TopTransactionContext,
													"cdc_changelog captured rows",
													ALLOCSET_SMALL_SIZES);
		oldcontext = MemoryContextSwitchTo(parent->context);
		if (parent->nrows + level->nrows > parent->maxrows)
		{
			parent->maxrows = (parent->nrows + level->nrows) * 2;
			parent->rows = parent->rows ?
				repalloc(parent->rows, sizeof(HeapTuple) * parent->maxrows) :
				MemoryContextAlloc(TopTransactionContext,
								   sizeof(HeapTuple) * parent->maxrows);
		}
		for (int i = 0; i < level->nrows; i++)
			parent->rows[parent->nrows++] = heap_copytuple(level->rows[i]);
		MemoryContextSwitchTo(oldcontext);

		/* the rows go on waiting, now at the parent */
		parent->bytes += level->bytes;
		level->bytes = 0;
	}
	drop_level(table);
}

/*
 * Write the rest of what the transaction has captured, and give each table
 * that it changed a snapshot.
 */
static void
finish_transaction(bool prepare)
{
	CdcXactTable *last = NULL;
	List	   *changed = NIL;

	/* toasting needs a snapshot, and there is none at this point */
	PushActiveSnapshot(GetTransactionSnapshot());
	for (;;)
	{
		CdcXactTable *lowest = NULL;

		/*
		 * Ascending order of OIDs keeps committing transactions from
		 * deadlock.
		 */
		for (CdcXactTable *table = xact_tables; table; table = table->next)
		{
			if (last != NULL &&
				(table->tracked.relid < last->tracked.relid ||
				 (table->tracked.relid == last->tracked.relid &&
				  table->tracked.table_id <= last->tracked.table_id)))
				continue;
			if (lowest == NULL ||
				table->tracked.relid < lowest->tracked.relid ||
				(table->tracked.relid == lowest->tracked.relid &&
				 table->tracked.table_id < lowest->tracked.table_id))
				lowest = table;
		}
		if (lowest == NULL)
			break;
		if (lowest->level)
			finish_table(lowest, prepare);
		/* nobody can be told of what is not committed here */
		if (lowest->notify && !prepare)
			changed = lappend_oid(changed, lowest->tracked.relid);
		last = lowest;
	}
	PopActiveSnapshot();
	cdc_notify_send(changed);
}

/*
 * Give one changed table its snapshot.
 */
static void
finish_table(CdcXactTable *table, bool prepare)
{
	XactLevel  *level = table->level;
	CdcTracked	now;
	CdcSnapshotRow row;

	/* The transaction may have untracked or dropped the table itself. */
	if (!cdc_tracked_lookup(table->tracked.relid, &now) ||
		now.table_id != table->tracked.table_id)
		return;

	write_level(table, level, NULL);
	if (level->inserted == 0 && level->deleted == 0 && level->gap == NULL)
		return;

	row.xid = U64FromFullTransactionId(GetTopFullTransactionId());
	row.tx = cdc_xact_number();
	row.snapshot_id = cdc_sequence_next(table->tracked.seqid);

	/*
	 * Read this after the number was drawn: whoever gets his xid later draws
	 * a larger number.
	 */
	row.next_xid = U64FromFullTransactionId(ReadNextFullTransactionId());
	row.committed_at = GetCurrentTimestamp();
	row.segment = table->tracked.segment;
	row.inserted = level->inserted;
	row.deleted = level->deleted;
	row.kind = level->gap ? CDC_KIND_GAP : CDC_KIND_CHANGES;
	row.reason = unconstify(char *, level->gap);
	row.nruns = level->runs.nruns;
	row.runs = level->runs.runs;
	cdc_snapshot_insert(table->tracked.table_id, &row);
	table->notify = now.notify;

	/*
	 * Leave a segment that is large enough, which takes locks that a prepared
	 * transaction must not keep.
	 */
	if (row.nruns > 0 && !prepare &&
		row.runs[row.nruns - 1].last >= (BlockNumber) cdc_segment_size / (BLCKSZ / 1024))
		(void) cdc_segment_start(&table->tracked, false);
}

/*
 * Is the current transaction going to make a snapshot of a table, as far as it
 * has come?
 */
bool
cdc_xact_changed(const CdcTracked *tracked)
{
	for (CdcXactTable *table = xact_tables; table; table = table->next)
	{
		if (table->tracked.table_id != tracked->table_id)
			continue;
		for (XactLevel *level = table->level; level; level = level->parent)
			if (level->inserted > 0 || level->deleted > 0 || level->gap)
				return true;
	}
	return false;
}

/*
 * What the current transaction has written of a table, for a reader that has
 * to take it out of what it sees of the live table.  Returns false if there is
 * nothing.
 */
bool
cdc_xact_own_rows(const CdcTracked *tracked, CdcOwnRows *own)
{
	CdcXactTable *table;

	memset(own, 0, sizeof(CdcOwnRows));
	for (table = xact_tables; table; table = table->next)
		if (table->tracked.table_id == tracked->table_id)
			break;
	if (table == NULL || table->level == NULL)
		return false;

	cdc_xact_flush(table, NULL);
	flush_outer_levels(table);
	own->tx = xact_number;
	own->segment = table->tracked.segment;
	for (XactLevel *level = table->level; level; level = level->parent)
	{
		own->inserted += level->inserted;
		own->deleted += level->deleted;
		own->unwritten |= level->nrows > 0 && level->lent_at == 0;
		own->gap |= level->gap != NULL;
		for (int i = 0; i < level->runs.nruns; i++)
			cdc_runs_add(&own->runs, level->runs.runs[i].first,
						 level->runs.runs[i].last);
	}
	return own->inserted > 0 || own->deleted > 0;
}

/*
 * Transaction callback.
 */
static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			if (xact_tables)
				finish_transaction(event == XACT_EVENT_PRE_PREPARE);
			finished = true;
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			cdc_log_abort();
			/* FALLTHROUGH */
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PREPARE:
			/* the memory goes with the transaction's */
			xact_tables = NULL;
			xact_number = 0;
			total_bytes = 0;
			any_truncates = false;
			finished = false;
			break;
		default:
			break;
	}
}

/*
 * Subtransaction callback.
 */
static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	int			nest_level;

	if (event == SUBXACT_EVENT_ABORT_SUB)
		cdc_log_abort();
	if (xact_tables == NULL)
		return;

	nest_level = GetCurrentTransactionNestLevel();
	for (CdcXactTable *table = xact_tables; table; table = table->next)
	{
		XactLevel  *level = table->level;

		if (level == NULL || level->nest_level < nest_level)
			continue;

		switch (event)
		{
			case SUBXACT_EVENT_PRE_COMMIT_SUB:

				/*
				 * The parent may never get to write: keep what waits there
				 * small.
				 */
				if (level->nrows > 0 && level->parent &&
					level->parent->nest_level == nest_level - 1 &&
					(level->parent->nrows + level->nrows >= MAX_LEVEL_ROWS ||
					 level->parent->bytes + level->bytes >= MAX_LEVEL_BYTES))
				{
					PushActiveSnapshot(GetTransactionSnapshot());
					write_level(table, level, NULL);
					PopActiveSnapshot();
				}
				break;
			case SUBXACT_EVENT_COMMIT_SUB:
				settle_loans(table, nest_level, true);
				merge_level(table);
				break;
			case SUBXACT_EVENT_ABORT_SUB:
				while (table->level && table->level->nest_level >= nest_level)
					drop_level(table);
				settle_loans(table, nest_level, false);
				unpin(table);
				break;
			default:
				break;
		}
	}
}
