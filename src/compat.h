/*-------------------------------------------------------------------------
 *
 * compat.h
 *		Differences between the supported server versions.
 *
 * Every test of the server version in this extension is in this file.  The
 * macros are named like the newest interface, so that an old branch goes away
 * by deletion.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/compat.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_COMPAT_H
#define CDC_COMPAT_H

#include "catalog/pg_namespace.h"
#include "fmgr.h"

#if PG_VERSION_NUM < 150000
#error "cdc_changelog needs PostgreSQL 15 or newer"
#endif

/* 18: modules report their name and version */
#ifndef PG_MODULE_MAGIC_EXT
#define PG_MODULE_MAGIC_EXT(...) PG_MODULE_MAGIC
#endif

/* 16: one aclcheck function for every kind of object */
#if PG_VERSION_NUM < 160000
#define cdc_schema_aclcheck(nspid, roleid, mode) \
	pg_namespace_aclcheck(nspid, roleid, mode)
#define cdc_relation_ownercheck(relid, roleid) \
	pg_class_ownercheck(relid, roleid)
#define cdc_schema_ownercheck(nspid, roleid) \
	pg_namespace_ownercheck(nspid, roleid)
#else
#define cdc_schema_aclcheck(nspid, roleid, mode) \
	object_aclcheck(NamespaceRelationId, nspid, roleid, mode)
#define cdc_relation_ownercheck(relid, roleid) \
	object_ownercheck(RelationRelationId, relid, roleid)
#define cdc_schema_ownercheck(nspid, roleid) \
	object_ownercheck(NamespaceRelationId, nspid, roleid)
#endif

/* 16: attribute maps can leave out missing columns */
#if PG_VERSION_NUM < 160000
#define cdc_build_attrmap(indesc, outdesc) \
	build_attrmap_by_name_if_req(indesc, outdesc)
#else
#define cdc_build_attrmap(indesc, outdesc) \
	build_attrmap_by_name_if_req(indesc, outdesc, false)
#endif

/* 16: reading from a temporary file has a form that fails on a short read */
#if PG_VERSION_NUM < 160000
#define cdc_BufFileReadExact(file, ptr, size) \
	do { \
		if (BufFileRead(file, ptr, size) != (size)) \
			ereport(ERROR, \
					(errcode_for_file_access(), \
					 errmsg("could not read from temporary file"))); \
	} while (0)
#else
#define cdc_BufFileReadExact(file, ptr, size) BufFileReadExact(file, ptr, size)
#endif

/* 16: a sorted datum can be returned without a copy */
#if PG_VERSION_NUM < 160000
#define cdc_tuplesort_getdatum(state, datum, isnull) \
	tuplesort_getdatum(state, true, datum, isnull, NULL)
#else
#define cdc_tuplesort_getdatum(state, datum, isnull) \
	tuplesort_getdatum(state, true, false, datum, isnull, NULL)
#endif

/* 16: foreign tables can have TRUNCATE triggers */
#define CDC_FOREIGN_TRUNCATE_TRIGGERS	(PG_VERSION_NUM >= 160000)

/* 16: relfilenode is relfilenumber */
#if PG_VERSION_NUM < 160000
#define cdc_relation_new_storage(rel) \
	((rel)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#define cdc_relation_storage_subid(rel) ((rel)->rd_newRelfilenodeSubid)
#else
#define cdc_relation_new_storage(rel) \
	((rel)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#define cdc_relation_storage_subid(rel) ((rel)->rd_newRelfilelocatorSubid)
#endif

/* 16: TRUNCATE can switch to the table's owner */
#if PG_VERSION_NUM < 160000
#define cdc_ExecuteTruncateGuts(rels, relids, logged, behavior, restart) \
	ExecuteTruncateGuts(rels, relids, logged, behavior, restart)
#else
#define cdc_ExecuteTruncateGuts(rels, relids, logged, behavior, restart) \
	ExecuteTruncateGuts(rels, relids, logged, behavior, restart, false)
#endif

/* 18: minimal tuples may have room before them */
#if PG_VERSION_NUM < 180000
#define cdc_form_minimal_tuple(desc, values, isnull) \
	heap_form_minimal_tuple(desc, unconstify(Datum *, values), \
							unconstify(bool *, isnull))
#define cdc_copy_minimal_tuple(tuple) heap_copy_minimal_tuple(tuple)
#else
#define cdc_form_minimal_tuple(desc, values, isnull) \
	heap_form_minimal_tuple(desc, values, isnull, 0)
#define cdc_copy_minimal_tuple(tuple) heap_copy_minimal_tuple(tuple, 0)
#endif

/* 17: objects are named by the class of their catalog, not by the catalog */
#if PG_VERSION_NUM < 170000
#define cdc_alter_owner(catalog, objectid, owner) \
	AlterObjectOwner_internal(catalog, objectid, owner)
#else
#define cdc_alter_owner(catalog, objectid, owner) \
	AlterObjectOwner_internal(RelationGetRelid(catalog), objectid, owner)
#endif

/* 18: Abs() is gone, for the functions of the C library */
#define cdc_abs(x)	((x) >= 0 ? (x) : -(x))

/* 18: functions that do not return are marked before their declaration */
#if PG_VERSION_NUM < 180000
#define cdc_noreturn
#else
#define cdc_noreturn pg_noreturn
#define pg_attribute_noreturn()
#endif

#endif							/* CDC_COMPAT_H */
