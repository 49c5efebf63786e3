#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 45-hotfaults.bats: while a hot pack arrives, or is made, everything goes wrong; no reader
# notices, and in the end there is a good pack.
# timeout: 500
# test-timeout: 60
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/netns.bash
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

# another ROLE PID: there is one, and not that.
another() {
	local pid
	pid=$(node_pid "$1") && [ "${pid:-0}" -gt 1 ] && [ "$pid" != "$2" ]
}

# whole_ranges: ranges of the pack that came whole, once a line; those of its head too.
whole_ranges() {
	faultproxy_log p | jq -r --arg pack "$PACK" 'select(.status == 206 and (.path | contains($pack))) |
		. as $l | (.range | ltrimstr("bytes=") | split("-") | map(tonumber)) as $r |
		select($l.bytes == $r[1] - $r[0] + 1) | $l.range'
}

# killed ROLE: while a pack arrives; nothing that has come is fetched again.
killed() {
	local pid
	hot_setup 24
	hot_made
	hot_slow 1000000
	hot_start one
	bst_wait 10 hot_arriving
	hot_read one &
	local reading=$!
	pid=$(node_pid "$1")
	kill -KILL "$pid"
	bst_wait 10 another "$1" "$pid"
	bst_wait 30 hot_state streamed
	node_status .served.hot
	# the new one goes on where the old one was
	[ "$(node_status '.served.hot[0].local_segments')" -gt 0 ]
	[ -z "$(whole_ranges | sort | uniq -d)" ]
	wait "$reading"
	hot_read one hot 2
	hot_right
}

@test "the worker is killed in mid-stream: nothing is fetched twice but what was in flight" {
	killed worker
}

@test "the supervisor is killed in mid-stream: the stream goes on" {
	killed supervisor
}

@test "the only source is gone for a while in mid-stream" {
	hot_setup 24
	hot_made
	hot_slow 1000000
	hot_start one
	bst_wait 10 hot_arriving
	faultproxy_stop p
	sleep 6
	hot_state streaming
	faultproxy_start p "$REGISTRY"
	faultproxy_set p
	bst_wait 20 hot_state streamed
	hot_read one
	hot_right
	[ "$(node_status .worker.restarts)" = 0 ]
}

@test "ranges of a pack that hang hold up neither readers nor the others" {
	hot_setup 24
	hot_made
	faultproxy_set p '{"range": true, "blob": "'"$PACK"'", "action": "stall", "bytes": 1000, "skip": 1, "count": 2}'
	hot_start one
	SECONDS=0
	hot_read one hot 4
	[ $SECONDS -lt 10 ] # fetch stall_timeout is 15 s
	[ "$(node_status '.served.cache.hot_blocks * 4096')" -gt $((PACK_SIZE / 2)) ]
	hot_right
}

