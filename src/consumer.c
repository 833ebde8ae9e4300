/*-------------------------------------------------------------------------
 *
 * consumer.c
 *		Consumers: what they read in a transaction, and how their positions
 *		move.
 *
 * A consumer is a name with a position in the changelog of each table that it
 * reads.  Reading through it pins what is read until the transaction ends: from
 * the position up to one cut through all tables (cut.c), which all consumers of
 * the transaction share.  Only an application to a target moves positions, and
 * it does so in the transaction in which it changes the target.
 *
 * A position can be used if the history after it is still there and complete,
 * is the one that was read before, and the target is the one that got what is
 * before it.  Where one of a consumer's positions is not usable, or a table has
 * none, none of them is used: all tables are read completely, and the target
 * is made equal to what comes out.
 *
 * A consumer is locked by whoever reads through it, until the end of the
 * transaction, with an object lock on the hash of its name.  Its catalog rows
 * (consumer_catalog.c) are only read and changed under that lock.  What is
 * known of the consumers that the current transaction has locked is in the
 * memory of the top transaction; what a subtransaction has locked or pinned is
 * forgotten when it is rolled back.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/consumer.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "consumer.h"
#include "consumer_catalog.h"
#include "cut.h"
#include "fingerprint.h"
#include "horizon.h"

/* A table that a consumer reads */
typedef struct Source
{
	CdcTracked	tracked;
	bool		known;			/* the consumer has a position in it ... */
	bool		usable;			/* ... from which reading can go on */
	int64		from;			/* the position */
	int64		to;				/* where the transaction cuts */
	int			read_at;		/* nest level at which the current run has
								 * read it, 0 if not */
} Source;

/* A consumer that the transaction has locked */
typedef struct Consumer
{
	struct Consumer *next;
	char	   *name;
	int			nest_level;		/* of the (sub)transaction that did it */
	bool		pinned;			/* sources are filled in */
	int			pinned_at;		/* nest level */
	bool		had_positions;
	int64		last_run;		/* number of its last run before */
	List	   *sources;		/* of Source * */
	CdcConsumerRun *run;		/* in progress, or NULL */
} Consumer;

struct CdcConsumerRun
{
	Consumer   *consumer;
	int			nest_level;
	Oid			target;
	bool		full;
	bool		again;			/* found out that it has to be full */
	bool		repeated;		/* the transaction has done this before */
	bool		applied_before; /* to this target, unless reset since */
	List	   *sources;		/* numbers of the tables the target is made of */
};

/*
 * A target of a run that the transaction had made or truncated itself.  It may
 * be truncated in place, so that only the end of the transaction tells whether
 * it still has what the run has put there.
 */
typedef struct Unsettled
{
	struct Unsettled *next;
	char	   *consumer;
	Oid			target;
	int64		run;
	int			filled;			/* its partitions that were not empty after
								 * the run */
	CommandId	after;			/* first command after the run */
	int			nest_level;
} Unsettled;

static Consumer *consumers = NULL;
static Unsettled *unsettled = NULL;

/* The transaction's cut */
static Snapshot cut_snapshot = NULL;
static int	cut_level;			/* nest level that took it */
static CdcCutTable *cut_tables = NULL;
static int	cut_ntables = 0;

static Consumer *lock_consumer(const char *name, bool nowait);
static void lock_name(const char *name, bool nowait);
static void take_cut(List *tracked);
static int64 cut_newest(const CdcTracked *tracked);
static void pin_sources(Consumer *consumer, Oid relid);
static Source *add_source(Consumer *consumer, const CdcTracked *tracked);
static Source *find_source(Consumer *consumer, Oid relid);
static bool is_usable(const CdcTracked *tracked, const CdcPosition *position,
					  int64 to, Snapshot snapshot);
static void check_not_ahead(Consumer *consumer, const CdcTracked *tracked,
							const CdcPosition *position);
