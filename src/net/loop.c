/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * How it works. Everything about a request happens on the loop's thread; other threads
 * only append tasks to a list and wake it. A round: run tasks and timers, start what
 * the lanes allow, let libcurl work, conclude what ended, end what stalled, sleep.
 *
 * Who may start, per host ("scheme://authority"), with N = connections_per_host:
 *   demand   while fewer than N of its own run at the host: others are not in its way
 *   hot      while fewer than N at all run at the host; beside another image's demand, when
 *            there is none of its own, one at a time, with rests
 *   background while fewer than N at all run at the host, fewer than background_parallel of
 *            its own run in all, its budget of bytes is not overdrawn, and neither hot nor
 *            demand runs at the host, nor did demand a moment ago (yield.h); but one in a while
 * libcurl itself has no limits set, so nothing ever waits in a queue that knows no lanes.
 *
 * A second thread runs what may block: asking for credentials.
 */
#include "config.h"

#include "net/loop.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"
#include "net/http.h"
#include "net/loop_impl.h"
#include "net/timers.h"
#include "net/yield.h"

#define POOL_MAX 16
#define HOSTS_KEPT 64u		  /* without a transfer, for what is known of them */
#define STREAMS_PER_CONNECTION 2L /* HTTP/2: several connections, since flows are capped */

struct host {
	char *origin;
	unsigned int running, hot;
	struct bs_yield_pause pause;  /* of the background */
	struct bs_yield_demand wants; /* for which others make room */
	struct bs_pace_host pace;
};

struct bs_loop {
	struct bs_loop_options o;
	char *user_agent;
	CURLM *multi;
	CURLSH *share;
	pthread_t thread, helper;
	bool thread_runs, helper_runs;

	pthread_mutex_t lock; /* guards the next block */
	pthread_cond_t work;  /* for the helper */
	struct bs_list posted, blocking, timers;
	unsigned int n_blocking; /* queued or running on the helper */
	bool stop, helper_stop;

	pthread_mutex_t sessions_lock;
	struct bs_list sessions;

	uint64_t background_rate;      /* atomic */
	unsigned int background_share; /* atomic; percent */
	struct bs_loop_stats stats;    /* atomic members */

	/* the loop's thread only */
	struct bs_list queue[BS_LANE_MAX], running;
	unsigned int n_running, n_background;
	struct bs_yield_share whole; /* what the links bring */
	uint64_t pause_ns;	     /* until the first host where something rests; 0: none */
	struct bs_map hosts;
	CURL *pool[POOL_MAX];
	unsigned int n_pool;
	struct bs_yield_budget budget;
};

