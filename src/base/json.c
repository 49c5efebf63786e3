/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "base/error.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/str.h"

/* --- making ---------------------------------------------------------------------------- */

struct bs_json *bs_json_new(enum bs_json_type type)
{
	struct bs_json *v = calloc(1, sizeof(*v));

	if (v)
		v->type = type;
	return v;
}

struct bs_json *bs_json_free(struct bs_json *v)
{
	if (!v)
		return NULL;
	for (size_t i = 0; i < v->n_items; i++) {
		if (v->keys)
			free(v->keys[i]);
		(void)bs_json_free(v->items[i]); /* as deep as BS_JSON_DEPTH_MAX */
	}
	free(v->keys);
	free(v->items);
	free(v->text);
	free(v);
	return NULL;
}

static struct bs_json *new_text(enum bs_json_type type, const char *text, size_t len)
{
	bs_auto(json) struct bs_json *v = bs_json_new(type);

	if (!v)
		return NULL;
	v->text = malloc(len + 1);
	if (!v->text)
		return NULL;
	memcpy(v->text, text, len);
	v->text[len] = '\0';
	v->len = len;
	return bs_take(&v);
}

struct bs_json *bs_json_new_strn(const char *text, size_t len)
{
	return new_text(BS_JSON_STRING, text, len);
}

struct bs_json *bs_json_new_str(const char *text)
{
	return new_text(BS_JSON_STRING, text, strlen(text));
}

struct bs_json *bs_json_new_u64(uint64_t n)
{
	char buf[24];
	int len = snprintf(buf, sizeof(buf), "%" PRIu64, n);

	return new_text(BS_JSON_NUMBER, buf, (size_t)len);
}

struct bs_json *bs_json_new_i64(int64_t n)
{
	char buf[24];
	int len = snprintf(buf, sizeof(buf), "%" PRId64, n);

	return new_text(BS_JSON_NUMBER, buf, (size_t)len);
}

struct bs_json *bs_json_new_bool(bool truth)
{
	struct bs_json *v = bs_json_new(BS_JSON_BOOL);

	if (v)
		v->truth = truth;
	return v;
}

struct bs_json *bs_json_copy(const struct bs_json *v)
{
	bs_auto(json) struct bs_json *c = NULL;

	if (v->text)
		return new_text(v->type, v->text, v->len);
	c = bs_json_new(v->type);
	if (!c)
		return NULL;
	c->truth = v->truth;
	for (size_t i = 0; i < v->n_items; i++) {
		struct bs_json *item = bs_json_copy(v->items[i]);
		int r = v->keys ? bs_json_set(c, v->keys[i], item) : bs_json_append(c, item);

		if (r < 0)
			return NULL;
	}
	return bs_take(&c);
}

int bs_json_append(struct bs_json *array, struct bs_json *value)
{
	if (!value || bs_grow(&array->items, &array->cap_items, array->n_items + 1,
			      sizeof(*array->items)) < 0) {
		(void)bs_json_free(value);
		return -ENOMEM;
	}
	array->items[array->n_items++] = value;
	return 0;
}

/* Adds a member without looking for an equal one; key is taken over. */
static int add_member(struct bs_json *object, char *key, struct bs_json *value)
{
	if (!key || bs_grow(&object->keys, &object->cap_keys, object->n_items + 1,
			    sizeof(*object->keys)) < 0) {
		free(key);
		(void)bs_json_free(value);
		return -ENOMEM;
	}
	if (bs_json_append(object, value) < 0) {
		free(key);
		return -ENOMEM;
	}
	object->keys[object->n_items - 1] = key;
	return 0;
}

static size_t index_of(const struct bs_json *object, const char *key)
{
	size_t i = 0;

	while (i < object->n_items && !bs_streq(object->keys[i], key))
		i++;
	return i;
}

int bs_json_set(struct bs_json *object, const char *key, struct bs_json *value)
{
	size_t i = index_of(object, key);

	if (i == object->n_items)
		return add_member(object, strdup(key), value);
	if (!value)
		return -ENOMEM;
	(void)bs_json_free(object->items[i]);
	object->items[i] = value;
	return 0;
}

