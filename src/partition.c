/*-------------------------------------------------------------------------
 *
 * partition.c
 *		Tracked partitioned tables and their partitions.
 *
 * A partitioned table is tracked as a whole: all its partitions write to the
 * log of the tracked root.  Two kinds of trigger see to it.  One AFTER row
 * trigger on the root, which PostgreSQL itself clones to every partition, also
 * to those that are added later, and takes away when one is detached.  And a
 * BEFORE TRUNCATE trigger on every table of the tree, which PostgreSQL does
 * not clone; it is put there and removed by this module.  Both are ENABLE
 * ALWAYS.  Each row is logged by the leaf partition that it is in, so it makes
 * no difference through which table of the tree it was changed.
 *
 * A leaf partition comes and goes with its rows.  Those that come with ATTACH
 * are logged as if they had been inserted, those that go with DETACH and DROP
 * as if they had been deleted, in the transaction that does it.  The tables in
 * which the rows counted by the log are, the leaf partitions, are recorded in
 * cdc.partition.  That is needed
 *
 * - to tell what a command has added and removed, after it has run;
 * - to read the content of the table under a snapshot that is older than a
 *	 change of the partitions, which the server's own catalogs do not show;
 * - to notice partitions that came and went without the event triggers.
 *
 * Where rows came or went before they could be seen, a gap is recorded.
 *
 * Commands on one tracked table that change its partitions are run one after
 * the other: they hold the lock of lock_partitions() to the end of their
 * transactions.  It is taken last, after the locks on tables.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/partition.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tupdesc_details.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "capture.h"
#include "cdc_changelog.h"
#include "commit.h"
#include "partition.h"
#include "restore.h"
#include "tracked.h"

/* Third part of the lock tag, to keep it apart from the lock of the segments */
#define PARTITIONS_LOCK		1

static void lock_partitions(int32 table_id);
static List *table_tree(Oid relid, LOCKMODE lockmode);
static bool is_leaf(Oid relid);
static bool record_leaf(int32 table_id, Oid relid);
static int32 recorded_table(Oid relid);
static bool forget_leaf(Oid relid);
static bool has_truncate_trigger(char relkind);
static void set_truncate_trigger(Oid relid);
static void drop_truncate_trigger(Oid relid);
static void refuse_unlogged(Oid relid, const char *root);
static void add_partition(const CdcTracked *tracked, Oid relid, bool created);
static void remove_partition(Oid relid, bool dropping, LOCKMODE lockmode);
static void remove_leaf(const CdcTracked *tracked, Oid relid);
static void before_drop(RangeVar *name);
static void after_alter(AlterTableStmt *stmt);
static void after_attach(Oid relid);
static void after_trigger_change(Oid relid, AlterTableCmd *cmd);
static void before_drop_trigger(List *name);
static bool capture_armed(Relation rel);
static bool created_here(Oid relid);
static void rearm(Oid relid);
static void foreign_gap(const CdcTracked *tracked, Oid relid,
						const char *what);

/*
 * Lock the partitions of a tracked table against other commands that change
 * which there are, until the end of the transaction.
 */
static void
lock_partitions(int32 table_id)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, cdc_catalog_oid(CDC_TRACKED_TABLE),
					   (uint32) table_id, PARTITIONS_LOCK);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	AcceptInvalidationMessages();
}

/*
 * A table and all that is below it, parents before their children; also
 * partitions that are on their way out by DETACH CONCURRENTLY.  Locks those
 * below, in the order in which queries do it.
 */
static List *
table_tree(Oid relid, LOCKMODE lockmode)
{
	List	   *result = list_make1_oid(relid);
	ListCell   *lc;

	/* the list grows while it is read */
	foreach(lc, result)
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_PARTITIONED_TABLE)
			result = list_concat(result,
								 find_inheritance_children_extended(lfirst_oid(lc),
																	false, lockmode,
																	NULL, NULL));
	}
	return result;
}

/*
 * Does a table of the tree hold rows itself?
 */
static bool
is_leaf(Oid relid)
{
	char		relkind = get_rel_relkind(relid);

	return relkind == RELKIND_RELATION || relkind == RELKIND_FOREIGN_TABLE;
}

/*
 * The tracked table that a partition belongs to, at whatever level.  Returns
 * false if there is none.
 */
