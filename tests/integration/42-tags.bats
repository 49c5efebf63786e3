#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 42-tags.bats: a container names its image by a tag, which means what it means at its start.
# timeout: 300
# test-timeout: 100
# shellcheck disable=SC2154

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

# bundle_of REF TAGGED: $BST_ROOT/bundle of REF that asks for TAGGED, runs sh without a terminal.
bundle_of() {
	rm -f "$BST_ROOT/bundle/config.json"
	bootseerctl bundle "$1" "$BST_ROOT/bundle" --plain-http
	jq --arg ref "$2" '.process.terminal = false | .annotations["dev.bootseer.image"] = $ref |
		.process.args = ["/bin/sh", "-c", "echo from the container"]' \
		"$BST_ROOT/bundle/config.json" >"$BST_ROOT/c"
	cat "$BST_ROOT/c" >"$BST_ROOT/bundle/config.json"
}

# starts ID DIGEST: a container of that name does, and everything says that it got DIGEST.
starts() {
	bootseer create -b "$BST_ROOT/bundle" "$1" </dev/null >"$BST_LOG/$1.out" 2>&1 3>&- 4>&- || {
		cat "$BST_LOG/$1.out"
		return 1
	}
	bst_defer bootseer delete -f "$1"
	jq -r .digest "$BST_RUN"/state/"$1"@*.json | grep -x "$2"
	cat "$BST_RUN"/leases/"$1"@* | grep -x "$2"
	jq -r '.annotations["dev.bootseer.served"]' "$BST_ROOT/bundle/config.json" | grep -x "$2"
	jq -r 'select(.name == "resolve").text' "$BST_RUN/timeline/$1.jsonl" | grep -x "$2"
	bootseer start "$1"
	bst_wait 10 grep -x 'from the container' "$BST_LOG/$1.out"
}

@test "layout: the original's tag, none for latest, the stub's tag" {
	local ref layout=oci:$BST_ROOT/image i=0
	convert "oci:$(image_busybox):latest" "$layout:latest"
	node_conf
	for ref in "$layout:latest" "$layout" "$layout:latest-bootseer"; do
		bundle_of "$layout:latest" "$ref"
		starts "t$((i += 1))-$BST_ID" "$digest"
		bootseer delete -f "t$i-$BST_ID"
	done
}

@test "registry: a tag, beside the original as well; and what it means now" {
	local first
	registry_start main
	image_push "$(image_busybox)" "$REGISTRY/base:one"
	convert "docker://$REGISTRY/base:one" "docker://$REGISTRY/base:one" --plain-http
	first=$digest
	node_conf "fetch plain_http = $REGISTRY"
	bundle_of "docker://$REGISTRY/base:one" "$REGISTRY/base:one"
	starts "a-$BST_ID" "$first"
	bootseer delete -f "a-$BST_ID"
	# the tag means another image: the next start of the same bundle gets it
	image_push "$(image_layers 3)" "$REGISTRY/base:one"
	convert "docker://$REGISTRY/base:one" "docker://$REGISTRY/base:one" --plain-http
	[ "$digest" != "$first" ]
	starts "b-$BST_ID" "$digest"
	[ "$(node_status '.mounts | length')" = 2 ]
}

@test "many starts with a tag at once ask for it once" {
	local i pids=()
	registry_start main
	image_push "$(image_busybox)" "$REGISTRY/base:one"
	convert "docker://$REGISTRY/base:one" "docker://$REGISTRY/base:one" --plain-http
	node_conf "fetch plain_http = $REGISTRY"
	bundle_of "docker://$REGISTRY/base:one" "$REGISTRY/base:one"
	node_start
	registry_stop_answering
	for i in 1 2 3 4 5 6; do
		cp -r "$BST_ROOT/bundle" "$BST_ROOT/bundle$i"
		bootseer run -b "$BST_ROOT/bundle$i" "m$i-$BST_ID" </dev/null >"$BST_LOG/m$i" 2>&1 3>&- 4>&- &
		pids+=($!)
	done
	sleep 1
	registry_answer
	for i in "${pids[@]}"; do
		wait "$i"
	done
	[ "$(cat "$BST_LOG"/m? | sort | uniq -c | tr -s ' ')" = " 6 from the container" ]
	[ "$(registry_requests main '/v2/base/manifests/one')" -le $((asked + 2)) ]
}