static bool all_usable(const Consumer *consumer);
static bool sources_usable(const Consumer *consumer, List *sources);
static void note_source(CdcConsumerRun *run, Source *source, List **sources);
static void settle_later(Consumer *consumer, Oid target);
static void settle_targets(void);
static void forget_cut(void);
static void xact_callback(XactEvent event, void *arg);
static void subxact_callback(SubXactEvent event, SubTransactionId mySubid,
							 SubTransactionId parentSubid, void *arg);

/*
 * Register the callbacks.
 */
void
cdc_consumer_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}

/*
 * Take the lock of a consumer's name, until the end of the transaction.
 */
static void
lock_name(const char *name, bool nowait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, cdc_catalog_oid(CDC_CONSUMER),
					   DatumGetUInt32(hash_any((const unsigned char *) name,
											   strlen(name))), 0);
	if (LockAcquire(&tag, ExclusiveLock, false, nowait) == LOCKACQUIRE_NOT_AVAIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on consumer \"%s\"", name),
				 errhint("Another transaction is reading through it.")));
	AcceptInvalidationMessages();
}

/*
 * Lock a consumer, make it if it is new, and return what the transaction knows
 * of it.
 *
 * Raises insufficient_privilege if the current user is not a member of its
 * owner, and serialization_failure if it was changed after the snapshot of a
 * transaction in REPEATABLE READ or above.
 */
static Consumer *
lock_consumer(const char *name, bool nowait)
{
	Consumer   *consumer;
	CdcConsumerRow row;

	for (consumer = consumers; consumer; consumer = consumer->next)
		if (strcmp(consumer->name, name) == 0)
			return consumer;

	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("name of a consumer must not be empty")));
	PreventCommandIfReadOnly("reading through a consumer");
	PreventCommandDuringRecovery("reading through a consumer");
	cdc_consumer_require_extension();

	lock_name(name, nowait);
	if (!cdc_consumer_fetch(name, &row))
		cdc_consumer_create(name, &row);
	else
		cdc_consumer_check_owner(name, &row);

	consumer = MemoryContextAllocZero(TopTransactionContext, sizeof(Consumer));
	consumer->name = MemoryContextStrdup(TopTransactionContext, name);
	consumer->nest_level = GetCurrentTransactionNestLevel();
	consumer->last_run = row.last_run;
	consumer->next = consumers;
	consumers = consumer;
	return consumer;
}

/*
 * Take the transaction's cut through some tables, a list of CdcTracked *.
 */
static void
take_cut(List *tracked)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	Snapshot	snapshot;
	ListCell   *lc;

	cut_tables = palloc(sizeof(CdcCutTable) * (list_length(tracked) + 1));
	cut_ntables = 0;
	foreach(lc, tracked)
		cut_tables[cut_ntables++].tracked = *(CdcTracked *) lfirst(lc);
	snapshot = cdc_cut_take(cut_ntables, cut_tables);
	cut_snapshot = RegisterSnapshotOnOwner(snapshot, TopTransactionResourceOwner);
	UnregisterSnapshot(snapshot);
	cut_level = GetCurrentTransactionNestLevel();
	MemoryContextSwitchTo(oldcontext);
}

/*
 * The last snapshot of a table before the transaction's cut.
 */
static int64
cut_newest(const CdcTracked *tracked)
{
	CdcCutTable table;

	for (int i = 0; i < cut_ntables; i++)
		if (cut_tables[i].tracked.table_id == tracked->table_id)
			return cut_tables[i].newest;

	table.tracked = *tracked;
	cdc_cut_add(cut_snapshot, cut_ntables, cut_tables, &table);
	cut_tables = repalloc(cut_tables, sizeof(CdcCutTable) * (cut_ntables + 1));
	cut_tables[cut_ntables++] = table;
	return table.newest;
}

/*
 * The tracked tables that a consumer has positions in, as a list of
 * CdcTracked *.  The positions are returned in *positions, in the same order.
 */
