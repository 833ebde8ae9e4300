/*-------------------------------------------------------------------------
 *
 * reshape.c
 *		Keeping the columns of a log in step with those of its table.
 *
 * After a command has changed the columns of a tracked table, all segments of
 * its log get the same change, so that the table's attribute n is attribute
 * n + 1 of the log, holes of dropped columns included, and the rows in the log
 * go on being images of rows that the table has or had:
 *
 * - A column that is added reads as the same value in old rows of both.  If
 *	 the table was rewritten for it, old rows of the table have values that the
 *	 log cannot know: a gap.
 * - A column that is dropped is dropped.
 * - A column whose type is changed is cast in the same way.  The content of
 *	 the table is then the cast of what it was, and so are the changes.  If the
 *	 cast may lose or change something, the targets cannot be told: a gap.
 *
 * What a command computes with USING is computed for the log as well where
 * that is certain to give the same.  Where the values in the log cannot be
 * converted, because that would run code of users, is not certain, or fails
 * for a value of long ago, the history before the command cannot be told in
 * the table's new form: it is given up, and the gap becomes the oldest snapshot
 * that can be read.
 *
 * Columns of the log are named c1, c2, ... after the attribute numbers of the
 * table when it was tracked.  The attribute numbers are others after dump and
 * restore, the names are not, so they identify a column for good; those of
 * columns added later also carry a transaction number, for an attribute number
 * may come again.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/reshape.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tupdesc_details.h"
#include "access/xact.h"
#include "catalog/heap.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "cdc_changelog.h"
#include "commit.h"
#include "horizon.h"
#include "log.h"
#include "partition.h"
#include "reshape.h"
#include "segment.h"
#include "tracked.h"

/* What has to be done to one column of the log, from the least to the most */
typedef enum ColumnStep
{
	STEP_NONE,
	STEP_TYPMOD,				/* only the type modifier is another */
	STEP_RELABEL,				/* another type for the same bytes */
	STEP_CAST,					/* other bytes */
	STEP_USING,					/* what the command gave */
	STEP_CLEAR					/* old values cannot be cast */
} ColumnStep;

static void column_type(Form_pg_attribute att, Oid *type, int32 *typmod);
static void changed_type(Form_pg_attribute att, Form_pg_attribute log, Oid *type,
						 int32 *typmod);
static Node *cast_expression(Form_pg_attribute from, Oid type, int32 typmod);
static bool keeps_bytes(Node *cast);
static bool is_trusted(Node *expr, void *context);
static bool is_trusted_function(Oid funcid);
static bool is_lossless(Form_pg_attribute from, Oid type, int32 typmod);
static CdcUsing *find_using(List *usings, const char *column);
static ColumnStep column_step(Form_pg_attribute att, Form_pg_attribute log,
							  const CdcUsing *using);
static bool in_step(TupleDesc source, TupleDesc log);
static Oid	storage_of(Oid relid);
static void alter_log(Oid logrelid, List *cmds);
static AlterTableCmd *make_command(AlterTableType subtype, const char *column,
								   Node *def);
static void drop_columns(TupleDesc source, Oid logrelid);
static void add_columns(TupleDesc source, Oid logrelid, const char *suffix);
static void change_columns(TupleDesc source, Oid logrelid,
						   const ColumnStep *steps, List *usings);
static void change_segments(TupleDesc source, CdcSegment *segments,
							int nsegments, const ColumnStep *steps,
							List *usings);
static bool try_change_segments(TupleDesc source, CdcSegment *segments,
								int nsegments, const ColumnStep *steps,
								List *usings);
static void set_attribute(Oid relid, AttrNumber attnum, const Datum *values,
						  const bool *replaces);
static void set_missing(Oid logrelid, AttrNumber attnum, Datum value,
						Form_pg_attribute att);
static void give_up_history(const CdcTracked *tracked, CdcSegment *segments,
							int nsegments);

/*
 * The type that a column of the table has in the log.
 */
static void
column_type(Form_pg_attribute att, Oid *type, int32 *typmod)
{
	*typmod = att->atttypmod;
	*type = getBaseTypeAndTypmod(att->atttypid, typmod);
}

/*
 * The same for a column that is there in the log.  A limit of length that has
 * become shorter is none for the log: it has the rows from before, which could
 * not be restored from a dump otherwise.
 */
