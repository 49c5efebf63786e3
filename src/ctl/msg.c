/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "ctl/msg.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define MAGIC 0x314d5342u /* "BSM1" */

struct header {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t id;
	uint16_t n_fields;
	uint16_t zero;
};
_Static_assert(sizeof(struct header) == 16, "on the wire");

#define LONG_INLINE_MAX 32768u
#define FIELD_HEAD 6u /* tag u16, len u32 */

void bs_msg_init(struct bs_msg *m, enum bs_msg_type type, uint32_t id)
{
	*m = (struct bs_msg){ .type = (uint16_t)type, .id = id };
}

void bs_msg_done(struct bs_msg *m)
{
	for (size_t i = 0; i < m->n_fds; i++)
		(void)bs_close(m->fds[i]);
	if (m->buf)
		explicit_bzero(m->buf, m->cap); /* it may have carried a secret */
	free(m->buf);
	bs_msg_init(m, m->type, m->id);
}

/* --- building: fields are laid down in wire form, a NUL behind each (not counted) -------- */

static int add_field(struct bs_msg *m, uint16_t tag, const void *data, size_t len)
{
	size_t at = m->len ? m->len : sizeof(struct header);
	uint16_t tag_le = htole16(tag);
	uint32_t len_le = htole32((uint32_t)len);
	size_t want = at + FIELD_HEAD + len + 1;

	if (m->n_fields == BS_MSG_FIELDS_MAX || len > BS_MSG_BYTES_MAX || want > BS_MSG_BYTES_MAX)
		return -E2BIG;
	/* room for the whole datagram at once, so that data pointers stay true */
	if (bs_grow(&m->buf, &m->cap, BS_MSG_BYTES_MAX, 1) < 0)
		return -ENOMEM;
	memcpy(m->buf + at, &tag_le, 2);
	memcpy(m->buf + at + 2, &len_le, 4);
	memcpy(m->buf + at + FIELD_HEAD, data, len);
	m->buf[at + FIELD_HEAD + len] = '\0';
	m->fields[m->n_fields++] = (struct bs_msg_field){ tag, (uint32_t)len,
							  m->buf + at + FIELD_HEAD };
	m->len = want;
	return 0;
}

int bs_msg_add_text(struct bs_msg *m, enum bs_msg_tag tag, const char *text)
{
	return add_field(m, (uint16_t)tag, text, strlen(text));
}

int bs_msg_add_u64(struct bs_msg *m, enum bs_msg_tag tag, uint64_t v)
{
	uint64_t le = htole64(v);

	return add_field(m, (uint16_t)tag, &le, sizeof(le));
}

int bs_msg_add_fd(struct bs_msg *m, int fd)
{
	int copy;

	if (m->n_fds == BS_MSG_FDS_MAX)
		return -E2BIG;
	copy = bs_dup(fd);
	if (copy < 0)
		return copy;
	m->fds[m->n_fds++] = copy;
	return 0;
}

int bs_msg_add_long(struct bs_msg *m, enum bs_msg_tag tag, const char *text)
{
	bs_autofd int fd = -EBADF;
	size_t len = strlen(text);
	int r;

	if (len <= LONG_INLINE_MAX)
		return bs_msg_add_text(m, tag, text);
	fd = bs_memfd("bootseer-message");
	if (fd < 0)
		return fd;
	if ((r = bs_write_full(fd, text, len)) < 0 || (r = bs_memfd_seal(fd)) < 0)
		return r;
	/* an empty field says: in the descriptor */
	if ((r = bs_msg_add_fd(m, fd)) < 0)
		return r;
	return bs_msg_add_text(m, tag, "");
}

/* --- reading ----------------------------------------------------------------------------- */

static const struct bs_msg_field *find(const struct bs_msg *m, enum bs_msg_tag tag, size_t nth)
{
	for (size_t i = 0; i < m->n_fields; i++) {
		if (m->fields[i].tag == tag && nth-- == 0)
			return &m->fields[i];
	}
	return NULL;
}

const char *bs_msg_text(const struct bs_msg *m, enum bs_msg_tag tag, size_t nth)
{
	const struct bs_msg_field *f = find(m, tag, nth);

	if (!f || memchr(f->data, '\0', f->len))
		return NULL;
	return f->data;
}

int bs_msg_u64(const struct bs_msg *m, enum bs_msg_tag tag, uint64_t *ret)
{
	const struct bs_msg_field *f = find(m, tag, 0);
	uint64_t le;

	if (!f)
		return -ENOENT;
	if (f->len != sizeof(le))
		return -EBADMSG;
	memcpy(&le, f->data, sizeof(le));
	*ret = le64toh(le);
	return 0;
}

int bs_msg_long(struct bs_msg *m, enum bs_msg_tag tag, size_t max, char **ret)
{
	const char *text = bs_msg_text(m, tag, 0);
	bs_autofd int fd = -EBADF;
	size_t len;
	int r;

	if (!text)
		return -ENOENT;
	if (*text) {
		*ret = strdup(text);
		return *ret ? 0 : -ENOMEM;
	}
	fd = bs_msg_take_fd(m, 0);
	if (fd < 0)
		return fd;
	/* unsealed, the sender could cut it while we read, or change what we have checked */
	r = fcntl(fd, F_GET_SEALS);
	if (r < 0 || !(r & F_SEAL_WRITE) || !(r & F_SEAL_SHRINK))
		return -EINVAL;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = bs_read_file(fd, max, ret, &len);
	if (r == 0 && strlen(*ret) != len) {
		free(*ret);
		*ret = NULL;
		r = -EBADMSG;
	}
	return r;
}

