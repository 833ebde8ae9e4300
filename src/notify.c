/*-------------------------------------------------------------------------
 *
 * notify.c
 *		Notifications of changes of tracked tables.
 *
 * This module owns cdc.notify_changes, which sets cdc.tracked_table.notify, and
 * what is sent because of it: at commit, one notification a transaction, whose
 * payload names the tables.
 *
 * The server sends notifications in the order of the commits, and lets the
 * transactions that have some commit one after the other for that.  So it is
 * up to the owner of a table whether its changes are worth it.
 *
 * Whoever changes the setting holds the lock on the table's segments
 * (segment.c).
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/notify.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/async.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "catalog.h"
#include "compat.h"
#include "notify.h"
#include "segment.h"

#define NOTIFY_CHANNEL			"cdc_changelog"

/* Payload where the names do not fit */
#define NOTIFY_MANY				"*"

/* The server's limit, which it does not publish */
#define NOTIFY_MAX_LENGTH		(BLCKSZ - NAMEDATALEN - 128 - 1)

PG_FUNCTION_INFO_V1(cdc_notify_changes);

/*
 * cdc.notify_changes(relation regclass, enabled boolean) RETURNS boolean
 *
 * Sets whether changes of a table are notified, and returns the former
 * setting.  Raises 42501 if the caller does not own the table and 55000 if it
 * is not tracked.
 */
Datum
cdc_notify_changes(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	bool		enabled = PG_GETARG_BOOL(1);
	char	   *relname = get_rel_name(relid);
	CdcTracked	tracked;
	bool		former;

	PreventCommandIfReadOnly("cdc.notify_changes()");
	if (relname && !cdc_relation_ownercheck(relid, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER,
					   get_relkind_objtype(get_rel_relkind(relid)), relname);
	cdc_tracked_require(relid, &tracked);
	(void) cdc_segments_lock(tracked.table_id, true);
	cdc_tracked_require(relid, &tracked);

	former = tracked.notify;
	if (former != enabled)
	{
		tracked.notify = enabled;
		cdc_tracked_update(&tracked);
	}
	PG_RETURN_BOOL(former);
}

/*
 * Queue a notification that names the tables whose OIDs are given, if any.
 * Called when the transaction begins to commit.
 */
void
cdc_notify_send(const List *changed)
{
	StringInfoData payload;
	ListCell   *lc;

	if (changed == NIL)
		return;

	initStringInfo(&payload);
	foreach(lc, changed)
	{
		Oid			relid = lfirst_oid(lc);

		if (payload.len > 0)
			appendStringInfoChar(&payload, ',');
		appendStringInfoString(&payload,
							   quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
														  get_rel_name(relid)));
	}
	Async_Notify(NOTIFY_CHANNEL,
				 payload.len > NOTIFY_MAX_LENGTH ? NOTIFY_MANY : payload.data);
	pfree(payload.data);
}
