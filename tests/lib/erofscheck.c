/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * erofscheck: is what the kernel shows of a metadata image what the tree says?
 *
 *	erofscheck make nasty|random:SEED|few:SEED|empty DIR    writes DIR/tree, DIR/meta, DIR/blob
 *	erofscheck mount DIR TARGET                    mounts meta and blob on TARGET
 *	erofscheck compare DIR TARGET                  compares each entry
 *	erofscheck compare-overlay DIR TARGET          but not what an overlay changes
 *	erofscheck time N                              how long N entries take
 *
 * Block b of the blob has content only where has_content says so, since blobs of many GiB
 * must fit onto a small disk.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "erofstree.h"
#include "image/erofs.h"
#include "kern/erofs.h"
#include "kern/mountfd.h"

#define DIE(...)                                                                                   \
	do {                                                                                       \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fputc('\n', stderr);                                                               \
		exit(1);                                                                           \
	} while (0)

static bool has_content(uint64_t block)
{
	return block < 30000 || block % 509 == 0;
}

static void fill_block(uint64_t block, uint8_t out[BS_BLOCK_SIZE])
{
	uint64_t state = block * 0x9e3779b97f4a7c15 + 1;

	memset(out, 0, BS_BLOCK_SIZE);
	if (!has_content(block))
		return;
	for (size_t i = 0; i < BS_BLOCK_SIZE; i += sizeof(state)) {
		(void)et_chance(&state);
		memcpy(out + i, &state, sizeof(state));
	}
}

/* What block k of a file must read as: zeros behind its end. */
static void expect_block(const struct bs_tree *t, const struct bs_tree_entry *e, uint64_t k,
			 uint8_t out[BS_BLOCK_SIZE])
{
	uint64_t left = e->size - k * BS_BLOCK_SIZE;

	memset(out, 0, BS_BLOCK_SIZE);
	for (uint32_t i = 0; i < e->n_extents; i++) {
		const struct bs_tree_extent *x = &t->extents[e->first_extent + i];

		if (k >= x->file_block && k - x->file_block < x->n_blocks)
			fill_block(x->blob_block + (k - x->file_block), out);
	}
	if (left < BS_BLOCK_SIZE)
		memset(out + left, 0, BS_BLOCK_SIZE - left);
}

/* --- make ------------------------------------------------------------------------------------ */

static void write_blob(const struct bs_tree *t, int fd)
{
	uint8_t block[BS_BLOCK_SIZE];

	if (ftruncate(fd, (off_t)(t->blob_blocks * BS_BLOCK_SIZE)) < 0)
		DIE("blob: %s", strerror(errno));
	for (uint32_t i = 0; i < t->n_entries; i++) {
		const struct bs_tree_entry *e = &t->entries[i];

		for (uint32_t k = 0; e->inode == i && k < e->n_extents; k++) {
			const struct bs_tree_extent *x = &t->extents[e->first_extent + k];

			for (uint64_t b = 0; b < x->n_blocks; b++) {
				if (!has_content(x->blob_block + b))
					continue;
				expect_block(t, e, x->file_block + b, block);
				if (bs_pwrite_full(fd, block, sizeof(block),
						   (x->blob_block + b) * BS_BLOCK_SIZE) < 0)
					DIE("blob: cannot write");
			}
		}
	}
}

static void build(struct et *et, const char *what)
{
	const char *seed = bs_str_after(what, "random:"), *few = bs_str_after(what, "few:");
	uint64_t n;

	et_init(et);
	if (seed && bs_parse_u64(seed, &n) >= 0)
		et_random(et, n, 3000);
	else if (few && bs_parse_u64(few, &n) >= 0)
		et_random(et, n, 20);
	else if (bs_streq(what, "nasty"))
		et_nasty(et);
	else if (!bs_streq(what, "empty"))
		DIE("what is '%s'?", what);
}

static int create_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		DIE("%s: %s", name, strerror(errno));
	return fd;
}

static struct bs_tree *read_tree(const void *bytes, size_t len)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_tree *t;

	if (bs_tree_read(bytes, len, &t, &err) < 0)
		DIE("%s", err.msg);
	return t;
}

