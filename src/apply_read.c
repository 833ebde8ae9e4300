/*-------------------------------------------------------------------------
 *
 * apply_read.c
 *		Applying a changelog: reading it.
 *
 * The changelog, a relation or a query, is read by one SELECT that brings
 * every column to the type of the target's column.  Its rows go straight into
 * tuplestores, upserts and deletes apart, by way of a sort if they will be
 * looked up in an index.  Keys with several actions are found in the sorted
 * rows, or by apply_keys.c, which then sees each row.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_read.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_coerce.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "apply_internal.h"
#include "cdc_changelog.h"

/* The words of _change_type and what they mean */
typedef enum ChangeMeaning
{
	MEANS_UPSERT,
	MEANS_DELETE,
	MEANS_NOTHING
} ChangeMeaning;

static const struct
{
	const char *word;
	ChangeMeaning meaning;
}			change_words[] =

{
	{"INSERT", MEANS_UPSERT},
	{"UPDATE_AFTER", MEANS_UPSERT},
	{"DELETE", MEANS_DELETE},
	{"UPDATE_BEFORE", MEANS_NOTHING},
	/* Delta's */
	{"insert", MEANS_UPSERT},
	{"update_postimage", MEANS_UPSERT},
	{"delete", MEANS_DELETE},
	{"update_preimage", MEANS_NOTHING},
	/* operation codes */
	{"I", MEANS_UPSERT},
	{"U", MEANS_UPSERT},
	{"D", MEANS_DELETE}
};

/* Receives the rows of the changelog */
typedef struct ReadReceiver
{
	DestReceiver pub;
	ApplyState *state;
	ApplyKeyTable *table;		/* NULL if it takes no part */
	MemoryContext row_context;	/* reset for each row */
	int			ordinal_at;		/* 0-based columns of a row; -1 if absent */
	int			filter_at;
	int			time_at;
	int			data_at;
	bool		type_lost;		/* append: the target has no change type */
	TupleTableSlot *store_slot; /* the row to store; its arrays are */
	Datum	   *values;			/* these */
	bool	   *isnull;
} ReadReceiver;

static const char *changelog_source(const char *changelog);
static bool looks_like_name(const char *text);
static List *parse(const char *text);
static void parse_error_callback(void *arg);
static void check_filter(const char *filter, const char *source,
						 CdcMeaning *meaning);
static TupleDesc query_columns(const char *query, CdcMeaning *meaning);
static void match_columns(ApplyState *state, TupleDesc source);
static bool has_column(TupleDesc desc, const char *name);
static void make_store_desc(ApplyState *state);
static char *read_query(ApplyState *state, const char *source,
						TupleDesc source_desc, ReadReceiver *receiver);
static bool append_coerced(StringInfo buf, ApplyState *state,
						   ApplyColumn *column, Form_pg_attribute att);
static void append_words(StringInfo buf, int meanings);

static void read_rows(ApplyState *state, const char *query,
					  ReadReceiver *receiver);
static bool receive_row(TupleTableSlot *slot, DestReceiver *self);
static void receive_startup(DestReceiver *self, int operation,
							TupleDesc typeinfo);
static void receive_nothing(DestReceiver *self);
static void store_row(ReadReceiver *receiver, ApplyGroup *group,
					  ApplyKind kind);
static Tuplesortstate *begin_sort(ApplyState *state);
static void finish_sorts(ApplyState *state, ApplyGroup *group);
static void next_sorted(ApplyState *state, ApplyGroup *group, ApplyKind kind,
						TupleTableSlot *slot, bool copy, Datum *key);
static int	compare_keys(ApplyState *state, ApplyGroup *group,
						 const Datum *left, const Datum *right);
static ChangeMeaning change_meaning(Datum value, bool isnull);
static ChangeMeaning appended_meaning(ReadReceiver *receiver, Datum value,
									  bool isnull);

/*
 * Reads the changelog of the options into the state's groups.  Raises an
 * error for everything that is wrong with it.  SPI must be connected.
 */
