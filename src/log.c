/*-------------------------------------------------------------------------
 *
 * log.c
 *		The log of a tracked table: its layout, its creation, and how rows get
 *		into it.
 *
 * The log is a signed bag.  It is an ordinary heap table in schema "cdc_log"
 * without indexes, constraints and triggers, so that a row can be added with
 * nothing but a heap insert.  Its first column is a bigint and thus exactly
 * as wide as the strictest alignment; the data columns behind it have the
 * same positions, types and holes as in the tracked table.  Therefore the
 * data part of a row of the table, taken byte for byte, is also valid behind
 * that first column, and a log row is made with one copy of memory.  Where a
 * row does not have the table's present layout (columns added with a constant
 * default after it was written, partitions with another column order) it is
 * taken apart and put together again.
 *
 * Rows are appended at the end of the table, never in free space before it,
 * so that the rows of one transaction lie in few blocks.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/log.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/hio.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/detoast.h"
#include "access/tupdesc.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "catalog/toasting.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "cdc_changelog.h"
#include "log.h"

/* Most rows given to one multi insert */
#define MAX_BATCH	1000

/*
 * Slots that carry tuples to table_multi_insert().  They are made as they are
 * needed and kept for the session, for the log that was written to last.
 */
static MemoryContext carrier_context = NULL;
static Oid	carrier_relid = InvalidOid;
static TupleDesc carrier_desc = NULL;	/* a copy of the log's */
static TupleTableSlot *carriers[MAX_BATCH];
static int	ncarriers = 0;
static bool carriers_busy = false;	/* some may hold a tuple */
static bool carriers_valid = false; /* the log has not changed since */

static TupleDesc log_tupdesc(TupleDesc source, TupleDesc like);
static HeapTuple form_by_copy(const HeapTupleHeader header, Size len, int64 tx);
static void carrier_callback(Datum arg, Oid relid);
static void prepare_carriers(Relation log, int n);

/*
 * Raise an error if a row that fits in the table might not fit in its log,
 * which has one more column.
 */
void
cdc_log_check_width(Relation source)
{
	TupleDesc	desc = RelationGetDescr(source);
	Size		width = MAXALIGN(SizeofHeapTupleHeader + BITMAPLEN(desc->natts + 1)) +
		CDC_LOG_PREFIX;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		width = att_align_nominal(width, att->attalign);
		/* a value of variable width shrinks to a TOAST pointer at worst */
		width += att->attlen > 0 ? att->attlen : TOAST_POINTER_SIZE;
	}

	if (width > MaxHeapTupleSize || desc->natts >= MaxHeapAttributeNumber)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("table \"%s\" is too wide to be tracked",
						RelationGetRelationName(source)),
				 errdetail("A row of its log could need %zu bytes; the maximum is %zu, and %d columns.",
						   width, (Size) MaxHeapTupleSize,
						   MaxHeapAttributeNumber - 1)));
}

/*
 * The row type of the log of a table with the given row type.  The columns are
 * named as in "like", which is the row type of another segment, or NULL.
 */
static TupleDesc
log_tupdesc(TupleDesc source, TupleDesc like)
{
	TupleDesc	desc = CreateTemplateTupleDesc(source->natts + 1);

	TupleDescInitEntry(desc, 1, CDC_LOG_COL_TX, INT8OID, -1, 0);

	for (int i = 0; i < source->natts; i++)
	{
		AttrNumber	attno = i + CDC_LOG_FIRST_COL;
		Form_pg_attribute att;

		TupleDescCopyEntry(desc, attno, source, i + 1);
		att = TupleDescAttr(desc, attno - 1);
		if (att->attisdropped)
		{
			/* as DROP COLUMN names it */
			snprintf(NameStr(att->attname), NAMEDATALEN,
					 "........pg.dropped.%d........", attno);
			continue;
		}
		if (like && attno <= like->natts)
			att->attname = TupleDescAttr(like, attno - 1)->attname;
		else
			snprintf(NameStr(att->attname), NAMEDATALEN, "c%d", i + 1);
		att->atttypid = getBaseTypeAndTypmod(att->atttypid, &att->atttypmod);
	}
	return desc;
}

/*
 * Create the log of a table, owned by the table's owner and dropped with the
 * table; or its next segment, where "like" is the one before.  Returns its OID.
 */