struct bs_json *bs_json_make(struct bs_json *object, const char *key, enum bs_json_type type)
{
	struct bs_json *v = bs_json_get(object, key);

	if (v)
		return v->type == type ? v : NULL;
	if (bs_json_set(object, key, bs_json_new(type)) < 0)
		return NULL;
	return bs_json_get(object, key);
}

void bs_json_remove_at(struct bs_json *v, size_t i)
{
	if (i >= v->n_items)
		return;
	(void)bs_json_free(v->items[i]);
	memmove(&v->items[i], &v->items[i + 1], (v->n_items - i - 1) * sizeof(*v->items));
	if (v->keys) {
		free(v->keys[i]);
		memmove(&v->keys[i], &v->keys[i + 1], (v->n_items - i - 1) * sizeof(*v->keys));
	}
	v->n_items--;
}

void bs_json_remove(struct bs_json *object, const char *key)
{
	bs_json_remove_at(object, index_of(object, key));
}

/* --- reading a value -------------------------------------------------------------------- */

struct bs_json *bs_json_get(const struct bs_json *v, const char *key)
{
	size_t i;

	if (!bs_json_is(v, BS_JSON_OBJECT))
		return NULL;
	i = index_of(v, key);
	return i < v->n_items ? v->items[i] : NULL;
}

struct bs_json *bs_json_find(const struct bs_json *v, const char *path)
{
	bs_autostrv names = { 0 };
	struct bs_json *at = NULL;

	if (bs_strv_split(&names, path, ".") < 0)
		return NULL;
	for (size_t i = 0; i < names.n; i++) {
		at = bs_json_get(i == 0 ? v : at, names.v[i]);
		if (!at)
			return NULL;
	}
	return at;
}

struct bs_json *bs_json_at(const struct bs_json *v, size_t i)
{
	return i < bs_json_n(v) ? v->items[i] : NULL;
}

size_t bs_json_n(const struct bs_json *v)
{
	return v ? v->n_items : 0;
}

bool bs_json_is(const struct bs_json *v, enum bs_json_type type)
{
	return v && v->type == type;
}

const char *bs_json_type_name(enum bs_json_type type)
{
	static const char *const names[] = { "null",   "boolean", "number",
					     "string", "array",	  "object" };

	_Static_assert(BS_ARRAY_LEN(names) == BS_JSON_TYPE_MAX, "a name for each type");
	return names[type];
}

const char *bs_json_str(const struct bs_json *v)
{
	return bs_json_is(v, BS_JSON_STRING) ? v->text : NULL;
}

int bs_json_u64(const struct bs_json *v, uint64_t *ret)
{
	return bs_json_is(v, BS_JSON_NUMBER) ? bs_parse_u64(v->text, ret) : -EINVAL;
}

int bs_json_i64(const struct bs_json *v, int64_t *ret)
{
	return bs_json_is(v, BS_JSON_NUMBER) ? bs_parse_i64(v->text, ret) : -EINVAL;
}

/* One character of a member name, folded; advances *s. */
static unsigned char fold(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;

	if (p[0] == 0xc5 && p[1] == 0xbf) { /* U+017F, long s */
		*s += 2;
		return 's';
	}
	if (p[0] == 0xe2 && p[1] == 0x84 && p[2] == 0xaa) { /* U+212A, kelvin sign */
		*s += 3;
		return 'k';
	}
	*s += 1;
	return p[0] >= 'A' && p[0] <= 'Z' ? p[0] + 32 : p[0];
}

static bool folded_equal(const char *a, const char *b)
{
	while (*a && *b) {
		if (fold(&a) != fold(&b))
			return false;
	}
	return !*a && !*b;
}

const char *bs_json_variant(const struct bs_json *v, const char *name)
{
	if (!bs_json_is(v, BS_JSON_OBJECT))
		return NULL;
	for (size_t i = 0; i < v->n_items; i++) {
		if (!bs_streq(v->keys[i], name) && folded_equal(v->keys[i], name))
			return v->keys[i];
	}
	return NULL;
}

