/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/annot.h"

#include <errno.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "oci/ckptask.h"
#include "oci/ref.h"
#include "oci/workload.h"

enum type { REFERENCE, FALLBACK, WORKLOAD, YES_NO, BACKGROUND, MOUNT, OUTPUT, TYPE_MAX };

static const char *const type_names[] = { "reference",	"fallback", "workload", "yes-no",
					  "background", "mount",    "output" };
_Static_assert(BS_ARRAY_LEN(type_names) == TYPE_MAX, "a name each");

static const struct {
	const char *key;
	enum type type;
	size_t at; /* in struct bs_annot */
	const char *def;
	const char *text;
} table[] = {
	{ BS_ANNOT_PREFIX "image", REFERENCE, offsetof(struct bs_annot, image), "",
	  "the converted image to serve" },
	{ BS_ANNOT_PREFIX "fallback", FALLBACK, offsetof(struct bs_annot, fallback), "",
	  "what to do where it cannot be served lazily" },
	{ BS_ANNOT_PREFIX "workload", WORKLOAD, offsetof(struct bs_annot, workload), "",
	  "the name under which its hot pack is kept" },
	{ BS_ANNOT_PREFIX "record", YES_NO, offsetof(struct bs_annot, record), "",
	  "whether a start without a hot pack is recorded" },
	{ BS_ANNOT_PREFIX "background", BACKGROUND, offsetof(struct bs_annot, background), "",
	  "whether the rest of its image is fetched" },
	/* and each key that has this and ".NAME": oci/ckptask.h */
	{ BS_CKPTASK_KEY, MOUNT, 0, "", "a directory of HDFS to mount" },
	{ BS_ANNOT_SERVED, OUTPUT, 0, "", "set by bootseer: the digest of the image served" },
	/* podman gives a container the annotations of its image's manifest */
	{ BS_ANNOT_PREFIX "artifact.digest", OUTPUT, 0, "", "of a stub: the converted image" },
	{ BS_ANNOT_PREFIX "source.digest", OUTPUT, 0, "", "of a stub: what was converted" },
};

bool bs_annot_row(unsigned int i, struct bs_annot_row *ret)
{
	if (i >= BS_ARRAY_LEN(table))
		return false;
	*ret = (struct bs_annot_row){ table[i].key, type_names[table[i].type], table[i].def,
				      table[i].text };
	return true;
}

/* What a value must be, as an error ends; NULL: it is right. */
static const char *wrong(enum type type, const char *text)
{
	switch (type) {
	case FALLBACK:
		return bs_streq(text, "unpack") || bs_streq(text, "fail") ? NULL : "unpack or fail";
	case REFERENCE:
		return bs_ref_is_full(text) ? NULL
					    : "docker://HOST/NAME (HOST has a '.' or a ':PORT') or "
					      "oci:DIR, with :TAG or @DIGEST behind";
	case YES_NO:
		return bs_streq(text, "yes") || bs_streq(text, "no") ? NULL : "yes or no";
	case BACKGROUND:
		return bs_streq(text, "complete") || bs_streq(text, "hot-only")
			       ? NULL
			       : "complete or hot-only";
	case WORKLOAD: /* bs_workload_check tells more */
	case MOUNT:
	case OUTPUT:
	case TYPE_MAX:
	default:
		return NULL;
	}
}

static int take(size_t row, const struct bs_json *value, struct bs_annot *ret, struct bs_error *err)
{
	const char *text = bs_json_str(value), *must;
	int r;

	if (!text)
		return bs_fail(err, -EINVAL, "annotation '%s' is no string", table[row].key);
	if (table[row].type == OUTPUT) /* of an earlier start from the same bundle, or the image */
		return 0;
	if (!text[0])
		return bs_fail(err, -EINVAL, "annotation '%s' is empty", table[row].key);
	must = wrong(table[row].type, text);
	if (must)
		return bs_fail(err, -EINVAL, "annotation '%s' is '%.60s%s', but must be %s",
			       table[row].key, text, strlen(text) > 60 ? "…" : "", must);
	r = table[row].type == WORKLOAD ? bs_workload_check(text, err) : 0;
	if (r < 0)
		return bs_error_context(err, "annotation '%s'", table[row].key), r;
	*(const char **)(void *)((char *)ret + table[row].at) = text;
	return 0;
}

int bs_annot_read(const struct bs_json *annotations, struct bs_annot *ret,
		  struct bs_strv *ret_unknown, struct bs_error *err)
{
	*ret = (struct bs_annot){ 0 };
	for (size_t i = 0; i < bs_json_n(annotations); i++) {
		size_t row = 0;
		int r;

		if (!bs_str_after(annotations->keys[i], BS_ANNOT_PREFIX) ||
		    bs_ckptask_is_key(annotations->keys[i]))
			continue;
		while (row < BS_ARRAY_LEN(table) && !bs_streq(table[row].key, annotations->keys[i]))
			row++;
		r = row < BS_ARRAY_LEN(table) ? take(row, annotations->items[i], ret, err)
					      : bs_strv_add(ret_unknown, annotations->keys[i]);
		if (r == -ENOMEM)
			return bs_fail(err, r, "read annotations: out of memory");
		if (r < 0)
			return r;
	}
	return 0;
}

int bs_annot_image_names(const struct bs_json *annotations, struct bs_strv *ret)
{
	static const char *const keys[] = { "io.kubernetes.cri.image-name",
					    "io.kubernetes.cri-o.ImageName" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < BS_ARRAY_LEN(keys); i++) {
		const char *name = bs_json_str(bs_json_get(annotations, keys[i]));

		if (name && name[0])
			r = bs_strv_add(ret, name);
	}
	return r;
}

bool bs_annot_is_sandbox(const struct bs_json *annotations)
{
	static const char *const keys[] = { "io.kubernetes.cri.container-type",
					    "io.kubernetes.cri-o.ContainerType" };

	for (size_t i = 0; i < BS_ARRAY_LEN(keys); i++) {
		const char *type = bs_json_str(bs_json_get(annotations, keys[i]));

		if (type && bs_streq(type, "sandbox"))
			return true;
	}
	return false;
}
