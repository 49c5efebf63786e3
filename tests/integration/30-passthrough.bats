#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 30-passthrough.bats: a container that is not ours meets only its runtime.

# shellcheck disable=SC2030,SC2031

load ../lib/common.bash
load ../lib/shim.bash

setup() {
	bst_setup
	shim_setup
}

teardown() {
	bst_teardown
}

# a runtime that tells what it was given
spy() {
	cat >"$BST_ROOT/spy" <<-'END'
		#!/bin/bash
		printf '%s\n' "$#" "$@" "$PWD" "$SPY" >"$SPY"
		cd /proc/$$/fd
		printf '%s\n' * >"$SPY.fds"
		sed -n 's/^Sig\(Blk\|Ign\):\t//p' /proc/self/status >"$SPY.signals"
		[ ! -t 5 ] && cat <&5 >"$SPY.five" 2>/dev/null
		exit 42
	END
	chmod 755 "$BST_ROOT/spy"
	shim_conf "[runtime]" "runtime = $BST_ROOT/spy"
}

@test "argv, directory, environment, descriptors and exit code go through" {
	spy
	shim_bundle "$BST_ROOT/b" true
	export SPY=$BST_ROOT/said
	echo five >"$BST_ROOT/five"
	cd "$BST_ROOT/b"
	run "$BST_ROOT/spy" 5<"$BST_ROOT/five" 3>&- 4>&-
	plain=$(cat "$SPY.fds")
	for words in 'state x' '--foo bar --root=/r kill x 9' 'create --new y --bundle . x' \
		'delete -f x' 'run --preserve-fds 3 x' 'restore x' '' 'exec x a "b  c"'; do
		eval "set -- $words"
		run "$BOOTSEER_BUILDDIR/bootseer" "$@" 5<"$BST_ROOT/five" 3>&- 4>&-
		[ "$status" = 42 ]
		[ "$(cat "$SPY")" = "$(printf '%s\n' "$#" "$@" "$BST_ROOT/b" "$SPY")" ]
		[ "$(cat "$SPY.five")" = five ]
		[ "$(cat "$SPY.fds")" = "$plain" ]
	done
}

@test "blocked and ignored signals go through" {
	spy
	export SPY=$BST_ROOT/said
	run env --ignore-signal=USR1 --block-signal=USR2 "$BOOTSEER_BUILDDIR/bootseer" state x 3>&- 4>&-
	[ "$status" = 42 ]
	mv "$SPY.signals" "$SPY.signals1"
	run env --ignore-signal=USR1 --block-signal=USR2 "$BST_ROOT/spy" state x 3>&- 4>&-
	cmp "$SPY.signals" "$SPY.signals1"
}

@test "config.json is not touched, whatever it holds, when there is nothing for us" {
	spy
	export SPY=$BST_ROOT/said
	mkdir -p "$BST_ROOT/b/rootfs"
	for text in '{"root":{"path":"rootfs"},"ROOT":{"path":"x"},"root":{"path":"rootfs"}}' \
		'not json' '' '{"root":{"path":"/nonexistent"}}' '/* x */ {"root":{"path":"rootfs"}}'; do
		printf %s "$text" >"$BST_ROOT/b/config.json"
		run shim create -b "$BST_ROOT/b" x
		[ "$status" = 42 ]
		[ "$(cat "$BST_ROOT/b/config.json")" = "$text" ]
	done
	rm "$BST_ROOT/b/config.json"
	run shim create -b "$BST_ROOT/b" x
	[ "$status" = 42 ]
	run shim create -b "$BST_ROOT/nonexistent" x
	[ "$status" = 42 ]
	[ ! -e "$BST_RUN/state" ]
}

@test "runc: run, exit code, create, start, exec, kill, delete" {
	shim_bundle "$BST_ROOT/b" sh -c 'echo hello; exit 9'
	shim_tree "$BST_ROOT/b/rootfs"
	before=$(sha256sum <"$BST_ROOT/b/config.json")
	run shim run -b "$BST_ROOT/b" "c-$BST_ID"
	[ "$status" = 9 ]
	[ "$output" = hello ]
	[ "$(sha256sum <"$BST_ROOT/b/config.json")" = "$before" ]
	shim_edit "$BST_ROOT/b" '.process.args = ["sleep", "100"]'
	shim create -b "$BST_ROOT/b" "c-$BST_ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	shim start "c-$BST_ID"
	run shim exec "c-$BST_ID" sh -c 'exit 3'
	[ "$status" = 3 ]
	shim kill "c-$BST_ID" KILL
	bst_wait 10 eval "shim state c-$BST_ID | grep -q stopped"
	shim delete "c-$BST_ID"
	shim_clean
}

@test "crun works as the runtime" {
	bst_require crun
	shim_bundle "$BST_ROOT/b" sh -c 'echo hello; exit 9'
	shim_tree "$BST_ROOT/b/rootfs"
	shim_conf "[runtime]" "runtime = crun"
	shim_daemon --erofs
	# crun of Debian 12 refuses the hybrid hierarchy
	in_ns() {
		unshare -m sh -c '! mountpoint -q /sys/fs/cgroup/unified || umount -l /sys/fs/cgroup/unified
			exec "$@"' - "$@" 3>&- 4>&-
	}
	rc=0
	in_ns crun --root "$BST_STATE/crun" run -b "$BST_ROOT/b" "c-$BST_ID" || rc=$?
	[ $rc = 9 ] || bst_skip "crun does not run here"
	run in_ns "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$BST_ROOT/b" "c-$BST_ID"
	[ "$status" = 9 ]
	[ "$output" = hello ]
	rm -rf "$BST_ROOT/b/rootfs"
	mkdir "$BST_ROOT/b/rootfs"
	shim_stub "$BST_ROOT/b/rootfs"
	run in_ns "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$BST_ROOT/b" "c-$BST_ID"
	[ "$status" = 9 ]
	[ "$output" = hello ]
	shim_clean
}

@test "--version and features say a word about us" {
	run shim --version
	[ "$status" = 0 ]
	[[ ${lines[0]} == "runc version "* ]]
	[[ ${lines[-1]} == "bootseer: "* ]]
	run shim features
	[ "$status" = 0 ]
	[ -n "$(jq -r '.annotations["dev.bootseer.version"]' <<<"$output")" ]
	[ "$(jq -S 'del(.annotations["dev.bootseer.version"])' <<<"$output")" = "$(runc features | jq -S .)" ]
	run shim features --help
	[ "$output" = "$(runc features --help)" ]
}

@test "a runtime that is missing, or is ourselves, is told of" {
	shim_conf "[runtime]" "runtime = nonesuch-$BST_ID"
	run shim --log "$BST_ROOT/l" --log-format json state x
	[ "$status" = 1 ]
	[[ $output == *"nonesuch-$BST_ID"*"$BOOTSEER_CONFIG"* ]]
	[ "$(jq -r .level "$BST_ROOT/l")" = error ]
	jq -r .msg "$BST_ROOT/l" | grep -q nonesuch
	shim_conf "[runtime]" "runtime = $BOOTSEER_BUILDDIR/bootseer"
	run shim state x
	[ "$status" = 1 ]
	[[ $output == *itself* ]]
}

@test "a broken configuration stops create, not delete" {
	shim_bundle "$BST_ROOT/b" true
	shim_conf "nonsense = 1"
	run shim create -b "$BST_ROOT/b" x
	[ "$status" = 1 ]
	[[ $output == *"$BOOTSEER_CONFIG"*"nonsense"* ]]
	run shim delete -f x
	[ "$status" = 0 ]
	run shim list
	[ "$status" = 0 ]
}
