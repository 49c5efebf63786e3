/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "hot/format.h"
#include "hot/pack.h"
#include "hot/packcheck.h"
#include "hot/proof.h"
#include "hot/proofs.h"
#include "hot/store.h"
#include "image/frames.h"
#include "image/table.h"

#define N_FRAMES 40u
#define N_BLOCKS_MAX (N_FRAMES * BS_FRAME_BLOCKS_MAX)

/* An image's blob, with frames of all sizes. */
static uint8_t blob[N_BLOCKS_MAX * 4096u];
static struct bs_frame frames[N_FRAMES];
static struct bs_table table = { .frames = frames, .n_frames = N_FRAMES };
static const struct bs_digest table_digest = { { 7 } };
static struct bs_framer *f;
static unsigned int frames_asked;

static int make_image(void **state)
{
	uint32_t x = 1;

	f = bs_framer_new(3);
	for (size_t i = 0; i < sizeof(blob); i++) {
		x = x * 1664525 + 1013904223;
		blob[i] = (uint8_t)(x >> 24) & 7;
	}
	table.blob_blocks = 0;
	for (uint32_t i = 0; i < N_FRAMES; i++) {
		frames[i].first_block = table.blob_blocks;
		frames[i].n_blocks = 1 + i * 7 % BS_FRAME_BLOCKS_MAX;
		bs_frame_root(f, blob + table.blob_blocks * 4096, frames[i].n_blocks,
			      &frames[i].root);
		table.blob_blocks += frames[i].n_blocks;
	}
	return f ? 0 : -1;
}

static int free_image(void **state)
{
	f = bs_framer_free(f);
	return 0;
}

static int give_frame(void *cookie, uint32_t frame, void *out, struct bs_error *err)
{
	assert_true(frame < N_FRAMES);
	frames_asked++;
	memcpy(out, blob + frames[frame].first_block * 4096, frames[frame].n_blocks * 4096u);
	return 0;
}

/* A pack of the extents in memory; NULL with *ret_r when it is refused. */
static uint8_t *write_pack(const struct bs_extent *extents, uint32_t n, uint64_t *ret_head,
			   uint64_t *ret_len, int *ret_r)
{
	const struct bs_pack_write_options o = { .table = &table,
						 .table_digest = &table_digest,
						 .frame = give_frame };
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int fd = memfd_create("pack", MFD_CLOEXEC);
	uint8_t *bytes;

	frames_asked = 0;
	*ret_r = bs_pack_write(extents, n, &o, fd, ret_head, ret_len, &err);
	if (*ret_r < 0)
		return NULL;
	assert_int_equal(lseek(fd, 0, SEEK_END), *ret_len);
	bytes = malloc(*ret_len);
	assert_int_equal(bs_pread_full(fd, bytes, *ret_len, 0), *ret_len);
	return bytes;
}

/* --- of what a pack brought, without frames ----------------------------------------------- */

static uint64_t lacking; /* a block that is not here after all */

static int give_block(void *cookie, uint64_t block, void *out)
{
	if (block == lacking)
		return -ENODATA;
	memcpy(out, blob + block * 4096, 4096);
	return 0;
}

static int give_some(void *cookie, struct bs_framer *framer, uint32_t frame, uint32_t mask,
		     void *out, struct bs_digest *proof)
{
	return bs_proofs_make(cookie, framer, frame, mask, give_block, NULL, out, proof);
}

/* How many frames it took to write the pack; all its blocks are right. */
static unsigned int frames_for(const struct bs_extent *e, uint32_t n, struct bs_proofs *proofs)
{
	static uint8_t out[BS_PACK_SEGMENT_BYTES_MAX];
	const struct bs_pack_write_options o = { .table = &table,
						 .table_digest = &table_digest,
						 .frame = give_frame,
						 .some = give_some,
						 .cookie = proofs };
	bs_autofd int fd = memfd_create("pack", MFD_CLOEXEC);
	bs_auto(pack) struct bs_pack *p = NULL;
	struct bs_error err = BS_ERROR_INIT;
	uint64_t head, len;
	uint8_t *bytes;

	frames_asked = 0;
	assert_int_equal(bs_pack_write(e, n, &o, fd, &head, &len, &err), 0);
	bytes = malloc(len);
	assert_int_equal(bs_pread_full(fd, bytes, len, 0), len);
	assert_int_equal(bs_pack_read(bytes, head, &table, &table_digest, &p, &err), 0);
	for (uint32_t i = 0; i < p->n_segments; i++) {
		const struct bs_pack_segment *s = &p->segments[i];
		uint8_t *at = out;

		assert_int_equal(bs_pack_decode(f, p, &table, i, bytes + s->off, out), 0);
		for (uint32_t k = s->first_extent; k < s->first_extent + s->n_extents; k++) {
			size_t size = p->extents[k].n_blocks * 4096u;

			assert_memory_equal(at, blob + p->extents[k].block * 4096u, size);
			at += size;
		}
	}
	free(bytes);
	return frames_asked;
}

