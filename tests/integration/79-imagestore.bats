#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 79-imagestore.bats: images that lie on HDFS: converted to there, started from there, with
# their hot packs, also when what they lie on fails.
#
# needs: hadoop
# timeout: 600
# test-timeout: 120
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/netns.bash
load ../lib/hdfs.bash
load ../lib/images.bash
load ../lib/shim.bash
load ../lib/node.bash

readers=${BATS_TEST_DIRNAME:?}/../lib/readers.py

# The layout that most tests read is made once: /images/tree:v1, of $HDFS_ROOT/tree.
setup_file() {
	bst_setup
	hdfs_start --ha
	hdfs_rest PUT /images op=MKDIRS
	hdfs_rest PUT /other op=MKDIRS
	node_tree "$HDFS_ROOT/tree" 48 7
	python3 "$readers" sums "$HDFS_ROOT/tree" >"$HDFS_ROOT/sums"
	awk 'NR % 2' "$HDFS_ROOT/sums" >"$HDFS_ROOT/hot"
	export IMAGES=$HDFS_URI/images
	export HADOOP_CONF_DIR=$HDFS_CONF
	convert "rootfs:$HDFS_ROOT/tree" "$IMAGES/tree:v1" --level 1
	export DIGEST=$digest
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
	conf 'hot prefetch = yes'
}

teardown() {
	bst_teardown
}

# conf LINE...: what policy allows here, and LINEs as node_conf takes them.
conf() {
	node_conf "policy allow_hdfs = $IMAGES" "fetch hdfs_options = user=root,conf=$HDFS_CONF" \
		"fetch background = no" "node keep_mounts = 1s" "$@"
}

# start NAME [SOURCE]: a start of the image, or of its workload BST_WORKLOAD.
start() {
	node_attach "$1" "$DIGEST" "$BST_ROOT/m-$1" "${2:-$IMAGES/tree}"
}

end() {
	node_detach "$BST_ROOT/m-$1"
	node_release "$1"
}

# check NAME [LIST [N]]: every byte that N readers want of it is right.
check() {
	python3 "$readers" check "$BST_ROOT/m-$1" "${2:-$HDFS_ROOT/sums}" "${3:-4}"
}

@test "an image on HDFS is looked at, and a start reads it lazily" {
	run -0 bootseerctl image ls "$IMAGES/tree"
	echo "$output"
	[[ $output == *v1* ]]
	bootseerctl image info "$IMAGES/tree:v1" | grep -F "$DIGEST"
	bootseerctl image verify "$IMAGES/tree:v1"
	bootseerctl image verify "web${IMAGES/bst/$(hdfs_namenode_ip "$(hdfs_active)"):9870}/tree@$DIGEST"
	bootseerctl doctor --json | jq -e '.[] | select(.check == "images on HDFS").verdict == "ok"'
	node_start
	[ "$(start one)" = lazy ]
	check one
	end one
	bootseerctl status | grep -F "images on $HDFS_URI:"
	[ "$(node_status '.served.hdfs[0] | .datanodes.bytes > 48000000 and .lanes.demand.requests > 0 and .lanes.demand.failures == 0')" = true ]
}

