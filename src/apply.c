/*-------------------------------------------------------------------------
 *
 * apply.c
 *		Applying a changelog to a table: entry points, options, the target.
 *
 * cdc_apply makes a table, the target, follow a changelog.  Everything it
 * does to the target is plain SQL run with the rights of the caller, so that
 * privileges, row-level security, triggers, constraints, partitions and
 * foreign tables work as they do for any DML.
 *
 * The changelog is read once, completely, and everything that can be said
 * about it is said before the first row of the target changes: unknown
 * columns, types that do not fit, unknown change types, several actions for
 * one key.  So a target that is itself the source of the changelog is no
 * special case.
 *
 * Two applications to one target exclude each other until their transactions
 * end, because rows that both of them insert would be there twice if no
 * unique index objects.  A lock of the advisory kind does that; it is in
 * nobody's way but that of other applications.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "apply_internal.h"
#include "cdc_changelog.h"
#include "consumer.h"

/* Fourth field of our advisory locks; those of SQL functions have 1 or 2 */
#define APPLY_LOCK_FIELD		3

/* The arguments of cdc.apply_changelog, in order */
enum
{
	ARG_TARGET,
	ARG_CHANGELOG,
	ARG_KEYS,
	ARG_FILTER,
	ARG_SEQUENCE_BY,
	ARG_SOFT_DELETE,
	ARG_IGNORE_NULL_UPDATES,
	ARG_DEDUPLICATE,
	ARG_CONSUMER,
	ARG_NOWAIT,
	ARG_COMPLETE,
	ARG_APPEND,
	ARG_HISTORY,
	ARG_HISTORY_EXCLUDE,
	ARG_MAX_DELETES
};

static char *text_argument(FunctionCallInfo fcinfo, int arg);
static bool bool_argument(FunctionCallInfo fcinfo, int arg);
static List *names_argument(FunctionCallInfo fcinfo, int arg,
							const char *what);
static void check_options(const CdcApplyOptions *options);
static void check_privileges(Oid relid);
static ApplyState *read_changelog(const CdcApplyOptions *options,
								  const CdcConsumerRun *run,
								  MemoryContext context,
								  CdcApplyResult *result);
static void end_state(ApplyState *state);
static List *written_columns(ApplyState *state, MemoryContext context);
static void lock_target(Oid relid, bool nowait);
static void describe_target(ApplyState *state);
static void check_target_kind(Relation rel);
static void describe_columns(ApplyState *state, Relation rel);
static void resolve_keys(ApplyState *state);
static void resolve_sequence(ApplyState *state);
static void resolve_soft_delete(ApplyState *state);
static void init_key(ApplyKey *key, ApplyColumn *column);
static bool is_equal_image(const TypeCacheEntry *type, Oid collation);
static void find_unique_index(ApplyState *state, Relation rel);
static void find_versions_index(ApplyState *state, Relation rel);
static bool index_begins_with_keys(ApplyState *state, Relation index);
static bool cheap_to_sort(ApplyState *state);
static bool index_covers_keys(ApplyState *state, Relation index,
							  uint64 *columns, bool *usable);
static bool same_equality(ApplyKey *key, Relation index, int i);

PG_FUNCTION_INFO_V1(cdc_apply_changelog);

/*
 * cdc.apply_changelog(target, changelog, keys, filter, sequence_by,
 *					   soft_delete, ignore_null_updates, deduplicate,
 *					   consumer, nowait, complete, append, history,
 *					   history_exclude, max_deletes)
 */