static void make(const char *what, const char *dir)
{
	bs_autofd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	static struct et et;
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree void *bytes = NULL;
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofd int tree = create_at(dir_fd, "tree"), meta = create_at(dir_fd, "meta"),
		      blob = create_at(dir_fd, "blob");
	uint64_t size;
	size_t len;

	build(&et, what);
	bytes = et_finish(&et, &len);
	et_done(&et);
	if (bs_write_full(tree, bytes, len) < 0)
		DIE("tree: cannot write");
	t = read_tree(bytes, len);
	if (bs_erofs_write(t, meta, &size, &err) < 0)
		DIE("%s", err.msg);
	write_blob(t, blob);
	printf("%u entries, tree %zu bytes, metadata %" PRIu64 " bytes\n", t->n_entries, len, size);
}

/* --- compare --------------------------------------------------------------------------------- */

struct compare {
	const struct bs_tree *t;
	uint32_t *elder; /* the first child of each directory */
	uint32_t *next;	 /* sibling */
	uint64_t *ino;	 /* of each inode entry, once seen */
	uint32_t dir;	 /* the current directory is this entry */
	bool overlay;	 /* directories have one link there */
};

#define WRONG(i, ...)                                                                              \
	do {                                                                                       \
		fprintf(stderr, "entry %u '%s': ", (unsigned int)(i), c->t->entries[i].name);      \
		DIE(__VA_ARGS__);                                                                  \
	} while (0)