static void count(uint64_t *counter, uint64_t n)
{
	(void)__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

static void uncount(uint64_t *counter)
{
	(void)__atomic_sub_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* --- what other threads do ------------------------------------------------------------------- */

void bs_loop_post(struct bs_loop *l, struct bs_task *t)
{
	bool wake;

	(void)pthread_mutex_lock(&l->lock);
	wake = bs_list_empty(&l->posted);
	bs_list_append(&l->posted, &t->link);
	(void)pthread_mutex_unlock(&l->lock);
	if (wake)
		(void)curl_multi_wakeup(l->multi);
}

void bs_loop_block(struct bs_loop *l, struct bs_task *t)
{
	(void)pthread_mutex_lock(&l->lock);
	l->n_blocking++;
	bs_list_append(&l->blocking, &t->link);
	(void)pthread_cond_signal(&l->work);
	(void)pthread_mutex_unlock(&l->lock);
}

int bs_loop_after(struct bs_loop *l, uint64_t delay_ns, void (*fn)(void *cookie), void *cookie)
{
	struct bs_timer *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct bs_timer){ .at_ns = bs_clock_ns() + delay_ns, .fn = fn, .cookie = cookie };
	(void)pthread_mutex_lock(&l->lock);
	bs_timers_add(&l->timers, t);
	(void)pthread_mutex_unlock(&l->lock);
	(void)curl_multi_wakeup(l->multi);
	return 0;
}

bool bs_loop_is_self(const struct bs_loop *l)
{
	return pthread_equal(pthread_self(), l->thread);
}

void bs_loop_background_rate(struct bs_loop *l, uint64_t bytes_per_s)
{
	__atomic_store_n(&l->background_rate, bytes_per_s, __ATOMIC_RELAXED);
	(void)curl_multi_wakeup(l->multi);
}

void bs_loop_background_share(struct bs_loop *l, unsigned int percent)
{
	__atomic_store_n(&l->background_share, percent, __ATOMIC_RELAXED);
	(void)curl_multi_wakeup(l->multi);
}

void bs_loop_stats(struct bs_loop *l, struct bs_loop_stats *ret)
{
	const uint64_t *from = (const uint64_t *)&l->stats;
	uint64_t *to = (uint64_t *)ret;

	_Static_assert(sizeof(*ret) % sizeof(uint64_t) == 0, "counters only");
	for (size_t i = 0; i < sizeof(*ret) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void bs_loop_count_token(struct bs_loop *l)
{
	count(&l->stats.token_refreshes, 1);
}

struct bs_list *bs_loop_sessions(struct bs_loop *l)
{
	return &l->sessions;
}

pthread_mutex_t *bs_loop_sessions_lock(struct bs_loop *l)
{
	return &l->sessions_lock;
}

bool bs_loop_stopping(const struct bs_loop *l)
{
	return __atomic_load_n(&l->stop, __ATOMIC_RELAXED);
}

void bs_http_cancel(struct bs_http *h)
{
	__atomic_store_n(&h->canceled, true, __ATOMIC_RELEASE);
	(void)curl_multi_wakeup(h->loop->multi);
}

void bs_http_resume(struct bs_http *h)
{
	__atomic_store_n(&h->resumed, true, __ATOMIC_RELEASE);
	(void)curl_multi_wakeup(h->loop->multi);
}

/* --- hosts ----------------------------------------------------------------------------------- */

static struct host *get_host(struct bs_loop *l, const char *url)
{
	const char *rest = strstr(url, "://");
	size_t len = rest ? (size_t)(rest + 3 - url) + strcspn(rest + 3, "/?#") : strlen(url);
	struct host *host = bs_map_get(&l->hosts, url, len);

	if (host)
		return host;
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	host->origin = bs_strf("%.*s", (int)len, url);
	if (!host->origin || bs_map_put(&l->hosts, host->origin, len, host) < 0) {
		free(host->origin);
		free(host);
		return NULL;
	}
	return host;
}

static void put_host(struct bs_loop *l, struct host *host)
{
	if (host->running || l->hosts.n <= HOSTS_KEPT)
		return;
	(void)bs_map_remove(&l->hosts, host->origin, strlen(host->origin));
	free(host->origin);
	free(host);
}

/* Whether something is to wait for so long; the loop will look again then. */
static bool rests(struct bs_loop *l, uint64_t ns)
{
	if (ns > 0 && (l->pause_ns == 0 || ns < l->pause_ns))
		l->pause_ns = ns;
	return ns > 0;
}

/* Whether the background lane pauses at the host. */
static bool pauses(struct bs_loop *l, struct host *host)
{
	unsigned int before = host->hot + (l->o.background_yields ? host->wants.all.running : 0);

	return rests(l, bs_yield_wait(&host->pause, bs_clock_ns(), before));
}

static bool makes_room(const struct bs_http *h, const struct host *host, uint64_t now)
{
	return h->lane != BS_LANE_DEMAND && bs_yield_makes_room(&host->wants, now, h->whose);
}

/* Whether it is not its turn beside the demand of another image. */
static bool waits_for_room(struct bs_loop *l, const struct host *host, const struct bs_http *h)
{
	const uint64_t now = bs_clock_ns();

	if (!makes_room(h, host, now))
		return false;
	bs_list_for_each(it, &l->running) {
		const struct bs_http *other = bs_list_entry(it, struct bs_http, link);

		if (other->host == host && makes_room(other, host, now))
			return true;
	}
	return rests(l, bs_yield_room_wait(&host->wants, now));
}

static bool may_start(struct bs_loop *l, struct host *host, const struct bs_http *h)
{
	unsigned int n = l->o.connections_per_host;

	if (h->lane == BS_LANE_DEMAND)
		return host->wants.all.running < n;
	if (host->running >= n || waits_for_room(l, host, h))
		return false;
	return h->lane == BS_LANE_HOT || (l->n_background < l->o.background_parallel &&
					  l->budget.bytes >= 0 && !pauses(l, host));
}

/* --- the budget of the background lane -------------------------------------------------------- */

static uint64_t rate(const struct bs_loop *l)
{
	const uint64_t r = __atomic_load_n(&l->background_rate, __ATOMIC_RELAXED);
	const unsigned int percent = __atomic_load_n(&l->background_share, __ATOMIC_RELAXED);
	const uint64_t share = percent ? bs_yield_rate(&l->whole, percent, bs_clock_ns()) : 0;

	return r && share ? BS_MIN(r, share) : r + share;
}

static void charge(struct bs_loop *l, struct bs_http *h, uint64_t bytes)
{
	if (h->lane == BS_LANE_BACKGROUND && rate(l))
		l->budget.bytes -= (int64_t)BS_MIN(bytes, (uint64_t)1 << 40);
}

/* --- the life of a request ------------------------------------------------------------------- */

void bs_http_start(struct bs_http *h)
{
	struct bs_loop *l = h->loop;

	assert(bs_loop_is_self(l));
	bs_http_reset(h);
	h->host = NULL;
	h->easy = NULL;
	bs_list_append(&l->queue[h->lane], &h->link);
	count(&l->stats.queued[h->lane], 1);
}

static CURL *get_easy(struct bs_loop *l)
{
	return l->n_pool ? l->pool[--l->n_pool] : curl_easy_init();
}

/*
 * A handle whose transfer failed is not used again: where no connection came about (no
 * such host) libcurl keeps its buffer and then refuses CURLOPT_BUFFERSIZE.
 */
static void put_easy(struct bs_loop *l, CURL *easy, bool failed)
{
	if (failed || l->n_pool == POOL_MAX) {
		curl_easy_cleanup(easy);
		return;
	}
	curl_easy_reset(easy);
	l->pool[l->n_pool++] = easy;
}

/* What came of h since the last time. */
static void tell_host(struct bs_http *h, uint64_t now)
{
	struct host *host = h->host;

	bs_yield_brought(&h->loop->whole, now, h->received - h->paced, h->loop->n_background > 0);
	bs_pace_host_brought(&host->pace, now, h->received - h->paced, host->running == 0);
	h->paced = h->received;
}

/* Takes h off libcurl and out of the books, then tells its owner. */
static void finish(struct bs_loop *l, struct bs_http *h)
{
	struct host *host = h->host;
	uint64_t bytes = h->received + __atomic_load_n(&h->sent, __ATOMIC_RELAXED);

	bs_list_remove(&h->link);
	if (h->easy) {
		long connections = 0;

		(void)curl_easy_getinfo(h->easy, CURLINFO_NUM_CONNECTS, &connections);
		count(&l->stats.connections, (uint64_t)BS_MAX(connections, 0));
		(void)curl_multi_remove_handle(l->multi, h->easy);
		put_easy(l, h->easy, h->result < 0);
		h->easy = NULL;
	}
	curl_slist_free_all(h->slist);
	h->slist = NULL;
	if (host) {
		const uint64_t now = bs_clock_ns();

		host->running--;
		tell_host(h, now);
		if (makes_room(h, host, now))
			bs_yield_room_over(&host->wants, now, now - h->begun_ns);
		l->n_running--;
		host->hot -= h->lane == BS_LANE_HOT;
		l->n_background -= h->lane == BS_LANE_BACKGROUND;
		if (h->lane == BS_LANE_DEMAND) {
			bs_yield_demand_over(&host->wants, now, h->whose);
			if (l->o.background_yields)
				bs_yield_demand_ended(&host->pause, now);
		}
		if (l->n_background == 0) /* a rest is not measured */
			bs_yield_brought(&l->whole, now, 0, false);
		put_host(l, host);
		h->host = NULL;
		uncount(&l->stats.running[h->lane]);
	} else {
		uncount(&l->stats.queued[h->lane]);
	}
	if (bytes > h->charged)
		charge(l, h, bytes - h->charged);
	count(&l->stats.bytes[h->lane], bytes);
	if (h->result < 0 || h->status == 429 || h->status >= 500)
		count(&l->stats.failures[h->lane], 1);
	h->done(h);
}

static void start(struct bs_loop *l, struct bs_http *h, struct host *host)
{
	uint64_t max = h->lane == BS_LANE_BACKGROUND ? rate(l) : 0;

	bs_list_remove(&h->link);
	bs_list_append(&l->running, &h->link);
	h->host = host;
	h->begun_ns = bs_clock_ns();
	if (host->running++ == 0)
		bs_pace_host_begin(&host->pace, h->begun_ns);
	l->n_running++;
	host->hot += h->lane == BS_LANE_HOT;
	l->n_background += h->lane == BS_LANE_BACKGROUND;
	if (h->lane == BS_LANE_DEMAND)
		bs_yield_demand_began(&host->wants, h->begun_ns, h->whose);
	if (h->lane == BS_LANE_BACKGROUND)
		bs_yield_started(&host->pause);
	uncount(&l->stats.queued[h->lane]);
	count(&l->stats.running[h->lane], 1);
	count(&l->stats.requests[h->lane], 1);
	if (h->started_ns)
		__atomic_store_n(h->started_ns, h->begun_ns, __ATOMIC_RELAXED);
	h->charged = h->expected_bytes;
	charge(l, h, h->charged);
	h->easy = get_easy(l);
	if (!h->easy ||
	    bs_http_prepare(h, h->easy, l->share, l->user_agent, l->o.connect_timeout_ns, max) <
		    0 ||
	    curl_multi_add_handle(l->multi, h->easy) != CURLM_OK) {
		bs_http_fail(h, -ENOMEM, "the request cannot be set up");
		finish(l, h);
	}
}

/* Starts what may start. true: something did, or failed at once. */
static bool start_queued(struct bs_loop *l)
{
	bool any = false;

	l->pause_ns = 0;
	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		struct bs_list *it = l->queue[lane].next, *next;

		/* done callbacks of failed starts only append, so next stays valid */
		for (; it != &l->queue[lane]; it = next) {
			struct bs_http *h = bs_list_entry(it, struct bs_http, link);
			struct host *host;

			next = it->next;
			if (lane == BS_LANE_BACKGROUND &&
			    (l->budget.bytes < 0 || l->n_background >= l->o.background_parallel))
				break;
			host = get_host(l, h->url);
			if (!host) {
				bs_http_fail(h, -ENOMEM, "out of memory");
				finish(l, h);
				any = true;
			} else if (may_start(l, host, h)) {
				start(l, h, host);
				any = true;
			} else if (lane == BS_LANE_DEMAND && !h->waited) {
				h->waited = true;
				count(&l->stats.demand_waited, 1);
			}
		}
	}
	return any;
}

/* Ends requests that ended in libcurl. true: some did. */
static bool conclude(struct bs_loop *l)
{
	bool any = false;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(l->multi, &left))) {
		struct bs_http *h = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&h);
		bs_http_conclude(h, (int)m->data.result);
		finish(l, h);
		any = true;
	}
	return any;
}