bool
cdc_partition_tracked(Oid relid, CdcTracked *tracked)
{
	while (get_rel_relispartition(relid))
	{
		/* also while it is being detached: until then it belongs to it */
		relid = get_partition_parent(relid, true);
		if (cdc_tracked_lookup(relid, tracked))
			return true;
	}
	return false;
}

/*
 * A copy of the row type of a tracked root, for somebody who has locked a
 * partition of it.
 *
 * The root itself is not locked, as nobody must lock it after a partition; but
 * its columns do not change while a partition is locked.
 */
TupleDesc
cdc_partition_root_desc(Oid root)
{
	Relation	rel = RelationIdGetRelation(root);
	TupleDesc	desc;

	if (!RelationIsValid(rel))
		elog(ERROR, "could not open relation with OID %u", root);
	desc = CreateTupleDescCopy(RelationGetDescr(rel));
	RelationClose(rel);
	return desc;
}

/*
 * What a column that was added with a constant default reads as in older rows
 * is noted for the tables that have such rows, not for the partitioned table.
 * Add it to a copy of the row type of a tracked root.
 */
void
cdc_partition_fill_missing(int32 table_id, TupleDesc desc)
{
	ListCell   *lc;

	foreach(lc, cdc_partition_leaves(table_id, NULL))
	{
		Relation	rel = RelationIdGetRelation(lfirst_oid(lc));
		TupleDesc	leaf;

		if (!RelationIsValid(rel))
			continue;
		leaf = RelationGetDescr(rel);
		for (int i = 0; leaf->constr && leaf->constr->missing && i < leaf->natts; i++)
		{
			Form_pg_attribute from = TupleDescAttr(leaf, i);
			AttrMissing *missing = &leaf->constr->missing[i];

			if (from->attisdropped || !missing->am_present)
				continue;
			for (int j = 0; j < desc->natts; j++)
			{
				Form_pg_attribute att = TupleDescAttr(desc, j);

				if (att->attisdropped || att->atthasmissing ||
					strcmp(NameStr(att->attname), NameStr(from->attname)) != 0)
					continue;
				if (desc->constr == NULL)
					desc->constr = palloc0(sizeof(TupleConstr));
				if (desc->constr->missing == NULL)
					desc->constr->missing = palloc0(sizeof(AttrMissing) * desc->natts);
				desc->constr->missing[j].am_present = true;
				desc->constr->missing[j].am_value =
					datumCopy(missing->am_value, att->attbyval, att->attlen);
				att->atthasmissing = true;
			}
		}
		RelationClose(rel);
	}
}

/*
 * Add a row to cdc.partition.  Returns false if it was there.
 */
static bool
record_leaf(int32 table_id, Oid relid)
{
	Relation	rel;
	Datum		values[Natts_cdc_partition];
	bool		nulls[Natts_cdc_partition] = {0};

	if (recorded_table(relid) == table_id)
		return false;
	(void) forget_leaf(relid);
	values[Anum_cdc_partition_table_id - 1] = Int32GetDatum(table_id);
	values[Anum_cdc_partition_relation - 1] = ObjectIdGetDatum(relid);
	rel = table_open(cdc_catalog_oid(CDC_PARTITION), RowExclusiveLock);
	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values,
											nulls));
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
	return true;
}

/*
 * Number of the tracked table that a relation is recorded to be a leaf
 * partition of, or 0.
 */
