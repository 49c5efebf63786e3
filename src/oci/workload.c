/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "oci/workload.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/error.h"
#include "base/json.h"

#define PROGRAM_MAX 40u

/* No more of a name in an error than says which it is; the rest is "…". */
#define SHOWN_MAX 60

int bs_workload_check(const char *name, struct bs_error *err)
{
	const size_t n = strlen(name);
	const char *more = n > SHOWN_MAX ? "…" : "";
	struct bs_digest d;

	if (n == 0)
		return bs_fail(err, -EINVAL, "a workload's name has at least one character");
	if (strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			 "._:/@+-") != n)
		return bs_fail(err, -EINVAL,
			       "'%.*s%s' is no workload's name: it may have letters, digits and "
			       ". _ : / @ + -",
			       SHOWN_MAX, name, more);
	if (n > BS_WORKLOAD_MAX)
		return bs_fail(err, -EINVAL,
			       "'%.*s%s' is no workload's name: it has %zu characters, %u are the "
			       "most",
			       SHOWN_MAX, name, more, n, BS_WORKLOAD_MAX);
	if (name[0] == '-')
		return bs_fail(err, -EINVAL,
			       "'%.*s%s' is no workload's name: it begins with '-', as options do",
			       SHOWN_MAX, name, more);
	if (bs_digest_parse(name, n, &d) == 0)
		return bs_fail(err, -EINVAL,
			       "'%s' is no workload's name: it is a digest, which stands for a "
			       "hot pack's manifest",
			       name);
	return 0;
}

bool bs_workload_ok(const char *name)
{
	return bs_workload_check(name, NULL) == 0;
}

static void hash_argument(struct bs_sha256 *h, const char *s)
{
	for (; *s; s++) {
		if (isdigit((unsigned char)*s) && isdigit((unsigned char)s[1]))
			continue; /* the last one of a run counts */
		bs_sha256_update(h, isdigit((unsigned char)*s) ? "0" : s, 1);
	}
	bs_sha256_update(h, "", 1);
}

/* The last component of a path, of what a name may have only. */
static void program_name(const char *path, char buf[PROGRAM_MAX + 1])
{
	const char *slash = strrchr(path, '/');
	size_t n = 0;

	for (const char *s = slash ? slash + 1 : path; *s && n < PROGRAM_MAX; s++)
		buf[n++] = *s;
	buf[n] = '\0';
	for (size_t i = 0; i < n; i++) {
		/* a login shell's name begins with '-' */
		if (!isalnum((unsigned char)buf[i]) && !strchr(i == 0 ? "._+" : "._+-", buf[i]))
			buf[i] = '_';
	}
}

void bs_workload_of_args(const struct bs_json *args, char *buf, size_t size)
{
	struct bs_sha256 *h = bs_sha256_new();
	char program[PROGRAM_MAX + 1] = "", hex[BS_DIGEST_TEXT_LEN];
	struct bs_digest d = { { 0 } };

	for (size_t i = 0; h && i < bs_json_n(args); i++) {
		const char *s = bs_json_str(args->items[i]);

		if (!s)
			continue;
		if (i == 0)
			program_name(s, program);
		hash_argument(h, s);
	}
	if (h)
		bs_sha256_final(h, &d);
	(void)bs_sha256_free(h);
	(void)snprintf(buf, size, "%s-%.16s", program[0] ? program : "none",
		       bs_digest_hex(&d, hex));
}
