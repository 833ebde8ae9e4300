/*-------------------------------------------------------------------------
 *
 * rowcmp.c
 *		Hashing and comparing rows, by image and by key.
 *
 * Two rows have the same image if all their columns are the same to the last
 * byte once compressed and out-of-line values are expanded.  They have the
 * same key if the identifier columns are equal by their types' default
 * equality and the columns' collations; NULL is equal to NULL.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/rowcmp.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

#include "cdc_changelog.h"
#include "rowcmp.h"

/* Columns that are taken out of a row together */
#define DEFORM_STEP	4

/* Hash of a NULL */
#define HASH_NULL	0x9e3779b9

static void set_key_column(CdcKeyColumn *key, Form_pg_attribute att);

/*
 * Prepare comparisons for a table.
 *
 * "identifiers" is a list of column names (char *), NIL for comparisons by
 * image only; a name given twice counts once.  Raises undefined_column for a
 * column that is not there, and undefined_function for a column whose type has
 * no equality.  Allocated in the current memory context.
 */
CdcRowCompare *
cdc_rowcmp_create(TupleDesc desc, List *identifiers, const char *relname)
{
	CdcRowCompare *cmp = palloc0(sizeof(CdcRowCompare));
	ListCell   *lc;

	cmp->desc = desc;
	cmp->keys = palloc0(sizeof(CdcKeyColumn) * (list_length(identifiers) + 1));
	foreach(lc, identifiers)
	{
		const char *name = lfirst(lc);
		Form_pg_attribute att = NULL;
		bool		twice = false;

		for (int i = 0; i < desc->natts && att == NULL; i++)
			if (!TupleDescAttr(desc, i)->attisdropped &&
				strcmp(NameStr(TupleDescAttr(desc, i)->attname), name) == 0)
				att = TupleDescAttr(desc, i);
		if (att == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("identifier column \"%s\" of table \"%s\" does not exist",
							name, relname)));
		for (int i = 0; i < cmp->nkeys; i++)
			twice |= cmp->keys[i].attno == att->attnum;
		if (twice)
			continue;
		set_key_column(&cmp->keys[cmp->nkeys++], att);
		cmp->maxkey = Max(cmp->maxkey, att->attnum);
	}
	return cmp;
}

/*
 * Look up how to compare a column.
 */
static void
set_key_column(CdcKeyColumn *key, Form_pg_attribute att)
{
	TypeCacheEntry *type;

	key->attno = att->attnum;
	key->collation = att->attcollation;

	type = lookup_type_cache(getBaseType(att->atttypid),
							 TYPECACHE_EQ_OPR_FINFO | TYPECACHE_HASH_PROC_FINFO);
	if (!OidIsValid(type->eq_opr_finfo.fn_oid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("column \"%s\" cannot be an identifier",
						NameStr(att->attname)),
				 errdetail("Type %s has no default equality operator.",
						   format_type_be(att->atttypid))));
	fmgr_info_copy(&key->equal, &type->eq_opr_finfo, CurrentMemoryContext);
	if (OidIsValid(type->hash_proc_finfo.fn_oid))
		fmgr_info_copy(&key->hash, &type->hash_proc_finfo, CurrentMemoryContext);

	/*
	 * These are equal exactly if their bytes are, which gives those of them
	 * that have no hash function one.
	 */
	switch (type->type_id)
	{
		case BOOLOID:
		case BITOID:
		case VARBITOID:
		case BYTEAOID:
		case CASHOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case OIDOID:
		case UUIDOID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			key->by_image = true;
			break;
		case TEXTOID:
		case VARCHAROID:
			key->by_image = !OidIsValid(key->collation) ||
				get_collation_isdeterministic(key->collation);
			break;
		default:
			break;
	}
}

/*
 * Hash of a value's image.  Values of fixed width are taken as they are, which
 * is cheaper than the general function and as good.
 */
static inline uint32
hash_datum(Datum value, const FormData_pg_attribute *att)
{
	if (att->attbyval)
		return murmurhash32((uint32) value ^ (uint32) ((uint64) value >> 32));
	if (att->attlen == -1 && !VARATT_IS_EXTENDED(DatumGetPointer(value)))
		return hash_bytes((unsigned char *) VARDATA_ANY(DatumGetPointer(value)),
						  VARSIZE_ANY_EXHDR(DatumGetPointer(value)));
	if (att->attlen == -1 && VARATT_IS_SHORT(DatumGetPointer(value)) &&
		!VARATT_IS_EXTERNAL(DatumGetPointer(value)))
		return hash_bytes((unsigned char *) VARDATA_SHORT(DatumGetPointer(value)),
						  VARSIZE_SHORT(DatumGetPointer(value)) - VARHDRSZ_SHORT);
	return datum_image_hash(value, att->attbyval, att->attlen);
}

/*
 * Are two values, not NULL, the same image?
 */
static inline bool
same_datum(Datum a, Datum b, const FormData_pg_attribute *att)
{
	if (att->attbyval)
		return a == b;
	if (att->attlen == -1 &&
		VARATT_IS_SHORT(DatumGetPointer(a)) && VARATT_IS_SHORT(DatumGetPointer(b)) &&
		!VARATT_IS_EXTERNAL(DatumGetPointer(a)) &&
		!VARATT_IS_EXTERNAL(DatumGetPointer(b)))
		return VARSIZE_SHORT(DatumGetPointer(a)) == VARSIZE_SHORT(DatumGetPointer(b)) &&
			memcmp(DatumGetPointer(a), DatumGetPointer(b),
				   VARSIZE_SHORT(DatumGetPointer(a))) == 0;
	return datum_image_eq(a, b, att->attbyval, att->attlen);
}

