/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A config.json that we act on: the document, and a typed view of the members we use.
 *
 * The reader refuses what another reader of the same bytes could take differently:
 * see base/json, and here also members that differ from known ones only in case
 * (runc's reader does not care about case and takes the last). All other members are
 * carried through.
 */
#ifndef BS_OCI_CONFIG_H
#define BS_OCI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

struct bs_buf;
struct bs_error;
struct bs_json;

struct bs_config {
	struct bs_json *doc;
	/* into doc */
	const char *root_path; /* as written, never empty */
	bool root_readonly;
	const struct bs_json *annotations; /* NULL: none */
};

/* -EINVAL with the path of the member that is wrong. */
int bs_config_parse(const char *text, size_t len, struct bs_config *ret, struct bs_error *err);
void bs_config_done(struct bs_config *c);
#define bs_autoconfig __attribute__((cleanup(bs_config_done))) struct bs_config

int bs_config_write(const struct bs_config *c, struct bs_buf *out, struct bs_error *err);

#endif
