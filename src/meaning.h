/*-------------------------------------------------------------------------
 *
 * meaning.h
 *		What a query means, as a number.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/meaning.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_MEANING_H
#define CDC_MEANING_H

#include "nodes/pg_list.h"

/* Begins as all zeros */
typedef struct CdcMeaning
{
	int64		number;			/* 0 if nothing was added yet */
	bool		opaque;			/* there is more to it than the number tells */
} CdcMeaning;

extern void cdc_meaning_add(CdcMeaning *meaning, List *queries);
extern bool cdc_meaning_comparable(int64 number);

#endif							/* CDC_MEANING_H */
