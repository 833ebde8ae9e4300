/*-------------------------------------------------------------------------
 *
 * consumer_catalog.c
 *		The catalog tables of consumers, and the SQL functions that show and
 *		change positions other than by a run.
 *
 * The rows of a consumer are changed under its lock (consumer.c), and read
 * with the newest snapshot there is, because what another transaction has
 * written that held the lock before may be newer than the one of the
 * statement.  A transaction in REPEATABLE READ or above must not act on what
 * its snapshot does not see; that is a serialization_failure.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/consumer_catalog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "consumer.h"
#include "consumer_catalog.h"
#include "fingerprint.h"
#include "horizon.h"

PG_FUNCTION_INFO_V1(cdc_is_incremental);
PG_FUNCTION_INFO_V1(cdc_position);
PG_FUNCTION_INFO_V1(cdc_rewind);
PG_FUNCTION_INFO_V1(cdc_reset);
PG_FUNCTION_INFO_V1(cdc_drop_consumer);

/* A scan of the rows of a consumer in one of the tables */
typedef struct ConsumerScan
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key[2];
	Snapshot	snapshot;
} ConsumerScan;

static void begin_scan(ConsumerScan *s, CdcCatalogRel table,
					   CdcCatalogRel index, LOCKMODE lockmode, const char *name);
static void end_scan(ConsumerScan *s);
static void write_row(ConsumerScan *s, HeapTuple old, Datum *values,
					  const bool *replaces);
static List *decode_list(Datum value);
static Datum encode_list(List *list);
static void require_consumer(const char *name);

/*
 * Raise an error where the extension is not there.
 */
void
cdc_consumer_require_extension(void)
{
	if (!OidIsValid(cdc_catalog_oid(CDC_CONSUMER)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" is not installed in this database",
						"cdc_changelog"),
				 errhint("Run CREATE EXTENSION cdc_changelog.")));
}

/*
 * Begin a scan of the rows of a consumer.  Its name is the first column of each
 * of the tables and indexes.
 */
static void
begin_scan(ConsumerScan *s, CdcCatalogRel table, CdcCatalogRel index,
		   LOCKMODE lockmode, const char *name)
{
	ScanKeyInit(&s->key[0], 1, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(name));
	s->snapshot = RegisterSnapshot(GetLatestSnapshot());
	s->rel = table_open(cdc_catalog_oid(table), lockmode);
	s->scan = systable_beginscan(s->rel, cdc_catalog_oid(index), true,
								 s->snapshot, 1, s->key);
}

static void
end_scan(ConsumerScan *s)
{
	systable_endscan(s->scan);
	table_close(s->rel, NoLock);
	UnregisterSnapshot(s->snapshot);
}

/*
 * Insert a row, or where there is an old one, replace the columns that
 * "replaces" tells.
 */
static void
write_row(ConsumerScan *s, HeapTuple old, Datum *values, const bool *replaces)
{
	TupleDesc	desc = RelationGetDescr(s->rel);
	bool	   *nulls = palloc0(sizeof(bool) * desc->natts);
	HeapTuple	tuple;

	if (HeapTupleIsValid(old))
	{
		tuple = heap_modify_tuple(old, desc, values, nulls,
								  unconstify(bool *, replaces));
		CatalogTupleUpdate(s->rel, &tuple->t_self, tuple);
	}
	else
	{
		for (int i = 0; i < desc->natts; i++)
			nulls[i] = !replaces[i];
		CatalogTupleInsert(s->rel, heap_form_tuple(desc, values, nulls));
	}
}

/*
 * Read the row of a consumer.  Returns false where there is none.
 */
