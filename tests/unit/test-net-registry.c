/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A registry that answers as a test wants it: what one answer means for other requests. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "net/loop.h"
#include "net/registry.h"

#define HELD_MAX 16
#define STALL_NS (600 * BS_NS_PER_MS)
#define DEAD "WWW-Authenticate: Bearer realm=\"http://127.0.0.1:1/x\",service=\"x\"\r\n"
#define BASIC "WWW-Authenticate: Basic realm=\"push\"\r\n"

/* One connection after the other, one request each. */
struct fake {
	int fd;
	pthread_t thread;
	char host[64];
	/* the answer, NULL: never one; called on the server's thread */
	const char *(*answer)(struct fake *f, const char *head);
	int held[HELD_MAX];
	unsigned int n_held;
	/* atomic */
	unsigned int n, n_refused, n_tokens;
	bool open, stored;
	/* of the answer that is made */
	char text[512];
	struct bs_loop *loop;
	struct bs_repo *keeper; /* of what is known of the host */
};

static unsigned int get(const unsigned int *n)
{
	return __atomic_load_n(n, __ATOMIC_SEQ_CST);
}

static void add(unsigned int *n)
{
	(void)__atomic_add_fetch(n, 1, __ATOMIC_SEQ_CST);
}

/* Head and body: what tests send has a Content-Length below 10. */
static bool take_request(int fd, char *head, size_t size)
{
	static const char go_on[] = "HTTP/1.1 100 x\r\n\r\n";
	size_t n = 0, want = 0;
	const char *end = NULL, *length;

	while (!end || n < want) {
		ssize_t got = recv(fd, head + n, size - 1 - n, 0);

		if (got <= 0)
			return false;
		n += (size_t)got;
		head[n] = '\0';
		end = strstr(head, "\r\n\r\n");
		length = strstr(head, "Content-Length: ");
		if (end && n == (size_t)(end + 4 - head) && strstr(head, "Expect: 100"))
			(void)bs_write_full(fd, go_on, strlen(go_on));
		if (end)
			want = (size_t)(end + 4 - head) + (length ? (size_t)(length[16] - '0') : 0);
	}
	return true;
}

static void *serve(void *cookie)
{
	struct fake *f = cookie;
	char head[8192];
	int fd;

	while ((fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		const char *text = NULL;

		if (take_request(fd, head, sizeof(head))) {
			add(&f->n);
			text = f->answer(f, head);
			if (!text && f->n_held < HELD_MAX) {
				f->held[f->n_held++] = fd;
				continue;
			}
		}
		if (text)
			(void)bs_write_full(fd, text, strlen(text));
		(void)shutdown(fd, SHUT_WR);
		(void)close(fd);
	}
	return NULL;
}

static struct bs_repo *open_repo(struct fake *f, const char *name)
{
	struct bs_registry_options o = { .loop = f->loop, .plain_http = true };
	struct bs_repo *r = NULL;

	assert_int_equal(bs_registry_open(&o, f->host, name, &r, NULL), 0);
	return r;
}

static void begin(struct fake *f, const char *(*answer)(struct fake *, const char *))
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct bs_loop_options o = { .stall_timeout_ns = STALL_NS };
	socklen_t len = sizeof(a);

	*f = (struct fake){ .answer = answer };
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(f->fd, 64), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(f->host, sizeof(f->host), "127.0.0.1:%d", ntohs(a.sin_port));
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	assert_int_equal(bs_loop_new(&o, &f->loop, NULL), 0);
	f->keeper = open_repo(f, "kept");
}

static void end(struct fake *f)
{
	f->keeper = bs_repo_unref(f->keeper);
	f->loop = bs_loop_free(f->loop);
	(void)shutdown(f->fd, SHUT_RD);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->fd);
	for (unsigned int i = 0; i < f->n_held; i++)
		(void)close(f->held[i]);
}

