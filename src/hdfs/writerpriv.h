/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What writer.c, pages.c (its memory) and commit.c (a new generation of the file) share. */
#ifndef BS_HDFS_WRITERPRIV_H
#define BS_HDFS_WRITERPRIV_H

#include "hdfs/ckptpriv.h"
#include "hdfs/put.h"

struct bs_wrec;

/* Bytes of a unit in memory. */
struct bs_page {
	uint8_t *buf; /* NULL: none */
	uint32_t cap;
	uint32_t lo, hi; /* bytes that are valid */
	bool whole;	 /* lo is 0, and what is behind hi is zeros */
	bool dirty;
};

/* A version of a unit on its way. */
struct bs_sent {
	struct bs_put put;
	struct bs_writer *w;
	struct bs_wrec *rec; /* NULL: nobody wants it any more */
	char *path;
	uint8_t *buf;
	uint32_t cap, crc;
	unsigned int version;
};

/* A unit that was written since the last commit. */
struct bs_wrec {
	uint64_t u;
	struct bs_page page;  /* io's */
	unsigned int version; /* io's; of what was sent last */
	/* the lock's */
	struct bs_sent *sent;
	bool there; /* a DataNode took version's bytes, as attempt */
	unsigned int attempt;
	uint32_t len, crc;
};

struct bs_writer {
	unsigned int refs; /* atomic */
	struct bs_ckpt *c;
	uint32_t unit; /* changes never */

	/* the tree's lock's */
	struct bs_list link;
	unsigned int handles; /* that may write */

	pthread_mutex_t io; /* guards what follows */
	char *path;
	bool unlinked, excl;
	/* the next four change with the lock held, too */
	uint32_t mode;
	struct bs_view *base;  /* what is committed, or NULL: nothing, or see bs_writer_base */
	bool fresh;	       /* nothing of base counts */
	uint64_t base_id;      /* the file at path that it was; 0: whichever is there is replaced */
	uint64_t base_size;    /* bytes of it that count */
	struct bs_wrec **recs; /* by u */
	size_t n_recs, cap_recs;
	char id[BS_STRIPES_ID_LEN + 1]; /* of the segment to be; changes with the tree's lock */
	char *segment_dir;		/* beside whose .bootseer it is made; NULL: not yet */
	char writer_id[BS_STRIPES_ID_LEN + 1];
	uint32_t replication;
	unsigned int first; /* DataNode of unit 0 */
	uint32_t files;	    /* of the segment to be */

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	uint64_t size, mtime_ms;
	bool dirty;
	unsigned int in_flight;	    /* pages that are on their way */
	uint64_t buffered, sending; /* bytes of memory; of these, on their way */
	int error;		    /* sticks */
	char text[256];
	bool is_read;		/* by a thread of the pool, which may have to wait for io */
	struct bs_list to_read; /* jobs that wait for it, and have no thread meanwhile */
};

/* All with io. */
struct bs_wrec *bs_writer_rec(struct bs_writer *w, uint64_t u, bool make);
/* Bytes of a unit as they are now. */
int bs_writer_copy(struct bs_writer *w, uint64_t u, char *to, uint32_t n, uint32_t at,
		   struct bs_error *err);
void bs_writer_drop_recs(struct bs_writer *w, uint64_t from);
/* As bs_writer_sync. */
int bs_writer_sync_locked(struct bs_writer *w, struct bs_error *err);
/*
 * Opens the base when the commit that made it could not, before it is needed. -ESTALE: the path
 * has another file since.
 */
int bs_writer_base(struct bs_writer *w, struct bs_error *err);
/* v is taken over; NULL: bs_writer_base is to open it. */
void bs_writer_set_base(struct bs_writer *w, struct bs_view *v);
/* The error that sticks. */
int bs_writer_error(struct bs_writer *w, struct bs_error *err);
int bs_writer_fail(struct bs_writer *w, int code, const char *text);
/* "part-U-V.A"; malloc'ed. */
char *bs_writer_part_name(const struct bs_wrec *rec);

/* --- pages.c --------------------------------------------------------------------------------- */

/* Sends its page, or takes it back into memory and sends it when it has another length. */
int bs_writer_submit(struct bs_writer *w, struct bs_wrec *rec, struct bs_error *err);
/* Nothing is on its way any more. */
int bs_writer_drain(struct bs_writer *w, struct bs_error *err);
/* The page has room for want bytes. force: at once, since it is about to be sent. */
int bs_writer_grow(struct bs_writer *w, struct bs_wrec *rec, uint32_t want, bool force,
		   struct bs_error *err);
/* How many bytes the unit has outside of its page, and, to (a unit) not NULL, these. */
int bs_writer_before(struct bs_writer *w, struct bs_wrec *rec, uint8_t *to, uint32_t *ret_len,
		     struct bs_error *err);
/* The page gets all of the unit's bytes. force: as bs_writer_grow's. */
int bs_writer_fault_in(struct bs_writer *w, struct bs_wrec *rec, bool force, struct bs_error *err);
void bs_writer_drop_page(struct bs_writer *w, struct bs_page *p);

/* --- commit.c -------------------------------------------------------------------------------- */

/* The segment's directory, and who takes what is written. */
int bs_writer_prepare(struct bs_writer *w, struct bs_error *err);
/* A new generation, which is base then. */
int bs_writer_commit(struct bs_writer *w, struct bs_error *err);

#endif
