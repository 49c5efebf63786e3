#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 45-nodes.bats: many cold nodes start one image at once; what each asks the store for.
# timeout: 300
# test-timeout: 240
# needs: image-python
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/netns.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash
load ../lib/cache.bash
load ../lib/pystart.bash

setup() {
	bst_setup
	bst_defer lazy_cgroups_gone
}

teardown() {
	bst_teardown
}

n_nodes=8

# as_node N COMMAND...: with the node's configuration, behind its own link.
as_node() {
	local n=$1
	shift
	BOOTSEER_CONFIG=$BST_ROOT/n$n/bootseer.conf nsenter --net="/run/netns/$(netns_name "$n")" -- "$@" 3>&- 4>&-
}

# node_make N: its link, configuration, cache, run directory and a bundle. Sets ip[N].
node_make() {
	local n=$1 dir=$BST_ROOT/n$1
	ip[n]=$NETNS_IP
	ip -n "$(netns_name "$n")" route add default via "$NETNS_HOST_IP"
	netns_rate "$n" 200mbit
	mkdir -p "$dir/run" "$dir/cache" "$dir/oci"
	sed "s|= $BST_RUN\$|= $dir/run|; s|= $BST_CACHE\$|= $dir/cache|" "$BOOTSEER_CONFIG" >"$dir/bootseer.conf"
	cp -r "$BST_ROOT/b" "$dir/b"
	# shellcheck disable=SC2016
	lazy_edit "$dir/b" '.linux.cgroupsPath = $g' --arg g "/bst-$BST_ID/n$n"
	bst_defer node_end "$n"
}

# node_end N: its daemon ends.
node_end() {
	(BOOTSEER_CONFIG=$BST_ROOT/n$1/bootseer.conf BST_RUN=$BST_ROOT/n$1/run && node_stop)
}

# asked ADDRESS REGEX: what the registry's log says of it, lines "BYTES".
asked() {
	sed -nE "s|^$1 .*\"GET /v2/py/$2 HTTP/1.1\" 20[06] ([0-9]+) .*|\1|p" "$BST_LOG/registry-main.log"
}

total() {
	awk '{ n += $1 } END { print n + 0 }'
}

layer() {
	jq -r ".layers[$1].digest" "$BST_ROOT/$2"
}

@test "eight cold nodes at once: from the store one tree, one table, one pack a node" {
	local n pack i ip=() pids=() size
	bst_require nsenter
	netns_create 1
	registry_start main --host "$NETNS_HOST_IP"
	lazy_publish "$(image_python):latest" py
	lazy_node "hot record_window = 4s" "fetch background = no"
	lazy_bundle "$BST_ROOT/b" py python3 -c "$script"
	node_make 1
	run_hot first
	bst_wait 20 published
	hot_manifest >"$BST_ROOT/pack.json"
	curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
		"http://$REGISTRY/v2/py/manifests/$digest" >"$BST_ROOT/artifact.json"
	node_stop
	for ((n = 2; n <= n_nodes; n++)); do
		netns_create "$n"
		node_make "$n"
	done

	for ((n = 1; n <= n_nodes; n++)); do
		as_node "$n" "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_ROOT/n$n/oci" run \
			-b "$BST_ROOT/n$n/b" "cold$n" >"$BST_LOG/cold$n" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
	pack=$(jq '.layers[1].size' "$BST_ROOT/pack.json")
	for ((n = 1; n <= n_nodes; n++)); do
		[ "$(cat "$BST_LOG/cold$n")" = "$said" ]
		as_node "$n" bootseerctl status --json | jq -c '{node: '"$n"', hot: .served.hot, cache: .served.cache}'
		i=$(as_node "$n" bootseerctl status --json | jq '.served.hot[0].bytes')
		[ "$i" -gt 0 ]
		# one tree, one table, and no byte of the pack twice
		[ "$(asked "${ip[n]}" "blobs/$(layer 0 artifact.json)" | wc -l)" = 1 ]
		[ "$(asked "${ip[n]}" "blobs/$(layer 1 artifact.json)" | wc -l)" = 1 ]
		size=$(asked "${ip[n]}" "blobs/$(layer 1 pack.json)" | total)
		echo "node $n: $size bytes of a pack of $pack"
		[ "$size" -le $((pack + pack / 10)) ]
		# of the rest, next to nothing
		size=$(asked "${ip[n]}" "blobs/$(layer 2 artifact.json)" | total)
		echo "node $n: $size bytes of frames"
		[ "$size" -le $((pack / 4)) ]
		# the image's manifest, what refers to it, the pack's: no more to find them
		[ "$(asked "${ip[n]}" "manifests/[^ ]*" | wc -l)" -le 4 ]
	done
}
