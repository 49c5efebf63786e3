/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/read.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "hdfs/blocks.h"
#include "hdfs/ev.h"
#include "hdfs/readpriv.h"

#define PIECE_BYTES ((size_t)4 << 20)
#define NODE_BYTES ((size_t)8 << 20)
#define SLOW_HEDGES 5u /* hedge times that a slow attempt would take still */
#define SLOW_FACTOR 8u /* so much quicker another DataNode of late has to have been */
#define ROUNDS_MAX 2u  /* all replicas are tried so often, then the owner may know more */
#define LOOK_AGAIN_NS (200 * BS_NS_PER_MS)
#define PLAIN_REFUSED_NS (60 * BS_NS_PER_S)

static void count(uint64_t *counter, uint64_t n)
{
	(void)__atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
}

/* --- pieces ---------------------------------------------------------------------------------- */

static void release(struct bs_attempt *a)
{
	struct bs_dn *node = a->dn.node;

	a->runs = false;
	node->running--;
	node->load -= a->asked;
	a->asked = 0;
}

static void stop_attempt(struct bs_reader *rd, struct bs_attempt *a)
{
	if (!a->runs)
		return;
	if (a->open)
		bs_open_cancel(a->open);
	a->open = NULL;
	bs_dn_read_cancel(&rd->pool, &a->dn);
	release(a);
}

static void end_read(struct bs_read *r)
{
	struct bs_reader *rd = r->reader;

	bs_list_remove(&r->link);
	free(r->pieces);
	r->pieces = NULL;
	rd->again = true;
	r->done(r);
}

/* The piece is over; r may be gone afterwards. */
static void end_piece(struct bs_reader *rd, struct bs_piece *p, int result, const char *text)
{
	struct bs_read *r = p->read;

	for (int i = 0; i < BS_ATTEMPTS; i++)
		stop_attempt(rd, &p->attempts[i]);
	bs_list_remove(&p->link);
	p->over = true;
	p->result = result;
	rd->again = true;
	if (result < 0) {
		uint64_t from = p->block->off + p->off, end = from + p->len;

		if (r->bad_len) {
			end = BS_MAX(end, r->bad_off + r->bad_len);
			from = BS_MIN(from, r->bad_off);
		}
		r->bad_off = from;
		r->bad_len = (size_t)(end - from);
		if (r->result == 0) {
			r->result = result;
			(void)snprintf(r->text, sizeof(r->text), "%s", text);
		}
	}
	if (--r->n_left == 0)
		end_read(r);
}

static void on_data(struct bs_dn_read *dn, const void *data, size_t len)
{
	struct bs_attempt *a = BS_CONTAINER_OF(dn, struct bs_attempt, dn);
	struct bs_piece *p = a->piece;
	size_t at = a->from + dn->got - len; /* got counts them already */

	/* a rival may be further on: the bytes are the same */
	if (at + len > p->got) {
		size_t skip = p->got > at ? p->got - at : 0;

		memcpy(p->to + at + skip, (const uint8_t *)data + skip, len - skip);
		p->got = at + len;
	}
	a->asked -= BS_MIN(a->asked, len);
	dn->node->load -= BS_MIN(dn->node->load, (uint64_t)len);
	count(&dn->node->bytes, len);
	count(&p->read->reader->stats.bytes, len);
	p->read->reader->again |= bs_pick_has_room(p->read->reader, dn->node,
						   p->read->reader->o.piece_bytes);
}

static void learn_rate(struct bs_dn *node, const struct bs_attempt *a, uint64_t now)
{
	uint64_t ns = now - a->began_ns, rate;

	if (a->dn.got < (256u << 10) || ns == 0)
		return;
	rate = (uint64_t)((unsigned __int128)a->dn.got * BS_NS_PER_S / ns);
	node->rate = node->rate ? (3 * node->rate + rate) / 4 : rate;
}

/* What a failed attempt says of the DataNode and the replica. */
static void learn_failure(struct bs_reader *rd, const struct bs_attempt *a, int result)
{
	struct bs_dn *node = a->dn.node;
	uint64_t now = bs_clock_ns();

	switch (result) {
	case -EBADMSG:
		bs_pick_remember_bad(rd, a->piece->block, node);
		break;
	case -EPROTONOSUPPORT:
		node->plain_refused_until_ns = now + PLAIN_REFUSED_NS;
		break;
	case -EACCES:
	case -ENOMEM:
		break;
	default:
		bs_pick_suspect(node, now);
	}
}

