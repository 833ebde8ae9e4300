/*-------------------------------------------------------------------------
 *
 * eventsink.c
 *		Where events and output positions are gathered, in bounded memory.
 *
 * A sink holds events in memory as long as they fit.  When they do not, the
 * space of hashes is split, and the events go to one temporary file for each
 * part; a part is then processed at a time.  As all events of a hash are in
 * one part, the result is the same.
 *
 * The output is gathered as positions of rows, one integer each, and put into
 * the order of the positions, so that the second pass reads the log from its
 * beginning to its end.  What does not fit in memory is left to tuplesort.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/eventsink.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "compat.h"
#include "eventsink.h"

#define MIN_EVENTS		1024
#define MAX_PARTS		1024

struct CdcEventSink
{
	CdcEvent   *events;			/* those not written to a file */
	Size		nevents;
	Size		space;
	Size		limit;			/* most that may be in memory */
	double		expected;		/* estimate of all that will come */
	int			nparts;			/* 0: nothing is written to files */
	BufFile   **files;
	Size	   *counts;			/* events in each file */
};

struct CdcOutput
{
	int64	   *rows;
	Size		nrows;
	Size		space;
	Size		limit;
	Size		prefix;			/* so many came in ascending order */
	Size		next;			/* of the prefix */
	Size		next_rest;
	Size		memory;
	Tuplesortstate *sort;		/* NULL as long as all is in memory */
};

#define ST_SORT sort_positions
#define ST_ELEMENT_TYPE int64
#define ST_COMPARE(a, b) (*(a) < *(b) ? -1 : *(a) > *(b))
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

static void write_to_files(CdcEventSink *sink);

/*
 * Make a sink that uses about "memory" bytes.  "expected" estimates how many
 * events will come.  Allocated in the current memory context.
 */
CdcEventSink *
cdc_sink_create(Size memory, double expected)
{
	CdcEventSink *sink = palloc0(sizeof(CdcEventSink));

	sink->limit = Max(memory / sizeof(CdcEvent), MIN_EVENTS);
	sink->expected = expected;
	sink->space = (Size) Max(Min((double) sink->limit, expected), 16.0);
	sink->events = MemoryContextAllocHuge(CurrentMemoryContext,
										  sink->space * sizeof(CdcEvent));
	return sink;
}

/*
 * Forget all events.
 */
void
cdc_sink_reset(CdcEventSink *sink)
{
	for (int i = 0; i < sink->nparts; i++)
		BufFileClose(sink->files[i]);
	sink->nparts = 0;
	sink->nevents = 0;
}

/*
 * Add an event.  The caller fills what is returned before the next call.
 */
CdcEvent *
cdc_sink_add(CdcEventSink *sink)
{
	if (sink->nevents == sink->space)
	{
		if (sink->space < sink->limit)
		{
			sink->space = Min(sink->space * 2, sink->limit);
			sink->events = repalloc_huge(sink->events,
										 sink->space * sizeof(CdcEvent));
		}
		else
			write_to_files(sink);
	}
	return &sink->events[sink->nevents++];
}

/*
 * Take the event back that was added last.
 */
void
cdc_sink_drop_last(CdcEventSink *sink)
{
	Assert(sink->nevents > 0);
	sink->nevents--;
}

/*
 * Move the events in memory to the files, but for the newest, which may still
 * be taken back.
 */
static void
write_to_files(CdcEventSink *sink)
{
	CdcEvent	newest = sink->events[sink->nevents - 1];

	if (sink->nparts == 0)
	{
		double		parts = 2.0 * sink->expected / sink->limit;

		/* room for estimates that are wrong */
		sink->nparts = 4;
		while (sink->nparts < parts && sink->nparts < MAX_PARTS)
			sink->nparts *= 2;
		sink->files = palloc(sizeof(BufFile *) * sink->nparts);
		sink->counts = palloc0(sizeof(Size) * sink->nparts);
		for (int i = 0; i < sink->nparts; i++)
			sink->files[i] = BufFileCreateTemp(false);
	}

	for (Size i = 0; i + 1 < sink->nevents; i++)
	{
		int			part = sink->events[i].hash & (sink->nparts - 1);

		CHECK_FOR_INTERRUPTS();
		BufFileWrite(sink->files[part], &sink->events[i], sizeof(CdcEvent));
		sink->counts[part]++;
	}
	sink->events[0] = newest;
	sink->nevents = 1;
}

/*
 * Run the algebra over all events, and forget them.
 */
