/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Speaks to a repository as the tests want it. See usage(). On failure the last line on
 * stderr is "ERRNO-NAME text" and the exit status 1.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/auth.h"
#include "net/layout.h"
#include "net/loop.h"
#include "net/referrers.h"
#include "net/repo.h"
#include "oci/ref.h"

static struct {
	bool plain, insecure, stats;
	const char *ca_file, *user_file, *docker_config;
	struct bs_loop_options loop;
	uint64_t rate;
} opt;

static int usage(void)
{
	fprintf(stderr,
		"repotool [OPTION...] REPO COMMAND [ARG...]\n"
		"  get-manifest REF           its bytes; the media type on stderr\n"
		"  get-blob DIGEST SIZE       its bytes\n"
		"  read DIGEST OFF LEN        one range\n"
		"  ranges DIGEST SIZE LEN N [LANE [N-DEMAND]]   all ranges of LEN bytes, N at "
		"once;\n"
		"                             with N-DEMAND demand reads of 64 KiB between them\n"
		"  has DIGEST                 1 or 0\n"
		"  put-blob FILE              its digest\n"
		"  put-manifest TAG|- TYPE FILE\n"
		"  mount DIGEST FROM          1 or 0\n"
		"  tags\n"
		"  referrers DIGEST\n"
		"  delete DIGEST [SUBJECT]    a manifest\n"
		"  copy REPO-TO TAG           a manifest and all that it names\n"
		"options: --plain --insecure --ca FILE --user-file FILE (USER:SECRET, read anew "
		"each\n"
		"time) --docker-config DIR --connections N --parallel N --stall MS --rate BYTES\n"
		"--stats (JSON on stderr)\n");
	return 2;
}

static int credentials(void *cookie, const char *host, char **ret_user, char **ret_secret,
		       struct bs_error *err)
{
	struct bs_auth_options o = { .docker_config = opt.docker_config };
	bs_autofree char *text = NULL;
	char *colon;
	size_t len;
	int r;

	if (opt.docker_config)
		return bs_auth_find(&o, host, "", ret_user, ret_secret, err);
	if (!opt.user_file)
		return -ENOENT;
	r = bs_read_file_at(AT_FDCWD, opt.user_file, 0, 4096, &text, &len);
	if (r < 0)
		return bs_fail_errno(err, r, "'%s'", opt.user_file);
	text[strcspn(text, "\n")] = '\0';
	colon = strchr(text, ':');
	if (!colon)
		return -ENOENT;
	*colon = '\0';
	*ret_user = strdup(text);
	*ret_secret = strdup(colon + 1);
	return 0;
}

static int open_repo(struct bs_loop *l, const char *text, bool create, struct bs_repo **ret,
		     struct bs_error *err)
{
	struct bs_registry_options o = { .loop = l,
					 .tls_verify = !opt.insecure,
					 .plain_http = opt.plain,
					 .ca_file = opt.ca_file,
					 .credentials = credentials };
	struct bs_ref ref;
	int r = bs_ref_parse(text, &ref, err);

