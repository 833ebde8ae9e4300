/*-------------------------------------------------------------------------
 *
 * ddl.c
 *		What happens to a tracked table when its definition changes.
 *
 * This module owns the event triggers.  They find out which tracked tables a
 * command was about, and make everything that belongs to such a table follow
 * it.  They look at what the catalogs say after the command rather than at how
 * it was written, so that it does not matter which of many ways led there.
 *
 * Nothing in here runs user code or looks at the search_path of the session,
 * and a command on tables that are not tracked costs a lookup.  Where a
 * command changes what the log cannot follow, the transaction's snapshot
 * becomes a gap.  Commands are refused only where the table could not be
 * tracked in its new form.
 *
 * The event triggers do not fire for what the extension itself does, while its
 * own script runs, and in a binary upgrade, whose catalogs arrive as they were.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/ddl.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/tablecmds.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "commit.h"
#include "ddl.h"
#include "horizon.h"
#include "partition.h"
#include "restore.h"
#include "tracked.h"

/* An object that a command has made, changed or dropped */
typedef struct DdlObject
{
	Oid			classid;
	Oid			objid;
	int32		objsubid;
} DdlObject;

PG_FUNCTION_INFO_V1(cdc_ddl_start);
PG_FUNCTION_INFO_V1(cdc_ddl_end);
PG_FUNCTION_INFO_V1(cdc_ddl_drop);

static Node *event_command(FunctionCallInfo fcinfo);
static List *fetch_objects(const char *query);
static List *changed_tables(Node *command);
static List *add_relation(List *relids, Oid relid, Node *command);
static List *add_family(List *relids, Oid relid);
static RangeVar *separated_table(AlterTableCmd *cmd);
static List *add_separated(List *relids, AlterTableStmt *stmt);
static void follow_table(const CdcTracked *tracked, Node *command);
static void check_shape(Relation rel);
static void follow_owner(const CdcTracked *tracked, Relation rel);
static void follow_indexes(const CdcTracked *tracked, Relation rel);
static void forget_indexes(List *dropped);
static DropBehavior drop_behavior(Node *command);

/*
 * The parse tree of the command that an event trigger was called for, or NULL
 * if there is nothing to do for it.
 */
static Node *
event_command(FunctionCallInfo fcinfo)
{
	EventTriggerData *trigdata = (EventTriggerData *) fcinfo->context;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function was not called by event trigger manager")));
	if (IsBinaryUpgrade || cdc_ddl_in_progress())
		return NULL;
	if (creating_extension &&
		CurrentExtensionObject == get_extension_oid("cdc_changelog", true))
		return NULL;
	return trigdata->parsetree;
}

/*
 * Event ddl_command_start: what was captured so far must be in the log before
 * anything changes.
 */
Datum
cdc_ddl_start(PG_FUNCTION_ARGS)
{
	Node	   *command = event_command(fcinfo);

	if (command == NULL)
		PG_RETURN_NULL();
	cdc_xact_flush_all();
	if (IsA(command, DropStmt) && cdc_tracked_any())
		cdc_partition_command_start(command);
	PG_RETURN_NULL();
}

/*
 * Event ddl_command_end: let what belongs to a tracked table follow it.
 */
Datum
cdc_ddl_end(PG_FUNCTION_ARGS)
{
	Node	   *command = event_command(fcinfo);
	List	   *tables;
	ListCell   *lc;

	if (command == NULL)
		PG_RETURN_NULL();
	switch (nodeTag(command))
	{
		case T_AlterTableStmt:
		case T_RenameStmt:
		case T_AlterObjectSchemaStmt:
		case T_IndexStmt:
		case T_CreateStmt:
		case T_CreateForeignTableStmt:
		case T_CreateSchemaStmt:
			break;
		default:
			PG_RETURN_NULL();
	}
	if (!cdc_tracked_any())
		PG_RETURN_NULL();

	tables = changed_tables(command);
	cdc_partition_command_end(command, tables);
	foreach(lc, tables)
	{
		CdcTracked	tracked;

		if (cdc_tracked_lookup(lfirst_oid(lc), &tracked))
			follow_table(&tracked, command);
	}
	PG_RETURN_NULL();
}