/*
 * Hash of a row's key.
 */
uint32
cdc_hash_key(const CdcRowCompare *cmp, TupleTableSlot *slot, int shift)
{
	uint32		result = 0;

	slot_getsomeattrs(slot, cmp->maxkey + shift);
	for (int i = 0; i < cmp->nkeys; i++)
	{
		CdcKeyColumn *key = &cmp->keys[i];
		int			col = key->attno + shift - 1;
		uint32		h;

		if (slot->tts_isnull[col])
			h = HASH_NULL;
		else if (key->by_image)
			h = hash_datum(slot->tts_values[col],
						   TupleDescAttr(cmp->desc, key->attno - 1));
		else if (OidIsValid(key->hash.fn_oid))
			h = DatumGetUInt32(FunctionCall1Coll(&key->hash, key->collation,
												 slot->tts_values[col]));
		else
			h = 0;				/* all are compared */
		result = hash_combine(result, h);
	}
	return murmurhash32(result);
}

/*
 * Hash of a row's image.
 */
uint32
cdc_hash_image(const CdcRowCompare *cmp, TupleTableSlot *slot, int shift)
{
	uint32		result = 0;

	slot_getallattrs(slot);
	for (int i = 0; i < cmp->desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(cmp->desc, i);

		if (att->attisdropped)
			continue;
		result = hash_combine(result,
							  slot->tts_isnull[i + shift] ? HASH_NULL :
							  hash_datum(slot->tts_values[i + shift], att));
	}
	return murmurhash32(result);
}

/*
 * Do two rows have the same key?
 */
bool
cdc_same_key(const CdcRowCompare *cmp, TupleTableSlot *a, int shift_a,
			 TupleTableSlot *b, int shift_b)
{
	slot_getsomeattrs(a, cmp->maxkey + shift_a);
	slot_getsomeattrs(b, cmp->maxkey + shift_b);
	for (int i = 0; i < cmp->nkeys; i++)
	{
		CdcKeyColumn *key = &cmp->keys[i];
		int			col_a = key->attno + shift_a - 1;
		int			col_b = key->attno + shift_b - 1;

		if (a->tts_isnull[col_a] != b->tts_isnull[col_b])
			return false;
		if (a->tts_isnull[col_a])
			continue;
		if (key->by_image)
		{
			if (!same_datum(a->tts_values[col_a], b->tts_values[col_b],
							TupleDescAttr(cmp->desc, key->attno - 1)))
				return false;
		}
		else if (!DatumGetBool(FunctionCall2Coll(&key->equal, key->collation,
												 a->tts_values[col_a],
												 b->tts_values[col_b])))
			return false;
	}
	return true;
}

/*
 * Do two rows have the same image?
 */
bool
cdc_same_image(const CdcRowCompare *cmp, TupleTableSlot *a, int shift_a,
			   TupleTableSlot *b, int shift_b)
{
	int			natts = cmp->desc->natts;

	for (int i = 0; i < natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(cmp->desc, i);

		/* a few at a time, as most rows that differ do so early */
		if (i % DEFORM_STEP == 0)
		{
			slot_getsomeattrs(a, Min(i + DEFORM_STEP, natts) + shift_a);
			slot_getsomeattrs(b, Min(i + DEFORM_STEP, natts) + shift_b);
		}
		if (att->attisdropped)
			continue;
		if (a->tts_isnull[i + shift_a] != b->tts_isnull[i + shift_b])
			return false;
		if (!a->tts_isnull[i + shift_a] &&
			!same_datum(a->tts_values[i + shift_a], b->tts_values[i + shift_b],
						att))
			return false;
	}
	return true;
}

/*
 * A row's key for an error message: "(id, k)=(1, x)".
 */
char *
cdc_key_detail(const CdcRowCompare *cmp, TupleTableSlot *slot, int shift)
{
	StringInfoData buf;

	initStringInfo(&buf);
	appendStringInfo(&buf, "(%s)=(", cdc_key_names(cmp));
	slot_getsomeattrs(slot, cmp->maxkey + shift);
	for (int i = 0; i < cmp->nkeys; i++)
	{
		AttrNumber	attno = cmp->keys[i].attno;
		Oid			output;
		bool		isvarlena;

		if (i > 0)
			appendStringInfoString(&buf, ", ");
		if (slot->tts_isnull[attno + shift - 1])
		{
			appendStringInfoString(&buf, "null");
			continue;
		}
		getTypeOutputInfo(TupleDescAttr(cmp->desc, attno - 1)->atttypid,
						  &output, &isvarlena);
		appendStringInfoString(&buf,
							   OidOutputFunctionCall(output,
													 slot->tts_values[attno + shift - 1]));
	}
	appendStringInfoChar(&buf, ')');
	return buf.data;
}

/*
 * The identifier columns for a message: "id, k".
 */
char *
cdc_key_names(const CdcRowCompare *cmp)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (int i = 0; i < cmp->nkeys; i++)
		appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "",
						 NameStr(TupleDescAttr(cmp->desc, cmp->keys[i].attno - 1)->attname));
	return buf.data;
}
