/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * bootseerctl's subcommands. Each gets its own words (argv[0] is its name) and
 * returns the exit code: 0, 1 after a failure that it has said, 2 for wrong usage.
 */
#ifndef BS_CMD_CTL_H
#define BS_CMD_CTL_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/options.h"
#include "ctl/msg.h"
#include "oci/ref.h"

struct bs_error;
struct bs_image;
struct bs_loop;
struct bs_repo;
struct bs_stores;

struct ctl_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* at most 50 columns */
};

int ctl_image(int argc, char **argv);
int ctl_image_convert(int argc, char **argv);
int ctl_image_info(int argc, char **argv);
int ctl_image_ls(int argc, char **argv);
int ctl_image_verify(int argc, char **argv);
int ctl_hot(int argc, char **argv);
int ctl_bundle(int argc, char **argv);
int ctl_status(int argc, char **argv);
int ctl_ckpt(int argc, char **argv);
int ctl_upgrade(int argc, char **argv);
int ctl_timeline(int argc, char **argv);
int ctl_doctor(int argc, char **argv);

/* The config.json of a bundle of the image, which ref means; malloc'ed. */
int ctl_bundle_text(struct bs_image *image, const struct bs_ref *ref, char **ret, size_t *ret_len,
		    struct bs_error *err);

/* Runs the command that argv[1] names; prefix ("bootseerctl image") is for messages and help. */
int ctl_dispatch(const char *prefix, const struct ctl_command *commands, size_t n, int argc,
		 char **argv);

/* Says what is wrong with the words; 2. r > 0: help was shown; 0. */
int ctl_usage(const struct bs_usage *u, int r, const struct bs_error *err);
/* Says what failed; 1. */
int ctl_fail(const struct bs_error *err);

/* One request without fields to the running bootseerd, which is never started for it. */
int ctl_node_call(const char *config, enum bs_msg_type type, uint64_t wait_ns, struct bs_msg *ret,
		  struct bs_error *err);
/* The same with a request of one's own; start: bootseerd is, unless the host does not want that. */
int ctl_node_ask(const char *config, bool start, struct bs_msg *m, uint64_t wait_ns,
		 struct bs_msg *ret, struct bs_error *err);
/* For several requests: the socket to the running bootseerd. */
int ctl_node_connect(const char *config, struct bs_error *err);
/* What bootseerd says of itself; else as above. */
struct bs_json;
int ctl_status_fetch(const char *config, struct bs_json **ret, struct bs_error *err);
/* Prints what the last start of the workload did with its pack, if the status says so. */
void ctl_status_use(const struct bs_json *status, const char *image, const char *workload,
		    const char *artifact);
/* `image verify --cache`: the exit code, 1 when frames were wrong. */
int ctl_node_verify(const char *config, bool json);

/* How to reach repositories: the options that all commands with a REF have. */
struct ctl_net {
	bool tls_verify, plain_http;
	const char *hdfs_options;
	struct bs_loop *loop;	/* made when a registry is first opened */
	struct bs_stores *hdfs; /* the same for HDFS */
};
#define CTL_NET_INIT ((struct ctl_net){ .tls_verify = true })
#define CTL_NET_OPTIONS(N)                                                                         \
	{ "tls-verify",	    0,	    BS_OPTION_BOOL,                                                \
	  &(N)->tls_verify, "BOOL", "check the registry's certificate (default true)" },           \
		{ "plain-http",	    0,	  BS_OPTION_FLAG,                                          \
		  &(N)->plain_http, NULL, "speak HTTP, not HTTPS, with registries" },              \
	{                                                                                          \
		"hdfs-options", 0, BS_OPTION_TEXT, &(N)->hdfs_options, "OPTIONS",                  \
			"how to reach HDFS, see mount.bootseer-hdfs(8)"                            \
	}
void ctl_net_done(struct ctl_net *n);
#define ctl_autonet __attribute__((cleanup(ctl_net_done))) struct ctl_net

/* -ENOENT of what ref means: where to look is added, unless the error has a remedy. Returns r. */
int ctl_not_there(const struct bs_ref *ref, int r, struct bs_error *err);

/* create: an OCI layout directory, also on HDFS, is made when it is not there. */
int ctl_repo_open(struct ctl_net *n, const struct bs_ref *ref, bool create, struct bs_repo **ret,
		  struct bs_error *err);

#endif
