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
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "armed.h"
#include "catalog.h"
#include "cdc_changelog.h"
#include "commit.h"
#include "consumer_catalog.h"
#include "horizon.h"
#include "log.h"
#include "partition.h"
#include "reshape.h"
#include "restore.h"
#include "segment.h"
#include "tracked.h"
#include "typed.h"

/* An object that a command has made, changed or dropped */
typedef struct DdlObject
{
	Oid			classid;
	Oid			objid;
	int32		objsubid;
	char	   *schema;			/* of a dropped trigger's table */
	char	   *table;
	char	   *trigger;
} DdlObject;

/*
 * The table that ALTER TABLE was last begun for, if its columns had the types
 * that those of its log have.
 */
static Oid	plain_table = InvalidOid;

PG_FUNCTION_INFO_V1(cdc_ddl_start);
PG_FUNCTION_INFO_V1(cdc_ddl_end);
PG_FUNCTION_INFO_V1(cdc_ddl_drop);
PG_FUNCTION_INFO_V1(cdc_ddl_rewrite);

static Node *event_command(FunctionCallInfo fcinfo);
static List *fetch_objects(const char *query);
static List *changed_tables(Node *command);
static List *add_relation(List *relids, Oid relid);
static List *add_family(List *relids, Oid relid);
static RangeVar *separated_table(AlterTableCmd *cmd);
static List *add_separated(List *relids, AlterTableStmt *stmt);
static List *using_casts(Node *command);
static void follow_table(const CdcTracked *tracked, Node *command,
						 bool cascade);
static void check_shape(Relation rel);
static bool lookup_log(Oid relid, CdcTracked *result);
static void check_log(Oid relid, Node *command);
static void check_log_dropped(Oid relid);
static void follow_objects(const CdcTracked *tracked, Relation rel,
						   Node *command, bool cascade);
static void check_schema_name(Node *command);
static void follow_schema(RenameStmt *stmt);
static void follow_function(Oid funcid, Relation rel, Node *command);
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
 * Event ddl_command_start: look at what cannot be seen any more afterwards,
 * partitions that are going to be dropped, and whether the log has followed
 * its table so far.
 */
Datum
cdc_ddl_start(PG_FUNCTION_ARGS)
{
	Node	   *command = event_command(fcinfo);

	if (command == NULL ||
		(!IsA(command, DropStmt) && !IsA(command, AlterTableStmt)) ||
		!cdc_tracked_any())
		PG_RETURN_NULL();
	if (IsA(command, DropStmt))
		cdc_partition_command_start(command);
	else
	{
		Oid			relid = RangeVarGetRelid(((AlterTableStmt *) command)->relation,
											 NoLock, true);
		CdcTracked	tracked;
		bool		plain;

		plain_table = InvalidOid;
		if (OidIsValid(relid) && cdc_tracked_lookup(relid, &tracked))
		{
			if (!cdc_log_in_step(&tracked, &plain))
				cdc_xact_gap(cdc_xact_table(&tracked),
							 "the definition of the table was changed unnoticed");
			else if (plain)
				plain_table = relid;
		}
	}
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
	check_schema_name(command);
	if (cdc_disables_triggers(command))
		cdc_restore_check_disable(((AlterTableStmt *) command)->relation);
	switch (nodeTag(command))
	{
		case T_AlterTableStmt:
		case T_RenameStmt:
		case T_AlterObjectSchemaStmt:
		case T_IndexStmt:
		case T_CreateStmt:
		case T_CreateForeignTableStmt:
		case T_CreateSchemaStmt:
		case T_CreateTrigStmt:
			break;
		default:
			PG_RETURN_NULL();
	}
	if (!cdc_tracked_any())
		PG_RETURN_NULL();

	if (IsA(command, RenameStmt))
	{
		cdc_check_trigger_name((RenameStmt *) command);
		follow_schema((RenameStmt *) command);
	}
	tables = changed_tables(command);
	cdc_partition_command_end(command, tables);
	foreach(lc, tables)
	{
		CdcTracked	tracked;

		if (cdc_tracked_lookup(lfirst_oid(lc), &tracked))
			follow_table(&tracked, command, false);
		else if (get_rel_namespace(lfirst_oid(lc)) ==
				 get_namespace_oid(CDC_LOG_SCHEMA, true))
			check_log(lfirst_oid(lc), command);
	}
	PG_RETURN_NULL();
}

