/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "base/error.h"
#include "image/format.h"
#include "image/tree.h"

static struct bs_tree_writer *w;

static int new_writer(void **state)
{
	w = bs_tree_writer_new();
	return w ? 0 : -1;
}

static int free_writer(void **state)
{
	w = bs_tree_writer_free(w);
	return 0;
}

static uint32_t n_added; /* entries of w */

/* An entry that only lacks what a case changes. */
static struct bs_tree_entry entry(uint32_t parent, const char *name, uint32_t mode)
{
	return (struct bs_tree_entry){ .parent = parent,
				       .inode = n_added,
				       .name = name,
				       .name_len = (uint8_t)strlen(name),
				       .mode = mode };
}

static uint32_t add(const struct bs_tree_entry *e, const struct bs_tree_xattr *x,
		    const struct bs_tree_extent *extents)
{
	struct bs_error err = BS_ERROR_INIT;
	int64_t i = bs_tree_writer_add(w, e, x, extents, &err);

	if (i < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(i, n_added);
	n_added++;
	return (uint32_t)i;
}

static uint32_t add_plain(uint32_t parent, const char *name, uint32_t mode)
{
	struct bs_tree_entry e = entry(parent, name, mode);

	return add(&e, NULL, NULL);
}

static uint32_t add_root(void)
{
	n_added = 0;
	return add_plain(0, "", S_IFDIR | 0755);
}

static void refuse(const struct bs_tree_entry *e, const struct bs_tree_xattr *x,
		   const struct bs_tree_extent *extents, const char *why)
{
	struct bs_error err = BS_ERROR_INIT;

	assert_int_equal(bs_tree_writer_add(w, e, x, extents, &err), -EINVAL);
	if (!strstr(err.msg, why))
		fail_msg("not '%s': %s", why, err.msg);
}

static struct bs_tree *finish_and_read(uint64_t blob_blocks)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree void *bytes = NULL;
	struct bs_tree *t = NULL;
	size_t len;

	if (bs_tree_writer_finish(w, blob_blocks, &bytes, &len, &err) < 0 ||
	    bs_tree_read(bytes, len, &t, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

static void what_is_written_is_what_is_read(void **state)
{
	static const uint8_t value[] = { 0, 1, 2, 0 };
	const struct bs_tree_xattr xattrs[] = {
		{ "user.b", value, sizeof(value), 6 },
		{ "security.capability", value, 0, 19 },
	};
	const struct bs_tree_extent extents[] = { { 0, 7, 1 }, { 1, 8, 1 }, { 33, 1, 2 } };
	struct bs_tree_entry e = entry(0, "f", S_IFREG | 04755);
	bs_auto(tree) struct bs_tree *t = NULL;
	char target[BS_TREE_TARGET_MAX + 1];
	uint32_t dir, file;

	add_root();
	dir = add_plain(0, "d", S_IFDIR | S_ISVTX | 0777);
	e = entry(dir, "f", S_IFREG | 04755);
	e.uid = UINT32_MAX - 1;
	e.gid = 65536;
	e.mtime_s = INT64_MIN;
	e.mtime_ns = 999999999;
	e.size = 35 * 4096 - 1;
	e.n_xattrs = 2;
	e.n_extents = 3;
	file = add(&e, xattrs, extents);
	e = entry(0, "d2", S_IFREG); /* a hard link: the mode does not count */
	e.inode = file;
	add(&e, NULL, NULL);
	e = entry(0, "dev", S_IFCHR | 0600);
	e.rdev_major = 4095;
	e.rdev_minor = (1 << 20) - 1;
	add(&e, NULL, NULL);
	memset(target, 'x', sizeof(target));
	target[BS_TREE_TARGET_MAX] = '\0';
	e = entry(0, "\xff\n", S_IFLNK | 0777);
	e.target = target;
	e.size = BS_TREE_TARGET_MAX;
	add(&e, NULL, NULL);

	t = finish_and_read(9);
	assert_int_equal(t->n_entries, 6);
	assert_int_equal(t->n_inodes, 5);
	assert_int_equal(t->blob_blocks, 9);
	assert_int_equal(t->entries[0].nlink, 3);
	assert_int_equal(t->entries[dir].nlink, 2);
	e = t->entries[file];
	assert_string_equal(e.name, "f");
	assert_int_equal(e.mode, S_IFREG | 04755);
	assert_int_equal(e.uid, UINT32_MAX - 1);
	assert_int_equal(e.gid, 65536);
	assert_int_equal(e.mtime_s, INT64_MIN);
	assert_int_equal(e.mtime_ns, 999999999);
	assert_int_equal(e.size, 35 * 4096 - 1);
	assert_int_equal(e.nlink, 2);
	assert_int_equal(e.n_xattrs, 2);
	assert_string_equal(t->xattrs[e.first_xattr].name, "security.capability");
	assert_int_equal(t->xattrs[e.first_xattr].value_len, 0);
	assert_string_equal(t->xattrs[e.first_xattr + 1].name, "user.b");
	assert_memory_equal(t->xattrs[e.first_xattr + 1].value, value, sizeof(value));
	assert_int_equal(e.n_extents, 2); /* the first two are one */
	assert_int_equal(t->extents[e.first_extent].n_blocks, 2);
	assert_int_equal(t->extents[e.first_extent + 1].file_block, 33);
	assert_int_equal(t->extents[e.first_extent + 1].blob_block, 1);
	assert_int_equal(t->extents[e.first_extent + 1].n_blocks, 2);
	assert_int_equal(t->entries[3].inode, file);
	assert_int_equal(t->entries[4].rdev_major, 4095);
	assert_int_equal(t->entries[4].rdev_minor, (1 << 20) - 1);
	assert_string_equal(t->entries[5].target, target);
	assert_string_equal(t->entries[5].name, "\xff\n");
}

static void names_and_places_are_checked(void **state)
{
	static const char *const bad[] = { "", ".", "..", "a/b", "/" };
	struct bs_tree_entry e = entry(0, "x", S_IFDIR);
	uint32_t dir, inner, file;
	char longest[BS_TREE_NAME_MAX + 1];

	n_added = 0;
	e.inode = 0;
	refuse(&e, NULL, NULL, "not the root directory");
	e = entry(0, "", S_IFREG);
	refuse(&e, NULL, NULL, "not the root directory");
	add_root();
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		e = entry(0, bad[i], S_IFREG);
		refuse(&e, NULL, NULL, "not one path component");
	}
	e = entry(0, "a\0b", S_IFREG);
	e.name_len = 3;
	refuse(&e, NULL, NULL, "not one path component");
	memset(longest, 'a', sizeof(longest));
	longest[BS_TREE_NAME_MAX] = '\0';
	add_plain(0, longest, S_IFREG);
	dir = add_plain(0, "b", S_IFDIR);
	inner = add_plain(dir, "c", S_IFDIR);
	file = add_plain(inner, "z", S_IFREG);
	e = entry(file, "a", S_IFREG);
	refuse(&e, NULL, NULL, "not a directory");
	e = entry(n_added, "a", S_IFREG);
	refuse(&e, NULL, NULL, "not a directory");
	e = entry(inner, "z", S_IFREG);
	refuse(&e, NULL, NULL, "elder sibling");
	e = entry(inner, "y", S_IFREG);
	refuse(&e, NULL, NULL, "elder sibling");
	e = entry(0, "b", S_IFREG);
	refuse(&e, NULL, NULL, "elder sibling");
	add_plain(0, "b-", S_IFREG);
	e = entry(dir, "d", S_IFREG);
	refuse(&e, NULL, NULL, "path order");
	add_plain(0, "b\x80", S_IFREG); /* bytes are unsigned */
}

static void hard_links_lead_to_earlier_inodes(void **state)
{
	struct bs_tree_entry e;
	uint32_t file, link;

	add_root();
	add_plain(0, "d", S_IFDIR);
	file = add_plain(0, "f", S_IFREG);
	e = entry(0, "g", S_IFREG);
	e.inode = file;
	link = add(&e, NULL, NULL);
	e = entry(0, "h", S_IFREG);
	for (uint32_t to = 0; to < n_added + 2; to++) {
		if (to == file || to == n_added)
			continue;
		e.inode = to;
		refuse(&e, NULL, NULL, "hard link");
	}
	assert_int_equal(link, 3);
}

static void attributes_have_bounds(void **state)
{
	static const struct {
		struct bs_tree_entry e;
		const char *why;
	} cases[] = {
		{ { .mode = 0644 }, "file type" },
		{ { .mode = 0160000 }, "file type" },
		{ { .mode = S_IFREG | 0200000 }, "unknown bits" },
		{ { .mode = S_IFREG, .size = (uint64_t)INT64_MAX + 1 }, "2^63" },
		{ { .mode = S_IFDIR, .size = 1 }, "has a size" },
		{ { .mode = S_IFIFO, .size = 1 }, "has a size" },
		{ { .mode = S_IFLNK, .target = "", .size = 0 }, "target" },
		{ { .mode = S_IFLNK, .target = "a\0b", .size = 3 }, "NUL" },
		{ { .mode = S_IFREG, .rdev_minor = 1 }, "no device" },
		{ { .mode = S_IFCHR, .rdev_major = 4096 }, "out of range" },
		{ { .mode = S_IFBLK, .rdev_minor = 1 << 20 }, "out of range" },
		{ { .mode = S_IFREG, .uid = UINT32_MAX }, "owner" },
		{ { .mode = S_IFREG, .gid = UINT32_MAX }, "group" },
		{ { .mode = S_IFREG, .mtime_ns = 1000000000 }, "nanoseconds" },
		{ { .mode = S_IFDIR, .n_extents = 1 }, "no regular file" },
	};

	add_root();
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		static const struct bs_tree_extent x = { 0, 0, 1 };
		struct bs_tree_entry e = cases[i].e;

		e.name = "x";
		e.name_len = 1;
		e.inode = 1;
		refuse(&e, NULL, &x, cases[i].why);
	}
}

static void extents_have_bounds(void **state)
{
	static const struct {
		uint64_t size;
		struct bs_tree_extent x[2];
		const char *why;
	} cases[] = {
		{ 4096, { { 0, 0, 0 } }, "empty" },
		{ 4096, { { 0, 0, 2 } }, "behind the file" },
		{ 4096, { { 1, 0, 1 } }, "behind the file" },
		{ 0, { { 0, 0, 1 } }, "behind the file" },
		{ INT64_MAX, { { 1, 0, UINT64_MAX } }, "behind the file" },
		{ INT64_MAX, { { UINT64_MAX, 0, 2 } }, "behind the file" },
		{ INT64_MAX, { { 0, UINT32_MAX, 1 } }, "behind the blob" },
		{ INT64_MAX, { { 0, 1, UINT32_MAX } }, "behind the blob" },
		{ INT64_MAX, { { 0, UINT64_MAX, 1 } }, "behind the blob" },
		{ 40960, { { 0, 0, 2 }, { 1, 9, 1 } }, "overlap" },
		{ 40960, { { 5, 0, 1 }, { 1, 9, 1 } }, "overlap" },
		{ 40960, { { 5, 0, 1 }, { 5, 0, 1 } }, "overlap" },
	};

	add_root();
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct bs_tree_entry e = entry(0, "x", S_IFREG);

		e.size = cases[i].size;
		e.n_extents = cases[i].x[1].n_blocks ? 2 : 1;
		refuse(&e, NULL, cases[i].x, cases[i].why);
	}
}

