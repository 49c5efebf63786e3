/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A container says, or somebody who sees it does, that it has what it needs to run. */
#include "config.h"

#include <errno.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "cmd/ctl-hot.h"

#define WAIT_NS (10 * BS_NS_PER_S)

int ctl_hot_ready(int argc, char **argv)
{
	const char *config = NULL;
	const struct bs_option options[] = {
		{ "config", 'c', BS_OPTION_TEXT, &config, "FILE",
		  "configuration, see bootseer.conf(5)" },
	};
	const struct bs_usage usage = {
		.synopsis = "bootseerctl hot ready [OPTION]... CONTAINER",
		.text = "Ends the recording of a container: what it reads from now on is no part "
			"of\n"
			"its hot pack, which is made at once.\n",
		.options = options,
		.n_options = BS_ARRAY_LEN(options),
		.min_args = 1,
		.max_args = 1,
	};
	struct bs_error err = BS_ERROR_INIT;
	const char *container;
	bs_automsg m, reply;
	unsigned int n;
	int r = bs_options_parse(&usage, argc, argv, &container, &n, &err);

	bs_msg_init(&m, BS_MSG_HOT_READY, 1);
	bs_msg_init(&reply, 0, 0);
	if (r != 0)
		return ctl_usage(&usage, r, &err);
	if (bs_msg_add_text(&m, BS_TAG_CONTAINER, container) < 0) {
		(void)bs_fail(&err, -EINVAL, "'%.60s': no container has such a name", container);
		return ctl_fail(&err);
	}
	return ctl_node_ask(config, false, &m, WAIT_NS, &reply, &err) < 0 ? ctl_fail(&err) : 0;
}