/*
 * The extension finds its tables by the names of their schemas.  Under another
 * name, every write to a tracked table would fail.
 */
static void
check_schema_name(Node *command)
{
	RenameStmt *stmt = (RenameStmt *) command;

	if (IsA(command, RenameStmt) && stmt->renameType == OBJECT_SCHEMA &&
		(strcmp(stmt->subname, CDC_SCHEMA) == 0 ||
		 strcmp(stmt->subname, CDC_LOG_SCHEMA) == 0))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot rename schema \"%s\" of extension \"%s\"",
						stmt->subname, "cdc_changelog")));
}

/*
 * If a schema has another name, so have the tracked tables in it.
 */
static void
follow_schema(RenameStmt *stmt)
{
	Oid			nspid;
	ListCell   *lc;

	if (stmt->renameType != OBJECT_SCHEMA)
		return;
	nspid = get_namespace_oid(stmt->newname, false);
	foreach(lc, cdc_tracked_list())
	{
		CdcTracked *tracked = lfirst(lc);

		if (get_rel_namespace(tracked->relid) == nspid)
			cdc_consumer_source_renamed(tracked->table_id);
	}
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

	dropped = fetch_objects("SELECT d.classid, d.objid, d.objsubid, "
							"d.address_names[1], d.address_names[2], d.address_names[3] "
							"FROM pg_catalog.pg_event_trigger_dropped_objects() d "
							"WHERE d.classid OPERATOR(pg_catalog.=) ANY "
							"('{pg_catalog.pg_class,pg_catalog.pg_trigger}'::pg_catalog.regclass[])");
	foreach(lc, dropped)
	{
		DdlObject  *object = lfirst(lc);
		CdcTracked	tracked;
		CdcPrivileges saved;

		if (object->classid != RelationRelationId || object->objsubid != 0)
			continue;
		relids = lappend_oid(relids, object->objid);
		cdc_consumer_target_gone(object->objid);
		if (!cdc_tracked_lookup(object->objid, &tracked))
			continue;
		cdc_raise_privileges(&saved);
		cdc_drop_objects(&tracked, false, drop_behavior(command));
		cdc_tracked_delete(tracked.table_id);
		cdc_restore_privileges(&saved);
	}
	foreach(lc, dropped)
	{
		DdlObject  *object = lfirst(lc);
		CdcTracked	tracked;

		if (object->classid == TriggerRelationId)
			cdc_trigger_dropped(object->schema, object->table, object->trigger);
		else if (object->objsubid == 0)
			check_log_dropped(object->objid);
		else if (cdc_tracked_lookup(object->objid, &tracked))
			follow_table(&tracked, command, true);
	}
	if (relids != NIL)
	{
		cdc_partition_dropped(relids);
		forget_indexes(dropped);
	}
	PG_RETURN_NULL();
}

/*
 * Event table_rewrite: find out if the log can follow.
 */
Datum
cdc_ddl_rewrite(PG_FUNCTION_ARGS)
{
	Node	   *command = event_command(fcinfo);
	Oid			relid;
	int			reason;
	CdcTracked	tracked;
	Relation	rel;
	const char *gap;

	if (command == NULL || !cdc_tracked_any())
		PG_RETURN_NULL();
	relid = DatumGetObjectId(OidFunctionCall0(F_PG_EVENT_TRIGGER_TABLE_REWRITE_OID));
	reason = DatumGetInt32(OidFunctionCall0(F_PG_EVENT_TRIGGER_TABLE_REWRITE_REASON));
	if (!cdc_tracked_lookup(relid, &tracked) &&
		!cdc_partition_tracked(relid, &tracked))
		PG_RETURN_NULL();

	rel = table_open(tracked.relid, AccessShareLock);
	gap = cdc_rewrite_reason(&tracked, rel, reason, using_casts(command));
	table_close(rel, NoLock);
	if (gap)
		cdc_xact_gap(cdc_xact_table(&tracked), gap);
	PG_RETURN_NULL();
}

/*
 * The columns whose type a command changes with an expression of its own, as a
 * list of CdcUsing.
 */
