/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hot/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/str.h"
#include "hot/pack.h"
#include "hot/profile.h"
#include "image/manifest.h"
#include "net/repo.h"

/* The empty config of an artifact that has none (image-spec, "Guidance for an Empty Descriptor"). */
#define EMPTY "{}"
#define MEDIA_EMPTY "application/vnd.oci.empty.v1+json"
#define PACK_BYTES_MAX (UINT64_C(32) << 30)
#define HEAD_DEMAND_MAX (1u << 20) /* bytes; of more the head is no demand */

#define bs_automanifest __attribute__((cleanup(bs_manifest_done))) struct bs_manifest

const char *bs_hot_tag(const struct bs_digest *image, const char *workload,
		       char buf[BS_HOT_TAG_LEN])
{
	char text[BS_DIGEST_TEXT_LEN + 1 + BS_WORKLOAD_MAX], hex[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;
	int n;

	(void)bs_digest_text(image, hex);
	n = snprintf(text, sizeof(text), "%s\n%.*s", hex, (int)BS_WORKLOAD_MAX, workload);
	bs_digest_of(text, (size_t)n, &d);
	(void)snprintf(buf, BS_HOT_TAG_LEN, BS_HOT_TAG_PREFIX "%.40s", bs_digest_hex(&d, hex));
	return buf;
}

/* --- the manifest ---------------------------------------------------------------------------- */

static int read_layers(const struct bs_document *d, struct bs_hot *h, struct bs_error *err)
{
	static const char *const types[] = { BS_MEDIA_PROFILE, BS_MEDIA_PACK };
	struct bs_descriptor *to[] = { &h->profile, &h->pack };

	if (d->n != BS_ARRAY_LEN(types))
		return bs_fail(err, -EBADMSG, "it has %zu layers, not %zu", d->n,
			       BS_ARRAY_LEN(types));
	for (size_t i = 0; i < d->n; i++) {
		if (!bs_streq(d->links[i].media_type, types[i]))
			return bs_fail(err, -EBADMSG, "layers[%zu].mediaType is not %s", i,
				       types[i]);
		*to[i] = d->links[i].d;
	}
	if (h->profile.size > BS_PROFILE_DATA_MAX || h->pack.size > PACK_BYTES_MAX)
		return bs_fail(err, -EFBIG, "profile or pack is too large");
	return 0;
}

static int read_hot(const struct bs_document *d, struct bs_hot *h, struct bs_error *err)
{
	const char *workload = bs_document_annotation(d, BS_ANNOTATION_WORKLOAD);
	const char *head = bs_document_annotation(d, BS_ANNOTATION_HOT_HEAD);
	const char *digest = bs_document_annotation(d, BS_ANNOTATION_HOT_HEAD_DIGEST);
	struct bs_link subject;
	int r;

	if (d->is_index || !d->artifact_type || !bs_streq(d->artifact_type, BS_HOT_TYPE))
		return bs_fail(err, -EBADMSG, "artifactType is not %s", BS_HOT_TYPE);
	r = read_layers(d, h, err);
	if (r < 0)
		return r;
	r = bs_link_parse(bs_json_get(d->json, "subject"), "subject", &subject, err);
	if (r < 0)
		return r;
	h->image = subject.d;
	if (!workload || !bs_workload_ok(workload))
		return bs_fail(err, -EBADMSG, "annotation %s is no workload's name",
			       BS_ANNOTATION_WORKLOAD);
	(void)snprintf(h->workload, sizeof(h->workload), "%s", workload);
	if (!head || bs_parse_u64(head, &h->head_len) < 0 || h->head_len > BS_PACK_HEAD_MAX ||
	    h->head_len >= h->pack.size)
		return bs_fail(err, -EBADMSG, "annotation %s is not the length of a head",
			       BS_ANNOTATION_HOT_HEAD);
	h->head_proven = digest != NULL;
	if (digest && bs_digest_parse(digest, strlen(digest), &h->head) < 0)
		return bs_fail(err, -EBADMSG, "annotation %s is no digest",
			       BS_ANNOTATION_HOT_HEAD_DIGEST);
	return 0;
}

int bs_hot_parse(const struct bs_manifest *m, struct bs_hot *ret, struct bs_error *err)
{
	struct bs_error own = BS_ERROR_INIT;
	bs_autodocument d = { 0 };
	struct bs_hot h = { .digest = m->digest };
	int r;

	err = err ? err : &own;
	r = bs_document_parse(m, &d, err);
	if (r == 0)
		r = read_hot(&d, &h, err);
	if (r < 0)
		return bs_error_context(err, "hot pack");
	*ret = h;
	return 0;
}

int bs_hot_write(const struct bs_hot *h, char **ret, size_t *ret_len, struct bs_error *err)
{
	struct bs_descriptor empty = { .size = strlen(EMPTY) };
	bs_autobuf out = BS_BUF_INIT(BS_MANIFEST_MAX);
	struct bs_jsonw *w = bs_jsonw_new(false);
	char head[24], digest[BS_DIGEST_TEXT_LEN];
	int r;

	if (!w)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	bs_digest_of(EMPTY, strlen(EMPTY), &empty.digest);
	(void)snprintf(head, sizeof(head), "%" PRIu64, h->head_len);
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "schemaVersion", 2);
	bs_jsonw_kstr(w, "mediaType", BS_MEDIA_OCI_MANIFEST);
	bs_jsonw_kstr(w, "artifactType", BS_HOT_TYPE);
	bs_jsonw_key(w, "config");
	bs_descriptor_write(w, MEDIA_EMPTY, &empty);
	bs_jsonw_key(w, "layers");
	bs_jsonw_array(w);
	bs_descriptor_write(w, BS_MEDIA_PROFILE, &h->profile);
	bs_descriptor_write(w, BS_MEDIA_PACK, &h->pack);
	bs_jsonw_end(w);
	bs_jsonw_key(w, "subject");
	bs_descriptor_write(w, BS_MEDIA_OCI_MANIFEST, &h->image);
	bs_jsonw_key(w, "annotations");
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, BS_ANNOTATION_WORKLOAD, h->workload);
	bs_jsonw_kstr(w, BS_ANNOTATION_HOT_HEAD, head);
	if (h->head_proven)
		bs_jsonw_kstr(w, BS_ANNOTATION_HOT_HEAD_DIGEST, bs_digest_text(&h->head, digest));
	bs_jsonw_end(w);
	bs_jsonw_end(w);
	r = bs_jsonw_finish(w, &out);
	if (r < 0)
		return bs_fail_errno(err, r, "hot pack: write its manifest");
	*ret_len = out.len;
	*ret = bs_buf_take(&out);
	return *ret ? 0 : bs_fail(err, -ENOMEM, "hot pack: out of memory");
}

