/*-------------------------------------------------------------------------
 *
 * apply_versions.c
 *		Applying a changelog: which versions a row has had.
 *
 * The versions of a key say the same as a series of events: here the row
 * became like this, there it ended.  So what the target knows of a key and
 * what the changelog says are events of one series, in order of their places.
 * A version is a run of events that say the same of the row.  What comes out
 * does not depend on when a change came or how often.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_versions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "apply_history.h"
#include "cdc_changelog.h"

static void settle_key(ApplyState *state, HistoryEvent **events, int nevents);
static void check_versions(ApplyState *state, HistoryEvent **events,
						   int nevents);
static HistoryEvent *settle_place(ApplyState *state, HistoryEvent **events,
								  int nevents);
static HistoryEvent *newest_change(ApplyState *state, HistoryEvent **events,
								   int nevents);
static void take_event(ApplyState *state, HistoryEvent *event);
static void take_absence(ApplyState *state, HistoryEvent *event);
static void finish_run(ApplyState *state, HistoryEvent *end);
static void put_row(ApplyState *state, HistoryWrite how, const Datum *values,
					const bool *isnull);
static bool makes_version(ApplyState *state, const HistoryEvent *event);
static bool is_marked(ApplyState *state, const HistoryEvent *event);
static bool same_value(ApplyState *state, int column, const Datum *a,
					   const bool *a_null, const Datum *b,
					   const bool *b_null);
static bool same_content(ApplyState *state, const HistoryEvent *a,
						 const HistoryEvent *b);
static bool same_version(ApplyState *state, const HistoryEvent *a,
						 const HistoryEvent *b);
static const char *place_text(ApplyState *state, Datum place);
cdc_noreturn static void raise_newer(ApplyState *state,
									 const HistoryEvent *version,
									 Datum place) pg_attribute_noreturn();

/*
 * Goes through the events of a group key by key and stores the versions that
 * have to be written.
 */
