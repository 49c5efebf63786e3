/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Hadoop's configuration files: names and values. Later files win, within a file the later
 * property, but not over one that is <final>. Read by libexpat; a document type is refused,
 * so there are no entities but XML's own.
 */
#ifndef BS_HDFS_SITE_H
#define BS_HDFS_SITE_H

#include <stddef.h>

#include "base/mem.h"

struct bs_error;
struct bs_site;

#define BS_SITE_FILE_MAX (4u << 20)
#define BS_SITE_PROPERTIES_MAX 20000u
#define BS_SITE_VALUE_MAX (256u << 10)

struct bs_site *bs_site_new(void); /* NULL: out of memory */
struct bs_site *bs_site_free(struct bs_site *s);
DEFINE_BS_AUTO(site, struct bs_site, bs_site_free)

/* Adds what a file (what names it) says. -EINVAL, -ENOMEM. */
int bs_site_add(struct bs_site *s, const char *what, const char *bytes, size_t len,
		struct bs_error *err);

/*
 * core-site.xml and hdfs-site.xml of dir (NULL: HADOOP_CONF_DIR, else /etc/hadoop/conf). Absent
 * ones, and an absent directory, are no error.
 */
int bs_site_load(const char *dir, struct bs_site **ret, struct bs_error *err);

/*
 * The value with ${other.name} put in, malloc'ed; white space around it is gone. NULL: there is
 * none. What cannot be put in, because it is not there or goes round, stays as it stands.
 */
char *bs_site_get(const struct bs_site *s, const char *name);

#endif
