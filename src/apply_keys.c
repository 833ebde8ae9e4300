/*-------------------------------------------------------------------------
 *
 * apply_keys.c
 *		Applying a changelog: one action per key.
 *
 * A hash table over the key columns finds keys with several actions while the
 * changelog is being read.  Where the options say how to settle which one
 * counts, the others become losers and are taken out of the stored rows at
 * the end.  Two different actions with the same sequence are an error even if
 * they are not the newest; to find them, losers are sorted.
 *
 * The table holds a few bytes and the key of each row; where actions may have
 * to be settled, the row.  When it grows beyond its limit the hash space is
 * halved, as often as need be: only rows of the first part stay in the table,
 * and the others are looked at in further passes over the stored rows.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_keys.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "apply_internal.h"
#include "cdc_changelog.h"

/* A key in the hash table */
typedef struct KeyEntry
{
	Datum		key;			/* value of a single by-value key column, or
								 * pointer to a MinimalTuple */
	uint32		hash;
	uint32		next:31;		/* next entry of the bucket plus 1, or 0 */
	uint32		isnull:1;		/* a single by-value key column is NULL */
} KeyEntry;

/* The action that counts for a key so far, where it has to be settled */
typedef struct KeyAction
{
	ApplyGroup *group;
	ApplyKind	kind;
	bool		tied;			/* another one is as new, and different */
} KeyAction;

struct ApplyKeyTable
{
	ApplyState *state;
	MemoryContext context;		/* of keys; reset when they move */
	TupleDesc	key_desc;		/* of key tuples; the stored rows' if actions
								 * must be settled */
	bool		by_value;		/* keys are values, not tuples */
	bool		settle;			/* several actions per key are no error */
	KeyEntry   *entries;
	KeyAction  *actions;		/* parallel to entries if "settle" */
	uint32		nentries;
	uint32		maxentries;
	uint32	   *buckets;		/* first entry plus 1, or 0 */
	uint32		nbuckets;		/* a power of 2 */
	Size		limit;			/* split when larger, 0: never */
	int			part_bits;		/* the table holds rows whose hash begins */
	uint32		part;			/* with these bits */
	int64		since_check;	/* entries made since size was looked at */
	Tuplesortstate *older;		/* losers, if there is a sequence; or NULL */
	TupleDesc	older_desc;
	TupleTableSlot *older_slot;
	Datum	   *old_values;		/* of an entry's row */
	bool	   *old_isnull;
};

/* The columns of sorted losers; the key follows */
enum
{
	OLDER_HASH = 1,				/* of the key */
	OLDER_SEQUENCE,
	OLDER_ORDINAL,
	OLDER_GIVEN,
	OLDER_CONTENT,				/* hash of kind and content */
	OLDER_KEY
};

static void add_key(ApplyKeyTable *table, ApplyGroup *group, ApplyKind kind,
					uint32 hash, const Datum *values,
					const bool *isnull);
static void clear_table(ApplyKeyTable *table);
static uint32 new_entry(ApplyKeyTable *table);
static void link_entry(ApplyKeyTable *table, uint32 entry);
static void split_table(ApplyKeyTable *table);
static Datum copy_key(ApplyKeyTable *table, const Datum *values,
					  const bool *isnull);
static uint32 hash_key(ApplyState *state, const Datum *values,
					   const bool *isnull);
static uint32 hash_datum(const ApplyKey *key, Datum value);
static bool same_key(ApplyKeyTable *table, const KeyEntry *entry,
					 const Datum *values, const bool *isnull);
static Datum entry_attribute(ApplyKeyTable *table, Datum key, int attnum,
							 bool *isnull);
static void settle_action(ApplyKeyTable *table, uint32 entry, ApplyGroup *group,
						  ApplyKind kind, const Datum *values,
						  const bool *isnull);
static void note_older(ApplyKeyTable *table, ApplyKind kind, uint32 hash,
					   const Datum *values, const bool *isnull);
static void begin_older(ApplyKeyTable *table);
static void check_older(ApplyKeyTable *table);
static bool same_older_key(ApplyState *state, TupleTableSlot *left,
						   TupleTableSlot *right);
static void check_ties(ApplyKeyTable *table);
cdc_noreturn static void tie_error(ApplyState *state, const Datum *values,
								   const bool *isnull) pg_attribute_noreturn();
