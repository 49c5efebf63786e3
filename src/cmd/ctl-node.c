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
#include "ctl/program.h"

#define VERIFY_NS (24 * 3600 * BS_NS_PER_S) /* a large cache on a slow disk */
#define CONNECT_NS (10 * BS_NS_PER_S)
#define REPLY_MAX 65536u

static int no_daemon(const struct bs_conf *conf, int r, struct bs_error *err)
{
	struct bs_error why = BS_ERROR_INIT;

	if (err)
		why = *err;
	return bs_fail(err, r, "%s; %s", bs_error_text(&why),
		       conf->autostart ? "it is started when a container first needs it"
				       : "it is not started by itself here (autostart = no)");
}

static int connect_to(const char *config, const struct bs_conf *conf, bool start,
		      struct bs_error *err)
{
	struct bs_client_options o = { .run_dir = conf->run_dir,
				       .config = conf->named ? conf->file : config,
				       .timeout_ns = CONNECT_NS };
	bs_autofree char *daemon = NULL;
	int sock = bs_client_connect(&o, err), r;

	if (sock != -ENOTCONN)
		return sock;
	if (!start || !conf->autostart)
		return no_daemon(conf, sock, err);
	r = bs_program_find("bootseerd", conf, NULL, &daemon, err);
	if (r < 0)
		return r;
	o.daemon = daemon;
	return bs_client_connect(&o, err);
}

static int connect_as(const char *config, bool start, struct bs_error *err)
{
	struct bs_conf conf;
	int r = bs_conf_read(config, &conf, err);

	if (r == 0)
		r = connect_to(config, &conf, start, err);
	bs_conf_done(&conf);
	return r;
}

int ctl_node_connect(const char *config, struct bs_error *err)
{
	return connect_as(config, false, err);
}

int ctl_node_ask(const char *config, bool start, struct bs_msg *m, uint64_t wait_ns,
		 struct bs_msg *ret, struct bs_error *err)
{
	bs_autofd int sock = connect_as(config, start, err);

	return sock < 0 ? sock : bs_client_call(sock, m, wait_ns, ret, err);
}

int ctl_node_call(const char *config, enum bs_msg_type type, uint64_t wait_ns, struct bs_msg *ret,
		  struct bs_error *err)
{
	bs_automsg m;

	bs_msg_init(&m, type, 1);
	return ctl_node_ask(config, false, &m, wait_ns, ret, err);
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
