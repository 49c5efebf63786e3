/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "shim/acquire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "ctl/client.h"
#include "ctl/program.h"
#include "image/artifact.h"
#include "obs/timeline.h"
#include "oci/annot.h"
#include "oci/ref.h"

#define SOURCES_MAX 32u /* all fit into one message */
#define CONNECT_NS (15 * BS_NS_PER_S)
#define REPLY_GRACE_NS (30 * BS_NS_PER_S) /* over what the source may take */
#define UNPACK_NS (60 * 60 * BS_NS_PER_S)
#define RECONNECTS_MAX 3
#define SLOW_NS (5 * BS_NS_PER_S) /* then it is said what a start waits for */
#define RELEASE_NS (2 * BS_NS_PER_S)

/* --- which image, from where ------------------------------------------------------------ */

/* Collects places; the first refusal is kept, to be told when nothing is left. */
struct places {
	const struct bs_conf *conf;
	struct bs_strv *to;
	struct bs_error refused;
};

static int add_place(struct places *p, const char *source, struct bs_error *err)
{
	struct bs_error e = BS_ERROR_INIT;

	if (bs_conf_allows(p->conf, source, &e) < 0) {
		bs_log_debug("%s", bs_error_text(&e));
		if (p->refused.code == 0)
			p->refused = e;
		return 0;
	}
	return bs_conf_sources(p->conf, source, p->to, err);
}

static int add_ref(struct places *p, const struct bs_ref *ref, struct bs_error *err)
{
	bs_autofree char *text = bs_ref_text(ref, true);

	if (!text)
		return bs_fail(err, -ENOMEM, "list sources: out of memory");
	return add_place(p, text, err);
}

/* An engine's name that is none to us ("sha256:…" for an image without a tag) is left out. */
static int add_engine_names(struct places *p, const struct bs_json *annotations,
			    struct bs_error *err)
{
	bs_autostrv names = { 0 };
	int r = bs_annot_image_names(annotations, &names);

	if (r < 0)
		return bs_fail(err, r, "list sources: out of memory");
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		struct bs_ref ref = { 0 };

		if (bs_ref_parse(names.v[i], &ref, NULL) < 0)
			continue;
		if (ref.kind == BS_REF_REGISTRY)
			r = add_ref(p, &ref, err);
		bs_ref_done(&ref);
	}
	return r;
}

static int set_digest(struct bs_want *w, const struct bs_digest *d)
{
	char text[BS_DIGEST_TEXT_LEN];

	w->digest = strdup(bs_digest_text(d, text));
	return w->digest ? 0 : -ENOMEM;
}

/* A tag means something in its repository and that one's mirrors, not in stores. */
static int set_tag(struct bs_want *w, const struct places *p, const struct bs_ref *ref)
{
	bs_autofree char *source = bs_ref_text(ref, true);
	int r = 0;

	w->tag = bs_ref_reference(ref);
	if (!source || !w->tag)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < p->to->n; i++) {
		if (bs_streq(p->to->v[i], source) || !bs_strv_has(&p->conf->stores, p->to->v[i]))
			r = bs_strv_add(&w->named, p->to->v[i]);
	}
	return r;
}

static int from_image(struct bs_want *w, struct places *p, const char *image, struct bs_error *err)
{
	struct bs_ref ref = { 0 };
	int r = bs_ref_parse(image, &ref, err);

	if (r == 0 && ref.kind == BS_REF_ROOTFS)
		r = bs_fail(err, -EINVAL,
			    "it must name a converted image, as docker://HOST/NAME:TAG, "
			    "oci:DIR:TAG or hdfs://HOST/DIR:TAG");
	if (r == 0)
		r = add_ref(p, &ref, err);
	if (r == 0 && ref.has_digest)
		r = set_digest(w, &ref.digest);
	else if (r == 0 && p->refused.code) /* what no digest proves is taken from nowhere else */
		*err = p->refused, r = err->code;
	else if (r == 0 && set_tag(w, p, &ref) < 0)
		r = bs_fail(err, -ENOMEM, "out of memory");
	bs_ref_done(&ref);
	return r < 0 ? (bs_error_context(err, "annotation '" BS_ANNOT_PREFIX "image' ('%.128s')",
					 image),
			r)
		     : 0;
}