static List *
known_tables(Consumer *consumer, List **positions)
{
	List	   *result = NIL;
	ListCell   *lc;

	*positions = NIL;
	foreach(lc, cdc_consumer_positions(consumer->name))
	{
		CdcPosition *position = lfirst(lc);
		CdcTracked *tracked = palloc(sizeof(CdcTracked));

		consumer->had_positions = true;
		if (!cdc_tracked_lookup_id(position->table_id, tracked) ||
			!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(tracked->relid)))
			continue;
		result = lappend(result, tracked);
		*positions = lappend(*positions, position);
	}
	return result;
}

/*
 * Settle what a consumer is going to read in this transaction.  "relid" is the
 * table that is being read, or InvalidOid.
 */
static void
pin_sources(Consumer *consumer, Oid relid)
{
	List	   *positions;
	List	   *known;
	List	   *tables;
	CdcTracked	reading;
	ListCell   *lc;
	ListCell   *lp;

	if (consumer->pinned)
		return;

	consumer->had_positions = false;
	known = known_tables(consumer, &positions);
	foreach(lc, known)
		LockRelationOid(((CdcTracked *) lfirst(lc))->relid, AccessShareLock);
	if (cut_snapshot == NULL)
	{
		tables = list_copy(known);
		/* what it is going to read may be any table the first time */
		if (known == NIL)
			tables = cdc_tracked_list();
		else if (OidIsValid(relid) && cdc_tracked_lookup(relid, &reading))
		{
			bool		found = false;

			foreach(lc, known)
				found |= ((CdcTracked *) lfirst(lc))->table_id == reading.table_id;
			if (!found)
				tables = lappend(tables, &reading);
		}
		take_cut(tables);
	}

	consumer->sources = NIL;
	forboth(lc, known, lp, positions)
	{
		CdcTracked *tracked = lfirst(lc);
		CdcPosition *position = lfirst(lp);
		Source	   *source = add_source(consumer, tracked);

		source->known = true;
		source->from = position->position;

		/* the horizon may have gone back, but not for who was there already */
		source->usable = is_usable(tracked, position,
								   Max(source->to, source->from), cut_snapshot);
		if (!source->usable && source->from > source->to)
			check_not_ahead(consumer, tracked, position);
		if (source->usable)
			source->to = Max(source->to, source->from);
	}
	consumer->pinned = true;
	consumer->pinned_at = GetCurrentTransactionNestLevel();
}

/*
 * Add a table to those that a consumer reads.
 */
static Source *
add_source(Consumer *consumer, const CdcTracked *tracked)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	Source	   *source = palloc0(sizeof(Source));

	source->tracked = *tracked;
	source->to = cut_newest(tracked);
	consumer->sources = lappend(consumer->sources, source);
	MemoryContextSwitchTo(oldcontext);
	return source;
}

/*
 * A table among those that a consumer reads, added if it is new.
 */
static Source *
find_source(Consumer *consumer, Oid relid)
{
	CdcTracked	tracked;
	ListCell   *lc;

	cdc_tracked_require(relid, &tracked);
	foreach(lc, consumer->sources)
	{
		Source	   *source = lfirst(lc);

		if (source->tracked.table_id == tracked.table_id)
			return source;
	}
	return add_source(consumer, &tracked);
}

/*
 * Can reading of a table go on from a position, up to "to"?
 */
static bool
is_usable(const CdcTracked *tracked, const CdcPosition *position, int64 to,
		  Snapshot snapshot)
{
	int64		at = position->position;
	MemoryContext context;
	MemoryContext oldcontext;
	CdcSnapshotRow *rows;
	int			n;
	bool		result;

	if (at < cdc_tracked_oldest(tracked, snapshot))
		return false;

	context = AllocSetContextCreate(CurrentMemoryContext,
									"cdc_changelog consumer",
									ALLOCSET_DEFAULT_SIZES);
	oldcontext = MemoryContextSwitchTo(context);
	n = cdc_snapshot_fetch(tracked->table_id, at - 1, to, snapshot, &rows);
	result = n > 0 && rows[0].snapshot_id == at &&
		rows[0].tx == position->tx && rows[0].committed_at == position->time;
	for (int i = 1; i < n && result; i++)
		result = rows[i].kind != CDC_KIND_GAP;
	MemoryContextSwitchTo(oldcontext);
	MemoryContextDelete(context);
	return result;
}