static void extents_may_come_later(void **state)
{
	struct bs_tree_extent x[] = { { 0, 3, 1 }, { 1, 4, 1 }, { 2, 0, 1 } };
	struct bs_tree_entry e;
	bs_auto(tree) struct bs_tree *t = NULL;
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree void *bytes = NULL;
	size_t len;

	add_root();
	e = entry(0, "a", S_IFREG);
	e.size = 3 * 4096;
	add(&e, NULL, NULL);
	add_plain(0, "b", S_IFREG);
	assert_int_equal(bs_tree_writer_set_extents(w, 0, x, 1, &err), -EINVAL);
	assert_int_equal(bs_tree_writer_set_extents(w, 2, x, 1, &err), -EINVAL);
	assert_int_equal(bs_tree_writer_set_extents(w, 3, x, 1, &err), -EINVAL);
	assert_int_equal(bs_tree_writer_set_extents(w, 1, x, 1, &err), 0);
	assert_int_equal(bs_tree_writer_set_extents(w, 1, x, 3, &err), 0);
	assert_int_equal(bs_tree_writer_finish(w, 4, &bytes, &len, &err), -EINVAL);
	assert_int_equal(bs_tree_writer_finish(w, UINT64_C(1) << 32, &bytes, &len, &err), -EFBIG);
	t = finish_and_read(5);
	assert_int_equal(t->n_extents, 2);
	assert_int_equal(t->extents[0].n_blocks, 2);
	assert_int_equal(t->extents[1].file_block, 2);
}

