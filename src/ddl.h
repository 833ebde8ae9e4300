/*-------------------------------------------------------------------------
 *
 * ddl.h
 *		What happens to a tracked table when its definition changes.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/ddl.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_DDL_H
#define CDC_DDL_H

#include "catalog.h"

extern bool cdc_triggers_complete(Relation rel);
extern const char *cdc_capture_missing(Relation rel);

#endif							/* CDC_DDL_H */