Oid
cdc_log_create(Relation source, int32 table_id, int32 segment, Oid like)
{
	char		name[NAMEDATALEN];
	Oid			relid;
	TupleDesc	desc;
	ObjectAddress log;
	ObjectAddress table;

	snprintf(name, sizeof(name), "t%d_%d", table_id, segment);
	if (OidIsValid(like))
	{
		Relation	rel = table_open(like, AccessShareLock);

		desc = log_tupdesc(RelationGetDescr(source), RelationGetDescr(rel));
		table_close(rel, NoLock);
	}
	else
		desc = log_tupdesc(RelationGetDescr(source), NULL);
	relid = heap_create_with_catalog(name,
									 get_namespace_oid(CDC_LOG_SCHEMA, false),
									 source->rd_rel->reltablespace,
									 InvalidOid, InvalidOid, InvalidOid,
									 source->rd_rel->relowner,
									 HEAP_TABLE_AM_OID,
									 desc,
									 NIL, RELKIND_RELATION,
									 RELPERSISTENCE_PERMANENT,
									 false, false, ONCOMMIT_NOOP, (Datum) 0,
									 false, true, true, InvalidOid, NULL);
	CommandCounterIncrement();
	NewRelationCreateToastTable(relid, (Datum) 0);

	ObjectAddressSet(log, RelationRelationId, relid);
	ObjectAddressSet(table, RelationRelationId, RelationGetRelid(source));
	recordDependencyOn(&log, &table, DEPENDENCY_AUTO);
	CommandCounterIncrement();
	return relid;
}

/*
 * The names that a log has for the columns of its table, in the table's order
 * and without dropped ones, as a list of char *.  A name stands for one column
 * for ever, whatever the table calls it.
 */
List *
cdc_log_column_names(Oid logrelid)
{
	Relation	log = table_open(logrelid, AccessShareLock);
	TupleDesc	desc = RelationGetDescr(log);
	List	   *result = NIL;

	for (int i = CDC_LOG_FIRST_COL - 1; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped)
			result = lappend(result, pstrdup(NameStr(att->attname)));
	}
	table_close(log, AccessShareLock);
	return result;
}

/*
 * Does the log have a column for each of the table's, at its place and of its
 * type?
 */
bool
cdc_log_matches(TupleDesc source, TupleDesc log)
{
	if (log->natts != source->natts + 1)
		return false;

	for (int i = 0; i < source->natts; i++)
	{
		Form_pg_attribute a = TupleDescAttr(source, i);
		Form_pg_attribute b = TupleDescAttr(log, i + CDC_LOG_FIRST_COL - 1);

		if (a->attisdropped != b->attisdropped ||
			a->attlen != b->attlen ||
			a->attalign != b->attalign ||
			a->attbyval != b->attbyval)
			return false;
		if (!a->attisdropped && getBaseType(a->atttypid) != b->atttypid)
			return false;
	}
	return true;
}

/*
 * How rows of "source" become rows of a log with row type "logdesc".
 *
 * "rootdesc" is the row type of the tracked table where source is one of its
 * partitions, else NULL.  Allocated in "context", with a copy of logdesc.
 */
CdcLogMap *
cdc_log_map(Relation source, TupleDesc logdesc, TupleDesc rootdesc,
			MemoryContext context)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(context);
	CdcLogMap  *map = palloc(sizeof(CdcLogMap));

	map->natts = rootdesc ? rootdesc->natts : RelationGetDescr(source)->natts;
	map->logdesc = CreateTupleDescCopy(logdesc);
	map->attrmap = rootdesc == NULL ? NULL :
		cdc_build_attrmap(RelationGetDescr(source), rootdesc);
	map->same_layout = map->attrmap == NULL &&
		cdc_log_matches(RelationGetDescr(source), logdesc);
	map->values = palloc0(sizeof(Datum) * (map->natts + 1));
	map->nulls = palloc0(sizeof(bool) * (map->natts + 1));
	MemoryContextSwitchTo(oldcontext);
	return map;
}

/*
 * Make a log row from a row header whose data has the log's layout behind the
 * first column.  "len" is the row's length counted from the header.
 */
static HeapTuple
form_by_copy(const HeapTupleHeader header, Size len, int64 tx)
{
	bool		hasnull = (header->t_infomask & HEAP_HASNULL) != 0;
	int			natts = HeapTupleHeaderGetNatts(header) + 1;
	Size		datalen = len - header->t_hoff;
	Size		hoff;
	HeapTuple	result;
	HeapTupleHeader td;

	hoff = SizeofHeapTupleHeader;
	if (hasnull)
		hoff += BITMAPLEN(natts);
	hoff = MAXALIGN(hoff);

	result = (HeapTuple) palloc(HEAPTUPLESIZE + hoff + CDC_LOG_PREFIX + datalen);
	result->t_data = td = (HeapTupleHeader) ((char *) result + HEAPTUPLESIZE);
	result->t_len = hoff + CDC_LOG_PREFIX + datalen;
	ItemPointerSetInvalid(&result->t_self);
	result->t_tableOid = InvalidOid;

	memset(td, 0, hoff);
	ItemPointerSetInvalid(&td->t_ctid);
	HeapTupleHeaderSetNatts(td, natts);
	td->t_hoff = hoff;
	td->t_infomask = header->t_infomask &
		(HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL);

	/* The bitmap moves by one place for the log's own column. */
	if (hasnull)
	{
		int			nbytes = BITMAPLEN(natts - 1);
		int			carry = 1;

		for (int i = 0; i < nbytes; i++)
		{
			td->t_bits[i] = (bits8) ((header->t_bits[i] << 1) | carry);
			carry = header->t_bits[i] >> 7;
		}
		if (BITMAPLEN(natts) > nbytes)
			td->t_bits[nbytes] = carry;
	}

	memcpy((char *) td + hoff, &tx, CDC_LOG_PREFIX);
	memcpy((char *) td + hoff + CDC_LOG_PREFIX,
		   (char *) header + header->t_hoff, datalen);
	return result;
}