void
apply_versions_walk(ApplyState *state, HistoryGroup *group)
{
	ApplyHistory *history = state->history;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(state->store_desc,
													&TTSOpsMinimalTuple);
	HistoryEvent **events;
	int			nevents = 0;
	int			maxevents = 64;
	MemoryContext oldcontext = CurrentMemoryContext;

	events = palloc(sizeof(HistoryEvent *) * maxevents);
	while (tuplesort_gettupleslot(group->events, true, false, slot, NULL))
	{
		HistoryEvent event = {0};

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		event.values = slot->tts_values;
		event.isnull = slot->tts_isnull;
		if (nevents > 0 && !apply_event_same_key(state, events[0], &event))
		{
			MemoryContextSwitchTo(history->key_context);
			settle_key(state, events, nevents);
			MemoryContextSwitchTo(oldcontext);
			MemoryContextReset(history->key_context);
			nevents = 0;
		}
		if (nevents == maxevents)
		{
			maxevents *= 2;
			events = repalloc_huge(events, sizeof(HistoryEvent *) * maxevents);
		}
		events[nevents++] = apply_event_copy(state, slot);
	}
	if (nevents > 0)
	{
		MemoryContextSwitchTo(history->key_context);
		settle_key(state, events, nevents);
		MemoryContextSwitchTo(oldcontext);
		MemoryContextReset(history->key_context);
	}
	pfree(events);
	tuplesort_end(group->events);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Makes versions of the events of one key, which are in order.
 */
static void
settle_key(ApplyState *state, HistoryEvent **events, int nevents)
{
	HistoryRun *run = &state->history->run;
	HistoryEvent *last = NULL;
	HistoryEvent *change = NULL;
	int			i = 0;

	check_versions(state, events, nevents);
	memset(run, 0, sizeof(HistoryRun));
	while (i < nevents && events[i]->kind != EVENT_ABSENT)
	{
		int			n = 1;

		while (i + n < nevents && events[i + n]->kind != EVENT_ABSENT &&
			   apply_event_compare(state, events[i], events[i + n]) == 0)
			n++;
		last = settle_place(state, &events[i], n);
		if (last->kind == EVENT_UPSERT)
			change = last;
		take_event(state, last);
		i += n;
	}
	if (i < nevents)
		take_absence(state, events[i]);
	else if (state->complete && change != NULL && last->kind <= EVENT_END)
		raise_newer(state, last,
					change->values[state->history->store_from - 1]);
	if (run->first != NULL)
		finish_run(state, NULL);
}

/*
 * Raises an error if versions of the target are none.
 */
static void
check_versions(ApplyState *state, HistoryEvent **events, int nevents)
{
	ApplyHistory *history = state->history;
	HistoryEvent *before = NULL;

	for (int i = 0; i < nevents; i++)
	{
		HistoryEvent *event = events[i];

		if (event->kind == EVENT_AGAIN && before != NULL)
			before->again = true;
		if (event->kind != EVENT_VERSION)
			continue;
		for (int k = 0; k < 2; k++)
		{
			/* it ends after it begins; the one before ends no later */
			HistoryEvent *version = k == 0 ? event : before;
			int			cmp;

			if (version == NULL || (k == 0 && version->isnull[history->store_to - 1]))
				continue;
			cmp = version->isnull[history->store_to - 1] ? 1 :
				DatumGetInt32(FunctionCall2Coll(&history->order_cmp,
												history->from->collation,
												version->values[history->store_to - 1],
												event->values[history->store_from - 1]));
			if (k == 0 ? cmp <= 0 : cmp > 0)
				ereport(ERROR,
						(errcode(ERRCODE_CARDINALITY_VIOLATION),
						 errmsg("apply_changelog failed: multiple rows in destination table match key [%s]",
								apply_key_names(state)),
						 k == 0 ?
						 errdetail("Key %s has a version in \"%s\" that does not end after it begins, at %s.",
								   apply_stored_key_detail(state, event->values, event->isnull),
								   state->target,
								   place_text(state, event->values[history->store_from - 1])) :
						 errdetail("Key %s has two versions in \"%s\" that are valid at %s.",
								   apply_stored_key_detail(state, event->values, event->isnull),
								   state->target,
								   place_text(state, event->values[history->store_from - 1]))));
		}
		before = event;
	}
}

/*
 * Settles which of the events at one place of the order counts.  What the
 * target knows of it counts, unless the changelog is the whole content.
 */
static HistoryEvent *
settle_place(ApplyState *state, HistoryEvent **events, int nevents)
{
	HistoryEvent *known = events[0]->kind <= EVENT_END ? events[0] : NULL;
	HistoryEvent *change = newest_change(state, events, nevents);

	if (change == NULL || known == NULL)
		return change != NULL ? change : known;
	if (state->complete)
	{
		if (known->kind == EVENT_VERSION)
			change->replaces = known;
		return change;
	}
	if (makes_version(state, known) == makes_version(state, change) &&
		(!makes_version(state, known) || same_version(state, known, change)))
		state->result->unchanged++;
	else
		state->result->stale++;
	return known;
}

/*
 * The change of the changelog that counts at one place of the order, or NULL
 * if there is none.  Two that differ are an error, unless the ordinal tells
 * which is newer or a key that left came back.
 */
static HistoryEvent *
newest_change(ApplyState *state, HistoryEvent **events, int nevents)
{
	HistoryEvent *newest = NULL;
	bool		tied = false;

	for (int i = 0; i < nevents; i++)
	{
		HistoryEvent *event = events[i];
		int64		newer = 0;

		if (event->kind != EVENT_UPSERT && event->kind != EVENT_DELETE)
			continue;
		if (newest == NULL)
		{
			newest = event;
			continue;
		}
		state->result->stale++;
		if (state->options->deduplicate || state->sequence == NULL)
		{
			int			ordinal = state->store_ordinal - 1;
			int			given = state->store_given - 1;

			newer = DatumGetInt64(event->values[ordinal]) -
				DatumGetInt64(newest->values[ordinal]);
			if (newer == 0)
				newer = (int) DatumGetBool(newest->values[given]) -
					(int) DatumGetBool(event->values[given]);
		}
		if (newer > 0)
		{
			newest = event;
			tied = false;
		}
		else if (newer == 0 &&
				 (newest->kind != event->kind ||
				  !same_content(state, newest, event)))
			tied = true;
	}
	if (tied)
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("apply_changelog failed: duplicate keys detected in changelog for identifier columns [%s]",
						apply_key_names(state)),
				 errdetail("Key %s has different actions with the same %s.",
						   apply_stored_key_detail(state, newest->values, newest->isnull),
						   state->sequence == NULL ? "ordinal" :
						   state->options->deduplicate ?
						   "sequence and ordinal" : "sequence")));
	return newest;
}

