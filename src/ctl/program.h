/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Where our programs and the configuration are installed. */
#ifndef BS_CTL_PROGRAM_H
#define BS_CTL_PROGRAM_H

struct bs_conf;
struct bs_error;

/* SYSCONFDIR/bootseer/bootseer.conf */
const char *bs_program_conf_file(void);

/*
 * The path of bootseerd, bootseer or bootseerctl: beside the program whose path self is (NULL:
 * the running one), else in the sbin or bin that is beside its directory, else where they are
 * installed. conf (may be NULL) may name another for bootseerd, which then must be there.
 * malloc'ed; -ENOENT with all places and a remedy.
 */
int bs_program_find(const char *name, const struct bs_conf *conf, const char *self, char **ret,
		    struct bs_error *err);

#endif
