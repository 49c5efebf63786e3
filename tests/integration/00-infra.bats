#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 00-infra.bats: do the tests' own servers and engines work on this machine?
#
# Everything here runs plain runc: a failure is one of the test house, and what
# the other files report is to be read with that in mind.
# shellcheck disable=SC2030,SC2031
# needs: containerd2
# test-timeout: 180

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/containerd.bash
load ../lib/podman.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

# blob_path: the registry path of the busybox image's layer
blob_path() {
	echo "/v2/busybox/blobs/sha256:$(images_layer_digest "$(image_busybox)" 0)"
}

status_of() {
	curl -s -m 10 -o "${OUT:-/dev/null}" -w '%{http_code}' "$@"
}

proxied_busybox() {
	registry_start main
	image_push "$(image_busybox)" "$REGISTRY/busybox:latest"
	faultproxy_start p "$REGISTRY"
	blob=http://$FAULTPROXY$(blob_path)
	size=$(stat -c %s "$(image_busybox)/blobs/sha256/${blob##*:}")
	good=$(head -c 100000 "$(image_busybox)/blobs/sha256/${blob##*:}" | sha256sum)
}

@test "teardown reports a left mount and a left process" {
	mkdir "$BST_ROOT/m"
	mount -t tmpfs none "$BST_ROOT/m"
	sleep 1000 3>&- 4>&- &
	run bst_leftovers
	[ "$status" = 1 ]
	[[ $output == *"left mount: $BST_ROOT/m"* ]]
	[[ $output == *"left process: "*sleep* ]]
	run bst_leftovers
	[ "$status" = 0 ]
}

@test "without: a call fails as told, the others work" {
	: >"$BST_ROOT/f"
	run "${bst_lib:?}/without" unlinkat=EPERM openat2 -- rm "$BST_ROOT/f"
	[ "$status" = 1 ]
	[[ $output == *"Operation not permitted"* ]]
	"$bst_lib/without" openat2 -- rm "$BST_ROOT/f"
	[ ! -e "$BST_ROOT/f" ]
}

