#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 45-hotfaults.bats: while a hot pack arrives, or is made, everything goes wrong; no reader
# notices, and in the end there is a good pack.
# timeout: 600
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

# warmer: its pid.
warmer() {
	pgrep -P "$(node_pid supervisor)" -x bootseer-warm
}

@test "the warmer ends with its container, in mid-stream" {
	local pid
	hot_setup 24
	hot_made
	hot_slow 300000
	hot_start one
	bst_wait 15 hot_arriving
	pid=$(warmer)
	hot_end one
	bst_wait 3 bst_dead "$pid"
	# it was not for the want of lists
	hot_state streaming
	[ "$(node_status .worker.restarts)" = 0 ]
}

# pack_ranges PACK: how many ranges of it came whole.
pack_ranges() {
	faultproxy_log p | jq -r --arg p "$1" 'select(.status == 206 and (.path | contains($p))) |
		. as $l | (.range | ltrimstr("bytes=") | split("-") | map(tonumber)) as $r |
		select($l.bytes == $r[1] - $r[0] + 1) | $l.range' | wc -l
}

@test "packs of two images come side by side" {
	local one first second
	hot_setup 24
	hot_made
	first=$PACK one=$digest
	node_tree "$BST_ROOT/tree2" 24 12
	convert "rootfs:$BST_ROOT/tree2" "docker://$REGISTRY/tree2:latest" --level 1 --plain-http
	BST_WORKLOAD=train node_attach made2 "$digest" "$BST_ROOT/m2" "docker://$FAULTPROXY/tree2"
	cat "$BST_ROOT"/m2/*/* >/dev/null
	hot_end made2
	node_detach "$BST_ROOT/m2"
	hot_tags2() {
		curl -sf "http://$REGISTRY/v2/tree2/tags/list" | jq -er '[.tags[] | select(startswith("bootseer-hot-"))][0]'
	}
	bst_wait 15 hot_tags2
	second=$(curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
		"http://$REGISTRY/v2/tree2/manifests/$(hot_tags2)" | jq -r '.layers[1].digest' | cut -d: -f2)
	hot_fresh
	faultproxy_set p '{"range": true, "action": "slow", "rate": 500000}'
	BST_WORKLOAD=train node_attach a "$one" "$BST_ROOT/m-a" "$SOURCE"
	BST_WORKLOAD=train node_attach b "$digest" "$BST_ROOT/m-b" "docker://$FAULTPROXY/tree2"
	both() {
		[ "$(pack_ranges "$first")" -ge 3 ] && [ "$(pack_ranges "$second")" -ge 3 ]
	}
	bst_wait 40 both
	# neither waited for the other's end
	[ "$(node_status '[.served.hot[] | select(.state == "streaming")] | length')" = 2 ]
	hot_right
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

# small_pack: as hot_setup 40 and hot_made, but the pack is of one file in the midst of others.
small_pack() {
	hot_setup 40
	(cd "$BST_ROOT/tree" && find . -type f -size +1k -size -1100k -printf '%P\n') >"$BST_ROOT/list"
	"$BOOTSEER_BUILDDIR/bootseerctl" hot build "docker://$REGISTRY/tree:latest" train \
		--from "$BST_ROOT/list" --plain-http -q
	hot_pack
}

# quiet_byte FILE: where a byte of a pack's head can be inverted so that it reads as well: the
# first block of an extent becomes another, which is in none.
quiet_byte() {
	python3 - "$1" <<-'END'
		import struct, sys
		data = open(sys.argv[1], "rb").read()
		n_segments, n_extents = struct.unpack_from("<II", data, 20)
		extents = [struct.unpack_from("<II", data, 80 + 8 * n_segments + 8 * i) for i in range(n_extents)]
		end = (40 << 20) // 4096 # of small_pack's blob
		for i, (block, n) in enumerate(extents):
		    to = block ^ 0xff
		    others = extents[:i] + extents[i + 1:]
		    if to + n <= end and all(to + n <= b or b + m <= to for b, m in others):
		        print(80 + 8 * n_segments + 8 * i)
		        break
	END
}

@test "a head that is wrong, and reads well, is asked for again: the pack is good" {
	local at before file
	small_pack
	before=$(hot_manifest | sha256sum)
	curl -sf "http://$REGISTRY/v2/tree/blobs/sha256:$PACK" >"$BST_ROOT/pack"
	at=$(quiet_byte "$BST_ROOT/pack")
	[ -n "$at" ]
	faultproxy_set p '{"range": true, "blob": "'"$PACK"'", "action": "flip", "offset": '"$at"', "count": 1}'
	hot_start one
	bst_wait 15 hot_state streamed
	hot_read one hot 2
	hot_end one
	# and so is one that the disk has wrong
	file=$(echo "$BST_CACHE/images/${digest#sha256:}"/hot-*.head)
	printf '\377' | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
	hot_start two
	hot_read two hot
	bst_wait 15 hot_state streamed
	cmp -n "$(stat -c %s "$file")" "$file" "$BST_ROOT/pack"
	hot_end two
	run -1 grep -E 'not used any more|is recorded' "$BST_RUN/bootseerd.log"
	[ "$(hot_manifest | sha256sum)" = "$before" ]
}

@test "an answer that comes too late leaves no empty recording" {
	hot_setup 4 "hot record_window = 3s"
	faultproxy_set p '{"path": "manifests/bootseer-hot", "action": "delay", "seconds": 1.5}'
	# each place has time of its own to answer; nobody waits for both
	hot_start one "$SOURCE" "docker://$FAULTPROXY/other"
	bst_wait 10 eval '[ "$(faultproxy_count p ".status == 404 and (.path | contains(\"bootseer-hot\"))")" = 2 ]'
	sleep 1.5
	node_status .served.hot | jq -e 'length == 0'
	[ -z "$(find "$BST_CACHE" -name 'hot-*.rec')" ]
	hot_read one hot
	hot_end one
	sleep 3
	run -1 grep 'no hot pack' "$BST_RUN/bootseerd.log"
	faultproxy_set p
	hot_start two
	hot_state recording
	hot_end two
}

# kept_starts: so many packs that were found are known to the image's entry.
kept_starts() {
	find "$1" -name 'hot-*.json' | wc -l
}

@test "no more heads of an image are kept than there may be, and not larger ones" {
	local entry n
	small_pack
	node_attach zero "$digest" "$BST_ROOT/m-zero" "$SOURCE"
	entry=$BST_CACHE/images/${digest#sha256:}
	for ((n = 0; n < 64; n++)); do
		printf x >"$entry/hot-$(printf %040d "$n").head"
	done
	hot_start one
	bst_wait 10 hot_state streamed
	[ "$(kept_starts "$entry")" = 0 ]
	hot_end one
	# 63, but as many bytes as all may have
	rm "$entry/hot-$(printf %040d 7).head"
	truncate -s 64M "$entry/hot-$(printf %040d 8).head"
	hot_start two
	bst_wait 10 hot_state streamed
	hot_end two
	[ "$(kept_starts "$entry")" = 0 ]
	truncate -s 63M "$entry/hot-$(printf %040d 8).head"
	hot_start three
	bst_wait 10 eval '[ "$(kept_starts "'"$entry"'")" = 1 ]'
	hot_end three
	node_detach "$BST_ROOT/m-zero"
	node_release zero
}

# pack_is TEXT: status says that of the only pack that was made here.
pack_is() {
	node_status .served.hot | jq -e --arg text "$1" 'length == 1 and .[0].state == "recorded" and
		(.[0].pack // "" | startswith($text))'
}

@test "status says what became of a recording" {
	local config
	hot_setup 4
	config=$(cat "$BOOTSEER_CONFIG")
	hot_start one
	hot_read one
	hot_end one
	bst_wait 15 pack_is "published: $SOURCE"
	"$BOOTSEER_BUILDDIR/bootseerctl" status | grep -E "^hot train of .* recorded, pack published: $SOURCE$"
	# its tag is gone, as from a registry that was emptied, and nothing may be pushed
	"$BOOTSEER_BUILDDIR/bootseerctl" hot rm "docker://$REGISTRY/tree:latest" train --plain-http
	faultproxy_set p '{"method": "POST", "action": "status", "status": 403}'
	hot_fresh
	hot_start two
	hot_read two
	hot_end two
	bst_wait 15 pack_is "kept: $SOURCE: upload"
	faultproxy_set p
	node_stop >/dev/null
	rm -rf "${BST_CACHE:?}"/*
	printf '%s\n[hot]\npublish = no\n' "$config" >"$BOOTSEER_CONFIG"
	node_start
	hot_start three
	hot_read three
	hot_end three
	bst_wait 15 pack_is "kept: publish = no"
	# nothing was read
	rm -rf "${BST_CACHE:?}"/images/*/hot-*
	BST_WORKLOAD=idle node_attach four "$digest" "$BST_ROOT/m-four" "$SOURCE"
	hot_end four
	bst_wait 15 eval "node_status '.served.hot[] | select(.workload == \"idle\") | .pack' | grep '^none: '"
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

hot_runs() {
	[ "$(node_status .served.lanes.hot.running)" -gt 0 ]
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
	bst_wait 10 hot_runs
	hot_right
}
