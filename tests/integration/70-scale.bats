#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 70-scale.bats: many containers at once, and helpers that are stopped or killed at any
# moment: nothing is left, nothing grows.
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
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

# other_image NAME: busybox and a file more.
other_image() {
	local t=$BST_ROOT/other-$1 base
	base=$(image_busybox)
	mkdir -p "$t.root/etc"
	echo "$1" >"$t.root/etc/other"
	gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" 0)" >"$t.0.tar"
	images_tar "$t.root" >"$t.1.tar"
	"${bst_lib:?}/ocilayout.py" "$t" "$t.0.tar" "$t.1.tar"
	lazy_publish "$t" "$1"
}

# facts: numbers that must not grow
facts() {
	local role pid
	for role in supervisor keeper worker; do
		pid=$(node_pid "$role")
		printf '%s-fds %d\n' "$role" "$(find "/proc/$pid/fd" -mindepth 1 | wc -l)"
		printf '%s-threads %d\n' "$role" "$(find "/proc/$pid/task" -mindepth 1 -maxdepth 1 | wc -l)"
		printf '%s-mounts %d\n' "$role" "$(grep -c "$BST_ID" "/proc/$pid/mountinfo")"
	done
	printf 'processes %d\n' "$(bst_processes | wc -l)"
	printf 'mounts %d\n' "$(bst_mounts | wc -l)"
	printf 'entries %d\n' "$(find "$BST_RUN" "$BST_STATE" -not -path '*/timeline/*' | wc -l)"
}

# rss ROLE: kB
rss() {
	awk '/^VmRSS/ { print $2 }' "/proc/$(node_pid "$1")/status"
}

# one BUNDLE ID: a whole life
one() {
	local shim=("$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci")
	mkdir "$BST_ROOT/$2" "$BST_ROOT/$2/rootfs" &&
		sed "s,/bst-$BST_ID/[a-z]*,/bst-$BST_ID/$2," "$1/config.json" >"$BST_ROOT/$2/config.json" &&
		"${shim[@]}" create -b "$BST_ROOT/$2" "$2" >"$BST_ROOT/$2/log" 2>&1 </dev/null &&
		"${shim[@]}" start "$2" >>"$BST_ROOT/$2/log" 2>&1 &&
		"${shim[@]}" delete -f "$2" >>"$BST_ROOT/$2/log" 2>&1 && rm -rf "${BST_ROOT:?}/$2" && return 0
	echo "$2: $(cat "$BST_ROOT/$2/log")"
	return 1
}

@test "200 containers of three images, 20 at a time: no leak of anything" {
	local name i role
	lazy_publish "$(image_busybox)" a
	other_image b
	other_image c
	for name in a b c; do
		lazy_bundle "$BST_ROOT/$name" "$name" busybox true
		one "$BST_ROOT/$name" "warm-$name"
	done
	bst_wait 20 eval '[ "$(node_status "[.served.images[] | select(.complete)] | length")" = 3 ]'
	bst_wait 10 lazy_no_state
	facts >"$BST_ROOT/before"
	for role in supervisor keeper worker; do rss $role >"$BST_ROOT/rss-$role"; done
	export -f one
	SECONDS=0
	for ((i = 0; i < 200; i++)); do
		name=abc
		printf '%s %s\n' "$BST_ROOT/${name:i%3:1}" "n$i"
	done | xargs -P 20 -L 1 bash -c 'one "$@"' _ 3>&- 4>&-
	echo "# 200 containers in $SECONDS s" >&3
	bst_wait 10 lazy_no_state
	[ "$(node_status .worker.restarts)" = 0 ]
	facts >"$BST_ROOT/after"
	# connections that rest are closed sooner or later
	awk 'NR == FNR { before[$1] = $2; next }
		$2 > before[$1] { print $1 ": " before[$1] ", then " $2; grown = 1 }
		END { exit grown }' "$BST_ROOT/before" "$BST_ROOT/after"
	for role in supervisor keeper worker; do
		echo "# $role: VmRSS $(cat "$BST_ROOT/rss-$role") kB before, $(rss $role) kB after" >&3
		[ "$(rss $role)" -lt $(($(cat "$BST_ROOT/rss-$role") + 8192)) ]
	done
	[ "$(rss supervisor)" -lt 20480 ]
	[ "$(rss keeper)" -lt 20480 ]
	[ "$(rss worker)" -lt 131072 ]
}

@test "delete ends though the worker is stopped, also when the container waits for it" {
	lazy_node "fetch background = no"
	lazy_publish "$(image_busybox)" a
	other_image b
	lazy_bundle "$BST_ROOT/b" a sleep 1000
	lazy_run create -b "$BST_ROOT/b" idle >"$BST_LOG/c.log" 2>&1 </dev/null
	lazy_run start idle
	lazy_bundle "$BST_ROOT/r" b sh -c 'echo up; read x; exec cat /bin/busybox /etc/passwd /etc/other'
	mkfifo "$BST_ROOT/in"
	lazy_run create -b "$BST_ROOT/r" reads >"$BST_ROOT/out" 2>&1 <>"$BST_ROOT/in"
	lazy_run start reads
	bst_wait 10 grep -q up "$BST_ROOT/out"
	kill -STOP "$(node_pid worker)"
	worker=$(node_pid worker)
	echo 3 >/proc/sys/vm/drop_caches
	echo go >"$BST_ROOT/in"
	sleep 0.5
	SECONDS=0
	lazy_run delete -f idle
	echo "idle: $SECONDS s"
	[ $SECONDS -le 8 ]
	SECONDS=0
	lazy_run delete -f reads || lazy_run delete -f reads
	echo "reads: $SECONDS s"
	[ $SECONDS -le 20 ]
	kill -CONT "$worker"
	bst_wait 10 lazy_no_state
	[ -z "$(bst_mounts)" ]
}

@test "kill -9 of the shim at any moment of create, then delete -f: nothing is left" {
	local i pid us
	lazy_publish "$(image_busybox)" a
	lazy_bundle "$BST_ROOT/b" a sleep 1000
	lazy_run create -b "$BST_ROOT/b" warm >"$BST_LOG/c.log" 2>&1 </dev/null
	lazy_run delete -f warm
	for ((i = 0; i < 40; i++)); do
		"$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" create -b "$BST_ROOT/b" k \
			>>"$BST_LOG/c.log" 2>&1 </dev/null 3>&- 4>&- &
		pid=$!
		us=$((RANDOM % 100 + 1))
		sleep "0.$(printf %03d $us)"
		kill -KILL $pid 2>/dev/null || :
		lazy_run delete -f k >>"$BST_LOG/c.log" 2>&1 || :
		if [ -n "$(bst_mounts)" ] || ! lazy_no_state; then
			echo "round $i, $us ms: $(bst_mounts)"
			return 1
		fi
	done
	for pid in $(bst_processes); do
		[[ $(tr '\0' ' ' <"/proc/$pid/cmdline") != *runc* ]]
	done
	bst_wait 5 lazy_no_state
	# the name is free and the bundle as it was
	lazy_command "$BST_ROOT/b" echo fine
	run -0 lazy_run run -b "$BST_ROOT/b" k
	[ "$output" = fine ]
}
