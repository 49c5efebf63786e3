/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/layers.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "image/layer.h"
#include "image/nodes.h"

static int hide(struct bs_nodes *t, const struct bs_layer_entry *e)
{
	struct bs_node *n;
	int r = bs_nodes_walk(t, e->path, e->kind == BS_LAYER_WHITEOUT ? BS_WALK_NOFOLLOW : 0, NULL,
			      NULL, &n);

	/* nothing below has it, or something there is no directory any more */
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return r;
	if (e->kind == BS_LAYER_OPAQUE)
		bs_node_empty(t, n);
	else if (n->parent)
		bs_node_remove(t, n);
	return 0;
}

/* The directory of the entry's name; *ret_base points into path. */
static int parent_of(struct bs_nodes *t, char *path, struct bs_node **ret, const char **ret_base)
{
	char *slash = strrchr(path, '/');
	int r;

	if (!slash) {
		*ret = t->root;
		*ret_base = path;
		return 0;
	}
	*slash = 0;
	r = bs_nodes_walk(t, path, BS_WALK_MAKE, NULL, NULL, ret);
	*slash = '/';
	*ret_base = slash + 1;
	if (r == 0 && !S_ISDIR((*ret)->inode->mode))
		return -ENOTDIR;
	return r;
}

static void set_attributes(struct bs_inode *to, struct bs_inode *from)
{
	to->mode = from->mode;
	to->uid = from->uid;
	to->gid = from->gid;
	to->mtime_s = from->mtime_s;
	to->mtime_ns = from->mtime_ns;
	bs_xset_done(&to->xattrs);
	to->xattrs = from->xattrs;
	from->xattrs = (struct bs_xset){ 0 };
}

static int add(struct bs_nodes *t, struct bs_layer_entry *e)
{
	struct bs_node *dir, *old;
	const char *base;
	int r;

	if (!e->path[0]) {
		set_attributes(t->root->inode, e->inode);
		return 0;
	}
	r = parent_of(t, e->path, &dir, &base);
	if (r < 0)
		return r;
	old = bs_node_child(dir, base, strlen(base));
	if (old && S_ISDIR(old->inode->mode) && S_ISDIR(e->inode->mode)) {
		set_attributes(old->inode, e->inode);
		return 0;
	}
	if (old)
		bs_node_remove(t, old);
	return bs_node_add(t, dir, base, strlen(base), bs_take(&e->inode), NULL);
}

/* What the kernel does to an inode that containerd links, chowns, sets xattrs of and so on. */
static int link_attributes(struct bs_inode *i, struct bs_inode *from)
{
	if (!S_ISDIR(i->mode))
		bs_xset_remove(&i->xattrs, "security.capability"); /* chown drops it */
	for (size_t k = 0; k < from->xattrs.n; k++) {
		const struct bs_tree_xattr *x = &from->xattrs.v[k];
		int r = bs_xset_put(&i->xattrs, x->name, x->name_len, x->value, x->value_len);

		if (r < 0)
			return r;
	}
	i->uid = from->uid;
	i->gid = from->gid;
	i->mtime_s = from->mtime_s;
	i->mtime_ns = from->mtime_ns;
	if (!S_ISLNK(i->mode))
		i->mode = (i->mode & S_IFMT) | (from->mode & 07777);
	return 0;
}

static int link_to(struct bs_nodes *t, struct bs_layer_entry *e, struct bs_error *err)
{
	bs_auto(inode) struct bs_inode *inode = NULL;
	struct bs_node *dir, *target, *old;
	const char *base;
	int r = parent_of(t, e->path, &dir, &base);

	if (r < 0)
		return r;
	r = bs_nodes_walk(t, e->link, BS_WALK_NOFOLLOW, NULL, NULL, &target);
	if (r < 0)
		return bs_fail(err, -EINVAL, "a hard link to '%.200s', which is not there",
			       e->link);
	old = bs_node_child(dir, base, strlen(base));
	if (old == target)
		return bs_fail(err, -EINVAL, "a hard link to itself");
	if (S_ISDIR(target->inode->mode))
		return bs_fail(err, -EINVAL, "a hard link to the directory '%.200s'", e->link);
	for (struct bs_node *up = target; old && up; up = up->parent)
		if (up == old)
			return bs_fail(err, -EINVAL, "a hard link in the place of its target");
	inode = target->inode;
	inode->refs++;
	if (old)
		bs_node_remove(t, old);
	r = link_attributes(inode, e->inode);
	if (r < 0)
		return r;
	return bs_node_add(t, dir, base, strlen(base), bs_take(&inode), NULL);
}

static int apply(struct bs_nodes *t, struct bs_layer_entry *e, struct bs_error *err)
{
	struct bs_node *unused;
	const char *base;

	switch (e->kind) {
	case BS_LAYER_ADD:
		return add(t, e);
	case BS_LAYER_LINK:
		return link_to(t, e, err);
	case BS_LAYER_WHITEOUT:
		return parent_of(t, e->path, &unused, &base);
	case BS_LAYER_OPAQUE:
	default:
		return bs_nodes_walk(t, e->path, BS_WALK_MAKE, NULL, NULL, &unused);
	}
}

static int explain(const struct bs_layer *l, size_t i, int r, struct bs_error *err)
{
	const struct bs_layer_entry *e = &l->entries[i];

	if (err->code == 0) {
		if (r == -ENOTDIR)
			bs_fail(err, -EINVAL, "a part of its path is no directory");
		else if (r == -ELOOP)
			bs_fail(err, -EINVAL, "its path leads round in symlinks");
		else if (r == -EFBIG)
			bs_fail(err, r, "the image has more than %u names", BS_TREE_ENTRIES_MAX);
		else
			bs_fail_errno(err, r, "cannot be added");
	}
	return bs_error_context(err, "%s: entry %zu '%.200s'", l->name, i + 1, e->path);
}

int bs_layers_apply(struct bs_nodes *t, struct bs_layer *l, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	int r;

	err = err ? err : &own;
	*err = BS_ERROR_INIT;
	for (size_t i = 0; i < l->n; i++) {
		const struct bs_layer_entry *e = &l->entries[i];

		r = e->kind == BS_LAYER_WHITEOUT || e->kind == BS_LAYER_OPAQUE ? hide(t, e) : 0;
		if (r < 0)
			return explain(l, i, r, err);
	}
	for (size_t i = 0; i < l->n; i++) {
		r = apply(t, &l->entries[i], err);
		if (r < 0)
			return explain(l, i, r, err);
	}
	bs_layer_forget_entries(l);
	return 0;
}