static void
changed_type(Form_pg_attribute att, Form_pg_attribute log, Oid *type,
			 int32 *typmod)
{
	column_type(att, type, typmod);
	if (*type == VARCHAROID &&
		(log->atttypid != VARCHAROID || log->atttypmod < 0 ||
		 (*typmod >= 0 && *typmod < log->atttypmod)))
		*typmod = -1;
}

/*
 * The expression with which ALTER TABLE casts a column, which is Var 1 of its
 * relation, to another type; NULL if there is no such cast.
 */
static Node *
cast_expression(Form_pg_attribute from, Oid type, int32 typmod)
{
	ParseState *pstate = make_parsestate(NULL);
	Node	   *expr;

	expr = (Node *) makeVar(1, from->attnum, from->atttypid, from->atttypmod,
							from->attcollation, 0);
	expr = coerce_to_target_type(pstate, expr, from->atttypid, type, typmod,
								 COERCION_ASSIGNMENT, COERCE_IMPLICIT_CAST, -1);
	if (expr == NULL)
		return NULL;
	assign_expr_collations(pstate, expr);
	free_parsestate(pstate);
	return (Node *) expression_planner((Expr *) expr);
}

/*
 * Does a cast leave every value as it is, to the last byte?
 */
static bool
keeps_bytes(Node *cast)
{
	while (IsA(cast, RelabelType))
		cast = (Node *) ((RelabelType *) cast)->arg;
	return IsA(cast, Var);
}

/*
 * Is a function written in C, so that no user but a superuser has made it?
 */
static bool
is_trusted_function(Oid funcid)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	Oid			language;

	if (!HeapTupleIsValid(tuple))
		return false;
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language == INTERNALlanguageId || language == ClanguageId;
}

static bool
is_untrusted_function(Oid funcid, void *context)
{
	return !is_trusted_function(funcid);
}

/*
 * Walker that returns true at the first node that may run code of users.
 */
static bool
runs_user_code(Node *node, void *context)
{
	Oid			function;
	bool		flag;

	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
		case T_RelabelType:
		case T_CaseTestExpr:
		case T_ArrayCoerceExpr:
		case T_List:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_ArrayExpr:
			break;
		case T_CoerceViaIO:
			{
				CoerceViaIO *expr = (CoerceViaIO *) node;

				getTypeOutputInfo(exprType((Node *) expr->arg), &function, &flag);
				if (!is_trusted_function(function))
					return true;
				/* the input of these checks the constraints of domains */
				if (get_typtype(expr->resulttype) != TYPTYPE_BASE &&
					get_typtype(expr->resulttype) != TYPTYPE_ENUM)
					return true;
				break;
			}
		default:
			return true;
	}
	if (check_functions_in_node(node, is_untrusted_function, NULL))
		return true;
	return expression_tree_walker(node, runs_user_code, context);
}

/*
 * May a cast be run with the rights of the extension's owner?
 */
static bool
is_trusted(Node *expr, void *context)
{
	return !runs_user_code(expr, context);
}

/*
 * Is the cast of a column to another type known to tell all different values
 * apart, and to mean the same by each?
 */
static bool
is_lossless(Form_pg_attribute from, Oid type, int32 typmod)
{
	static const struct
	{
		Oid			from;
		Oid			to;
	}			known[] = {
		{INT2OID, INT4OID}, {INT2OID, INT8OID}, {INT4OID, INT8OID},
		{INT2OID, NUMERICOID}, {INT4OID, NUMERICOID}, {INT8OID, NUMERICOID},
		{INT2OID, FLOAT4OID}, {INT2OID, FLOAT8OID}, {INT4OID, FLOAT8OID},
		{FLOAT4OID, FLOAT8OID}, {DATEOID, TIMESTAMPOID},
		{INT2OID, TEXTOID}, {INT4OID, TEXTOID}, {INT8OID, TEXTOID},
		{NUMERICOID, TEXTOID}, {BOOLOID, TEXTOID}, {UUIDOID, TEXTOID},
		{INT2OID, VARCHAROID}, {INT4OID, VARCHAROID}, {INT8OID, VARCHAROID},
		{NUMERICOID, VARCHAROID}, {BOOLOID, VARCHAROID}, {UUIDOID, VARCHAROID}
	};
	Node	   *cast = cast_expression(from, type, typmod);

	if (cast == NULL)
		return false;
	if (keeps_bytes(cast))
		return true;
	if (typmod >= 0 || !is_trusted(cast, NULL))
		return false;
	if (type_is_enum(from->atttypid) &&
		(type == TEXTOID || type == VARCHAROID))
		return true;
	for (int i = 0; i < lengthof(known); i++)
		if (known[i].from == from->atttypid && known[i].to == type)
			return true;
	return false;
}