Datum
cdc_apply_changelog(PG_FUNCTION_ARGS)
{
	CdcApplyOptions options = {0};
	CdcApplyResult result;
	TupleDesc	desc;
	Datum		values[6];
	bool		isnull[6] = {0};

	if (PG_ARGISNULL(ARG_TARGET))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("target must not be null")));
	if (PG_ARGISNULL(ARG_CHANGELOG))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changelog must not be null")));
	options.target = PG_GETARG_OID(ARG_TARGET);
	options.changelog = text_argument(fcinfo, ARG_CHANGELOG);
	options.append = bool_argument(fcinfo, ARG_APPEND);
	if (PG_ARGISNULL(ARG_KEYS) && !options.append)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("keys must not be null")));
	options.keys = names_argument(fcinfo, ARG_KEYS, "keys");
	options.filter = text_argument(fcinfo, ARG_FILTER);
	options.sequence_by = text_argument(fcinfo, ARG_SEQUENCE_BY);
	options.soft_delete = text_argument(fcinfo, ARG_SOFT_DELETE);
	options.ignore_null_updates = bool_argument(fcinfo,
												ARG_IGNORE_NULL_UPDATES);
	options.deduplicate = bool_argument(fcinfo, ARG_DEDUPLICATE);
	options.consumer = text_argument(fcinfo, ARG_CONSUMER);
	options.nowait = bool_argument(fcinfo, ARG_NOWAIT);
	options.complete = bool_argument(fcinfo, ARG_COMPLETE);
	options.history = bool_argument(fcinfo, ARG_HISTORY);
	options.history_exclude = names_argument(fcinfo, ARG_HISTORY_EXCLUDE,
											 "history_exclude");
	options.max_deletes = text_argument(fcinfo, ARG_MAX_DELETES);

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	desc = BlessTupleDesc(desc);

	cdc_apply(&options, &result);

	values[0] = Int64GetDatum(result.inserted);
	values[1] = Int64GetDatum(result.updated);
	values[2] = Int64GetDatum(result.deleted);
	values[3] = Int64GetDatum(result.unchanged);
	values[4] = Int64GetDatum(result.missing);
	values[5] = Int64GetDatum(result.stale);

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(desc, values, isnull)));
}

/*
 * Applies a changelog; "result" is filled in.  On an error the target is as
 * it was once the caller's (sub)transaction has been rolled back.
 *
 * With a consumer, its lock and cut come before the snapshot that the query
 * reads with.  Only when the query has been read is it known which tables it
 * reads, and so whether a run is incremental; if not, it is read again.
 */
void
cdc_apply(const CdcApplyOptions *options, CdcApplyResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "cdc apply",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext oldcontext = MemoryContextSwitchTo(context);
	CdcConsumerRun *run = NULL;
	ApplyState *state;
	Snapshot	snapshot;
	int64		meaning;
	List	   *columns;

	check_options(options);
	check_privileges(options->target);
	if (!options->check_only)
	{
		if (options->consumer != NULL)
			run = cdc_consumer_begin(options->consumer, options->target,
									 options->nowait, options->rebuild);
		lock_target(options->target, options->nowait);
	}

	/*
	 * Stored rows may point to values that were toasted in the tables of the
	 * changelog.  As long as this snapshot is around, VACUUM keeps those.
	 */
	snapshot = RegisterSnapshot(GetTransactionSnapshot());

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	state = read_changelog(options, run, context, result);
	while (run != NULL && cdc_consumer_again(run))
	{
		end_state(state);
		state = read_changelog(options, run, context, result);
	}
	if (!options->check_only)
	{
		if (options->history)
			apply_history(state, run);
		else
			apply_write(state);
	}
	meaning = options->meaning != 0 ? options->meaning : state->meaning.number;
	columns = written_columns(state, context);
	end_state(state);
	SPI_finish();
	UnregisterSnapshot(snapshot);

	MemoryContextSwitchTo(oldcontext);
	if (run != NULL)
	{
		result->full = cdc_consumer_full(run);
		result->ranges = cdc_consumer_ranges(run);
		result->idle = options->skip_idle &&
			result->inserted + result->updated + result->deleted +
			result->unchanged + result->missing + result->stale == 0 &&
			cdc_consumer_nothing_new(run, meaning);
		if (result->idle)
			cdc_consumer_abandon(run);
		else
			cdc_consumer_finish(run, options, result, meaning, columns);
	}
	MemoryContextDelete(context);
}

/*
 * Looks at the target and reads the changelog for it.
 */
