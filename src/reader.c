/*-------------------------------------------------------------------------
 *
 * reader.c
 *		Reading a range of the log in two passes.
 *
 * The first pass reads the blocks of the log in which the transactions of the
 * range have written, and makes a small event of each of their rows.  The
 * algebra decides which of them are to be shown.  The second pass visits those
 * in the order they lie in the log and writes them to the result.  The rows
 * themselves are never copied in between.
 *
 * What was found of each snapshot must be what commit.c recorded.  If it is
 * not, the log may have been rewritten, so that the recorded blocks are no
 * longer right: then all of it is read.  If it is still not, the log is
 * damaged, and an error is raised; a wrong changelog is never returned.
 *
 * Where the content at the start of the range matters, it is computed from the
 * live table and all that happened since.  The live table is then read without
 * the current transaction's own changes, whose log rows are not there yet;
 * except where the transaction has rewritten the table or begun to track it.
 *
 * Rows stay where they are between the passes because the log is never updated
 * and the range's snapshot is held.  The log's lock is kept to the end of the
 * transaction, as the result may point to values in its TOAST table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/reader.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "lib/bloomfilter.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "cdc_changelog.h"
#include "eventsink.h"
#include "log.h"
#include "partition.h"
#include "reader.h"
#include "segment.h"
#include "tracked.h"

/* Intervals of blocks nearer to each other than this are read as one */
#define READ_GAP		8

/*
 * Memory for events, besides work_mem, and for positions of the output.  The
 * events are gone when the result is written, which has work_mem for itself.
 */
#define SINK_MEMORY		((Size) 8 * 1024 * 1024)
#define OUTPUT_MEMORY	((Size) 8 * 1024 * 1024)

/*
 * A relation that rows are in: the live table or a leaf partition of it, or a
 * segment of the log.
 */
typedef struct RowSource
{
	Relation	rel;
	bool		live;			/* the live table or a partition */
	int32		segment;		/* of the log */
	int			shift;			/* of its columns, see rowcmp.h */
	bool		plain_layout;	/* data can be copied to the result as it is */
	CdcSegment	info;			/* of a segment */
	TupleTableSlot *fetch[2];	/* for rows that are fetched to compare them */
	AttrMap    *attrmap;		/* of a partition with a layout of its own, to
								 * the tracked table's; else NULL */
	TupleTableSlot *mapped[2];	/* the fetched rows with that applied */
} RowSource;

/* Row that was fetched last for a comparison */
typedef struct FetchSlot
{
	TupleTableSlot *current;
	uint32		block;
	uint16		offset;
	uint16		source;
} FetchSlot;

/* Snapshot of a transaction number, ordered by the number */
typedef struct TxEntry
{
	int64		tx;
	int32		snap;
} TxEntry;

typedef struct Reader
{
	CdcRange   *range;
	Relation	source;
	const CdcReadOptions *options;
	CdcRowCompare *cmp;
	CdcAlgebra	algebra;
	CdcEventSink *sink;
	CdcOutput  *output;
	int			nsources;		/* the live table, the segments, and then the
								 * partitions, once they are opened */
	int			nsegments;
	RowSource  *sources;		/* a segment that is not needed has no rel */
	TxEntry    *txs;
	int			ntxs;
	TxEntry    *last_tx;		/* found last */
	SnapshotData log_snapshot;	/* the range's, with all own log rows */
	bool		replaced;		/* the own transaction has replaced the
								 * table's storage, or tracks it newly */
	bool		have_own;		/* own rows are at position range->nsnaps */
	CdcOwnRows	own;
	int64	   *found_plus;		/* rows found of each snapshot */
	int64	   *found_minus;
	TransactionId origin_xmin;	/* rows with this xmin, of this snapshot and */
	int32		origin_snap;	/* segment, are as they were written */
	int			origin_source;
	List	   *nullable;		/* keys with a NULL here are not proven */
	bool		unproven;		/* such a key was found */
	bloom_filter *touched;		/* hashes of the keys in the range */
	CdcVerifyReport report;		/* where to tell what is wrong, or NULL */
	void	   *report_arg;
	int64		own_tx;			/* for the report: number of the own rows */
	CdcSnapshotRow *oldest;		/* ... and the snapshot before the range */
	FetchSlot	fetch[2];
	MemoryContext context;
	MemoryContext tmpcontext;	/* reset for each row */
} Reader;

/* To compute a content */
static const CdcReadOptions content_options = {NIL, CDC_MODE_NET, false, false};

/* Names of the change types, in the order of CdcChange */
static const char *const change_names[] = {
	NULL, "INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER", "INSERT"
};

static Reader *begin_read(CdcRange *range, Relation source,
						  const CdcReadOptions *options);
static void end_read(Reader *reader);
static void open_sources(Reader *reader);
static void open_segment(Reader *reader, RowSource *s);
static void open_segments(Reader *reader, int first, int last);
static void close_sources(Reader *reader);
static void index_transactions(Reader *reader);
static void scan_log(Reader *reader, int first, int last);
static void scan_segment(Reader *reader, int source, int first, int last,
						 bool whole);
static void scan_blocks(Reader *reader, int source, TupleTableSlot **slots,
						int first, int last, BlockNumber from, BlockNumber to);
static bool row_is_genuine(Reader *reader, int source, int32 snap,
						   TransactionId xmin);
static void report_changed_row(Reader *reader, TupleTableSlot *slot, int shift,
							   int32 snap, int64 tx);
static void report_unknown_row(Reader *reader, TupleTableSlot *slot, int shift,
							   int64 tx);
static bool counts_match(Reader *reader, int first, int last);
static void scan_live(Reader *reader);
static void open_partitions(Reader *reader, Snapshot snapshot);
static void scan_live_source(Reader *reader, int source, Snapshot snapshot);
static bool partitions_replaced(Reader *reader);
static void read_content(Reader *reader);
static void find_own_rows(Reader *reader);
static void setup_algebra(Reader *reader);
static void write_result(Reader *reader, Tuplestorestate *store,
						 TupleDesc desc, bool content);
static TupleTableSlot *fetch_row(Reader *reader, int which, const CdcEvent *e,
								 int *shift);

/*
 * The row type of a table's changelog.
 */
