/*-------------------------------------------------------------------------
 *
 * content.c
 *		The content of a table at the start of a range.
 *
 * The content is never stored.  It is the live table, as the range's snapshot
 * sees it and without the changes of the own transaction, minus all that the
 * log says happened since.  What is added here to the events of the range lets
 * the algebra compute it.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/content.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "cdc_changelog.h"
#include "partition.h"
#include "reader_internal.h"

static void open_partitions(Reader *reader, Snapshot snapshot);
static void scan_live_source(Reader *reader, int source, Snapshot snapshot);
static bool partitions_replaced(Reader *reader);

/*
 * Find out how the live table is to be read without the changes of the own
 * transaction.  Normally they are just not looked at.  That does not work if
 * the transaction has replaced the table's storage, or began to track it; then
 * its part of the log is read as well.
 */
void
cdc_reader_find_own_rows(Reader *reader)
{
	CdcRange   *range = reader->range;
	Relation	rel = reader->source;

	reader->replaced = rel->rd_createSubid != InvalidSubTransactionId ||
		cdc_relation_new_storage(rel) || partitions_replaced(reader);
	if (!reader->replaced)
	{
		CdcSnapshotRow *rows;
		int			n;

		n = cdc_snapshot_fetch(range->tracked.table_id, -1, 0, range->snapshot,
							   &rows);
		reader->replaced = n > 0 && rows[0].native &&
			rows[0].xid == U64FromFullTransactionId(GetTopFullTransactionIdIfAny());
	}
	if (!reader->replaced)
		return;

	reader->have_own = cdc_xact_own_rows(&range->tracked, &reader->own);
	if (reader->own.gap)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("content of table \"%s\" cannot be told within this transaction",
						range->relname),
				 errdetail("The transaction has changed the table in a way that its log cannot follow."),
				 errhint("Read the changelog in another transaction.")));
	if (reader->have_own && reader->own.unwritten)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("content of table \"%s\" cannot be told within this subtransaction",
						range->relname),
				 errdetail("The transaction has replaced or begun to track the table, and changed it outside of the subtransaction."),
				 errhint("Read the changelog in another transaction.")));
}

/*
 * Add to the sink what tells the content at the start of the range: the live
 * table and all that happened since the range's end.  Of the live table only
 * rows with keys that the range has touched, unless the content is to be
 * shown.
 */
void
cdc_reader_add_content(Reader *reader)
{
	CdcRange   *range = reader->range;
	int			nrange = range->nrange;

	reader->algebra.have_content = true;
	if (!range->from_start)
	{
		/* This was not foreseen: read the range again, and note its keys. */
		cdc_reader_find_own_rows(reader);
		cdc_range_load_tail(range);
		cdc_sink_reset(reader->sink);
		cdc_reader_index_transactions(reader);
		reader->touched = bloom_create(1000000, Max(work_mem / 8, 1024), 0);
		cdc_reader_add_log(reader, 0, nrange);
	}
	cdc_reader_add_log(reader, nrange, range->nsnaps + (reader->have_own ? 1 : 0));
	cdc_reader_add_live(reader);
}

/*
 * Has the own transaction replaced the storage of partitions of the table, or
 * changed which there are?
 */
