/*-------------------------------------------------------------------------
 *
 * tracked.h
 *		Beginning and ending the tracking of a table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/tracked.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TRACKED_H
#define CDC_TRACKED_H

#include "catalog/objectaddress.h"
#include "nodes/parsenodes.h"

#include "catalog.h"

/* Rights of the extension owner, taken for a while */
typedef struct CdcPrivileges
{
	Oid			userid;
	int			sec_context;
	int			nestlevel;
} CdcPrivileges;

extern void cdc_raise_privileges(CdcPrivileges *saved);
extern void cdc_restore_privileges(const CdcPrivileges *saved);
extern bool cdc_ddl_in_progress(void);
extern void cdc_run_ddl(const char *command);
extern bool cdc_meta_column(const char *name);
extern List *cdc_owned_objects(const CdcTracked *tracked);
extern void cdc_drop_objects(const CdcTracked *tracked, bool triggers,
							 DropBehavior behavior);
extern void cdc_set_owner(const ObjectAddress *object, Oid owner);
extern void cdc_record_unique_index(int32 table_id, Oid indexid, int64 since);
extern void cdc_depend_on_table(const ObjectAddress *object, Relation rel);

#endif							/* CDC_TRACKED_H */
