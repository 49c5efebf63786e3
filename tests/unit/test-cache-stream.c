/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Streams of blocks against repositories that are slow, fail and lie. */
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "cache-model.h"
#include "cache/fill.h"
#include "cache/origin.h"
#include "cache/stream.h"
#include "net/loop.h"
#include "net/repo.h"

#define UNPACKERS 2
#define SEGMENTS 40u
#define SEGMENT_BLOCKS 8u

/* --- the stream: every third block from the end of the blob on, in pairs ---------------------- */

static struct bs_extent extents[SEGMENTS][SEGMENT_BLOCKS / 2];
static uint64_t stream_bytes;

static void make_segments(const struct model *m)
{
	uint64_t block = m->bytes / MODEL_BLOCK - 2;

	for (uint32_t i = 0; i < SEGMENTS; i++) {
		for (uint32_t k = 0; k < SEGMENT_BLOCKS / 2; k++, block -= 3)
			extents[i][k] = (struct bs_extent){ (uint32_t)block, 2 };
	}
	stream_bytes = SEGMENTS * SEGMENT_BLOCKS * (uint64_t)MODEL_BLOCK;
}

static void op_segment(void *cookie, uint32_t i, struct bs_stream_segment *ret)
{
	*ret = (struct bs_stream_segment){ .off = (uint64_t)i * SEGMENT_BLOCKS * MODEL_BLOCK,
					   .len = SEGMENT_BLOCKS * MODEL_BLOCK,
					   .extents = extents[i],
					   .n_extents = SEGMENT_BLOCKS / 2 };
}

/* What a segment's bytes are: those of its blocks with each bit flipped. */
static void segment_content(uint64_t off, uint8_t *buf, size_t len)
{
	for (size_t k = 0; k < len; k++) {
		uint64_t at = off + k, block = at / MODEL_BLOCK;
		const struct bs_extent *e =
			&extents[block / SEGMENT_BLOCKS][block % SEGMENT_BLOCKS / 2];

		buf[k] = (uint8_t)~model_byte((e->block + block % 2) * (uint64_t)MODEL_BLOCK +
					      at % MODEL_BLOCK);
	}
}

static int hold_decode, n_decoding, n_decoding_max; /* atomic */

static int op_decode(void *cookie, void *scratch, uint32_t i, const void *data, void *out)
{
	static const size_t len = SEGMENT_BLOCKS * MODEL_BLOCK;
	bs_autofree uint8_t *right = malloc(len);
	int n = __atomic_add_fetch(&n_decoding, 1, __ATOMIC_ACQ_REL);

	if (n > __atomic_load_n(&n_decoding_max, __ATOMIC_ACQUIRE))
		__atomic_store_n(&n_decoding_max, n, __ATOMIC_RELEASE);
	while (__atomic_load_n(&hold_decode, __ATOMIC_ACQUIRE))
		usleep(500);
	__atomic_sub_fetch(&n_decoding, 1, __ATOMIC_ACQ_REL);
	segment_content((uint64_t)i * len, right, len);
	for (size_t k = 0; k < len; k++)
		((uint8_t *)out)[k] = (uint8_t) ~((const uint8_t *)data)[k];
	return memcmp(right, data, len) == 0 ? 0 : -EBADMSG;
}

static uint8_t landed[SEGMENTS];
static int ended; /* atomic */
static struct bs_stream_result result;

static void op_landed(void *cookie, uint32_t i)
{
	__atomic_add_fetch(&landed[i], 1, __ATOMIC_RELAXED);
}

static void op_done(void *cookie, const struct bs_stream_result *r)
{
	result = *r;
	__atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
}

static const struct bs_stream_ops stream_ops = {
	.segment = op_segment,
	.decode = op_decode,
	.landed = op_landed,
	.done = op_done,
};

/* --- a repository that has the frames (digest 1) and the stream (digest 2) --------------------- */

struct fake {
	struct bs_repo repo;
	int n_fail;	      /* atomic: ranges of the stream that fail from now on */
	int failure;	      /* how; 0: -EREMOTEIO */
	uint64_t hang_below;  /* atomic: ranges of the stream that begin before stay unanswered */
	int hold;	      /* atomic: ranges of the stream stay unanswered while set */
	int queue;	      /* atomic: their turn does not come while set */
	int lie_at;	      /* atomic: byte of the stream that is wrong; -1 none */
	useconds_t drip;      /* atomic: pause after each piece */
	bool pieces;	      /* ranges of the stream come bit by bit */
	size_t stop_at;	      /* atomic: they stop there as long as they have come so far */
	size_t break_at;      /* the first n_break end there */
	int n_break;	      /* atomic */
	bool garble;	      /* pieces are wrong at first, then all comes anew */
	uint64_t asked_bytes; /* atomic: of ranges of the stream */
	int n_demand, n_hot, n_open; /* atomic */
};