static bool is(const char *head, const char *method)
{
	return strncmp(head, method, strlen(method)) == 0;
}

static const char *status(struct fake *f, int code, const char *headers)
{
	(void)snprintf(f->text, sizeof(f->text),
		       "HTTP/1.1 %d x\r\nConnection: close\r\nContent-Length: 0\r\n%s\r\n", code,
		       headers);
	f->n_refused += code == 401;
	return f->text;
}

/* One byte, at the place that was asked for. */
static const char *one_byte(struct fake *f, const char *head)
{
	const char *range = strstr(head, "Range: bytes=");
	unsigned long long at = range ? strtoull(range + 13, NULL, 10) : 0;

	(void)snprintf(f->text, sizeof(f->text),
		       "HTTP/1.1 206 x\r\nConnection: close\r\nContent-Length: 1\r\n"
		       "Content-Range: bytes %llu-%llu/9999999\r\n\r\nx",
		       at, at);
	return f->text;
}

static int read_at(struct bs_repo *r, unsigned char blob, uint64_t off)
{
	char byte;
	struct bs_range rg = { .off = off, .len = 1, .buf = &byte };
	int rc;

	rg.blob.b[0] = blob;
	rc = bs_repo_read_wait(r, &rg);
	if (rc < 0 && rg.text[0] == '\0')
		fail_msg("an error without a text");
	return rc;
}

static int read_of(struct fake *f, const char *name)
{
	bs_auto(repo) struct bs_repo *r = open_repo(f, name);

	return read_at(r, 0, 0);
}

static int push(struct fake *f, const char *name)
{
	bs_auto(repo) struct bs_repo *r = open_repo(f, name);
	struct bs_digest d;

	bs_digest_of("xyz", 3, &d);
	return bs_repo_put_blob_mem(r, &d, "xyz", 3, NULL);
}

static const char *upload(struct fake *f, const char *head)
{
	return is(head, "HEAD")	  ? status(f, 404, "")
	       : is(head, "POST") ? status(f, 202, "Location: /v2/up\r\n")
				  : status(f, 201, "");
}

/* --- what a challenge is for ------------------------------------------------------------------ */

static const char *anybody_reads(struct fake *f, const char *head)
{
	if (is(head, "GET"))
		return one_byte(f, head);
	if (!is(head, "HEAD") && !f->open)
		return status(f, 401, BASIC);
	return upload(f, head);
}

static void a_refused_push_is_none_of_a_reader_s(void **state)
{
	struct fake f;

	begin(&f, anybody_reads);
	assert_int_equal(read_of(&f, "a/b"), 0);
	assert_int_equal(push(&f, "a/b"), -EACCES);
	assert_int_equal(read_of(&f, "a/b"), 0);
	assert_int_equal(read_of(&f, "c/d"), 0);
	assert_int_equal(f.n_refused, 1);
	/* and may push when the registry lets everybody */
	f.open = true;
	(void)usleep(1100000);
	assert_int_equal(push(&f, "a/b"), 0);
	end(&f);
}

static const char *refuses_the_second(struct fake *f, const char *head)
{
	return get(&f->n) == 2 ? status(f, 401, DEAD) : one_byte(f, head);
}

static void a_refusal_that_leads_nowhere_is_forgotten(void **state)
{
	struct fake f;
	uint64_t refused_ns;

	begin(&f, refuses_the_second);
	assert_int_equal(read_of(&f, "a/b"), 0);
	refused_ns = bs_clock_ns();
	assert_int_equal(read_of(&f, "a/b"), -EHOSTUNREACH);
	/* for a moment nobody asks again */
	for (int i = 0; i < 10; i++) {
		int r = read_of(&f, "a/b");

		if (bs_clock_ns() - refused_ns > 900 * BS_NS_PER_MS)
			break;
		assert_int_equal(r, -EHOSTUNREACH);
		assert_int_equal(get(&f.n), 2);
	}
	assert_int_equal(read_of(&f, "c/d"), 0);
	(void)usleep(1100000);
	assert_int_equal(read_of(&f, "a/b"), 0);
	end(&f);
}

