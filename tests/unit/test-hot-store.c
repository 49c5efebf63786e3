/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/rmtree.h"
#include "base/str.h"
#include "hot/store.h"
#include "net/layout.h"
#include "net/repo.h"

static char dir[32];
static struct bs_repo *repo;
static struct bs_hot hot;

static int set_up(void **state)
{
	bs_autofd int fd = -EBADF;
	char image[] = "{\"the\":\"image\"}";

	strcpy(dir, "/tmp/bootseer-unit-XXXXXX");
	fd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	hot = (struct bs_hot){ .workload = "train", .head_len = 3 };
	bs_digest_of(image, strlen(image), &hot.image.digest);
	hot.image.size = strlen(image);
	return bs_layout_open(fd, dir, true, &repo, NULL);
}

static int tear_down(void **state)
{
	repo = bs_repo_unref(repo);
	return bs_rmtree(AT_FDCWD, dir);
}

static int publish(const char *pack, bool replace, struct bs_hot *ret)
{
	bs_autofd int fd = memfd_create("pack", MFD_CLOEXEC);

	*ret = hot;
	assert_int_equal(bs_pwrite_full(fd, pack, strlen(pack), 0), 0);
	return bs_hot_publish(repo, ret, "profile", 7, fd, replace, NULL);
}

static void what_was_published_is_found(void **state)
{
	struct bs_hot h, found;

	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), -ENOENT);
	assert_int_equal(publish("head and segments", false, &h), 0);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &h.digest));
	assert_true(bs_digest_eq(&found.pack.digest, &h.pack.digest));
	assert_int_equal(found.pack.size, strlen("head and segments"));
	assert_int_equal(found.profile.size, 7);
	assert_int_equal(found.head_len, 3);
	assert_true(bs_hot_is_head(&found, "hea"));
	assert_false(bs_hot_is_head(&found, "heb"));
	assert_string_equal(found.workload, "train");
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "serve", 0, &found, NULL), -ENOENT);
	assert_int_equal(bs_hot_find(repo, &h.digest, "train", 0, &found, NULL), -ENOENT);
}

static void the_first_stays_unless_it_is_replaced(void **state)
{
	struct bs_hot first, second, found;

	assert_int_equal(publish("first pack", false, &first), 0);
	assert_int_equal(publish("second pack", false, &second), -EEXIST);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &first.digest));
	assert_int_equal(publish("second pack", true, &second), 0);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &second.digest));
}

static void what_is_listed_and_not_there_is_replaced(void **state)
{
	char path[160], text[BS_DIGEST_TEXT_LEN];
	struct bs_hot first, second, found;

	assert_int_equal(publish("first pack", false, &first), 0);
	(void)snprintf(path, sizeof(path), "%s/blobs/sha256/%s", dir,
		       bs_digest_text(&first.digest, text) + strlen("sha256:"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(publish("second pack", false, &second), 0);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &second.digest));
}

/* The image's own list of what refers to it has the pack, so registries keep it with the image. */
static int publish_over(const char *pack, const struct bs_digest *old, struct bs_hot *ret)
{
	bs_autofd int fd = memfd_create("pack", MFD_CLOEXEC);

	*ret = hot;
	assert_int_equal(bs_pwrite_full(fd, pack, strlen(pack), 0), 0);
	return bs_hot_publish_over(repo, ret, old, "profile", 7, fd, NULL);
}

static void only_the_pack_that_is_meant_is_replaced(void **state)
{
	struct bs_hot first, second, third, found;

	assert_int_equal(publish("first pack", false, &first), 0);
	assert_int_equal(publish_over("second pack", &first.pack.digest, &second), 0);
	/* who still thinks of the first one comes too late */
	assert_int_equal(publish_over("third pack", &first.pack.digest, &third), -EEXIST);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &second.digest));
}

static void where_there_is_none_it_is_published(void **state)
{
	const struct bs_digest old = { { 1 } };
	struct bs_hot h, found;

	assert_int_equal(publish_over("a pack", &old, &h), 0);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &h.digest));
}

static int large_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			  struct bs_manifest *ret, struct bs_error *err)
{
	return bs_fail(err, -EFBIG, "too large");
}

