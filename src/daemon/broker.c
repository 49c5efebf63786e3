/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/broker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limit.h"
#include "base/list.h"
#include "ctl/msg.h"

#define WAIT_S 60 /* credential helpers have 30 s */

/* One question; on the asking thread's stack. */
struct question {
	struct bs_list open;
	uint32_t id;
	bool answered;
	struct bs_msg reply;
};

/* A message that the supervisor was not ready for. */
struct late {
	struct bs_list queued;
	struct bs_msg m;
};

struct bs_broker {
	int sock;
	pthread_mutex_t lock; /* guards all below */
	struct bs_list late;  /* in their order */
	bool sending;	      /* a thread sends them */
	pthread_cond_t changed;
	struct bs_list questions;
	uint32_t next_id;
	struct bs_limit events;
};

int bs_broker_new(int sock, struct bs_broker **ret, struct bs_error *err)
{
	struct bs_broker *b = calloc(1, sizeof(*b));

	if (!b)
		return bs_fail(err, -ENOMEM, "out of memory");
	b->sock = sock;
	(void)pthread_mutex_init(&b->lock, NULL);
	(void)pthread_cond_init(&b->changed, NULL);
	bs_list_init(&b->questions);
	bs_list_init(&b->late);
	bs_limit_init(&b->events, 1, 20, bs_clock_ns());
	*ret = b;
	return 0;
}

void bs_broker_send(struct bs_broker *b, struct bs_msg *m)
{
	(void)bs_msg_send(b->sock, m);
}

void bs_broker_event(struct bs_broker *b, enum bs_log_level level, const char *text)
{
	bs_automsg m;
	bool tell;

	(void)pthread_mutex_lock(&b->lock);
	tell = bs_limit_take(&b->events, 1, bs_clock_ns());
	(void)pthread_mutex_unlock(&b->lock);
	bs_msg_init(&m, BS_MSG_EVENT, 0);
	/* a supervisor that does not listen must not hold up who reads blocks */
	if (tell && bs_msg_add_text(&m, BS_TAG_TEXT, text) == 0 &&
	    bs_msg_add_u64(&m, BS_TAG_LEVEL, level) == 0)
		(void)bs_msg_send_now(b->sock, &m);
}

void bs_broker_completed(struct bs_broker *b, const char *digest)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_COMPLETED, 0);
	/* lost, it only means one more lazy mount */
	if (bs_msg_add_text(&m, BS_TAG_DIGEST, digest) == 0)
		(void)bs_msg_send_now(b->sock, &m);
}

static void *send_late(void *arg)
{
	struct bs_broker *b = arg;

	(void)pthread_mutex_lock(&b->lock);
	while (!bs_list_empty(&b->late)) {
		struct late *l = bs_list_entry(b->late.next, struct late, queued);

		(void)pthread_mutex_unlock(&b->lock);
		(void)bs_msg_send(b->sock, &l->m);
		(void)pthread_mutex_lock(&b->lock);
		/* only now: until it is out those that come must not overtake it */
		bs_list_remove(&l->queued);
		bs_msg_done(&l->m);
		free(l);
	}
	b->sending = false;
	(void)pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* Lock held. */
static int start_sending(struct bs_broker *b)
{
	pthread_t t;

	if (b->sending)
		return 0;
	if (pthread_create(&t, NULL, send_late, b) != 0)
		return -EAGAIN;
	(void)pthread_detach(t);
	b->sending = true;
	return 0;
}

/* Neither lost nor waited for, in the order of the calls; m is taken over. */
static void send_in_order(struct bs_broker *b, struct bs_msg *m)
{
	struct late *l;

	(void)pthread_mutex_lock(&b->lock);
	if (bs_list_empty(&b->late) && bs_msg_send_now(b->sock, m) != -EAGAIN) {
		(void)pthread_mutex_unlock(&b->lock);
		return;
	}
	l = malloc(sizeof(*l));
	if (!l || start_sending(b) < 0) { /* better late than never */
		(void)pthread_mutex_unlock(&b->lock);
		free(l);
		bs_broker_send(b, m);
		return;
	}
	l->m = *m;
	bs_msg_init(m, 0, 0);
	bs_list_append(&b->late, &l->queued);
	(void)pthread_mutex_unlock(&b->lock);
}

void bs_broker_streaming(struct bs_broker *b, const char *digest, const char *workload, bool on)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_STREAMING, 0);
	(void)bs_msg_add_text(&m, BS_TAG_DIGEST, digest);
	(void)bs_msg_add_text(&m, BS_TAG_WORKLOAD, workload);
	(void)bs_msg_add_u64(&m, BS_TAG_STREAM, on);
	send_in_order(b, &m);
}