static List *
using_casts(Node *command)
{
	List	   *result = NIL;
	ListCell   *lc;

	if (!IsA(command, AlterTableStmt))
		return NIL;
	foreach(lc, ((AlterTableStmt *) command)->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		CdcUsing   *using;

		if (cmd->subtype != AT_AlterColumnType ||
			castNode(ColumnDef, cmd->def)->raw_default == NULL)
			continue;
		using = palloc0(sizeof(CdcUsing));
		using->column = cmd->name;
		using->raw = castNode(ColumnDef, cmd->def)->raw_default;
		result = lappend(result, using);
	}
	return result;
}

/*
 * Run a query that returns classid, objid and objsubid of objects, and three
 * names where they may be triggers, with the extension owner's rights: somebody may have revoked the functions that tell.
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
	/* not read only, or what the command has made would not be seen */
	if (SPI_execute(query, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not fetch the objects of a command");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		MemoryContext oldcontext = MemoryContextSwitchTo(context);
		DdlObject  *object = palloc0(sizeof(DdlObject));
		bool		isnull;

		object->classid = DatumGetObjectId(SPI_getbinval(tuple, desc, 1, &isnull));
		object->objid = DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull));
		object->objsubid = DatumGetInt32(SPI_getbinval(tuple, desc, 3, &isnull));
		if (object->classid == TriggerRelationId && desc->natts == 6)
		{
			object->schema = SPI_getvalue(tuple, desc, 4);
			object->table = SPI_getvalue(tuple, desc, 5);
			object->trigger = SPI_getvalue(tuple, desc, 6);
		}
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

	foreach(lc, fetch_objects("SELECT c.classid, COALESCE(t.tgrelid, c.objid), c.objsubid "
							  "FROM pg_catalog.pg_event_trigger_ddl_commands() c "
							  "LEFT JOIN pg_catalog.pg_trigger t "
							  "ON t.oid OPERATOR(pg_catalog.=) c.objid "
							  "AND c.classid OPERATOR(pg_catalog.=) "
							  "'pg_catalog.pg_trigger'::pg_catalog.regclass "
							  "WHERE c.classid OPERATOR(pg_catalog.=) ANY "
							  "('{pg_catalog.pg_class,pg_catalog.pg_trigger}'::pg_catalog.regclass[])"))
		result = add_relation(result, ((DdlObject *) lfirst(lc))->objid);
	return result;
}

/*
 * Add the tables that a command on a relation may have changed to a list.
 */
static List *
add_relation(List *relids, Oid relid)
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
 * the table.  "cascade" says that the command was one that drops something
 * else, on which columns of the table have depended.
 */
static void
follow_table(const CdcTracked *tracked, Node *command, bool cascade)
{
	Relation	rel = table_open(tracked->relid, AccessShareLock);
	CdcTracked	now;
	CdcPrivileges saved;
	const char *reason;
	List	   *usings;
	ListCell   *lc;

	check_shape(rel);
	cdc_follow_triggers(tracked, rel, command);
	if (!cdc_tracked_lookup(tracked->relid, &now) ||
		now.table_id != tracked->table_id)
	{
		/* a restore that was given up */
		table_close(rel, NoLock);
		return;
	}
	reason = cdc_inheritance_reason(rel);
	if (reason)
		cdc_xact_gap(cdc_xact_table(tracked), reason);
	if (IsA(command, AlterTableStmt) &&
		rel->rd_rel->relkind == RELKIND_RELATION)
	{
		/* changes may have been missed before that */
		foreach(lc, ((AlterTableStmt *) command)->cmds)
			if (separated_table(lfirst_node(AlterTableCmd, lc)))
			cdc_xact_gap(cdc_xact_table(tracked),
						 "the inheritance of the table was ended");
	}

	usings = using_casts(command);
	if (tracked->relid == plain_table)
		foreach(lc, usings)
			cdc_using_prepare(tracked, rel, lfirst(lc));

	cdc_raise_privileges(&saved);
	cdc_reshape_log(tracked, rel, usings);
	follow_objects(tracked, rel, command, cascade);
	follow_indexes(tracked, rel);
	cdc_restore_privileges(&saved);
	table_close(rel, NoLock);
}

/*
 * The tracked table that a relation is a log segment or the sequence of.
 */
static bool
lookup_log(Oid relid, CdcTracked *result)
{
	ListCell   *lc;

	foreach(lc, cdc_tracked_list())
	{
		CdcTracked *tracked = lfirst(lc);
		CdcSegment *segments;
		int			n;

		*result = *tracked;
		if (relid == tracked->seqid || relid == tracked->logrelid)
			return true;
		n = cdc_segments_fetch(tracked->table_id, &segments);
		for (int i = 0; i < n; i++)
			if (segments[i].logrelid == relid)
				return true;
	}
	return false;
}

