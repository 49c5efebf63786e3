/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Credential files, what helpers and kubelet's providers answer, token replies, lists of
 * referrers. The first byte chooses which.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "net/auth_config.h"
#include "net/referrers.h"
#include "net/repo.h"
#include "net/session.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(int r, struct bs_auth_found *f)
{
	if (r == 0 && !f->helper && (!f->user || !f->secret))
		abort();
	if (r < 0 && (f->helper || f->user || f->secret))
		abort();
	if (f->helper && !bs_auth_name_ok(f->helper))
		abort();
	bs_auth_found_done(f);
}

static void referrers(const char *text, size_t len)
{
	bs_auto(json) struct bs_json *index = NULL, *out = bs_referrers_new(), *desc = NULL;
	struct bs_manifest m = { 0 };
	struct bs_digest d;

	(void)bs_referrers_describe(text, len, "m", &d, &desc, NULL);
	if (out && bs_referrers_parse("x", text, len, &index, NULL) == 0 &&
	    bs_referrers_merge(out, index) == 0 && bs_referrers_finish(out, &m, NULL) == 0)
		bs_manifest_done(&m);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	struct bs_auth_found f = { 0 };
	bs_autofree char *token = NULL;
	const char *text = (const char *)data + 1;
	uint64_t life;

	if (size == 0)
		return 0;
	size--;
	switch (data[0]) {
	case 'c':
		check(bs_auth_from_config("x", text, size, "r.x", "a/b", false, &f, NULL), &f);
		break;
	case 'd':
		check(bs_auth_from_config("x", text, size, "docker.io", "library/a", true, &f,
					  NULL),
		      &f);
		break;
	case 'h':
		check(bs_auth_from_helper("x", text, size, &f, NULL), &f);
		break;
	case 'p':
		check(bs_auth_from_provider("x", text, size, "r.x", "a/b", &f, NULL), &f);
		break;
	case 't':
		if (bs_token_parse(text, size, &token, &life, NULL) == 0 && strpbrk(token, "\r\n "))
			abort();
		break;
	default:
		referrers(text, size);
	}
	return 0;
}