@test "a container is started from there by its annotation; policy says from where" {
	bst_require busybox runc
	shim_tree "$BST_ROOT/image"
	convert "rootfs:$BST_ROOT/image" "oci:$BST_ROOT/layout:latest"
	local put=$digest
	hdfs_dfs -put "$BST_ROOT/layout" "$HDFS_URI/images/put" # whatever puts it there
	shim_bundle "$BST_ROOT/b" sh -c 'echo from HDFS'
	shim_edit "$BST_ROOT/b" '.annotations["dev.bootseer.image"] = $image' --arg image "$IMAGES/put"
	run -0 shim run -b "$BST_ROOT/b" "c-$BST_ID"
	echo "$output"
	[ "$output" = "from HDFS" ]
	shim_clean
	# an engine finds the stub's marker
	convert "rootfs:$BST_ROOT/image" "$IMAGES/marked:latest"
	local blobs=/images/marked/blobs/sha256 stub
	stub=$(hdfs_get "$blobs/$(jq -r '.stub[7:]' "$BST_LOG/convert.json")" | jq -r '.layers[0].digest[7:]')
	hdfs_get "$blobs/$stub" | tar -xz -C "$BST_ROOT/b/rootfs"
	grep -F "\"$IMAGES/marked\"" "$BST_ROOT/b/rootfs/.bootseer/image.json"
	shim_edit "$BST_ROOT/b" 'del(.annotations)'
	run -0 shim run -b "$BST_ROOT/b" "c-$BST_ID"
	[ "$output" = "from HDFS" ]
	shim_clean
	local image
	for image in "$HDFS_URI/other/x" "$IMAGES/../other/x" hdfs://elsewhere/images/x "web${IMAGES}/put"; do
		shim_edit "$BST_ROOT/b" '.annotations["dev.bootseer.image"] = $image' --arg image "$image"
		run ! shim run -b "$BST_ROOT/b" "c-$BST_ID"
		echo "$output"
		[[ $output == *allow_hdfs* || $output == *"'..' parts"* ]]
	done
	# an ordinary image that lies there is converted and traced
	hdfs_dfs -put "$(image_busybox)" "$HDFS_URI/images/plain"
	convert "$IMAGES/plain" "$IMAGES/plain:new"
	run -0 bootseerctl hot trace "$IMAGES/plain:new" w --window 1s -- cat /etc/passwd
	[[ $(bootseerctl hot ls "$IMAGES/plain:new") == *w* ]]
	# what is missing there, or has other bytes
	shim_edit "$BST_ROOT/b" '.annotations["dev.bootseer.image"] = $image' --arg image "$IMAGES/put:none"
	run ! shim run -b "$BST_ROOT/b" "c-$BST_ID"
	[[ $output == *"there is no tag 'none'"* ]]
	local blob
	blob=/images/put/blobs/sha256/$(hdfs_get "/images/put/blobs/sha256/${put#sha256:}" | jq -r '.layers[0].digest[7:]')
	hdfs_get "$blob" | tr '\0-\377' '\1-\377\0' >"$BST_ROOT/wrong"
	hdfs_put "$BST_ROOT/wrong" "$blob"
	rm -rf "${BST_CACHE:?}"/* && node_stop
	shim_edit "$BST_ROOT/b" '.annotations["dev.bootseer.image"] = $image' --arg image "$IMAGES/put"
	run ! shim run -b "$BST_ROOT/b" "c-$BST_ID"
	echo "$output"
	[[ $output == *"the bytes have another digest"* ]]
	shim_clean
}

# hot_at LAYOUT: the manifest of its only hot pack.
hot_at() {
	local found
	found=$(hdfs_get "/images/$1/index.json" | jq -er '[.manifests[] |
		select(.annotations["org.opencontainers.image.ref.name"] // "" | startswith("bootseer-hot-"))] |
		select(length == 1)[0].digest') && hdfs_get "/images/$1/blobs/sha256/${found#sha256:}"
}

@test "a start is recorded, its hot pack published on HDFS with more copies, and used by the next" {
	local pack
	conf 'hot record_window = 2s' 'hot replication = 4'
	node_start
	export BST_WORKLOAD=train
	start made
	check made "$HDFS_ROOT/hot"
	end made
	bst_wait 30 hot_at tree >/dev/null
	pack=$(hot_at tree | jq -re '.layers[1].digest')
	hdfs_rest GET "/images/tree/blobs/sha256/${pack#sha256:}" op=GETFILESTATUS |
		jq -e '.FileStatus.replication == 4'
	run -0 bootseerctl hot ls "$IMAGES/tree:v1"
	[[ $output == *train* ]]
	bootseerctl hot show "$IMAGES/tree:v1" train >/dev/null
	# another node, that has nothing yet
	node_stop >/dev/null
	rm -rf "${BST_CACHE:?}"/*
	node_start
	start used
	check used "$HDFS_ROOT/hot"
	end used
	[ "$(node_status '.served.cache.hot_bytes > 10000000')" = true ]
	bootseerctl hot rm "$IMAGES/tree:v1" train
	run ! hot_at tree
}

@test "several convert into one layout at once; a dead writer's lock is taken away" {
	local i dead pids=()
	mkdir -p "$BST_ROOT"/t{1,2,3,4}
	hdfs_put /dev/null /images/dead/.lock
	bootseerctl image convert "rootfs:$BST_ROOT/t1" "$IMAGES/dead:t1" -q >/dev/null &
	dead=$!
	bootseerctl image convert "rootfs:$BST_ROOT/t1" "$IMAGES/many:t0" -q >/dev/null
	for i in 1 2 3 4; do
		echo "$i" >"$BST_ROOT/t$i/file"
		bootseerctl image convert "rootfs:$BST_ROOT/t$i" "$IMAGES/many:t$i" -q >"$BST_LOG/many$i" 2>&1 &
		pids+=($!)
	done
	for i in 0 1 2 3; do
		wait "${pids[i]}" || { cat "$BST_LOG/many$((i + 1))"; false; }
	done
	run -0 bootseerctl image ls "$IMAGES/many"
	echo "$output"
	[ "$(grep -c '^t[0-4]' <<<"$output")" = 5 ]
	run -0 hdfs_rest GET /images/many op=LISTSTATUS
	[ "$(jq -r '.FileStatuses.FileStatus[].pathSuffix' <<<"$output" | sort | xargs)" = ".bootseer blobs index.json oci-layout" ]
	run -0 hdfs_rest GET /images/many/blobs/sha256 op=LISTSTATUS
	[ "$(jq -r '.FileStatuses.FileStatus[].pathSuffix | select(test("^[0-9a-f]{64}$") | not)' <<<"$output")" = .bootseer ]
	for i in 1 2 3 4; do
		bootseerctl image verify "$IMAGES/many:t$i"
	done
	wait "$dead"
	bootseerctl image verify "$IMAGES/dead:t1"
	run ! hdfs_rest GET /images/dead/.lock op=GETFILESTATUS
}

# The last one: what it killed stays so.
@test "a DataNode is killed and the NameNode changes while a start reads" {
	node_start
	[ "$(start one)" = lazy ]
	hdfs_rate 1 40mbit
	hdfs_rate 2 40mbit
	check one & local reader=$!
	sleep 0.5
	hdfs_datanode_kill 3
	hdfs_namenode_kill 1
	hdfs_failover 2
	wait "$reader"
	end one
	[ "$(node_status '.served.cache.failed_reads')" = 0 ]
}
