/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/ctl.h"

static const struct ctl_command commands[] = {
	{ "image", ctl_image, "convert images, look at converted ones" },
	{ "bundle", ctl_bundle, "make a runtime bundle from a converted image" },
	{ "hot", ctl_hot, "hot packs: list, look into, make, publish, remove" },
	{ "ckpt", ctl_ckpt, "checkpoints on HDFS: mount, list, check, copy" },
	{ "timeline", ctl_timeline, "where the time of a start went" },
	{ "status", ctl_status, "the node's daemon, its images, what they cost" },
	{ "doctor", ctl_doctor, "what this machine can do, and what is wrong" },
	{ "upgrade", ctl_upgrade, "replace the daemon's worker" },
};

int main(int argc, char **argv)
{
	bs_log_init("bootseerctl", BS_LOG_INFO);
	/* a closed connection or pipe is an error of the call that meets it */
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && bs_streq(argv[1], "--version")) {
		puts("bootseerctl " VERSION);
		return 0;
	}
	return ctl_dispatch("bootseerctl", commands, BS_ARRAY_LEN(commands), argc, argv);
}