static int32
recorded_table(Oid relid)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	int32		result = 0;
	bool		isnull;

	ScanKeyInit(&key, Anum_cdc_partition_relation, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	rel = table_open(cdc_catalog_oid(CDC_PARTITION), AccessShareLock);
	scan = systable_beginscan(rel, cdc_catalog_oid(CDC_PARTITION_RELATION),
							  true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		result = DatumGetInt32(heap_getattr(tuple, Anum_cdc_partition_table_id,
											RelationGetDescr(rel), &isnull));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Remove a relation from cdc.partition.  Returns false if it was not there.
 */
static bool
forget_leaf(Oid relid)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, Anum_cdc_partition_relation, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	rel = table_open(cdc_catalog_oid(CDC_PARTITION), RowExclusiveLock);
	scan = systable_beginscan(rel, cdc_catalog_oid(CDC_PARTITION_RELATION),
							  true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found)
		CatalogTupleDelete(rel, &tuple->t_self);
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	if (found)
		CommandCounterIncrement();
	return found;
}

/*
 * The recorded leaf partitions of a tracked table as of a snapshot, as a list
 * of OIDs in ascending order; NULL stands for now.
 */
List *
cdc_partition_leaves(int32 table_id, Snapshot snapshot)
{
	List	   *result = NIL;
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_cdc_partition_table_id, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(table_id));
	rel = table_open(cdc_catalog_oid(CDC_PARTITION), AccessShareLock);
	scan = systable_beginscan(rel, cdc_catalog_oid(CDC_PARTITION_PKEY), true,
							  snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		result = lappend_oid(result,
							 DatumGetObjectId(heap_getattr(tuple,
														   Anum_cdc_partition_relation,
														   RelationGetDescr(rel),
														   &isnull)));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	list_sort(result, list_oid_cmp);
	return result;
}

/*
 * Lock the leaf partitions that a reader sees, against all that is not subject
 * to its snapshot, like TRUNCATE.  "locked" lists those that are locked.
 * Returns whether that were not all of them.
 */
bool
cdc_partition_lock(int32 table_id, Snapshot snapshot, List **locked)
{
	List	   *missing = list_difference_oid(cdc_partition_leaves(table_id, snapshot),
											  *locked);
	ListCell   *lc;

	foreach(lc, missing)
	{
		LockRelationOid(lfirst_oid(lc), AccessShareLock);
		*locked = lappend_oid(*locked, lfirst_oid(lc));
	}
	return missing != NIL;
}

/*
 * Are both capture triggers there and enabled on a leaf partition?
 */
static bool
capture_armed(Relation rel)
{
	bool		row = false;
	bool		truncate = !has_truncate_trigger(rel->rd_rel->relkind);

	for (int i = 0; rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if (trigger->tgenabled != TRIGGER_FIRES_ALWAYS)
			continue;
		if (strcmp(trigger->tgname, CDC_TRIGGER_ROW) == 0)
			row = true;
		else if (strcmp(trigger->tgname, CDC_TRIGGER_TRUNCATE) == 0)
			truncate = true;
	}
	return row && truncate;
}

/*
 * Why the changelog of a tracked partitioned table cannot be trusted at
 * present, as a sentence, or NULL if it can.
 *
 * The caller has locked the table, but not its partitions.
 */
char *
cdc_partition_broken(const CdcTracked *tracked)
{
	List	   *actual = NIL;
	List	   *recorded;
	List	   *difference;
	ListCell   *lc;

	/*
	 * A command that ends between the two looks at the catalogs makes them
	 * differ.
	 */
	for (int try = 0;; try++)
	{
		list_free(actual);
		actual = NIL;
		AcceptInvalidationMessages();
		foreach(lc, table_tree(tracked->relid, NoLock))
			if (is_leaf(lfirst_oid(lc)))
			actual = lappend_oid(actual, lfirst_oid(lc));
		recorded = cdc_partition_leaves(tracked->table_id, NULL);
		difference = list_difference_oid(actual, recorded);
		if (difference == NIL)
			difference = list_difference_oid(recorded, actual);
		if (difference == NIL)
			break;
		if (try >= 3)
		{
			char	   *name = get_rel_name(linitial_oid(difference));

			return name ?
				psprintf("Partition \"%s\" was attached or detached unnoticed.", name) :
				pstrdup("A partition was dropped unnoticed.");
		}
	}

	foreach(lc, actual)
	{
		Relation	rel = RelationIdGetRelation(lfirst_oid(lc));
		char	   *result = NULL;

		if (!RelationIsValid(rel))
			continue;			/* dropped in the meantime */
		if (!capture_armed(rel))
			result = psprintf("A capture trigger is missing or disabled on partition \"%s\".",
							  RelationGetRelationName(rel));
		else if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
			result = psprintf("Partition \"%s\" is unlogged.",
							  RelationGetRelationName(rel));
		RelationClose(rel);
		if (result)
			return result;
	}
	return NULL;
}

/*
 * Does a table of the tree have a TRUNCATE trigger?
 */
static bool
has_truncate_trigger(char relkind)
{
	return relkind != RELKIND_FOREIGN_TABLE || CDC_FOREIGN_TRUNCATE_TRIGGERS;
}

/*
 * Make sure that a table of the tree has the TRUNCATE trigger.  To be called
 * with the rights of the extension's owner.
 */
static void
set_truncate_trigger(Oid relid)
{
	char	   *table;

	if (!has_truncate_trigger(get_rel_relkind(relid)))
		return;
	table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									   get_rel_name(relid));
	if (!OidIsValid(get_trigger_oid(relid, CDC_TRIGGER_TRUNCATE, true)))
		cdc_run_ddl(psprintf("CREATE TRIGGER \"" CDC_TRIGGER_TRUNCATE "\" BEFORE TRUNCATE ON %s "
							 "FOR EACH STATEMENT EXECUTE FUNCTION " CDC_SCHEMA ".capture()",
							 table));
	cdc_run_ddl(psprintf("ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER \"" CDC_TRIGGER_TRUNCATE "\"",
						 table));
}

