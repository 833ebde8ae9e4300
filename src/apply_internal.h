/*-------------------------------------------------------------------------
 *
 * apply_internal.h
 *		What the parts of the apply engine share.
 *
 * One call of cdc_apply goes through three steps: apply.c looks at the options
 * and the target, apply_read.c reads the changelog and, with apply_keys.c,
 * settles which action each key gets, apply_write.c and apply_delete.c change
 * the target by statements that apply_run.c runs.  Where the target keeps
 * versions, apply_history.c takes the place of what settles and writes.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply_internal.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_APPLY_INTERNAL_H
#define CDC_APPLY_INTERNAL_H

#include "access/tupdesc.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "tcop/dest.h"
#include "utils/queryenvironment.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"
#include "utils/tuplestore.h"

#include "apply.h"
#include "consumer.h"
#include "compat.h"

/* More keys than this are refused: their NULLs are noted in 64 bits */
#define APPLY_MAX_KEYS			64

/* What to do with a key */
typedef enum ApplyKind
{
	APPLY_UPSERT,
	APPLY_DELETE
} ApplyKind;

#define APPLY_NUM_KINDS			2

/* A column of the target */
typedef struct ApplyColumn
{
	const char *name;
	const char *quoted;			/* name, fit for SQL */
	AttrNumber	attnum;
	Oid			declared_type;	/* possibly a domain */
	Oid			type;			/* below all domains */
	int32		typmod;			/* likewise */
	Oid			collation;
	bool		is_key;
	bool		not_null;
	bool		generated;		/* GENERATED ALWAYS AS (expression) */
	char		identity;		/* as in pg_attribute.attidentity */
	int			store;			/* number of the stored column, 0 if the
								 * changelog has no such column */
	bool		in_insert;		/* written by INSERT */
	bool		in_update;		/* written by UPDATE */
	bool		excluded;		/* makes no version of its own */
} ApplyColumn;

/* How to compare the values of a key or sequence column */
typedef struct ApplyKey
{
	ApplyColumn *column;
	int16		typlen;
	bool		typbyval;
	Oid			equal_op;
	Oid			less_op;		/* invalid if the type has no order */
	FmgrInfo	equal;
	FmgrInfo	cmp;			/* set if there is a less_op */
	FmgrInfo	hash;			/* fn_oid is invalid if the type has none */
	bool		equal_image;	/* equal values look alike, too */
} ApplyKey;

/*
 * Rows whose keys are NULL in the same columns.  They share one set of
 * statements, because "=" finds no NULL, and what finds both cannot be hashed.
 */
typedef struct ApplyGroup
{
	uint64		nulls;			/* bit i is set: key i is NULL */
	Tuplesortstate *sort[APPLY_NUM_KINDS];	/* while reading, if in order */
	Tuplestorestate *rows[APPLY_NUM_KINDS]; /* NULL if there are none */
	int64		losers[APPLY_NUM_KINDS];	/* of these, not to be applied */
	Tuplestorestate *extra;		/* keys of the target that the changelog lacks */
} ApplyGroup;

/* A set of row numbers */
typedef struct ApplyRowSet
{
	MemoryContext context;		/* of the bits */
	uint8	   *bits;
	Size		size;			/* in bytes */
	int64		count;			/* members */
} ApplyRowSet;

typedef struct ApplyState
{
	const CdcApplyOptions *options;
	CdcApplyResult *result;
	MemoryContext context;		/* lives as long as this */
	bool		complete;		/* rows without an upsert are deleted, too */
	bool		newer;			/* only what is newer than the target's row is
								 * applied */

	/* the target */
	Oid			relid;
	char		relkind;
	const char *target;			/* name for messages */
	const char *target_sql;		/* qualified and quoted name */
	ApplyColumn *columns;
	int			ncolumns;
	ApplyKey   *keys;
	int			nkeys;
	ApplyColumn *sequence;		/* NULL without sequence_by */
	FmgrInfo	sequence_cmp;
	Oid			sequence_gt;	/* operator "later than" */
	ApplyColumn *soft_delete;	/* NULL without soft_delete */
	List	   *proofs;			/* uint64 *: keys are unique, as an index
								 * proves, unless one of these key columns is
								 * NULL */
	bool		by_index;		/* find rows through an index */
	bool		in_order;		/* and in the order of the keys */
	bool		keys_by_sort;	/* which shows keys with several actions */
	bool		refuses_deletes;	/* a DELETE may skip rows it finds */

	/* the changelog; stored rows begin with their number */
	CdcMeaning	meaning;		/* with a consumer only */
	TupleDesc	store_desc;
	int			store_ordinal;	/* stored columns used to settle which action */
	int			store_given;	/* wins; 0 if there is nothing to settle */
	int			store_time;		/* when it was committed; with history only */
	List	   *groups;			/* of ApplyGroup */
	int64		nstored;		/* rows in all groups */
	ApplyRowSet losers;			/* stored rows that are not to be applied */

	struct ApplyHistory *history;	/* NULL unless the target keeps versions */

	/* writing */
	EphemeralNamedRelationData relation;	/* stored rows of a statement; SPI
											 * keeps a pointer on an error */
	ApplyRowSet updated;		/* rows that have updated the target */
	ApplyRowSet marked;			/* rows that have marked a deleted one */
} ApplyState;

