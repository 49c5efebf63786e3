/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseerctl status, upgrade: what the node's bootseerd says of itself. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cache/blocks.h"
#include "cmd/ctl.h"
#include "ctl/client.h"
#include "ctl/msg.h"

#define REPLY_MAX (8u << 20)
#define WAIT_NS (10 * BS_NS_PER_S)

static uint64_t number(const struct bs_json *v, const char *path)
{
	uint64_t n = 0;

	(void)bs_json_u64(bs_json_find(v, path), &n);
	return n;
}

static bool truth(const struct bs_json *v, const char *key)
{
	const struct bs_json *b = bs_json_get(v, key);

	return bs_json_is(b, BS_JSON_BOOL) && b->truth;
}

/* The mount of the image with this digest, of what the supervisor says. */
static const struct bs_json *mount_of(const struct bs_json *v, const char *digest)
{
	const struct bs_json *mounts = bs_json_get(v, "mounts");

	for (size_t i = 0; i < bs_json_n(mounts); i++) {
		const struct bs_json *m = bs_json_at(mounts, i);
		const char *d = bs_json_str(bs_json_get(m, "digest"));

		if (d && strcmp(d, digest) == 0)
			return m;
	}
	return NULL;
}

static void show_images(const struct bs_json *v)
{
	const struct bs_json *images = bs_json_find(v, "served.images");
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN];

	for (size_t i = 0; i < bs_json_n(images); i++) {
		const struct bs_json *im = bs_json_at(images, i);
		const char *digest = bs_json_str(bs_json_get(im, "digest"));
		uint64_t frames = number(im, "frames");
		const struct bs_json *m;

		if (!digest)
			continue;
		m = mount_of(v, digest);
		(void)printf("image %.19s  %s, %" PRIu64 "%% here, %s fetched, %s, %" PRIu64
			     " containers\n",
			     digest, bs_human_bytes(number(im, "bytes"), a),
			     frames ? number(im, "frames_present") * 100 / frames : 100,
			     bs_human_bytes(number(im, "fetched_bytes"), b),
			     !m || !truth(m, "mounted") ? "not mounted"
			     : truth(m, "lazy")		? "mounted lazily"
							: "mounted whole",
			     number(m, "containers"));
	}
}

/* What a start did with its pack, in bytes: hot/use.h says what can be known. */
static void show_use(const struct bs_json *use, const char *indent)
{
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN], c[BS_HUMAN_LEN], d[BS_HUMAN_LEN];
	const struct bs_json *files = bs_json_get(use, "files");
	const uint64_t block = BS_BLOCK_BYTES;

	(void)printf("%sof the pack %s were read, %s warmed before, %s read by nobody\n", indent,
		     bs_human_bytes(number(use, "read_blocks") * block, a),
		     bs_human_bytes(number(use, "warmed_blocks") * block, b),
		     bs_human_bytes(number(use, "unread_blocks") * block, c));
	(void)printf("%sbeside it %s fetched and %s cached in %" PRIu64
		     " reads, at least %s needed%s%s\n",
		     indent, bs_human_bytes(number(use, "fetched_blocks") * block, a),
		     bs_human_bytes(number(use, "cached_blocks") * block, b),
		     number(use, "missed_reads"),
		     bs_human_bytes(number(use, "missed_min_blocks") * block, d),
		     truth(use, "mixed") ? "; other workloads of the image read, too" : "",
		     truth(use, "over") ? "" : "; still watched");
	for (size_t i = 0; i < bs_json_n(files); i++) {
		const struct bs_json *f = bs_json_at(files, i), *path = bs_json_get(f, "path");
		bs_autofree char *shown = NULL;

		if (bs_json_is(path, BS_JSON_STRING))
			shown = bs_str_shown(path->text, path->len);
		(void)printf("%s  %9s  %s\n", indent,
			     bs_human_bytes(number(f, "blocks") * block, a), shown ? shown : "?");
	}
}

/* The same in a few words. */
static void show_use_short(const struct bs_json *use)
{
	static const struct {
		const char *key, *before, *behind;
	} parts[] = {
		{ "read_blocks", ", ", " of it read" },
		{ "warmed_blocks", ", ", " warmed before" },
		{ "unread_blocks", ", ", " read by nobody" },
		{ "fetched_blocks", "; beside it ", " fetched" },
		{ "cached_blocks", " and ", " cached" },
	};
	const char *verdict = bs_json_str(bs_json_get(use, "verdict"));
	char text[BS_HUMAN_LEN];

	for (size_t i = 0; i < BS_ARRAY_LEN(parts); i++)
		(void)printf("%s%s%s", parts[i].before,
			     bs_human_bytes(number(use, parts[i].key) * BS_BLOCK_BYTES, text),
			     parts[i].behind);
	(void)printf("%s", truth(use, "over") ? "" : ", still watched");
	if (verdict && strcmp(verdict, "none") != 0)
		(void)printf(", %s", verdict);
}

