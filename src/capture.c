/*-------------------------------------------------------------------------
 *
 * capture.c
 *		The trigger function that writes changes of a tracked table to its log.
 *
 * cdc.track() puts these triggers on a table; one function serves them all.
 *
 * - AFTER INSERT, UPDATE and DELETE, for each statement, with transition
 *	 tables: the ordinary way.
 * - AFTER INSERT OR UPDATE OR DELETE, for each row, ENABLE REPLICA: the same
 *	 for sessions with session_replication_role = replica, where the others do
 *	 not fire; logical replication applies rows without statements.
 * - BEFORE TRUNCATE, ENABLE ALWAYS: logs all rows, as this is the last moment
 *	 they can be seen.
 *
 * The rows are handed to commit.c.  Nothing here runs user code, looks at the
 * search_path or needs a right of the current user.
 *
 * This module owns a cache of what it needs to know of each table, filled at
 * the first change and marked invalid by relcache invalidation of the table or
 * its log.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/capture.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplestore.h"

#include "armed.h"
#include "capture.h"
#include "cdc_changelog.h"
#include "commit.h"
#include "partition.h"
#include "restore.h"
#include "segment.h"

/* A statement that changes more rows than this uses a bulk insert */
#define BULK_ROWS	1000

/* Cache entries that are found without a search */
#define RECENT_ENTRIES	16

/* So many entries may be invalid before they are removed */
#define MAX_STALE	64

/* What is known of a relation that a capture trigger fires on */
typedef struct CaptureEntry
{
	Oid			relid;			/* hash key, must be first */
	bool		valid;			/* false once invalidated, or while filling */
	bool		tracked_p;		/* false: nothing to capture */
	bool		suspect;		/* changes may be missing in the log */
	Oid			checked;		/* trigger that was found to be one of ours */
	CdcTracked	tracked;		/* the tracked table */
	CdcLogMap  *map;			/* from the relation's rows to log rows */
	TupleTableSlot *slots[2];	/* for rows of transition tables */
	bool		slots_busy;		/* an outer call reads with them */
	MemoryContext context;		/* holds all that; NULL if there is none */
} CaptureEntry;

/* A reader of a transition table */
typedef struct TransitionReader
{
	Tuplestorestate *store;
	int			pointer;
	TupleTableSlot *slot;
} TransitionReader;

static HTAB *capture_cache = NULL;
static CaptureEntry *recent[RECENT_ENTRIES];
static int	nstale = 0;			/* entries invalidated since the last removal */

PG_FUNCTION_INFO_V1(cdc_capture);

static void relcache_callback(Datum arg, Oid relid);
static CaptureEntry *lookup_entry(Relation rel);
static void remove_stale(void);
static void fill_entry(CaptureEntry *entry, Relation rel);
static void mark_gap(CaptureEntry *entry, Relation rel);
static void capture_statement(CaptureEntry *entry, TriggerData *trigdata);
static void capture_transitions(CaptureEntry *entry, Tuplestorestate *store,
								bool inserted, TupleDesc desc);
static void capture_update(CaptureEntry *entry, Tuplestorestate *olds,
						   Tuplestorestate *news, TupleDesc desc);
static void capture_row(CaptureEntry *entry, TriggerData *trigdata);
static void capture_truncate(CaptureEntry *entry, Relation rel);
static void capture_content(const CdcLogMap *map, const CdcTracked *tracked,
							Relation rel, bool inserted);

/*
 * Relcache invalidation: only flags.
 */
static void
relcache_callback(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	CaptureEntry *entry;

	hash_seq_init(&status, capture_cache);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->valid &&
			(relid == InvalidOid || relid == entry->relid ||
			 relid == entry->tracked.relid ||
			 relid == entry->tracked.logrelid))
		{
			entry->valid = false;
			nstale++;
		}
	}
}

/*
 * The cache entry of a relation, filled.
 */
