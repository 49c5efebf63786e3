/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What status says of packs and recordings. */
#include "config.h"

#include <errno.h>

#include "base/jsonw.h"
#include "rootfs/hotdonor.h"
#include "rootfs/hotpriv.h"

static void put_streamed(struct bs_hotstart *hs, struct bs_jsonw *w, const struct streamed *s)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "image", bs_digest_text(&s->hot.image.digest, text));
	bs_jsonw_kstr(w, "workload", s->hot.workload);
	bs_jsonw_kstr(w, "state",
		      s->running		    ? "streaming"
		      : s->result.error == -EBADMSG ? "refused"
		      : s->result.error		    ? "broken"
						    : "streamed");
	if (s->donor) {
		bs_jsonw_kstr(w, "pack_of",
			      bs_digest_text(&bs_hotdonor_image(s->donor)->digest, text));
		bs_jsonw_ku64(w, "copied_blocks", s->copied);
	}
	bs_jsonw_ku64(w, "pack_bytes", s->hot.pack.size);
	bs_jsonw_ku64(w, "bytes", s->result.bytes);
	bs_jsonw_ku64(w, "segments", s->result.segments);
	bs_jsonw_ku64(w, "local_segments", s->result.local_segments);
	bs_jsonw_ku64(w, "parallel", s->result.parallel);
	bs_jsonw_ku64(w, "duration_ns", s->result.end_ns - s->result.start_ns);
	bs_hotwatch_put(hs->watch, w, &s->hot.image.digest, s->hot.workload);
	bs_jsonw_end(w);
}

static void put_recorded(struct bs_jsonw *w, const struct recorded *r)
{
	char text[BS_DIGEST_TEXT_LEN];

	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "image", bs_digest_text(&r->pub.image->digest, text));
	bs_jsonw_kstr(w, "workload", r->workload);
	bs_jsonw_kstr(w, "state", r->built || !r->recording ? "recorded" : "recording");
	if (r->pack[0])
		bs_jsonw_kstr(w, "pack", r->pack);
	bs_jsonw_end(w);
}

void bs_hotstart_status(struct bs_hotstart *hs, struct bs_jsonw *w)
{
	bs_jsonw_array(w);
	(void)pthread_mutex_lock(&hs->lock);
	bs_list_for_each(it, &hs->streamed)
		put_streamed(hs, w, bs_list_entry(it, struct streamed, all));
	bs_list_for_each(it, &hs->recorded)
		put_recorded(w, bs_list_entry(it, struct recorded, all));
	(void)pthread_mutex_unlock(&hs->lock);
	bs_hotwatch_put_kept(hs->watch, w);
	bs_jsonw_end(w);
}
