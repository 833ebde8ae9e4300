/*-------------------------------------------------------------------------
 *
 * fingerprint.h
 *		What tells that the target of a consumer is still what it was.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/fingerprint.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_FINGERPRINT_H
#define CDC_FINGERPRINT_H

#include "nodes/pg_list.h"

/*
 * A number that changes when the rows of a target are exchanged as a whole: when
 * it is another table, was truncated, restored or rewritten; or when one of the
 * columns, given by their numbers, is not the same any more.  For a view, that
 * of what it is made of, and how.
 *
 * 0 where that cannot be told: for no table at all; for unlogged ones, which are
 * empty after a crash; for temporary ones, which ON COMMIT may empty; and for
 * those that the transaction has made or truncated, which it can truncate in
 * place, unless this is "at_end", when it does nothing more to the target.
 */
extern int64 cdc_fingerprint(Oid target, List *columns, bool at_end);

/*
 * The number of tables that the target consists of and that are not empty; with
 * a valid "before", of those that have not been emptied since that command of
 * the transaction, either.  Where this cannot be told they count as emptied.
 */
extern int	cdc_fingerprint_filled(Oid target, CommandId before);

#endif							/* CDC_FINGERPRINT_H */
