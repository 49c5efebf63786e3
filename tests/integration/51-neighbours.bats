#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 51-neighbours.bats: what one start names, a dead source above all, harms no other start,
# of the same image or of another.
# shellcheck disable=SC2016,SC2030,SC2031
# test-timeout: 120

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/node.bash
load ../lib/faults.bash

bats_require_minimum_version 1.5.0

setup() {
	bst_setup
	registry_start main
	GOOD=docker://$REGISTRY/tree
	faults_setup 6 "fetch background = no" "fetch plain_http = $REGISTRY" "fetch read_wait = 5s" \
		"fetch start_wait = 20s"
}

teardown() {
	bst_teardown
}

# waiting NAME DIGEST: a start that waits for the dead source
waiting() {
	mkdir -p "$BST_ROOT/wait-$1"
	bst_spawn "wait-$1" "$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "$1" "$2" \
		"$BST_ROOT/wait-$1" "$SOURCE"
}

# quick: a start with the good source, which must not wait
quick() {
	SECONDS=0
	node_attach quick "${digest:?}" "$BST_ROOT/m" "$GOOD"
	echo "$SECONDS s"
	[ $SECONDS -lt 5 ]
	faults_check 2
}

@test "a mount whose source died is read from the place that a later start names" {
	node_attach first "$digest" "$BST_ROOT/first" "$SOURCE"
	faultproxy_stop p
	quick
	node_release first
	# also by the next worker
	kill -KILL "$(node_pid worker)"
	echo 3 >/proc/sys/vm/drop_caches
	faults_check 2 5
}

@test "the same image, for which another start waits at a dead source" {
	local pid
	faultproxy_stop p
	waiting one "$digest"
	sleep 1
	quick
	# who waited has it as well
	pid=$(bst_pid wait-one)
	bst_wait 5 bst_dead "$pid"
	mountpoint "$BST_ROOT/wait-one"
	bst_defer node_detach "$BST_ROOT/wait-one"
}

@test "who named a good and who named a bad place hear of their own" {
	faultproxy_stop p
	waiting one "$digest"
	sleep 0.5
	# the registry is there, the image is not: told at once
	SECONDS=0
	run -1 "$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" two "$digest" "$BST_ROOT" \
		"docker://$REGISTRY/absent"
	[ $SECONDS -lt 5 ]
	[[ $output = *absent* ]]
	bst_alive "$(bst_pid wait-one)"
	quick
	bst_wait 5 mountpoint "$BST_ROOT/wait-one"
	bst_defer node_detach "$BST_ROOT/wait-one"
}

@test "another image, while many starts wait at a dead source" {
	local i
	faultproxy_stop p
	for ((i = 10; i < 60; i++)); do
		waiting $i "sha256:$i$(printf '%062d' 7)"
	done
	sleep 1
	quick
	for ((i = 10; i < 60; i++)); do
		bst_alive "$(bst_pid "wait-$i")"
	done
}

@test "mirrors that accept and never answer cost a start little, and the next nothing" {
	local i silent=()
	node_stop
	cat >"$BST_ROOT/silent.py" <<-'P'
		import socket, sys, time
		s = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100)
		time.sleep(1000)
	P
	for i in 1 2 3; do
		silent[i]=127.0.0.1:$(bst_free_port)
		bst_spawn "silent-$i" python3 "$BST_ROOT/silent.py" "${silent[i]##*:}"
		bst_wait 10 eval ': <"/dev/tcp/127.0.0.1/${silent[i]##*:}"'
	done
	node_conf "fetch background = no" "fetch stall_timeout = 2s" "fetch plain_http = $REGISTRY" \
		"fetch plain_http = ${silent[*]}"
	node_start
	SECONDS=0
	node_attach first "$digest" "$BST_ROOT/m" "docker://${silent[1]}/tree" \
		"docker://${silent[2]}/tree" "docker://${silent[3]}/tree" "$GOOD"
	echo "first: $SECONDS s"
	[ $SECONDS -ge 4 ] # they were asked
	[ $SECONDS -le 12 ]
	node_tree "$BST_ROOT/tree2" 1 12
	convert "rootfs:$BST_ROOT/tree2" "docker://$REGISTRY/tree:two" --level 1 --plain-http
	SECONDS=0
	node_attach second "$digest" "$BST_ROOT/m2" "docker://${silent[1]}/tree" \
		"docker://${silent[2]}/tree" "docker://${silent[3]}/tree" "$GOOD"
	echo "second: $SECONDS s"
	[ $SECONDS -le 2 ]
}
