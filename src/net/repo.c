/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What is the same for all repositories: life, and that no byte which was asked
 * for by digest gets through unverified.
 */
#include "config.h"

#include "net/repo.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/latch.h"

void bs_manifest_done(struct bs_manifest *m)
{
	free(m->bytes);
	free(m->media_type);
	*m = (struct bs_manifest){ 0 };
}

struct bs_repo *bs_repo_ref(struct bs_repo *r)
{
	(void)__atomic_add_fetch(&r->refs, 1, __ATOMIC_RELAXED);
	return r;
}

struct bs_repo *bs_repo_unref(struct bs_repo *r)
{
	if (r && __atomic_sub_fetch(&r->refs, 1, __ATOMIC_ACQ_REL) == 0)
		r->ops->free(r);
	return NULL;
}

#define SILENT_NS (60 * BS_NS_PER_S)

bool bs_repo_is_silence(int result)
{
	return result == -ETIMEDOUT || result == -EHOSTUNREACH;
}

int bs_repo_note(struct bs_repo *r, int result)
{
	const uint64_t until = bs_repo_is_silence(result) ? bs_clock_ns() + SILENT_NS : 0;

	__atomic_store_n(&r->silent_until_ns, until, __ATOMIC_RELAXED);
	return result;
}

bool bs_repo_was_silent(const struct bs_repo *r)
{
	return bs_clock_ns() < __atomic_load_n(&r->silent_until_ns, __ATOMIC_RELAXED);
}

int bs_repo_get_manifest(struct bs_repo *r, const char *ref, struct bs_manifest *ret,
			 struct bs_error *err)
{
	return bs_repo_look_manifest(r, ref, &BS_LOOK_NEEDED, ret, err);
}

int bs_repo_look_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			  struct bs_manifest *ret, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_manifest m = { 0 };
	struct bs_digest want;
	int by_digest = bs_digest_parse(ref, strlen(ref), &want);
	int rc;

	if (by_digest < 0 && strchr(ref, ':'))
		return bs_fail(err, -EINVAL, "%s: '%s' is no tag and no sha256 digest", r->name,
			       ref);
	rc = r->ops->get_manifest(r, ref, look, &m, err);
	if (rc < 0)
		return rc;
	bs_digest_of(m.bytes, m.len, &m.digest);
	if (by_digest == 0 && !bs_digest_eq(&want, &m.digest)) {
		bs_manifest_done(&m);
		return bs_fail(err, -EBADMSG, "%s: manifest %s: the bytes have another digest",
			       r->name, bs_digest_text(&want, text));
	}
	*ret = m;
	return 0;
}

/* --- whole blobs ------------------------------------------------------------------------ */

struct checked {
	bs_repo_sink *sink;
	void *cookie;
	struct bs_sha256 *hash;
	uint64_t left;
	bool too_long;
};

static int checked_sink(void *cookie, const void *data, size_t len)
{
	struct checked *c = cookie;

	if (len > c->left) {
		c->too_long = true;
		return -EBADMSG;
	}
	c->left -= len;
	bs_sha256_update(c->hash, data, len);
	return c->sink(c->cookie, data, len);
}

int bs_repo_get_blob(struct bs_repo *r, const struct bs_digest *d, uint64_t size,
		     bs_repo_sink *sink, void *cookie, struct bs_error *err)
{
	struct checked c = { .sink = sink, .cookie = cookie, .left = size };
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest got;
	int rc;

	(void)bs_digest_text(d, text);
	c.hash = bs_sha256_new();
	if (!c.hash)
		return bs_fail(err, -ENOMEM, "%s: out of memory", r->name);
	rc = r->ops->get_blob(r, d, size, checked_sink, &c, err);
	bs_sha256_final(c.hash, &got);
	c.hash = bs_sha256_free(c.hash);
	if (c.too_long)
		return bs_fail(err, -EBADMSG, "%s: blob %s is longer than its %" PRIu64 " bytes",
			       r->name, text, size);
	if (rc < 0)
		return rc;
	if (c.left)
		return bs_fail(err, -EBADMSG,
			       "%s: blob %s ended %" PRIu64 " bytes before its %" PRIu64, r->name,
			       text, c.left, size);
	if (!bs_digest_eq(d, &got))
		return bs_fail(err, -EBADMSG, "%s: blob %s: the bytes have another digest", r->name,
			       text);
	return 0;
}

struct memory {
	char *at;
};

static int memory_sink(void *cookie, const void *data, size_t len)
{
	struct memory *m = cookie;

	memcpy(m->at, data, len); /* checked_sink lets no more through than there is room */
	m->at += len;
	return 0;
}

int bs_repo_get_blob_mem(struct bs_repo *r, const struct bs_digest *d, uint64_t size, size_t max,
			 char **ret, struct bs_error *err)
{
	char text[BS_DIGEST_TEXT_LEN];
	bs_autofree char *bytes = NULL;
	struct memory m;
	int rc;

	if (size > max || size == SIZE_MAX)
		return bs_fail(err, -EFBIG, "%s: blob %s of %" PRIu64 " bytes: the bound is %zu",
			       r->name, bs_digest_text(d, text), size, max);
	bytes = malloc((size_t)size + 1);
	if (!bytes)
		return bs_fail(err, -ENOMEM, "%s: out of memory", r->name);
	m.at = bytes;
	rc = bs_repo_get_blob(r, d, size, memory_sink, &m, err);
	if (rc < 0)
		return rc;
	*m.at = '\0';
	*ret = bs_take(&bytes);
	return 0;
}

