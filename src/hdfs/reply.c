/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define LEN_MAX (UINT64_C(1) << 62)

static const char what[] = "the NameNode's answer";

static int bad(struct bs_error *err, const char *member)
{
	return bs_fail(err, -EBADMSG, "%s has no proper '%s'", what, member);
}

static int parse(const char *text, size_t len, struct bs_json **ret, struct bs_error *err)
{
	int r = bs_json_parse(what, text, len, BS_REPLY_MAX, ret, err);

	if (r == -EINVAL || r == -E2BIG) {
		if (err)
			err->code = -EBADMSG;
		r = -EBADMSG;
	}
	return r;
}

static int copy_text(const struct bs_json *v, char **ret)
{
	const char *text = bs_json_str(v);

	if (!text)
		return -EBADMSG;
	*ret = bs_strf("%s", text);
	return *ret ? 0 : -ENOMEM;
}

/* A number that may be absent. */
static int get_u64(const struct bs_json *o, const char *key, uint64_t max, uint64_t *ret)
{
	const struct bs_json *v = bs_json_get(o, key);
	uint64_t n;

	if (!v)
		return 0;
	if (bs_json_u64(v, &n) < 0 || n > max)
		return -EBADMSG;
	*ret = n;
	return 0;
}

static bool get_bool(const struct bs_json *o, const char *key)
{
	const struct bs_json *v = bs_json_get(o, key);

	return bs_json_is(v, BS_JSON_BOOL) && v->truth;
}

/* --- statuses -------------------------------------------------------------------------------- */

void bs_hdfs_status_done(struct bs_hdfs_status *s)
{
	free(s->name);
	free(s->owner);
	free(s->group);
	free(s->target);
	*s = (struct bs_hdfs_status){ 0 };
}

void bs_hdfs_list_done(struct bs_hdfs_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		bs_hdfs_status_done(&l->v[i]);
	free(l->v);
	*l = (struct bs_hdfs_list){ 0 };
}

/* "644", "1777" */
static int read_mode(const struct bs_json *v, uint32_t *ret)
{
	const char *text = bs_json_str(v);
	uint32_t mode = 0;

	if (!text || !*text || strlen(text) > 4)
		return -EBADMSG;
	for (; *text; text++) {
		if (*text < '0' || *text > '7')
			return -EBADMSG;
		mode = mode << 3 | (uint32_t)(*text - '0');
	}
	*ret = mode & 01777;
	return 0;
}

