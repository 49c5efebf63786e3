/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* tree2erofs TREE META: the EROFS metadata image of a tree blob, for tests that mount it. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>

#include "base/error.h"
#include "base/fd.h"
#include "image/erofs.h"
#include "image/tree.h"

int main(int argc, char **argv)
{
	bs_auto(tree) struct bs_tree *t = NULL;
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *data = NULL;
	bs_autofd int fd = -EBADF;
	uint64_t bytes;
	size_t len;

	if (argc != 3)
		return 2;
	if (bs_read_file_at(AT_FDCWD, argv[1], 0, BS_TREE_BYTES_MAX, &data, &len) < 0)
		return 1;
	fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return 1;
	if (bs_tree_read(data, len, &t, &err) < 0 || bs_erofs_write(t, fd, &bytes, &err) < 0) {
		fprintf(stderr, "tree2erofs: %s\n", bs_error_text(&err));
		return 1;
	}
	return 0;
}