/* Gives what is in the range's buffer as a network does. */
static void give_pieces(struct fake *f, struct bs_range *rg)
{
	static const size_t piece = 10000;
	bs_autofree uint8_t *all = malloc(rg->len);

	memcpy(all, rg->buf, rg->len);
	for (int pass = f->garble ? 0 : 1; pass < 2; pass++) {
		__atomic_store_n(&rg->got, 0, __ATOMIC_RELAXED);
		memset(rg->buf, 0, rg->len);
		for (size_t n; rg->got < rg->len; rg->progress(rg)) {
			n = BS_MIN(piece, rg->len - rg->got);
			if (pass == 1)
				memcpy((uint8_t *)rg->buf + rg->got, all + rg->got, n);
			__atomic_store_n(&rg->got, rg->got + n, __ATOMIC_RELEASE);
			usleep(__atomic_load_n(&f->drip, __ATOMIC_ACQUIRE));
			while (rg->got >= __atomic_load_n(&f->stop_at, __ATOMIC_ACQUIRE)) {
				rg->progress(rg);
				usleep(500);
			}
			if (rg->got >= f->break_at &&
			    __atomic_fetch_sub(&f->n_break, 1, __ATOMIC_RELAXED) > 0) {
				rg->progress(rg);
				usleep(50000); /* it is unpacked */
				rg->result = -EREMOTEIO;
				return;
			}
		}
		usleep(20000);
	}
}