	if (r < 0)
		return r;
	if (ref.kind == BS_REF_REGISTRY) {
		r = bs_registry_open(&o, ref.host, ref.name, ret, err);
	} else {
		bs_autofd int fd = create ? bs_mkdir_open(AT_FDCWD, ref.dir, 0755)
					  : open(ref.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

		r = fd < 0 ? bs_fail_errno(err, create ? fd : -errno, "'%s'", ref.dir)
			   : bs_layout_open(fd, ref.dir, create, ret, err);
	}
	bs_ref_done(&ref);
	return r;
}

static int to_stdout(void *cookie, const void *data, size_t len)
{
	uint64_t *us = cookie; /* a pause between pieces: a slow reader */

	if (us && *us)
		(void)usleep((useconds_t)*us);
	return bs_write_full(1, data, len);
}

static int need_digest(const char *text, struct bs_digest *ret, struct bs_error *err)
{
	if (bs_digest_parse(text, strlen(text), ret) < 0)
		return bs_fail(err, -EINVAL, "'%s' is no digest", text);
	return 0;
}

/* --- ranges ----------------------------------------------------------------------------------- */

struct all {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned int running;
	int result;
	uint64_t demand_worst_ns;
	char text[160];
};

static void range_done(struct bs_range *rg)
{
	struct all *a = rg->cookie;

	(void)pthread_mutex_lock(&a->lock);
	a->running--;
	if (rg->result < 0 && a->result == 0) {
		a->result = rg->result;
		(void)snprintf(a->text, sizeof(a->text), "%s", rg->text);
	}
	if (rg->lane == BS_LANE_DEMAND && rg->ended_ns - rg->asked_ns > a->demand_worst_ns)
		a->demand_worst_ns = rg->ended_ns - rg->asked_ns;
	rg->impl = a; /* free again */
	(void)pthread_cond_signal(&a->cond);
	(void)pthread_mutex_unlock(&a->lock);
}

static void wait_running(struct all *a, unsigned int most)
{
	(void)pthread_mutex_lock(&a->lock);
	while (a->running > most)
		(void)pthread_cond_wait(&a->cond, &a->lock);
	(void)pthread_mutex_unlock(&a->lock);
}

static int read_all(struct bs_repo *repo, const struct bs_digest *d, char *buf, uint64_t size,
		    uint64_t len, uint64_t parallel, int lane, uint64_t n_demand,
		    struct bs_error *err)
{
	struct all a = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };
	uint64_t n = bs_div_up(size, len), started = bs_clock_ns(), ns;
	struct bs_range *ranges = calloc(n + n_demand, sizeof(*ranges));
	char *scratch = malloc(64 << 10);
	struct bs_digest got;
	struct rusage ru;

