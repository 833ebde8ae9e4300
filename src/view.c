/*-------------------------------------------------------------------------
 *
 * view.c
 *		Changelog views, after the procedure of the same name in Iceberg.
 *
 * This module owns cdc.create_changelog_view: it turns the procedure's
 * options into a range of snapshots, checks that range, and makes a view
 * that selects it from cdc.changelog_relative.  The numbers of the range are
 * in the text of the view, so it shows the same rows whenever it is read.
 * The view refers to its table by OID, so it outlives a new name.
 *
 * The functions of a view run with the rights of whoever reads it.  A view
 * therefore never shows a change to somebody who may not read the table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/view.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/int.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "tcop/pquery.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/varlena.h"

#include "catalog.h"
#include "cdc_changelog.h"
#include "horizon.h"
#include "log.h"
#include "range.h"

/* The arguments of cdc.create_changelog_view, in order */
enum
{
	ARG_SOURCE_TABLE,
	ARG_CHANGELOG_VIEW,
	ARG_OPTIONS,
	ARG_COMPUTE_UPDATES,
	ARG_IDENTIFIER_COLUMNS,
	ARG_NET_CHANGES,
	ARG_TEMPORARY
};

/* One end of a range as the options give it: by number, by time or not */
typedef struct ViewBound
{
	bool		has_id;
	bool		has_time;
	int64		id;
	TimestampTz time;
} ViewBound;

/* The rows that a view shows */
typedef struct ViewRange
{
	bool		has_start;		/* false: everything that can be read */
	int64		start;			/* excluded */
	int64		end;			/* included */
} ViewRange;

PG_FUNCTION_INFO_V1(cdc_create_changelog_view);

static List *get_identifier_columns(ArrayType *array, Relation source);
static void parse_options(Jsonb *options, ViewBound *start, ViewBound *end);
static char *option_text(const char *name, JsonbValue *value);
static bool is_integer(const char *str, int64 *result);
static int64 parse_snapshot_id(const char *name, const char *str);
static TimestampTz parse_timestamp(const char *name, const char *str);
static void resolve_range(const CdcTracked *tracked, const ViewBound *start,
						  const ViewBound *end, ViewRange *range);
static void report_expired(const CdcTracked *tracked, const char *option);
static RangeVar *view_rangevar(const char *name, const char *source,
							   bool temporary);
static TupleDesc view_tupdesc(TupleDesc source);
static bool has_leading_columns(TupleDesc view, TupleDesc wanted);
static void append_collation(StringInfo buf, Oid collid);
static char *build_query(Oid relid, Oid logrelid, const ViewRange *range,
						 const char *mode, List *identifiers,
						 TupleDesc columns);
static char *create_view(RangeVar *rv, TupleDesc columns, const char *query);
static void run_command(const char *command);

/*
 * CALL cdc.create_changelog_view(source_table regclass,
 *								  INOUT changelog_view text, options jsonb,
 *								  compute_updates boolean,
 *								  identifier_columns text[],
 *								  net_changes boolean, temporary boolean)
 *
 * Makes the view and returns its name, quoted and qualified.  Everything the
 * user can get wrong is reported here, not when the view is read; only
 * duplicate keys are found by reading.
 */