void
apply_read(ApplyState *state)
{
	const char *source = changelog_source(state->options->changelog);
	TupleDesc	source_desc;
	ReadReceiver receiver = {0};
	char	   *query;
	CdcMeaning *meaning = NULL;

	if (state->options->consumer != NULL && state->options->meaning == 0)
		meaning = &state->meaning;
	source_desc = query_columns(psprintf("SELECT * FROM %s AS c", source),
								meaning);
	match_columns(state, source_desc);
	if (state->options->filter != NULL)
		check_filter(state->options->filter, source, meaning);
	if ((state->options->deduplicate || state->history != NULL) &&
		state->sequence == NULL && !has_column(source_desc, CDC_COL_ORDINAL))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" does not exist in the changelog",
						CDC_COL_ORDINAL),
				 errdetail("The option \"%s\" needs it.",
						   state->history != NULL ? "history" : "deduplicate")));

	receiver.type_lost = has_column(source_desc, CDC_COL_TYPE) &&
		apply_find_column(state, CDC_COL_TYPE) == NULL;
	query = read_query(state, source, source_desc, &receiver);
	make_store_desc(state);
	if (state->options->check_only)
		(void) query_columns(query, NULL);
	else
		read_rows(state, query, &receiver);
}

/*
 * Adds what the changelog of the options means now, with the filter, to
 * "meaning".  Raises an error if the query is not valid.
 */
void
cdc_apply_meaning(const CdcApplyOptions *options, CdcMeaning *meaning)
{
	const char *source;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	source = changelog_source(options->changelog);
	(void) query_columns(psprintf("SELECT * FROM %s AS c", source), meaning);
	if (options->filter != NULL)
		check_filter(options->filter, source, meaning);
	SPI_finish();
}

/* ----------------------------------------------------------------
 *		What to read
 * ----------------------------------------------------------------
 */

/*
 * The changelog argument as an item of a FROM clause.
 */
static const char *
changelog_source(const char *changelog)
{
	List	   *names;
	List	   *statements;
	RawStmt    *raw;
	SelectStmt *select;
	int			location;
	int			length;

	if (looks_like_name(changelog) &&
		SplitIdentifierString(pstrdup(changelog), '.', &names))
	{
		StringInfoData buf;
		ListCell   *lc;

		if (names == NIL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("changelog must not be empty")));
		initStringInfo(&buf);
		foreach(lc, names)
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? "." : "",
							 quote_identifier(lfirst(lc)));
		return buf.data;
	}

	statements = parse(changelog);
	if (list_length(statements) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("changelog must be one query, not %d statements",
						list_length(statements))));
	raw = linitial_node(RawStmt, statements);
	select = (SelectStmt *) raw->stmt;
	if (!IsA(select, SelectStmt) || select->intoClause != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("changelog must be the name of a table or view, or a SELECT")));

	location = Max(raw->stmt_location, 0);
	length = raw->stmt_len > 0 ? raw->stmt_len :
		(int) strlen(changelog) - location;

	/* the line break ends a comment that the query may end with */
	return psprintf("(%.*s\n)", length, changelog + location);
}

/*
 * Is there nothing but names, dots and blanks in the text?
 */
static bool
looks_like_name(const char *text)
{
	bool		quoted = false;

	for (const char *p = text; *p != '\0'; p++)
	{
		if (*p == '"')
			quoted = !quoted;
		else if (!quoted && !IS_HIGHBIT_SET(*p) && !isalnum((unsigned char) *p) &&
				 strchr("_$. \t\n\r\f\v", *p) == NULL)
			return false;
	}
	return true;
}

/*
 * The raw parse trees of a text.
 */
static List *
parse(const char *text)
{
	ErrorContextCallback callback;
	List	   *statements;

	callback.callback = parse_error_callback;
	callback.arg = unconstify(char *, text);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	statements = raw_parser(text, RAW_PARSE_DEFAULT);
	error_context_stack = callback.previous;
	return statements;
}

/*
 * Makes an error in a text of the caller's point into that text.
 */
static void
parse_error_callback(void *arg)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(arg);
	}
}

/*
 * Raises an error unless the filter is one condition on the changelog.
 */
