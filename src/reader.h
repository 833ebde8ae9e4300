/*-------------------------------------------------------------------------
 *
 * reader.h
 *		Reading a range of the log in two passes.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/reader.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_READER_H
#define CDC_READER_H

#include "algebra.h"
#include "range.h"
#include "utils/tuplestore.h"

/* What a reader is asked for */
typedef struct CdcReadOptions
{
	List	   *identifiers;	/* names (char *), NIL for none */
	CdcMode		mode;
	bool		validate;
	bool		relative;		/* ordinals count from the range's start */
} CdcReadOptions;

extern TupleDesc cdc_changelog_desc(Relation source);
extern void cdc_read_changelog(CdcRange *range, Relation source,
							   const CdcReadOptions *options,
							   Tuplestorestate *store, TupleDesc desc);

#endif							/* CDC_READER_H */