static void xattrs_have_bounds(void **state)
{
	static const uint8_t big[65536];
	static const struct {
		struct bs_tree_xattr x[2];
		const char *why;
	} cases[] = {
		{ { { "user.", big, 1, 5 } }, "name is not" },
		{ { { "", big, 1, 0 } }, "name is not" },
		{ { { "system.nfs4_acl", big, 1, 15 } }, "name is not" },
		{ { { "system.posix_acl_accesss", big, 1, 24 } }, "name is not" },
		{ { { "user.a\0b", big, 1, 8 } }, "NUL" },
		{ { { "user.a", big, 65536, 6 } }, "65535" },
		{ { { "user.a", big, 1, 6 }, { "user.a", big, 1, 6 } }, "ascending" },
		{ { { "user.a", big, 65000, 6 }, { "user.b", big, 525, 6 } }, "65536" },
	};
	static const struct bs_tree_xattr fits[] = { { "user.a", big, 65000, 6 },
						     { "user.b", big, 524, 6 } };
	bs_auto(tree) struct bs_tree *t = NULL;
	struct bs_tree_entry e;

	add_root();
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		e = entry(0, "x", S_IFREG);
		e.n_xattrs = cases[i].x[1].name ? 2 : 1;
		refuse(&e, cases[i].x, NULL, cases[i].why);
	}
	e = entry(0, "x", S_IFREG);
	e.n_xattrs = 2;
	add(&e, fits, NULL);
	t = finish_and_read(0);
	assert_int_equal(t->n_xattrs, 2);
}

