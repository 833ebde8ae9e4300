/*-------------------------------------------------------------------------
 *
 * typed.c
 *		The typed changelog functions.
 *
 * cdc.track() makes a function <table>_changelog() that returns the columns
 * of the table, followed by those that a changelog adds.  Which table it reads
 * is in its catalog entry, as a setting attached to it.
 *
 * The function follows the table.  Its row of pg_proc is changed in place, so
 * that its privileges, and what depends on it, stay.  A view refers to the
 * columns of a function by their position.  Therefore, while anything depends
 * on the function:
 *
 * - columns that the table got later come after those that a changelog adds;
 * - the place of a column that was dropped is kept by a column of another name
 *	 and type, so that views which use it fail, and the others do not.
 *
 * When nothing depends on it any more, the next change brings the columns back
 * in order.  The C function behind it finds the columns by their names.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/typed.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "cdc_changelog.h"
#include "tracked.h"
#include "typed.h"

/* C symbol behind the functions */
#define TYPED_SYMBOL	"cdc_changelog_typed"

/* Names of columns that keep the place of dropped ones begin with this */
#define PLACEHOLDER		"_cdc_dropped_"

/* An output column of a function */
typedef struct TypedColumn
{
	char	   *name;
	Oid			type;
} TypedColumn;

/* The parameters of a function */
typedef struct TypedParams
{
	int			nargs;			/* all of them */
	Datum	   *types;
	Datum	   *modes;
	Datum	   *names;
	int			nin;			/* those before the output columns */
} TypedParams;

static char *function_name(const char *table, int number);
static bool is_foreign_function(HeapTuple tuple);
static char *choose_function_name(Relation rel, bool replace);
static int64 function_stamp(const CdcTracked *tracked);
static void read_params(HeapTuple tuple, TypedParams *params);
static List *output_columns(const TypedParams *params);
static void write_columns(HeapTuple tuple, const TypedParams *params,
						  List *columns);
static bool has_dependents(Oid funcid);
static List *table_columns(Relation rel);
static TypedColumn *find_column(List *columns, const char *name);
static List *add_column(List *columns, const char *name, Oid type);

/*
 * The name of the changelog function of a table: the table's name and
 * "_changelog", with a number behind it if that is not 0; the table's name is
 * cut where all would be too long.
 */
static char *
function_name(const char *table, int number)
{
	char		label[32];
	int			keep;

	if (number == 0)
		strlcpy(label, "_changelog", sizeof(label));
	else
		snprintf(label, sizeof(label), "_changelog%d", number);
	keep = pg_mbcliplen(table, strlen(table),
						NAMEDATALEN - 1 - (int) strlen(label));
	return psprintf("%.*s%s", keep, table, label);
}

/*
 * Is this a typed changelog function of a table that is not tracked in this
 * database?  It was restored without the extension's catalog rows.
 */
static bool
is_foreign_function(HeapTuple tuple)
{
	Datum symbol;
	bool		isnull;

	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang != ClanguageId)
		return false;
	symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);

	return !isnull && strcmp(TextDatumGetCString(symbol), TYPED_SYMBOL) == 0 &&
		cdc_function_table_id(((Form_pg_proc) GETSTRUCT(tuple))->oid) == 0;
}

/*
 * A name for the typed changelog function that no function has in the table's
 * schema.  With "replace" it may be that of a function that was made for a
 * table in another database.
 */
static char *
choose_function_name(Relation rel, bool replace)
{
	const char *table = RelationGetRelationName(rel);
	Oid			nspid = RelationGetNamespace(rel);

	for (int i = 0;; i++)
	{
		char	   *name = function_name(table, i);
		CatCList   *list = SearchSysCacheList1(PROCNAMEARGSNSP,
											   CStringGetDatum(name));
		bool		taken = false;

		for (int j = 0; j < list->n_members && !taken; j++)
		{
			HeapTuple	tuple = &list->members[j]->tuple;

			taken = ((Form_pg_proc) GETSTRUCT(tuple))->pronamespace == nspid &&
				!(replace && is_foreign_function(tuple));
		}
		ReleaseSysCacheList(list);
		if (!taken)
		{
			if (strncmp(name, table, strlen(table)) != 0 || i > 0)
				ereport(NOTICE,
						(errmsg("changelog function of table \"%s\" is named \"%s\"",
								table, name)));
			return name;
		}
	}
}