static int	compare_actions(ApplyKeyTable *table, Datum old, const Datum *values);
static bool same_content(ApplyKeyTable *table, Datum old, const Datum *values,
						 const bool *isnull);
static void lose(ApplyState *state, ApplyGroup *group, ApplyKind kind,
				 int64 number);
static void look_at_rows(ApplyKeyTable *table, ApplyGroup *group,
						 ApplyKind kind, TupleTableSlot *slot);
static void take_out_losers(ApplyState *state);

/*
 * An empty table.  The state must know how rows are stored.
 */
ApplyKeyTable *
apply_keys_create(ApplyState *state)
{
	ApplyKeyTable *table = palloc0(sizeof(ApplyKeyTable));

	table->state = state;
	table->context = AllocSetContextCreate(state->context, "cdc apply keys",
										   ALLOCSET_DEFAULT_SIZES);
	table->settle = state->store_ordinal > 0;
	table->limit = Max(get_hash_memory_limit(),
					   (Size) maintenance_work_mem * 1024);
	if (table->settle)
		table->key_desc = state->store_desc;
	else if (state->nkeys == 1 && state->keys[0].typbyval)
		table->by_value = true;
	else
	{
		table->key_desc = CreateTemplateTupleDesc(state->nkeys);
		for (int i = 0; i < state->nkeys; i++)
			TupleDescInitEntry(table->key_desc, i + 1, NULL,
							   state->keys[i].column->type, -1, 0);
	}
	if (state->sequence != NULL)
	{
		table->old_values = palloc(sizeof(Datum) * state->store_desc->natts);
		table->old_isnull = palloc(sizeof(bool) * state->store_desc->natts);
	}
	clear_table(table);
	return table;
}

/*
 * Empties the table.
 */
static void
clear_table(ApplyKeyTable *table)
{
	MemoryContextReset(table->context);
	table->nentries = 0;
	table->maxentries = 1024;
	table->nbuckets = 1024;
	table->entries = MemoryContextAlloc(table->context,
										sizeof(KeyEntry) * table->maxentries);
	if (table->settle)
		table->actions = MemoryContextAlloc(table->context,
											sizeof(KeyAction) * table->maxentries);
	table->buckets = MemoryContextAllocZero(table->context,
											sizeof(uint32) * table->nbuckets);
}

/*
 * Notes a row that is about to be stored or has been stored.  A second action
 * of a key raises an error or is settled.
 */
void
apply_keys_note(ApplyKeyTable *table, ApplyGroup *group, ApplyKind kind,
				const Datum *values, const bool *isnull)
{
	uint32		hash;

	apply_check_order(table->state, values, isnull);
	hash = hash_key(table->state, values, isnull);
	if (table->part_bits > 0 &&
		hash >> (32 - table->part_bits) != table->part)
		return;

	for (uint32 entry = table->buckets[hash & (table->nbuckets - 1)];
		 entry != 0; entry = table->entries[entry - 1].next)
	{
		if (table->entries[entry - 1].hash != hash ||
			!same_key(table, &table->entries[entry - 1], values, isnull))
			continue;
		if (!table->settle)
			apply_duplicate_error(table->state, values, isnull);
		settle_action(table, entry - 1, group, kind, values, isnull);
		return;
	}
	add_key(table, group, kind, hash, values, isnull);
}

/*
 * Raises an error if what tells the order of actions is NULL in a row.
 */
void
apply_check_order(ApplyState *state, const Datum *values, const bool *isnull)
{
	if (state->sequence != NULL && isnull[state->sequence->store - 1])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("null value in sequence column \"%s\" of the changelog",
						state->sequence->name),
				 errdetail("Key %s.",
						   apply_stored_key_detail(state, values, isnull))));
	if (state->store_ordinal > 0 && isnull[state->store_ordinal - 1])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("null value in changelog column \"%s\"",
						CDC_COL_ORDINAL),
				 errdetail("Key %s.",
						   apply_stored_key_detail(state, values, isnull))));
}

/*
 * Adds an entry for a key that is not in the table yet.
 */
static void
add_key(ApplyKeyTable *table, ApplyGroup *group, ApplyKind kind, uint32 hash,
		const Datum *values, const bool *isnull)
{
	uint32		entry = new_entry(table);

	table->entries[entry].hash = hash;
	table->entries[entry].key = copy_key(table, values, isnull);
	table->entries[entry].isnull = table->by_value &&
		isnull[table->state->keys[0].column->store - 1];
	if (table->settle)
	{
		table->actions[entry].group = group;
		table->actions[entry].kind = kind;
		table->actions[entry].tied = false;
	}
	link_entry(table, entry);

	if (++table->since_check >= 1024)
	{
		table->since_check = 0;
		if (table->limit > 0 &&
			MemoryContextMemAllocated(table->context, true) > table->limit)
			split_table(table);
	}
}