static void show_one_hot(const struct bs_json *h)
{
	const struct bs_json *use = bs_json_get(h, "use");
	const char *pack_of = bs_json_str(bs_json_get(h, "pack_of"));
	const char *pack = bs_json_str(bs_json_get(h, "pack"));
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN], rate[BS_HUMAN_LEN];

	(void)printf("%s", bs_json_str(bs_json_get(h, "state")));
	if (bs_json_get(h, "pack_bytes"))
		(void)printf(", pack %s", bs_human_bytes(number(h, "pack_bytes"), a));
	if (pack)
		(void)printf(", pack %s", pack);
	if (pack_of)
		(void)printf(" of %.19s, %s copied from there", pack_of,
			     bs_human_bytes(number(h, "copied_blocks") * BS_BLOCK_BYTES, b));
	if (number(h, "bytes") > 0)
		(void)printf(", %s came at %s", bs_human_bytes(number(h, "bytes"), b),
			     bs_human_rate(number(h, "bytes"), number(h, "duration_ns"), rate));
	if (use)
		show_use_short(use);
}

static bool has_text(const struct bs_json *v, const char *key, const char *text)
{
	const char *s = bs_json_str(bs_json_get(v, key));

	return s && text && strcmp(s, text) == 0;
}

/* A line for each workload of an image: its streams, recordings and packs that were made here. */
static void show_hot(const struct bs_json *v)
{
	const struct bs_json *hots = bs_json_find(v, "served.hot");

	for (size_t i = 0; i < bs_json_n(hots); i++) {
		const struct bs_json *h = bs_json_at(hots, i);
		const char *image = bs_json_str(bs_json_get(h, "image"));
		const char *workload = bs_json_str(bs_json_get(h, "workload"));
		bool begun = false;

		if (!image || !workload)
			continue;
		for (size_t k = 0; k < bs_json_n(hots); k++) {
			const struct bs_json *o = bs_json_at(hots, k);

			if (!has_text(o, "image", image) || !has_text(o, "workload", workload) ||
			    !bs_json_str(bs_json_get(o, "state")))
				continue;
			if (!begun && k < i) /* it has its line */
				break;
			if (begun)
				(void)printf("; ");
			else
				(void)printf("hot %s of %.19s  ", workload, image);
			begun = true;
			show_one_hot(o);
		}
		if (begun)
			(void)puts("");
	}
}

static void show_cache(const struct bs_json *v)
{
	const uint64_t hits = number(v, "served.cache.hits"),
		       misses = number(v, "served.cache.misses");
	static const char *const lanes[] = { "demand", "hot", "background" };
	char buf[BS_HUMAN_LEN], path[64];

	if (!bs_json_get(v, "served")) {
		(void)puts("worker    does not answer");
		return;
	}
	(void)printf("cache     %" PRIu64 " frames read, hit rate %.1f%%, %" PRIu64
		     " wrong and refused, %" PRIu64 " retries, %" PRIu64 " failed reads\n",
		     hits + misses,
		     hits + misses ? 100.0 * (double)hits / (double)(hits + misses) : 0.0,
		     number(v, "served.cache.bad_frames"), number(v, "served.cache.retries"),
		     number(v, "served.cache.failed_reads"));
	for (size_t i = 0; i < BS_ARRAY_LEN(lanes); i++) {
		uint64_t requests, bytes;

		(void)snprintf(path, sizeof(path), "served.lanes.%s.requests", lanes[i]);
		requests = number(v, path);
		(void)snprintf(path, sizeof(path), "served.lanes.%s.bytes", lanes[i]);
		bytes = number(v, path);
		(void)printf("lane      %-10s %" PRIu64 " requests, %s\n", lanes[i], requests,
			     bs_human_bytes(bytes, buf));
	}
}

static void show_nodes(const struct bs_json *nodes)
{
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN];

	for (size_t i = 0; i < bs_json_n(nodes); i++) {
		const struct bs_json *n = bs_json_at(nodes, i);
		const char *address = bs_json_str(bs_json_get(n, "address"));

		(void)printf("    DataNode %-21s %9s read, %s/s of late\n", address ? address : "?",
			     bs_human_bytes(number(n, "bytes"), a),
			     bs_human_bytes(number(n, "bytes_per_s"), b));
	}
}