/* --- bytes that no writer makes --------------------------------------------------------------- */

struct plain {
	uint8_t *bytes;
	size_t len;
};

/* root, d/, d/f (two extents, one xattr), e -> t, g = d/f */
static struct plain sample(void)
{
	static const struct bs_tree_extent extents[] = { { 0, 0, 1 }, { 2, 1, 1 } };
	static const struct bs_tree_xattr xattr = { "user.a", (const uint8_t *)"v", 1, 6 };
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree void *bytes = NULL;
	struct bs_tree_entry e;
	struct plain p;
	size_t len;

	bs_tree_writer_free(w);
	w = bs_tree_writer_new();
	add_root();
	add_plain(0, "d", S_IFDIR | 0755);
	e = entry(1, "f", S_IFREG | 0644);
	e.size = 3 * 4096;
	e.n_extents = 2;
	e.n_xattrs = 1;
	add(&e, &xattr, extents);
	e = entry(0, "e", S_IFLNK | 0777);
	e.target = "t";
	e.size = 1;
	add(&e, NULL, NULL);
	e = entry(0, "g", 0);
	e.inode = 2;
	add(&e, NULL, NULL);
	assert_int_equal(bs_tree_writer_finish(w, 2, &bytes, &len, &err), 0);
	p.len = ZSTD_getFrameContentSize(bytes, len);
	p.bytes = malloc(p.len + 64);
	assert_int_equal(ZSTD_decompress(p.bytes, p.len, bytes, len), p.len);
	return p;
}

static int read_plain(const struct plain *p, struct bs_error *err)
{
	bs_autofree void *packed = malloc(ZSTD_compressBound(p->len));
	size_t n = ZSTD_compress(packed, ZSTD_compressBound(p->len), p->bytes, p->len, 1);
	bs_auto(tree) struct bs_tree *t = NULL;

	return bs_tree_read(packed, n, &t, err);
}