static ApplyState *
read_changelog(const CdcApplyOptions *options, const CdcConsumerRun *run,
			   MemoryContext context, CdcApplyResult *result)
{
	ApplyState *state = palloc0(sizeof(ApplyState));
	bool		full = run != NULL && cdc_consumer_full(run);

	/* rows would be there twice */
	if (full && options->append && cdc_consumer_ran_before(run))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("consumer \"%s\" has to read everything again, which cannot be appended to \"%s\"",
						options->consumer, get_rel_name(options->target)),
				 errdetail("A position of the consumer cannot be used, or it reads a table for the first time."),
				 errhint("To build the target anew, empty it and call cdc.reset(%s).",
						 quote_literal_cstr(options->consumer))));
	memset(result, 0, sizeof(CdcApplyResult));
	state->options = options;
	state->result = result;
	state->context = AllocSetContextCreate(context, "cdc apply state",
										   ALLOCSET_DEFAULT_SIZES);
	state->relid = options->target;
	state->losers.context = state->context;
	state->updated.context = state->context;
	state->marked.context = state->context;

	describe_target(state);
	state->complete = options->complete || (full && !options->append);
	state->newer = state->sequence != NULL && !state->complete;
	apply_read(state);
	return state;
}

/*
 * Frees what is stored.
 */
static void
end_state(ApplyState *state)
{
	ListCell   *lc;

	foreach(lc, state->groups)
	{
		ApplyGroup *group = lfirst(lc);

		for (int kind = 0; kind < APPLY_NUM_KINDS; kind++)
			if (group->rows[kind] != NULL)
				tuplestore_end(group->rows[kind]);
	}
	MemoryContextDelete(state->context);
}

/*
 * The columns of the target that have what the changelog says, by their numbers:
 * if one of them is not the same column any more, the target has to be built
 * anew.  None with append, where what is there stays as it is.  The list is made
 * in the given context.
 */
static List *
written_columns(ApplyState *state, MemoryContext context)
{
	List	   *result = NIL;
	MemoryContext oldcontext;

	if (state->options->append)
		return NIL;
	oldcontext = MemoryContextSwitchTo(context);
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (column->store > 0 || column == state->soft_delete ||
			apply_history_column(state, column))
			result = lappend_int(result, column->attnum);
	}
	MemoryContextSwitchTo(oldcontext);
	return result;
}

/*
 * A text argument as a string, or NULL.
 */
static char *
text_argument(FunctionCallInfo fcinfo, int arg)
{
	return PG_ARGISNULL(arg) ? NULL :
		text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

/*
 * A boolean argument; NULL is false.
 */
static bool
bool_argument(FunctionCallInfo fcinfo, int arg)
{
	return !PG_ARGISNULL(arg) && PG_GETARG_BOOL(arg);
}

/*
 * A text[] argument as a list of strings, each name once; NIL for NULL.
 * "what" is its name for messages.
 */
static List *
names_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	return PG_ARGISNULL(arg) ? NIL :
		cdc_apply_names(PG_GETARG_ARRAYTYPE_P(arg), what);
}

/*
 * The elements of a text[] as a list of strings, each once, in the current
 * memory context.  Raises an error for NULL; "what" is the array's name for
 * messages.
 */
List *
cdc_apply_names(ArrayType *array, const char *what)
{
	List	   *names = NIL;
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &elems, &nulls, &nelems);
	for (int i = 0; i < nelems; i++)
	{
		char	   *name;
		ListCell   *lc;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("%s must not contain null", what)));
		name = TextDatumGetCString(elems[i]);
		foreach(lc, names)
			if (strcmp(lfirst(lc), name) == 0)
			break;
		if (lc == NULL)
			names = lappend(names, name);
	}
	return names;
}

/*
 * Raises an error for options that do not go together, and for what is not
 * there yet.
 */
static void
check_options(const CdcApplyOptions *options)
{
	if (options->append)
	{
		const char *other = options->keys != NIL ? "keys" :
			options->sequence_by != NULL ? "sequence_by" :
			options->soft_delete != NULL ? "soft_delete" :
			options->ignore_null_updates ? "ignore_null_updates" :
			options->deduplicate ? "deduplicate" :
			options->complete ? "complete" :
			options->history ? "history" : NULL;

		if (other != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("\"append\" cannot be used together with \"%s\"",
							other),
					 errdetail("Rows are inserted as they come.")));
	}
	if (options->history && options->ignore_null_updates)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" cannot be used together with \"%s\"",
						"history", "ignore_null_updates"),
				 errdetail("A version of a row does not depend on others.")));
	if (options->history_exclude != NIL && !options->history)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"history_exclude\" needs \"history\"")));
	if (options->max_deletes != NULL)
		cdc_apply_check_max_deletes(options->max_deletes);
}

