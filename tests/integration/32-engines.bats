#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 32-engines.bats: the swap under real engines, which only have the stub.
# shellcheck disable=SC2016,SC2030,SC2031
# needs: containerd2
# test-timeout: 180

load ../lib/common.bash
load ../lib/shim.bash
load ../lib/containerd.bash
load ../lib/podman.bash

bats_require_minimum_version 1.5.0

setup() {
	bst_setup
	shim_setup
	shim_stub_layout "$BST_ROOT/layout"
	shim_daemon --erofs
	# engines do not hand their environment on
	RUNTIME=$BST_ROOT/runtime
	printf '#!/bin/sh\nBOOTSEER_CONFIG=%s exec %s "$@"\n' "$BOOTSEER_CONFIG" \
		"$BOOTSEER_BUILDDIR/bootseer" >"$RUNTIME"
	chmod 755 "$RUNTIME"
}

teardown() {
	bst_teardown
}

no_state() {
	[ -z "$(ls -A "$BST_RUN/state" 2>/dev/null)" ]
}

engine_containerd() {
	local run=(bctr run --runc-binary "$RUNTIME")
	containerd_start "$1"
	containerd_load "$BST_ROOT/layout" test/stub:1
	run "${run[@]}" --rm test/stub:1 "c1-$BST_ID" cat /etc/origin /var/data/file
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = "from-image
from-image" ]
	no_state
	run "${run[@]}" --rm test/stub:1 "c1-$BST_ID" sh -c 'exit 7'
	[ "$status" = 7 ]
	# ctr 1.6 knows no --user
	user=()
	[ "$1" = 1 ] || user=(--user 1000)
	run "${run[@]}" --rm --read-only "${user[@]}" test/stub:1 "c1-$BST_ID" sh -c 'id -u; echo x >/tmp/x'
	echo "$output"
	[[ $output == *"${user[1]:-0}"* && $output == *"Read-only file system"* ]]
	run "${run[@]}" --rm test/stub:1 "c1-$BST_ID" nonesuch
	[ "$status" != 0 ]
	no_state
	bctr containers rm "c1-$BST_ID" 2>/dev/null || :
	# a long life
	"${run[@]}" -d test/stub:1 "c2-$BST_ID" sh -c 'echo w >/written; rm /etc/origin; sleep 1000'
	bst_wait 10 bctr tasks exec --exec-id e1 "c2-$BST_ID" cat /written
	run bctr tasks exec --exec-id e2 "c2-$BST_ID" cat /var/data/file
	[ "$output" = from-image ]
	bctr snapshots usage "c2-$BST_ID"
	bctr tasks pause "c2-$BST_ID"
	bctr tasks resume "c2-$BST_ID"
	bctr tasks kill -s KILL "c2-$BST_ID"
	bst_wait 10 eval "bctr tasks ls | grep -q STOPPED"
	bctr tasks rm "c2-$BST_ID"
	no_state
	# started again: the snapshot still has what was written
	bctr tasks start -d "c2-$BST_ID"
	bst_wait 10 bctr tasks exec --exec-id e3 "c2-$BST_ID" cat /written
	run bctr tasks exec --exec-id e4 "c2-$BST_ID" cat /etc/origin
	[ "$status" != 0 ]
	bctr tasks kill -s KILL "c2-$BST_ID"
	bst_wait 10 bctr tasks rm -f "c2-$BST_ID"
	bctr containers rm "c2-$BST_ID"
	no_state
	containerd_stop
	[ -z "$(bst_mounts)" ]
}

@test "containerd 1.6: run, read-only, user, exec, kill, start again" {
	engine_containerd 1
}

@test "containerd 2: the same" {
	engine_containerd 2
}

@test "podman: run, exec, restart, stop, start, diff, commit, cp, rm" {
	podman_setup
	export BST_RUNTIME=$RUNTIME
	bpodman import -q "$BST_ROOT/stub.tar" stub
	run bpodman run --rm stub cat /etc/origin /var/data/file
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = "from-image
from-image" ]
	no_state
	run bpodman run --rm stub sh -c 'exit 7'
	[ "$status" = 7 ]
	run -127 bpodman run --rm stub nonesuch
	run bpodman run --rm --read-only --user 1000 stub sh -c 'id -u; echo x >/x'
	[[ $output == *1000* && $output == *"Read-only file system"* ]]
	no_state
	bpodman run -d --name c stub sh -c 'echo w >>/written; rm -f /etc/origin; sleep 1000'
	bst_wait 10 bpodman exec c cat /written
	[ "$(bpodman exec c cat /var/data/file)" = from-image ]
	bpodman restart -t 0 c
	bst_wait 10 eval '[ "$(bpodman exec c cat /written)" = "w
w" ]'
	[ "$(bpodman exec c cat /var/data/file)" = from-image ]
	bpodman stop -t 0 c
	no_state
	bpodman start c
	bst_wait 10 eval '[ "$(bpodman exec c cat /written | wc -l)" = 3 ]'
	run bpodman exec c cat /etc/origin
	[ "$status" != 0 ]
	bpodman container diff c | grep -q '^A /written'
	bpodman commit -q c committed
	bpodman cp c:/written "$BST_ROOT/copied"
	[ "$(wc -l <"$BST_ROOT/copied")" = 3 ]
	bpodman rm -f -t 0 c
	no_state
	# the commit's layer is above the image's
	run bpodman run --rm committed sh -c 'cat /written /var/data/file; [ ! -e /etc/origin ]'
	[ "$status" = 0 ]
	[ "$(grep -c w <<<"$output")" = 3 ]
	[[ $output == *from-image ]]
	no_state
	podman_stop
	[ -z "$(bst_mounts)" ]
}

@test "podman: an image that asks for what cannot be had fails, and can be removed" {
	podman_setup
	export BST_RUNTIME=$RUNTIME
	bpodman import -q "$BST_ROOT/stub.tar" stub
	bst_stop daemon
	run bpodman run --name c stub cat /etc/origin
	echo "$output"
	[ "$status" = 126 ]
	[[ $output == *"bootseerd is not running"* ]]
	bpodman rm -f c
	no_state
	podman_stop
	[ -z "$(bst_mounts)" ]
}
