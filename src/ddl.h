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

/* A capture trigger of an ordinary table, and the sessions that it fires in */
typedef struct CdcCaptureTrigger
{
	const char *name;
	char		enabled;		/* as in pg_trigger.tgenabled */
} CdcCaptureTrigger;

#define CDC_NUM_CAPTURE_TRIGGERS	5

extern const CdcCaptureTrigger cdc_capture_triggers[CDC_NUM_CAPTURE_TRIGGERS];

extern bool cdc_triggers_complete(Relation rel);
extern const char *cdc_capture_missing(Relation rel);

#endif							/* CDC_DDL_H */