/*
 * A position behind the transaction's cut cannot be used: raise
 * serialization_failure if that is because another transaction has moved it
 * there after the cut was taken.
 */
static void
check_not_ahead(Consumer *consumer, const CdcTracked *tracked,
				const CdcPosition *position)
{
	Snapshot	latest = RegisterSnapshot(GetLatestSnapshot());
	bool		ahead = is_usable(tracked, position, position->position, latest);

	UnregisterSnapshot(latest);
	if (ahead && !is_usable(tracked, position, position->position, cut_snapshot))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to consumer \"%s\"",
						consumer->name),
				 errdetail("Its position in table \"%s\" is newer than what this transaction reads.",
						   get_rel_name(tracked->relid)),
				 errhint("The transaction might succeed if retried.")));
}

/*
 * Has the consumer positions, all of them usable?
 */
static bool
all_usable(const Consumer *consumer)
{
	bool		any = false;
	ListCell   *lc;

	foreach(lc, consumer->sources)
	{
		Source	   *source = lfirst(lc);

		if (!source->known)
			continue;
		any = true;
		if (!source->usable)
			return false;
	}
	return any;
}

/*
 * Has the consumer usable positions in all of some tables, a list of their
 * numbers?
 */
static bool
sources_usable(const Consumer *consumer, List *sources)
{
	ListCell   *lc;
	ListCell   *ls;

	foreach(lc, sources)
	{
		bool		usable = false;

		foreach(ls, consumer->sources)
		{
			Source	   *source = lfirst(ls);

			if (source->tracked.table_id == lfirst_int(lc))
				usable = source->known && source->usable;
		}
		if (!usable)
			return false;
	}
	return sources != NIL;
}

/*
 * What a consumer reads of a table, for a changelog function.  Locks the
 * consumer, which waits unless "nowait", and creates it if it is new.
 */
void
cdc_consumer_pin(const char *name, Oid relid, bool nowait, CdcPin *pin)
{
	Consumer   *consumer = lock_consumer(name, nowait);
	CdcConsumerRun *run = consumer->run;
	Source	   *source;

	LockRelationOid(relid, AccessShareLock);
	pin_sources(consumer, relid);
	source = find_source(consumer, relid);

	pin->from = source->from;
	pin->to = source->to;
	pin->snapshot = cut_snapshot;
	pin->incremental = source->known && all_usable(consumer);
	if (run == NULL)
		return;

	if (source->read_at == 0)
		source->read_at = GetCurrentTransactionNestLevel();
	if (run->full)
		pin->incremental = false;
	else if (!list_member_int(run->sources, source->tracked.table_id))
	{
		/* the target has nothing of it, whoever else got it */
		pin->incremental = false;
		run->again = true;
	}
	else
	{
		pin->incremental = true;
		if (run->repeated)
			pin->from = pin->to;
	}
}

/*
 * A changelog function cannot give what it was asked for incrementally.  Returns
 * whether a run of the consumer is in progress that can do without: it will be
 * done again, and be full.
 */
bool
cdc_consumer_decline(const char *name)
{
	for (Consumer *consumer = consumers; consumer; consumer = consumer->next)
	{
		CdcConsumerRun *run = consumer->run;

		if (strcmp(consumer->name, name) != 0 || run == NULL || run->full)
			continue;
		run->again = true;
		return true;
	}
	return false;
}

