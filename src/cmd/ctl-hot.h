/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What the subcommands of bootseerctl hot have in common. */
#ifndef BS_CMD_CTL_HOT_H
#define BS_CMD_CTL_HOT_H

#include "cmd/ctl.h"
#include "hot/store.h"
#include "image/artifact.h"

struct bs_error;
struct bs_image;
struct bs_jsonw;
struct bs_pack;
struct bs_profile;

int ctl_hot_ls(int argc, char **argv);
int ctl_hot_show(int argc, char **argv);
int ctl_hot_diff(int argc, char **argv);
int ctl_hot_verify(int argc, char **argv);
int ctl_hot_build(int argc, char **argv);
int ctl_hot_trace(int argc, char **argv);
int ctl_hot_ready(int argc, char **argv);
int ctl_hot_push(int argc, char **argv);
int ctl_hot_rm(int argc, char **argv);

struct ctl_hot {
	struct ctl_net net;
	const char *platform;
	bool json;
	struct bs_ref ref;
	struct bs_repo *repo;
	struct bs_artifact a; /* of the image that REF means */
	struct bs_image *image;
};
void ctl_hot_done(struct ctl_hot *c);
#define ctl_autohot __attribute__((cleanup(ctl_hot_done))) struct ctl_hot

/* Those that all with a REF have. */
#define CTL_HOT_OPTIONS(C)                                                                         \
	{ "platform",	  0,   BS_OPTION_TEXT,                                                     \
	  &(C)->platform, "P", "of an image for several (default: this machine's)" },              \
		CTL_NET_OPTIONS(&(C)->net)
#define CTL_HOT_JSON(C)                                                                            \
	{                                                                                          \
		"json", 0, BS_OPTION_FLAG, &(C)->json, NULL, "print JSON"                          \
	}

/* Finds the image that ref means; open: opens it too. */
int ctl_hot_reach(struct ctl_hot *c, const char *ref, bool open, struct bs_error *err);
/* The same for a repository and an artifact that are known. */
int ctl_hot_open(struct ctl_hot *c, struct bs_error *err);
/*
 * Reads the words into args (max_args of them, which are min_args) and reaches what args[0]
 * means. -1: go on, else the exit code.
 */
int ctl_hot_begin(struct ctl_hot *c, const struct bs_usage *u, int argc, char **argv,
		  const char **args, bool open);

/* The pack of that workload, or the one whose manifest has that digest ("sha256:…"). */
int ctl_hot_find(struct ctl_hot *c, const char *name, struct bs_hot *ret, struct bs_error *err);

/* What the manifest of that digest is: -EBADMSG when it is no pack of the image. */
int ctl_hot_read(struct ctl_hot *c, const char *digest, struct bs_hot *ret, struct bs_error *err);

/* Both need the image open. */
int ctl_hot_profile(struct ctl_hot *c, const struct bs_hot *hot, struct bs_profile **ret,
		    struct bs_error *err);
int ctl_hot_head(struct ctl_hot *c, const struct bs_hot *hot, struct bs_pack **ret,
		 struct bs_error *err);

/* A pack that is to be published. */
struct ctl_hot_made {
	struct bs_hot hot;
	char *profile; /* its bytes; owned */
	size_t profile_len;
	int pack_fd; /* owned */
};
void ctl_hot_made_done(struct ctl_hot_made *m);
#define ctl_automade __attribute__((cleanup(ctl_hot_made_done))) struct ctl_hot_made

/* What the cache directory's entry of the image has; not proven. */
int ctl_hot_read_kept(int cache, const struct bs_digest *image, const char *workload,
		      struct ctl_hot_made *m, struct bs_error *err);
/* Against c's image, which is open. */
int ctl_hot_prove(struct ctl_hot *c, struct ctl_hot_made *m, struct bs_error *err);
/* Whether that may be done at all, before there is something to put. */
int ctl_hot_try_push(const struct ctl_hot *c, struct bs_error *err);
/* Puts it into c's repository and says so. */
int ctl_hot_publish(struct ctl_hot *c, struct ctl_hot_made *m, bool replace, struct bs_error *err);

int ctl_hot_print(struct bs_jsonw *w);

/* Two pictures of a profile, its blocks over time and over the stream, as SVG. */
int ctl_hot_svg(const struct bs_profile *p, const char *title, char **ret, size_t *ret_len,
		struct bs_error *err);

#endif
