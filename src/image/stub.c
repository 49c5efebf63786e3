/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/stub.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "image/manifest.h"
#include "image/nodes.h"
#include "image/spool.h"
#include "image/stubtar.h"
#include "image/userdb.h"

#define MEDIA_LAYER "application/vnd.oci.image.layer.v1.tar+gzip"

int bs_nodes_read_text(struct bs_nodes *t, const char *path, size_t max, char **ret,
		       struct bs_error *err)
{
	bs_autofree char *text = NULL;
	struct bs_node *n = NULL;
	size_t len = 0;
	int r = bs_nodes_walk(t, path, 0, NULL, NULL, &n);

	if (r == -ENOMEM)
		return bs_fail_errno(err, r, "'%s' of the image", path);
	if (r == 0 && S_ISREG(n->inode->mode))
		len = (size_t)BS_MIN(n->inode->size, (uint64_t)max);
	text = calloc(1, len + 1);
	if (!text)
		return bs_fail_errno(err, -ENOMEM, "'%s' of the image", path);
	r = len ? bs_spool_read(n->inode->spool, n->inode->spool_off, text, len, err) : 0;
	if (r < 0)
		return r;
	*ret = bs_take(&text);
	return 0;
}

/* --- what belongs to it ---------------------------------------------------------------------- */

static void mark(void *cookie, struct bs_node *n)
{
	for (; n && !n->marked; n = n->parent)
		n->marked = true;
}

/* Marks the way to path; NULL when it is not there. */
static struct bs_node *mark_path(struct bs_nodes *t, const char *path)
{
	struct bs_node *n;

	return bs_nodes_walk(t, path, 0, mark, NULL, &n) == 0 ? n : NULL;
}

/* The bytes that all below n would take in the layer, counted until the limit. */
static uint64_t tree_bytes(const struct bs_node *n, uint64_t limit, unsigned int depth)
{
	uint64_t sum = 1024 + (S_ISREG(n->inode->mode) ? n->inode->size : 0);
	const struct bs_node *child;
	size_t pos = 0;

	if (depth == 0)
		return limit + 1;
	while (sum <= limit && n->children && (child = bs_map_next(n->children, &pos)))
		sum += tree_bytes(child, limit, depth - 1);
	return sum;
}

static void mark_tree(struct bs_node *n)
{
	size_t pos = 0;
	struct bs_node *child;

	mark(NULL, n);
	while (n->children && (child = bs_map_next(n->children, &pos)))
		mark_tree(child);
}

static int mark_volumes(struct bs_nodes *t, const struct bs_json *volumes, struct bs_stub *s)
{
	uint64_t left = BS_STUB_VOLUMES_MAX;

	for (size_t i = 0; bs_json_is(volumes, BS_JSON_OBJECT) && i < volumes->n_items; i++) {
		struct bs_node *n = mark_path(t, volumes->keys[i]);
		uint64_t bytes = n ? tree_bytes(n, left, 256) : 0;

		if (!n)
			continue;
		if (bytes > left) {
			if (bs_strv_add(&s->left_out, volumes->keys[i]) < 0)
				return -ENOMEM;
			continue;
		}
		left -= bytes;
		mark_tree(n);
	}
	return 0;
}

static int mark_home(struct bs_nodes *t, const char *user, struct bs_error *err)
{
	bs_autofree char *passwd = NULL, *group = NULL;
	struct bs_user u = { 0 };
	int r = bs_nodes_read_text(t, "etc/passwd", BS_USERDB_MAX, &passwd, err);

	if (r == 0)
		r = bs_nodes_read_text(t, "etc/group", BS_USERDB_MAX, &group, err);
	if (r < 0)
		return r;
	/* an image whose user is nowhere is the engine's to refuse */
	if (bs_userdb_find(passwd, group, user ? user : "", &u, NULL) < 0)
		return 0;
	(void)mark_path(t, u.home);
	bs_user_done(&u);
	return 0;
}

static int mark_all(struct bs_nodes *t, const struct bs_json *config, struct bs_stub *s,
		    struct bs_error *err)
{
	const struct bs_json *c = bs_json_get(config, "config");
	const char *dir = bs_json_str(bs_json_get(c, "WorkingDir"));

	(void)mark_path(t, "etc/passwd");
	(void)mark_path(t, "etc/group");
	if (dir)
		(void)mark_path(t, dir);
	if (mark_volumes(t, bs_json_get(c, "Volumes"), s) < 0)
		return bs_fail_errno(err, -ENOMEM, "volumes");
	return mark_home(t, bs_json_str(bs_json_get(c, "User")), err);
}

/* --- config and manifest --------------------------------------------------------------------- */