static int
compare_names(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/*
 * Lock several consumers, a list of names, and take one cut through all tables
 * that they read.
 */
void
cdc_consumer_pin_group(List *names, bool nowait)
{
	List	   *sorted = list_copy(names);
	List	   *tables = NIL;
	bool		all = false;
	ListCell   *lc;

	/* the same order everywhere keeps them from deadlock */
	list_sort(sorted, compare_names);
	foreach(lc, sorted)
	{
		Consumer   *consumer = lock_consumer(lfirst(lc), nowait);
		List	   *positions;
		List	   *known = known_tables(consumer, &positions);
		ListCell   *lk;

		all |= known == NIL;
		foreach(lk, known)
		{
			CdcTracked *tracked = lfirst(lk);
			ListCell   *lt;

			foreach(lt, tables)
				if (((CdcTracked *) lfirst(lt))->table_id == tracked->table_id)
				break;
			if (lt == NULL)
			{
				LockRelationOid(tracked->relid, AccessShareLock);
				tables = lappend(tables, tracked);
			}
		}
	}
	if (cut_snapshot == NULL)
		take_cut(all ? cdc_tracked_list() : tables);
	foreach(lc, sorted)
		pin_sources(lock_consumer(lfirst(lc), nowait), InvalidOid);
}

/*
 * Is the target the one that got all that is before the consumer's positions?
 * Sets *repeated if that was done by this transaction.
 */
static bool
target_usable(Consumer *consumer, Oid target, bool *repeated, List **sources)
{
	CdcConsumerTarget row;
	ListCell   *lc;

	*repeated = false;
	*sources = NIL;
	if (!cdc_consumer_fetch_target(consumer->name, target, &row) ||
		row.fingerprint == 0 ||
		row.fingerprint != cdc_fingerprint(target, row.columns, false))
		return false;
	foreach(lc, row.sources)
		* sources = lappend_int(*sources, abs(lfirst_int(lc)));
	*repeated = row.run == consumer->last_run + 1;
	return *repeated || (row.run == consumer->last_run &&
						 sources_usable(consumer, *sources));
}

/*
 * Begin to apply what a consumer reads to a target.  To be called before the
 * snapshot is taken that the query runs with, so that what it sees of tables
 * beside the changelogs is not older than these.  With "full", everything is
 * read, whatever the positions.
 */
CdcConsumerRun *
cdc_consumer_begin(const char *name, Oid target, bool nowait, bool full)
{
	Consumer   *consumer = lock_consumer(name, nowait);
	CdcConsumerRun *run;
	CdcConsumerTarget row;
	MemoryContext oldcontext;
	ListCell   *lc;

	if (consumer->run != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("consumer \"%s\" is being applied already", name)));
	pin_sources(consumer, InvalidOid);
	foreach(lc, consumer->sources)
		((Source *) lfirst(lc))->read_at = 0;

	run = MemoryContextAllocZero(TopTransactionContext, sizeof(CdcConsumerRun));
	run->consumer = consumer;
	run->nest_level = GetCurrentTransactionNestLevel();
	run->target = target;

	/* nobody must empty it between this look at it and the writes */
	LockRelationOid(target, RowExclusiveLock);
	oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	run->full = !target_usable(consumer, target, &run->repeated,
							   &run->sources);
	if (full)
	{
		run->full = true;
		run->repeated = false;
	}
	run->applied_before = cdc_consumer_fetch_target(name, target, &row);
	MemoryContextSwitchTo(oldcontext);
	consumer->run = run;
	return run;
}

/*
 * Is everything read, and the target made equal to it?
 */
bool
cdc_consumer_full(const CdcConsumerRun *run)
{
	return run->full;
}

/*
 * Has the consumer read anything, or brought this target up to date, before
 * this run?  Its positions may be gone since, with a table that is no longer
 * tracked.
 */
bool
cdc_consumer_ran_before(const CdcConsumerRun *run)
{
	return run->consumer->had_positions || run->applied_before;
}

/*
 * To be asked after the query was read: true if the run has turned out to have
 * to be full.  It is from now on, and the query is to be read again.
 */
bool
cdc_consumer_again(CdcConsumerRun *run)
{
	ListCell   *lc;

	if (!run->again)
		return false;
	run->again = false;
	run->repeated = false;
	run->full = true;
	foreach(lc, run->consumer->sources)
		((Source *) lfirst(lc))->read_at = 0;
	return true;
}

