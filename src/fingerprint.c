/*-------------------------------------------------------------------------
 *
 * fingerprint.c
 *		What tells that the target of a consumer is still what it was.
 *
 * What a target has got from earlier runs is gone when somebody has truncated or
 * exchanged it since.  That does not show in its rows, but in what the catalogs
 * say of it: OIDs and files of the table and its partitions; of the tables that a
 * view reads, and its definition; names of columns, for one that was dropped and
 * added again has lost what was in it.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/fingerprint.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "common/hashfn.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "rewrite/prs2lock.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "fingerprint.h"
#include "meaning.h"

static List *relations_of(Oid target, CdcMeaning *views);
static void add_relation(Oid relid, List **relids, CdcMeaning *views);
static bool collect_relations(Node *node, void *context);
static uint64 hash_columns(Oid target, List *columns);
static bool replaced_here(Oid relid);
static bool has_older_row(Relation rel, CommandId before);

/*
 * See fingerprint.h.
 */
int64
cdc_fingerprint(Oid target, List *columns, bool at_end)
{
	CdcMeaning	views = {0};
	uint64		result;
	ListCell   *lc;

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(target)))
		return 0;
	result = hash_columns(target, columns);
	foreach(lc, relations_of(target, &views))
	{
		HeapTuple	tuple = SearchSysCache1(RELOID,
											ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_class form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_class) GETSTRUCT(tuple);
		if (form->relpersistence != RELPERSISTENCE_PERMANENT ||
			(!at_end && replaced_here(form->oid)))
		{
			ReleaseSysCache(tuple);
			return 0;
		}
		result = hash_combine64(result, hash_bytes_uint32_extended(form->oid, 0));
		result = hash_combine64(result,
								hash_bytes_uint32_extended(form->relfilenode, 0));
		ReleaseSysCache(tuple);
	}
	if (views.number != 0)
		result = hash_combine64(result, (uint64) views.number);
	return result == 0 ? 1 : (int64) result;
}

/*
 * See fingerprint.h.
 */
int
cdc_fingerprint_filled(Oid target, CommandId before)
{
	CdcMeaning	views = {0};
	ListCell   *lc;
	int			result = 0;

	foreach(lc, relations_of(target, &views))
	{
		Relation	rel = try_relation_open(lfirst_oid(lc), AccessShareLock);

		if (rel == NULL)
			continue;
		if (RELKIND_HAS_STORAGE(rel->rd_rel->relkind) &&
			RelationGetNumberOfBlocks(rel) > 0 &&
			(before == InvalidCommandId ||
			 (rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
			  has_older_row(rel, before))))
			result++;
		relation_close(rel, NoLock);
	}
	return result;
}

/*
 * The relations that a target consists of: itself, its partitions or children,
 * the tables and views that it reads if it is a view, and theirs.  They are
 * locked until the end of the transaction, so that they stay what they are.
 * What the views in it mean is added to "views".
 */
static List *
relations_of(Oid target, CdcMeaning *views)
{
	List	   *relids = NIL;

	add_relation(target, &relids, views);
	list_sort(relids, list_oid_cmp);
	return relids;
}

static void
add_relation(Oid relid, List **relids, CdcMeaning *views)
{
	Relation	rel;

	if (list_member_oid(*relids, relid))
		return;
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		return;
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
			*relids =
				list_concat_unique_oid(*relids,
									   find_all_inheritors(relid, AccessShareLock,
														   NULL));
			break;
		case RELKIND_VIEW:
			*relids = lappend_oid(*relids, relid);
			for (int i = 0; rel->rd_rules != NULL && i < rel->rd_rules->numLocks; i++)
			{
				List	   *actions = rel->rd_rules->rules[i]->actions;
				List	   *found = NIL;
				ListCell   *lc;

				cdc_meaning_add(views, actions);
				(void) collect_relations((Node *) actions, &found);
				foreach(lc, found)
					add_relation(lfirst_oid(lc), relids, views);
			}
			break;
		case RELKIND_FOREIGN_TABLE:
			*relids = lappend_oid(*relids, relid);
			break;
		default:
			/* nobody writes to what is left through a view */
			break;
	}
	relation_close(rel, NoLock);
}

/*
 * Collects the relations in a query, or in a list of them.
 */
static bool
collect_relations(Node *node, void *context)
{
	List	  **found = context;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		ListCell   *lc;

		foreach(lc, ((Query *) node)->rtable)
		{
			RangeTblEntry *rte = lfirst(lc);

			if (rte->rtekind == RTE_RELATION)
				*found = list_append_unique_oid(*found, rte->relid);
		}
		return query_tree_walker((Query *) node, collect_relations, context, 0);
	}
	return expression_tree_walker(node, collect_relations, context);
}

/*
 * What columns are called, and whether they are still there and computed.
 */
static uint64
hash_columns(Oid target, List *columns)
{
	uint64		result = 0;
	ListCell   *lc;

	foreach(lc, columns)
	{
		HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(target),
											Int16GetDatum(lfirst_int(lc)));
		Form_pg_attribute att;

		result = hash_combine64(result, (uint64) lfirst_int(lc));
		if (!HeapTupleIsValid(tuple))
			continue;
		att = (Form_pg_attribute) GETSTRUCT(tuple);
		result = hash_combine64(result,
								hash_bytes_extended((unsigned char *) NameStr(att->attname),
													strlen(NameStr(att->attname)), 0));
		result = hash_combine64(result, (uint64) att->attgenerated);
		ReleaseSysCache(tuple);
	}
	return result;
}

/*
 * Has the current transaction made a relation, or given it another file?
 */
static bool
replaced_here(Oid relid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	bool		result;

	if (rel == NULL)
		return true;
	result = rel->rd_createSubid != InvalidSubTransactionId ||
		cdc_relation_new_storage(rel);
	relation_close(rel, NoLock);
	return result;
}

/*
 * Has a table's first page a row that was there before a command of this
 * transaction?  A table that was emptied since has none, whatever it got then.
 */
static bool
has_older_row(Relation rel, CommandId before)
{
	Buffer		buffer = ReadBuffer(rel, 0);
	Page		page;
	bool		result = false;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	for (OffsetNumber i = FirstOffsetNumber;
		 !result && i <= PageGetMaxOffsetNumber(page); i++)
	{
		ItemId		item = PageGetItemId(page, i);
		HeapTupleHeader tuple;
		TransactionId xmin;

		if (!ItemIdIsNormal(item))
			continue;
		tuple = (HeapTupleHeader) PageGetItem(page, item);
		xmin = HeapTupleHeaderGetRawXmin(tuple);
		if (!TransactionIdIsCurrentTransactionId(xmin))
			result = HeapTupleHeaderXminFrozen(tuple) ||
				(!HeapTupleHeaderXminInvalid(tuple) && TransactionIdDidCommit(xmin));
		else if (!HeapTupleHeaderXminFrozen(tuple))
			result = HeapTupleHeaderGetCmin(tuple) < before;
	}
	UnlockReleaseBuffer(buffer);
	return result;
}