bool
cdc_consumer_fetch(const char *name, CdcConsumerRow *row)
{
	ConsumerScan s;
	HeapTuple	tuple;

	begin_scan(&s, CDC_CONSUMER, CDC_CONSUMER_PKEY, AccessShareLock, name);
	tuple = systable_getnext(s.scan);
	if (HeapTupleIsValid(tuple))
	{
		TransactionId xmin = HeapTupleHeaderGetXmin(tuple->t_data);
		Datum		values[Natts_cdc_consumer];
		bool		nulls[Natts_cdc_consumer];

		if (IsolationUsesXactSnapshot() &&
			!TransactionIdIsCurrentTransactionId(xmin) &&
			XidInMVCCSnapshot(xmin, GetTransactionSnapshot()))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("could not serialize access to consumer \"%s\"", name),
					 errdetail("It was used by another transaction after this one took its snapshot."),
					 errhint("The transaction might succeed if retried.")));
		heap_deform_tuple(tuple, RelationGetDescr(s.rel), values, nulls);
		row->owner = DatumGetObjectId(values[Anum_cdc_consumer_owner - 1]);
		row->last_run = DatumGetInt64(values[Anum_cdc_consumer_last_run - 1]);
	}
	end_scan(&s);
	return HeapTupleIsValid(tuple);
}

/*
 * Make a consumer, owned by the current user.
 */
void
cdc_consumer_create(const char *name, CdcConsumerRow *row)
{
	ConsumerScan s;
	Datum		values[Natts_cdc_consumer] = {0};
	bool		replaces[Natts_cdc_consumer] = {0};

	row->owner = GetUserId();
	row->last_run = 0;
	values[Anum_cdc_consumer_consumer - 1] = CStringGetTextDatum(name);
	replaces[Anum_cdc_consumer_consumer - 1] = true;
	values[Anum_cdc_consumer_owner - 1] = ObjectIdGetDatum(row->owner);
	replaces[Anum_cdc_consumer_owner - 1] = true;
	values[Anum_cdc_consumer_last_run - 1] = Int64GetDatum(row->last_run);
	replaces[Anum_cdc_consumer_last_run - 1] = true;
	begin_scan(&s, CDC_CONSUMER, CDC_CONSUMER_PKEY, RowExclusiveLock, name);
	write_row(&s, NULL, values, replaces);
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * Raise an error if the current user is not a member of a consumer's owner.
 */
void
cdc_consumer_check_owner(const char *name, const CdcConsumerRow *row)
{
	if (!has_privs_of_role(GetUserId(), row->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for consumer \"%s\"", name),
				 errdetail("It belongs to another role.")));
}

/*
 * Record a run: its number, how it read, and its result.
 */
void
cdc_consumer_note_run(const char *name, int64 run, const char *mode,
					  const CdcApplyResult *result)
{
	ConsumerScan s;
	HeapTuple	tuple;
	Datum		values[Natts_cdc_consumer] = {0};
	bool		replaces[Natts_cdc_consumer];

	memset(replaces, true, sizeof(replaces));
	replaces[Anum_cdc_consumer_consumer - 1] = false;
	replaces[Anum_cdc_consumer_owner - 1] = false;
	values[Anum_cdc_consumer_last_run - 1] = Int64GetDatum(run);
	values[Anum_cdc_consumer_last_run_at - 1] =
		TimestampTzGetDatum(GetCurrentTimestamp());
	values[Anum_cdc_consumer_last_mode - 1] = CStringGetTextDatum(mode);
	values[Anum_cdc_consumer_inserted - 1] = Int64GetDatum(result->inserted);
	values[Anum_cdc_consumer_updated - 1] = Int64GetDatum(result->updated);
	values[Anum_cdc_consumer_deleted - 1] = Int64GetDatum(result->deleted);
	values[Anum_cdc_consumer_unchanged - 1] = Int64GetDatum(result->unchanged);
	values[Anum_cdc_consumer_missing - 1] = Int64GetDatum(result->missing);
	values[Anum_cdc_consumer_stale - 1] = Int64GetDatum(result->stale);

	begin_scan(&s, CDC_CONSUMER, CDC_CONSUMER_PKEY, RowExclusiveLock, name);
	tuple = systable_getnext(s.scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "consumer \"%s\" does not exist", name);
	write_row(&s, tuple, values, replaces);
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * The positions of a consumer, as a list of CdcPosition *.
 */
List *
cdc_consumer_positions(const char *name)
{
	List	   *result = NIL;
	ConsumerScan s;
	HeapTuple	tuple;

	begin_scan(&s, CDC_CONSUMER_POSITION, CDC_CONSUMER_POSITION_PKEY,
			   AccessShareLock, name);
	while (HeapTupleIsValid(tuple = systable_getnext(s.scan)))
	{
		CdcPosition *position = palloc(sizeof(CdcPosition));
		Datum		values[Natts_cdc_consumer_position];
		bool		nulls[Natts_cdc_consumer_position];

		heap_deform_tuple(tuple, RelationGetDescr(s.rel), values, nulls);
		position->table_id =
			DatumGetInt32(values[Anum_cdc_consumer_position_table_id - 1]);
		position->position =
			DatumGetInt64(values[Anum_cdc_consumer_position_position - 1]);
		position->tx = DatumGetInt64(values[Anum_cdc_consumer_position_tx - 1]);
		position->time =
			DatumGetTimestampTz(values[Anum_cdc_consumer_position_time - 1]);
		result = lappend(result, position);
	}
	end_scan(&s);
	return result;
}

/*
 * Find a row of a consumer of which a column has a given value.
 */
static HeapTuple
find_row(ConsumerScan *s, AttrNumber attno, Oid type_equal, Datum value)
{
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(s->scan)))
	{
		bool		isnull;
		Datum		have = heap_getattr(tuple, attno, RelationGetDescr(s->rel),
										&isnull);

		if (DatumGetBool(OidFunctionCall2(type_equal, have, value)))
			break;
	}
	return tuple;
}