static CaptureEntry *
lookup_entry(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	CaptureEntry *entry;
	bool		found;

	/* row triggers come one after the other */
	entry = recent[relid % RECENT_ENTRIES];
	if (entry != NULL && entry->relid == relid && entry->valid)
		return entry;

	if (capture_cache == NULL)
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(CaptureEntry);
		ctl.hcxt = AllocSetContextCreate(CacheMemoryContext,
										 "cdc_changelog capture",
										 ALLOCSET_SMALL_SIZES);
		capture_cache = hash_create("cdc_changelog capture", 32, &ctl,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
	}

	if (nstale > MAX_STALE)
		remove_stale();
	entry = hash_search(capture_cache, &relid, HASH_ENTER, &found);
	if (!found)
	{
		entry->valid = false;
		entry->checked = InvalidOid;
		entry->context = NULL;
		entry->slots_busy = false;
		memset(&entry->tracked, 0, sizeof(CdcTracked));
	}
	if (!entry->valid)
		fill_entry(entry, rel);
	recent[relid % RECENT_ENTRIES] = entry;
	return entry;
}

/*
 * Remove the invalid entries: nobody asks for a dropped table again, and so
 * nothing else frees what is known of it.
 *
 * Captures are not nested, so no entry is in use when one is looked up.
 */
static void
remove_stale(void)
{
	HASH_SEQ_STATUS status;
	CaptureEntry *entry;

	memset(recent, 0, sizeof(recent));
	nstale = 0;
	hash_seq_init(&status, capture_cache);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->valid)
			continue;
		if (entry->context)
			MemoryContextDelete(entry->context);
		hash_search(capture_cache, &entry->relid, HASH_REMOVE, NULL);
	}
}

/*
 * Fill a cache entry.
 *
 * A table on which the triggers are but which is not tracked is left alone:
 * there is no log, and readers are told so.  This happens where a table is
 * restored without the extension's catalog tables.
 */
static void
fill_entry(CaptureEntry *entry, Relation rel)
{
	Relation	log;
	TupleDesc	rootdesc = NULL;

	if (entry->context)
		MemoryContextDelete(entry->context);
	entry->context = NULL;
	entry->map = NULL;
	entry->slots[0] = entry->slots[1] = NULL;
	entry->slots_busy = false;

	entry->tracked_p = cdc_tracked_lookup(entry->relid, &entry->tracked);
	if (!entry->tracked_p && cdc_partition_tracked(entry->relid, &entry->tracked))
	{
		rootdesc = cdc_partition_root_desc(entry->tracked.relid);
		entry->tracked_p = true;
	}

	if (entry->tracked_p && cdc_restore_abandon(&entry->tracked))
		entry->tracked_p = false;

	entry->suspect = rootdesc == NULL && cdc_capture_missing(rel) != NULL;

	/* Valid before the log is opened: that may bring an invalidation. */
	entry->valid = true;
	if (!entry->tracked_p)
		return;

	if (!cdc_segment_pin(&entry->tracked))
	{
		entry->tracked_p = false;
		return;
	}
	log = table_open(entry->tracked.logrelid, NoLock);
	if (!cdc_log_matches(rootdesc ? rootdesc : RelationGetDescr(rel),
						 RelationGetDescr(log)))
	{
		entry->valid = false;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("log of table \"%s\" does not match its columns",
						RelationGetRelationName(rel)),
				 errhint("Call cdc.untrack and then cdc.track for this table.")));
	}
	entry->context = AllocSetContextCreate(CacheMemoryContext,
										   "cdc_changelog log map",
										   ALLOCSET_SMALL_SIZES);
	entry->map = cdc_log_map(rel, RelationGetDescr(log), rootdesc,
							 entry->context);
	table_close(log, NoLock);
}

/*
 * Is this the name of one of our triggers?  There cannot be two of them on a
 * table, so nothing is captured twice.
 */
