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

#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"

#include "cdc_changelog.h"
#include "reader_internal.h"
#include "tracked.h"

/* Intervals of blocks nearer to each other than this are read as one */
#define READ_GAP		8

/*
 * Memory for events, besides work_mem, and for positions of the output.  The
 * events are gone when the result is written, which has work_mem for itself.
 */
#define SINK_MEMORY		((Size) 8 * 1024 * 1024)
#define OUTPUT_MEMORY	((Size) 8 * 1024 * 1024)

/* To compute a content */
static const CdcReadOptions content_options = {NIL, CDC_MODE_NET, false, false};

static Reader *begin_read(CdcRange *range, Relation source,
						  const CdcReadOptions *options);
static void end_read(Reader *reader);
static void open_sources(Reader *reader);
static void open_segment(Reader *reader, RowSource *s);
static void open_segments(Reader *reader, int first, int last);
static void close_sources(Reader *reader);
static void scan_segment(Reader *reader, int source, int first, int last,
						 bool whole);
static void scan_blocks(Reader *reader, int source, TupleTableSlot **slots,
						int first, int last, BlockNumber from, BlockNumber to);
static bool row_is_genuine(Reader *reader, int source, int32 snap,
						   TransactionId xmin);
static void report_changed_row(Reader *reader, TupleTableSlot *slot, int shift,
							   int32 snap, int64 tx);
static void report_unknown_row(Reader *reader, int source,
							   TupleTableSlot *slot, int64 tx);
static bool counts_match(Reader *reader, int first, int last);
static void setup_algebra(Reader *reader);
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

	cdc_reader_add_log(reader, 0, range->nrange);
	if (range->from_start || (prove && reader->unproven))
		cdc_reader_add_content(reader);
	cdc_sink_run(reader->sink, &reader->algebra);
	cdc_sink_end(reader->sink);
	cdc_output_sort(reader->output);
	cdc_reader_write_result(reader, store, desc, false);

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

	cdc_reader_add_content(reader);
	cdc_sink_run(reader->sink, &reader->algebra);
	cdc_sink_end(reader->sink);
	cdc_output_sort(reader->output);
	cdc_reader_write_result(reader, store, desc, true);

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

		if (reader->found_plus[i] == row->inserted &&
			reader->found_minus[i] == row->deleted)
			continue;

		/* if that is because it has been expired since, it is an error */
		cdc_range_recheck(range);
		report(arg, 0, row->snapshot_id,
			   psprintf("the snapshot has %lld rows that came and %lld that went, but %lld and %lld were found",
						(long long) row->inserted, (long long) row->deleted,
						(long long) reader->found_plus[i],
						(long long) reader->found_minus[i]),
			   NULL, 0);
	}
	cdc_reader_add_live(reader);
	cdc_sink_run(reader->sink, &reader->algebra);
	cdc_sink_end(reader->sink);

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
		cdc_reader_find_own_rows(reader);
		cdc_range_load_tail(range);
		expected += Max(source->rd_rel->reltuples, 0);
	}
	for (int i = 0; i < range->nsnaps; i++)
		expected += range->snaps[i].inserted + range->snaps[i].deleted;
	reader->sink = cdc_sink_create((Size) work_mem * 1024 + SINK_MEMORY, expected);
	reader->output = cdc_output_create(OUTPUT_MEMORY);
	open_sources(reader);
	cdc_reader_index_transactions(reader);
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
	cdc_range_check_storage(reader->range, s->rel);
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
void
cdc_reader_index_transactions(Reader *reader)
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
void
cdc_reader_add_log(Reader *reader, int first, int last)
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
report_unknown_row(Reader *reader, int source, TupleTableSlot *slot, int64 tx)
{
	HeapTupleHeader td = ((HeapTupleTableSlot *) slot)->tuple->t_data;
	RowSource  *s = &reader->sources[source];
	CdcSnapshotRow *oldest = reader->oldest;

	if (tx != 0 && (tx < 0 ? -tx : tx) == reader->own_tx)
		return;

	/*
	 * Snapshots before the oldest retained one have smaller transaction ids
	 * than the one that was next when that was made, as long as the segment
	 * was not rewritten.
	 */
	if (reader->range->start > 0 &&
		(oldest == NULL || !oldest->native ||
		 HeapTupleHeaderXminFrozen(td) ||
		 cdc_row_is_rewritten(&s->info, HeapTupleHeaderGetRawXmin(td)) ||
		 TransactionIdPrecedes(HeapTupleHeaderGetRawXmin(td),
							   (TransactionId) oldest->next_xid)))
		return;
	reader->report(reader->report_arg, (tx > 0) - (tx < 0), -1,
				   "the row belongs to no snapshot", slot, s->shift);
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
				report_unknown_row(reader, source, slot, tx);
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