/*
 * Event sql_drop: what belongs to a dropped table goes with it.
 *
 * Most of it depends on the table and has gone already, but not in a database
 * that was restored from a dump, which does not hold these dependencies.
 */
Datum
cdc_ddl_drop(PG_FUNCTION_ARGS)
{
	Node	   *command = event_command(fcinfo);
	List	   *dropped;
	List	   *relids = NIL;
	ListCell   *lc;

	if (command == NULL || !cdc_tracked_any())
		PG_RETURN_NULL();

	dropped = fetch_objects("SELECT d.classid, d.objid, d.objsubid "
							"FROM pg_catalog.pg_event_trigger_dropped_objects() d "
							"WHERE d.classid OPERATOR(pg_catalog.=) "
							"'pg_catalog.pg_class'::pg_catalog.regclass");
	foreach(lc, dropped)
	{
		DdlObject  *object = lfirst(lc);
		CdcTracked	tracked;
		CdcPrivileges saved;

		if (object->objsubid != 0)
			continue;
		relids = lappend_oid(relids, object->objid);
		if (!cdc_tracked_lookup(object->objid, &tracked))
			continue;
		cdc_raise_privileges(&saved);
		cdc_drop_objects(&tracked, false, drop_behavior(command));
		cdc_tracked_delete(tracked.table_id);
		cdc_restore_privileges(&saved);
	}
	if (relids != NIL)
	{
		cdc_partition_dropped(relids);
		forget_indexes(dropped);
	}
	PG_RETURN_NULL();
}

/*
 * Run a query that returns classid, objid and objsubid of objects, with the
 * extension owner's rights: somebody may have revoked the functions that tell.
 * Returns a list of DdlObject in the current memory context.
 */
static List *
fetch_objects(const char *query)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *result = NIL;
	CdcPrivileges saved;

	cdc_raise_privileges(&saved);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(query, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not fetch the objects of a command");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		MemoryContext oldcontext = MemoryContextSwitchTo(context);
		DdlObject  *object = palloc(sizeof(DdlObject));
		bool		isnull;

		object->classid = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
		object->objid = DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull));
		object->objsubid = DatumGetInt32(SPI_getbinval(tuple, desc, 3, &isnull));
		result = lappend(result, object);
		MemoryContextSwitchTo(oldcontext);
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	cdc_restore_privileges(&saved);
	return result;
}

/*
 * The tables that a command may have changed, as a list of OIDs.
 */
static List *
changed_tables(Node *command)
{
	List	   *result = NIL;
	ListCell   *lc;

	/* by name, so before the search_path changes */
	if (IsA(command, AlterTableStmt))
		result = add_separated(result, (AlterTableStmt *) command);

	foreach(lc, fetch_objects("SELECT c.classid, c.objid, c.objsubid "
							  "FROM pg_catalog.pg_event_trigger_ddl_commands() c "
							  "WHERE c.classid OPERATOR(pg_catalog.=) "
							  "'pg_catalog.pg_class'::pg_catalog.regclass"))
		result = add_relation(result, ((DdlObject *) lfirst(lc))->objid, command);
	return result;
}

/*
 * Add the tables that a command on a relation may have changed to a list.
 */