/*
 * Makes room for one more entry and returns its number.
 */
static uint32
new_entry(ApplyKeyTable *table)
{
	if (table->nentries == table->maxentries)
	{
		if (table->maxentries > PG_UINT32_MAX / 4)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("too many keys in the changelog")));
		table->maxentries *= 2;
		table->entries = repalloc_huge(table->entries,
									   sizeof(KeyEntry) * table->maxentries);
		if (table->settle)
			table->actions = repalloc_huge(table->actions,
										   sizeof(KeyAction) * table->maxentries);

		/* as many buckets as entries; all find new places */
		table->nbuckets = table->maxentries;
		pfree(table->buckets);
		table->buckets =
			MemoryContextAllocExtended(table->context,
									   sizeof(uint32) * table->nbuckets,
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		for (uint32 i = 0; i < table->nentries; i++)
			link_entry(table, i);
	}
	return table->nentries++;
}

static void
link_entry(ApplyKeyTable *table, uint32 entry)
{
	uint32	   *bucket = &table->buckets[table->entries[entry].hash &
										 (table->nbuckets - 1)];

	table->entries[entry].next = *bucket;
	*bucket = entry + 1;
}

/*
 * Halves the part of the hash space that the table holds.  The keys that stay
 * move to fresh memory, so that what the others took is given back.
 */
static void
split_table(ApplyKeyTable *table)
{
	ApplyKeyTable old = *table;

	table->context = AllocSetContextCreate(table->state->context,
										   "cdc apply keys",
										   ALLOCSET_DEFAULT_SIZES);
	table->part_bits++;
	table->part <<= 1;
	clear_table(table);
	for (uint32 i = 0; i < old.nentries; i++)
	{
		uint32		entry;

		if (old.entries[i].hash >> (32 - table->part_bits) != table->part)
			continue;
		entry = new_entry(table);
		table->entries[entry] = old.entries[i];
		if (!table->by_value)
		{
			MemoryContext oldcontext = MemoryContextSwitchTo(table->context);
			MinimalTuple tuple = (MinimalTuple) DatumGetPointer(old.entries[i].key);

			table->entries[entry].key =
				PointerGetDatum(cdc_copy_minimal_tuple(tuple));
			MemoryContextSwitchTo(oldcontext);
		}
		if (table->settle)
			table->actions[entry] = old.actions[i];
		link_entry(table, entry);
	}

	/* equal hashes everywhere, or tiny parts: more splitting would not help */
	if (table->nentries == old.nentries || table->part_bits == 16)
		table->limit = 0;
	MemoryContextDelete(old.context);
}

/*
 * Looks at the stored rows of the parts that the table has not held yet, and
 * takes out the losers.  The table is gone afterwards.
 */
