/*-------------------------------------------------------------------------
 *
 * pipeline.c
 *		Stored pipelines: making, replacing, dropping and finding them.
 *
 * A pipeline is a name for all that an application of changes through a
 * consumer needs: target, query, options, and the search_path with which the
 * query is to be understood.  The consumer has the pipeline's name.  Running
 * pipelines is in pipeline_run.c.
 *
 * A pipeline belongs to the role that made it and runs with its rights.  It
 * may be replaced, run and dropped by this role, its members, and superusers.
 *
 * cdc.pipeline holds no more than what was asked for.  So a pipeline may get
 * into a state in which it cannot run: its owner or target may be gone, or its
 * target may have been renamed to make room for another table.  Then it says
 * so, here and in cdc.check().
 *
 * Whoever reads the row of a pipeline in order to act on it holds the
 * pipeline's lock until the end of the transaction: an ExclusiveLock on an
 * object of class cdc.pipeline, whose number is a hash of the name.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/pipeline.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "consumer.h"
#include "consumer_catalog.h"
#include "pipeline.h"

/* Longest name of a pipeline, in bytes */
#define PIPELINE_MAX_NAME		255

/* The arguments of cdc.create_pipeline, in order */
enum
{
	ARG_NAME,
	ARG_TARGET,
	ARG_KEYS,
	ARG_QUERY,
	ARG_FILTER,
	ARG_SEQUENCE_BY,
	ARG_SOFT_DELETE,
	ARG_IGNORE_NULL_UPDATES,
	ARG_DEDUPLICATE,
	ARG_APPEND,
	ARG_HISTORY,
	ARG_HISTORY_EXCLUDE,
	ARG_MAX_DELETES,
	ARG_KEEP_RUNS,
	ARG_REPLACE
};

PG_FUNCTION_INFO_V1(cdc_create_pipeline);
PG_FUNCTION_INFO_V1(cdc_drop_pipeline);

static void pipeline_arguments(FunctionCallInfo fcinfo, CdcPipeline * pipeline);
static char *text_argument(FunctionCallInfo fcinfo, int arg);
static bool bool_argument(FunctionCallInfo fcinfo, int arg);
static List *names_argument(FunctionCallInfo fcinfo, int arg,
							const char *what);
static void check_pipeline(const CdcPipeline * pipeline);
static char *current_search_path(void);
static bool same_content(const CdcPipeline * a, const CdcPipeline * b);
static bool same_text(const char *a, const char *b);
static bool same_names(List *a, List *b);
static bool fetch_pipeline(const char *name, CdcPipeline * pipeline);
static void decode_pipeline(HeapTuple tuple, TupleDesc desc,
							CdcPipeline * pipeline);
static void store_pipeline(const CdcPipeline * pipeline);
static void set_text(Datum *values, bool *nulls, AttrNumber attnum,
					 const char *text);
static void set_names(Datum *values, bool *nulls, AttrNumber attnum,
					  List *names);
static void forget_consumer(const char *name, bool itself);
static void delete_rows(CdcCatalogRel table, CdcCatalogRel index,
						const char *name);

/* ----------------------------------------------------------------
 *		SQL functions
 * ----------------------------------------------------------------
 */

/*
 * cdc.create_pipeline(name, target, keys, changelog_query, filter,
 *					   sequence_by, soft_delete, ignore_null_updates,
 *					   deduplicate, append, history, history_exclude,
 *					   max_deletes, keep_runs, replace)
 *
 * Returns the name.
 */
Datum
cdc_create_pipeline(PG_FUNCTION_ARGS)
{
	CdcPipeline pipeline = {0};
	CdcPipeline old;

	pipeline_arguments(fcinfo, &pipeline);
	cdc_pipeline_lock(pipeline.name, false);
	if (fetch_pipeline(pipeline.name, &old))
	{
		if (!bool_argument(fcinfo, ARG_REPLACE))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_OBJECT),
					 errmsg("pipeline \"%s\" already exists", pipeline.name),
					 errhint("Pass replace => true to change it.")));
		cdc_pipeline_check_owner(&old);
		if (SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(old.owner)))
			pipeline.owner = old.owner;
		pipeline.created_at = old.created_at;
		check_pipeline(&pipeline);
		delete_rows(CDC_PIPELINE, CDC_PIPELINE_PKEY, pipeline.name);

		/*
		 * What the old definition has made of the target is not what the new
		 * one would have made of it.  Rows that were appended stay as they
		 * are; nobody else can make them again.
		 */
		if (!pipeline.options.append && !same_content(&pipeline, &old))
			forget_consumer(pipeline.name, false);
	}
	else
	{
		check_pipeline(&pipeline);

		/* one that is there already goes on where it is, if it is ours */
		(void) cdc_consumer_lock(pipeline.name);
	}
	store_pipeline(&pipeline);
	PG_RETURN_TEXT_P(cstring_to_text(pipeline.name));
}

