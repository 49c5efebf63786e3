#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 10-erofs.bats: does the kernel see in our metadata images what the trees say?
#
# erofscheck builds trees, writes metadata and blob, mounts the two, and compares each
# entry: attributes, xattrs, targets, listings, content.

load ../lib/common.bash

check=$BOOTSEER_BUILDDIR/tests/lib/erofscheck

setup() {
	bst_setup
	[ -x "$check" ] || make -C "$BOOTSEER_BUILDDIR" tests/lib/erofscheck
	mkdir "$BST_ROOT/image" "$BST_ROOT/mnt"
}

teardown() {
	bst_teardown
}

# round_trip WHAT [DIR]: make it, mount it, compare it
round_trip() {
	local mnt=${2:-$BST_ROOT/mnt}
	"$check" make "$1" "$BST_ROOT/image"
	"$check" mount "$BST_ROOT/image" "$mnt" || {
		local rc=$?
		[ $rc != 77 ] || bst_skip "no EROFS mounts here"
		return $rc
	}
	bst_defer umount "$mnt"
	"$check" compare "$BST_ROOT/image" "$mnt"
}

@test "an image of nothing but a root" {
	round_trip empty
	[ "$(stat -c %s "$BST_ROOT/image/meta")" = 4096 ]
}

@test "everything that a tree can get wrong" {
	round_trip nasty
	# one image each: overlayfs tells its lower file systems apart by it
	[ -n "$(blkid -o value -s UUID -p "$BST_ROOT/image/meta")" ]
}

@test "inodes, directories and xattrs of all sizes, by chance" {
	local seed
	for seed in 1 2 3 4 5 6 7 8; do
		"$check" make random:$seed "$BST_ROOT/image"
		mkdir "$BST_ROOT/mnt/$seed"
		round_trip random:$seed "$BST_ROOT/mnt/$seed"
	done
}

@test "as the lower layer of an overlay" {
	round_trip random:9
	mkdir "$BST_ROOT/upper" "$BST_ROOT/work" "$BST_ROOT/merged"
	mount -t overlay overlay "$BST_ROOT/merged" \
		-o "lowerdir=$BST_ROOT/mnt,upperdir=$BST_ROOT/upper,workdir=$BST_ROOT/work"
	bst_defer umount "$BST_ROOT/merged"
	"$check" compare-overlay "$BST_ROOT/image" "$BST_ROOT/merged"
}

@test "fsck.erofs has no complaint" {
	local seed
	bst_require fsck.erofs
	for seed in 1 2 3; do
		"$check" make random:$seed "$BST_ROOT/image"
		fsck.erofs --device="$BST_ROOT/image/blob" "$BST_ROOT/image/meta"
	done
	"$check" make nasty "$BST_ROOT/image"
	# it recurses, with large frames
	(
		ulimit -s unlimited
		fsck.erofs --device="$BST_ROOT/image/blob" "$BST_ROOT/image/meta"
	)
}

@test "the same tree gives the same metadata" {
	"$check" make nasty "$BST_ROOT/image"
	mv "$BST_ROOT/image/meta" "$BST_ROOT/meta"
	"$check" make nasty "$BST_ROOT/image"
	cmp "$BST_ROOT/meta" "$BST_ROOT/image/meta"
}

@test "a million entries in three seconds" {
	local line
	line=$("$check" time 1000000)
	echo "$line"
	[[ $line =~ erofs\ ([0-9]+)\ ms ]]
	[ "${BASH_REMATCH[1]}" -lt 3000 ]
	[[ $line =~ read\ ([0-9]+)\ ms ]]
	[ "${BASH_REMATCH[1]}" -lt 1000 ]
}