TupleDesc
cdc_changelog_desc(Relation source)
{
	TupleDesc	from = RelationGetDescr(source);
	TupleDesc	desc;
	AttrNumber	attno = 0;

	for (int i = 0; i < from->natts; i++)
	{
		const char *name = NameStr(TupleDescAttr(from, i)->attname);

		if (TupleDescAttr(from, i)->attisdropped)
			continue;
		if (cdc_meta_column(name))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("changelog of table \"%s\" cannot be read because of its column \"%s\"",
							RelationGetRelationName(source), name),
					 errdetail("The changelog has a column of this name."),
					 errhint("Rename the column of the table.")));
		attno++;
	}

	desc = CreateTemplateTupleDesc(attno + CDC_NUM_META_COLS);
	attno = 0;
	for (int i = 0; i < from->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(from, i);

		if (att->attisdropped)
			continue;
		attno++;
		TupleDescInitEntry(desc, attno, NameStr(att->attname), att->atttypid,
						   att->atttypmod, 0);
		TupleDescInitEntryCollation(desc, attno, att->attcollation);
	}
	TupleDescInitEntry(desc, ++attno, CDC_COL_TYPE, TEXTOID, -1, 0);
	TupleDescInitEntry(desc, ++attno, CDC_COL_ORDINAL, INT8OID, -1, 0);
	TupleDescInitEntry(desc, ++attno, CDC_COL_SNAPSHOT, INT8OID, -1, 0);
	TupleDescInitEntry(desc, ++attno, CDC_COL_TIMESTAMP, TIMESTAMPTZOID, -1, 0);
	return BlessTupleDesc(desc);
}

/*
 * Compute a changelog and add its rows to a tuplestore.
 *
 * "desc" is what cdc_changelog_desc() has returned.  Raises
 * cardinality_violation where identifiers are not unique, and data_corrupted
 * where the log is damaged.
 */
void
cdc_read_changelog(CdcRange *range, Relation source,
				   const CdcReadOptions *options, Tuplestorestate *store,
				   TupleDesc desc)
{
	Reader	   *reader = begin_read(range, source, options);
	MemoryContext oldcontext = MemoryContextSwitchTo(reader->context);
	bool		prove;

	/* Keys need a look at the live table where nothing proves them unique. */
	prove = options->identifiers != NIL && options->validate &&
		!range->from_start && range->nrange > 0;
	if (prove && !cdc_range_keys_proven(range, source, reader->cmp,
										&reader->nullable))
		reader->unproven = true;

	scan_log(reader, 0, range->nrange);
	if (range->from_start || (prove && reader->unproven))
		read_content(reader);
	cdc_sink_run(reader->sink, &reader->algebra);
	cdc_output_sort(reader->output);
	write_result(reader, store, desc, false);

	MemoryContextSwitchTo(oldcontext);
	end_read(reader);
}

/*
 * Compute the content of a table at a snapshot, for a range that was made by
 * cdc_range_open_content(), and add its rows, which have the table's row type
 * "desc", to a tuplestore.
 *
 * Raises data_corrupted where the log is damaged.
 */
void
cdc_read_content(CdcRange *range, Relation source, Tuplestorestate *store,
				 TupleDesc desc)
{
	Reader	   *reader = begin_read(range, source, &content_options);
	MemoryContext oldcontext = MemoryContextSwitchTo(reader->context);

	read_content(reader);
	cdc_sink_run(reader->sink, &reader->algebra);
	cdc_output_sort(reader->output);
	write_result(reader, store, desc, true);

	MemoryContextSwitchTo(oldcontext);
	end_read(reader);
}

/*
 * Compare all that the log has with what the snapshots have recorded, and with
 * the live table, for a range that was made by cdc_range_open_all().  What does
 * not fit is given to "report"; see reader.h.
 */
void
cdc_verify_log(CdcRange *range, Relation source, CdcVerifyReport report,
			   void *arg)
{
	Reader	   *reader = begin_read(range, source, &content_options);
	MemoryContext oldcontext = MemoryContextSwitchTo(reader->context);
	CdcSnapshotRow *oldest;
	CdcOwnRows	own;
	int			last = range->nsnaps + (reader->have_own ? 1 : 0);

	reader->report = report;
	reader->report_arg = arg;
	reader->algebra.verify = true;
	reader->own_tx = cdc_xact_own_rows(&range->tracked, &own) ? own.tx : 0;
	if (cdc_snapshot_fetch(range->tracked.table_id, range->start - 1,
						   range->start, range->snapshot, &oldest) > 0)
		reader->oldest = oldest;

	for (int i = 1; i <= reader->nsegments; i++)
	{
		open_segment(reader, &reader->sources[i]);
		if (reader->sources[i].rel == NULL)
			cdc_range_recheck(range);
		else
			scan_segment(reader, i, 0, last, true);
	}
	for (int i = 0; i < range->nsnaps; i++)
	{
		CdcSnapshotRow *row = &range->snaps[i];

		if (reader->found_plus[i] != row->inserted ||
			reader->found_minus[i] != row->deleted)
			report(arg, 0, row->snapshot_id,
				   psprintf("the snapshot has %lld rows that came and %lld that went, but %lld and %lld were found",
							(long long) row->inserted, (long long) row->deleted,
							(long long) reader->found_plus[i],
							(long long) reader->found_minus[i]),
				   NULL, 0);
	}
	scan_live(reader);
	cdc_sink_run(reader->sink, &reader->algebra);

	MemoryContextSwitchTo(oldcontext);
	end_read(reader);
}

/*
 * Make a reader, in a memory context of its own, which end_read() deletes.
 */
static Reader *
begin_read(CdcRange *range, Relation source, const CdcReadOptions *options)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "cdc_changelog read",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcontext = MemoryContextSwitchTo(context);
	Reader	   *reader = palloc0(sizeof(Reader));
	double		expected = 16;

	reader->range = range;
	reader->source = source;
	reader->options = options;
	reader->cmp = cdc_rowcmp_create(RelationGetDescr(source),
									options->identifiers, range->relname);
	reader->log_snapshot = *range->snapshot;
	reader->log_snapshot.curcid = InvalidCommandId;
	reader->context = context;
	reader->tmpcontext = AllocSetContextCreate(context, "cdc_changelog row",
											   ALLOCSET_DEFAULT_SIZES);
	setup_algebra(reader);
	PredicateLockRelation(source, range->snapshot);
	if (range->from_start)
	{
		find_own_rows(reader);
		cdc_range_load_tail(range);
		expected += Max(source->rd_rel->reltuples, 0);
	}
	for (int i = 0; i < range->nsnaps; i++)
		expected += range->snaps[i].inserted + range->snaps[i].deleted;
	reader->sink = cdc_sink_create((Size) work_mem * 1024 + SINK_MEMORY, expected);
	reader->output = cdc_output_create(OUTPUT_MEMORY);
	open_sources(reader);
	index_transactions(reader);
	MemoryContextSwitchTo(oldcontext);
	return reader;
}

/*
 * Free a reader, but keep the locks on the log.
 */
static void
end_read(Reader *reader)
{
	cdc_output_end(reader->output);
	close_sources(reader);
	MemoryContextDelete(reader->context);
}

/*
 * Set up the live table, and find out which segments the log has.
 */