/*
 * cdc.drop_pipeline(name)
 *
 * Returns false if there is no such pipeline.
 */
Datum
cdc_drop_pipeline(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	CdcPipeline pipeline;

	cdc_pipeline_lock(name, false);
	if (!fetch_pipeline(name, &pipeline))
		PG_RETURN_BOOL(false);
	cdc_pipeline_check_owner(&pipeline);
	forget_consumer(name, true);
	delete_rows(CDC_PIPELINE_RUN, CDC_PIPELINE_RUN_PKEY, name);
	delete_rows(CDC_PIPELINE, CDC_PIPELINE_PKEY, name);
	PG_RETURN_BOOL(true);
}

/* ----------------------------------------------------------------
 *		What pipelines are like
 * ----------------------------------------------------------------
 */

/*
 * Fills in a pipeline from the arguments of cdc.create_pipeline.
 */
static void
pipeline_arguments(FunctionCallInfo fcinfo, CdcPipeline * pipeline)
{
	CdcApplyOptions *options = &pipeline->options;
	static const struct
	{
		int			arg;
		const char *name;
	}			required[] =

	{
		{ARG_NAME, "name"},
		{ARG_TARGET, "target"},
		{ARG_QUERY, "changelog_query"}
	};

	for (int i = 0; i < lengthof(required); i++)
		if (PG_ARGISNULL(required[i].arg))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("%s must not be null", required[i].name)));

	pipeline->name = text_argument(fcinfo, ARG_NAME);
	if (pipeline->name[0] == '\0' || strlen(pipeline->name) > PIPELINE_MAX_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("name of a pipeline must have 1 to %d bytes",
						PIPELINE_MAX_NAME)));
	pipeline->created_at = GetCurrentTimestamp();
	pipeline->owner = GetUserId();
	pipeline->search_path = current_search_path();
	pipeline->keep_runs = PG_ARGISNULL(ARG_KEEP_RUNS) ? 100 :
		PG_GETARG_INT32(ARG_KEEP_RUNS);
	if (pipeline->keep_runs < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("keep_runs must not be negative")));

	options->target = PG_GETARG_OID(ARG_TARGET);
	options->changelog = text_argument(fcinfo, ARG_QUERY);
	options->keys = names_argument(fcinfo, ARG_KEYS, "keys");
	options->filter = text_argument(fcinfo, ARG_FILTER);
	options->sequence_by = text_argument(fcinfo, ARG_SEQUENCE_BY);
	options->soft_delete = text_argument(fcinfo, ARG_SOFT_DELETE);
	options->ignore_null_updates = bool_argument(fcinfo,
												 ARG_IGNORE_NULL_UPDATES);
	options->deduplicate = bool_argument(fcinfo, ARG_DEDUPLICATE);
	options->append = bool_argument(fcinfo, ARG_APPEND);
	options->history = bool_argument(fcinfo, ARG_HISTORY);
	options->history_exclude = names_argument(fcinfo, ARG_HISTORY_EXCLUDE,
											  "history_exclude");
	options->max_deletes = text_argument(fcinfo, ARG_MAX_DELETES);
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
 * A text[] argument as a list of strings; NIL for NULL.
 */
static List *
names_argument(FunctionCallInfo fcinfo, int arg, const char *what)
{
	return PG_ARGISNULL(arg) ? NIL :
		cdc_apply_names(PG_GETARG_ARRAYTYPE_P(arg), what);
}

/*
 * Raises an error if the pipeline could not run as it is, as far as can be
 * said without reading anything.  Fills in the name of the target.
 */
