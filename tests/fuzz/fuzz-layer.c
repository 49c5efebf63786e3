/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* Any bytes as a layer, and what is read of it applied twice. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "image/layer.h"
#include "image/layers.h"
#include "image/nodes.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

struct input {
	const unsigned char *data;
	size_t left;
};

static ssize_t give(void *cookie, const void **ret)
{
	struct input *in = cookie;
	size_t n = BS_MIN(in->left, (size_t)4000);

	*ret = in->data;
	in->data += n;
	in->left -= n;
	return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	const char *dir = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL;
	struct bs_nodes nodes;

	if (bs_nodes_init(&nodes) < 0)
		return 0;
	for (int i = 0; i < 2; i++) {
		bs_auto(layer) struct bs_layer *l = NULL;
		struct input in = { data, size };

		if (bs_layer_parse("layer", give, &in, false, dir, &l, NULL) < 0 ||
		    bs_layers_apply(&nodes, l, NULL) < 0)
			break;
	}
	bs_nodes_done(&nodes);
	return 0;
}
