/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Runs a fuzz target once for each file that is named, when libFuzzer is not there. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bs_autofree char *data = NULL;
		size_t len;
		int r = bs_read_file_at(AT_FDCWD, argv[i], 0, 64 << 20, &data, &len);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-r));
			return 1;
		}
		(void)LLVMFuzzerTestOneInput((unsigned char *)data, len);
	}
	return 0;
}