static bool others_run(const struct bs_piece *p)
{
	for (int i = 0; i < BS_ATTEMPTS; i++) {
		if (p->attempts[i].runs)
			return true;
	}
	return false;
}

static void wait_again(struct bs_reader *rd, struct bs_piece *p)
{
	bs_list_remove(&p->link);
	bs_list_append(&rd->waiting, &p->link);
	rd->again = true;
}

static void failed(struct bs_reader *rd, struct bs_attempt *a, int result)
{
	struct bs_piece *p = a->piece;
	char text[sizeof(a->dn.text)];

	learn_failure(rd, a, result);
	(void)snprintf(text, sizeof(text), "%s", a->dn.text);
	count(&rd->stats.retries, 1);
	if (result == -EACCES) { /* all of them will say so */
		end_piece(rd, p, result, text);
		return;
	}
	if (result == -EPROTONOSUPPORT && p->read->http && rd->o.loop) {
		if (!others_run(p)) /* the same one once more, by HTTP */
			wait_again(rd, p);
		return;
	}
	p->tried |= 1u << a->replica;
	p->result = result;
	(void)snprintf(p->read->text, sizeof(p->read->text), "%s", text);
	if (!others_run(p))
		wait_again(rd, p);
}

static void attempt_done(struct bs_dn_read *dn)
{
	struct bs_attempt *a = BS_CONTAINER_OF(dn, struct bs_attempt, dn);
	struct bs_piece *p = a->piece;
	struct bs_reader *rd = p->read->reader;

	release(a);
	learn_rate(dn->node, a, bs_clock_ns());
	if (dn->result < 0) {
		failed(rd, a, dn->result);
		return;
	}
	dn->node->strikes = 0;
	dn->node->suspect_until_ns = 0;
	assert(p->got == p->len);
	end_piece(rd, p, 0, "");
}

void bs_read_opened(struct bs_attempt *a, const void *bytes, size_t len)
{
	a->open = NULL;
	if (a->dn.result == 0) {
		count(&a->piece->read->reader->stats.http_bytes, len);
		a->piece->read->by_http = true;
		a->dn.got = len;
		on_data(&a->dn, bytes, len);
	}
	attempt_done(&a->dn);
}

/* --- scheduling ------------------------------------------------------------------------------ */

static int start_at(struct bs_reader *rd, struct bs_piece *p, const struct bs_choice *c)
{
	const struct bs_replica *rp = &p->block->replicas[c->replica];
	struct bs_attempt *a = p->attempts[0].runs ? &p->attempts[1] : &p->attempts[0];
	uint64_t now = bs_clock_ns();
	bool http = p->read->http_only || rd->o.http_always ||
		    c->node->plain_refused_until_ns > now;
	int r;

	if (http && (!p->read->http || !rd->o.loop))
		return -EPROTONOSUPPORT;
	*a = (struct bs_attempt){
		.piece = p, .replica = c->replica, .from = p->got, .began_ns = now
	};
	a->dn = (struct bs_dn_read){ .node = c->node,
				     .block = p->block,
				     .off = p->off + p->got,
				     .len = p->len - p->got,
				     .data = on_data,
				     .done = attempt_done,
				     .last_ns = now };
	r = http ? bs_open_start(&rd->o, rd->ev, a, rp) : bs_dn_read_start(&rd->pool, &a->dn);
	a->runs = true;
	a->asked = a->dn.len;
	c->node->load += a->asked;
	c->node->running++;
	if (r < 0) {
		(void)snprintf(a->dn.text, sizeof(a->dn.text), "DataNode %s: %s", c->node->key,
			       strerror(-r));
		release(a);
		failed(rd, a, r == -ENOMEM ? r : -EHOSTUNREACH);
		return 0;
	}
	bs_list_remove(&p->link);
	bs_list_append(&rd->running, &p->link);
	return 0;
}

/* Every replica failed or is known to be bad. */
static void exhausted(struct bs_reader *rd, struct bs_piece *p)
{
	const struct bs_block *k = p->block;
	int result = p->result ? p->result : -ENODATA;
	bool all_bad = k->n_replicas > 0;
	char text[160];

	for (unsigned int i = 0; i < k->n_replicas; i++)
		all_bad &= bs_pick_is_bad(rd, k, p->nodes[i]);
	if (!all_bad && p->result && ++p->rounds < ROUNDS_MAX && p->result != -EBADMSG) {
		p->tried = 0;
		rd->again = true;
		return;
	}
	if (all_bad)
		result = -EBADMSG;
	if (all_bad || k->n_replicas == 0)
		(void)snprintf(text, sizeof(text), "block %llu: %s", (unsigned long long)k->id,
			       all_bad ? "no replica has right bytes" : "no DataNode holds it");
	else
		(void)snprintf(text, sizeof(text), "%s", p->read->text);
	end_piece(rd, p, result, text);
}