bool bs_json_equal(const struct bs_json *a, const struct bs_json *b)
{
	if (a->type != b->type || a->n_items != b->n_items || a->truth != b->truth ||
	    a->len != b->len || (a->text && memcmp(a->text, b->text, a->len) != 0))
		return false;
	for (size_t i = 0; i < a->n_items; i++) {
		const struct bs_json *other = a->keys ? bs_json_get(b, a->keys[i]) : b->items[i];

		if (!other || !bs_json_equal(a->items[i], other))
			return false;
	}
	return true;
}

/* --- parsing: yajl's events build the tree ------------------------------------------------ */

struct reader {
	struct bs_json *root;
	struct bs_json *open[BS_JSON_DEPTH_MAX]; /* containers from the root to here */
	size_t depth;
	char *key; /* name of the member whose value comes next */
	int error;
	const char *why; /* static text for a refusal of ours */
};

static int refuse(struct reader *rd, int error, const char *why)
{
	rd->error = error;
	rd->why = why;
	return 0; /* makes yajl stop */
}

static int add(struct reader *rd, struct bs_json *v)
{
	struct bs_json *in;
	int r;

	if (!v)
		return refuse(rd, -ENOMEM, "out of memory");
	if (rd->depth == 0) {
		rd->root = v;
		return 1;
	}
	in = rd->open[rd->depth - 1];
	r = in->type == BS_JSON_OBJECT ? add_member(in, bs_take(&rd->key), v)
				       : bs_json_append(in, v);
	return r < 0 ? refuse(rd, r, "out of memory") : 1;
}

static int on_null(void *ctx)
{
	return add(ctx, bs_json_new(BS_JSON_NULL));
}

static int on_bool(void *ctx, int truth)
{
	return add(ctx, bs_json_new_bool(truth));
}

static int on_number(void *ctx, const char *text, size_t len)
{
	return add(ctx, new_text(BS_JSON_NUMBER, text, len));
}

static int on_string(void *ctx, const unsigned char *text, size_t len)
{
	if (memchr(text, '\0', len))
		return refuse(ctx, -EINVAL, "a string holds a NUL character");
	/* yajl makes three bytes of "\\udc00" where no first half stands before it */
	if (!bs_utf8_valid((const char *)text, len))
		return refuse(ctx, -EINVAL, "a string holds half of a surrogate pair");
	return add(ctx, new_text(BS_JSON_STRING, (const char *)text, len));
}

static int on_key(void *ctx, const unsigned char *text, size_t len)
{
	struct reader *rd = ctx;

	if (memchr(text, '\0', len))
		return refuse(rd, -EINVAL, "a member name holds a NUL character");
	if (!bs_utf8_valid((const char *)text, len))
		return refuse(rd, -EINVAL, "a member name holds half of a surrogate pair");
	rd->key = strndup((const char *)text, len);
	return rd->key ? 1 : refuse(rd, -ENOMEM, "out of memory");
}

static int open_container(struct reader *rd, enum bs_json_type type)
{
	struct bs_json *v;

	if (rd->depth == BS_JSON_DEPTH_MAX)
		return refuse(rd, -EINVAL, "nested deeper than 64 levels");
	v = bs_json_new(type);
	if (!add(rd, v))
		return 0;
	rd->open[rd->depth++] = v;
	return 1;
}

static int on_object(void *ctx)
{
	return open_container(ctx, BS_JSON_OBJECT);
}