static void
check_filter(const char *filter, const char *source, CdcMeaning *meaning)
{
	List	   *statements;
	SelectStmt *select;

	if (strspn(filter, " \t\n\r\f\v") == strlen(filter))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("filter must not be empty")));

	/* with the parentheses and line breaks that it will have in the query */
	statements = parse(psprintf("SELECT (\n%s\n)", filter));
	select = (SelectStmt *) linitial_node(RawStmt, statements)->stmt;
	if (list_length(statements) != 1 || select->op != SETOP_NONE ||
		list_length(select->targetList) != 1 ||
		linitial_node(ResTarget, select->targetList)->name != NULL ||
		select->fromClause != NIL || select->whereClause != NULL ||
		select->groupClause != NIL || select->havingClause != NULL ||
		select->windowClause != NIL || select->sortClause != NIL ||
		select->limitCount != NULL || select->limitOffset != NULL ||
		select->lockingClause != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("filter must be one expression")));

	/* now for what its names mean; an error shows no more than this */
	(void) query_columns(psprintf("SELECT FROM %s AS c WHERE (\n%s\n) IS TRUE",
								  source, filter), meaning);
}

/*
 * Names and types of a query's columns.  What the query means is added to
 * "meaning", if that is not NULL.
 */
static TupleDesc
query_columns(const char *query, CdcMeaning *meaning)
{
	SPIPlanPtr	plan = SPI_prepare(query, 0, NULL);
	CachedPlanSource *plansource;
	TupleDesc	desc;

	if (plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s",
			 SPI_result_code_string(SPI_result));
	plansource = linitial(SPI_plan_get_plan_sources(plan));
	desc = CreateTupleDescCopy(plansource->resultDesc);
	if (meaning != NULL)
		cdc_meaning_add(meaning, plansource->query_list);
	SPI_freeplan(plan);
	return desc;
}

static bool
has_column(TupleDesc desc, const char *name)
{
	for (int i = 0; i < desc->natts; i++)
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
			return true;
	return false;
}

/*
 * Matches the changelog's columns with the target's, by name.
 */
static void
match_columns(ApplyState *state, TupleDesc source)
{
	int			nstored = APPLY_STORE_NUMBER;

	if (!has_column(source, CDC_COL_TYPE) && !state->options->append)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" does not exist in the changelog",
						CDC_COL_TYPE)));
	for (int i = 0; i < source->natts; i++)
	{
		const char *name = NameStr(TupleDescAttr(source, i)->attname);

		for (int k = 0; k < i; k++)
			if (strcmp(NameStr(TupleDescAttr(source, k)->attname), name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_DUPLICATE_COLUMN),
						 errmsg("changelog has more than one column \"%s\"",
								name)));
		if (!apply_is_metadata(name) && apply_find_column(state, name) == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("changelog column \"%s\" does not exist in target \"%s\"",
							name, state->target),
					 errhint("To leave it out, pass a SELECT of the other columns as changelog.")));
	}

	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];
		bool		given = (state->options->append ||
							 !apply_is_metadata(column->name)) &&
			has_column(source, column->name);

		if (given && apply_history_column(state, column))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("changelog must not have a column \"%s\"",
							column->name),
					 errdetail("The history in \"%s\" has a column of that name to tell when a version was valid.",
							   state->target)));
		if (!given && (column->is_key || column == state->sequence))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("%s column \"%s\" does not exist in the changelog",
							column->is_key ? "key" : "sequence",
							column->name)));
		if (!given || (column->generated && !column->is_key))
			continue;
		column->store = ++nstored;
		column->in_insert = !column->generated;
		column->in_update = !column->generated &&
			column->identity != ATTRIBUTE_IDENTITY_ALWAYS;
	}

	/* an equal key may look different, but not one of every type */
	for (int i = 0; i < state->nkeys; i++)
		if (state->keys[i].equal_image)
			state->keys[i].column->in_update = false;
}

/*
 * The row type of stored rows: number, columns, and what settles actions.
 */