static List *
add_relation(List *relids, Oid relid, Node *command)
{
	switch (get_rel_relkind(relid))
	{
		case RELKIND_INDEX:
		case RELKIND_PARTITIONED_INDEX:
			relid = IndexGetRelation(relid, true);
			return OidIsValid(relid) ? list_append_unique_oid(relids, relid) : relids;
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_FOREIGN_TABLE:
			return add_family(relids, relid);
		case RELKIND_COMPOSITE_TYPE:
			{
				/* tables of the type change with it */
				Oid			type = get_rel_type_id(relid);
				ListCell   *lc;

				foreach(lc, cdc_tracked_list())
				{
					CdcTracked *tracked = lfirst(lc);
					HeapTuple	tuple = SearchSysCache1(RELOID,
														ObjectIdGetDatum(tracked->relid));

					if (!HeapTupleIsValid(tuple))
						continue;
					if (((Form_pg_class) GETSTRUCT(tuple))->reloftype == type)
						relids = list_append_unique_oid(relids, tracked->relid);
					ReleaseSysCache(tuple);
				}
				return relids;
			}
		default:
			return relids;
	}
}

/*
 * Add a table, its inheritance parents and all its children to a list.
 */
static List *
add_family(List *relids, Oid relid)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	if (has_subclass(relid))
		relids = list_concat_unique_oid(relids,
										find_all_inheritors(relid, NoLock, NULL));
	else
		relids = list_append_unique_oid(relids, relid);

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	rel = table_open(InheritsRelationId, AccessShareLock);
	scan = systable_beginscan(rel, InheritsRelidSeqnoIndexId, true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		relids = list_append_unique_oid(relids,
										((Form_pg_inherits) GETSTRUCT(tuple))->inhparent);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return relids;
}

/*
 * The other table of a subcommand that ends an inheritance: its former parent,
 * or former partition; NULL for other subcommands.
 */
static RangeVar *
separated_table(AlterTableCmd *cmd)
{
	switch (cmd->subtype)
	{
		case AT_DropInherit:
			return castNode(RangeVar, cmd->def);
		case AT_DetachPartition:
		case AT_DetachPartitionFinalize:
			return castNode(PartitionCmd, cmd->def)->name;
		default:
			return NULL;
	}
}

/*
 * Add the tables that a command has separated from its own to a list.
 */
static List *
add_separated(List *relids, AlterTableStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		RangeVar   *rv = separated_table(lfirst_node(AlterTableCmd, lc));
		Oid			relid;

		if (rv == NULL)
			continue;
		relid = RangeVarGetRelid(rv, NoLock, true);
		if (OidIsValid(relid))
			relids = list_append_unique_oid(relids, relid);
	}
	return relids;
}

/*
 * Make what belongs to a tracked table follow it, after a command has changed
 * the table.
 */
static void
follow_table(const CdcTracked *tracked, Node *command)
{
	Relation	rel = table_open(tracked->relid, AccessShareLock);
	CdcPrivileges saved;
	const char *missing;

	check_shape(rel);
	missing = cdc_capture_missing(rel);
	if (missing)
		cdc_xact_gap(cdc_xact_table(tracked), missing);
	if (IsA(command, AlterTableStmt) &&
		rel->rd_rel->relkind == RELKIND_RELATION)
	{
		ListCell   *lc;

		/* changes may have been missed before that */
		foreach(lc, ((AlterTableStmt *) command)->cmds)
			if (separated_table(lfirst_node(AlterTableCmd, lc)))
			cdc_xact_gap(cdc_xact_table(tracked),
						 "the inheritance of the table was ended");
	}

	cdc_raise_privileges(&saved);
	follow_owner(tracked, rel);
	follow_indexes(tracked, rel);
	cdc_restore_privileges(&saved);
	table_close(rel, NoLock);
}

/*
 * Why changes of a tracked table may be missing in its log, or NULL if none
 * are.  Used for every snapshot that is made meanwhile, too.
 */
const char *
cdc_capture_missing(Relation rel)
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
 * Raise an error if a tracked table has taken a form in which it cannot be
 * tracked.
 */
static void
check_shape(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && cdc_meta_column(NameStr(att->attname)))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("tracked table \"%s\" cannot have a column \"%s\"",
							RelationGetRelationName(rel), NameStr(att->attname)),
					 errdetail("The changelog has a column of this name."),
					 errhint("Choose another name, or call cdc.untrack for the table first.")));
	}
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("tracked table \"%s\" cannot be made unlogged",
						RelationGetRelationName(rel)),
				 errdetail("A crash would empty it without a trace in its log."),
				 errhint("Call cdc.untrack for the table first.")));
}

