/*-------------------------------------------------------------------------
 *
 * armed.h
 *		Whether the changes of a tracked table are captured.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/armed.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_ARMED_H
#define CDC_ARMED_H

#include "nodes/parsenodes.h"
#include "utils/rel.h"

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
extern const char *cdc_inheritance_reason(Relation rel);
extern const char *cdc_capture_missing(Relation rel);

/* Commands */
extern bool cdc_disables_triggers(Node *command);
extern void cdc_follow_triggers(const CdcTracked *tracked, Relation rel,
								Node *command);
extern void cdc_trigger_dropped(const char *schema, const char *table,
								const char *trigger);
extern void cdc_check_trigger_name(RenameStmt *stmt);

#endif							/* CDC_ARMED_H */