/* The column of a stored row that holds its number */
#define APPLY_STORE_NUMBER		1

/* The name of the stored rows in statements */
#define APPLY_ROWS				"cdc_apply_rows"

/* How the planner is to join stored rows with the target */
typedef enum ApplyJoin
{
	APPLY_JOIN_ANY,
	APPLY_JOIN_INDEX,			/* look each up in an index of the target */
	APPLY_JOIN_HASH				/* read all of the target */
}			ApplyJoin;

#define apply_join(state) \
	((state)->by_index ? APPLY_JOIN_INDEX : APPLY_JOIN_ANY)

/* Receives row numbers, and more in some statements, from one of them */
typedef struct ApplyNumberReceiver
{
	DestReceiver pub;
	ApplyState *state;
	ApplyRowSet *numbers;
}			ApplyNumberReceiver;

/* from apply.c */
extern ApplyColumn *apply_target_column(ApplyState *state, const char *name,
										const char *what);
extern ApplyColumn *apply_find_column(ApplyState *state, const char *name);
extern bool apply_is_metadata(const char *name);
extern const char *apply_key_names(ApplyState *state);
extern const char *apply_key_detail(ApplyState *state, const Datum *values,
									const bool *isnull);
extern bool apply_rowset_add(ApplyRowSet *set, int64 member);
extern bool apply_rowset_has(const ApplyRowSet *set, int64 member);
extern void apply_rowset_clear(ApplyRowSet *set);

/* from apply_read.c */
extern void apply_read(ApplyState *state);
extern Tuplestorestate *apply_rows_without(ApplyState *state,
										   Tuplestorestate *rows,
										   const ApplyRowSet *set);
extern ApplyGroup *apply_group_of(ApplyState *state, const Datum *values,
								  const bool *isnull);
extern Tuplestorestate *apply_begin_store(void);

/* from apply_keys.c */
typedef struct ApplyKeyTable ApplyKeyTable;

extern ApplyKeyTable *apply_keys_create(ApplyState *state);
extern void apply_keys_note(ApplyKeyTable *table, ApplyGroup *group,
							ApplyKind kind, const Datum *values,
							const bool *isnull);
extern void apply_keys_finish(ApplyKeyTable *table);
cdc_noreturn extern void apply_duplicate_error(ApplyState *state,
											   const Datum *values,
											   const bool *isnull) pg_attribute_noreturn();
extern void apply_check_order(ApplyState *state, const Datum *values,
							  const bool *isnull);
extern const char *apply_stored_key_detail(ApplyState *state,
										   const Datum *values,
										   const bool *isnull);

/* from apply_write.c */
extern void apply_write(ApplyState *state);
extern ApplyRowSet *apply_find_rows(ApplyState *state, ApplyGroup *group,
									Tuplestorestate *rows);

/* from apply_delete.c */
extern void apply_deletes(ApplyState *state);
extern void apply_check_deletes(ApplyState *state);
extern void apply_find_extra_rows(ApplyState *state);

/* from apply_history.c */
extern void apply_history_resolve(ApplyState *state);
extern bool apply_history_column(ApplyState *state, const ApplyColumn *column);
extern int	apply_history_num_columns(ApplyState *state);
extern void apply_history_describe_store(ApplyState *state, int first);
extern const char *apply_history_current(ApplyState *state);
extern void apply_history(ApplyState *state, const CdcConsumerRun *run);

/* from apply_run.c */
extern int64 apply_run(ApplyState *state, Tuplestorestate *rows,
					   const char *sql, ApplyJoin join, DestReceiver *dest);
extern void apply_init_receiver(DestReceiver *receiver,
								bool (*receive) (TupleTableSlot *, DestReceiver *));
extern void apply_receive_numbers(ApplyNumberReceiver * receiver,
								  ApplyState *state, ApplyRowSet *numbers);
extern void apply_append_match(StringInfo buf, ApplyState *state,
							   ApplyGroup *group, bool skip_nulls);
extern void apply_append_newer(StringInfo buf, ApplyState *state);

#endif							/* CDC_APPLY_INTERNAL_H */
