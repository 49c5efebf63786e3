#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 50-faults.bats: between the daemon and its registry everything goes wrong; no reader
# gets a wrong byte, and an error only where nothing else is left.
# shellcheck disable=SC2016,SC2030,SC2031
# test-timeout: 120

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/registry.bash
load ../lib/node.bash
load ../lib/faults.bash

bats_require_minimum_version 1.5.0

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

@test "the source is gone for 15 seconds in the middle, then back" {
	faults_setup 48 "fetch background = no"
	faults_gone 15
}

@test "500s, and 429 with Retry-After, which is kept" {
	faults_setup 12 "fetch background = no"
	faultproxy_set p '{"range": true, "blob": "'"$DATA"'", "action": "status", "status": 500, "count": 6}' \
		'{"range": true, "blob": "'"$DATA"'", "action": "status", "status": 429, "retry_after": 2, "count": 3}'
	faults_attach
	faults_check 4
	faults_unharmed
	[ "$(faultproxy_count p '.status == 500')" = 6 ]
	[ "$(faultproxy_count p '.status == 429')" = 3 ]
	# the same range is not asked for again before its time
	faultproxy_log p | jq -se 'map(select(.range)) | group_by(.range) | map(sort_by(.t)) |
		[.[] | range(length - 1) as $i | select(.[$i].status == 429) | .[$i + 1].t - .[$i].t] |
		length > 0 and min >= 1.9'
}

@test "stalled sockets, cut bodies, resets, ranges that are not what was asked" {
	faults_setup 12 "fetch background = no" "fetch stall_timeout = 1s"
	faultproxy_set p '{"range": false, "action": "truncate", "bytes": 100, "count": 2}' \
		'{"range": true, "action": "stall", "bytes": 1000, "count": 2}' \
		'{"range": true, "action": "stall", "count": 2}' \
		'{"range": true, "action": "truncate", "bytes": 5000, "count": 3}' \
		'{"range": true, "action": "drop", "bytes": 7000, "count": 3}' \
		'{"range": true, "action": "wrong_range", "shift": 4096, "count": 3}' \
		'{"range": true, "action": "chunked", "count": 5}'
	faults_attach
	faults_check 4
	faults_unharmed
	[ "$(faultproxy_count p '.action == "stall"')" = 4 ]
	[ "$(faultproxy_count p '.action == "chunked"')" = 5 ]
}

@test "a source that trickles is given up for the next one" {
	registry_start main
	faults_setup 12 "fetch background = no" "fetch stall_timeout = 2s" \
		"fetch plain_http = $REGISTRY"
	local trickle='{"range": true, "action": "trickle", "bytes": 20000, "pause": 0.3}'
	faultproxy_set p "$trickle"
	faults_attach "$SOURCE" "docker://$REGISTRY/tree"
	SECONDS=0
	faults_check 4
	[ $SECONDS -le 20 ]
	faults_unharmed
	[ "$(node_status .served.cache.retries)" -gt 0 ]
}

@test "the only source trickles, then recovers" {
	faults_setup 12 "fetch background = no" "fetch stall_timeout = 2s"
	faultproxy_set p '{"range": true, "action": "trickle", "bytes": 20000, "pause": 0.3}'
	faults_attach
	faults_check 4 &
	local reading=$!
	sleep 8
	kill -0 "$reading"
	# for new connections: those that trickle would go on for an hour
	faultproxy_set p
	SECONDS=0
	wait "$reading"
	[ $SECONDS -le 20 ]
	faults_unharmed
	[ "$(node_status .served.cache.retries)" -gt 0 ]
}

@test "a link of 1 Mbit/s with 16 ranges and more on it is slow and not stalled" {
	netns_create far
	registry_start main --netns far
	faults_setup 24 "fetch background = no" "fetch connections = 16" \
		"fetch plain_http = $REGISTRY"
	faults_attach "docker://$REGISTRY/tree"
	# that it was quick before is no measure
	find "$BST_ROOT/m" -size +1000k | head -n 1 | xargs head -c 1000000 >"$BST_ROOT/some"
	netns_rate far 1mbit
	faults_check 16 &
	local reading=$! before
	before=$(netns_rx_bytes far)
	sleep 45
	kill -0 "$reading"
	[ $(($(netns_rx_bytes far) - before)) -gt 3000000 ]
	[ "$(node_status .served.cache.retries)" = 0 ]
	netns_rate far none
	wait "$reading"
	faults_unharmed
	[ "$(node_status .served.cache.retries)" = 0 ]
}