/*
 * Give log, sequence and typed function to the owner of the table.
 */
static void
follow_owner(const CdcTracked *tracked, Relation rel)
{
	ListCell   *lc;

	foreach(lc, cdc_owned_objects(tracked))
		cdc_set_owner(lfirst(lc), rel->rd_rel->relowner);
}

/*
 * Let cdc.unique_index tell the unique indexes that the table has now.
 *
 * An index proves what is unique since the last snapshot before it.  If the
 * transaction itself has changed the table before it made the index, that is
 * its own snapshot, which will have the next number: the lock of the command
 * keeps out everybody else who could draw one.
 */
static void
follow_indexes(const CdcTracked *tracked, Relation rel)
{
	List	   *present = NIL;
	List	   *known = NIL;
	int64		since = -1;
	Relation	catalog;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		HeapTuple	index = SearchSysCache1(INDEXRELID,
											ObjectIdGetDatum(lfirst_oid(lc)));

		if (!HeapTupleIsValid(index))
			continue;
		if (((Form_pg_index) GETSTRUCT(index))->indisunique &&
			((Form_pg_index) GETSTRUCT(index))->indisvalid)
			present = lappend_oid(present, lfirst_oid(lc));
		ReleaseSysCache(index);
	}

	ScanKeyInit(&key, Anum_cdc_unique_index_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(tracked->table_id));
	catalog = table_open(cdc_catalog_oid(CDC_UNIQUE_INDEX), RowExclusiveLock);
	scan = systable_beginscan(catalog, cdc_catalog_oid(CDC_UNIQUE_INDEX_PKEY),
							  true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Oid			indexid;

		indexid = DatumGetObjectId(heap_getattr(tuple,
												Anum_cdc_unique_index_index,
												RelationGetDescr(catalog),
												&isnull));
		if (list_member_oid(present, indexid))
			known = lappend_oid(known, indexid);
		else
			CatalogTupleDelete(catalog, &tuple->t_self);
	}
	systable_endscan(scan);
	table_close(catalog, RowExclusiveLock);

	foreach(lc, list_difference_oid(present, known))
	{
		/* not since a number that is still to come out of a dump */
		if (since < 0 && !cdc_restore_settled(tracked))
			break;
		if (since < 0)
			since = cdc_sequence_last_value(tracked->seqid) +
				(cdc_xact_changed(tracked) ? 1 : 0);
		cdc_record_unique_index(tracked->table_id, lfirst_oid(lc), since);
	}
	CommandCounterIncrement();
}

/*
 * Remove dropped indexes from cdc.unique_index.
 */
static void
forget_indexes(List *dropped)
{
	Relation	catalog;
	SysScanDesc scan;
	HeapTuple	tuple;

	catalog = table_open(cdc_catalog_oid(CDC_UNIQUE_INDEX), RowExclusiveLock);
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		Oid			indexid;
		ListCell   *lc;

		indexid = DatumGetObjectId(heap_getattr(tuple,
												Anum_cdc_unique_index_index,
												RelationGetDescr(catalog),
												&isnull));
		foreach(lc, dropped)
		{
			DdlObject  *object = lfirst(lc);

			if (object->objid == indexid && object->objsubid == 0)
			{
				CatalogTupleDelete(catalog, &tuple->t_self);
				break;
			}
		}
	}
	systable_endscan(scan);
	table_close(catalog, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * What a command that drops objects says about those that depend on them.
 */
static DropBehavior
drop_behavior(Node *command)
{
	if (IsA(command, DropStmt))
		return ((DropStmt *) command)->behavior;
	if (IsA(command, DropOwnedStmt))
		return ((DropOwnedStmt *) command)->behavior;
	return DROP_RESTRICT;
}