/*
 * Set the position of a consumer in a table.
 */
void
cdc_consumer_set_position(const char *name, const CdcPosition *position)
{
	ConsumerScan s;
	HeapTuple	tuple;
	Datum		values[Natts_cdc_consumer_position];
	bool		replaces[Natts_cdc_consumer_position];

	memset(replaces, true, sizeof(replaces));
	values[Anum_cdc_consumer_position_consumer - 1] = CStringGetTextDatum(name);
	values[Anum_cdc_consumer_position_table_id - 1] =
		Int32GetDatum(position->table_id);
	values[Anum_cdc_consumer_position_position - 1] =
		Int64GetDatum(position->position);
	values[Anum_cdc_consumer_position_tx - 1] = Int64GetDatum(position->tx);
	values[Anum_cdc_consumer_position_time - 1] =
		TimestampTzGetDatum(position->time);

	begin_scan(&s, CDC_CONSUMER_POSITION, CDC_CONSUMER_POSITION_PKEY,
			   RowExclusiveLock, name);
	tuple = find_row(&s, Anum_cdc_consumer_position_table_id, F_INT4EQ,
					 Int32GetDatum(position->table_id));
	write_row(&s, tuple, values, replaces);
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * Delete the position of a consumer in a table, if there is one.
 */
void
cdc_consumer_delete_position(const char *name, int32 table_id)
{
	ConsumerScan s;
	HeapTuple	tuple;

	begin_scan(&s, CDC_CONSUMER_POSITION, CDC_CONSUMER_POSITION_PKEY,
			   RowExclusiveLock, name);
	tuple = find_row(&s, Anum_cdc_consumer_position_table_id, F_INT4EQ,
					 Int32GetDatum(table_id));
	if (HeapTupleIsValid(tuple))
		CatalogTupleDelete(s.rel, &tuple->t_self);
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * Read what is noted of a target of a consumer.  Returns false if it is none.
 */
bool
cdc_consumer_fetch_target(const char *name, Oid target, CdcConsumerTarget *row)
{
	ConsumerScan s;
	HeapTuple	tuple;

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   AccessShareLock, name);
	tuple = find_row(&s, Anum_cdc_consumer_target_target, F_OIDEQ,
					 ObjectIdGetDatum(target));
	if (HeapTupleIsValid(tuple))
	{
		Datum		values[Natts_cdc_consumer_target];
		bool		nulls[Natts_cdc_consumer_target];

		heap_deform_tuple(tuple, RelationGetDescr(s.rel), values, nulls);
		row->fingerprint =
			DatumGetInt64(values[Anum_cdc_consumer_target_fingerprint - 1]);
		row->run = DatumGetInt64(values[Anum_cdc_consumer_target_run - 1]);
		row->sources =
			decode_list(values[Anum_cdc_consumer_target_sources - 1]);
		row->meaning =
			DatumGetInt64(values[Anum_cdc_consumer_target_meaning - 1]);
		row->columns =
			decode_list(values[Anum_cdc_consumer_target_columns - 1]);
	}
	end_scan(&s);
	return HeapTupleIsValid(tuple);
}

/*
 * Between the columns "sources" and "columns" of cdc.consumer_target and lists of
 * int.
 */
static List *
decode_list(Datum value)
{
	List	   *result = NIL;
	Datum	   *elems;
	int			nelems;

	deconstruct_array(DatumGetArrayTypeP(value), INT4OID, sizeof(int32), true,
					  TYPALIGN_INT, &elems, NULL, &nelems);
	for (int i = 0; i < nelems; i++)
		result = lappend_int(result, DatumGetInt32(elems[i]));
	return result;
}

static Datum
encode_list(List *list)
{
	Datum	   *elems = palloc(sizeof(Datum) * (list_length(list) + 1));
	ListCell   *lc;

	foreach(lc, list)
		elems[foreach_current_index(lc)] = Int32GetDatum(lfirst_int(lc));
	return PointerGetDatum(construct_array(elems, list_length(list), INT4OID,
										   sizeof(int32), true, TYPALIGN_INT));
}

/*
 * Has another target than the given one read a table in a run?
 */
bool
cdc_consumer_source_needed(const char *name, Oid target, int64 run,
						   int32 table_id)
{
	ConsumerScan s;
	HeapTuple	tuple;
	bool		result = false;

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   AccessShareLock, name);
	while (!result && HeapTupleIsValid(tuple = systable_getnext(s.scan)))
	{
		Datum		values[Natts_cdc_consumer_target];
		bool		nulls[Natts_cdc_consumer_target];
		List	   *sources;

		heap_deform_tuple(tuple, RelationGetDescr(s.rel), values, nulls);
		sources = decode_list(values[Anum_cdc_consumer_target_sources - 1]);
		result =
			DatumGetObjectId(values[Anum_cdc_consumer_target_target - 1]) != target &&
			DatumGetInt64(values[Anum_cdc_consumer_target_run - 1]) == run &&
			(list_member_int(sources, table_id) ||
			 list_member_int(sources, -table_id));
	}
	end_scan(&s);
	return result;
}