static void
open_sources(Reader *reader)
{
	TupleDesc	desc = RelationGetDescr(reader->source);
	bool		dropped = false;
	CdcSegment *segments;
	int			n = cdc_segments_fetch(reader->range->tracked.table_id, &segments);

	for (int i = 0; i < desc->natts; i++)
		dropped |= TupleDescAttr(desc, i)->attisdropped;

	reader->nsegments = n;
	reader->nsources = n + 1;
	reader->sources = palloc0(sizeof(RowSource) * (n + 1));
	reader->sources[0].rel = reader->source;
	reader->sources[0].live = true;
	reader->sources[0].plain_layout = !dropped;
	for (int j = 0; j < 2; j++)
		reader->sources[0].fetch[j] = table_slot_create(reader->source, NULL);

	for (int i = 0; i < n; i++)
	{
		RowSource  *s = &reader->sources[i + 1];

		s->info = segments[i];
		s->segment = segments[i].segment;
		s->shift = CDC_LOG_FIRST_COL - 1;
		s->plain_layout = !dropped;
	}
	pfree(segments);
}

/*
 * Open a segment.  It stays without a relation if it is not there any more.
 */
static void
open_segment(Reader *reader, RowSource *s)
{
	s->rel = try_table_open(s->info.logrelid, AccessShareLock);
	if (s->rel == NULL)
		return;
	if (!cdc_log_matches(RelationGetDescr(reader->source),
						 RelationGetDescr(s->rel)))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("log of table \"%s\" does not match its columns",
						reader->range->relname)));
	for (int j = 0; j < 2; j++)
		s->fetch[j] = MakeSingleTupleTableSlot(RelationGetDescr(s->rel),
											   &TTSOpsBufferHeapTuple);
}

/*
 * Open the segments that hold rows of the snapshots first to last - 1, and of
 * the own transaction if last is beyond all of them.
 */
static void
open_segments(Reader *reader, int first, int last)
{
	CdcRange   *range = reader->range;
	int			source = 1;

	for (int i = first; i < last; i++)
	{
		CdcSnapshotRow *row = i < range->nsnaps ? &range->snaps[i] : NULL;
		int32		segment = row ? row->segment : reader->own.segment;

		if (row && row->inserted == 0 && row->deleted == 0)
			continue;

		/* nearly always the segment of the snapshot before */
		if (source >= reader->nsources ||
			reader->sources[source].segment != segment)
			for (source = 1; source < reader->nsources; source++)
				if (reader->sources[source].segment == segment)
					break;
		if (source < reader->nsources && reader->sources[source].rel == NULL)
			open_segment(reader, &reader->sources[source]);
		if (source >= reader->nsources || reader->sources[source].rel == NULL)
			cdc_range_segment_missing(range, segment);
	}
}

/*
 * Close what was opened, but keep the locks.
 */
static void
close_sources(Reader *reader)
{
	for (int i = 0; i < reader->nsources; i++)
	{
		RowSource  *s = &reader->sources[i];

		if (s->rel == NULL)
			continue;
		for (int j = 0; j < 2; j++)
		{
			ExecDropSingleTupleTableSlot(s->fetch[j]);
			if (s->mapped[j])
				ExecDropSingleTupleTableSlot(s->mapped[j]);
		}
		if (i > 0)
			table_close(s->rel, NoLock);
	}
}

static int
compare_txs(const void *a, const void *b)
{
	int64		x = ((const TxEntry *) a)->tx;
	int64		y = ((const TxEntry *) b)->tx;

	return x < y ? -1 : x > y;
}

/*
 * Build the table that tells the snapshot of a transaction number.
 */
