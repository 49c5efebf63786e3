/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "ctl/client.h"
#include "ctl/msg.h"

struct server {
	int sock;
	uint64_t after_ns;
};

/* Replies to one request, after that time. */
static void *serve(void *cookie)
{
	const struct server *s = cookie;
	const struct timespec ts = { .tv_nsec = (long)s->after_ns };
	bs_automsg got, reply;

	bs_msg_init(&got, 0, 0);
	if (bs_msg_recv(s->sock, &got) < 0)
		return NULL;
	(void)nanosleep(&ts, NULL);
	bs_msg_init(&reply, BS_MSG_REPLY, got.id);
	if (bs_msg_add_u64(&reply, BS_TAG_RESULT, 0) == 0)
		(void)bs_msg_send(s->sock, &reply);
	return NULL;
}

static void count(void *cookie)
{
	++*(unsigned int *)cookie;
}

static unsigned int told(uint64_t reply_ns, uint64_t after_ns, uint64_t timeout_ns, int want)
{
	struct bs_error err = BS_ERROR_INIT;
	unsigned int n = 0;
	const struct bs_client_slow slow = { after_ns, count, &n };
	struct server s = { .after_ns = reply_ns };
	bs_automsg m, reply;
	pthread_t thread;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s.sock = pair[1];
	assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
	bs_msg_init(&m, BS_MSG_STATUS, 7);
	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	assert_int_equal(bs_client_call_slow(pair[0], &m, timeout_ns, &slow, &reply, &err), want);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)bs_close(pair[0]);
	(void)bs_close(pair[1]);
	return n;
}

/* Who waits is told once, and has its reply all the same. */
static void test_slow_replies_are_told_of(void **state)
{
	(void)state;
	assert_int_equal(told(300 * BS_NS_PER_MS, 20 * BS_NS_PER_MS, 60 * BS_NS_PER_S, 0), 1);
	assert_int_equal(told(0, 60 * BS_NS_PER_S, 60 * BS_NS_PER_S, 0), 0);
	assert_int_equal(told(300 * BS_NS_PER_MS, 10 * BS_NS_PER_MS, 50 * BS_NS_PER_MS, -ETIMEDOUT),
			 1);
}

static void reply(int sock, uint32_t id, uint64_t result)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	assert_int_equal(bs_msg_add_u64(&m, BS_TAG_RESULT, result), 0);
	assert_int_equal(bs_msg_send(sock, &m), 0);
}

static int next(int sock, uint32_t *ret_id, int *ret_result)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg m;
	int r;

	bs_msg_init(&m, 0, 0);
	r = bs_client_next(sock, bs_clock_ns() + 50 * BS_NS_PER_MS, &m, &err);
	*ret_id = m.id;
	*ret_result = r == 0 ? bs_client_result(&m, &err) : 0;
	return r;
}

/* Of several requests one may fail, or be answered before one that was sent earlier. */
static void test_replies_come_in_any_order(void **state)
{
	int pair[2], result;
	uint32_t id;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	for (uint32_t i = 1; i <= 3; i++) {
		bs_automsg m;

		bs_msg_init(&m, BS_MSG_STATUS, i);
		assert_int_equal(bs_client_send(pair[0], &m, NULL), 0);
	}
	reply(pair[1], 3, 0);
	reply(pair[1], 1, ENOENT);
	assert_int_equal(next(pair[0], &id, &result), 0);
	assert_int_equal(id, 3);
	assert_int_equal(result, 0);
	assert_int_equal(next(pair[0], &id, &result), 0);
	assert_int_equal(id, 1);
	assert_int_equal(result, -ENOENT);
	assert_int_equal(next(pair[0], &id, &result), -ETIMEDOUT);
	reply(pair[1], 0, EMFILE); /* to whatever is asked */
	assert_int_equal(next(pair[0], &id, &result), -EMFILE);
	(void)bs_close(pair[1]);
	assert_int_equal(next(pair[0], &id, &result), -ECONNRESET);
	(void)bs_close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_slow_replies_are_told_of),
		UNIT_TEST(test_replies_come_in_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