static bool
is_capture_trigger(const char *name)
{
	static const char *const names[] = {
		CDC_TRIGGER_INSERT, CDC_TRIGGER_UPDATE, CDC_TRIGGER_DELETE,
		CDC_TRIGGER_REPLICA, CDC_TRIGGER_ROW, CDC_TRIGGER_TRUNCATE
	};

	for (int i = 0; i < lengthof(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/*
 * The trigger function.
 */
Datum
cdc_capture(PG_FUNCTION_ARGS)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	CaptureEntry *entry;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						"cdc.capture")));
	entry = lookup_entry(trigdata->tg_relation);
	if (trigdata->tg_trigger->tgoid != entry->checked)
	{
		if (!is_capture_trigger(trigdata->tg_trigger->tgname))
			ereport(ERROR,
					(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
					 errmsg("trigger \"%s\" must not use function \"%s\"",
							trigdata->tg_trigger->tgname, "cdc.capture"),
					 errhint("Drop the trigger and call cdc.track for the table.")));
		entry->checked = trigdata->tg_trigger->tgoid;
	}

	if (entry->tracked_p)
	{
		if (TRIGGER_FIRED_BY_TRUNCATE(trigdata->tg_event))
			capture_truncate(entry, trigdata->tg_relation);
		else if (cdc_xact_truncating(&entry->tracked, trigdata->tg_relation))
			 /* these rows are never seen */ ;
		else if (TRIGGER_FIRED_FOR_ROW(trigdata->tg_event))
			capture_row(entry, trigdata);
		else
			capture_statement(entry, trigdata);
		if (entry->suspect && cdc_xact_changed(&entry->tracked))
			mark_gap(entry, trigdata->tg_relation);
	}
	return PointerGetDatum(NULL);
}

/*
 * Make the transaction's snapshot a gap if changes of the table may be missing
 * in the log, or rows in it that are not the table's.
 */
static void
mark_gap(CaptureEntry *entry, Relation rel)
{
	const char *reason = cdc_capture_missing(rel);

	if (reason)
		cdc_xact_gap(cdc_xact_table(&entry->tracked), reason);
}

/*
 * Capture what one statement did, from its transition tables.
 */
static void
capture_statement(CaptureEntry *entry, TriggerData *trigdata)
{
	TupleDesc	desc = RelationGetDescr(trigdata->tg_relation);
	TriggerEvent event = trigdata->tg_event;
	Tuplestorestate *olds = trigdata->tg_oldtable;
	Tuplestorestate *news = trigdata->tg_newtable;

	/* ENABLE ALWAYS makes them fire besides the trigger for this role */
	if (SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA)
		return;

	if ((!TRIGGER_FIRED_BY_INSERT(event) && olds == NULL) ||
		(!TRIGGER_FIRED_BY_DELETE(event) && news == NULL))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" lacks a transition table",
						trigdata->tg_trigger->tgname)));

	if (TRIGGER_FIRED_BY_INSERT(event))
		capture_transitions(entry, news, true, desc);
	else if (TRIGGER_FIRED_BY_DELETE(event))
		capture_transitions(entry, olds, false, desc);
	else
		capture_update(entry, olds, news, desc);
}

/*
 * Provide the slots to read transition tables with.  They are kept, because
 * making them costs a small statement dearly; a call that failed may have left
 * rows in them, whose memory is gone.
 */
static void
prepare_slots(CaptureEntry *entry, TupleDesc desc)
{
	if (entry->slots[0] == NULL)
	{
		MemoryContext oldcontext = MemoryContextSwitchTo(entry->context);

		/* with the values that rows lack which are older than a column */
		TupleDesc	copy = CreateTupleDescCopyConstr(desc);

		entry->slots[0] = MakeTupleTableSlot(copy, &TTSOpsMinimalTuple);
		entry->slots[1] = MakeTupleTableSlot(copy, &TTSOpsMinimalTuple);
		MemoryContextSwitchTo(oldcontext);
	}
	else if (entry->slots_busy)
	{
		for (int i = 0; i < lengthof(entry->slots); i++)
		{
			entry->slots[i]->tts_flags &= ~TTS_FLAG_SHOULDFREE;
			ExecClearTuple(entry->slots[i]);
		}
	}
	entry->slots_busy = true;
}

/*
 * Start reading a transition table with a read pointer of our own: triggers
 * share the store.
 */
static void
begin_transition(TransitionReader *reader, Tuplestorestate *store,
				 TupleTableSlot *slot)
{
	reader->store = store;
	reader->pointer = tuplestore_alloc_read_pointer(store, EXEC_FLAG_REWIND);
	tuplestore_select_read_pointer(store, reader->pointer);
	tuplestore_rescan(store);
	reader->slot = slot;
}

static void
end_transition(TransitionReader *reader)
{
	ExecClearTuple(reader->slot);
	tuplestore_select_read_pointer(reader->store, 0);
}

/*
 * Make a log row of the row in a slot and hand it over.  Returns whether the
 * row has values that are stored elsewhere.
 */