/*
 * The expression that the command gave for a column, or NULL.
 */
static CdcUsing *
find_using(List *usings, const char *column)
{
	ListCell   *lc;

	foreach(lc, usings)
		if (strcmp(((CdcUsing *) lfirst(lc))->column, column) == 0)
		return lfirst(lc);
	return NULL;
}

/* For rename_columns() */
typedef struct RenameContext
{
	Relation	rel;			/* the table */
	TupleDesc	log;
	bool		failed;
} RenameContext;

/*
 * Make an expression on columns of the table one on columns of the log.  Only
 * plain names of columns are understood, and only such columns as have the
 * same type in both.
 */
static bool
rename_columns(Node *node, RenameContext *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, ColumnRef))
	{
		ColumnRef  *ref = (ColumnRef *) node;
		Form_pg_attribute att = NULL;

		if (list_length(ref->fields) == 1 && IsA(linitial(ref->fields), String))
		{
			AttrNumber	attno = get_attnum(RelationGetRelid(context->rel),
										   strVal(linitial(ref->fields)));

			if (attno > 0 && attno + 1 <= context->log->natts)
				att = TupleDescAttr(context->log, attno);
		}
		if (att == NULL || att->attisdropped)
			context->failed = true;
		else
			ref->fields = list_make1(makeString(pstrdup(NameStr(att->attname))));
		return false;
	}
	/* kinds of nodes that are not known here raise an error in the walker */
	switch (nodeTag(node))
	{
		case T_A_Expr:
		case T_A_Const:
		case T_BoolExpr:
		case T_FuncCall:
		case T_TypeCast:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CollateClause:
		case T_A_ArrayExpr:
		case T_List:
		case T_TypeName:
			return raw_expression_tree_walker(node, rename_columns, context);
		default:
			context->failed = true;
			return true;
	}
}

/*
 * Find out how the expression that a command gave for a column is computed
 * from rows of the log: "using->cast" is left NULL where that is not certain.
 *
 * This is called with the rights and the search_path of the user, as the
 * expression was understood, and when the log still has its old columns.  It
 * must give the same for the same row whenever it is computed, and run no code
 * of users, for it is going to be run with other rights.
 */
void
cdc_using_prepare(const CdcTracked *tracked, Relation rel, CdcUsing *using)
{
	ParseState *pstate = make_parsestate(NULL);
	Relation	log = table_open(tracked->logrelid, AccessShareLock);
	Node	   *expr = copyObject(using->raw);
	RenameContext context;

	context.rel = rel;
	context.log = RelationGetDescr(log);
	context.failed = false;
	(void) rename_columns(expr, &context);
	if (!context.failed)
	{
		ParseNamespaceItem *item;
		Node	   *planned;

		item = addRangeTableEntryForRelation(pstate, log, AccessShareLock, NULL,
											 false, true);
		addNSItemToQuery(pstate, item, false, true, true);
		expr = transformExpr(pstate, expr, EXPR_KIND_ALTER_COL_TRANSFORM);
		assign_expr_collations(pstate, expr);
		planned = (Node *) expression_planner((Expr *) copyObject(expr));
		if (!contain_mutable_functions(expr) && is_trusted(expr, NULL) &&
			is_trusted(planned, NULL))
			using->cast = expr;
	}
	table_close(log, NoLock);
	free_parsestate(pstate);
}

/*
 * What has to be done to a column of the log that is there, and whose column
 * of the table is too.  "using" is what the command gave for it, or NULL.
 */