void
apply_keys_finish(ApplyKeyTable *table)
{
	ApplyState *state = table->state;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(state->store_desc,
													&TTSOpsMinimalTuple);

	check_ties(table);

	/* when a part is split, its second half is next */
	while (table->part + 1 < ((uint32) 1) << table->part_bits)
	{
		ListCell   *lc;

		table->part++;
		clear_table(table);
		foreach(lc, state->groups)
			for (int kind = 0; kind < APPLY_NUM_KINDS; kind++)
			look_at_rows(table, lfirst(lc), kind, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	check_older(table);
	MemoryContextDelete(table->context);

	if (state->losers.count > 0)
		take_out_losers(state);
}

/*
 * Notes all rows of a store.
 */
static void
look_at_rows(ApplyKeyTable *table, ApplyGroup *group, ApplyKind kind,
			 TupleTableSlot *slot)
{
	Tuplestorestate *rows = group->rows[kind];
	MemoryContext row_context;
	MemoryContext oldcontext;

	if (rows == NULL)
		return;
	row_context = AllocSetContextCreate(CurrentMemoryContext, "cdc apply row",
										ALLOCSET_DEFAULT_SIZES);
	tuplestore_rescan(rows);
	while (tuplestore_gettupleslot(rows, true, false, slot))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		oldcontext = MemoryContextSwitchTo(row_context);
		apply_keys_note(table, group, kind, slot->tts_values, slot->tts_isnull);
		MemoryContextSwitchTo(oldcontext);
		MemoryContextReset(row_context);
	}
	MemoryContextDelete(row_context);
}

/*
 * Copies the key of a stored row into the table's memory.
 */
static Datum
copy_key(ApplyKeyTable *table, const Datum *values, const bool *isnull)
{
	ApplyState *state = table->state;
	MemoryContext oldcontext;
	MinimalTuple tuple;

	if (table->by_value)
	{
		int			at = state->keys[0].column->store - 1;

		return isnull[at] ? (Datum) 0 : values[at];
	}

	oldcontext = MemoryContextSwitchTo(table->context);
	if (table->settle)
		tuple = cdc_form_minimal_tuple(table->key_desc, values, isnull);
	else
	{
		Datum		key_values[APPLY_MAX_KEYS];
		bool		key_isnull[APPLY_MAX_KEYS];

		for (int i = 0; i < state->nkeys; i++)
		{
			key_values[i] = values[state->keys[i].column->store - 1];
			key_isnull[i] = isnull[state->keys[i].column->store - 1];
		}
		tuple = cdc_form_minimal_tuple(table->key_desc, (const Datum *) key_values,
									   (const bool *) key_isnull);
	}
	MemoryContextSwitchTo(oldcontext);
	return PointerGetDatum(tuple);
}

static uint32
hash_key(ApplyState *state, const Datum *values, const bool *isnull)
{
	uint32		hash = 0;

	for (int i = 0; i < state->nkeys; i++)
	{
		int			at = state->keys[i].column->store - 1;

		hash = hash_combine(hash, isnull[at] ? 0 :
							hash_datum(&state->keys[i], values[at]));
	}
	return murmurhash32(hash);
}

/*
 * Hashes a key value so that equal ones have equal hashes.  That may be the
 * same hash for all values of a type, in the worst case.
 */
static uint32
hash_datum(const ApplyKey *key, Datum value)
{
	if (OidIsValid(key->hash.fn_oid))
		return DatumGetUInt32(FunctionCall1Coll(unconstify(FmgrInfo *, &key->hash),
												key->column->collation, value));
	if (key->equal_image)
		return datum_image_hash(value, key->typbyval, key->typlen);
	return 0;
}

/*
 * Does a stored row have the key of the table's entry?
 */
static bool
same_key(ApplyKeyTable *table, const KeyEntry *entry, const Datum *values,
		 const bool *isnull)
{
	ApplyState *state = table->state;

	for (int i = 0; i < state->nkeys; i++)
	{
		ApplyKey   *key = &state->keys[i];
		int			at = key->column->store - 1;
		Datum		value = entry->key;
		bool		null = entry->isnull;

		if (!table->by_value)
			value = entry_attribute(table, entry->key,
									table->settle ? at + 1 : i + 1, &null);
		if (null != isnull[at])
			return false;
		if (!null &&
			!DatumGetBool(FunctionCall2Coll(&key->equal,
											key->column->collation,
											value, values[at])))
			return false;
	}
	return true;
}

/*
 * A column of the tuple that an entry points to.
 */
static Datum
entry_attribute(ApplyKeyTable *table, Datum key, int attnum, bool *isnull)
{
	MinimalTuple minimal = (MinimalTuple) DatumGetPointer(key);
	HeapTupleData tuple;

	tuple.t_len = minimal->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) ((char *) minimal - MINIMAL_TUPLE_OFFSET);
	return heap_getattr(&tuple, attnum, table->key_desc, isnull);
}

/*
 * Settles which of two actions counts: that of the entry or that of a row.
 */
