/*-------------------------------------------------------------------------
 *
 * restore.c
 *		Tracked tables that come out of a dump.
 *
 * pg_dump takes the log of a table, its sequence and its typed function along
 * like any other objects of users, and the rows of the catalog tables because
 * they are registered with pg_extension_config_dump().  What is restored
 * differs from what was there in these points:
 *
 * - Transaction ids and block numbers belong to the server that was dumped.
 *	 The extension itself never inserts into its catalog tables through SQL, so
 *	 rows that come in that way are restored ones: a trigger on the catalog
 *	 tables takes the foreign numbers out of them.  All readers need to know of
 *	 a restored snapshot is that whoever could have drawn a smaller number has
 *	 ended long ago, which is what FrozenTransactionId says; and of its rows,
 *	 which segment they are in.
 * - What pg_depend says about log and typed function is lost; ddl.c does not
 *	 need it.
 * - The holes that dropped columns leave are closed, in the table and in the
 *	 segments of its log alike.
 *
 * The order of a restore matters: first the data of all tables, then the values
 * of sequences, then the triggers.  Were it another one (definitions first, and
 * then the data into tables with their triggers), all rows would be captured as
 * new changes, on top of the history that already has them.  This is noticed
 * because the sequence of the table's snapshot numbers has not been set yet, and
 * the tracking is given up.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/restore.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "capture.h"
#include "cdc_changelog.h"
#include "consumer_catalog.h"
#include "horizon.h"
#include "restore.h"
#include "segment.h"

PG_FUNCTION_INFO_V1(cdc_restore);

static HeapTuple restored_snapshot(HeapTuple tuple, TupleDesc desc);
static HeapTuple restored_segment(HeapTuple tuple, TupleDesc desc);
static HeapTuple restored_target(HeapTuple tuple, TupleDesc desc);
static bool newest_snapshot(const CdcTracked *tracked, CdcSnapshotRow *row);

/*
 * cdc.restore() returns trigger
 *
 * Before each row that is inserted into a catalog table through SQL.
 */
Datum
cdc_restore(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	HeapTuple	tuple;
	TupleDesc	desc;
	Oid			relid;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						"cdc.restore")));
	if (!TRIGGER_FIRED_BEFORE(trigdata->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigdata->tg_event) ||
		!TRIGGER_FIRED_BY_INSERT(trigdata->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must be fired before each row of INSERT",
						trigdata->tg_trigger->tgname)));

	tuple = trigdata->tg_trigtuple;
	desc = RelationGetDescr(trigdata->tg_relation);
	relid = RelationGetRelid(trigdata->tg_relation);
	if (relid == cdc_catalog_oid(CDC_SNAPSHOT))
		tuple = restored_snapshot(tuple, desc);
	else if (relid == cdc_catalog_oid(CDC_LOG_SEGMENT))
		tuple = restored_segment(tuple, desc);
	else if (relid == cdc_catalog_oid(CDC_CONSUMER_TARGET))
		tuple = restored_target(tuple, desc);
	else
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must not use function \"%s\"",
						trigdata->tg_trigger->tgname, "cdc.restore")));
	return PointerGetDatum(tuple);
}

/*
 * A row of cdc.snapshot without what holds for the server it was dumped from
 * only.
 */
static HeapTuple
restored_snapshot(HeapTuple tuple, TupleDesc desc)
{
	Datum		values[Natts_cdc_snapshot] = {0};
	bool		nulls[Natts_cdc_snapshot] = {0};
	bool		replaces[Natts_cdc_snapshot] = {0};

	values[Anum_cdc_snapshot_xid - 1] = UInt64GetDatum(FrozenTransactionId);
	replaces[Anum_cdc_snapshot_xid - 1] = true;
	values[Anum_cdc_snapshot_next_xid - 1] = UInt64GetDatum(FirstNormalTransactionId);
	replaces[Anum_cdc_snapshot_next_xid - 1] = true;
	nulls[Anum_cdc_snapshot_first_block - 1] = true;
	replaces[Anum_cdc_snapshot_first_block - 1] = true;
	nulls[Anum_cdc_snapshot_last_block - 1] = true;
	replaces[Anum_cdc_snapshot_last_block - 1] = true;
	nulls[Anum_cdc_snapshot_blocks - 1] = true;
	replaces[Anum_cdc_snapshot_blocks - 1] = true;
	return heap_modify_tuple(tuple, desc, values, nulls, replaces);
}

/*
 * The same for a row of cdc.log_segment.
 */
