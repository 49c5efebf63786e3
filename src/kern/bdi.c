/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/bdi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define PREFIX "erofs-"

int bs_bdi_open(void)
{
	int fd = open("/sys/class/bdi", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* "erofs-" and a number in its one spelling. */
static int parse_name(const char *name, uint64_t *ret)
{
	const char *digits = bs_str_after(name, PREFIX);

	if (!digits || (digits[0] == '0' && digits[1]))
		return -EINVAL;
	return bs_parse_u64(digits, ret) < 0 ? -EINVAL : 0;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int read_names(DIR *d, struct bs_bdi_list *l)
{
	struct dirent *de;
	uint64_t number;

	for (errno = 0; (de = readdir(d)); errno = 0) {
		if (parse_name(de->d_name, &number) < 0)
			continue;
		if (l->n == BS_BDI_MAX)
			return -E2BIG;
		if (bs_grow(&l->numbers, &l->cap, l->n + 1, sizeof(*l->numbers)) < 0)
			return -ENOMEM;
		l->numbers[l->n++] = number;
	}
	return -errno;
}

void bs_bdi_list_done(struct bs_bdi_list *l)
{
	free(l->numbers);
	*l = (struct bs_bdi_list){ 0 };
}

int bs_bdi_list(int classfd, struct bs_bdi_list *ret)
{
	int r, fd = openat(classfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bs_autobdilist l = { 0 };

	if (!d) {
		r = -errno;
		(void)bs_close(fd);
		return r;
	}
	r = read_names(d, &l);
	(void)closedir(d);
	if (r < 0)
		return r;
	if (l.n)
		qsort(l.numbers, l.n, sizeof(*l.numbers), by_number);
	*ret = l;
	l = (struct bs_bdi_list){ 0 };
	return 0;
}

int bs_bdi_find_new(int classfd, const struct bs_bdi_list *before, char ret[BS_BDI_NAME_LEN])
{
	bs_autobdilist now = { 0 };
	uint64_t number = 0;
	size_t found = 0;
	int r = bs_bdi_list(classfd, &now);

	if (r < 0)
		return r;
	for (size_t i = 0, k = 0; i < now.n; i++) {
		while (k < before->n && before->numbers[k] < now.numbers[i])
			k++;
		if (k < before->n && before->numbers[k] == now.numbers[i])
			continue;
		number = now.numbers[i];
		found++;
	}
	if (found != 1)
		return found ? -EAGAIN : -ENOENT;
	(void)snprintf(ret, BS_BDI_NAME_LEN, PREFIX "%" PRIu64, number);
	return 0;
}

/* sysfs has links to the devices here: they are followed, the kernel made them. */
static int open_readahead(int classfd, const char *name, int flags)
{
	char path[BS_BDI_NAME_LEN + sizeof("/read_ahead_kb")];
	uint64_t number;
	int fd;

	if (parse_name(name, &number) < 0)
		return -EINVAL;
	(void)snprintf(path, sizeof(path), PREFIX "%" PRIu64 "/read_ahead_kb", number);
	fd = openat(classfd, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int bs_bdi_set_readahead(int classfd, const char *name, uint32_t kib)
{
	bs_autofd int fd = open_readahead(classfd, name, O_WRONLY);
	char text[16];
	int n;

	if (fd < 0)
		return fd;
	n = snprintf(text, sizeof(text), "%" PRIu32 "\n", kib);
	return bs_write_full(fd, text, (size_t)n);
}

int bs_bdi_get_readahead(int classfd, const char *name, uint32_t *ret_kib)
{
	bs_autofd int fd = open_readahead(classfd, name, O_RDONLY);
	char text[16];
	ssize_t n;

	if (fd < 0)
		return fd;
	n = bs_read_full(fd, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return bs_parse_u32(text, ret_kib) < 0 ? -EBADMSG : 0;
}
