/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Paths as HDFS has them, and in URLs. Pure. */
#ifndef BS_HDFS_PATH_H
#define BS_HDFS_PATH_H

struct bs_buf;

#define BS_HDFS_NAME_MAX 255  /* bytes of a component; the NameNode's default */
#define BS_HDFS_PATH_MAX 7999 /* characters of a path; the NameNode's own limit is 8000 */

/*
 * Whether the NameNode can have such a path: 0; -EINVAL not absolute, with an empty, "." or
 * ".." component, with ':' or NUL in it, or no UTF-8; -ENAMETOOLONG.
 */
int bs_hdfs_path_check(const char *path);

/* DIR/NAME, of a directory that may be "/"; malloc'ed, NULL: out of memory. */
char *bs_hdfs_path_child(const char *dir, const char *name);

/* Appends it with all but unreserved characters and '/' escaped. */
void bs_hdfs_path_escape(struct bs_buf *b, const char *path);

/* The bytes of an escaped path; malloc'ed. -EINVAL for a bad escape or an escaped NUL. */
int bs_hdfs_path_unescape(const char *text, char **ret);

/*
 * Appends "&NAME=VALUE…" of a Location: what a DataNode has to be told (namenoderpcaddress, a
 * token), but nothing that the caller says itself.
 */
void bs_hdfs_location_params(struct bs_buf *b, const char *location);

/* Two hexadecimal digits, or -EINVAL. */
int bs_hdfs_hex(const char *two);

#endif
