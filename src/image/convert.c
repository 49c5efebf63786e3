/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "image/convert.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "image/artifact.h"
#include "image/convertindex.h"
#include "image/layer.h"
#include "image/manifest.h"
#include "image/nodes.h"
#include "image/pack.h"
#include "image/readlayers.h"
#include "image/rootfs.h"
#include "image/spool.h"
#include "image/stub.h"
#include "net/repo.h"

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

/* Layers come out of their compression about so much larger; and data is about a third of that. */
#define GROWTH 4u

/* One platform on its way. */
struct job {
	const struct bs_convert *c;
	char *platform;
	struct bs_nodes nodes;
	struct bs_layer **layers;
	size_t n_layers;
	struct bs_spool *spool; /* of a directory */
	char *config_text;
	size_t config_len;
	struct bs_json *config;
	struct bs_packed packed;
	struct bs_artifact a;
	struct bs_converted out;
	pthread_mutex_t lock; /* of done, and of the watcher */
	uint64_t done;
	uint64_t sent_before; /* of the blob that is being sent */
};

static void job_done(struct job *j)
{
	bs_nodes_done(&j->nodes);
	for (size_t i = 0; i < j->n_layers; i++)
		bs_layer_free(j->layers[i]);
	free(j->layers);
	bs_spool_free(j->spool);
	free(j->config_text);
	bs_json_free(j->config);
	bs_packed_done(&j->packed);
	free(j->platform);
	pthread_mutex_destroy(&j->lock);
}

#define autojob __attribute__((cleanup(job_done))) struct job
#define JOB_INIT(C)                                                                                \
	((struct job){ .c = (C), .packed = BS_PACKED_INIT, .lock = PTHREAD_MUTEX_INITIALIZER })

/* --- telling --------------------------------------------------------------------------------- */

static void begin(struct job *j, enum bs_convert_phase phase, uint64_t total)
{
	const struct bs_convert_watch *w = j->c->watch;

	j->done = 0;
	if (w && w->begin)
		w->begin(w->cookie, phase, j->platform ? j->platform : "", total);
}

static void more(void *cookie, uint64_t bytes)
{
	struct job *j = cookie;
	const struct bs_convert_watch *w = j->c->watch;

	pthread_mutex_lock(&j->lock);
	j->done += bytes;
	if (w && w->progress)
		w->progress(w->cookie, j->done);
	pthread_mutex_unlock(&j->lock);
}

static void sent(void *cookie, uint64_t bytes)
{
	struct job *j = cookie;

	if (j->sent_before + bytes > j->done)
		more(j, j->sent_before + bytes - j->done);
}

static void note(struct job *j, const char *what, const char *arg)
{
	const struct bs_convert_watch *w = j->c->watch;
	bs_autofree char *text = bs_strf("%s%s", what, arg);

	if (w && w->note && text)
		w->note(w->cookie, text);
}

/* --- reading --------------------------------------------------------------------------------- */

static int parse_config(struct job *j, struct bs_error *err)
{
	const char *os;
	int r = bs_json_parse("the image's config", j->config_text, j->config_len, BS_CONFIG_MAX,
			      &j->config, err);

	if (r < 0)
		return r;
	os = bs_json_str(bs_json_get(j->config, "os"));
	if (!bs_json_is(j->config, BS_JSON_OBJECT))
		return bs_fail(err, -EBADMSG, "the image's config is no object");
	if (os && !bs_streq(os, "linux"))
		return bs_fail(err, -EOPNOTSUPP, "it is an image for '%.50s', not for linux", os);
	return 0;
}

static int fetch_config(struct job *j, const struct bs_document *d, struct bs_error *err)
{
	int r;

	if (d->artifact_type)
		return bs_fail(err, -EOPNOTSUPP, "it is no image but an artifact, '%.100s'",
			       d->artifact_type);
	if (bs_document_annotation(d, BS_ANNOTATION_ARTIFACT))
		return bs_fail(err, -EEXIST,
			       "it is the stub of an image that was converted; give the image");
	r = bs_repo_get_blob_mem(j->c->src, &d->config.d.digest, d->config.d.size, BS_CONFIG_MAX,
				 &j->config_text, err);
	if (r < 0)
		return bs_error_context(err, "config");
	j->config_len = (size_t)d->config.d.size;
	return parse_config(j, err);
}

static void sources_done(struct bs_layer_source *v, size_t n)
{
	for (size_t i = 0; v && i < n; i++) {
		union {
			const char *c;
			char *m;
		} name = { .c = v[i].name };

		free(name.m);
	}
	free(v);
}

static int make_source(struct job *j, const struct bs_document *d, size_t i,
		       struct bs_layer_source *s, struct bs_error *err)
{
	const struct bs_json *id = bs_json_at(bs_json_find(j->config, "rootfs.diff_ids"), i);
	const struct bs_link *l = &d->links[i];
	char text[BS_DIGEST_TEXT_LEN];