/* Offsets in sample(): the head, five entries, two extents, one length, strings. */
#define HEAD(field) offsetof(struct bs_disk_tree, field)
#define ENTRY(i, field)                                                                            \
	(sizeof(struct bs_disk_tree) + (i) * sizeof(struct bs_disk_entry) +                        \
	 offsetof(struct bs_disk_entry, field))
#define EXTENT(i, field)                                                                           \
	(ENTRY(5, parent) + (i) * sizeof(struct bs_disk_extent) +                                  \
	 offsetof(struct bs_disk_extent, field))
#define NAMES (EXTENT(2, hole_blocks) + 4) /* "\0d\0f\0e\0g\0" */
#define TARGETS (NAMES + 9)
#define XATTRS (TARGETS + 2) /* "user.a\0v" */

static void other_spellings_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint8_t size; /* of the little-endian number */
		uint64_t value;
		int code;
		const char *why;
	} cases[] = {
		{ HEAD(magic), 1, 'B', -EBADMSG, "begin as one" },
		{ HEAD(version), 4, 2, -EPROTONOSUPPORT, "upgrade" },
		{ HEAD(must), 4, 1, -EPROTONOSUPPORT, "upgrade" },
		{ HEAD(n_entries), 4, 0, -EBADMSG, "no root" },
		{ HEAD(n_entries), 4, 4, -EBADMSG, "longer" },
		{ HEAD(n_entries), 4, 6, -EBADMSG, "shorter" },
		{ HEAD(n_entries), 4, BS_TREE_ENTRIES_MAX + 1, -EFBIG, "entries" },
		{ HEAD(n_xattrs), 4, UINT32_MAX, -EBADMSG, "shorter" },
		{ HEAD(n_extents), 4, UINT32_MAX, -EBADMSG, "shorter" },
		{ HEAD(blob_blocks), 8, 1, -EBADMSG, "behind the blob" },
		{ HEAD(blob_blocks), 8, UINT64_C(1) << 32, -EFBIG, "2^32" },
		{ HEAD(names_len), 8, UINT64_MAX, -EBADMSG, "shorter" },
		{ HEAD(names_len), 8, 8, -EBADMSG, "longer" },
		{ HEAD(extra_len), 8, 1, -EBADMSG, "shorter" },
		{ ENTRY(0, parent), 4, 1, -EBADMSG, "entry 0: the root has" },
		{ ENTRY(0, mode), 2, S_IFREG, -EBADMSG, "root is not a directory" },
		{ ENTRY(0, link), 4, 1, -EBADMSG, "entry 0: it is a hard link to no earlier" },
		{ ENTRY(1, parent), 4, 1, -EBADMSG, "parent is not before it" },
		{ ENTRY(1, parent), 4, 4, -EBADMSG, "parent is not before it" },
		{ ENTRY(1, mode), 2, S_IFREG, -EBADMSG, "entry 2: its parent is not" },
		{ ENTRY(2, parent), 4, 2, -EBADMSG, "parent is not before it" },
		{ ENTRY(3, parent), 4, 2, -EBADMSG, "parent is not a directory" },
		{ ENTRY(4, parent), 4, 1, -EBADMSG, "path order" },
		{ ENTRY(4, link), 4, 4, -EBADMSG, "no earlier entry" },
		{ ENTRY(4, link), 4, 5, -EBADMSG, "no earlier entry" },
		{ ENTRY(4, link), 4, 1, -EBADMSG, "hard link to a directory" },
		{ ENTRY(4, link), 4, 0, -EBADMSG, "file type" },
		{ ENTRY(4, mode), 2, S_IFREG, -EBADMSG, "attributes of its own" },
		{ ENTRY(4, size), 8, UINT64_C(1) << 63, -EBADMSG, "attributes of its own" },
		{ ENTRY(2, mode), 2, 0177777, -EBADMSG, "file type" },
		{ ENTRY(2, uid), 4, UINT32_MAX, -EBADMSG, "owner" },
		{ ENTRY(2, rdev), 4, 1, -EBADMSG, "no device" },
		{ ENTRY(2, mtime_ns), 4, 1000000000, -EBADMSG, "nanoseconds" },
		{ ENTRY(2, size), 8, UINT64_C(1) << 63, -EBADMSG, "2^63" },
		{ ENTRY(2, size), 8, 2 * 4096, -EBADMSG, "begins behind the file" },
		{ ENTRY(2, n_extents), 4, 3, -EBADMSG, "more extents" },
		{ ENTRY(2, n_extents), 4, 1, -EBADMSG, "belong to no entry" },
		{ ENTRY(2, n_xattrs), 2, 2, -EBADMSG, "more xattrs" },
		{ ENTRY(2, n_xattrs), 2, 0, -EBADMSG, "belong to no entry" },
		{ ENTRY(3, size), 8, 0, -EBADMSG, "target is empty" },
		{ ENTRY(3, size), 8, 2, -EBADMSG, "does not have its size" },
		{ ENTRY(3, size), 8, 4096, -EBADMSG, "longer than 4095" },
		{ EXTENT(0, hole_blocks), 8, UINT64_MAX, -EBADMSG, "begins behind the file" },
		{ EXTENT(0, blob_delta), 4, 2, -EBADMSG, "behind the blob" },
		{ EXTENT(0, n_blocks), 4, 0, -EBADMSG, "behind the blob" },
		{ EXTENT(0, n_blocks), 4, 4, -EBADMSG, "behind the file" },
		{ EXTENT(1, hole_blocks), 8, 0, -EBADMSG, "behind the blob" },
		{ EXTENT(1, n_blocks), 4, 1, -EBADMSG, "not written as 0" },
		{ NAMES, 1, 'r', -EBADMSG, "root has a name" },
		{ NAMES + 1, 1, '/', -EBADMSG, "one path component" },
		{ NAMES + 1, 1, '.', -EBADMSG, "one path component" },
		{ NAMES + 1, 1, 'e', -EBADMSG, "elder sibling" },
		{ NAMES + 5, 1, 'a', -EBADMSG, "elder sibling" },
		{ NAMES + 8, 1, 'x', -EBADMSG, "no end" },
		{ TARGETS, 1, 0, -EBADMSG, "does not have its size" },
		{ TARGETS + 1, 1, 'x', -EBADMSG, "does not have its size" },
		{ XATTRS, 1, 'X', -EBADMSG, "name is not" },
		{ XATTRS + 6, 1, 'x', -EBADMSG, "no end" },
	};
	bs_autofree uint8_t *bytes = NULL;
	struct plain good = sample();
	struct bs_error err = BS_ERROR_INIT;

	bytes = good.bytes;
	assert_int_equal(read_plain(&good, &err), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		struct plain bad = sample();
		uint64_t value = htole64(cases[i].value);
		int r;

		memcpy(bad.bytes + cases[i].at, &value, cases[i].size);
		err = BS_ERROR_INIT;
		r = read_plain(&bad, &err);
		free(bad.bytes);
		if (r != cases[i].code || !strstr(err.msg, cases[i].why))
			fail_msg("case %zu ('%s'): %d %s", i, cases[i].why, r, err.msg);
	}
}

