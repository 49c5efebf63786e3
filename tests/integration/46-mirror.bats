#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 46-mirror.bats: a caching proxy, nginx, in front of a registry: used, and left when it fails.
# timeout: 200
# test-timeout: 90
# needs: image-python
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/registry.bash
load ../lib/nginx.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash
load ../lib/cache.bash
load ../lib/pystart.bash

setup() {
	bst_setup
	bst_defer lazy_cgroups_gone
	registry_start main
	lazy_publish "$(image_python):latest" py
	nginx_start near "$REGISTRY"
	lazy_node "hot record_window = 4s" "fetch background = no" "fetch mirrors = $REGISTRY=$NGINX" \
		"fetch plain_http = $REGISTRY $NGINX" "fetch stall_timeout = 2s"
	lazy_bundle "$BST_ROOT/b" py python3 -c "$script"
	run_hot first
	bst_wait 20 published
	another_node
}

teardown() {
	bst_teardown
}

# blobs_asked: requests for blobs that reached the registry itself.
blobs_asked() {
	registry_requests main '[^ ]*/blobs/' || :
}

@test "what one node's start fetched comes to the next one from the proxy's cache" {
	local before
	run_hot second
	bst_wait 10 streamed
	nginx_log near | grep -c ' MISS '
	another_node
	before=$(blobs_asked)
	run_hot third
	bst_wait 10 streamed
	nginx_log near | tail -n 20
	# ranges differ a little from start to start: a slice that nobody asked for may be new
	[ $(($(blobs_asked) - before)) -le 1 ]
	nginx_log near | grep -q ' HIT '
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
}

@test "a proxy that is stopped, gone, or answers with errors is left for the registry" {
	kill -STOP "$(bst_pid nginx-near)"
	run_hot stopped
	kill -CONT "$(bst_pid nginx-near)"
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	another_node
	bst_stop registry-main
	registry_start main --port "${REGISTRY##*:}"
	bst_stop nginx-near
	run_hot gone
	bst_wait 10 streamed
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	another_node
	sed -i 's|proxy_pass http://.*;|return 503;|' "$BST_ROOT/nginx-near/nginx.conf"
	bst_spawn nginx-near nginx -p "$BST_ROOT/nginx-near" -c "$BST_ROOT/nginx-near/nginx.conf"
	bst_wait 10 curl -s -o /dev/null "http://$NGINX/v2/"
	run_hot failing
	bst_wait 10 streamed
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	nginx_log near | grep -q '^503 '
}

@test "a proxy that goes away in the middle of a start is left, and used again" {
	lazy_command "$BST_ROOT/b" python3 -c "import sys, time
print('begun', flush=True)
time.sleep(2)
$script"
	bst_spawn container "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$BST_ROOT/b" midway
	bst_wait 10 grep -x begun "$BST_LOG/container.log"
	bst_stop nginx-near KILL
	bst_wait 20 grep -Fx "$said" "$BST_LOG/container.log"
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	bst_wait 10 bst_dead "$(bst_pid container)"
}