/* --- in a repository --------------------------------------------------------------------------- */

int bs_hot_find(struct bs_repo *repo, const struct bs_digest *image, const char *workload,
		uint64_t deadline_ns, struct bs_hot *ret, struct bs_error *err)
{
	/* who has a deadline is a start: what little he asks decides how long all else takes */
	const struct bs_look look = { .lane = deadline_ns ? BS_LANE_DEMAND : BS_LANE_HOT,
				      .deadline_ns = deadline_ns };
	bs_automanifest m = { 0 };
	char tag[BS_HOT_TAG_LEN];
	struct bs_hot h;
	int r = bs_repo_look_manifest(repo, bs_hot_tag(image, workload, tag), &look, &m, err);

	if (r == -EBADMSG) /* an answer that is none: nothing is known of what is there */
		return -EREMOTEIO;
	if (r == 0)
		r = bs_hot_parse(&m, &h, err);
	if (r < 0)
		return r;
	if (!bs_digest_eq(&h.image.digest, image) || !bs_streq(h.workload, workload))
		return bs_fail(err, -EBADMSG,
			       "hot pack: under tag %s is that of another image or workload", tag);
	*ret = h;
	return 0;
}

/* Of the first max bytes of the file, or all that it has. */
static int digest_of_file(int fd, uint64_t max, struct bs_descriptor *ret, struct bs_error *err)
{
	int r = bs_digest_of_file(fd, max, &ret->digest, &ret->size);

	return r < 0 ? bs_fail_errno(err, r, "hot pack: read it") : 0;
}

static int put_blobs(struct bs_repo *repo, struct bs_hot *h, const void *profile, int pack_fd,
		     struct bs_error *err)
{
	struct bs_digest empty;
	int r;

	bs_digest_of(EMPTY, strlen(EMPTY), &empty);
	r = bs_repo_put_blob_mem(repo, &empty, EMPTY, strlen(EMPTY), err);
	if (r == 0)
		r = bs_repo_put_blob_mem(repo, &h->profile.digest, profile, h->profile.size, err);
	if (r == 0)
		r = bs_repo_put_blob(repo, &h->pack.digest, pack_fd, h->pack.size, NULL, NULL, err);
	if (r < 0)
		return r;
	bs_repo_favour(repo, &h->pack.digest);
	bs_repo_favour(repo, &h->profile.digest);
	return 0;
}

int bs_hot_describe(struct bs_hot *h, const void *profile, size_t profile_len, int pack_fd,
		    struct bs_error *err)
{
	struct bs_descriptor head;
	int r = digest_of_file(pack_fd, h->head_len, &head, err);

	if (r < 0)
		return r;
	h->head = head.digest;
	h->head_proven = true;
	bs_digest_of(profile, profile_len, &h->profile.digest);
	h->profile.size = profile_len;
	return digest_of_file(pack_fd, UINT64_MAX, &h->pack, err);
}

bool bs_hot_is_head(const struct bs_hot *h, const char *head)
{
	struct bs_digest is;

	if (!h->head_proven)
		return true;
	bs_digest_of(head, (size_t)h->head_len, &is);
	return bs_digest_eq(&is, &h->head);
}

