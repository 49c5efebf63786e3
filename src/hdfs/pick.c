/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Which piece is read next, and from which replica. */
#include "config.h"

#include <errno.h>

#include "base/clock.h"
#include "hdfs/readpriv.h"

#define NODE_RUNNING_MAX 32u
#define BAD_NS (300 * BS_NS_PER_S)
#define SUSPECT_NS (2 * BS_NS_PER_S)
#define SUSPECT_MAX_NS (30 * BS_NS_PER_S)

bool bs_pick_is_bad(const struct bs_reader *rd, const struct bs_block *k, const struct bs_dn *node)
{
	for (size_t i = 0; i < BS_MIN(rd->next_bad, BS_BAD_KEPT); i++) {
		if (rd->bad[i].node == node && rd->bad[i].id == k->id &&
		    bs_clock_ns() < rd->bad[i].until_ns && rd->bad[i].generation == k->generation)
			return true;
	}
	return false;
}

void bs_pick_remember_bad(struct bs_reader *rd, const struct bs_block *k, const struct bs_dn *node)
{
	if (bs_pick_is_bad(rd, k, node))
		return;
	rd->bad[rd->next_bad++ % BS_BAD_KEPT] = (struct bs_bad){ k->id, k->generation, node,
								 bs_clock_ns() + BAD_NS };
	(void)__atomic_add_fetch(&rd->stats.bad_replicas, 1, __ATOMIC_RELAXED);
}

/* Failures count for longer each time; a success forgets them. */
void bs_pick_suspect(struct bs_dn *node, uint64_t now)
{
	uint64_t ns = SUSPECT_NS << BS_MIN(node->strikes, 4u);

	if (now < node->suspect_until_ns)
		return; /* others of the same moment */
	node->strikes++;
	node->suspect_until_ns = now + BS_MIN(ns, SUSPECT_MAX_NS);
}

/* Lower is better: trouble counts before load. */
static uint64_t cost_of(const struct bs_replica *rp, const struct bs_dn *node, uint64_t now)
{
	uint64_t cost = node->demand;

	if (node->suspect_until_ns > now)
		cost += BS_COST_SUSPECT;
	if (rp->last_resort)
		cost += BS_COST_TROUBLE;
	return cost;
}

bool bs_pick_has_room(const struct bs_reader *rd, const struct bs_dn *node, size_t len)
{
	return node->running == 0 ||
	       (node->load + len <= rd->o.node_bytes && node->running < NODE_RUNNING_MAX);
}

static bool in_use(const struct bs_piece *p, unsigned int replica)
{
	for (int i = 0; i < BS_ATTEMPTS; i++) {
		if (p->attempts[i].runs && p->attempts[i].replica == replica)
			return true;
	}
	return false;
}

static bool may_try(const struct bs_reader *rd, const struct bs_piece *p, unsigned int replica)
{
	return !(p->tried & 1u << replica) && !in_use(p, replica) &&
	       !bs_pick_is_bad(rd, p->block, p->nodes[replica]);
}

/*
 * The best replica that was not tried. 1, 0 when there is none that could be tried, -EBUSY when
 * all that could have enough to do.
 */
int bs_pick_replica(struct bs_reader *rd, const struct bs_piece *p, uint64_t now,
		    struct bs_choice *ret)
{
	const struct bs_block *k = p->block;
	bool any = false, found = false;

	rd->next_replica++;
	for (unsigned int n = 0; n < k->n_replicas; n++) {
		unsigned int i = (n + rd->next_replica) % k->n_replicas;
		struct bs_dn *node = p->nodes[i];
		uint64_t cost;

		if (!may_try(rd, p, i))
			continue;
		any = true;
		cost = cost_of(&k->replicas[i], node, now);
		if (!bs_pick_has_room(rd, node, p->len - p->got) || (found && cost >= ret->cost))
			continue;
		found = true;
		*ret = (struct bs_choice){ node, i, cost };
	}
	return found ? 1 : any ? -EBUSY : 0;
}

/* A suspect DataNode is not worth a hedge, nor is waiting for it when others only are busy. */
static bool only_suspects_have_room(const struct bs_reader *rd, const struct bs_piece *p,
				    const struct bs_choice *c, uint64_t now)
{
	if (c->cost < BS_COST_TROUBLE)
		return false;
	for (unsigned int i = 0; i < p->block->n_replicas; i++) {
		if (may_try(rd, p, i) &&
		    cost_of(&p->block->replicas[i], p->nodes[i], now) < BS_COST_TROUBLE)
			return true;
	}
	return false;
}

static unsigned int n_candidates(const struct bs_reader *rd, const struct bs_piece *p)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->block->n_replicas; i++)
		n += may_try(rd, p, i);
	return n;
}

static void add_demand(const struct bs_reader *rd, const struct bs_piece *p, bool add)
{
	unsigned int n = n_candidates(rd, p);
	uint64_t part = n ? (p->len - p->got) / n : 0;

	for (unsigned int i = 0; i < p->block->n_replicas; i++) {
		if (may_try(rd, p, i))
			p->nodes[i]->demand += add ? part : -BS_MIN(part, p->nodes[i]->demand);
	}
}

void bs_pick_find_demand(struct bs_reader *rd)
{
	struct bs_dn *node;
	size_t pos = 0;

	while ((node = bs_map_next(&rd->pool.nodes, &pos)))
		node->demand = node->load;
	bs_list_for_each(it, &rd->waiting)
		add_demand(rd, bs_list_entry(it, struct bs_piece, link), true);
}

/*
 * How badly others could take it: the demand for that one of its other DataNodes which has
 * the least. A DataNode that has many pieces to choose from leaves to others what they can do.
 */
static uint64_t score_of(const struct bs_reader *rd, const struct bs_piece *p,
			 const struct bs_choice *c)
{
	uint64_t score = UINT64_MAX;

	for (unsigned int i = 0; i < p->block->n_replicas; i++) {
		if (i != c->replica && may_try(rd, p, i))
			score = BS_MIN(score, p->nodes[i]->demand);
	}
	return score;
}

struct bs_piece *bs_pick_piece(struct bs_reader *rd, uint64_t now, struct bs_choice *ret)
{
	struct bs_piece *best = NULL;
	uint64_t best_score = 0;

	bs_list_for_each(it, &rd->waiting) {
		struct bs_piece *p = bs_list_entry(it, struct bs_piece, link);
		struct bs_choice c;
		uint64_t score;
		int r;

		if (best && p->read != best->read)
			break;
		r = bs_pick_replica(rd, p, now, &c);
		if (r == 0) {
			*ret = (struct bs_choice){ 0 };
			return p;
		}
		if (r < 0 || only_suspects_have_room(rd, p, &c, now))
			continue;
		score = score_of(rd, p, &c);
		if (best && score <= best_score)
			continue;
		best = p;
		best_score = score;
		*ret = c;
	}
	return best;
}

void bs_pick_took(struct bs_reader *rd, struct bs_piece *p, const struct bs_choice *c)
{
	add_demand(rd, p, false);
	c->node->demand += p->len - p->got;
}
