/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

static const char *const kind_names[] = { "overlay", "over", "kept", "none" };
_Static_assert(BS_ARRAY_LEN(kind_names) == BS_STATE_KIND_MAX, "a name each");

static const struct {
	const char *key;
	size_t at;
	bool optional;
} texts[] = {
	{ "id", offsetof(struct bs_state, id), false },
	{ "root", offsetof(struct bs_state, root), false },
	{ "bundle", offsetof(struct bs_state, bundle), false },
	{ "rootfs", offsetof(struct bs_state, rootfs), false },
	{ "digest", offsetof(struct bs_state, digest), false },
	{ "lease", offsetof(struct bs_state, lease), false },
	{ "upper", offsetof(struct bs_state, upper), true },
	{ "work", offsetof(struct bs_state, work), true },
};

static char **text_at(const struct bs_state *s, size_t i)
{
	return (char **)(uintptr_t)((const char *)s + texts[i].at);
}

void bs_state_done(struct bs_state *s)
{
	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++)
		free(*text_at(s, i));
	bs_strv_done(&s->layers);
	*s = (struct bs_state){ 0 };
}

/* One component less, of an absolute path. */
static void cut(char *path)
{
	char *slash = strrchr(path, '/');

	slash[slash == path] = '\0';
}

/*
 * Where path leads, or will once it is made: the runtime makes its directory at the first
 * create, and later commands must find the same name though symbolic links are on the way.
 */
static char *real_path(const char *path)
{
	bs_autofree char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
	bs_autofree char *full = bs_strf("%s/%s", here ?: "", path);
	bs_autofree char *done = bs_strf("/");
	char *at = full, *word;

	while (done && at && (word = strsep(&at, "/"))) {
		bs_autofree char *next = NULL, *real = NULL;

		if (!*word || bs_streq(word, "."))
			continue;
		if (bs_streq(word, "..")) {
			cut(done);
			continue;
		}
		next = bs_strf("%s/%s", done[1] ? done : "", word);
		real = next ? realpath(next, NULL) : NULL;
		free(done);
		done = real ? bs_take(&real) : bs_take(&next);
	}
	return full ? bs_take(&done) : NULL;
}

char *bs_state_key(const char *id, const char *root)
{
	bs_autofree char *real = real_path(root);
	char hex[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;

	if (!real)
		return NULL;
	bs_digest_of(real, strlen(real), &d);
	return bs_strf("%s@%.8s", id, bs_digest_hex(&d, hex));
}

static int parse_kind(const struct bs_json *doc, enum bs_state_kind *ret)
{
	const char *kind = bs_json_str(bs_json_get(doc, "kind"));

	for (size_t i = 0; kind && i < BS_STATE_KIND_MAX; i++) {
		if (bs_streq(kind_names[i], kind)) {
			*ret = (enum bs_state_kind)i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int parse_members(const struct bs_json *doc, struct bs_state *s)
{
	const struct bs_json *layers = bs_json_get(doc, "layers");
	uint64_t version;
	int r;

	if (bs_json_u64(bs_json_get(doc, "version"), &version) < 0)
		return -EBADMSG;
	if (version != BS_STATE_VERSION)
		return -EPROTONOSUPPORT;
	r = parse_kind(doc, &s->kind);
	for (size_t i = 0; r == 0 && i < BS_ARRAY_LEN(texts); i++) {
		const char *text = bs_json_str(bs_json_get(doc, texts[i].key));

		if (!text && !texts[i].optional)
			return -EBADMSG;
		if (text && !(*text_at(s, i) = bs_strf("%s", text)))
			return -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < bs_json_n(layers); i++) {
		const char *text = bs_json_str(bs_json_at(layers, i));

		r = text ? bs_strv_add(&s->layers, text) : -EBADMSG;
	}
	return r;
}

int bs_state_parse(const char *text, size_t len, struct bs_state *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	bs_autostate s = { 0 };
	int r = bs_json_parse("state", text, len, BS_STATE_BYTES_MAX, &doc, err);

	if (r < 0)
		return r;
	r = parse_members(doc, &s);
	if (r < 0)
		return bs_fail_errno(err, r, "state file");
	*ret = s;
	s = (struct bs_state){ 0 };
	return 0;
}

int bs_state_read(int dirfd, const char *key, struct bs_state *ret, struct bs_error *err)
{
	bs_autofree char *name = bs_strf("%s.json", key), *text = NULL;
	size_t len;
	int r;

	if (!name)
		return bs_fail(err, -ENOMEM, "read state of '%s': out of memory", key);
	r = bs_read_file_at(dirfd, name, O_NOFOLLOW, BS_STATE_BYTES_MAX, &text, &len);
	if (r == -ENOENT)
		return r;
	if (r < 0)
		return bs_fail_errno(err, r, "read state file '%s'", name);
	r = bs_state_parse(text, len, ret, err);
	return r < 0 ? (bs_error_context(err, "'%s'", name), r) : 0;
}

int bs_state_write(int dirfd, const char *key, const struct bs_state *s, struct bs_error *err)
{
	bs_autofree char *name = bs_strf("%s.json", key);
	bs_autobuf out = BS_BUF_INIT(BS_STATE_BYTES_MAX);
	struct bs_jsonw *w = bs_jsonw_new(false);
	int r;

	if (!name || !w) {
		(void)bs_jsonw_free(w);
		return bs_fail(err, -ENOMEM, "write state of '%s': out of memory", key);
	}
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "version", BS_STATE_VERSION);
	bs_jsonw_kstr(w, "kind", kind_names[s->kind]);
	for (size_t i = 0; i < BS_ARRAY_LEN(texts); i++) {
		const char *text = *text_at(s, i);

		if (text || !texts[i].optional) {
			bs_jsonw_key(w, texts[i].key);
			bs_jsonw_bytes(w, text ? text : "", text ? strlen(text) : 0);
		}
	}
	bs_jsonw_key(w, "layers");
	bs_jsonw_array(w);
	for (size_t i = 0; i < s->layers.n; i++)
		bs_jsonw_bytes(w, s->layers.v[i], strlen(s->layers.v[i]));
	bs_jsonw_end(w);
	bs_jsonw_end(w);
	r = bs_jsonw_finish(w, &out);
	if (r == 0)
		r = bs_atomicfile_write(dirfd, name, bs_buf_str(&out), out.len, 0600, false);
	return r < 0 ? bs_fail_errno(err, r, "write state file '%s'", name) : 0;
}

int bs_state_remove(int dirfd, const char *key)
{
	bs_autofree char *name = bs_strf("%s.json", key);

	if (!name)
		return -ENOMEM;
	return unlinkat(dirfd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}