/*
 * Remove the TRUNCATE trigger from a table that has left the tree.
 */
static void
drop_truncate_trigger(Oid relid)
{
	Oid			trigger = get_trigger_oid(relid, CDC_TRIGGER_TRUNCATE, true);
	ObjectAddress object;

	if (!OidIsValid(trigger))
		return;
	ObjectAddressSet(object, TriggerRelationId, trigger);
	performDeletion(&object, DROP_RESTRICT, 0);
}

/*
 * Raise an error if a table of the tree is unlogged.
 */
static void
refuse_unlogged(Oid relid, const char *root)
{
	if (get_rel_persistence(relid) != RELPERSISTENCE_UNLOGGED)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("partition \"%s\" of tracked table \"%s\" cannot be unlogged",
					get_rel_name(relid), root),
			 errdetail("A crash would empty it without a trace in the log."),
			 errhint("Use ALTER TABLE ... SET LOGGED.")));
}

/*
 * Raise an error if a partitioned table cannot be tracked because of its
 * partitions; those are locked as the table is.
 */
void
cdc_partition_check(Relation root)
{
	const char *name = RelationGetRelationName(root);
	ListCell   *lc;

	foreach(lc, table_tree(RelationGetRelid(root), ShareRowExclusiveLock))
	{
		Oid			relid = lfirst_oid(lc);
		CdcTracked	tracked;

		if (relid == RelationGetRelid(root))
			continue;
		refuse_unlogged(relid, name);
		if (cdc_tracked_lookup(relid, &tracked))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot track table \"%s\" because its partition \"%s\" is tracked",
							name, get_rel_name(relid)),
					 errhint("Call cdc.untrack for the partition first.")));
		if (get_rel_relkind(relid) == RELKIND_FOREIGN_TABLE)
			ereport(WARNING,
					(errcode(ERRCODE_WARNING),
					 errmsg("partition \"%s\" of table \"%s\" is a foreign table",
							get_rel_name(relid), name),
					 errdetail("Only changes that are made through this server will be in the changelog.")));
	}
}

/*
 * Begin to track the partitions of a table, which are locked: record them, and
 * create the triggers.  To be called with the rights of the extension's owner.
 */
