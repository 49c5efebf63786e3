/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The loop without a registry: timers, order, and the end of all that is under way. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/loop_impl.h"
#include "net/repo.h"
#include "net/yield.h"

struct board { /* what callbacks write on */
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned int n;
	int order[64];
	int result[64];
	uint64_t at_ns[64];
	bool blocked; /* signals, as seen on the loop's thread */
};

#define BOARD_INIT                                                                                 \
	{                                                                                          \
		.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER                \
	}

static void note(struct board *b, int what, int result)
{
	sigset_t set;

	(void)pthread_mutex_lock(&b->lock);
	(void)pthread_sigmask(SIG_BLOCK, NULL, &set);
	b->blocked = sigismember(&set, SIGTERM) == 1;
	b->order[b->n] = what;
	b->result[b->n] = result;
	b->at_ns[b->n++] = bs_clock_ns();
	(void)pthread_cond_signal(&b->cond);
	(void)pthread_mutex_unlock(&b->lock);
}

static void await(struct board *b, unsigned int n)
{
	(void)pthread_mutex_lock(&b->lock);
	while (b->n < n)
		(void)pthread_cond_wait(&b->cond, &b->lock);
	(void)pthread_mutex_unlock(&b->lock);
}

struct mark {
	struct board *board;
	int what;
};

static void on_timer(void *cookie)
{
	const struct mark *m = cookie;

	note(m->board, m->what, 0);
}

static void timers_come_in_order_and_not_early(void **state)
{
	bs_auto(loop) struct bs_loop *l = NULL;
	struct board b = BOARD_INIT;
	struct mark marks[] = { { &b, 0 }, { &b, 1 }, { &b, 2 }, { &b, 3 } };
	const uint64_t ms[] = { 60, 20, 40, 20 };
	uint64_t start;

	assert_int_equal(bs_loop_new(NULL, &l, NULL), 0);
	start = bs_clock_ns();
	for (int i = 0; i < 4; i++)
		assert_int_equal(bs_loop_after(l, ms[i] * BS_NS_PER_MS, on_timer, &marks[i]), 0);
	await(&b, 4);
	assert_int_equal(b.order[0], 1);
	assert_int_equal(b.order[1], 3);
	assert_int_equal(b.order[2], 2);
	assert_int_equal(b.order[3], 0);
	for (int i = 0; i < 4; i++)
		assert_true(b.at_ns[i] - start >= ms[b.order[i]] * BS_NS_PER_MS);
	assert_true(b.blocked);
}

static void the_end_calls_timers_that_are_not_due(void **state)
{
	struct bs_loop *l = NULL;
	struct board b = BOARD_INIT;
	struct mark m = { &b, 7 };

	assert_int_equal(bs_loop_new(NULL, &l, NULL), 0);
	assert_int_equal(bs_loop_after(l, 3600 * BS_NS_PER_S, on_timer, &m), 0);
	l = bs_loop_free(l);
	assert_int_equal(b.n, 1);
}

/* A server that takes connections and says nothing. */
static int silent_server(char *host, size_t size)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	(void)snprintf(host, size, "127.0.0.1:%d", ntohs(a.sin_port));
	return fd;
}

static void on_range(struct bs_range *rg)
{
	note(rg->cookie, (int)rg->off, rg->result);
}

#define N_RANGES 40

static void start_ranges(struct bs_loop *l, const char *host, struct board *b,
			 struct bs_range *ranges, char *buf)
{
	struct bs_registry_options o = { .loop = l, .plain_http = true, .tls_verify = true };
	bs_auto(repo) struct bs_repo *r = NULL;

	assert_int_equal(bs_registry_open(&o, host, "a/b", &r, NULL), 0);
	for (int i = 0; i < N_RANGES; i++) {
		ranges[i] = (struct bs_range){ .off = (uint64_t)i,
					       .len = 1,
					       .buf = buf,
					       .lane = (enum bs_lane)(i % BS_LANE_MAX),
					       .done = on_range,
					       .cookie = b };
		bs_repo_read(r, &ranges[i]);
	}
	/* the readers keep the repository */
}