Datum
cdc_create_changelog_view(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	source;
	CdcTracked	tracked;
	ViewBound	start = {0};
	ViewBound	end = {0};
	ViewRange	range;
	bool		compute_updates;
	bool		net_changes;
	bool		temporary;
	List	   *identifiers = NIL;
	char	   *name = NULL;
	RangeVar   *rv;
	TupleDesc	columns;
	TupleDesc	resultdesc;
	Datum		result;
	bool		isnull = false;
	const char *mode;

	/* A procedure called outside a transaction block has none yet */
	EnsurePortalSnapshotExists();

	if (PG_ARGISNULL(ARG_SOURCE_TABLE))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("source_table must not be null")));
	relid = PG_GETARG_OID(ARG_SOURCE_TABLE);

	/*
	 * The lock keeps the columns as they are until the view depends on them.
	 * It is taken only after a look at the privileges, so that nobody can
	 * queue for a table that is none of his business.
	 */
	cdc_check_readable(relid);
	source = table_open(relid, AccessShareLock);
	cdc_tracked_require(relid, &tracked);

	if (!PG_ARGISNULL(ARG_CHANGELOG_VIEW))
		name = text_to_cstring(PG_GETARG_TEXT_PP(ARG_CHANGELOG_VIEW));
	if (!PG_ARGISNULL(ARG_OPTIONS))
		parse_options(PG_GETARG_JSONB_P(ARG_OPTIONS), &start, &end);
	if (!PG_ARGISNULL(ARG_IDENTIFIER_COLUMNS))
		identifiers =
			get_identifier_columns(PG_GETARG_ARRAYTYPE_P(ARG_IDENTIFIER_COLUMNS),
								   source);
	if (PG_ARGISNULL(ARG_COMPUTE_UPDATES))
		compute_updates = !PG_ARGISNULL(ARG_IDENTIFIER_COLUMNS);
	else
		compute_updates = PG_GETARG_BOOL(ARG_COMPUTE_UPDATES);
	net_changes = !PG_ARGISNULL(ARG_NET_CHANGES) &&
		PG_GETARG_BOOL(ARG_NET_CHANGES);
	temporary = PG_ARGISNULL(ARG_TEMPORARY) ||
		PG_GETARG_BOOL(ARG_TEMPORARY);

	if (net_changes && !PG_ARGISNULL(ARG_IDENTIFIER_COLUMNS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("net_changes cannot be combined with identifier_columns"),
				 errdetail("Net changes are computed from whole rows.")));
	if (net_changes && compute_updates)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("net_changes cannot be combined with compute_updates"),
				 errdetail("Net changes are computed from whole rows.")));
	if (compute_updates && identifiers == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("compute_updates needs identifier_columns"),
				 errhint("Name the columns that identify a row in identifier_columns.")));

	mode = net_changes ? "net" : "all";
	if (!compute_updates)
		identifiers = NIL;

	resolve_range(&tracked, &start, &end, &range);

	rv = view_rangevar(name, RelationGetRelationName(source), temporary);
	columns = view_tupdesc(RelationGetDescr(source));
	name = create_view(rv, columns,
					   build_query(relid, tracked.logrelid, &range, mode, identifiers,
								   columns));
	table_close(source, NoLock);

	if (get_call_result_type(fcinfo, NULL, &resultdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	resultdesc = BlessTupleDesc(resultdesc);
	result = CStringGetTextDatum(name);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(resultdesc, &result,
													  &isnull)));
}

/*
 * Returns the names in identifier_columns as a list of strings.
 *
 * Raises 2202E for an array of arrays, 22004 for a NULL and 42703 for a name
 * that is not a column of the source.
 */
static List *
get_identifier_columns(ArrayType *array, Relation source)
{
	TupleDesc	tupdesc = RelationGetDescr(source);
	List	   *result = NIL;
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("identifier_columns must be a one-dimensional array")));

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &elems, &nulls, &nelems);
	for (int i = 0; i < nelems; i++)
	{
		char	   *name;
		int			attno;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("identifier_columns must not contain nulls")));
		name = TextDatumGetCString(elems[i]);

		for (attno = 0; attno < tupdesc->natts; attno++)
		{
			Form_pg_attribute att = TupleDescAttr(tupdesc, attno);

			if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
				break;
		}
		if (attno == tupdesc->natts)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							name, RelationGetRelationName(source))));

		result = lappend(result, name);
	}

	return result;
}

/*
 * Read the options into two bounds.  A JSON null counts as absent.
 *
 * Raises 22023 for an unknown option, for a value that is not what the option
 * takes, for a bound given twice, and for times in the wrong order.
 */