static void
settle_action(ApplyKeyTable *table, uint32 entry, ApplyGroup *group,
			  ApplyKind kind, const Datum *values, const bool *isnull)
{
	Datum		old = table->entries[entry].key;
	int64		old_number;
	bool		null;
	int			cmp = compare_actions(table, old, values);

	old_number = DatumGetInt64(entry_attribute(table, old, APPLY_STORE_NUMBER,
											   &null));
	if (cmp <= 0)
	{
		if (cmp < 0)
			note_older(table, kind, table->entries[entry].hash, values, isnull);
		else if (kind != table->actions[entry].kind ||
				 !same_content(table, old, values, isnull))
		{
			table->actions[entry].tied = true;

			/* with a sequence, nothing that follows makes it right */
			if (table->state->sequence != NULL)
				check_ties(table);
		}
		lose(table->state, group, kind,
			 DatumGetInt64(values[APPLY_STORE_NUMBER - 1]));
		return;
	}

	if (table->state->sequence != NULL)
	{
		MinimalTuple minimal = (MinimalTuple) DatumGetPointer(old);
		HeapTupleData tuple;

		tuple.t_len = minimal->t_len + MINIMAL_TUPLE_OFFSET;
		tuple.t_data = (HeapTupleHeader) ((char *) minimal - MINIMAL_TUPLE_OFFSET);
		heap_deform_tuple(&tuple, table->key_desc, table->old_values,
						  table->old_isnull);
		note_older(table, table->actions[entry].kind,
				   table->entries[entry].hash, table->old_values,
				   table->old_isnull);
	}
	lose(table->state, table->actions[entry].group,
		 table->actions[entry].kind, old_number);
	pfree(DatumGetPointer(old));
	table->entries[entry].key = copy_key(table, values, isnull);
	table->actions[entry].group = group;
	table->actions[entry].kind = kind;
	table->actions[entry].tied = false;
}

/*
 * Notes an action that is not the newest one of its key, to be compared with
 * others of the same sequence at the end.
 */
static void
note_older(ApplyKeyTable *table, ApplyKind kind, uint32 hash,
		   const Datum *values, const bool *isnull)
{
	ApplyState *state = table->state;
	Datum	   *older;
	bool	   *older_isnull;
	uint64		content = kind;

	if (state->sequence == NULL)
		return;
	if (table->older == NULL)
		begin_older(table);
	older = table->older_slot->tts_values;
	older_isnull = table->older_slot->tts_isnull;

	for (int i = 0; i < state->ncolumns; i++)
	{
		int			at = state->columns[i].store - 1;
		Form_pg_attribute att;

		if (at < 0)
			continue;
		att = TupleDescAttr(state->store_desc, at);
		content = hash_combine64(content, isnull[at] ? 0 :
								 1 + (uint64) datum_image_hash(values[at],
															   att->attbyval,
															   att->attlen));
	}
	older[OLDER_HASH - 1] = Int32GetDatum((int32) hash);
	older[OLDER_SEQUENCE - 1] = values[state->sequence->store - 1];
	older[OLDER_ORDINAL - 1] = state->options->deduplicate ?
		values[state->store_ordinal - 1] : Int64GetDatum(0);
	older[OLDER_GIVEN - 1] = Int32GetDatum(state->options->deduplicate &&
										   DatumGetBool(values[state->store_given - 1]));
	older[OLDER_CONTENT - 1] = Int64GetDatum((int64) content);
	for (int i = 0; i < state->nkeys; i++)
	{
		older[OLDER_KEY - 1 + i] = values[state->keys[i].column->store - 1];
		older_isnull[OLDER_KEY - 1 + i] = isnull[state->keys[i].column->store - 1];
	}

	ExecStoreVirtualTuple(table->older_slot);
	tuplesort_puttupleslot(table->older, table->older_slot);
	ExecClearTuple(table->older_slot);
}

/*
 * Begins the sort of older actions.
 */
static void
begin_older(ApplyKeyTable *table)
{
	ApplyState *state = table->state;
	MemoryContext oldcontext = MemoryContextSwitchTo(state->context);
	TypeCacheEntry *type = lookup_type_cache(state->sequence->type,
											 TYPECACHE_LT_OPR);
	AttrNumber	columns[] = {OLDER_HASH, OLDER_SEQUENCE, OLDER_ORDINAL,
	OLDER_GIVEN, OLDER_CONTENT};
	Oid			operators[] = {Int4LessOperator, type->lt_opr, Int8LessOperator,
	Int4LessOperator, Int8LessOperator};
	Oid			collations[lengthof(columns)] = {0};
	bool		nulls_first[lengthof(columns)] = {0};

	collations[1] = state->sequence->collation;
	table->older_desc = CreateTemplateTupleDesc(OLDER_KEY - 1 + state->nkeys);
	TupleDescInitEntry(table->older_desc, OLDER_HASH, NULL, INT4OID, -1, 0);
	TupleDescInitEntry(table->older_desc, OLDER_SEQUENCE, NULL,
					   state->sequence->type, -1, 0);
	TupleDescInitEntry(table->older_desc, OLDER_ORDINAL, NULL, INT8OID, -1, 0);
	TupleDescInitEntry(table->older_desc, OLDER_GIVEN, NULL, INT4OID, -1, 0);
	TupleDescInitEntry(table->older_desc, OLDER_CONTENT, NULL, INT8OID, -1, 0);
	for (int i = 0; i < state->nkeys; i++)
		TupleDescInitEntry(table->older_desc, OLDER_KEY + i, NULL,
						   state->keys[i].column->type, -1, 0);
	table->older = tuplesort_begin_heap(table->older_desc, lengthof(columns),
										columns, operators, collations,
										nulls_first, work_mem, NULL,
										TUPLESORT_NONE);
	table->older_slot = MakeSingleTupleTableSlot(table->older_desc,
												 &TTSOpsVirtual);
	memset(table->older_slot->tts_isnull, false,
		   sizeof(bool) * table->older_desc->natts);
	MemoryContextSwitchTo(oldcontext);
}