static void the_end_cancels_what_runs_and_what_waits(void **state)
{
	struct bs_range ranges[N_RANGES];
	struct bs_loop *l = NULL;
	struct board b = BOARD_INIT;
	char host[64], buf[1];
	bs_autofd int fd = silent_server(host, sizeof(host));

	assert_int_equal(bs_loop_new(NULL, &l, NULL), 0);
	start_ranges(l, host, &b, ranges, buf);
	l = bs_loop_free(l);
	assert_int_equal(b.n, N_RANGES);
	for (int i = 0; i < N_RANGES; i++)
		assert_int_equal(b.result[i], -ECANCELED);
}

static void a_stall_ends_each_and_demand_goes_first(void **state)
{
	struct bs_loop_options o = { .stall_timeout_ns = 100 * BS_NS_PER_MS,
				     .connections_per_host = 4,
				     .background_parallel = 64 };
	bs_auto(loop) struct bs_loop *l = NULL;
	struct bs_range ranges[N_RANGES];
	struct bs_loop_stats s;
	struct board b = BOARD_INIT;
	char host[64], buf[1];
	bs_autofd int fd = silent_server(host, sizeof(host));
	int last_demand = 0, n_others_before = 0;

	assert_int_equal(bs_loop_new(&o, &l, NULL), 0);
	start_ranges(l, host, &b, ranges, buf);
	await(&b, N_RANGES);
	for (int i = 0; i < N_RANGES; i++) {
		assert_int_equal(b.result[i], -ETIMEDOUT);
		if (b.order[i] % BS_LANE_MAX == BS_LANE_DEMAND)
			last_demand = i;
	}
	/* others ran only in the first round, before all demand was queued, and in the last */
	for (int i = 0; i < last_demand; i++)
		n_others_before += b.order[i] % BS_LANE_MAX != BS_LANE_DEMAND;
	assert_true(n_others_before <= 6);
	bs_loop_stats(l, &s);
	assert_int_equal(s.requests[BS_LANE_DEMAND], (N_RANGES + 2) / BS_LANE_MAX);
	assert_int_equal(s.failures[BS_LANE_HOT], s.requests[BS_LANE_HOT]);
	assert_int_equal(s.running[BS_LANE_DEMAND] + s.queued[BS_LANE_DEMAND], 0);
	assert_true(s.demand_waited > 0);
}

/* While hot ranges run, those of the background wait. */
static void the_background_gives_way_to_a_stream(void **state)
{
	struct bs_loop_options o = { .stall_timeout_ns = 200 * BS_NS_PER_MS,
				     .connections_per_host = 64,
				     .background_parallel = 64 };
	bs_auto(loop) struct bs_loop *l = NULL;
	struct bs_range ranges[N_RANGES];
	struct board b = BOARD_INIT;
	char host[64], buf[1];
	bs_autofd int fd = silent_server(host, sizeof(host));
	uint64_t last_hot_ns = 0;
	int n_before = 0;

	assert_int_equal(bs_loop_new(&o, &l, NULL), 0);
	start_ranges(l, host, &b, ranges, buf);
	await(&b, N_RANGES);
	for (int i = 0; i < N_RANGES; i++) {
		if (b.order[i] % BS_LANE_MAX == BS_LANE_HOT)
			last_hot_ns = b.at_ns[i];
	}
	/* each takes the stall's time: who ends sooner began when hot ran, or before it */
	for (int i = 0; i < N_RANGES; i++)
		n_before += b.order[i] % BS_LANE_MAX == BS_LANE_BACKGROUND &&
			    b.at_ns[i] < last_hot_ns + o.stall_timeout_ns;
	assert_true(n_before <= 2);
}

