/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

#define BUF_SIZE (256u << 10)
#define BLOCK 4096u
#define ALIGN_ABOVE (64u << 10)

const char *bs_spool_dir(const char *dir)
{
	const char *env = secure_getenv("TMPDIR");

	if (dir)
		return dir;
	return env && env[0] ? env : "/var/tmp";
}

int bs_spool_check_space(const char *dir, uint64_t need, struct bs_error *err)
{
	struct statvfs fs;
	uint64_t have;

	dir = bs_spool_dir(dir);
	if (statvfs(dir, &fs) < 0)
		return bs_fail_errno(err, -errno, "temporary directory '%s'", dir);
	have = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (have < need)
		return bs_fail(err, -ENOSPC,
			       "temporary directory '%s' has %llu MiB free and about %llu MiB are "
			       "needed; make room or give another one with --tmp",
			       dir, (unsigned long long)(have >> 20),
			       (unsigned long long)(need >> 20));
	return 0;
}

/* Where the file system has no O_TMPFILE: a name that is gone at once. */
static int open_unnamed(const char *dir)
{
	bs_autofree char *name = NULL;
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd >= 0 ? fd : -errno;
	if (asprintf(&name, "%s/bootseer-XXXXXX", dir) < 0)
		return -ENOMEM;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(name);
	return fd;
}

int bs_spool_new(const char *dir, struct bs_spool **ret, struct bs_error *err)
{
	bs_auto(spool) struct bs_spool *s = calloc(1, sizeof(*s));

	if (!s)
		return bs_fail_errno(err, -ENOMEM, "temporary file");
	s->fd = -EBADF;
	s->dir = strdup(bs_spool_dir(dir));
	s->buf = malloc(BUF_SIZE);
	if (!s->dir || !s->buf)
		return bs_fail_errno(err, -ENOMEM, "temporary file");
	s->fd = open_unnamed(s->dir);
	if (s->fd < 0)
		return bs_fail_errno(err, s->fd, "temporary file in '%s'", s->dir);
	*ret = bs_take(&s);
	return 0;
}

struct bs_spool *bs_spool_free(struct bs_spool *s)
{
	if (!s)
		return NULL;
	(void)bs_close(s->fd);
	free(s->dir);
	free(s->buf);
	free(s);
	return NULL;
}

int bs_spool_reserve(struct bs_spool *s, uint64_t size, uint64_t *ret_off, struct bs_error *err)
{
	uint64_t off = size > ALIGN_ABOVE ? bs_div_up(s->end, BLOCK) * BLOCK : s->end;

	if (size > BS_SPOOL_MAX || off + size > BS_SPOOL_MAX)
		return bs_fail(err, -EFBIG, "the files have more than %llu TiB",
			       (unsigned long long)(BS_SPOOL_MAX >> 40));
	s->end = off + size;
	*ret_off = off;
	return 0;
}

static int put(struct bs_spool *s, uint64_t off, const void *data, size_t len, struct bs_error *err)
{
	int r = bs_pwrite_full(s->fd, data, len, off);

	if (r == -ENOSPC || r == -EDQUOT)
		return bs_fail(err, r,
			       "temporary directory '%s' is full after %llu MiB; make room or give "
			       "another one with --tmp",
			       s->dir, (unsigned long long)(off >> 20));
	if (r < 0)
		return bs_fail_errno(err, r, "write to a temporary file in '%s'", s->dir);
	return 0;
}

int bs_spool_flush(struct bs_spool *s, struct bs_error *err)
{
	size_t len = s->buf_len;

	s->buf_len = 0;
	return len ? put(s, s->buf_off, s->buf, len, err) : 0;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

/* Writes past the buffer, leaving out whole blocks of zeros. */
static int put_sparse(struct bs_spool *s, uint64_t off, const uint8_t *p, size_t len,
		      struct bs_error *err)
{
	size_t done = 0, at = 0; /* [done, at) is to be written */
	int r;

	while (at < len) {
		size_t n = BS_MIN(len - at, BLOCK - (off + at) % BLOCK);

		if (n < BLOCK || !all_zero(p + at, n)) {
			at += n;
			continue;
		}
		if (at > done) {
			r = put(s, off + done, p + done, at - done, err);
			if (r < 0)
				return r;
		}
		at += n;
		done = at;
	}
	return at > done ? put(s, off + done, p + done, at - done, err) : 0;
}

int bs_spool_write(struct bs_spool *s, uint64_t off, const void *data, size_t len,
		   struct bs_error *err)
{
	int r;

	if (s->buf_len && (off != s->buf_off + s->buf_len || s->buf_len + len > BUF_SIZE)) {
		r = bs_spool_flush(s, err);
		if (r < 0)
			return r;
	}
	if (len > BUF_SIZE / 8)
		return put_sparse(s, off, data, len, err);
	if (s->buf_len == 0)
		s->buf_off = off;
	memcpy(s->buf + s->buf_len, data, len);
	s->buf_len += len;
	return 0;
}

int bs_spool_read(const struct bs_spool *s, uint64_t off, void *buf, size_t len,
		  struct bs_error *err)
{
	ssize_t n = bs_pread_full(s->fd, buf, len, off);

	if (n < 0)
		return bs_fail_errno(err, (int)n, "read a temporary file in '%s'", s->dir);
	/* the file ends with its last byte that is not in a hole */
	memset((char *)buf + n, 0, len - (size_t)n);
	return 0;
}

uint64_t bs_spool_next_data(const struct bs_spool *s, uint64_t off, uint64_t end)
{
	off_t at = lseek(s->fd, (off_t)off, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? end : off;
	return BS_MIN((uint64_t)at, end);
}