/*
 * Make a log row from a row of a tuplestore.  "tx" is the transaction number
 * with the sign of the change.  Allocated in the current memory context.
 */
HeapTuple
cdc_log_form_minimal(const CdcLogMap *map, MinimalTuple tuple, int64 tx)
{
	HeapTupleHeader header;

	Assert(map->same_layout);
	Assert(HeapTupleHeaderGetNatts(tuple) == map->natts);
	header = (HeapTupleHeader) ((char *) tuple - MINIMAL_TUPLE_OFFSET);
	return form_by_copy(header, tuple->t_len + MINIMAL_TUPLE_OFFSET, tx);
}

/*
 * Make a log row from the row in a slot, which has the layout of the relation
 * the map was made for.
 */
HeapTuple
cdc_log_form_slot(const CdcLogMap *map, TupleTableSlot *slot, int64 tx)
{
	Datum	   *values = map->values;
	bool	   *nulls = map->nulls;

	if (map->same_layout)
	{
		if (TTS_IS_MINIMALTUPLE(slot))
		{
			MinimalTuple tuple = ((MinimalTupleTableSlot *) slot)->mintuple;

			if (tuple && HeapTupleHeaderGetNatts(tuple) == map->natts)
				return cdc_log_form_minimal(map, tuple, tx);
		}
		else if (TTS_IS_BUFFERTUPLE(slot) || TTS_IS_HEAPTUPLE(slot))
		{
			HeapTuple	tuple = ((HeapTupleTableSlot *) slot)->tuple;

			if (tuple && HeapTupleHeaderGetNatts(tuple->t_data) == map->natts)
				return form_by_copy(tuple->t_data, tuple->t_len, tx);
		}
	}

	slot_getallattrs(slot);
	values[0] = Int64GetDatum(tx);
	nulls[0] = false;
	for (int i = 0; i < map->natts; i++)
	{
		int			from = map->attrmap ? map->attrmap->attnums[i] - 1 : i;

		if (from < 0 || TupleDescAttr(map->logdesc, i + 1)->attisdropped)
		{
			values[i + 1] = (Datum) 0;
			nulls[i + 1] = true;
		}
		else
		{
			values[i + 1] = slot->tts_values[from];
			nulls[i + 1] = slot->tts_isnull[from];
		}
	}
	return heap_form_tuple(map->logdesc, values, nulls);
}

/*
 * Relcache invalidation: the row type of the log may be another one.
 */
static void
carrier_callback(Datum arg, Oid relid)
{
	if (relid == carrier_relid || relid == InvalidOid)
		carriers_valid = false;
}

/*
 * Provide at least n slots for rows of a log.
 */
static void
prepare_carriers(Relation log, int n)
{
	MemoryContext oldcontext;

	if (carrier_relid != RelationGetRelid(log) ||
		(!carriers_valid &&
		 !equalTupleDescs(carrier_desc, RelationGetDescr(log))))
	{
		if (carrier_context == NULL)
		{
			carrier_context = AllocSetContextCreate(TopMemoryContext,
													"cdc_changelog slots",
													ALLOCSET_DEFAULT_SIZES);
			CacheRegisterRelcacheCallback(carrier_callback, (Datum) 0);
		}
		ncarriers = 0;
		carrier_relid = InvalidOid;
		MemoryContextReset(carrier_context);
		oldcontext = MemoryContextSwitchTo(carrier_context);
		carrier_desc = CreateTupleDescCopy(RelationGetDescr(log));
		MemoryContextSwitchTo(oldcontext);
		carrier_relid = RelationGetRelid(log);
	}
	carriers_valid = true;

	oldcontext = MemoryContextSwitchTo(carrier_context);
	while (ncarriers < n)
	{
		carriers[ncarriers] = MakeSingleTupleTableSlot(carrier_desc,
													   &TTSOpsHeapTuple);
		ncarriers++;
	}
	MemoryContextSwitchTo(oldcontext);
}