/* It is none; left there it would keep a stale pack in its place for ever. */
static void what_is_too_large_is_replaced(void **state)
{
	struct bs_repo_ops large = *repo->ops;
	const struct bs_repo_ops *right = repo->ops;
	const struct bs_digest old = { { 1 } };
	struct bs_hot h, found;
	int r;

	large.get_manifest = large_manifest;
	repo->ops = &large;
	r = publish_over("a pack", &old, &h);
	repo->ops = right;
	assert_int_equal(r, 0);
	assert_int_equal(bs_hot_find(repo, &hot.image.digest, "train", 0, &found, NULL), 0);
	assert_true(bs_digest_eq(&found.digest, &h.digest));
}

static void the_pack_refers_to_its_image(void **state)
{
	struct bs_manifest m = { 0 };
	struct bs_hot h;

	assert_int_equal(publish("a pack", false, &h), 0);
	assert_int_equal(bs_repo_get_referrers(repo, &hot.image.digest, &m, NULL), 0);
	assert_non_null(strstr(m.bytes, BS_HOT_TYPE));
	bs_manifest_done(&m);
}

/* Gives answers that are none, as one that is cut off on its way is. */
static int cut_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
			struct bs_manifest *ret, struct bs_error *err)
{
	return bs_fail(err, -EBADMSG, "cut off");
}

static void cut_read(struct bs_repo *r, struct bs_range *rg)
{
	rg->result = -EBADMSG;
	rg->done(rg);
}

static void what_is_cut_off_is_no_verdict(void **state)
{
	static const struct bs_repo_ops ops = { .scheme = "cut",
						.get_manifest = cut_manifest,
						.read = cut_read };
	char name[] = "cut";
	struct bs_repo cut = { .ops = &ops, .refs = 1000, .name = name };
	struct bs_hot found;
	char *head;

	assert_int_equal(bs_hot_find(&cut, &hot.image.digest, "train", 0, &found, NULL),
			 -EREMOTEIO);
	assert_int_equal(bs_hot_read_head(&cut, &hot, &head, NULL), -EREMOTEIO);
}

static enum bs_lane asked_in;

static int no_manifest(struct bs_repo *r, const char *ref, const struct bs_look *look,
		       struct bs_manifest *ret, struct bs_error *err)
{
	asked_in = look->lane;
	return bs_fail(err, -ENOENT, "none");
}

static void no_bytes(struct bs_repo *r, struct bs_range *rg)
{
	asked_in = rg->lane;
	assert_null(rg->whose); /* no image's */
	rg->result = -ENOENT;
	rg->done(rg);
}

/* Behind other packs' ranges it would take as long as they do. */
static void what_decides_on_a_start_goes_before_all_packs(void **state)
{
	static const struct bs_repo_ops ops = { .scheme = "none",
						.get_manifest = no_manifest,
						.read = no_bytes };
	char name[] = "none";
	struct bs_repo none = { .ops = &ops, .refs = 1000, .name = name };
	struct bs_hot h = hot, found;
	char *head;

	assert_int_equal(bs_hot_find(&none, &h.image.digest, "train", 5, &found, NULL), -ENOENT);
	assert_int_equal(asked_in, BS_LANE_DEMAND);
	/* who makes one has time */
	assert_int_equal(bs_hot_find(&none, &h.image.digest, "train", 0, &found, NULL), -ENOENT);
	assert_int_equal(asked_in, BS_LANE_HOT);
	h.head_len = 1 << 20;
	assert_int_equal(bs_hot_read_head(&none, &h, &head, NULL), -ENOENT);
	assert_int_equal(asked_in, BS_LANE_DEMAND);
	h.head_len++;
	assert_int_equal(bs_hot_read_head(&none, &h, &head, NULL), -ENOENT);
	assert_int_equal(asked_in, BS_LANE_HOT);
}