void
cdc_partition_begin(const CdcTracked *tracked)
{
	char	   *table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(tracked->relid)),
												   get_rel_name(tracked->relid));
	ListCell   *lc;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	cdc_run_ddl(psprintf("CREATE TRIGGER " CDC_TRIGGER_ROW " AFTER INSERT OR UPDATE OR DELETE ON %s "
						 "FOR EACH ROW EXECUTE FUNCTION " CDC_SCHEMA ".capture()",
						 table));
	cdc_run_ddl(psprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER " CDC_TRIGGER_ROW,
						 table));
	foreach(lc, table_tree(tracked->relid, NoLock))
	{
		set_truncate_trigger(lfirst_oid(lc));
		if (is_leaf(lfirst_oid(lc)))
			record_leaf(tracked->table_id, lfirst_oid(lc));
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/*
 * Add the TRUNCATE triggers of all partitions of a table that is not going to
 * be tracked any more to a list of objects.
 */
void
cdc_partition_add_triggers(Oid root, ObjectAddresses *objects)
{
	ListCell   *lc;

	foreach(lc, table_tree(root, AccessExclusiveLock))
	{
		Oid			trigger = get_trigger_oid(lfirst_oid(lc),
											  CDC_TRIGGER_TRUNCATE, true);
		ObjectAddress object;

		if (lfirst_oid(lc) == root || !OidIsValid(trigger))
			continue;
		ObjectAddressSet(object, TriggerRelationId, trigger);
		add_exact_object_address(&object, objects);
	}
}

/*
 * Make the transaction's snapshot a gap because of a foreign table, whose rows
 * are not known.
 */
static void
foreign_gap(const CdcTracked *tracked, Oid relid, const char *what)
{
	cdc_xact_gap(cdc_xact_table(tracked),
				 psprintf("foreign table \"%s\" was %s", get_rel_name(relid), what));
}

/*
 * TRUNCATE reaches a table of the tree that has no rows of its own.  It goes
 * on to the tables below, whose own triggers log their rows; but foreign
 * tables may have none.
 */
void
cdc_partition_truncate(Relation rel, const CdcTracked *tracked)
{
	ListCell   *lc;

	foreach(lc, table_tree(RelationGetRelid(rel), NoLock))
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
		foreign_gap(tracked, lfirst_oid(lc), "truncated");
}

/*
 * A table, with all below it, has become a partition of a tracked table.  If
 * it was created as one, it has no rows.  All tables are locked.
 */
static void
add_partition(const CdcTracked *tracked, Oid relid, bool created)
{
	CdcPrivileges saved;
	ListCell   *lc;

	lock_partitions(tracked->table_id);
	cdc_raise_privileges(&saved);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	foreach(lc, table_tree(relid, NoLock))
	{
		Oid			part = lfirst_oid(lc);

		refuse_unlogged(part, get_rel_name(tracked->relid));
		set_truncate_trigger(part);
		if (!is_leaf(part) || !record_leaf(tracked->table_id, part))
			continue;
		if (get_rel_relkind(part) == RELKIND_FOREIGN_TABLE)
		{
			foreign_gap(tracked, part, "attached as a partition");
			ereport(WARNING,
					(errcode(ERRCODE_WARNING),
					 errmsg("partition \"%s\" of tracked table \"%s\" is a foreign table",
							get_rel_name(part), get_rel_name(tracked->relid)),
					 errdetail("Only changes that are made through this server will be in the changelog.")));
		}
		else if (!created)
		{
			Relation	rel = table_open(part, NoLock);

			cdc_capture_content(rel, tracked, true);
			table_close(rel, NoLock);
		}
	}
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	cdc_restore_privileges(&saved);
}

/*
 * A leaf partition leaves a tracked table, with its rows.  It is locked
 * against writers.
 */
static void
remove_leaf(const CdcTracked *tracked, Oid relid)
{
	if (!forget_leaf(relid))
		return;
	if (get_rel_relkind(relid) == RELKIND_FOREIGN_TABLE)
		foreign_gap(tracked, relid, "detached");
	else
	{
		Relation	rel = table_open(relid, NoLock);

		cdc_capture_content(rel, tracked, false);
		table_close(rel, NoLock);
	}
}

/*
 * A table, with all below it, has left the tracked table that it is recorded
 * with; or it is going to be dropped, and still belongs to it.
 */
static void
remove_partition(Oid relid, bool dropping, LOCKMODE lockmode)
{
	List	   *tree = table_tree(relid, lockmode);
	CdcPrivileges saved;
	ListCell   *lc;

	foreach(lc, tree)
	{
		int32		table_id = recorded_table(lfirst_oid(lc));
		CdcTracked	tracked;
		CdcTracked	root;

		if (table_id == 0 || !cdc_tracked_lookup_id(table_id, &tracked))
			continue;
		/* the tracked table itself may have been detached from another */
		if (!dropping && cdc_partition_tracked(lfirst_oid(lc), &root) &&
			root.table_id == table_id)
			continue;
		lock_partitions(table_id);
		remove_leaf(&tracked, lfirst_oid(lc));
	}
	if (dropping)
		return;

	cdc_raise_privileges(&saved);
	foreach(lc, tree)
	{
		CdcTracked	tracked;

		if (!cdc_partition_tracked(lfirst_oid(lc), &tracked) &&
			!cdc_tracked_lookup(lfirst_oid(lc), &tracked))
			drop_truncate_trigger(lfirst_oid(lc));
	}
	cdc_restore_privileges(&saved);
}

/*
 * Event ddl_command_start: log the rows of partitions that are going to be
 * dropped.
 */
void
cdc_partition_command_start(Node *command)
{
	DropStmt   *stmt;
	ListCell   *lc;

	if (!IsA(command, DropStmt))
		return;
	stmt = (DropStmt *) command;
	foreach(lc, stmt->objects)
	{
		if (stmt->removeType == OBJECT_TABLE ||
			stmt->removeType == OBJECT_FOREIGN_TABLE)
			before_drop(makeRangeVarFromNameList(lfirst(lc)));
		else if (stmt->removeType == OBJECT_TRIGGER)
			before_drop_trigger(lfirst(lc));
	}
}

/*
 * DROP TABLE names a table.  If it is a partition of a tracked table, take the
 * locks that the command is going to take, in the same order, and log the rows
 * that go with it.
 */
static void
before_drop(RangeVar *name)
{
	Oid			locked = InvalidOid;

	for (;;)
	{
		Oid			relid = RangeVarGetRelid(name, NoLock, true);
		CdcTracked	tracked;

		/* DROP will say what is wrong, or nothing is */
		if (!OidIsValid(relid) ||
			!cdc_partition_tracked(relid, &tracked) ||
			(!cdc_relation_ownercheck(relid, GetUserId()) &&
			 !cdc_schema_ownercheck(get_rel_namespace(relid), GetUserId())))
			return;
		if (relid == locked)
			break;
		LockRelationOid(get_partition_parent(relid, true), AccessExclusiveLock);
		LockRelationOid(relid, AccessExclusiveLock);
		locked = relid;
	}
	remove_partition(locked, true, AccessExclusiveLock);
}

/*
 * DROP TRIGGER names a table, with the trigger's name at the end.  If it is a
 * capture trigger of a partition, what happens from now on is not known.
 */
static void
before_drop_trigger(List *name)
{
	char	   *trigger = strVal(llast(name));
	Oid			relid;
	CdcTracked	tracked;

	if (strcmp(trigger, CDC_TRIGGER_TRUNCATE) != 0)
		return;
	relid = RangeVarGetRelid(makeRangeVarFromNameList(list_truncate(list_copy(name),
																	list_length(name) - 1)),
							 NoLock, true);
	if (OidIsValid(relid) && cdc_partition_tracked(relid, &tracked))
		cdc_xact_gap(cdc_xact_table(&tracked),
					 psprintf("the capture trigger \"%s\" of partition \"%s\" was dropped",
							  trigger, get_rel_name(relid)));
}

/*
 * Event ddl_command_end, with the tables that the command has to do with.
 */
void
cdc_partition_command_end(Node *command, List *relids)
{
	ListCell   *lc;

	switch (nodeTag(command))
	{
		case T_CreateStmt:
		case T_CreateForeignTableStmt:
		case T_CreateSchemaStmt:
			foreach(lc, relids)
			{
				CdcTracked	tracked;

				if (cdc_partition_tracked(lfirst_oid(lc), &tracked) &&
					created_here(lfirst_oid(lc)))
					add_partition(&tracked, lfirst_oid(lc), true);
			}
			break;
		case T_AlterTableStmt:
			after_alter((AlterTableStmt *) command);
			break;
		default:
			break;
	}
}

/*
 * Did the current transaction create a relation?
 */
static bool
created_here(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);
	bool		result;

	if (!RelationIsValid(rel))
		return false;
	result = rel->rd_createSubid != InvalidSubTransactionId;
	RelationClose(rel);
	return result;
}