/*
 * See consumer.h.
 */
bool
cdc_consumer_idle(const char *name, Oid target, bool nowait)
{
	Consumer   *consumer = lock_consumer(name, nowait);
	CdcConsumerTarget row;
	List	   *sources;
	bool		repeated;
	ListCell   *lc;

	pin_sources(consumer, InvalidOid);
	if (!target_usable(consumer, target, &repeated, &sources))
		return false;

	/* only the query itself tells whether it still reads these tables */
	if (cdc_consumer_fetch_target(name, target, &row))
		foreach(lc, row.sources)
			if (lfirst_int(lc) < 0)
			return false;
	if (repeated)
		return true;
	foreach(lc, consumer->sources)
	{
		Source	   *source = lfirst(lc);

		if (source->from < source->to &&
			list_member_int(sources, source->tracked.table_id))
			return false;
	}
	return true;
}

/*
 * See consumer.h.
 */
int64
cdc_consumer_meaning(const char *name, Oid target)
{
	CdcConsumerTarget row;

	return cdc_consumer_fetch_target(name, target, &row) ? row.meaning : 0;
}

/*
 * See consumer.h.
 */
bool
cdc_consumer_nothing_new(const CdcConsumerRun *run, int64 meaning)
{
	CdcConsumerTarget row;
	int			nread = 0;
	ListCell   *lc;

	if (run->full || run->again ||
		!cdc_consumer_fetch_target(run->consumer->name, run->target, &row) ||
		row.meaning != meaning)
		return false;
	foreach(lc, run->consumer->sources)
	{
		Source	   *source = lfirst(lc);

		if (source->read_at == 0)
			continue;
		if ((!run->repeated && source->from < source->to) ||
			!list_member_int(row.sources, source->tracked.table_id))
			return false;
		nread++;
	}
	return nread > 0 && nread == list_length(row.sources);
}

/*
 * See consumer.h.
 */
void
cdc_consumer_abandon(CdcConsumerRun *run)
{
	run->consumer->run = NULL;
}

/*
 * What a run has read, as text of a JSON object: the names of the tables with
 * the excluded start, null where all was read, and the included end.
 */
char *
cdc_consumer_ranges(const CdcConsumerRun *run)
{
	StringInfoData buf;
	ListCell   *lc;
	bool		first = true;

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	foreach(lc, run->consumer->sources)
	{
		Source	   *source = lfirst(lc);
		Oid			relid = source->tracked.relid;

		if (source->read_at == 0)
			continue;
		if (!first)
			appendStringInfoString(&buf, ", ");
		first = false;
		escape_json(&buf,
					quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
											   get_rel_name(relid)));
		if (run->full)
			appendStringInfo(&buf, ": [null, %lld]", (long long) source->to);
		else
			appendStringInfo(&buf, ": [%lld, %lld]",
							 (long long) (run->repeated ? source->to : source->from),
							 (long long) source->to);
	}
	appendStringInfoChar(&buf, '}');
	return buf.data;
}

/*
 * The newest snapshot that a run has read of any table.
 */
int64
cdc_consumer_newest(const CdcConsumerRun *run)
{
	int64		newest = 0;
	ListCell   *lc;

	foreach(lc, run->consumer->sources)
	{
		Source	   *source = lfirst(lc);

		if (source->read_at > 0)
			newest = Max(newest, source->to);
	}
	return newest;
}

/*
 * A run ends: move the position in one table, and add the table to the list of
 * those that the target is made of.
 */