static void *answer_main(void *arg)
{
	struct bs_range *rg = arg;
	struct fake *f = rg->impl;
	int lie = __atomic_load_n(&f->lie_at, __ATOMIC_RELAXED);

	while (rg->blob.b[0] == 2 && __atomic_load_n(&f->queue, __ATOMIC_ACQUIRE))
		usleep(500);
	__atomic_store_n(&rg->started_ns, bs_clock_ns(), __ATOMIC_RELAXED);
	usleep((useconds_t)(rg->off % 977));
	while (rg->lane == BS_LANE_HOT && __atomic_load_n(&f->hold, __ATOMIC_ACQUIRE))
		usleep(500);
	while (rg->lane == BS_LANE_HOT &&
	       rg->off < __atomic_load_n(&f->hang_below, __ATOMIC_ACQUIRE))
		usleep(500);
	if (rg->result == 0 && rg->blob.b[0] == 1) {
		model_content(rg->off, rg->buf, rg->len);
		for (size_t i = 0; i < rg->len; i++)
			((uint8_t *)rg->buf)[i] ^= 0xff;
	} else if (rg->result == 0) {
		segment_content(rg->off, rg->buf, rg->len);
		if (lie >= 0 && (uint64_t)lie >= rg->off && (uint64_t)lie < rg->off + rg->len)
			((uint8_t *)rg->buf)[(uint64_t)lie - rg->off] ^= 1;
		if (f->pieces)
			give_pieces(f, rg);
	}
	rg->ended_ns = bs_clock_ns();
	rg->done(rg);
	__atomic_sub_fetch(&f->n_open, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void fake_read(struct bs_repo *r, struct bs_range *rg)
{
	struct fake *f = (struct fake *)r;
	pthread_attr_t attr;
	pthread_t t;

	rg->impl = f;
	__atomic_add_fetch(&f->n_open, 1, __ATOMIC_RELAXED);
	if (rg->blob.b[0] == 2)
		__atomic_add_fetch(&f->asked_bytes, rg->len, __ATOMIC_RELAXED);
	if (rg->blob.b[0] == 2)
		__atomic_add_fetch(&f->n_hot, 1, __ATOMIC_RELAXED);
	else if (rg->lane == BS_LANE_DEMAND)
		__atomic_add_fetch(&f->n_demand, 1, __ATOMIC_RELAXED);
	if (rg->blob.b[0] != 2 || !__atomic_load_n(&f->queue, __ATOMIC_ACQUIRE))
		__atomic_store_n(&rg->started_ns, bs_clock_ns(), __ATOMIC_RELAXED);
	if (rg->blob.b[0] == 2 && __atomic_load_n(&f->n_fail, __ATOMIC_RELAXED) > 0) {
		(void)snprintf(rg->text, sizeof(rg->text), "it is away");
		__atomic_sub_fetch(&f->n_fail, 1, __ATOMIC_RELAXED);
		rg->result = f->failure ? f->failure : -EREMOTEIO;
	}
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	assert_int_equal(pthread_create(&t, &attr, answer_main, rg), 0);
	pthread_attr_destroy(&attr);
}

static void fake_free(struct bs_repo *r)
{
}

static const struct bs_repo_ops fake_ops = { .scheme = "fake",
					     .read = fake_read,
					     .free = fake_free };

/* --- the set-up of each test -------------------------------------------------------------------- */

static struct model model;
static struct bs_blob_geometry geometry;
static char dir[sizeof(MODEL_DIR)], name[] = "fake", other_name[] = "other";
static int dirfd_;
static struct fake fake, other;
static struct bs_loop *loop;
static struct bs_fill *fill;
static struct bs_blob *blob;
static struct bs_origin *frames, *pack;

static void *scratch_new(void)
{
	return malloc(1);
}

static uint64_t stream_bytes_max;

static int set_up(void **state)
{
	const struct bs_loop_options lo = { 0 };
	struct bs_fill_options fo = { .n_unpackers = UNPACKERS,
				      .read_wait_ns = 20 * BS_NS_PER_S,
				      .stream_bytes = stream_bytes_max,
				      .scratch_new = scratch_new,
				      .scratch_free = free };
	const struct bs_digest one = { { 1 } }, two = { { 2 } };
	struct bs_repo *repos[1] = { &fake.repo };

	model_init(&model, &geometry);
	make_segments(&model);
	dirfd_ = model_dir_make(dir);
	fake = (struct fake){ .repo = { &fake_ops, 1000, name },
			      .lie_at = -1,
			      .stop_at = SIZE_MAX };
	other = (struct fake){ .repo = { &fake_ops, 1000, other_name }, .lie_at = -1 };
	memset(landed, 0, sizeof(landed));
	ended = hold_decode = n_decoding = n_decoding_max = 0;
	assert_int_equal(bs_loop_new(&lo, &loop, NULL), 0);
	fo.loop = loop;
	assert_int_equal(bs_fill_new(&fo, &fill, NULL), 0);
	assert_int_equal(bs_blob_open(dirfd_, &geometry, 1, &blob, NULL), 0);
	frames = bs_origin_new(&one);
	bs_origin_add(frames, repos, 1);
	pack = bs_origin_new(&two);
	bs_origin_add(pack, repos, 1);
	return 0;
}

static int set_up_narrow(void **state)
{
	stream_bytes_max = 300 << 10; /* two small ranges */
	return set_up(state);
}

static int tear_down(void **state)
{
	stream_bytes_max = 0;
	while (__atomic_load_n(&fake.n_open, __ATOMIC_ACQUIRE) ||
	       __atomic_load_n(&other.n_open, __ATOMIC_ACQUIRE))
		usleep(1000);
	usleep(20000); /* what was answered last is being stored */
	bs_loop_free(loop);
	bs_fill_free(fill);
	bs_blob_free(blob);
	bs_origin_unref(frames);
	bs_origin_unref(pack);
	return model_dir_remove(dir, dirfd_);
}

static uint64_t wait_ns;

static void start_stream(void)
{
	const struct bs_stream_options o = { .blob = blob,
					     .origin = pack,
					     .n_segments = SEGMENTS,
					     .parallel_max = 8,
					     .wait_ns = wait_ns,
					     .ops = &stream_ops };

	__atomic_store_n(&ended, 0, __ATOMIC_RELEASE);
	assert_int_equal(bs_fill_stream(fill, &o), 0);
}

static void wait_ended(void)
{
	for (int i = 0; i < 20000 && !__atomic_load_n(&ended, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	assert_int_equal(ended, 1);
}

/* --- readers -------------------------------------------------------------------------------------- */

struct waiting {
	struct bs_read rd;
	pthread_t thread;
	int done; /* atomic */
};

static void read_done(struct bs_read *rd)
{
	__atomic_store_n(&BS_CONTAINER_OF(rd, struct waiting, rd)->done, 1, __ATOMIC_RELEASE);
}

static void read_start(struct waiting *w, uint64_t off, uint32_t len)
{
	bs_autofree uint8_t *unit = malloc(BS_UNIT_BYTES_MAX);

	*w = (struct waiting){ .rd = { .blob = blob,
				       .origin = frames,
				       .off = off,
				       .len = len,
				       .buf = calloc(1, len),
				       .done = read_done } };
	bs_fill_read(fill, &w->rd, NULL, unit);
}

static bool is_done(struct waiting *w)
{
	return __atomic_load_n(&w->done, __ATOMIC_ACQUIRE);
}

/* Waits, and checks the bytes. */
static void read_end(struct waiting *w)
{
	for (int i = 0; i < 20000 && !is_done(w); i++)
		usleep(1000);
	assert_true(is_done(w));
	assert_int_equal(w->rd.result, 0);
	for (uint32_t i = 0; i < w->rd.len; i++)
		assert_int_equal(((uint8_t *)w->rd.buf)[i], model_byte(w->rd.off + i));
	free(w->rd.buf);
}

static void read_and_check(uint64_t off, uint32_t len)
{
	struct waiting w;

	read_start(&w, off, len);
	read_end(&w);
}

static uint64_t at(uint32_t segment, uint32_t extent)
{
	return (uint64_t)extents[segment][extent].block * MODEL_BLOCK;
}

static struct bs_fill_stats stats(void)
{
	struct bs_fill_stats s;

	bs_fill_stats(fill, &s);
	return s;
}

/* --- the tests ------------------------------------------------------------------------------------- */

#define A_LITTLE_MORE_THAN(n) ((size_t)(n)*SEGMENT_BLOCKS * MODEL_BLOCK + 10000)

static void what_has_come_of_a_range_is_there(void **state)
{
	fake.pieces = true;
	fake.stop_at = A_LITTLE_MORE_THAN(3);
	start_stream();
	for (uint32_t i = 0; i < 3; i++)
		read_and_check(at(i, 0), 2 * MODEL_BLOCK);
	usleep(50000);
	assert_int_equal(landed[0] + landed[1] + landed[2], 3);
	assert_int_equal(landed[3], 0);
	assert_int_equal(ended, 0);
	assert_int_equal(fake.n_demand, 0);
	__atomic_store_n(&fake.stop_at, SIZE_MAX, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.segments, SEGMENTS);
	assert_int_equal(result.bytes, stream_bytes);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(landed[i], 1);
}

static void what_is_unpacked_is_not_asked_for_again(void **state)
{
	fake.pieces = true;
	fake.break_at = A_LITTLE_MORE_THAN(3);
	fake.n_break = 2;
	start_stream();
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.segments, SEGMENTS);
	assert_int_equal(result.bytes, stream_bytes);
	/* of two ranges, what came behind their third segment */
	assert_true(fake.asked_bytes > stream_bytes);
	assert_true(fake.asked_bytes <=
		    stream_bytes + 2 * (8 - 3) * (uint64_t)SEGMENT_BLOCKS * MODEL_BLOCK);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(landed[i], 1);
}

static void what_was_wrong_at_first_is_looked_at_again(void **state)
{
	fake.pieces = fake.garble = true;
	start_stream();
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.segments, SEGMENTS);
	assert_int_equal(stats().bad_segments, 0);
	read_and_check(at(0, 0), 2 * MODEL_BLOCK);
}

static void a_lie_in_a_range_that_comes_is_one(void **state)
{
	fake.pieces = true;
	fake.stop_at = SIZE_MAX;
	fake.lie_at = SEGMENT_BLOCKS * MODEL_BLOCK + 5; /* in the second segment */
	start_stream();
	wait_ended();
	assert_int_equal(result.error, -EBADMSG);
	assert_int_equal(landed[1], 0);
	assert_int_equal(stats().bad_segments, 1);
	read_and_check(at(1, 0), 2 * MODEL_BLOCK);
}

static void a_stream_brings_its_blocks_and_no_more(void **state)
{
	start_stream();
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.segments, SEGMENTS);
	assert_int_equal(result.bytes, stream_bytes);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		assert_int_equal(landed[i], 1);
		for (uint32_t k = 0; k < SEGMENT_BLOCKS / 2; k++)
			read_and_check(at(i, k), 2 * MODEL_BLOCK);
	}
	assert_int_equal(fake.n_demand, 0);
	assert_int_equal(stats().streamed_blocks, SEGMENTS * SEGMENT_BLOCKS);
	/* what it did not bring is fetched */
	read_and_check(at(0, 1) + 2 * MODEL_BLOCK, MODEL_BLOCK);
	assert_int_equal(fake.n_demand, 1);
}