static void
check_pipeline(const CdcPipeline * pipeline)
{
	CdcPipeline *result = unconstify(CdcPipeline *, pipeline);
	Oid			target = pipeline->options.target;
	CdcApplyOptions options = pipeline->options;
	CdcApplyResult nothing;
	CdcPipelineRights rights;

	if (get_rel_name(target) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", target)));
	if (get_rel_persistence(target) == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("temporary table \"%s\" cannot be the target of a pipeline",
						get_rel_name(target))));
	result->target_name = cdc_pipeline_relation_name(target);

	cdc_pipeline_enter(pipeline, &rights);
	options.check_only = true;
	cdc_apply(&options, &nothing);
	cdc_pipeline_leave(&rights);
}

/*
 * The search_path that is in force, with temporary tables last: what a session
 * has of them must not get in the way of a pipeline.
 */
static char *
current_search_path(void)
{
	const char *path = GetConfigOption("search_path", false, false);
	List	   *names;
	ListCell   *lc;

	if (!SplitIdentifierString(pstrdup(path), ',', &names))
		elog(ERROR, "invalid list syntax in search_path");
	foreach(lc, names)
		if (strcmp(lfirst(lc), "pg_temp") == 0)
		return pstrdup(path);
	return names == NIL ? pstrdup("pg_temp") : psprintf("%s, pg_temp", path);
}

/*
 * Would two pipelines make the same of a target?
 */
static bool
same_content(const CdcPipeline * a, const CdcPipeline * b)
{
	const CdcApplyOptions *o = &a->options;
	const CdcApplyOptions *p = &b->options;

	return o->target == p->target &&
		same_text(a->search_path, b->search_path) &&
		same_text(o->changelog, p->changelog) &&
		same_names(o->keys, p->keys) &&
		same_text(o->filter, p->filter) &&
		same_text(o->sequence_by, p->sequence_by) &&
		same_text(o->soft_delete, p->soft_delete) &&
		o->ignore_null_updates == p->ignore_null_updates &&
		o->deduplicate == p->deduplicate &&
		o->append == p->append &&
		o->history == p->history &&
		same_names(o->history_exclude, p->history_exclude);
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_names(List *a, List *b)
{
	ListCell   *lca;
	ListCell   *lcb;

	if (list_length(a) != list_length(b))
		return false;
	forboth(lca, a, lcb, b)
		if (strcmp(lfirst(lca), lfirst(lcb)) != 0)
		return false;
	return true;
}

/*
 * The qualified and quoted name of a relation, or NULL if it does not exist.
 */
char *
cdc_pipeline_relation_name(Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *schema = get_namespace_name(get_rel_namespace(relid));

	return name == NULL || schema == NULL ? NULL :
		quote_qualified_identifier(schema, name);
}

/*
 * Why the pipeline cannot be run, as a sentence, or NULL if nothing is known
 * to be in its way.  Sets "hint" to what to do.
 */
char *
cdc_pipeline_problem(const CdcPipeline * pipeline, char **hint)
{
	Oid			target = pipeline->options.target;
	char	   *name = cdc_pipeline_relation_name(target);
	RangeVar   *rv;
	Oid			other;

	*hint = psprintf("Make it anew with " CDC_SCHEMA ".create_pipeline(%s, ..., replace => true), or call "
					 CDC_SCHEMA ".drop_pipeline(%s).",
					 quote_literal_cstr(pipeline->name),
					 quote_literal_cstr(pipeline->name));
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(pipeline->owner)))
		return psprintf("Its owner, role %u, does not exist any more.",
						pipeline->owner);
	if (name == NULL)
		return psprintf("Its target, %s, was dropped.", pipeline->target_name);
	if (strcmp(name, pipeline->target_name) == 0)
		return NULL;

	/* it was renamed: to make room for another? */
	rv = makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(pipeline->target_name)));
	other = RangeVarGetRelid(rv, NoLock, true);
	if (!OidIsValid(other))
		return NULL;
	return psprintf("Its target is called %s now, and %s is another relation.",
					name, pipeline->target_name);
}

/*
 * Raises an error if the current user may not use the pipeline.
 */
void
cdc_pipeline_check_owner(const CdcPipeline * pipeline)
{
	if (!has_privs_of_role(GetUserId(), pipeline->owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of pipeline \"%s\"", pipeline->name)));
}

/*
 * Keeps others from running and changing a pipeline until the end of the
 * transaction.  With "nowait", raises an error where it would have to wait.
 */