/* How long h may be silent. */
static uint64_t patience(const struct bs_loop *l, const struct bs_http *h)
{
	uint64_t ns = l->o.stall_timeout_ns, r = rate(l);

	if (h->has_body && h->answer_timeout_ns &&
	    __atomic_load_n(&h->sent, __ATOMIC_RELAXED) == h->body_len)
		ns = h->answer_timeout_ns;
	if (h->lane == BS_LANE_BACKGROUND && r) /* libcurl lets it rest to keep the rate */
		ns += (uint64_t)(256u << 10) * BS_NS_PER_S / r;
	return ns;
}

/* Its body comes, but too slowly to be waited for. */
static bool is_slow(const struct bs_loop *l, struct bs_http *h, uint64_t now)
{
	const struct host *host = h->host;
	bool limited = h->lane == BS_LANE_BACKGROUND && rate(l); /* by us */

	if (h->received == 0 || h->paused) {
		bs_pace_begin(&h->pace, now, h->received);
		return false;
	}
	return bs_pace_stalled(&h->pace, limited ? NULL : &host->pace, now, patience(l, h),
			       h->received, l->n_running);
}

/* Cancelled, resumed or stalled requests. */
static bool look_after(struct bs_loop *l, uint64_t now)
{
	bool stopping = bs_loop_stopping(l), any = false;

	bs_list_for_each(it, &l->running) {
		struct bs_http *h = bs_list_entry(it, struct bs_http, link);

		tell_host(h, now);
		if (__atomic_exchange_n(&h->resumed, false, __ATOMIC_ACQUIRE) && h->paused) {
			h->paused = false;
			h->last_ns = now;
			(void)curl_easy_pause(h->easy, CURLPAUSE_CONT);
			any = true;
		}
		if (stopping || __atomic_load_n(&h->canceled, __ATOMIC_ACQUIRE))
			bs_http_fail(h, -ECANCELED, "given up");
		else if (h->connected && !h->paused && now > h->last_ns + patience(l, h))
			bs_http_fail(h, -ETIMEDOUT, "no byte came for too long");
		else if (is_slow(l, h, now))
			bs_http_fail(h, -ETIMEDOUT, "hardly a byte came for too long");
		else
			continue;
		finish(l, h);
		any = true;
	}
	for (int lane = 0; lane < BS_LANE_MAX; lane++) {
		bs_list_for_each(it, &l->queue[lane]) {
			struct bs_http *h = bs_list_entry(it, struct bs_http, link);

			if (!stopping && !__atomic_load_n(&h->canceled, __ATOMIC_ACQUIRE))
				continue;
			bs_http_fail(h, -ECANCELED, "given up");
			finish(l, h);
			any = true;
		}
	}
	return any;
}