/*
 * Create the typed changelog function.
 */
void
cdc_typed_create(Relation rel, const CdcTracked *tracked)
{
	TupleDesc	desc = RelationGetDescr(rel);
	char	   *schema = get_namespace_name(RelationGetNamespace(rel));
	char	   *name = choose_function_name(rel, true);
	StringInfoData sql;
	Oid			funcid = InvalidOid;
	ObjectAddress function;
	ObjectAddress other;
	CatCList   *list;

	initStringInfo(&sql);
	appendStringInfo(&sql,
					 "CREATE OR REPLACE FUNCTION %s(start_snapshot bigint DEFAULT NULL, "
					 "end_snapshot bigint DEFAULT NULL, "
					 "identifiers text[] DEFAULT NULL, "
					 "mode text DEFAULT NULL, "
					 "validate boolean DEFAULT true, "
					 "consumer text DEFAULT NULL, "
					 "nowait boolean DEFAULT false) RETURNS TABLE(",
					 quote_qualified_identifier(schema, name));
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped)
			continue;
		appendStringInfo(&sql, "%s %s, ",
						 quote_identifier(NameStr(att->attname)),
						 format_type_extended(att->atttypid, -1,
											  FORMAT_TYPE_FORCE_QUALIFY));
	}
	appendStringInfo(&sql,
					 CDC_COL_TYPE " text, " CDC_COL_ORDINAL " bigint, "
					 CDC_COL_SNAPSHOT " bigint, " CDC_COL_TIMESTAMP " timestamptz) "
					 "LANGUAGE c VOLATILE PARALLEL UNSAFE ROWS 1000 "
					 "SUPPORT " CDC_SCHEMA ".changelog_support "
					 "SET " CDC_GUC_TABLE_ID " = '%d." INT64_FORMAT "' "
					 "AS '$libdir/cdc_changelog', '" TYPED_SYMBOL "'",
					 tracked->table_id, function_stamp(tracked));

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	cdc_run_ddl(sql.data);
	cdc_run_ddl(psprintf("ALTER FUNCTION %s OWNER TO %s",
						 quote_qualified_identifier(schema, name),
						 quote_identifier(GetUserNameFromId(rel->rd_rel->relowner,
															false))));
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	CommandCounterIncrement();

	list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
	for (int i = 0; i < list->n_members; i++)
	{
		HeapTuple	tuple = &list->members[i]->tuple;
		Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);

		if (form->pronamespace == RelationGetNamespace(rel))
			funcid = form->oid;
	}
	ReleaseSysCacheList(list);
	if (!OidIsValid(funcid))
		elog(ERROR, "could not find the new function \"%s\"", name);

	ObjectAddressSet(function, ProcedureRelationId, funcid);
	ObjectAddressSet(other, RelationRelationId, RelationGetRelid(rel));
	recordDependencyOn(&function, &other, DEPENDENCY_AUTO);
	ObjectAddressSet(other, ExtensionRelationId,
					 get_extension_oid("cdc_changelog", false));
	recordDependencyOn(&function, &other, DEPENDENCY_AUTO_EXTENSION);
	CommandCounterIncrement();
}

/*
 * What a typed changelog function holds besides the number of its table, to
 * know it from a table that has the same number in another database: the time
 * when tracking began, in microseconds since 1970.
 */