static void show_cluster(const struct bs_json *c)
{
	static const char *const lanes[] = { "demand", "hot", "background" };
	const char *name = bs_json_str(bs_json_get(c, "cluster"));
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN], path[64];

	(void)printf("images on %s: %s came, %" PRIu64 " retries, %" PRIu64 " hedges, %" PRIu64
		     " bad replicas; %s sent; NameNodes: %" PRIu64 " requests, %" PRIu64
		     " retries, %" PRIu64 " failovers\n",
		     name ? name : "?", bs_human_bytes(number(c, "datanodes.bytes"), a),
		     number(c, "datanodes.retries"), number(c, "datanodes.hedges"),
		     number(c, "datanodes.bad_replicas"),
		     bs_human_bytes(number(c, "files.sent_bytes"), b),
		     number(c, "namenodes.requests"), number(c, "namenodes.retries"),
		     number(c, "namenodes.failovers"));
	for (size_t i = 0; i < BS_ARRAY_LEN(lanes); i++) {
		uint64_t requests;

		(void)snprintf(path, sizeof(path), "lanes.%s.requests", lanes[i]);
		requests = number(c, path);
		(void)snprintf(path, sizeof(path), "lanes.%s.bytes", lanes[i]);
		(void)printf("    lane %-10s %" PRIu64 " requests, %s\n", lanes[i], requests,
			     bs_human_bytes(number(c, path), a));
	}
	show_nodes(bs_json_find(c, "datanodes.nodes"));
}

static void show_hdfs(const struct bs_json *v)
{
	const struct bs_json *list = bs_json_find(v, "served.hdfs");

	for (size_t i = 0; i < bs_json_n(list); i++)
		show_cluster(bs_json_at(list, i));
}

static void show_checkpoint(const struct bs_json *c)
{
	const char *id = bs_json_str(bs_json_get(c, "id"));
	const char *source = bs_json_str(bs_json_get(c, "source"));
	const char *state = bs_json_str(bs_json_get(c, "state"));
	const struct bs_json *st = bs_json_get(c, "stats");
	bs_autofree char *shown = source ? bs_str_shown(source, strlen(source)) : NULL;
	char a[BS_HUMAN_LEN], b[BS_HUMAN_LEN];

	(void)printf("checkpoint %s  %s, %s, %zu containers, process %" PRIu64 "\n", id ? id : "?",
		     shown ? shown : "?", state ? state : "?", bs_json_n(bs_json_get(c, "holders")),
		     number(c, "pid"));
	if (!st)
		return;
	(void)printf("    %" PRIu64 " requests, %" PRIu64 " failed, %s read in %" PRIu64
		     ", %s written in %" PRIu64 ", %" PRIu64 " files open\n",
		     number(st, "requests"), number(st, "failures"),
		     bs_human_bytes(number(st, "read_bytes"), a), number(st, "reads"),
		     bs_human_bytes(number(st, "written_bytes"), b), number(st, "writes"),
		     number(st, "open_files"));
	(void)printf("    HDFS: %s came, %" PRIu64 " retries, %" PRIu64 " hedges, %" PRIu64
		     " bad replicas; %s sent, %" PRIu64 " placed again; NameNodes: %" PRIu64
		     " requests, %" PRIu64 " retries, %" PRIu64 " failovers\n",
		     bs_human_bytes(number(st, "datanodes.bytes"), a),
		     number(st, "datanodes.retries"), number(st, "datanodes.hedges"),
		     number(st, "datanodes.bad_replicas"),
		     bs_human_bytes(number(st, "files.sent_bytes"), b),
		     number(st, "files.placed_again"), number(st, "namenodes.requests"),
		     number(st, "namenodes.retries"), number(st, "namenodes.failovers"));
	show_nodes(bs_json_find(st, "datanodes.nodes"));
}

static void show_checkpoints(const struct bs_json *v)
{
	const struct bs_json *list = bs_json_get(v, "checkpoints");

	for (size_t i = 0; i < bs_json_n(list); i++)
		show_checkpoint(bs_json_at(list, i));
}

static void show(const struct bs_json *v)
{
	const char *version = bs_json_str(bs_json_get(v, "version"));

	(void)printf("bootseerd %s, supervisor %" PRIu64 ", keeper %" PRIu64 ", worker %" PRIu64
		     " (%s, restarted %" PRIu64 " times)\n",
		     version ? version : "?", number(v, "supervisor.pid"), number(v, "keeper.pid"),
		     number(v, "worker.pid"),
		     truth(bs_json_get(v, "worker"), "ready") ? "ready" : "not ready",
		     number(v, "worker.restarts"));
	if (!truth(v, "fuse"))
		(void)puts("fuse      not to be had: images are unpacked");
	show_cache(v);
	show_hdfs(v);
	show_images(v);
	show_hot(v);
	show_checkpoints(v);
}