/*
 * The position in a table has moved for a target.  Others that took part in the
 * run without reading the table have missed something of it.
 */
void
cdc_consumer_source_moved(const char *name, Oid target, int64 run,
						  int32 table_id)
{
	ConsumerScan s;
	HeapTuple	tuple;

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   RowExclusiveLock, name);
	while (HeapTupleIsValid(tuple = systable_getnext(s.scan)))
	{
		Datum		values[Natts_cdc_consumer_target];
		bool		nulls[Natts_cdc_consumer_target];
		bool		replaces[Natts_cdc_consumer_target] = {0};
		List	   *sources;

		heap_deform_tuple(tuple, RelationGetDescr(s.rel), values, nulls);
		sources = decode_list(values[Anum_cdc_consumer_target_sources - 1]);
		if (DatumGetObjectId(values[Anum_cdc_consumer_target_target - 1]) == target ||
			DatumGetInt64(values[Anum_cdc_consumer_target_run - 1]) != run ||
			!list_member_int(sources, -table_id))
			continue;
		values[Anum_cdc_consumer_target_sources - 1] =
			encode_list(list_delete_int(sources, -table_id));
		replaces[Anum_cdc_consumer_target_sources - 1] = true;
		write_row(&s, tuple, values, replaces);
	}
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * A table has another name or schema: a query that reads it by name may read
 * another one now.  Targets that are made of it look as if their last run had
 * not read it, until the next one does.
 *
 * The caller has locked the table exclusively, so nobody reads it through a
 * consumer meanwhile; or has renamed its schema, and a run at the same time may
 * make one of the two fail.
 */