static void parse(const char *from, const char *to, int want, const char *word)
{
	bs_autofree char *text = NULL, *changed = NULL;
	struct bs_manifest m = { .media_type = strdup(BS_MEDIA_OCI_MANIFEST) };
	struct bs_error err = BS_ERROR_INIT;
	struct bs_hot h = hot, found;
	size_t len;
	char *at;

	h.profile.size = h.pack.size = 10;
	assert_int_equal(bs_hot_write(&h, &text, &len, NULL), 0);
	at = strstr(text, from);
	assert_non_null(at);
	changed = bs_strf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	m.bytes = strdup(changed);
	m.len = strlen(changed);
	assert_int_equal(bs_hot_parse(&m, &found, &err), want);
	if (!strstr(err.msg, word))
		fail_msg("'%s' does not say '%s'", err.msg, word);
	bs_manifest_done(&m);
}

static void wrong_manifests_are_refused(void **state)
{
	parse("\"schemaVersion\":2", "\"schemaVersion\":2", 0, "");
	parse(BS_HOT_TYPE, "application/vnd.other", -EBADMSG, "artifactType");
	parse(BS_MEDIA_PROFILE, "text/plain", -EBADMSG, "layers[0]");
	parse(BS_MEDIA_PACK, "text/plain", -EBADMSG, "layers[1]");
	parse("\"subject\"", "\"object\"", -EBADMSG, "subject");
	parse(":\"train\"", ":\"tr ain\"", -EBADMSG, BS_ANNOTATION_WORKLOAD);
	parse(":\"train\"", ":\"\"", -EBADMSG, BS_ANNOTATION_WORKLOAD);
	parse("\"3\"", "\"10\"", -EBADMSG, BS_ANNOTATION_HOT_HEAD);
	parse("\"3\"", "\"-1\"", -EBADMSG, BS_ANNOTATION_HOT_HEAD);
	parse("\"3\"", "\"x\"", -EBADMSG, BS_ANNOTATION_HOT_HEAD);
	hot.head_proven = true;
	parse("head.digest\":\"sha256:0", "head.digest\":\"sha256:x", -EBADMSG,
	      BS_ANNOTATION_HOT_HEAD_DIGEST);
}

/* Packs that were made before heads were proven. */
static void a_head_that_no_manifest_names_is_taken_as_it_comes(void **state)
{
	struct bs_manifest m = { .media_type = strdup(BS_MEDIA_OCI_MANIFEST) };
	struct bs_hot h = hot, found;

	h.profile.size = h.pack.size = 10;
	assert_int_equal(bs_hot_write(&h, &m.bytes, &m.len, NULL), 0);
	assert_null(strstr(m.bytes, BS_ANNOTATION_HOT_HEAD_DIGEST));
	assert_int_equal(bs_hot_parse(&m, &found, NULL), 0);
	assert_true(bs_hot_is_head(&found, "abc"));
	bs_manifest_done(&m);
}

static void tags_tell_images_and_workloads_apart(void **state)
{
	char a[BS_HOT_TAG_LEN], b[BS_HOT_TAG_LEN];
	struct bs_digest other = { { 1 } };

	bs_hot_tag(&hot.image.digest, "train", a);
	assert_int_equal(strlen(a), strlen("bootseer-hot-") + 40);
	assert_string_not_equal(a, bs_hot_tag(&hot.image.digest, "train2", b));
	assert_string_not_equal(a, bs_hot_tag(&other, "train", b));
	assert_string_equal(a, bs_hot_tag(&hot.image.digest, "train", b));
}

#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(what_was_published_is_found),
		STORE_TEST(only_the_pack_that_is_meant_is_replaced),
		STORE_TEST(where_there_is_none_it_is_published),
		STORE_TEST(the_first_stays_unless_it_is_replaced),
		STORE_TEST(what_is_too_large_is_replaced),
		STORE_TEST(what_is_listed_and_not_there_is_replaced),
		STORE_TEST(the_pack_refers_to_its_image),
		STORE_TEST(what_is_cut_off_is_no_verdict),
		STORE_TEST(what_decides_on_a_start_goes_before_all_packs),
		STORE_TEST(wrong_manifests_are_refused),
		STORE_TEST(a_head_that_no_manifest_names_is_taken_as_it_comes),
		UNIT_TEST(tags_tell_images_and_workloads_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