static int on_array(void *ctx)
{
	return open_container(ctx, BS_JSON_ARRAY);
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorting a copy keeps a hostile object of many members from costing n². */
static int check_duplicates(struct reader *rd, const struct bs_json *object)
{
	bs_autofree char **sorted = NULL;

	if (object->n_items < 2)
		return 1;
	sorted = reallocarray(NULL, object->n_items, sizeof(*sorted));
	if (!sorted)
		return refuse(rd, -ENOMEM, "out of memory");
	memcpy(sorted, object->keys, object->n_items * sizeof(*sorted));
	qsort(sorted, object->n_items, sizeof(*sorted), compare_keys);
	for (size_t i = 1; i < object->n_items; i++) {
		if (bs_streq(sorted[i - 1], sorted[i]))
			return refuse(rd, -EINVAL, "a member stands twice in one object");
	}
	return 1;
}

static int on_object_end(void *ctx)
{
	struct reader *rd = ctx;

	return check_duplicates(rd, rd->open[--rd->depth]);
}

static int on_array_end(void *ctx)
{
	((struct reader *)ctx)->depth--;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_bool,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_map_key = on_key,
	.yajl_start_map = on_object,
	.yajl_end_map = on_object_end,
	.yajl_start_array = on_array,
	.yajl_end_array = on_array_end,
};

static void count_lines(const char *text, size_t len, size_t *ret_line, size_t *ret_column)
{
	*ret_line = *ret_column = 1;
	for (size_t i = 0; i < len; i++) {
		(*ret_column)++;
		if (text[i] == '\n') {
			(*ret_line)++;
			*ret_column = 1;
		}
	}
}

int bs_json_parse(const char *what, const char *text, size_t len, size_t max, struct bs_json **ret,
		  struct bs_error *err)
{
	struct reader rd = { 0 };
	yajl_handle h;
	yajl_status st;
	size_t line, column;
	int r = -EINVAL;

	if (len > max)
		return bs_fail(err, -E2BIG, "%s: %zu bytes, above the limit of %zu", what, len,
			       max);
	/* yajl's own check lets surrogates and overlong forms pass */
	if (!bs_utf8_valid(text, len))
		return bs_fail(err, -EINVAL, "%s: not acceptable JSON: no valid UTF-8", what);
	h = yajl_alloc(&callbacks, NULL, &rd);
	if (!h)
		return bs_fail(err, -ENOMEM, "%s: out of memory", what);
	st = yajl_parse(h, (const unsigned char *)text, len);
	if (st == yajl_status_ok)
		st = yajl_complete_parse(h);
	if (st == yajl_status_ok && rd.root) {
		*ret = bs_take(&rd.root);
		r = 0;
	} else {
		if (rd.error)
			r = rd.error;
		/* at the end yajl counts a space that it puts there itself */
		count_lines(text, BS_MIN(yajl_get_bytes_consumed(h), len), &line, &column);
		(void)bs_fail(err, r, "%s: not acceptable JSON at line %zu, column %zu: %s", what,
			      line, column, rd.why ? rd.why : "syntax error");
	}
	yajl_free(h);
	free(rd.key);
	(void)bs_json_free(rd.root);
	return r;
}

/* --- writing ------------------------------------------------------------------------------ */

static void put(struct bs_jsonw *w, const struct bs_json *v)
{
	switch (v->type) {
	case BS_JSON_BOOL:
		bs_jsonw_bool(w, v->truth);
		break;
	case BS_JSON_NUMBER:
		bs_jsonw_number_text(w, v->text, v->len);
		break;
	case BS_JSON_STRING:
		bs_jsonw_strn(w, v->text, v->len);
		break;
	case BS_JSON_ARRAY:
	case BS_JSON_OBJECT:
		if (v->type == BS_JSON_OBJECT)
			bs_jsonw_object(w);
		else
			bs_jsonw_array(w);
		for (size_t i = 0; i < v->n_items; i++) {
			if (v->type == BS_JSON_OBJECT)
				bs_jsonw_key(w, v->keys[i]);
			put(w, v->items[i]);
		}
		bs_jsonw_end(w);
		break;
	default:
		bs_jsonw_null(w);
	}
}

static int write_as(const struct bs_json *v, struct bs_buf *out, bool pretty)
{
	struct bs_jsonw *w = bs_jsonw_new(pretty);

	if (!w)
		return -ENOMEM;
	put(w, v);
	return bs_jsonw_finish(w, out);
}

int bs_json_write(const struct bs_json *v, struct bs_buf *out)
{
	return write_as(v, out, false);
}

int bs_json_write_pretty(const struct bs_json *v, struct bs_buf *out)
{
	return write_as(v, out, true);
}
