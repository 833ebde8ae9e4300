/*-------------------------------------------------------------------------
 *
 * reshape.h
 *		Keeping the columns of a log in step with those of its table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/reshape.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_RESHAPE_H
#define CDC_RESHAPE_H

#include "catalog.h"
#include "nodes/parsenodes.h"

/* A column whose type a command changes with an expression of its own */
typedef struct CdcUsing
{
	char	   *column;
	Node	   *raw;			/* the expression as it was written */
	Node	   *cast;			/* the same for rows of the log, or NULL */
} CdcUsing;

extern const char *cdc_rewrite_reason(const CdcTracked *tracked, Relation rel,
									  int reason, List *usings);
extern bool cdc_log_in_step(const CdcTracked *tracked, bool *plain);
extern void cdc_using_prepare(const CdcTracked *tracked, Relation rel,
							  CdcUsing *using);
extern void cdc_reshape_log(const CdcTracked *tracked, Relation rel,
							List *usings);

#endif							/* CDC_RESHAPE_H */