void
cdc_sink_run(CdcEventSink *sink, CdcAlgebra *algebra)
{
	CdcEvent	newest;

	if (sink->nparts == 0)
	{
		cdc_algebra_run(algebra, sink->events, sink->nevents);
		sink->nevents = 0;
		return;
	}

	write_to_files(sink);
	newest = sink->events[0];
	for (int i = 0; i < sink->nparts; i++)
	{
		Size		n = sink->counts[i];

		/* a hash that very many events share can be more than was planned */
		if (n + 1 > sink->space)
		{
			sink->space = n + 1;
			pfree(sink->events);
			sink->events = palloc_extended(sink->space * sizeof(CdcEvent),
										   MCXT_ALLOC_HUGE);
		}
		if (BufFileSeek(sink->files[i], 0, 0L, SEEK_SET) != 0)
			ereport(ERROR,
					(errcode_for_file_access(),
					 errmsg("could not rewind temporary file")));
		cdc_BufFileReadExact(sink->files[i], sink->events, n * sizeof(CdcEvent));
		BufFileClose(sink->files[i]);
		if ((newest.hash & (sink->nparts - 1)) == i)
			sink->events[n++] = newest;
		cdc_algebra_run(algebra, sink->events, n);
	}
	sink->nparts = 0;
	sink->nevents = 0;
}

/*
 * Give the memory of a sink back.  It cannot be used any more.
 */
void
cdc_sink_end(CdcEventSink *sink)
{
	cdc_sink_reset(sink);
	pfree(sink->events);
	pfree(sink);
}

/*
 * Make an output that uses about "memory" bytes.  Allocated in the current
 * memory context.
 */
CdcOutput *
cdc_output_create(Size memory)
{
	CdcOutput  *output = palloc0(sizeof(CdcOutput));

	output->memory = memory;
	output->limit = Max(memory / sizeof(int64), MIN_EVENTS);
	output->space = MIN_EVENTS;
	output->rows = palloc(output->space * sizeof(int64));
	return output;
}

/*
 * Add a row: its position is the upper part of the integer, so that the order
 * of the integers is that of the positions.
 */
void
cdc_output_add(CdcOutput *output, const CdcEvent *event, CdcChange change)
{
	int64		row = ((int64) event->source << 48) | ((int64) event->block << 16) |
		((event->bits & CDC_EVENT_OFFSET) << 3) | change;

	if (output->sort == NULL && output->nrows == output->space)
	{
		if (output->space < output->limit)
		{
			output->space = Min(output->space * 2, output->limit);
			output->rows = repalloc_huge(output->rows,
										 output->space * sizeof(int64));
		}
		else
		{
			output->sort = tuplesort_begin_datum(INT8OID, Int8LessOperator,
												 InvalidOid, false,
												 Max(output->memory / 1024, 64),
												 NULL, false);
			for (Size i = 0; i < output->nrows; i++)
				tuplesort_putdatum(output->sort, Int64GetDatum(output->rows[i]),
								   false);
			pfree(output->rows);
			output->rows = NULL;
		}
	}
	if (output->sort)
		tuplesort_putdatum(output->sort, Int64GetDatum(row), false);
	else
	{
		if (output->prefix == output->nrows &&
			(output->nrows == 0 || row > output->rows[output->nrows - 1]))
			output->prefix++;
		output->rows[output->nrows] = row;
	}
	output->nrows++;
}

/*
 * Put the rows in the order of their positions.  Most came in that order: only
 * what follows those that did is sorted, and cdc_output_next() merges the two.
 */
void
cdc_output_sort(CdcOutput *output)
{
	if (output->sort)
		tuplesort_performsort(output->sort);
	else
		sort_positions(output->rows + output->prefix,
					   output->nrows - output->prefix);
	output->next = 0;
	output->next_rest = output->prefix;
}

/*
 * The next row; false at the end.
 */
bool
cdc_output_next(CdcOutput *output, CdcOutputRow *row)
{
	int64		value;

	if (output->sort)
	{
		Datum		datum;
		bool		isnull;

		if (!cdc_tuplesort_getdatum(output->sort, &datum, &isnull))
			return false;
		value = DatumGetInt64(datum);
	}
	else
	{
		bool		have = output->next < output->prefix;
		bool		have_rest = output->next_rest < output->nrows;

		if (have && (!have_rest ||
					 output->rows[output->next] < output->rows[output->next_rest]))
			value = output->rows[output->next++];
		else if (have_rest)
			value = output->rows[output->next_rest++];
		else
			return false;
	}
	row->source = (uint16) (value >> 48);
	row->block = (uint32) (value >> 16);
	row->offset = (uint16) ((value & 0xffff) >> 3);
	row->change = (CdcChange) (value & 7);
	return true;
}

/*
 * Free what an output holds.
 */
void
cdc_output_end(CdcOutput *output)
{
	if (output->sort)
		tuplesort_end(output->sort);
	else
		pfree(output->rows);
	pfree(output);
}
