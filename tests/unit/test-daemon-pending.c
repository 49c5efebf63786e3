/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/hots.h"
#include "daemon/super.h"

/* What the module tells the rest of the supervisor. */
static struct {
	bool ready;	   /* a worker takes what it is sent */
	unsigned int sent; /* so far */
	uint32_t sent_id;
	unsigned int replies;
	int last_reply;
	unsigned int ends;
	int last_end;
	char text[128];
} seen;

bool workers_send(struct super *s, struct bs_msg *m)
{
	seen.sent += seen.ready;
	seen.sent_id = m->id;
	return seen.ready;
}

void hots_forget(struct waiter *a)
{
	a->hot = NULL;
}

void clients_reply(struct super *s, struct client *c, uint32_t id, int result, const char *text)
{
	seen.replies++;
	seen.last_reply = result;
}

static void ended(struct super *s, struct pending *p, int result, const char *text,
		  struct bs_msg *m)
{
	assert_false(p->open);
	seen.ends++;
	seen.last_end = result;
	(void)snprintf(seen.text, sizeof(seen.text), "%s", text);
	if (result < 0)
		pending_fail(s, p, result, text);
}

static void begin(struct super *s, struct pending *p)
{
	bs_automsg m;

	memset(&seen, 0, sizeof(seen));
	memset(s, 0, sizeof(*s));
	bs_list_init(&s->pending);
	bs_msg_init(&m, BS_MSG_ACQUIRE, 1);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_SOURCE, "oci:/a"), 0);
	assert_int_equal(bs_msg_add_text(&m, BS_TAG_SOURCE, "oci:/b"), 0);
	pending_init(s, p, ended);
	(void)pending_begin(s, p, BS_MSG_PREPARE, &m, 5);
}

static void answer(struct super *s, uint32_t id, uint64_t result, bool ours)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	assert_int_equal(bs_msg_add_u64(&m, BS_TAG_RESULT, result), 0);
	assert_int_equal(pendings_answered(s, &m), ours);
}

static void it_waits_for_a_worker_and_is_sent_once(void **state)
{
	struct super s;
	struct pending p;

	begin(&s, &p);
	assert_string_equal(bs_msg_text(&p.request, BS_TAG_SOURCE, 1), "oci:/b");
	pending_send(&s, &p);
	assert_int_equal(seen.sent, 0);
	seen.ready = true;
	pendings_send(&s);
	pendings_send(&s);
	assert_int_equal(seen.sent, 1);
	assert_true(pendings_open(&s));
	answer(&s, seen.sent_id + 1, 0, false);
	answer(&s, seen.sent_id, 0, true);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.last_end, 0);
	assert_false(pendings_open(&s));
	/* neither again, nor to a new worker */
	answer(&s, seen.sent_id, 0, false);
	pendings_new_worker(&s);
	assert_int_equal(seen.sent, 1);
	pending_done(&p);
}

static void each_new_worker_gets_it_but_not_for_ever(void **state)
{
	struct client c = { .gone = false };
	struct super s;
	struct pending p;

	begin(&s, &p);
	seen.ready = true;
	assert_non_null(waiter_new(&p, &c, 1, BS_NS_PER_S));
	assert_non_null(waiter_new(&p, &c, 2, BS_NS_PER_S));
	pending_send(&s, &p);
	for (unsigned int i = 0; i < 20; i++)
		pendings_new_worker(&s);
	assert_int_equal(seen.sent, 21);
	assert_int_equal(seen.ends, 0);
	pendings_new_worker(&s);
	assert_int_equal(seen.sent, 21);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.last_end, -EIO);
	assert_non_null(strstr(seen.text, "again and again"));
	assert_int_equal(seen.replies, 2);
	assert_true(bs_list_empty(&p.waiting));
	pending_done(&p);
	assert_true(bs_list_empty(&s.pending));
}

static void those_who_wait_leave_one_by_one(void **state)
{
	struct client a = { .gone = false }, b = { .gone = false };
	struct super s;
	struct pending p;

	begin(&s, &p);
	assert_non_null(waiter_new(&p, &a, 1, 3600 * BS_NS_PER_S));
	assert_non_null(waiter_new(&p, &b, 2, 0));
	assert_non_null(waiter_new(&p, &b, 3, 3600 * BS_NS_PER_S));
	pendings_expire(&s, bs_clock_ns() + 1);
	assert_int_equal(seen.replies, 1);
	assert_int_equal(seen.last_reply, -ETIMEDOUT);
	pendings_client_gone(&s, &a);
	assert_int_equal(seen.replies, 1);
	pending_fail(&s, &p, -EREMOTEIO, "no");
	assert_int_equal(seen.replies, 2);
	assert_int_equal(seen.last_reply, -EREMOTEIO);
	pending_done(&p);
}

static void an_answer_that_is_none_is_a_failure(void **state)
{
	struct super s;
	struct pending p;

	begin(&s, &p);
	seen.ready = true;
	pending_send(&s, &p);
	answer(&s, seen.sent_id, 1u << 20, true);
	assert_int_equal(seen.last_end, -EPROTO);
	pending_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_waits_for_a_worker_and_is_sent_once),
		cmocka_unit_test(each_new_worker_gets_it_but_not_for_ever),
		cmocka_unit_test(those_who_wait_leave_one_by_one),
		cmocka_unit_test(an_answer_that_is_none_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
