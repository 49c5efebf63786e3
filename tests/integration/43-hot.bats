#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 43-hot.bats: a start is recorded, its hot pack published, found and streamed.
# timeout: 600
# test-timeout: 120
# needs: image-python
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
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

more_script="$script; import sqlite3, xml.dom.minidom, asyncio, unittest"

# hot_image: the python image in $REGISTRY, and a bundle of it that runs $script.
hot_image() {
	registry_start main
	lazy_publish "$(image_python):latest" py
	lazy_node "hot record_window = 4s" "fetch background = no" "node keep_mounts = 1s" "$@"
	lazy_bundle "$BST_ROOT/b" py python3 -c "$script"
}

recorded() {
	hot_state .state | grep -x recorded
}

@test "the first start is recorded, the next node streams what it needs" {
	local pack bytes
	hot_image
	run_hot first
	hot_state .state | grep -qxE "recording|recorded"
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
	hot_image
	run_hot made
	bst_wait 30 published
	another_node
}

# pack_file: the pack's bytes in the registry's storage.
pack_file() {
	local digest
	digest=$(hot_manifest | jq -r '.layers[1].digest' | cut -d: -f2)
	echo "$REGISTRY_DIR/docker/registry/v2/blobs/sha256/${digest:0:2}/$digest/data"
}

@test "policy: never, only annotated, by its own name" {
	hot_image "hot record = never"
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
	[ "$(hot_state .workload)" = "team/eval@1" ]
	another_node
	sed -i 's/^record = .*/record = auto/' "$BOOTSEER_CONFIG"
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.record"] = "no"'
	run_hot d
	[ -z "$(hot_state .state)" ]
	[ "$(hot_packs)" = 0 ]
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.workload"] = "no name"'
	run ! lazy_run run -b "$BST_ROOT/b" e
	[[ $output == *"annotation 'dev.bootseer.workload': 'no name' is no workload's name"* ]]
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
		bst_wait 10 grep -E 'hot pack.*(wrong bytes|segment|extent|another image|not the one that its manifest names)' "$BST_RUN/bootseerd.log"
		! streamed
		another_node
		rm -f "$BST_RUN/bootseerd.log"
		cp "$BST_ROOT/pack" "$file"
	done
	run_hot right
	bst_wait 10 streamed
}

@test "what hooks of the bundle read is in the pack" {
	local stage
	hot_image
	for stage in prestart:turtle createRuntime:pydoc createContainer:pickletools; do
		printf '#!/bin/sh\ncat "$(jq -r .bundle)/rootfs/usr/lib/python3.11/%s.py" >/dev/null\n' \
			"${stage#*:}" >"$BST_ROOT/${stage%:*}"
		chmod 755 "$BST_ROOT/${stage%:*}"
		lazy_edit "$BST_ROOT/b" '.hooks[$s] = [{path: $p, env: ["PATH=/usr/bin:/bin"]}]' \
			--arg s "${stage%:*}" --arg p "$BST_ROOT/${stage%:*}"
	done
	run_hot hooked
	bst_wait 20 published
	bootseerctl hot show "docker://$REGISTRY/py:latest" "$(hot_manifest | jq -r '.annotations["dev.bootseer.workload"]')" \
		--plain-http --json >"$BST_ROOT/shown"
	for stage in turtle pydoc pickletools; do
		jq -e --arg f "/$stage.py" 'any(.files[].path; endswith($f))' "$BST_ROOT/shown"
	done
	# nobody else reads them
	jq -e 'all(.files[].path; endswith("/cgitb.py") | not)' "$BST_ROOT/shown"
}

