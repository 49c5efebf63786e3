/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Which mounts of checkpoints a container asks for: its annotations dev.bootseer.checkpoint
 * and dev.bootseer.checkpoint.NAME (bootseer-annotations(7)). A pod's author writes them: what
 * is read here has the right form, whether it may be is the caller's policy.
 */
#ifndef BS_OCI_CKPTASK_H
#define BS_OCI_CKPTASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_error;
struct bs_json;

#define BS_CKPTASK_KEY "dev.bootseer.checkpoint"
#define BS_CKPTASKS_MAX 16u
#define BS_CKPTASK_NAME_MAX 32u
#define BS_CKPTASK_VALUE_MAX 4096u
#define BS_CKPTASK_USER_MAX 64u
#define BS_CKPTASK_UNIT_MAX (UINT64_C(64) << 20) /* each open file may hold one in memory */
#define BS_CKPTASK_FILES_MAX 64u

enum bs_ckptask_need { BS_CKPTASK_HOST, BS_CKPTASK_REQUIRED, BS_CKPTASK_OPTIONAL };

struct bs_ckptask {
	char name[BS_CKPTASK_NAME_MAX + 1]; /* "": the one without */
	char *text;			    /* what the texts point into */
	const char *source;		    /* URL, its path clean */
	const char *target;		    /* absolute and clean, not "/" */
	const char *user;		    /* NULL: the host's */
	const char *layout;		    /* "striped", "plain" or NULL */
	bool writable;
	uint64_t unit, files; /* 0: not given */
	enum bs_ckptask_need need;
};

struct bs_ckptasks {
	struct bs_ckptask v[BS_CKPTASKS_MAX];
	size_t n;
};

/* One value. -EINVAL with what is wrong, -ENOMEM. */
int bs_ckptask_parse(const char *value, struct bs_ckptask *ret, struct bs_error *err);
void bs_ckptask_done(struct bs_ckptask *a);

/* All of a container's; annotations may be NULL. *ret is to be done away with in every case. */
int bs_ckptasks_read(const struct bs_json *annotations, struct bs_ckptasks *ret,
		     struct bs_error *err);
void bs_ckptasks_done(struct bs_ckptasks *l);

/* Whether the key is one of these. */
bool bs_ckptask_is_key(const char *key);

#endif
