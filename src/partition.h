/*-------------------------------------------------------------------------
 *
 * partition.h
 *		Tracked partitioned tables and their partitions.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/partition.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_PARTITION_H
#define CDC_PARTITION_H

#include "catalog/dependency.h"
#include "nodes/nodes.h"
#include "nodes/pg_list.h"
#include "utils/rel.h"

#include "catalog.h"

/* Tracking */
extern void cdc_partition_check(Relation root);
extern void cdc_partition_begin(const CdcTracked *tracked);
extern void cdc_partition_add_triggers(Oid root, ObjectAddresses *objects);

/* Capture */
extern bool cdc_partition_tracked(Oid relid, CdcTracked *tracked);
extern TupleDesc cdc_partition_root_desc(Oid root);
extern void cdc_partition_fill_missing(int32 table_id, TupleDesc desc);
extern void cdc_partition_truncate(Relation rel, const CdcTracked *tracked);

/* Reading */
extern List *cdc_partition_leaves(int32 table_id, Snapshot snapshot);
extern bool cdc_partition_lock(int32 table_id, Snapshot snapshot, List **locked);
extern char *cdc_partition_broken(const CdcTracked *tracked);

/* Commands that change which partitions there are */
extern void cdc_partition_command_start(Node *command);
extern void cdc_partition_command_end(Node *command, List *relids);
extern void cdc_partition_dropped(List *relids);

#endif							/* CDC_PARTITION_H */