registry_stop_answering() {
	asked=$(registry_requests main '/v2/base/manifests/one')
	kill -STOP "$(bst_pid registry-main)"
}

registry_answer() {
	kill -CONT "$(bst_pid registry-main)"
}

@test "a tag that is not there fails and says what to do; a complete rootfs starts plainly" {
	convert "oci:$(image_busybox):latest" "oci:$BST_ROOT/image:latest"
	node_conf
	bundle_of "oci:$BST_ROOT/image:latest" "oci:$BST_ROOT/image:v9"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *dev.bootseer.image*"oci:$BST_ROOT/image:v9"*"no tag 'v9'"*"bootseerctl image ls"* ]]
	[ -z "$(find "$BST_RUN/state" "$BST_RUN/leases" -type f)" ]
	# an image without a converted form
	mkdir -p "$BST_ROOT/plain"
	cp -r "$(image_busybox)/." "$BST_ROOT/plain"
	bundle_of "oci:$BST_ROOT/image:latest" "oci:$BST_ROOT/plain:latest"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"oci:$BST_ROOT/plain:latest"*"no converted form"*"image convert"* ]]
	# there is something to start without it
	mkdir -p "$BST_ROOT/bundle/rootfs/bin"
	cp "$(command -v busybox)" "$BST_ROOT/bundle/rootfs/bin/sh"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"$BST_ROOT/plain:latest is not served"*"from the container"* ]]
	bootseerctl timeline "$BST_ID" | grep fallback
	jq '.annotations["dev.bootseer.fallback"] = "fail"' "$BST_ROOT/bundle/config.json" >"$BST_ROOT/c"
	cat "$BST_ROOT/c" >"$BST_ROOT/bundle/config.json"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	[ "$status" = 1 ]
}

@test "a repository that policy forbids is not asked, whatever stores there are" {
	convert "oci:$(image_busybox):latest" "oci:$BST_ROOT/image:latest"
	registry_start main
	node_conf "fetch plain_http = $REGISTRY" "fetch stores = oci:$BST_ROOT/image" \
		"policy allow_registries = registry.example/*"
	bundle_of "oci:$BST_ROOT/image:latest" "docker://$REGISTRY/image:latest"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *dev.bootseer.image*"$REGISTRY/image"*allow_registries* ]]
	[ "$(registry_requests main '/v2/image')" = 0 ]
	# allowed, but only a store has the tag: that is none of this repository
	sed -i "s,^allow_registries.*,allow_registries = $REGISTRY/*," "$BOOTSEER_CONFIG"
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 1 ]
	[ "$(registry_requests main '/v2/image')" -gt 0 ]
}

@test "a registry that comes back in time is waited for, one that does not is named" {
	registry_start main
	image_push "$(image_busybox)" "$REGISTRY/base:one"
	convert "docker://$REGISTRY/base:one" "docker://$REGISTRY/base:one" --plain-http
	node_conf "fetch plain_http = $REGISTRY" "fetch start_wait = 3s"
	bundle_of "docker://$REGISTRY/base:one" "$REGISTRY/base:one"
	bst_stop registry-main
	run bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"given up after"*"$REGISTRY/base"* ]]
	bootseer run -b "$BST_ROOT/bundle" "$BST_ID" </dev/null >"$BST_LOG/late" 2>&1 3>&- 4>&- &
	pid=$!
	sleep 1
	registry_start main --port "${REGISTRY##*:}" --data "$REGISTRY_DIR"
	wait "$pid"
	grep -x 'from the container' "$BST_LOG/late"
}
