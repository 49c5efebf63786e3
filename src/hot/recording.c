/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/recording.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "cache/blocks.h"
#include "hot/profile.h"

#define MAGIC "bs-rec2\n"

struct disk_head {
	uint8_t magic[8];
	uint64_t start_ns;
	uint64_t window_ms;
	uint64_t blob_blocks;
	uint64_t epoch;
	uint8_t zero[24];
};
_Static_assert(sizeof(struct disk_head) == 64, "head of a recording");

struct disk_event {
	uint32_t block;
	uint32_t n_blocks;
	uint32_t at_ms;
};
_Static_assert(sizeof(struct disk_event) == 12, "event of a recording");

struct bs_recording {
	int fd;
	uint64_t start_ns, window_ns, blob_blocks, epoch;
	_Atomic bool stopped;
	_Atomic uint64_t *seen; /* a bit a block */
	void *heap;		/* what it points to */
	pthread_mutex_t lock;	/* guards what follows */
	uint32_t n_events;
	bool failed;
};

static size_t n_words(const struct bs_recording *r)
{
	return bs_div_up(r->blob_blocks, 64) + 1;
}

/* Marks blocks as read; the first and the last of those that were not yet. */
static bool see(struct bs_recording *r, uint64_t first, uint64_t last, uint64_t *ret_first,
		uint64_t *ret_last)
{
	bool some = false;

	for (uint64_t b = first; b <= last; b++) {
		uint64_t bit = UINT64_C(1) << (b % 64);

		/* most were read before: no write to shared memory for those */
		if ((atomic_load_explicit(&r->seen[b / 64], memory_order_relaxed) & bit) ||
		    (atomic_fetch_or_explicit(&r->seen[b / 64], bit, memory_order_relaxed) & bit))
			continue;
		if (!some)
			*ret_first = b;
		*ret_last = b;
		some = true;
	}
	return some;
}

static uint64_t event_off(uint32_t i)
{
	return sizeof(struct disk_head) + (uint64_t)i * sizeof(struct disk_event);
}

static uint32_t elapsed_ms(const struct bs_recording *r)
{
	uint64_t now = bs_clock_ns();

	return now > r->start_ns ? (uint32_t)((now - r->start_ns) / BS_NS_PER_MS) : 0;
}

void bs_recording_note(struct bs_recording *r, uint64_t off, uint64_t len)
{
	uint64_t first = off / BS_BLOCK_BYTES, last = (off + len - 1) / BS_BLOCK_BYTES;
	struct disk_event e;

	if (len == 0 || last >= r->blob_blocks || bs_recording_over(r) ||
	    !see(r, first, last, &first, &last))
		return;
	e = (struct disk_event){ htole32((uint32_t)first), htole32((uint32_t)(last - first + 1)),
				 htole32(elapsed_ms(r)) };
	(void)pthread_mutex_lock(&r->lock);
	if (r->n_events == BS_RECORDING_EVENTS_MAX ||
	    bs_pwrite_full(r->fd, &e, sizeof(e), event_off(r->n_events)) < 0)
		r->failed = true;
	else
		r->n_events++;
	(void)pthread_mutex_unlock(&r->lock);
}

bool bs_recording_over(struct bs_recording *r)
{
	return atomic_load_explicit(&r->stopped, memory_order_relaxed) ||
	       bs_clock_ns() - r->start_ns > r->window_ns;
}

/* In the file too: whoever goes on with it must not wait. */
void bs_recording_stop(struct bs_recording *r)
{
	const uint64_t window_ms = htole64(elapsed_ms(r));

	if (bs_recording_over(r))
		return;
	(void)bs_pwrite_full(r->fd, &window_ms, sizeof(window_ms),
			     offsetof(struct disk_head, window_ms));
	atomic_store_explicit(&r->stopped, true, memory_order_relaxed);
}