static bool
add_row(const CdcLogMap *map, CdcXactTable *table, TupleTableSlot *slot,
		bool inserted, int64 tx, BulkInsertState bistate)
{
	MemoryContext oldcontext;
	HeapTuple	row;
	bool		external;

	oldcontext = MemoryContextSwitchTo(cdc_xact_context(table));
	row = cdc_log_form_slot(map, slot, inserted ? tx : -tx);
	MemoryContextSwitchTo(oldcontext);
	external = HeapTupleHasExternal(row);
	cdc_xact_add(table, row, inserted, bistate);
	return external;
}

/*
 * Capture all rows of a transition table.
 */
static void
capture_transitions(CaptureEntry *entry, Tuplestorestate *store, bool inserted,
					TupleDesc desc)
{
	TransitionReader reader;
	CdcXactTable *table;
	BulkInsertState bistate = NULL;
	int64		count = tuplestore_tuple_count(store);
	int64		tx;
	bool		external = false;

	if (count == 0)
		return;

	table = cdc_xact_table(&entry->tracked);
	tx = cdc_xact_number();
	if (count > BULK_ROWS)
		bistate = cdc_log_begin_bulk();
	prepare_slots(entry, desc);
	begin_transition(&reader, store, entry->slots[0]);
	while (tuplestore_gettupleslot(store, true, false, reader.slot))
	{
		CHECK_FOR_INTERRUPTS();
		external |= add_row(entry->map, table, reader.slot, inserted, tx, bistate);
	}
	end_transition(&reader);
	entry->slots_busy = false;

	/*
	 * Values stored elsewhere may become unreachable before the transaction
	 * ends; writing the row copies them.
	 */
	if (external || bistate)
		cdc_xact_flush(table, bistate);
	if (bistate)
		FreeBulkInsertState(bistate);
}

/*
 * Are two rows of a tuplestore the same to the last byte?
 */
static bool
same_bytes(TupleTableSlot *a, TupleTableSlot *b)
{
	MinimalTuple x = ((MinimalTupleTableSlot *) a)->mintuple;
	MinimalTuple y = ((MinimalTupleTableSlot *) b)->mintuple;

	return x->t_len == y->t_len && x->t_hoff == y->t_hoff &&
		HeapTupleHeaderGetNatts(x) == HeapTupleHeaderGetNatts(y) &&
		memcmp((char *) x + SizeofMinimalTupleHeader,
			   (char *) y + SizeofMinimalTupleHeader,
			   x->t_len - SizeofMinimalTupleHeader) == 0;
}

/*
 * Capture an UPDATE.  The executor adds to both transition tables row by row,
 * so the n-th rows belong together; rows that did not change are left out.
 */
static void
capture_update(CaptureEntry *entry, Tuplestorestate *olds,
			   Tuplestorestate *news, TupleDesc desc)
{
	TransitionReader from;
	TransitionReader to;
	CdcXactTable *table = NULL;
	BulkInsertState bistate = NULL;
	int64		tx = 0;
	bool		external = false;

	if (tuplestore_tuple_count(olds) == 0 && tuplestore_tuple_count(news) == 0)
		return;

	prepare_slots(entry, desc);
	begin_transition(&from, olds, entry->slots[0]);
	begin_transition(&to, news, entry->slots[1]);
	for (;;)
	{
		bool		got_old = tuplestore_gettupleslot(olds, true, false, from.slot);
		bool		got_new = tuplestore_gettupleslot(news, true, false, to.slot);

		CHECK_FOR_INTERRUPTS();
		if (!got_old && !got_new)
			break;
		if (got_old && got_new && same_bytes(from.slot, to.slot))
			continue;
		if (table == NULL)
		{
			table = cdc_xact_table(&entry->tracked);
			tx = cdc_xact_number();
			if (tuplestore_tuple_count(olds) > BULK_ROWS / 2)
				bistate = cdc_log_begin_bulk();
		}
		if (got_old)
			external |= add_row(entry->map, table, from.slot, false, tx, bistate);
		if (got_new)
			external |= add_row(entry->map, table, to.slot, true, tx, bistate);
	}
	end_transition(&from);
	end_transition(&to);
	entry->slots_busy = false;

	if (table && (external || bistate))
		cdc_xact_flush(table, bistate);
	if (bistate)
		FreeBulkInsertState(bistate);
}

