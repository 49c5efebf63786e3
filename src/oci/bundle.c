/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"

int bs_bundle_open(const char *path, const char *config, struct bs_bundle *ret,
		   struct bs_error *err)
{
	bs_autobundle b = { .fd = -EBADF };

	b.path = realpath(path, NULL);
	if (!b.path)
		return bs_fail_errno(err, -errno, "open bundle '%s'", path);
	b.fd = open(b.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b.fd < 0)
		return bs_fail_errno(err, -errno, "open bundle '%s'", path);
	b.config = config ? realpath(config, NULL) : strdup("config.json");
	if (!b.config)
		return bs_fail_errno(err, -errno, "open config '%s'", config ? config : "");
	*ret = b;
	b = (struct bs_bundle){ .fd = -EBADF };
	return 0;
}

void bs_bundle_done(struct bs_bundle *b)
{
	free(b->path);
	free(b->config);
	b->fd = bs_close(b->fd);
	b->path = b->config = NULL;
}

int bs_bundle_read(const struct bs_bundle *b, char **ret, size_t *ret_len, struct bs_error *err)
{
	int r = bs_read_file_at(b->fd, b->config, O_NONBLOCK, BS_CONFIG_BYTES_MAX, ret, ret_len);

	return r < 0 ? bs_fail_errno(err, r, "read '%s' of bundle '%s'", b->config, b->path) : 0;
}

static int write_beside(int dir, const char *name, const struct stat *old, const char *text,
			size_t len)
{
	bs_autofd int fd = bs_atomicfile_open(dir, 0600);
	int r;

	if (fd < 0)
		return fd;
	if (fchown(fd, old->st_uid, old->st_gid) < 0 || fchmod(fd, old->st_mode & 07777) < 0)
		return -errno;
	r = bs_write_full(fd, text, len);
	return r < 0 ? r : bs_atomicfile_publish(fd, dir, name, false);
}

int bs_bundle_write(const struct bs_bundle *b, const char *text, size_t len, struct bs_error *err)
{
	const char *slash = strrchr(b->config, '/');
	bs_autofree char *parent = slash ? strndup(b->config, (size_t)(slash - b->config) + 1)
					 : NULL;
	bs_autofd int dir = -EBADF;
	struct stat st;
	int r;

	if (slash && parent)
		dir = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (slash && dir < 0)
		return bs_fail_errno(err, -errno, "open the directory of '%s'", b->config);
	if (fstatat(b->fd, b->config, &st, 0) < 0)
		return bs_fail_errno(err, -errno, "look at '%s' of bundle '%s'", b->config,
				     b->path);
	r = write_beside(slash ? dir : b->fd, slash ? slash + 1 : b->config, &st, text, len);
	return r < 0 ? bs_fail_errno(err, r, "write '%s' of bundle '%s'", b->config, b->path) : 0;
}