static void
parse_options(Jsonb *options, ViewBound *start, ViewBound *end)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	key;
	JsonbValue	value;

	if (!JB_ROOT_IS_OBJECT(options))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options must be a JSON object")));

	it = JsonbIteratorInit(&options->root);
	while ((token = JsonbIteratorNext(&it, &key, true)) != WJB_DONE)
	{
		char	   *name;
		char	   *str;
		ViewBound  *bound;
		bool		is_time;

		if (token != WJB_KEY)
			continue;
		token = JsonbIteratorNext(&it, &value, true);
		Assert(token == WJB_VALUE);

		name = pnstrdup(key.val.string.val, key.val.string.len);
		if (strcmp(name, "start-snapshot-id") == 0 ||
			strcmp(name, "end-snapshot-id") == 0)
			is_time = false;
		else if (strcmp(name, "start-timestamp") == 0 ||
				 strcmp(name, "end-timestamp") == 0)
			is_time = true;
		else
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("unrecognized option \"%s\"", name),
					 errhint("Valid options are start-snapshot-id, end-snapshot-id, start-timestamp and end-timestamp.")));

		if (value.type == jbvNull)
			continue;
		str = option_text(name, &value);
		bound = (name[0] == 's') ? start : end;

		if (is_time)
		{
			bound->time = parse_timestamp(name, str);
			bound->has_time = true;
		}
		else
		{
			bound->id = parse_snapshot_id(name, str);
			bound->has_id = true;
		}
	}

	if (start->has_id && start->has_time)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options start-snapshot-id and start-timestamp cannot be combined")));
	if (end->has_id && end->has_time)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options end-snapshot-id and end-timestamp cannot be combined")));
	if (start->has_time && end->has_time && start->time >= end->time)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("start-timestamp must be before end-timestamp")));
}

/*
 * Returns the value of an option as a string, whether it was a JSON number or
 * a JSON string.  Raises 22023 for anything else.
 */
static char *
option_text(const char *name, JsonbValue *value)
{
	switch (value->type)
	{
		case jbvString:
			return pnstrdup(value->val.string.val, value->val.string.len);
		case jbvNumeric:
			return DatumGetCString(DirectFunctionCall1(numeric_out,
													   NumericGetDatum(value->val.numeric)));
		default:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("option \"%s\" must be a number or a string",
							name)));
	}
	return NULL;				/* keep compiler quiet */
}

/*
 * Is the string an integer that fits in 64 bits?  If so, *result is set.
 */
static bool
is_integer(const char *str, int64 *result)
{
	const char *digits = (str[0] == '-') ? str + 1 : str;

	if (digits[0] == '\0' || strspn(digits, "0123456789") != strlen(digits))
		return false;

	errno = 0;
	*result = strtoi64(str, NULL, 10);
	return errno == 0;
}

/*
 * Returns the snapshot number in an option's value.  Whether there is such a
 * snapshot is checked later.  Raises 22023 if it is not an integer.
 */
static int64
parse_snapshot_id(const char *name, const char *str)
{
	int64		result;

	if (!is_integer(str, &result))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for option \"%s\": \"%s\"", name, str),
				 errdetail("The number of a snapshot is expected.")));
	return result;
}

/*
 * Returns the time in an option's value: an integer is milliseconds since
 * 1970, as in Iceberg; anything else is a timestamptz in any form PostgreSQL
 * reads.
 *
 * Raises 22008 for a time out of range and what timestamptz raises.
 */
static TimestampTz
parse_timestamp(const char *name, const char *str)
{
	const int64 epoch = (int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) *
		USECS_PER_DAY;
	int64		millis;
	int64		micros;

	if (!is_integer(str, &millis))
		return DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
													   CStringGetDatum(str),
													   ObjectIdGetDatum(InvalidOid),
													   Int32GetDatum(-1)));

	if (pg_mul_s64_overflow(millis, 1000, &micros) ||
		pg_sub_s64_overflow(micros, epoch, &micros) ||
		!IS_VALID_TIMESTAMP(micros))
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("value of option \"%s\" is out of range: %s",
						name, str)));
	return micros;
}

/*
 * Find the snapshots that the bounds stand for and check the range as a read
 * of it would.
 *
 * An end before the first commit gives an empty range, a start before it none
 * at all, that is, everything.  Once old history is gone neither can be told
 * from a time that is merely no longer known, so both are refused then.
 *
 * Raises what cdc_range_open() raises, and 55000 for a time that is too old.
 */
static void
resolve_range(const CdcTracked *tracked, const ViewBound *start,
			  const ViewBound *end, ViewRange *range)
{
	bool		has_end = end->has_id;
	CdcRange   *checked;

	range->has_start = start->has_id;
	range->start = start->id;
	range->end = end->id;

	if (start->has_time || end->has_time)
	{
		int64		newest;
		Snapshot	snapshot = cdc_horizon(tracked, &newest);

		if (start->has_time)
		{
			range->start = cdc_snapshot_before(tracked, start->time, newest,
											   snapshot);
			range->has_start = (range->start >= 0);
			if (!range->has_start && tracked->oldest > 0)
				report_expired(tracked, "start-timestamp");
		}
		if (end->has_time)
		{
			has_end = true;
			range->end = cdc_snapshot_before(tracked, end->time, newest,
											 snapshot);
			if (range->end < 0)
			{
				if (tracked->oldest > 0)
					report_expired(tracked, "end-timestamp");
				range->end = 0;
				if (!range->has_start)
				{
					range->has_start = true;
					range->start = 0;
				}
			}
		}
		UnregisterSnapshot(snapshot);
	}

	checked = cdc_range_open(tracked->relid, !range->has_start, range->start,
							 !has_end, range->end);
	range->end = checked->end;

	/* The first content is computed backwards from the table as it is now */
	if (checked->from_start)
		cdc_range_load_tail(checked);
	cdc_range_close(checked);
}

