#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 46-hotpublish.bats: hot packs of several nodes that are published at once.
# test-timeout: 90
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/registry.bash
load ../lib/node.bash
load ../lib/faults.bash
load ../lib/hot.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

# published_all: each of the two nodes has said what became of its pack.
published_all() {
	local n
	for n in 1 2; do
		grep -qE 'hot pack of workload .*(published|another node was first)' "$BST_ROOT/n$n/run/bootseerd.log" || return 1
	done
}

# all_published N: workloads that another registry has packs of.
all_published() {
	[ "$(grep -c "published at 'docker://$REGISTRY/" "$BST_RUN/bootseerd.log")" = "$1" ]
}

@test "a registry that takes no upload does not keep others waiting for their packs" {
	local n bad
	registry_start main
	hot_setup 4 "fetch plain_http = $REGISTRY" "hot record_window = 2s" "fetch stall_timeout = 3s"
	bad=$digest
	node_tree "$BST_ROOT/tree2" 4 12
	convert "rootfs:$BST_ROOT/tree2" "docker://$REGISTRY/good:latest" --level 1 --plain-http
	faultproxy_set p '{"method": "POST", "action": "stall"}'
	BST_WORKLOAD=train node_attach bad "$bad" "$BST_ROOT/m-bad" "$SOURCE"
	hot_read bad
	hot_end bad
	for n in 1 2; do
		BST_WORKLOAD=w$n node_attach "g$n" "$digest" "$BST_ROOT/g$n" "docker://$REGISTRY/good"
		find "$BST_ROOT/g$n" -type f -exec cat {} + >/dev/null
		node_detach "$BST_ROOT/g$n"
		node_release "g$n"
	done
	# one silence, and not five with pauses
	bst_wait 12 all_published 2
	grep "stays on this node" "$BST_RUN/bootseerd.log"
	faultproxy_set p
}

@test "two nodes publish their recordings at once: one whole pack" {
	local n pids=()
	hot_setup 16
	node_stop >/dev/null
	# both find none, and then wait for each other
	faultproxy_set p '{"method": "POST", "action": "delay", "seconds": 3}'
	hot_nodes 2
	for n in 1 2; do
		hot_node "$n" hot_start "at$n"
		hot_node "$n" hot_read "at$n" hot "$n"
	done
	for n in 1 2; do
		hot_node "$n" hot_end "at$n" &
		pids+=($!)
	done
	wait "${pids[@]}"
	bst_wait 30 published_all
	faultproxy_set p
	[ "$(faultproxy_count p '.method == "PUT" and (.path | test("/manifests/bootseer-hot"))')" -ge 1 ]
	bst_wait 5 hot_tag
	hot_pack
	bootseerctl hot verify "docker://$REGISTRY/tree:latest" train --plain-http -q
	bst_defer hot_node 3 node_stop
	hot_node 3 node_start
	hot_node 3 hot_start third
	bst_wait 15 hot_node 3 hot_state streamed
	hot_node 3 hot_read third
	hot_node 3 hot_right
}
