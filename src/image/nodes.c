/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"

#define SYMLINKS_MAX 255u /* as containerd's fs.RootPath */

/* --- extended attributes -------------------------------------------------------------------- */

static struct bs_tree_xattr *xset_find(const struct bs_xset *x, const char *name, size_t len)
{
	for (size_t i = 0; i < x->n; i++)
		if (x->v[i].name_len == len && memcmp(x->v[i].name, name, len) == 0)
			return &x->v[i];
	return NULL;
}

static void xattr_free(struct bs_tree_xattr *a)
{
	union {
		const char *c;
		char *m;
	} name = { .c = a->name };

	free(name.m);
}

int bs_xset_put(struct bs_xset *x, const char *name, size_t name_len, const void *value,
		size_t value_len)
{
	struct bs_tree_xattr *old = xset_find(x, name, name_len), fresh = { 0 };
	size_t bytes = x->bytes;
	char *block;

	if (name_len == 0 || name_len > 255 || memchr(name, 0, name_len))
		return -EINVAL;
	if (old)
		bytes -= old->name_len + old->value_len;
	if (value_len > 65535 || bytes + name_len + value_len > BS_TREE_XATTRS_MAX)
		return -E2BIG;
	if (!old && bs_grow(&x->v, &x->cap, x->n + 1, sizeof(*x->v)) < 0)
		return -ENOMEM;
	block = malloc(name_len + 1 + value_len);
	if (!block)
		return -ENOMEM;
	memcpy(block, name, name_len);
	block[name_len] = 0;
	if (value_len)
		memcpy(block + name_len + 1, value, value_len);
	fresh.name = block;
	fresh.name_len = (uint8_t)name_len;
	fresh.value = (const uint8_t *)block + name_len + 1;
	fresh.value_len = (uint32_t)value_len;
	if (old)
		xattr_free(old);
	else
		old = &x->v[x->n++];
	*old = fresh;
	x->bytes = bytes + name_len + value_len;
	return 0;
}

const struct bs_tree_xattr *bs_xset_get(const struct bs_xset *x, const char *name)
{
	return xset_find(x, name, strlen(name));
}

void bs_xset_remove(struct bs_xset *x, const char *name)
{
	struct bs_tree_xattr *a = xset_find(x, name, strlen(name));

	if (!a)
		return;
	x->bytes -= a->name_len + a->value_len;
	xattr_free(a);
	*a = x->v[--x->n];
}

void bs_xset_done(struct bs_xset *x)
{
	for (size_t i = 0; i < x->n; i++)
		xattr_free(&x->v[i]);
	free(x->v);
	*x = (struct bs_xset){ 0 };
}

/* --- inodes ---------------------------------------------------------------------------------- */

struct bs_inode *bs_inode_new(void)
{
	struct bs_inode *i = calloc(1, sizeof(*i));

	if (i) {
		i->refs = 1;
		i->entry = UINT32_MAX;
	}
	return i;
}

struct bs_inode *bs_inode_unref(struct bs_inode *i)
{
	if (!i || --i->refs > 0)
		return NULL;
	bs_xset_done(&i->xattrs);
	free(i->target);
	free(i);
	return NULL;
}

static struct bs_inode *plain_dir(void)
{
	struct bs_inode *i = bs_inode_new();

	if (i)
		i->mode = S_IFDIR | 0755;
	return i;
}

/* --- names ----------------------------------------------------------------------------------- */

int bs_nodes_init(struct bs_nodes *t)
{
	t->n = 1;
	t->root = calloc(1, sizeof(*t->root) + 1);
	if (!t->root)
		return -ENOMEM;
	t->root->inode = plain_dir();
	if (!t->root->inode) {
		bs_nodes_done(t);
		return -ENOMEM;
	}
	return 0;
}

static void node_free(struct bs_nodes *t, struct bs_node *n)
{
	if (n->inode && n->inode->refs == 1)
		t->bytes -= n->inode->size;
	if (n->children)
		bs_map_done(n->children);
	free(n->children);
	bs_inode_unref(n->inode);
	free(n);
}

/*
 * Without recursion, since a path may be a million components deep: what is to be
 * freed hangs in a list that the parent pointers make.
 */
static void push_children(struct bs_node *dir, struct bs_node **list)
{
	struct bs_node *n;
	size_t pos = 0;

	if (!dir->children)
		return;
	while ((n = bs_map_next(dir->children, &pos))) {
		n->parent = *list;
		*list = n;
	}
	bs_map_done(dir->children);
}

void bs_node_empty(struct bs_nodes *t, struct bs_node *dir)
{
	struct bs_node *list = NULL;

	push_children(dir, &list);
	while (list) {
		struct bs_node *n = list;

		list = n->parent;
		push_children(n, &list);
		node_free(t, n);
		t->n--;
	}
}

void bs_node_remove(struct bs_nodes *t, struct bs_node *n)
{
	bs_node_empty(t, n);
	bs_map_remove(n->parent->children, n->name, n->name_len);
	node_free(t, n);
	t->n--;
}

void bs_nodes_done(struct bs_nodes *t)
{
	if (!t->root)
		return;
	bs_node_empty(t, t->root);
	node_free(t, t->root);
	t->root = NULL;
}

struct bs_node *bs_node_child(const struct bs_node *dir, const char *name, size_t len)
{
	return dir->children ? bs_map_get(dir->children, name, len) : NULL;
}