/*
 * Raise 55000: a time lies before the oldest snapshot that can be read.
 */
static void
report_expired(const CdcTracked *tracked, const char *option)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s is older than the changelog of table \"%s\"",
					option, get_rel_name(tracked->relid)),
			 errdetail("The oldest readable snapshot is " INT64_FORMAT ".",
					   tracked->oldest),
			 errhint("Rebuild the target from the full table.")));
}

/*
 * Returns the name of the view to make: "name" read as an SQL identifier,
 * with or without a schema, or by default the source's name with "_changes"
 * after it.
 *
 * Raises 42602 for something that is not an identifier or too many of them.
 */
static RangeVar *
view_rangevar(const char *name, const char *source, bool temporary)
{
	RangeVar   *rv;

	if (name == NULL)
		rv = makeRangeVar(NULL, makeObjectName(source, NULL, "changes"), -1);
	else
	{
		List	   *names = textToQualifiedNameList(cstring_to_text(name));

		if (list_length(names) > 2)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_NAME),
					 errmsg("improper view name (too many dotted names): %s",
							name)));
		rv = makeRangeVarFromNameList(names);
	}

	if (temporary)
		rv->relpersistence = RELPERSISTENCE_TEMP;
	return rv;
}

/*
 * Returns the columns of a changelog of a table: those of the table and then
 * the metadata.
 */
static TupleDesc
view_tupdesc(TupleDesc source)
{
	TupleDesc	result;
	int			natts = 0;
	AttrNumber	attno = 0;

	for (int i = 0; i < source->natts; i++)
		if (!TupleDescAttr(source, i)->attisdropped)
			natts++;

	result = CreateTemplateTupleDesc(natts + CDC_NUM_META_COLS);
	for (int i = 0; i < source->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(source, i);

		if (att->attisdropped)
			continue;
		TupleDescInitEntry(result, ++attno, NameStr(att->attname),
						   att->atttypid, att->atttypmod, 0);
		TupleDescInitEntryCollation(result, attno, att->attcollation);
	}

	TupleDescInitEntry(result, ++attno, CDC_COL_TYPE, TEXTOID, -1, 0);
	TupleDescInitEntry(result, ++attno, CDC_COL_ORDINAL, INT8OID, -1, 0);
	TupleDescInitEntry(result, ++attno, CDC_COL_SNAPSHOT, INT8OID, -1, 0);
	TupleDescInitEntry(result, ++attno, CDC_COL_TIMESTAMP, TIMESTAMPTZOID, -1, 0);

	return result;
}

/*
 * Do the wanted columns begin with those that a view has?  That is what
 * CREATE OR REPLACE VIEW asks for.
 */
static bool
has_leading_columns(TupleDesc view, TupleDesc wanted)
{
	if (view->natts > wanted->natts)
		return false;

	for (int i = 0; i < view->natts; i++)
	{
		Form_pg_attribute v = TupleDescAttr(view, i);
		Form_pg_attribute w = TupleDescAttr(wanted, i);

		if (v->attisdropped ||
			strcmp(NameStr(v->attname), NameStr(w->attname)) != 0 ||
			v->atttypid != w->atttypid ||
			v->atttypmod != w->atttypmod ||
			v->attcollation != w->attcollation)
			return false;
	}

	return true;
}

/*
 * Append a COLLATE clause.
 */
static void
append_collation(StringInfo buf, Oid collid)
{
	HeapTuple	tuple;
	Form_pg_collation form;

	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collid);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	appendStringInfo(buf, " COLLATE %s",
					 quote_qualified_identifier(get_namespace_name(form->collnamespace),
												NameStr(form->collname)));
	ReleaseSysCache(tuple);
}

