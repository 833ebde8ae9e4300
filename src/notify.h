/*-------------------------------------------------------------------------
 *
 * notify.h
 *		Notifications of changes of tracked tables.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/notify.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_NOTIFY_H
#define CDC_NOTIFY_H

#include "nodes/pg_list.h"

extern void cdc_notify_send(const List *changed);

#endif							/* CDC_NOTIFY_H */