/* --- the loop -------------------------------------------------------------------------------- */

static struct bs_list *pop(struct bs_loop *l, struct bs_list *head)
{
	struct bs_list *first = NULL;

	(void)pthread_mutex_lock(&l->lock);
	if (!bs_list_empty(head)) {
		first = head->next;
		bs_list_remove(first);
	}
	(void)pthread_mutex_unlock(&l->lock);
	return first;
}

static bool run_tasks(struct bs_loop *l)
{
	struct bs_list *it;
	bool any = false;

	while ((it = pop(l, &l->posted))) {
		struct bs_task *t = bs_list_entry(it, struct bs_task, link);

		t->fn(t);
		any = true;
	}
	return any;
}

/* Runs the timers that are due (all of them when the loop ends). */
static bool run_timers(struct bs_loop *l, uint64_t now)
{
	bool any = false;

	for (;;) {
		struct bs_timer *t;

		(void)pthread_mutex_lock(&l->lock);
		t = bs_timers_take(&l->timers, l->stop ? UINT64_MAX - 1 : now);
		(void)pthread_mutex_unlock(&l->lock);
		if (!t)
			return any;
		t->fn(t->cookie);
		free(t);
		any = true;
	}
}

static int sleep_ms(struct bs_loop *l, uint64_t now)
{
	uint64_t ns = l->n_running ? BS_MIN(l->o.stall_timeout_ns / 4, BS_NS_PER_S)
				   : 3600 * BS_NS_PER_S;

	(void)pthread_mutex_lock(&l->lock);
	ns = BS_MIN(ns, bs_timers_wait(&l->timers, now));
	(void)pthread_mutex_unlock(&l->lock);
	if (l->budget.bytes < 0 && !bs_list_empty(&l->queue[BS_LANE_BACKGROUND]) && rate(l))
		ns = BS_MIN(ns, (uint64_t)-l->budget.bytes * (BS_NS_PER_S / BS_NS_PER_MS) /
					rate(l) * BS_NS_PER_MS);
	if (l->pause_ns > 0)
		ns = BS_MIN(ns, l->pause_ns);
	return (int)BS_MIN(bs_div_up(ns, BS_NS_PER_MS), (uint64_t)INT_MAX);
}

