/*-------------------------------------------------------------------------
 *
 * eventsink.h
 *		Where events and output positions are gathered, in bounded memory.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/eventsink.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EVENTSINK_H
#define CDC_EVENTSINK_H

#include "algebra.h"

typedef struct CdcEventSink CdcEventSink;
typedef struct CdcOutput CdcOutput;

/* Where a row of the output is, and what it is shown as */
typedef struct CdcOutputRow
{
	uint16		source;
	uint32		block;
	uint16		offset;
	CdcChange	change;
} CdcOutputRow;

extern CdcEventSink *cdc_sink_create(Size memory, double expected);
extern void cdc_sink_reset(CdcEventSink *sink);
extern CdcEvent *cdc_sink_add(CdcEventSink *sink);
extern void cdc_sink_drop_last(CdcEventSink *sink);
extern void cdc_sink_run(CdcEventSink *sink, CdcAlgebra *algebra);
extern void cdc_sink_end(CdcEventSink *sink);

extern CdcOutput *cdc_output_create(Size memory);
extern void cdc_output_add(CdcOutput *output, const CdcEvent *event,
						   CdcChange change);
extern void cdc_output_sort(CdcOutput *output);
extern bool cdc_output_next(CdcOutput *output, CdcOutputRow *row);
extern void cdc_output_end(CdcOutput *output);

#endif							/* CDC_EVENTSINK_H */
