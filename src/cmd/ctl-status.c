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
#include "base/human.h"
#include "base/json.h"
#include "base/mem.h"
#include "cmd/ctl.h"
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
	show_images(v);
}

static int fetch(const char *config, struct bs_json **ret, struct bs_error *err)
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
	if (fetch(config, &v, &err) < 0)
		return ctl_fail(&err);
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
