/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "base/nofile.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit original;
static bool raised;

void bs_nofile_raise(void)
{
	struct rlimit rl;

	if (raised || getrlimit(RLIMIT_NOFILE, &original) < 0)
		return;
	rl = original;
	rl.rlim_cur = rl.rlim_max;
	raised = setrlimit(RLIMIT_NOFILE, &rl) == 0;
}

void bs_nofile_restore(void)
{
	if (raised)
		(void)setrlimit(RLIMIT_NOFILE, &original);
}
