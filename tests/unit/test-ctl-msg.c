/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "ctl/msg.h"

static void a_message_arrives_as_it_was_sent(void **state)
{
	int pair[2], null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	bs_automsg m, got;
	uint64_t n;
	int fd;

	bs_msg_init(&m, BS_MSG_ACQUIRE, 77);
	bs_msg_init(&got, 0, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_SOURCE, "oci:/a"), 0);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_SOURCE, ""), 0);
	assert_int_equal(bs_msg_add_u64(&m, BS_TAG_WAIT_NS, UINT64_MAX), 0);
	assert_int_equal(bs_msg_add_fd(&m, null), 0);
	assert_int_equal(bs_msg_send(pair[0], &m), 0);
	assert_int_equal(bs_msg_recv(pair[1], &got), 0);
	assert_int_equal(got.type, BS_MSG_ACQUIRE);
	assert_int_equal(got.id, 77);
	assert_string_equal(bs_msg_text(&got, BS_TAG_SOURCE, 0), "oci:/a");
	assert_string_equal(bs_msg_text(&got, BS_TAG_SOURCE, 1), "");
	assert_null(bs_msg_text(&got, BS_TAG_SOURCE, 2));
	assert_int_equal(bs_msg_u64(&got, BS_TAG_WAIT_NS, &n), 0);
	assert_true(n == UINT64_MAX);
	assert_int_equal(bs_msg_u64(&got, BS_TAG_SOURCE, &n), -EBADMSG);
	assert_int_equal(bs_msg_u64(&got, BS_TAG_EPOCH, &n), -ENOENT);
	fd = bs_msg_take_fd(&got, 0);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(bs_msg_take_fd(&got, 0), -ENOENT);
	bs_close(fd);
	bs_close(null);
	bs_close(pair[0]);
	bs_msg_done(&got);
	assert_int_equal(bs_msg_recv(pair[1], &got), -ECONNRESET);
	bs_close(pair[1]);
}

static void bounds_hold(void **state)
{
	static char big[BS_MSG_BYTES_MAX];
	bs_automsg m;

	memset(big, 'x', sizeof(big) - 1);
	bs_msg_init(&m, BS_MSG_REPLY, 1);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_JSON, big), -E2BIG);
	big[BS_MSG_BYTES_MAX - 23] = '\0'; /* header, field head and NUL take the rest */
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_JSON, big), 0);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_JSON, ""), -E2BIG);
	bs_msg_done(&m);
	for (unsigned int i = 0; i < BS_MSG_FIELDS_MAX; i++)
		assert_int_equal(bs_msg_add_u64(&m, BS_TAG_PID, i), 0);
	assert_int_equal(bs_msg_add_u64(&m, BS_TAG_PID, 0), -E2BIG);
}

static void every_cut_is_refused(void **state)
{
	bs_automsg m;
	struct bs_msg got;
	const void *bytes;
	size_t len;

	bs_msg_init(&m, BS_MSG_REPLY, 1);
	assert_int_equal(bs_msg_add_u64(&m, BS_TAG_RESULT, 0), 0);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_TEXT, "abc"), 0);
	assert_int_equal(bs_msg_encode(&m, &bytes, &len), 0);
	for (size_t n = 0; n < len; n++)
		assert_int_equal(bs_msg_decode(bytes, n, &got), -EBADMSG);
	assert_int_equal(bs_msg_decode(bytes, len, &got), 0);
	bs_msg_done(&got);
}

static void a_long_text_goes_beside_the_message(void **state)
{
	size_t len = 3 << 20;
	char *big = malloc(len + 1), *text = NULL;
	int pair[2], fd;
	bs_automsg m, got;

	memset(big, 'x', len);
	big[len] = '\0';
	bs_msg_init(&m, BS_MSG_REPLY, 1);
	bs_msg_init(&got, 0, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(bs_msg_add_long(&m, BS_TAG_JSON, big), 0);
	assert_int_equal(bs_msg_send(pair[0], &m), 0);
	assert_int_equal(bs_msg_recv(pair[1], &got), 0);
	assert_int_equal(bs_msg_long(&got, BS_TAG_PATH, len, &text), -ENOENT);
	assert_int_equal(bs_msg_long(&got, BS_TAG_JSON, len, &text), 0);
	assert_string_equal(text, big);
	free(text);
	bs_msg_done(&got);
	assert_int_equal(bs_msg_send(pair[0], &m), 0);
	assert_int_equal(bs_msg_recv(pair[1], &got), 0);
	assert_int_equal(bs_msg_long(&got, BS_TAG_JSON, len - 1, &text), -EFBIG);
	bs_msg_done(&got);
	bs_msg_done(&m);
	/* a descriptor whose content could still change is refused */
	fd = bs_memfd("test");
	assert_int_equal(bs_msg_add_fd(&m, fd), 0);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_JSON, ""), 0);
	assert_int_equal(bs_msg_long(&m, BS_TAG_JSON, len, &text), -EINVAL);
	bs_msg_done(&m);
	assert_int_equal(bs_msg_add_long(&m, BS_TAG_JSON, "short"), 0);
	assert_int_equal(m.n_fds, 0);
	assert_int_equal(bs_msg_long(&m, BS_TAG_JSON, len, &text), 0);
	assert_string_equal(text, "short");
	free(text);
	free(big);
	bs_close(fd);
	bs_close(pair[0]);
	bs_close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_message_arrives_as_it_was_sent),
		UNIT_TEST(bounds_hold),
		UNIT_TEST(every_cut_is_refused),
		UNIT_TEST(a_long_text_goes_beside_the_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