/*
 * Begin to write many rows.  To be freed with FreeBulkInsertState().
 *
 * The server's own bulk inserts go round in a small ring of buffers, and so
 * wait for the WAL of each page to reach the disk before they may use its
 * buffer again.  The pages of a log are going to be read soon, by those who
 * follow it, and can as well stay where they are.
 */
BulkInsertState
cdc_log_begin_bulk(void)
{
	BulkInsertState bistate = GetBulkInsertState();

	FreeAccessStrategy(bistate->strategy);
	bistate->strategy = NULL;
	return bistate;
}

/*
 * Append rows to a log under the current (sub)transaction and add the blocks
 * they went to to "runs".  The tuples are freed.
 *
 * The caller holds RowExclusiveLock on the log and, as rows may have to be
 * toasted, has an active snapshot.
 */
void
cdc_log_append(Relation log, HeapTuple *tuples, int ntuples,
			   BulkInsertState bistate, CdcRunList *runs)
{
	CommandId	cid = GetCurrentCommandId(true);

	if (ntuples == 1)
	{
		BlockNumber block;

		heap_insert(log, tuples[0], cid, TABLE_INSERT_SKIP_FSM, bistate);
		block = ItemPointerGetBlockNumber(&tuples[0]->t_self);
		cdc_runs_add(runs, block, block);
		heap_freetuple(tuples[0]);
		return;
	}

	for (int done = 0; done < ntuples;)
	{
		int			n = Min(ntuples - done, MAX_BATCH);
		BlockNumber first;
		BlockNumber last;

		prepare_carriers(log, n);
		carriers_busy = true;
		for (int i = 0; i < n; i++)
			ExecStoreHeapTuple(tuples[done + i], carriers[i], true);
		table_multi_insert(log, carriers, n, cid, TABLE_INSERT_SKIP_FSM,
						   bistate);

		first = last = ItemPointerGetBlockNumber(&carriers[0]->tts_tid);
		for (int i = 0; i < n; i++)
		{
			BlockNumber block = ItemPointerGetBlockNumber(&carriers[i]->tts_tid);

			if (block != last)
			{
				if (block < last || block - last > CDC_RUN_GAP)
				{
					cdc_runs_add(runs, first, last);
					first = block;
				}
				last = block;
			}
			ExecClearTuple(carriers[i]);
		}
		carriers_busy = false;
		cdc_runs_add(runs, first, last);
		done += n;
	}
}

/*
 * Forget tuples that an append left behind when it failed.  Their memory
 * belongs to the transaction and goes with it.
 */
void
cdc_log_abort(void)
{
	if (!carriers_busy)
		return;
	for (int i = 0; i < ncarriers; i++)
	{
		carriers[i]->tts_flags &= ~TTS_FLAG_SHOULDFREE;
		ExecClearTuple(carriers[i]);
	}
	carriers_busy = false;
}

/*
 * Add an interval of blocks to a list.  Intervals near each other become one;
 * where the list is full, the two with the least space between them do.
 */
void
cdc_runs_add(CdcRunList *list, BlockNumber first, BlockNumber last)
{
	CdcBlockRun runs[CDC_MAX_RUNS + 1];
	int			n = 0;
	bool		placed = false;

	/* By far the most frequent: it goes on where the last one ended. */
	if (list->nruns > 0)
	{
		CdcBlockRun *newest = &list->runs[list->nruns - 1];

		if (first >= newest->first && first - newest->first <= CDC_RUN_GAP +
			(newest->last - newest->first))
		{
			newest->last = Max(newest->last, last);
			return;
		}
	}

	for (int i = 0; i < list->nruns; i++)
	{
		if (!placed && first < list->runs[i].first)
		{
			runs[n].first = first;
			runs[n++].last = last;
			placed = true;
		}
		runs[n++] = list->runs[i];
	}
	if (!placed)
	{
		runs[n].first = first;
		runs[n++].last = last;
	}

	/* Join what is near or overlaps. */
	list->nruns = 0;
	for (int i = 0; i < n; i++)
	{
		CdcBlockRun *prev = list->nruns > 0 ? &list->runs[list->nruns - 1] : NULL;

		if (prev && (runs[i].first <= prev->last ||
					 runs[i].first - prev->last <= CDC_RUN_GAP))
			prev->last = Max(prev->last, runs[i].last);
		else if (list->nruns < CDC_MAX_RUNS)
			list->runs[list->nruns++] = runs[i];
		else
		{
			int			best = 1;

			/* i is the last one here: close the narrowest gap for it */
			for (int j = 2; j < list->nruns; j++)
				if (list->runs[j].first - list->runs[j - 1].last <
					list->runs[best].first - list->runs[best - 1].last)
					best = j;
			list->runs[best - 1].last = list->runs[best].last;
			memmove(&list->runs[best], &list->runs[best + 1],
					sizeof(CdcBlockRun) * (list->nruns - best - 1));
			list->runs[list->nruns - 1] = runs[i];
		}
	}
}
