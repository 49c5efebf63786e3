/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Readers of HTTP header values. Pure; foreign text in, bounded by its length. */
#ifndef BS_NET_HEADER_H
#define BS_NET_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/* What a WWW-Authenticate asks for (RFC 9110 11.6.1; several challenges in one value). */
struct bs_challenge {
	bool basic, bearer;
	char *realm, *service, *scope; /* of the first Bearer; NULL: not said */
};

/* 0, or -ENOMEM. Nothing that we know: both false. */
int bs_header_challenge(const char *text, struct bs_challenge *ret);
void bs_challenge_done(struct bs_challenge *c);

/* "bytes FIRST-LAST/TOTAL"; TOTAL "*": *ret_total is UINT64_MAX. -EBADMSG for all else. */
int bs_header_content_range(const char *text, uint64_t *ret_first, uint64_t *ret_last,
			    uint64_t *ret_total);

/* Seconds or a date, as time from wall_now_ns on; at most a day. 0: none or not understood. */
uint64_t bs_header_retry_after(const char *text, uint64_t wall_now_ns);

/* The target of rel="next" (RFC 8288), malloc'ed. 0, -ENOENT there is none, -ENOMEM. */
int bs_header_link_next(const char *text, char **ret_url);

/* "type/subtype" of a Content-Type in lower case without its parameters, malloc'ed. */
char *bs_header_media_type(const char *text);

#endif