/* A place, written as one; what is at it is for the worker to find out. */
static int check_repository(const char *source, struct bs_error *err)
{
	struct bs_ref ref = { 0 };
	int r = bs_ref_parse(source, &ref, err);

	bs_ref_done(&ref);
	return r < 0 ? (bs_error_context(err, "repository"), r) : 0;
}

static int from_marker(struct bs_want *w, struct places *p, const char *marker, size_t len,
		       const struct bs_json *annotations, struct bs_error *err)
{
	struct bs_marker m = { 0 };
	bs_autofree char *source = NULL;
	int r = bs_marker_parse(marker, len, &m, err);

	if (r == 0) {
		source = bs_str_after(m.repository, "oci:") || bs_ref_is_hdfs(m.repository)
				 ? strdup(m.repository)
				 : bs_strf("docker://%s", m.repository);
		r = source ? check_repository(source, err) : bs_fail(err, -ENOMEM, "out of memory");
	}
	if (r < 0) {
		bs_marker_done(&m);
		return bs_error_context(err, "the image's marker '/" BS_MARKER_PATH "'"), r;
	}
	r = set_digest(w, &m.artifact);
	if (r == 0)
		r = add_engine_names(p, annotations, err);
	if (r == 0)
		r = add_place(p, source, err);
	bs_marker_done(&m);
	return r;
}

int bs_want_resolve(const struct bs_conf *conf, const char *marker, size_t marker_len,
		    const char *image, const struct bs_json *annotations, struct bs_want *ret,
		    struct bs_error *err)
{
	struct places p = { .conf = conf, .to = &ret->sources };
	int r;

	ret->has_marker = marker;
	r = image ? from_image(ret, &p, image, err)
		  : from_marker(ret, &p, marker, marker_len, annotations, err);
	if (r < 0)
		return r;
	/* stores alone will do: they are the host's, and the digest decides */
	for (size_t i = 0; i < conf->stores.n; i++) {
		if (!bs_strv_has(&ret->sources, conf->stores.v[i]) &&
		    bs_strv_add(&ret->sources, conf->stores.v[i]) < 0)
			return bs_fail(err, -ENOMEM, "list sources: out of memory");
	}
	if (ret->sources.n > 0)
		return 0;
	if (p.refused.code) {
		*err = p.refused;
		return err->code;
	}
	return bs_fail(err, -EINVAL, "nothing says where the image's data is");
}

void bs_want_done(struct bs_want *w)
{
	free(bs_take(&w->digest));
	free(bs_take(&w->tag));
	bs_strv_done(&w->sources);
	bs_strv_done(&w->named);
}

/* --- bootseerd ---------------------------------------------------------------------------- */

static int add_sources(struct bs_msg *m, const struct bs_strv *sources)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sources->n && i < SOURCES_MAX; i++)
		r = bs_msg_add_text(m, BS_TAG_SOURCE, sources->v[i]);
	return r;
}

static int build(struct bs_msg *m, const struct bs_conf *conf, const struct bs_want *w)
{
	int r = bs_msg_add_text(m, BS_TAG_CONTAINER, w->lease);

	if (r == 0)
		r = bs_msg_add_text(m, BS_TAG_DIGEST, w->digest);
	if (r == 0)
		r = add_sources(m, &w->sources);
	if (r == 0)
		r = bs_msg_add_u64(m, BS_TAG_WAIT_NS, conf->start_wait_ns);
	if (r == 0)
		r = bs_msg_add_text(m, BS_TAG_TIMELINE, w->timeline);
	if (r == 0 && w->workload[0])
		r = bs_msg_add_text(m, BS_TAG_WORKLOAD, w->workload);
	if (r == 0 && w->workload[0])
		r = bs_msg_add_u64(m, BS_TAG_RECORD, w->record);
	if (r == 0 && w->hot_only)
		r = bs_msg_add_u64(m, BS_TAG_HOT_ONLY, 1);
	return r;
}

struct waiting {
	const struct bs_strv *places;
};