/*
 * Does an UPDATE leave a row as it was, to the last byte?
 */
static bool
unchanged_row(TupleTableSlot *old, TupleTableSlot *new)
{
	HeapTuple	x;
	HeapTuple	y;

	if (!TTS_IS_BUFFERTUPLE(old) || !TTS_IS_BUFFERTUPLE(new))
		return false;
	x = ((HeapTupleTableSlot *) old)->tuple;
	y = ((HeapTupleTableSlot *) new)->tuple;
	return x->t_len == y->t_len &&
		x->t_data->t_hoff == y->t_data->t_hoff &&
		HeapTupleHeaderGetNatts(x->t_data) == HeapTupleHeaderGetNatts(y->t_data) &&
		HeapTupleHasNulls(x) == HeapTupleHasNulls(y) &&
		memcmp((char *) x->t_data + SizeofHeapTupleHeader,
			   (char *) y->t_data + SizeofHeapTupleHeader,
			   x->t_len - SizeofHeapTupleHeader) == 0;
}

/*
 * Capture one row: of a partition, or in a session with the replica role.
 */
static void
capture_row(CaptureEntry *entry, TriggerData *trigdata)
{
	TriggerEvent event = trigdata->tg_event;
	CdcXactTable *table;
	int64		tx;
	bool		external = false;

	if (!TRIGGER_FIRED_AFTER(event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must be fired after the change",
						trigdata->tg_trigger->tgname)));
	if (TRIGGER_FIRED_BY_UPDATE(event) &&
		unchanged_row(trigdata->tg_trigslot, trigdata->tg_newslot))
		return;

	table = cdc_xact_table(&entry->tracked);
	tx = cdc_xact_number();
	if (!TRIGGER_FIRED_BY_INSERT(event))
		external |= add_row(entry->map, table, trigdata->tg_trigslot, false, tx, NULL);
	if (!TRIGGER_FIRED_BY_DELETE(event))
		external |= add_row(entry->map, table,
							TRIGGER_FIRED_BY_INSERT(event) ?
							trigdata->tg_trigslot : trigdata->tg_newslot,
							true, tx, NULL);

	/* as in capture_transitions() */
	if (external)
		cdc_xact_flush(table, NULL);
}

/*
 * Capture TRUNCATE: every row that is there goes.
 */
static void
capture_truncate(CaptureEntry *entry, Relation rel)
{
	if (RELKIND_HAS_STORAGE(rel->rd_rel->relkind))
	{
		capture_content(entry->map, &entry->tracked, rel, false);
		cdc_xact_truncate(cdc_xact_table(&entry->tracked), rel);
	}
	else
		cdc_partition_truncate(rel, &entry->tracked);
}

/*
 * Capture that all rows of a relation come to, or go from, a tracked table.
 *
 * The relation is locked against writers, so what is committed now is what
 * comes or goes, also if an older snapshot does not see it.
 */
static void
capture_content(const CdcLogMap *map, const CdcTracked *tracked, Relation rel,
				bool inserted)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	CdcXactTable *table = NULL;
	BulkInsertState bistate = NULL;
	int64		tx = 0;

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (table == NULL)
		{
			table = cdc_xact_table(tracked);
			tx = cdc_xact_number();
			bistate = cdc_log_begin_bulk();
		}
		add_row(map, table, slot, inserted, tx, bistate);
	}
	ExecDropSingleTupleTableSlot(slot);
	table_endscan(scan);
	UnregisterSnapshot(snapshot);

	if (table)
	{
		cdc_xact_flush(table, bistate);
		FreeBulkInsertState(bistate);
	}
}

/*
 * Capture that all rows of a table come to a tracked partitioned table, or go
 * from it, together with the table, which the caller has locked against
 * writers.
 */
void
cdc_capture_content(Relation rel, const CdcTracked *tracked, bool inserted)
{
	TupleDesc	rootdesc = cdc_partition_root_desc(tracked->relid);
	Relation	log = table_open(tracked->logrelid, RowExclusiveLock);
	CdcLogMap  *map = cdc_log_map(rel, RelationGetDescr(log), rootdesc,
								  CurrentMemoryContext);

	table_close(log, NoLock);
	capture_content(map, tracked, rel, inserted);
}