static bool is_dir(const struct bs_node *n)
{
	return S_ISDIR(n->inode->mode);
}

int bs_node_add(struct bs_nodes *t, struct bs_node *dir, const char *name, size_t len,
		struct bs_inode *inode, struct bs_node **ret)
{
	bs_auto(inode) struct bs_inode *owned = inode;
	bs_autofree struct bs_node *n = NULL;

	if (!is_dir(dir))
		return -ENOTDIR;
	if (len > BS_TREE_NAME_MAX || !bs_path_name_ok(name, len))
		return -EINVAL;
	if (t->n >= BS_TREE_ENTRIES_MAX)
		return -EFBIG;
	if (!dir->children) {
		dir->children = malloc(sizeof(*dir->children));
		if (!dir->children)
			return -ENOMEM;
		bs_map_init(dir->children);
	}
	n = calloc(1, sizeof(*n) + len + 1);
	if (!n)
		return -ENOMEM;
	memcpy(n->name, name, len);
	n->name_len = (uint8_t)len;
	n->parent = dir;
	if (bs_map_put(dir->children, n->name, len, n) < 0)
		return -ENOMEM;
	if (owned->refs == 1)
		t->bytes += owned->size;
	n->inode = bs_take(&owned);
	t->n++;
	if (ret)
		*ret = n;
	(void)bs_take(&n);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct bs_node *x = *(struct bs_node *const *)a, *y = *(struct bs_node *const *)b;
	int r = memcmp(x->name, y->name, BS_MIN(x->name_len, y->name_len));

	return r ? r : (int)x->name_len - (int)y->name_len;
}

struct bs_node **bs_node_sorted(const struct bs_node *dir, size_t *ret_n)
{
	size_t n = dir->children ? dir->children->n : 0, pos = 0;
	struct bs_node **v = calloc(n + 1, sizeof(struct bs_node *));

	if (!v)
		return NULL;
	for (size_t i = 0; i < n; i++)
		v[i] = bs_map_next(dir->children, &pos);
	qsort(v, n, sizeof(struct bs_node *), by_name);
	*ret_n = n;
	return v;
}

/* --- walking --------------------------------------------------------------------------------- */

struct walk {
	struct bs_nodes *t;
	struct bs_node *at;
	char *rest; /* what is still to be resolved; owned */
	unsigned int links;
};

/* Puts the symlink's target in front of what is left. */
static int follow(struct walk *w, const struct bs_node *link, const char *behind)
{
	size_t a = strlen(link->inode->target), b = strlen(behind);
	char *text;

	if (++w->links > SYMLINKS_MAX)
		return -ELOOP;
	text = malloc(a + 1 + b + 1);
	if (!text)
		return -ENOMEM;
	memcpy(text, link->inode->target, a);
	text[a] = '/';
	memcpy(text + a + 1, behind, b + 1);
	if (text[0] == '/')
		w->at = w->t->root;
	free(w->rest);
	w->rest = text;
	return 0;
}

static int make_dir(struct walk *w, const char *name, size_t len, struct bs_node **ret)
{
	struct bs_inode *dir = plain_dir();

	return dir ? bs_node_add(w->t, w->at, name, len, dir, ret) : -ENOMEM;
}

/* One component; *p stands at its first byte and is moved behind it. */
static int step(struct walk *w, const char **p, unsigned int flags,
		void (*each)(void *cookie, struct bs_node *n), void *cookie)
{
	const char *name = *p;
	size_t len = strcspn(name, "/");
	const char *behind = name + len + strspn(name + len, "/");
	struct bs_node *next;
	int r;

	*p = behind;
	if (len == 1 && name[0] == '.')
		return 0;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		if (w->at->parent)
			w->at = w->at->parent;
		return 0;
	}
	if (!is_dir(w->at))
		return -ENOTDIR;
	next = bs_node_child(w->at, name, len);
	if (!next && !(flags & BS_WALK_MAKE))
		return -ENOENT;
	if (!next) {
		r = make_dir(w, name, len, &next);
		if (r < 0)
			return r;
	}
	if (each)
		each(cookie, next);
	if (S_ISLNK(next->inode->mode) && (*behind || !(flags & BS_WALK_NOFOLLOW))) {
		r = follow(w, next, behind);
		*p = w->rest;
		return r;
	}
	w->at = next;
	return 0;
}

int bs_nodes_walk(struct bs_nodes *t, const char *path, unsigned int flags,
		  void (*each)(void *cookie, struct bs_node *n), void *cookie, struct bs_node **ret)
{
	struct walk w = { .t = t, .at = t->root };
	const char *p = path + strspn(path, "/");
	int r = 0;

	while (*p && r == 0) {
		p += strspn(p, "/");
		if (*p)
			r = step(&w, &p, flags, each, cookie);
	}
	free(w.rest);
	if (r < 0)
		return r;
	*ret = w.at;
	return 0;
}

const char *bs_node_path(const struct bs_node *n, char *buf, size_t size)
{
	size_t at = size - 1;

	buf[at] = 0;
	if (!n->parent)
		return "/";
	for (; n->parent; n = n->parent) {
		if (at < (size_t)n->name_len + 1)
			break;
		at -= n->name_len;
		memcpy(buf + at, n->name, n->name_len);
		buf[--at] = '/';
	}
	return buf + at;
}