static void
make_store_desc(ApplyState *state)
{
	bool		settle = state->sequence != NULL ||
		state->options->deduplicate || state->history != NULL;
	int			natts = APPLY_STORE_NUMBER;

	for (int i = 0; i < state->ncolumns; i++)
		if (state->columns[i].store > 0)
			natts++;
	if (settle)
	{
		state->store_ordinal = ++natts;
		state->store_given = ++natts;
	}
	state->store_desc =
		CreateTemplateTupleDesc(natts + apply_history_num_columns(state));
	if (state->history != NULL)
		apply_history_describe_store(state, natts + 1);

	TupleDescInitEntry(state->store_desc, APPLY_STORE_NUMBER, "n",
					   INT8OID, -1, 0);
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (column->store == 0)
			continue;
		TupleDescInitEntry(state->store_desc, column->store,
						   psprintf("c%d", column->store),
						   column->type, column->typmod, 0);
		TupleDescInitEntryCollation(state->store_desc, column->store,
									column->collation);
	}
	if (settle)
	{
		TupleDescInitEntry(state->store_desc, state->store_ordinal, "ordinal",
						   INT8OID, -1, 0);
		TupleDescInitEntry(state->store_desc, state->store_given, "given",
						   BOOLOID, -1, 0);
	}
}

/*
 * The query that reads the changelog.  Its columns: change type, ordinal if
 * it settles actions, what the filter says if there is one, data in the order
 * of stored rows.  Also tells the receiver where they are.
 *
 * What is appended needs no change type, and what does not pass the filter is
 * left out.
 */
static char *
read_query(ApplyState *state, const char *source, TupleDesc source_desc,
		   ReadReceiver *receiver)
{
	StringInfoData buf;
	const char *change_type = "CAST(c." CDC_COL_TYPE " AS pg_catalog.text)";
	bool		coerced = false;
	int			natts = 1;

	receiver->ordinal_at = -1;
	receiver->filter_at = -1;
	receiver->time_at = -1;

	initStringInfo(&buf);
	if (!has_column(source_desc, CDC_COL_TYPE))
		change_type = "CAST(NULL AS pg_catalog.text)";
	appendStringInfo(&buf, "SELECT %s", change_type);
	if ((state->options->deduplicate ||
		 (state->history != NULL && state->sequence == NULL)) &&
		has_column(source_desc, CDC_COL_ORDINAL))
	{
		appendStringInfoString(&buf,
							   ", CAST(c." CDC_COL_ORDINAL " AS pg_catalog.int8)");
		receiver->ordinal_at = natts++;
	}
	if (state->options->filter != NULL && !state->options->append)
	{
		appendStringInfo(&buf, ", CASE WHEN %s COLLATE pg_catalog.\"C\""
						 " OPERATOR(pg_catalog.=) ANY (", change_type);
		append_words(&buf, 1 << MEANS_UPSERT);
		appendStringInfo(&buf, ") THEN (\n%s\n) IS TRUE END",
						 state->options->filter);
		receiver->filter_at = natts++;
	}
	if (state->history != NULL && has_column(source_desc, CDC_COL_TIMESTAMP))
	{
		appendStringInfoString(&buf,
							   ", CAST(c." CDC_COL_TIMESTAMP " AS pg_catalog.timestamptz)");
		receiver->time_at = natts++;
	}
	receiver->data_at = natts;
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (column->store == 0)
			continue;
		for (int k = 0; k < source_desc->natts; k++)
		{
			Form_pg_attribute att = TupleDescAttr(source_desc, k);

			if (strcmp(NameStr(att->attname), column->name) != 0)
				continue;
			appendStringInfoString(&buf, ", ");
			coerced |= append_coerced(&buf, state, column, att);
			break;
		}
	}
	appendStringInfo(&buf, " FROM %s AS c", source);
	if (state->options->append)
	{
		if (state->options->filter != NULL)
			appendStringInfo(&buf, " WHERE (\n%s\n) IS TRUE",
							 state->options->filter);
		return buf.data;
	}

	/* what is ignored must not fail to be converted; else it may as well come */
	if (!coerced)
		return buf.data;
	appendStringInfo(&buf, " WHERE (%s COLLATE pg_catalog.\"C\""
					 " OPERATOR(pg_catalog.=) ANY (", change_type);
	append_words(&buf, 1 << MEANS_NOTHING);
	appendStringInfoString(&buf, ")) IS NOT TRUE");
	return buf.data;
}

/*
 * The words of certain meanings, as an array.
 */