static const char *always_refuses(struct fake *f, const char *head)
{
	return status(f, 401, DEAD);
}

static void what_is_refused_for_ever_is_asked_for_now_and_then(void **state)
{
	struct fake f;
	uint64_t began;

	begin(&f, always_refuses);
	began = bs_clock_ns();
	while (bs_clock_ns() - began < 2500 * BS_NS_PER_MS) {
		assert_int_equal(read_of(&f, "a/b"), -EHOSTUNREACH);
		(void)usleep(10000);
	}
	assert_in_range(get(&f.n), 2, 1 + (bs_clock_ns() - began) / BS_NS_PER_S);
	end(&f);
}

static const char *knows_tokens(struct fake *f, const char *head)
{
	static const char token[] = "{\"token\":\"t\",\"expires_in\":300}";
	char challenge[200];

	if (is(head, "GET /token")) {
		add(&f->n_tokens);
		if (strstr(head, "open"))
			return status(f, 403, "");
		(void)snprintf(
			f->text, sizeof(f->text),
			"HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
			strlen(token), token);
		return f->text;
	}
	if (strstr(head, "/open") || strstr(head, "Authorization: Bearer t"))
		return one_byte(f, head);
	(void)snprintf(challenge, sizeof(challenge),
		       "WWW-Authenticate: Bearer realm=\"http://%s/token\"\r\n", f->host);
	return status(f, 401, challenge);
}

static void where_tokens_are_had_is_a_guess_for_other_repositories(void **state)
{
	struct fake f;

	begin(&f, knows_tokens);
	assert_int_equal(read_of(&f, "a/b"), 0);
	assert_int_equal(f.n_refused, 1);
	assert_int_equal(read_of(&f, "c/d"), 0);
	assert_int_equal(f.n_refused, 1);
	assert_int_equal(f.n_tokens, 2);
	/* it wants none, and the token server gives none */
	assert_int_equal(read_of(&f, "open/d"), 0);
	assert_int_equal(read_of(&f, "open/d"), 0);
	assert_int_equal(f.n_refused, 1);
	assert_int_equal(f.n_tokens, 3);
	end(&f);
}

/* --- ranges ----------------------------------------------------------------------------------- */

static const char *ignores_ranges_of_one(struct fake *f, const char *head)
{
	return strstr(head, "sha256:01")
		       ? "HTTP/1.1 200 x\r\nConnection: close\r\nContent-Length: 9999999\r\n\r\nx"
		       : one_byte(f, head);
}

static void an_ignored_range_is_remembered_of_its_blob_alone(void **state)
{
	bs_auto(repo) struct bs_repo *r = NULL;
	struct fake f;

	begin(&f, ignores_ranges_of_one);
	r = open_repo(&f, "a/b");
	assert_int_equal(read_at(r, 1, 9000000), -EOPNOTSUPP);
	assert_int_equal(read_at(r, 2, 9000000), 0);
	assert_int_equal(read_at(r, 1, 9000001), -EOPNOTSUPP);
	assert_int_equal(get(&f.n), 2);
	for (unsigned char i = 2; i < 20; i++)
		assert_int_equal(read_at(r, i, 9000000), 0);
	r = bs_repo_unref(r);
	end(&f);
}

static const char *cuts_off(struct fake *f, const char *head)
{
	if (strstr(head, "sha256:01"))
		return "HTTP/1.1 206 x\r\nConnection: close\r\nContent-Length: 4\r\n"
		       "Content-Range: bytes 0-3/9\r\n\r\nab";
	if (strstr(head, "sha256:02"))
		return "HTTP/1.1 206 x\r\nConnection: close\r\n"
		       "Content-Range: bytes 0-3/9\r\n\r\nab";
	if (strstr(head, "sha256:03"))
		return "HTTP/1.1 206 x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
		       "Content-Range: bytes 0-3/9\r\n\r\n4\r\nab";
	return "HTTP/1.1 206 x\r\nConnection: close\r\nContent-Length: 4\r\n"
	       "Content-Range: bytes 1-4/9\r\n\r\nabcd";
}