static int read_type(const struct bs_json *v, enum bs_hdfs_type *ret)
{
	static const char *const names[] = { "FILE", "DIRECTORY", "SYMLINK" };
	const char *text = bs_json_str(v);

	for (size_t i = 0; text && i < BS_ARRAY_LEN(names); i++) {
		if (bs_streq(text, names[i])) {
			*ret = (enum bs_hdfs_type)i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int read_numbers(const struct bs_json *v, struct bs_hdfs_status *s, const char **ret_member)
{
	uint64_t replication = 0;
	const struct {
		const char *key;
		uint64_t max, *to;
	} table[] = {
		{ "length", LEN_MAX, &s->len },
		{ "blockSize", LEN_MAX, &s->block_size },
		{ "fileId", INT64_MAX, &s->file_id },
		{ "childrenNum", INT32_MAX, &s->children },
		{ "modificationTime", INT64_MAX, &s->mtime_ms },
		{ "accessTime", INT64_MAX, &s->atime_ms },
		{ "replication", INT16_MAX, &replication },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(table); i++) {
		*ret_member = table[i].key;
		if (get_u64(v, table[i].key, table[i].max, table[i].to) < 0)
			return -EBADMSG;
	}
	s->replication = (uint32_t)replication;
	*ret_member = "fileId"; /* by which a file is known from the one that replaced it */
	return s->type == BS_HDFS_FILE && s->file_id == 0 ? -EBADMSG : 0;
}

static int fill_status(const struct bs_json *v, struct bs_hdfs_status *s, const char **ret_member)
{
	const struct bs_json *target = bs_json_get(v, "symlink");
	const char *name = bs_json_str(bs_json_get(v, "pathSuffix"));

	*ret_member = "pathSuffix";
	if (!name || (*name && !bs_path_name_ok(name, strlen(name))))
		return -EBADMSG;
	s->name = bs_strf("%s", name);
	if (!s->name)
		return -ENOMEM;
	*ret_member = "type";
	if (read_type(bs_json_get(v, "type"), &s->type) < 0)
		return -EBADMSG;
	*ret_member = "permission";
	if (read_mode(bs_json_get(v, "permission"), &s->mode) < 0)
		return -EBADMSG;
	s->encrypted = get_bool(v, "encBit");
	s->erasure_coded = get_bool(v, "ecBit");
	if (target && copy_text(target, &s->target) == -ENOMEM)
		return -ENOMEM;
	*ret_member = "owner";
	if (copy_text(bs_json_get(v, "owner"), &s->owner) < 0 ||
	    copy_text(bs_json_get(v, "group"), &s->group) < 0)
		return -EBADMSG;
	return read_numbers(v, s, ret_member);
}

static int read_status(const struct bs_json *v, struct bs_hdfs_status *ret, struct bs_error *err)
{
	struct bs_hdfs_status s = { 0 };
	const char *member = "FileStatus";
	int r = bs_json_is(v, BS_JSON_OBJECT) ? fill_status(v, &s, &member) : -EBADMSG;

	if (r < 0) {
		bs_hdfs_status_done(&s);
		return r == -ENOMEM ? bs_fail(err, r, "out of memory") : bad(err, member);
	}
	*ret = s;
	return 0;
}

int bs_reply_status(const char *text, size_t len, struct bs_hdfs_status *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	int r = parse(text, len, &doc, err);

	return r < 0 ? r : read_status(bs_json_get(doc, "FileStatus"), ret, err);
}

int bs_reply_list(const char *text, size_t len, struct bs_hdfs_list *list, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	const struct bs_json *batch, *all;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	batch = bs_json_get(doc, "DirectoryListing");
	all = batch ? bs_json_find(batch, "partialListing.FileStatuses.FileStatus")
		    : bs_json_find(doc, "FileStatuses.FileStatus");
	if (!bs_json_is(all, BS_JSON_ARRAY))
		return bad(err, "FileStatuses");
	list->left = 0;
	if (batch && get_u64(batch, "remainingEntries", INT32_MAX, &list->left) < 0)
		return bad(err, "remainingEntries");
	for (size_t i = 0; i < bs_json_n(all); i++) {
		if (bs_grow(&list->v, &list->cap, list->n + 1, sizeof(*list->v)) < 0)
			return bs_fail(err, -ENOMEM, "out of memory");
		r = read_status(bs_json_at(all, i), &list->v[list->n], err);
		if (r < 0)
			return r;
		list->n++;
	}
	return 0;
}

/* --- blocks ---------------------------------------------------------------------------------- */

static int get_port(const struct bs_json *v, const char *key, uint16_t *ret)
{
	uint64_t port = 0;

	if (get_u64(v, key, UINT16_MAX, &port) < 0)
		return -EBADMSG;
	*ret = (uint16_t)port;
	return 0;
}

static int read_replica(const struct bs_json *v, struct bs_replica *rp)
{
	const char *state = bs_json_str(bs_json_get(v, "adminState"));

	if (copy_text(bs_json_get(v, "ipAddr"), &rp->address) < 0 ||
	    copy_text(bs_json_get(v, "hostName"), &rp->host) < 0 ||
	    get_port(v, "xferPort", &rp->xfer_port) < 0 || rp->xfer_port == 0 ||
	    get_port(v, "infoPort", &rp->http_port) < 0 ||
	    get_port(v, "infoSecurePort", &rp->https_port) < 0)
		return -EBADMSG;
	/* both go into addresses and URLs */
	if (rp->address[strspn(rp->address, "0123456789abcdefABCDEF.:")] || !*rp->address ||
	    rp->host[strcspn(rp->host, "/?#@: \t\r\n")] || !*rp->host)
		return -EBADMSG;
	rp->last_resort = state && !bs_streq(state, "NORMAL");
	return 0;
}

static int read_replicas(const struct bs_json *v, struct bs_block *k)
{
	size_t n = BS_MIN(bs_json_n(v), (size_t)BS_REPLICAS_MAX);

	if (!bs_json_is(v, BS_JSON_ARRAY))
		return -EBADMSG;
	k->replicas = calloc(n ? n : 1, sizeof(*k->replicas));
	if (!k->replicas)
		return -ENOMEM;
	for (; k->n_replicas < n; k->n_replicas++) {
		struct bs_replica *rp = &k->replicas[k->n_replicas];

		if (read_replica(bs_json_at(v, k->n_replicas), rp) < 0) {
			k->n_replicas++; /* what it has is freed with the rest */
			return -EBADMSG;
		}
	}
	return 0;
}

static int read_block(const struct bs_json *v, struct bs_block *k)
{
	const struct bs_json *id = bs_json_get(v, "block");
	const char *token = bs_json_str(bs_json_find(v, "blockToken.urlString"));
	int r;

	k->id = k->generation = UINT64_MAX;
	k->off = UINT64_MAX;
	k->corrupt = get_bool(v, "isCorrupt");
	if (get_u64(v, "startOffset", LEN_MAX, &k->off) < 0 ||
	    get_u64(id, "numBytes", LEN_MAX, &k->len) < 0 ||
	    get_u64(id, "generationStamp", INT64_MAX, &k->generation) < 0 || k->off > LEN_MAX ||
	    k->generation == UINT64_MAX)
		return -EBADMSG;
	if (bs_json_u64(bs_json_get(id, "blockId"), &k->id) < 0) {
		int64_t negative; /* ids of erasure coded groups, and of old random ones */

		if (bs_json_i64(bs_json_get(id, "blockId"), &negative) < 0)
			return -EBADMSG;
		k->id = (uint64_t)negative;
	}
	r = copy_text(bs_json_get(id, "blockPoolId"), &k->pool);
	if (r == 0)
		r = read_replicas(bs_json_get(v, "locations"), k);
	if (r == 0 && token)
		r = bs_token_decode(token, &k->token) < 0 ? -EBADMSG : 0;
	return r;
}

static int read_blocks(const struct bs_json *all, struct bs_blocks *b)
{
	uint64_t end = 0;

	for (size_t i = 0; i < bs_json_n(all); i++) {
		struct bs_block *k;
		int r;

		if (bs_grow(&b->v, &b->cap, b->n + 1, sizeof(*b->v)) < 0)
			return -ENOMEM;
		k = &b->v[b->n++];
		*k = (struct bs_block){ 0 };
		r = read_block(bs_json_at(all, i), k);
		if (r < 0)
			return r;
		if (k->off < end)
			return -EBADMSG;
		end = k->off + k->len;
	}
	return 0;
}

int bs_reply_blocks(const char *text, size_t len, struct bs_blocks **ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	bs_auto(blocks) struct bs_blocks *b = NULL;
	const struct bs_json *root, *all;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	b = calloc(1, sizeof(*b));
	if (!b)
		return bs_fail(err, -ENOMEM, "out of memory");
	b->refs = 1;
	root = bs_json_get(doc, "LocatedBlocks");
	all = bs_json_get(root, "locatedBlocks");
	b->file_len = UINT64_MAX;
	if (get_u64(root, "fileLength", LEN_MAX, &b->file_len) < 0 || b->file_len == UINT64_MAX)
		return bad(err, "fileLength");
	b->under_construction = get_bool(root, "isUnderConstruction");
	if (!bs_json_is(all, BS_JSON_ARRAY))
		return bad(err, "locatedBlocks");
	r = read_blocks(all, b);
	if (r < 0)
		return r == -ENOMEM ? bs_fail(err, r, "out of memory") : bad(err, "locatedBlocks");
	*ret = bs_take(&b);
	return 0;
}

/* --- small ones ------------------------------------------------------------------------------ */

int bs_reply_summary(const char *text, size_t len, struct bs_hdfs_summary *ret,
		     struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	const struct bs_json *v;
	struct bs_hdfs_summary s = { 0 };
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	v = bs_json_get(doc, "ContentSummary");
	if (bs_json_u64(bs_json_get(v, "length"), &s.len) < 0 ||
	    bs_json_u64(bs_json_get(v, "fileCount"), &s.files) < 0 ||
	    bs_json_u64(bs_json_get(v, "directoryCount"), &s.directories) < 0 ||
	    bs_json_u64(bs_json_get(v, "spaceConsumed"), &s.consumed) < 0 ||
	    bs_json_i64(bs_json_get(v, "quota"), &s.quota) < 0 ||
	    bs_json_i64(bs_json_get(v, "spaceQuota"), &s.space_quota) < 0)
		return bad(err, "ContentSummary");
	*ret = s;
	return 0;
}

int bs_reply_defaults(const char *text, size_t len, struct bs_hdfs_defaults *ret,
		      struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	const struct bs_json *v;
	struct bs_hdfs_defaults d = { 0 };
	uint64_t replication = 0, chunk = 0;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	v = bs_json_get(doc, "FsServerDefaults");
	if (bs_json_u64(bs_json_get(v, "blockSize"), &d.block_size) < 0 ||
	    get_u64(v, "replication", INT16_MAX, &replication) < 0 ||
	    get_u64(v, "bytesPerChecksum", INT32_MAX, &chunk) < 0)
		return bad(err, "FsServerDefaults");
	d.replication = (uint32_t)replication;
	d.chunk = (uint32_t)chunk;
	d.encrypted_transfer = get_bool(v, "encryptDataTransfer");
	*ret = d;
	return 0;
}

int bs_reply_space(const char *text, size_t len, struct bs_hdfs_space *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	const struct bs_json *v;
	struct bs_hdfs_space s;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	v = bs_json_get(doc, "FsStatus");
	if (bs_json_u64(bs_json_get(v, "capacity"), &s.capacity) < 0 ||
	    bs_json_u64(bs_json_get(v, "used"), &s.used) < 0 ||
	    bs_json_u64(bs_json_get(v, "remaining"), &s.remaining) < 0)
		return bad(err, "FsStatus");
	*ret = s;
	return 0;
}

int bs_reply_bool(const char *text, size_t len, bool *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	if (!bs_json_is(bs_json_get(doc, "boolean"), BS_JSON_BOOL))
		return bad(err, "boolean");
	*ret = get_bool(doc, "boolean");
	return 0;
}

int bs_reply_long(const char *text, size_t len, int64_t *ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	return bs_json_i64(bs_json_get(doc, "long"), ret) < 0 ? bad(err, "long") : 0;
}

static int get_text(const char *text, size_t len, const char *path, char **ret,
		    struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	r = copy_text(bs_json_find(doc, path), ret);
	return r == -EBADMSG ? bad(err, path) : r < 0 ? bs_fail(err, r, "out of memory") : 0;
}

int bs_reply_location(const char *text, size_t len, char **ret, struct bs_error *err)
{
	return get_text(text, len, "Location", ret, err);
}

int bs_reply_token(const char *text, size_t len, char **ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	if (bs_json_is(bs_json_get(doc, "Token"), BS_JSON_NULL)) { /* an insecure cluster */
		*ret = NULL;
		return 0;
	}
	return get_text(text, len, "Token.urlString", ret, err);
}

int bs_reply_xattr(const char *text, size_t len, char **ret, struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	const struct bs_json *all, *value;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	all = bs_json_get(doc, "XAttrs");
	if (!bs_json_is(all, BS_JSON_ARRAY))
		return bad(err, "XAttrs");
	if (bs_json_n(all) == 0)
		return bs_fail(err, -ENODATA, "there is no such attribute");
	value = bs_json_get(bs_json_at(all, 0), "value");
	if (bs_json_is(value, BS_JSON_NULL)) { /* an empty one */
		*ret = bs_strf("0x");
		return *ret ? 0 : bs_fail(err, -ENOMEM, "out of memory");
	}
	r = copy_text(value, ret);
	return r == -EBADMSG ? bad(err, "value") : r < 0 ? bs_fail(err, r, "out of memory") : 0;
}

/* The list is JSON within a string. */
int bs_reply_xattr_names(const char *text, size_t len, char **ret, size_t *ret_len,
			 struct bs_error *err)
{
	bs_auto(json) struct bs_json *doc = NULL;
	bs_auto(json) struct bs_json *list = NULL;
	bs_autobuf names = BS_BUF_INIT(1u << 20);
	const char *inner;
	int r = parse(text, len, &doc, err);

	if (r < 0)
		return r;
	inner = bs_json_str(bs_json_get(doc, "XAttrNames"));
	if (!inner)
		return bad(err, "XAttrNames");
	r = parse(inner, strlen(inner), &list, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < bs_json_n(list); i++) {
		const char *name = bs_json_str(bs_json_at(list, i));

		if (!name)
			return bad(err, "XAttrNames");
		(void)bs_buf_add(&names, name, strlen(name) + 1);
	}
	*ret_len = names.len;
	*ret = names.error ? NULL : bs_buf_take(&names);
	return *ret ? 0 : bs_fail(err, -ENOMEM, "out of memory");
}
