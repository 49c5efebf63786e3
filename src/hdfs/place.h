/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Where an HDFS is, and which path of it is meant: from a URL, with the help of Hadoop's
 * configuration files.
 *
 *   hdfs://NAMESERVICE/PATH     the NameNodes that hdfs-site.xml lists for it
 *   hdfs://HOST[:PORT]/PATH     PORT is that of RPC; HTTP's is hdfs-site.xml's or the default
 *   hdfs:///PATH                fs.defaultFS of core-site.xml
 *   webhdfs://HOST[:PORT]/PATH  PORT is HTTP's (9870)
 *   swebhdfs://HOST[:PORT]/PATH PORT is HTTPS's (9871)
 * The path is taken as it stands; "%" in it is a percent sign.
 */
#ifndef BS_HDFS_PLACE_H
#define BS_HDFS_PLACE_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/str.h"

struct bs_error;
struct bs_site;

struct bs_hdfs_place {
	char *name; /* "hdfs://NAMESERVICE", "webhdfs://HOST:PORT" */
	char *path; /* clean */
	bool https;
	struct bs_strv endpoints; /* "HOST:PORT" of HTTP or HTTPS, in the order to be asked */
	struct bs_strv services;  /* what a token for it may be made out to */
};
void bs_hdfs_place_done(struct bs_hdfs_place *p);
static inline void bs_hdfs_place_done_at(struct bs_hdfs_place *p)
{
	bs_hdfs_place_done(p);
}
#define bs_autoplace __attribute__((cleanup(bs_hdfs_place_done_at))) struct bs_hdfs_place

/* site may be NULL. -EINVAL: no such URL, or a path that HDFS cannot have. */
int bs_hdfs_place(const char *url, const struct bs_site *site, struct bs_hdfs_place *ret,
		  struct bs_error *err);

#endif