/*
 * Goes on with the next event of a key, and counts it if it is a change.
 */
static void
take_event(ApplyState *state, HistoryEvent *event)
{
	HistoryRun *run = &state->history->run;
	CdcApplyResult *result = state->result;
	bool		is_change = event->kind >= EVENT_UPSERT;
	HistoryEvent *version = event->kind == EVENT_VERSION ? event :
		event->replaces;
	bool		was_there;

	if (!makes_version(state, event))
	{
		if (is_change && run->first != NULL)
			result->deleted++;
		else if (is_change)
			result->missing++;
		if (run->first != NULL)
			finish_run(state, event);
		if (version != NULL)
			put_row(state, WRITE_DELETE, version->values, version->isnull);
		return;
	}

	if (run->first != NULL && same_version(state, run->last, event))
	{
		if (is_change && same_content(state, run->last, event))
			result->unchanged++;
		else if (is_change)
			result->updated++;
		if (run->owner == NULL)
			run->owner = version;
		else if (version != NULL)
			put_row(state, WRITE_DELETE, version->values, version->isnull);
		run->last = event;
		return;
	}

	was_there = run->first != NULL && !is_marked(state, run->last);
	if (run->first != NULL)
		finish_run(state, event);
	run->first = run->last = event;
	run->owner = version;
	run->was_there = was_there;
}

/*
 * Ends the current version of a key that the whole content does not have, at
 * the place where the changelog ends.
 */
static void
take_absence(ApplyState *state, HistoryEvent *event)
{
	ApplyHistory *history = state->history;
	HistoryRun *run = &history->run;
	Size		natts = state->store_desc->natts;
	HistoryEvent *end;
	int			cmp;

	if (run->first == NULL || is_marked(state, run->last))
		return;
	if (!history->any)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot tell where versions in \"%s\" end", state->target),
				 errdetail("The changelog is the whole content, and it is empty."),
				 errhint("End the versions with DELETE rows, or with an UPDATE of the target.")));

	/* the row as it was, but for the mark */
	end = palloc0(sizeof(HistoryEvent));
	end->kind = EVENT_ABSENT;
	end->values = palloc(sizeof(Datum) * natts);
	end->isnull = palloc(sizeof(bool) * natts);
	memcpy(end->values, run->last->values, sizeof(Datum) * natts);
	memcpy(end->isnull, run->last->isnull, sizeof(bool) * natts);
	end->values[history->store_from - 1] = history->newest;
	end->values[state->store_time - 1] = history->newest_time;
	end->isnull[state->store_time - 1] = history->newest_time_null;
	if (state->sequence != NULL)
		end->values[state->sequence->store - 1] = history->newest;
	if (state->soft_delete != NULL)
	{
		end->values[history->store_mark - 1] = BoolGetDatum(true);
		end->isnull[history->store_mark - 1] = false;
		if (state->soft_delete->store > 0)
		{
			end->values[state->soft_delete->store - 1] = BoolGetDatum(true);
			end->isnull[state->soft_delete->store - 1] = false;
		}
	}

	if (apply_event_compare(state, run->last, end) > 0)
		raise_newer(state, run->last, history->newest);
	state->result->deleted++;
	cmp = apply_event_compare(state, run->first, end);
	if (cmp < 0)
	{
		finish_run(state, end);
		run->owner = NULL;
	}
	else if (state->soft_delete == NULL && run->owner != NULL)
		put_row(state, WRITE_DELETE, run->owner->values, run->owner->isnull);
	run->first = run->last = state->soft_delete != NULL ? end : NULL;
}

/*
 * Ends the version in the making where an event is, or nowhere if that is
 * NULL, and stores how it is to be written, if at all.  Counts the change that
 * it began with.
 */