/* Every step'th block, in another order than the blob's: a frame is in several segments. */
static uint32_t scattered(struct bs_extent *e, uint32_t first, uint32_t step)
{
	uint32_t n = 0, blocks = (uint32_t)table.blob_blocks;

	for (uint32_t k = 0; k < 5; k++) {
		for (uint32_t b = first + k * step; b < blocks; b += 5 * step)
			e[n++] = (struct bs_extent){ b, 1 };
	}
	return n;
}

static void what_a_pack_brought_is_proven_anew_without_frames(void **state)
{
	static struct bs_extent e[N_BLOCKS_MAX];
	bs_autofd int fd = memfd_create("proofs", MFD_CLOEXEC);
	bs_auto(proofs) struct bs_proofs *proofs = NULL;
	bs_auto(pack) struct bs_pack *p = NULL;
	bs_autofree uint8_t *bytes = NULL;
	struct bs_error err = BS_ERROR_INIT;
	uint64_t head, len, x = 0;
	uint32_t n = scattered(e, 0, 2);
	int r;

	lacking = UINT64_MAX;
	bytes = write_pack(e, n, &head, &len, &r);
	assert_int_equal(bs_pack_read(bytes, head, &table, &table_digest, &p, &err), 0);
	assert_true(p->n_segments > 1);
	proofs = bs_proofs_new(p, &table, fd);
	assert_non_null(proofs);
	assert_true(frames_for(e, n, proofs) > N_FRAMES / 2); /* nothing was kept yet */
	for (uint32_t i = 0; i < p->n_segments; i++)
		assert_int_equal(bs_proofs_keep(fd, p, &table, i, bytes + p->segments[i].off), 0);
	/* the same, some of them in other company, and all in the order of the blob */
	assert_int_equal(frames_for(e, n, proofs), 0);
	assert_int_equal(frames_for(e, scattered(e, 0, 6), proofs), 0);
	assert_int_equal(frames_for(e, scattered(e, 4, 14), proofs), 0);
	for (n = 0; n * 2 < table.blob_blocks; n++)
		e[n] = (struct bs_extent){ n * 2, 1 };
	assert_int_equal(frames_for(e, n, proofs), 0);
	/* a block that is not here, one that it never had, hashes that went bad */
	lacking = 300;
	assert_int_equal(frames_for(e, n, proofs), 1);
	lacking = UINT64_MAX;
	e[n++] = (struct bs_extent){ 301, 1 };
	assert_int_equal(frames_for(e, n, proofs), 0); /* its hash was among the old ones' proof */
	e[n - 1].block = (uint32_t)table.blob_blocks - 1 - (table.blob_blocks % 2 == 0 ? 0 : 1);
	lacking = e[n - 1].block;
	assert_int_equal(frames_for(e, n, proofs), 1);
	lacking = UINT64_MAX;
	n--;
	assert_int_equal(bs_pwrite_full(fd, &x, sizeof(x), p->segments[0].off), 0);
	assert_in_range(frames_for(e, n, proofs), 1, 2);
}

/* Every second block of the blob from the end on, then the rest in pieces of up to 300. */
static uint32_t some_extents(struct bs_extent *e)
{
	uint32_t n = 0, blocks = (uint32_t)table.blob_blocks;

	for (uint32_t b = 0; b < blocks / 2; b += 2)
		e[n++] = (struct bs_extent){ blocks / 2 - 1 - b, 1 };
	e[n++] = (struct bs_extent){ blocks / 2 + 5, blocks / 2 - 5 - 3 };
	return n;
}

