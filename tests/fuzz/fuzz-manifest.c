/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Manifests, indexes and artifacts; an artifact must survive being written and read again. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "image/artifact.h"
#include "image/manifest.h"
#include "net/repo.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void read_again(const struct bs_artifact *a)
{
	static char none[] = "";
	bs_autofree char *text = NULL;
	struct bs_manifest m = { .media_type = none };
	struct bs_artifact b;

	if (bs_artifact_write(a, &text, &m.len, NULL) < 0)
		abort();
	m.bytes = text;
	if (bs_artifact_parse(&m, &b, NULL) < 0 || b.data.size != a->data.size ||
	    b.has_subject != a->has_subject || !bs_digest_eq(&a->tree.digest, &b.tree.digest))
		abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static char none[] = "";
	bs_autofree char *text = malloc(size + 1);
	struct bs_manifest m = { .bytes = text, .len = size, .media_type = none };
	bs_autodocument d = { 0 };
	const struct bs_link *link;
	struct bs_artifact a;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (bs_document_parse(&m, &d, NULL) == 0 && d.is_index)
		(void)bs_document_pick(&d, "linux/arm64", &link, NULL);
	if (bs_artifact_parse(&m, &a, NULL) == 0)
		read_again(&a);
	return 0;
}
