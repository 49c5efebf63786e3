/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What the supervisor's short-lived children do. Each has its socket at descriptor 3,
 * what it was given from 4 on, sends one message and ends.
 */
#ifndef BS_DAEMON_JOBS_H
#define BS_DAEMON_JOBS_H

struct bs_conf;

/*
 * Mounts an image: metadata at 4; at 5 the mount that serves blobs, in which name is
 * the image's (lazy), or the whole blob. Sends MOUNTED. Returns the exit code. The name is
 * a string; run in a fork of the supervisor.
 */
int bs_job_mount_lazy(void *name);
int bs_job_mount_whole(void *name);
int bs_job_mount_recorded(void *name); /* lazy, of a recording's file, without readahead */
/* A warmer (daemon/warm.h): fd 4 its lists, fd 5 the mount. */
int bs_job_warm(void *unused);

/* Finds the credentials of a registry. Sends a reply with USER and SECRET. */
int bs_job_credential(const struct bs_conf *conf, const char *host);

/*
 * Unpacks an image: its compressed tree at 4, its complete blob at 5, the directory of
 * unpacked images at 6, in which name becomes its own. Sends MOUNTED without a mount.
 */
int bs_job_unpack(const char *name);

#endif
