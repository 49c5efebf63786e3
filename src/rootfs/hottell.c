/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Telling a warmer which runs of which files a pack's segments have brought. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "hot/pack.h"
#include "hot/warmlist.h"
#include "rootfs/hotfiles.h"
#include "rootfs/hotpriv.h"

/*
 * The last stream of the image, if it is not told of yet; it stays while it is told of. It
 * may have ended: when all was there, that takes less time than to start a warmer.
 */
static struct streamed *begin_telling(struct bs_hotstart *hs, const struct bs_digest *image)
{
	struct streamed *found = NULL;

	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed) {
		struct streamed *s = bs_list_entry(it, struct streamed, all);

		if (s->pack && !s->told && bs_digest_eq(&s->hot.image.digest, image))
			found = s;
	}
	if (found)
		found->told = found->warming = true;
	(void)pthread_mutex_unlock(&hs->lock);
	return found;
}

static void end_telling(struct bs_hotstart *hs, struct streamed *s)
{
	(void)pthread_mutex_lock(&hs->lock);
	s->warming = false;
	if (!s->running)
		s->pack = bs_pack_free(s->pack);
	(void)pthread_mutex_unlock(&hs->lock);
}

/* The next segment that has landed and was not told of; n_segments: no more will. */
static uint32_t next_landed(struct bs_hotstart *hs, struct streamed *s, uint8_t *told)
{
	uint32_t i, first = 0;

	(void)pthread_mutex_lock(&hs->lock);
	for (;;) {
		for (i = first; i < s->pack->n_segments && (told[i] || !s->landed[i]); i++) {
			if (told[i] && i == first)
				first++;
		}
		if (i < s->pack->n_segments || !s->running)
			break;
		(void)pthread_cond_wait(&hs->landed, &hs->lock);
	}
	(void)pthread_mutex_unlock(&hs->lock);
	return i;
}

/* A list that is being filled, and where it goes. */
struct telling {
	int fd;
	struct bs_warmlist list;
};

static int send_list(struct telling *t)
{
	ssize_t n = send(t->fd, t->list.data, t->list.len, MSG_NOSIGNAL);

	bs_warmlist_init(&t->list);
	return n < 0 ? -errno : 0;
}

static int add_run(void *cookie, const char *path, uint64_t off, uint64_t len)
{
	struct telling *t = cookie;
	int r = bs_warmlist_add(&t->list, path, off, len);

	if (r != -E2BIG)
		return r == -EINVAL ? 0 : r;
	r = send_list(t);
	return r < 0 ? r : bs_warmlist_add(&t->list, path, off, len);
}

static int tell_all(struct bs_hotstart *hs, struct streamed *s, const struct bs_hotfiles *files,
		    struct telling *t)
{
	bs_autofree uint8_t *told = calloc(s->pack->n_segments, 1);
	uint32_t i;
	int r = told ? 0 : -ENOMEM;

	while (r == 0 && (i = next_landed(hs, s, told)) < s->pack->n_segments) {
		const struct bs_pack_segment *g = &s->pack->segments[i];

		told[i] = 1;
		r = bs_hotfiles_runs(files, s->pack->extents + g->first_extent, g->n_extents,
				     add_run, t);
		if (r == 0 && !bs_warmlist_empty(&t->list))
			r = send_list(t);
	}
	return r;
}

void bs_hotstart_warm(struct bs_hotstart *hs, const struct bs_digest *image, int fd, pid_t pid)
{
	struct streamed *s = begin_telling(hs, image);
	bs_auto(hotfiles) struct bs_hotfiles *files = NULL;
	struct telling *t = s ? malloc(sizeof(*t)) : NULL;
	bs_autofd int socket = fd;
	bs_autofd int tree = s ? bs_cached_open_tree(s->image) : -EBADF;

	bs_hotwatch_warmer(hs->watch, image, pid);
	/* without it the start is only slower */
	if (t && tree >= 0 && bs_hotfiles_read(tree, &files, NULL) == 0) {
		t->fd = socket;
		bs_warmlist_init(&t->list);
		(void)tell_all(hs, s, files, t);
	}
	free(t);
	if (s)
		end_telling(hs, s);
}