/* The first place that is asked, and how many others. */
static void say_waiting(void *cookie)
{
	const struct bs_strv *places = ((const struct waiting *)cookie)->places;

	if (places->n == 1)
		bs_log_warning("waiting for '%s'", places->v[0]);
	else if (places->n)
		bs_log_warning("waiting for '%s' and %zu other places", places->v[0],
			       places->n - 1);
}

static int ask(int sock, const struct bs_conf *conf, const struct bs_want *w, enum bs_msg_type type,
	       uint64_t timeout_ns, struct bs_msg *ret, struct bs_error *err)
{
	struct waiting waiting = { &w->sources };
	const struct bs_client_slow slow = { SLOW_NS, say_waiting, &waiting };
	static uint32_t id;
	bs_automsg m;
	int r;

	bs_msg_init(&m, type, ++id);
	r = build(&m, conf, w);
	if (r < 0)
		return bs_fail_errno(err, r, "ask bootseerd for image %s", w->digest);
	return bs_client_call_slow(sock, &m, timeout_ns, &slow, ret, err);
}

/* What another node, or another try, would not do better: the kernel lacks something. */
static bool not_to_be_had(int r)
{
	return r == -EOPNOTSUPP || r == -ENOSYS || r == -ENODEV || r == -ENOTBLK;
}

static int acquire_mount(int sock, const struct bs_conf *conf, const struct bs_want *w,
			 struct bs_timeline *t, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	bs_automsg reply;
	int r;

	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	r = ask(sock, conf, w, BS_MSG_ACQUIRE, conf->start_wait_ns + REPLY_GRACE_NS, &reply, err);
	if (r == 0) {
		r = bs_msg_take_fd(&reply, 0);
		if (r < 0)
			r = bs_fail(err, -EPROTO, "bootseerd sent no mount for image %s",
				    w->digest);
	}
	bs_timeline_span(t, BS_SPAN_ACQUIRE, start, 0, r < 0 ? bs_error_text(err) : NULL);
	return r;
}

static int acquire_unpacked(int sock, const struct bs_conf *conf, const struct bs_want *w,
			    struct bs_timeline *t, struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();
	const char *path;
	bs_automsg reply;
	int r;

	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	r = ask(sock, conf, w, BS_MSG_UNPACK, UNPACK_NS, &reply, err);
	if (r < 0)
		return r;
	bs_timeline_span(t, BS_SPAN_UNPACK, start, 0, NULL);
	path = bs_msg_text(&reply, BS_TAG_PATH, 0);
	if (!path || path[0] != '/')
		return bs_fail(err, -EPROTO, "bootseerd did not say where image %s is unpacked",
			       w->digest);
	r = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return r < 0 ? bs_fail_errno(err, -errno, "open unpacked image '%s'", path) : r;
}

static int not_running(const struct bs_conf *conf, struct bs_error *err)
{
	bs_autofree char *why = bs_strf("%s", bs_error_text(err));

	return bs_fail(err, -ENOTCONN,
		       "%s; start it, or set 'autostart = yes' in section [node] of '%s'",
		       why ? why : "bootseerd is not running", conf->file);
}

int bs_connect(const struct bs_conf *conf, struct bs_timeline *t, struct bs_error *err)
{
	bs_autofree char *daemon = NULL;
	struct bs_client_options o = { .run_dir = conf->run_dir,
				       /* the installed one it finds itself, if it is there */
				       .config = conf->named ? conf->file : NULL,
				       .timeout_ns = CONNECT_NS };
	const uint64_t start = bs_clock_ns();
	int sock = bs_client_connect(&o, err);

	if (sock == -ENOTCONN && !conf->autostart)
		return not_running(conf, err);
	if (sock != -ENOTCONN)
		return sock;
	sock = bs_program_find("bootseerd", conf, NULL, &daemon, err);
	if (sock == 0) {
		o.daemon = daemon;
		sock = bs_client_connect(&o, err);
	}
	bs_timeline_span(t, BS_SPAN_DAEMON_START, start, 0, sock < 0 ? bs_error_text(err) : NULL);
	return sock;
}

/*
 * A bootseerd that is killed or replaced while we wait takes our request with it; the next
 * one is there at once. Not for ever: it may be our request that kills it.
 */
