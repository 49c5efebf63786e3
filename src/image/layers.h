/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Applies layers to a tree, by image-spec's layer.md and as containerd does it:
 *
 * - What a layer hides, it hides of the layers below only, wherever in the archive the
 *   whiteout stands; so all whiteouts of a layer come first.
 * - An entry replaces what is there. Only a directory on a directory stays, with its
 *   content, and takes the new attributes.
 * - A hard link makes a name for the inode and gives it the entry's attributes, as
 *   link, chown, setxattr, chmod and utimes one after the other would.
 * - Parents that are missing are made (0755, user 0, time 0), parents that are symlinks
 *   are followed inside the tree.
 */
#ifndef BS_IMAGE_LAYERS_H
#define BS_IMAGE_LAYERS_H

struct bs_error;
struct bs_layer;
struct bs_nodes;

/* Uses the layer's entries up; its spool stays in use. -EINVAL names layer and entry. */
int bs_layers_apply(struct bs_nodes *t, struct bs_layer *l, struct bs_error *err);

#endif