	*s = (struct bs_layer_source){ .repo = j->c->src,
				       .digest = l->d.digest,
				       .size = l->d.size,
				       .media_type = l->media_type,
				       .spool_dir = j->c->tmp,
				       .progress = more,
				       .cookie = j };
	s->name = bs_strf("layer %zu of %zu (%.19s)", i + 1, d->n,
			  bs_digest_text(&l->d.digest, text));
	if (!s->name)
		return bs_fail_errno(err, -ENOMEM, "layers");
	if (!bs_json_is(id, BS_JSON_STRING) || bs_digest_parse(id->text, id->len, &s->diff_id) < 0)
		return bs_fail(err, -EBADMSG, "config: rootfs.diff_ids[%zu] is no sha256 digest",
			       i);
	return bs_layer_media_type(l->media_type, err) < 0 ? bs_error_context(err, "%s", s->name)
							   : 0;
}

static int read_layers(struct job *j, const struct bs_document *d, struct bs_error *err)
{
	struct bs_layer_source *sources = calloc(d->n + 1, sizeof(*sources));
	uint64_t bytes = 0;
	int r = 0;

	j->layers = calloc(d->n + 1, sizeof(struct bs_layer *));
	if (!sources || !j->layers)
		r = bs_fail_errno(err, -ENOMEM, "layers");
	if (r == 0 && bs_json_n(bs_json_find(j->config, "rootfs.diff_ids")) != d->n)
		r = bs_fail(err, -EBADMSG, "config: it has %zu rootfs.diff_ids for %zu layers",
			    bs_json_n(bs_json_find(j->config, "rootfs.diff_ids")), d->n);
	for (size_t i = 0; r == 0 && i < d->n; i++) {
		r = make_source(j, d, i, &sources[i], err);
		if (!bs_add_u64(bytes, d->links[i].d.size, &bytes))
			r = bs_fail(err, -EBADMSG, "the layers' sizes are too large");
	}
	j->out.layers_bytes = bytes;
	if (r == 0)
		r = bs_spool_check_space(j->c->tmp,
					 bytes > UINT64_MAX / (GROWTH + 2) ? UINT64_MAX
									   : bytes * (GROWTH + 2),
					 err);
	if (r == 0) {
		begin(j, BS_CONVERT_READ, bytes);
		j->n_layers = d->n;
		r = bs_layers_read(sources, d->n, j->c->jobs, &j->nodes, j->layers, err);
	}
	sources_done(sources, d->n);
	return r;
}

static int read_rootfs(struct job *j, struct bs_error *err)
{
	int r = bs_spool_new(j->c->tmp, &j->spool, err);

	if (r < 0)
		return r;
	begin(j, BS_CONVERT_READ, 0);
	return bs_rootfs_read(j->c->rootfs, &j->nodes, j->spool, more, j, err);
}

/* --- writing --------------------------------------------------------------------------------- */

static int pack(struct job *j, struct bs_error *err)
{
	struct bs_pack_options o = { .jobs = j->c->jobs,
				     .level = j->c->level,
				     .tmp = j->c->tmp,
				     .progress = more,
				     .cookie = j };
	int r;

	begin(j, BS_CONVERT_PACK, j->nodes.bytes);
	r = bs_pack(&j->nodes, &o, &j->packed, err);
	if (r < 0)
		return r;
	j->out.files_bytes = j->done;
	j->out.shared_bytes = j->packed.shared_bytes;
	j->out.data_bytes = j->packed.data_len;
	j->out.tree_bytes = j->packed.tree_len;
	j->out.table_bytes = j->packed.table_len;
	j->out.entries = j->packed.n_entries;
	j->out.frames = j->packed.n_frames;
	return 0;
}

static int put_mem(struct job *j, const void *data, size_t len, struct bs_descriptor *ret,
		   struct bs_error *err)
{
	int r;

	bs_digest_of(data, len, &ret->digest);
	ret->size = len;
	r = bs_repo_put_blob_mem(j->c->dst, &ret->digest, data, len, err);
	if (r == 0)
		more(j, len);
	return r;
}

