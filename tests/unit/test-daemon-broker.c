/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "ctl/msg.h"
#include "daemon/broker.h"

#define N 2000u

static struct bs_broker *broker;

/* A supervisor that is stopped must not hold up who unpacks blocks; nothing is lost of it. */
static void what_streams_is_told_without_waiting(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(bs_broker_new(pair[0], &broker, NULL), 0);
	(void)alarm(30);
	for (unsigned int i = 0; i < N; i++) {
		char workload[32];

		(void)snprintf(workload, sizeof(workload), "w%u", i);
		bs_broker_streaming(broker, "sha256:00", workload, i % 2);
	}
	for (unsigned int i = 0; i < N; i++) {
		char workload[32];
		uint64_t on;
		bs_automsg m;

		bs_msg_init(&m, 0, 0);
		assert_int_equal(bs_msg_recv(pair[1], &m), 0);
		(void)snprintf(workload, sizeof(workload), "w%u", i);
		assert_string_equal(bs_msg_text(&m, BS_TAG_WORKLOAD, 0), workload);
		assert_int_equal(bs_msg_u64(&m, BS_TAG_STREAM, &on), 0);
		assert_int_equal(on, i % 2);
	}
	(void)alarm(0);
	(void)bs_close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(what_streams_is_told_without_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