static void
index_transactions(Reader *reader)
{
	CdcRange   *range = reader->range;
	int			n = range->nsnaps + (reader->have_own ? 1 : 0);

	reader->txs = palloc_extended(sizeof(TxEntry) * (n + 1), MCXT_ALLOC_HUGE);
	for (int i = 0; i < range->nsnaps; i++)
	{
		reader->txs[i].tx = range->snaps[i].tx;
		reader->txs[i].snap = i;
	}
	if (reader->have_own)
	{
		reader->txs[range->nsnaps].tx = reader->own.tx;
		reader->txs[range->nsnaps].snap = range->nsnaps;
	}
	qsort(reader->txs, n, sizeof(TxEntry), compare_txs);
	reader->ntxs = n;
	reader->last_tx = NULL;

	reader->found_plus = palloc_extended(sizeof(int64) * (n + 1),
										 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	reader->found_minus = palloc_extended(sizeof(int64) * (n + 1),
										  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

/*
 * Position of the snapshot of a transaction number, or -1.
 */
static inline int32
snapshot_of(Reader *reader, int64 tx)
{
	int			low = 0;
	int			high = reader->ntxs;

	/* rows of a transaction lie side by side */
	if (reader->last_tx && reader->last_tx->tx == tx)
		return reader->last_tx->snap;

	while (low < high)
	{
		int			mid = low + (high - low) / 2;

		if (reader->txs[mid].tx < tx)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == reader->ntxs || reader->txs[low].tx != tx)
		return -1;
	reader->last_tx = &reader->txs[low];
	return reader->last_tx->snap;
}

/*
 * Does what was found of the snapshots first to last - 1 match what was
 * recorded?
 */
static bool
counts_match(Reader *reader, int first, int last)
{
	CdcSnapshotRow *snaps = reader->range->snaps;

	for (int i = first; i < last; i++)
		if (reader->found_plus[i] != snaps[i].inserted ||
			reader->found_minus[i] != snaps[i].deleted)
			return false;
	return true;
}

/*
 * Add the events of the snapshots first to last - 1 to the sink, and of the
 * own transaction if last is beyond all of them.
 */
static void
scan_log(Reader *reader, int first, int last)
{
	CdcRange   *range = reader->range;

	if (first == last)
		return;

	open_segments(reader, first, last);
	for (int whole = 0; whole <= 1; whole++)
	{
		for (int source = 1; source <= reader->nsegments; source++)
			if (reader->sources[source].rel != NULL)
				scan_segment(reader, source, first, last, whole);
		if (counts_match(reader, first, Min(last, range->nsnaps)))
			return;

		/* Start again.  This is called with first > 0 for a sink in use. */
		if (whole)
			break;
		cdc_sink_reset(reader->sink);
		for (int i = 0; i < last; i++)
			reader->found_plus[i] = reader->found_minus[i] = 0;
		first = 0;
	}

	for (int i = first; i < Min(last, range->nsnaps); i++)
	{
		CdcSnapshotRow *row = &range->snaps[i];

		if (reader->found_plus[i] != row->inserted ||
			reader->found_minus[i] != row->deleted)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("log of table \"%s\" is damaged", range->relname),
					 errdetail("Snapshot %lld has %lld rows that came and %lld that went, but %lld and %lld were found.",
							   (long long) row->snapshot_id,
							   (long long) row->inserted, (long long) row->deleted,
							   (long long) reader->found_plus[i],
							   (long long) reader->found_minus[i]),
					 errhint("Call cdc.untrack and cdc.track for the table, and rebuild the targets.")));
	}
}

static int
compare_runs(const void *a, const void *b)
{
	BlockNumber x = ((const CdcBlockRun *) a)->first;
	BlockNumber y = ((const CdcBlockRun *) b)->first;

	return x < y ? -1 : x > y;
}

/*
 * Read one segment: the blocks recorded for the snapshots, or all.
 */
static void
scan_segment(Reader *reader, int source, int first, int last, bool whole)
{
	CdcRange   *range = reader->range;
	RowSource  *s = &reader->sources[source];
	BlockNumber nblocks = RelationGetNumberOfBlocks(s->rel);
	TupleTableSlot *slots[2];
	CdcBlockRun *runs;
	int			nruns = 0;

	if (nblocks == 0)
		return;

	if (whole)
	{
		runs = palloc(sizeof(CdcBlockRun));
		runs[0].first = 0;
		runs[0].last = nblocks - 1;
		nruns = 1;
	}
	else
	{
		Size		n = 0;

		for (int i = first; i < Min(last, range->nsnaps); i++)
			n += range->snaps[i].nruns;
		runs = palloc_extended(sizeof(CdcBlockRun) * (n + CDC_MAX_RUNS + 1),
							   MCXT_ALLOC_HUGE);
		for (int i = first; i < Min(last, range->nsnaps); i++)
		{
			CdcSnapshotRow *row = &range->snaps[i];

			if (row->segment != s->segment)
				continue;
			if (row->nruns == 0 && (row->inserted > 0 || row->deleted > 0))
			{
				/* restored: it can be anywhere, and so can the others */
				runs[0].first = 0;
				runs[0].last = nblocks - 1;
				nruns = 1;
				break;
			}
			memcpy(&runs[nruns], row->runs, sizeof(CdcBlockRun) * row->nruns);
			nruns += row->nruns;
		}
		if (reader->have_own && last > range->nsnaps &&
			reader->own.segment == s->segment)
		{
			memcpy(&runs[nruns], reader->own.runs.runs,
				   sizeof(CdcBlockRun) * reader->own.runs.nruns);
			nruns += reader->own.runs.nruns;
		}
		qsort(runs, nruns, sizeof(CdcBlockRun), compare_runs);
	}

	slots[0] = MakeSingleTupleTableSlot(RelationGetDescr(s->rel),
										&TTSOpsBufferHeapTuple);
	slots[1] = MakeSingleTupleTableSlot(RelationGetDescr(s->rel),
										&TTSOpsBufferHeapTuple);
	for (int i = 0; i < nruns;)
	{
		BlockNumber from = runs[i].first;
		BlockNumber to = runs[i].last;

		for (i++; i < nruns && (runs[i].first <= to ||
								runs[i].first - to <= READ_GAP); i++)
			to = Max(to, runs[i].last);
		if (from < nblocks)
			scan_blocks(reader, source, slots, first, last, from,
						Min(to, nblocks - 1));
	}
	ExecDropSingleTupleTableSlot(slots[0]);
	ExecDropSingleTupleTableSlot(slots[1]);
	pfree(runs);
}

/*
 * The signed transaction number of a log row.
 */
static inline int64
row_transaction(Reader *reader, HeapTuple tuple)
{
	HeapTupleHeader td = tuple->t_data;
	int64		tx;

	if (HeapTupleHasNulls(tuple) && att_isnull(0, td->t_bits))
	{
		if (reader->report)
			return 0;			/* no snapshot has this one */
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("log of table \"%s\" is damaged", reader->range->relname),
				 errdetail("A row has no transaction number.")));
	}
	memcpy(&tx, (char *) td + td->t_hoff, sizeof(int64));
	return tx;
}

/*
 * Was the row of a snapshot with this inserting transaction written by the one
 * that the snapshot stands for?  Somebody who changes or adds a row by hand
 * does so in another transaction.
 *
 * Restored rows all come from one transaction, and tell nothing.  They are
 * told by the snapshot's own row in the catalog table not being from the
 * transaction it names; and where it happens to be, because the numbers of
 * another server have come along, by being one of many of that transaction.
 */
static bool
row_is_genuine(Reader *reader, int source, int32 snap, TransactionId xmin)
{
	CdcRange   *range = reader->range;
	CdcSnapshotRow *row;

	if (xmin == reader->origin_xmin && snap == reader->origin_snap &&
		source == reader->origin_source)
		return true;

	row = snap < range->nsnaps ? &range->snaps[snap] : NULL;
	if (row && row->native && TransactionIdIsNormal(xmin) &&
		!cdc_row_is_original(row, xmin) &&
		!cdc_row_is_rewritten(&reader->sources[source].info, xmin))
	{
		if (!cdc_snapshot_is_restored(range->tracked.table_id, row,
									  range->snapshot))
			return false;
		row->native = false;
	}
	reader->origin_xmin = xmin;
	reader->origin_snap = snap;
	reader->origin_source = source;
	return true;
}

/*
 * A row of a snapshot was changed or added by hand: report it or raise an
 * error.
 */
static void
report_changed_row(Reader *reader, TupleTableSlot *slot, int shift,
				   int32 snap, int64 tx)
{
	CdcRange   *range = reader->range;
	int64		snapshot_id = range->snaps[snap].snapshot_id;

	if (reader->report == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("log of table \"%s\" is damaged", range->relname),
				 errdetail("A row of snapshot %lld was changed or added by hand.",
						   (long long) snapshot_id),
				 errhint("Call cdc.verify to see it. Call cdc.untrack and cdc.track for the table, and rebuild the targets.")));
	reader->report(reader->report_arg, tx > 0 ? 1 : -1, snapshot_id,
				   "the row was changed or added by hand", slot, shift);
}

/*
 * A row belongs to no snapshot that is known.  It may be one of a snapshot that
 * is expired; report it if that is impossible.
 */
static void
report_unknown_row(Reader *reader, TupleTableSlot *slot, int shift, int64 tx)
{
	HeapTupleHeader td = ((HeapTupleTableSlot *) slot)->tuple->t_data;
	CdcSnapshotRow *oldest = reader->oldest;

	if (tx != 0 && (tx < 0 ? -tx : tx) == reader->own_tx)
		return;

	/*
	 * Snapshots before the oldest retained one have smaller transaction ids
	 * than the one that was next when that was made.
	 */
	if (reader->range->start > 0 &&
		(oldest == NULL || !oldest->native ||
		 HeapTupleHeaderXminFrozen(td) ||
		 TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(td),
							   (TransactionId) oldest->next_xid)))
		return;
	reader->report(reader->report_arg, (tx > 0) - (tx < 0), -1,
				   "the row belongs to no snapshot", slot, shift);
}