static void background_waits_for_the_end_of_demand(void **state)
{
	struct bs_loop_options o = { .stall_timeout_ns = 100 * BS_NS_PER_MS,
				     .connections_per_host = 4,
				     .background_parallel = 64,
				     .background_yields = true };
	bs_auto(loop) struct bs_loop *l = NULL;
	struct bs_range ranges[N_RANGES];
	struct board b = BOARD_INIT;
	char host[64], buf[1];
	bs_autofd int fd = silent_server(host, sizeof(host));
	uint64_t last_demand_ns = 0, first_background_ns = UINT64_MAX;

	assert_int_equal(bs_loop_new(&o, &l, NULL), 0);
	start_ranges(l, host, &b, ranges, buf);
	await(&b, N_RANGES);
	for (int i = 0; i < N_RANGES; i++) {
		if (ranges[i].lane == BS_LANE_DEMAND)
			last_demand_ns = BS_MAX(last_demand_ns, ranges[i].ended_ns);
		if (ranges[i].lane == BS_LANE_BACKGROUND)
			first_background_ns = BS_MIN(first_background_ns, ranges[i].started_ns);
	}
	assert_true(first_background_ns >= last_demand_ns + BS_YIELD_QUIET_NS / 2);
}

static void start_one(struct bs_loop *l, const char *host, enum bs_lane lane, struct board *b,
		      struct bs_range *rg, char *buf)
{
	struct bs_registry_options o = { .loop = l, .plain_http = true, .tls_verify = true };
	bs_auto(repo) struct bs_repo *r = NULL;

	assert_int_equal(bs_registry_open(&o, host, "a/b", &r, NULL), 0);
	*rg = (struct bs_range){
		.off = lane, .len = 1, .buf = buf, .lane = lane, .done = on_range, .cookie = b
	};
	bs_repo_read(r, rg);
}

/* A registry that hangs is no reason to fetch nothing from others. */
static void background_waits_for_demand_at_its_own_host_alone(void **state)
{
	struct bs_loop_options o = { .stall_timeout_ns = 400 * BS_NS_PER_MS,
				     .background_yields = true };
	bs_auto(loop) struct bs_loop *l = NULL;
	struct board b = BOARD_INIT;
	struct bs_range demand, same, other;
	char host[2][64], buf[3];
	bs_autofd int one = silent_server(host[0], sizeof(host[0]));
	bs_autofd int two = silent_server(host[1], sizeof(host[1]));

	assert_int_equal(bs_loop_new(&o, &l, NULL), 0);
	start_one(l, host[0], BS_LANE_DEMAND, &b, &demand, &buf[0]);
	(void)usleep(20000);
	start_one(l, host[0], BS_LANE_BACKGROUND, &b, &same, &buf[1]);
	start_one(l, host[1], BS_LANE_BACKGROUND, &b, &other, &buf[2]);
	await(&b, 3);
	assert_true(other.started_ns < demand.ended_ns);
	assert_true(same.started_ns >= demand.ended_ns + BS_YIELD_QUIET_NS / 2);
}

static void await_hot(struct bs_loop *l, uint64_t running, uint64_t queued)
{
	struct bs_loop_stats s;

	for (int i = 0; i < 2000; i++) {
		bs_loop_stats(l, &s);
		if (s.running[BS_LANE_HOT] == running && s.queued[BS_LANE_HOT] == queued)
			break;
		(void)usleep(1000);
	}
	(void)usleep(20000);
	bs_loop_stats(l, &s);
	assert_int_equal(s.running[BS_LANE_HOT], running);
	assert_int_equal(s.queued[BS_LANE_HOT], queued);
	assert_int_equal(s.demand_waited, 0);
}

