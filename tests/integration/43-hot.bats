#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 43-hot.bats: a start is recorded, its hot pack published, found and streamed.
# timeout: 500
# test-timeout: 120
# needs: image-python
# shellcheck disable=SC2154,SC2016,SC2119,SC2120

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash
load ../lib/cache.bash
load ../lib/netns.bash

setup() {
	bst_setup
	bst_defer lazy_cgroups_gone
}

teardown() {
	bst_teardown
}

script='import json, decimal, email.message, hashlib; print(json.dumps([40 + 2]), decimal.Decimal(1) / 3)'
said='[42] 0.3333333333333333333333333333'

# hot_image WINDOW [LINE...]: the python image in $REGISTRY, and a bundle of it that runs $script.
hot_image() {
	registry_start main
	lazy_publish "$(image_python):latest" py
	lazy_node "hot record_window = $1" "fetch background = no" "node keep_mounts = 1s" "${@:2}"
	lazy_bundle "$BST_ROOT/b" py python3 -c "$script"
}

# run_hot ID
run_hot() {
	run -0 lazy_run run -b "$BST_ROOT/b" "$1"
	[ "$output" = "$said" ]
}

# hot_packs: how many there are in the registry.
hot_packs() {
	curl -sf "http://$REGISTRY/v2/py/tags/list" | jq '[.tags[] | select(startswith("bootseer-hot-"))] | length'
}

# hot_state FILTER: of the node's packs and recordings.
hot_state() {
	node_status ".served.hot[] | $1"
}

# another_node: nothing of the image is cached any more.
another_node() {
	node_stop
	rm -rf "${BST_CACHE:?}"/*
}

published() {
	[ "$(hot_packs)" = 1 ]
}

recorded() {
	hot_state .state | grep -x recorded
}

streamed() {
	hot_state .state | grep -x streamed
}

@test "the first start is recorded, the next node streams what it needs" {
	local pack bytes
	hot_image 4s
	run_hot first
	[ "$(hot_state .state)" = recording ]
	bst_wait 20 published
	bst_wait 5 recorded
	grep "hot pack of workload 'python3-[0-9a-f]*' .*: published at" "$BST_RUN/bootseerd.log"
	bytes=$(node_status .served.cache.fetched_bytes)

	another_node
	run_hot second
	bst_wait 10 streamed
	pack=$(hot_state .pack_bytes)
	# whole frames are much more than what was touched, and nothing else came
	echo "pack $pack, frames of the first start $bytes, now $(node_status .served.cache)"
	[ "$pack" -lt $((bytes / 3)) ]
	[ "$(hot_state .bytes)" -le "$pack" ]
	[ "$(node_status .served.cache.fetched_bytes)" -lt $((bytes / 10)) ]
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	[ "$(node_status .served.cache.bad_segments)" = 0 ]
	jq -se 'any(.[]; .name == "hot-pack" and .bytes > 0)' "$BST_RUN/timeline/second.jsonl"
	[ "$(hot_packs)" = 1 ]
	lazy_no_state
}

# hot_made: the image and a node whose first start has made and published the pack.
hot_made() {
	hot_image 4s
	run_hot made
	bst_wait 30 published
	another_node
}

# pack_file: the pack's bytes in the registry's storage.
pack_file() {
	local tag digest
	tag=$(curl -sf "http://$REGISTRY/v2/py/tags/list" | jq -r '.tags[] | select(startswith("bootseer-hot-"))')
	digest=$(curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
		"http://$REGISTRY/v2/py/manifests/$tag" | jq -r '.layers[1].digest' | cut -d: -f2)
	echo "$REGISTRY_DIR/docker/registry/v2/blobs/sha256/${digest:0:2}/$digest/data"
}

@test "policy: never, only annotated, by its own name" {
	hot_image 4s "hot record = never"
	run_hot a
	[ -z "$(hot_state .state)" ]
	another_node
	sed -i 's/^record = .*/record = annotated/' "$BOOTSEER_CONFIG"
	run_hot b
	[ -z "$(hot_state .state)" ]
	another_node
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.record"] = "yes" |
		.annotations["dev.bootseer.workload"] = "team/eval@1"'
	run_hot c
	[ "$(hot_state '.workload + " " + .state')" = "team/eval@1 recording" ]
	another_node
	sed -i 's/^record = .*/record = auto/' "$BOOTSEER_CONFIG"
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.record"] = "no"'
	run_hot d
	[ -z "$(hot_state .state)" ]
	[ "$(hot_packs)" = 0 ]
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.workload"] = "no name"'
	run ! lazy_run run -b "$BST_ROOT/b" e
	[[ $output == *"annotation 'dev.bootseer.workload' is 'no name'"* ]]
}

