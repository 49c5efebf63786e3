#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 65-hostile.bats: images, markers and annotations made to harm. The real daemon refuses
# them by name, does not fall over, and serves the next image.
# shellcheck disable=SC2016,SC2030,SC2031
# test-timeout: 240

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash

bats_require_minimum_version 1.5.0

lib=${bst_lib:?}

setup() {
	bst_require busybox zstd || return 1
	bst_setup
	export REGISTRY=127.0.0.1:1
	lazy_node "fetch start_wait = 2s" "fetch read_wait = 3s" "fetch background = no"
	B=$BST_ROOT/b
	ID=h-$BST_ID
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

# tree: what the lies are told of, converted to oci:$BST_ROOT/layout. Sets digest.
tree() {
	local t=$BST_ROOT/tree
	mkdir -p "$t"/{bin,dir/sub,proc,dev,sys}
	cp "$(command -v busybox)" "$t/bin/busybox"
	head -c 300000 /dev/urandom >"$t/dir/big"
	echo text >"$t/dir/name-of-17-bytes"
	echo text2 >"$t/dir/zz"
	ln "$t/dir/big" "$t/dir/sub/hard"
	ln -s big "$t/dir/link"
	convert "rootfs:$t" "oci:$BST_ROOT/layout:latest"
}

# the worker is the first one, nobody holds an image
unharmed() {
	[ "$(node_status .worker.restarts)" = 0 ] && [ "$(node_status .worker.ready)" = true ] &&
		[ "$(node_status '[.mounts[].containers] | add // 0')" = "${1:-0}" ]
}

# rootfs [MARKER]: a bundle whose rootfs has that marker
rootfs() {
	rm -rf "$B"
	mkdir -p "$B/rootfs"
	(cd "$B" && runc spec)
	lazy_command "$B" /bin/busybox true
	[ $# = 0 ] || { mkdir "$B/rootfs/.bootseer" && printf '%s' "$1" >"$B/rootfs/.bootseer/image.json"; }
}

# refused WORD...: the start fails, says so, and leaves nothing
refused() {
	local word before=''
	[ ! -e "$B/rootfs/.bootseer" ] || before=$(ls -lR "$B/rootfs")
	run lazy_run create -b "$B" "$ID"
	echo "$output"
	[ "$status" = 1 ] || return 1
	for word; do
		[[ $output == *"$word"* ]] || { echo "no word of $word"; return 1; }
	done
	# engines would take these for something else
	[[ ${output,,} != *"no such file"* && ${output,,} != *"permission denied"* ]] || return 1
	[ -z "$before" ] || [ "$(ls -lR "$B/rootfs")" = "$before" ] || return 1
	lazy_no_state && [ -z "$(bst_mounts)" ]
}

@test "artifacts that lie about tree, table, data or sizes are refused by name" {
	local lie word bad
	tree
	node_start
	"$lib/lielayout.py" --list >"$BST_ROOT/lies"
	while IFS=$'\t' read -r lie word; do
		[[ $lie != read-* ]] || continue
		bad=$("$lib/lielayout.py" "$BST_ROOT/layout" "${digest:?}" "$lie")
		run timeout 30 "$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "$lie" "$bad" \
			"$BST_ROOT/layout" "oci:$BST_ROOT/layout"
		echo "$lie: $output"
		[ "$status" = 1 ]
		[[ $output == *"oci:$BST_ROOT/layout"* ]]
		[[ $output == *"$word"* ]]
		unharmed
	done <"$BST_ROOT/lies"
	# an honest one still works, and the worker has not grown
	node_attach good "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/layout"
	cmp "$BST_ROOT/m/dir/big" "$BST_ROOT/tree/dir/big"
	unharmed 1
	[ "$(awk '/^VmRSS/ { print $2 }' "/proc/$(node_pid worker)/status")" -lt 200000 ]
}

@test "frames that lie: an error where they are read, all else right" {
	local lie bad n=0
	tree
	node_start
	for lie in read-frame-bomb read-root read-no-zstd; do
		bad=$("$lib/lielayout.py" "$BST_ROOT/layout" "${digest:?}" "$lie")
		node_attach "$lie" "$bad" "$BST_ROOT/$lie" "oci:$BST_ROOT/layout"
		n=$((n + 1))
		run cat "$BST_ROOT/$lie/bin/busybox"
		[ "$status" = 1 ]
		[[ $output == *"Input/output error"* ]]
		# the file of the last frames is in none of them
		cmp "$BST_ROOT/$lie/dir/big" "$BST_ROOT/tree/dir/big"
		unharmed $n
	done
	[ "$(awk '/^VmHWM/ { print $2 }' "/proc/$(node_pid worker)/status")" -lt 300000 ]
}

@test "a lying image under the shim: a failure that names it, or the rootfs as it is" {
	local bad
	tree
	bad=$("$lib/lielayout.py" "$BST_ROOT/layout" "${digest:?}" extent-behind-blob)
	rootfs "$(printf '{"version":1,"artifact":"%s","repository":"oci:%s/layout","source":"%s"}' "$bad" "$BST_ROOT" "$bad")"
	refused "$BST_ROOT/layout" "tree: entry"
	# asked for by annotation, with a complete rootfs of its own
	rootfs
	mkdir "$B/rootfs/bin"
	cp "$(command -v busybox)" "$B/rootfs/bin/"
	lazy_edit "$B" '.annotations["dev.bootseer.image"] = $i' --arg i "oci:$BST_ROOT/layout@$bad"
	run -0 lazy_run run -b "$B" "$ID"
	[[ $output == *"starting from the rootfs as it is"* ]]
	lazy_no_state
	lazy_edit "$B" '.annotations["dev.bootseer.fallback"] = "fail"'
	refused "tree: entry"
	unharmed
}

@test "hostile markers are refused by name, whatever they point at" {
	local d=sha256:0000000000000000000000000000000000000000000000000000000000000007 m
	m() { printf '{"version":1,"artifact":"%s","repository":"%s","source":"%s"}' "${2:-$d}" "$1" "$d"; }
	for m in "$(m "oci:$BST_ROOT/../../etc")" "$(m ../../etc)" "$(m oci:etc)" "$(m '')" \
		"$(m 127.0.0.1:1/a sha256:../../../../../../etc/passwd)" "$(m 127.0.0.1:1/a sha512:00)" \
		"$(m 'file:///etc')" "$(m 'user:pw@127.0.0.1:1/a')" '' '[]' 'null' "{\"version\":2}" \
		"$(m 127.0.0.1:1/a)x" "$(printf '%4097s' "$(m 127.0.0.1:1/a)")" \
		"$(printf '%2000s' '' | tr ' ' '[')" "$(printf '%600s' '' | sed 's/ /{"a":/g')" \
		"{\"version\":1,\"version\":1,\"artifact\":\"$d\",\"repository\":\"127.0.0.1:1/a\",\"source\":\"$d\"}"; do
		rootfs "$m"
		refused
	done
	# links to the host, in the place of directory and file
	mkdir "$BST_ROOT/host"
	m 127.0.0.1:1/a >"$BST_ROOT/host/image.json"
	rootfs
	ln -s "$BST_ROOT/host" "$B/rootfs/.bootseer"
	refused /.bootseer/image.json
	rootfs
	mkdir "$B/rootfs/.bootseer"
	ln -s "$BST_ROOT/host/image.json" "$B/rootfs/.bootseer/image.json"
	refused /.bootseer/image.json
	rootfs
	mkdir "$B/rootfs/.bootseer"
	mkfifo "$B/rootfs/.bootseer/image.json"
	refused /.bootseer/image.json
	# nobody was asked for anything
	[ ! -e "$BST_RUN/bootseerd.sock" ]
	# what policy forbids, by name and with what to set
	sed -i 's,^allow_dirs.*,&\nallow_registries = good.example/*,' "$BOOTSEER_CONFIG"
	rootfs "$(m evil.example/a)"
	refused evil.example/a allow_registries "$BOOTSEER_CONFIG"
	rootfs "$(m oci:/etc)"
	refused oci:/etc allow_dirs "$BOOTSEER_CONFIG"
	[ ! -e "$BST_RUN/bootseerd.sock" ]
}

@test "garbage in annotations is refused by name" {
	local value
	for value in '' ' ' 'oci:' 'docker://' 'docker://a/b@sha256:12' \
		'rootfs:/' '../../etc@sha256:00' "$(printf '%5000s' '' | tr ' ' a)" $'a\nb'; do
		rootfs
		lazy_edit "$B" '.annotations["dev.bootseer.image"] = $v' --arg v "$value"
		refused dev.bootseer.image
	done
	rootfs
	lazy_edit "$B" '.annotations["dev.bootseer.image"] = 7'
	refused dev.bootseer.image
	rootfs
	lazy_edit "$B" '.annotations["dev.bootseer.fallback"] = "perhaps"'
	refused dev.bootseer.fallback
	[ ! -e "$BST_RUN/bootseerd.sock" ]
}

@test "small trees that stand for two gigabytes each are unpacked one after the other" {
	local i bad rss
	lazy_node "fetch start_wait = 60s" "fetch background = no"
	tree
	node_start
	for i in 1 2 3 4; do
		bad[i]=$(python3 - "$lib" "$BST_ROOT/layout" "$digest" $i <<-'P'
			import contextlib, io, sys
			lib, layout, digest, n = sys.argv[1:]
			sys.path.insert(0, lib)
			sys.argv = ["", "--list"]
			with contextlib.redirect_stdout(io.StringIO()):
			    import lielayout
			image = lielayout.Image(layout, digest)
			image.packed_tree = lielayout.bomb((2 << 30) - 4096 * int(n))
			image.seal()
			print(image.publish())
		P
		)
	done
	for i in 1 2 3 4; do
		bst_spawn "bomb-$i" "$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "b$i" "${bad[i]}" \
			"$BST_ROOT/layout" "oci:$BST_ROOT/layout"
	done
	for i in 1 2 3 4; do
		bst_wait 60 bst_dead "$(bst_pid "bomb-$i")"
		grep tree "$BST_LOG/bomb-$i.log"
	done
	rss=$(awk '/^VmHWM/ { print $2 }' "/proc/$(node_pid worker)/status")
	echo "$rss kB at most"
	[ "$rss" -lt 2300000 ]
	unharmed
}
