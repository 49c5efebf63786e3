/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Directories as EROFS has them: blocks of entries and then names, sorted through the
 * whole directory, so that the kernel can search first for the block and then in it.
 */
#include "config.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>

#include "image/erofsdisk.h"

#define DIRENTS_MAX (BS_BLOCK_SIZE / (sizeof(struct erofs_dirent) + 1))

struct name {
	const char *text;
	uint32_t len;
	uint32_t inode; /* its entry */
};

void bs_erofs_walk(struct erofs_walk *w, const struct bs_tree *t, const struct erofs_place *places,
		   uint32_t dir)
{
	*w = (struct erofs_walk){ t, places, dir, places[dir].first_child, 0 };
}

/* The next name without passing it; false at the end. */
static bool peek(const struct erofs_walk *w, struct name *ret)
{
	const struct bs_tree_entry *e = &w->t->entries[w->child];

	if (w->dots < 2 && (w->child == 0 || strcmp(w->dots ? ".." : ".", e->name) < 0)) {
		ret->text = "..";
		ret->len = w->dots + 1u;
		ret->inode = w->dots ? w->t->entries[w->dir].parent : w->dir;
		return true;
	}
	if (w->child == 0)
		return false;
	ret->text = e->name;
	ret->len = e->name_len;
	ret->inode = e->inode;
	return true;
}

static void pass(struct erofs_walk *w, const struct name *n)
{
	if (n->text == w->t->entries[w->child].name && w->child)
		w->child = w->places[w->child].next;
	else
		w->dots++;
}

uint64_t bs_erofs_dir_size(const struct bs_tree *t, const struct erofs_place *places, uint32_t dir)
{
	uint64_t full = 0;
	uint32_t used = 0;
	struct erofs_walk w;
	struct name n;

	bs_erofs_walk(&w, t, places, dir);
	while (peek(&w, &n)) {
		uint32_t need = (uint32_t)sizeof(struct erofs_dirent) + n.len;

		if (used + need > BS_BLOCK_SIZE) {
			full += BS_BLOCK_SIZE;
			used = 0;
		}
		used += need;
		pass(&w, &n);
	}
	return full + used > UINT32_MAX ? UINT64_MAX : full + used;
}

static uint8_t file_type(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return 1;
	case S_IFDIR:
		return 2;
	case S_IFCHR:
		return 3;
	case S_IFBLK:
		return 4;
	case S_IFIFO:
		return 5;
	case S_IFSOCK:
		return 6;
	default:
		return 7;
	}
}

uint32_t bs_erofs_dir_block(struct erofs_walk *w, uint8_t block[BS_BLOCK_SIZE])
{
	struct name names[DIRENTS_MAX + 1]; /* one that does not fit */
	uint32_t n = 0, used = 0, nameoff;

	while (peek(w, &names[n])) {
		uint32_t need = (uint32_t)sizeof(struct erofs_dirent) + names[n].len;

		if (used + need > BS_BLOCK_SIZE)
			break;
		used += need;
		pass(w, &names[n++]);
	}
	nameoff = n * (uint32_t)sizeof(struct erofs_dirent);
	for (uint32_t i = 0; i < n; i++) {
		struct erofs_dirent d = {
			.nid = htole64(w->places[names[i].inode].slot),
			.nameoff = htole16((uint16_t)nameoff),
			.file_type = file_type(w->t->entries[names[i].inode].mode),
		};

		memcpy(block + i * sizeof(d), &d, sizeof(d));
		memcpy(block + nameoff, names[i].text, names[i].len);
		nameoff += names[i].len;
	}
	memset(block + used, 0, BS_BLOCK_SIZE - used);
	return used;
}
