/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "tarbuild.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "image/layer.h"
#include "image/nodes.h"
#include "image/spool.h"

void tar_done(struct tar *t)
{
	bs_buf_done(&t->out);
	bs_buf_done(&t->pax);
}

static void pad(struct bs_buf *b)
{
	static const char zeros[512];

	if (b->len % 512)
		(void)bs_buf_add(b, zeros, 512 - b->len % 512);
}

void tar_record(struct tar *t, const char *key, const void *value, size_t len)
{
	size_t rest = strlen(key) + len + 3, total = rest + 1;
	char digits[24];

	while (total != rest + (size_t)snprintf(digits, sizeof(digits), "%zu", total))
		total = rest + strlen(digits);
	(void)bs_buf_addf(&t->pax, "%s %s=", digits, key);
	(void)bs_buf_add(&t->pax, value, len);
	(void)bs_buf_adds(&t->pax, "\n");
}

static void header(struct tar *t, const char *name, char type, const char *link, size_t size)
{
	char h[512] = { 0 };
	unsigned int sum = 0;

	memcpy(h, name, BS_MIN(strlen(name), (size_t)100));
	(void)snprintf(h + 100, 8, "%07o", t->mode & 07777777);
	(void)snprintf(h + 108, 8, "%07o", t->uid);
	(void)snprintf(h + 116, 8, "%07o", t->gid);
	(void)snprintf(h + 124, 12, "%011zo", size);
	(void)snprintf(h + 136, 12, "%011llo", t->mtime);
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 157, link, BS_MIN(strlen(link), (size_t)100));
	memcpy(h + 257, "ustar\00000", 8);
	(void)snprintf(h + 329, 8, "%07o", t->major);
	(void)snprintf(h + 337, 8, "%07o", t->minor);
	for (size_t i = 0; i < sizeof(h); i++)
		sum += (unsigned char)h[i];
	(void)snprintf(h + 148, 7, "%06o", sum);
	h[155] = ' ';
	(void)bs_buf_add(&t->out, h, sizeof(h));
}

void tar_add(struct tar *t, const char *name, char type, const char *link, const void *data,
	     size_t len)
{
	if (strlen(name) > 100)
		tar_record(t, "path", name, strlen(name));
	if (strlen(link) > 100)
		tar_record(t, "linkpath", link, strlen(link));
	if (t->pax.len) {
		header(t, "pax", 'x', "", t->pax.len);
		(void)bs_buf_add(&t->out, t->pax.data, t->pax.len);
		pad(&t->out);
		bs_buf_clear(&t->pax);
	}
	header(t, name, type, link, len);
	if (len)
		(void)bs_buf_add(&t->out, data, len);
	pad(&t->out);
}

void tar_dir(struct tar *t, const char *name)
{
	unsigned int mode = t->mode;

	if (mode == 0644)
		t->mode = 0755;
	tar_add(t, name, '5', "", NULL, 0);
	t->mode = mode;
}

void tar_file(struct tar *t, const char *name, const char *text)
{
	tar_add(t, name, '0', "", text, strlen(text));
}

void tar_link(struct tar *t, const char *name, const char *to)
{
	tar_add(t, name, '1', to, NULL, 0);
}

void tar_symlink(struct tar *t, const char *name, const char *to)
{
	tar_add(t, name, '2', to, NULL, 0);
}

void tar_end(struct tar *t)
{
	static const char zeros[1024];

	(void)bs_buf_add(&t->out, zeros, sizeof(zeros));
}

/* In pieces of an odd size, as a network would. */
static ssize_t input(void *cookie, const void **ret)
{
	struct tar *t = cookie;
	size_t n = BS_MIN(t->out.len - t->fed, (size_t)7777);

	*ret = t->out.data + t->fed;
	t->fed += n;
	return (ssize_t)n;
}

int tar_parse(struct tar *t, struct bs_layer **ret, struct bs_error *err)
{
	t->fed = 0;
	return bs_layer_parse("layer", input, t, true, NULL, ret, err);
}

int tar_layer(struct tar *t, struct bs_layer **ret, struct bs_error *err)
{
	tar_end(t);
	return tar_parse(t, ret, err);
}

static char type_letter(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return 'd';
	case S_IFREG:
		return 'f';
	case S_IFLNK:
		return 'l';
	case S_IFCHR:
		return 'c';
	case S_IFBLK:
		return 'b';
	case S_IFIFO:
		return 'p';
	default:
		return '?';
	}
}

static void show(const struct bs_node *dir, struct bs_buf *out)
{
	bs_autofree struct bs_node **v = NULL;
	size_t n;

	v = bs_node_sorted(dir, &n);
	for (size_t i = 0; i < n; i++) {
		struct bs_inode *inode = v[i]->inode;
		char path[512], text[64] = "";

		(void)bs_buf_addf(out, "%c%s %s", type_letter(inode->mode),
				  inode->entry == UINT32_MAX ? "" : "+",
				  bs_node_path(v[i], path, sizeof(path)) + 1);
		inode->entry = 0;
		if (S_ISLNK(inode->mode))
			(void)bs_buf_addf(out, ">%s", inode->target);
		if (inode->size > 0 && inode->size < sizeof(text) &&
		    bs_spool_read(inode->spool, inode->spool_off, text, (size_t)inode->size,
				  NULL) == 0)
			(void)bs_buf_addf(out, "=%s", text);
		(void)bs_buf_adds(out, "\n");
		if (S_ISDIR(inode->mode))
			show(v[i], out);
	}
}

char *tree_text(const struct bs_nodes *t)
{
	struct bs_buf out = BS_BUF_INIT(1u << 20);

	show(t->root, &out);
	return bs_buf_take(&out);
}
