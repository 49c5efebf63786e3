/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What a pod asks to have mounted: whatever is accepted keeps what its header promises. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "oci/ckptask.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofree char *text = strndup((const char *)data, size);
	struct bs_ckptask a = { 0 };

	if (!text || bs_ckptask_parse(text, &a, NULL) < 0)
		return 0;
	if (!a.source || !a.target || strchr(a.source, ',') || !bs_path_is_clean(a.target) ||
	    !a.target[1] || (a.user && strlen(a.user) > BS_CKPTASK_USER_MAX) ||
	    a.unit > BS_CKPTASK_UNIT_MAX || a.files > BS_CKPTASK_FILES_MAX)
		abort();
	bs_ckptask_done(&a);
	return 0;
}
