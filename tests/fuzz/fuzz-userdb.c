/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* SPEC, NUL, passwd, NUL, group. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "image/userdb.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofree char *text = calloc(1, size + 3);
	const char *passwd, *group;
	struct bs_user u;

	if (!text)
		return 0;
	memcpy(text, data, size);
	passwd = text + strlen(text) + 1;
	if (passwd > text + size)
		passwd = text + size;
	group = passwd + strlen(passwd) + 1;
	if (group > text + size)
		group = text + size;
	if (bs_userdb_find(passwd, group, text, &u, NULL) == 0)
		bs_user_done(&u);
	return 0;
}
