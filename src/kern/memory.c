/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/str.h"

#define TEXT_MAX 16384u
#define NO_LIMIT (UINT64_C(1) << 62) /* what the first hierarchy says is about 2^63 */

static int read_text(int fd, char text[TEXT_MAX])
{
	ssize_t n = bs_pread_full(fd, text, TEXT_MAX - 1, 0);

	if (n < 0)
		return (int)n;
	text[n] = '\0';
	return 0;
}

/* The number that s begins with, after blanks. */
static bool number_at(const char *s, uint64_t *ret)
{
	char digits[24];
	size_t n;

	s += strspn(s, " \t");
	n = strspn(s, "0123456789");
	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, s, n);
	digits[n] = '\0';
	return bs_parse_u64(digits, ret) == 0;
}

/* The number behind name at the beginning of a line. */
static bool field(const char *text, const char *name, uint64_t *ret)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *rest;

		line += *line == '\n';
		rest = bs_str_after(line, name);
		if (rest && (*rest == ' ' || *rest == '\t'))
			return number_at(rest, ret);
	}
	return false;
}

/* --- opening -------------------------------------------------------------------------------- */

static int open_at(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void group_close(struct bs_memory *m, unsigned int i)
{
	(void)bs_close(m->groups[i].max);
	(void)bs_close(m->groups[i].current);
	(void)bs_close(m->groups[i].stat);
}

static void open_group(int cgroup, const char *dir, struct bs_memory *m)
{
	static const char *const names[2][3] = {
		{ "memory.max", "memory.current", "memory.stat" },
		{ "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat" },
	};
	int fds[3];
	unsigned int i = m->n_groups;
	bs_autofd int dirfd = openat(cgroup, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int k = 0; k < 3; k++)
		fds[k] = open_at(dirfd, names[m->v1][k]);
	m->groups[i].max = fds[0];
	m->groups[i].current = fds[1];
	m->groups[i].stat = fds[2];
	if (fds[0] < 0 || fds[1] < 0 || fds[2] < 0)
		group_close(m, i); /* the root has no limit */
	else
		m->n_groups++;
}

/* Is memory one of the controllers in "a,b:", which ends at end? */
static bool has_memory(const char *names, const char *end)
{
	while (names < end) {
		size_t n = strcspn(names, ",:");

		if (n == strlen("memory") && memcmp(names, "memory", n) == 0)
			return true;
		names += n + 1;
	}
	return false;
}

/*
 * Where our group is below the mounted hierarchies, "memory/a/b" or "./a/b"; lines are
 * "N:CONTROLLERS:PATH". Memory that is in a first hierarchy is not in the second.
 */
static bool find_group(char *text, bool *ret_v1, char *ret, size_t size)
{
	bool found = false;

	for (char *line = text, *next; *line; line = next) {
		char *end = line + strcspn(line, "\n"), *names, *path;

		next = *end ? end + 1 : end;
		*end = '\0';
		names = strchr(line, ':');
		path = names ? strchr(names + 1, ':') : NULL;
		if (!path || !bs_path_is_clean(path + 1))
			continue;
		*ret_v1 = has_memory(names + 1, path);
		if (*ret_v1)
			return snprintf(ret, size, "memory%s", path + 1) < (int)size;
		if (path == names + 1)
			found = snprintf(ret, size, ".%s", path + 1) < (int)size;
	}
	return found;
}

static void open_groups(int proc, int cgroup, struct bs_memory *m)
{
	bs_autofd int fd = open_at(proc, "self/cgroup");
	char text[TEXT_MAX], dir[4096];

	if (fd < 0 || read_text(fd, text) < 0 || !find_group(text, &m->v1, dir, sizeof(dir)))
		return;
	while (m->n_groups < BS_MEMORY_GROUPS_MAX) {
		char *slash = strrchr(dir, '/');

		open_group(cgroup, dir, m);
		if (!slash)
			break;
		*slash = '\0';
	}
}

int bs_memory_open(int proc, int cgroup, struct bs_memory *ret)
{
	struct bs_memory m = { .meminfo = open_at(proc, "meminfo"),
			       .pressure = open_at(proc, "pressure/memory") };

	if (m.meminfo < 0) {
		(void)bs_close(m.pressure);
		return m.meminfo;
	}
	if (cgroup >= 0)
		open_groups(proc, cgroup, &m);
	*ret = m;
	return 0;
}

void bs_memory_done(struct bs_memory *m)
{
	(void)bs_close(m->meminfo);
	(void)bs_close(m->pressure);
	while (m->n_groups > 0)
		group_close(m, --m->n_groups);
	m->meminfo = m->pressure = -EBADF;
}

/* --- asking --------------------------------------------------------------------------------- */

static uint64_t room_in(const struct bs_memory *m, unsigned int i, char text[TEXT_MAX])
{
	uint64_t max, current, active = 0, inactive = 0;

	/* "max" is no number */
	if (read_text(m->groups[i].max, text) < 0 || !number_at(text, &max) || max >= NO_LIMIT ||
	    read_text(m->groups[i].current, text) < 0 || !number_at(text, &current))
		return UINT64_MAX;
	if (read_text(m->groups[i].stat, text) == 0) {
		(void)field(text, m->v1 ? "total_active_file" : "active_file", &active);
		(void)field(text, m->v1 ? "total_inactive_file" : "inactive_file", &inactive);
	}
	current -= BS_MIN(current, active + inactive);
	return max - BS_MIN(max, current);
}

int bs_memory_look(const struct bs_memory *m, struct bs_memory_state *ret)
{
	struct bs_memory_state s = { .group_room = UINT64_MAX };
	char text[TEXT_MAX];
	const char *average;
	uint64_t percent;
	int r = read_text(m->meminfo, text);

	if (r < 0)
		return r;
	if (!field(text, "MemTotal:", &s.total) || !field(text, "MemAvailable:", &s.available) ||
	    s.total > UINT64_MAX / 1024 || s.available > UINT64_MAX / 1024)
		return -EBADMSG;
	s.total *= 1024; /* it says kB */
	s.available *= 1024;
	if (m->pressure >= 0 && read_text(m->pressure, text) == 0 &&
	    (average = bs_str_after(text, "some avg10=")) && number_at(average, &percent))
		s.pressure_percent = (unsigned int)BS_MIN(percent, UINT64_C(100));
	for (unsigned int i = 0; i < m->n_groups; i++)
		s.group_room = BS_MIN(s.group_room, room_in(m, i, text));
	*ret = s;
	return 0;
}
