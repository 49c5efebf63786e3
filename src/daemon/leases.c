/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Which container uses which image: in memory, and as files RUN_DIR/leases/CONTAINER that
 * hold the image's digest, for the supervisors after this one.
 *
 * A container's life is its state file, RUN_DIR/state/CONTAINER.json: the shim writes it
 * before it asks for the image and removes it after it gave the image back. So a lease
 * without one is what a release that did not reach us left behind. For a while it counts
 * all the same: whoever acquires without a state file must have time for its work.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/atomicfile.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/str.h"
#include "daemon/ckpts.h"
#include "daemon/hots.h"
#include "daemon/super.h"

#define STATELESS_NS (10 * 60 * BS_NS_PER_S) /* how long a lease without a state file counts */
#define SWEEP_NS (60 * BS_NS_PER_S)

static struct lease *find(struct super *s, const char *container)
{
	bs_list_for_each(it, &s->leases) {
		struct lease *l = bs_list_entry(it, struct lease, all);

		if (bs_streq(l->container, container))
			return l;
	}
	return NULL;
}

static void end(struct lease *l)
{
	if (--l->image->leases == 0)
		hots_unused(l->image);
	l->image->used_ns = bs_clock_ns();
	bs_list_remove(&l->all);
	free(l->container);
	free(l);
}

static bool add(struct super *s, const char *container, struct held_image *i, uint64_t age_ns)
{
	const uint64_t now = bs_clock_ns();
	struct lease *l = find(s, container);

	if (l)
		end(l);
	l = calloc(1, sizeof(*l));
	if (!l)
		return false;
	l->container = strdup(container);
	if (!l->container) {
		free(l);
		return false;
	}
	l->image = i;
	l->granted_ns = now - BS_MIN(now, age_ns);
	i->leases++;
	bs_list_append(&s->leases, &l->all);
	return true;
}

bool leases_add(struct super *s, const char *container, struct held_image *i)
{
	return add(s, container, i, 0) && bs_atomicfile_write(s->leases_fd, container, i->digest,
							      strlen(i->digest), 0600, false) == 0;
}

void leases_release(struct super *s, const char *container)
{
	struct lease *l = find(s, container);

	if (l)
		end(l);
	hots_released(s, container);
	ckpts_released(s, container);
	if (bs_path_name_ok(container, strlen(container)))
		(void)unlinkat(s->leases_fd, container, 0);
}

/*
 * Since the file was written. A clock that was set in between makes it young, not old: back,
 * or forward by more than the machine runs.
 */
static uint64_t age_of(struct super *s, const char *name)
{
	struct timespec now;
	struct stat st;
	uint64_t age;

	if (fstatat(s->leases_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    clock_gettime(CLOCK_REALTIME, &now) < 0 || now.tv_sec <= st.st_mtim.tv_sec)
		return 0;
	age = (uint64_t)(now.tv_sec - st.st_mtim.tv_sec);
	return age > bs_clock_ns() / BS_NS_PER_S ? 0 : age * BS_NS_PER_S;
}

void leases_read(struct super *s)
{
	DIR *d = bs_opendir_at(s->leases_fd, ".");
	struct dirent *de;

	if (!d)
		return;
	while ((de = readdir(d))) {
		bs_autofree char *digest = NULL;
		struct held_image *i;

		if (de->d_name[0] == '.' ||
		    bs_read_file_at(s->leases_fd, de->d_name, O_NOFOLLOW, 256, &digest, NULL) < 0)
			continue;
		i = mounts_get(s, digest, true);
		if (i)
			(void)add(s, de->d_name, i, age_of(s, de->d_name));
	}
	(void)closedir(d);
	s->leases_next_ns = 0;
}

static bool has_state(struct super *s, const char *container)
{
	bs_autofree char *path = bs_strf("state/%s.json", container);

	/* when in doubt, yes: an image that is kept for nothing does less harm */
	return !path || faccessat(s->run_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENAMETOOLONG);
}

void leases_sweep(struct super *s, uint64_t now_ns)
{
	if (now_ns < s->leases_next_ns)
		return;
	s->leases_next_ns = now_ns + SWEEP_NS;
	ckpts_sweep(s);
	bs_list_for_each(it, &s->leases) {
		struct lease *l = bs_list_entry(it, struct lease, all);

		if (now_ns - l->granted_ns < STATELESS_NS || has_state(s, l->container))
			continue;
		bs_log_info("container '%s' is gone without giving image %s back", l->container,
			    l->image->digest);
		(void)unlinkat(s->leases_fd, l->container, 0);
		hots_released(s, l->container);
		end(l);
	}
}