static void what_is_there_is_not_streamed_again(void **state)
{
	int n;

	start_stream();
	wait_ended();
	n = fake.n_hot;
	start_stream();
	wait_ended();
	assert_int_equal(fake.n_hot, n);
	assert_int_equal(result.local_segments, SEGMENTS);
	assert_int_equal(landed[7], 2);
	/* and by a process that was started again */
	bs_blob_free(blob);
	assert_int_equal(bs_blob_open(dirfd_, &geometry, 1, &blob, NULL), 0);
	start_stream();
	wait_ended();
	assert_int_equal(fake.n_hot, n);
	/* but not after a reboot: single blocks cannot be proven again */
	bs_blob_free(blob);
	assert_int_equal(bs_blob_open(dirfd_, &geometry, 2, &blob, NULL), 0);
	assert_false(bs_blob_has_range(blob, at(3, 0), MODEL_BLOCK));
	start_stream();
	wait_ended();
	assert_int_equal(result.segments, SEGMENTS);
}

static void readers_wait_for_what_comes_and_overtake_what_does_not(void **state)
{
	struct waiting coming[3], far, cold;

	fake.hold = 1;
	start_stream();
	read_start(&coming[0], at(0, 0), MODEL_BLOCK);
	read_start(&coming[1], at(1, 2), 2 * MODEL_BLOCK);
	read_start(&coming[2], at(0, 0) + 100, 10);
	assert_int_equal(fake.n_demand, 0);
	/* far behind in the stream, and not in it at all: no waiting */
	read_start(&far, at(SEGMENTS - 1, 0), MODEL_BLOCK);
	read_start(&cold, at(0, 1) + 2 * MODEL_BLOCK, MODEL_BLOCK);
	read_end(&far);
	read_end(&cold);
	assert_int_equal(fake.n_demand, 2);
	assert_false(is_done(&coming[1]));
	assert_int_equal(stats().stream_waits, 3);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		read_end(&coming[i]);
	wait_ended();
	assert_int_equal(fake.n_demand, 2);
}

static void store_segment(uint32_t i)
{
	uint8_t bytes[2 * MODEL_BLOCK];

	for (uint32_t k = 0; k < SEGMENT_BLOCKS / 2; k++) {
		model_content(at(i, k), bytes, sizeof(bytes));
		assert_int_equal(bs_blob_store_blocks(blob, extents[i][k].block, 2, bytes), 0);
	}
}

