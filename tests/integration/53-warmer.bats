#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 53-warmer.bats: index, lists and warmer on a real mount: what is told, and nothing else,
# gets into the page cache, and nobody is the worse for it.
# shellcheck disable=SC2154,SC2317 # digest: set by convert; functions that bst_wait calls

load ../lib/common.bash
load ../lib/node.bash

setup() {
	bst_setup
	warm=$BOOTSEER_BUILDDIR/tests/lib/bst-warm
	readers=$BATS_TEST_DIRNAME/../lib/readers.py
	node_tree "$BST_ROOT/tree" 96 5
	cp "$BST_ROOT/tree/d3/f3" "$BST_ROOT/tree/d3/twin"
	ln "$BST_ROOT/tree/d3/f3" "$BST_ROOT/tree/a-link"
	(cd "$BST_ROOT/tree" && find . -type f -printf '%P\n' | sort) >"$BST_ROOT/names"
	python3 "$readers" sums "$BST_ROOT/tree" >"$BST_ROOT/sums"
	convert "rootfs:$BST_ROOT/tree" "oci:$BST_ROOT/image:latest" --level 1
	node_conf "fetch background = no"
	node_start
	[ "$(node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image")" = lazy ]
	entry=$BST_CACHE/images/${digest#sha256:}
}

teardown() {
	bst_teardown
}

# cached: what is cached of the image's files, in order.
cached() {
	xargs -d '\n' "$warm" cached "$BST_ROOT/m" <"$BST_ROOT/names" | sort
}

# make_list: every third run of pages of some files, in an order of no sense.
make_list() {
	python3 - "$BST_ROOT/tree" "$BST_ROOT/names" <<'P'
import os, random, sys
top, names = sys.argv[1:]
rand, lines = random.Random(3), []
for name in open(names).read().splitlines():
    pages = (os.path.getsize(f"{top}/{name}") + 4095) // 4096
    page = rand.randrange(5)
    if name in ("d3/f3", "d3/twin", "a-link"):
        continue
    while page < pages and rand.random() < 0.995:
        n = min(rand.choice([1, 2, 7, 40, 100]), pages - page)
        lines.append(f"{page} {n} {name}")
        page += n + rand.randrange(1, 3 * n + 3)
rand.shuffle(lines)
print("\n".join(lines))
P
}

@test "what the warmer is told is cached, and nothing else" {
	make_list >"$BST_ROOT/list"
	[ "$(wc -l <"$BST_ROOT/list")" -gt 100 ]
	[ -z "$(cached)" ]
	"$warm" play "$BST_ROOT/m" "$entry/tree" "$BST_ROOT/list"
	sort "$BST_ROOT/list" >"$BST_ROOT/want"
	cached_is_wanted() { diff "$BST_ROOT/want" <(cached); }
	bst_wait 10 cached_is_wanted
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 2
}

@test "files that share blocks are all warmed" {
	echo "0 1 d3/f3" >"$BST_ROOT/list"
	"$warm" play "$BST_ROOT/m" "$entry/tree" "$BST_ROOT/list"
	cached_is_wanted() { diff <(printf '%s\n' '0 1 a-link' '0 1 d3/f3' '0 1 d3/twin') <(cached); }
	bst_wait 10 cached_is_wanted
}

@test "a warmer whose memory is short reads nothing" {
	local group=/sys/fs/cgroup/memory/$BST_ID-short limit=memory.limit_in_bytes
	if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
		group=/sys/fs/cgroup/$BST_ID-short limit=memory.max
	fi
	make_list >"$BST_ROOT/list"
	mkdir "$group" || skip "no control group for memory"
	bst_defer rmdir "$group"
	[ -f "$group/$limit" ] || skip "no limit of memory can be set"
	# less than it leaves free at least
	echo $((12 << 20)) >"$group/$limit"
	# shellcheck disable=SC2016
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$warm" play "$BST_ROOT/m" "$entry/tree" "$BST_ROOT/list"
	[ -z "$(cached)" ]
	"$warm" play "$BST_ROOT/m" "$entry/tree" "$BST_ROOT/list"
	[ -n "$(cached)" ]
}

@test "a worker that dies while the warmer reads is no harm" {
	make_list >"$BST_ROOT/list"
	"$warm" play "$BST_ROOT/m" "$entry/tree" "$BST_ROOT/list" &
	local player=$! pid
	for _ in 1 2 3; do
		sleep 0.1
		pid=$(node_pid worker)
		[ "${pid:-0}" -le 1 ] || kill -KILL "$pid" || :
	done
	wait "$player"
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 2
}