/*
 * Raises an error if the caller may not change anything in the relation.
 * What exactly is needed shows when the statements run; this keeps others
 * from locking it.
 */
static void
check_privileges(Oid relid)
{
	const AclMode modes[] = {ACL_INSERT, ACL_UPDATE};
	AclResult	result = pg_class_aclmask(relid, GetUserId(),
										  ACL_INSERT | ACL_UPDATE | ACL_DELETE,
										  ACLMASK_ANY) != 0 ?
		ACLCHECK_OK : ACLCHECK_NO_PRIV;

	for (int i = 0; i < lengthof(modes) && result != ACLCHECK_OK; i++)
		result = pg_attribute_aclcheck_all(relid, GetUserId(), modes[i],
										   ACLMASK_ANY);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(get_rel_relkind(relid)),
					   get_rel_name(relid));
}

/*
 * Waits until no other transaction is applying to the relation, and keeps
 * others out until the end of this one.
 */
static void
lock_target(Oid relid, bool nowait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, RelationRelationId, relid,
						 APPLY_LOCK_FIELD);
	if (LockAcquire(&tag, ExclusiveLock, false, nowait) == LOCKACQUIRE_NOT_AVAIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another transaction is applying a changelog to \"%s\"",
						get_rel_name(relid))));
}

/*
 * Fills in all that the state says about the target.  Raises an error if the
 * options do not fit it.
 */
static void
describe_target(ApplyState *state)
{
	Relation	rel = relation_open(state->relid, RowExclusiveLock);

	check_target_kind(rel);
	state->relkind = rel->rd_rel->relkind;
	state->target = pstrdup(RelationGetRelationName(rel));
	state->target_sql =
		quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
								   RelationGetRelationName(rel));

	describe_columns(state, rel);
	resolve_keys(state);
	resolve_sequence(state);
	resolve_soft_delete(state);
	if (state->options->history)
	{
		apply_history_resolve(state);
		find_versions_index(state, rel);
	}
	else
		find_unique_index(state, rel);

	/* a partition, foreign server or view may have its own ideas */
	state->refuses_deletes = state->relkind != RELKIND_RELATION ||
		rel->rd_rel->relhassubclass || rel->rd_rel->relrowsecurity ||
		rel->rd_rel->relhasrules ||
		(rel->trigdesc != NULL && rel->trigdesc->trig_delete_before_row);

	relation_close(rel, NoLock);
}

/*
 * Raises an error if rows of the relation cannot be changed at all.
 */
static void
check_target_kind(Relation rel)
{
	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
		case RELKIND_PARTITIONED_TABLE:
		case RELKIND_FOREIGN_TABLE:
		case RELKIND_VIEW:
			break;
		case RELKIND_MATVIEW:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot change materialized view \"%s\"",
							RelationGetRelationName(rel))));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot apply a changelog to relation \"%s\"",
							RelationGetRelationName(rel)),
					 errdetail_relkind_not_supported(rel->rd_rel->relkind)));
	}
}

static void
describe_columns(ApplyState *state, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	state->columns = palloc0(sizeof(ApplyColumn) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);
		ApplyColumn *column;

		if (att->attisdropped)
			continue;
		column = &state->columns[state->ncolumns++];
		column->name = pstrdup(NameStr(att->attname));
		column->quoted = quote_identifier(column->name);
		column->attnum = att->attnum;
		column->declared_type = att->atttypid;
		column->typmod = att->atttypmod;
		column->type = getBaseTypeAndTypmod(att->atttypid, &column->typmod);
		column->collation = att->attcollation;
		column->not_null = att->attnotnull;
		column->generated = att->attgenerated != '\0';
		column->identity = att->attidentity;
	}
}

/*
 * The column of that name, or NULL.
 */
ApplyColumn *
apply_find_column(ApplyState *state, const char *name)
{
	for (int i = 0; i < state->ncolumns; i++)
		if (strcmp(state->columns[i].name, name) == 0)
			return &state->columns[i];
	return NULL;
}

/*
 * Is it a column that a changelog adds to those of the table?
 */