/* Those of its own image are not among them, nor those of one that has demand, too. */
static void beside_demand_one_of_others_runs(void **state)
{
	struct bs_registry_options o = { .plain_http = true, .tls_verify = true };
	bs_auto(repo) struct bs_repo *r = NULL;
	struct bs_loop *l = NULL;
	struct board b = BOARD_INIT;
	struct bs_range rg[10];
	char host[64], buf[1], own = 0, other = 0;
	bs_autofd int fd = silent_server(host, sizeof(host));

	assert_int_equal(bs_loop_new(NULL, &l, NULL), 0);
	o.loop = l;
	assert_int_equal(bs_registry_open(&o, host, "a/b", &r, NULL), 0);
	for (int i = 0; i < 10; i++) {
		rg[i] = (struct bs_range){ .len = 1,
					   .buf = buf,
					   .lane = i % 9 ? BS_LANE_HOT : BS_LANE_DEMAND,
					   .whose = i == 0 || (i >= 6 && i < 9) ? &own : &other,
					   .done = on_range,
					   .cookie = &b };
		bs_repo_read(r, &rg[i]);
		if (i == 5)
			await_hot(l, 1, 4);
		if (i == 8)
			await_hot(l, 1 + 3, 4);
	}
	await_hot(l, 8 - 2, 2); /* as many as there are connections */
	r = bs_repo_unref(r);
	l = bs_loop_free(l);
	await(&b, 10);
}

struct slow {
	struct bs_task task;
	struct bs_loop *l;
	struct board *b;
};

static void back(struct bs_task *t)
{
	struct slow *s = BS_CONTAINER_OF(t, struct slow, task);

	note(s->b, 2, bs_loop_is_self(s->l));
}

static void slowly(struct bs_task *t)
{
	struct slow *s = BS_CONTAINER_OF(t, struct slow, task);

	(void)usleep(50000);
	note(s->b, 1, bs_loop_is_self(s->l));
	s->task.fn = back;
	bs_loop_post(s->l, &s->task);
}

static void what_blocks_runs_beside_and_the_end_waits_for_it(void **state)
{
	struct bs_loop *l = NULL;
	struct board b = BOARD_INIT;
	struct mark m = { &b, 0 };
	struct slow s = { .task.fn = slowly, .b = &b };

	assert_int_equal(bs_loop_new(NULL, &l, NULL), 0);
	s.l = l;
	bs_loop_block(l, &s.task);
	assert_int_equal(bs_loop_after(l, 0, on_timer, &m), 0);
	l = bs_loop_free(l);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.order[0], 0);
	assert_int_equal(b.order[1], 1);
	assert_int_equal(b.result[1], 0);
	assert_int_equal(b.order[2], 2);
	assert_int_equal(b.result[2], 1);
}