static int put_artifact(struct job *j, struct bs_error *err)
{
	struct bs_packed *p = &j->packed;
	bs_autofree char *text = NULL;
	size_t len;
	int r;

	begin(j, BS_CONVERT_SEND, j->config_len + p->tree_len + p->table_len + p->data_len);
	j->a.data = (struct bs_descriptor){ p->data, p->data_len };
	j->sent_before = 0;
	r = bs_repo_put_blob(j->c->dst, &p->data, p->data_fd, p->data_len, sent, j, err);
	if (r < 0)
		return bs_error_context(err, "data");
	sent(j, p->data_len);
	r = put_mem(j, p->tree, p->tree_len, &j->a.tree, err);
	if (r == 0)
		r = put_mem(j, p->table, p->table_len, &j->a.table, err);
	if (r == 0)
		r = put_mem(j, j->config_text, j->config_len, &j->a.config, err);
	if (r == 0)
		r = bs_artifact_write(&j->a, &text, &len, err);
	if (r < 0)
		return r;
	bs_repo_favour(j->c->dst, &j->a.tree.digest); /* no start does without these */
	bs_repo_favour(j->c->dst, &j->a.table.digest);
	bs_digest_of(text, len, &j->a.digest);
	j->out.artifact = j->a.digest;
	j->out.artifact_size = len;
	return bs_repo_put_manifest(j->c->dst, NULL, BS_MEDIA_OCI_MANIFEST, text, len, err);
}

/* tag NULL: by digest only, an index will name it. */
static int put_stub(struct job *j, const char *tag, struct bs_error *err)
{
	union {
		const char *c;
		char *m;
	} repository = { .c = j->c->dst_repository };
	struct bs_marker marker = { .artifact = j->a.digest,
				    .repository = repository.m,
				    .stub_of = j->a.has_subject ? j->a.subject.digest
								: j->a.digest };
	struct bs_stub s;
	int r = bs_stub_make(&j->nodes, j->config, &j->a, &marker, &s, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < s.left_out.n; i++)
		note(j,
		     "the content of this volume is too large for the stub image, new volumes "
		     "made from it will be empty: ",
		     s.left_out.v[i]);
	r = bs_repo_put_blob_mem(j->c->dst, &s.layer_digest, s.layer, s.layer_len, err);
	if (r == 0)
		r = bs_repo_put_blob_mem(j->c->dst, &s.config_digest, s.config, s.config_len, err);
	if (r == 0)
		r = bs_repo_put_manifest(j->c->dst, tag, BS_MEDIA_OCI_MANIFEST, s.manifest,
					 s.manifest_len, err);
	j->out.stub = s.manifest_digest;
	j->out.stub_size = s.manifest_len;
	bs_stub_done(&s);
	return r;
}

static int write_all(struct job *j, const char *tag, struct bs_converted_list *list,
		     struct bs_error *err)
{
	int r = pack(j, err);

	if (r == 0)
		r = put_artifact(j, err);
	if (r == 0)
		r = put_stub(j, tag, err);
	if (r < 0)
		return r;
	j->out.has_source = j->a.has_subject;
	j->out.source = j->a.subject.digest;
	if (bs_grow(&list->v, &list->cap, list->n + 1, sizeof(*list->v)) < 0)
		return bs_fail_errno(err, -ENOMEM, "results");
	j->out.platform = bs_take(&j->platform);
	list->v[list->n++] = j->out;
	return 0;
}

/* --- one image ------------------------------------------------------------------------------- */

static char *config_platform(const struct bs_json *config)
{
	const char *arch = bs_json_str(bs_json_get(config, "architecture"));
	const char *variant = bs_json_str(bs_json_get(config, "variant"));

	if (!arch)
		return strdup(bs_platform_here());
	return bs_strf("linux/%s%s%s", arch, variant && variant[0] ? "/" : "",
		       variant && variant[0] ? variant : "");
}

static bool wanted(const struct bs_convert *c, const char *platform)
{
	if (!c->platforms || c->platforms->n == 0)
		return true;
	for (size_t i = 0; i < c->platforms->n; i++) {
		const char *rest = bs_str_after(platform, c->platforms->v[i]);

		if (rest && (!*rest || *rest == '/'))
			return true;
	}
	return false;
}

static int convert_manifest(const struct bs_convert *c, const struct bs_manifest *m,
			    const struct bs_document *d, const char *platform, const char *tag,
			    struct bs_converted_list *list, struct bs_error *err)
{
	autojob j = JOB_INIT(c);
	int r;

	if (bs_nodes_init(&j.nodes) < 0)
		return bs_fail_errno(err, -ENOMEM, "tree");
	j.a.has_subject = true;
	j.a.subject = (struct bs_descriptor){ m->digest, m->len };
	j.a.subject_type = d->media_type;
	r = fetch_config(&j, d, err);
	if (r < 0)
		return r;
	j.platform = platform ? strdup(platform) : config_platform(j.config);
	if (!j.platform)
		return bs_fail_errno(err, -ENOMEM, "platform");
	if (!platform && !wanted(c, j.platform))
		return bs_fail(err, -ENOENT, "it is an image for %s only (--platform)", j.platform);
	r = read_layers(&j, d, err);
	return r < 0 ? r : write_all(&j, tag, list, err);
}

