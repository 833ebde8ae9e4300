/*-------------------------------------------------------------------------
 *
 * reader_internal.h
 *		What the modules that read a range share.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/reader_internal.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_READER_INTERNAL_H
#define CDC_READER_INTERNAL_H

#include "access/htup_details.h"
#include "access/tupconvert.h"
#include "eventsink.h"
#include "lib/bloomfilter.h"
#include "reader.h"
#include "segment.h"

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

extern void cdc_reader_index_transactions(Reader *reader);
extern void cdc_reader_add_log(Reader *reader, int first, int last);

/* in content.c */
extern void cdc_reader_find_own_rows(Reader *reader);
extern void cdc_reader_add_content(Reader *reader);
extern void cdc_reader_add_live(Reader *reader);

/* in result.c */
extern void cdc_reader_write_result(Reader *reader, Tuplestorestate *store,
									TupleDesc desc, bool content);

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

#endif							/* CDC_READER_INTERNAL_H */