static void compare_stat(struct compare *c, uint32_t i, const char *name)
{
	uint32_t inode = c->t->entries[i].inode;
	const struct bs_tree_entry *e = &c->t->entries[inode];
	struct stat st;

	if (lstat(name, &st) < 0)
		WRONG(i, "lstat: %s", strerror(errno));
	if (st.st_mode != e->mode || st.st_uid != e->uid || st.st_gid != e->gid)
		WRONG(i, "mode %o ids %u %u", st.st_mode, st.st_uid, st.st_gid);
	if (st.st_nlink != e->nlink && !(c->overlay && S_ISDIR(e->mode)))
		WRONG(i, "%lu links, not %u", (unsigned long)st.st_nlink, e->nlink);
	if (st.st_mtim.tv_sec != e->mtime_s || st.st_mtim.tv_nsec != e->mtime_ns)
		WRONG(i, "time %lld.%09ld", (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	if (!S_ISDIR(e->mode) && (uint64_t)st.st_size != e->size)
		WRONG(i, "size %lld", (long long)st.st_size);
	if ((S_ISCHR(e->mode) || S_ISBLK(e->mode)) &&
	    (major(st.st_rdev) != e->rdev_major || minor(st.st_rdev) != e->rdev_minor))
		WRONG(i, "device %u:%u", major(st.st_rdev), minor(st.st_rdev));
	if (c->ino[inode] && c->ino[inode] != st.st_ino)
		WRONG(i, "is not the same inode as entry %u", inode);
	c->ino[inode] = st.st_ino;
}

static void compare_xattrs(struct compare *c, uint32_t i, const char *name)
{
	const struct bs_tree_entry *e = &c->t->entries[c->t->entries[i].inode];
	static char list[65536], value[65536];
	ssize_t len = llistxattr(name, list, sizeof(list));
	uint32_t n = 0;

	if (len < 0)
		WRONG(i, "llistxattr: %s", strerror(errno));
	for (ssize_t k = 0; k < len; k += (ssize_t)strlen(list + k) + 1)
		n++;
	if (n != e->n_xattrs)
		WRONG(i, "%u xattrs, not %u", n, e->n_xattrs);
	for (uint32_t k = 0; k < n; k++) {
		const struct bs_tree_xattr *x = &c->t->xattrs[e->first_xattr + k];

		len = lgetxattr(name, x->name, value, sizeof(value));
		if (len < 0)
			WRONG(i, "lgetxattr %s: %s", x->name, strerror(errno));
		if (len != (ssize_t)x->value_len || memcmp(value, x->value, x->value_len) != 0)
			WRONG(i, "xattr %s has another value", x->name);
	}
}

static void compare_block(struct compare *c, uint32_t i, int fd, uint64_t k)
{
	const struct bs_tree_entry *e = &c->t->entries[i];
	uint8_t want[BS_BLOCK_SIZE], have[BS_BLOCK_SIZE];
	uint64_t left = e->size - k * BS_BLOCK_SIZE;
	size_t len = BS_MIN(left, (uint64_t)BS_BLOCK_SIZE);

	/* more than there is, unless such an offset would be beyond off_t */
	size_t ask = k * BS_BLOCK_SIZE > INT64_MAX - BS_BLOCK_SIZE ? len : sizeof(have);

	expect_block(c->t, e, k, want);
	if (bs_pread_full(fd, have, ask, k * BS_BLOCK_SIZE) != (ssize_t)len)
		WRONG(i, "block %" PRIu64 " cannot be read whole", k);
	if (memcmp(want, have, len) != 0)
		WRONG(i, "block %" PRIu64 " has another content", k);
}

/* All blocks of a small file; of a large one those around every border, and some. */
static void compare_content(struct compare *c, uint32_t i, const char *name)
{
	const struct bs_tree_entry *e = &c->t->entries[i];
	bs_autofd int fd = open(name, O_RDONLY | O_CLOEXEC);
	uint64_t n_blocks = bs_div_up(e->size, BS_BLOCK_SIZE);

	if (fd < 0)
		WRONG(i, "open: %s", strerror(errno));
	for (uint64_t k = 0; k < n_blocks && n_blocks <= 4096; k++)
		compare_block(c, i, fd, k);
	if (n_blocks <= 4096)
		return;
	for (uint32_t k = 0; k < e->n_extents; k++) {
		const struct bs_tree_extent *x = &c->t->extents[e->first_extent + k];
		uint64_t end = x->file_block + x->n_blocks;

		for (uint64_t b = x->file_block ? x->file_block - 1 : 0; b < x->file_block + 600;
		     b++)
			compare_block(c, i, fd, BS_MIN(b, n_blocks - 1));
		for (uint64_t b = end - 600; b <= end; b++)
			compare_block(c, i, fd, BS_MIN(b, n_blocks - 1));
	}
	for (uint64_t k = 0; k < 64; k++)
		compare_block(c, i, fd, (n_blocks - 1) / 63 * k);
	compare_block(c, i, fd, n_blocks - 1);
}

static uint8_t type_of(uint32_t mode)
{
	return (uint8_t)((mode & S_IFMT) >> 12); /* as glibc's IFTODT */
}

/* Names come in order, "." and ".." besides; none is missing and none is too many. */
static void compare_listing(struct compare *c, uint32_t dir)
{
	DIR *d = opendir(".");
	uint32_t child = c->elder[dir], dots = 0;
	struct dirent *de;
	char absent[NAME_MAX + 1];

	if (!d)
		WRONG(dir, "opendir: %s", strerror(errno));
	while ((de = readdir(d))) {
		if (bs_streq(de->d_name, ".") || bs_streq(de->d_name, "..")) {
			dots++;
			continue;
		}
		if (!child || !bs_streq(de->d_name, c->t->entries[child].name))
			WRONG(dir, "lists '%s'", de->d_name);
		if (de->d_type != type_of(c->t->entries[c->t->entries[child].inode].mode))
			WRONG(child, "is listed as type %u", de->d_type);
		child = c->next[child];
	}
	if (child || dots != 2)
		WRONG(dir, "does not list all");
	closedir(d);
	child = c->elder[dir];
	for (int k = 0; k < 50 && child; k++, child = c->next[child]) {
		size_t len = c->t->entries[child].name_len;

		snprintf(absent, sizeof(absent), "%s", c->t->entries[child].name);
		if (len == NAME_MAX)
			absent[len - 1] ^= 0x40;
		else
			memcpy(absent + len, "\x01", 2);
		if (faccessat(AT_FDCWD, absent, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
			WRONG(child, "'%s' is there too", absent);
	}
}

static void compare_entry(struct compare *c, uint32_t i, const char *name)
{
	uint32_t inode = c->t->entries[i].inode;
	const struct bs_tree_entry *e = &c->t->entries[inode];
	char target[PATH_MAX + 1];
	ssize_t len;

	compare_stat(c, i, name);
	if (inode != i)
		return;
	compare_xattrs(c, i, name);
	if (S_ISREG(e->mode))
		compare_content(c, i, name);
	if (!S_ISLNK(e->mode))
		return;
	len = readlink(name, target, sizeof(target));
	if (len != (ssize_t)e->size || memcmp(target, e->target, e->size) != 0)
		WRONG(i, "another target, of %zd bytes", len);
}

/* Walks by chdir, since paths are longer than PATH_MAX. */
static void compare_all(struct compare *c)
{
	for (uint32_t i = c->t->n_entries - 1; i > 0; i--) {
		uint32_t parent = c->t->entries[i].parent;

		c->next[i] = c->elder[parent];
		c->elder[parent] = i;
	}
	if (!c->overlay) { /* there the root is the upper layer's */
		compare_entry(c, 0, ".");
		compare_listing(c, 0);
	}
	for (uint32_t i = 1; i < c->t->n_entries; i++) {
		const struct bs_tree_entry *e = &c->t->entries[i];

		for (; c->dir != e->parent; c->dir = c->t->entries[c->dir].parent) {
			if (chdir("..") < 0)
				WRONG(i, "chdir ..: %s", strerror(errno));
		}
		compare_entry(c, i, e->name);
		if (e->inode == i && S_ISDIR(e->mode)) {
			if (chdir(e->name) < 0)
				WRONG(i, "chdir: %s", strerror(errno));
			c->dir = i;
			compare_listing(c, i);
		}
	}
}

static void compare(const char *dir, const char *target, bool overlay)
{
	bs_autofree char *path = bs_strf("%s/tree", dir), *bytes = NULL;
	bs_auto(tree) struct bs_tree *t = NULL;
	struct compare c = { 0 };
	size_t len;

	if (bs_read_file_at(AT_FDCWD, path, 0, 1 << 30, &bytes, &len) < 0)
		DIE("%s: cannot read", path);
	t = read_tree(bytes, len);
	if (chdir(target) < 0)
		DIE("%s: %s", target, strerror(errno));
	c.t = t;
	c.overlay = overlay;
	c.elder = calloc(t->n_entries, sizeof(*c.elder));
	c.next = calloc(t->n_entries, sizeof(*c.next));
	c.ino = calloc(t->n_entries, sizeof(*c.ino));
	compare_all(&c);
	free(c.elder);
	free(c.next);
	free(c.ino);
	printf("%u entries are as the tree says\n", t->n_entries);
}

/* --- mount, time ----------------------------------------------------------------------------- */

static void mount_on(const char *dir, const char *target)
{
	bs_autofree char *meta = bs_strf("%s/meta", dir), *blob = bs_strf("%s/blob", dir);
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int mnt = bs_erofs_mount(meta, blob, false, &err);

	if (mnt < 0 || bs_mountfd_attach(mnt, AT_FDCWD, target, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(err.code == -EOPNOTSUPP || err.code == -EPERM ? 77 : 1);
	}
}

static void time_writing(const char *count)
{
	static struct et et;
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree void *bytes = NULL;
	bs_auto(tree) struct bs_tree *t = NULL;
	bs_autofd int fd = bs_memfd("meta");
	uint64_t at[5], size;
	struct rusage use;
	uint32_t n;
	size_t len;

	if (bs_parse_u32(count, &n) < 0)
		DIE("%s is no number", count);
	et_init(&et);
	at[0] = bs_clock_ns();
	et_many(&et, n);
	at[1] = bs_clock_ns();
	bytes = et_finish(&et, &len);
	et_done(&et);
	at[2] = bs_clock_ns();
	t = read_tree(bytes, len);
	at[3] = bs_clock_ns();
	if (bs_erofs_write(t, fd, &size, &err) < 0)
		DIE("%s", err.msg);
	at[4] = bs_clock_ns();
	(void)getrusage(RUSAGE_SELF, &use);
	printf("%u entries: add %" PRIu64 " ms, finish %" PRIu64 " ms (%zu bytes), read %" PRIu64
	       " ms, erofs %" PRIu64 " ms (%" PRIu64 " bytes), %ld MiB at most\n",
	       t->n_entries, (at[1] - at[0]) / BS_NS_PER_MS, (at[2] - at[1]) / BS_NS_PER_MS, len,
	       (at[3] - at[2]) / BS_NS_PER_MS, (at[4] - at[3]) / BS_NS_PER_MS, size,
	       use.ru_maxrss / 1024);
}

int main(int argc, char **argv)
{
	if (argc == 4 && bs_streq(argv[1], "make"))
		make(argv[2], argv[3]);
	else if (argc == 4 && bs_streq(argv[1], "mount"))
		mount_on(argv[2], argv[3]);
	else if (argc == 4 && bs_streq(argv[1], "compare"))
		compare(argv[2], argv[3], false);
	else if (argc == 4 && bs_streq(argv[1], "compare-overlay"))
		compare(argv[2], argv[3], true);
	else if (argc == 3 && bs_streq(argv[1], "time"))
		time_writing(argv[2]);
	else
		DIE("usage: erofscheck make WHAT DIR | mount DIR TARGET | compare[-overlay] DIR "
		    "TARGET | "
		    "time N");
	return 0;
}