static void every_block_comes_back(void **state)
{
	static struct bs_extent e[N_BLOCKS_MAX];
	static uint8_t out[BS_PACK_SEGMENT_BYTES_MAX];
	bs_auto(pack) struct bs_pack *p = NULL;
	bs_autofree uint8_t *bytes = NULL;
	struct bs_error err = BS_ERROR_INIT;
	uint64_t head, len, off;
	uint32_t n = some_extents(e), blocks = 0, at = 0, in = 0;
	int r;

	bytes = write_pack(e, n, &head, &len, &r);
	assert_int_equal(r, 0);
	for (uint32_t i = 0; i < n; i++)
		blocks += e[i].n_blocks;
	assert_int_equal(bs_pack_read(bytes, head, &table, &table_digest, &p, &err), 0);
	assert_int_equal(p->head_len, head);
	assert_int_equal(p->len, len);
	assert_int_equal(p->n_blocks, blocks);
	assert_int_equal(p->n_segments, (blocks + 255) / 256);
	off = head;
	for (uint32_t i = 0; i < p->n_segments; i++) {
		const struct bs_pack_segment *s = &p->segments[i];
		const uint8_t *block = out;

		assert_int_equal(s->off, off);
		off += s->len;
		assert_int_equal(s->n_blocks, BS_MIN(blocks - i * 256, 256u));
		assert_int_equal(bs_pack_decode(f, p, &table, i, bytes + s->off, out), 0);
		for (uint32_t k = 0; k < s->n_extents; k++) {
			const struct bs_extent *x = &p->extents[s->first_extent + k];

			for (uint32_t b = 0; b < x->n_blocks; b++, block += 4096) {
				/* the order is that of the list, cut at the borders */
				assert_int_equal(x->block + b, e[at].block + in);
				assert_memory_equal(block, blob + ((size_t)x->block + b) * 4096,
						    4096);
				if (++in == e[at].n_blocks) {
					at++;
					in = 0;
				}
			}
		}
	}
	assert_int_equal(off, len);
	assert_int_equal(at, n);
}

static void the_same_extents_make_the_same_bytes(void **state)
{
	static struct bs_extent e[N_BLOCKS_MAX];
	bs_autofree uint8_t *a = NULL, *b = NULL;
	uint64_t head, len, head2, len2;
	uint32_t n = some_extents(e);
	int r;

	a = write_pack(e, n, &head, &len, &r);
	b = write_pack(e, n, &head2, &len2, &r);
	assert_int_equal(len, len2);
	assert_memory_equal(a, b, len);
}

/* Whatever byte of a segment is changed, it proves nothing else than the image's blocks. */
static void a_changed_segment_is_refused(void **state)
{
	static struct bs_extent e[N_BLOCKS_MAX];
	static uint8_t out[BS_PACK_SEGMENT_BYTES_MAX];
	bs_auto(pack) struct bs_pack *p = NULL;
	bs_autofree uint8_t *bytes = NULL;
	uint64_t head, len;
	uint32_t n = some_extents(e), refused = 0, tried = 0;
	int r;

	bytes = write_pack(e, n, &head, &len, &r);
	assert_int_equal(bs_pack_read(bytes, len, &table, &table_digest, &p, NULL), 0);
	for (uint32_t i = 0; i < p->n_segments; i++) {
		const struct bs_pack_segment *s = &p->segments[i];

		for (uint32_t k = 0; k < s->len; k += 1 + s->len / 200) {
			bytes[s->off + k] ^= 0x10;
			if (bs_pack_decode(f, p, &table, i, bytes + s->off, out) < 0) {
				refused++;
			} else { /* zstd does not use every bit */
				const struct bs_extent *x = &p->extents[s->first_extent];

				assert_memory_equal(out, blob + (size_t)x->block * 4096, 4096);
			}
			tried++;
			bytes[s->off + k] ^= 0x10;
		}
	}
	assert_true(refused > tried * 9 / 10);
}

/* A pack whose form is right in all, but for one byte of a block. */
static int give_lying_frame(void *cookie, uint32_t frame, void *out, struct bs_error *err)
{
	(void)give_frame(NULL, frame, out, err);
	if (frame == 3)
		((uint8_t *)out)[4096 + 17] ^= 1;
	return 0;
}

