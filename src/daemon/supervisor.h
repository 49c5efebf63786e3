/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* The supervisor's life. What it is for stands in super.h. */
#ifndef BS_DAEMON_SUPERVISOR_H
#define BS_DAEMON_SUPERVISOR_H

struct bs_conf;

struct bs_supervisor_options {
	const struct bs_conf *conf;
	const char *config_file; /* given on to the other roles; NULL: the default */
	int keeper_link;	 /* -EBADF: a first start; else a keeper hands over through it */
	int started_fd;		 /* gets a byte when the socket listens; -EBADF: nobody waits */
};

/* Returns the exit code. */
int bs_supervisor_main(const struct bs_supervisor_options *o);

#endif
