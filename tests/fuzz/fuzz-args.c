/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Command lines, a word a line. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "shim/args.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofree char *text = strndup((const char *)data, size);
	bs_autostrv words = { 0 };
	struct bs_args a;

	if (!text || bs_strv_add(&words, "bootseer") < 0 || bs_strv_split(&words, text, "\n") < 0)
		return 0;
	bs_args_parse((int)words.n, words.v, &a);
	if (a.command >= BS_COMMAND_MAX || (a.id && !bs_strv_has(&words, a.id)))
		abort();
	if (a.id)
		(void)bs_args_id_ok(a.id);
	return 0;
}