	if (!ranges || !scratch)
		return bs_fail(err, -ENOMEM, "out of memory");
	for (uint64_t i = 0; i < n + n_demand; i++) {
		bool demand = i >= n;

		ranges[i] = (struct bs_range){ .blob = *d,
					       .off = demand ? 0 : i * len,
					       .len = demand ? BS_MIN(size, UINT64_C(64) << 10)
							     : BS_MIN(len, size - i * len),
					       .buf = demand ? scratch : buf + i * len,
					       .lane = demand ? BS_LANE_DEMAND : (enum bs_lane)lane,
					       .done = range_done,
					       .cookie = &a };
	}
	for (uint64_t i = 0; i < n; i++) {
		wait_running(&a, (unsigned int)parallel - 1);
		(void)pthread_mutex_lock(&a.lock);
		a.running++;
		(void)pthread_mutex_unlock(&a.lock);
		bs_repo_read(repo, &ranges[i]);
		if (i + 1 == parallel || i + 1 == n) /* the queue is full: now demand comes */
			for (uint64_t k = n;
			     k < n + n_demand && ranges[k].impl == NULL && ranges[k].asked_ns == 0;
			     k++) {
				(void)pthread_mutex_lock(&a.lock);
				a.running++;
				(void)pthread_mutex_unlock(&a.lock);
				bs_repo_read(repo, &ranges[k]);
			}
	}
	wait_running(&a, 0);
	ns = bs_clock_ns() - started;
	free(ranges);
	free(scratch);
	if (a.result < 0)
		return bs_fail(err, a.result, "%s", a.text);
	(void)getrusage(RUSAGE_SELF, &ru);
	bs_digest_of(buf, size, &got);
	printf("{\"good\":%s,\"mb_per_s\":%.1f,\"ms\":%.1f,\"cpu_ms\":%.1f,\"demand_worst_ms\":%."
	       "1f}\n",
	       bs_digest_eq(&got, d) ? "true" : "false", (double)size / 1e6 / ((double)ns / 1e9),
	       (double)ns / 1e6,
	       (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1e3 +
		       (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e3,
	       (double)a.demand_worst_ns / 1e6);
	return 0;
}

static int cmd_ranges(struct bs_repo *repo, char **arg, struct bs_error *err)
{
	uint64_t size, len, parallel, lane = 0, n_demand = 0;
	bs_autofree char *buf = NULL;
	struct bs_digest d;
	int r = need_digest(arg[0], &d, err);

	if (r < 0)
		return r;
	if (!arg[1] || !arg[2] || !arg[3] || bs_parse_u64(arg[1], &size) < 0 ||
	    bs_parse_u64(arg[2], &len) < 0 || bs_parse_u64(arg[3], &parallel) < 0 ||
	    (arg[4] && bs_parse_u64(arg[4], &lane) < 0) ||
	    (arg[4] && arg[5] && bs_parse_u64(arg[5], &n_demand) < 0) || lane >= BS_LANE_MAX)
		return bs_fail(err, -EINVAL, "ranges DIGEST SIZE LEN N [LANE [N-DEMAND]]");
	buf = malloc(size + 1);
	if (!buf)
		return bs_fail(err, -ENOMEM, "out of memory");
	return read_all(repo, &d, buf, size, len, parallel, (int)lane, n_demand, err);
}

static int cmd_read(struct bs_repo *repo, char **arg, struct bs_error *err)
{
	struct all a = { .lock = PTHREAD_MUTEX_INITIALIZER,
			 .cond = PTHREAD_COND_INITIALIZER,
			 .running = 1 };
	struct bs_range rg = { .done = range_done, .cookie = &a };
	bs_autofree char *buf = NULL;
	uint64_t len;
	int r = need_digest(arg[0], &rg.blob, err);

	if (r < 0)
		return r;
	if (!arg[1] || !arg[2] || bs_parse_u64(arg[1], &rg.off) < 0 ||
	    bs_parse_u64(arg[2], &len) < 0)
		return bs_fail(err, -EINVAL, "read DIGEST OFF LEN");
	rg.buf = buf = malloc(len + 1);
	rg.len = len;
	bs_repo_read(repo, &rg);
	wait_running(&a, 0);
	if (rg.result < 0)
		return bs_fail(err, rg.result, "%s (retry after %" PRIu64 " ms)", rg.text,
			       rg.retry_after_ns / BS_NS_PER_MS);
	return bs_write_full(1, buf, len);
}

/* --- putting --------------------------------------------------------------------------------- */

static int hash_fd(int fd, struct bs_digest *ret, uint64_t *ret_size)
{
	struct bs_sha256 *h = bs_sha256_new();
	static char buf[1 << 16];
	uint64_t at = 0;
	ssize_t n;

	while ((n = bs_pread_full(fd, buf, sizeof(buf), at)) > 0) {
		bs_sha256_update(h, buf, (size_t)n);
		at += (uint64_t)n;
	}
	bs_sha256_final(h, ret);
	(void)bs_sha256_free(h);
	*ret_size = at;
	return (int)n;
}

static void show_progress(void *cookie, uint64_t sent)
{
	fprintf(stderr, "sent %" PRIu64 "\n", sent);
}

static int cmd_put_blob(struct bs_repo *repo, char **arg, struct bs_error *err)
{
	bs_autofd int fd = open(arg[0], O_RDONLY | O_CLOEXEC);
	char text[BS_DIGEST_TEXT_LEN];
	struct bs_digest d;
	uint64_t size;
	int r;

	if (fd < 0)
		return bs_fail_errno(err, -errno, "'%s'", arg[0]);
	r = hash_fd(fd, &d, &size);
	if (r == 0)
		r = bs_repo_put_blob(repo, &d, fd, size, show_progress, NULL, err);
	if (r == 0)
		printf("%s %" PRIu64 "\n", bs_digest_text(&d, text), size);
	return r;
}

static int copy_blob(struct bs_repo *from, struct bs_repo *to, const struct bs_json *desc,
		     struct bs_error *err)
{
	const char *text = bs_json_str(bs_json_get(desc, "digest"));
	bs_autofree char *bytes = NULL;
	struct bs_digest d;
	uint64_t size;
	int r;

	if (!text || bs_digest_parse(text, strlen(text), &d) < 0 ||
	    bs_json_u64(bs_json_get(desc, "size"), &size) < 0)
		return bs_fail(err, -EBADMSG, "descriptor without digest and size");
	r = bs_repo_has_blob(to, &d, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = bs_repo_get_blob_mem(from, &d, size, 1 << 30, &bytes, err);
	return r < 0 ? r : bs_repo_put_blob_mem(to, &d, bytes, size, err);
}

static int cmd_copy(struct bs_repo *from, struct bs_repo *to, const char *tag, struct bs_error *err)
{
	bs_auto(json) struct bs_json *v = NULL;
	const struct bs_json *layers;
	struct bs_manifest m = { 0 };
	int r = bs_repo_get_manifest(from, tag, &m, err);

	if (r == 0)
		r = bs_json_parse("manifest", m.bytes, m.len, BS_MANIFEST_MAX, &v, err);
	if (r == 0)
		r = copy_blob(from, to, bs_json_get(v, "config"), err);
	layers = bs_json_get(v, "layers");
	for (size_t i = 0; r == 0 && i < bs_json_n(layers); i++)
		r = copy_blob(from, to, bs_json_at(layers, i), err);
	if (r == 0)
		r = bs_repo_put_manifest(to, tag, m.media_type, m.bytes, m.len, err);
	bs_manifest_done(&m);
	return r;
}

static int cmd_put_manifest(struct bs_repo *repo, char **arg, struct bs_error *err)
{
	bs_autofree char *bytes = NULL;
	size_t len;
	int r;

	if (!arg[1] || !arg[2])
		return bs_fail(err, -EINVAL, "put-manifest TAG|- TYPE FILE");
	r = bs_read_file_at(AT_FDCWD, arg[2], 0, BS_MANIFEST_MAX, &bytes, &len);
	if (r < 0)
		return bs_fail_errno(err, r, "'%s'", arg[2]);
	return bs_repo_put_manifest(repo, bs_streq(arg[0], "-") ? NULL : arg[0], arg[1], bytes, len,
				    err);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void print_tag(void *cookie, const char *tag)
{
	printf("%s\n", tag);
}

static int print_manifest(int r, struct bs_manifest *m)
{
	char text[BS_DIGEST_TEXT_LEN];

	if (r < 0)
		return r;
	fprintf(stderr, "%s %s\n", m->media_type, bs_digest_text(&m->digest, text));
	r = bs_write_full(1, m->bytes, m->len);
	bs_manifest_done(m);
	return r;
}

static int cmd_get_blob(struct bs_repo *repo, char **arg, struct bs_error *err)
{
	uint64_t size, us = 0;
	struct bs_digest d;
	int r = need_digest(arg[0], &d, err);

	if (r == 0 && (!arg[1] || bs_parse_u64(arg[1], &size) < 0))
		r = bs_fail(err, -EINVAL, "get-blob DIGEST SIZE [PAUSE-US]");
	if (r == 0 && arg[2])
		r = bs_parse_u64(arg[2], &us);
	return r < 0 ? r : bs_repo_get_blob(repo, &d, size, to_stdout, &us, err);
}

static int cmd_delete(struct bs_repo *repo, char **arg, struct bs_error *err)
{
	struct bs_digest d, subject;
	int r = need_digest(arg[0], &d, err);

	if (r == 0 && arg[1])
		r = need_digest(arg[1], &subject, err);
	return r < 0 ? r : bs_repo_delete_manifest(repo, &d, arg[1] ? &subject : NULL, err);
}

static int run(struct bs_loop *l, struct bs_repo *repo, const char *cmd, char **arg,
	       struct bs_error *err)
{
	struct bs_manifest m = { 0 };
	struct bs_digest d;
	int r;

	if (bs_streq(cmd, "tags"))
		return bs_repo_list_tags(repo, print_tag, NULL, err);
	if (!arg[0])
		return bs_fail(err, -EINVAL, "%s wants arguments", cmd);
	if (bs_streq(cmd, "get-manifest"))
		return print_manifest(bs_repo_get_manifest(repo, arg[0], &m, err), &m);
	if (bs_streq(cmd, "get-blob"))
		return cmd_get_blob(repo, arg, err);
	if (bs_streq(cmd, "read"))
		return cmd_read(repo, arg, err);
	if (bs_streq(cmd, "ranges"))
		return cmd_ranges(repo, arg, err);
	if (bs_streq(cmd, "put-blob"))
		return cmd_put_blob(repo, arg, err);
	if (bs_streq(cmd, "put-manifest"))
		return cmd_put_manifest(repo, arg, err);
	if (bs_streq(cmd, "delete"))
		return cmd_delete(repo, arg, err);
	if (bs_streq(cmd, "copy") && arg[1]) {
		bs_auto(repo) struct bs_repo *to = NULL;

		r = open_repo(l, arg[0], true, &to, err);
		return r < 0 ? r : cmd_copy(repo, to, arg[1], err);
	}
	r = need_digest(arg[0], &d, err);
	if (r < 0)
		return r;
	if (bs_streq(cmd, "referrers"))
		return print_manifest(bs_repo_get_referrers(repo, &d, &m, err), &m);
	if (bs_streq(cmd, "has"))
		r = bs_repo_has_blob(repo, &d, err);
	else if (bs_streq(cmd, "mount") && arg[1])
		r = bs_repo_mount_blob(repo, &d, arg[1], err);
	else
		return bs_fail(err, -EINVAL, "what is %s?", cmd);
	if (r >= 0)
		printf("%d\n", r);
	return r;
}

static void print_stats(struct bs_loop *l)
{
	struct bs_loop_stats s;

	bs_loop_stats(l, &s);
	fprintf(stderr,
		"{\"requests\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],\"bytes\":[%" PRIu64
		",%" PRIu64 ",%" PRIu64 "],\"failures\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64
		"],\"demand_waited\":%" PRIu64 ",\"connections\":%" PRIu64
		",\"token_refreshes\":%" PRIu64 "}\n",
		s.requests[0], s.requests[1], s.requests[2], s.bytes[0], s.bytes[1], s.bytes[2],
		s.failures[0], s.failures[1], s.failures[2], s.demand_waited, s.connections,
		s.token_refreshes);
}

static int parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "plain", no_argument, NULL, 'p' },
		{ "insecure", no_argument, NULL, 'i' },
		{ "stats", no_argument, NULL, 's' },
		{ "ca", required_argument, NULL, 'c' },
		{ "user-file", required_argument, NULL, 'u' },
		{ "docker-config", required_argument, NULL, 'd' },
		{ "connections", required_argument, NULL, 'n' },
		{ "parallel", required_argument, NULL, 'b' },
		{ "stall", required_argument, NULL, 't' },
		{ "rate", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		n = 0;
		if (strchr("nbtr", c) && bs_parse_u64(optarg, &n) < 0)
			return -EINVAL;
		opt.plain |= c == 'p';
		opt.insecure |= c == 'i';
		opt.stats |= c == 's';
		if (c == 'c')
			opt.ca_file = optarg;
		else if (c == 'u')
			opt.user_file = optarg;
		else if (c == 'd')
			opt.docker_config = optarg;
		else if (c == 'n')
			opt.loop.connections_per_host = (unsigned int)n;
		else if (c == 'b')
			opt.loop.background_parallel = (unsigned int)n;
		else if (c == 't')
			opt.loop.stall_timeout_ns = n * BS_NS_PER_MS;
		else if (c == 'r')
			opt.rate = n;
		else if (c == '?')
			return -EINVAL;
	}
	return argc - optind >= 2 ? 0 : -EINVAL;
}

int main(int argc, char **argv)
{
	bs_auto(loop) struct bs_loop *l = NULL;
	bs_auto(repo) struct bs_repo *repo = NULL;
	struct bs_error err = BS_ERROR_INIT;
	const char *cmd;
	int r;

	if (parse_options(argc, argv) < 0)
		return usage();
	cmd = argv[optind + 1];
	r = bs_loop_new(&opt.loop, &l, &err);
	if (r == 0) {
		bs_loop_background_rate(l, opt.rate);
		r = open_repo(l, argv[optind], bs_str_after(cmd, "put") != NULL, &repo, &err);
	}
	if (r == 0)
		r = run(l, repo, cmd, argv + optind + 2, &err);
	if (opt.stats && l)
		print_stats(l);
	if (r < 0) {
		const char *name = strerrorname_np(-r);

		fprintf(stderr, "%s %s\n", name ? name : "?", bs_error_text(&err));
	}
	return r < 0;
}