static void a_wrong_value_length_is_refused(void **state)
{
	for (uint32_t len = 0; len < 70000; len += len < 4 ? 1 : 65532) {
		struct plain p = sample();
		uint32_t le = htole32(len);
		int r;

		memcpy(p.bytes + NAMES - 4, &le, 4);
		r = read_plain(&p, NULL);
		free(p.bytes);
		assert_int_equal(r, len == 1 ? 0 : -EBADMSG);
	}
}

static void features_that_may_be_ignored_are(void **state)
{
	struct plain p = sample();
	uint64_t may = htole32(1u << 31), extra = htole64(64);
	int r;

	memcpy(p.bytes + HEAD(may), &may, 4);
	r = read_plain(&p, NULL);
	assert_int_equal(r, 0);
	memset(p.bytes + p.len, 0xaa, 64);
	p.len += 64;
	assert_int_equal(read_plain(&p, NULL), -EBADMSG);
	memcpy(p.bytes + HEAD(extra_len), &extra, 8);
	assert_int_equal(read_plain(&p, NULL), 0);
	memset(p.bytes + HEAD(may), 0, 4);
	assert_int_equal(read_plain(&p, NULL), -EBADMSG);
	free(p.bytes);
}

static void every_cut_is_refused(void **state)
{
	struct plain p = sample();
	size_t whole = p.len;

	for (p.len = 0; p.len < whole; p.len++)
		assert_int_equal(read_plain(&p, NULL), -EBADMSG);
	free(p.bytes);
}

