/*-------------------------------------------------------------------------
 *
 * meaning.c
 *		What a query means, as a number.
 *
 * The same text of a query may mean something else from one day to the next,
 * although no row has changed: names are looked up anew, in a search_path where
 * they may be found in another place by now; views and functions are replaced;
 * columns change their names.  Here the meaning of a query is made a number,
 * which is another one after any of this.
 *
 * The number is a hash of the query as the rewriter leaves it, in which all
 * names have become OIDs and all views their definitions, and of the definitions
 * of the functions in it.  Before that, what has no say in the result is taken
 * out:
 *
 * - Where in the text something was.
 * - Columns of relations and functions that are not used.  A column of a typed
 *	 changelog function is known by the column of its table, because the function
 *	 moves its columns when the table gets or loses one.
 * - Dates and times in the text of the query, which look different in the tree
 *	 from day to day ('today') or from one time zone to another.
 *
 * A function in a language other than C can do anything by names that are in its
 * body.  Only where it is immutable, and so must not look at anything, is its
 * definition all that there is to it.  Otherwise the query is opaque, as it is
 * with built-in functions that look up names, or run queries, that come as text.
 *
 * OIDs differ between servers, also before and after pg_upgrade.  Therefore some
 * bits of the number tell where it is from.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/meaning.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/catversion.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "catalog.h"
#include "meaning.h"
#include "typed.h"

/* To be raised when the same query gets another number than before */
#define MEANING_VERSION		1

/* The bits of a number that tell where it is from */
#define ORIGIN_BITS			16
#define ORIGIN_SHIFT		(64 - ORIGIN_BITS)

/* Columns without a number of their own come after all that have one */
#define OTHER_COLUMN		2000

/* A query that we are in */
typedef struct Level
{
	List	   *rtable;
	AttrNumber **columns;		/* for each entry; NULL if not known yet */
} Level;

typedef struct Walk
{
	List	   *levels;			/* of Level *, the outermost first */
	int			depth;			/* how many of these enclose the node */
	List	   *functions;		/* OIDs of those already described */
	StringInfoData more;		/* what there is besides the tree */
	bool		opaque;
} Walk;

static uint64 origin(void);
static void forget_locations(char *text);
static Node *reduce(Node *node, void *context);
static Node *reduce_query(Query *query, Walk *walk);
static Node *reduce_var(Var *var, Walk *walk);
static AttrNumber *typed_columns(RangeTblEntry *rte);
static bool depends_on_settings(Oid type);
static bool note_function(Oid funcid, void *context);
static void note_aggregate(Oid funcid, Walk *walk);
static bool looks_up_names(Oid funcid);
static void append_value(StringInfo buf, HeapTuple tuple, AttrNumber attnum);

/*
 * Add to a meaning that of queries, as a cached plan holds them.
 */
void
cdc_meaning_add(CdcMeaning *meaning, List *queries)
{
	Walk		walk = {0};
	Node	   *reduced;
	char	   *text;
	uint64		hash;

	initStringInfo(&walk.more);
	reduced = reduce((Node *) queries, &walk);
	text = nodeToString(reduced);

	forget_locations(text);

	hash = hash_combine64((uint64) meaning->number,
						  hash_bytes_extended((unsigned char *) text,
											  strlen(text), 0));
	hash = hash_combine64(hash,
						  hash_bytes_extended((unsigned char *) walk.more.data,
											  walk.more.len, 0));
	hash >>= ORIGIN_BITS;
	meaning->number = (int64) (origin() << ORIGIN_SHIFT | Max(hash, 1));
	meaning->opaque |= walk.opaque;
}

/*
 * Was a number made where OIDs are the same as here?
 */
bool
cdc_meaning_comparable(int64 number)
{
	return number != 0 && (uint64) number >> ORIGIN_SHIFT == origin();
}

/*
 * What tells this server from others, in ORIGIN_BITS.
 */
static uint64
origin(void)
{
	uint64		hash = hash_combine64(GetSystemIdentifier(), CATALOG_VERSION_NO);

	return hash_combine64(hash, MEANING_VERSION) >> ORIGIN_SHIFT;
}

/*
 * Take the places in the text of a query out of the text of its tree, where
 * blanks in names and constants are escaped.
 */
static void
forget_locations(char *text)
{
	static const char *const labels[] =
	{":location ", ":stmt_location ", ":stmt_len "};
	char	   *to = text;
	char	   *from = text;

	while (*from != '\0')
	{
		bool		label = from[0] == ' ' && from[1] == ':';

		*to++ = *from++;
		for (int i = 0; label && i < lengthof(labels); i++)
		{
			Size		len = strlen(labels[i]);

			if (strncmp(from, labels[i], len) != 0)
				continue;
			from += len;
			from += strspn(from, "-0123456789");
			break;
		}
	}
	*to = '\0';
}