/*
 * Raises an error if two different ones of the older actions have the same
 * key and sequence.
 */
static void
check_older(ApplyKeyTable *table)
{
	ApplyState *state = table->state;
	TupleTableSlot *slot;
	TupleTableSlot *last;

	if (table->older == NULL)
		return;
	tuplesort_performsort(table->older);
	slot = MakeSingleTupleTableSlot(table->older_desc, &TTSOpsMinimalTuple);
	last = MakeSingleTupleTableSlot(table->older_desc, &TTSOpsMinimalTuple);
	while (tuplesort_gettupleslot(table->older, true, true, slot, NULL))
	{
		TupleTableSlot *next = last;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		if (!TTS_EMPTY(last) &&
			slot->tts_values[OLDER_HASH - 1] == last->tts_values[OLDER_HASH - 1] &&
			DatumGetInt64(slot->tts_values[OLDER_ORDINAL - 1]) ==
			DatumGetInt64(last->tts_values[OLDER_ORDINAL - 1]) &&
			slot->tts_values[OLDER_GIVEN - 1] == last->tts_values[OLDER_GIVEN - 1] &&
			DatumGetInt64(slot->tts_values[OLDER_CONTENT - 1]) !=
			DatumGetInt64(last->tts_values[OLDER_CONTENT - 1]) &&
			DatumGetInt32(FunctionCall2Coll(&state->sequence_cmp,
											state->sequence->collation,
											slot->tts_values[OLDER_SEQUENCE - 1],
											last->tts_values[OLDER_SEQUENCE - 1])) == 0 &&
			same_older_key(state, slot, last))
			tie_error(state, &slot->tts_values[OLDER_KEY - 1],
					  &slot->tts_isnull[OLDER_KEY - 1]);
		last = slot;
		slot = next;
	}
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(last);
	ExecDropSingleTupleTableSlot(table->older_slot);
	tuplesort_end(table->older);
}

/*
 * Do two sorted actions have the same key?
 */
static bool
same_older_key(ApplyState *state, TupleTableSlot *left, TupleTableSlot *right)
{
	for (int i = 0; i < state->nkeys; i++)
	{
		int			at = OLDER_KEY - 1 + i;

		if (left->tts_isnull[at] != right->tts_isnull[at])
			return false;
		if (!left->tts_isnull[at] &&
			!DatumGetBool(FunctionCall2Coll(&state->keys[i].equal,
											state->keys[i].column->collation,
											left->tts_values[at],
											right->tts_values[at])))
			return false;
	}
	return true;
}

/*
 * Raises an error if the last word on a key is not clear.
 */
static void
check_ties(ApplyKeyTable *table)
{
	ApplyState *state = table->state;

	if (!table->settle)
		return;
	for (uint32 i = 0; i < table->nentries; i++)
	{
		Datum		values[APPLY_MAX_KEYS];
		bool		isnull[APPLY_MAX_KEYS];

		if (!table->actions[i].tied)
			continue;
		for (int k = 0; k < state->nkeys; k++)
			values[k] = entry_attribute(table, table->entries[i].key,
										state->keys[k].column->store,
										&isnull[k]);
		tie_error(state, values, isnull);
	}
}

/*
 * Raises the error for two different actions between which nothing decides.
 * The arrays hold key values only.
 */