int bs_hot_read_head(struct bs_repo *repo, const struct bs_hot *h, char **ret, struct bs_error *err)
{
	bs_autofree char *buf = malloc(h->head_len + 1);
	/* before the ranges of all packs, unless it is as long as some of them */
	struct bs_range range = { .blob = h->pack.digest,
				  .len = h->head_len,
				  .buf = buf,
				  .lane = h->head_len <= HEAD_DEMAND_MAX ? BS_LANE_DEMAND
									 : BS_LANE_HOT };

	if (!buf)
		return bs_fail(err, -ENOMEM, "hot pack: out of memory");
	if (bs_repo_read_wait(repo, &range) < 0)
		return bs_fail(err, range.result == -EBADMSG ? -EREMOTEIO : range.result,
			       "hot pack: its head: %s",
			       range.text[0] ? range.text : strerror(-range.result));
	*ret = bs_take(&buf);
	return 0;
}

int bs_hot_use_head(const struct bs_hot *h, const char *head, const struct bs_table *table,
		    const struct bs_digest *table_digest, struct bs_pack **ret,
		    struct bs_error *err)
{
	bs_auto(pack) struct bs_pack *pack = NULL;
	int r;

	if (!bs_hot_is_head(h, head))
		return bs_fail(err, -EBADMSG,
			       "hot pack: its head is not the one that its manifest names");
	r = bs_pack_read(head, h->head_len, table, table_digest, &pack, err);
	if (r < 0)
		return r;
	if (pack->head_len != h->head_len || pack->len != h->pack.size)
		return bs_fail(err, -EBADMSG,
			       "hot pack: it says to have %" PRIu64 " bytes, %" PRIu64
			       " of them its head; its manifest says %" PRIu64 " and %" PRIu64,
			       pack->len, pack->head_len, h->pack.size, h->head_len);
	*ret = bs_take(&pack);
	return 0;
}

/* What the tag has when the pack takes it. */
struct over {
	bool guarded;
	const struct bs_digest *was; /* NULL: nothing */
};

static int publish(struct bs_repo *repo, struct bs_hot *h, const struct over *over,
		   const void *profile, size_t profile_len, int pack_fd, struct bs_error *err)
{
	bs_autofree char *text = NULL;
	char tag[BS_HOT_TAG_LEN];
	struct bs_hot is;
	size_t len;
	int r = bs_hot_describe(h, profile, profile_len, pack_fd, err);

	if (r == 0)
		r = put_blobs(repo, h, profile, pack_fd, err);
	if (r == 0)
		r = bs_hot_write(h, &text, &len, err);
	if (r < 0)
		return r;
	bs_digest_of(text, len, &h->digest);
	(void)bs_hot_tag(&h->image.digest, h->workload, tag);
	if (!over->guarded)
		return bs_repo_put_manifest(repo, tag, BS_MEDIA_OCI_MANIFEST, text, len, err);
	r = bs_repo_put_manifest_over(repo, tag, over->was, BS_MEDIA_OCI_MANIFEST, text, len, err);
	if (r != -EEXIST)
		return r;
	/* a layout may list what it has not */
	if (bs_hot_find(repo, &h->image.digest, h->workload, 0, &is, NULL) == -ENOENT)
		return bs_repo_put_manifest(repo, tag, BS_MEDIA_OCI_MANIFEST, text, len, err);
	return bs_fail(err, r, "hot pack: there is one, made by another");
}

int bs_hot_publish(struct bs_repo *repo, struct bs_hot *h, const void *profile, size_t profile_len,
		   int pack_fd, bool replace, struct bs_error *err)
{
	struct over over = { .guarded = false };
	struct bs_hot other;
	int r;

	r = replace ? -EBADMSG : bs_hot_find(repo, &h->image.digest, h->workload, 0, &other, err);
	if (r == 0)
		return bs_fail(err, -EEXIST, "hot pack: there is one, made by another");
	over.guarded = r == -ENOENT;
	if (r != -ENOENT && r != -EBADMSG && r != -EFBIG) /* there may be one */
		return r;
	return publish(repo, h, &over, profile, profile_len, pack_fd, err);
}

int bs_hot_publish_over(struct bs_repo *repo, struct bs_hot *h, const struct bs_digest *old_pack,
			const void *profile, size_t profile_len, int pack_fd, struct bs_error *err)
{
	struct over over = { .guarded = false };
	struct bs_hot is;
	int r = bs_hot_find(repo, &h->image.digest, h->workload, 0, &is, err);

	if (r == 0 && !bs_digest_eq(&is.pack.digest, old_pack))
		return bs_fail(err, -EEXIST, "hot pack: there is another by now");
	if (r < 0 && r != -ENOENT && r != -EBADMSG && r != -EFBIG)
		return r;
	if (r == 0 || r == -ENOENT)
		over = (struct over){ true, r == 0 ? &is.digest : NULL };
	return publish(repo, h, &over, profile, profile_len, pack_fd, err);
}
