/*-------------------------------------------------------------------------
 *
 * cdc_changelog.h
 *		Names and types shared by all modules of the extension.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/cdc_changelog.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CHANGELOG_H
#define CDC_CHANGELOG_H

#include "compat.h"

/* Schema of the functions and catalog tables, and schema of the logs */
#define CDC_SCHEMA				"cdc"
#define CDC_LOG_SCHEMA			"cdc_log"

/* Columns that a changelog adds after the data columns */
#define CDC_COL_TYPE			"_change_type"
#define CDC_COL_ORDINAL			"_change_ordinal"
#define CDC_COL_SNAPSHOT		"_commit_snapshot_id"
#define CDC_COL_TIMESTAMP		"_commit_timestamp"
#define CDC_NUM_META_COLS		4

/* The log's own column, before the data columns */
#define CDC_LOG_COL_TX			"_cdc_tx"

/* Setting that ties a typed changelog function to its table */
#define CDC_GUC_TABLE_ID		"cdc_changelog.table_id"

/* Settings, defined in cdc_changelog.c */
extern int	cdc_horizon_timeout;	/* milliseconds; 0 does not wait */
extern int	cdc_segment_size;	/* kilobytes */

#endif							/* CDC_CHANGELOG_H */