int bs_recording_events(struct bs_recording *r, struct bs_profile_event **ret, size_t *ret_n,
			uint32_t *ret_window_ms, struct bs_error *err)
{
	bs_autofree struct disk_event *disk = NULL;
	bs_autofree struct bs_profile_event *events = NULL;
	uint64_t window = BS_MIN(r->window_ns / BS_NS_PER_MS, (uint64_t)UINT32_MAX);
	size_t n, len;
	bool failed;

	(void)pthread_mutex_lock(&r->lock);
	n = r->n_events;
	failed = r->failed;
	(void)pthread_mutex_unlock(&r->lock);
	if (failed)
		return bs_fail(err, -EIO, "recording: not all of it could be written");
	len = n * sizeof(*disk);
	disk = malloc(len + 1);
	events = malloc((n + 1) * sizeof(*events));
	if (!disk || !events)
		return bs_fail(err, -ENOMEM, "recording: out of memory");
	if (bs_pread_full(r->fd, disk, len, event_off(0)) != (ssize_t)len)
		return bs_fail(err, -EIO, "recording: it cannot be read back");
	for (size_t i = 0; i < n; i++)
		events[i] = (struct bs_profile_event){ le32toh(disk[i].block),
						       le32toh(disk[i].n_blocks),
						       le32toh(disk[i].at_ms) };
	*ret = bs_take(&events);
	*ret_n = n;
	*ret_window_ms = (uint32_t)BS_MIN(window, (uint64_t)elapsed_ms(r));
	return 0;
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Goes on with what the file has; false: it is of something else, or over. */
static bool go_on(struct bs_recording *r)
{
	struct disk_head h;
	struct stat st;
	uint64_t first, last;

	if (fstat(r->fd, &st) < 0 || bs_pread_full(r->fd, &h, sizeof(h), 0) != sizeof(h) ||
	    memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 ||
	    le64toh(h.blob_blocks) != r->blob_blocks || le64toh(h.epoch) != r->epoch ||
	    le64toh(h.start_ns) > bs_clock_ns() || le64toh(h.window_ms) > UINT32_MAX)
		return false;
	r->start_ns = le64toh(h.start_ns);
	r->window_ns = le64toh(h.window_ms) * BS_NS_PER_MS;
	r->n_events = (uint32_t)BS_MIN(((uint64_t)st.st_size - sizeof(h)) /
					       sizeof(struct disk_event),
				       (uint64_t)BS_RECORDING_EVENTS_MAX);
	for (uint32_t i = 0; i < r->n_events; i++) {
		struct disk_event e;

		if (bs_pread_full(r->fd, &e, sizeof(e), event_off(i)) != sizeof(e) ||
		    e.n_blocks == 0 ||
		    (uint64_t)le32toh(e.block) + le32toh(e.n_blocks) > r->blob_blocks)
			return false;
		(void)see(r, le32toh(e.block), le32toh(e.block) + le32toh(e.n_blocks) - UINT64_C(1),
			  &first, &last);
	}
	return true;
}

static int begin(struct bs_recording *r)
{
	struct disk_head h = { .start_ns = htole64(r->start_ns),
			       .window_ms = htole64(r->window_ns / BS_NS_PER_MS),
			       .blob_blocks = htole64(r->blob_blocks),
			       .epoch = htole64(r->epoch) };

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	if (ftruncate(r->fd, 0) < 0)
		return -errno;
	return bs_pwrite_full(r->fd, &h, sizeof(h), 0);
}

int bs_recording_open(int dirfd, const char *name, uint64_t blob_blocks, uint64_t epoch,
		      uint64_t window_ns, struct bs_recording **ret, struct bs_error *err)
{
	bs_auto(recording) struct bs_recording *r = calloc(1, sizeof(*r));
	bool going;
	int rc;

	if (!r)
		return bs_fail(err, -ENOMEM, "recording: out of memory");
	r->blob_blocks = blob_blocks;
	r->epoch = epoch;
	r->start_ns = bs_clock_ns();
	r->window_ns = window_ns;
	(void)pthread_mutex_init(&r->lock, NULL);
	r->seen = r->heap = calloc(n_words(r), sizeof(*r->seen));
	r->fd = openat(dirfd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (r->fd < 0)
		return bs_fail_errno(err, -errno, "recording '%s'", name);
	if (!r->seen)
		return bs_fail(err, -ENOMEM, "recording: out of memory");
	going = go_on(r);
	if (!going && window_ns == 0) {
		(void)unlinkat(dirfd, name, 0);
		return bs_fail(err, -ENODATA, "recording '%s': nothing to go on with", name);
	}
	if (!going) {
		r->start_ns = bs_clock_ns();
		r->window_ns = window_ns;
		r->n_events = 0;
		memset(r->heap, 0, n_words(r) * sizeof(*r->seen));
		rc = begin(r);
		if (rc < 0)
			return bs_fail_errno(err, rc, "recording '%s'", name);
	}
	*ret = bs_take(&r);
	return 0;
}

struct bs_recording *bs_recording_free(struct bs_recording *r)
{
	if (!r)
		return NULL;
	(void)bs_close(r->fd);
	(void)pthread_mutex_destroy(&r->lock);
	free(r->heap);
	free(r);
	return NULL;
}
