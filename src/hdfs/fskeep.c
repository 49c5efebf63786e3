/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/fskeep.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/map.h"
#include "base/mem.h"

#define MAGIC UINT64_C(0x31304b5046534221)
#define NODES_MAX (1u << 20)
#define HANDLES_MAX (1u << 16)
#define GENERATION_SHIFT 48 /* addresses of programs have no bits there */

struct memory {
	uint64_t magic, last_id;
	uint32_t used_nodes, used_handles; /* entries behind these were never used */
	uint32_t overflow;
	struct bs_fskeep_handle handles[HANDLES_MAX];
	struct bs_fskeep_node nodes[NODES_MAX];
};

struct bs_fskeep {
	struct memory *m;
	pthread_mutex_t lock; /* guards what follows */
	uint32_t *free_nodes, *free_handles;
	size_t n_free_nodes, cap_nodes, n_free_handles, cap_handles;
};

/* Of the process: handles are found without knowing the filesystem. Set before it serves. */
static uint64_t generation;
static struct bs_map adopted;

struct adopted_handle {
	uint64_t fh;
	void *handle;
};

uint64_t bs_fskeep_bytes(void)
{
	return sizeof(struct memory);
}

static int find_free(struct bs_fskeep *k)
{
	for (uint32_t i = BS_MIN(k->m->used_nodes, NODES_MAX); i > 0; i--) {
		if (k->m->nodes[i - 1].valid)
			continue;
		if (bs_grow(&k->free_nodes, &k->cap_nodes, k->n_free_nodes + 1,
			    sizeof(*k->free_nodes)) < 0)
			return -ENOMEM;
		k->free_nodes[k->n_free_nodes++] = i;
	}
	for (uint32_t i = BS_MIN(k->m->used_handles, HANDLES_MAX); i > 0; i--) {
		if (k->m->handles[i - 1].kind)
			continue;
		if (bs_grow(&k->free_handles, &k->cap_handles, k->n_free_handles + 1,
			    sizeof(*k->free_handles)) < 0)
			return -ENOMEM;
		k->free_handles[k->n_free_handles++] = i;
	}
	return 0;
}

int bs_fskeep_open(int fd, uint32_t number, struct bs_fskeep **ret, struct bs_error *err)
{
	struct bs_fskeep *k;
	struct stat st;
	void *m;

	if (fstat(fd, &st) < 0)
		return bs_fail_errno(err, -errno, "look at the kept memory");
	if ((uint64_t)st.st_size != sizeof(struct memory) || number == 0 ||
	    number > BS_FSKEEP_GENERATIONS)
		return bs_fail(err, -EINVAL, "the kept memory is another program's");
	m = mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		 fd, 0);
	if (m == MAP_FAILED)
		return bs_fail_errno(err, -errno, "map the kept memory");
	k = calloc(1, sizeof(*k));
	if (!k) {
		(void)munmap(m, sizeof(struct memory));
		return bs_fail(err, -ENOMEM, "out of memory");
	}
	k->m = m;
	(void)pthread_mutex_init(&k->lock, NULL);
	bs_map_init(&adopted);
	generation = number;
	if (k->m->magic == 0)
		k->m->magic = MAGIC;
	if (k->m->magic != MAGIC || find_free(k) < 0) {
		(void)bs_fskeep_free(k);
		return bs_fail(err, -EINVAL, "the kept memory cannot be read");
	}
	*ret = k;
	return 0;
}

struct bs_fskeep *bs_fskeep_free(struct bs_fskeep *k)
{
	struct adopted_handle *a;
	size_t pos = 0;

	if (!k)
		return NULL;
	while ((a = bs_map_next(&adopted, &pos)))
		free(a);
	bs_map_done(&adopted);
	bs_map_init(&adopted);
	(void)munmap(k->m, sizeof(*k->m));
	(void)pthread_mutex_destroy(&k->lock);
	free(k->free_nodes);
	free(k->free_handles);
	free(k);
	return NULL;
}

bool bs_fskeep_is_whole(const struct bs_fskeep *k)
{
	return !k->m->overflow;
}

uint64_t *bs_fskeep_last_id(struct bs_fskeep *k)
{
	return k ? &k->m->last_id : NULL;
}

/* A free entry's number, or 0. */
static uint32_t take(struct bs_fskeep *k, uint32_t *const *list, size_t *n, uint32_t *used,
		     uint32_t max)
{
	uint32_t slot = 0;

	(void)pthread_mutex_lock(&k->lock);
	if (*n > 0)
		slot = (*list)[--*n]; /* which give() may have moved */
	else if (*used < max)
		slot = ++*used;
	else
		k->m->overflow = 1;
	(void)pthread_mutex_unlock(&k->lock);
	return slot;
}