/* ----------------------------------------------------------------
 *		The tree
 * ----------------------------------------------------------------
 */

/*
 * A copy of a tree without what has no say in the result.
 */
static Node *
reduce(Node *node, void *context)
{
	Walk	   *walk = context;
	Node	   *result;

	if (node == NULL)
		return NULL;
	if (IsA(node, Query))
		return reduce_query((Query *) node, walk);
	if (IsA(node, Var))
		return reduce_var((Var *) node, walk);

	(void) check_functions_in_node(node, note_function, walk);
	result = expression_tree_mutator(node, reduce, context);
	if (IsA(result, RangeTblFunction))
	{
		RangeTblFunction *function = (RangeTblFunction *) result;

		if (function->funccolnames == NIL)
			function->funccolcount = 0;
	}
	else if (IsA(result, Const))
	{
		Const	   *constant = (Const *) result;

		/* what is in a view has no place in the text, and stays as it is */
		if (constant->location >= 0 && depends_on_settings(constant->consttype))
		{
			constant->constvalue = (Datum) 0;
			constant->constisnull = true;
		}
	}
	return result;
}

static Node *
reduce_query(Query *query, Walk *walk)
{
	Level		level;
	List	   *levels = walk->levels;
	int			depth = walk->depth;
	Query	   *result;
	ListCell   *lc;

	level.rtable = query->rtable;
	level.columns = palloc0(sizeof(AttrNumber *) *
							(list_length(query->rtable) + 1));
	walk->levels = lappend(list_truncate(list_copy(levels), depth), &level);
	walk->depth = depth + 1;
	result = query_tree_mutator(query, reduce, walk,
								QTW_IGNORE_JOINALIASES);
	walk->levels = levels;
	walk->depth = depth;

	foreach(lc, result->rtable)
	{
		RangeTblEntry *rte = lfirst(lc);

		rte->alias = NULL;
		rte->eref = NULL;
		rte->joinaliasvars = NIL;
		rte->joinleftcols = NIL;
		rte->joinrightcols = NIL;
	}
	return (Node *) result;
}

/*
 * A column: where it comes from, whatever it is called.
 */
static Node *
reduce_var(Var *var, Walk *walk)
{
	int			depth = walk->depth - (int) var->varlevelsup;
	Level	   *level = list_nth(walk->levels, depth - 1);
	RangeTblEntry *rte = list_nth(level->rtable, var->varno - 1);
	Var		   *result;
	ListCell   *lc;

	if (rte->rtekind == RTE_JOIN && var->varattno > 0)
	{
		int			inner = walk->depth;
		Node	   *column;

		walk->depth = depth;
		column = reduce(list_nth(rte->joinaliasvars, var->varattno - 1), walk);
		walk->depth = inner;
		return column;
	}

	result = copyObject(var);
	result->varlevelsup = depth;
	if (var->varattno == InvalidAttrNumber)
	{
		foreach(lc, rte->eref->colnames)
			appendStringInfo(&walk->more, "%s,",
							 quote_identifier(strVal(lfirst(lc))));
	}
	else if (rte->rtekind == RTE_FUNCTION && !rte->funcordinality &&
			 list_length(rte->functions) == 1)
	{
		AttrNumber **columns = &level->columns[var->varno - 1];

		if (*columns == NULL)
			*columns = typed_columns(rte);
		result->varattno = (*columns)[var->varattno - 1];
	}
	return (Node *) result;
}

/*
 * For each column that a function in a FROM clause has, a number that it keeps:
 * for those of a typed changelog function that of the table's column.
 */
static AttrNumber *
typed_columns(RangeTblEntry *rte)
{
	RangeTblFunction *function = linitial(rte->functions);
	int			ncolumns = list_length(rte->eref->colnames);
	AttrNumber *result = palloc(sizeof(AttrNumber) * (ncolumns + 1));
	CdcTracked	tracked;
	TupleDesc	desc;
	Oid			type;
	int32		table_id = 0;

	for (int i = 0; i < ncolumns; i++)
		result[i] = i + 1;
	if (IsA(function->funcexpr, FuncExpr))
		table_id =
			cdc_function_table_id(((FuncExpr *) function->funcexpr)->funcid);
	if (table_id == 0 || !cdc_tracked_lookup_id(table_id, &tracked) ||
		get_expr_result_type(function->funcexpr, &type,
							 &desc) != TYPEFUNC_COMPOSITE)
		return result;

	for (int i = 0; i < Min(ncolumns, desc->natts); i++)
	{
		const char *name = NameStr(TupleDescAttr(desc, i)->attname);

		result[i] = get_attnum(tracked.relid, name);
		if (result[i] == InvalidAttrNumber)
			result[i] = OTHER_COLUMN +
				hash_bytes((const unsigned char *) name, strlen(name)) % 30000;
	}
	return result;
}