/*
 * A relation in the schema of the logs was changed.  Rows go to a log without
 * a look at indexes, and have the columns of the table.
 */
static void
check_log(Oid relid, Node *command)
{
	CdcTracked	tracked;
	Relation	rel;
	Relation	log;
	bool		matches;

	if (!lookup_log(relid, &tracked) || relid == tracked.seqid)
		return;
	if (IsA(command, IndexStmt))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot create an index on \"%s\", which is a log of \"%s\"",
						get_rel_name(relid), "cdc_changelog")));
	rel = table_open(tracked.relid, AccessShareLock);
	log = table_open(relid, AccessShareLock);
	matches = cdc_log_matches(RelationGetDescr(rel), RelationGetDescr(log)) &&
		RelationGetIndexList(log) == NIL;
	table_close(log, NoLock);
	table_close(rel, NoLock);
	if (!matches)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot alter \"%s\", which is the log of table \"%s\"",
						get_rel_name(relid), get_rel_name(tracked.relid)),
				 errdetail("It has the columns of the table.")));
}

/*
 * Raise an error if a dropped relation is part of the log of a table that is
 * still tracked.  Where its capture triggers were dropped before, as it is done
 * by a restore that cleans up first, its tracking ends.
 */
static void
check_log_dropped(Oid relid)
{
	CdcTracked	tracked;
	CdcPrivileges saved;
	Relation	rel;
	bool		captured;

	if (!lookup_log(relid, &tracked))
		return;
	rel = table_open(tracked.relid, AccessShareLock);
	captured = cdc_has_capture_triggers(rel);
	table_close(rel, AccessShareLock);
	if (captured)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop the log of tracked table \"%s\"",
						get_rel_name(tracked.relid)),
				 errhint("Call cdc.untrack for the table.")));

	cdc_raise_privileges(&saved);
	cdc_drop_objects(&tracked, true, DROP_RESTRICT);
	cdc_tracked_delete(tracked.table_id);
	cdc_restore_privileges(&saved);
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
 * Let log, sequence and typed function have the owner of the table, the
 * function also its columns, name and schema, and let them depend on it.
 */
static void
follow_objects(const CdcTracked *tracked, Relation rel, Node *command,
			   bool cascade)
{
	bool		have_function = false;
	ListCell   *lc;

	if (IsA(command, AlterObjectSchemaStmt) ||
		(IsA(command, RenameStmt) &&
		 (((RenameStmt *) command)->renameType == OBJECT_TABLE ||
		  ((RenameStmt *) command)->renameType == OBJECT_INDEX)))
		cdc_consumer_source_renamed(tracked->table_id);
	foreach(lc, cdc_owned_objects(tracked))
	{
		ObjectAddress *object = lfirst(lc);

		cdc_set_owner(object, rel->rd_rel->relowner);
		if (object->objectId != tracked->seqid)
			cdc_depend_on_table(object, rel);
		if (object->classId == ProcedureRelationId)
		{
			follow_function(object->objectId, rel, command);
			have_function = true;
		}
	}

	/* it may have gone with the type of a column */
	if (cascade && !have_function)
		cdc_typed_create(rel, tracked);
}

/*
 * Let a typed function follow the table.
 */
static void
follow_function(Oid funcid, Relation rel, Node *command)
{
	if (IsA(command, RenameStmt))
	{
		RenameStmt *stmt = (RenameStmt *) command;

		switch (stmt->renameType)
		{
			case OBJECT_COLUMN:
			case OBJECT_ATTRIBUTE:
				if (get_attnum(RelationGetRelid(rel), stmt->newname) !=
					InvalidAttrNumber)
					cdc_typed_rename_column(funcid, stmt->subname, stmt->newname);
				break;
			case OBJECT_TABLE:
			case OBJECT_INDEX:
				/* ALTER INDEX can be said of a table, too */
				if (strcmp(stmt->newname, RelationGetRelationName(rel)) == 0)
					cdc_typed_rename(funcid, rel, stmt->relation->relname);
				break;
			default:
				break;
		}
	}
	else if (IsA(command, AlterObjectSchemaStmt))
		cdc_typed_rename(funcid, rel, RelationGetRelationName(rel));
	cdc_typed_follow(funcid, rel);
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