static int64
function_stamp(const CdcTracked *tracked)
{
	return tracked->tracked_at +
		(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

/*
 * The number of the tracked table that a typed changelog function reads, from
 * its catalog entry; 0 where the function is no such function, or its table is
 * not tracked in this database.
 */
int32
cdc_function_table_id(Oid funcid)
{
	const char *prefix = CDC_GUC_TABLE_ID "=";
	CdcTracked	tracked;
	int64		stamp = 0;
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Datum		config;
	bool		isnull;
	int32		result = 0;

	if (!HeapTupleIsValid(tuple))
		return 0;
	config = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proconfig, &isnull);
	if (!isnull)
	{
		Datum	   *settings;
		int			nsettings;

		deconstruct_array(DatumGetArrayTypeP(config), TEXTOID, -1, false,
						  TYPALIGN_INT, &settings, NULL, &nsettings);
		for (int i = 0; i < nsettings; i++)
		{
			char	   *setting = TextDatumGetCString(settings[i]);

			if (strncmp(setting, prefix, strlen(prefix)) == 0 &&
				sscanf(setting + strlen(prefix), "%d." INT64_FORMAT,
					   &result, &stamp) != 2)
				result = 0;
		}
	}
	ReleaseSysCache(tuple);

	if (result == 0 || !cdc_tracked_lookup_id(result, &tracked) ||
		function_stamp(&tracked) != stamp)
		return 0;
	return result;
}

/*
 * The typed changelog functions of a tracked table, as a list of OIDs.  A
 * function of another owner that claims to belong to the table is not ours; an
 * owner of InvalidOid stands for any.
 */
List *
cdc_typed_find(int32 table_id, Oid owner)
{
	List	   *result = NIL;
	Relation	rel = table_open(ProcedureRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_proc_prolang, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ClanguageId));
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
		Datum symbol;
		bool		isnull;

		symbol = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);

		if (!isnull &&
			strcmp(TextDatumGetCString(symbol), TYPED_SYMBOL) == 0 &&
			(!OidIsValid(owner) || form->proowner == owner) &&
			cdc_function_table_id(form->oid) == table_id)
			result = lappend_oid(result, form->oid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Take the parameters of a function apart.
 */
static void
read_params(HeapTuple tuple, TypedParams *params)
{
	bool		isnull;
	Datum		datum;
	int			n;

	datum = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proallargtypes, &isnull);
	if (isnull)
		elog(ERROR, "changelog function has no output columns");
	deconstruct_array(DatumGetArrayTypeP(datum), OIDOID, sizeof(Oid), true,
					  TYPALIGN_INT, &params->types, NULL, &params->nargs);
	datum = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargmodes, &isnull);
	if (isnull)
		elog(ERROR, "changelog function has no output columns");
	deconstruct_array(DatumGetArrayTypeP(datum), CHAROID, 1, true,
					  TYPALIGN_CHAR, &params->modes, NULL, &n);
	datum = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargnames, &isnull);
	if (isnull || n != params->nargs)
		elog(ERROR, "changelog function has no names of its columns");
	deconstruct_array(DatumGetArrayTypeP(datum), TEXTOID, -1, false,
					  TYPALIGN_INT, &params->names, NULL, &n);
	if (n != params->nargs)
		elog(ERROR, "changelog function has no names of its columns");

	params->nin = 0;
	while (params->nin < params->nargs &&
		   DatumGetChar(params->modes[params->nin]) != PROARGMODE_TABLE)
		params->nin++;
}

static List *
add_column(List *columns, const char *name, Oid type)
{
	TypedColumn *column = palloc(sizeof(TypedColumn));

	column->name = pstrdup(name);
	column->type = type;
	return lappend(columns, column);
}

/*
 * The output columns of a function, as a list of TypedColumn.
 */
static List *
output_columns(const TypedParams *params)
{
	List	   *result = NIL;

	for (int i = params->nin; i < params->nargs; i++)
		result = add_column(result, TextDatumGetCString(params->names[i]),
							DatumGetObjectId(params->types[i]));
	return result;
}

/*
 * The columns of a table's changelog in their order.
 */
static List *
table_columns(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *result = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped)
			result = add_column(result, NameStr(att->attname), att->atttypid);
	}
	result = add_column(result, CDC_COL_TYPE, TEXTOID);
	result = add_column(result, CDC_COL_ORDINAL, INT8OID);
	result = add_column(result, CDC_COL_SNAPSHOT, INT8OID);
	return add_column(result, CDC_COL_TIMESTAMP, TIMESTAMPTZOID);
}