@test "wrong bytes in a frame: the second source has the right ones" {
	registry_start main
	faults_setup 16 "fetch background = no" "fetch plain_http = $REGISTRY"
	faultproxy_set p '{"blob": "'"$DATA"'", "action": "flip", "offset": 2000000, "length": 3000000}'
	faults_attach "$SOURCE" "docker://$REGISTRY/tree"
	faults_check 4
	faults_unharmed
	[ "$(node_status .served.cache.bad_frames)" -gt 0 ]
}

# pages FILE: the numbers of the 4 KiB pages of it that cannot be read
pages() {
	python3 - "$1" <<-'P'
		import os, sys
		fd = os.open(sys.argv[1], os.O_RDONLY)
		os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
		for page in range(os.fstat(fd).st_size // 4096):
		    try:
		        assert len(os.pread(fd, 4096, page * 4096)) == 4096
		    except OSError as e:
		        print(page, e.errno)
	P
}

@test "no source has right bytes: an error for that range alone, healed with the source" {
	mkdir "$BST_ROOT/tree"
	head -c 16000000 /dev/urandom >"$BST_ROOT/tree/big"
	echo small >"$BST_ROOT/tree/small"
	faults_publish
	faults_node "fetch background = no"
	faultproxy_set p '{"blob": "'"$DATA"'", "action": "flip", "offset": 7000000, "length": 10}'
	faults_attach
	[ "$(cat "$BST_ROOT/m/small")" = small ]
	pages "$BST_ROOT/m/big" >"$BST_ROOT/pages"
	cat "$BST_ROOT/pages"
	# one frame of 32 pages, and EIO
	[ "$(cut -d' ' -f2 "$BST_ROOT/pages" | sort -u)" = 5 ]
	[ "$(wc -l <"$BST_ROOT/pages")" -le 32 ]
	[ $(($(tail -n 1 "$BST_ROOT/pages" | cut -d' ' -f1) - $(head -n 1 "$BST_ROOT/pages" | cut -d' ' -f1))) -le 31 ]
	[ "$(node_status .served.cache.failed_reads)" -gt 0 ]
	[ "$(node_status .worker.restarts)" = 0 ]
	# asked for and named a few times, not for each page
	[ "$(grep -c 'every source gives wrong bytes' "$BST_RUN/bootseerd.log")" = 1 ]
	[ "$(grep -c 'wrong bytes' "$BST_RUN/bootseerd.log")" -le 10 ]
	faultproxy_log p | jq -se 'map(select(.range)) | group_by(.range) | map(length) | max <= 4'
	grep 'every source gives wrong bytes' "$BST_RUN/bootseerd.log" | grep -qF "$FAULTPROXY"
	faultproxy_set p
	bst_wait 40 eval 'faults_check 4'
}

@test "a token that dies every 5 seconds, and answers 401 and 403" {
	tokenserver_start
	registry_start main --token
	faults_setup 8 "fetch background = no" "fetch plain_http = $TOKENSERVER"
	tokenserver_set '{"life": 5}'
	faultproxy_set p '{"range": true, "action": "refuse", "skip": 3, "count": 2}' \
		'{"range": true, "action": "status", "status": 403, "skip": 10, "count": 2}' \
		'{"range": true, "action": "slow", "rate": 250000}'
	faults_attach
	faults_check 4
	faults_unharmed
	node_status .served.token_refreshes
	[ "$(node_status .served.token_refreshes)" -ge 3 ]
	[ "$(faultproxy_count p '.status == 403')" = 2 ]
}

@test "redirects whose signatures expire" {
	faults_setup 12 "fetch background = no"
	faultproxy_set p '{"range": true, "action": "redirect", "seconds": 1}' \
		'{"port": "redirect", "action": "slow", "rate": 800000}'
	faults_attach
	faults_check 4
	faults_unharmed
	[ "$(faultproxy_count p '.port == "redirect" and .status == 206')" -gt 10 ]
	# used again while they live, not asked for once a range
	[ "$(faultproxy_count p '.port == "redirect" and .status == 206')" -ge \
		"$(faultproxy_count p '.port == "main" and .status == 307')" ]
}

# some of the wrong ranges may be of frames that another range has brought meanwhile
@test "a redirect to wrong bytes is not taken again" {
	faults_setup 12 "fetch background = no"
	faultproxy_set p '{"range": true, "action": "redirect", "seconds": 600}' \
		'{"port": "redirect", "action": "flip", "offset": 0, "length": 99999999, "skip": 5, "count": 3}'
	faults_attach
	faults_check 1
	faults_unharmed
	[ "$(node_status .served.cache.bad_frames)" -gt 0 ]
	[ "$(faultproxy_count p '.port == "main" and .status == 307')" -ge 2 ]
}

@test "a registry that ignores Range: bounded, named, healed" {
	faults_setup 32 "fetch background = no" "fetch read_wait = 2s"
	faultproxy_set p '{"range": true, "blob": "'"$DATA"'", "action": "ignore_range"}'
	faults_attach
	run faults_check 1
	[ "$status" = 1 ]
	[[ $output == *"Input/output error"* ]]
	[[ $output != *"not 0"* ]]
	[ "$(node_status .worker.restarts)" = 0 ]
	# an answer is cut off when it is of no use, not read to its end
	faultproxy_log p | jq -se --argjson size "$DATA_SIZE" \
		'map(select(.action == "ignore_range") | .bytes) | max < $size / 2 and length < 200'
	grep -F "$FAULTPROXY" "$BST_RUN/bootseerd.log" | grep -qi range
	faultproxy_set p
	sleep 11
	faults_check 4
}

@test "a source that cannot be reached: the start waits, bounded, then says what and why" {
	faults_setup 8 "fetch start_wait = 3s" "fetch connect_timeout = 1s"
	faultproxy_stop p
	SECONDS=0
	run faults_attach
	echo "$output"
	[ "$status" = 1 ]
	[ $SECONDS -ge 2 ]
	[ $SECONDS -le 10 ]
	[[ $output == *"$SOURCE"* ]]
	[[ $output == *"connect"* ]]
	[[ $output == *"start_wait"* ]]
	# the daemon is none the worse
	faultproxy_start p "$REGISTRY"
	faults_attach
	faults_check 2
}

@test "a source that comes back while the start waits" {
	faults_setup 8 "fetch start_wait = 30s" "fetch connect_timeout = 1s"
	faultproxy_stop p
	faults_attach >"$BST_LOG/attach.log" 2>&1 &
	starting=$!
	sleep 3
	kill -0 "$starting"
	faultproxy_start p "$REGISTRY"
	wait "$starting"
	faults_check 2
}

@test "a start that came later waits as long as it may, not as the first one" {
	faults_setup 8 "fetch start_wait = 6s" "fetch connect_timeout = 1s"
	faultproxy_stop p
	node_attach one "${digest:?}" "$BST_ROOT/m-one" "$SOURCE" >"$BST_LOG/one.log" 2>&1 &
	local one=$!
	sleep 4
	node_attach two "$digest" "$BST_ROOT/m-two" "$SOURCE" >"$BST_LOG/two.log" 2>&1 &
	local two=$!
	local status=0
	wait "$one" || status=$?
	[ "$status" = 1 ]
	grep start_wait "$BST_LOG/one.log"
	kill -0 "$two"
	faultproxy_start p "$REGISTRY"
	wait "$two"
	python3 "${faults_readers:?}" check "$BST_ROOT/m-two" "$BST_ROOT/sums" 2
	node_detach "$BST_ROOT/m-two"
	node_release two
}

@test "a demand read never waits behind background completion" {
	# room for every burst of readers, so that a wait could only be for another lane
	faults_setup 32 "fetch connections = 64"
	faultproxy_set p '{"range": true, "action": "delay", "seconds": 0.05}'
	faults_attach
	faults_check 2
	bst_wait 30 eval '[ "$(node_status ".served.images[0].complete")" = true ]'
	node_status .served
	[ "$(node_status .served.demand_waited)" = 0 ]
	[ "$(node_status .served.lanes.demand.requests)" -gt 0 ]
	[ "$(node_status .served.lanes.background.bytes)" -gt 0 ]
	faults_unharmed
}

@test "eight readers and background completion: each frame is fetched once" {
	faults_setup 48
	faultproxy_set p '{"range": true, "action": "slow", "rate": 8000000}'
	faults_attach
	faults_check 8
	bst_wait 30 eval '[ "$(node_status ".served.images[0].complete")" = true ]'
	node_status .served
	[ "$(node_status .served.cache.fetched_frames)" = "$(node_status '.served.images[0].frames')" ]
	# over the wire too, but for what was on its way twice
	[ "$(faultproxy_bytes p '.path | contains("'"$DATA"'")')" -lt $((DATA_SIZE * 12 / 10)) ]
	faults_unharmed
}
