/*-------------------------------------------------------------------------
 *
 * armed.c
 *		Whether the changes of a tracked table are captured.
 *
 * They are not while a capture trigger is missing or disabled, nor, for want
 * of a trigger that fires, while statements on other tables can change the
 * table.  A gap is recorded when that begins and another when it ends, and all
 * snapshots that are made meanwhile are gaps, too (capture.c): so no range over
 * that time is ever answered.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/armed.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "armed.h"
#include "capture.h"
#include "commit.h"
#include "horizon.h"
#include "restore.h"

const CdcCaptureTrigger cdc_capture_triggers[CDC_NUM_CAPTURE_TRIGGERS] = {
	{CDC_TRIGGER_INSERT, TRIGGER_FIRES_ON_ORIGIN},
	{CDC_TRIGGER_UPDATE, TRIGGER_FIRES_ON_ORIGIN},
	{CDC_TRIGGER_DELETE, TRIGGER_FIRES_ON_ORIGIN},
	{CDC_TRIGGER_REPLICA, TRIGGER_FIRES_ON_REPLICA},
	{CDC_TRIGGER_TRUNCATE, TRIGGER_FIRES_ALWAYS}
};

/* Reasons of gaps that say whether changes are captured now */
#define REASON_STOPPED	"capture triggers of the table are missing or disabled"
#define REASON_RESUMED	"capture triggers of the table were missing or disabled"

static const CdcCaptureTrigger *capture_trigger(const char *name);
static bool touches_triggers(Node *command);
static bool was_stopped(const CdcTracked *tracked);

/*
 * Why statements on other tables may change a table, or statements on it
 * others, or NULL if they do not.
 */
const char *
cdc_inheritance_reason(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return NULL;
	if (rel->rd_rel->relispartition)
		return "the table is a partition of another";
	if (has_superclass(relid))
		return "the table inherits from another";
	if (rel->rd_rel->relhassubclass && has_subclass(relid) &&
		find_inheritance_children(relid, NoLock) != NIL)
		return "the table has inheritance children";
	return NULL;
}

/*
 * Are all capture triggers there, and enabled as they have to be?
 */
bool
cdc_triggers_complete(Relation rel)
{
	TriggerDesc *trigdesc = rel->trigdesc;

	if (rel->rd_rel->relkind != RELKIND_RELATION)
		return true;
	for (int i = 0; i < lengthof(cdc_capture_triggers); i++)
	{
		bool		found = false;

		for (int j = 0; trigdesc && j < trigdesc->numtriggers && !found; j++)
			found = strcmp(trigdesc->triggers[j].tgname,
						   cdc_capture_triggers[i].name) == 0 &&
				trigdesc->triggers[j].tgenabled == cdc_capture_triggers[i].enabled;
		if (!found)
			return false;
	}
	return true;
}

/*
 * Why changes of a tracked table may be missing in its log, or NULL if none
 * are.  This is the reason of every snapshot that is made meanwhile.
 */
const char *
cdc_capture_missing(Relation rel)
{
	return cdc_triggers_complete(rel) ? cdc_inheritance_reason(rel) : REASON_STOPPED;
}

/*
 * Is this one of the capture triggers?
 */
static const CdcCaptureTrigger *
capture_trigger(const char *name)
{
	for (int i = 0; i < lengthof(cdc_capture_triggers); i++)
		if (strcmp(cdc_capture_triggers[i].name, name) == 0)
			return &cdc_capture_triggers[i];
	return NULL;
}

/*
 * May a command have changed which of a table's capture triggers fire?
 */
static bool
touches_triggers(Node *command)
{
	ListCell   *lc;

	if (IsA(command, CreateTrigStmt))
		return capture_trigger(((CreateTrigStmt *) command)->trigname) != NULL;
	if (!IsA(command, AlterTableStmt))
		return false;
	foreach(lc, ((AlterTableStmt *) command)->cmds)
	{
		switch (lfirst_node(AlterTableCmd, lc)->subtype)
		{
			case AT_EnableTrig:
			case AT_EnableAlwaysTrig:
			case AT_EnableReplicaTrig:
			case AT_DisableTrig:
			case AT_EnableTrigAll:
			case AT_DisableTrigAll:
			case AT_EnableTrigUser:
			case AT_DisableTrigUser:
				return true;
			default:
				break;
		}
	}
	return false;
}

/*
 * A command may have made, enabled or disabled capture triggers.  Those that are enabled get
 * the sessions that they have to fire in: ENABLE TRIGGER ALL makes all of them
 * fire in ordinary ones, where changes would be captured twice.
 */
