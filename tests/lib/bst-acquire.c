/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * bst-acquire RUN_DIR CONTAINER DIGEST DIR SOURCE...: asks a running bootseerd for an
 * image as the shim does and attaches its mount at DIR; so tests can read an image
 * without a container. bst-acquire RUN_DIR CONTAINER: releases it. With "-" for DIR the
 * image is unpacked, and the path of that printed. With BST_WORKLOAD in the environment it
 * is a start of that workload, which may be recorded.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/client.h"
#include "kern/mountfd.h"

#define WAIT_NS (120 * BS_NS_PER_S)

static int call(const char *run_dir, struct bs_msg *m, struct bs_msg *ret)
{
	const struct bs_client_options o = { .run_dir = run_dir, .timeout_ns = WAIT_NS };
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int sock = bs_client_connect(&o, &err);

	if (sock < 0 || bs_client_call(sock, m, WAIT_NS, ret, &err) < 0) {
		(void)fprintf(stderr, "bst-acquire: %s\n", bs_error_text(&err));
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct bs_error err = BS_ERROR_INIT;
	bs_autofd int mnt = -EBADF;
	uint64_t complete = 0;
	const char *workload = secure_getenv("BST_WORKLOAD");
	bool unpack;
	bs_automsg m, reply;

	bs_msg_init(&reply, 0, 0);
	if (argc != 3 && argc < 6)
		return 2;
	unpack = argc > 3 && bs_streq(argv[4], "-");
	bs_msg_init(&m, argc == 3 ? BS_MSG_RELEASE : unpack ? BS_MSG_UNPACK : BS_MSG_ACQUIRE, 1);
	(void)bs_msg_add_text(&m, BS_TAG_CONTAINER, argv[2]);
	(void)bs_msg_add_text(&m, BS_TAG_TIMELINE, argv[2]);
	for (int i = 5; i < argc; i++)
		(void)bs_msg_add_text(&m, BS_TAG_SOURCE, argv[i]);
	if (argc > 3)
		(void)bs_msg_add_text(&m, BS_TAG_DIGEST, argv[3]);
	if (argc > 3 && workload) {
		(void)bs_msg_add_text(&m, BS_TAG_WORKLOAD, workload);
		(void)bs_msg_add_u64(&m, BS_TAG_RECORD, 1);
	}
	if (call(argv[1], &m, &reply) != 0)
		return 1;
	if (argc == 3)
		return 0;
	if (unpack) {
		(void)puts(bs_msg_text(&reply, BS_TAG_PATH, 0));
		return 0;
	}
	(void)bs_msg_u64(&reply, BS_TAG_COMPLETE, &complete);
	mnt = bs_msg_take_fd(&reply, 0);
	if (mnt < 0 || bs_mountfd_attach(mnt, AT_FDCWD, argv[4], &err) < 0) {
		(void)fprintf(stderr, "bst-acquire: %s\n", bs_error_text(&err));
		return 1;
	}
	(void)puts(complete ? "whole" : "lazy");
	return 0;
}
