/*-------------------------------------------------------------------------
 *
 * capture.h
 *		The capture triggers.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/capture.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_CAPTURE_H
#define CDC_CAPTURE_H

#include "utils/rel.h"

#include "catalog.h"

/* All names contain this; the trigger function serves no other trigger */
#define CDC_TRIGGER_PREFIX		"cdc_changelog_"

#define CDC_TRIGGER_INSERT		"cdc_changelog_insert"
#define CDC_TRIGGER_UPDATE		"cdc_changelog_update"
#define CDC_TRIGGER_DELETE		"cdc_changelog_delete"
#define CDC_TRIGGER_REPLICA		"cdc_changelog_replica"
/* of partitioned tables, instead of those above */
#define CDC_TRIGGER_ROW			"cdc_changelog_row"
/* fires after the user's own BEFORE TRUNCATE triggers, which may write */
#define CDC_TRIGGER_TRUNCATE	"~cdc_changelog_truncate"

extern void cdc_capture_content(Relation rel, const CdcTracked *tracked,
								bool inserted);

#endif							/* CDC_CAPTURE_H */