static int acquire(const struct bs_conf *conf, const struct bs_want *w, struct bs_timeline *t,
		   int *ret_sock, struct bs_error *err)
{
	for (int tries = 0;; tries++) {
		bs_autofd int sock = bs_connect(conf, t, err);
		int r = sock < 0 ? sock : acquire_mount(sock, conf, w, t, err);

		if (r == -ECONNRESET && tries < RECONNECTS_MAX)
			continue;
		*ret_sock = bs_take_fd(&sock);
		return r;
	}
}

static int ask_digest(int sock, const struct bs_conf *conf, struct bs_want *w, struct bs_error *err)
{
	struct waiting waiting = { &w->named };
	const struct bs_client_slow slow = { SLOW_NS, say_waiting, &waiting };
	const char *digest;
	bs_automsg m, reply;
	struct bs_digest d;
	int r;

	bs_msg_init(&m, BS_MSG_RESOLVE, 1);
	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	if (bs_msg_add_text(&m, BS_TAG_NAME, w->tag) < 0 || add_sources(&m, &w->named) < 0 ||
	    bs_msg_add_u64(&m, BS_TAG_WAIT_NS, conf->start_wait_ns) < 0)
		return bs_fail(err, -E2BIG, "there are too many sources to ask for it");
	r = bs_client_call_slow(sock, &m, conf->start_wait_ns + REPLY_GRACE_NS, &slow, &reply, err);
	if (r < 0)
		return r;
	digest = bs_msg_text(&reply, BS_TAG_DIGEST, 0);
	if (!digest || bs_digest_parse(digest, strlen(digest), &d) < 0)
		return bs_fail(err, -EPROTO, "bootseerd did not say which image it is");
	return set_digest(w, &d) < 0 ? bs_fail(err, -ENOMEM, "out of memory") : 0;
}

int bs_want_find(const struct bs_conf *conf, struct bs_want *w, const char *name,
		 struct bs_timeline *t, struct bs_error *err)
{
	bs_autofd int sock = bs_connect(conf, t, err);
	const uint64_t start = bs_clock_ns();
	struct bs_error why;
	int r = sock < 0 ? sock : ask_digest(sock, conf, w, err);

	bs_timeline_span(t, BS_SPAN_RESOLVE, start, 0, r < 0 ? bs_error_text(err) : w->digest);
	if (r == 0)
		return 0;
	why = *err;
	return bs_fail(err, r, "annotation '" BS_ANNOT_PREFIX "image' ('%.128s'): %s%s", name,
		       bs_error_text(&why),
		       r == -ENOENT ? "; 'bootseerctl image ls' lists what is there" : "");
}

int bs_acquire(const struct bs_conf *conf, const struct bs_want *w, struct bs_timeline *t,
	       struct bs_error *err)
{
	bs_autofd int sock = -EBADF;
	struct bs_error why;
	int r;

	r = acquire(conf, w, t, &sock, err);
	if (r >= 0 || w->fallback == BS_FALLBACK_FAIL || !not_to_be_had(r))
		return r;
	why = *err;
	bs_timeline_mark(t, BS_MARK_FALLBACK, bs_clock_ns(), bs_error_text(&why));
	r = acquire_unpacked(sock, conf, w, t, err);
	if (r >= 0)
		bs_log_warning("image %s is not served lazily on this host (%s): it was fetched "
			       "and unpacked whole; see bootseerctl doctor",
			       w->digest, bs_error_text(&why));
	return r;
}

int bs_release(const struct bs_conf *conf, const char *lease, struct bs_error *err)
{
	const struct bs_client_options o = { .run_dir = conf->run_dir, .timeout_ns = RELEASE_NS };
	bs_autofd int sock = bs_client_connect(&o, err);
	bs_automsg m, reply;
	int r;

	if (sock < 0)
		return sock;
	bs_msg_init(&m, BS_MSG_RELEASE, 1);
	bs_msg_init(&reply, BS_MSG_REPLY, 0);
	r = bs_msg_add_text(&m, BS_TAG_CONTAINER, lease);
	if (r < 0)
		return bs_fail_errno(err, r, "release '%s'", lease);
	return bs_client_call(sock, &m, RELEASE_NS, &reply, err);
}