void bs_repo_read(struct bs_repo *r, struct bs_range *rg)
{
	uint64_t end;

	rg->result = 0;
	rg->retry_after_ns = 0;
	rg->text[0] = '\0';
	rg->impl = NULL;
	rg->asked_ns = bs_clock_ns();
	rg->answered_ns = 0;
	/* readers of the cache look at these while the range is under way */
	__atomic_store_n(&rg->started_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rg->got, 0, __ATOMIC_RELAXED);
	if (rg->len == 0 || !bs_add_u64(rg->off, rg->len - 1, &end) || end > INT64_MAX) {
		rg->result = -EINVAL;
		rg->ended_ns = rg->asked_ns;
		rg->done(rg);
		return;
	}
	r->ops->read(r, rg);
}

static void range_waited(struct bs_range *rg)
{
	bs_latch_open(rg->cookie);
}

int bs_repo_read_wait(struct bs_repo *r, struct bs_range *rg)
{
	struct bs_latch over = BS_LATCH_INIT;

	rg->done = range_waited;
	rg->cookie = &over;
	bs_repo_read(r, rg);
	bs_latch_wait(&over);
	bs_latch_done(&over);
	rg->cookie = NULL;
	return rg->result;
}

/* --- the rest: straight through ----------------------------------------------------------- */

int bs_repo_has_blob(struct bs_repo *r, const struct bs_digest *d, struct bs_error *err)
{
	return r->ops->has_blob(r, d, err);
}

int bs_repo_try_push(struct bs_repo *r, struct bs_error *err)
{
	return r->ops->try_push(r, err);
}

void bs_repo_favour(struct bs_repo *r, const struct bs_digest *d)
{
	if (r->ops->favour)
		r->ops->favour(r, d);
}

int bs_repo_put_blob(struct bs_repo *r, const struct bs_digest *d, int fd, uint64_t size,
		     void (*progress)(void *cookie, uint64_t sent), void *cookie,
		     struct bs_error *err)
{
	return r->ops->put_blob(r, d, fd, size, progress, cookie, err);
}

int bs_repo_put_blob_mem(struct bs_repo *r, const struct bs_digest *d, const void *data, size_t len,
			 struct bs_error *err)
{
	bs_autofd int fd = bs_memfd("bootseer-blob");
	int rc;

	if (fd < 0)
		return bs_fail_errno(err, fd, "%s: memfd", r->name);
	rc = bs_write_full(fd, data, len);
	if (rc < 0)
		return bs_fail_errno(err, rc, "%s: memfd", r->name);
	return r->ops->put_blob(r, d, fd, len, NULL, NULL, err);
}

int bs_repo_mount_blob(struct bs_repo *r, const struct bs_digest *d, const char *from_name,
		       struct bs_error *err)
{
	return r->ops->mount_blob(r, d, from_name, err);
}

static int check_manifest(const struct bs_repo *r, size_t len, struct bs_error *err)
{
	return len <= BS_MANIFEST_MAX
		       ? 0
		       : bs_fail(err, -EFBIG, "%s: a manifest of %zu bytes: the bound is %u",
				 r->name, len, BS_MANIFEST_MAX);
}

int bs_repo_put_manifest(struct bs_repo *r, const char *tag, const char *media_type,
			 const char *bytes, size_t len, struct bs_error *err)
{
	int rc = check_manifest(r, len, err);

	return rc < 0 ? rc : r->ops->put_manifest(r, tag, media_type, bytes, len, err);
}

int bs_repo_put_manifest_over(struct bs_repo *r, const char *tag, const struct bs_digest *was,
			      const char *media_type, const char *bytes, size_t len,
			      struct bs_error *err)
{
	int rc = check_manifest(r, len, err);

	if (rc < 0)
		return rc;
	return r->ops->put_manifest_over
		       ? r->ops->put_manifest_over(r, tag, was, media_type, bytes, len, err)
		       : r->ops->put_manifest(r, tag, media_type, bytes, len, err);
}

int bs_repo_list_tags(struct bs_repo *r, void (*each)(void *cookie, const char *tag), void *cookie,
		      struct bs_error *err)
{
	return r->ops->list_tags(r, each, cookie, err);
}

int bs_repo_get_referrers(struct bs_repo *r, const struct bs_digest *subject,
			  struct bs_manifest *ret, struct bs_error *err)
{
	struct bs_manifest m = { 0 };
	int rc = r->ops->get_referrers(r, subject, &m, err);

	if (rc < 0)
		return rc;
	bs_digest_of(m.bytes, m.len, &m.digest);
	*ret = m;
	return 0;
}

int bs_repo_delete_manifest(struct bs_repo *r, const struct bs_digest *d,
			    const struct bs_digest *subject, struct bs_error *err)
{
	return r->ops->delete_manifest(r, d, subject, err);
}