# put_blob FILE: in the registry, as part of py.
put_blob() {
	local to digest
	digest=$(sha256sum "$1" | cut -d' ' -f1)
	to=$(curl -sf -D - -o /dev/null -X POST "http://$REGISTRY/v2/py/blobs/uploads/" |
		tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
	curl -sf -X PUT -H 'Content-Type: application/octet-stream' --data-binary "@$1" \
		"$to&digest=sha256:$digest" >&2
	echo "sha256:$digest"
}

@test "a well-formed pack with one false byte in a library reaches nobody" {
	local head pack
	hot_made
	head=$("$BATS_TEST_DIRNAME/../lib/hotliar.py" "$(pack_file)" "$BST_ROOT/lie")
	pack=$(put_blob "$BST_ROOT/lie")
	hot_manifest | jq -c --arg head "$head" --arg pack "$pack" \
		--argjson size "$(stat -c %s "$BST_ROOT/lie")" \
		'.layers[1] |= (.digest = $pack | .size = $size) |
			(.. | objects | select(has("dev.bootseer.hot.head.digest")))["dev.bootseer.hot.head.digest"] = $head' \
		>"$BST_ROOT/manifest"
	curl -sf -X PUT -H 'Content-Type: application/vnd.oci.image.manifest.v1+json' \
		--data-binary "@$BST_ROOT/manifest" "http://$REGISTRY/v2/py/manifests/$(hot_tags)"
	[ "$(hot_manifest | jq -r '.layers[1].digest')" = "$pack" ]
	run_hot lied-to
	bst_wait 10 grep -E 'hot pack.*wrong bytes' "$BST_RUN/bootseerd.log"
	run ! streamed
	# its other segments were of use: it was refused for what it says, and not for its form
	[ "$(node_status .served.cache.bad_segments)" -gt 0 ]
	[ "$(node_status .served.cache.hot_bytes)" -gt 100000 ]
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	run_hot lied-to-again
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

@test "many starts at once on a cold node: one stream" {
	local i pids=()
	hot_made
	for i in 1 2 3 4 5 6; do
		cp -r "$BST_ROOT/b" "$BST_ROOT/b$i"
		# shellcheck disable=SC2016
		lazy_edit "$BST_ROOT/b$i" '.linux.cgroupsPath = $g' --arg g "/bst-$BST_ID/b$i"
	done
	node_start
	for i in 1 2 3 4 5 6; do
		lazy_run run -b "$BST_ROOT/b$i" "many$i" >"$BST_LOG/many$i" 2>&1 &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i"
	done
	for i in 1 2 3 4 5 6; do
		[ "$(cat "$BST_LOG/many$i")" = "$said" ]
	done
	bst_wait 10 streamed
	node_status .served.hot
	[ "$(node_status '.served.cache.hot_bytes <= .served.hot[0].pack_bytes')" = true ]
	lazy_no_state
}

@test "what was streamed is not asked for again on this node" {
	local before asked
	hot_made
	# single frames that a start needs beside it may still come
	asked="GET [^ ]*($(basename "$(dirname "$(pack_file)")")|manifests)"
	run_hot one
	bst_wait 10 streamed
	before=$(grep -cE "$asked" "$BST_LOG/registry-main.log")
	run_hot two
	[ "$(grep -cE "$asked" "$BST_LOG/registry-main.log")" = "$before" ]
}

# erofs_readahead: of each EROFS mount that there is, "NAME KIB" lines.
erofs_readahead() {
	grep -H . /sys/class/bdi/erofs-*/read_ahead_kb 2>/dev/null | sed 's|.*/\(erofs-[0-9]*\)/.*:|\1 |' | sort
}

# new_readahead KIB: whether a mount that was not there before has it.
new_readahead() {
	comm -13 <(cut -d' ' -f1 <<<"$mounts") <(erofs_readahead | cut -d' ' -f1) |
		grep -Fxf - <(erofs_readahead | grep " $1\$" | cut -d' ' -f1)
}

# reads_ahead NAME...: again, all of them.
reads_ahead() {
	local name
	for name; do
		[ "$(cat "/sys/class/bdi/$name/read_ahead_kb")" = 128 ] || return 1
	done
}

@test "the kernel reads ahead again when a recording is over" {
	local mounts names
	hot_image
	mounts=$(erofs_readahead)
	lazy_command "$BST_ROOT/b" python3 -c 'import time; time.sleep(60)'
	bst_spawn container "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$BST_ROOT/b" long
	bst_defer lazy_run delete -f long
	bst_wait 10 new_readahead 4
	mapfile -t names < <(new_readahead 4)
	# also when who would do it was replaced
	kill -KILL "$(node_pid supervisor)"
	bst_wait 15 reads_ahead "${names[@]}"
	lazy_run delete -f long
}

no_pack() {
	grep "no hot pack of workload" "$BST_RUN/bootseerd.log"
}

@test "who is ready is recorded no longer" {
	hot_image
	sed -i 's/^record_window.*/record_window = 10m/' "$BOOTSEER_CONFIG"
	lazy_run run -d -b "$BST_ROOT/b" first >"$BST_LOG/first.log" 2>&1
	bst_wait 10 grep -Fx "$said" "$BST_LOG/first.log"
	run ! bootseerctl hot ready nobody
	[[ $output == *"'nobody' is not recorded"* ]]
	[ "$(hot_packs)" = 0 ]
	bootseerctl hot ready first
	bst_wait 30 published
	lazy_run delete -f first
	another_node
	run_hot second
	bst_wait 10 streamed
}

@test "a start whose recording came to nothing is recorded again" {
	hot_image
	# not deleted at its end: the recording goes on
	lazy_run run -d -b "$BST_ROOT/b" first >"$BST_LOG/first.log" 2>&1
	bst_wait 10 grep -Fx "$said" "$BST_LOG/first.log"
	sleep 0.5
	truncate -s 64 "$BST_CACHE"/images/*/hot-*.rec
	bst_wait 15 no_pack
	[ "$(hot_packs)" = 0 ]
	lazy_run delete -f first
	sleep 2 # the mount is gone, and with it the pages
	run_hot second
	bst_wait 15 published
}

@test "no more workloads of an image are recorded than there may be" {
	local n entry
	hot_image "hot record = never"
	run_hot first
	entry=$(dirname "$BST_CACHE"/images/*/blob)
	for ((n = 0; n < 64; n++)); do
		printf x >"$entry/hot-$(printf %040d "$n").workload"
	done
	node_stop
	sed -i 's/^record = .*/record = auto/' "$BOOTSEER_CONFIG"
	run_hot second
	grep "workload 'python3-[0-9a-f]*' is not recorded: 64 workloads of the image" "$BST_RUN/bootseerd.log"
	[ -z "$(hot_state .state)" ]
	rm "$entry/hot-$(printf %040d 7).workload"
	run_hot third
	hot_state .state | grep -qxE "recording|recorded"
}

@test "a source that does not say whether there is a pack costs two seconds" {
	local mounts names
	registry_start main
	lazy_publish "$(image_python):latest" py
	faultproxy_start silent "$REGISTRY"
	faultproxy_set silent '{"path": "bootseer-hot", "action": "stall"}'
	REGISTRY=$FAULTPROXY
	lazy_node "fetch background = no"
	lazy_bundle "$BST_ROOT/b" py python3 -c "$script; import time; time.sleep(3)"
	mounts=$(erofs_readahead)
	run_hot first
	bst_spawn container "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$BST_ROOT/b" second
	# the mount reads ahead before there is an answer
	bst_wait 10 new_readahead 0
	mapfile -t names < <(new_readahead 0)
	bst_wait 5 reads_ahead "${names[@]}"
	bst_wait 8 grep -Fx "$said" "$BST_LOG/container.log"
	bst_stop container
}

# watched: the last start of a workload was, and it is over.
watched() {
	[ "$(hot_state '.use.over')" = true ]
}

# reads MORE...: a container with the same workload, but a script that reads more.
other_script() {
	lazy_command "$BST_ROOT/b" python3 -c "$1"
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.workload"] = "same"'
}

@test "status tells what a start did with its pack" {
	local use
	hot_image "hot rerecord = 0%"
	other_script "$script"
	run_hot made
	bst_wait 30 published
	another_node
	run_hot good
	bst_wait 10 streamed
	bst_wait 10 watched
	use=$(hot_state .use)
	echo "use: $(jq -c . <<<"$use")"
	# nearly all of it is read, by one or the other, and nearly nothing beside it
	jq -e '.mixed == false and .verdict == "none" and .warmed_blocks > 0 and
		.read_blocks + .warmed_blocks + .unread_blocks == .pack_blocks and
		.unread_blocks < .pack_blocks / 10 and
		.missed_min_blocks < .pack_blocks / 10' <<<"$use"
	# the same in words
	bootseerctl status | tee "$BST_ROOT/status"
	grep -E "^hot same of sha256:[0-9a-f]{12}  streamed, pack [0-9.]+ MiB, [0-9.]+ MiB came at [0-9.]+ [KMG]iB/s, .* of it read, .* warmed before, .* read by nobody; beside it .* fetched and .* cached$" \
		"$BST_ROOT/status"
	[ "$(grep -c same "$BST_ROOT/status")" = 1 ]
	jq -se 'any(.[]; .name == "hot-use" and (.text | test("^workload .same.: of the pack.s .* the containers read")))' \
		"$BST_RUN/timeline/good.jsonl"
	bootseerctl timeline good | tee "$BST_ROOT/timeline"
	# each line says what it is
	run -1 grep -vE '^good |\| [a-z-]+ .*  [A-Za-z][A-Za-z.'\'' ]+ [a-z]' "$BST_ROOT/timeline"
	grep -E '\| hot-pack .* MiB  the hot pack streamed into the cache: workload .same.: [0-9]+ of its segments came' \
		"$BST_ROOT/timeline"
	bootseerctl hot show "docker://$REGISTRY/py:latest" same --plain-http --files 1 |
		grep -A1 '^on this node, last start$' | grep 'of the pack .* read by nobody'

	another_node
	other_script "$more_script"
	run_hot more
	bst_wait 10 streamed
	bst_wait 10 watched
	use=$(hot_state .use)
	echo "use: $(jq -c . <<<"$use")"
	jq -e '.missed_min_blocks > .pack_blocks / 20 and .fetched_blocks > 0 and .missed_reads > 0 and
		(.files | length) == 10 and any(.files[].path; test("sqlite3|asyncio|unittest|xml")) and
		([.files[].blocks] | . == (sort | reverse))' <<<"$use"
	# the numbers are those of the pack that was used, whichever is there now
	echo usr/bin/env >"$BST_ROOT/list"
	bootseerctl hot build "docker://$REGISTRY/py:latest" same --from "$BST_ROOT/list" --replace --plain-http -q
	bootseerctl hot show "docker://$REGISTRY/py:latest" same --plain-http --files 1 |
		grep -E "^on this node, last start, with another pack \\($(jq -r '.artifact[:19]' <<<"$use")\\)$"
	lazy_no_state
}

