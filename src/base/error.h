/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The error value: a negative errno for the program, a text for the person.
 *
 * It lives on the caller's stack and allocates nothing, so it works after fork
 * and when memory is short. The code that sees the failure fills it once; those
 * above only add what they were doing, in front. Every function takes a NULL
 * err and then only returns the code.
 */
#ifndef BS_BASE_ERROR_H
#define BS_BASE_ERROR_H

#define BS_ERROR_MSG_MAX 512

struct bs_error {
	int code; /* negative errno; 0 while nothing failed */
	char msg[BS_ERROR_MSG_MAX];
};

#define BS_ERROR_INIT ((struct bs_error){ 0 })

/* Sets the text and returns code, a negative errno. */
int bs_fail(struct bs_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As bs_fail, with ": " and the errno's own text behind. */
int bs_fail_errno(struct bs_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "text: " in front of what is there; returns err->code, or -EIO for a NULL err. */
int bs_error_context(struct bs_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The text to show: never NULL, never empty. */
const char *bs_error_text(const struct bs_error *err);

#endif