/*
 * Does the key in the slot have a NULL where the index that proves keys unique
 * allows it twice?
 */
static inline bool
key_not_proven(Reader *reader, TupleTableSlot *slot, int shift)
{
	ListCell   *lc;

	foreach(lc, reader->nullable)
		if (slot->tts_isnull[lfirst_int(lc) + shift - 1])
		return true;
	return false;
}

/*
 * The tuple in a slot that a scan has filled, moved to the slot: the scan's own
 * would change with its next row.
 */
static inline HeapTuple
own_tuple(TupleTableSlot *slot)
{
	HeapTupleTableSlot *heapslot = (HeapTupleTableSlot *) slot;

	heapslot->tupdata = *heapslot->tuple;
	heapslot->tuple = &heapslot->tupdata;
	return heapslot->tuple;
}

/*
 * Make events of the rows in an interval of blocks that belong to the
 * snapshots first to last - 1.
 *
 * A row that went and one of the same key that came next are recognised here,
 * where both are at hand: if they are the same image, neither becomes an
 * event; else the second is marked as the first one's mate.
 */
static void
scan_blocks(Reader *reader, int source, TupleTableSlot **slots,
			int first, int last, BlockNumber from, BlockNumber to)
{
	RowSource  *s = &reader->sources[source];
	CdcRowCompare *cmp = reader->cmp;
	bool		by_key = reader->algebra.by_key;
	ItemPointerData min;
	ItemPointerData max;
	TableScanDesc scan;
	int			turn = 0;
	CdcEvent	previous;
	bool		have_previous = false;	/* of the other slot, a row that went */

	ItemPointerSet(&min, from, FirstOffsetNumber);
	ItemPointerSet(&max, to, MaxOffsetNumber);
	scan = table_beginscan_tidrange(s->rel, &reader->log_snapshot, &min, &max);
	memset(&previous, 0, sizeof(previous));
	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, slots[turn]))
	{
		TupleTableSlot *slot = slots[turn];
		HeapTuple	tuple = own_tuple(slot);
		int64		tx = row_transaction(reader, tuple);
		int32		snap = snapshot_of(reader, tx < 0 ? -tx : tx);
		CdcEvent   *event;
		uint32		hash;
		bool		same_class = false;
		bool		cancels = false;

		CHECK_FOR_INTERRUPTS();
		if (snap < first || snap >= last)
		{
			if (snap < 0 && reader->report)
				report_unknown_row(reader, slot, s->shift, tx);
			continue;
		}
		if (!row_is_genuine(reader, source, snap,
							HeapTupleHeaderGetRawXmin(tuple->t_data)))
			report_changed_row(reader, slot, s->shift, snap, tx);
		if (tx > 0)
			reader->found_plus[snap]++;
		else
			reader->found_minus[snap]++;
		if (snap < reader->range->after_gap)
			continue;

		MemoryContextReset(reader->tmpcontext);
		MemoryContextSwitchTo(reader->tmpcontext);
		hash = by_key ? cdc_hash_key(cmp, slot, s->shift) :
			cdc_hash_image(cmp, slot, s->shift);
		if (have_previous && tx > 0 && previous.snap == snap &&
			previous.hash == hash)
		{
			TupleTableSlot *other = slots[1 - turn];

			same_class = !by_key ||
				cdc_same_key(cmp, other, s->shift, slot, s->shift);
			cancels = same_class &&
				cdc_same_image(cmp, other, s->shift, slot, s->shift);
		}
		MemoryContextSwitchTo(reader->context);

		if (!reader->unproven && reader->nullable != NIL &&
			key_not_proven(reader, slot, s->shift))
			reader->unproven = true;

		if (cancels)
		{
			cdc_sink_drop_last(reader->sink);
			have_previous = false;
			continue;
		}
		event = cdc_sink_add(reader->sink);
		event->hash = hash;
		event->snap = snap;
		event->block = ItemPointerGetBlockNumber(&tuple->t_self);
		event->bits = ItemPointerGetOffsetNumber(&tuple->t_self) |
			(tx > 0 ? CDC_EVENT_PLUS : 0) |
			(by_key && same_class ? CDC_EVENT_MATE : 0);
		event->source = source;
		if (reader->touched)
			bloom_add_element(reader->touched, (unsigned char *) &hash,
							  sizeof(hash));
		previous = *event;
		have_previous = tx < 0;
		turn = 1 - turn;
	}
	table_endscan(scan);
}

/*
 * Find out how the live table is to be read without the changes of the own
 * transaction.  Normally they are just not looked at.  That does not work if
 * the transaction has replaced the table's storage, or began to track it; then
 * its part of the log is read as well.
 */
static void
find_own_rows(Reader *reader)
{
	CdcRange   *range = reader->range;
	Relation	rel = reader->source;

	reader->replaced = rel->rd_createSubid != InvalidSubTransactionId ||
		cdc_relation_new_storage(rel) || partitions_replaced(reader);
	if (!reader->replaced)
	{
		CdcSnapshotRow *rows;
		int			n;

		n = cdc_snapshot_fetch(range->tracked.table_id, -1, 0, range->snapshot,
							   &rows);
		reader->replaced = n > 0 && rows[0].native &&
			rows[0].xid == U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
	}
	if (!reader->replaced)
		return;

	reader->have_own = cdc_xact_own_rows(&range->tracked, &reader->own);
	if (reader->own.gap)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("content of table \"%s\" cannot be told within this transaction",
						range->relname),
				 errdetail("The transaction has changed the table in a way that its log cannot follow."),
				 errhint("Read the changelog in another transaction.")));
	if (reader->have_own && reader->own.unwritten)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("content of table \"%s\" cannot be told within this subtransaction",
						range->relname),
				 errdetail("The transaction has replaced or begun to track the table, and changed it outside of the subtransaction."),
				 errhint("Read the changelog in another transaction.")));
}

/*
 * Add to the sink what tells the content at the start of the range: the live
 * table and all that happened since the range's end.  Of the live table only
 * rows with keys that the range has touched, unless the content is to be
 * shown.
 */
static void
read_content(Reader *reader)
{
	CdcRange   *range = reader->range;
	int			nrange = range->nrange;

	reader->algebra.have_content = true;
	if (!range->from_start)
	{
		/* This was not foreseen: read the range again, and note its keys. */
		find_own_rows(reader);
		cdc_range_load_tail(range);
		cdc_sink_reset(reader->sink);
		index_transactions(reader);
		reader->touched = bloom_create(1000000, Max(work_mem / 8, 1024), 0);
		scan_log(reader, 0, nrange);
	}
	scan_log(reader, nrange, range->nsnaps + (reader->have_own ? 1 : 0));
	scan_live(reader);
}

