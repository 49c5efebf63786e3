#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 90-quickstart.bats: what README tells a newcomer to run works, and leaves nothing.
# test-timeout: 400

load ../lib/common.bash
load ../lib/images.bash

bats_require_minimum_version 1.5.0

quickstart=${BATS_TEST_DIRNAME:?}/../../contrib/quickstart

setup() {
	bst_setup
	bst_require runc || return 1
	export TMPDIR=$BST_ROOT/tmp
	mkdir "$TMPDIR"
}

teardown() {
	bst_teardown
}

# nothing_left: the show's directory, and cgroups of its containers.
nothing_left() {
	local left
	left=$(ls -A "$TMPDIR"; find /sys/fs/cgroup -maxdepth 3 -name "*-${1:-none}")
	[ -z "$left" ] || { echo "left: $left"; return 1; }
	[ -z "$(bst_mounts)" ] || { bst_mounts; return 1; }
	[ -z "$(bst_processes)" ]
}

@test "the sample starts cold, warm, and with its hot pack on another node; all is removed" {
	local id
	run --separate-stderr "$quickstart" 3>&- 4>&-
	echo "$output" "$stderr"
	[ "$status" = 0 ]
	[ "$(grep -c 'container says: Python 3' <<<"$output")" = 3 ]
	id=$(sed -n 's/^cold-\([A-Za-z0-9]*\)  .*/\1/p' <<<"$output")
	[ -n "$id" ]
	# the daemon of a node is started once, by the first container
	[ "$(grep -c '| daemon-start ' <<<"$output")" = 2 ]
	[ "$(grep -c '| acquire ' <<<"$output")" = 3 ]
	[ "$(grep -c '| prepare ' <<<"$output")" = 2 ]
	# another node has the first start's hot pack
	grep -qE '^python3-[0-9a-f]{16} .* current ' <<<"$output"
	[ "$(grep -c '| hot-pack ' <<<"$output")" = 1 ]
	grep -qE '^hot python3-[0-9a-f]{16} of .*  streamed' <<<"$output"
	grep -q "^warm-$id  " <<<"$output"
	# lazily: not all of it was fetched
	grep -qE '^image sha256:.*[ ,][1-9][0-9]?% here, .* mounted lazily, 0 containers$' <<<"$output"
	[[ $output != *oci:oci:* ]]
	nothing_left "$id"
}

@test "another image than the sample" {
	local layout
	layout=$(image_busybox)
	run "$quickstart" --image "oci:$layout:latest" 3>&- 4>&-
	echo "$output"
	[ "$status" = 0 ]
	grep -q '^warm-' <<<"$output"
	nothing_left
}

@test "an image that is not there: a clear end, and nothing is left" {
	run "$quickstart" --image "oci:$BST_ROOT/nowhere:latest" 3>&- 4>&-
	echo "$output"
	[ "$status" != 0 ]
	[[ $output == *"$BST_ROOT/nowhere"* ]]
	nothing_left
}

@test "what root has built in the checkout of another is theirs" {
	local copy=$BST_ROOT/checkout
	install -d -o 1234 -g 1235 "$copy" "$copy/contrib"
	cp "${quickstart%/*}/lib.sh" "$copy/contrib"
	mkdir "$copy/build"
	echo x >"$copy/build/config.h"
	ln "$copy/build/config.h" "$BST_ROOT/elsewhere"
	echo x >"$copy/build/Makefile"
	bash -c '. "$1/contrib/lib.sh" && give_back' - "$copy"
	[ "$(stat -c %u:%g "$copy/build" "$copy/build/Makefile" "$copy/contrib/lib.sh" | sort -u)" = 1234:1235 ]
	[ "$(stat -c %u "$BST_ROOT/elsewhere")" = 0 ]
}

@test "help, and packages only" {
	run --separate-stderr "$quickstart" --help
	[ "$status" = 0 ]
	[ -z "$stderr" ]
	[[ $output == *--deps-only* ]]
	[ "$(awk 'length > 80' <<<"$output")" = "" ]
	run "$quickstart" --deps-only
	[ "$status" = 0 ]
	[ "$output" = "" ]
}