static void
tie_error(ApplyState *state, const Datum *values, const bool *isnull)
{
	ereport(ERROR,
			(errcode(ERRCODE_CARDINALITY_VIOLATION),
			 errmsg("apply_changelog failed: duplicate keys detected in changelog for identifier columns [%s]",
					apply_key_names(state)),
			 errdetail("Key %s has different actions with the same %s.",
					   apply_key_detail(state, values, isnull),
					   state->sequence == NULL ? "ordinal" :
					   state->options->deduplicate ?
					   "sequence and ordinal" : "sequence")));
}

/*
 * Is a row's action newer (> 0) or older (< 0) than the one in a tuple?
 */
static int
compare_actions(ApplyKeyTable *table, Datum old, const Datum *values)
{
	ApplyState *state = table->state;
	bool		null;
	int64		old_ordinal;
	int64		ordinal;
	bool		old_deletes;

	if (state->sequence != NULL)
	{
		int			at = state->sequence->store - 1;
		Datum		old_sequence = entry_attribute(table, old, at + 1, &null);
		int			cmp;

		cmp = DatumGetInt32(FunctionCall2Coll(&state->sequence_cmp,
											  state->sequence->collation,
											  values[at], old_sequence));
		if (cmp != 0)
			return cmp;
	}
	if (!state->options->deduplicate)
		return 0;

	old_ordinal = DatumGetInt64(entry_attribute(table, old,
												state->store_ordinal, &null));
	ordinal = DatumGetInt64(values[state->store_ordinal - 1]);
	if (ordinal != old_ordinal)
		return ordinal > old_ordinal ? 1 : -1;

	/* a key that left and came back at once is there */
	old_deletes = DatumGetBool(entry_attribute(table, old, state->store_given,
											   &null));
	return (int) old_deletes -
		(int) DatumGetBool(values[state->store_given - 1]);
}

/*
 * Are a row's columns those of a tuple, to the last byte?
 */
static bool
same_content(ApplyKeyTable *table, Datum old, const Datum *values,
			 const bool *isnull)
{
	ApplyState *state = table->state;

	for (int i = 0; i < state->ncolumns; i++)
	{
		int			at = state->columns[i].store - 1;
		Form_pg_attribute att;
		Datum		value;
		bool		null;

		if (at < 0)
			continue;
		att = TupleDescAttr(state->store_desc, at);
		value = entry_attribute(table, old, at + 1, &null);
		if (null != isnull[at] ||
			(!null && !datum_image_eq(value, values[at],
									  att->attbyval, att->attlen)))
			return false;
	}
	return true;
}

/*
 * Marks a stored row as not to be applied.  In later passes it may lose again.
 */
static void
lose(ApplyState *state, ApplyGroup *group, ApplyKind kind, int64 number)
{
	if (apply_rowset_add(&state->losers, number))
	{
		group->losers[kind]++;
		state->result->stale++;
	}
}

/*
 * Replaces stores that contain losers by ones that do not.
 */
static void
take_out_losers(ApplyState *state)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		ApplyGroup *group = lfirst(lc);

		for (int kind = 0; kind < APPLY_NUM_KINDS; kind++)
		{
			Tuplestorestate *rows = group->rows[kind];

			if (group->losers[kind] == 0)
				continue;
			group->rows[kind] = apply_rows_without(state, rows,
												   &state->losers);
			tuplestore_end(rows);
		}
	}
}

/*
 * Raises the error for a stored row that has the key of another one.
 */
void
apply_duplicate_error(ApplyState *state, const Datum *values,
					  const bool *isnull)
{
	ereport(ERROR,
			(errcode(ERRCODE_CARDINALITY_VIOLATION),
			 errmsg("apply_changelog failed: duplicate keys detected in changelog for identifier columns [%s]",
					apply_key_names(state)),
			 errdetail("Key %s has more than one action.",
					   apply_stored_key_detail(state, values, isnull))));
}

/*
 * The key of a stored row for a message.
 */
const char *
apply_stored_key_detail(ApplyState *state, const Datum *values,
						const bool *isnull)
{
	Datum		key_values[APPLY_MAX_KEYS];
	bool		key_isnull[APPLY_MAX_KEYS];

	for (int i = 0; i < state->nkeys; i++)
	{
		key_values[i] = values[state->keys[i].column->store - 1];
		key_isnull[i] = isnull[state->keys[i].column->store - 1];
	}
	return apply_key_detail(state, key_values, key_isnull);
}
