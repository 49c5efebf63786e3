/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The worker's repositories by their source text, each opened once, so that
 * connections, tokens and found redirects are shared by all images. Thread-safe.
 */
#ifndef BS_DAEMON_SOURCES_H
#define BS_DAEMON_SOURCES_H

struct bs_broker;
struct bs_conf;
struct bs_error;
struct bs_jsonw;
struct bs_loop;
struct bs_repo;
struct bs_sources;

int bs_sources_new(const struct bs_conf *conf, struct bs_loop *loop, struct bs_broker *broker,
		   struct bs_sources **ret, struct bs_error *err);

/* With a reference for the caller. */
int bs_sources_open(struct bs_sources *s, const char *source, struct bs_repo **ret,
		    struct bs_error *err);

/* Of the clusters of HDFS: hdfs/store.h's array. */
void bs_sources_hdfs_status(struct bs_sources *s, struct bs_jsonw *w);

#endif