/*
 * Does the value that a constant of some type has in the text of a query depend
 * on settings of the session, or on the time?
 */
static bool
depends_on_settings(Oid type)
{
	Oid			inner;

	type = getBaseType(type);
	if (OidIsValid(inner = get_base_element_type(type)) ||
		OidIsValid(inner = get_range_subtype(type)) ||
		OidIsValid(inner = get_multirange_range(type)))
		return depends_on_settings(inner);
	switch (TypeCategory(type))
	{
		case TYPCATEGORY_DATETIME:
		case TYPCATEGORY_TIMESPAN:
			return true;
		default:
			return type == CASHOID;
	}
}

/* ----------------------------------------------------------------
 *		Functions
 * ----------------------------------------------------------------
 */

/*
 * Describe a function, unless it comes with the server.  The result is for
 * check_functions_in_node().
 */
static bool
note_function(Oid funcid, void *context)
{
	static const AttrNumber definition[] =
	{
		Anum_pg_proc_prosrc,
		Anum_pg_proc_probin,
		Anum_pg_proc_prosqlbody,
		Anum_pg_proc_proargdefaults,
		Anum_pg_proc_proconfig
	};
	Walk	   *walk = context;
	HeapTuple	tuple;
	Form_pg_proc form;

	if (list_member_oid(walk->functions, funcid))
		return false;
	walk->functions = lappend_oid(walk->functions, funcid);
	walk->opaque |= looks_up_names(funcid);
	if (funcid < FirstNormalObjectId)
		return false;

	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", funcid);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	walk->opaque |= form->prolang != INTERNALlanguageId &&
		form->prolang != ClanguageId && form->provolatile != PROVOLATILE_IMMUTABLE;
	appendStringInfo(&walk->more, "%u %u %d", funcid, form->prolang,
					 form->proisstrict);
	for (int i = 0; i < lengthof(definition); i++)
		append_value(&walk->more, tuple, definition[i]);
	if (form->prokind == PROKIND_AGGREGATE)
		note_aggregate(funcid, walk);
	ReleaseSysCache(tuple);
	return false;
}

/*
 * Describe the functions of an aggregate.
 */
static void
note_aggregate(Oid funcid, Walk *walk)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(funcid));
	Form_pg_aggregate form;
	Oid			functions[4];
	bool		isnull;
	Datum		initial;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", funcid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	functions[0] = form->aggtransfn;
	functions[1] = form->aggfinalfn;
	functions[2] = form->aggmtransfn;
	functions[3] = form->aggmfinalfn;
	for (int i = 0; i < lengthof(functions); i++)
	{
		appendStringInfo(&walk->more, " %u", functions[i]);
		if (OidIsValid(functions[i]))
			(void) note_function(functions[i], walk);
	}
	initial = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval,
							  &isnull);
	if (!isnull)
		appendStringInfo(&walk->more, " %s", TextDatumGetCString(initial));
	ReleaseSysCache(tuple);
}

/*
 * Does a function find objects by names that it is given as text, or run queries
 * that it is given?  That is what those do which come with the server, are not
 * immutable, and return a kind of OID, or XML.
 */
static bool
looks_up_names(Oid funcid)
{
	switch (get_func_rettype(funcid))
	{
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGCLASSOID:
		case REGCOLLATIONOID:
		case REGTYPEOID:
		case REGROLEOID:
		case REGNAMESPACEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case XMLOID:
			return func_volatile(funcid) != PROVOLATILE_IMMUTABLE;
		default:
			return false;
	}
}

/*
 * Append a value of a row of pg_proc, whatever its type.
 */
static void
append_value(StringInfo buf, HeapTuple tuple, AttrNumber attnum)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, tuple, attnum, &isnull);
	struct varlena *bytes;

	appendStringInfoChar(buf, isnull ? '-' : '+');
	if (isnull)
		return;
	bytes = PG_DETOAST_DATUM_PACKED(value);
	appendStringInfo(buf, "%zu ", (Size) VARSIZE_ANY_EXHDR(bytes));
	appendBinaryStringInfo(buf, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
}
