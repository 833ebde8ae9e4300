/*-------------------------------------------------------------------------
 *
 * rowcmp.h
 *		Hashing and comparing rows, by image and by key.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/rowcmp.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_ROWCMP_H
#define CDC_ROWCMP_H

#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "fmgr.h"

/* How to compare one identifier column */
typedef struct CdcKeyColumn
{
	AttrNumber	attno;			/* of the tracked table */
	Oid			collation;
	bool		by_image;		/* equality is that of the bytes */
	FmgrInfo	equal;
	FmgrInfo	hash;			/* fn_oid is invalid if the type has none */
} CdcKeyColumn;

typedef struct CdcRowCompare
{
	TupleDesc	desc;			/* of the tracked table */
	int			nkeys;
	CdcKeyColumn *keys;
	AttrNumber	maxkey;			/* largest attno of the keys */
} CdcRowCompare;

/*
 * Rows come in slots whose column attno + shift is the table's column attno:
 * shift is 1 for rows of a log and 0 for rows of the table itself.
 */
extern CdcRowCompare *cdc_rowcmp_create(TupleDesc desc, List *identifiers,
										const char *relname);
extern uint32 cdc_hash_key(const CdcRowCompare *cmp, TupleTableSlot *slot,
						   int shift);
extern uint32 cdc_hash_image(const CdcRowCompare *cmp, TupleTableSlot *slot,
							 int shift);
extern bool cdc_same_key(const CdcRowCompare *cmp, TupleTableSlot *a,
						 int shift_a, TupleTableSlot *b, int shift_b);
extern bool cdc_same_image(const CdcRowCompare *cmp, TupleTableSlot *a,
						   int shift_a, TupleTableSlot *b, int shift_b);
extern char *cdc_key_detail(const CdcRowCompare *cmp, TupleTableSlot *slot,
							int shift);
extern char *cdc_key_names(const CdcRowCompare *cmp);

#endif							/* CDC_ROWCMP_H */
