#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 41-unpack.bats: no FUSE on the node: the image becomes a directory, said once.
# timeout: 400
# test-timeout: 200
# shellcheck disable=SC2154

load ../lib/common.bash
load ../lib/images.bash
load ../lib/node.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

# A daemon whose kernel has no fsopen, and so no FUSE mount of its own.
node_without_fuse() {
	node_conf "$@"
	"$bst_lib/without" fsopen=ENOSYS -- bootseerd --config "$BOOTSEER_CONFIG" --background
}

# bundle_of REF: $BST_ROOT/bundle that runs sh without a terminal, in few namespaces.
bundle_of() {
	bootseerctl bundle "$1" "$BST_ROOT/bundle"
	jq '.process.terminal = false | .process.args = ["/bin/sh", "-c", "echo from the container"]' \
		"$BST_ROOT/bundle/config.json" >"$BST_ROOT/c"
	cat "$BST_ROOT/c" >"$BST_ROOT/bundle/config.json"
}

@test "without FUSE a container starts from an unpacked image, and one warning says so" {
	convert "oci:$(image_busybox):latest" "oci:$BST_ROOT/image:latest"
	node_without_fuse
	bundle_of "oci:$BST_ROOT/image:latest"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"from the container"* ]]
	[ "$(grep -c 'unpacked' <<<"$output")" = 1 ]
	[ -d "$BST_CACHE/unpacked/${digest#sha256:}/bin" ]
	# the second start finds it there
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	[ "$status" = 0 ]
	bootseerctl timeline "$BST_ID" | grep fallback
}

@test "policy may forbid it: then the start fails and says why" {
	convert "oci:$(image_busybox):latest" "oci:$BST_ROOT/image:latest"
	node_without_fuse "policy fallback = fail"
	bundle_of "oci:$BST_ROOT/image:latest"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *FUSE* ]]
	[ ! -e "$BST_CACHE/unpacked/${digest#sha256:}" ]
}

@test "what is unpacked is exact, down to the nastiest entry" {
	local layout
	layout=$(image_nasty)
	convert "oci:$layout:latest" "oci:$BST_ROOT/image:latest" --level 1
	node_without_fuse
	jq -n --arg ref "oci:$BST_ROOT/image@$digest" '{ociVersion: "1.0.2",
		annotations: {"dev.bootseer.image": $ref}, root: {path: "rootfs"},
		process: {cwd: "/", args: ["true"], user: {uid: 0, gid: 0}}, linux: {namespaces: []}}' \
		>"$BST_ROOT/config.json"
	mkdir -p "$BST_ROOT/bundle/rootfs" "$BST_ROOT/reference"
	mv "$BST_ROOT/config.json" "$BST_ROOT/bundle/config.json"
	# runc will not like the bundle: what matters was done before
	run bootseer create -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	[ -d "$BST_CACHE/unpacked/${digest#sha256:}" ]
	python3 "$bst_lib/ociunpack.py" "$layout" "$BST_ROOT/reference"
	python3 "$bst_lib/treedump.py" "$BST_ROOT/reference" >"$BST_ROOT/want"
	python3 "$bst_lib/treedump.py" "$BST_CACHE/unpacked/${digest#sha256:}" >"$BST_ROOT/got"
	[ "$(wc -l <"$BST_ROOT/want")" -gt 70000 ]
	diff "$BST_ROOT/want" "$BST_ROOT/got" | head -n 20
	cmp "$BST_ROOT/want" "$BST_ROOT/got"
}