static void schedule(struct bs_reader *rd)
{
	while (rd->again && !bs_list_empty(&rd->waiting)) {
		uint64_t now = bs_clock_ns();
		struct bs_piece *p;
		struct bs_choice c;

		rd->again = false;
		bs_pick_find_demand(rd);
		while ((p = bs_pick_piece(rd, now, &c))) {
			if (!c.node) {
				exhausted(rd, p);
				rd->again = true;
				break;
			}
			bs_pick_took(rd, p, &c);
			if (start_at(rd, p, &c) < 0)
				end_piece(rd, p, -EPROTONOSUPPORT, "the DataNode speaks HTTP only");
		}
	}
	rd->again = false;
}

/*
 * A rival for a piece whose attempts are silent. Where two are, the one that has been for
 * longer makes room.
 */
static void hedge(struct bs_reader *rd, struct bs_piece *p, uint64_t now)
{
	struct bs_attempt *one = &p->attempts[0], *two = &p->attempts[1];
	struct bs_choice c;

	for (int i = 0; i < BS_ATTEMPTS; i++) {
		if (p->attempts[i].runs)
			bs_pick_suspect(p->attempts[i].dn.node, now);
	}
	if (bs_pick_replica(rd, p, now, &c) <= 0 || c.cost >= BS_COST_SUSPECT)
		return;
	if (one->runs && two->runs) {
		struct bs_attempt *old = one->began_ns < two->began_ns ? one : two;

		p->tried |= 1u << old->replica;
		stop_attempt(rd, old);
	}
	if (start_at(rd, p, &c) == 0)
		count(&rd->stats.hedges, 1);
}

/* When all attempts of a piece have been silent. */
static uint64_t silent_at(const struct bs_reader *rd, const struct bs_piece *p)
{
	uint64_t last = 0;

	for (int i = 0; i < BS_ATTEMPTS; i++) {
		const struct bs_attempt *a = &p->attempts[i];

		if (a->runs)
			last = BS_MAX(last, a->open ? bs_open_last_ns(a->open) : a->dn.last_ns);
	}
	return last + rd->o.hedge_ns;
}

/* Its only attempt is not silent, but will take long still. */
static const struct bs_attempt *slow_attempt(const struct bs_reader *rd, const struct bs_piece *p,
					     uint64_t now)
{
	const struct bs_attempt *a = &p->attempts[p->attempts[0].runs ? 0 : 1];
	uint64_t age = now - a->began_ns, left = a->dn.len - a->dn.got;

	if (p->attempts[0].runs == p->attempts[1].runs || a->open || age < rd->o.hedge_ns ||
	    a->dn.got == 0)
		return NULL;
	return (unsigned __int128)left * age > (unsigned __int128)a->dn.got * rd->o.hedge_ns ? a
											     : NULL;
}

/* A slow link is no trouble while there is other work; at the end it is what all wait for. */
static void help_out(struct bs_reader *rd, struct bs_piece *p, uint64_t now)
{
	struct bs_choice c;

	if (!bs_list_empty(&rd->waiting) || !slow_attempt(rd, p, now) ||
	    bs_pick_replica(rd, p, now, &c) <= 0 || c.cost >= BS_COST_TROUBLE ||
	    c.node->running > 0)
		return;
	if (start_at(rd, p, &c) == 0)
		count(&rd->stats.hedges, 1);
}

/* It goes on, but another replica would be there long before: its DataNode is not well. */
static bool is_outdone(const struct bs_reader *rd, const struct bs_piece *p, uint64_t now)
{
	const struct bs_attempt *a = slow_attempt(rd, p, now);
	uint64_t age, rate;

	if (!a)
		return false;
	age = now - a->began_ns;
	if ((unsigned __int128)(a->dn.len - a->dn.got) * age <
	    (unsigned __int128)a->dn.got * rd->o.hedge_ns * SLOW_HEDGES)
		return false;
	rate = (uint64_t)((unsigned __int128)a->dn.got * BS_NS_PER_S / age);
	for (unsigned int i = 0; i < p->block->n_replicas; i++) {
		if (i != a->replica && p->nodes[i]->rate / SLOW_FACTOR > rate)
			return true;
	}
	return false;
}