static void
finish_run(ApplyState *state, HistoryEvent *end)
{
	ApplyHistory *history = state->history;
	HistoryRun *run = &history->run;
	HistoryEvent *first = run->first;
	HistoryEvent *owner = run->owner;
	HistoryEvent row;
	Size		natts = state->store_desc->natts;
	bool		changed = true;
	int			to = history->store_to - 1;

	row.values = palloc(sizeof(Datum) * natts);
	row.isnull = palloc(sizeof(bool) * natts);
	memcpy(row.values, run->last->values, sizeof(Datum) * natts);
	memcpy(row.isnull, run->last->isnull, sizeof(bool) * natts);

	row.values[history->store_from - 1] = first->values[history->store_from - 1];
	row.values[state->store_time - 1] = first->values[state->store_time - 1];
	row.isnull[state->store_time - 1] = first->isnull[state->store_time - 1];
	row.isnull[to] = row.isnull[history->store_to_time - 1] = true;
	if (end != NULL)
	{
		row.values[to] = end->values[history->store_from - 1];
		row.isnull[to] = false;
		row.values[history->store_to_time - 1] = end->values[state->store_time - 1];
		row.isnull[history->store_to_time - 1] = end->isnull[state->store_time - 1];
	}

	/* its last change has become part of another version */
	if (run->last->again)
		row.values[state->sequence->store - 1] =
			run->last->values[history->store_from - 1];

	if (owner == NULL)
		put_row(state, WRITE_INSERT, row.values, row.isnull);
	else
	{
#define SAME(column) \
	same_value(state, column, row.values, row.isnull, owner->values, owner->isnull)
		bool		only_end = same_content(state, &row, owner) &&
			SAME(history->store_from) &&
			(history->from_time == NULL || SAME(state->store_time));

		changed = !only_end || !SAME(history->store_to) ||
			(history->to_time != NULL && !SAME(history->store_to_time));
#undef SAME
		row.values[history->store_old - 1] = owner->values[history->store_old - 1];
		row.isnull[history->store_old - 1] = false;
		if (changed)
			put_row(state, only_end && end != NULL &&
					(owner->isnull[to] ||
					 DatumGetInt32(FunctionCall2Coll(&history->order_cmp,
													 history->from->collation,
													 row.values[to],
													 owner->values[to])) <= 0) ?
					WRITE_CLOSE : WRITE_UPDATE, row.values, row.isnull);
	}

	if (first->kind == EVENT_DELETE)
	{
		if (run->was_there)
			state->result->deleted++;
		else
			state->result->missing++;
	}
	else if (first->kind == EVENT_UPSERT)
	{
		if (owner == NULL)
			state->result->inserted++;
		else if (changed)
			state->result->updated++;
		else
			state->result->unchanged++;
	}
	memset(run, 0, sizeof(HistoryRun));
}

static void
put_row(ApplyState *state, HistoryWrite how, const Datum *values,
		const bool *isnull)
{
	HistoryGroup *group = state->history->group;
	MemoryContext oldcontext = MemoryContextSwitchTo(state->context);

	if (group->rows[how] == NULL)
		group->rows[how] = apply_begin_store();
	tuplestore_putvalues(group->rows[how], state->store_desc,
						 unconstify(Datum *, values),
						 unconstify(bool *, isnull));
	MemoryContextSwitchTo(oldcontext);
}

/* ----------------------------------------------------------------
 *		Events
 * ----------------------------------------------------------------
 */

/*
 * A copy of a stored row as an event, in the memory of the key.
 */
HistoryEvent *
apply_event_copy(ApplyState *state, TupleTableSlot *slot)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(state->history->key_context);
	HistoryEvent *event = palloc0(sizeof(HistoryEvent));
	MinimalTuple minimal = ExecCopySlotMinimalTuple(slot);
	HeapTupleData tuple;

	tuple.t_len = minimal->t_len + MINIMAL_TUPLE_OFFSET;
	tuple.t_data = (HeapTupleHeader) ((char *) minimal - MINIMAL_TUPLE_OFFSET);
	event->values = palloc(sizeof(Datum) * state->store_desc->natts);
	event->isnull = palloc(sizeof(bool) * state->store_desc->natts);
	heap_deform_tuple(&tuple, state->store_desc, event->values, event->isnull);
	event->kind = DatumGetInt32(event->values[state->history->store_event - 1]);
	MemoryContextSwitchTo(oldcontext);
	return event;
}

