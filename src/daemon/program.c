/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "daemon/program.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

#define SELF "/proc/self/exe"
#define DELETED " (deleted)" /* what the kernel shows behind a replaced file's path */

const char *bs_program_path(void)
{
	static char path[PATH_MAX];
	ssize_t n = readlink(SELF, path, sizeof(path) - 1);

	if (n <= 0)
		return SELF;
	path[n] = '\0';
	if (bs_str_ends(path, DELETED))
		path[(size_t)n - strlen(DELETED)] = '\0';
	return access(path, X_OK) == 0 ? path : SELF;
}