static bool
partitions_replaced(Reader *reader)
{
	CdcRange   *range = reader->range;
	SnapshotData before = *range->snapshot;
	List	   *leaves;
	ListCell   *lc;

	if (reader->source->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return false;
	before.curcid = FirstCommandId;
	leaves = cdc_partition_leaves(range->tracked.table_id, range->snapshot);
	if (!equal(leaves, cdc_partition_leaves(range->tracked.table_id, &before)))
		return true;

	foreach(lc, leaves)
	{
		Relation	rel = try_relation_open(lfirst_oid(lc), AccessShareLock);
		bool		replaced;

		if (rel == NULL)
			continue;
		replaced = cdc_relation_new_storage(rel);
		relation_close(rel, NoLock);
		if (replaced)
			return true;
	}
	return false;
}

/*
 * Add the leaf partitions that a snapshot sees to the sources.
 */
static void
open_partitions(Reader *reader, Snapshot snapshot)
{
	CdcRange   *range = reader->range;
	TupleDesc	desc = RelationGetDescr(reader->source);
	List	   *leaves = cdc_partition_leaves(range->tracked.table_id, snapshot);
	ListCell   *lc;

	if (reader->nsources + list_length(leaves) > PG_UINT16_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("table \"%s\" has too many partitions",
						range->relname)));
	reader->sources = repalloc(reader->sources,
							   sizeof(RowSource) * (reader->nsources + list_length(leaves)));
	foreach(lc, leaves)
	{
		RowSource  *s = &reader->sources[reader->nsources];

		memset(s, 0, sizeof(RowSource));
		s->live = true;
		s->rel = try_relation_open(lfirst_oid(lc), AccessShareLock);
		if (s->rel == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access due to concurrent change of the partitions of table \"%s\"",
							range->relname),
					 errhint("The transaction might succeed if retried.")));
		if (!RELKIND_HAS_STORAGE(s->rel->rd_rel->relkind))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("content of table \"%s\" cannot be told",
							range->relname),
					 errdetail("Partition \"%s\" is a foreign table.",
							   RelationGetRelationName(s->rel)),
					 errhint("Give the start of the range and, with identifiers, \"validate => false\".")));
		s->attrmap = cdc_build_attrmap(RelationGetDescr(s->rel), desc);
		s->plain_layout = s->attrmap == NULL && reader->sources[0].plain_layout;
		for (int j = 0; j < 2; j++)
		{
			s->fetch[j] = table_slot_create(s->rel, NULL);
			if (s->attrmap)
				s->mapped[j] = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
		}
		reader->nsources++;
	}
}

/*
 * Add the rows of the live table to the sink.
 */
void
cdc_reader_add_live(Reader *reader)
{
	SnapshotData snapshot = *reader->range->snapshot;

	/* as if the own transaction had not changed anything yet */
	if (!reader->replaced)
		snapshot.curcid = FirstCommandId;

	if (reader->source->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
	{
		scan_live_source(reader, 0, &snapshot);
		return;
	}
	open_partitions(reader, &snapshot);
	for (int i = reader->nsegments + 1; i < reader->nsources; i++)
		scan_live_source(reader, i, &snapshot);
}

/*
 * Add the rows of the live table, or of a leaf partition, to the sink.
 */
static void
scan_live_source(Reader *reader, int source, Snapshot snapshot)
{
	RowSource  *s = &reader->sources[source];
	TableScanDesc scan;
	bool		filter = reader->touched != NULL &&
		!reader->algebra.emit_base;

	cdc_range_check_storage(reader->range, s->rel);
	scan = table_beginscan(s->rel, snapshot, 0, NULL);
	while (table_scan_getnextslot(scan, ForwardScanDirection, s->fetch[0]))
	{
		ItemPointerData tid = s->fetch[0]->tts_tid;
		TupleTableSlot *slot = mapped_row(s, 0);
		CdcEvent   *event;
		uint32		hash;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(reader->tmpcontext);
		MemoryContextSwitchTo(reader->tmpcontext);
		hash = reader->algebra.by_key ? cdc_hash_key(reader->cmp, slot, 0) :
			cdc_hash_image(reader->cmp, slot, 0);
		MemoryContextSwitchTo(reader->context);
		if (filter && bloom_lacks_element(reader->touched,
										  (unsigned char *) &hash, sizeof(hash)))
			continue;
		event = cdc_sink_add(reader->sink);
		event->hash = hash;
		event->snap = CDC_SNAP_LIVE;
		event->block = ItemPointerGetBlockNumber(&tid);
		event->bits = ItemPointerGetOffsetNumber(&tid) | CDC_EVENT_PLUS;
		event->source = source;
	}
	table_endscan(scan);
	ExecClearTuple(s->fetch[0]);
}