static uint64_t look_at_running(struct bs_reader *rd, uint64_t now)
{
	uint64_t until = now + 3600 * BS_NS_PER_S;
	struct bs_list *it, *next;

	for (it = rd->running.next; it != &rd->running; it = next) {
		struct bs_piece *p = bs_list_entry(it, struct bs_piece, link);
		uint64_t at = silent_at(rd, p);

		next = it->next;
		if (now >= at || is_outdone(rd, p, now)) {
			hedge(rd, p, now);
			at = now + LOOK_AGAIN_NS;
		} else {
			help_out(rd, p, now);
		}
		until = BS_MIN(until, at);
	}
	return until;
}

static uint64_t look_at_deadlines(struct bs_reader *rd, uint64_t now, int all)
{
	uint64_t until = now + 3600 * BS_NS_PER_S;

	for (struct bs_list *it = rd->reads.next; it != &rd->reads;) {
		struct bs_read *r = bs_list_entry(it, struct bs_read, link);
		size_t n = r->n_pieces;

		if (now < r->deadline_ns && !all) {
			until = BS_MIN(until, r->deadline_ns);
			it = it->next;
			continue;
		}
		for (size_t i = 0; i < n; i++) {
			bool last = r->n_left == 1;

			if (r->pieces[i].over)
				continue;
			end_piece(rd, &r->pieces[i], all ? all : -ETIMEDOUT,
				  all ? "given up" : "not all came in time");
			if (last)
				break; /* r and its pieces are gone */
		}
		it = rd->reads.next;
	}
	return until;
}

static uint64_t tick(void *cookie, uint64_t now)
{
	struct bs_reader *rd = cookie;
	uint64_t until = bs_dn_tick(&rd->pool, now), at;

	at = look_at_deadlines(rd, now, 0);
	until = BS_MIN(until, at);
	if (now >= rd->look_again_ns) { /* a suspect may be one no more */
		rd->again = true;
		rd->look_again_ns = now + LOOK_AGAIN_NS;
	}
	/* who waits for a silent DataNode comes first, else others take all the room again */
	at = look_at_running(rd, now);
	until = BS_MIN(until, at);
	schedule(rd);
	if (!bs_list_empty(&rd->running))
		until = BS_MIN(until, now + rd->o.hedge_ns);
	if (!bs_list_empty(&rd->waiting))
		until = BS_MIN(until, now + LOOK_AGAIN_NS);
	__atomic_store_n(&rd->stats.connections, rd->pool.connections, __ATOMIC_RELAXED);
	__atomic_store_n(&rd->stats.reused, rd->pool.reused, __ATOMIC_RELAXED);
	return rd->again ? now : until;
}

/* --- reads ----------------------------------------------------------------------------------- */

static void fail_at_once(struct bs_read *r, int result, const char *text)
{
	r->result = result;
	r->bad_off = r->off;
	r->bad_len = r->len;
	(void)snprintf(r->text, sizeof(r->text), "%s", text);
	r->done(r);
}

static void list_node(struct bs_reader *rd, struct bs_dn *node)
{
	if (node->listed || rd->n_listed == BS_READER_NODES_MAX)
		return;
	node->listed = true;
	rd->listed[rd->n_listed] = node;
	__atomic_store_n(&rd->n_listed, rd->n_listed + 1, __ATOMIC_RELEASE);
}

size_t bs_reader_nodes(struct bs_reader *rd, struct bs_reader_node ret[BS_READER_NODES_MAX])
{
	const unsigned int n = __atomic_load_n(&rd->n_listed, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < n; i++)
		ret[i] = (struct bs_reader_node){
			.address = rd->listed[i]->key,
			.bytes = __atomic_load_n(&rd->listed[i]->bytes, __ATOMIC_RELAXED),
			.rate = __atomic_load_n(&rd->listed[i]->rate, __ATOMIC_RELAXED),
		};
	return n;
}

static int find_nodes(struct bs_reader *rd, struct bs_piece *p)
{
	for (unsigned int i = 0; i < p->block->n_replicas; i++) {
		const struct bs_replica *rp = &p->block->replicas[i];

		p->nodes[i] = bs_dn_get(&rd->pool, rp->address, rp->xfer_port);
		if (!p->nodes[i])
			return -ENOMEM;
		list_node(rd, p->nodes[i]);
	}
	return 0;
}

