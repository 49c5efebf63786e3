/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* All layers of an image, read by several threads and applied in order. */
#ifndef BS_IMAGE_READLAYERS_H
#define BS_IMAGE_READLAYERS_H

#include <stddef.h>

#include "image/layer.h"

struct bs_error;
struct bs_nodes;

/*
 * t: initialised. ret: n layers (allocated by the caller, NULLs) whose spools the
 * tree then uses; also filled in part when it fails.
 */
int bs_layers_read(const struct bs_layer_source *sources, size_t n, unsigned int jobs,
		   struct bs_nodes *t, struct bs_layer **ret, struct bs_error *err);

#endif
