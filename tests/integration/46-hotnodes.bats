#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 46-hotnodes.bats: hot packs of several nodes at one registry.
# test-timeout: 90
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

# published_all: each of the two nodes has said what became of its pack.
published_all() {
	local n
	for n in 1 2; do
		grep -qE 'hot pack of workload .*(published|another node was first)' "$BST_ROOT/n$n/run/bootseerd.log" || return 1
	done
}

@test "two nodes publish their recordings at once: one whole pack" {
	local n pids=()
	hot_setup 16
	node_stop >/dev/null
	# both find none, and then wait for each other
	faultproxy_set p '{"method": "POST", "action": "delay", "seconds": 3}'
	hot_nodes 2
	for n in 1 2; do
		hot_node "$n" hot_start "at$n"
		hot_node "$n" hot_read "at$n" hot "$n"
	done
	for n in 1 2; do
		hot_node "$n" hot_end "at$n" &
		pids+=($!)
	done
	wait "${pids[@]}"
	bst_wait 30 published_all
	faultproxy_set p
	[ "$(faultproxy_count p '.method == "PUT" and (.path | test("/manifests/bootseer-hot"))')" -ge 1 ]
	bst_wait 5 hot_tag
	hot_pack
	bootseerctl hot verify "docker://$REGISTRY/tree:latest" train --plain-http -q
	bst_defer hot_node 3 node_stop
	hot_node 3 node_start
	hot_node 3 hot_start third
	bst_wait 15 hot_node 3 hot_state streamed
	hot_node 3 hot_read third
	hot_node 3 hot_right
}

# requests_of ADDRESS REGEX: how many of its requests were answered with bytes.
requests_of() {
	grep -F "$1 - - [" "$BST_LOG/registry-main.log" | grep -cE "\"GET [^ ]*$2[^ ]* HTTP/1.1\" 20[06] "
}

# bytes_of ADDRESS DIGEST: sum of what it was sent of that blob.
bytes_of() {
	grep -F "$1 - - [" "$BST_LOG/registry-main.log" | grep -E "\"GET [^ ]*$2[^ ]* HTTP/1.1\" 20[06] " |
		awk '{ for (i = 1; i < NF; i++) if ($i == "HTTP/1.1\"") n += $(i + 2) } END { print n + 0 }'
}

@test "eight nodes start the same cold image at once: each fetches tree, table and pack once" {
	local n tree table address pids=()
	for n in 1 2 3 4 5 6 7 8; do
		netns_create "n$n"
		export "HOT_NETNS_$n=$(netns_name "n$n")" "HOT_ADDRESS_$n=$NETNS_IP"
		[ "$n" != 1 ] || address=$NETNS_HOST_IP
		ip -n "$(netns_name "n$n")" route add default via "$NETNS_HOST_IP"
	done
	# each node's namespace reaches it over its own link
	registry_start main --address "$address"
	hot_setup 24 "fetch plain_http = $REGISTRY"
	SOURCE=docker://$REGISTRY/tree
	hot_made
	node_stop >/dev/null
	tree=$(jq -r .tree.digest "$BST_ROOT/info" | cut -d: -f2)
	table=$(jq -r .table.digest "$BST_ROOT/info" | cut -d: -f2)
	hot_nodes 8
	for n in 1 2 3 4 5 6 7 8; do
		(
			hot_node "$n" hot_start "at$n"
			hot_node "$n" hot_read "at$n"
		) >"$BST_LOG/start-$n" 2>&1 &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n"
	done
	for n in 1 2 3 4 5 6 7 8; do
		bst_wait 20 hot_node "$n" hot_state streamed
		hot_node "$n" hot_right
		address=HOT_ADDRESS_$n
		address=${!address}
		echo "node $n at $address: $(requests_of "$address" .) requests, pack $(bytes_of "$address" "$PACK") of $PACK_SIZE"
		[ "$(requests_of "$address" "$tree")" = 1 ]
		[ "$(requests_of "$address" "$table")" = 1 ]
		[ "$(requests_of "$address" "manifests/bootseer-hot")" = 1 ]
		[ "$(bytes_of "$address" "$PACK")" -le "$PACK_SIZE" ]
		# what the pack has does not come in frames as well, but for what was needed before it
		[ "$(bytes_of "$address" "$DATA")" -lt $((DATA_SIZE / 4)) ]
	done
}

# caching_proxy: nginx before $REGISTRY, with a cache, and nothing of the machine's own.
caching_proxy() {
	local dir=$BST_ROOT/nginx port
	bst_require nginx
	port=$(bst_free_port)
	mkdir -p "$dir/cache"
	cat >"$dir/conf" <<-N
		daemon off;
		master_process off;
		pid $dir/pid;
		error_log $dir/error.log;
		events {}
		http {
			access_log $BST_LOG/nginx-access.log;
			client_body_temp_path $dir/body;
			proxy_temp_path $dir/proxy;
			fastcgi_temp_path $dir/fastcgi;
			uwsgi_temp_path $dir/uwsgi;
			scgi_temp_path $dir/scgi;
			proxy_cache_path $dir/cache keys_zone=all:1m;
			server {
				listen 127.0.0.1:$port;
				location / {
					limit_except GET { deny all; }
					proxy_pass http://$REGISTRY;
					proxy_set_header Range \$http_range;
					proxy_http_version 1.1;
					proxy_cache all;
					proxy_cache_lock on;
					proxy_cache_key \$uri\$http_range;
					proxy_cache_valid 200 206 1h;
				}
			}
		}
	N
	bst_spawn nginx nginx -p "$dir" -c "$dir/conf"
	bst_wait 10 registry_answers "127.0.0.1:$port"
	PROXY=127.0.0.1:$port
}

# requests_for DIGEST: how many of them the registry saw.
requests_for() {
	grep -cE "\"GET [^ ]*$1[^ ]* HTTP/1.1\" 20[06] " "$BST_LOG/registry-main.log"
}

@test "a caching proxy in front is used for all, and left when it is gone" {
	local seen n
	registry_start main
	hot_setup 24 "fetch plain_http = $REGISTRY"
	SOURCE=docker://$REGISTRY/tree
	hot_made
	node_stop >/dev/null
	caching_proxy
	printf '[fetch]\nplain_http = %s\n' "$PROXY" >>"$BOOTSEER_CONFIG"
	hot_nodes 3
	# as the shim names them when it is configured as a mirror
	local places=("docker://$PROXY/tree" "$SOURCE")
	hot_node 1 hot_start one "${places[@]}"
	hot_node 1 hot_read one
	bst_wait 15 hot_node 1 hot_state streamed
	seen=$(requests_for "$PACK")
	[ "$seen" -gt 0 ]
	[ "$(grep -c "$PACK" "$BST_LOG/nginx-access.log")" -gt 0 ]
	# the second node's ranges are those of the first: the registry sees few of them
	hot_node 2 hot_start two "${places[@]}"
	hot_node 2 hot_read two
	bst_wait 15 hot_node 2 hot_state streamed
	[ "$(grep -c "$PACK" "$BST_LOG/nginx-access.log")" -gt "$seen" ]
	[ $(($(requests_for "$PACK") - seen)) -lt "$seen" ]
	# gone while the third one starts
	hot_node 3 hot_start three "${places[@]}"
	bst_stop nginx KILL
	hot_node 3 hot_read three sums
	bst_wait 20 hot_node 3 hot_state streamed
	for n in 1 2 3; do
		hot_node "$n" hot_right
	done
}
