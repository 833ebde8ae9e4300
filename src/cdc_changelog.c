/*-------------------------------------------------------------------------
 *
 * cdc_changelog.c
 *		Module set-up: settings and callbacks.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/cdc_changelog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "utils/guc.h"

#include "cdc_changelog.h"
#include "commit.h"
#include "consumer.h"

#ifndef CDC_CHANGELOG_VERSION
#define CDC_CHANGELOG_VERSION	"unknown"
#endif

PG_MODULE_MAGIC_EXT(.name = "cdc_changelog",.version = CDC_CHANGELOG_VERSION);

int			cdc_horizon_timeout = 1000;
int			cdc_segment_size = 65536;
static char *cdc_table_id = NULL;

void		_PG_init(void);

/*
 * Module load.
 */
void
_PG_init(void)
{
	DefineCustomIntVariable("cdc_changelog.horizon_timeout",
							"Longest time a reader waits for committing transactions.",
							"After it, the reader takes the newest snapshot before the first that is not complete.",
							&cdc_horizon_timeout,
							1000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	/* Not for everybody: small segments are many tables. */
	DefineCustomIntVariable("cdc_changelog.segment_size",
							"Size at which the log of a table goes on in another segment.",
							"Expired history is given back to the operating system by segments.",
							&cdc_segment_size,
							65536, BLCKSZ / 1024, INT_MAX,
							PGC_SUSET, GUC_UNIT_KB,
							NULL, NULL, NULL);

	/*
	 * Attached to each typed changelog function to say which table it is for.
	 * It is read from the function's catalog entry, never from the setting.
	 */
	DefineCustomStringVariable(CDC_GUC_TABLE_ID,
							   "Tracked table that a changelog function reads.",
							   "Its number, and the time when its tracking began.",
							   &cdc_table_id,
							   NULL,
							   PGC_USERSET,
							   GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, NULL);
	MarkGUCPrefixReserved("cdc_changelog");

	cdc_commit_init();
	cdc_consumer_init();
}