static ColumnStep
column_step(Form_pg_attribute att, Form_pg_attribute log,
			const CdcUsing *using)
{
	Oid			type;
	int32		typmod;
	Node	   *cast;

	changed_type(att, log, &type, &typmod);
	if (type == log->atttypid && typmod == log->atttypmod &&
		att->attcollation == log->attcollation)
		return STEP_NONE;

	cast = cast_expression(log, type, typmod);
	if (cast == NULL)
		return using && using->cast ? STEP_USING : STEP_CLEAR;
	if (type == log->atttypid && att->attcollation == log->attcollation &&
		(keeps_bytes(cast) || type == VARCHAROID))
		return STEP_TYPMOD;
	if (keeps_bytes(cast))
		return STEP_RELABEL;

	/* the log need not obey a limit of length that its rows are older than */
	if (type == VARCHAROID && keeps_bytes(cast_expression(log, type, -1)))
		return STEP_RELABEL;
	if (using && !is_lossless(log, type, typmod))
		return using->cast ? STEP_USING : STEP_CLEAR;
	return is_trusted(cast, NULL) ? STEP_CAST : STEP_CLEAR;
}

/*
 * Is nothing to be done to a log?
 */
static bool
in_step(TupleDesc source, TupleDesc log)
{
	if (log->natts != source->natts + 1)
		return false;
	for (int i = 0; i < source->natts; i++)
	{
		Form_pg_attribute a = TupleDescAttr(source, i);
		Form_pg_attribute b = TupleDescAttr(log, i + CDC_LOG_FIRST_COL - 1);
		Oid			type;
		int32		typmod;

		if (a->attisdropped != b->attisdropped)
			return false;
		if (a->attisdropped)
			continue;
		changed_type(a, b, &type, &typmod);
		if (type != b->atttypid || typmod != b->atttypmod ||
			a->attcollation != b->attcollation)
			return false;
	}
	return true;
}

/*
 * Does the log of a tracked table have the table's columns?  *plain is set if
 * none of them is of a domain.  Keeps no lock.
 */
bool
cdc_log_in_step(const CdcTracked *tracked, bool *plain)
{
	Relation	rel = try_table_open(tracked->relid, AccessShareLock);
	Relation	log;
	bool		result;

	*plain = false;
	if (rel == NULL)
		return true;
	log = try_table_open(tracked->logrelid, AccessShareLock);
	result = log == NULL ||
		in_step(RelationGetDescr(rel), RelationGetDescr(log));
	*plain = true;
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), i);

		if (!att->attisdropped && get_typtype(att->atttypid) == TYPTYPE_DOMAIN)
			*plain = false;
	}
	if (log)
		table_close(log, AccessShareLock);
	table_close(rel, AccessShareLock);
	return result;
}

/*
 * Why a rewrite of a tracked table by ALTER TABLE makes a gap, or NULL if the
 * log can follow it.
 *
 * This is called when the catalogs say what the table is going to be, but the
 * log is still what it was.  "reason" is a combination of AT_REWRITE_ flags.
 */
const char *
cdc_rewrite_reason(const CdcTracked *tracked, Relation rel, int reason,
				   List *usings)
{
	TupleDesc	source = RelationGetDescr(rel);
	Relation	log;
	TupleDesc	desc;
	const char *result = NULL;

	if (reason & AT_REWRITE_DEFAULT_VAL)
		return "the table was rewritten with values for a new column";

	log = table_open(tracked->logrelid, AccessShareLock);
	desc = RelationGetDescr(log);
	for (int i = 0; i < source->natts && result == NULL; i++)
	{
		Form_pg_attribute att = TupleDescAttr(source, i);
		int			pos = i + CDC_LOG_FIRST_COL - 1;
		Oid			type;
		int32		typmod;

		if (att->attisdropped)
			continue;
		if (pos >= desc->natts)
			result = "the table was rewritten with values for a new column";
		else if (find_using(usings, NameStr(att->attname)))
			result = psprintf("the values of column \"%s\" were replaced",
							  NameStr(att->attname));
		else if (!TupleDescAttr(desc, pos)->attisdropped)
		{
			Form_pg_attribute old = TupleDescAttr(desc, pos);

			column_type(att, &type, &typmod);
			if ((type != old->atttypid || typmod != old->atttypmod) &&
				(att->attgenerated != '\0' || !is_lossless(old, type, typmod)))
				result = psprintf("the type of column \"%s\" was changed",
								  NameStr(att->attname));
		}
	}
	table_close(log, NoLock);
	return result;
}

/*
 * The file that a relation is stored in.
 */
static Oid
storage_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	result = ((Form_pg_class) GETSTRUCT(tuple))->relfilenode;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Make the log of a tracked table have the table's columns.
 *
 * "usings" is a list of CdcUsing.  The caller has the rights of the extension's owner, and
 * the command holds a lock on the table that keeps out everybody who writes to
 * the log.
 */