/*
 * Has the own transaction replaced the storage of partitions of the table, or
 * changed which there are?
 */
static bool
partitions_replaced(Reader *reader)
{
	CdcRange   *range = reader->range;
	SnapshotData before = *range->snapshot;
	List	   *leaves;
	ListCell   *lc;

	if (reader->source->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return false;
	before.curcid = FirstCommandId;
	leaves = cdc_partition_leaves(range->tracked.table_id, range->snapshot);
	if (!equal(leaves, cdc_partition_leaves(range->tracked.table_id, &before)))
		return true;

	foreach(lc, leaves)
	{
		Relation	rel = try_relation_open(lfirst_oid(lc), AccessShareLock);
		bool		replaced;

		if (rel == NULL)
			continue;
		replaced = cdc_relation_new_storage(rel);
		relation_close(rel, NoLock);
		if (replaced)
			return true;
	}
	return false;
}

/*
 * Add the leaf partitions that a snapshot sees to the sources.
 */
static void
open_partitions(Reader *reader, Snapshot snapshot)
{
	CdcRange   *range = reader->range;
	TupleDesc	desc = RelationGetDescr(reader->source);
	List	   *leaves = cdc_partition_leaves(range->tracked.table_id, snapshot);
	ListCell   *lc;

	if (reader->nsources + list_length(leaves) > PG_UINT16_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("table \"%s\" has too many partitions",
						range->relname)));
	reader->sources = repalloc(reader->sources,
							   sizeof(RowSource) * (reader->nsources + list_length(leaves)));
	foreach(lc, leaves)
	{
		RowSource  *s = &reader->sources[reader->nsources];

		memset(s, 0, sizeof(RowSource));
		s->live = true;
		s->rel = try_relation_open(lfirst_oid(lc), AccessShareLock);
		if (s->rel == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access due to concurrent change of the partitions of table \"%s\"",
							range->relname),
					 errhint("The transaction might succeed if retried.")));
		if (!RELKIND_HAS_STORAGE(s->rel->rd_rel->relkind))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("content of table \"%s\" cannot be told",
							range->relname),
					 errdetail("Partition \"%s\" is a foreign table.",
							   RelationGetRelationName(s->rel)),
					 errhint("Give the start of the range and, with identifiers, \"validate => false\".")));
		s->attrmap = cdc_build_attrmap(RelationGetDescr(s->rel), desc);
		s->plain_layout = s->attrmap == NULL && reader->sources[0].plain_layout;
		for (int j = 0; j < 2; j++)
		{
			s->fetch[j] = table_slot_create(s->rel, NULL);
			if (s->attrmap)
				s->mapped[j] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
		}
		reader->nsources++;
	}
}

/*
 * The row in a slot of a source, with the layout of the tracked table or its
 * log.
 */
static inline TupleTableSlot *
mapped_row(RowSource *s, int which)
{
	if (s->attrmap == NULL)
		return s->fetch[which];
	return execute_attr_map_slot(s->attrmap, s->fetch[which], s->mapped[which]);
}

/*
 * Add the rows of the live table to the sink.
 */
static void
scan_live(Reader *reader)
{
	SnapshotData snapshot = *reader->range->snapshot;

	/* as if the own transaction had not changed anything yet */
	if (!reader->replaced)
		snapshot.curcid = FirstCommandId;

	if (reader->source->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
	{
		scan_live_source(reader, 0, &snapshot);
		return;
	}
	open_partitions(reader, &snapshot);
	for (int i = reader->nsegments + 1; i < reader->nsources; i++)
		scan_live_source(reader, i, &snapshot);
}

/*
 * Add the rows of the live table, or of a leaf partition, to the sink.
 */
static void
scan_live_source(Reader *reader, int source, Snapshot snapshot)
{
	RowSource  *s = &reader->sources[source];
	TableScanDesc scan;
	bool		filter = reader->touched != NULL &&
		!reader->algebra.emit_base;

	scan = table_beginscan(s->rel, snapshot, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, s->fetch[0]))
	{
		ItemPointerData tid = s->fetch[0]->tts_tid;
		TupleTableSlot *slot = mapped_row(s, 0);
		CdcEvent   *event;
		uint32		hash;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(reader->tmpcontext);
		MemoryContextSwitchTo(reader->tmpcontext);
		hash = reader->algebra.by_key ? cdc_hash_key(reader->cmp, slot, 0) :
			cdc_hash_image(reader->cmp, slot, 0);
		MemoryContextSwitchTo(reader->context);
		if (filter && bloom_lacks_element(reader->touched,
										  (unsigned char *) &hash, sizeof(hash)))
			continue;
		event = cdc_sink_add(reader->sink);
		event->hash = hash;
		event->snap = CDC_SNAP_LIVE;
		event->block = ItemPointerGetBlockNumber(&tid);
		event->bits = ItemPointerGetOffsetNumber(&tid) | CDC_EVENT_PLUS;
		event->source = source;
	}
	table_endscan(scan);
	ExecClearTuple(s->fetch[0]);
}

/*
 * Fetch the row of an event for a comparison into one of two slots; *shift is
 * set to that of its columns.
 */
static TupleTableSlot *
fetch_row(Reader *reader, int which, const CdcEvent *e, int *shift)
{
	FetchSlot  *f = &reader->fetch[which];
	RowSource  *s = &reader->sources[e->source];
	uint16		offset = e->bits & CDC_EVENT_OFFSET;
	ItemPointerData tid;

	*shift = s->shift;
	if (f->current && f->block == e->block && f->offset == offset &&
		f->source == e->source)
		return f->current;

	ItemPointerSet(&tid, e->block, offset);
	f->current = NULL;
	if (!table_tuple_fetch_row_version(s->rel, &tid, SnapshotAny,
									   s->fetch[which]))
		elog(ERROR, "could not fetch row (%u,%u) of relation \"%s\"",
			 e->block, offset, RelationGetRelationName(s->rel));
	f->current = mapped_row(s, which);
	f->block = e->block;
	f->offset = offset;
	f->source = e->source;
	return f->current;
}

/* Callbacks of the algebra */

static bool
reader_same_key(void *arg, const CdcEvent *a, const CdcEvent *b)
{
	Reader	   *reader = arg;
	int			shift_a;
	int			shift_b;
	TupleTableSlot *x = fetch_row(reader, 0, a, &shift_a);
	TupleTableSlot *y = fetch_row(reader, 1, b, &shift_b);
	MemoryContext oldcontext;
	bool		result;

	MemoryContextReset(reader->tmpcontext);
	oldcontext = MemoryContextSwitchTo(reader->tmpcontext);
	result = cdc_same_key(reader->cmp, x, shift_a, y, shift_b);
	MemoryContextSwitchTo(oldcontext);
	return result;
}