static void a_lie_in_one_byte_is_refused(void **state)
{
	const struct bs_pack_write_options o = { .table = &table,
						 .table_digest = &table_digest,
						 .frame = give_lying_frame };
	const struct bs_extent e[] = { { (uint32_t)frames[3].first_block, 2 },
				       { (uint32_t)frames[9].first_block, 3 } };
	static uint8_t out[BS_PACK_SEGMENT_BYTES_MAX];
	bs_autofd int fd = memfd_create("pack", MFD_CLOEXEC);
	bs_auto(pack) struct bs_pack *p = NULL;
	bs_autofree uint8_t *bytes = NULL;
	uint64_t head, len;

	assert_int_equal(bs_pack_write(e, 2, &o, fd, &head, &len, NULL), 0);
	bytes = malloc(len);
	assert_int_equal(bs_pread_full(fd, bytes, len, 0), len);
	assert_int_equal(bs_pack_read(bytes, len, &table, &table_digest, &p, NULL), 0);
	assert_int_equal(bs_pack_decode(f, p, &table, 0, bytes + head, out), -EBADMSG);
}

static void refuse(uint8_t *bytes, uint64_t len, int want, const char *word)
{
	bs_auto(pack) struct bs_pack *p = NULL;
	struct bs_error err = BS_ERROR_INIT;

	assert_int_equal(bs_pack_read(bytes, len, &table, &table_digest, &p, &err), want);
	if (!strstr(err.msg, word))
		fail_msg("'%s' does not say '%s'", err.msg, word);
}

static void a_wrong_head_is_refused(void **state)
{
	const struct bs_extent e[] = { { 9, 300 }, { 2, 1 } };
	struct bs_digest other = { { 8 } };
	bs_auto(pack) struct bs_pack *p = NULL;
	bs_autofree uint8_t *good = NULL, *bytes = NULL;
	struct bs_disk_pack *h;
	struct bs_disk_segment *s;
	struct bs_disk_hot_extent *x;
	uint64_t head, len;
	int r;

	good = write_pack(e, 2, &head, &len, &r);
	assert_int_equal(bs_pack_read(good, head, &table, &other, &p, NULL), -EBADMSG);
	for (uint64_t n = 0; n < head; n++)
		refuse(good, n, -EBADMSG, n < sizeof(*h) ? "begin as one" : "cut off");
	bytes = malloc(head);
	h = (void *)bytes;
	s = (void *)(bytes + sizeof(*h));
	x = (void *)(bytes + sizeof(*h) + 2 * sizeof(*s));
#define WITH(change, want, word)                                                                   \
	do {                                                                                       \
		memcpy(bytes, good, head);                                                         \
		change;                                                                            \
		refuse(bytes, head, want, word);                                                   \
	} while (0)
	WITH(h->version = htole32(2), -EPROTONOSUPPORT, "upgrade");
	WITH(h->must = htole32(1), -EPROTONOSUPPORT, "upgrade");
	WITH(h->n_segments = htole32(UINT32_MAX), -EFBIG, "too many");
	WITH(h->n_blocks = htole32(UINT32_MAX), -EFBIG, "too many");
	WITH(h->n_extents = htole32(UINT32_MAX), -EFBIG, "too many");
	WITH(h->n_segments = 0, -EBADMSG, "without extents");
	WITH(h->extra_len = htole64(UINT64_MAX), -EFBIG, "extra part is too large");
	WITH(h->extra_len = htole64(BS_PACK_EXTRA_MAX + 1), -EFBIG, "extra part is too large");
	WITH(h->extra_len = htole64(8), -EBADMSG, "extra part");
	WITH(h->n_blocks = htole32(300), -EBADMSG, "add up");
	WITH(h->segments_len = 0, -EBADMSG, "add up");
	WITH(s[0].len = 0, -EBADMSG, "segment 0: its length");
	WITH(s[1].len = htole32(BS_PACK_SEGMENT_DATA_MAX + 1), -EBADMSG, "segment 1: its length");
	WITH(s[0].n_extents = 0, -EBADMSG, "segment 0: it has no extents");
	WITH(s[1].n_extents = htole32(UINT32_MAX), -EBADMSG, "segment 1: it has no extents");
	WITH(s[1].n_extents = htole32(1), -EBADMSG, "no segment has");
	WITH(x[0].n_blocks = htole32(257), -EBADMSG, "segment 0 has too many");
	WITH(x[0].n_blocks = 0, -EBADMSG, "extent 0: it is empty");
	WITH(x[2].block = htole32((uint32_t)table.blob_blocks), -EBADMSG, "extent 2");
	WITH(x[2].block = htole32(UINT32_MAX), -EBADMSG, "extent 2");
	WITH(x[2].block = htole32(10), -EBADMSG, "another too");
#undef WITH
}