/*
 * Returns the query of the view, palloc'd.  Every name in it is qualified and
 * quoted, since it is parsed under the caller's search_path.
 */
static char *
build_query(Oid relid, Oid logrelid, const ViewRange *range, const char *mode,
			List *identifiers, TupleDesc columns)
{
	StringInfoData buf;
	ListCell   *lc;
	const char *sep;

	initStringInfo(&buf);

	/* The parser makes a constant of the OID, so the view follows renames */
	appendStringInfo(&buf,
					 "SELECT * FROM %s.changelog_relative(relation => '%u'::pg_catalog.regclass",
					 CDC_SCHEMA, relid);
	if (range->has_start)
		appendStringInfo(&buf, ", start_snapshot => '" INT64_FORMAT "'::pg_catalog.int8",
						 range->start);
	else
		appendStringInfoString(&buf, ", start_snapshot => NULL::pg_catalog.int8");
	appendStringInfo(&buf, ", end_snapshot => '" INT64_FORMAT "'::pg_catalog.int8",
					 range->end);
	if (identifiers != NIL)
	{
		appendStringInfoString(&buf, ", identifiers => ARRAY[");
		sep = "";
		foreach(lc, identifiers)
		{
			appendStringInfo(&buf, "%s%s", sep,
							 quote_literal_cstr((char *) lfirst(lc)));
			sep = ", ";
		}
		appendStringInfoString(&buf, "]::pg_catalog.text[]");
	}
	appendStringInfo(&buf, ", mode => '%s'::pg_catalog.text, columns => ARRAY[", mode);
	sep = "";
	foreach(lc, cdc_log_column_names(logrelid))
	{
		appendStringInfo(&buf, "%s%s", sep,
						 quote_literal_cstr((char *) lfirst(lc)));
		sep = ", ";
	}
	appendStringInfoString(&buf, "]::pg_catalog.text[]) AS c(");

	sep = "";
	for (int i = 0; i < columns->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(columns, i);

		appendStringInfo(&buf, "%s%s %s", sep,
						 quote_identifier(NameStr(att->attname)),
						 format_type_extended(att->atttypid, att->atttypmod,
											  FORMAT_TYPE_TYPEMOD_GIVEN |
											  FORMAT_TYPE_FORCE_QUALIFY));
		if (OidIsValid(att->attcollation) &&
			att->attcollation != get_typcollation(att->atttypid))
			append_collation(&buf, att->attcollation);
		sep = ", ";
	}
	appendStringInfoChar(&buf, ')');

	return buf.data;
}

/*
 * Make the view, in place of one with the same name.
 *
 * Where the columns allow it, CREATE OR REPLACE keeps the privileges granted
 * on an old view and the views on top of it; otherwise the old one is
 * dropped, which is refused if something depends on it.
 *
 * Returns the quoted and qualified name.  Raises 42809 if the name belongs to
 * something that is not a view, and what CREATE VIEW raises.
 */
static char *
create_view(RangeVar *rv, TupleDesc columns, const char *query)
{
	Oid			namespaceid;
	Oid			oldid;
	bool		drop = false;
	char	   *schema;
	char	   *name;

	/* Checks the rights in the schema and on the old relation, and locks */
	namespaceid = RangeVarGetAndCheckCreationNamespace(rv, AccessExclusiveLock,
													   &oldid);
	schema = isTempNamespace(namespaceid) ? "pg_temp" :
		get_namespace_name(namespaceid);
	name = quote_qualified_identifier(schema, rv->relname);

	if (OidIsValid(oldid))
	{
		Relation	old = relation_open(oldid, NoLock);

		if (old->rd_rel->relkind != RELKIND_VIEW)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not a view", rv->relname),
					 errhint("Choose another name with changelog_view.")));
		drop = !has_leading_columns(RelationGetDescr(old), columns);
		relation_close(old, NoLock);
	}

	SPI_connect();
	if (drop)
		run_command(psprintf("DROP VIEW %s", name));
	run_command(psprintf("CREATE OR REPLACE VIEW %s AS %s", name, query));
	SPI_finish();

	return name;
}

/*
 * Run a utility command; SPI must be connected.
 */
static void
run_command(const char *command)
{
	int			rc = SPI_execute(command, false, 0);

	if (rc != SPI_OK_UTILITY)
		elog(ERROR, "SPI_execute returned %s", SPI_result_code_string(rc));
}
