#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 44-hotctl.bats: bootseerctl hot, on a real registry and on OCI layouts.
# timeout: 500
# test-timeout: 120
# needs: image-python
# shellcheck disable=SC2154,SC2030,SC2031,SC2016

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash

setup() {
	bst_setup
	bst_defer lazy_cgroups_gone
	tool=$BOOTSEER_BUILDDIR/tests/lib/repotool
	MANIFEST=application/vnd.oci.image.manifest.v1+json
}

teardown() {
	bst_teardown
}

hot() {
	bootseerctl hot "$@"
}

# small_image: a layout with an image of a few files; sets L, its reference, and digest.
small_image() {
	local tree=$BST_ROOT/tree esc=$'\033'
	mkdir -p "$tree/bin" "$tree/lib"
	head -c 300000 /dev/urandom >"$tree/bin/big"
	yes some text | head -c 100000 >"$tree/lib/text"
	head -c 5000 /dev/urandom >"$tree/lib/evil${esc}[2J"$'\n'"name"
	head -c 9000 /dev/urandom >"$tree/lib/cold"
	L=oci:$BST_ROOT/layout:small
	convert "rootfs:$tree" "$L"
}

# build WORKLOAD FILE...: a pack of these files in $L.
build() {
	local workload=$1
	shift
	printf '%s\n' "$@" >"$BST_ROOT/list"
	hot build "$L" "$workload" --from "$BST_ROOT/list" --quiet
}