static void wrong_extents_are_not_written(void **state)
{
	const struct bs_extent none[] = { { 1, 0 } },
			       beyond[] = { { (uint32_t)table.blob_blocks - 1, 2 } };
	uint64_t head, len;
	int r;

	assert_null(write_pack(NULL, 0, &head, &len, &r));
	assert_int_equal(r, -EINVAL);
	assert_null(write_pack(none, 1, &head, &len, &r));
	assert_int_equal(r, -EINVAL);
	assert_null(write_pack(beyond, 1, &head, &len, &r));
	assert_int_equal(r, -EINVAL);
}

/* All of a pack in pieces; what came out. */
static int check(const uint8_t *bytes, size_t len, const struct bs_hot *hot, size_t piece,
		 struct bs_error *err)
{
	bs_auto(packcheck) struct bs_packcheck *c = NULL;
	const struct bs_pack *pack;
	int r = 0;

	assert_int_equal(bs_packcheck_new(&table, &table_digest, hot, &c, err), 0);
	for (size_t at = 0; r == 0 && at < len; at += piece)
		r = bs_packcheck_feed(c, bytes + at, BS_MIN(piece, len - at));
	return bs_packcheck_end(c, r, &pack, err);
}

static void a_whole_pack_is_proven_as_it_comes(void **state)
{
	static struct bs_extent e[N_BLOCKS_MAX];
	static const size_t pieces[] = { 1, 79, 4096, 1u << 20, 1u << 30 };
	bs_autofree uint8_t *bytes = NULL;
	struct bs_error err = BS_ERROR_INIT;
	struct bs_hot hot = { 0 };
	uint64_t len;
	int r;

	bytes = write_pack(e, some_extents(e), &hot.head_len, &len, &r);
	assert_int_equal(r, 0);
	hot.pack.size = len;
	for (size_t i = 0; i < BS_ARRAY_LEN(pieces); i++)
		assert_int_equal(check(bytes, len, &hot, pieces[i], &err), 0);
	assert_int_equal(check(bytes, len - 1, &hot, 4096, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "cut off"));
	assert_int_equal(check(bytes, 10, &hot, 4096, &err), -EBADMSG);
	bytes[len - 1] ^= 1;
	assert_int_equal(check(bytes, len, &hot, 4096, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "other bytes than the image"));
	bytes[len - 1] ^= 1;
	/* a head that reads well, and is another than its manifest names */
	bs_digest_of(bytes, hot.head_len, &hot.head);
	hot.head_proven = true;
	assert_int_equal(check(bytes, len, &hot, 4096, &err), 0);
	hot.head.b[0] ^= 1;
	assert_int_equal(check(bytes, len, &hot, 4096, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "not the one that its manifest names"));
	hot.head_proven = false;
	hot.head_len -= 8; /* heads that lie */
	assert_int_equal(check(bytes, len, &hot, 4096, &err), -EBADMSG);
	hot.head_len += 12;
	assert_int_equal(check(bytes, len, &hot, 4096, &err), -EBADMSG);
	hot.head_len -= 4;
	hot.pack.size++;
	assert_int_equal(check(bytes, len, &hot, 4096, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "its manifest says"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(every_block_comes_back),
		UNIT_TEST(what_a_pack_brought_is_proven_anew_without_frames),
		UNIT_TEST(a_whole_pack_is_proven_as_it_comes),
		UNIT_TEST(the_same_extents_make_the_same_bytes),
		UNIT_TEST(a_changed_segment_is_refused),
		UNIT_TEST(a_lie_in_one_byte_is_refused),
		UNIT_TEST(a_wrong_head_is_refused),
		UNIT_TEST(wrong_extents_are_not_written),
	};

	return cmocka_run_group_tests(tests, make_image, free_image);
}
