/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * JSON out, over yajl_gen: compact or indented, '/' not escaped, UTF-8 checked.
 *
 * Calls may be chained without looking; the first error sticks and bs_jsonw_finish
 * returns it. One thread at a time.
 */
#ifndef BS_BASE_JSONW_H
#define BS_BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bs_buf;
struct bs_jsonw;

struct bs_jsonw *bs_jsonw_new(bool pretty); /* NULL: out of memory */
/* Without finishing. */
struct bs_jsonw *bs_jsonw_free(struct bs_jsonw *w);

void bs_jsonw_object(struct bs_jsonw *w);
void bs_jsonw_array(struct bs_jsonw *w);
void bs_jsonw_end(struct bs_jsonw *w); /* of the innermost open object or array */
void bs_jsonw_key(struct bs_jsonw *w, const char *key);

void bs_jsonw_str(struct bs_jsonw *w, const char *text);
void bs_jsonw_strn(struct bs_jsonw *w, const char *text, size_t len);
/* Bytes that may be no UTF-8 (file names, foreign texts): bad ones become U+FFFD. */
void bs_jsonw_bytes(struct bs_jsonw *w, const char *bytes, size_t len);
void bs_jsonw_u64(struct bs_jsonw *w, uint64_t v);
void bs_jsonw_i64(struct bs_jsonw *w, int64_t v);
void bs_jsonw_number_text(struct bs_jsonw *w, const char *text, size_t len);
void bs_jsonw_bool(struct bs_jsonw *w, bool v);
void bs_jsonw_null(struct bs_jsonw *w);

/* key and value in one. */
void bs_jsonw_kstr(struct bs_jsonw *w, const char *key, const char *text);
void bs_jsonw_ku64(struct bs_jsonw *w, const char *key, uint64_t v);
void bs_jsonw_kbool(struct bs_jsonw *w, const char *key, bool v);

/* Appends the text to out, frees w. -EINVAL: not complete, too deep or no UTF-8. */
int bs_jsonw_finish(struct bs_jsonw *w, struct bs_buf *out);

#endif
