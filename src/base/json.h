/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * A JSON document as a tree that can be read, edited and written again.
 *
 * The reader is stricter than RFC 8259 wherever another reader of the same bytes
 * could see something else: it refuses NUL in strings and member names, equal
 * member names in one object, nesting above BS_JSON_DEPTH_MAX, comments, data
 * behind the value and bad UTF-8. Numbers keep their text, objects their order.
 * Errors: -EINVAL for bad JSON, -E2BIG over the size limit, -ENOMEM.
 * A document belongs to one thread; a value belongs to its parent.
 */
#ifndef BS_BASE_JSON_H
#define BS_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct bs_buf;
struct bs_error;

#define BS_JSON_DEPTH_MAX 64

enum bs_json_type {
	BS_JSON_NULL,
	BS_JSON_BOOL,
	BS_JSON_NUMBER,
	BS_JSON_STRING,
	BS_JSON_ARRAY,
	BS_JSON_OBJECT,
	BS_JSON_TYPE_MAX
};

struct bs_json {
	enum bs_json_type type;
	bool truth;		/* BOOL */
	char *text;		/* STRING: its bytes, NUL behind; NUMBER: as written */
	size_t len;		/* STRING, NUMBER: bytes of text */
	char **keys;		/* OBJECT: n_items names */
	struct bs_json **items; /* ARRAY, OBJECT */
	size_t n_items;
	size_t cap_items, cap_keys;
};

/* Reads text of len <= max bytes. what names the thing in the error's text. */
int bs_json_parse(const char *what, const char *text, size_t len, size_t max, struct bs_json **ret,
		  struct bs_error *err);
struct bs_json *bs_json_free(struct bs_json *v);
DEFINE_BS_AUTO(json, struct bs_json, bs_json_free)

/* --- reading; all take a NULL value, which has no members and no type ------------- */

/* The member, or NULL; also NULL when v is no object. */
struct bs_json *bs_json_get(const struct bs_json *v, const char *key);
/* Along "a.b.c" of member names (names with dots cannot be asked for this way). */
struct bs_json *bs_json_find(const struct bs_json *v, const char *path);
struct bs_json *bs_json_at(const struct bs_json *v, size_t i);
size_t bs_json_n(const struct bs_json *v); /* members or elements */

bool bs_json_is(const struct bs_json *v, enum bs_json_type type);
const char *bs_json_type_name(enum bs_json_type type);
/* The string, or NULL when v is none. */
const char *bs_json_str(const struct bs_json *v);
/* 0, or -EINVAL when v is no number of that kind, -ERANGE when it does not fit. */
int bs_json_u64(const struct bs_json *v, uint64_t *ret);
int bs_json_i64(const struct bs_json *v, int64_t *ret);

/*
 * A member whose name equals name for a reader that ignores case as Go's
 * encoding/json does (ASCII case, U+017F as "s", U+212A as "k") but is not equal
 * to it. NULL: there is none.
 */
const char *bs_json_variant(const struct bs_json *v, const char *name);

/* Same type and content; objects without regard to order. */
bool bs_json_equal(const struct bs_json *a, const struct bs_json *b);

/* --- making and changing ------------------------------------------------------------ */

struct bs_json *bs_json_new(enum bs_json_type type); /* NULL: out of memory */
struct bs_json *bs_json_new_str(const char *text);
struct bs_json *bs_json_new_strn(const char *text, size_t len);
struct bs_json *bs_json_new_u64(uint64_t v);
struct bs_json *bs_json_new_i64(int64_t v);
struct bs_json *bs_json_new_bool(bool v);
struct bs_json *bs_json_copy(const struct bs_json *v);

/*
 * Put value (taken over, freed also on failure) at key / at the end. A NULL value
 * counts as out of memory, so constructors may be written in place.
 */
int bs_json_set(struct bs_json *object, const char *key, struct bs_json *value);
int bs_json_append(struct bs_json *array, struct bs_json *value);
/* The object or array at key, made when absent; NULL on failure or if another type stands there. */
struct bs_json *bs_json_make(struct bs_json *object, const char *key, enum bs_json_type type);
/* Takes out (and frees); absent is fine. */
void bs_json_remove(struct bs_json *object, const char *key);
void bs_json_remove_at(struct bs_json *array, size_t i);

/* Appends the document in compact form to out (base/jsonw). -EINVAL when it cannot be JSON. */
int bs_json_write(const struct bs_json *v, struct bs_buf *out);
/* The same, indented for people. */
int bs_json_write_pretty(const struct bs_json *v, struct bs_buf *out);

#endif