static int read_raw(const void *data, size_t len, struct bs_error *err)
{
	bs_auto(tree) struct bs_tree *t = NULL;

	return bs_tree_read(data, len, &t, err);
}

static void only_one_whole_frame_is_read(void **state)
{
	/* a frame head that states 2^62 bytes; one of unknown size */
	static const uint8_t huge[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0,
					0,    0,    0,	  0,	0x40, 1, 0, 0 };
	static const uint8_t unknown[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0x58, 1, 0, 0 };
	bs_autofree uint8_t *zeros = NULL, *packed = NULL;
	struct bs_error err = BS_ERROR_INIT;
	size_t n, size = 64 << 20;
	struct plain p = sample();

	assert_int_equal(read_raw(huge, sizeof(huge), &err), -EFBIG);
	assert_int_equal(read_raw(unknown, sizeof(unknown), &err), -EBADMSG);
	assert_int_equal(read_raw("", 0, &err), -EBADMSG);
	zeros = calloc(1, size);
	packed = malloc(ZSTD_compressBound(size));
	n = ZSTD_compress(packed, ZSTD_compressBound(size), zeros, size, 1);
	assert_true(n < 10000);
	assert_int_equal(read_raw(packed, n, &err), -EBADMSG); /* a bomb within the bounds */

	n = ZSTD_compress(packed, ZSTD_compressBound(size), p.bytes, p.len, 1);
	assert_int_equal(read_raw(packed, n, &err), 0);
	assert_int_equal(read_raw(packed, n - 1, &err), -EBADMSG);
	packed[n] = 0;
	assert_int_equal(read_raw(packed, n + 1, &err), -EBADMSG);
	memcpy(packed + n, packed, n);
	assert_int_equal(read_raw(packed, 2 * n, &err), -EBADMSG);
	free(p.bytes);
}

static void same_entries_give_same_bytes(void **state)
{
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;
	struct plain p = sample();

	/* of the uncompressed form: the compressed one depends on the library's version */
	bs_digest_of(p.bytes, p.len, &d);
	assert_string_equal(
		bs_digest_text(&d, text),
		"sha256:cb081fdd81353d5a12f8034e9a52942ebcdbd532ee2164219fba84895df63f89");
	free(p.bytes);
}

static void depth_costs_no_stack(void **state)
{
	bs_auto(tree) struct bs_tree *t = NULL;
	uint32_t parent = add_root();

	for (int i = 0; i < 200000; i++)
		parent = add_plain(parent, "d", S_IFDIR);
	add_plain(0, "e", S_IFREG);
	t = finish_and_read(0);
	assert_int_equal(t->n_entries, 200002);
}

#define TREE_TEST(f) cmocka_unit_test_setup_teardown(f, new_writer, free_writer)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(what_is_written_is_what_is_read),
		TREE_TEST(names_and_places_are_checked),
		TREE_TEST(hard_links_lead_to_earlier_inodes),
		TREE_TEST(attributes_have_bounds),
		TREE_TEST(extents_have_bounds),
		TREE_TEST(extents_may_come_later),
		TREE_TEST(xattrs_have_bounds),
		TREE_TEST(other_spellings_are_refused),
		TREE_TEST(a_wrong_value_length_is_refused),
		TREE_TEST(features_that_may_be_ignored_are),
		TREE_TEST(every_cut_is_refused),
		TREE_TEST(only_one_whole_frame_is_read),
		TREE_TEST(same_entries_give_same_bytes),
		TREE_TEST(depth_costs_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