void
cdc_consumer_source_renamed(int32 table_id)
{
	Relation	rel;
	SysScanDesc scan;
	Snapshot	snapshot;
	HeapTuple	tuple;

	if (!OidIsValid(cdc_catalog_oid(CDC_CONSUMER_TARGET)))
		return;
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	rel = table_open(cdc_catalog_oid(CDC_CONSUMER_TARGET), RowExclusiveLock);
	scan = systable_beginscan(rel, InvalidOid, false, snapshot, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[Natts_cdc_consumer_target];
		bool		nulls[Natts_cdc_consumer_target];
		bool		replaces[Natts_cdc_consumer_target] = {0};
		List	   *sources;

		heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
		sources = decode_list(values[Anum_cdc_consumer_target_sources - 1]);
		if (!list_member_int(sources, table_id))
			continue;
		sources = lappend_int(list_delete_int(sources, table_id), -table_id);
		values[Anum_cdc_consumer_target_sources - 1] = encode_list(sources);
		replaces[Anum_cdc_consumer_target_sources - 1] = true;
		tuple = heap_modify_tuple(tuple, RelationGetDescr(rel), values, nulls,
								  replaces);
		CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	}
	systable_endscan(scan);
	table_close(rel, NoLock);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
}

/*
 * Is there a target that took part in a run of a consumer, and is still what it
 * was then?
 */
bool
cdc_consumer_any_target(const char *name, int64 run)
{
	ConsumerScan s;
	HeapTuple	tuple;
	bool		result = false;

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   AccessShareLock, name);
	while (!result && HeapTupleIsValid(tuple = systable_getnext(s.scan)))
	{
		Datum		values[Natts_cdc_consumer_target];
		bool		nulls[Natts_cdc_consumer_target];
		int64		fingerprint;

		heap_deform_tuple(tuple, RelationGetDescr(s.rel), values, nulls);
		fingerprint =
			DatumGetInt64(values[Anum_cdc_consumer_target_fingerprint - 1]);
		result = DatumGetInt64(values[Anum_cdc_consumer_target_run - 1]) == run &&
			fingerprint != 0 &&
			fingerprint == cdc_fingerprint(DatumGetObjectId(values[Anum_cdc_consumer_target_target - 1]),
										   decode_list(values[Anum_cdc_consumer_target_columns - 1]),
										   false);
	}
	end_scan(&s);
	return result;
}

/*
 * Is there a target that a consumer has appended to?
 */
bool
cdc_consumer_appends(const char *name)
{
	ConsumerScan s;
	HeapTuple	tuple;

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   AccessShareLock, name);
	tuple = find_row(&s, Anum_cdc_consumer_target_append, F_BOOLEQ,
					 BoolGetDatum(true));
	end_scan(&s);
	return HeapTupleIsValid(tuple);
}

/*
 * Note that a target took part in a run of a consumer.
 */
void
cdc_consumer_set_target(const char *name, Oid target, int64 run,
						List *sources, int64 meaning, bool append,
						List *columns)
{
	ConsumerScan s;
	HeapTuple	tuple;
	Datum		values[Natts_cdc_consumer_target];
	bool		replaces[Natts_cdc_consumer_target];

	memset(replaces, true, sizeof(replaces));
	values[Anum_cdc_consumer_target_consumer - 1] = CStringGetTextDatum(name);
	values[Anum_cdc_consumer_target_target - 1] = ObjectIdGetDatum(target);
	values[Anum_cdc_consumer_target_fingerprint - 1] =
		Int64GetDatum(cdc_fingerprint(target, columns, false));
	values[Anum_cdc_consumer_target_run - 1] = Int64GetDatum(run);
	values[Anum_cdc_consumer_target_sources - 1] = encode_list(sources);
	values[Anum_cdc_consumer_target_meaning - 1] = Int64GetDatum(meaning);
	values[Anum_cdc_consumer_target_append - 1] = BoolGetDatum(append);
	values[Anum_cdc_consumer_target_columns - 1] = encode_list(columns);

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   RowExclusiveLock, name);
	tuple = find_row(&s, Anum_cdc_consumer_target_target, F_OIDEQ,
					 ObjectIdGetDatum(target));
	write_row(&s, tuple, values, replaces);
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * The transaction ends: give a target that took part in a run, and that the
 * transaction itself has made or truncated before, its fingerprint.
 */
