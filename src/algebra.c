/*-------------------------------------------------------------------------
 *
 * algebra.c
 *		The change algebra: from the log's signed rows to a changelog.
 *
 * The input is a bag of events, one for each row: rows that came and rows that
 * went, each in one snapshot, and possibly the rows of the live table.  Events
 * are small and carry a hash; the rows themselves stay where they are and are
 * looked at, through callbacks, only to confirm that equal hashes mean equal
 * rows.  The output is which events are to be shown, and as what.
 *
 * Without identifiers, events are grouped by row image:
 *	- mode "all" shows the sum of each snapshot;
 *	- mode "net" walks the snapshots with a stack, on which an event of the
 *	  opposite sign removes the newest one, and shows what is left.
 *
 * With identifiers, events are grouped by key.  Rows of the same image that
 * came and went in one snapshot cancel; what is left of one snapshot is a
 * DELETE, an INSERT, or both, which is an update.
 *
 * The content at the start of the range is never stored: it is the live table
 * minus all that happened since.
 *
 * This module knows neither catalogs nor the log.  It takes its scratch memory
 * from the memory context that is current in cdc_algebra_init().
 *
 * Copyright (c) 2026, the cdc_changelog authors
 *
 * IDENTIFICATION
 *		src/algebra.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "algebra.h"
#include "compat.h"

/* An event that is left over, with its sign */
typedef struct Leftover
{
	CdcEvent   *event;
	int			snap;			/* -1: the first content */
	CdcChange	change;			/* CDC_INSERT, CDC_DELETE or CDC_BASE_INSERT */
} Leftover;

/* A number of events with one image on the stack of mode "net" */
typedef struct StackItem
{
	int			snap;			/* -1: the first content */
	int64		count;			/* negative: rows that went */
	CdcEvent   *events;			/* those of this snapshot */
	Size		nevents;
} StackItem;

/* What one snapshot did to one key */
typedef struct KeyStep
{
	int			snap;
	CdcEvent   *minus;			/* one that went, if any */
	CdcEvent   *plus;			/* one that came, if any */
	int64		nminus;
	int64		nplus;
	Size		first_minus;	/* all of them, in CdcScratch.steps_events */
	Size		first_plus;
} KeyStep;

/* An event with the hash of its image */
typedef struct HashedEvent
{
	uint32		hash;
	uint32		order;
	CdcEvent   *event;
} HashedEvent;

/* Counters up to two, of two bits each, in a word */
#define SEEN_PER_WORD	16

/* A growing array */
#define GROWING(type) \
	struct { type *items; Size n; Size space; }

typedef struct CdcScratch
{
	MemoryContext context;
				GROWING(CdcEvent) members;	/* events of one key or image */
				GROWING(CdcEvent) rest; /* of equal hash, but another key or
										 * image */
				GROWING(CdcEvent) image;	/* events of one image of one key */
				GROWING(HashedEvent) hashed;
				GROWING(HashedEvent) hashed2;
				GROWING(Leftover) leftovers;
				GROWING(StackItem) stack;
				GROWING(KeyStep) steps;
				GROWING(CdcEvent *) step_events;
} CdcScratch;

#define RESERVE(s, array, count) \
	do { \
		if ((array).space < (Size) (count)) \
			(array).items = grow((s), (array).items, sizeof(*(array).items), \
								 (count), &(array).space); \
	} while (0)
#define APPEND(s, array, item) \
	do { \
		RESERVE(s, array, (array).n + 1); \
		(array).items[(array).n++] = (item); \
	} while (0)

static void *grow(CdcScratch *s, void *items, Size size, Size count,
				  Size *space);
static void process_group(CdcAlgebra *a, CdcEvent *events, Size n);
static void process_class(CdcAlgebra *a, CdcEvent *events, Size n);
static void process_image(CdcAlgebra *a, CdcEvent *events, Size n);
static void process_key(CdcAlgebra *a, CdcEvent *events, Size n);
static void verify_image(CdcAlgebra *a, CdcEvent *events, Size n);
static int64 first_content(CdcAlgebra *a, CdcEvent *events, Size n);
static void net_leftovers(CdcAlgebra *a, CdcEvent *events, Size n);
static void image_leftovers(CdcAlgebra *a, CdcEvent *events, Size n,
							bool base_only);