static bool
reader_same_image(void *arg, const CdcEvent *a, const CdcEvent *b)
{
	Reader	   *reader = arg;
	int			shift_a;
	int			shift_b;
	TupleTableSlot *x = fetch_row(reader, 0, a, &shift_a);
	TupleTableSlot *y = fetch_row(reader, 1, b, &shift_b);
	MemoryContext oldcontext;
	bool		result;

	MemoryContextReset(reader->tmpcontext);
	oldcontext = MemoryContextSwitchTo(reader->tmpcontext);
	result = cdc_same_image(reader->cmp, x, shift_a, y, shift_b);
	MemoryContextSwitchTo(oldcontext);
	return result;
}

static uint32
reader_image_hash(void *arg, const CdcEvent *e)
{
	Reader	   *reader = arg;
	int			shift;
	TupleTableSlot *slot = fetch_row(reader, 0, e, &shift);
	MemoryContext oldcontext;
	uint32		result;

	MemoryContextReset(reader->tmpcontext);
	oldcontext = MemoryContextSwitchTo(reader->tmpcontext);
	result = cdc_hash_image(reader->cmp, slot, shift);
	MemoryContextSwitchTo(oldcontext);
	return result;
}

static void
reader_emit(void *arg, const CdcEvent *e, CdcChange change)
{
	cdc_output_add(((Reader *) arg)->output, e, change);
}

static void
reader_duplicate(void *arg, const CdcEvent *e, int snap, int64 count)
{
	Reader	   *reader = arg;
	CdcRange   *range = reader->range;
	int			shift;
	TupleTableSlot *slot = fetch_row(reader, 0, e, &shift);
	int64		id = snap < 0 ? range->start : range->snaps[snap].snapshot_id;
	char	   *key = cdc_key_detail(reader->cmp, slot, shift);

	ereport(ERROR,
			(errcode(ERRCODE_CARDINALITY_VIOLATION),
			 errmsg("Duplicate rows found for identifier columns [%s] in changelog of table \"%s\"",
					cdc_key_names(reader->cmp), range->relname),
			 count > 0 ?
			 errdetail("Key %s has %lld rows after snapshot %lld.",
					   key, (long long) count, (long long) id) :
			 errdetail("Key %s has more than one row of a kind in snapshot %lld.",
					   key, (long long) id),
			 errhint("Use net mode without identifiers.")));
}

static void
reader_damaged(void *arg, const CdcEvent *e)
{
	Reader	   *reader = arg;

	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("log of table \"%s\" does not match the table",
					reader->range->relname),
			 errdetail("A row came in the log that the table neither has nor has lost."),
			 errhint("Call cdc.untrack and cdc.track for the table, and rebuild the targets.")));
}

static void
reader_negative(void *arg, const CdcEvent *e, int snap, int64 count)
{
	Reader	   *reader = arg;
	CdcRange   *range = reader->range;
	int64		id = snap < range->nsnaps ? range->snaps[snap].snapshot_id : -1;
	bool		came = CdcEventIsPlus(e);
	int			shift;
	TupleTableSlot *slot = fetch_row(reader, 0, e, &shift);

	for (; count < 0; count++)
		reader->report(reader->report_arg, came ? 1 : -1, id,
					   came ? "the row came, but is not in the table and did not go" :
					   "the row went, but was not in the table",
					   slot, shift);
}

/*
 * Tell the algebra what is asked for.
 */
static void
setup_algebra(Reader *reader)
{
	CdcAlgebra *a = &reader->algebra;

	a->mode = reader->options->mode;
	a->by_key = reader->options->identifiers != NIL;
	a->validate = reader->options->validate;
	a->have_content = reader->range->from_start;
	a->emit_base = reader->range->from_start;
	a->nrange = reader->range->nrange;
	a->same_key = reader_same_key;
	a->same_image = reader_same_image;
	a->image_hash = reader_image_hash;
	a->emit = reader_emit;
	a->duplicate = reader_duplicate;
	a->damaged = reader_damaged;
	a->negative = reader_negative;
	a->arg = reader;
	cdc_algebra_init(a);
}

/* State of the second pass */
typedef struct ResultWriter
{
	Reader	   *reader;
	Tuplestorestate *store;
	TupleDesc	desc;
	int			natts;			/* columns of the tracked table */
	int			ndata;			/* those that are not dropped */
	char	   *buffer;			/* for rows made by copying */
	Size		buffer_size;
	Datum	   *values;			/* for the others */
	bool	   *nulls;
	text	   *types[lengthof(change_names)];
	bool		content;		/* rows of the table, nothing is added */
} ResultWriter;

/*
 * Write a row to the result whose data has the result's layout: its data part
 * is copied and the other columns are added behind it.
 */
static void
write_by_copy(ResultWriter *w, HeapTuple tuple, int shift, CdcChange change,
			  int64 ordinal, int64 snapshot_id, TimestampTz committed_at)
{
	HeapTupleHeader from = tuple->t_data;
	bool		hasnull = (from->t_infomask & HEAP_HASNULL) != 0;
	int			natts = w->natts + CDC_NUM_META_COLS;
	Size		skip = from->t_hoff + shift * CDC_LOG_PREFIX;
	Size		datalen = tuple->t_len - skip;
	Size		typelen = strlen(change_names[change]);
	Size		hoff = SizeofHeapTupleHeader + (hasnull ? BITMAPLEN(natts) : 0);
	Size		aligned;
	HeapTupleHeader td;
	HeapTupleData result;
	char	   *p;

	hoff = MAXALIGN(hoff);
	aligned = MAXALIGN(datalen + VARHDRSZ_SHORT + typelen);
	result.t_len = hoff + aligned + 3 * sizeof(int64);
	if (w->buffer_size < result.t_len)
	{
		w->buffer_size = result.t_len * 2;
		w->buffer = w->buffer ? repalloc_huge(w->buffer, w->buffer_size) :
			palloc_extended(w->buffer_size, MCXT_ALLOC_HUGE);
	}
	td = (HeapTupleHeader) w->buffer;
	memset(td, 0, hoff);
	HeapTupleHeaderSetNatts(td, natts);
	td->t_hoff = hoff;
	td->t_infomask = (from->t_infomask & (HEAP_HASNULL | HEAP_HASEXTERNAL)) |
		HEAP_HASVARWIDTH;

	if (hasnull)
	{
		for (int i = 0; i < w->natts; i++)
			if (!att_isnull(i + shift, from->t_bits))
				td->t_bits[i >> 3] |= 1 << (i & 7);
		for (int i = w->natts; i < natts; i++)
			td->t_bits[i >> 3] |= 1 << (i & 7);
	}

	p = (char *) td + hoff;
	memcpy(p, (char *) from + skip, datalen);
	SET_VARSIZE_SHORT(p + datalen, VARHDRSZ_SHORT + typelen);
	memcpy(VARDATA_SHORT(p + datalen), change_names[change], typelen);
	memset(p + datalen + VARHDRSZ_SHORT + typelen, 0,
		   aligned - datalen - VARHDRSZ_SHORT - typelen);
	p += aligned;
	memcpy(p, &ordinal, sizeof(int64));
	memcpy(p + sizeof(int64), &snapshot_id, sizeof(int64));
	memcpy(p + 2 * sizeof(int64), &committed_at, sizeof(int64));

	ItemPointerSetInvalid(&result.t_self);
	result.t_tableOid = InvalidOid;
	result.t_data = td;
	tuplestore_puttuple(w->store, &result);
}

