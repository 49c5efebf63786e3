#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 41-systemd.bats: what bootseerd does with a service manager: its socket, being
# ready, and descriptors that outlive all of its processes.
# shellcheck disable=SC2016,SC2034,SC2154
# test-timeout: 200

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/registry.bash
load ../lib/node.bash

setup() {
	bst_setup
	unit=${bst_lib:?}/fakesystemd.py
	events=$BST_ROOT/events
	readers=$bst_lib/readers.py
}

teardown() {
	bst_teardown
}

# unit_start: as `systemctl start bootseerd.socket bootseerd.service`.
unit_start() {
	bst_spawn unit "$unit" "$BST_RUN/bootseerd.sock" "$events" \
		"$BOOTSEER_BUILDDIR/bootseerd" --config "$BOOTSEER_CONFIG"
	bst_wait 10 grep -qx ready "$events"
}

# unit_pids: its processes, without the manager.
unit_pids() {
	pgrep -f -- "^$BOOTSEER_BUILDDIR/bootseerd .*--config $BOOTSEER_CONFIG"
}

tree_image() {
	node_tree "$BST_ROOT/tree" "$1" 7
	python3 "$readers" sums "$BST_ROOT/tree" >"$BST_ROOT/sums"
}

count() {
	grep -cx "$1" "$events" || :
}

@test "the socket is the manager's: served, kept when the daemon ends" {
	node_conf
	unit_start
	[ "$(head -n 1 "$events")" = "start with 1" ]
	bootseerctl status | grep -q '^bootseerd '
	bst_stop unit
	[ "$(tail -n 1 "$events")" = "main process ended" ]
	[ "$(count stopping)" = 1 ]
	[ -S "$BST_RUN/bootseerd.sock" ]
	node_gone
}

@test "no child believes the manager's variables meant for it" {
	local role
	node_conf
	unit_start
	bst_wait 5 eval '[ "$(node_status .worker.ready)" = true ]'
	for role in keeper worker; do
		run grep -zE '^(LISTEN_|NOTIFY_SOCKET)' "/proc/$(node_pid $role)/environ"
		[ "$status" = 1 ]
	done
}

@test "a daemon that the shim starts does not speak to the engine's manager" {
	node_conf
	python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(3)
try:
    print(s.recv(100))
except TimeoutError:
    print("silence")' "$BST_ROOT/notify" >"$BST_ROOT/heard" 3>&- 4>&- &
	listener=$!
	bst_wait 5 test -S "$BST_ROOT/notify"
	NOTIFY_SOCKET=$BST_ROOT/notify LISTEN_PID=1 LISTEN_FDS=1 node_start
	wait "$listener"
	[ "$(cat "$BST_ROOT/heard")" = silence ]
}

@test "all processes killed: readers wait and get the right bytes, the mount stays" {
	local device
	tree_image 192
	netns_create reg
	registry_start main --netns reg
	convert "rootfs:$BST_ROOT/tree" "docker://$REGISTRY/tree:latest" --level 1 --plain-http
	netns_rate reg 400mbit
	node_conf "fetch background = no" "fetch plain_http = $REGISTRY"
	unit_start
	node_attach one "$digest" "$BST_ROOT/m" "docker://$REGISTRY/tree"
	device=$(stat -c %d "$BST_ROOT/m")
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 8 3>&- 4>&- &
	reading=$!
	for i in 1 2 3; do
		sleep 0.7
		# shellcheck disable=SC2046
		kill -KILL $(unit_pids) 2>/dev/null || :
		bst_wait 10 eval '[ "$(count ready)" -gt $i ]'
	done
	wait "$reading"
	# socket, fuse, fuse-mount, epoch, the image's mount
	[ "$(grep '^start' "$events" | tail -n 1)" = "start with 5" ]
	# a new container finds the mount that was kept
	node_attach two "$digest" "$BST_ROOT/m2" "docker://$REGISTRY/tree"
	[ "$(stat -c %d "$BST_ROOT/m2")" = "$device" ]
	[ "$(node_status '.mounts[0].containers')" = 2 ]
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 4
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
}

@test "an unused image's mount is dropped at the manager too" {
	tree_image 2
	convert "rootfs:$BST_ROOT/tree" "oci:$BST_ROOT/image:latest" --level 1
	node_conf "node keep_mounts = 1s" "fetch background = no"
	unit_start
	node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	# with the number of its bdi behind
	bst_wait 5 grep -qx "store lazy@${digest/:/@}@[a-z0-9-]*" "$events"
	node_release one
	bst_wait 10 grep -qx "remove lazy@${digest/:/@}@[a-z0-9-]*" "$events"
}

@test "a socket of another kind is refused" {
	node_conf
	run python3 - "$BOOTSEER_BUILDDIR/bootseerd" "$BOOTSEER_CONFIG" <<-'P'
		import os, socket, sys
		s = socket.socket()
		s.bind(("127.0.0.1", 0))
		s.listen()
		fd = os.dup(s.fileno())
		os.dup2(fd, 3, inheritable=True)
		os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="bootseerd")
		os.execv(sys.argv[1], [sys.argv[1], "--config", sys.argv[2]])
	P
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *ListenSequentialPacket* ]]
}
