/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/overlay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "kern/mountfd.h"
#include "kern/mountinfo.h"

/* fsconfig(2) takes strings up to 255 bytes. */
#define FSCONFIG_STRING_MAX 255
/* mount(2) takes a page. */
#define MOUNT_DATA_MAX 4095

/* --- reading ------------------------------------------------------------------------- */

void bs_overlay_done(struct bs_overlay *o)
{
	bs_strv_done(&o->lowers);
	bs_strv_done(&o->options);
	free(o->upper);
	free(o->work);
	*o = (struct bs_overlay){ 0 };
}

/* overlay's own escapes: a backslash takes the next byte as it is. In place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		if (p[0] == '\\' && p[1])
			p++;
		*to++ = *p;
	}
	*to = '\0';
}

/* The length up to the next ':' that is no escaped one. */
static size_t layer_len(const char *p)
{
	size_t n = 0;

	while (p[n] && p[n] != ':')
		n += p[n] == '\\' && p[n + 1] ? 2 : 1;
	return n;
}

static int add_layer(struct bs_overlay *o, const char *path, size_t len, bool escaped,
		     struct bs_error *err)
{
	char *copy;

	if (len == 0)
		return bs_fail(err, -EOPNOTSUPP,
			       "an overlay with data-only layers cannot be put together anew");
	if (o->lowers.n >= BS_OVERLAY_LAYERS_MAX)
		return bs_fail(err, -E2BIG, "an overlay of more than %u layers",
			       BS_OVERLAY_LAYERS_MAX);
	copy = strndup(path, len);
	if (copy && escaped)
		unescape(copy);
	return bs_strv_take(&o->lowers, copy);
}

static int add_layers(struct bs_overlay *o, const char *list, struct bs_error *err)
{
	for (;;) {
		size_t n = layer_len(list);
		int r = add_layer(o, list, n, true, err);

		if (r < 0)
			return r;
		if (!list[n])
			return 0;
		list += n + 1;
	}
}

static int set_dir(char **at, const char *value)
{
	free(*at);
	*at = strdup(value);
	if (!*at)
		return -ENOMEM;
	unescape(*at);
	return 0;
}

static int take_option(struct bs_overlay *o, const char *option, struct bs_error *err)
{
	const char *v;

	if ((v = bs_str_after(option, "lowerdir=")))
		return add_layers(o, v, err);
	if ((v = bs_str_after(option, "lowerdir+=")))
		return add_layer(o, v, strlen(v), false, err);
	if (bs_str_after(option, "datadir+="))
		return add_layer(o, "", 0, false, err);
	if ((v = bs_str_after(option, "upperdir=")))
		return set_dir(&o->upper, v);
	if ((v = bs_str_after(option, "workdir=")))
		return set_dir(&o->work, v);
	if (bs_streq(option, "ro"))
		o->ro = true;
	else if (bs_streq(option, "volatile") || bs_streq(option, "fsync=volatile"))
		o->is_volatile = true;
	else if (!bs_streq(option, "rw"))
		return bs_strv_add(&o->options, option);
	return 0;
}

/* The end of the option at p: a comma, but not one in the quotes of context="a,b". */
static size_t option_len(const char *p)
{
	size_t n = strcspn(p, ",=");

	if (p[n] == '=' && p[n + 1] == '"') {
		const char *end = strchr(p + n + 2, '"');

		if (end)
			n = (size_t)(end - p);
	}
	return n + strcspn(p + n, ",");
}

/* context="x" is how it is shown, context=x how it is set. */
static void unquote(char *option)
{
	char *v = strchr(option, '=');
	size_t n;

	if (!v || v[1] != '"')
		return;
	n = strlen(v + 2);
	if (n == 0 || v[2 + n - 1] != '"')
		return;
	memmove(v + 1, v + 2, n - 1);
	v[n] = '\0';
}

int bs_overlay_parse(const char *super, struct bs_overlay *ret, struct bs_error *err)
{
	bs_autooverlay o = { 0 };

	while (*super) {
		size_t n = option_len(super);
		bs_autofree char *option = strndup(super, n);
		int r;

		if (!option)
			return bs_fail(err, -ENOMEM, "read overlay options: out of memory");
		unquote(option);
		bs_mountinfo_unescape(option);
		r = option[0] ? take_option(&o, option, err) : 0;
		if (r == -ENOMEM)
			return bs_fail(err, r, "read overlay options: out of memory");
		if (r < 0)
			return r;
		super += n + (super[n] == ',');
	}
	if (o.lowers.n == 0)
		return bs_fail(err, -EBADMSG, "an overlay that names no lower layer");
	if (!o.upper != !o.work)
		return bs_fail(err, -EBADMSG, "an overlay with only one of upperdir and workdir");
	*ret = o;
	o = (struct bs_overlay){ 0 };
	return 0;
}