/*
 * ALTER TABLE has run.
 */
static void
after_alter(AlterTableStmt *stmt)
{
	ListCell   *lc;

	if (stmt->objtype != OBJECT_TABLE && stmt->objtype != OBJECT_FOREIGN_TABLE)
		return;
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		Oid			relid;
		CdcTracked	tracked;

		switch (cmd->subtype)
		{
			case AT_AttachPartition:
				relid = RangeVarGetRelid(((PartitionCmd *) cmd->def)->name,
										 NoLock, true);
				if (OidIsValid(relid))
					after_attach(relid);
				break;
			case AT_DetachPartition:
			case AT_DetachPartitionFinalize:
				relid = RangeVarGetRelid(((PartitionCmd *) cmd->def)->name,
										 NoLock, true);
				if (OidIsValid(relid) && !get_rel_relispartition(relid))
					remove_partition(relid, false, ShareRowExclusiveLock);
				break;
			case AT_EnableTrig:
			case AT_EnableReplicaTrig:
			case AT_EnableAlwaysTrig:
			case AT_EnableTrigAll:
			case AT_EnableTrigUser:
			case AT_DisableTrig:
			case AT_DisableTrigAll:
			case AT_DisableTrigUser:
				relid = RangeVarGetRelid(stmt->relation, NoLock, true);
				if (OidIsValid(relid))
					after_trigger_change(relid, cmd);
				break;
			case AT_SetUnLogged:
				relid = RangeVarGetRelid(stmt->relation, NoLock, true);
				if (OidIsValid(relid) && cdc_partition_tracked(relid, &tracked))
					refuse_unlogged(relid, get_rel_name(tracked.relid));
				break;
			default:
				break;
		}
	}
}