static void
append_words(StringInfo buf, int meanings)
{
	bool		first = true;

	appendStringInfoString(buf, "CAST(ARRAY[");
	for (int i = 0; i < lengthof(change_words); i++)
	{
		if ((meanings & (1 << change_words[i].meaning)) == 0)
			continue;
		appendStringInfo(buf, "%s%s", first ? "" : ", ",
						 quote_literal_cstr(change_words[i].word));
		first = false;
	}
	appendStringInfoString(buf, "] AS pg_catalog.text[])");
}

/*
 * Appends the changelog's column, brought to the type of the target's as an
 * assignment would do it.  Beyond that, text becomes anything by way of the
 * type's input function, for staged files.
 *
 * The length of a type is enforced by calling what enforces it on assignment,
 * because an explicit cast would cut off too long a value.  Where that is not
 * known, the stored column goes without length and the write enforces it.
 *
 * Returns whether anything is done with the value.
 */
static bool
append_coerced(StringInfo buf, ApplyState *state, ApplyColumn *column,
			   Form_pg_attribute att)
{
	char	   *name = psprintf("c.%s", column->quoted);
	char	   *type;
	Oid			function;

	if (!can_coerce_type(1, &att->atttypid, &column->type,
						 COERCION_ASSIGNMENT) &&
		TypeCategory(getBaseType(att->atttypid)) != TYPCATEGORY_STRING)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of target \"%s\" is of type %s but the changelog's is of type %s",
						column->name, state->target,
						format_type_be(column->type),
						format_type_be(att->atttypid))));

	if (att->atttypid == column->type &&
		(column->typmod < 0 || att->atttypmod == column->typmod))
	{
		appendStringInfoString(buf, name);
		return false;
	}

	type = format_type_extended(column->type, -1,
								FORMAT_TYPE_TYPEMOD_GIVEN |
								FORMAT_TYPE_FORCE_QUALIFY);
	if (column->typmod < 0)
	{
		appendStringInfo(buf, "CAST(%s AS %s)", name, type);
		return true;
	}
	if (find_typmod_coercion_function(column->type, &function) == COERCION_PATH_FUNC)
	{
		appendStringInfo(buf, "%s(CAST(%s AS %s), %d%s)",
						 quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
													get_func_name(function)),
						 name, type, column->typmod,
						 get_func_nargs(function) >= 3 ? ", false" : "");
		return true;
	}
	appendStringInfo(buf, "CAST(%s AS %s)", name, type);
	column->typmod = -1;
	return true;
}

/* ----------------------------------------------------------------
 *		Reading
 * ----------------------------------------------------------------
 */

/*
 * Runs the query, stores its rows and settles their actions.
 */
static void
read_rows(ApplyState *state, const char *query, ReadReceiver *receiver)
{
	SPIExecuteOptions options = {0};
	ApplyKeyTable *table = NULL;
	MemoryContext oldcontext;
	ListCell   *lc;
	int			rc;

	/* sorted rows show which keys come twice */
	state->keys_by_sort = state->in_order && state->store_ordinal == 0;
	if (!state->keys_by_sort && !state->options->append &&
		state->history == NULL)
		table = apply_keys_create(state);

	receiver->pub.receiveSlot = receive_row;
	receiver->pub.rStartup = receive_startup;
	receiver->pub.rShutdown = receive_nothing;
	receiver->pub.rDestroy = receive_nothing;
	receiver->pub.mydest = DestTuplestore;
	receiver->state = state;
	receiver->table = table;
	receiver->row_context = AllocSetContextCreate(state->context,
												  "cdc apply row",
												  ALLOCSET_DEFAULT_SIZES);
	receiver->store_slot = MakeSingleTupleTableSlot(state->store_desc,
													&TTSOpsVirtual);
	receiver->values = receiver->store_slot->tts_values;
	receiver->isnull = receiver->store_slot->tts_isnull;
	memset(receiver->isnull, false, sizeof(bool) * state->store_desc->natts);
	for (int i = 0; i < apply_history_num_columns(state); i++)
		receiver->isnull[state->store_desc->natts - 1 - i] = true;

	options.dest = &receiver->pub;
	options.must_return_tuples = true;
	rc = SPI_execute_extended(query, &options);
	if (rc != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute_extended failed: %s",
			 SPI_result_code_string(rc));

	MemoryContextDelete(receiver->row_context);
	ExecDropSingleTupleTableSlot(receiver->store_slot);

	oldcontext = MemoryContextSwitchTo(state->context);
	foreach(lc, state->groups)
		finish_sorts(state, lfirst(lc));
	if (table != NULL)
		apply_keys_finish(table);
	MemoryContextSwitchTo(oldcontext);
}