/* What stands in a queue is asked for, but an own fetch goes before it. */
static void nobody_waits_for_a_range_that_is_queued(void **state)
{
	fake.queue = 1;
	start_stream();
	read_and_check(at(0, 0), MODEL_BLOCK);
	read_and_check(at(2, 1), 2 * MODEL_BLOCK);
	read_and_check(at(17, 1), 2 * MODEL_BLOCK); /* would be asked for next */
	assert_int_equal(fake.n_demand, 3);
	assert_int_equal(stats().stream_waits, 0);
	__atomic_store_n(&fake.queue, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
}

/* Who waits for what comes soon is not held up by a queue in which it stands then. */
static void who_waits_for_what_is_queued_after_all_goes_on(void **state)
{
	const uint32_t soon = 18; /* two first ranges have 16 */
	struct waiting w;

	for (uint32_t i = soon + 1; i < SEGMENTS; i++)
		store_segment(i);
	fake.hold = 1;
	start_stream();
	for (int i = 0; i < 20000 && __atomic_load_n(&fake.n_hot, __ATOMIC_ACQUIRE) < 4; i++)
		usleep(1000);
	read_start(&w, at(soon, 0), 2 * MODEL_BLOCK);
	assert_int_equal(stats().stream_waits, 1);
	assert_int_equal(fake.n_demand, 0);
	__atomic_store_n(&fake.queue, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	read_end(&w);
	assert_int_equal(fake.n_demand, 1);
	assert_int_equal(ended, 0);
	__atomic_store_n(&fake.queue, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
}

/* However long it was queued: a source is given its time from the turn on. */
static void a_range_that_was_queued_does_not_hang(void **state)
{
	struct waiting w;

	fake.queue = fake.hold = 1;
	start_stream();
	usleep(1500000); /* after a second without a byte it would */
	__atomic_store_n(&fake.queue, 0, __ATOMIC_RELEASE);
	usleep(50000);
	read_start(&w, at(0, 0), 2 * MODEL_BLOCK);
	assert_int_equal(stats().stream_waits, 1);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	read_end(&w);
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(fake.n_demand, 0);
}

/* A demand fetch of the same unit answers who waits for the stream, too. */
static void a_frame_that_is_quicker_answers_all(void **state)
{
	struct waiting coming, whole;

	fake.hold = 1;
	start_stream();
	read_start(&coming, at(0, 0), MODEL_BLOCK);
	read_start(&whole, at(0, 0) - MODEL_BLOCK, 3 * MODEL_BLOCK); /* more than comes */
	read_end(&whole);
	read_end(&coming);
	assert_true(fake.n_demand > 0);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
}

static void a_reader_waits_for_no_unpacking_of_a_stream(void **state)
{
	struct waiting w;
	bool done;

	__atomic_store_n(&hold_decode, 1, __ATOMIC_RELEASE);
	start_stream();
	for (int i = 0; i < 20000 && !__atomic_load_n(&n_decoding, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	usleep(50000); /* all that may unpack does */
	read_start(&w, at(0, 1) + 2 * MODEL_BLOCK, MODEL_BLOCK);
	for (int i = 0; i < 5000 && !is_done(&w); i++)
		usleep(1000);
	done = is_done(&w);
	__atomic_store_n(&hold_decode, 0, __ATOMIC_RELEASE);
	read_end(&w);
	assert_true(done);
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(n_decoding_max, UNPACKERS - 1);
}

/* Blocks can be copied from elsewhere while somebody waits for a stream to bring them. */
static void who_waits_for_what_comes_from_elsewhere_is_answered(void **state)
{
	const uint32_t soon = 18; /* two first ranges have 16 */
	struct waiting w;

	for (uint32_t i = soon + 1; i < SEGMENTS; i++)
		store_segment(i);
	fake.hold = 1;
	start_stream();
	for (int i = 0; i < 20000 && !__atomic_load_n(&fake.n_hot, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	usleep(20000);
	read_start(&w, at(soon, 0), 2 * MODEL_BLOCK);
	assert_int_equal(stats().stream_waits, 1); /* no fetch of its own */
	/* so that nobody lands in its unit but the segment itself */
	for (uint32_t i = 16; i <= soon; i++)
		store_segment(i);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	wait_ended();
	read_end(&w);
	assert_int_equal(fake.n_demand, 0);
}

static void faults_are_tried_again(void **state)
{
	struct waiting w;

	fake.n_fail = 3;
	start_stream();
	read_start(&w, at(0, 0), MODEL_BLOCK);
	read_end(&w);
	wait_ended();
	assert_int_equal(result.error, 0);
	/* who waited for it did not wait for the next try */
	assert_int_equal(fake.n_demand, 1);
	assert_int_equal(result.segments + result.local_segments, SEGMENTS);
}

static void a_dead_source_ends_the_stream_and_readers_go_on(void **state)
{
	struct waiting w[2];

	fake.n_fail = 1000000;
	fake.hold = 1;
	wait_ns = BS_NS_PER_S;
	start_stream();
	wait_ns = 0;
	read_start(&w[0], at(0, 0), MODEL_BLOCK);
	read_start(&w[1], at(3, 3), 2 * MODEL_BLOCK);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	read_end(&w[0]);
	read_end(&w[1]);
	wait_ended();
	assert_int_equal(result.error, -EIO);
	assert_string_equal(result.why, "it is away");
	assert_true(fake.n_demand >= 1);
	assert_int_equal(stats().failed_reads, 0);
}

/* Longer than a few tries would take. */
static void a_source_that_comes_back_is_gone_on_with(void **state)
{
	struct waiting w;

	fake.n_fail = 1000000;
	start_stream();
	read_start(&w, at(0, 0), MODEL_BLOCK);
	read_end(&w);
	usleep(4500000);
	assert_int_equal(__atomic_load_n(&ended, __ATOMIC_ACQUIRE), 0);
	__atomic_store_n(&fake.n_fail, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.segments + result.local_segments, SEGMENTS);
}

/* What would have been asked for next is not waited for, either, nor all other fetching. */
static void readers_wait_for_nothing_while_the_source_is_gone(void **state)
{
	struct waiting w[2];
	const uint64_t start_ns = bs_clock_ns();

	fake.n_fail = 1000000;
	start_stream();
	for (int i = 0; i < 1000 && stats().retries < 4; i++)
		usleep(1000);
	/* the four ranges that are tried again have four segments each */
	read_start(&w[0], at(16, 0), MODEL_BLOCK);
	read_start(&w[1], at(19, 1), 2 * MODEL_BLOCK);
	read_end(&w[0]);
	read_end(&w[1]);
	assert_true(bs_clock_ns() - start_ns < BS_NS_PER_S);
	assert_int_equal(__atomic_load_n(&fake.n_demand, __ATOMIC_RELAXED), 2);
	assert_int_equal(stats().stream_waits, 0);
	__atomic_store_n(&fake.n_fail, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
}

static void who_waits_for_what_comes_soon_goes_on_when_all_fails(void **state)
{
	struct waiting w;
	const uint64_t start_ns = bs_clock_ns();

	fake.n_fail = 1000000;
	fake.hold = 1;
	start_stream();
	read_start(&w, at(17, 0), MODEL_BLOCK);
	assert_int_equal(stats().stream_waits, 1);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	read_end(&w);
	assert_true(bs_clock_ns() - start_ns < BS_NS_PER_S);
	__atomic_store_n(&fake.n_fail, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
}

static void the_next_source_is_asked_when_one_fails(void **state)
{
	struct bs_repo *repos[1] = { &other.repo };

	bs_origin_add(pack, repos, 1);
	fake.n_fail = 1000000;
	fake.failure = -ENOENT;
	start_stream();
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.bytes, stream_bytes);
	assert_true(other.n_hot > 0);
}

static void wrong_bytes_of_one_source_are_no_verdict(void **state)
{
	struct bs_repo *repos[1] = { &other.repo };

	bs_origin_add(pack, repos, 1);
	fake.lie_at = 5 * SEGMENT_BLOCKS * MODEL_BLOCK + 4711;
	start_stream();
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(result.segments + result.local_segments, SEGMENTS);
	assert_int_equal(result.wrong, 1);
	assert_string_equal(result.wrong_source, name);
	assert_int_equal(landed[5], 1);
	read_and_check(at(5, 0), 2 * MODEL_BLOCK);
}

static void wrong_bytes_of_all_sources_are_a_verdict(void **state)
{
	struct bs_repo *repos[1] = { &other.repo };

	bs_origin_add(pack, repos, 1);
	fake.lie_at = other.lie_at = 5 * SEGMENT_BLOCKS * MODEL_BLOCK + 4711;
	start_stream();
	wait_ended();
	assert_int_equal(result.error, -EBADMSG);
	assert_int_equal(result.wrong, 2);
	assert_int_equal(landed[5], 0);
}

/* Wrong from one, and the other never answers: it may have it right. */
static void wrong_bytes_are_no_verdict_while_a_source_is_away(void **state)
{
	struct bs_repo *repos[1] = { &other.repo };

	bs_origin_add(pack, repos, 1);
	fake.lie_at = 5 * SEGMENT_BLOCKS * MODEL_BLOCK + 4711;
	other.n_fail = 1000000;
	wait_ns = BS_NS_PER_S;
	start_stream();
	wait_ns = 0;
	wait_ended();
	assert_int_equal(result.error, -EIO);
	assert_true(result.wrong > 0);
}

static uint32_t n_landed(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SEGMENTS; i++)
		n += __atomic_load_n(&landed[i], __ATOMIC_RELAXED);
	return n;
}

static void ranges_that_hang_hold_up_nobody(void **state)
{
	struct waiting w[2];
	int n_hot;

	/* all that are asked for at first: four of four segments each */
	__atomic_store_n(&fake.hang_below, 2 * 8 * SEGMENT_BLOCKS * MODEL_BLOCK, __ATOMIC_RELEASE);
	start_stream();
	read_start(&w[0], at(0, 0), MODEL_BLOCK);
	read_start(&w[1], at(9, 1), 2 * MODEL_BLOCK);
	usleep(100000);
	assert_int_equal(__atomic_load_n(&fake.n_demand, __ATOMIC_RELAXED), 0);
	read_end(&w[0]);
	read_end(&w[1]);
	assert_int_equal(fake.n_demand, 2);
	for (int i = 0; i < 5000 && n_landed() < SEGMENTS - 16; i++)
		usleep(1000);
	assert_int_equal(n_landed(), SEGMENTS - 16);
	assert_int_equal(__atomic_load_n(&ended, __ATOMIC_ACQUIRE), 0);
	/* they are not asked for twice */
	n_hot = __atomic_load_n(&fake.n_hot, __ATOMIC_RELAXED);
	__atomic_store_n(&fake.hang_below, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(n_landed(), SEGMENTS);
	assert_int_equal(fake.n_hot, n_hot);
}

/* Bytes that come are no reason to wait for, when an own fetch is there sooner. */
static void ranges_that_drip_hold_up_nobody(void **state)
{
	const uint64_t start_ns = bs_clock_ns();
	struct waiting w[2];

	fake.pieces = true;
	fake.drip = 700000;
	start_stream();
	read_start(&w[0], at(3, 0), 2 * MODEL_BLOCK);
	read_start(&w[1], at(16, 0), 2 * MODEL_BLOCK); /* not asked for yet */
	read_end(&w[0]);
	read_end(&w[1]);
	assert_true(bs_clock_ns() - start_ns < 9 * BS_NS_PER_S);
	assert_true(fake.n_demand > 0);
	__atomic_store_n(&fake.drip, 0, __ATOMIC_RELEASE);
	wait_ended();
	assert_int_equal(result.error, 0);
	assert_int_equal(n_landed(), SEGMENTS);
}

static void a_stream_that_is_gone_or_cut_off_ends_soon(void **state)
{
	/* what was cut off says nothing of the bytes */
	static const int failures[] = { -ENOENT, -EBADMSG }, results[] = { -ENOENT, -EIO };
	uint64_t start_ns = bs_clock_ns();

	for (size_t i = 0; i < BS_ARRAY_LEN(failures); i++) {
		fake.n_fail = 1000000;
		fake.failure = failures[i];
		start_stream();
		wait_ended();
		assert_int_equal(result.error, results[i]);
		assert_int_equal(result.wrong, 0);
	}
	assert_true(bs_clock_ns() - start_ns < 10 * BS_NS_PER_S);
	fake.n_fail = 0;
	read_and_check(at(2, 1), 2 * MODEL_BLOCK);
}

static void a_lie_ends_the_stream_and_no_reader_sees_it(void **state)
{
	struct waiting w[8];

	fake.lie_at = 5 * SEGMENT_BLOCKS * MODEL_BLOCK + 4711;
	fake.hold = 1;
	start_stream();
	for (uint32_t i = 0; i < 8; i++)
		read_start(&w[i], at(i, 1), 2 * MODEL_BLOCK);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < 8; i++)
		read_end(&w[i]);
	wait_ended();
	assert_int_equal(result.error, -EBADMSG);
	assert_int_equal(stats().bad_segments, 1);
	assert_int_equal(landed[5], 0);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		read_and_check(at(i, 0), 2 * MODEL_BLOCK);
}

/* --- several streams of one blob ------------------------------------------------------------------ */

#define STREAMS 12u

static unsigned int n_done; /* atomic, as what follows */
static unsigned int n_failed;
static uint64_t done_bytes, done_segments, done_local;

static void op_done_one(void *cookie, const struct bs_stream_result *r)
{
	n_failed += r->error != 0;
	__atomic_add_fetch(&done_bytes, r->bytes, __ATOMIC_RELAXED);
	__atomic_add_fetch(&done_segments, r->segments, __ATOMIC_RELAXED);
	__atomic_add_fetch(&done_local, r->local_segments, __ATOMIC_RELAXED);
	__atomic_add_fetch(&n_done, 1, __ATOMIC_RELEASE);
}

static const struct bs_stream_ops one_of_many = {
	.segment = op_segment,
	.decode = op_decode,
	.landed = op_landed,
	.done = op_done_one,
};

static void start_streams(unsigned int n, struct bs_origin *from)
{
	const struct bs_stream_options o = { .blob = blob,
					     .origin = from,
					     .n_segments = SEGMENTS,
					     .parallel_max = 8,
					     .ops = &one_of_many };

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(bs_fill_stream(fill, &o), 0);
}

static void forget_done(void)
{
	n_done = n_failed = 0;
	done_bytes = done_segments = done_local = 0;
}

static void wait_done(unsigned int n)
{
	for (int i = 0; i < 20000 && __atomic_load_n(&n_done, __ATOMIC_ACQUIRE) < n; i++)
		usleep(1000);
	assert_int_equal(n_done, n);
}

static void streams_of_the_same_bring_it_once(void **state)
{
	forget_done();
	start_streams(STREAMS, pack);
	wait_done(STREAMS);
	assert_int_equal(n_failed, 0);
	assert_int_equal(fake.asked_bytes, stream_bytes);
	assert_int_equal(done_bytes, stream_bytes);
	assert_int_equal(done_segments, SEGMENTS);
	assert_int_equal(done_local, (STREAMS - 1) * SEGMENTS);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(landed[i], STREAMS);
}

/* What another was to bring, and does not. */
static void await_asked(uint64_t bytes)
{
	for (int i = 0; i < 20000 && __atomic_load_n(&fake.asked_bytes, __ATOMIC_RELAXED) < bytes;
	     i++)
		usleep(1000);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&fake.asked_bytes, __ATOMIC_RELAXED), bytes);
}

/* However many there are, and hang; but none is left without anything. */
static void streams_have_so_much_memory_together(void **state)
{
	const uint64_t small = 128 << 10;

	fake.hold = 1;
	forget_done();
	start_streams(1, pack);
	await_asked(2 * small);
	/* another one, which has none of it */
	for (uint32_t i = 0; i < SEGMENTS / 2; i++)
		store_segment(i);
	start_streams(1, pack);
	await_asked(3 * small);
	usleep(600000); /* it is looked at again and again */
	await_asked(3 * small);
	__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
	wait_done(2);
	assert_int_equal(n_failed, 0);
}

static void a_stream_goes_on_without_one_that_hangs_or_fails(void **state)
{
	struct bs_repo *repos[1] = { &other.repo };
	struct bs_origin *elsewhere = bs_origin_new(bs_origin_data(pack));

	bs_origin_add(elsewhere, repos, 1);
	for (int fails = 0; fails < 2; fails++) {
		forget_done();
		other.asked_bytes = 0;
		__atomic_store_n(&fake.hold, !fails, __ATOMIC_RELEASE);
		fake.failure = -ENOENT;
		fake.n_fail = fails ? 1000000 : 0;
		start_streams(1, pack);
		start_streams(1, elsewhere);
		wait_done(fails ? 2 : 1);
		assert_int_equal(other.asked_bytes, stream_bytes);
		__atomic_store_n(&fake.hold, 0, __ATOMIC_RELEASE);
		wait_done(2);
		assert_int_equal(n_landed() % SEGMENTS, 0);
		bs_blob_free(blob);
		(void)unlinkat(dirfd_, "blocks", 0);
		(void)unlinkat(dirfd_, "present", 0);
		assert_int_equal(bs_blob_open(dirfd_, &geometry, 2 + fails, &blob, NULL), 0);
	}
	(void)bs_origin_unref(elsewhere);
}

struct hammer {
	uint32_t seed;
	pthread_t thread;
};

static void *hammer_main(void *arg)
{
	struct hammer *h = arg;

	for (int i = 0; i < 400; i++) {
		uint64_t off;

		h->seed = h->seed * 1664525 + 1013904223;
		off = at((h->seed >> 16) % SEGMENTS, (h->seed >> 8) % (SEGMENT_BLOCKS / 2)) +
		      (h->seed >> 4) % MODEL_BLOCK;
		read_and_check(off,
			       1 + (h->seed >> 12) % (uint32_t)BS_MIN(2 * (uint64_t)MODEL_BLOCK,
								      model.bytes - off));
	}
	return NULL;
}

static void many_readers_and_two_streams(void **state)
{
	struct hammer h[6];

	for (uint32_t i = 0; i < 6; i++) {
		h[i].seed = i;
		assert_int_equal(pthread_create(&h[i].thread, NULL, hammer_main, &h[i]), 0);
	}
	fake.n_fail = 5;
	start_stream();
	wait_ended();
	start_stream();
	wait_ended();
	for (uint32_t i = 0; i < 6; i++)
		pthread_join(h[i].thread, NULL);
	assert_int_equal(result.error, 0);
	assert_int_equal(stats().failed_reads, 0);
}

#define STREAM_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STREAM_TEST(a_stream_brings_its_blocks_and_no_more),
		STREAM_TEST(what_has_come_of_a_range_is_there),
		STREAM_TEST(what_is_unpacked_is_not_asked_for_again),
		STREAM_TEST(what_was_wrong_at_first_is_looked_at_again),
		STREAM_TEST(a_lie_in_a_range_that_comes_is_one),
		STREAM_TEST(what_is_there_is_not_streamed_again),
		STREAM_TEST(readers_wait_for_what_comes_and_overtake_what_does_not),
		STREAM_TEST(nobody_waits_for_a_range_that_is_queued),
		STREAM_TEST(who_waits_for_what_is_queued_after_all_goes_on),
		STREAM_TEST(a_range_that_was_queued_does_not_hang),
		cmocka_unit_test_setup_teardown(streams_have_so_much_memory_together, set_up_narrow,
						tear_down),
		STREAM_TEST(a_frame_that_is_quicker_answers_all),
		STREAM_TEST(a_reader_waits_for_no_unpacking_of_a_stream),
		STREAM_TEST(who_waits_for_what_comes_from_elsewhere_is_answered),
		STREAM_TEST(faults_are_tried_again),
		STREAM_TEST(a_dead_source_ends_the_stream_and_readers_go_on),
		STREAM_TEST(a_source_that_comes_back_is_gone_on_with),
		STREAM_TEST(readers_wait_for_nothing_while_the_source_is_gone),
		STREAM_TEST(who_waits_for_what_comes_soon_goes_on_when_all_fails),
		STREAM_TEST(the_next_source_is_asked_when_one_fails),
		STREAM_TEST(wrong_bytes_of_one_source_are_no_verdict),
		STREAM_TEST(wrong_bytes_of_all_sources_are_a_verdict),
		STREAM_TEST(wrong_bytes_are_no_verdict_while_a_source_is_away),
		STREAM_TEST(ranges_that_hang_hold_up_nobody),
		STREAM_TEST(ranges_that_drip_hold_up_nobody),
		STREAM_TEST(a_stream_that_is_gone_or_cut_off_ends_soon),
		STREAM_TEST(a_lie_ends_the_stream_and_no_reader_sees_it),
		STREAM_TEST(streams_of_the_same_bring_it_once),
		STREAM_TEST(a_stream_goes_on_without_one_that_hangs_or_fails),
		STREAM_TEST(many_readers_and_two_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
