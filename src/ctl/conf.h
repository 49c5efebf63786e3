/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The host's configuration, bootseer.conf(5): INI, read by libinih, every key with a
 * default. One table in conf.c names each key with its type, default and text; the
 * man page is held against it by a test.
 *
 * Where the installed file is absent the defaults count; one that was named must exist.
 * An unknown key or a bad value is an error that
 * names file, line, key and what would be right. Files that others than root may
 * write are refused.
 *
 * A list key takes words between spaces or commas, may be given several times and go
 * on in indented lines; what it is given replaces its default.
 */
#ifndef BS_CTL_CONF_H
#define BS_CTL_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct bs_error;

enum bs_fallback { BS_FALLBACK_UNPACK, BS_FALLBACK_FAIL, BS_FALLBACK_MAX };

/* Starts that are recorded when their workload has no hot pack: all, those whose annotation asks. */
enum bs_record { BS_RECORD_AUTO, BS_RECORD_ANNOTATED, BS_RECORD_NEVER, BS_RECORD_MAX };

/* One of the two, or none: no limit. */
struct bs_rate {
	uint64_t bytes; /* per second */
	uint32_t percent;
};

struct bs_conf {
	char *file; /* where it was read from */
	bool named; /* file was asked for; else it is the installed one, which may be absent */
	/* [runtime] */
	char *runtime; /* runc: name in PATH or absolute path */
	/* [node] */
	char *run_dir;	 /* /run/bootseer: sockets, state, timelines */
	char *cache_dir; /* /var/cache/bootseer */
	char *user;	 /* the worker's user; "": "bootseer" when it exists, else "nobody" */
	char *daemon;	 /* path of bootseerd; "": bs_program_find looks for it */
	bool autostart;
	uint64_t keep_mounts_ns; /* an unused image's mount is kept for so long (10m) */
	/* [fetch] */
	struct bs_strv mirrors; /* "HOST=MIRROR[/PREFIX]", tried before HOST */
	/* further places of artifacts: "oci:DIR", "docker://HOST/NAME", "hdfs://HOST/DIR" */
	struct bs_strv stores;
	struct bs_strv plain_http; /* registries without TLS */
	struct bs_strv insecure;   /* registries whose certificate is not checked */
	char *ca_file;
	char *proxy;
	struct bs_strv hdfs_options; /* of mount.bootseer-hdfs(8), for images on HDFS */
	uint32_t connections;	     /* per host, 8 */
	uint64_t connect_timeout_ns; /* 10s */
	uint64_t stall_timeout_ns;   /* 15s */
	uint64_t start_wait_ns;	     /* a start waits so long for an unreachable source (2m) */
	uint64_t read_wait_ns;	     /* a reader's, before EIO (5m) */
	bool background;	     /* complete images after start */
	struct bs_strv hot_only;     /* globs of HOST/NAME: not those */
	struct bs_rate background_rate;
	/* [hot] */
	bool prefetch; /* of hot packs */
	enum bs_record record;
	uint64_t record_window_ns; /* 2m */
	uint32_t rerecord;	   /* percent of a pack's size missed, 0: never (10) */
	bool publish;
	uint32_t hot_replication; /* copies on HDFS, at least (1) */
	/* [auth] */
	char *docker_config;
	char *dockerconfig_dir;
	char *provider_config;
	char *provider_bin_dir;
	/* [policy] */
	struct bs_strv allow_registries; /* globs of HOST/NAME; default "*" */
	struct bs_strv allow_dirs;	 /* directories for oci: sources; default none */
	struct bs_strv allow_hdfs;	 /* URLs of directories; default none */
	bool allow_annotations;		 /* dev.bootseer.* of a container count (true) */
	enum bs_fallback fallback;
	/* [checkpoint] */
	struct bs_strv ckpt_allow_sources; /* URLs of directories; default none */
	struct bs_strv ckpt_allow_users;   /* of HDFS; default none, "*" any */
	struct bs_strv ckpt_allow_targets; /* directories in a container; default "/" */
	bool ckpt_allow_writes;
	char *ckpt_user;	     /* "": HDFS's view of the worker's user */
	struct bs_strv ckpt_options; /* of mount.bootseer-hdfs(8) */
	bool ckpt_required;
	uint64_t ckpt_mount_wait_ns; /* 1m */
};

/*
 * The file: path, else $BOOTSEER_CONFIG, else SYSCONFDIR/bootseer/bootseer.conf. On
 * failure too ret holds what was right in the file and defaults for the rest (so that a
 * container can be stopped in spite of a typing mistake): bs_conf_done in every case.
 */
int bs_conf_read(const char *path, struct bs_conf *ret, struct bs_error *err);
void bs_conf_done(struct bs_conf *c);

/* Whether policy lets image data come from this place ("docker://HOST/NAME", "oci:DIR",
 * "hdfs://HOST/DIR"); -EPERM with the key to set. */
int bs_conf_allows(const struct bs_conf *c, const char *source, struct bs_error *err);

/* Whether a URL of HDFS is a directory, or is below it, of the list. */
bool bs_conf_is_below_any(const char *url, const struct bs_strv *dirs);

/* The options that images on HDFS are read with, as text; malloc'ed, NULL: out of memory. */
char *bs_conf_hdfs_options(const struct bs_conf *c);

/* What a container asks to have mounted. */
struct bs_conf_ckpt {
	const char *source, *target, *user; /* URL; absolute, clean path; NULL: none is named */
	bool writable;
};
/* Whether policy lets it have that; -EPERM with the key to set. */
int bs_conf_allows_ckpt(const struct bs_conf *c, const struct bs_conf_ckpt *q,
			struct bs_error *err);

/* Whether images with any of these places are not completed in the background. */
bool bs_conf_is_hot_only(const struct bs_conf *c, const struct bs_strv *sources);

/*
 * Adds where the data of source may be found: its host's mirrors, source itself, and the
 * stores, which stay behind all sources added so far. None is added twice.
 */
int bs_conf_sources(const struct bs_conf *c, const char *source, struct bs_strv *ret,
		    struct bs_error *err);

/* The table of keys, for the man page's test: row i, or false behind the last. */
struct bs_conf_key {
	const char *section, *name, *type, *def, *text;
};
bool bs_conf_key(unsigned int i, struct bs_conf_key *ret);

/* "unpack", "fail"; -EINVAL. */
int bs_fallback_parse(const char *text, enum bs_fallback *ret);

#endif
