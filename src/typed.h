/*-------------------------------------------------------------------------
 *
 * typed.h
 *		The typed changelog functions.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/typed.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_TYPED_H
#define CDC_TYPED_H

#include "access/tupdesc.h"
#include "catalog.h"
#include "utils/tuplestore.h"

extern void cdc_typed_create(Relation rel, const CdcTracked *tracked);
extern int32 cdc_function_table_id(Oid funcid);
extern List *cdc_typed_find(int32 table_id, Oid owner);
extern void cdc_typed_follow(Oid funcid, Relation rel);
extern void cdc_typed_rename_column(Oid funcid, const char *from,
									const char *to);
extern void cdc_typed_rename(Oid funcid, Relation rel, const char *oldname);
extern bool cdc_typed_placeholder(const char *name);

#endif							/* CDC_TYPED_H */