void
cdc_reshape_log(const CdcTracked *tracked, Relation rel, List *usings)
{
	TupleDesc	source = CreateTupleDescCopyConstr(RelationGetDescr(rel));
	ColumnStep *steps = palloc0(sizeof(ColumnStep) * source->natts);
	ColumnStep	most = STEP_NONE;
	CdcSegment *segments;
	int			nsegments;
	Relation	log;
	TupleDesc	desc;
	Oid			before;

	log = table_open(tracked->logrelid, AccessShareLock);
	if (in_step(source, RelationGetDescr(log)))
	{
		table_close(log, NoLock);
		return;
	}
	table_close(log, NoLock);
	cdc_log_check_width(rel);

	/* rows that wait have the old form, and nobody may start a segment now */
	(void) cdc_segments_lock(tracked->table_id, true);
	cdc_xact_flush_all_levels();
	CommandCounterIncrement();
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		cdc_partition_fill_missing(tracked->table_id, source);

	log = table_open(tracked->logrelid, AccessExclusiveLock);
	desc = RelationGetDescr(log);
	for (int i = 0; i < source->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(source, i);
		int			pos = i + CDC_LOG_FIRST_COL - 1;

		if (att->attisdropped || pos >= desc->natts ||
			TupleDescAttr(desc, pos)->attisdropped)
			continue;
		steps[i] = column_step(att, TupleDescAttr(desc, pos),
							   find_using(usings, NameStr(att->attname)));
		most = Max(most, steps[i]);
	}
	table_close(log, NoLock);

	nsegments = cdc_segments_fetch(tracked->table_id, &segments);
	before = storage_of(tracked->logrelid);
	if ((most == STEP_CAST || most == STEP_USING) &&
		!try_change_segments(source, segments, nsegments, steps, usings))
		most = STEP_CLEAR;
	if (most == STEP_CLEAR)
	{
		cdc_xact_gap(cdc_xact_table(tracked),
					 "older changes cannot be shown with the new types of its columns");
		give_up_history(tracked, segments, nsegments);
		for (int i = 0; i < source->natts; i++)
			if (steps[i] >= STEP_CAST)
				steps[i] = STEP_CLEAR;
	}
	if (most != STEP_CAST && most != STEP_USING)
		change_segments(source, segments, nsegments, steps, usings);

	/* a cast may turn out to do nothing; all segments got the same */
	if (storage_of(tracked->logrelid) != before)
	{
		cdc_segments_rewritten(tracked->table_id);
		cdc_xact_log_rewritten(tracked);
	}
}

/*
 * Change all segments in a subtransaction.  Returns false, with nothing
 * changed, if a value in the log cannot be cast.
 */
static bool
try_change_segments(TupleDesc source, CdcSegment *segments, int nsegments,
					const ColumnStep *steps, List *usings)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool result = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		change_segments(source, segments, nsegments, steps, usings);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		EventTriggerUndoInhibitCommandCollection();
		if (ERRCODE_TO_CATEGORY(error->sqlerrcode) != ERRCODE_DATA_EXCEPTION)
			ReThrowError(error);
		FreeErrorData(error);
		result = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return result;
}

/*
 * Make all segments have the columns of the table.
 */
static void
change_segments(TupleDesc source, CdcSegment *segments, int nsegments,
				const ColumnStep *steps, List *usings)
{
	char	   *suffix = psprintf("_%lld", (long long) cdc_xact_number());

	for (int i = 0; i < nsegments; i++)
	{
		drop_columns(source, segments[i].logrelid);
		change_columns(source, segments[i].logrelid, steps, usings);
		add_columns(source, segments[i].logrelid, suffix);
	}
}

/*
 * Run ALTER TABLE on a segment.
 */
static void
alter_log(Oid logrelid, List *cmds)
{
	AlterTableStmt *stmt = makeNode(AlterTableStmt);
	AlterTableUtilityContext context = {0};

	stmt->relation = makeRangeVar(pstrdup(CDC_LOG_SCHEMA),
								  get_rel_name(logrelid), -1);
	stmt->cmds = cmds;
	stmt->objtype = OBJECT_TABLE;
	context.pstmt = makeNode(PlannedStmt);
	context.pstmt->commandType = CMD_UTILITY;
	context.pstmt->utilityStmt = (Node *) stmt;
	context.queryString = "ALTER TABLE";
	context.relid = logrelid;

	LockRelationOid(logrelid, AccessExclusiveLock);
	/* it is no command of the user's */
	EventTriggerInhibitCommandCollection();
	AlterTable(stmt, AccessExclusiveLock, &context);
	EventTriggerUndoInhibitCommandCollection();
	CommandCounterIncrement();
}

