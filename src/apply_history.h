/*-------------------------------------------------------------------------
 *
 * apply_history.h
 *		What apply_history.c and apply_versions.c share.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_history.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_APPLY_HISTORY_H
#define CDC_APPLY_HISTORY_H

#include "apply_internal.h"

/*
 * What happens to a key.  Of several events at one place of the order, the
 * first in this enumeration is what the target knows of it.
 */
typedef enum HistoryKind
{
	EVENT_VERSION,				/* a version of the target begins */
	EVENT_AGAIN,				/* its last sequence, if sequences make none */
	EVENT_END,					/* it ends */
	EVENT_UPSERT,				/* changes of the changelog */
	EVENT_DELETE,
	EVENT_ABSENT				/* the complete changelog does not have it */
} HistoryKind;

/* An event, with the columns of a stored row */
typedef struct HistoryEvent
{
	HistoryKind kind;
	bool		again;			/* a version that has an EVENT_AGAIN */
	Datum	   *values;
	bool	   *isnull;
	struct HistoryEvent *replaces;	/* version of the target that begins at
									 * the same place */
} HistoryEvent;

/* A version in the making: a run of events that say the same of the row */
typedef struct HistoryRun
{
	HistoryEvent *first;		/* NULL: the row is not there */
	HistoryEvent *last;
	HistoryEvent *owner;		/* the target's version that it continues */
	bool		was_there;		/* the row was there before it, not deleted */
} HistoryRun;

/* How versions are written, in this order */
typedef enum HistoryWrite
{
	WRITE_DELETE,				/* merged with another one */
	WRITE_CLOSE,				/* ends (earlier) */
	WRITE_UPDATE,
	WRITE_INSERT
} HistoryWrite;

#define HISTORY_NUM_WRITES		4

/* Keys with NULLs in the same columns, see ApplyGroup */
typedef struct HistoryGroup
{
	ApplyGroup *group;
	Tuplesortstate *changes;	/* of the changelog, by key and place */
	Tuplesortstate *events;		/* all, by key and place */
	Tuplestorestate *firsts;	/* the first change of each key */
	Tuplestorestate *rows[HISTORY_NUM_WRITES];
} HistoryGroup;

typedef struct ApplyHistory
{
	ApplyColumn *from;
	ApplyColumn *to;
	ApplyColumn *from_time;		/* NULL if the target has none */
	ApplyColumn *to_time;
	ApplyKey	order;			/* how places in the order compare */
	FmgrInfo	order_cmp;
	bool		merges;			/* another sequence makes no version */
	int			store_event;	/* columns of stored rows */
	int			store_from;
	int			store_to;
	int			store_to_time;
	int			store_old;		/* valid_from before it changes */
	int			store_mark;		/* value of the soft-delete column */
	List	   *groups;			/* of HistoryGroup */
	bool		any;			/* there are changes; the newest is at */
	Datum		newest;			/* this place */
	Datum		newest_time;
	bool		newest_time_null;
	HistoryGroup *group;		/* being worked on */
	MemoryContext key_context;	/* events of a key */
	HistoryRun	run;
} ApplyHistory;

/* from apply_versions.c */
extern void apply_versions_walk(ApplyState *state, HistoryGroup *group);
extern HistoryEvent *apply_event_copy(ApplyState *state, TupleTableSlot *slot);
extern int	apply_event_compare(ApplyState *state, const HistoryEvent *a,
								const HistoryEvent *b);
extern bool apply_event_same_key(ApplyState *state, const HistoryEvent *a,
								 const HistoryEvent *b);

#endif							/* CDC_APPLY_HISTORY_H */
