/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * hdfstool: drives src/hdfs for the integration tests.
 *
 * usage: hdfstool [OPTION...] VERB URL [ARG...]
 *   resolve URL             name, path and endpoints
 *   stat URL                type mode owner group length replication mtime_ms
 *   ls URL                  names, each with a NUL behind
 *   read URL [OFF LEN]      bytes to stdout; many: OFF LEN OFF LEN…
 *   fetch URL OFF LEN       reads, throws away, tells MB/s
 *   slow URL LEN MS         reads in pieces of LEN with pauses of MS between
 *   stress URL FILE THREADS N  that many threads read N random ranges each of one open file,
 *                           and compare them with FILE's
 *   again URL N MS          stat, N times with pauses of MS between
 *   mkdirs URL MODE | rename URL PATH [overwrite] | delete URL [recursive]
 *   chmod URL MODE | chown URL OWNER GROUP | times URL MTIME ATIME | setrep URL N
 *   truncate URL LEN | concat URL PATH... | summary URL | space URL | defaults URL
 *   setxattr URL NAME VALUE | getxattr URL NAME | lsxattr URL | rmxattr URL NAME
 *   token URL RENEWER | renew URL TOKEN | tokenfile URL RENEWER SERVICE (a file to stdout)
 * of the checkpoint tree (hdfs/ckpt.h), true sizes, no .bootseer:
 *   cksave URL FILE [PIECE] | ckload URL (stdout) [PIECE] | ckfetch URL | ckstat URL
 *   ckls URL (NAME SIZE) | ckrm URL | ckrmdir URL | ckmv URL PATH | ckchmod URL MODE
 *   ckedit URL EDIT...      w:OFF:TEXT, f:OFF:LEN:BYTE, t:LEN, a:TEXT, s, r:OFF:LEN, p:MS
 *   ckslow URL LEN MS       ckload in pieces of LEN with pauses
 *   ckgc URL [recursive]    SEGMENTS BYTES KEPT
 * Options: --layout striped|plain --unit BYTES --files N --repl N --create --excl --trunc
 * --buffer BYTES --connections N (per DataNode) --die STEP (ends there without a word) --lease DURATION --grace DURATION
 * --conf DIR --user NAME --token-file FILE --ca FILE --kerberos --http (never
 * the DataNodes' protocol) --deadline SECONDS --piece BYTES
 * --node BYTES (hdfs/read.h) --stats. Errors: "ERRNO: text", status 1.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "hdfs/ckpt.h"
#include "hdfs/file.h"
#include "hdfs/namenode.h"
#include "hdfs/place.h"
#include "hdfs/read.h"
#include "hdfs/site.h"
#include "hdfs/token.h"
#include "net/http.h"
#include "net/loop.h"

struct tool {
	struct bs_loop *loop;
	struct bs_nn *nn;
	struct bs_reader *reader;
	struct bs_hdfs_place place;
	const char *path;
	struct bs_ckpt *ckpt;
	unsigned int flags; /* of open */
	uint64_t deadline_ns, lease_ns;
	char **args; /* behind the URL, NULL at the end */
	int n_args;
};

static uint64_t number(const struct tool *t, int i, uint64_t otherwise)
{
	uint64_t n = otherwise;

	if (i < t->n_args && bs_parse_u64(t->args[i], &n) < 0) {
		(void)fprintf(stderr, "'%s' is no number\n", t->args[i]);
		exit(2);
	}
	return n;
}

static uint32_t octal(const char *text)
{
	uint32_t mode = 0;

	for (; *text; text++)
		mode = mode << 3 | (uint32_t)(*text - '0');
	return mode;
}

static const char *arg(const struct tool *t, int i)
{
	if (i >= t->n_args) {
		(void)fprintf(stderr, "an argument is missing\n");
		exit(2);
	}
	return t->args[i];
}

static int do_resolve(struct tool *t, struct bs_error *err)
{
	(void)printf("%s %s", t->place.name, t->place.path);
	for (size_t i = 0; i < t->place.endpoints.n; i++)
		(void)printf(" %s", t->place.endpoints.v[i]);
	(void)printf("\n");
	return 0;
}

static int do_stat(struct tool *t, struct bs_error *err)
{
	static const char *const types[] = { "file", "directory", "symlink" };
	struct bs_hdfs_status s;
	int r = bs_nn_status(t->nn, t->path, &s, err);

	if (r < 0)
		return r;
	(void)printf("%s %o %s %s %" PRIu64 " %u %" PRIu64 "\n", types[s.type], s.mode, s.owner,
		     s.group, s.len, s.replication, s.mtime_ms);
	bs_hdfs_status_done(&s);
	return 0;
}

static int do_ls(struct tool *t, struct bs_error *err)
{
	struct bs_hdfs_list l = { 0 };
	int r = bs_nn_list(t->nn, t->path, &l, err);

	for (size_t i = 0; r == 0 && i < l.n; i++)
		(void)printf("%s%c", l.v[i].name, '\0');
	bs_hdfs_list_done(&l);
	return r;
}

static int open_file(struct tool *t, struct bs_file **ret, struct bs_error *err)
{
	struct bs_file_options o = { .nn = t->nn,
				     .reader = t->reader,
				     .deadline_ns = t->deadline_ns };

	return bs_file_open(&o, t->path, ret, err);
}

static int do_read(struct tool *t, struct bs_error *err)
{
	bs_auto(file) struct bs_file *f = NULL;
	int r = open_file(t, &f, err), i = 0;

	if (r < 0)
		return r;
	do {
		uint64_t off = number(t, i, 0);
		uint64_t len = number(t, i + 1, bs_file_status(f)->len);
		bs_autofree char *buf = malloc(len ? len : 1);
		ssize_t n = buf ? bs_file_pread(f, buf, len, off, err) : -ENOMEM;

		if (n < 0)
			return (int)n;
		r = bs_write_full(STDOUT_FILENO, buf, (size_t)n);
		if (r < 0)
			return bs_fail_errno(err, r, "stdout");
		i += 2;
	} while (i < t->n_args);
	return 0;
}

static int do_fetch(struct tool *t, struct bs_error *err)
{
	bs_auto(file) struct bs_file *f = NULL;
	uint64_t begin = bs_clock_ns(), off = number(t, 0, 0), ns;
	bs_autofree char *buf = NULL;
	ssize_t n;
	int r = open_file(t, &f, err);

	if (r < 0)
		return r;
	buf = malloc(number(t, 1, bs_file_status(f)->len));
	n = buf ? bs_file_pread(f, buf, number(t, 1, bs_file_status(f)->len), off, err) : -ENOMEM;
	if (n < 0)
		return (int)n;
	ns = bs_clock_ns() - begin;
	(void)printf("%zd bytes %.3f s %.1f MB/s\n", n, (double)ns / 1e9,
		     (double)n * 1e3 / (double)ns);
	return 0;
}

/* Tells the longest time that one piece took, on stderr. */
static int do_slow(struct tool *t, struct bs_error *err)
{
	bs_auto(file) struct bs_file *f = NULL;
	size_t len = (size_t)number(t, 0, 1u << 20);
	struct timespec pause = { .tv_nsec = (long)(number(t, 1, 10) * BS_NS_PER_MS) };
	bs_autofree char *buf = malloc(len);
	uint64_t worst = 0;
	int r = open_file(t, &f, err);

	if (r < 0)
		return r;
	for (uint64_t off = 0; off < bs_file_status(f)->len; off += len) {
		uint64_t begin = bs_clock_ns(), ns;
		ssize_t n = bs_file_pread(f, buf, len, off, err);

		if (n < 0)
			return (int)n;
		ns = bs_clock_ns() - begin;
		worst = BS_MAX(worst, ns);
		r = bs_write_full(STDOUT_FILENO, buf, (size_t)n);
		if (r < 0)
			return bs_fail_errno(err, r, "stdout");
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	(void)fprintf(stderr, "worst %" PRIu64 " ms\n", worst / BS_NS_PER_MS);
	return 0;
}

struct stress {
	struct bs_file *file;
	const char *bytes;
	uint64_t len, n;
	uint64_t seed;
	pthread_t thread;
	int result;
	struct bs_error err;
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *seed >> 33;
}

static void *stress_main(void *cookie)
{
	struct stress *s = cookie;
	bs_autofree char *buf = malloc(s->len);

	if (!buf)
		s->result = -ENOMEM;
	for (uint64_t i = 0; s->result == 0 && i < s->n; i++) {
		uint64_t off = next_random(&s->seed) % s->len;
		/* mostly small ones */
		uint64_t max = i % 8 ? 70000 : s->len;
		size_t len = (size_t)(next_random(&s->seed) % max + 1);
		ssize_t n = bs_file_pread(s->file, buf, len, off, &s->err);

		len = (size_t)BS_MIN((uint64_t)len, s->len - off);
		if (n < 0)
			s->result = (int)n;
		else if ((size_t)n != len || memcmp(buf, s->bytes + off, len) != 0)
			s->result = bs_fail(&s->err, -EILSEQ, "wrong bytes at %" PRIu64, off);
	}
	return NULL;
}

static int do_stress(struct tool *t, struct bs_error *err)
{
	bs_auto(file) struct bs_file *f = NULL;
	bs_autofree char *bytes = NULL;
	size_t len, n = (size_t)number(t, 1, 64);
	bs_autofree struct stress *all = calloc(n, sizeof(*all));
	int r = bs_read_file_at(AT_FDCWD, arg(t, 0), 0, 1u << 30, &bytes, &len);

	if (r == 0)
		r = open_file(t, &f, err);
	if (r < 0 || !all)
		return r;
	for (size_t i = 0; i < n; i++) {
		all[i] = (struct stress){
			.file = f, .bytes = bytes, .len = len, .n = number(t, 2, 10), .seed = i + 1
		};
		if (pthread_create(&all[i].thread, NULL, stress_main, &all[i]) != 0)
			return bs_fail(err, -EAGAIN, "no thread");
	}
	for (size_t i = 0; i < n; i++) {
		(void)pthread_join(all[i].thread, NULL);
		if (all[i].result < 0 && r == 0) {
			r = all[i].result;
			*err = all[i].err;
		}
	}
	return r;
}

static int do_again(struct tool *t, struct bs_error *err)
{
	struct timespec pause = { .tv_nsec = (long)(number(t, 1, 100) * BS_NS_PER_MS) };
	int r = 0;

	for (uint64_t n = number(t, 0, 1); r == 0 && n > 0; n--) {
		struct bs_hdfs_status s = { 0 };

		r = bs_nn_status(t->nn, t->path, &s, err);
		bs_hdfs_status_done(&s);
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return r;
}

static int do_mkdirs(struct tool *t, struct bs_error *err)
{
	return bs_nn_mkdirs(t->nn, t->path, octal(arg(t, 0)), err);
}

static int do_rename(struct tool *t, struct bs_error *err)
{
	return bs_nn_rename(t->nn, t->path, arg(t, 0), t->n_args > 1, err);
}

static int do_delete(struct tool *t, struct bs_error *err)
{
	return bs_nn_delete(t->nn, t->path, t->n_args > 0, err);
}

static int do_chmod(struct tool *t, struct bs_error *err)
{
	return bs_nn_set_mode(t->nn, t->path, octal(arg(t, 0)), err);
}

static int do_chown(struct tool *t, struct bs_error *err)
{
	return bs_nn_set_owner(t->nn, t->path, arg(t, 0), arg(t, 1), err);
}

static int do_times(struct tool *t, struct bs_error *err)
{
	return bs_nn_set_times(t->nn, t->path, number(t, 0, UINT64_MAX), number(t, 1, UINT64_MAX),
			       err);
}

static int do_setrep(struct tool *t, struct bs_error *err)
{
	return bs_nn_set_replication(t->nn, t->path, (uint32_t)number(t, 0, 1), err);
}

static int do_truncate(struct tool *t, struct bs_error *err)
{
	int r = bs_nn_truncate(t->nn, t->path, number(t, 0, 0), err);

	if (r >= 0)
		(void)printf("%s\n", r ? "done" : "recovering");
	return BS_MIN(r, 0);
}

static int do_concat(struct tool *t, struct bs_error *err)
{
	return bs_nn_concat(t->nn, t->path, (const char *const *)t->args, (size_t)t->n_args, err);
}

static int do_summary(struct tool *t, struct bs_error *err)
{
	struct bs_hdfs_summary s;
	int r = bs_nn_summary(t->nn, t->path, &s, err);

	if (r == 0)
		(void)printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n", s.len,
			     s.files, s.directories, s.consumed, s.quota);
	return r;
}

static int do_space(struct tool *t, struct bs_error *err)
{
	struct bs_hdfs_space s;
	int r = bs_nn_space(t->nn, &s, err);

	if (r == 0)
		(void)printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s.capacity, s.used,
			     s.remaining);
	return r;
}

static int do_defaults(struct tool *t, struct bs_error *err)
{
	struct bs_hdfs_defaults d;
	int r = bs_nn_defaults(t->nn, &d, err);

	if (r == 0)
		(void)printf("%" PRIu64 " %u %u %d\n", d.block_size, d.replication, d.chunk,
			     d.encrypted_transfer);
	return r;
}

static int do_setxattr(struct tool *t, struct bs_error *err)
{
	return bs_nn_set_xattr(t->nn, t->path, arg(t, 0), arg(t, 1), strlen(arg(t, 1)), false,
			       false, err);
}

static int do_getxattr(struct tool *t, struct bs_error *err)
{
	bs_autofree void *value = NULL;
	size_t len;
	int r = bs_nn_get_xattr(t->nn, t->path, arg(t, 0), &value, &len, err);

	return r < 0 ? r : bs_write_full(STDOUT_FILENO, value, len);
}

static int do_lsxattr(struct tool *t, struct bs_error *err)
{
	bs_autofree char *names = NULL;
	size_t len;
	int r = bs_nn_list_xattrs(t->nn, t->path, &names, &len, err);

	return r < 0 ? r : bs_write_full(STDOUT_FILENO, names, len);
}

static int do_rmxattr(struct tool *t, struct bs_error *err)
{
	return bs_nn_remove_xattr(t->nn, t->path, arg(t, 0), err);
}

static int do_token(struct tool *t, struct bs_error *err)
{
	bs_autofree char *token = NULL;
	int r = bs_nn_get_token(t->nn, arg(t, 0), &token, err);

	if (r == 0)
		(void)printf("%s\n", token ? token : "none");
	return r;
}

static int do_renew(struct tool *t, struct bs_error *err)
{
	uint64_t ms;
	int r = bs_nn_renew_token(t->nn, arg(t, 0), &ms, err);

	if (r == 0)
		(void)printf("%" PRIu64 "\n", ms);
	return r;
}

static void put_part(struct bs_buf *b, struct bs_span s)
{
	bs_wire_put_vint(b, (int64_t)s.len);
	(void)bs_buf_add(b, s.p, s.len);
}

static int do_tokenfile(struct tool *t, struct bs_error *err)
{
	bs_autofree char *text = NULL;
	bs_autobuf b = BS_BUF_INIT(BS_TOKEN_FILE_MAX);
	struct bs_token token;
	const char *service = arg(t, 1);
	int r = bs_nn_get_token(t->nn, arg(t, 0), &text, err);

	if (r < 0 || !text)
		return r < 0 ? r : -ENODATA;
	r = bs_token_decode(text, &token);
	if (r < 0)
		return r;
	(void)bs_buf_add(&b, "HDTS\0", 5);
	bs_wire_put_vint(&b, 1);
	put_part(&b, (struct bs_span){ (const uint8_t *)service, strlen(service) });
	put_part(&b, token.identifier);
	put_part(&b, token.password);
	put_part(&b, token.kind);
	put_part(&b, (struct bs_span){ (const uint8_t *)service, strlen(service) });
	bs_wire_put_vint(&b, 0);
	bs_token_done(&token);
	return b.error ? b.error : bs_write_full(STDOUT_FILENO, bs_buf_str(&b), b.len);
}

/* --- the checkpoint tree --------------------------------------------------------------------- */

static void tell_rate(uint64_t bytes, uint64_t begin_ns)
{
	uint64_t ns = bs_clock_ns() - begin_ns;

	(void)fprintf(stderr, "%" PRIu64 " bytes %.3f s %.1f MB/s\n", bytes, (double)ns / 1e9,
		      (double)bytes * 1e3 / (double)ns);
}

static int copy_in(struct bs_ckpt_file *f, const char *name, size_t piece, struct bs_error *err)
{
	bs_autofd int fd = open(name, O_RDONLY | O_CLOEXEC);
	bs_autofree char *buf = malloc(piece);
	uint64_t begin = bs_clock_ns(), off = 0;
	ssize_t n;
	int r = 0;

	if (fd < 0)
		return bs_fail_errno(err, -errno, "'%s'", name);
	while (r == 0 && (n = bs_read_full(fd, buf, piece)) > 0) {
		r = bs_ckpt_write(f, buf, (size_t)n, off, err);
		off += (uint64_t)n;
	}
	if (r == 0)
		r = bs_ckpt_sync(f, err);
	if (r == 0)
		tell_rate(off, begin);
	return r;
}

static int do_cksave(struct tool *t, struct bs_error *err)
{
	struct bs_ckpt_file *f;
	unsigned int flags = t->flags | BS_CKPT_WRITE | BS_CKPT_CREATE | BS_CKPT_TRUNC;
	int r = bs_ckpt_open(t->ckpt, t->path, flags, 0644, &f, err), q;

	if (r < 0)
		return r;
	r = copy_in(f, arg(t, 0), (size_t)number(t, 1, 1u << 20), err);
	q = bs_ckpt_close(f, r < 0 ? NULL : err);
	return r < 0 ? r : q;
}

static int load(struct tool *t, size_t piece, uint64_t pause_ms, bool print, struct bs_error *err)
{
	struct timespec pause = { .tv_sec = (time_t)(pause_ms / 1000),
				  .tv_nsec = (long)(pause_ms % 1000 * BS_NS_PER_MS) };
	bs_autofree char *buf = malloc(piece);
	uint64_t begin = bs_clock_ns(), off = 0;
	struct bs_ckpt_file *f = NULL;
	ssize_t n = 1;
	int r = bs_ckpt_open(t->ckpt, t->path, 0, 0, &f, err);

	while (r == 0 && n > 0) {
		n = bs_ckpt_pread(f, buf, piece, off, err);
		r = n < 0 ? (int)n : 0;
		if (n > 0 && print)
			r = bs_write_full(STDOUT_FILENO, buf, (size_t)n);
		off += n > 0 ? (uint64_t)n : 0;
		if (pause_ms)
			(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	if (r == 0)
		tell_rate(off, begin);
	(void)bs_ckpt_close(f, NULL);
	return r;
}

static int do_ckload(struct tool *t, struct bs_error *err)
{
	return load(t, (size_t)number(t, 0, 64u << 20), 0, true, err);
}

static int do_ckfetch(struct tool *t, struct bs_error *err)
{
	return load(t, (size_t)number(t, 0, 128u << 20), 0, false, err);
}

static int do_ckslow(struct tool *t, struct bs_error *err)
{
	return load(t, (size_t)number(t, 0, 1u << 20), number(t, 1, 100), true, err);
}

static int do_ckstat(struct tool *t, struct bs_error *err)
{
	struct bs_hdfs_status s;
	int r = bs_ckpt_stat(t->ckpt, t->path, &s, err);

	if (r < 0)
		return r;
	(void)printf("%s %o %" PRIu64 " %" PRIu64 "\n",
		     s.type == BS_HDFS_DIRECTORY ? "directory" : "file", s.mode, s.len,
		     s.block_size);
	bs_hdfs_status_done(&s);
	return 0;
}

static int do_ckls(struct tool *t, struct bs_error *err)
{
	struct bs_hdfs_list l = { 0 };
	int r = bs_ckpt_list(t->ckpt, t->path, &l, err);

	for (size_t i = 0; r == 0 && i < l.n; i++)
		(void)printf("%s %" PRIu64 "\n", l.v[i].name, l.v[i].len);
	bs_hdfs_list_done(&l);
	return r;
}

static int do_ckrm(struct tool *t, struct bs_error *err)
{
	return bs_ckpt_unlink(t->ckpt, t->path, err);
}

static int do_ckrmdir(struct tool *t, struct bs_error *err)
{
	return bs_ckpt_rmdir(t->ckpt, t->path, err);
}

static int do_ckmv(struct tool *t, struct bs_error *err)
{
	return bs_ckpt_rename(t->ckpt, t->path, arg(t, 0), t->n_args > 1, err);
}

static int do_ckchmod(struct tool *t, struct bs_error *err)
{
	return bs_ckpt_set_mode(t->ckpt, t->path, octal(arg(t, 0)), err);
}

static int do_ckmark(struct tool *t, struct bs_error *err)
{
	const struct bs_ckpt_mark m = { 01777, arg(t, 0), arg(t, 1) };

	return bs_ckpt_make_marked(t->ckpt, t->path, &m, err);
}

static int do_ckgc(struct tool *t, struct bs_error *err)
{
	struct bs_ckpt_gc gc = { .lease_ns = t->lease_ns, .recursive = t->n_args > 0 };
	int r = bs_ckpt_gc(t->ckpt, t->path, &gc, err);

	if (r == 0)
		(void)printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", gc.segments, gc.bytes,
			     gc.kept);
	return r;
}

static int fill(struct bs_ckpt_file *f, uint64_t off, uint64_t len, int byte, struct bs_error *err)
{
	bs_autofree char *buf = malloc(len ? len : 1);

	memset(buf, byte, len);
	return bs_ckpt_write(f, buf, len, off, err);
}

static int show(struct bs_ckpt_file *f, uint64_t off, uint64_t len, struct bs_error *err)
{
	bs_autofree char *buf = malloc(len ? len : 1);
	ssize_t n = bs_ckpt_pread(f, buf, len, off, err);

	return n < 0 ? (int)n : bs_write_full(STDOUT_FILENO, buf, (size_t)n);
}

static int edit(struct bs_ckpt_file *f, const char *text, struct bs_error *err)
{
	uint64_t n[3] = { 0 };
	const char *at = text + 1;
	int i;

	for (i = 0; i < 3 && *at == ':' && at[1] >= '0' && at[1] <= '9'; i++) {
		char *end;

		n[i] = strtoull(at + 1, &end, 10);
		at = end;
	}
	at += *at == ':';
	switch (text[0]) {
	case 'w':
		return bs_ckpt_write(f, at, strlen(at), n[0], err);
	case 'a':
		return bs_ckpt_write(f, text + 2, strlen(text + 2), BS_CKPT_END, err);
	case 'f':
		return fill(f, n[0], n[1], (int)n[2], err);
	case 't':
		return bs_ckpt_truncate(f, n[0], err);
	case 's':
		return bs_ckpt_sync(f, err);
	case 'r':
		return show(f, n[0], n[1], err);
	case 'p':
		return usleep((useconds_t)n[0] * 1000);
	default:
		return bs_fail(err, -EINVAL, "no edit '%s'", text);
	}
}

static int do_ckedit(struct tool *t, struct bs_error *err)
{
	struct bs_ckpt_file *f;
	int r = bs_ckpt_open(t->ckpt, t->path, t->flags | BS_CKPT_WRITE, 0644, &f, err), q;

	if (r < 0)
		return r;
	for (int i = 0; r == 0 && i < t->n_args; i++)
		r = edit(f, t->args[i], err);
	q = bs_ckpt_close(f, r < 0 ? NULL : err);
	return r < 0 ? r : q;
}

static const struct {
	const char *name;
	int (*fn)(struct tool *t, struct bs_error *err);
} verbs[] = {
	{ "resolve", do_resolve },   { "stat", do_stat },	  { "ls", do_ls },
	{ "read", do_read },	     { "fetch", do_fetch },	  { "slow", do_slow },
	{ "again", do_again },	     { "stress", do_stress },	  { "mkdirs", do_mkdirs },
	{ "rename", do_rename },     { "delete", do_delete },	  { "chmod", do_chmod },
	{ "chown", do_chown },	     { "times", do_times },	  { "setrep", do_setrep },
	{ "truncate", do_truncate }, { "concat", do_concat },	  { "summary", do_summary },
	{ "space", do_space },	     { "defaults", do_defaults }, { "setxattr", do_setxattr },
	{ "getxattr", do_getxattr }, { "lsxattr", do_lsxattr },	  { "rmxattr", do_rmxattr },
	{ "token", do_token },	     { "renew", do_renew },	  { "tokenfile", do_tokenfile },
	{ "cksave", do_cksave },     { "ckload", do_ckload },	  { "ckfetch", do_ckfetch },
	{ "ckstat", do_ckstat },     { "ckls", do_ckls },	  { "ckrm", do_ckrm },
	{ "ckmv", do_ckmv },	     { "ckedit", do_ckedit },	  { "ckgc", do_ckgc },
	{ "ckmark", do_ckmark },     { "ckslow", do_ckslow },	  { "ckrmdir", do_ckrmdir },
	{ "ckchmod", do_ckchmod },
};

struct given {
	const char *conf;
	struct bs_nn_options nn;
	bool http, stats;
	uint64_t deadline_ns, piece, node;
	struct bs_ckpt_options ckpt;
	const char *die, *pause;
	uint32_t connections;
	unsigned int flags;
	uint64_t lease_ns;
};

struct steps {
	char *die, *pause;
};

/* A program that is killed at this step, or that somebody else is quicker than. */
static void on_step(const char *name, void *cookie)
{
	static const struct timespec pause = { .tv_sec = 5 };
	const struct steps *s = cookie;

	if (s->die && bs_streq(name, s->die))
		_exit(9);
	if (s->pause && bs_streq(name, s->pause)) {
		(void)fprintf(stderr, "at %s\n", name);
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

static int set_up_tree(struct tool *t, const struct given *g, struct bs_error *err)
{
	struct bs_ckpt_options co = g->ckpt;

	co.nn = t->nn;
	co.reader = t->reader;
	co.deadline_ns = g->deadline_ns;
	if (g->die || g->pause) {
		static struct steps steps;

		steps.die = g->die ? strdup(g->die) : NULL;
		steps.pause = g->pause ? strdup(g->pause) : NULL;
		co.step = on_step;
		co.cookie = &steps;
	}
	t->flags = g->flags;
	t->lease_ns = g->lease_ns;
	return bs_ckpt_new(&co, &t->ckpt, err);
}

static int set_up(struct tool *t, const struct given *g, const char *url, struct bs_error *err)
{
	bs_auto(site) struct bs_site *site = NULL;
	struct bs_loop_options lo = { .connections_per_host = g->connections };
	struct bs_nn_options no = g->nn;
	struct bs_reader_options ro = { 0 };
	int r = bs_site_load(g->conf, &site, err);

	if (r == 0)
		r = bs_hdfs_place(url, site, &t->place, err);
	if (r == 0)
		r = bs_loop_new(&lo, &t->loop, err);
	if (r < 0)
		return r;
	t->path = t->place.path;
	t->deadline_ns = no.deadline_ns = g->deadline_ns;
	no.loop = t->loop;
	r = bs_nn_new(&no, &t->place, &t->nn, err);
	if (r < 0)
		return r;
	ro.loop = t->loop;
	ro.peer = bs_nn_peer(t->nn);
	ro.https = bs_nn_https(t->nn);
	ro.http_always = g->http;
	ro.piece_bytes = (size_t)g->piece;
	ro.node_bytes = (size_t)g->node;
	r = bs_reader_new(&ro, &t->reader, err);
	return r < 0 ? r : set_up_tree(t, g, err);
}

static void tell(struct tool *t)
{
	struct bs_reader_stats s;
	struct bs_nn_stats n;
	struct bs_ckpt_stats k;

	bs_reader_stats(t->reader, &s);
	bs_nn_stats(t->nn, &n);
	bs_ckpt_stats(t->ckpt, &k);
	(void)fprintf(stderr,
		      "bytes=%" PRIu64 " pieces=%" PRIu64 " hedges=%" PRIu64 " retries=%" PRIu64
		      " bad=%" PRIu64 " http=%" PRIu64 " connections=%" PRIu64 " reused=%" PRIu64
		      " requests=%" PRIu64 " failovers=%" PRIu64 " nnretries=%" PRIu64
		      " sent=%" PRIu64 " again=%" PRIu64 " sums=%" PRIu64 " wrong=%" PRIu64 "\n",
		      s.bytes, s.pieces, s.hedges, s.retries, s.bad_replicas, s.http_bytes,
		      s.connections, s.reused, n.requests, n.failovers, n.retries, k.sent,
		      k.placed_again, k.sums_checked, k.sums_wrong);
}

static int parse_ckpt(int c, struct given *g)
{
	uint64_t n = 0;

	switch (c) {
	case 'L':
		g->ckpt.layout = bs_streq(optarg, "plain") ? BS_CKPT_PLAIN : BS_CKPT_STRIPED;
		return 0;
	case 'U':
		if (bs_parse_size(optarg, &n) < 0)
			return -EINVAL;
		g->ckpt.unit = (uint32_t)n;
		return 0;
	case 'F':
		return bs_parse_u32(optarg, &g->ckpt.files);
	case 'R':
		return bs_parse_u32(optarg, &g->ckpt.replication);
	case 'B':
		return bs_parse_size(optarg, &g->ckpt.file_bytes);
	case 'N':
		return bs_parse_u32(optarg, &g->connections);
	case 'D':
		g->die = optarg;
		return 0;
	case 'P':
		g->pause = optarg;
		return 0;
	case 'l':
		return bs_parse_duration(optarg, &g->lease_ns);
	case 'g':
		return bs_parse_duration(optarg, &g->ckpt.grace_ns);
	case 'C':
		g->flags |= BS_CKPT_CREATE;
		return 0;
	case 'E':
		g->flags |= BS_CKPT_CREATE | BS_CKPT_EXCL;
		return 0;
	case 'T':
		g->flags |= BS_CKPT_TRUNC;
		return 0;
	default:
		return -EINVAL;
	}
}

static int parse_options(int argc, char **argv, struct given *g)
{
	static const struct option options[] = {
		{ "conf", required_argument, NULL, 'c' },
		{ "user", required_argument, NULL, 'u' },
		{ "token-file", required_argument, NULL, 't' },
		{ "ca", required_argument, NULL, 'a' },
		{ "kerberos", no_argument, NULL, 'k' },
		{ "http", no_argument, NULL, 'h' },
		{ "deadline", required_argument, NULL, 'd' },
		{ "stats", no_argument, NULL, 's' },
		{ "piece", required_argument, NULL, 'p' },
		{ "node", required_argument, NULL, 'n' },
		{ "layout", required_argument, NULL, 'L' },
		{ "unit", required_argument, NULL, 'U' },
		{ "files", required_argument, NULL, 'F' },
		{ "repl", required_argument, NULL, 'R' },
		{ "die", required_argument, NULL, 'D' },
		{ "pause", required_argument, NULL, 'P' },
		{ "buffer", required_argument, NULL, 'B' },
		{ "connections", required_argument, NULL, 'N' },
		{ "lease", required_argument, NULL, 'l' },
		{ "grace", required_argument, NULL, 'g' },
		{ "create", no_argument, NULL, 'C' },
		{ "excl", no_argument, NULL, 'E' },
		{ "trunc", no_argument, NULL, 'T' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			g->conf = optarg;
			break;
		case 'u':
			g->nn.user = optarg;
			break;
		case 't':
			g->nn.token_file = optarg;
			break;
		case 'a':
			g->nn.ca_file = optarg;
			break;
		case 'k':
			g->nn.kerberos = true;
			break;
		case 'h':
			g->http = true;
			break;
		case 's':
			g->stats = true;
			break;
		case 'p':
			if (bs_parse_size(optarg, &g->piece) < 0)
				return -EINVAL;
			break;
		case 'n':
			if (bs_parse_size(optarg, &g->node) < 0)
				return -EINVAL;
			break;
		case 'd':
			if (bs_parse_duration(optarg, &g->deadline_ns) < 0)
				return -EINVAL;
			break;
		default:
			if (parse_ckpt(c, g) < 0)
				return -EINVAL;
		}
	}
	return argc - optind < 2 ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	struct given g = { .nn = { .tls_verify = true } };
	struct tool t = { 0 };
	struct bs_error err = BS_ERROR_INIT;
	int r;

	if (parse_options(argc, argv, &g) < 0) {
		(void)fprintf(stderr, "usage: hdfstool [OPTION...] VERB URL [ARG...]\n");
		return 2;
	}
	t.args = argv + optind + 2;
	t.n_args = argc - optind - 2;
	r = set_up(&t, &g, argv[optind + 1], &err);
	for (size_t i = 0; r == 0 && i <= BS_ARRAY_LEN(verbs); i++) {
		if (i == BS_ARRAY_LEN(verbs)) {
			r = bs_fail(&err, -EINVAL, "no verb '%s'", argv[optind]);
		} else if (bs_streq(verbs[i].name, argv[optind])) {
			r = verbs[i].fn(&t, &err);
			break;
		}
	}
	if (r < 0)
		(void)fprintf(stderr, "%s: %s\n", strerrorname_np(-r), bs_error_text(&err));
	if (g.stats && t.ckpt)
		tell(&t);
	(void)bs_ckpt_free(t.ckpt);
	(void)bs_reader_free(t.reader);
	(void)bs_nn_free(t.nn);
	(void)bs_loop_free(t.loop);
	bs_hdfs_place_done(&t.place);
	return r < 0;
}
