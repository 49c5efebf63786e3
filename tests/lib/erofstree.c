/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "erofstree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

void et_init(struct et *t)
{
	memset(t, 0, sizeof(*t));
	t->w = bs_tree_writer_new();
	if (!t->w)
		exit(1);
	(void)et_add(t, "", S_IFDIR | 0755);
}

void et_done(struct et *t)
{
	bs_tree_writer_free(t->w);
	free(t->up);
}

uint32_t et_add(struct et *t, const char *name, uint32_t mode)
{
	struct bs_error err = BS_ERROR_INIT;

	t->e.parent = t->parent;
	t->e.inode = t->n;
	t->e.name = name;
	t->e.name_len = (uint8_t)strlen(name);
	t->e.mode = mode;
	if (bs_tree_writer_add(t->w, &t->e, t->xattrs, t->extents, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	memset(&t->e, 0, sizeof(t->e));
	return t->n++;
}

void et_extent(struct et *t, uint64_t file_block, uint64_t n_blocks)
{
	t->extents[t->e.n_extents++] = (struct bs_tree_extent){ file_block, t->blob_blocks,
								n_blocks };
	t->blob_blocks += n_blocks;
}

uint32_t et_file(struct et *t, const char *name, uint64_t size)
{
	t->e.size = size;
	if (size)
		et_extent(t, 0, (size + 4095) / 4096);
	return et_add(t, name, S_IFREG | 0644);
}

uint32_t et_link(struct et *t, const char *name, uint32_t inode)
{
	struct bs_tree_entry e = {
		.parent = t->parent, .inode = inode, .name = name, .name_len = (uint8_t)strlen(name)
	};
	struct bs_error err = BS_ERROR_INIT;

	if (bs_tree_writer_add(t->w, &e, NULL, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	return t->n++;
}

uint32_t et_symlink(struct et *t, const char *name, const char *target)
{
	t->e.target = target;
	t->e.size = strlen(target);
	return et_add(t, name, S_IFLNK | 0777);
}

void et_open(struct et *t, const char *name)
{
	uint32_t dir = et_add(t, name, S_IFDIR | 0755);

	if (bs_grow(&t->up, &t->cap, t->depth + 1, sizeof(*t->up)) < 0)
		exit(1);
	t->up[t->depth++] = t->parent;
	t->parent = dir;
}

void et_close(struct et *t)
{
	t->parent = t->up[--t->depth];
}

void et_xattr(struct et *t, const char *name, const void *value, uint32_t len)
{
	t->xattrs[t->e.n_xattrs++] = (struct bs_tree_xattr){ name, value, len,
							     (uint8_t)strlen(name) };
}

void *et_finish(struct et *t, size_t *ret_len)
{
	struct bs_error err = BS_ERROR_INIT;
	void *bytes;

	if (bs_tree_writer_finish(t->w, t->blob_blocks, &bytes, ret_len, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	return bytes;
}

uint64_t et_chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state >> 11;
}

/* Names of len bytes that ascend with k: digits in front, then filling. */
static const char *numbered(char *buf, size_t len, unsigned int k)
{
	int n = snprintf(buf, 256, "%06u", k);

	if (len > (size_t)n)
		memset(buf + n, 'x', len - (size_t)n);
	buf[len] = '\0';
	return buf;
}

/* "." and ".." take 27 bytes of the first block; the rest of n_blocks is filled but for spare
 * bytes. */
static void exact_directory(struct et *t, const char *name, uint32_t n_blocks, uint32_t spare)
{
	uint32_t left = 4096 - 27;
	unsigned int k = 0;
	char buf[256];

	et_open(t, name);
	for (uint32_t b = 0; b < n_blocks; b++) {
		uint32_t want = left - (b + 1 == n_blocks ? spare : 0);

		while (want >= 2 * (12 + 100)) {
			(void)et_file(t, numbered(buf, 100, k), k % 2);
			k++;
			want -= 12 + 100;
		}
		(void)et_file(t, numbered(buf, want - 12, k++), 0);
		left = 4096;
	}
	et_close(t);
}

static void directories(struct et *t)
{
	static const uint32_t spare[] = { 0, 1, 2, 12, 13, 100 };
	char name[32], buf[256];

	et_open(t, "dirs");
	et_open(t, "empty");
	et_close(t);
	for (uint32_t blocks = 1; blocks < 4; blocks++) {
		for (size_t i = 0; i < BS_ARRAY_LEN(spare); i++) {
			snprintf(name, sizeof(name), "exact-%u-%03u", blocks, spare[i]);
			exact_directory(t, name, blocks, spare[i]);
		}
	}
	et_open(t, "large");
	for (unsigned int i = 0; i < 70000; i++)
		(void)et_add(t, numbered(buf, 6 + i % 40, i), S_IFREG | 0600);
	et_close(t);
	et_open(t, "one-byte"); /* as many names in a block as there can be; ".", "/" are none */
	for (unsigned int i = 1; i < 256; i++) {
		const char c[] = { (char)i, '\0' };

		if (i != '.' && i != '/')
			(void)et_file(t, c, 1);
	}
	et_close(t);
	et_close(t);
}

static void names(struct et *t)
{
	static const char *const odd[] = { "\x01", "\n",       " ",    "!",	  "+",
					   "-",	   "--",       "-.",   ".!",	  "..!",
					   "...",  ".a",       "a\tb", "a b",	  "a\\b",
					   "\x7f", "\xc3\xa9", "\xff", "\xff\xff" };
	char longest[256];

	et_open(t, "names");
	for (size_t i = 0; i < BS_ARRAY_LEN(odd); i++)
		(void)et_file(t, odd[i], i);
	et_close(t);
	et_open(t, "names-long");
	memset(longest, 'n', 255);
	longest[255] = '\0';
	for (char c = 'a'; c < 'z'; c++) {
		longest[254] = c;
		(void)et_file(t, longest, 5000);
	}
	et_close(t);
}

/* Deeper than PATH_MAX, by long names and by many. */
static void depths(struct et *t)
{
	char longest[256];

	et_open(t, "deep-long");
	memset(longest, 'd', 255);
	longest[255] = '\0';
	for (int i = 0; i < 40; i++)
		et_open(t, longest);
	(void)et_file(t, "bottom", 10);
	for (int i = 0; i < 41; i++)
		et_close(t);
	et_open(t, "deep-many");
	for (int i = 0; i < 3000; i++)
		et_open(t, "d");
	(void)et_file(t, "bottom", 10);
	for (int i = 0; i < 3001; i++)
		et_close(t);
}

static void attributes(struct et *t)
{
	static const int64_t times[] = { 0,
					 -1,
					 -86400LL * 365 * 100,
					 4294967295LL,
					 4294967296LL,
					 253402300799LL,
					 2147483647LL,
					 -2147483649LL,
					 1LL << 40 };
	static const uint32_t ids[] = { 0, 65535, 65536, 2147483648u, UINT32_MAX - 1 };
	char name[32];

	et_open(t, "attributes");
	for (size_t i = 0; i < BS_ARRAY_LEN(ids); i++) {
		snprintf(name, sizeof(name), "id%zu", i);
		t->e.uid = ids[i];
		t->e.gid = ids[BS_ARRAY_LEN(ids) - 1 - i];
		(void)et_file(t, name, 0);
	}
	for (uint32_t m = 0; m <= 07777; m = m * 2 + 1) {
		snprintf(name, sizeof(name), "mode%04o", m);
		(void)et_add(t, name, S_IFREG | m);
	}
	for (size_t i = 0; i < BS_ARRAY_LEN(times); i++) {
		snprintf(name, sizeof(name), "time%zu", i);
		t->e.mtime_s = times[i];
		t->e.mtime_ns = i % 2 ? 999999999 : 1;
		(void)et_file(t, name, 1);
	}
	et_close(t);
}

static void devices(struct et *t)
{
	static const uint32_t numbers[][2] = { { 0, 0 },      { 1, 3 },		{ 0, 255 },
					       { 255, 256 },  { 4095, 0 },	{ 0, 1048575 },
					       { 256, 4096 }, { 4095, 1048575 } };
	char name[32];

	et_open(t, "devices");
	for (size_t i = 0; i < BS_ARRAY_LEN(numbers); i++) {
		snprintf(name, sizeof(name), "dev%zu", i);
		t->e.rdev_major = numbers[i][0];
		t->e.rdev_minor = numbers[i][1];
		(void)et_add(t, name, (i % 2 ? S_IFBLK : S_IFCHR) | 0640);
	}
	(void)et_add(t, "fifo", S_IFIFO | 0622);
	(void)et_add(t, "socket", S_IFSOCK | 0755);
	et_close(t);
}

static void symlinks(struct et *t)
{
	char target[4096], name[8];

	et_open(t, "symlinks");
	memset(target, 't', sizeof(target));
	for (unsigned int len = 1; len <= 4095; len++) {
		snprintf(name, sizeof(name), "%04u", len);
		target[len] = '\0';
		(void)et_symlink(t, name, target);
		target[len] = (char)('a' + len % 26);
	}
	et_close(t);
}

static void xattrs(struct et *t)
{
	/* POSIX ACL, version 2: user::rw- user:1000:r-- group::r-- mask::r-- other::--- */
	static const uint8_t acl[] = { 2,   0,	 0,   0,   1,	0,   6,	 0,   255, 255, 255,
				       255, 2,	 0,   4,   0,	232, 3,	 0,   0,   4,	0,
				       4,   0,	 255, 255, 255, 255, 16, 0,   4,   0,	255,
				       255, 255, 255, 32,  0,	0,   0,	 255, 255, 255, 255 };
	/* struct vfs_ns_cap_data: version 2 with cap_net_raw; version 3 for root of user 100000 */
	static const uint8_t cap2[] = {
		1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
	};
	static const uint8_t cap3[] = { 1, 0, 0, 3, 0, 32, 0, 0, 0,   0,    0, 0,
					0, 0, 0, 0, 0, 0,  0, 0, 160, 0x86, 1, 0 };
	static uint8_t large[65000];
	char longest[256] = "user.", names_[64][24];

	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i * 7 >> 3);
	et_open(t, "xattrs");
	et_xattr(t, "system.posix_acl_access", acl, sizeof(acl));
	et_xattr(t, "user.a", "", 0);
	(void)et_file(t, "acl", 100);
	et_xattr(t, "security.capability", cap2, sizeof(cap2));
	(void)et_file(t, "cap2", 100);
	et_xattr(t, "security.capability", cap3, sizeof(cap3));
	(void)et_file(t, "cap3", 100);
	et_xattr(t, "system.posix_acl_access", acl, sizeof(acl));
	et_xattr(t, "system.posix_acl_default", acl, sizeof(acl));
	et_xattr(t, "trusted.x", "\0\1\2", 3);
	et_open(t, "dir");
	et_close(t);
	et_xattr(t, "security.bootseer", "s", 1);
	et_xattr(t, "trusted.y", "y", 1);
	(void)et_symlink(t, "symlink", "nowhere");
	et_xattr(t, "user.large", large, sizeof(large));
	(void)et_file(t, "xlarge", 5000);
	memset(longest + 5, 'l', 250);
	et_xattr(t, longest, "v", 1);
	(void)et_file(t, "xlong", 0);
	for (int i = 0; i < 64; i++) {
		snprintf(names_[i], sizeof(names_[i]), "user.n%02d", i);
		et_xattr(t, names_[i], large, (uint32_t)(i * 31));
	}
	(void)et_file(t, "xmany", 4097);
	et_xattr(t, "trusted.y", large, 9000);
	et_open(t, "xother"); /* no room for inline entries */
	(void)et_file(t, "f", 1);
	et_close(t);
	et_xattr(t, "trusted.y", large, 4000);
	(void)et_symlink(t, "xsymlink", "no-room-for-this-one-beside-its-xattr");
	et_close(t);
}

static void links(struct et *t)
{
	char name[16];
	uint32_t file, device;

	et_open(t, "links");
	et_open(t, "a");
	file = et_file(t, "file", 12345);
	t->e.rdev_major = 1;
	t->e.rdev_minor = 3;
	device = et_add(t, "null", S_IFCHR | 0666);
	et_close(t);
	et_open(t, "b");
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "%04d", i);
		(void)et_link(t, name, i % 10 ? file : device);
	}
	et_close(t);
	et_close(t);
}

static void files(struct et *t)
{
	static const uint64_t sizes[] = { 0,	 1,	4095,	 4096,	       4097,
					  65536, 65537, 1 << 20, (1 << 20) + 1 };
	char name[32];

	et_open(t, "files");
	for (size_t i = 0; i < BS_ARRAY_LEN(sizes); i++) {
		snprintf(name, sizeof(name), "%08llu", (unsigned long long)sizes[i]);
		(void)et_file(t, name, sizes[i]);
	}
	for (int k = 0; k < 12; k++) { /* holes of every granule */
		snprintf(name, sizeof(name), "sparse%02d", k);
		t->e.size = (UINT64_C(20) << k) * 4096 - 5;
		et_extent(t, UINT64_C(3) << k, UINT64_C(2) << k);
		et_extent(t, UINT64_C(7) << k, UINT64_C(1) << k);
		et_extent(t, UINT64_C(8) << k, UINT64_C(1) << k); /* joined */
		et_extent(t, UINT64_C(19) << k, UINT64_C(1) << k);
		(void)et_add(t, name, S_IFREG | 0644);
	}
	t->e.size = 100 * 4096; /* pieces that lie backwards in the blob */
	for (uint64_t i = 0; i < 100; i += 2) {
		t->extents[t->e.n_extents++] = (struct bs_tree_extent){ i, t->blob_blocks + 98 - i,
									2 };
	}
	t->blob_blocks += 100;
	(void)et_add(t, "tattered", S_IFREG | 0644);
	t->e.size = 10 * 4096;
	(void)et_add(t, "void", S_IFREG | 0644);
	t->e.size = INT64_MAX;
	(void)et_add(t, "void-largest", S_IFREG | 0644);
	(void)et_file(t, "xlarge", (UINT64_C(5) << 30) + 123);
	t->e.size = UINT64_C(6) << 40;
	et_extent(t, (UINT64_C(5) << 40) / 4096, 32768);
	et_extent(t, (UINT64_C(6) << 40) / 4096 - 1048576, 1048576);
	(void)et_add(t, "xsparse", S_IFREG | 0644);
	et_close(t);
}

void et_nasty(struct et *t)
{
	attributes(t);
	depths(t);
	devices(t);
	directories(t);
	files(t);
	links(t);
	names(t);
	symlinks(t);
	xattrs(t);
}

/* One entry of any sort, so that inodes meet block borders in all ways. */
static void random_entry(struct et *t, const char *name, uint64_t *state)
{
	static const uint8_t value[9000];
	static char target[4096];
	uint64_t kind = et_chance(state) % 16, size;

	if (et_chance(state) % 4 == 0)
		et_xattr(t, "trusted.a", value, (uint32_t)(et_chance(state) % 300));
	if (et_chance(state) % 64 == 0)
		et_xattr(t, "trusted.b", value, (uint32_t)(et_chance(state) % sizeof(value)));
	t->e.uid = (uint32_t)(et_chance(state) % 70000);
	t->e.mtime_s = (int64_t)et_chance(state) % 2000000000;
	t->e.mtime_ns = (uint32_t)(et_chance(state) % 1000000000);
	if (kind < 4) {
		size = 1 + et_chance(state) % (kind ? 100 : 4095);
		memset(target, 'r', size);
		target[size] = '\0';
		(void)et_symlink(t, name, target);
	} else if (kind < 5) {
		(void)et_add(t, name, S_IFIFO | 0600);
	} else if (kind < 8) {
		uint64_t at = et_chance(state) % 40;

		t->e.size = 400 * 4096;
		for (int i = 0; i < 10; i++) {
			et_extent(t, at, 1 + et_chance(state) % 9);
			at += 10 + et_chance(state) % 20;
		}
		(void)et_add(t, name, S_IFREG | 0600);
	} else {
		(void)et_file(t, name, et_chance(state) % (1 << kind));
	}
}

void et_random(struct et *t, uint64_t seed, uint32_t n)
{
	uint64_t state = seed * 2862933555777941757 + 3037000493;
	char name[256];

	while (t->n < n) {
		uint64_t what = et_chance(&state) % 10;

		(void)numbered(name, 7 + et_chance(&state) % (what ? 30 : 200), t->n);
		if (what == 0 && t->depth < 20) {
			if (et_chance(&state) % 4 == 0)
				et_xattr(t, "trusted.d", name, (uint32_t)strlen(name));
			et_open(t, name);
		} else if (what == 1 && t->depth && et_chance(&state) % 4 == 0) {
			et_close(t);
		} else {
			random_entry(t, name, &state);
		}
	}
}

void et_many(struct et *t, uint32_t n)
{
	uint64_t state = 1;
	char name[64];

	while (t->n < n) {
		snprintf(name, sizeof(name), "package-%08u", t->n);
		et_open(t, name);
		for (int d = 0; d < 4; d++) {
			snprintf(name, sizeof(name), "module%d", d);
			t->e.mtime_s = 1700000000 + t->n;
			et_open(t, name);
			for (int i = 0; i < 12; i++) {
				snprintf(name, sizeof(name), "some_file_name_%02d.py", i);
				t->e.mtime_s = 1700000000 + t->n;
				(void)et_file(t, name, 1 + et_chance(&state) % 30000);
			}
			et_close(t);
		}
		et_close(t);
	}
}