void
cdc_follow_triggers(const CdcTracked *tracked, Relation rel, Node *command)
{
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		changed = false;

	if (!touches_triggers(command))
		return;
	catalog = table_open(TriggerRelationId, RowExclusiveLock);
	ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(tracked->relid));
	scan = systable_beginscan(catalog, TriggerRelidNameIndexId, true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_trigger form = (Form_pg_trigger) GETSTRUCT(tuple);
		const CdcCaptureTrigger *trigger = capture_trigger(NameStr(form->tgname));

		if (trigger == NULL || form->tgenabled == TRIGGER_DISABLED ||
			form->tgenabled == trigger->enabled)
			continue;
		tuple = heap_copytuple(tuple);
		((Form_pg_trigger) GETSTRUCT(tuple))->tgenabled = trigger->enabled;
		CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
		changed = true;
	}
	systable_endscan(scan);
	table_close(catalog, RowExclusiveLock);
	if (changed)
	{
		CacheInvalidateRelcache(rel);
		CommandCounterIncrement();
	}

	if (!cdc_triggers_complete(rel))
	{
		if (cdc_disables_triggers(command) && cdc_restore_abandon(tracked))
			return;

		/* a restore creates them one by one; also such as were disabled */
		if (!cdc_restore_pending(tracked) ||
			(cdc_disables_triggers(command) && !was_stopped(tracked)))
			cdc_xact_gap(cdc_xact_table(tracked), REASON_STOPPED);
	}
	else if (was_stopped(tracked))
		cdc_xact_gap(cdc_xact_table(tracked), REASON_RESUMED);
}

/*
 * Does a command disable triggers?
 */
bool
cdc_disables_triggers(Node *command)
{
	ListCell   *lc;

	if (!IsA(command, AlterTableStmt))
		return false;
	foreach(lc, ((AlterTableStmt *) command)->cmds)
	{
		AlterTableType subtype = lfirst_node(AlterTableCmd, lc)->subtype;

		if (subtype == AT_DisableTrig || subtype == AT_DisableTrigAll ||
			subtype == AT_DisableTrigUser)
			return true;
	}
	return false;
}

/*
 * Do the snapshots say that changes were not captured when the last one was
 * made?  All snapshots are gaps in the meantime, for this reason or another.
 *
 * The command's lock keeps out everybody who could make a snapshot.
 */
static bool
was_stopped(const CdcTracked *tracked)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64		upto = cdc_sequence_last_value(tracked->seqid);
	bool		result = false;
	bool		done = false;

	while (!done && upto >= 0)
	{
		CdcSnapshotRow *rows;
		int			n = cdc_snapshot_fetch(tracked->table_id, upto - 100, upto,
										   snapshot, &rows);

		for (int i = n - 1; i >= 0 && !done; i--)
		{
			done = true;
			if (rows[i].kind != CDC_KIND_GAP || rows[i].reason == NULL ||
				strcmp(rows[i].reason, REASON_RESUMED) == 0)
				continue;
			result = strcmp(rows[i].reason, REASON_STOPPED) == 0;
			done = result;
		}
		pfree(rows);
		upto -= 100;
	}
	UnregisterSnapshot(snapshot);
	return result;
}

/*
 * A trigger was dropped, but not its table: nothing is captured from here on
 * if it was one of ours.
 */
void
cdc_trigger_dropped(const char *schema, const char *table,
					const char *trigger)
{
	Oid			nspid;
	Oid			relid;
	CdcTracked	tracked;

	if (schema == NULL || table == NULL ||
		trigger == NULL || capture_trigger(trigger) == NULL)
		return;
	nspid = get_namespace_oid(schema, true);
	relid = OidIsValid(nspid) ? get_relname_relid(table, nspid) : InvalidOid;
	if (OidIsValid(relid) && cdc_tracked_lookup(relid, &tracked) &&
		!OidIsValid(get_trigger_oid(relid, trigger, true)))
		cdc_xact_gap(cdc_xact_table(&tracked), REASON_STOPPED);
}

/*
 * Capture triggers are known by their names: refuse another one.
 */
void
cdc_check_trigger_name(RenameStmt *stmt)
{
	CdcTracked	tracked;
	Oid			relid;

	if (stmt->renameType != OBJECT_TRIGGER ||
		capture_trigger(stmt->subname) == NULL)
		return;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (OidIsValid(relid) && cdc_tracked_lookup(relid, &tracked))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot rename trigger \"%s\" of tracked table \"%s\"",
						stmt->subname, stmt->relation->relname),
				 errhint("Call cdc.untrack to remove the triggers.")));
}
