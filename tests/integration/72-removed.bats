#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 72-removed.bats: disks that are full, cleared or read-only under the daemon, limits of
# whoever starts it: clear errors, and all is well afterwards.
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
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

create() {
	lazy_run create -b "$BST_ROOT/b" "$@" >"$BST_LOG/create.log" 2>&1 </dev/null
}

# refused TEXT ID: the error says TEXT
refused() {
	local rc=0
	create "$2" || rc=$?
	cat "$BST_LOG/create.log"
	[ $rc = 1 ] && grep -qF -- "$1" "$BST_LOG/create.log"
}

works() {
	create "$1"
	lazy_run start "$1"
	run -0 lazy_run exec "$1" echo whole
	[ "$output" = whole ]
	lazy_run delete -f "$1"
	lazy_no_state
}

@test "the cache is removed under a running daemon: said, and a new worker has a new one" {
	node_start
	rm -rf "${BST_CACHE:?}"/*
	refused "bootseerctl upgrade" k
	bootseerctl upgrade
	works k
	[ -d "$BST_CACHE/images" ]
	[ "$(stat -c %U "$BST_CACHE/images")" = nobody ]
}

@test "a full cache disk: what bootseerd says is what the start says" {
	truncate -s 6M "$BST_ROOT/disk"
	mkfs.ext4 -q "$BST_ROOT/disk"
	mount -o loop "$BST_ROOT/disk" "$BST_CACHE"
	bst_defer lazy_umount "$BST_CACHE"
	dd if=/dev/zero of="$BST_CACHE/fill" bs=1k 2>/dev/null || :
	refused "make '$BST_CACHE/images': No space left on device" k
	rm "$BST_CACHE/fill"
	node_start
	dd if=/dev/zero of="$BST_CACHE/fill" bs=1k 2>/dev/null || :
	refused "No space left on device" k
	rm "$BST_CACHE/fill"
	works k
	node_stop
}

@test "a full or read-only run directory: no start, but deletes" {
	mount -t tmpfs -o size=64k,mode=755 none "$BST_RUN"
	bst_defer lazy_umount "$BST_RUN"
	create k
	dd if=/dev/zero of="$BST_RUN/fill" bs=1k 2>/dev/null || :
	refused "No space left on device" k2
	lazy_run delete -f k
	rm "$BST_RUN/fill"
	lazy_no_state
	create k
	mount --bind "$BST_RUN" "$BST_RUN"
	mount -o remount,bind,ro "$BST_RUN"
	refused "Read-only file system" k2
	lazy_run delete -f k
	[ ! -e "$BST_ROOT/b/rootfs/bin" ]
	umount "$BST_RUN"
	lazy_run delete -f k
	lazy_no_state
	node_stop
}

@test "the starter's limits on file sizes and address space" {
	(
		ulimit -S -f 100
		node_start
	)
	works k
	[ "$(node_status .worker.restarts)" = 0 ]
	node_stop
	(
		ulimit -S -v 400000
		node_start
	)
	works k
	[ "$(node_status .worker.restarts)" = 0 ]
}

@test "an ID that is too long for a name of ours is refused, if there is an image" {
	local id
	id=$(printf '%0220d' 1)
	works "$id"
	refused 'at most 220' "${id}1"
	lazy_unpack_stub a "$BST_ROOT/plain/rootfs"
	rm -r "$BST_ROOT/plain/rootfs/.bootseer"
	mkdir -p "$BST_ROOT/plain/rootfs/bin"
	cp "$(command -v busybox)" "$BST_ROOT/plain/rootfs/bin/"
	jq 'del(.annotations) | .process.args = ["/bin/busybox", "echo", "plain"]' \
		"$BST_ROOT/b/config.json" >"$BST_ROOT/plain/config.json"
	run -0 lazy_run run -b "$BST_ROOT/plain" "${id}1"
	[ "$output" = plain ]
}