void
cdc_consumer_settle_target(const char *name, Oid target, int64 run)
{
	ConsumerScan s;
	HeapTuple	tuple;
	Datum		values[Natts_cdc_consumer_target] = {0};
	bool		replaces[Natts_cdc_consumer_target] = {0};

	begin_scan(&s, CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY,
			   RowExclusiveLock, name);
	tuple = find_row(&s, Anum_cdc_consumer_target_target, F_OIDEQ,
					 ObjectIdGetDatum(target));
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		columns = heap_getattr(tuple,
										   Anum_cdc_consumer_target_columns,
										   RelationGetDescr(s.rel), &isnull);

		values[Anum_cdc_consumer_target_fingerprint - 1] =
			Int64GetDatum(cdc_fingerprint(target, decode_list(columns), true));
		replaces[Anum_cdc_consumer_target_fingerprint - 1] = true;
		if (DatumGetInt64(heap_getattr(tuple, Anum_cdc_consumer_target_run,
									   RelationGetDescr(s.rel), &isnull)) == run)
			write_row(&s, tuple, values, replaces);
	}
	end_scan(&s);
	CommandCounterIncrement();
}

/*
 * Delete the positions and targets of a consumer, and the consumer "itself".
 * Returns whether there was anything to delete.
 */
bool
cdc_consumer_delete_rows(const char *name, bool itself)
{
	static const CdcCatalogRel tables[][2] = {
		{CDC_CONSUMER_POSITION, CDC_CONSUMER_POSITION_PKEY},
		{CDC_CONSUMER_TARGET, CDC_CONSUMER_TARGET_PKEY},
		{CDC_CONSUMER, CDC_CONSUMER_PKEY}
	};
	bool		result = false;

	for (int i = 0; i < lengthof(tables) - (itself ? 0 : 1); i++)
	{
		ConsumerScan s;
		HeapTuple	tuple;

		begin_scan(&s, tables[i][0], tables[i][1], RowExclusiveLock, name);
		while (HeapTupleIsValid(tuple = systable_getnext(s.scan)))
		{
			CatalogTupleDelete(s.rel, &tuple->t_self);
			result = true;
		}
		end_scan(&s);
	}
	CommandCounterIncrement();
	return result;
}

/*
 * The smallest position that any consumer has in a table, -1 if none has one.
 */
int64
cdc_consumer_oldest_position(int32 table_id)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	Snapshot	snapshot;
	HeapTuple	tuple;
	int64		result = -1;

	if (!OidIsValid(cdc_catalog_oid(CDC_CONSUMER_POSITION)))
		return -1;
	ScanKeyInit(&key, Anum_cdc_consumer_position_table_id,
				BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(table_id));
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	rel = table_open(cdc_catalog_oid(CDC_CONSUMER_POSITION), AccessShareLock);
	scan = systable_beginscan(rel, InvalidOid, false, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;
		int64		position =
			DatumGetInt64(heap_getattr(tuple, Anum_cdc_consumer_position_position,
									   RelationGetDescr(rel), &isnull));

		if (result < 0 || position < result)
			result = position;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	UnregisterSnapshot(snapshot);
	return result;
}

/*
 * Delete the rows of all consumers whose column "attno" has a given value.
 */
static void
delete_where(CdcCatalogRel table, AttrNumber attno, Oid type_equal, Datum value)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	Snapshot	snapshot;
	HeapTuple	tuple;

	if (!OidIsValid(cdc_catalog_oid(table)))
		return;
	ScanKeyInit(&key, attno, BTEqualStrategyNumber, type_equal, value);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	rel = table_open(cdc_catalog_oid(table), RowExclusiveLock);
	scan = systable_beginscan(rel, InvalidOid, false, snapshot, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		CatalogTupleDelete(rel, &tuple->t_self);
	systable_endscan(scan);
	table_close(rel, NoLock);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
}

/*
 * A table is not tracked any more: nobody has a position in it.
 */
void
cdc_consumer_table_gone(int32 table_id)
{
	delete_where(CDC_CONSUMER_POSITION, Anum_cdc_consumer_position_table_id,
				 F_INT4EQ, Int32GetDatum(table_id));
}

/*
 * A table was dropped: it is no target any more.
 */