static int make_config(const struct bs_json *config, const struct bs_digest *diff_id,
		       struct bs_stub *s, struct bs_error *err)
{
	bs_auto(json) struct bs_json *c = bs_json_copy(config);
	bs_autobuf out = BS_BUF_INIT(BS_CONFIG_MAX);
	struct bs_json *rootfs, *ids, *history, *step;
	char text[BS_DIGEST_TEXT_LEN];
	int r;

	if (!c)
		return bs_fail_errno(err, -ENOMEM, "the stub's config");
	bs_json_remove(c, "rootfs");
	bs_json_remove(c, "history");
	rootfs = bs_json_make(c, "rootfs", BS_JSON_OBJECT);
	if (!rootfs || bs_json_set(rootfs, "type", bs_json_new_str("layers")) < 0)
		return bs_fail_errno(err, -ENOMEM, "the stub's config");
	ids = bs_json_make(rootfs, "diff_ids", BS_JSON_ARRAY);
	history = bs_json_make(c, "history", BS_JSON_ARRAY);
	step = bs_json_new(BS_JSON_OBJECT);
	if (!ids || !history || bs_json_append(history, step) < 0 ||
	    bs_json_append(ids, bs_json_new_str(bs_digest_text(diff_id, text))) < 0 ||
	    bs_json_set(step, "created_by", bs_json_new_str("bootseer stub")) < 0)
		return bs_fail_errno(err, -ENOMEM, "the stub's config");
	r = bs_json_write(c, &out);
	if (r < 0)
		return bs_fail_errno(err, r, "the stub's config");
	s->config_len = out.len;
	s->config = bs_buf_take(&out);
	bs_digest_of(s->config, s->config_len, &s->config_digest);
	return 0;
}

static int make_manifest(const struct bs_artifact *a, struct bs_stub *s, struct bs_error *err)
{
	bs_autobuf out = BS_BUF_INIT(1u << 20);
	struct bs_jsonw *w = bs_jsonw_new(false);
	char text[BS_DIGEST_TEXT_LEN];
	int r;

	if (!w)
		return bs_fail_errno(err, -ENOMEM, "the stub's manifest");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "schemaVersion", 2);
	bs_jsonw_kstr(w, "mediaType", BS_MEDIA_OCI_MANIFEST);
	bs_jsonw_key(w, "config");
	bs_descriptor_write(w, BS_MEDIA_OCI_CONFIG,
			    &(struct bs_descriptor){ s->config_digest, s->config_len });
	bs_jsonw_key(w, "layers");
	bs_jsonw_array(w);
	bs_descriptor_write(w, MEDIA_LAYER,
			    &(struct bs_descriptor){ s->layer_digest, s->layer_len });
	bs_jsonw_end(w);
	bs_jsonw_key(w, "annotations");
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, BS_ANNOTATION_ARTIFACT, bs_digest_text(&a->digest, text));
	if (a->has_subject)
		bs_jsonw_kstr(w, BS_ANNOTATION_SOURCE, bs_digest_text(&a->subject.digest, text));
	bs_jsonw_end(w);
	bs_jsonw_end(w);
	r = bs_jsonw_finish(w, &out);
	if (r < 0)
		return bs_fail_errno(err, r, "the stub's manifest");
	s->manifest_len = out.len;
	s->manifest = bs_buf_take(&out);
	bs_digest_of(s->manifest, s->manifest_len, &s->manifest_digest);
	return 0;
}

static int make(struct bs_nodes *t, const struct bs_json *config, const struct bs_artifact *a,
		const struct bs_marker *marker, struct bs_stub *s, struct bs_error *err)
{
	bs_autobuf layer = BS_BUF_INIT(BS_STUB_VOLUMES_MAX + (64u << 20));
	bs_autofree char *text = NULL;
	struct bs_digest diff_id;
	size_t len;
	int r = bs_marker_write(marker, &text, &len, err);

	if (r == 0)
		r = mark_all(t, config, s, err);
	if (r == 0)
		r = bs_stubtar_write(t, text, len, &layer, &diff_id, err);
	if (r < 0)
		return r;
	s->layer_len = layer.len;
	s->layer = bs_buf_take(&layer);
	bs_digest_of(s->layer, s->layer_len, &s->layer_digest);
	r = make_config(config, &diff_id, s, err);
	return r < 0 ? r : make_manifest(a, s, err);
}

int bs_stub_make(struct bs_nodes *t, const struct bs_json *config, const struct bs_artifact *a,
		 const struct bs_marker *marker, struct bs_stub *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	struct bs_stub s = { 0 };
	int r;

	err = err ? err : &own;
	r = make(t, config, a, marker, &s, err);
	if (r < 0) {
		bs_stub_done(&s);
		return bs_error_context(err, "stub image");
	}
	*ret = s;
	return 0;
}

void bs_stub_done(struct bs_stub *s)
{
	free(s->layer);
	free(s->config);
	free(s->manifest);
	bs_strv_done(&s->left_out);
	*s = (struct bs_stub){ 0 };
}