# another_node_but_the_verdict: the cache is as empty, but the pack and what is thought of it are known.
another_node_but_the_verdict() {
	node_stop
	rm -f "$BST_CACHE"/images/*/{blob,present,blocks,state} "$BST_RUN/bootseerd.log"
}

@test "a pack that cannot be made now is made later, of the same recording" {
	local entry
	hot_image
	other_script "$script; import sys, time; sys.stdout.flush(); time.sleep(4)"
	run_hot made &
	bst_wait 10 eval 'hot_state .state | grep -x recording'
	bst_wait 10 eval 'find "$BST_CACHE" -name "hot-*.rec" | grep -q .'
	entry=$(dirname "$(find "$BST_CACHE" -name 'hot-*.rec')")
	# no new file goes in there
	chattr +i "$entry"
	bst_defer chattr -i "$entry"
	wait $!
	bst_wait 15 grep "no hot pack of workload 'same' yet: .* (it is tried again in 5" "$BST_RUN/bootseerd.log"
	hot_state .pack | grep "not yet: "
	[ "$(hot_packs)" = 0 ]
	chattr -i "$entry"
	bst_wait 15 published
	bst_wait 5 eval '[ -z "$(find "$BST_CACHE" -name "hot-*.rec")" ]'
}

@test "a workload that has changed is recorded again, and its pack replaced" {
	local old bytes blocks fetched
	hot_image "hot rerecord = 5%"
	other_script "$script"
	run_hot made
	bst_wait 30 published
	old=$(pack_file)
	another_node
	other_script "$more_script"
	run_hot changed
	bst_wait 15 watched
	[ "$(hot_state .use.verdict)" = stale ]
	grep "hot pack of workload 'same' is stale: .*; most of: .*libsqlite3" "$BST_RUN/bootseerd.log"
	blocks=$(hot_state .use.pack_blocks)
	# recorded beside the old one, which is of use all the same
	another_node_but_the_verdict
	run_hot again
	[ "$(hot_state .state | sort | tr '\n' ' ')" = "recording streamed " ]
	bytes=$(node_status .served.cache.hot_bytes)
	[ "$bytes" -gt 1000000 ]
	[ -z "$(hot_state 'select(.state == "streamed").use // empty')" ]
	fetched=$(node_status .served.cache.fetched_bytes)
	bst_wait 30 grep "hot pack of workload 'same' .*: published at" "$BST_RUN/bootseerd.log"
	[ "$(pack_file)" != "$old" ]
	[ "$(hot_packs)" = 1 ]
	# made of what was here, the old pack's single blocks too
	echo "fetched: $fetched, then $(node_status .served.cache)"
	[ $(($(node_status .served.cache.fetched_bytes) - fetched)) -lt 300000 ]
	[ -z "$(find "$BST_CACHE" -name "hot-*.proofs")" ]
	bootseerctl hot show "docker://$REGISTRY/py:latest" same --plain-http --json |
		jq -e --argjson n "$blocks" '.recordings == 2 and .blocks > $n and any(.files[].path; test("sqlite3"))'

	# the next node has all that it needs
	another_node
	rm -f "$BST_RUN/bootseerd.log"
	run_hot right
	bst_wait 15 watched
	[ "$(hot_state .use.verdict)" = none ]
	[ "$(hot_state '.use.missed_min_blocks < .use.pack_blocks / 20')" = true ]
	lazy_no_state
}

# stale: a pack of which a start has missed much.
stale() {
	hot_image "hot rerecord = 5%"
	other_script "$script"
	run_hot made
	bst_wait 30 published
	another_node
	other_script "$more_script"
	run_hot changed
	bst_wait 15 watched
	[ "$(hot_state .use.verdict)" = stale ]
}

@test "a newer pack takes the place of a stale one without another recording" {
	stale
	printf '%s\n' usr/bin/python3.11 usr/lib/x86_64-linux-gnu/libc.so.6 >"$BST_ROOT/list"
	bootseerctl hot build "docker://$REGISTRY/py:latest" same --from "$BST_ROOT/list" --replace --plain-http -q
	another_node_but_the_verdict
	run_hot newer
	bst_wait 10 streamed
	# and from then on it is the one
	run_hot newer2
	[ "$(hot_state .state)" = streamed ]
}

@test "a pack that only seemed stale stays" {
	stale
	another_node_but_the_verdict
	# as if others had read all that beside it
	other_script "$script"
	run_hot again
	bst_wait 15 grep "'same' was recorded again: its hot pack is right, it stays" "$BST_RUN/bootseerd.log"
	another_node_but_the_verdict
	other_script "$more_script"
	run_hot changed2
	bst_wait 15 watched
	[ "$(hot_state .use.verdict)" = right ]
	bootseerctl hot show "docker://$REGISTRY/py:latest" same --plain-http --json | jq -e '.recordings == 1'
}

# python_again: the python image with one small layer more, which changes a module and adds a file.
python_again() {
	local base n out=$BST_ROOT/again tars=()
	base=$(image_python)
	mkdir -p "$out" "$BST_ROOT/layer/usr/lib/python3.11/json" "$BST_ROOT/layer/usr/lib/aaa"
	for n in 0 1; do
		gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" $n)" >"$BST_ROOT/$n.tar"
		tars+=("$BST_ROOT/$n.tar")
	done
	tar -xOf "$BST_ROOT/1.tar" ./usr/lib/python3.11/json/__init__.py >"$BST_ROOT/layer/usr/lib/python3.11/json/__init__.py"
	echo '# changed' >>"$BST_ROOT/layer/usr/lib/python3.11/json/__init__.py"
	head -c 300000 /dev/urandom >"$BST_ROOT/layer/usr/lib/aaa/new"
	images_tar "$BST_ROOT/layer" >"$BST_ROOT/2.tar"
	"$images_lib/ocilayout.py" --config '{"Cmd":["python3"],"WorkingDir":"/root"}' \
		"$out" "${tars[@]}" "$BST_ROOT/2.tar" >/dev/null
	echo "$out"
}

# run_again ID: as run_hot, from the changed image.
run_again() {
	run -0 lazy_run run -b "$BST_ROOT/b2" "$1"
	[ "$output" = "$said" ]
}

# frame_bytes: that came beside packs.
frame_bytes() {
	node_status .served.cache.fetched_bytes
}

# translated [FILTER]: of the stream of another image's pack, which has ended.
translated() {
	hot_state "select(.pack_of and .state == \"streamed\") | ${1:-.}" | grep .
}

@test "an image with one more layer starts with what the old one's pack has of it" {
	local alone bytes old
	hot_image "hot record = never" "hot publish = no"
	old=$(lazy_digest py)
	other_script "$script"
	lazy_publish "$(python_again)" again
	lazy_bundle "$BST_ROOT/b2" again python3 -c "$script"
	lazy_edit "$BST_ROOT/b2" '.annotations["dev.bootseer.workload"] = "same"'
	# on a node that knows nothing
	run_again alone
	alone=$(frame_bytes)
	# the old image is recorded, and streamed on a node that knows it from then on
	another_node
	sed -i 's/^record = .*/record = auto/; s/^publish = .*/publish = yes/' "$BOOTSEER_CONFIG"
	run_hot made
	bst_wait 30 published
	another_node
	run_hot streams
	bst_wait 10 streamed

	# what it has on this node is copied, and the start recorded all the same
	bytes=$(frame_bytes)
	run_again one
	bst_wait 10 translated
	echo "alone $alone, now $(($(frame_bytes) - bytes)), $(translated)"
	[ "$(translated .pack_of)" = "$old" ]
	# of whole frames, each proven again
	[ "$(translated .copied_blocks)" -gt 500 ]
	# all but what it read in the moment before
	[ $(($(frame_bytes) - bytes)) -lt $((alone * 3 / 4)) ]
	hot_state .state | grep -x recording
	bst_wait 30 recorded

	# where the old image's blocks are gone, its pack is streamed
	node_stop
	rm -rf "$BST_CACHE/images/$(lazy_digest again | cut -d: -f2)"
	rm -f "$BST_CACHE/images/${old#sha256:}"/{blob,present,blocks,state}
	curl -sf "http://$REGISTRY/v2/again/tags/list" | jq -r '.tags[] | select(startswith("bootseer-hot-"))' |
		while read -r tag; do
			rm -r "$REGISTRY_DIR/docker/registry/v2/repositories/again/_manifests/tags/$tag"
		done
	run_again two
	bst_wait 10 translated
	echo "alone $alone, now $(frame_bytes), $(translated)"
	[ "$(translated .copied_blocks)" = 0 ]
	[ "$(translated .bytes)" -gt 1000000 ]
	[ "$(frame_bytes)" -lt $((alone * 3 / 4)) ]
	[ "$(node_status .served.cache.bad_segments)" = 0 ]
	lazy_no_state
}

completing() {
	node_status '.served.images[] | .completing or .complete' | grep -x true
}

@test "hot-only, by the host or the pod, fetches no rest of an image" {
	registry_start main
	lazy_publish "$(image_python):latest" py
	lazy_node "hot record = never" "fetch background_rate = 1M" "fetch hot_only = $REGISTRY/p*"
	lazy_bundle "$BST_ROOT/b" py python3 -c "$script"
	run_hot host
	run ! completing
	[ "$(node_status .served.lanes.background.requests)" = 0 ]
	# a pod may want it all the same
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.background"] = "complete"'
	run_hot pod
	bst_wait 5 completing
	another_node
	sed -i '/^hot_only/d' "$BOOTSEER_CONFIG"
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.background"] = "hot-only"'
	run_hot pod-hot-only
	run ! completing
	lazy_edit "$BST_ROOT/b" 'del(.annotations["dev.bootseer.background"])'
	run_hot host-complete
	bst_wait 5 completing
	lazy_edit "$BST_ROOT/b" '.annotations["dev.bootseer.background"] = "some"'
	run ! lazy_run run -b "$BST_ROOT/b" wrong
	[[ $output == *"'dev.bootseer.background' is 'some', but must be complete or hot-only"* ]]
}