static void
receive_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
}

static void
receive_nothing(DestReceiver *self)
{
}

/*
 * Takes over one row of the changelog.
 */
static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	ReadReceiver *receiver = (ReadReceiver *) self;
	ApplyState *state = receiver->state;
	MemoryContext oldcontext = MemoryContextSwitchTo(receiver->row_context);
	Datum	   *values = receiver->values;
	bool	   *isnull = receiver->isnull;
	int			ndata = slot->tts_tupleDescriptor->natts - receiver->data_at;
	ApplyKind	given;
	ApplyKind	kind;
	ApplyGroup *group;

	slot_getallattrs(slot);
	switch (state->options->append ?
			appended_meaning(receiver, slot->tts_values[0], slot->tts_isnull[0]) :
			change_meaning(slot->tts_values[0], slot->tts_isnull[0]))
	{
		case MEANS_UPSERT:
			given = kind = APPLY_UPSERT;
			if (receiver->filter_at >= 0 &&
				!DatumGetBool(slot->tts_values[receiver->filter_at]))
				kind = APPLY_DELETE;
			break;
		case MEANS_DELETE:
			given = kind = APPLY_DELETE;
			break;
		default:
			MemoryContextSwitchTo(oldcontext);
			return true;
	}

	values[APPLY_STORE_NUMBER - 1] = Int64GetDatum(++state->nstored);
	memcpy(&values[APPLY_STORE_NUMBER], &slot->tts_values[receiver->data_at],
		   sizeof(Datum) * ndata);
	memcpy(&isnull[APPLY_STORE_NUMBER], &slot->tts_isnull[receiver->data_at],
		   sizeof(bool) * ndata);
	if (state->store_ordinal > 0)
	{
		values[state->store_ordinal - 1] = Int64GetDatum(0);
		values[state->store_given - 1] = BoolGetDatum(given == APPLY_DELETE);
		if (receiver->ordinal_at >= 0)
		{
			values[state->store_ordinal - 1] = slot->tts_values[receiver->ordinal_at];
			isnull[state->store_ordinal - 1] = slot->tts_isnull[receiver->ordinal_at];
		}
	}

	if (receiver->time_at >= 0)
	{
		values[state->store_time - 1] = slot->tts_values[receiver->time_at];
		isnull[state->store_time - 1] = slot->tts_isnull[receiver->time_at];
	}

	group = apply_group_of(state, values, isnull);
	if (state->history != NULL)
		apply_check_order(state, values, isnull);
	else if (receiver->table != NULL)
		apply_keys_note(receiver->table, group, kind, values, isnull);
	store_row(receiver, group, kind);
	MemoryContextSwitchTo(oldcontext);
	MemoryContextReset(receiver->row_context);
	return true;
}

/*
 * Stores the row that the receiver holds.
 */
static void
store_row(ReadReceiver *receiver, ApplyGroup *group, ApplyKind kind)
{
	ApplyState *state = receiver->state;

	if (state->in_order)
	{
		TupleTableSlot *slot = receiver->store_slot;

		if (group->sort[kind] == NULL)
		{
			MemoryContextSwitchTo(state->context);
			group->sort[kind] = begin_sort(state);
		}
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(group->sort[kind], slot);
		ExecClearTuple(slot);
	}
	else
	{
		if (group->rows[kind] == NULL)
		{
			MemoryContextSwitchTo(state->context);
			group->rows[kind] = apply_begin_store();
		}
		tuplestore_putvalues(group->rows[kind], state->store_desc,
							 receiver->values, receiver->isnull);
	}
}

/*
 * An empty store for rows, in the current memory context.
 */
