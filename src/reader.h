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

/*
 * Is told by cdc_verify_log() what is wrong: the sign of the row, or 0; the
 * snapshot, or -1; the problem in words; and the row, whose columns are
 * shifted, in a slot, or NULL.
 */
typedef void (*CdcVerifyReport) (void *arg, int sign, int64 snapshot_id,
								 const char *problem, TupleTableSlot *slot,
								 int shift);

extern TupleDesc cdc_changelog_desc(Relation source);
extern void cdc_read_changelog(CdcRange *range, Relation source,
							   const CdcReadOptions *options,
							   Tuplestorestate *store, TupleDesc desc);
extern void cdc_read_content(CdcRange *range, Relation source,
							 Tuplestorestate *store, TupleDesc desc);
extern void cdc_verify_log(CdcRange *range, Relation source,
						   CdcVerifyReport report, void *arg);

#endif							/* CDC_READER_H */