static TypedColumn *
find_column(List *columns, const char *name)
{
	ListCell   *lc;

	foreach(lc, columns)
	{
		TypedColumn *column = lfirst(lc);

		if (strcmp(column->name, name) == 0)
			return column;
	}
	return NULL;
}

/*
 * Does a column of this name only keep the place of one that was dropped?
 */
bool
cdc_typed_placeholder(const char *name)
{
	return strncmp(name, PLACEHOLDER, strlen(PLACEHOLDER)) == 0;
}

/*
 * Give a function other output columns.
 */
static void
write_columns(HeapTuple tuple, const TypedParams *params, List *columns)
{
	Oid			funcid = ((Form_pg_proc) GETSTRUCT(tuple))->oid;
	int			nargs = params->nin + list_length(columns);
	Datum	   *types = palloc(sizeof(Datum) * nargs);
	Datum	   *modes = palloc(sizeof(Datum) * nargs);
	Datum	   *names = palloc(sizeof(Datum) * nargs);
	Datum		values[Natts_pg_proc] = {0};
	bool		nulls[Natts_pg_proc] = {0};
	bool		replaces[Natts_pg_proc] = {0};
	ObjectAddresses *referenced = new_object_addresses();
	ObjectAddress function;
	Relation	rel;
	ListCell   *lc;
	int			n = params->nin;

	memcpy(types, params->types, sizeof(Datum) * n);
	memcpy(modes, params->modes, sizeof(Datum) * n);
	memcpy(names, params->names, sizeof(Datum) * n);
	foreach(lc, columns)
	{
		TypedColumn *column = lfirst(lc);
		ObjectAddress type;

		types[n] = ObjectIdGetDatum(column->type);
		modes[n] = CharGetDatum(PROARGMODE_TABLE);
		names[n++] = CStringGetTextDatum(column->name);
		ObjectAddressSet(type, TypeRelationId, column->type);
		add_exact_object_address(&type, referenced);
	}

	values[Anum_pg_proc_proallargtypes - 1] =
		PointerGetDatum(construct_array(types, nargs, OIDOID, sizeof(Oid), true,
										TYPALIGN_INT));
	replaces[Anum_pg_proc_proallargtypes - 1] = true;
	values[Anum_pg_proc_proargmodes - 1] =
		PointerGetDatum(construct_array(modes, nargs, CHAROID, 1, true,
										TYPALIGN_CHAR));
	replaces[Anum_pg_proc_proargmodes - 1] = true;
	values[Anum_pg_proc_proargnames - 1] =
		PointerGetDatum(construct_array(names, nargs, TEXTOID, -1, false,
										TYPALIGN_INT));
	replaces[Anum_pg_proc_proargnames - 1] = true;

	rel = table_open(ProcedureRelationId, RowExclusiveLock);
	tuple = heap_modify_tuple(tuple, RelationGetDescr(rel), values, nulls,
							  replaces);
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	table_close(rel, RowExclusiveLock);

	/* it needs the types of its columns, and no others any more */
	ObjectAddressSet(function, ProcedureRelationId, funcid);
	deleteDependencyRecordsForClass(ProcedureRelationId, funcid,
									TypeRelationId, DEPENDENCY_NORMAL);
	record_object_address_dependencies(&function, referenced, DEPENDENCY_NORMAL);
	free_object_addresses(referenced);
	CommandCounterIncrement();
}

/*
 * Does anything depend on a function?
 */
static bool
has_dependents(Oid funcid)
{
	Relation	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	bool		result;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(ProcedureRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(funcid));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, key);
	result = HeapTupleIsValid(systable_getnext(scan));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Make a function return the columns that the table has now.
 */
