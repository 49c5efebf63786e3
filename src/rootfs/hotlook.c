/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/hotlook.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

void bs_hotlook_init(struct bs_hotlook *l)
{
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_cond_init(&l->fewer, NULL);
	bs_list_init(&l->turns);
}

/* Lock held. */
static unsigned int count(const struct bs_hotlook *l, const char *name)
{
	unsigned int n = 0;

	bs_list_for_each(it, &l->turns)
		n += bs_streq(bs_list_entry(it, struct bs_hotlook_turn, all)->name, name);
	return n;
}

bool bs_hotlook_begin(struct bs_hotlook *l, struct bs_hotlook_turn *t, const char *name,
		      unsigned int max, uint64_t deadline_ns)
{
	bool mine;

	*t = (struct bs_hotlook_turn){ .name = name };
	bs_list_init(&t->all);
	(void)pthread_mutex_lock(&l->lock);
	while (!(mine = count(l, name) < max) && bs_clock_ns() < deadline_ns)
		(void)bs_clock_cond_wait(&l->fewer, &l->lock, deadline_ns);
	if (mine)
		bs_list_append(&l->turns, &t->all);
	(void)pthread_mutex_unlock(&l->lock);
	return mine;
}

void bs_hotlook_end(struct bs_hotlook *l, struct bs_hotlook_turn *t)
{
	(void)pthread_mutex_lock(&l->lock);
	bs_list_remove(&t->all);
	(void)pthread_cond_broadcast(&l->fewer);
	(void)pthread_mutex_unlock(&l->lock);
}

const char *bs_hotlook_host(const char *source, char buf[BS_HOTLOOK_HOST_LEN])
{
	const char *host = bs_str_after(source, "docker://");
	const char *authority = host ? NULL : strstr(source, "://");

	if (host)
		(void)snprintf(buf, BS_HOTLOOK_HOST_LEN, "%.*s", (int)strcspn(host, "/"), host);
	else if (authority) /* of HDFS */
		(void)snprintf(buf, BS_HOTLOOK_HOST_LEN, "%.*s",
			       (int)(authority + 3 + strcspn(authority + 3, "/") - source), source);
	else
		(void)snprintf(buf, BS_HOTLOOK_HOST_LEN, "%s", source);
	return buf;
}