static void add_one(struct bs_json *list, struct bs_msg *reply)
{
	bs_autofree char *text = NULL;
	struct bs_json *stats = NULL;

	if (reply->id > bs_json_n(list) || bs_client_result(reply, NULL) < 0 ||
	    bs_msg_long(reply, BS_TAG_JSON, REPLY_MAX, &text) < 0 ||
	    bs_json_parse("a checkpoint's status", text, strlen(text), REPLY_MAX, &stats, NULL) < 0)
		return;
	(void)bs_json_set(bs_json_at(list, reply->id - 1), "stats", stats);
}

/*
 * What the servers of checkpoints count, as the member "stats" of each; one may have ended. All
 * are asked at once: those that hang cost the time of one.
 */
static void add_stats(const char *config, struct bs_json *list)
{
	const uint64_t deadline = bs_clock_ns() + WAIT_NS;
	bs_autofd int sock = bs_json_n(list) > 0 ? ctl_node_connect(config, NULL) : -EBADF;
	size_t n = 0;

	for (size_t i = 0; sock >= 0 && i < bs_json_n(list); i++) {
		const char *id = bs_json_str(bs_json_get(bs_json_at(list, i), "id"));
		bs_automsg m;

		bs_msg_init(&m, BS_MSG_CKPT_STATUS, (uint32_t)i + 1);
		if (id && bs_msg_add_text(&m, BS_TAG_NAME, id) == 0 && bs_msg_send(sock, &m) == 0)
			n++;
	}
	for (; n > 0; n--) {
		bs_automsg reply;

		bs_msg_init(&reply, 0, 0);
		if (bs_client_next(sock, deadline, &reply, NULL) < 0)
			return;
		add_one(list, &reply);
	}
}

int ctl_status_fetch(const char *config, struct bs_json **ret, struct bs_error *err)
{
	bs_autofree char *text = NULL;
	bs_automsg reply;
	int r;

	bs_msg_init(&reply, 0, 0);
	r = ctl_node_call(config, BS_MSG_STATUS, WAIT_NS, &reply, err);
	if (r < 0)
		return r;
	if (bs_msg_long(&reply, BS_TAG_JSON, REPLY_MAX, &text) < 0)
		return bs_fail(err, -EPROTO, "bootseerd sent no status");
	return bs_json_parse("the status", text, strlen(text), REPLY_MAX, ret, err);
}

void ctl_status_use(const struct bs_json *status, const char *image, const char *workload,
		    const char *artifact)
{
	const struct bs_json *hots = bs_json_find(status, "served.hot"), *use = NULL;
	const char *of;

	for (size_t i = 0; i < bs_json_n(hots); i++) {
		const struct bs_json *h = bs_json_at(hots, i), *u = bs_json_get(h, "use");

		if (!u || !has_text(h, "image", image) || !has_text(h, "workload", workload))
			continue;
		use = u;
		if (has_text(u, "artifact", artifact))
			break;
	}
	of = bs_json_str(bs_json_get(use, "artifact"));
	if (!use)
		return;
	if (of && !has_text(use, "artifact", artifact))
		(void)printf("on this node, last start, with another pack (%.19s)\n", of);
	else
		(void)puts("on this node, last start");
	show_use(use, "           ");
}

int ctl_status(int argc, char **argv)
{
	const char *config = NULL;
	bool json = false;
	const struct bs_option options[] = {
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "configuration, see bootseer.conf(5)" },
		{ "json", 0, BS_OPTION_FLAG, &json, NULL, "everything, as JSON" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl status [OPTION]...",
		.text = "Shows the node's daemon, its images and what they cost.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
	};
	bs_auto(json) struct bs_json *v = NULL;
	bs_autobuf out = BS_BUF_INIT(4 * REPLY_MAX);
	struct bs_error err = BS_ERROR_INIT;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, NULL, &n, &err);

	if (r != 0)
		return ctl_usage(&usage, r, &err);
	if (ctl_status_fetch(config, &v, &err) < 0)
		return ctl_fail(&err);
	add_stats(config, bs_json_get(v, "checkpoints"));
	if (!json) {
		show(v);
		return 0;
	}
	if (bs_json_write_pretty(v, &out) < 0)
		return 1;
	(void)fputs(bs_buf_str(&out), stdout);
	return 0;
}

int ctl_upgrade(int argc, char **argv)
{
	const char *config = NULL;
	const struct bs_option options[] = {
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "configuration, see bootseer.conf(5)" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl upgrade [OPTION]...",
		.text = "Replaces the daemon's worker by the program that is installed now.\n"
			"Running containers notice nothing but a pause of some milliseconds.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
	};
	struct bs_error err = BS_ERROR_INIT;
	bs_automsg reply;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, NULL, &n, &err);

	bs_msg_init(&reply, 0, 0);
	if (r != 0)
		return ctl_usage(&usage, r, &err);
	return ctl_node_call(config, BS_MSG_UPGRADE, WAIT_NS, &reply, &err) < 0 ? ctl_fail(&err)
										: 0;
}
