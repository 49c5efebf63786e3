#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 61-fidelity.bats: what a container of a converted image sees is what its layers say:
# type, mode, owner, dates, xattrs, link groups and content, against ociunpack.py and
# against containerd's own unpack of the original.
# shellcheck disable=SC2016,SC2030,SC2031
# needs: image-python
# test-timeout: 240

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash
load ../lib/containerd.bash

lib=${bst_lib:?}

setup() {
	bst_require busybox || return 1
	bst_setup
	registry_start main
	lazy_node
	cp "$(command -v busybox)" "$BST_ROOT/busybox"
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

# dump DIR [OPTION...]: without what the stub and the test add. The root's own attributes
# are those of the engine's upper layer.
dump() {
	local dir=$1
	shift
	"$lib/treedump.py" "$@" --skip /.bootseer --skip /busybox.bst "$dir" | sed '1{/^\/\t/d}'
}

same() {
	cmp "$1" "$2" || {
		diff "$1" "$2" | head -20
		return 1
	}
}

# unpacked LAYOUT: $BST_ROOT/want.dump, as the layers say; it never changes, so it is kept.
unpacked() {
	local entry
	entry=$(cache_entry "dump-${1##*/}-$(images_key "$lib/ociunpack.py" "$lib/treedump.py" dump make_dump)" \
		make_dump "$1") && cp "$entry/dump" "$BST_ROOT/want.dump"
}

make_dump() {
	mkdir "$2/want" && "$lib/ociunpack.py" "$1" "$2/want" && dump "$2/want" >"$2/dump" && rm -rf "$2/want"
}

# got DIR: $BST_ROOT/got.dump, without the mount points that the runtime made because the
# image has none.
got() {
	local name
	dump "$1" >"$BST_ROOT/got.dump"
	for name in dev proc run sys; do
		grep -q "^/$name	" "$BST_ROOT/want.dump" || sed -i "/^\/$name\t/d" "$BST_ROOT/got.dump"
	done
}

# bundle_shows LAYOUT [DIR...]: a container of a plain bundle, with nothing but our mount
# below it. DIR: no layer says its date.
bundle_shows() {
	local b=$BST_ROOT/b pid name skip=(--skip /dev --skip /proc --skip /sys)
	lazy_publish "$1" image --level 1
	unpacked "$1"
	lazy_bundle "$b" image /busybox.bst sleep 1000
	lazy_edit "$b" '.mounts += [{destination: "/busybox.bst", type: "bind", source: $s,
		options: ["rbind", "ro"]}] | .process.cwd = "/"' --arg s "$BST_ROOT/busybox"
	lazy_run create -b "$b" c >"$BST_LOG/c.log" 2>&1 </dev/null
	lazy_run start c
	got "$b/rootfs"
	for name in "${@:2}"; do
		sed -i "\,^$name	dir,d" "$BST_ROOT/got.dump" "$BST_ROOT/want.dump"
	done
	same "$BST_ROOT/got.dump" "$BST_ROOT/want.dump"
	# from within, where the runtime's mounts hide some of it
	pid=$(lazy_run state c | jq .pid)
	dump "/proc/$pid/root/" --no-content "${skip[@]}" | cut -f 1-8,10- >"$BST_ROOT/in.dump"
	dump "$b/rootfs" --no-content "${skip[@]}" | cut -f 1-8,10- >"$BST_ROOT/out.dump"
	same "$BST_ROOT/in.dump" "$BST_ROOT/out.dump"
	lazy_run delete -f c
	lazy_no_state
	[ -z "$(bst_mounts)" ]
}

# containerd_shows LAYOUT: against what containerd unpacks
containerd_shows() {
	local c=c-$BST_ID root
	lazy_publish "$1" image --level 1
	containerd_start 1
	containerd_load "$1" original:1
	containerd_mount original:1 "$BST_ROOT/original"
	dump "$BST_ROOT/original" >"$BST_ROOT/want.dump"
	bst_wait 10 containerd_umount "$BST_ROOT/original"
	bctr images pull --plain-http --snapshotter overlayfs "$(lazy_stub image)" >/dev/null
	bctr run -d --runc-binary "$RUNTIME" --cwd / \
		--mount "type=bind,src=$BST_ROOT/busybox,dst=/busybox.bst,options=rbind:ro" \
		"$(lazy_stub image)" "$c" /busybox.bst sleep 1000
	root=$BST_ROOT/containerd/state/io.containerd.runtime.v2.task/$CONTAINERD_NAMESPACE/$c/rootfs
	mountpoint -q "$root"
	got "$root"
	same "$BST_ROOT/got.dump" "$BST_ROOT/want.dump"
	[ "$(wc -l <"$BST_ROOT/got.dump")" -gt 200 ]
	containerd_stop
	lazy_no_state
	[ -z "$(bst_mounts)" ]
}

@test "busybox in a bundle" {
	bundle_shows "$(image_busybox)"
}

@test "Debian with Python in a bundle" {
	bundle_shows "$(image_python)"
}

@test "the nasty image in a bundle" {
	bundle_shows "$(image_nasty)"
	[ "$(grep -c ^/bigdir/ "$BST_ROOT/got.dump")" = 70000 ]
}

@test "busybox against containerd's unpack" {
	containerd_shows "$(image_busybox)"
}

@test "Debian with Python against containerd's unpack" {
	containerd_shows "$(image_python)"
}

@test "the nasty image, as far as containerd can unpack it" {
	containerd_shows "$(image_nasty --engine-safe --without sparse)"
}

@test "127 layers in a bundle" {
	bundle_shows "$(image_layers 127)" /etc /etc/layers
}