/*
 * A table has been attached to a partitioned one.
 */
static void
after_attach(Oid relid)
{
	CdcTracked	root;
	CdcTracked	tracked;
	ListCell   *lc;

	if (!cdc_partition_tracked(relid, &root))
		return;
	foreach(lc, table_tree(relid, NoLock))
		if (cdc_tracked_lookup(lfirst_oid(lc), &tracked))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot attach tracked table \"%s\" to tracked table \"%s\"",
						get_rel_name(lfirst_oid(lc)), get_rel_name(root.relid)),
				 errdetail("A row can only be in one changelog."),
				 errhint("Call cdc.untrack for one of them first.")));
	add_partition(&root, relid, false);
}

/*
 * Does a subcommand disable triggers?
 */
static bool
trigger_disabled(AlterTableCmd *cmd)
{
	return cmd->subtype == AT_DisableTrig ||
		cmd->subtype == AT_DisableTrigAll ||
		cmd->subtype == AT_DisableTrigUser;
}

/*
 * Triggers of a table have been enabled or disabled.  While a capture trigger
 * of a partition is disabled, reading is refused; and what happened in the
 * meantime is not known when it is enabled again.
 */
static void
after_trigger_change(Oid relid, AlterTableCmd *cmd)
{
	CdcTracked	tracked;
	ListCell   *lc;

	if (cmd->name && strcmp(cmd->name, CDC_TRIGGER_ROW) != 0 &&
		strcmp(cmd->name, CDC_TRIGGER_TRUNCATE) != 0)
		return;
	if (!cdc_partition_tracked(relid, &tracked) &&
		!(get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE &&
		  cdc_tracked_lookup(relid, &tracked)))
		return;

	if (trigger_disabled(cmd) && cdc_restore_abandon(&tracked))
		return;

	/* a restore creates triggers, and then puts them in their states */
	if (trigger_disabled(cmd) || !cdc_restore_pending(&tracked))
		cdc_xact_gap(cdc_xact_table(&tracked),
					 psprintf("capture triggers of \"%s\" were disabled or enabled",
							  get_rel_name(relid)));
	foreach(lc, table_tree(relid, NoLock))
		rearm(lfirst_oid(lc));
}

/*
 * Where a command has enabled capture triggers, let them fire in sessions with
 * whatever role again.
 */
static void
rearm(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);
	List	   *names = NIL;
	CdcPrivileges saved;
	ListCell   *lc;

	if (!RelationIsValid(rel))
		return;
	for (int i = 0; rel->trigdesc && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];

		if ((strcmp(trigger->tgname, CDC_TRIGGER_ROW) == 0 ||
			 strcmp(trigger->tgname, CDC_TRIGGER_TRUNCATE) == 0) &&
			(trigger->tgenabled == TRIGGER_FIRES_ON_ORIGIN ||
			 trigger->tgenabled == TRIGGER_FIRES_ON_REPLICA))
			names = lappend(names, pstrdup(trigger->tgname));
	}
	RelationClose(rel);
	if (names == NIL)
		return;

	cdc_raise_privileges(&saved);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	foreach(lc, names)
		cdc_run_ddl(psprintf("ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %s",
							 quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
														get_rel_name(relid)),
							 quote_identifier(lfirst(lc))));
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	cdc_restore_privileges(&saved);
}

/*
 * Event sql_drop: some of these relations may have been partitions whose rows
 * went before they could be logged.
 */
void
cdc_partition_dropped(List *relids)
{
	ListCell   *lc;

	foreach(lc, relids)
	{
		int32		table_id = recorded_table(lfirst_oid(lc));
		CdcTracked	tracked;

		if (table_id == 0)
			continue;
		(void) forget_leaf(lfirst_oid(lc));
		if (cdc_tracked_lookup_id(table_id, &tracked) &&
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked.relid)))
			cdc_xact_gap(cdc_xact_table(&tracked),
						 "a partition was dropped together with other objects");
	}
}