/*
 * Does a version begin or go on with the event?  A delete that is only marked
 * makes one, too.
 */
static bool
makes_version(ApplyState *state, const HistoryEvent *event)
{
	return event->kind != EVENT_END &&
		(event->kind != EVENT_DELETE || state->soft_delete != NULL);
}

static bool
is_marked(ApplyState *state, const HistoryEvent *event)
{
	int			mark = state->history->store_mark - 1;

	return state->soft_delete != NULL && !event->isnull[mark] &&
		DatumGetBool(event->values[mark]);
}

int
apply_event_compare(ApplyState *state, const HistoryEvent *a, const HistoryEvent *b)
{
	int			from = state->history->store_from - 1;

	return DatumGetInt32(FunctionCall2Coll(&state->history->order_cmp,
										   state->history->from->collation,
										   a->values[from], b->values[from]));
}

/*
 * Do the events have the same key?  They are of one group.
 */
bool
apply_event_same_key(ApplyState *state, const HistoryEvent *a, const HistoryEvent *b)
{
	for (int i = 0; i < state->nkeys; i++)
	{
		ApplyKey   *key = &state->keys[i];
		int			at = key->column->store - 1;

		if (!a->isnull[at] &&
			!DatumGetBool(FunctionCall2Coll(&key->equal, key->column->collation,
											a->values[at], b->values[at])))
			return false;
	}
	return true;
}

/*
 * Is a column of two stored rows the same to the last byte?
 */
static bool
same_value(ApplyState *state, int column, const Datum *a, const bool *a_null,
		   const Datum *b, const bool *b_null)
{
	Form_pg_attribute att = TupleDescAttr(state->store_desc, column - 1);

	if (a_null[column - 1] || b_null[column - 1])
		return a_null[column - 1] == b_null[column - 1];
	return datum_image_eq(a[column - 1], b[column - 1], att->attbyval,
						  att->attlen);
}

/*
 * Are the columns of the row the same, keys and all?
 */
static bool
same_content(ApplyState *state, const HistoryEvent *a, const HistoryEvent *b)
{
	for (int i = 0; i < state->ncolumns; i++)
	{
		int			store = state->columns[i].store;

		if (store > 0 &&
			!same_value(state, store, a->values, a->isnull, b->values, b->isnull))
			return false;
	}
	return state->soft_delete == NULL ||
		same_value(state, state->history->store_mark, a->values, a->isnull,
				   b->values, b->isnull);
}

/*
 * Are the columns the same that make versions?
 */
static bool
same_version(ApplyState *state, const HistoryEvent *a, const HistoryEvent *b)
{
	for (int i = 0; i < state->ncolumns; i++)
	{
		ApplyColumn *column = &state->columns[i];

		if (column->store > 0 && !column->is_key && !column->excluded &&
			!same_value(state, column->store, a->values, a->isnull,
						b->values, b->isnull))
			return false;
	}
	return state->soft_delete == NULL ||
		same_value(state, state->history->store_mark, a->values, a->isnull,
				   b->values, b->isnull);
}

/*
 * A place in the order for a message.
 */
static const char *
place_text(ApplyState *state, Datum place)
{
	Oid			output;
	bool		isvarlena;

	getTypeOutputInfo(state->history->from->type, &output, &isvarlena);
	return OidOutputFunctionCall(output, place);
}

/*
 * Raises the error that the target knows more than the whole content.
 */
static void
raise_newer(ApplyState *state, const HistoryEvent *version, Datum place)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("history in \"%s\" is newer than the changelog",
					state->target),
			 errdetail("Key %s changed at %s, and the changelog has its content at %s.",
					   apply_stored_key_detail(state, version->values,
											   version->isnull),
					   place_text(state, version->values[state->history->store_from - 1]),
					   place_text(state, place)),
			 errhint("If the numbers of the source began anew, go on in a new table, or order changes by a column of the source (\"sequence_by\").")));
}