void
cdc_typed_follow(Oid funcid, Relation rel)
{
	HeapTuple	tuple = SearchSysCacheCopy1(PROCOID, ObjectIdGetDatum(funcid));
	TypedParams params;
	List	   *old;
	List	   *wanted = table_columns(rel);
	List	   *result = NIL;
	ListCell   *lc;
	ListCell   *lc2;
	bool		same;

	if (!HeapTupleIsValid(tuple))
		return;
	read_params(tuple, &params);
	old = output_columns(&params);
	if (!has_dependents(funcid))
		result = wanted;
	else
	{
		foreach(lc, old)
		{
			TypedColumn *column = lfirst(lc);
			TypedColumn *now = find_column(wanted, column->name);

			if (now)
				result = lappend(result, now);
			else if (cdc_typed_placeholder(column->name))
				result = lappend(result, column);
			else
			{
				char	   *name = psprintf(PLACEHOLDER "%d",
											foreach_current_index(lc) + 1);

				/* of a type that the column did not have */
				result = add_column(result, name,
									column->type == TIDOID ? XIDOID : TIDOID);
			}
		}
		foreach(lc, wanted)
			if (!find_column(result, ((TypedColumn *) lfirst(lc))->name))
			result = lappend(result, lfirst(lc));
	}

	same = list_length(old) == list_length(result);
	if (same)
		forboth(lc, old, lc2, result)
	{
		TypedColumn *a = lfirst(lc);
		TypedColumn *b = lfirst(lc2);

		if (strcmp(a->name, b->name) != 0 || a->type != b->type)
			same = false;
	}
	if (!same)
		write_columns(tuple, &params, result);
}

/*
 * A column of the table has got another name.
 */
void
cdc_typed_rename_column(Oid funcid, const char *from, const char *to)
{
	HeapTuple	tuple = SearchSysCacheCopy1(PROCOID, ObjectIdGetDatum(funcid));
	TypedParams params;
	List	   *columns;
	TypedColumn *column;

	if (!HeapTupleIsValid(tuple))
		return;
	read_params(tuple, &params);
	columns = output_columns(&params);
	column = find_column(columns, from);
	if (column == NULL || find_column(columns, to) != NULL)
		return;
	column->name = pstrdup(to);
	write_columns(tuple, &params, columns);
}

/*
 * The table has got another name, or is in another schema: the function goes
 * with it, except that a name which somebody has given to it stays.
 * "oldname" is the former name of the table.
 */
void
cdc_typed_rename(Oid funcid, Relation rel, const char *oldname)
{
	HeapTuple	tuple = SearchSysCacheCopy1(PROCOID, ObjectIdGetDatum(funcid));
	Form_pg_proc form;
	Relation	catalog;
	char	   *name;
	Oid			nspid = RelationGetNamespace(rel);
	Oid			oldnspid;
	bool		given = true;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_proc) GETSTRUCT(tuple);
	for (int i = 0; i < 100 && given; i++)
		if (strcmp(NameStr(form->proname), function_name(oldname, i)) == 0)
			given = false;
	oldnspid = form->pronamespace;
	if (given && oldnspid == nspid)
		return;
	if (given && !SearchSysCacheExists3(PROCNAMEARGSNSP,
										NameGetDatum(&form->proname),
										PointerGetDatum(&form->proargtypes),
										ObjectIdGetDatum(nspid)))
		name = pstrdup(NameStr(form->proname));
	else if (oldnspid == nspid &&
			 strcmp(NameStr(form->proname),
					function_name(RelationGetRelationName(rel), 0)) == 0)
		return;
	else
		name = choose_function_name(rel, false);

	namestrcpy(&form->proname, name);
	form->pronamespace = nspid;
	catalog = table_open(ProcedureRelationId, RowExclusiveLock);
	CatalogTupleUpdate(catalog, &tuple->t_self, tuple);
	table_close(catalog, RowExclusiveLock);
	if (oldnspid != nspid &&
		changeDependencyFor(ProcedureRelationId, funcid, NamespaceRelationId,
							oldnspid, nspid) != 1)
		elog(ERROR, "could not change the schema of function %u", funcid);
	CommandCounterIncrement();
}