static HeapTuple
restored_segment(HeapTuple tuple, TupleDesc desc)
{
	Datum		values[Natts_cdc_log_segment] = {0};
	bool		nulls[Natts_cdc_log_segment] = {0};
	bool		replaces[Natts_cdc_log_segment] = {0};

	nulls[Anum_cdc_log_segment_rewritten - 1] = true;
	replaces[Anum_cdc_log_segment_rewritten - 1] = true;
	nulls[Anum_cdc_log_segment_rewritten_next - 1] = true;
	replaces[Anum_cdc_log_segment_rewritten_next - 1] = true;
	return heap_modify_tuple(tuple, desc, values, nulls, replaces);
}

/*
 * The same for a row of cdc.consumer_target.  Whether the target was restored
 * as it was is not known, so the consumer reads everything the next time.
 */
static HeapTuple
restored_target(HeapTuple tuple, TupleDesc desc)
{
	Datum		values[Natts_cdc_consumer_target] = {0};
	bool		nulls[Natts_cdc_consumer_target] = {0};
	bool		replaces[Natts_cdc_consumer_target] = {0};

	values[Anum_cdc_consumer_target_fingerprint - 1] = Int64GetDatum(0);
	replaces[Anum_cdc_consumer_target_fingerprint - 1] = true;
	return heap_modify_tuple(tuple, desc, values, nulls, replaces);
}

/*
 * Triggers of a table have been disabled: raise an error if it is one of the
 * catalog tables, whose rows must not be restored without a look at them.
 */
void
cdc_restore_check_disable(RangeVar *name)
{
	Oid			relid = RangeVarGetRelid(name, NoLock, true);

	if (OidIsValid(relid) && cdc_is_own_relation(relid) &&
		OidIsValid(get_trigger_oid(relid, "cdc_restore", true)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot disable triggers of \"%s\", which belongs to the extension \"%s\"",
						get_rel_name(relid), "cdc_changelog"),
				 errdetail("They check what is restored into it.")));
}

/*
 * Does a table have any of the triggers that cdc.track() makes?
 */
bool
cdc_has_capture_triggers(Relation rel)
{
	for (int i = 0; rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
		if (strstr(rel->trigdesc->triggers[i].tgname, CDC_TRIGGER_PREFIX) != NULL)
			return true;
	return false;
}

/*
 * The newest committed snapshot of a table; false where there is none.
 */
static bool
newest_snapshot(const CdcTracked *tracked, CdcSnapshotRow *row)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	Relation	rel = table_open(cdc_catalog_oid(CDC_SNAPSHOT), AccessShareLock);
	Relation	index = index_open(cdc_catalog_oid(CDC_SNAPSHOT_PKEY),
								   AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, Anum_cdc_snapshot_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	scan = systable_beginscan_ordered(rel, index, snapshot, 1, &key);
	tuple = systable_getnext_ordered(scan, BackwardScanDirection);
	found = HeapTupleIsValid(tuple);
	if (found)
		cdc_snapshot_decode(tuple, RelationGetDescr(rel), row);
	systable_endscan_ordered(scan);
	index_close(index, AccessShareLock);
	table_close(rel, AccessShareLock);
	UnregisterSnapshot(snapshot);
	return found;
}

/*
 * Is a table as it came out of a dump, or on its way out of one: has nothing
 * been captured of it in this database, and no gap been recorded?
 *
 * As long as this is so, triggers and indexes that are created are likely to
 * be restored ones.
 */
bool
cdc_restore_pending(const CdcTracked *tracked)
{
	CdcSnapshotRow newest;

	return !newest_snapshot(tracked, &newest) || !newest.native;
}

/*
 * Does the sequence of a table's snapshot numbers tell the newest one?  Not so
 * in the middle of a restore, when it may not have been set yet.
 */
bool
cdc_restore_settled(const CdcTracked *tracked)
{
	CdcSnapshotRow newest;

	return newest_snapshot(tracked, &newest) &&
		cdc_sequence_last_value(tracked->seqid) >= newest.snapshot_id;
}

/*
 * Give up the tracking of a table if it is in the middle of a restore, although
 * its data is coming through the triggers.  Returns whether this is so.
 */
bool
cdc_restore_abandon(const CdcTracked *tracked)
{
	CdcTracked	now;

	if (cdc_sequence_last_value(tracked->seqid) >= 0)
		return false;

	/* several sessions may be restoring partitions */
	(void) cdc_segments_lock(tracked->table_id, true);
	if (!cdc_tracked_lookup_id(tracked->table_id, &now))
		return true;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 errmsg("table \"%s\" is not tracked any more",
					get_rel_name(tracked->relid)),
			 errdetail("Its capture triggers were there before its data was restored, and would log the data as new changes."),
			 errhint("Restore the sections pre-data, data and post-data of a dump in this order; or call cdc.track for a new history.")));
	cdc_tracked_delete(tracked->table_id);
	return true;
}