/* Nothing is left that would call somebody back. */
static bool is_over(struct bs_loop *l)
{
	bool over;

	(void)pthread_mutex_lock(&l->lock);
	over = l->stop && l->n_blocking == 0 && bs_list_empty(&l->posted) &&
	       bs_list_empty(&l->timers);
	(void)pthread_mutex_unlock(&l->lock);
	for (int lane = 0; over && lane < BS_LANE_MAX; lane++)
		over = bs_list_empty(&l->queue[lane]);
	return over && bs_list_empty(&l->running);
}

static void *loop_main(void *cookie)
{
	struct bs_loop *l = cookie;

	while (!is_over(l)) {
		uint64_t now = bs_clock_ns();
		bool again = run_tasks(l);
		int n;

		again |= run_timers(l, now);
		bs_yield_refill(&l->budget, now, rate(l));
		again |= start_queued(l);
		(void)curl_multi_perform(l->multi, &n);
		again |= conclude(l);
		again |= look_after(l, bs_clock_ns());
		if (!again)
			(void)curl_multi_poll(l->multi, NULL, 0, sleep_ms(l, now), NULL);
	}
	return NULL;
}

static void *helper_main(void *cookie)
{
	struct bs_loop *l = cookie;

	(void)pthread_mutex_lock(&l->lock);
	for (;;) {
		struct bs_task *t;

		while (bs_list_empty(&l->blocking) && !l->helper_stop)
			(void)pthread_cond_wait(&l->work, &l->lock);
		if (bs_list_empty(&l->blocking))
			break;
		t = bs_list_entry(l->blocking.next, struct bs_task, link);
		bs_list_remove(&t->link);
		(void)pthread_mutex_unlock(&l->lock);
		t->fn(t);
		(void)pthread_mutex_lock(&l->lock);
		l->n_blocking--;
		if (l->stop)
			(void)curl_multi_wakeup(l->multi);
	}
	(void)pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* --- making and ending ----------------------------------------------------------------------- */

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void init_curl(void)
{
	curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* Every thread that is started from here inherits the full mask. */
static int start_threads(struct bs_loop *l)
{
	sigset_t all, old;
	int r;

	(void)sigfillset(&all);
	r = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (r)
		return -r;
	/* under the lock, so that the first task sees l->thread */
	(void)pthread_mutex_lock(&l->lock);
	r = pthread_create(&l->thread, NULL, loop_main, l);
	l->thread_runs = r == 0;
	(void)pthread_mutex_unlock(&l->lock);
	if (r == 0) {
		r = pthread_create(&l->helper, NULL, helper_main, l);
		l->helper_runs = r == 0;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -r;
}

static void fill_options(struct bs_loop *l, const struct bs_loop_options *o)
{
	if (o)
		l->o = *o;
	if (!l->o.connections_per_host)
		l->o.connections_per_host = 8;
	if (!l->o.background_parallel)
		l->o.background_parallel = l->o.connections_per_host;
	if (!l->o.connect_timeout_ns)
		l->o.connect_timeout_ns = 10 * BS_NS_PER_S;
	if (!l->o.stall_timeout_ns)
		l->o.stall_timeout_ns = 15 * BS_NS_PER_S;
	l->user_agent = bs_strf("%s", l->o.user_agent ? l->o.user_agent : PACKAGE "/" VERSION);
}

static int init_curl_handles(struct bs_loop *l)
{
	(void)pthread_once(&curl_once, init_curl);
	if (curl_ready != CURLE_OK)
		return -EIO;
	l->multi = curl_multi_init();
	l->share = curl_share_init();
	if (!l->multi || !l->share)
		return -ENOMEM;
	/* used by one thread only, so no lock functions */
	(void)curl_share_setopt(l->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
	(void)curl_multi_setopt(l->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
	(void)curl_multi_setopt(l->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, STREAMS_PER_CONNECTION);
	(void)curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS,
				(long)l->o.connections_per_host * 8);
	return 0;
}

int bs_loop_new(const struct bs_loop_options *o, struct bs_loop **ret, struct bs_error *err)
{
	bs_auto(loop) struct bs_loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return bs_fail(err, -ENOMEM, "network loop: out of memory");
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_mutex_init(&l->sessions_lock, NULL);
	(void)pthread_cond_init(&l->work, NULL);
	bs_list_init(&l->posted);
	bs_list_init(&l->blocking);
	bs_list_init(&l->timers);
	bs_list_init(&l->sessions);
	bs_list_init(&l->running);
	for (int lane = 0; lane < BS_LANE_MAX; lane++)
		bs_list_init(&l->queue[lane]);
	bs_map_init(&l->hosts);
	l->budget.filled_ns = bs_clock_ns();
	fill_options(l, o);
	r = l->user_agent ? init_curl_handles(l) : -ENOMEM;
	if (r == 0)
		r = start_threads(l);
	if (r < 0)
		return bs_fail_errno(err, r, "network loop");
	*ret = bs_take(&l);
	return 0;
}

struct bs_loop *bs_loop_free(struct bs_loop *l)
{
	struct host *host;
	size_t pos = 0;

	if (!l)
		return NULL;
	(void)pthread_mutex_lock(&l->lock);
	__atomic_store_n(&l->stop, true, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&l->lock);
	if (l->thread_runs) {
		(void)curl_multi_wakeup(l->multi);
		(void)pthread_join(l->thread, NULL);
	}
	(void)pthread_mutex_lock(&l->lock);
	l->helper_stop = true;
	(void)pthread_cond_signal(&l->work);
	(void)pthread_mutex_unlock(&l->lock);
	if (l->helper_runs)
		(void)pthread_join(l->helper, NULL);
	while (l->n_pool)
		curl_easy_cleanup(l->pool[--l->n_pool]);
	if (l->multi)
		(void)curl_multi_cleanup(l->multi);
	if (l->share)
		(void)curl_share_cleanup(l->share);
	while ((host = bs_map_next(&l->hosts, &pos))) {
		free(host->origin);
		free(host);
	}
	bs_map_done(&l->hosts);
	(void)pthread_cond_destroy(&l->work);
	(void)pthread_mutex_destroy(&l->sessions_lock);
	(void)pthread_mutex_destroy(&l->lock);
	free(l->user_agent);
	free(l);
	return NULL;
}