static void
note_source(CdcConsumerRun *run, Source *source, List **sources)
{
	const char *name = run->consumer->name;
	int64		number = run->consumer->last_run + 1;
	int32		table_id = source->tracked.table_id;
	CdcPosition position;
	CdcSnapshotRow *rows;

	if (source->read_at == 0)
	{
		if (run->full)
		{
			/* the target has nothing of it any more */
			if (source->known &&
				!cdc_consumer_source_needed(name, run->target, number, table_id))
				cdc_consumer_delete_position(name, table_id);
		}
		else if (list_member_int(run->sources, table_id) &&
				 (source->from == source->to ||
				  !cdc_consumer_source_needed(name, run->target, number, table_id)))
			*sources = lappend_int(*sources, -table_id);
		return;
	}

	if (cdc_snapshot_fetch(table_id, source->to - 1, source->to, cut_snapshot,
						   &rows) != 1)
		elog(ERROR, "snapshot %lld does not exist", (long long) source->to);
	position.table_id = table_id;
	position.position = source->to;
	position.tx = rows[0].tx;
	position.time = rows[0].committed_at;
	cdc_consumer_set_position(name, &position);
	if (!source->known || source->from != source->to)
		cdc_consumer_source_moved(name, run->target, number, table_id);
	*sources = lappend_int(*sources, table_id);
}

/*
 * The target has got all that the run has read: move the positions, and note
 * what the query meant and which columns of the target it is about.
 */
void
cdc_consumer_finish(CdcConsumerRun *run, const CdcApplyOptions *options,
					const CdcApplyResult *result, int64 meaning,
					List *columns)
{
	Consumer   *consumer = run->consumer;
	List	   *sources = NIL;
	bool		any = false;
	ListCell   *lc;

	foreach(lc, consumer->sources)
		any |= ((Source *) lfirst(lc))->read_at > 0;
	if (!any)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no table was read through consumer \"%s\"",
						consumer->name),
				 errhint("Use a changelog function with consumer => %s in the query.",
						 quote_literal_cstr(consumer->name))));

	foreach(lc, consumer->sources)
		note_source(run, lfirst(lc), &sources);
	cdc_consumer_set_target(consumer->name, run->target,
							consumer->last_run + 1, sources, meaning,
							options->append, columns);
	if (!run->repeated)
		cdc_consumer_note_run(consumer->name, consumer->last_run + 1,
							  run->full ? "full" : "incremental", result);
	CommandCounterIncrement();
	if (cdc_fingerprint(run->target, columns, false) == 0)
		settle_later(consumer, run->target);
	consumer->run = NULL;
}

/*
 * Look at a target again when the transaction ends.
 */
static void
settle_later(Consumer *consumer, Oid target)
{
	Unsettled  *item = MemoryContextAlloc(TopTransactionContext,
										  sizeof(Unsettled));

	item->consumer = consumer->name;
	item->target = target;
	item->run = consumer->last_run + 1;
	item->filled = cdc_fingerprint_filled(target, InvalidCommandId);
	item->after = GetCurrentCommandId(false);
	item->nest_level = GetCurrentTransactionNestLevel();
	item->next = unsettled;
	unsettled = item;
}

/*
 * The transaction ends: targets that still have rows in all their partitions
 * from when the run has left them were not truncated since.
 */
static void
settle_targets(void)
{
	if (unsettled == NULL)
		return;
	PushActiveSnapshot(GetTransactionSnapshot());
	for (Unsettled *item = unsettled; item; item = item->next)
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(item->target)) &&
			cdc_fingerprint_filled(item->target, item->after) >= item->filled)
			cdc_consumer_settle_target(item->consumer, item->target, item->run);
	PopActiveSnapshot();
}

/*
 * Lock a consumer, to change its positions other than by a run.  Returns false
 * if there is none.
 */
bool
cdc_consumer_lock(const char *name)
{
	CdcConsumerRow row;

	cdc_consumer_require_extension();
	lock_name(name, false);
	if (!cdc_consumer_fetch(name, &row))
		return false;
	cdc_consumer_check_owner(name, &row);
	return true;
}

/*
 * Forget what the transaction has pinned for a consumer, whose catalog rows
 * were changed under its lock.
 */