# pack_manifest WORKLOAD: its bytes, to $BST_ROOT/m.
pack_manifest() {
	local d
	d=$(hot ls "$L" --json | jq -r --arg w "$1" '.[] | select(.workload == $w and .current).digest')
	"$tool" "${L%:small}" get-manifest "$d" >"$BST_ROOT/m" 2>/dev/null
	TAG=$(jq -r --arg d "$d" '.manifests[] | select(.digest == $d) |
		.annotations["org.opencontainers.image.ref.name"]' "$BST_ROOT/layout/index.json")
}

# lie JQ: the manifest changed so, in the place of what it was.
lie() {
	jq -c "$1" "$BST_ROOT/m" >"$BST_ROOT/m.lie"
	"$tool" "${L%:small}" put-manifest "$TAG" "$MANIFEST" "$BST_ROOT/m.lie"
}

# profile_of_all: $BST_ROOT/profile, of every block of $L.
profile_of_all() {
	bootseerctl image info "$L" --json >"$BST_ROOT/info"
	/usr/bin/python3 - "$BST_ROOT/info" "$BST_ROOT/raw" <<-'P'
		import json, struct, sys
		info = json.load(open(sys.argv[1]))
		blocks = info["blobBytes"] // 4096
		table = bytes.fromhex(info["table"]["digest"].split(":")[1])
		with open(sys.argv[2], "wb") as f:
		    f.write(struct.pack("<8sIIIIII32sQQ", b"bs-prof\n", 1, 0, 0, 1, 1, 0, table, blocks, 0))
		    f.write(struct.pack("<IIII", 0, blocks, 0, 1))
	P
	zstd -q --no-check -f "$BST_ROOT/raw" -o "$BST_ROOT/profile"
}

# recorded_on_registry LINE...: the python image in $REGISTRY, started once.
recorded_on_registry() {
	registry_start main
	lazy_publish "$(image_python):latest" py
	lazy_node "hot record_window = 2s" "fetch background = no" "node keep_mounts = 1s" "$@"
	lazy_bundle "$BST_ROOT/b" py python3 -c 'import json; print(json.dumps([40 + 2]))'
	run -0 lazy_run run -b "$BST_ROOT/b" first
	bst_wait 20 recorded
	R=docker://$REGISTRY/py:latest
	WORKLOAD=$(node_status '.served.hot[0].workload')
}

recorded() {
	[ "$(node_status '.served.hot[] | .state')" = recorded ]
}

@test "a recorded pack in a registry: listed, shown, proven, compared, removed" {
	recorded_on_registry
	bst_wait 10 eval '[ "$(hot ls "$R" --plain-http --json | jq length)" = 1 ]'
	hot ls "$R" --plain-http | tee "$BST_ROOT/ls"
	grep -qE "^$WORKLOAD +1 +[0-9.]+ MiB +[0-9.]+ (KiB|MiB)  current  sha256:[0-9a-f]{64}$" "$BST_ROOT/ls"
	# under the stub's tag and the artifact's digest it is the same
	[ "$(hot ls "docker://$REGISTRY/py:latest-bootseer" --plain-http)" = "$(cat "$BST_ROOT/ls")" ]
	[ "$(hot ls "docker://$REGISTRY/py@$digest" --plain-http)" = "$(cat "$BST_ROOT/ls")" ]
	hot show "$R" "$WORKLOAD" --plain-http --svg "$BST_ROOT/p.svg" --files 5
	hot show "$R" "$WORKLOAD" --plain-http --json >"$BST_ROOT/show"
	jq -e '.recordings == 1 and .windowMs <= 2000 and .packBlocks == .blocks and
		.bytes == .blocks * 4096 and .packBytes < .bytes and (.files | length) == .nFiles and
		([.files[].firstMs] | . == sort) and all(.files[]; .hotBytes > 0 and .hotBytes <= .size)' \
		"$BST_ROOT/show"
	# the interpreter is among the first, and json's module was read
	jq -e '[.files[:10][].path] | any(test("bin/python3"))' "$BST_ROOT/show"
	jq -e 'any(.files[].path; test("json/.*decoder"))' "$BST_ROOT/show"
	/usr/bin/python3 -c 'import sys, xml.dom.minidom as m
d = m.parse(sys.argv[1]).documentElement
assert d.tagName == "svg" and len(d.getElementsByTagName("path")) > 10, d.tagName' "$BST_ROOT/p.svg"
	hot verify "$R" "$WORKLOAD" --plain-http | grep -E '^[0-9]+ segments with [0-9]+ blocks are right$'
	# the same from its profile: the same bytes
	local d
	d=$(hot ls "$R" --plain-http --json | jq -r '.[0].digest')
	curl -sf -H "Accept: $MANIFEST" "http://$REGISTRY/v2/py/manifests/$d" >"$BST_ROOT/m"
	curl -sf "http://$REGISTRY/v2/py/blobs/$(jq -r '.layers[0].digest' "$BST_ROOT/m")" >"$BST_ROOT/profile"
	run -1 hot build "$R" "$WORKLOAD" --from "$BST_ROOT/profile" --plain-http
	[[ $output == *"--replace puts this one in its place"* ]]
	hot build "$R" again --from "$BST_ROOT/profile" --plain-http -q
	[ "$(hot show "$R" again --plain-http --json | jq -c 'del(.workload, .digest)')" = \
		"$(jq -c 'del(.workload, .digest)' "$BST_ROOT/show")" ]
	hot diff "$R" "$WORKLOAD" again --plain-http --json |
		jq -e '.firstOnlyBytes == 0 and .secondOnlyBytes == 0 and .bothBytes > 0'
	# removed: tag and mention
	[ "$(hot rm "$R" "$WORKLOAD" --plain-http)" = "removed $d" ]
	[ "$(hot ls "$R" --plain-http --json | jq -r '.[].workload')" = again ]
	hot rm "$R" again --plain-http
	[ "$(hot ls "$R" --plain-http --json | jq length)" = 0 ]
	[ "$(curl -sf "http://$REGISTRY/v2/py/tags/list" |
		jq '[.tags[] | select(startswith("bootseer-hot-"))] | length')" = 0 ]
	run -1 hot rm "$R" again --plain-http
	[[ $output == *"has no hot pack of workload 'again'"* ]]
	bootseerctl image info "$R" --plain-http
}

@test "a registry that does not delete, or takes no uploads: said, with what helps" {
	registry_start main
	small_image
	convert "rootfs:$BST_ROOT/tree" "docker://$REGISTRY/s:1" --plain-http
	echo bin/big >"$BST_ROOT/list"
	hot build "docker://$REGISTRY/s:1" w --from "$BST_ROOT/list" --plain-http -q
	faultproxy_start p "$REGISTRY"
	faultproxy_set p '{"method": "DELETE", "action": "status", "status": 405}'
	run -1 hot rm "docker://$FAULTPROXY/s:1" w --plain-http
	[[ $output == *"let its administrator allow deletion"* ]]
	# nor take uploads, as a mirror
	faultproxy_set p '{"method": "POST", "action": "status", "status": 405}'
	echo lib/text >"$BST_ROOT/list"
	run -1 hot build "docker://$FAULTPROXY/s:1" w2 --from "$BST_ROOT/list" --plain-http -q
	[[ $output == *"status 405"*"is it a mirror or read-only?"* ]]
	hot show "docker://$REGISTRY/s:1" w --plain-http
}

@test "a pack of named files in a layout: replaced, old ones removed by digest, all by name" {
	small_image
	build w bin/big /lib/text
	build other lib/cold
	hot show "$L" w --json | jq -e '[.files[] | [.path, .hotBytes, .size]] ==
		[["bin/big", 300000, 300000], ["lib/text", 100000, 100000]]'
	hot diff "$L" w other --json | jq -e '.bothBytes == 0 and .nFiles == 3'
	hot verify "$L" w -q
	local old
	old=$(hot ls "$L" --json | jq -r '.[] | select(.workload == "w").digest')
	echo lib/text >"$BST_ROOT/list"
	run -1 hot build "$L" w --from "$BST_ROOT/list" -q
	hot build "$L" w --from "$BST_ROOT/list" -q --replace
	# the old one has lost its tag, and with it its entry in the layout
	[ "$(hot ls "$L" --json | jq '[.[] | select(.workload == "w" and .current)] | length')" = 1 ]
	hot show "$L" "$old" --json | jq -e '.nFiles == 2'
	run -1 hot rm "$L" "$digest"
	[[ $output == *"hot pack"* ]]
	hot rm "$L" "$(hot ls "$L" --json | jq -r '.[] | select(.workload == "other").digest')"
	hot rm "$L" w
	[ "$(hot ls "$L" --json | jq length)" = 0 ]
	# the blobs stay, the image too
	[ -f "$BST_ROOT/layout/blobs/sha256/${old#*:}" ]
	bootseerctl image verify "$L" -q
	printf 'bin\n' >"$BST_ROOT/list"
	run -1 hot build "$L" w --from "$BST_ROOT/list"
	[[ $output == *"'bin' of the image is no regular file"* ]]
	printf 'nope\n' >"$BST_ROOT/list"
	run -1 hot build "$L" w --from "$BST_ROOT/list"
	[[ $output == *"'nope' of the image: No such file"* ]]
}

@test "what is not there: which, where, and what lists those there are" {
	small_image
	local none long
	none=sha256:$(printf '0%.0s' {1..64}) long=$(printf 'a%.0s' {1..100})
	build w bin/big
	build "$long" lib/text
	for d in "$none" "$digest"; do
		for command in show rm verify; do
			run -1 hot $command "$L" "$d"
			[[ $output == *"$BST_ROOT/layout has no hot pack of the image with the digest $d ("*"'bootseerctl hot ls $L'"* ]]
		done
	done
	run -1 hot ls "oci:$BST_ROOT/layout:none"
	[[ $output == *"'bootseerctl image ls oci:$BST_ROOT/layout' lists what is there" ]]
	run -1 bootseerctl image info "oci:$BST_ROOT/layout:none"
	[[ $output == *"'bootseerctl image ls oci:$BST_ROOT/layout' lists what is there" ]]
	[ "$(bootseerctl image ls "oci:$BST_ROOT/layout" | grep -c '  hot pack  -$')" = 2 ]
	# a long name moves all columns
	[ "$(hot ls "$L" | awk '{ print match($0, /sha256:|DIGEST/) }' | sort -u | wc -l)" = 1 ]
	run -1 hot build "$L" "$none" --from "$BST_ROOT/list"
	[[ $output == *"it is a digest"* ]]
}

@test "a pack of several profiles and lists has the blocks of all" {
	small_image
	profile_of_all
	echo bin/big >"$BST_ROOT/one"
	printf '%s\n' lib/text bin/big >"$BST_ROOT/two"
	hot build "$L" merged --from "$BST_ROOT/one" --from "$BST_ROOT/two" -q
	hot show "$L" merged --json | jq -e '.recordings == 2 and ([.files[].path] == ["bin/big", "lib/text"])'
	hot verify "$L" merged
	hot build "$L" merged --from "$BST_ROOT/one" --from "$BST_ROOT/profile" --replace -q
	hot show "$L" merged --json | jq -e '.recordings == 2 and .bytes == .blobBytes and .files[0].path == "bin/big"'
	run -1 hot build "$L" other --from "$BST_ROOT/one" --from "$BST_ROOT/nowhere" -q
	[[ $output == *"read '$BST_ROOT/nowhere'"* ]]
}

@test "packs that others deleted are in nobody's way" {
	registry_start main
	small_image
	local r=docker://$REGISTRY/s:1 w
	convert "rootfs:$BST_ROOT/tree" "$r" --plain-http
	echo bin/big >"$BST_ROOT/list"
	for w in a b c; do
		hot build "$r" $w --from "$BST_ROOT/list" --plain-http -q
	done
	# as a tool does it that does not know of the list
	for w in a b; do
		curl -sf -X DELETE "http://$REGISTRY/v2/s/manifests/$(hot ls "$r" --plain-http --json 2>/dev/null |
			jq -r --arg w $w '.[] | select(.workload == $w).digest')"
	done
	run -0 hot ls "$r" --plain-http
	[[ $output == *"warning: sha256:"* ]]
	hot rm "$r" a --plain-http
	hot build "$r" d --from "$BST_ROOT/list" --plain-http -q
	[ "$(hot ls "$r" --plain-http --json | jq -r '[.[].workload] | join(" ")')" = "c d" ]
}

@test "what this node could not publish is pushed by hand, proven before" {
	local dir pack
	recorded_on_registry "hot publish = no"
	[ "$(hot ls "$R" --plain-http --json | jq length)" = 0 ]
	run -2 hot push "$digest" "$WORKLOAD"
	[[ $output == *"--to docker://"* ]]
	run -1 hot push "$digest" no-such --to "$R" --plain-http
	[[ $output == *"cache has no hot pack"* ]]
	run -1 hot push "$digest" "$WORKLOAD" --to "docker://$REGISTRY/elsewhere" --plain-http
	[[ $output == *"does not have the image"* ]]
	hot push "$digest" "$WORKLOAD" --to "docker://$REGISTRY/py" --plain-http
	hot verify "$R" "$WORKLOAD" --plain-http -q
	run -1 hot push "$digest" "$WORKLOAD" --to "$R" --plain-http
	[[ $output == *"--replace"* ]]
	hot push "$digest" "$WORKLOAD" --to "$R" --plain-http --replace
	# the cache is the worker's: what it says is not believed
	dir=$BST_CACHE/images/${digest#*:}
	pack=$(ls "$dir"/hot-*.pack)
	printf '\377' | dd of="$pack" bs=1 seek=$(($(stat -c %s "$pack") - 100)) conv=notrunc status=none
	run -1 hot push "$digest" "$WORKLOAD" --to "$R" --plain-http --replace
	[[ $output == *"other bytes than the image"* ]]
	rm "$pack"
	ln -s /etc/shadow "$pack"
	run -1 hot push "$digest" "$WORKLOAD" --to "$R" --plain-http --replace
	[[ $output == *"Too many levels of symbolic links"* ]]
	hot verify "$R" "$WORKLOAD" --plain-http -q
}

@test "packs that lie are refused, and the others still listed" {
	small_image
	build good bin/big
	build w bin/big lib/text
	pack_manifest w
	# heads that are too long, too short, beyond all
	for head in 4000 90 1; do
		lie ".annotations[\"dev.bootseer.hot.head\"] = \"$head\""
		run -1 hot show "$L" w
		[[ $output == *"hot pack: "* ]]
		run -1 hot verify "$L" w -q
		[[ $output == *"hot pack: "* ]]
	done
	lie '.annotations["dev.bootseer.hot.head"] = "99999999999"'
	run -1 hot show "$L" w
	[[ $output == *"is not the length of a head"* ]]
	# the pack of another image, the profile of another image
	local tree=$BST_ROOT/tree2 other=oci:$BST_ROOT/layout:other
	mkdir -p "$tree"
	head -c 50000 /dev/urandom >"$tree/x"
	convert "rootfs:$tree" "$other"
	echo x >"$BST_ROOT/list"
	hot build "$other" w --from "$BST_ROOT/list" -q
	"$tool" "${L%:small}" get-manifest "$(hot ls "$other" --json | jq -r '.[0].digest')" \
		>"$BST_ROOT/m.other" 2>/dev/null
	lie ".layers[0] = $(jq -c '.layers[0]' "$BST_ROOT/m.other")"
	run -1 hot show "$L" w
	[[ $output == *"profile: it is of another image"* ]]
	hot ls "$L" 2>"$BST_ROOT/err" | grep -E '^w +\?'
	grep -q 'profile: it is of another image' "$BST_ROOT/err"
	lie ".layers[1] = $(jq -c '.layers[1]' "$BST_ROOT/m.other")"
	run -1 hot verify "$L" w -q
	[[ $output == *"hot pack: it is of another image"* ]]
	# a name that is none, with an escape sequence
	lie '.annotations["dev.bootseer.workload"] = "\u001b[2Jx"'
	run -0 hot ls "$L"
	[[ $output != *$'\033'* ]]
	[[ $output == *"is no workload's name"* ]]
	[ "$(hot ls "$L" --json 2>/dev/null | jq '[.[] | select(.workload == "good" and .blocks > 0)] | length')" = 1 ]
	hot verify "$L" good -q
	# what is meant to be a pack can be removed however broken it is
	hot rm "$L" "sha256:$(sha256sum "$BST_ROOT/m.lie" | cut -d' ' -f1)"
}

@test "a list of packs that names something else removes nothing else" {
	registry_start main
	small_image
	local r=docker://$REGISTRY/s:1 image entry
	convert "rootfs:$BST_ROOT/tree" "$r" --plain-http
	image=$digest
	echo bin/big >"$BST_ROOT/list"
	hot build "$r" w --from "$BST_ROOT/list" --plain-http -q
	# the list says that the image itself is a pack of the workload
	entry=$(jq -cn --arg d "$image" '{mediaType: "application/vnd.oci.image.manifest.v1+json", size: 9, digest: $d,
		artifactType: "application/vnd.bootseer.hot.v1", annotations: {"dev.bootseer.workload": "w"}}')
	"$tool" --plain "${r%:1}" get-manifest "sha256-${image#*:}" 2>/dev/null |
		jq -c --argjson e "$entry" '.manifests += [$e]' >"$BST_ROOT/index"
	"$tool" --plain "${r%:1}" put-manifest "sha256-${image#*:}" application/vnd.oci.image.index.v1+json "$BST_ROOT/index"
	run -1 hot rm "$r" "$image" --plain-http
	run -0 hot rm "$r" w --plain-http
	[[ $output == *"removed "* && $output != *"removed $image"* ]]
	[ "$(hot ls "$r" --plain-http --json 2>/dev/null | jq -r '[.[].digest] | join(" ")')" = "$image" ]
	bootseerctl image verify "$r" --plain-http -q
}

@test "names of files drive no terminal" {
	small_image
	local esc=$'\033'
	build w lib/cold
	profile_of_all # a line of a list cannot hold such a name
	hot build "$L" all --from "$BST_ROOT/profile" -q
	hot show "$L" all | tee "$BST_ROOT/out"
	run -1 grep -q "$esc" "$BST_ROOT/out"
	grep -qF 'lib/evil\033[2J\012name' "$BST_ROOT/out"
	hot diff "$L" w all | tee "$BST_ROOT/out"
	run -1 grep -q "$esc" "$BST_ROOT/out"
	hot show "$L" all --json | jq -e 'any(.files[]; .path == "lib/evil\u001b[2J\nname")'
}

# no_trace: nothing is left of one.
no_trace() {
	[ -z "$(ls -A "$TMPDIR")" ]
	run -1 grep -F "$TMPDIR" /proc/self/mountinfo
	run -1 pgrep -f "$TMPDIR"
}

@test "a command is traced by hand, without a node" {
	export TMPDIR=$BST_ROOT/traces
	mkdir "$TMPDIR"
	unset BOOTSEER_CONFIG
	registry_start main
	lazy_publish "$(image_python):latest" py
	R=docker://$REGISTRY/py:latest
	printf '[runtime]\nruntime = runc\n[node]\nuser = nobody\n' >"$BST_ROOT/own.conf"
	run -0 hot trace "$R" team/json --plain-http --config "$BST_ROOT/own.conf" --window 3s -- \
		python3 -c 'import json; print(json.dumps([40 + 2]))' 3>&- 4>&-
	echo "$output"
	[[ $output == *"[42]"* ]]
	no_trace
	hot show "$R" team/json --plain-http --json | jq -e 'any(.files[].path; test("json/.*decoder"))'
	hot verify "$R" team/json --plain-http -q
	# again: refused at once; replaced when wanted, and a server is ended
	run -1 hot trace "$R" team/json --plain-http --config "$BST_ROOT/own.conf" -- true
	[[ $output == *"--replace"* ]]
	run -0 hot trace "$R" team/json --plain-http --config "$BST_ROOT/own.conf" --window 2s --replace -- \
		python3 -c 'import decimal, time; time.sleep(1000)' 3>&- 4>&-
	no_trace
	hot show "$R" team/json --plain-http --json | jq -e 'any(.files[].path; test("decimal"))'
	# a command that fails is no recording
	run -1 hot trace "$R" other --plain-http --config "$BST_ROOT/own.conf" --window 2s -- \
		python3 -c 'raise SystemExit(7)' 3>&- 4>&-
	[[ $output == *"the command ended with exit code 7"* ]]
	no_trace
	[ "$(hot ls "$R" --plain-http --json | jq -r '[.[] | select(.current).workload] | join(" ")')" = team/json ]
}

@test "a command is traced in a layout, and interrupted" {
	export TMPDIR=$BST_ROOT/traces
	mkdir "$TMPDIR"
	unset BOOTSEER_CONFIG
	L=oci:$BST_ROOT/layout:py
	convert "oci:$(image_python):latest" "$L"
	printf '[node]\nuser = nobody\n' >"$BST_ROOT/own.conf"
	# the window is not waited for when the command has ended
	SECONDS=0
	run -0 hot trace "$L" w --config "$BST_ROOT/own.conf" --window 120s -- python3 -c 'print(7)' 3>&- 4>&-
	[ $SECONDS -lt 60 ]
	[[ $output == *7* ]]
	no_trace
	hot verify "$L" w -q
	# what cannot be published is kept, and can be published later
	mount --bind "$BST_ROOT/layout" "$BST_ROOT/layout"
	mount -o remount,bind,ro "$BST_ROOT/layout"
	run -1 hot trace "$L" ro --config "$BST_ROOT/own.conf" --window 60s -- python3 -c 'print(8)' 3>&- 4>&-
	umount "$BST_ROOT/layout"
	[[ $output == *"must be writable here; the recording is kept: 'bootseerctl hot build $L ro --from "* ]]
	hot build "$L" ro --from "$TMPDIR"/bootseer-trace-*.profile -q
	hot verify "$L" ro -q
	rm "$TMPDIR"/bootseer-trace-*.profile
	no_trace
	bootseerctl hot trace "$L" w2 --config "$BST_ROOT/own.conf" --window 60s -- \
		python3 -c 'import time; time.sleep(1000)' 3>&- 4>&- >"$BST_ROOT/out" 2>&1 &
	local pid=$!
	bst_wait 20 eval '[ -n "$(find "$TMPDIR" -name "hot-*.rec")" ]'
	kill -TERM "$pid"
	local status=0
	wait "$pid" || status=$?
	[ "$status" = 1 ]
	grep interrupted "$BST_ROOT/out"
	no_trace
}