/* Who cuts an answer off did not lie. */
static void an_answer_cut_off_is_no_wrong_one(void **state)
{
	bs_auto(repo) struct bs_repo *r = NULL;
	struct fake f;
	char buf[4];

	begin(&f, cuts_off);
	r = open_repo(&f, "a/b");
	for (unsigned char i = 1; i <= 4; i++) {
		struct bs_range rg = { .len = 4, .buf = buf };

		rg.blob.b[0] = i;
		assert_int_equal(bs_repo_read_wait(r, &rg), i < 4 ? -EREMOTEIO : -EBADMSG);
	}
	r = bs_repo_unref(r);
	end(&f);
}

/* --- uploads that get no answer --------------------------------------------------------------- */

static const char *takes_no_upload(struct fake *f, const char *head)
{
	return is(head, "HEAD") ? status(f, 404, "") : NULL;
}

static void an_upload_that_cannot_begin_fails_as_anything_silent(void **state)
{
	struct fake f;
	uint64_t began = bs_clock_ns();

	begin(&f, takes_no_upload);
	assert_int_equal(push(&f, "a/b"), -ETIMEDOUT);
	assert_true(bs_clock_ns() - began < 30 * BS_NS_PER_S);
	end(&f);
}

static const char *stores_and_is_silent(struct fake *f, const char *head)
{
	if (is(head, "PUT")) {
		f->stored = f->open;
		return NULL;
	}
	return is(head, "HEAD") && f->stored   ? status(f, 200, "")
	       : is(head, "HEAD") && f->n_held ? NULL
					       : upload(f, head);
}

static void after_an_unanswered_upload_the_blob_is_looked_for(void **state)
{
	static const bool stored[] = { true, false };

	for (int i = 0; i < 2; i++) {
		struct bs_digest d;
		struct bs_repo *r;
		struct fake f;
		uint64_t began;

		begin(&f, stores_and_is_silent);
		f.open = stored[i];
		r = open_repo(&f, "a/b");
		/* by itself as long as a server may need for what it got */
		assert_int_equal(bs_registry_answer_ns(bs_registry_of(r), 1), 60 * BS_NS_PER_S);
		assert_true(bs_registry_answer_ns(bs_registry_of(r), UINT64_C(8) << 30) >
			    300 * BS_NS_PER_S);
		bs_registry_of(r)->answer_ns = 3 * STALL_NS;
		bs_digest_of("xyz", 3, &d);
		began = bs_clock_ns();
		assert_int_equal(bs_repo_put_blob_mem(r, &d, "xyz", 3, NULL),
				 stored[i] ? 0 : -ETIMEDOUT);
		assert_true(bs_clock_ns() - began >= 3 * STALL_NS);
		/* a server that is silent at all is not sent it again: HEAD, POST, PUT, HEAD, DELETE */
		assert_int_equal(get(&f.n), stored[i] ? 4 : 5);
		(void)bs_repo_unref(r);
		end(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_refused_push_is_none_of_a_reader_s),
		UNIT_TEST(a_refusal_that_leads_nowhere_is_forgotten),
		UNIT_TEST(what_is_refused_for_ever_is_asked_for_now_and_then),
		UNIT_TEST(where_tokens_are_had_is_a_guess_for_other_repositories),
		UNIT_TEST(an_ignored_range_is_remembered_of_its_blob_alone),
		UNIT_TEST(an_answer_cut_off_is_no_wrong_one),
		UNIT_TEST(an_upload_that_cannot_begin_fails_as_anything_silent),
		UNIT_TEST(after_an_unanswered_upload_the_blob_is_looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
