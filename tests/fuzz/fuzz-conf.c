/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* bootseer.conf: any file gives a whole configuration, or an error with a text and the same. */
#include "config.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/path.h"
#include "ctl/conf.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofd int fd = bs_memfd("conf");
	struct bs_error err = BS_ERROR_INIT;
	bs_autostrv sources = { 0 };
	struct bs_conf c;
	char path[32];

	if (fd < 0 || fchmod(fd, 0600) < 0 || bs_write_full(fd, data, size) < 0)
		return 0;
	if (bs_conf_read(bs_path_of_fd(fd, path), &c, &err) < 0 && !err.msg[0])
		abort();
	if (!c.runtime || !c.run_dir || c.connections < 1 || c.connections > 1000 ||
	    c.fallback >= BS_FALLBACK_MAX)
		abort();
	(void)bs_conf_allows(&c, "docker://a.test/b", NULL);
	(void)bs_conf_allows(&c, "oci:/a", NULL);
	(void)bs_conf_sources(&c, "docker://a.test/b", &sources, NULL);
	bs_conf_done(&c);
	return 0;
}