int bs_msg_take_fd(struct bs_msg *m, size_t i)
{
	int fd;

	if (i >= m->n_fds || m->fds[i] < 0)
		return -ENOENT;
	fd = m->fds[i];
	m->fds[i] = -EBADF;
	return fd;
}

/* m->buf holds len bytes and a spare one behind: find the fields in them. */
static int index_fields(struct bs_msg *m, size_t len)
{
	struct header h;
	size_t at = sizeof(h);

	if (len < sizeof(h) || len > BS_MSG_BYTES_MAX)
		return -EBADMSG;
	memcpy(&h, m->buf, sizeof(h));
	if (le32toh(h.magic) != MAGIC || le16toh(h.version) != BS_MSG_VERSION || h.zero ||
	    le16toh(h.n_fields) > BS_MSG_FIELDS_MAX)
		return -EBADMSG;
	m->type = le16toh(h.type);
	m->id = le32toh(h.id);
	for (uint16_t i = 0; i < le16toh(h.n_fields); i++) {
		uint16_t tag;
		uint32_t n;

		if (len - at < FIELD_HEAD + 1)
			return -EBADMSG;
		memcpy(&tag, m->buf + at, 2);
		memcpy(&n, m->buf + at + 2, 4);
		n = le32toh(n);
		if (n > len - at - FIELD_HEAD - 1 || m->buf[at + FIELD_HEAD + n] != '\0')
			return -EBADMSG;
		m->fields[i] = (struct bs_msg_field){ le16toh(tag), n, m->buf + at + FIELD_HEAD };
		m->n_fields++;
		at += FIELD_HEAD + n + 1;
	}
	m->len = at;
	return at == len ? 0 : -EBADMSG;
}

int bs_msg_decode(const void *bytes, size_t len, struct bs_msg *ret)
{
	struct bs_msg m;
	int r;

	bs_msg_init(&m, 0, 0);
	if (len > BS_MSG_BYTES_MAX)
		return -EBADMSG;
	if (bs_grow(&m.buf, &m.cap, len + 1, 1) < 0)
		return -ENOMEM;
	memcpy(m.buf, bytes, len);
	r = index_fields(&m, len);
	if (r < 0) {
		bs_msg_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}

int bs_msg_encode(struct bs_msg *m, const void **ret, size_t *ret_len)
{
	struct header h = { .magic = htole32(MAGIC),
			    .version = htole16(BS_MSG_VERSION),
			    .type = htole16(m->type),
			    .id = htole32(m->id),
			    .n_fields = htole16(m->n_fields) };

	if (m->len == 0) {
		if (bs_grow(&m->buf, &m->cap, sizeof(h), 1) < 0)
			return -ENOMEM;
		m->len = sizeof(h);
	}
	memcpy(m->buf, &h, sizeof(h));
	*ret = m->buf;
	*ret_len = m->len;
	return 0;
}

/* --- the socket ---------------------------------------------------------------------------- */

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * BS_MSG_FDS_MAX)];
};

static int send_with(int sock, struct bs_msg *m, int flags)
{
	union control control = { 0 };
	struct iovec iov;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	const void *bytes;
	ssize_t n;
	int r = bs_msg_encode(m, &bytes, &iov.iov_len);

	if (r < 0)
		return r;
	iov.iov_base = m->buf;
	if (m->n_fds > 0) {
		struct cmsghdr *c;

		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * m->n_fds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * m->n_fds);
		memcpy(CMSG_DATA(c), m->fds, sizeof(int) * m->n_fds);
	}
	do {
		n = sendmsg(sock, &mh, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EPIPE ? -ECONNRESET : -errno;
	return 0;
}

int bs_msg_send(int sock, struct bs_msg *m)
{
	return send_with(sock, m, 0);
}

int bs_msg_send_now(int sock, struct bs_msg *m)
{
	return send_with(sock, m, MSG_DONTWAIT);
}

/* Takes over what came beside the datagram; more than fits is closed. */
static void take_fds(struct msghdr *mh, struct bs_msg *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (m->n_fds < BS_MSG_FDS_MAX)
				m->fds[m->n_fds++] = fd;
			else
				(void)bs_close(fd);
		}
	}
}

int bs_msg_recv(int sock, struct bs_msg *ret)
{
	union control control;
	struct iovec iov = { .iov_len = BS_MSG_BYTES_MAX };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes) };
	struct bs_msg m;
	ssize_t n;
	int r;

	bs_msg_init(&m, 0, 0);
	if (bs_grow(&m.buf, &m.cap, BS_MSG_BYTES_MAX + 1, 1) < 0)
		return -ENOMEM;
	iov.iov_base = m.buf;
	do {
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0) {
		r = n == 0 ? -ECONNRESET : -errno;
		bs_msg_done(&m);
		return r;
	}
	take_fds(&mh, &m);
	r = mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EBADMSG : index_fields(&m, (size_t)n);
	if (r < 0) {
		bs_msg_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}