void
cdc_consumer_forget(const char *name)
{
	for (Consumer **link = &consumers; *link; link = &(*link)->next)
	{
		if (strcmp((*link)->name, name) != 0)
			continue;
		if ((*link)->run != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("consumer \"%s\" is being applied", name)));
		*link = (*link)->next;
		return;
	}
}

/*
 * Would reading a table through a consumer be incremental, now or in this
 * transaction?
 */
bool
cdc_consumer_is_incremental(const char *name, Oid relid)
{
	CdcTracked	tracked;
	CdcConsumerRow row;
	bool		found = false;
	ListCell   *lc;

	cdc_tracked_require(relid, &tracked);
	cdc_consumer_require_extension();
	if (!cdc_consumer_fetch(name, &row))
		return false;
	cdc_consumer_check_owner(name, &row);
	for (Consumer *consumer = consumers; consumer; consumer = consumer->next)
		if (strcmp(consumer->name, name) == 0 && consumer->run != NULL)
			return !consumer->run->full && !consumer->run->again &&
				list_member_int(consumer->run->sources, tracked.table_id);
	if (!cdc_consumer_any_target(name, row.last_run))
		return false;

	foreach(lc, cdc_consumer_positions(name))
	{
		CdcPosition *position = lfirst(lc);
		CdcTracked	source;
		Snapshot	snapshot;
		int64		newest;
		bool		usable;

		if (!cdc_tracked_lookup_id(position->table_id, &source))
			continue;
		snapshot = cdc_horizon(&source, &newest);
		usable = is_usable(&source, position, Max(newest, position->position),
						   snapshot);
		UnregisterSnapshot(snapshot);
		if (!usable)
			return false;
		found |= source.table_id == tracked.table_id;
	}
	return found;
}

/*
 * Give the transaction's cut back.
 */
static void
forget_cut(void)
{
	if (cut_snapshot)
		UnregisterSnapshotFromOwner(cut_snapshot, TopTransactionResourceOwner);
	cut_snapshot = NULL;
	cut_tables = NULL;
	cut_ntables = 0;
}

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			settle_targets();
			forget_cut();
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			/* the resource owner has released the snapshot, or will */
			cut_snapshot = NULL;
			cut_tables = NULL;
			cut_ntables = 0;
			break;
		default:
			break;
	}
	/* deferred triggers have run by now, nobody reads any more */
	consumers = NULL;
	unsettled = NULL;
}

static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	Consumer  **link = &consumers;
	ListCell   *lc;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;

	for (Unsettled **item = &unsettled; *item;)
	{
		if ((*item)->nest_level < level)
			item = &(*item)->next;
		else if (event == SUBXACT_EVENT_COMMIT_SUB)
		{
			(*item)->nest_level = level - 1;
			item = &(*item)->next;
		}
		else
			*item = (*item)->next;
	}

	while (*link)
	{
		Consumer   *consumer = *link;
		bool		keep = consumer->nest_level < level;

		if (event == SUBXACT_EVENT_COMMIT_SUB)
		{
			consumer->nest_level = Min(consumer->nest_level, level - 1);
			consumer->pinned_at = Min(consumer->pinned_at, level - 1);
			if (consumer->run)
				consumer->run->nest_level = Min(consumer->run->nest_level,
												level - 1);
			foreach(lc, consumer->sources)
			{
				Source	   *source = lfirst(lc);

				source->read_at = Min(source->read_at, level - 1);
			}
			keep = true;
		}
		else
		{
			if (consumer->run && consumer->run->nest_level >= level)
				consumer->run = NULL;
			if (consumer->pinned_at >= level)
				consumer->pinned = false;
			foreach(lc, consumer->sources)
			{
				Source	   *source = lfirst(lc);

				/* what was read there went nowhere */
				if (source->read_at >= level)
					source->read_at = 0;
			}
		}
		if (keep)
			link = &consumer->next;
		else
			*link = consumer->next;
	}

	if (cut_snapshot && cut_level >= level)
	{
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			cut_level = level - 1;
		else
			forget_cut();
	}
}
