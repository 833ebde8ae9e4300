/*-------------------------------------------------------------------------
 *
 * apply.h
 *		Applying a changelog to a table.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/apply.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_APPLY_H
#define CDC_APPLY_H

#include "nodes/pg_list.h"
#include "utils/array.h"

#include "meaning.h"

/* What to apply to what, and how.  Nothing here is changed or kept. */
typedef struct CdcApplyOptions
{
	Oid			target;			/* relation to change */
	const char *changelog;		/* name of a relation, or a query */
	List	   *keys;			/* column names, as strings (char *) */
	const char *filter;			/* condition on changelog rows, or NULL */
	const char *sequence_by;	/* column that orders actions, or NULL */
	const char *soft_delete;	/* boolean column that marks deletes, or NULL */
	bool		ignore_null_updates;	/* NULL keeps the target's value */
	bool		deduplicate;	/* several actions per key are no error */
	const char *consumer;		/* whose positions move, or NULL */
	bool		nowait;			/* do not wait for the consumer's lock */
	bool		complete;		/* rows without an upsert are deleted, too */
	bool		append;			/* insert the rows as they come; no keys */
	bool		history;		/* keep the versions of each key */
	List	   *history_exclude;	/* columns (char *) that make no version */
	bool		defer_triggers; /* the caller fires the AFTER triggers */
	const char *max_deletes;	/* a number or percentage, or NULL */
	bool		check_only;		/* read and change nothing; raise the errors
								 * that are there before rows are looked at */

	/* with a consumer only */
	bool		rebuild;		/* read everything, whatever its positions */
	bool		skip_idle;		/* write nothing where nothing is new */
	int64		meaning;		/* what cdc_apply_meaning() has said, or 0 */
} CdcApplyOptions;

/* What became of the actions; the sum is their number */
typedef struct CdcApplyResult
{
	int64		inserted;
	int64		updated;
	int64		deleted;
	int64		unchanged;		/* the target already was like that */
	int64		missing;		/* deletes of keys the target does not have */
	int64		stale;			/* older than another action or the target */

	/* with a consumer only */
	bool		full;			/* everything was read, not just changes */
	bool		idle;			/* skip_idle: nothing was new or written */
	char	   *ranges;			/* what was read, as cdc_consumer_ranges()
								 * says; in the caller's memory context */
} CdcApplyResult;

extern void cdc_apply(const CdcApplyOptions *options, CdcApplyResult *result);
extern void cdc_apply_meaning(const CdcApplyOptions *options,
							  CdcMeaning *meaning);
extern List *cdc_apply_names(ArrayType *array, const char *what);
extern void cdc_apply_check_max_deletes(const char *max_deletes);

#endif							/* CDC_APPLY_H */
