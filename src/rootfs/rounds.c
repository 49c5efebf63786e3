/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "rootfs/rounds.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "net/repo.h"

#define PAUSE_NS (500 * BS_NS_PER_MS) /* between rounds */

/* Waiting will not change these: absent, forbidden, not what it should be, no room for it. */
static bool is_final(int r)
{
	return r == -ENOENT || r == -EACCES || r == -EPERM || r == -EBADMSG || r == -EINVAL ||
	       r == -EPROTONOSUPPORT || r == -EFBIG || r == -ENOSPC || r == -EROFS;
}

/* 1: another source is to be asked first. */
static int ask(const struct bs_rounds *o, const char *source, bool last,
	       bs_try_source_fn *try_source, void *cookie, struct bs_error *err)
{
	bs_auto(repo) struct bs_repo *repo = NULL;
	int r = o->open_source(o->cookie, source, &repo, err);

	if (r == 0 && !last && bs_repo_was_silent(repo))
		return 1;
	if (r == 0)
		r = bs_repo_note(repo, try_source(cookie, repo, err));
	if (r < 0)
		(void)bs_error_context(err, "source '%s'", source);
	return r;
}

/* One source after the other, silent ones last; *ret_final: none of them is worth another try. */
static int run_one(const struct bs_rounds *o, bs_try_source_fn *try_source, void *cookie,
		   bool *ret_final, struct bs_error *err)
{
	const size_t n = BS_MIN(o->n, (size_t)64);
	int result = bs_fail(err, -ENOENT, "no source is known");
	uint64_t asked = 0;

	*ret_final = true;
	for (size_t k = 0; k < 2 * n; k++) {
		const uint64_t bit = UINT64_C(1) << k % n;
		struct bs_error e = BS_ERROR_INIT;
		int r;

		if (asked & bit)
			continue;
		r = ask(o, o->sources[k % n], k >= n, try_source, cookie, &e);
		if (r == 0)
			return 0;
		if (r > 0)
			continue;
		asked |= bit;
		/* the one that may come back is the one to tell of */
		if (*ret_final) {
			*err = e;
			result = r;
		}
		*ret_final = *ret_final && is_final(r);
	}
	return result;
}

int bs_rounds_run(const struct bs_rounds *o, bs_try_source_fn *try_source, void *cookie,
		  struct bs_error *err)
{
	const uint64_t start = bs_clock_ns();

	for (;;) {
		bool final;
		int r = run_one(o, try_source, cookie, &final, err);

		if (r == 0 || final)
			return r;
		if (bs_clock_ns() + PAUSE_NS >= o->deadline_ns) {
			(void)bs_error_context(err,
					       "given up after %" PRIu64
					       " s (start_wait, mirrors and stores are set in "
					       "bootseer.conf)",
					       (bs_clock_ns() - start) / BS_NS_PER_S);
			return r;
		}
		(void)poll(NULL, 0, (int)(PAUSE_NS / BS_NS_PER_MS));
	}
}