Tuplestorestate *
apply_begin_store(void)
{
	return tuplestore_begin_heap(false, false,
								 Max(work_mem, maintenance_work_mem));
}

static Tuplesortstate *
begin_sort(ApplyState *state)
{
	AttrNumber	columns[APPLY_MAX_KEYS];
	Oid			operators[APPLY_MAX_KEYS];
	Oid			collations[APPLY_MAX_KEYS];
	bool		nulls_first[APPLY_MAX_KEYS] = {0};

	for (int i = 0; i < state->nkeys; i++)
	{
		columns[i] = state->keys[i].column->store;
		operators[i] = state->keys[i].less_op;
		collations[i] = state->keys[i].column->collation;
	}
	return tuplesort_begin_heap(state->store_desc, state->nkeys, columns,
								operators, collations, nulls_first,
								Max(work_mem, maintenance_work_mem), NULL,
								TUPLESORT_NONE);
}

/*
 * Sorts the rows that have been read into the group and stores them.  Rows of
 * both kinds pass by in the order of their keys; where nothing has to be
 * settled, that shows keys with several actions.
 */
static void
finish_sorts(ApplyState *state, ApplyGroup *group)
{
	TupleTableSlot *slots[APPLY_NUM_KINDS] = {0};
	TupleTableSlot *last = MakeSingleTupleTableSlot(state->store_desc,
													&TTSOpsMinimalTuple);
	Datum		keys[APPLY_NUM_KINDS][APPLY_MAX_KEYS];
	Datum		last_key[APPLY_MAX_KEYS];
	bool		first = true;
	bool		copy = false;

	/* the last row must outlive the next one only if its key points to it */
	for (int i = 0; i < state->nkeys; i++)
		if (!state->keys[i].typbyval)
			copy = true;

	for (int kind = 0; kind < APPLY_NUM_KINDS; kind++)
	{
		if (group->sort[kind] == NULL)
			continue;
		group->rows[kind] = apply_begin_store();
		tuplesort_performsort(group->sort[kind]);
		slots[kind] = MakeSingleTupleTableSlot(state->store_desc,
											   &TTSOpsMinimalTuple);
		next_sorted(state, group, kind, slots[kind], copy, keys[kind]);
	}

	for (;;)
	{
		bool		upsert = slots[APPLY_UPSERT] != NULL &&
			!TTS_EMPTY(slots[APPLY_UPSERT]);
		bool		delete = slots[APPLY_DELETE] != NULL &&
			!TTS_EMPTY(slots[APPLY_DELETE]);
		TupleTableSlot *slot;
		int			kind;

		CHECK_FOR_INTERRUPTS();
		if (!upsert && !delete)
			break;
		kind = !delete ? APPLY_UPSERT : !upsert ? APPLY_DELETE :
			compare_keys(state, group, keys[APPLY_UPSERT],
						 keys[APPLY_DELETE]) <= 0 ? APPLY_UPSERT : APPLY_DELETE;
		slot = slots[kind];
		if (state->keys_by_sort)
		{
			if (!first && compare_keys(state, group, last_key, keys[kind]) == 0)
			{
				slot_getallattrs(slot);
				apply_duplicate_error(state, slot->tts_values, slot->tts_isnull);
			}
			memcpy(last_key, keys[kind], sizeof(Datum) * state->nkeys);
			first = false;
		}
		tuplestore_puttupleslot(group->rows[kind], slot);
		slots[kind] = last;
		last = slot;
		next_sorted(state, group, kind, slots[kind], copy, keys[kind]);
	}

	for (int kind = 0; kind < APPLY_NUM_KINDS; kind++)
	{
		if (group->sort[kind] == NULL)
			continue;
		ExecDropSingleTupleTableSlot(slots[kind]);
		tuplesort_end(group->sort[kind]);
		group->sort[kind] = NULL;
	}
	ExecDropSingleTupleTableSlot(last);
}

/*
 * Fetches the next row of a sort and its key.  The slot is empty if there is
 * none.
 */
