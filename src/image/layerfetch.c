/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The blob comes by push (bs_repo_get_blob), libarchive reads by pull: a thread
 * fetches, a socket pair of bounded size is between, the caller's thread parses.
 */
#include "config.h"

#include "image/layer.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "net/repo.h"

#define PIPE_BYTES (1 << 20)
#define CHUNK (64u << 10)

int bs_layer_media_type(const char *media_type, struct bs_error *err)
{
	static const struct {
		const char *type;
		int packed;
	} known[] = {
		{ "application/vnd.oci.image.layer.v1.tar", 0 },
		{ "application/vnd.oci.image.layer.v1.tar+gzip", 1 },
		{ "application/vnd.oci.image.layer.v1.tar+zstd", 1 },
		{ "application/vnd.docker.image.rootfs.diff.tar", 0 },
		{ "application/vnd.docker.image.rootfs.diff.tar.gzip", 1 },
		{ "application/vnd.docker.image.rootfs.diff.tar.zstd", 1 },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(known); i++)
		if (bs_streq(media_type, known[i].type))
			return known[i].packed;
	if (strstr(media_type, "nondistributable") || strstr(media_type, ".foreign."))
		return bs_fail(err, -EOPNOTSUPP,
			       "its layer must not be distributed (media type '%.100s'), so it "
			       "cannot be converted",
			       media_type);
	if (strstr(media_type, "encrypted"))
		return bs_fail(err, -EOPNOTSUPP,
			       "it is encrypted (media type '%.100s'); convert the decrypted image",
			       media_type);
	return bs_fail(err, -EOPNOTSUPP,
		       "unknown media type '%.100s'; plain, gzip and zstd tar layers can be read",
		       media_type);
}

struct fetch {
	const struct bs_layer_source *src;
	int fd; /* the writing end */
	int result;
	struct bs_error err;
};

static int sink(void *cookie, const void *data, size_t len)
{
	struct fetch *f = cookie;
	const char *p = data;

	if (f->src->progress)
		f->src->progress(f->src->cookie, len);
	while (len > 0) {
		ssize_t n = send(f->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static void *fetch_main(void *cookie)
{
	struct fetch *f = cookie;

	f->result = bs_repo_get_blob(f->src->repo, &f->src->digest, f->src->size, sink, f, &f->err);
	f->fd = bs_close(f->fd);
	return NULL;
}

struct input {
	int fd;
	char buf[CHUNK];
};

static ssize_t read_input(void *cookie, const void **ret)
{
	struct input *in = cookie;
	ssize_t n;

	do
		n = read(in->fd, in->buf, sizeof(in->buf));
	while (n < 0 && errno == EINTR);
	*ret = in->buf;
	return n < 0 ? -errno : n;
}

static int socket_pair(int fds[2])
{
	int bytes = PIPE_BYTES;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	/* only speed hangs on it */
	(void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return 0;
}

int bs_layer_fetch(const struct bs_layer_source *src, struct bs_layer **ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_auto(layer) struct bs_layer *l = NULL;
	struct fetch f = { .src = src };
	struct input in;
	const void *unused;
	pthread_t thread;
	int fds[2], packed, r;

	err = err ? err : &own;
	packed = bs_layer_media_type(src->media_type, err);
	if (packed < 0)
		return bs_error_context(err, "%s", src->name);
	r = socket_pair(fds);
	if (r < 0)
		return bs_fail_errno(err, r, "%s: socket pair", src->name);
	f.fd = fds[0];
	in.fd = fds[1];
	r = pthread_create(&thread, NULL, fetch_main, &f);
	if (r != 0) {
		(void)bs_close(fds[0]);
		(void)bs_close(fds[1]);
		return bs_fail_errno(err, -r, "%s: thread", src->name);
	}
	r = bs_layer_parse(src->name, read_input, &in, packed, src->spool_dir, &l, err);
	/* to the end also after an error: a blob with a wrong digest is the better reason */
	while (r != -ENOSPC && read_input(&in, &unused) > 0)
		;
	(void)bs_close(in.fd);
	(void)pthread_join(thread, NULL);
	if (f.result < 0 && f.result != -EPIPE) {
		*err = f.err;
		return bs_error_context(err, "%s", src->name);
	}
	if (r < 0)
		return r;
	if (!bs_digest_eq(&l->diff_id, &src->diff_id)) {
		char is[BS_DIGEST_TEXT_LEN], wanted[BS_DIGEST_TEXT_LEN];

		return bs_fail(err, -EBADMSG,
			       "%s: its uncompressed digest is %s, the image's config says %s",
			       src->name, bs_digest_text(&l->diff_id, is),
			       bs_digest_text(&src->diff_id, wanted));
	}
	*ret = bs_take(&l);
	return 0;
}