# wrong_pack: the pack's bytes, one of them wrong, in a blob and a manifest that are right.
wrong_pack() {
	local tool=$BOOTSEER_BUILDDIR/tests/lib/repotool wrong
	curl -sf "http://$REGISTRY/v2/tree/blobs/sha256:$PACK" >"$BST_ROOT/pack"
	printf '\x5a\xa5\x5a' | dd of="$BST_ROOT/pack" bs=1 seek=$((PACK_SIZE / 2)) conv=notrunc status=none
	wrong=sha256:$(sha256sum <"$BST_ROOT/pack" | cut -d' ' -f1)
	"$tool" --plain "docker://$REGISTRY/tree" put-blob "$BST_ROOT/pack"
	jq -c --arg d "$wrong" '.layers[1].digest = $d' "$BST_ROOT/hot.json" >"$BST_ROOT/wrong.json"
	"$tool" --plain "docker://$REGISTRY/tree" put-manifest "$(hot_tag)" \
		application/vnd.oci.image.manifest.v1+json "$BST_ROOT/wrong.json"
	WRONG=${wrong#sha256:}
}

# changed SUM: of the manifest that is there.
changed() {
	hot_manifest >"$BST_ROOT/now.json" && [ "$(sha256sum <"$BST_ROOT/now.json")" != "$1" ]
}

# healed OLD: there is a pack, not with that digest, and a fresh node streams it.
healed() {
	bst_wait 15 changed "$1"
	hot_pack
	hot_fresh
	hot_start healed
	bst_wait 15 hot_state streamed
	hot_read healed
	hot_right
	[ "$(node_status .served.cache.bad_segments)" = 0 ]
}

@test "a pack with wrong bytes is found out, asked for once, and replaced" {
	local asked old
	hot_setup 16
	hot_made
	wrong_pack
	old=$(hot_manifest | sha256sum)
	hot_start one
	hot_read one hot 2
	bst_wait 10 hot_state refused
	hot_right
	hot_end one
	asked=$(faultproxy_count p '.path | contains("'"$WRONG"'")')
	[ "$asked" -gt 0 ]
	hot_start two
	hot_read two
	hot_state recording
	hot_end two
	healed "$old"
	[ "$(faultproxy_count p '.path | contains("'"$WRONG"'")')" = "$asked" ]
	grep -E 'hot pack .* has wrong bytes at every source' "$BST_RUN/bootseerd.log"
}

@test "a pack that is deleted in mid-stream is made anew" {
	local old
	hot_setup 24
	hot_made
	old=$(hot_manifest | sha256sum)
	hot_slow 1000000
	hot_start one
	bst_wait 10 hot_arriving
	curl -sf -X DELETE "http://$REGISTRY/v2/tree/blobs/sha256:$PACK"
	faultproxy_set p
	hot_read one
	bst_wait 10 hot_state broken
	hot_right
	hot_end one
	hot_start two
	hot_read two hot 1
	hot_read two hot 1 # in another order: the profile is another, and so the manifest
	hot_state recording
	hot_end two
	healed "$old"
}

@test "what is under the tag is another image's, or nothing of ours" {
	local tool=$BOOTSEER_BUILDDIR/tests/lib/repotool tag old
	hot_setup 8
	hot_made
	tag=$(hot_tag)
	jq -c '.subject.digest = "sha256:" + (.subject.digest | ltrimstr("sha256:") | explode | reverse | implode)' \
		"$BST_ROOT/hot.json" >"$BST_ROOT/other.json"
	"$tool" --plain "docker://$REGISTRY/tree" put-manifest "$tag" \
		application/vnd.oci.image.manifest.v1+json "$BST_ROOT/other.json"
	old=$(hot_manifest | sha256sum)
	hot_start one
	hot_read one
	hot_state recording
	hot_end one
	healed "$old"
}

# pushing: a POST waits in the proxy, and the pack is kept in the cache.
pushing() {
	[ -n "$(find "$BST_CACHE" -name 'hot-*.json')" ] &&
		[ "$(node_status .served.lanes.demand.running)" -gt 0 ]
}

@test "a worker that is killed before it has published: the next one does" {
	local pid
	hot_setup 8
	faultproxy_set p '{"method": "POST", "action": "stall"}'
	hot_start one
	hot_read one
	hot_end one
	bst_wait 15 pushing
	run ! hot_tag
	pid=$(node_pid worker)
	kill -KILL "$pid"
	faultproxy_set p
	bst_wait 10 another worker "$pid"
	bst_wait 20 hot_tag
	hot_pack
	hot_fresh
	hot_start two
	bst_wait 10 hot_state streamed
}

@test "a pack is published beside the image, and nowhere else that some pod names" {
	local tool=$BOOTSEER_BUILDDIR/tests/lib/repotool
	hot_setup 8
	# another container of the image names another place, first
	node_attach other "$digest" "$BST_ROOT/m-other" "docker://$FAULTPROXY/others" "$SOURCE"
	hot_start one "docker://$FAULTPROXY/elsewhere" "$SOURCE"
	hot_read one
	hot_end one
	bst_wait 15 hot_tag
	[ "$(faultproxy_count p '.method != "GET" and .method != "HEAD" and (.path | test("^/v2/tree/") | not)')" = 0 ]
	[ "$(faultproxy_count p '.method == "PUT" and (.path | test("^/v2/tree/manifests/bootseer-hot"))')" = 1 ]
	# said as what it is
	grep 'hot pack of workload .*published' "$BST_RUN/bootseerd.log"
}

@test "the disk is full in mid-stream" {
	hot_setup 32
	hot_made
	node_stop
	# room for less than the pack
	truncate -s $((PACK_SIZE / 2 + (6 << 20))) "$BST_ROOT/disk"
	mkfs.ext4 -q -O ^has_journal "$BST_ROOT/disk"
	mount -o loop "$BST_ROOT/disk" "$BST_CACHE"
	bst_defer umount -l "$BST_CACHE"
	bst_defer node_stop
	chmod 755 "$BST_CACHE"
	node_start
	hot_start one
	hot_read one hot 2
	node_status .served.hot
	bst_wait 10 hot_state broken
	hot_right
	[ "$(node_status .worker.restarts)" = 0 ]
	# no verdict on the pack
	[ -z "$(find "$BST_CACHE" -name 'hot-*.bad')" ]
}

complete() {
	[ "$(node_status '.served.images[0].complete')" = true ]
}

@test "the image becomes complete in mid-stream" {
	registry_start main
	hot_setup 24 "fetch plain_http = $REGISTRY"
	hot_made
	faultproxy_set p '{"range": true, "blob": "'"$PACK"'", "action": "stall", "bytes": 5000, "skip": 4}'
	hot_start one
	bst_wait 10 hot_arriving
	# all of it as demand, which overtakes
	hot_read one sums 2
	# from elsewhere, or the worker would not hear of it
	node_attach two "$digest" "$BST_ROOT/m-two" "docker://$REGISTRY/tree"
	bst_wait 20 complete
	faultproxy_set p
	bst_wait 20 hot_state streamed
	[ "$(node_status '.served.hot[0].local_segments')" -gt 0 ]
	hot_read one sums
	hot_right
	[ "$(hot_start three)" = whole ]
	hot_read three sums
}

@test "no demand fetch waits in a queue behind a pack" {
	# room for every burst of readers, so that a wait could only be for another lane
	hot_setup 32 "fetch connections = 64"
	hot_made
	hot_slow 300000
	hot_start one
	bst_wait 10 hot_arriving
	hot_read one cold 4
	node_status .served
	hot_state streaming
	[ "$(node_status .served.demand_waited)" = 0 ]
	[ "$(node_status .served.lanes.demand.requests)" -gt 0 ]
	[ "$(node_status .served.lanes.hot.running)" -gt 0 ]
	hot_right
}