static AlterTableCmd *
make_command(AlterTableType subtype, const char *column, Node *def)
{
	AlterTableCmd *cmd = makeNode(AlterTableCmd);

	cmd->subtype = subtype;
	cmd->name = column ? pstrdup(column) : NULL;
	cmd->def = def;
	cmd->behavior = DROP_RESTRICT;
	return cmd;
}

/*
 * Drop the columns of a segment that the table has dropped.
 */
static void
drop_columns(TupleDesc source, Oid logrelid)
{
	Relation	log = table_open(logrelid, AccessExclusiveLock);
	TupleDesc	desc = RelationGetDescr(log);
	List	   *cmds = NIL;

	for (int i = 0; i < source->natts; i++)
	{
		int			pos = i + CDC_LOG_FIRST_COL - 1;

		if (TupleDescAttr(source, i)->attisdropped && pos < desc->natts &&
			!TupleDescAttr(desc, pos)->attisdropped)
			cmds = lappend(cmds, make_command(AT_DropColumn,
											  NameStr(TupleDescAttr(desc, pos)->attname),
											  NULL));
	}
	table_close(log, NoLock);
	if (cmds)
		alter_log(logrelid, cmds);
}

/*
 * Add the columns to a segment that the table has in addition.  One that is
 * dropped already leaves a hole.
 */
static void
add_columns(TupleDesc source, Oid logrelid, const char *suffix)
{
	Relation	log = table_open(logrelid, AccessExclusiveLock);
	int			first = RelationGetNumberOfAttributes(log) - CDC_LOG_FIRST_COL + 1;
	List	   *adds = NIL;
	List	   *drops = NIL;

	table_close(log, NoLock);
	for (int i = first; i < source->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(source, i);
		char	   *name = psprintf("c%d%s", i + 1, suffix);
		Oid			type = INT4OID;
		int32		typmod = -1;

		if (att->attisdropped)
			drops = lappend(drops, make_command(AT_DropColumn, name, NULL));
		else
			column_type(att, &type, &typmod);
		adds = lappend(adds, make_command(AT_AddColumn, NULL,
										  (Node *) makeColumnDef(name, type, typmod,
																 att->attisdropped ? InvalidOid :
																 att->attcollation)));
	}
	if (adds == NIL)
		return;
	alter_log(logrelid, adds);
	if (drops)
		alter_log(logrelid, drops);

	for (int i = first; i < source->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(source, i);
		AttrNumber	attnum = i + CDC_LOG_FIRST_COL;

		if (att->attisdropped)
		{
			/* a hole of the same form */
			Datum		values[Natts_pg_attribute] = {0};
			bool		replaces[Natts_pg_attribute] = {0};

			values[Anum_pg_attribute_attlen - 1] = Int16GetDatum(att->attlen);
			replaces[Anum_pg_attribute_attlen - 1] = true;
			values[Anum_pg_attribute_attbyval - 1] = BoolGetDatum(att->attbyval);
			replaces[Anum_pg_attribute_attbyval - 1] = true;
			values[Anum_pg_attribute_attalign - 1] = CharGetDatum(att->attalign);
			replaces[Anum_pg_attribute_attalign - 1] = true;
			values[Anum_pg_attribute_attstorage - 1] = CharGetDatum(att->attstorage);
			replaces[Anum_pg_attribute_attstorage - 1] = true;
			set_attribute(logrelid, attnum, values, replaces);
		}
		else if (att->atthasmissing && source->constr && source->constr->missing &&
				 source->constr->missing[i].am_present)
			set_missing(logrelid, attnum, source->constr->missing[i].am_value,
						att);
	}
}

/*
 * Change the types of the columns of a segment.
 */
