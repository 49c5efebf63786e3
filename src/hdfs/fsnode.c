/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "hdfs/fskeep.h"
#include "hdfs/fspriv.h"
#include "hdfs/path.h"

#define PATH_BYTES_MAX (4u * BS_HDFS_PATH_MAX)
#define OWN_INO (UINT64_C(1) << 63) /* of files that HDFS has no number for yet */

static char *key_new(uint64_t parent, const char *name, size_t *ret_len)
{
	size_t len = strlen(name);
	char *key = malloc(sizeof(parent) + len + 1);

	if (!key)
		return NULL;
	memcpy(key, &parent, sizeof(parent));
	memcpy(key + sizeof(parent), name, len + 1);
	*ret_len = sizeof(parent) + len;
	return key;
}

void bs_fsnodes_init(struct bs_nodes *t)
{
	(void)pthread_mutex_init(&t->lock, NULL);
	bs_map_init(&t->by_id);
	bs_map_init(&t->by_name);
	t->last_id = FUSE_ROOT_ID;
	t->root = (struct bs_node){ .id = FUSE_ROOT_ID, .ino = FUSE_ROOT_ID, .is_dir = true };
	bs_list_init(&t->root.handles);
}

static void node_free(struct bs_node *n)
{
	(void)bs_units_free(n->units);
	free(n->kept);
	free(n->key);
	free(n);
}

void bs_fsnodes_done(struct bs_nodes *t)
{
	size_t pos = 0;
	struct bs_node *n;

	while ((n = bs_map_next(&t->by_id, &pos)))
		node_free(n);
	bs_map_done(&t->by_id);
	bs_map_done(&t->by_name);
	(void)pthread_mutex_destroy(&t->lock);
}

/* Lock held, as in all static functions that follow. */
static struct bs_node *find(struct bs_nodes *t, fuse_ino_t ino)
{
	uint64_t id = ino;

	return ino == FUSE_ROOT_ID ? &t->root : bs_map_get(&t->by_id, &id, sizeof(id));
}

static struct bs_node *find_name(struct bs_nodes *t, fuse_ino_t parent, const char *name)
{
	struct bs_node *n;
	size_t len;
	char *key = key_new(parent, name, &len);

	if (!key)
		return NULL;
	n = bs_map_get(&t->by_name, key, len);
	free(key);
	return n;
}

/* What nobody needs any more goes to *gone, a chain by parent: units are freed without the lock. */
static void put(struct bs_nodes *t, struct bs_node *n, struct bs_node **gone)
{
	while (n && n != &t->root && n->lookups == 0 && n->uses == 0) {
		struct bs_node *parent = n->parent;

		if (parent) {
			(void)bs_map_remove(&t->by_name, n->key, n->key_len);
			parent->uses--;
		}
		bs_fskeep_drop_node(t->keep, n->slot);
		(void)bs_map_remove(&t->by_id, &n->id, sizeof(n->id));
		n->parent = *gone;
		*gone = n;
		n = parent;
	}
}

static void free_gone(struct bs_node *gone)
{
	while (gone) {
		struct bs_node *next = gone->parent;

		node_free(gone);
		gone = next;
	}
}

/* The entry says where n is now; made new, since it is right at every moment. */
static void keep(struct bs_nodes *t, struct bs_node *n)
{
	struct bs_fskeep_node k = { .is_dir = n->is_dir,
				    .is_link = n->is_link,
				    .id = n->id,
				    .parent = n->parent ? n->parent->id : 0,
				    .ino = n->ino,
				    .lookups = n->lookups };
	const uint32_t old = n->slot;

	if (!t->keep)
		return;
	if (n->parent)
		(void)strncpy(k.name, n->name, sizeof(k.name) - 1);
	n->slot = bs_fskeep_add_node(t->keep, &k);
	bs_fskeep_drop_node(t->keep, old);
}

static void keep_lookups(struct bs_nodes *t, const struct bs_node *n)
{
	struct bs_fskeep_node *k = bs_fskeep_node(t->keep, n->slot);

	if (k)
		__atomic_store_n(&k->lookups, n->lookups, __ATOMIC_RELAXED);
}

static void unname(struct bs_nodes *t, struct bs_node *n, struct bs_node **gone)
{
	struct bs_node *parent = n->parent;

	if (!parent)
		return;
	(void)bs_map_remove(&t->by_name, n->key, n->key_len);
	n->parent = NULL;
	keep(t, n);
	parent->uses--;
	put(t, n, gone);
	put(t, parent, gone);
}

static int append_path(struct bs_buf *b, const struct bs_nodes *t, const struct bs_node *n)
{
	const struct bs_node *chain[BS_HDFS_PATH_MAX / 2 + 1];
	size_t depth = 0;

	for (; n != &t->root; n = n->parent) {
		if (!n)
			return -ESTALE;
		if (depth == sizeof(chain) / sizeof(chain[0]))
			return -ENAMETOOLONG;
		chain[depth++] = n;
	}
	while (depth > 0) {
		(void)bs_buf_adds(b, "/");
		(void)bs_buf_adds(b, chain[--depth]->name);
	}
	return 0;
}