void
cdc_consumer_target_gone(Oid target)
{
	delete_where(CDC_CONSUMER_TARGET, Anum_cdc_consumer_target_target, F_OIDEQ,
				 ObjectIdGetDatum(target));
}

/*
 * Raise undefined_object unless there is a consumer of that name, which the
 * current user may use.  It is locked.
 */
static void
require_consumer(const char *name)
{
	if (!cdc_consumer_lock(name))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("consumer \"%s\" does not exist", name)));
}

/*
 * cdc.is_incremental(consumer text, relation regclass) returns boolean
 */
Datum
cdc_is_incremental(PG_FUNCTION_ARGS)
{
	cdc_check_readable(PG_GETARG_OID(1));
	PG_RETURN_BOOL(cdc_consumer_is_incremental(text_to_cstring(PG_GETARG_TEXT_PP(0)),
											   PG_GETARG_OID(1)));
}

/*
 * cdc.position(consumer text) returns table (relation regclass, snapshot bigint)
 */
Datum
cdc_position(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	CdcConsumerRow row;
	ListCell   *lc;

	cdc_consumer_require_extension();
	InitMaterializedSRF(fcinfo, 0);
	if (!cdc_consumer_fetch(name, &row))
		return (Datum) 0;
	cdc_consumer_check_owner(name, &row);
	foreach(lc, cdc_consumer_positions(name))
	{
		CdcPosition *position = lfirst(lc);
		CdcTracked	tracked;
		Datum		values[2];
		bool		nulls[2] = {false, false};

		if (!cdc_tracked_lookup_id(position->table_id, &tracked))
			continue;
		values[0] = ObjectIdGetDatum(tracked.relid);
		values[1] = Int64GetDatum(position->position);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * cdc.rewind(consumer text, relation regclass, snapshot bigint) returns bigint
 *
 * The position that was.
 */
Datum
cdc_rewind(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Oid			relid = PG_GETARG_OID(1);
	int64		to = PG_GETARG_INT64(2);
	CdcTracked	tracked;
	CdcPosition *position = NULL;
	CdcSnapshotRow *rows;
	Snapshot	snapshot;
	int64		oldest;
	int64		result;
	ListCell   *lc;

	cdc_tracked_require(relid, &tracked);
	require_consumer(name);
	foreach(lc, cdc_consumer_positions(name))
		if (((CdcPosition *) lfirst(lc))->table_id == tracked.table_id)
		position = lfirst(lc);
	if (position == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("consumer \"%s\" has no position in table \"%s\"",
						name, get_rel_name(relid)),
				 errhint("It reads the table completely the next time.")));
	result = position->position;
	if (to > result)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot move consumer \"%s\" forward", name),
				 errdetail("Its position in table \"%s\" is %lld.",
						   get_rel_name(relid), (long long) result),
				 errhint("Changes in between would be lost to its target.")));

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	oldest = cdc_tracked_oldest(&tracked, snapshot);
	if (to < oldest ||
		cdc_snapshot_fetch(tracked.table_id, to - 1, to, snapshot, &rows) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("snapshot %lld of table \"%s\" does not exist",
						(long long) to, get_rel_name(relid)),
				 errdetail("The oldest readable snapshot is %lld.",
						   (long long) oldest)));
	UnregisterSnapshot(snapshot);

	position->position = to;
	position->tx = rows[0].tx;
	position->time = rows[0].committed_at;
	cdc_consumer_set_position(name, position);
	cdc_consumer_forget(name);
	PG_RETURN_INT64(result);
}

/*
 * cdc.reset(consumer text) returns boolean
 *
 * Had it positions?
 */
Datum
cdc_reset(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool		result;

	require_consumer(name);
	result = cdc_consumer_delete_rows(name, false);
	cdc_consumer_forget(name);
	PG_RETURN_BOOL(result);
}

/*
 * cdc.drop_consumer(consumer text) returns boolean
 *
 * Was there such a consumer?
 */
Datum
cdc_drop_consumer(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (!cdc_consumer_lock(name))
		PG_RETURN_BOOL(false);
	(void) cdc_consumer_delete_rows(name, true);
	cdc_consumer_forget(name);
	PG_RETURN_BOOL(true);
}
