/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Questions to the node's bootseerd. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "cmd/ctl.h"
#include "ctl/client.h"
#include "ctl/conf.h"

#define VERIFY_NS (24 * 3600 * BS_NS_PER_S) /* a large cache on a slow disk */
#define CONNECT_NS (10 * BS_NS_PER_S)
#define REPLY_MAX 65536u

int ctl_node_call(const char *config, enum bs_msg_type type, uint64_t wait_ns, struct bs_msg *ret,
		  struct bs_error *err)
{
	struct bs_client_options o = { .timeout_ns = CONNECT_NS };
	bs_autofd int sock = -EBADF;
	struct bs_conf conf;
	bs_automsg m;
	int r = bs_conf_read(config, &conf, err);

	if (r == 0) {
		o.run_dir = conf.run_dir;
		sock = r = bs_client_connect(&o, err);
	}
	if (r == -ENOTCONN && err) {
		const struct bs_error why = *err;

		r = bs_fail(err, r, "%s; %s", bs_error_text(&why),
			    conf.autostart ? "it is started when a container first needs it"
					   : "it is not started by itself here (autostart = no)");
	}
	bs_conf_done(&conf);
	if (r < 0)
		return r;
	bs_msg_init(&m, type, 1);
	return bs_client_call(sock, &m, wait_ns, ret, err);
}

int ctl_node_verify(const char *config, bool json)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_error err = BS_ERROR_INIT;
	uint64_t images = 0, frames = 0, wrong = 0;
	const char *text;
	bs_automsg reply;

	bs_msg_init(&reply, 0, 0);
	if (ctl_node_call(config, BS_MSG_VERIFY, VERIFY_NS, &reply, &err) < 0)
		return ctl_fail(&err);
	text = bs_msg_text(&reply, BS_TAG_JSON, 0);
	if (!text || bs_json_parse("the reply", text, strlen(text), REPLY_MAX, &v, &err) < 0)
		return ctl_fail(&err);
	(void)bs_json_u64(bs_json_get(v, "images"), &images);
	(void)bs_json_u64(bs_json_get(v, "frames"), &frames);
	(void)bs_json_u64(bs_json_get(v, "wrong"), &wrong);
	if (json)
		(void)puts(text);
	else
		(void)printf("%" PRIu64 " frames of %" PRIu64 " image%s looked at, %" PRIu64
			     " wrong%s\n",
			     frames, images, images == 1 ? "" : "s", wrong,
			     wrong ? ": they will be fetched again" : "");
	return wrong > 0;
}
