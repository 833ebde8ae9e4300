/*-------------------------------------------------------------------------
 *
 * result.c
 *		The second pass over the log: the rows of the result.
 *
 * The algebra has chosen rows and what they are shown as; they are visited here
 * in the order they lie in the log, and written to a tuplestore.  A row whose
 * data has the result's layout is copied in one piece.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/result.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "cdc_changelog.h"
#include "reader_internal.h"

/* Names of the change types, in the order of CdcChange */
static const char *const change_names[] = {
	NULL, "INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER", "INSERT"
};

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
void
cdc_reader_write_result(Reader *reader, Tuplestorestate *store, TupleDesc desc,
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