@test "a pack with wrong bytes is refused, and the start is right" {
	local file size at
	hot_made
	file=$(pack_file)
	size=$(stat -c %s "$file")
	for at in $((size / 2)) $((size - 5)) 100; do
		cp "$file" "$BST_ROOT/pack"
		printf 'wrong' | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
		run_hot "wrong-$at"
		[ "$(node_status .served.cache.failed_reads)" = 0 ]
		bst_wait 10 grep -E 'hot pack.*(wrong bytes|segment|extent|another image)' "$BST_RUN/bootseerd.log"
		! streamed
		another_node
		rm -f "$BST_RUN/bootseerd.log"
		cp "$BST_ROOT/pack" "$file"
	done
	run_hot right
	bst_wait 10 streamed
}

@test "a pack that is cut off, or gone, costs nothing but time" {
	local file
	hot_made
	file=$(pack_file)
	cp "$file" "$BST_ROOT/pack"
	truncate -s $(($(stat -c %s "$file") * 2 / 3)) "$file"
	run_hot cut
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	another_node
	rm "$file"
	run_hot gone
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	another_node
	cp "$BST_ROOT/pack" "$file"
	run_hot back
	bst_wait 10 streamed
}

@test "what was streamed is not asked for again on this node" {
	local asked
	hot_made
	run_hot one
	bst_wait 10 streamed
	asked=$(grep -c '"GET' "$BST_LOG/registry-main.log")
	run_hot two
	[ "$(grep -c '"GET' "$BST_LOG/registry-main.log")" = "$asked" ]
}

# erofs_readahead: of each EROFS mount that there is, "NAME KIB" lines.
erofs_readahead() {
	grep -H . /sys/class/bdi/erofs-*/read_ahead_kb 2>/dev/null | sed 's|.*/\(erofs-[0-9]*\)/.*:|\1 |' | sort
}

# new_readahead KIB: whether a mount that was not there before has it.
new_readahead() {
	comm -13 <(cut -d' ' -f1 <<<"$before") <(erofs_readahead | cut -d' ' -f1) |
		grep -Fxf - <(erofs_readahead | grep " $1\$" | cut -d' ' -f1)
}

none_is_off() {
	! new_readahead 0
}

@test "the kernel reads ahead again when a recording is over" {
	local before pid
	hot_image 4s
	before=$(erofs_readahead)
	lazy_command "$BST_ROOT/b" python3 -c 'import time; time.sleep(60)'
	bst_spawn container "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$BST_ROOT/b" long
	bst_defer lazy_run delete -f long
	bst_wait 10 new_readahead 0
	# also when who would do it was replaced
	kill -KILL "$(node_pid supervisor)"
	sleep 4
	bst_wait 5 none_is_off
	new_readahead 128
	lazy_run delete -f long
}

@test "starts that come at once share one stream" {
	local n pids=() pid
	hot_image 4s
	run_hot first
	bst_wait 20 published
	another_node
	for n in 1 2 3 4 5 6; do
		mkdir -p "$BST_ROOT/b$n/rootfs"
		cp "$BST_ROOT/b/config.json" "$BST_ROOT/b$n/"
		cp -a "$BST_ROOT/b/rootfs/." "$BST_ROOT/b$n/rootfs/"
		lazy_command "$BST_ROOT/b$n"
		lazy_run run -b "$BST_ROOT/b$n" "at-once-$n" >"$BST_ROOT/said.$n" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid"
	done
	for n in 1 2 3 4 5 6; do
		[ "$(cat "$BST_ROOT/said.$n")" = "$said" ]
	done
	bst_wait 10 streamed
	node_status '.served.hot, .served.cache'
	[ "$(node_status '.served.hot | length')" = 1 ]
	[ "$(node_status .served.cache.hot_bytes)" -le "$(hot_state .pack_bytes)" ]
}
