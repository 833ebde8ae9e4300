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

extern const char *cdc_rewrite_reason(const CdcTracked *tracked, Relation rel,
									  int reason, List *using_columns);
extern bool cdc_log_in_step(const CdcTracked *tracked);
extern void cdc_reshape_log(const CdcTracked *tracked, Relation rel,
							List *using_columns);

#endif							/* CDC_RESHAPE_H */
