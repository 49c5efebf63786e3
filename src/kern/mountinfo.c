/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

static int octal(char c)
{
	return c >= '0' && c <= '7' ? c - '0' : -1;
}

void bs_mountinfo_unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; to++) {
		int a, b, c;

		if (p[0] == '\\' && (a = octal(p[1])) >= 0 && (b = octal(p[2])) >= 0 &&
		    (c = octal(p[3])) >= 0 && a <= 3 && (a | b | c)) {
			*to = (char)(a * 64 + b * 8 + c);
			p += 4;
		} else {
			*to = *p++;
		}
	}
	*to = '\0';
}

/* Cuts the next field off *rest; NULL at the end. */
static char *next_field(char **rest)
{
	char *field = *rest, *end;

	if (!field || !*field)
		return NULL;
	end = strchr(field, ' ');
	if (end)
		*end++ = '\0';
	*rest = end;
	return field;
}

static int parse_fields(struct bs_mountinfo *m, char *rest)
{
	const char *id = next_field(&rest), *parent = next_field(&rest);
	const char *device = next_field(&rest);
	char *optional;

	m->root = next_field(&rest);
	m->point = next_field(&rest);
	m->options = next_field(&rest);
	if (!id || !parent || !device || !m->options || bs_parse_u64(id, &m->id) < 0 ||
	    bs_parse_u64(parent, &m->parent) < 0)
		return -EBADMSG;
	while ((optional = next_field(&rest)) && !bs_streq(optional, "-"))
		m->shared = m->shared || bs_str_after(optional, "shared:");
	m->fstype = next_field(&rest);
	m->source = next_field(&rest);
	m->super = next_field(&rest);
	/* an empty source leaves two spaces: not seen, since the kernel writes "none" */
	if (!optional || !m->super)
		return -EBADMSG;
	return 0;
}

int bs_mountinfo_parse(const char *line, size_t len, struct bs_mountinfo *ret)
{
	bs_automountinfo m = { 0 };
	int r;

	if (len > BS_MOUNTINFO_LINE_MAX)
		return -E2BIG;
	if (memchr(line, '\0', len))
		return -EBADMSG;
	m.line = strndup(line, len);
	if (!m.line)
		return -ENOMEM;
	r = parse_fields(&m, m.line);
	if (r < 0)
		return r;
	bs_mountinfo_unescape(m.root);
	bs_mountinfo_unescape(m.point);
	bs_mountinfo_unescape(m.fstype);
	bs_mountinfo_unescape(m.source);
	*ret = m;
	m = (struct bs_mountinfo){ 0 };
	return 0;
}

void bs_mountinfo_done(struct bs_mountinfo *m)
{
	free(m->line);
	*m = (struct bs_mountinfo){ 0 };
}

int bs_mountinfo_id(int fd, uint64_t *ret_id, bool *ret_is_root)
{
	struct statx stx;

	/* without asking a server that may hang, or be gone */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &stx) < 0)
		return -errno;
	if (!(stx.stx_mask & STATX_MNT_ID) || !(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return -EOPNOTSUPP;
	*ret_id = stx.stx_mnt_id;
	*ret_is_root = stx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return 0;
}

int bs_mountinfo_find(uint64_t id, struct bs_mountinfo *ret)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bs_autofree char *line = NULL, *prefix = bs_strf("%llu ", (unsigned long long)id);
	size_t cap = 0;
	ssize_t n;
	int r = -ENOENT;

	if (!f || !prefix) {
		r = f ? -ENOMEM : -errno;
		if (f)
			(void)fclose(f);
		return r;
	}
	while (r == -ENOENT && (n = getline(&line, &cap, f)) > 0) {
		if (bs_str_after(line, prefix))
			r = bs_mountinfo_parse(line, (size_t)n - (line[n - 1] == '\n'), ret);
	}
	(void)fclose(f);
	return r;
}

uint64_t bs_mountinfo_attrs(const char *options)
{
	static const struct {
		const char *word;
		uint64_t attr;
	} table[] = {
		{ "ro", MOUNT_ATTR_RDONLY },	     { "nosuid", MOUNT_ATTR_NOSUID },
		{ "nodev", MOUNT_ATTR_NODEV },	     { "noexec", MOUNT_ATTR_NOEXEC },
		{ "noatime", MOUNT_ATTR_NOATIME },   { "nodiratime", MOUNT_ATTR_NODIRATIME },
		{ "relatime", MOUNT_ATTR_RELATIME }, { "nosymfollow", MOUNT_ATTR_NOSYMFOLLOW },
	};
	uint64_t attrs = MOUNT_ATTR_STRICTATIME;

	for (const char *p = options; *p;) {
		size_t n = strcspn(p, ",");

		for (size_t i = 0; i < BS_ARRAY_LEN(table); i++) {
			if (strlen(table[i].word) != n || memcmp(table[i].word, p, n) != 0)
				continue;
			if (table[i].attr == MOUNT_ATTR_NOATIME ||
			    table[i].attr == MOUNT_ATTR_RELATIME)
				attrs &= ~(uint64_t)MOUNT_ATTR__ATIME;
			attrs |= table[i].attr;
		}
		p += n + (p[n] == ',');
	}
	return attrs;
}