bool
apply_is_metadata(const char *name)
{
	return strcmp(name, CDC_COL_TYPE) == 0 ||
		strcmp(name, CDC_COL_ORDINAL) == 0 ||
		strcmp(name, CDC_COL_SNAPSHOT) == 0 ||
		strcmp(name, CDC_COL_TIMESTAMP) == 0;
}

/*
 * The column that an option names; "what" is the option's role for messages.
 */
ApplyColumn *
apply_target_column(ApplyState *state, const char *name, const char *what)
{
	ApplyColumn *column;

	if (apply_is_metadata(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("metadata column \"%s\" cannot be a %s column",
						name, what),
				 errdetail("Metadata columns of a changelog are not written to the target.")));
	column = apply_find_column(state, name);
	if (column == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("%s column \"%s\" does not exist in target \"%s\"",
						what, name, state->target)));
	return column;
}

static void
resolve_keys(ApplyState *state)
{
	ListCell   *lc;

	if (state->options->append)
		return;
	if (state->options->keys == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("keys must name at least one column")));
	if (list_length(state->options->keys) > APPLY_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("keys must not name more than %d columns",
						APPLY_MAX_KEYS)));

	state->keys = palloc0(sizeof(ApplyKey) * list_length(state->options->keys));
	foreach(lc, state->options->keys)
	{
		ApplyColumn *column = apply_target_column(state, lfirst(lc), "key");

		column->is_key = true;
		init_key(&state->keys[state->nkeys++], column);
	}
}

static void
resolve_sequence(ApplyState *state)
{
	TypeCacheEntry *type;

	if (state->options->sequence_by == NULL)
		return;
	state->sequence = apply_target_column(state, state->options->sequence_by,
										  "sequence");
	if (state->sequence->is_key || state->sequence->generated)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("sequence column \"%s\" cannot be a %s column",
						state->sequence->name,
						state->sequence->is_key ? "key" : "generated")));
	type = lookup_type_cache(state->sequence->type,
							 TYPECACHE_CMP_PROC_FINFO | TYPECACHE_GT_OPR);
	if (!OidIsValid(type->cmp_proc) || !OidIsValid(type->gt_opr))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify an ordering operator for type %s",
						format_type_be(state->sequence->type))));
	fmgr_info_copy(&state->sequence_cmp, &type->cmp_proc_finfo,
				   CurrentMemoryContext);
	state->sequence_gt = type->gt_opr;
}

static void
resolve_soft_delete(ApplyState *state)
{
	ApplyColumn *column;

	if (state->options->soft_delete == NULL)
		return;
	column = apply_target_column(state, state->options->soft_delete, "soft-delete");
	if (column->is_key || column->generated || column == state->sequence)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("soft-delete column \"%s\" cannot be a %s column",
						column->name,
						column->is_key ? "key" :
						column->generated ? "generated" : "sequence")));
	if (column->type != BOOLOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("soft-delete column \"%s\" must be of type boolean, not %s",
						column->name, format_type_be(column->type))));
	state->soft_delete = column;
}

/*
 * Looks up how to compare values of a key column: with the default equality
 * of its type and the column's collation.
 */
static void
init_key(ApplyKey *key, ApplyColumn *column)
{
	TypeCacheEntry *type = lookup_type_cache(column->type,
											 TYPECACHE_EQ_OPR_FINFO |
											 TYPECACHE_LT_OPR |
											 TYPECACHE_CMP_PROC_FINFO |
											 TYPECACHE_HASH_PROC_FINFO |
											 TYPECACHE_BTREE_OPFAMILY);

	if (!OidIsValid(type->eq_opr))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("could not identify an equality operator for type %s",
						format_type_be(column->type)),
				 errdetail("Column \"%s\" cannot be a key column.",
						   column->name)));

	key->column = column;
	key->typlen = type->typlen;
	key->typbyval = type->typbyval;
	key->equal_op = type->eq_opr;
	key->less_op = type->lt_opr;
	key->equal_image = is_equal_image(type, column->collation);
	fmgr_info_copy(&key->equal, &type->eq_opr_finfo, CurrentMemoryContext);
	if (OidIsValid(type->lt_opr) && OidIsValid(type->cmp_proc))
		fmgr_info_copy(&key->cmp, &type->cmp_proc_finfo,
					   CurrentMemoryContext);
	if (OidIsValid(type->hash_proc))
		fmgr_info_copy(&key->hash, &type->hash_proc_finfo,
					   CurrentMemoryContext);
}

