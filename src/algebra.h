/*-------------------------------------------------------------------------
 *
 * algebra.h
 *		The change algebra: from the log's signed rows to a changelog.
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/algebra.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef CDC_ALGEBRA_H
#define CDC_ALGEBRA_H

/* What a changelog shows */
typedef enum CdcMode
{
	CDC_MODE_NET,
	CDC_MODE_ALL,
	CDC_MODE_LATEST,
	CDC_MODE_LATEST_PAIR
} CdcMode;

/* What becomes of an event in the output; 0 is none */
typedef enum CdcChange
{
	CDC_INSERT = 1,
	CDC_DELETE = 2,
	CDC_UPDATE_BEFORE = 3,
	CDC_UPDATE_AFTER = 4,
	CDC_BASE_INSERT = 5			/* an INSERT of the range's first content */
} CdcChange;

/*
 * One row, of the log or of the live table.  Small, because there is one for
 * each row that is looked at.
 */
typedef struct CdcEvent
{
	uint32		hash;			/* of the key, or of the image */
	int32		snap;			/* position of the snapshot; -1 is the live
								 * table */
	uint32		block;
	uint16		bits;			/* offset number and flags, see below */
	uint16		source;			/* which relation the row is in */
} CdcEvent;

#define CDC_EVENT_OFFSET	0x1fff	/* offset number in the block */
#define CDC_EVENT_PLUS		0x2000	/* the row came; else it went */
/* this event and the one before it in the log are a row that went and the row
 * of the same key, but another image, that came */
#define CDC_EVENT_MATE		0x4000

#define CDC_SNAP_LIVE		(-1)

#define CdcEventIsPlus(e)	(((e)->bits & CDC_EVENT_PLUS) != 0)
#define CdcEventIsLive(e)	((e)->snap == CDC_SNAP_LIVE)

/* What the algebra is to compute, and how it learns more about events */
typedef struct CdcAlgebra
{
	CdcMode		mode;
	bool		by_key;			/* hashes are of keys, else of images */
	bool		validate;		/* keys must be unique in every snapshot */
	bool		have_content;	/* events hold the live table and all that
								 * happened since the range's start */
	bool		emit_base;		/* emit the range's first content */
	bool		verify;			/* emit nothing, but find what cannot be; not
								 * by key, and have_content is set */
	int			nrange;			/* events with 0 <= snap < nrange are in the
								 * range, the others only tell the content */

	bool		(*same_key) (void *arg, const CdcEvent *a, const CdcEvent *b);
	bool		(*same_image) (void *arg, const CdcEvent *a, const CdcEvent *b);
	uint32		(*image_hash) (void *arg, const CdcEvent *e);
	void		(*emit) (void *arg, const CdcEvent *e, CdcChange change);

	/*
	 * Raises an error: "count" rows have the key of e after the snapshot at
	 * position "snap"; -1 is the range's start.  With count 0, the rows of
	 * that snapshot cannot be paired.
	 */
	void		(*duplicate) (void *arg, const CdcEvent *e, int snap, int64 count);
	/* Raises an error: a row went more often than it had come. */
	void		(*damaged) (void *arg, const CdcEvent *e);
	/* For "verify": after e, in snapshot "snap", there were "count" < 0 rows. */
	void		(*negative) (void *arg, const CdcEvent *e, int snap, int64 count);
	void	   *arg;

	/* Set by cdc_algebra_init() */
	struct CdcScratch *scratch;
} CdcAlgebra;

extern void cdc_algebra_init(CdcAlgebra *algebra);
extern void cdc_algebra_run(CdcAlgebra *algebra, CdcEvent *events,
							Size nevents);
extern bool cdc_parse_mode(const char *name, CdcMode *mode);

#endif							/* CDC_ALGEBRA_H */
