#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 71-races.bats: two that are at one container at once: creates of one name, and a delete
# of what is being created. Nothing is left, and what runs is whole.
# shellcheck disable=SC2016,SC2030,SC2031
# test-timeout: 240

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash

bats_require_minimum_version 1.5.0

setup() {
	bst_setup
	registry_start main
	lazy_node
	lazy_publish "$(image_busybox)" a
	lazy_bundle "$BST_ROOT/b" a sleep 1000
	lazy_bundle "$BST_ROOT/c" a sleep 1000
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

# create BUNDLE ID: in the background; pid of it
create() {
	"$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" create -b "$1" "$2" \
		>>"$BST_LOG/create-${1##*/}.log" 2>&1 </dev/null 3>&- 4>&- &
	pid=$!
}

nothing_left() {
	local mounts
	mounts=$(bst_mounts)
	echo "$mounts"
	lazy_no_state && [ -z "$mounts" ]
}

@test "two creates of one name at once: one container, of one of them, and nothing is left" {
	local i pid one two r
	for ((i = 0; i < 20; i++)); do
		create "$BST_ROOT/b" k
		one=$pid
		create "$BST_ROOT/c" k
		two=$pid
		r=0
		wait "$one" || r=$((r + 1))
		wait "$two" || r=$((r + 1))
		echo "round $i: $r failed"
		[ $r = 1 ]
		lazy_run start k
		lazy_run delete -f k
		nothing_left
	done
}

@test "delete -f of what another process is creating leaves that whole" {
	local pid
	# the image's source cannot be reached yet
	registry_stop main
	create "$BST_ROOT/b" k
	bst_wait 10 eval 'ls "$BST_RUN"/state/k@*.json'
	SECONDS=0
	run -0 lazy_run delete -f k
	[ $SECONDS -le 7 ]
	[[ $output = *"container 'k' is being created"* ]]
	registry_start main --port "${REGISTRY##*:}"
	wait "$pid"
	ls "$BST_RUN"/state/k@*.json
	lazy_run start k
	run -0 lazy_run exec k echo whole
	[ "$output" = whole ]
	lazy_run delete -f k
	nothing_left
}

@test "delete -f at any moment of create" {
	local i pid r
	lazy_run create -b "$BST_ROOT/c" warm >"$BST_LOG/warm.log" 2>&1 </dev/null
	for ((i = 0; i < 30; i++)); do
		create "$BST_ROOT/b" k
		sleep "0.$(printf %03d $((RANDOM % 100)))"
		lazy_run delete -f k >"$BST_LOG/deleted.log" 2>&1 || :
		cat "$BST_LOG/deleted.log" >>"$BST_LOG/delete.log"
		r=0
		wait "$pid" || r=$?
		# runc's own delete may take half of what its create is making
		if [ $r = 0 ] && [ -e "$BST_STATE/oci/k" ] && ! grep -q 'directory not empty' "$BST_LOG/deleted.log"; then
			lazy_run start k
		fi
		lazy_run delete -f k >>"$BST_LOG/delete.log" 2>&1 || :
		[ ! -e "$BST_ROOT/b/rootfs/bin" ]
		[ -z "$(ls "$BST_RUN"/state/k@* 2>/dev/null)" ]
	done
	lazy_run delete -f warm
	nothing_left
}

@test "bootseerd killed while a create waits for its image: the next one gives it" {
	local pid victim
	registry_stop main
	create "$BST_ROOT/b" k
	bst_wait 10 node_pid supervisor
	for victim in supervisor supervisor keeper; do
		bst_wait 10 eval '[ "$(node_status .mounts[0].mounted)" = false ]'
		# the second time all of them, so that nobody takes over
		[ $victim = supervisor ] || kill -KILL "$(node_pid keeper)" "$(node_pid worker)"
		kill -KILL "$(node_pid supervisor)" || :
	done
	registry_start main --port "${REGISTRY##*:}"
	wait "$pid"
	lazy_run start k
	run -0 lazy_run exec k echo whole
	[ "$output" = whole ]
	lazy_run delete -f k
	nothing_left
}

@test "a runtime's root that the first create makes, behind a link or relative" {
	local shim=$BOOTSEER_BUILDDIR/bootseer root
	mkdir -p "$BST_ROOT/real/dir"
	ln -s real "$BST_ROOT/link"
	cd "$BST_ROOT/real/dir"
	for root in "$BST_ROOT/link/one" "$BST_ROOT/./link//dir/../two/deep/" three ../four; do
		"$shim" --root "$root" create -b "$BST_ROOT/b" k >"$BST_LOG/c.log" 2>&1 </dev/null 3>&- 4>&-
		"$shim" --root "$root" start k
		"$shim" --root "$root" delete -f k
		nothing_left
	done
	cd /
}