/*
 * Does equality of values of the type mean that they are the same bytes?
 * Operator classes that allow deduplication of index entries promise that.
 */
static bool
is_equal_image(const TypeCacheEntry *type, Oid collation)
{
	Oid			proc;

	if (!OidIsValid(type->btree_opf))
		return false;
	proc = get_opfamily_proc(type->btree_opf, type->btree_opintype,
							 type->btree_opintype, BTEQUALIMAGE_PROC);
	return OidIsValid(proc) &&
		DatumGetBool(OidFunctionCall1Coll(proc, collation,
										  ObjectIdGetDatum(type->btree_opintype)));
}

/*
 * Looks for indexes which prove that no two rows of the target have equal
 * keys, and through which rows should be found by their keys.
 *
 * Stored rows have no statistics, so the planner takes them for a bad thing
 * to hash and would hash the whole target.  A nested loop over rows in the
 * order of the index is as fast as the best hash join even where a large part
 * of the target changes, as long as the target is likely to be in memory.
 */
static void
find_unique_index(ApplyState *state, Relation rel)
{
	ListCell   *lc;

	if (state->nkeys == 0)
		return;

	/* an index of an inheritance parent says nothing about the children */
	if (state->relkind == RELKIND_RELATION && has_subclass(state->relid))
		return;
	if (state->relkind != RELKIND_RELATION &&
		state->relkind != RELKIND_PARTITIONED_TABLE)
		return;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		uint64		columns;
		bool		usable;

		if (index_covers_keys(state, index, &columns, &usable))
		{
			uint64	   *proof = palloc(sizeof(uint64));

			*proof = index->rd_index->indnullsnotdistinct ? 0 : columns;
			state->proofs = lappend(state->proofs, proof);
			if (usable &&
				(state->relkind == RELKIND_PARTITIONED_TABLE ||
				 RelationGetNumberOfBlocks(rel) <= effective_cache_size))
				state->by_index = true;
		}
		index_close(index, NoLock);
	}

	/* policies and rules are for the planner to decide */
	if (rel->rd_rel->relrowsecurity || rel->rd_rel->relhasrules)
		state->by_index = false;
	state->in_order = state->by_index && cheap_to_sort(state);
}

/*
 * Looks for an index through which the versions of a key should be found, see
 * above.  In a history, no index proves that keys are unique.
 */
static void
find_versions_index(ApplyState *state, Relation rel)
{
	ListCell   *lc;

	if ((state->relkind != RELKIND_RELATION &&
		 state->relkind != RELKIND_PARTITIONED_TABLE) ||
		has_subclass(state->relid) != (state->relkind == RELKIND_PARTITIONED_TABLE) ||
		rel->rd_rel->relrowsecurity || rel->rd_rel->relhasrules ||
		(state->relkind == RELKIND_RELATION &&
		 RelationGetNumberOfBlocks(rel) > effective_cache_size))
		return;
	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		state->by_index |= index_begins_with_keys(state, index);
		index_close(index, NoLock);
	}
}

/*
 * Are the first columns of the index the keys, in any order, and is it fit to
 * find them?
 */
static bool
index_begins_with_keys(ApplyState *state, Relation index)
{
	Form_pg_index form = index->rd_index;

	if (!form->indisvalid || index->rd_rel->relam != BTREE_AM_OID ||
		RelationGetIndexPredicate(index) != NIL ||
		form->indnkeyatts < state->nkeys)
		return false;
	for (int i = 0; i < state->nkeys; i++)
	{
		int			k = 0;

		while (k < state->nkeys &&
			   state->keys[k].column->attnum != form->indkey.values[i])
			k++;
		if (k == state->nkeys || !same_equality(&state->keys[k], index, i) ||
			index->rd_indcollation[i] != state->keys[k].column->collation)
			return false;
	}
	return true;
}

/*
 * Do the keys sort so fast that it pays?  Comparing strings by the rules of a
 * language takes longer than is gained.
 */