static void
next_sorted(ApplyState *state, ApplyGroup *group, ApplyKind kind,
			TupleTableSlot *slot, bool copy, Datum *key)
{
	bool		isnull;

	if (!tuplesort_gettupleslot(group->sort[kind], true, copy, slot, NULL))
		return;
	for (int i = 0; i < state->nkeys; i++)
		key[i] = slot_getattr(slot, state->keys[i].column->store, &isnull);
}

/*
 * Compares two keys of a group in the order of its sorts.
 */
static int
compare_keys(ApplyState *state, ApplyGroup *group, const Datum *left,
			 const Datum *right)
{
	for (int i = 0; i < state->nkeys; i++)
	{
		ApplyKey   *key = &state->keys[i];
		int			cmp;

		if (group->nulls & (UINT64CONST(1) << i))
			continue;
		cmp = DatumGetInt32(FunctionCall2Coll(&key->cmp, key->column->collation,
											  left[i], right[i]));
		if (cmp != 0)
			return cmp;
	}
	return 0;
}

/*
 * What a value of _change_type means.
 */
static ChangeMeaning
change_meaning(Datum value, bool isnull)
{
	text	   *word;
	int			length;

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("null value in changelog column \"%s\"",
						CDC_COL_TYPE)));
	word = DatumGetTextPP(value);
	length = VARSIZE_ANY_EXHDR(word);
	for (int i = 0; i < lengthof(change_words); i++)
		if (strncmp(change_words[i].word, VARDATA_ANY(word), length) == 0 &&
			change_words[i].word[length] == '\0')
			return change_words[i].meaning;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value in changelog column \"%s\": \"%s\"",
					CDC_COL_TYPE, text_to_cstring(word)),
			 errhint("Valid values are INSERT, UPDATE_BEFORE, UPDATE_AFTER and DELETE, insert, update_preimage, update_postimage and delete, or I, U and D.")));
	return MEANS_NOTHING;		/* keep compiler quiet */
}

/*
 * Rows are appended whatever they mean.  Only if the target does not take
 * note of that, they had better be there.
 */
static ChangeMeaning
appended_meaning(ReadReceiver *receiver, Datum value, bool isnull)
{
	if (receiver->type_lost && change_meaning(value, isnull) != MEANS_UPSERT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("cannot append a row of change type \"%s\" to \"%s\"",
						TextDatumGetCString(value), receiver->state->target),
				 errdetail("The target has no column \"%s\" that would tell.",
						   CDC_COL_TYPE),
				 errhint("Leave such rows out, or add the column, or take \"%s\" out of the changelog.",
						 CDC_COL_TYPE)));
	return MEANS_UPSERT;
}

/*
 * The group of rows with NULLs in the same key columns; made if need be.
 */
ApplyGroup *
apply_group_of(ApplyState *state, const Datum *values, const bool *isnull)
{
	uint64		nulls = 0;
	ApplyGroup *group;
	MemoryContext oldcontext;
	ListCell   *lc;

	for (int i = 0; i < state->nkeys; i++)
		if (isnull[state->keys[i].column->store - 1])
			nulls |= UINT64CONST(1) << i;
	foreach(lc, state->groups)
	{
		group = lfirst(lc);
		if (group->nulls == nulls)
			return group;
	}

	oldcontext = MemoryContextSwitchTo(state->context);
	group = palloc0(sizeof(ApplyGroup));
	group->nulls = nulls;
	state->groups = lappend(state->groups, group);
	MemoryContextSwitchTo(oldcontext);
	return group;
}

/*
 * Those of the stored rows that are not in the set, in a new store, or NULL
 * if there are none.
 */
Tuplestorestate *
apply_rows_without(ApplyState *state, Tuplestorestate *rows,
				   const ApplyRowSet *set)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(state->context);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(state->store_desc,
													&TTSOpsMinimalTuple);
	Tuplestorestate *result = NULL;

	tuplestore_rescan(rows);
	while (tuplestore_gettupleslot(rows, true, false, slot))
	{
		bool		null;

		CHECK_FOR_INTERRUPTS();
		if (apply_rowset_has(set, DatumGetInt64(slot_getattr(slot, APPLY_STORE_NUMBER,
															 &null))))
			continue;
		if (result == NULL)
			result = apply_begin_store();
		tuplestore_puttupleslot(result, slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextSwitchTo(oldcontext);
	return result;
}