@test "registry: push, pull, basic auth" {
	registry_start main --htpasswd user:secret
	[ "$(status_of "http://$REGISTRY/v2/")" = 401 ]
	image_push "$(image_busybox)" "$REGISTRY/busybox:latest" --dest-creds user:secret
	skopeo --insecure-policy copy -q --src-tls-verify=false --src-creds user:secret \
		"docker://$REGISTRY/busybox:latest" "oci:$BST_ROOT/copy:latest"
	[ "$(registry_requests main /v2/busybox/blobs/)" -gt 1 ]
}

@test "registry: bearer tokens, which die when they should" {
	tokenserver_start --user user:secret --require-user
	registry_start main --token
	image_push "$(image_busybox)" "$REGISTRY/busybox:latest" --dest-creds user:secret
	tokenserver_set '{"life": 2}'
	local token url
	url="http://$TOKENSERVER/token?service=bootseer-tests&scope=repository:busybox:pull"
	[ "$(status_of "$url")" = 401 ]
	token=$(curl -sf -u user:secret "$url" | jq -r .token)
	[ "$(status_of -H "Authorization: Bearer $token" "http://$REGISTRY$(blob_path)")" = 200 ]
	sleep 3
	[ "$(status_of -H "Authorization: Bearer $token" "http://$REGISTRY$(blob_path)")" = 401 ]
	tokenserver_set '{"status": 429, "retry_after": 3}'
	[ "$(status_of -u user:secret "$url")" = 429 ]
}

@test "fault proxy: passes everything through, pushes too" {
	registry_start main
	faultproxy_start p "$REGISTRY"
	image_push "$(image_busybox)" "$FAULTPROXY/busybox:latest"
	skopeo --insecure-policy copy -q --src-tls-verify=false \
		"docker://$FAULTPROXY/busybox:latest" "oci:$BST_ROOT/copy:latest"
	[ "$(faultproxy_count p '.method == "PUT"')" -ge 2 ]
	[ "$(faultproxy_bytes p '.path | test("/blobs/sha256:")')" -gt 500000 ]
	# with a name, and cut off, the port is refused; then it is there again
	faultproxy_stop p
	[ "$(status_of "http://$FAULTPROXY/v2/")" = 000 ]
	faultproxy_start p "$REGISTRY"
	[ "$(status_of "http://$FAULTPROXY/v2/")" = 200 ]
}

@test "fault proxy: each fault" {
	proxied_busybox
	OUT=$BST_ROOT/out
	faultproxy_set p '{"blob": "sha256:", "action": "status", "status": 429, "retry_after": 7, "count": 1}'
	[ "$(status_of -D "$BST_ROOT/head" "$blob")" = 429 ]
	grep -qi '^retry-after: 7' "$BST_ROOT/head"
	[ "$(status_of "$blob")" = 200 ]
	[ "$(stat -c %s "$OUT")" = "$size" ]

	faultproxy_set p '{"range": true, "action": "ignore_range"}'
	[ "$(status_of -r 10-19 "$blob")" = 200 ]
	faultproxy_set p
	[ "$(status_of -r 0-99999 "$blob")" = 206 ]
	[ "$(sha256sum <"$OUT")" = "$good" ]

	faultproxy_set p '{"blob": "sha256:", "action": "flip", "offset": 5000, "length": 10}'
	status_of -r 0-99999 "$blob"
	[ "$(sha256sum <"$OUT")" != "$good" ]
	[ "$(cmp -l "$OUT" "$(image_busybox)/blobs/sha256/${blob##*:}" 2>/dev/null | wc -l)" = 10 ]
	status_of -r 5005-5020 "$blob"
	[ "$(cmp -l -i 0:5005 "$OUT" "$(image_busybox)/blobs/sha256/${blob##*:}" 2>/dev/null | wc -l)" = 5 ]

	faultproxy_set p '{"blob": "sha256:", "action": "truncate", "bytes": 1000}'
	run curl -s -o "$OUT" "$blob"
	[ "$status" = 18 ]
	[ "$(stat -c %s "$OUT")" = 1000 ]

	faultproxy_set p '{"blob": "sha256:", "action": "drop"}'
	run curl -s -o "$OUT" "$blob"
	[ "$status" = 56 ] || [ "$status" = 52 ]

	faultproxy_set p '{"blob": "sha256:", "action": "stall", "bytes": 2000}'
	run curl -s -m 1 -o "$OUT" "$blob"
	[ "$status" = 28 ]
	[ "$(stat -c %s "$OUT")" = 2000 ]
	faultproxy_set p '{"blob": "sha256:", "action": "stall"}'
	run curl -s -m 1 -o "$OUT" "$blob"
	[ "$status" = 28 ]

	faultproxy_set p '{"blob": "sha256:", "action": "redirect", "seconds": 1}'
	[ "$(status_of -L "$blob")" = 200 ]
	[ "$(stat -c %s "$OUT")" = "$size" ]
	local target
	[ "$(status_of -D "$BST_ROOT/head" "$blob")" = 307 ]
	target=$(sed -n 's/^[Ll]ocation: \(.*\)\r/\1/p' "$BST_ROOT/head")
	sleep 1.1
	[ "$(status_of "$target")" = 403 ]

	faultproxy_set p '{"blob": "sha256:", "action": "chunked"}'
	[ "$(status_of "$blob")" = 200 ]
	[ "$(stat -c %s "$OUT")" = "$size" ]

	faultproxy_set p '{"blob": "sha256:", "action": "slow", "rate": 1000000}' 
	[ "$(status_of -r 0-499999 "$blob")" = 206 ]

	faultproxy_set p '{"action": "status", "status": 503, "until": 0.5}' '{"action": "delay", "seconds": 0.1}'
	[ "$(status_of "$blob")" = 503 ]
	sleep 0.6
	[ "$(status_of "$blob")" = 200 ]
	[ "$(faultproxy_count p '.action == "delay"')" = 1 ]
}

@test "fault proxy: dead tokens, TLS" {
	tokenserver_start
	registry_start main --token
	tls_cert "$BST_ROOT/tls"
	faultproxy_start p "$REGISTRY" --tls-cert "$BST_ROOT/tls/cert.pem" --tls-key "$BST_ROOT/tls/key.pem"
	local token with=(--cacert "$BST_ROOT/tls/ca.pem")
	token=$(curl -sf "http://$TOKENSERVER/token?service=bootseer-tests&scope=repository:none:pull" | jq -r .token)
	with+=(-H "Authorization: Bearer $token")
	[ "$(status_of "${with[@]}" "https://$FAULTPROXY/v2/none/tags/list")" = 404 ]
	faultproxy_set p '{"action": "refuse", "count": 1}'
	[ "$(status_of "${with[@]}" -D "$BST_ROOT/head" "https://$FAULTPROXY/v2/none/tags/list")" = 401 ]
	grep -qi "^www-authenticate: bearer realm=\"http://$TOKENSERVER/token\"" "$BST_ROOT/head"
	[ "$(status_of "${with[@]}" "https://$FAULTPROXY/v2/none/tags/list")" = 404 ]
}

@test "namespace: a registry behind a slow link" {
	netns_create reg
	registry_start main --netns reg
	head -c 3000000 /dev/urandom >"$BST_ROOT/blob"
	echo '{}' >"$BST_ROOT/config"
	image_push "$(image_busybox)" "$REGISTRY/busybox:latest"
	faultproxy_start p "$REGISTRY" --netns reg
	netns_rate reg 2mbit
	local before start
	before=$(netns_rx_bytes reg) start=$(date +%s%N)
	[ "$(status_of "http://$FAULTPROXY$(blob_path)")" = 200 ]
	[ $(($(netns_rx_bytes reg) - before)) -gt 500000 ]
	[ $(($(date +%s%N) - start)) -gt 1000000000 ]
	netns_rate reg none
}

engine_containerd() {
	containerd_start "$1"
	containerd_load "$(image_busybox)" example.test/busybox:latest
	run bctr run --rm --runc-binary runc example.test/busybox:latest c1 echo hello
	echo "$output"
	[ "$output" = hello ]
	# left running: the teardown has to cope
	bctr run -d example.test/busybox:latest c2 sleep 1000
	[ "$(bctr tasks exec --exec-id e c2 cat /etc/passwd | head -1)" = "root:x:0:0:root:/root:/bin/sh" ]
	containerd_mount example.test/busybox:latest "$BST_ROOT/m"
	"${bst_lib:?}/treedump.py" "$BST_ROOT/m" >"$BST_ROOT/dump"
	grep -q "^/home/user	dir	0755	1000	1000" "$BST_ROOT/dump"
}

@test "containerd 1" {
	engine_containerd 1
}

@test "containerd 2" {
	engine_containerd 2
}

@test "containerd 2 with CRI, restarted" {
	containerd_start 2 --cri
	bctr plugins ls >"$BST_ROOT/plugins"
	grep cri "$BST_ROOT/plugins"
	run grep 'cri.*error' "$BST_ROOT/plugins"
	[ "$status" = 1 ]
	containerd_restart
}

@test "podman" {
	podman_setup
	podman_load "$(image_busybox)" example.test/busybox:latest
	run bpodman run --rm --name c1 example.test/busybox:latest echo hello
	echo "$output"
	[ "$output" = hello ]
	bpodman run -d --name c2 example.test/busybox:latest sleep 1000
	[ "$(bpodman exec c2 id -u)" = 0 ]
	[ "$(bpodman run --rm --user user example.test/busybox:latest id -G)" = "1000 1001" ]
	bpodman restart -t 0 c2
}

# opinions VERSION: containerd's and our own unpacking of an image must agree
opinions() {
	local img
	img=$(image_nasty --engine-safe --without sparse --without bigdir)
	containerd_start "$1"
	containerd_load "$img" example.test/nasty:latest
	containerd_mount example.test/nasty:latest "$BST_ROOT/theirs"
	mkdir "$BST_ROOT/ours"
	"${bst_lib:?}/ociunpack.py" "$img" "$BST_ROOT/ours"
	"$bst_lib/treedump.py" "$BST_ROOT/theirs" >"$BST_ROOT/theirs.dump"
	"$bst_lib/treedump.py" "$BST_ROOT/ours" >"$BST_ROOT/ours.dump"
	[ "$(wc -l <"$BST_ROOT/ours.dump")" -gt 1500 ]
	# containerd does not apply what a layer says of the root directory itself
	diff <(tail -n +2 "$BST_ROOT/theirs.dump") <(tail -n +2 "$BST_ROOT/ours.dump")
}

@test "containerd 1 unpacks the nasty image as we do" {
	opinions 1
}

@test "containerd 2 unpacks the nasty image as we do" {
	opinions 2
}

@test "the whole nasty image can be unpacked and dumped" {
	mkdir "$BST_ROOT/r"
	"${bst_lib:?}/ociunpack.py" "$(image_nasty --without sparse)" "$BST_ROOT/r"
	"$bst_lib/treedump.py" "$BST_ROOT/r" >"$BST_ROOT/dump"
	[ "$(grep -c ^/bigdir/ "$BST_ROOT/dump")" = 70000 ]
	[ "$(awk '{ if (length($1) > n) n = length($1) } END { print n }' "$BST_ROOT/dump")" -gt 4096 ]
	# one inode in two layers; a date before the epoch (floor and nanoseconds)
	[ "$(awk '/^\/xlink\/(new|old)\t/ { print $9 }' "$BST_ROOT/dump" | uniq -c | awk '{ print $1 }')" = 2 ]
	[ "$(awk '$1 == "/oldtimes/-1000000000.25" { print $7 }' "$BST_ROOT/dump")" = -1000000001.750000000 ]
}

@test "an image of 127 layers" {
	containerd_start 1
	containerd_load "$(image_layers 127)" example.test/layers:latest
	[ "$(bctr run --rm example.test/layers:latest c1 sh -c 'ls /etc/layers | wc -l')" = 126 ]
}