static bool
cheap_to_sort(ApplyState *state)
{
	for (int i = 0; i < state->nkeys; i++)
	{
		Oid			collation = state->keys[i].column->collation;

		if (!OidIsValid(state->keys[i].less_op) ||
			!OidIsValid(state->keys[i].cmp.fn_oid) ||
			(OidIsValid(collation) && collation != C_COLLATION_OID))
			return false;
	}
	return true;
}

/*
 * Is this a unique index on key columns, and nothing else, that finds the
 * same values equal as we do?  Sets the bits of these columns.  The index is
 * also usable to find keys if it has their collations.
 */
static bool
index_covers_keys(ApplyState *state, Relation index, uint64 *columns,
				  bool *usable)
{
	Form_pg_index form = index->rd_index;

	*columns = 0;
	*usable = true;
	if (!form->indisunique || !form->indisvalid || !form->indimmediate ||
		index->rd_rel->relam != BTREE_AM_OID ||
		RelationGetIndexPredicate(index) != NIL)
		return false;

	for (int i = 0; i < form->indnkeyatts; i++)
	{
		int			k = 0;

		while (k < state->nkeys &&
			   state->keys[k].column->attnum != form->indkey.values[i])
			k++;
		if (k == state->nkeys || !same_equality(&state->keys[k], index, i))
			return false;
		*columns |= UINT64CONST(1) << k;
		if (index->rd_indcollation[i] != state->keys[k].column->collation)
			*usable = false;
	}
	return true;
}

/*
 * Does column i of the index use the equality and collation of the key?
 */
static bool
same_equality(ApplyKey *key, Relation index, int i)
{
	Oid			ours = key->column->collation;
	Oid			theirs = index->rd_indcollation[i];

	if (get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
							index->rd_opcintype[i],
							BTEqualStrategyNumber) != key->equal_op)
		return false;

	/* all deterministic collations agree on what is equal */
	return ours == theirs ||
		(OidIsValid(ours) && get_collation_isdeterministic(ours) &&
		 OidIsValid(theirs) && get_collation_isdeterministic(theirs));
}

/*
 * The key columns for a message: "id, k".
 */
const char *
apply_key_names(ApplyState *state)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < state->nkeys; i++)
		appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "",
						 state->keys[i].column->name);
	return buf.data;
}

/*
 * A key for a message: "(id, k)=(1, x)".  The arrays hold key values only.
 */
const char *
apply_key_detail(ApplyState *state, const Datum *values, const bool *isnull)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfo(&buf, "(%s)=(", apply_key_names(state));
	for (int i = 0; i < state->nkeys; i++)
	{
		Oid			output;
		bool		isvarlena;

		if (i > 0)
			appendStringInfoString(&buf, ", ");
		if (isnull[i])
		{
			appendStringInfoString(&buf, "null");
			continue;
		}
		getTypeOutputInfo(state->keys[i].column->type, &output, &isvarlena);
		appendStringInfoString(&buf, OidOutputFunctionCall(output, values[i]));
	}
	appendStringInfoChar(&buf, ')');
	return buf.data;
}

/*
 * Adds a row number (1, 2, ...) to a set; returns whether it is new there.
 */
bool
apply_rowset_add(ApplyRowSet *set, int64 member)
{
	Size		byte = member / BITS_PER_BYTE;
	uint8		bit = 1 << (member % BITS_PER_BYTE);

	if (byte >= set->size)
	{
		Size		size = Max(Max(byte + 1, set->size * 2), 64);

		if (set->bits == NULL)
			set->bits = MemoryContextAllocHuge(set->context, size);
		else
			set->bits = repalloc_huge(set->bits, size);
		memset(set->bits + set->size, 0, size - set->size);
		set->size = size;
	}
	if (set->bits[byte] & bit)
		return false;
	set->bits[byte] |= bit;
	set->count++;
	return true;
}

/*
 * Is the row number in the set?
 */
bool
apply_rowset_has(const ApplyRowSet *set, int64 member)
{
	Size		byte = member / BITS_PER_BYTE;

	return byte < set->size &&
		(set->bits[byte] & (1 << (member % BITS_PER_BYTE))) != 0;
}

/*
 * Removes all members of a set.
 */
void
apply_rowset_clear(ApplyRowSet *set)
{
	if (set->count > 0)
		memset(set->bits, 0, set->size);
	set->count = 0;
}