int bs_nodes_path(struct bs_fs *fs, fuse_ino_t ino, const char *name, char **ret)
{
	bs_autobuf b = BS_BUF_INIT(PATH_BYTES_MAX);
	struct bs_node *n;
	int r;

	if (name && strlen(name) > BS_HDFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (strcmp(fs->o.root, "/") != 0)
		(void)bs_buf_adds(&b, fs->o.root);
	(void)pthread_mutex_lock(&fs->nodes.lock);
	n = find(&fs->nodes, ino);
	r = n ? append_path(&b, &fs->nodes, n) : -ESTALE;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	if (r < 0)
		return r;
	if (name) {
		(void)bs_buf_adds(&b, "/");
		(void)bs_buf_adds(&b, name);
	}
	if (b.len == 0)
		(void)bs_buf_adds(&b, "/");
	if (b.error < 0)
		return b.error == -E2BIG ? -ENAMETOOLONG : b.error;
	*ret = bs_buf_take(&b);
	return *ret ? 0 : -ENOMEM;
}

static struct bs_node *add(struct bs_nodes *t, struct bs_node *parent, const char *name)
{
	struct bs_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->id = ++t->last_id;
	if (t->keep)
		*bs_fskeep_last_id(t->keep) = n->id;
	n->key = key_new(parent->id, name, &n->key_len);
	if (!n->key || bs_map_put(&t->by_id, &n->id, sizeof(n->id), n) < 0) {
		free(n->key);
		free(n);
		return NULL;
	}
	bs_list_init(&n->handles);
	n->name = n->key + sizeof(uint64_t);
	if (bs_map_put(&t->by_name, n->key, n->key_len, n) < 0) {
		(void)bs_map_remove(&t->by_id, &n->id, sizeof(n->id));
		free(n->key);
		free(n);
		return NULL;
	}
	n->parent = parent;
	parent->uses++;
	return n;
}

/* Whether n stands for what HDFS has there now. */
static bool is_same(const struct bs_node *n, const struct bs_hdfs_status *s, bool is_link)
{
	if (n->is_dir != (s->type == BS_HDFS_DIRECTORY) || n->is_link != is_link)
		return false;
	return n->writers > 0 || n->file_id == 0 || s->file_id == 0 || n->file_id == s->file_id;
}

static void learn(struct bs_node *n, const struct bs_hdfs_status *s, bool is_link)
{
	n->is_dir = s->type == BS_HDFS_DIRECTORY;
	n->is_link = is_link;
	if (n->ino == 0)
		n->ino = s->file_id ? s->file_id : OWN_INO | n->id;
	if (n->writers == 0 && s->file_id)
		n->file_id = s->file_id;
}

int bs_nodes_enter(struct bs_fs *fs, fuse_ino_t parent, const char *name,
		   const struct bs_hdfs_status *s, bool is_link, struct fuse_entry_param *ret)
{
	struct bs_nodes *t = &fs->nodes;
	struct bs_node *n = NULL, *p, *gone = NULL;
	int r = 0;

	*ret = (struct fuse_entry_param){ .attr_timeout = bs_fs_timeout(fs),
					  .entry_timeout = bs_fs_timeout(fs) };
	bs_fs_attr(fs, s, is_link, 0, &ret->attr); /* may ask a directory service for names */
	(void)pthread_mutex_lock(&t->lock);
	p = find(t, parent);
	if (!p)
		r = -ESTALE;
	else
		n = find_name(t, parent, name);
	if (n && !is_same(n, s, is_link)) {
		unname(t, n, &gone);
		n = NULL;
	}
	if (p && !n) {
		n = add(t, p, name);
		r = n ? 0 : -ENOMEM;
	}
	if (n) {
		learn(n, s, is_link);
		n->lookups++;
		if (n->slot)
			keep_lookups(t, n);
		else
			keep(t, n);
		ret->ino = n->id;
		ret->attr.st_ino = n->ino;
		n->last = ret->attr;
	}
	(void)pthread_mutex_unlock(&t->lock);
	free_gone(gone);
	return r;
}

void bs_nodes_forget(struct bs_fs *fs, fuse_ino_t ino, uint64_t n_lookups)
{
	struct bs_node *n, *gone = NULL;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	n = find(&fs->nodes, ino);
	if (n && n != &fs->nodes.root) {
		n->lookups -= BS_MIN(n_lookups, n->lookups);
		keep_lookups(&fs->nodes, n);
		put(&fs->nodes, n, &gone);
	}
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	free_gone(gone);
}

void bs_nodes_unname(struct bs_fs *fs, fuse_ino_t parent, const char *name)
{
	struct bs_node *n, *gone = NULL;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	n = find_name(&fs->nodes, parent, name);
	if (n)
		unname(&fs->nodes, n, &gone);
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	free_gone(gone);
}

void bs_nodes_rename(struct bs_fs *fs, fuse_ino_t from, const char *name, fuse_ino_t to,
		     const char *newname)
{
	struct bs_nodes *t = &fs->nodes;
	struct bs_node *n, *target, *parent, *gone = NULL;
	char *key;
	size_t len;

	(void)pthread_mutex_lock(&t->lock);
	n = find_name(t, from, name);
	target = find_name(t, to, newname);
	parent = find(t, to);
	if (target && target != n)
		unname(t, target, &gone);
	key = n && parent && target != n ? key_new(to, newname, &len) : NULL;
	if (n && target != n) {
		struct bs_node *old = n->parent;

		(void)bs_map_remove(&t->by_name, n->key, n->key_len);
		n->parent = NULL;
		old->uses--;
		if (key && bs_map_put(&t->by_name, key, len, n) == 0) {
			free(n->key);
			n->key = bs_take(&key);
			n->key_len = len;
			n->name = n->key + sizeof(uint64_t);
			n->parent = parent;
			parent->uses++;
		} /* else it has no name here, and a look-up will make another of it */
		keep(t, n);
		put(t, old, &gone);
		put(t, n, &gone);
	}
	(void)pthread_mutex_unlock(&t->lock);
	free(key);
	free_gone(gone);
}

struct bs_node *bs_node_use(struct bs_fs *fs, fuse_ino_t ino)
{
	struct bs_node *n;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	n = find(&fs->nodes, ino);
	if (n)
		n->uses++;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	return n;
}

struct bs_node *bs_node_use_name(struct bs_fs *fs, fuse_ino_t parent, const char *name)
{
	struct bs_node *n;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	n = find_name(&fs->nodes, parent, name);
	if (n)
		n->uses++;
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	return n;
}

void bs_node_unuse(struct bs_fs *fs, struct bs_node *n)
{
	struct bs_node *gone = NULL;

	(void)pthread_mutex_lock(&fs->nodes.lock);
	n->uses--;
	put(&fs->nodes, n, &gone);
	(void)pthread_mutex_unlock(&fs->nodes.lock);
	free_gone(gone);
}

/* --- after another server -------------------------------------------------------------------- */

static int adopt_one(struct bs_nodes *t, const struct bs_fskeep_node *k, uint32_t slot)
{
	struct bs_node *n = bs_map_get(&t->by_id, &k->id, sizeof(k->id));

	if (n) { /* killed while it was moved: both are there */
		bs_fskeep_drop_node(t->keep, slot);
		return 0;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->id = k->id;
	n->ino = k->ino;
	n->is_dir = k->is_dir;
	n->is_link = k->is_link;
	n->lookups = k->lookups;
	n->slot = slot;
	bs_list_init(&n->handles);
	n->key = key_new(k->parent, k->name, &n->key_len);
	if (!n->key || bs_map_put(&t->by_id, &n->id, sizeof(n->id), n) < 0) {
		node_free(n);
		return -ENOMEM;
	}
	n->name = n->key + sizeof(uint64_t);
	t->last_id = BS_MAX(t->last_id, n->id);
	return 0;
}

/* Whether the way from n to the root would go round by parent. */
static bool is_above(const struct bs_node *n, const struct bs_node *parent)
{
	while (parent && parent != n)
		parent = parent->parent;
	return parent == n;
}

static int adopt_name(struct bs_nodes *t, struct bs_node *n)
{
	struct bs_node *parent;
	uint64_t id;

	memcpy(&id, n->key, sizeof(id));
	parent = id ? find(t, id) : NULL;
	if (!parent || !*n->name || strchr(n->name, '/') || is_above(n, parent) ||
	    bs_map_get(&t->by_name, n->key, n->key_len))
		return 0; /* it has no name, and a look-up makes another of it */
	if (bs_map_put(&t->by_name, n->key, n->key_len, n) < 0)
		return -ENOMEM;
	n->parent = parent;
	parent->uses++;
	return 0;
}

int bs_fsnodes_adopt(struct bs_nodes *t)
{
	struct bs_fskeep_node k;
	struct bs_node *n;
	uint32_t slot = 0;
	size_t pos = 0;
	int r = 0;

	t->last_id = BS_MAX(t->last_id, *bs_fskeep_last_id(t->keep));
	while (r == 0 && bs_fskeep_next_node(t->keep, &slot, &k))
		r = adopt_one(t, &k, slot);
	while (r == 0 && (n = bs_map_next(&t->by_id, &pos)))
		r = adopt_name(t, n);
	return r;
}