/* It may be there the next time: each attempt says the same, and may be repeated. */
static void a_host_without_an_address_is_out_of_reach_each_time(void **state)
{
	/* no resolver asks for a label of more than 63 bytes */
	static const char host[] =
		"0123456789012345678901234567890123456789012345678901234567890123.invalid";
	bs_auto(loop) struct bs_loop *l = NULL;
	bs_auto(repo) struct bs_repo *r = NULL;
	struct bs_loop_options lo = { .stall_timeout_ns = 100 * BS_NS_PER_MS };
	struct bs_registry_options o = { .plain_http = true };
	struct bs_range other = { .len = 1, .done = on_range };
	struct board b = BOARD_INIT;
	char buf[1], there[64];
	bs_autofd int fd = silent_server(there, sizeof(there));

	assert_int_equal(bs_loop_new(&lo, &l, NULL), 0);
	o.loop = l;
	assert_int_equal(bs_registry_open(&o, host, "a/b", &r, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct bs_range rg = { .len = 1, .buf = buf, .done = on_range, .cookie = &b };

		bs_repo_read(r, &rg);
		await(&b, i + 1);
		print_message("[ error  ] %s\n", rg.text);
		assert_int_equal(b.result[i], -EHOSTUNREACH);
	}
	/* and takes nothing from those that are there */
	r = bs_repo_unref(r);
	assert_int_equal(bs_registry_open(&o, there, "a/b", &r, NULL), 0);
	other.buf = buf;
	other.cookie = &b;
	bs_repo_read(r, &other);
	await(&b, 4);
	assert_int_equal(b.result[3], -ETIMEDOUT);
}

static void hosts_and_names_that_would_change_a_url_are_refused(void **state)
{
	static const char *const bad[][2] = { { "", "a" },	 { "h/x", "a" }, { "h?x", "a" },
					      { "u@h", "a" },	 { "h", "" },	 { "h", "/a" },
					      { "h", "a/../b" }, { "h", "a?b" }, { "h", "a#b" },
					      { "h", "a//b" },	 { "h", "a b" }, { "h\n", "a" } };
	bs_auto(loop) struct bs_loop *l = NULL;
	struct bs_repo *r = NULL;

	assert_int_equal(bs_loop_new(NULL, &l, NULL), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		struct bs_registry_options o = { .loop = l };

		if (bs_registry_open(&o, bad[i][0], bad[i][1], &r, NULL) != -EINVAL)
			fail_msg("%s %s", bad[i][0], bad[i][1]);
	}
}

struct led {
	struct bs_task task;
	struct bs_http http;
	struct board *b;
};

static void on_led(struct bs_http *h)
{
	struct led *led = BS_CONTAINER_OF(h, struct led, http);

	note(led->b, 1, h->result);
}

static void start_led(struct bs_task *t)
{
	struct led *led = BS_CONTAINER_OF(t, struct led, task);

	bs_http_start(&led->http);
}

static void ask(struct bs_loop *l, const char *url, char text[160])
{
	static const struct bs_http_peer peer = { .verify = true };
	struct board b = BOARD_INIT;
	struct led led = { .task.fn = start_led,
			   .b = &b,
			   .http = { .loop = l,
				     .peer = &peer,
				     .lane = BS_LANE_DEMAND,
				     .method = "GET",
				     .url = url,
				     .led = true,
				     .done = on_led } };

	bs_loop_post(l, &led.task);
	await(&b, 1);
	assert_true(b.result[0] < 0);
	(void)snprintf(text, 160, "%s", led.http.text);
	bs_http_done(&led.http);
}

static void a_server_cannot_lead_to_a_link_local_address(void **state)
{
	static const char *const bad[] = { "http://169.254.169.254/latest/", "http://[fe80::1]/",
					   "http://[::ffff:169.254.0.1]/", "http://0xa9fea9fe/",
					   "http://[febf::1%25lo]/" };
	struct bs_loop_options o = { .stall_timeout_ns = 200 * BS_NS_PER_MS };
	bs_auto(loop) struct bs_loop *l = NULL;
	char host[64], text[160];
	int fd = silent_server(host, sizeof(host));
	bs_autofree char *good = bs_strf("http://%s/", host);

	assert_int_equal(bs_loop_new(&o, &l, NULL), 0);
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++) {
		ask(l, bad[i], text);
		assert_non_null(strstr(text, "link-local"));
	}
	ask(l, good, text);
	assert_null(strstr(text, "link-local"));
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(timers_come_in_order_and_not_early),
		UNIT_TEST(the_end_calls_timers_that_are_not_due),
		UNIT_TEST(the_end_cancels_what_runs_and_what_waits),
		UNIT_TEST(a_stall_ends_each_and_demand_goes_first),
		UNIT_TEST(the_background_gives_way_to_a_stream),
		UNIT_TEST(background_waits_for_the_end_of_demand),
		UNIT_TEST(background_waits_for_demand_at_its_own_host_alone),
		UNIT_TEST(beside_demand_one_of_others_runs),
		UNIT_TEST(what_blocks_runs_beside_and_the_end_waits_for_it),
		UNIT_TEST(a_host_without_an_address_is_out_of_reach_each_time),
		UNIT_TEST(a_server_cannot_lead_to_a_link_local_address),
		UNIT_TEST(hosts_and_names_that_would_change_a_url_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