static void give(struct bs_fskeep *k, uint32_t **list, size_t *n, size_t *cap, uint32_t slot)
{
	(void)pthread_mutex_lock(&k->lock);
	/* without memory for it, it is lost until the next server */
	if (bs_grow(list, cap, *n + 1, sizeof(**list)) == 0)
		(*list)[(*n)++] = slot;
	(void)pthread_mutex_unlock(&k->lock);
}

uint32_t bs_fskeep_add_node(struct bs_fskeep *k, const struct bs_fskeep_node *n)
{
	uint32_t slot = k ? take(k, &k->free_nodes, &k->n_free_nodes, &k->m->used_nodes, NODES_MAX)
			  : 0;
	struct bs_fskeep_node *to = slot ? &k->m->nodes[slot - 1] : NULL;

	if (!to)
		return 0;
	*to = *n;
	__atomic_store_n(&to->valid, 1, __ATOMIC_RELEASE);
	return slot;
}

struct bs_fskeep_node *bs_fskeep_node(struct bs_fskeep *k, uint32_t slot)
{
	return k && slot ? &k->m->nodes[slot - 1] : NULL;
}

void bs_fskeep_drop_node(struct bs_fskeep *k, uint32_t slot)
{
	if (!k || !slot)
		return;
	__atomic_store_n(&k->m->nodes[slot - 1].valid, 0, __ATOMIC_RELEASE);
	give(k, &k->free_nodes, &k->n_free_nodes, &k->cap_nodes, slot);
}

uint32_t bs_fskeep_add_handle(struct bs_fskeep *k, const struct bs_fskeep_handle *h)
{
	uint32_t slot = k ? take(k, &k->free_handles, &k->n_free_handles, &k->m->used_handles,
				 HANDLES_MAX)
			  : 0;
	struct bs_fskeep_handle *to = slot ? &k->m->handles[slot - 1] : NULL;
	struct bs_fskeep_handle unborn = *h;

	if (!to)
		return 0;
	unborn.kind = BS_FSKEEP_FREE;
	*to = unborn;
	__atomic_store_n(&to->kind, h->kind, __ATOMIC_RELEASE);
	return slot;
}

void bs_fskeep_drop_handle(struct bs_fskeep *k, uint32_t slot)
{
	if (!k || !slot)
		return;
	__atomic_store_n(&k->m->handles[slot - 1].kind, BS_FSKEEP_FREE, __ATOMIC_RELEASE);
	give(k, &k->free_handles, &k->n_free_handles, &k->cap_handles, slot);
}

/* --- taking over ----------------------------------------------------------------------------- */

bool bs_fskeep_next_node(struct bs_fskeep *k, uint32_t *slot, struct bs_fskeep_node *ret)
{
	while (*slot < BS_MIN(k->m->used_nodes, NODES_MAX)) {
		*ret = k->m->nodes[(*slot)++];
		if (ret->valid && ret->id > 1 && memchr(ret->name, '\0', sizeof(ret->name)))
			return true;
	}
	return false;
}

bool bs_fskeep_next_handle(struct bs_fskeep *k, uint32_t *slot, struct bs_fskeep_handle *ret)
{
	while (*slot < BS_MIN(k->m->used_handles, HANDLES_MAX)) {
		*ret = k->m->handles[(*slot)++];
		if (ret->kind && ret->kind <= BS_FSKEEP_DIR)
			return true;
	}
	return false;
}

/* --- numbers --------------------------------------------------------------------------------- */

uint64_t bs_fskeep_fh(void *handle)
{
	return (uint64_t)(uintptr_t)handle | generation << GENERATION_SHIFT;
}

void *bs_fskeep_pointer(uint64_t fh)
{
	const struct adopted_handle *a;

	if (fh >> GENERATION_SHIFT == generation)
		return (void *)(uintptr_t)(fh & ((UINT64_C(1) << GENERATION_SHIFT) - 1));
	a = bs_map_get(&adopted, &fh, sizeof(fh));
	return a ? a->handle : NULL;
}

int bs_fskeep_adopt(uint64_t fh, void *handle)
{
	struct adopted_handle *a = malloc(sizeof(*a));

	if (!a)
		return -ENOMEM;
	*a = (struct adopted_handle){ fh, handle };
	if (bs_map_put(&adopted, &a->fh, sizeof(a->fh), a) < 0) {
		free(a);
		return -ENOMEM;
	}
	return 0;
}