void
cdc_pipeline_lock(const char *name, bool nowait)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, cdc_pipeline_catalog(CDC_PIPELINE),
					   hash_bytes((const unsigned char *) name, strlen(name)),
					   0);
	if (LockAcquire(&tag, ExclusiveLock, false, nowait) == LOCKACQUIRE_NOT_AVAIL)
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on pipeline \"%s\"", name)));
}

/* ----------------------------------------------------------------
 *		The catalog table
 * ----------------------------------------------------------------
 */

/*
 * One of the tables and indexes used here; raises an error where the
 * extension is not there.
 */
Oid
cdc_pipeline_catalog(CdcCatalogRel which)
{
	Oid			result = cdc_catalog_oid(which);

	if (!OidIsValid(result))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" is not installed in this database",
						"cdc_changelog"),
				 errhint("Run CREATE EXTENSION cdc_changelog.")));
	return result;
}

/*
 * Reads a pipeline that the current user may use.  The caller holds its lock.
 */
void
cdc_pipeline_require(const char *name, CdcPipeline * pipeline)
{
	if (!fetch_pipeline(name, pipeline))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("pipeline \"%s\" does not exist", name)));
	cdc_pipeline_check_owner(pipeline);
}

/*
 * All pipelines, as a list of CdcPipeline in the current memory context.
 */
