/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* A mountinfo line, and the overlay options in it; layers survive escaping. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kern/mountinfo.h"
#include "kern/overlay.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(const char *super)
{
	bs_autooverlay o = { 0 };

	if (bs_overlay_parse(super, &o, NULL) < 0)
		return;
	if (o.lowers.n == 0 || o.lowers.n > BS_OVERLAY_LAYERS_MAX || !o.upper != !o.work)
		abort();
	for (size_t i = 0; i < o.lowers.n; i++) {
		bs_autofree char *text = bs_overlay_escape(o.lowers.v[i]), *all = NULL;
		bs_autooverlay again = { 0 };

		/* commas are the mount options' affair, spaces mountinfo's */
		if (!text || strpbrk(text, ",\"\\"))
			continue;
		all = bs_strf("lowerdir=%s", text);
		if (!all || bs_overlay_parse(all, &again, NULL) < 0 || again.lowers.n != 1 ||
		    strcmp(again.lowers.v[0], o.lowers.v[i]) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	bs_autofree char *text = strndup((const char *)data, size);
	bs_automountinfo m = { 0 };

	if (!text)
		return 0;
	if (bs_mountinfo_parse((const char *)data, size, &m) == 0) {
		(void)bs_mountinfo_attrs(m.options);
		check(m.super);
	}
	check(text);
	return 0;
}