/*
 * Write a row to the result column by column.
 */
static void
write_by_values(ResultWriter *w, TupleTableSlot *slot, int shift,
				CdcChange change, int64 ordinal, int64 snapshot_id,
				TimestampTz committed_at)
{
	TupleDesc	from = RelationGetDescr(w->reader->source);
	int			n = 0;

	slot_getallattrs(slot);
	for (int i = 0; i < w->natts; i++)
	{
		if (TupleDescAttr(from, i)->attisdropped)
			continue;
		w->values[n] = slot->tts_values[i + shift];
		w->nulls[n++] = slot->tts_isnull[i + shift];
	}
	w->values[n++] = PointerGetDatum(w->types[change]);
	w->values[n++] = Int64GetDatum(ordinal);
	w->values[n++] = Int64GetDatum(snapshot_id);
	w->values[n++] = TimestampTzGetDatum(committed_at);
	tuplestore_putvalues(w->store, w->desc, w->values, w->nulls);
}

/*
 * Write a row to a result that has the table's own row type.
 */
static void
write_as_is(ResultWriter *w, TupleTableSlot *slot, HeapTuple tuple, int shift)
{
	if (shift == 0 && tuple != NULL &&
		HeapTupleHeaderGetNatts(tuple->t_data) == w->natts)
	{
		tuplestore_puttupleslot(w->store, slot);
		return;
	}
	slot_getallattrs(slot);
	tuplestore_putvalues(w->store, w->desc, slot->tts_values + shift,
						 slot->tts_isnull + shift);
}

/*
 * Write one row to the result.
 */
static void
write_row(ResultWriter *w, TupleTableSlot *slot, HeapTuple tuple,
		  RowSource *source, CdcChange change)
{
	CdcRange   *range = w->reader->range;
	int64		snapshot_id;
	int64		ordinal;
	TimestampTz committed_at;

	if (w->content)
	{
		write_as_is(w, slot, tuple, source->shift);
		return;
	}
	if (change == CDC_BASE_INSERT)
	{
		snapshot_id = range->start;
		committed_at = range->start_time;
		ordinal = w->reader->options->relative ? 0 : snapshot_id;
	}
	else
	{
		int64		tx = row_transaction(w->reader, tuple);
		int32		snap = snapshot_of(w->reader, tx < 0 ? -tx : tx);

		snapshot_id = range->snaps[snap].snapshot_id;
		committed_at = range->snaps[snap].committed_at;
		ordinal = w->reader->options->relative ?
			snap + (range->from_start ? 1 : 0) : snapshot_id;
	}

	if (source->plain_layout && tuple != NULL &&
		HeapTupleHeaderGetNatts(tuple->t_data) == w->natts + source->shift)
		write_by_copy(w, tuple, source->shift, change, ordinal, snapshot_id,
					  committed_at);
	else
		write_by_values(w, slot, source->shift, change, ordinal, snapshot_id,
						committed_at);
}

/*
 * The second pass: write the rows that the algebra has chosen.
 */
static void
write_result(Reader *reader, Tuplestorestate *store, TupleDesc desc,
			 bool content)
{
	ResultWriter w = {0};
	CdcOutputRow row;
	Buffer		buffer = InvalidBuffer;
	BlockNumber block = InvalidBlockNumber;
	int			source = 0;
	HeapTupleData tuple;

	w.reader = reader;
	w.store = store;
	w.desc = desc;
	w.content = content;
	w.natts = RelationGetDescr(reader->source)->natts;
	w.values = palloc0(sizeof(Datum) * desc->natts);
	w.nulls = palloc0(sizeof(bool) * desc->natts);
	for (int i = CDC_INSERT; i < lengthof(change_names); i++)
		w.types[i] = cstring_to_text(change_names[i]);

	while (cdc_output_next(reader->output, &row))
	{
		RowSource  *s = &reader->sources[row.source];
		TupleTableSlot *slot;

		CHECK_FOR_INTERRUPTS();
		if (s->live)
		{
			/* the live table may have any access method */
			ItemPointerData tid;
			HeapTuple	live = NULL;

			slot = s->fetch[0];
			ItemPointerSet(&tid, row.block, row.offset);
			if (!table_tuple_fetch_row_version(s->rel, &tid, SnapshotAny, slot))
				elog(ERROR, "could not fetch row (%u,%u) of relation \"%s\"",
					 row.block, row.offset, RelationGetRelationName(s->rel));
			slot = mapped_row(s, 0);
			if (TTS_IS_BUFFERTUPLE(slot))
				live = ((HeapTupleTableSlot *) slot)->tuple;
			write_row(&w, slot, live, s, row.change);
			continue;
		}

		if (row.source != source || row.block != block)
		{
			if (BufferIsValid(buffer))
				ReleaseBuffer(buffer);
			source = row.source;
			block = row.block;
			buffer = ReadBuffer(s->rel, block);
		}
		else
			Assert(BufferIsValid(buffer));

		/*
		 * The row was visible in the first pass and cannot go, so the pin is
		 * enough to look at it.
		 */
		{
			Page		page = BufferGetPage(buffer);
			ItemId		lp = PageGetItemId(page, row.offset);

			tuple.t_data = (HeapTupleHeader) PageGetItem(page, lp);
			tuple.t_len = ItemIdGetLength(lp);
			tuple.t_tableOid = RelationGetRelid(s->rel);
			ItemPointerSet(&tuple.t_self, row.block, row.offset);
		}
		slot = s->fetch[0];
		if (content || !s->plain_layout ||
			HeapTupleHeaderGetNatts(tuple.t_data) != w.natts + s->shift)
			ExecStoreBufferHeapTuple(&tuple, slot, buffer);
		write_row(&w, slot, &tuple, s, row.change);
	}
	if (BufferIsValid(buffer))
		ReleaseBuffer(buffer);
}