static int convert_rootfs(const struct bs_convert *c, struct bs_converted_list *list,
			  struct bs_error *err)
{
	autojob j = JOB_INIT(c);
	const char *arch = strchr(bs_platform_here(), '/') + 1;
	int r;

	if (bs_nodes_init(&j.nodes) < 0)
		return bs_fail_errno(err, -ENOMEM, "tree");
	j.config_text = c->config ? strdup(c->config)
				  : bs_strf("{\"architecture\":\"%s\",\"os\":\"linux\","
					    "\"config\":{},\"rootfs\":{\"type\":\"layers\","
					    "\"diff_ids\":[]}}",
					    arch);
	if (!j.config_text)
		return bs_fail_errno(err, -ENOMEM, "config");
	j.config_len = strlen(j.config_text);
	r = parse_config(&j, err);
	if (r == 0 && (!bs_json_str(bs_json_get(j.config, "architecture")) ||
		       !bs_json_str(bs_json_get(j.config, "os"))))
		r = bs_fail(err, -EINVAL,
			    "the image's config has no 'architecture' or no 'os', such as '%s' and "
			    "'linux'",
			    arch);
	if (r < 0)
		return r;
	j.platform = config_platform(j.config);
	if (!j.platform)
		return bs_fail_errno(err, -ENOMEM, "platform");
	r = read_rootfs(&j, err);
	return r < 0 ? r : write_all(&j, c->stub_tag, list, err);
}

static int convert_link(const struct bs_convert *c, const struct bs_link *l, const char *platform,
			struct bs_converted_list *list, struct bs_error *err)
{
	bs_automanifest m = { 0 };
	bs_autodocument d = { 0 };
	char text[BS_DIGEST_TEXT_LEN];
	int r = bs_repo_get_manifest(c->src, bs_digest_text(&l->d.digest, text), &m, err);

	if (r == 0)
		r = bs_document_parse(&m, &d, err);
	if (r == 0 && d.is_index)
		r = bs_fail(err, -EOPNOTSUPP, "it is an index of indexes");
	if (r == 0)
		r = convert_manifest(c, &m, &d, platform, NULL, list, err);
	return r < 0 ? bs_error_context(err, "%s", platform) : 0;
}

static int none_wanted(const struct bs_document *d, struct bs_error *err)
{
	bs_autofree char *all = strdup("");

	for (size_t i = 0; i < d->n && all; i++) {
		bs_autofree char *platform = bs_link_platform(&d->links[i]), *before = all;

		all = platform ? bs_strf("%s%s%s", before, before[0] ? ", " : "", platform)
			       : strdup(before);
	}
	return bs_fail(err, -ENOENT, "no platform of the index is wanted (--platform); it has: %s",
		       all ? all : "?");
}

static int convert_index(const struct bs_convert *c, const struct bs_manifest *m,
			 const struct bs_document *d, struct bs_converted_list *list,
			 struct bs_error *err)
{
	for (size_t i = 0; i < d->n; i++) {
		bs_autofree char *platform = bs_link_platform(&d->links[i]);
		int r;

		if (!platform || !wanted(c, platform))
			continue;
		r = convert_link(c, &d->links[i], platform, list, err);
		if (r < 0)
			return r;
	}
	if (list->n == 0)
		return none_wanted(d, err);
	return bs_convert_put_index(c, m, d, list, err);
}

/* Found out before the work: what is to be sent at its end is looked for in the same way. */
static int reach_destination(const struct bs_convert *c, struct bs_error *err)
{
	struct bs_digest none;
	int r;

	bs_digest_of("", 0, &none);
	r = bs_repo_has_blob(c->dst, &none, err);
	return r < 0 ? bs_error_context(err, "destination") : 0;
}

int bs_convert_run(const struct bs_convert *c, struct bs_converted_list *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	struct bs_converted_list list = { 0 };
	bs_automanifest m = { 0 };
	bs_autodocument d = { 0 };
	int r;

	err = err ? err : &own;
	r = reach_destination(c, err);
	if (r < 0)
		return r;
	if (c->rootfs) {
		r = convert_rootfs(c, &list, err);
	} else {
		r = bs_repo_get_manifest(c->src, c->ref, &m, err);
		if (r == 0)
			r = bs_document_parse(&m, &d, err);
		if (r == 0)
			r = d.is_index ? convert_index(c, &m, &d, &list, err)
				       : convert_manifest(c, &m, &d, NULL, c->stub_tag, &list, err);
		if (r < 0)
			(void)bs_error_context(err, "'%s' of '%s'", c->ref, c->src->name);
	}
	if (r < 0) {
		bs_converted_list_done(&list);
		return r;
	}
	if (!d.is_index)
		list.stub = list.v[0].stub;
	*ret = list;
	return 0;
}

void bs_converted_list_done(struct bs_converted_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].platform);
	free(l->v);
	*l = (struct bs_converted_list){ 0 };
}