List *
cdc_pipeline_list(void)
{
	List	   *result = NIL;
	Relation	rel = table_open(cdc_pipeline_catalog(CDC_PIPELINE),
								 AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0,
										  NULL);
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		CdcPipeline *pipeline = palloc(sizeof(CdcPipeline));

		decode_pipeline(tuple, RelationGetDescr(rel), pipeline);
		result = lappend(result, pipeline);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Reads a pipeline; returns false if there is none of that name.
 */
static bool
fetch_pipeline(const char *name, CdcPipeline * pipeline)
{
	Relation	rel = table_open(cdc_pipeline_catalog(CDC_PIPELINE),
								 AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, Anum_cdc_pipeline_name, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(name));
	scan = systable_beginscan(rel, cdc_pipeline_catalog(CDC_PIPELINE_PKEY),
							  true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found)
		decode_pipeline(tuple, RelationGetDescr(rel), pipeline);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * Takes a row of cdc.pipeline apart.
 */
static void
decode_pipeline(HeapTuple tuple, TupleDesc desc, CdcPipeline * pipeline)
{
	Datum		values[Natts_cdc_pipeline];
	bool		nulls[Natts_cdc_pipeline];
	CdcApplyOptions *options = &pipeline->options;

#define TEXT(anum) \
	(nulls[(anum) - 1] ? NULL : TextDatumGetCString(values[(anum) - 1]))
#define NAMES(anum, what) \
	(nulls[(anum) - 1] ? NIL : \
	 cdc_apply_names(DatumGetArrayTypeP(values[(anum) - 1]), what))

	memset(pipeline, 0, sizeof(CdcPipeline));
	heap_deform_tuple(tuple, desc, values, nulls);
	pipeline->name = TEXT(Anum_cdc_pipeline_name);
	pipeline->created_at =
		DatumGetTimestampTz(values[Anum_cdc_pipeline_created_at - 1]);
	pipeline->owner = DatumGetObjectId(values[Anum_cdc_pipeline_owner - 1]);
	pipeline->target_name = TEXT(Anum_cdc_pipeline_target_name);
	pipeline->search_path = TEXT(Anum_cdc_pipeline_search_path);
	pipeline->keep_runs =
		DatumGetInt32(values[Anum_cdc_pipeline_keep_runs - 1]);

	options->target = DatumGetObjectId(values[Anum_cdc_pipeline_target - 1]);
	options->changelog = TEXT(Anum_cdc_pipeline_query);
	options->keys = NAMES(Anum_cdc_pipeline_keys, "keys");
	options->filter = TEXT(Anum_cdc_pipeline_filter);
	options->sequence_by = TEXT(Anum_cdc_pipeline_sequence_by);
	options->soft_delete = TEXT(Anum_cdc_pipeline_soft_delete);
	options->ignore_null_updates =
		DatumGetBool(values[Anum_cdc_pipeline_ignore_null - 1]);
	options->deduplicate =
		DatumGetBool(values[Anum_cdc_pipeline_deduplicate - 1]);
	options->append = DatumGetBool(values[Anum_cdc_pipeline_append - 1]);
	options->history = DatumGetBool(values[Anum_cdc_pipeline_history - 1]);
	options->history_exclude = NAMES(Anum_cdc_pipeline_history_exclude,
									 "history_exclude");
	options->max_deletes = TEXT(Anum_cdc_pipeline_max_deletes);
#undef TEXT
#undef NAMES
}

/*
 * Adds a row to cdc.pipeline.
 */
static void
store_pipeline(const CdcPipeline * pipeline)
{
	const CdcApplyOptions *options = &pipeline->options;
	Datum		values[Natts_cdc_pipeline] = {0};
	bool		nulls[Natts_cdc_pipeline] = {0};
	Relation	rel;

	set_text(values, nulls, Anum_cdc_pipeline_name, pipeline->name);
	values[Anum_cdc_pipeline_created_at - 1] =
		TimestampTzGetDatum(pipeline->created_at);
	values[Anum_cdc_pipeline_owner - 1] = ObjectIdGetDatum(pipeline->owner);
	values[Anum_cdc_pipeline_target - 1] = ObjectIdGetDatum(options->target);
	values[Anum_cdc_pipeline_keep_runs - 1] =
		Int32GetDatum(pipeline->keep_runs);
	values[Anum_cdc_pipeline_ignore_null - 1] =
		BoolGetDatum(options->ignore_null_updates);
	values[Anum_cdc_pipeline_deduplicate - 1] =
		BoolGetDatum(options->deduplicate);
	values[Anum_cdc_pipeline_append - 1] = BoolGetDatum(options->append);
	values[Anum_cdc_pipeline_history - 1] = BoolGetDatum(options->history);
	set_text(values, nulls, Anum_cdc_pipeline_target_name,
			 pipeline->target_name);
	set_text(values, nulls, Anum_cdc_pipeline_query, options->changelog);
	set_text(values, nulls, Anum_cdc_pipeline_search_path,
			 pipeline->search_path);
	set_names(values, nulls, Anum_cdc_pipeline_keys, options->keys);
	set_text(values, nulls, Anum_cdc_pipeline_filter, options->filter);
	set_text(values, nulls, Anum_cdc_pipeline_sequence_by,
			 options->sequence_by);
	set_text(values, nulls, Anum_cdc_pipeline_soft_delete,
			 options->soft_delete);
	set_names(values, nulls, Anum_cdc_pipeline_history_exclude,
			  options->history_exclude);
	set_text(values, nulls, Anum_cdc_pipeline_max_deletes,
			 options->max_deletes);

	rel = table_open(cdc_pipeline_catalog(CDC_PIPELINE), RowExclusiveLock);
	CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values,
											nulls));
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

static void
set_text(Datum *values, bool *nulls, AttrNumber attnum, const char *text)
{
	nulls[attnum - 1] = text == NULL;

	if (text !=NULL)
		values[attnum - 1] = CStringGetTextDatum(text);
}

static void
set_names(Datum *values, bool *nulls, AttrNumber attnum, List *names)
{
	Datum	   *elems = palloc(sizeof(Datum) * Max(list_length(names), 1));
	ListCell   *lc;

	nulls[attnum - 1] = names == NIL;
	if (names == NIL)
		return;
	foreach(lc, names)
		elems[foreach_current_index(lc)] = CStringGetTextDatum(lfirst(lc));
	values[attnum - 1] =
		PointerGetDatum(construct_array(elems, list_length(names), TEXTOID,
										-1, false, TYPALIGN_INT));
}

/*
 * Forgets how far the consumer of a pipeline is, or the consumer itself.
 * Raises an error if it belongs to somebody else.
 */
static void
forget_consumer(const char *name, bool itself)
{
	if (!cdc_consumer_lock(name))
		return;
	(void) cdc_consumer_delete_rows(name, itself);
	cdc_consumer_forget(name);
}

/*
 * Deletes what a table, which has the name of a pipeline as first column of
 * its primary key, has of a pipeline.
 */
static void
delete_rows(CdcCatalogRel table, CdcCatalogRel index, const char *name)
{
	Relation	rel = table_open(cdc_pipeline_catalog(table),
								 RowExclusiveLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_TEXTEQ,
				CStringGetTextDatum(name));
	scan = systable_beginscan(rel, cdc_pipeline_catalog(index), true, NULL, 1,
							  &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		CatalogTupleDelete(rel, &tuple->t_self);
	systable_endscan(scan);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}