/* --- making -------------------------------------------------------------------------------- */

char *bs_overlay_escape(const char *path)
{
	char *out = malloc(2 * strlen(path) + 1), *to = out;

	for (; out && *path; path++) {
		if (strchr(":,\\", *path))
			*to++ = '\\';
		*to++ = *path;
	}
	if (out)
		*to = '\0';
	return out;
}

/* The path when it leads to what fd is, else /proc/self/fd/N; malloc'ed. */
static char *name_of(const struct bs_layer *l, bool escaped, size_t max)
{
	bs_autofree char *text = NULL;
	struct stat a, b;
	char buf[32];

	if (l->path && l->path[0] == '/' && fstat(l->fd, &a) == 0 && stat(l->path, &b) == 0 &&
	    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
		text = escaped ? bs_overlay_escape(l->path) : strdup(l->path);
	if (text && strlen(text) <= max)
		return bs_take(&text);
	return strdup(bs_path_of_fd(l->fd, buf));
}

static int set_layer(int fs, const char *key, const struct bs_layer *l, bool escaped,
		     struct bs_error *err)
{
	bs_autofree char *name = name_of(l, escaped, FSCONFIG_STRING_MAX);

	if (!name)
		return bs_fail(err, -ENOMEM, "out of memory");
	return bs_mountfd_set(fs, key, name, err);
}

static int set_option(int fs, const char *option, struct bs_error *err)
{
	bs_autofree char *key = strdup(option);
	char *value;

	if (!key)
		return bs_fail(err, -ENOMEM, "out of memory");
	value = strchr(key, '=');
	if (!value)
		return bs_mountfd_flag(fs, key, err);
	*value++ = '\0';
	return bs_mountfd_set(fs, key, value, err);
}

static int set_volatile(int fs, struct bs_error *err)
{
	/* the old word is known to all kernels, the new one is how some of them show it */
	if (bs_mountfd_flag(fs, "volatile", NULL) == 0)
		return 0;
	return bs_mountfd_set(fs, "fsync", "volatile", err);
}

static int set_all(int fs, const struct bs_overlay_spec *s, struct bs_error *err)
{
	int r = bs_mountfd_set(fs, "source", s->source, err);

	for (size_t i = 1; r == 0 && i < s->n_lowers; i++)
		r = set_layer(fs, "lowerdir+", &s->lowers[i], false, err);
	if (r == 0 && s->upper.fd >= 0)
		r = set_layer(fs, "upperdir", &s->upper, true, err);
	if (r == 0 && s->work.fd >= 0)
		r = set_layer(fs, "workdir", &s->work, true, err);
	for (size_t i = 0; r == 0 && s->options && i < s->options->n; i++)
		r = set_option(fs, s->options->v[i], err);
	if (r == 0 && s->is_volatile && s->upper.fd >= 0)
		r = set_volatile(fs, err);
	if (r == 0 && s->ro)
		r = bs_mountfd_flag(fs, "ro", err);
	return r;
}

int bs_overlay_prepare(const struct bs_overlay_spec *spec, struct bs_overlay_build *ret,
		       struct bs_error *err)
{
	bs_autofree char *first = name_of(&spec->lowers[0], false, FSCONFIG_STRING_MAX);
	bs_autofd int fs = bs_mountfd_open("overlay", err);
	int r;

	*ret = (struct bs_overlay_build){ .spec = spec, .fs = -EBADF };
	if (fs < 0 && fs != -ENOSYS)
		return fs;
	if (!first)
		return bs_fail(err, -ENOMEM, "overlay: out of memory");
	/* lowerdir+ came with Linux 6.5: without it everything goes into one string */
	if (fs < 0 || bs_mountfd_set(fs, "lowerdir+", first, NULL) == -EINVAL)
		return 0;
	r = set_all(fs, spec, err);
	if (r < 0)
		return bs_error_context(err, "overlay");
	ret->fs = bs_take_fd(&fs);
	return 0;
}

void bs_overlay_build_done(struct bs_overlay_build *b)
{
	b->fs = bs_close(b->fs);
}

static void add_layer_text(struct bs_buf *data, const char *before, const struct bs_layer *l)
{
	char buf[32];

	/* short whatever the paths are: 200 layers fit into the page */
	(void)bs_buf_addf(data, "%s%s", before, bs_path_of_fd(l->fd, buf));
}

static void add_option_text(struct bs_buf *data, const char *option)
{
	const char *value = strchr(option, '=');

	/* security labels (context=) may hold commas, and are quoted for that */
	if (value && strchr(value, ','))
		(void)bs_buf_addf(data, ",%.*s=\"%s\"", (int)(value - option), option, value + 1);
	else
		(void)bs_buf_addf(data, ",%s", option);
}

static unsigned long flags_of(uint64_t attrs)
{
	static const struct {
		uint64_t attr;
		unsigned long flag;
	} table[] = {
		{ MOUNT_ATTR_RDONLY, MS_RDONLY },	  { MOUNT_ATTR_NOSUID, MS_NOSUID },
		{ MOUNT_ATTR_NODEV, MS_NODEV },		  { MOUNT_ATTR_NOEXEC, MS_NOEXEC },
		{ MOUNT_ATTR_NODIRATIME, MS_NODIRATIME },
	};
	unsigned long flags = 0;

	for (size_t i = 0; i < BS_ARRAY_LEN(table); i++) {
		if (attrs & table[i].attr)
			flags |= table[i].flag;
	}
	switch (attrs & MOUNT_ATTR__ATIME) {
	case MOUNT_ATTR_NOATIME:
		return flags | MS_NOATIME;
	case MOUNT_ATTR_STRICTATIME:
		return flags | MS_STRICTATIME;
	default:
		return flags | MS_RELATIME;
	}
}

/* mount(2) needs a place: a directory of ours, from which the mount is taken again. */
static int create_by_string(const struct bs_overlay_spec *s, struct bs_error *err)
{
	bs_autobuf data = BS_BUF_INIT(MOUNT_DATA_MAX);
	bs_autofree char *place = bs_strf("%s/overlay-XXXXXX", s->scratch);
	int fd, r;

	for (size_t i = 0; i < s->n_lowers; i++)
		add_layer_text(&data, i == 0 ? "lowerdir=" : ":", &s->lowers[i]);
	if (s->upper.fd >= 0) {
		add_layer_text(&data, ",upperdir=", &s->upper);
		add_layer_text(&data, ",workdir=", &s->work);
		if (s->is_volatile)
			(void)bs_buf_adds(&data, ",volatile");
	}
	for (size_t i = 0; s->options && i < s->options->n; i++)
		add_option_text(&data, s->options->v[i]);
	if (data.error < 0)
		return bs_fail(err, data.error, "overlay: its options do not fit into one page");
	if (!place || !mkdtemp(place))
		return bs_fail_errno(err, place ? -errno : -ENOMEM, "overlay: directory in '%s'",
				     s->scratch);
	if (mount(s->source, place, "overlay", flags_of(s->attrs) | (s->ro ? MS_RDONLY : 0),
		  bs_buf_str(&data)) < 0) {
		r = -errno;
		(void)rmdir(place);
		return bs_fail_errno(err, r, "overlay: mount");
	}
	fd = bs_mountfd_clone(AT_FDCWD, place, err);
	(void)bs_mountfd_detach(place);
	(void)rmdir(place);
	return fd;
}

int bs_overlay_create(struct bs_overlay_build *b, struct bs_error *err)
{
	int r;

	if (b->fs < 0)
		return create_by_string(b->spec, err);
	r = bs_mountfd_create(b->fs, (uint32_t)b->spec->attrs, err);
	return r < 0 ? bs_error_context(err, "overlay"), r : r;
}

bool bs_overlay_takes(int upper_layer, int lower_layer)
{
	const struct bs_layer lowers[] = { { .fd = upper_layer }, { .fd = lower_layer } };
	const struct bs_overlay_spec spec = {
		.source = "bootseer-probe",
		.lowers = lowers,
		.n_lowers = 2,
		.upper.fd = -EBADF,
		.work.fd = -EBADF,
		.ro = true,
	};
	bs_autobuild b = { .fs = -EBADF };
	bs_autofd int mnt = -EBADF;

	if (bs_overlay_prepare(&spec, &b, NULL) < 0 || b.fs < 0)
		return false; /* the old way takes only mounts that have a place */
	mnt = bs_mountfd_create(b.fs, 0, NULL);
	return mnt >= 0;
}