/* Gives how many pieces there are; 0: not all of the range has blocks. */
static size_t cut(const struct bs_reader *rd, struct bs_read *r, struct bs_piece *pieces)
{
	uint64_t off = r->off, end = r->off + r->len;
	size_t n = 0;

	while (off < end) {
		const struct bs_block *k = bs_blocks_find(r->blocks, off);
		uint64_t in = k ? off - k->off : 0, len;

		if (!k)
			return 0;
		len = BS_MIN(k->len - in, end - off);
		len = BS_MIN(len, (uint64_t)(rd->o.piece_bytes - in % rd->o.piece_bytes));
		if (pieces) {
			pieces[n] = (struct bs_piece){ .read = r,
						       .block = k,
						       .off = in,
						       .len = (size_t)len,
						       .to = (uint8_t *)r->buf + (off - r->off) };
			bs_list_init(&pieces[n].link);
		}
		n++;
		off += len;
	}
	return n;
}

static void begin(struct bs_task *t)
{
	struct bs_read *r = BS_CONTAINER_OF(t, struct bs_read, task);
	struct bs_reader *rd = r->reader;

	r->n_pieces = cut(rd, r, NULL);
	if (r->n_pieces == 0) {
		fail_at_once(r, -ENODATA, "the NameNode knows no block there");
		return;
	}
	r->pieces = calloc(r->n_pieces, sizeof(*r->pieces));
	if (r->pieces)
		(void)cut(rd, r, r->pieces);
	for (size_t i = 0; r->pieces && i < r->n_pieces; i++) {
		if (find_nodes(rd, &r->pieces[i]) < 0) {
			free(r->pieces);
			r->pieces = NULL;
		}
	}
	if (!r->pieces) {
		fail_at_once(r, -ENOMEM, "out of memory");
		return;
	}
	r->n_left = r->n_pieces;
	bs_list_append(&rd->reads, &r->link);
	for (size_t i = 0; i < r->n_pieces; i++)
		bs_list_append(&rd->waiting, &r->pieces[i].link);
	count(&rd->stats.pieces, r->n_pieces);
	rd->again = true;
}

void bs_reader_start(struct bs_reader *rd, struct bs_read *r)
{
	r->reader = rd;
	r->result = 0;
	r->text[0] = '\0';
	r->bad_len = 0;
	r->pieces = NULL;
	r->task.fn = begin;
	bs_list_init(&r->link);
	bs_ev_post(rd->ev, &r->task);
}

void bs_reader_stats(struct bs_reader *rd, struct bs_reader_stats *ret)
{
	const uint64_t *from = (const uint64_t *)&rd->stats;
	uint64_t *to = (uint64_t *)ret;

	_Static_assert(sizeof(*ret) % sizeof(uint64_t) == 0, "counters only");
	for (size_t i = 0; i < sizeof(*ret) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

static void stop(void *cookie)
{
	struct bs_reader *rd = cookie;

	(void)look_at_deadlines(rd, bs_clock_ns(), -ECANCELED);
	bs_dn_pool_done(&rd->pool);
}

int bs_reader_new(const struct bs_reader_options *o, struct bs_reader **ret, struct bs_error *err)
{
	struct bs_reader *rd = calloc(1, sizeof(*rd));
	struct bs_ev_owner owner = { .tick = tick, .stop = stop, .cookie = rd };
	int r;

	if (!rd)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	rd->o = *o;
	if (!rd->o.piece_bytes)
		rd->o.piece_bytes = PIECE_BYTES;
	if (!rd->o.node_bytes)
		rd->o.node_bytes = NODE_BYTES;
	if (!rd->o.hedge_ns)
		rd->o.hedge_ns = BS_NS_PER_S;
	bs_list_init(&rd->reads);
	bs_list_init(&rd->waiting);
	bs_list_init(&rd->running);
	bs_dn_pool_init(&rd->pool, NULL);
	if (o->connect_ns)
		rd->pool.connect_ns = o->connect_ns;
	if (o->stall_ns)
		rd->pool.stall_ns = o->stall_ns;
	r = bs_ev_new(&owner, &rd->ev, err);
	if (r < 0) {
		free(rd);
		return r;
	}
	rd->pool.ev = rd->ev;
	*ret = rd;
	return 0;
}

struct bs_reader *bs_reader_free(struct bs_reader *rd)
{
	if (!rd)
		return NULL;
	(void)bs_ev_free(rd->ev);
	free(rd);
	return NULL;
}