static void make_steps(CdcAlgebra *a, CdcEvent *events, Size n);
static void make_step(CdcAlgebra *a, CdcEvent *events, Size n);
static void check_key(CdcAlgebra *a, CdcEvent *events, Size n);
static void emit_step(CdcAlgebra *a, KeyStep *step, bool before);
static void emit_net_key(CdcAlgebra *a);

/* Events by hash, then in the order in which they happened. */
static inline int
compare_events(const CdcEvent *x, const CdcEvent *y)
{
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	if (x->snap != y->snap)
		return x->snap < y->snap ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->block != y->block)
		return x->block < y->block ? -1 : 1;
	return (int) (x->bits & CDC_EVENT_OFFSET) - (int) (y->bits & CDC_EVENT_OFFSET);
}

#define ST_SORT sort_events
#define ST_ELEMENT_TYPE CdcEvent
#define ST_COMPARE(a, b) compare_events(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

static inline int
compare_hashed(const HashedEvent *x, const HashedEvent *y)
{
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

#define ST_SORT sort_hashed
#define ST_ELEMENT_TYPE HashedEvent
#define ST_COMPARE(a, b) compare_hashed(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DEFINE
#include "lib/sort_template.h"

/*
 * Prepare for cdc_algebra_run().
 */
void
cdc_algebra_init(CdcAlgebra *algebra)
{
	algebra->scratch = palloc0(sizeof(CdcScratch));
	algebra->scratch->context = CurrentMemoryContext;
}

/*
 * Are the first two events a row and its successor of the same key?
 */
static inline bool
is_mates(const CdcEvent *events)
{
	return (events[1].bits & CDC_EVENT_MATE) != 0 &&
		!CdcEventIsPlus(&events[0]) && events[0].snap == events[1].snap;
}

/*
 * Compute the changelog of a bag of events, which are put in another order.
 * All events of a hash must be in one call, and mates next to each other.
 *
 * Most hashes have but one event, or a pair of mates.  They are found with an
 * array of counters, small enough for the processor's cache, and need no
 * sorting.
 */
void
cdc_algebra_run(CdcAlgebra *algebra, CdcEvent *events, Size nevents)
{
	Size		nslots = 1024;
	uint32	   *seen;
	Size		begin = 0;
	Size		rest = 0;

	while (nslots < nevents * 4 && nslots < (Size) 1024 * 1024 * 1024)
		nslots *= 2;
	seen = MemoryContextAllocExtended(algebra->scratch->context,
									  nslots / SEEN_PER_WORD * sizeof(uint32),
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (Size i = 0; i < nevents; i++)
	{
		uint32		slot = events[i].hash & (nslots - 1);
		uint32	   *word = &seen[slot / SEEN_PER_WORD];
		int			shift = slot % SEEN_PER_WORD * 2;

		if (i > 0 && algebra->by_key && is_mates(&events[i - 1]))
			continue;
		/* 0 becomes 1, 1 becomes 3, 3 stays */
		*word |= ((*word >> shift & 1) << 1 | 1) << shift;
	}

	for (Size i = 0; i < nevents;)
	{
		uint32		slot = events[i].hash & (nslots - 1);
		Size		n = i + 1 < nevents && algebra->by_key &&
			is_mates(&events[i]) ? 2 : 1;

		if ((seen[slot / SEEN_PER_WORD] >> slot % SEEN_PER_WORD * 2 & 2) == 0)
		{
			CHECK_FOR_INTERRUPTS();
			process_class(algebra, &events[i], n);
			i += n;
			continue;
		}
		while (n-- > 0)
			events[rest++] = events[i++];
	}
	pfree(seen);

	sort_events(events, rest);
	while (begin < rest)
	{
		Size		end = begin + 1;

		while (end < rest && events[end].hash == events[begin].hash)
			end++;
		CHECK_FOR_INTERRUPTS();
		process_group(algebra, &events[begin], end - begin);
		begin = end;
	}
}

/*
 * The mode of that name; false if there is none.
 */
bool
cdc_parse_mode(const char *name, CdcMode *mode)
{
	static const char *const names[] = {"net", "all", "latest", "latest_pair"};

	for (int i = 0; i < lengthof(names); i++)
	{
		if (strcmp(name, names[i]) == 0)
		{
			*mode = (CdcMode) i;
			return true;
		}
	}
	return false;
}

/*
 * Make an array of the scratch memory larger.
 */
static void *
grow(CdcScratch *s, void *items, Size size, Size count, Size *space)
{
	Size		wanted = Max(count, *space * 2);

	wanted = Max(wanted, 16);
	*space = wanted;
	if (items == NULL)
		return MemoryContextAllocHuge(s->context, wanted * size);
	return repalloc_huge(items, wanted * size);
}

/*
 * Do two events belong to the same key, or image?
 */
static inline bool
same_class(CdcAlgebra *a, const CdcEvent *x, const CdcEvent *y)
{
	return a->by_key ? a->same_key(a->arg, x, y) : a->same_image(a->arg, x, y);
}

/*
 * Process events of the same hash: part them by what they really are.
 */
static void
process_group(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;

	if (n == 1 || (n == 2 && a->by_key && is_mates(events)))
	{
		process_class(a, events, n);
		return;
	}

	while (n > 0)
	{
		s->members.n = 0;
		s->rest.n = 0;
		APPEND(s, s->members, events[0]);
		for (Size i = 1; i < n; i++)
		{
			bool		same;

			CHECK_FOR_INTERRUPTS();
			if (a->by_key && (events[i].bits & CDC_EVENT_MATE) != 0 &&
				is_mates(&events[i - 1]))
			{
				/* goes where the one before it went */
				CdcEvent   *last = s->members.n > 0 ?
					&s->members.items[s->members.n - 1] : NULL;

				same = last && last->block == events[i - 1].block &&
					last->source == events[i - 1].source &&
					last->bits == events[i - 1].bits;
			}
			else
				same = same_class(a, &events[0], &events[i]);

			if (same)
				APPEND(s, s->members, events[i]);
			else
				APPEND(s, s->rest, events[i]);
		}

		process_class(a, s->members.items, s->members.n);
		if (s->rest.n == 0)
			break;

		/* go on with the rest, which the next round overwrites: copy it back */
		n = s->rest.n;
		memcpy(events, s->rest.items, n * sizeof(CdcEvent));
	}
}

/*
 * Process the events of one key or image, in the order they happened.
 */
static void
process_class(CdcAlgebra *a, CdcEvent *events, Size n)
{
	if (a->by_key)
		process_key(a, events, n);
	else
		process_image(a, events, n);
}

/*
 * Is the event in the range?
 */
static inline bool
in_range(const CdcAlgebra *a, const CdcEvent *e)
{
	return e->snap >= 0 && e->snap < a->nrange;
}

/*
 * How many rows with this image or key there were at the start of the range.
 */
static int64
first_content(CdcAlgebra *a, CdcEvent *events, Size n)
{
	int64		count = 0;

	for (Size i = 0; i < n; i++)
	{
		if (CdcEventIsLive(&events[i]) || !CdcEventIsPlus(&events[i]))
			count++;
		else
			count--;
	}
	if (count < 0)
		a->damaged(a->arg, &events[0]);
	return count;
}

/*
 * End of the run of events that are in the same snapshot as the one at
 * "begin"; *sum is set to rows that came minus rows that went.
 */
static Size
snapshot_end(const CdcEvent *events, Size n, Size begin, int64 *sum)
{
	Size		end = begin;

	*sum = 0;
	while (end < n && events[end].snap == events[begin].snap)
	{
		*sum += CdcEventIsPlus(&events[end]) ? 1 : -1;
		end++;
	}
	return end;
}

/*
 * Add "count" events of the stack item to what is left over.
 */
static void
leave(CdcAlgebra *a, const StackItem *item, int64 count)
{
	CdcScratch *s = a->scratch;
	Leftover	leftover;

	leftover.snap = item->snap;
	if (item->snap < 0)
		leftover.change = CDC_BASE_INSERT;
	else
		leftover.change = item->count > 0 ? CDC_INSERT : CDC_DELETE;

	for (Size i = 0; i < item->nevents && count > 0; i++)
	{
		CdcEvent   *e = &item->events[i];

		/* any row will do that was there at the start or went later */
		if (leftover.change == CDC_BASE_INSERT ?
			(CdcEventIsPlus(e) && !CdcEventIsLive(e)) :
			CdcEventIsPlus(e) != (leftover.change == CDC_INSERT))
			continue;
		leftover.event = e;
		APPEND(s, s->leftovers, leftover);
		count--;
	}
	Assert(count == 0);
}

/*
 * Walk the events of one image with the stack of mode "net" and add what is
 * left to the leftovers.
 */
static void
net_leftovers(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;
	Size		begin = 0;

	s->stack.n = 0;
	if (a->emit_base)
	{
		StackItem	item;

		item.snap = -1;
		item.count = first_content(a, events, n);
		item.events = events;
		item.nevents = n;
		if (item.count > 0)
			APPEND(s, s->stack, item);
	}

	while (begin < n)
	{
		int64		sum;
		Size		end = snapshot_end(events, n, begin, &sum);

		if (in_range(a, &events[begin]) && sum != 0)
		{
			StackItem	item;

			/* pop the newest ones of the opposite sign */
			while (sum != 0 && s->stack.n > 0)
			{
				StackItem  *top = &s->stack.items[s->stack.n - 1];

				if ((top->count > 0) == (sum > 0))
					break;
				if (cdc_abs(top->count) > cdc_abs(sum))
				{
					top->count += sum;
					sum = 0;
				}
				else
				{
					sum += top->count;
					s->stack.n--;
				}
			}
			if (sum != 0)
			{
				item.snap = events[begin].snap;
				item.count = sum;
				item.events = &events[begin];
				item.nevents = end - begin;
				APPEND(s, s->stack, item);
			}
		}
		begin = end;
	}

	for (Size i = 0; i < s->stack.n; i++)
		leave(a, &s->stack.items[i], cdc_abs(s->stack.items[i].count));
}

/*
 * Find out whether there ever were less than no rows of an image, and tell for
 * which event that comes to light.
 */
static void
verify_image(CdcAlgebra *a, CdcEvent *events, Size n)
{
	int64		count = 0;
	int64		lowest = 0;
	Size		begin = 0;

	for (Size i = 0; i < n; i++)
		count += CdcEventIsLive(&events[i]) || !CdcEventIsPlus(&events[i]) ? 1 : -1;

	/* As many as that many came too often; it may have been the last ones. */
	for (Size i = n; i > 0 && count < 0; i--)
	{
		if (!CdcEventIsLive(&events[i - 1]) && CdcEventIsPlus(&events[i - 1]))
		{
			a->negative(a->arg, &events[i - 1], events[i - 1].snap, -1);
			count++;
		}
	}

	while (begin < n)
	{
		int64		sum;
		Size		end = snapshot_end(events, n, begin, &sum);
		CdcEvent   *minus = NULL;

		if (!CdcEventIsLive(&events[begin]))
			count += sum;
		for (Size i = begin; i < end && count < lowest; i++)
			if (!CdcEventIsPlus(&events[i]))
				minus = &events[i];
		if (minus)
		{
			a->negative(a->arg, minus, minus->snap, count - lowest);
			lowest = count;
		}
		begin = end;
	}
}

/*
 * Process the events of one image, without identifiers.
 */
static void
process_image(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;

	if (a->verify)
	{
		verify_image(a, events, n);
		return;
	}
	s->leftovers.n = 0;
	if (n == 1 && !a->have_content)
	{
		/* by far the most frequent */
		a->emit(a->arg, &events[0],
				CdcEventIsPlus(&events[0]) ? CDC_INSERT : CDC_DELETE);
		return;
	}

	if (a->mode == CDC_MODE_NET)
		net_leftovers(a, events, n);
	else
	{
		StackItem	item;
		Size		begin = 0;

		if (a->emit_base)
		{
			item.snap = -1;
			item.count = first_content(a, events, n);
			item.events = events;
			item.nevents = n;
			leave(a, &item, item.count);
		}
		while (begin < n)
		{
			Size		end = snapshot_end(events, n, begin, &item.count);

			item.snap = events[begin].snap;
			item.events = &events[begin];
			item.nevents = end - begin;
			if (in_range(a, &events[begin]))
				leave(a, &item, cdc_abs(item.count));
			begin = end;
		}
	}

	for (Size i = 0; i < s->leftovers.n; i++)
		a->emit(a->arg, s->leftovers.items[i].event,
				s->leftovers.items[i].change);
}

/*
 * Part the events of one key by image, and add to the leftovers what mode
 * "net" leaves of each; or, with "base_only", only the range's first content.
 */
static void
image_leftovers(CdcAlgebra *a, CdcEvent *events, Size n, bool base_only)
{
	CdcScratch *s = a->scratch;
	Size		begin = 0;

	s->leftovers.n = 0;
	if (n == 1)
	{
		if (CdcEventIsLive(&events[0]))
		{
			Leftover	leftover = {&events[0], -1, CDC_BASE_INSERT};

			if (a->emit_base)
				APPEND(s, s->leftovers, leftover);
			return;
		}
		if (!a->have_content)
		{
			Leftover	leftover = {&events[0], events[0].snap,
			CdcEventIsPlus(&events[0]) ? CDC_INSERT : CDC_DELETE};

			APPEND(s, s->leftovers, leftover);
			return;
		}
	}
	if (n == 2 && is_mates(events) && !a->have_content)
	{
		Leftover	minus = {&events[0], events[0].snap, CDC_DELETE};
		Leftover	plus = {&events[1], events[1].snap, CDC_INSERT};

		APPEND(s, s->leftovers, minus);
		APPEND(s, s->leftovers, plus);
		return;
	}

	s->hashed.n = 0;
	for (Size i = 0; i < n; i++)
	{
		HashedEvent h = {a->image_hash(a->arg, &events[i]), (uint32) i, &events[i]};

		CHECK_FOR_INTERRUPTS();
		APPEND(s, s->hashed, h);
	}
	sort_hashed(s->hashed.items, s->hashed.n);

	/*
	 * The leftovers point into the array that holds the images, so it must
	 * not move while it is filled.
	 */
	s->image.n = 0;
	RESERVE(s, s->image, n);
	while (begin < n)
	{
		HashedEvent *h = s->hashed.items;
		CdcEvent   *first;
		Size		start = s->image.n;
		Size		others = 0;
		Size		end = begin;

		/* those of the first one's image; close the ranks of the others */
		first = h[begin].event;
		while (end < n && h[end].hash == h[begin].hash)
			end++;
		for (Size i = begin; i < end; i++)
		{
			if (h[i].event == first || a->same_image(a->arg, first, h[i].event))
				s->image.items[s->image.n++] = *h[i].event;
			else
				h[begin + others++] = h[i];
		}
		/* move the others to the end of this run and go on with them */
		memmove(&h[end - others], &h[begin], sizeof(HashedEvent) * others);
		begin = end - others;

		if (base_only)
		{
			StackItem	item;

			item.snap = -1;
			item.events = &s->image.items[start];
			item.nevents = s->image.n - start;
			item.count = first_content(a, item.events, item.nevents);
			leave(a, &item, item.count);
		}
		else
			net_leftovers(a, &s->image.items[start], s->image.n - start);
	}
}

/*
 * Process the events of one key.
 */
static void
process_key(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;
	Size		touched = 0;

	/* A key that was changed once, as most are */
	if (!a->have_content && a->mode != CDC_MODE_NET)
	{
		bool		before = a->mode != CDC_MODE_LATEST;

		if (n == 1)
		{
			a->emit(a->arg, &events[0],
					CdcEventIsPlus(&events[0]) ? CDC_INSERT : CDC_DELETE);
			return;
		}
		if (n == 2 && is_mates(events))
		{
			if (before)
				a->emit(a->arg, &events[0], CDC_UPDATE_BEFORE);
			a->emit(a->arg, &events[1], CDC_UPDATE_AFTER);
			return;
		}
	}

	for (Size i = 0; i < n && touched == 0; i++)
		if (in_range(a, &events[i]))
			touched++;
	if (touched == 0 && !a->emit_base)
		return;

	make_steps(a, events, n);
	check_key(a, events, n);

	if (a->mode == CDC_MODE_NET)
	{
		image_leftovers(a, events, n, false);
		emit_net_key(a);
		return;
	}

	if (a->emit_base && (a->mode == CDC_MODE_ALL || s->steps.n == 0))
	{
		image_leftovers(a, events, n, true);
		for (Size i = 0; i < s->leftovers.n; i++)
			a->emit(a->arg, s->leftovers.items[i].event, CDC_BASE_INSERT);
	}
	if (s->steps.n == 0)
		return;
	if (a->mode == CDC_MODE_ALL)
	{
		for (Size i = 0; i < s->steps.n; i++)
			emit_step(a, &s->steps.items[i], true);
	}
	else
		emit_step(a, &s->steps.items[s->steps.n - 1],
				  a->mode == CDC_MODE_LATEST_PAIR);
}

/*
 * Find what each snapshot of the range did to a key.
 */
static void
make_steps(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;
	Size		begin = 0;

	s->steps.n = 0;
	s->step_events.n = 0;
	while (begin < n)
	{
		int64		sum;
		Size		end = snapshot_end(events, n, begin, &sum);

		if (in_range(a, &events[begin]))
			make_step(a, &events[begin], end - begin);
		begin = end;
	}
}

/*
 * Find what one snapshot did to a key: cancel rows of the same image that came
 * and went.  Adds a step if something is left.
 */
static void
make_step(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;
	KeyStep		step = {0};
	Size		i,
				j;

	step.snap = events[0].snap;
	step.first_minus = s->step_events.n;

	if (n == 1 || (n == 2 && is_mates(events)))
	{
		for (i = 0; i < n; i++)
		{
			if (CdcEventIsPlus(&events[i]))
			{
				step.plus = &events[i];
				step.nplus = 1;
			}
			else
			{
				step.minus = &events[i];
				step.nminus = 1;
			}
			APPEND(s, s->step_events, &events[i]);
		}
		step.first_plus = step.first_minus + step.nminus;
		APPEND(s, s->steps, step);
		return;
	}

	/* those that went in one array, those that came in the other */
	s->hashed.n = 0;
	s->hashed2.n = 0;
	for (i = 0; i < n; i++)
	{
		HashedEvent h = {a->image_hash(a->arg, &events[i]), (uint32) i, &events[i]};

		CHECK_FOR_INTERRUPTS();
		if (CdcEventIsPlus(&events[i]))
			APPEND(s, s->hashed2, h);
		else
			APPEND(s, s->hashed, h);
	}
	sort_hashed(s->hashed.items, s->hashed.n);
	sort_hashed(s->hashed2.items, s->hashed2.n);

	/* cancel: a partner's event becomes NULL */
	for (i = 0, j = 0; i < s->hashed.n; i++)
	{
		HashedEvent *m = &s->hashed.items[i];

		while (j < s->hashed2.n && s->hashed2.items[j].hash < m->hash)
			j++;
		for (Size k = j; k < s->hashed2.n && s->hashed2.items[k].hash == m->hash; k++)
		{
			CdcEvent   *p = s->hashed2.items[k].event;

			if (p && a->same_image(a->arg, m->event, p))
			{
				m->event = NULL;
				s->hashed2.items[k].event = NULL;
				if (k == j)
					j++;
				break;
			}
		}
	}

	for (i = 0; i < s->hashed.n; i++)
	{
		if (s->hashed.items[i].event)
		{
			step.minus = s->hashed.items[i].event;
			step.nminus++;
			APPEND(s, s->step_events, step.minus);
		}
	}
	step.first_plus = s->step_events.n;
	for (i = 0; i < s->hashed2.n; i++)
	{
		if (s->hashed2.items[i].event)
		{
			step.plus = s->hashed2.items[i].event;
			step.nplus++;
			APPEND(s, s->step_events, step.plus);
		}
	}
	if (step.nminus > 0 || step.nplus > 0)
		APPEND(s, s->steps, step);
}

/*
 * Check that the key is unique, or at least that its rows can be paired.
 *
 * Without the live table the number of rows at the start of the range is not
 * known; then it is taken to be the smallest that is possible, and the caller
 * knows of a unique index that allows no larger one.
 */
static void
check_key(CdcAlgebra *a, CdcEvent *events, Size n)
{
	CdcScratch *s = a->scratch;
	int64		count = 0;

	for (Size i = 0; i < s->steps.n; i++)
	{
		KeyStep    *step = &s->steps.items[i];

		if (!a->validate && (step->nminus > 1 || step->nplus > 1))
			a->duplicate(a->arg, step->nplus > 1 ? step->plus : step->minus,
						 step->snap, 0);
	}
	if (!a->validate)
	{
		if (a->emit_base && first_content(a, events, n) > 1)
			a->duplicate(a->arg, &events[0], -1, 0);
		return;
	}

	if (a->have_content)
		count = first_content(a, events, n);
	else
	{
		int64		sum = 0;

		for (Size i = 0; i < s->steps.n; i++)
		{
			count = Max(count, s->steps.items[i].nminus - sum);
			sum += s->steps.items[i].nplus - s->steps.items[i].nminus;
			count = Max(count, -sum);
		}
	}
	if (count > 1 && (s->steps.n > 0 || a->emit_base))
		a->duplicate(a->arg, &events[0], -1, count);
	for (Size i = 0; i < s->steps.n; i++)
	{
		count += s->steps.items[i].nplus - s->steps.items[i].nminus;
		if (count > 1)
			a->duplicate(a->arg, s->steps.items[i].plus, s->steps.items[i].snap,
						 count);
	}
}

/*
 * Emit what one snapshot did to a key.
 */
static void
emit_step(CdcAlgebra *a, KeyStep *step, bool before)
{
	if (step->minus && step->plus)
	{
		if (before)
			a->emit(a->arg, step->minus, CDC_UPDATE_BEFORE);
		a->emit(a->arg, step->plus, CDC_UPDATE_AFTER);
	}
	else if (step->minus)
		a->emit(a->arg, step->minus, CDC_DELETE);
	else
		a->emit(a->arg, step->plus, CDC_INSERT);
}

/* Leftovers in the order they happened */
static int
compare_leftovers(const void *x, const void *y)
{
	const Leftover *a = x;
	const Leftover *b = y;

	return a->snap < b->snap ? -1 : a->snap > b->snap;
}

/*
 * Emit what is left of a key in mode "net": a row that went and one that came
 * are an update.
 */
static void
emit_net_key(CdcAlgebra *a)
{
	CdcScratch *s = a->scratch;
	Size		minus = 0;
	Size		plus = 0;
	Size		n = s->leftovers.n;

	if (n > 2)
		qsort(s->leftovers.items, n, sizeof(Leftover), compare_leftovers);

	/* more than one of a kind is only possible without validation */
	for (;;)
	{
		while (minus < n && s->leftovers.items[minus].change != CDC_DELETE)
			minus++;
		while (plus < n && s->leftovers.items[plus].change != CDC_INSERT)
			plus++;
		if (minus == n || plus == n)
			break;
		a->emit(a->arg, s->leftovers.items[minus++].event, CDC_UPDATE_BEFORE);
		a->emit(a->arg, s->leftovers.items[plus++].event, CDC_UPDATE_AFTER);
	}
	for (; minus < n; minus++)
		if (s->leftovers.items[minus].change == CDC_DELETE)
			a->emit(a->arg, s->leftovers.items[minus].event, CDC_DELETE);
	for (; plus < n; plus++)
		if (s->leftovers.items[plus].change == CDC_INSERT)
			a->emit(a->arg, s->leftovers.items[plus].event, CDC_INSERT);
	for (Size i = 0; i < n; i++)
		if (s->leftovers.items[i].change == CDC_BASE_INSERT)
			a->emit(a->arg, s->leftovers.items[i].event, CDC_BASE_INSERT);
}