void bs_broker_reply(struct bs_broker *b, uint32_t id, int result, const struct bs_error *err)
{
	bs_automsg m;

	bs_msg_init(&m, BS_MSG_REPLY, id);
	(void)bs_msg_add_u64(&m, BS_TAG_RESULT, (uint64_t)-result);
	if (result < 0)
		(void)bs_msg_add_text(&m, BS_TAG_TEXT, bs_error_text(err));
	bs_broker_send(b, &m);
}

void bs_broker_answered(struct bs_broker *b, struct bs_msg *m)
{
	(void)pthread_mutex_lock(&b->lock);
	bs_list_for_each(it, &b->questions) {
		struct question *q = bs_list_entry(it, struct question, open);

		if (q->id != m->id || q->answered)
			continue;
		q->reply = *m;
		q->answered = true;
		bs_msg_init(m, 0, 0);
		(void)pthread_cond_broadcast(&b->changed);
		break;
	}
	(void)pthread_mutex_unlock(&b->lock);
	bs_msg_done(m);
}

static int check_reply(const struct bs_msg *m, struct bs_error *err)
{
	const char *text = bs_msg_text(m, BS_TAG_TEXT, 0);
	uint64_t result;

	if (bs_msg_u64(m, BS_TAG_RESULT, &result) < 0 || result > 4095)
		return bs_fail(err, -EPROTO, "the supervisor answered without a result");
	if (result == 0)
		return 0;
	return bs_fail(err, -(int)result, "%s", text ? text : "the supervisor refused");
}

/* Sends m under an id of ours and waits for the answer. */
static int ask(struct bs_broker *b, struct bs_msg *m, struct bs_msg *ret, struct bs_error *err)
{
	struct question q = { .answered = false };
	const uint64_t deadline_ns = bs_clock_ns() + WAIT_S * BS_NS_PER_S;
	int r = 0;

	bs_msg_init(&q.reply, 0, 0);
	(void)pthread_mutex_lock(&b->lock);
	q.id = m->id = ++b->next_id;
	bs_list_append(&b->questions, &q.open);
	(void)pthread_mutex_unlock(&b->lock);
	bs_broker_send(b, m);
	(void)pthread_mutex_lock(&b->lock);
	while (!q.answered && r == 0)
		r = bs_clock_cond_wait(&b->changed, &b->lock, deadline_ns);
	bs_list_remove(&q.open);
	(void)pthread_mutex_unlock(&b->lock);
	if (!q.answered)
		return bs_fail(err, -ETIMEDOUT, "the supervisor did not answer");
	r = check_reply(&q.reply, err);
	if (r < 0)
		bs_msg_done(&q.reply);
	else
		*ret = q.reply;
	return r;
}

int bs_broker_credentials(void *broker, const char *host, char **ret_user, char **ret_secret,
			  struct bs_error *err)
{
	const char *user, *secret;
	bs_automsg m, reply;
	int r;

	bs_msg_init(&m, BS_MSG_CREDENTIAL, 0);
	bs_msg_init(&reply, 0, 0);
	if (bs_msg_add_text(&m, BS_TAG_HOST, host) < 0)
		return bs_fail(err, -EINVAL, "a registry's name is too long");
	r = ask(broker, &m, &reply, err);
	if (r < 0)
		return r;
	user = bs_msg_text(&reply, BS_TAG_USER, 0);
	secret = bs_msg_text(&reply, BS_TAG_SECRET, 0);
	if (!user || !secret)
		return bs_fail(err, -ENOENT, "no credentials for '%s'", host);
	*ret_user = strdup(user);
	*ret_secret = strdup(secret);
	if (*ret_user && *ret_secret)
		return 0;
	free(*ret_user);
	free(*ret_secret);
	return bs_fail(err, -ENOMEM, "out of memory");
}

int bs_broker_open_layout(struct bs_broker *b, const char *source, struct bs_error *err)
{
	bs_automsg m, reply;
	int r;

	bs_msg_init(&m, BS_MSG_OPEN_LAYOUT, 0);
	bs_msg_init(&reply, 0, 0);
	if (bs_msg_add_text(&m, BS_TAG_SOURCE, source) < 0)
		return bs_fail(err, -EINVAL, "a source's name is too long");
	r = ask(b, &m, &reply, err);
	if (r < 0)
		return r;
	r = bs_msg_take_fd(&reply, 0);
	return r < 0 ? bs_fail(err, -EPROTO, "the supervisor sent no directory") : r;
}