static void
change_columns(TupleDesc source, Oid logrelid, const ColumnStep *steps,
			   List *usings)
{
	Relation	log = table_open(logrelid, AccessExclusiveLock);
	TupleDesc	desc = CreateTupleDescCopy(RelationGetDescr(log));
	List	   *cmds = NIL;

	table_close(log, NoLock);
	for (int i = 0; i < source->natts; i++)
	{
		Form_pg_attribute old;
		ColumnDef  *def;
		Oid			type;
		int32		typmod;

		if (steps[i] < STEP_RELABEL)
			continue;
		old = TupleDescAttr(desc, i + CDC_LOG_FIRST_COL - 1);
		column_type(TupleDescAttr(source, i), &type, &typmod);
		def = makeNode(ColumnDef);
		/* where the bytes stay, the modifier must not check them */
		def->typeName = makeTypeNameFromOid(type, steps[i] == STEP_RELABEL ? -1 : typmod);
		def->collOid = TupleDescAttr(source, i)->attcollation;
		if (steps[i] == STEP_CLEAR)
		{
			A_Const    *null = makeNode(A_Const);

			null->isnull = true;
			null->location = -1;
			def->raw_default = (Node *) null;
		}
		else if (steps[i] == STEP_USING)
			def->cooked_default = find_using(usings,
											 NameStr(TupleDescAttr(source, i)->attname))->cast;
		cmds = lappend(cmds, make_command(AT_AlterColumnType,
										  NameStr(old->attname), (Node *) def));
	}
	if (cmds)
		alter_log(logrelid, cmds);

	for (int i = 0; i < source->natts; i++)
	{
		Datum		values[Natts_pg_attribute] = {0};
		bool		replaces[Natts_pg_attribute] = {0};
		Oid			type;
		int32		typmod;

		if (steps[i] != STEP_TYPMOD && steps[i] != STEP_RELABEL)
			continue;
		changed_type(TupleDescAttr(source, i),
					 TupleDescAttr(desc, i + CDC_LOG_FIRST_COL - 1), &type, &typmod);
		values[Anum_pg_attribute_atttypmod - 1] = Int32GetDatum(typmod);
		replaces[Anum_pg_attribute_atttypmod - 1] = true;
		set_attribute(logrelid, i + CDC_LOG_FIRST_COL, values, replaces);
	}
}

/*
 * Change fields of a row of pg_attribute.
 */
static void
set_attribute(Oid relid, AttrNumber attnum, const Datum *values,
			  const bool *replaces)
{
	static const bool nulls[Natts_pg_attribute] = {0};
	Relation	rel = table_open(AttributeRelationId, RowExclusiveLock);
	HeapTuple	tuple;

	tuple = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(relid),
								Int16GetDatum(attnum));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for attribute %d of relation %u",
			 attnum, relid);
	tuple = heap_modify_tuple(tuple, RelationGetDescr(rel),
							  unconstify(Datum *, values),
							  unconstify(bool *, &nulls[0]),
							  unconstify(bool *, replaces));
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	table_close(rel, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * Let a new column of a segment have the value in old rows that it has in old
 * rows of the table.
 */
static void
set_missing(Oid logrelid, AttrNumber attnum, Datum value,
			Form_pg_attribute att)
{
	Datum		values[Natts_pg_attribute] = {0};
	bool		replaces[Natts_pg_attribute] = {0};
	Oid			type;
	int32		typmod;

	column_type(att, &type, &typmod);
	values[Anum_pg_attribute_atthasmissing - 1] = BoolGetDatum(true);
	replaces[Anum_pg_attribute_atthasmissing - 1] = true;
	values[Anum_pg_attribute_attmissingval - 1] =
		PointerGetDatum(construct_array(&value, 1, type, att->attlen,
										att->attbyval, att->attalign));
	replaces[Anum_pg_attribute_attmissingval - 1] = true;
	set_attribute(logrelid, attnum, values, replaces);
}

/*
 * Empty the log.  The snapshot that the current transaction is going to make
 * becomes the oldest one that can be read: its number is the next one, for the
 * lock on the table keeps out everybody else who could draw one.
 */
static void
give_up_history(const CdcTracked *tracked, CdcSegment *segments, int nsegments)
{
	CdcTracked	now = *tracked;

	for (int i = 0; i < nsegments; i++)
	{
		Relation	log = table_open(segments[i].logrelid, AccessExclusiveLock);

		CheckTableNotInUse(log, "TRUNCATE");
		cdc_ExecuteTruncateGuts(list_make1(log),
								list_make1_oid(segments[i].logrelid), NIL,
								DROP_RESTRICT, false);
		table_close(log, NoLock);
	}
	now.oldest = cdc_sequence_last_value(tracked->seqid) + 1;
	cdc_tracked_update(&now);
}
