#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 30-convert.bats: images converted between layouts and registries; is what comes out the
# image, byte for byte, and the same each time?

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash

lib=${bst_lib:?}

setup() {
	bst_setup
	[ -x "$BOOTSEER_BUILDDIR/tests/lib/tree2erofs" ] ||
		make -C "$BOOTSEER_BUILDDIR" tests/lib/tree2erofs tests/lib/erofscheck
	cd "$BST_ROOT" || return 1
}

teardown() {
	cd /
	bst_teardown
}

# part INFO-JSON NAME: the hex digest of tree, table, data or config
part() {
	jq -r ".$2.digest" "$1" | cut -d: -f2
}

# mount_converted LAYOUT DIR: what is converted there, mounted by the kernel
mount_converted() {
	bootseerctl image info "oci:$1" --json >info.json
	mkdir -p erofs "$2"
	"$BOOTSEER_BUILDDIR/tests/lib/tree2erofs" "$1/blobs/sha256/$(part info.json tree)" erofs/meta
	zstd -dcq "$1/blobs/sha256/$(part info.json data)" >erofs/blob
	"$BOOTSEER_BUILDDIR/tests/lib/erofscheck" mount erofs "$2" || {
		local rc=$?
		[ $rc != 77 ] || bst_skip "no EROFS mounts here"
		return $rc
	}
	bst_defer umount "$BST_ROOT/$2"
}

# faithful LAYOUT: converted and mounted it is what the layers say
faithful() {
	bootseerctl image convert -q "oci:$1" oci:out
	mount_converted out got
	mkdir want
	"$lib/ociunpack.py" "$1" want
	"$lib/treedump.py" got | awk -F '\t' "${ignore:-} { print }" >got.dump
	"$lib/treedump.py" want | awk -F '\t' "${ignore:-} { print }" >want.dump
	cmp got.dump want.dump || {
		diff got.dump want.dump | head -20
		return 1
	}
}

@test "busybox, converted and mounted, is what its layers say" {
	faithful "$(image_busybox)"
}

@test "the nasty image, too" {
	faithful "$(image_nasty)"
	[ "$(grep -c ^/bigdir/ got.dump)" = 70000 ]
}

@test "an image of 127 layers, too" {
	# nothing says the times of directories that no layer names
	# shellcheck disable=SC2016
	ignore='/^\/etc(\/layers)?\t/ { $7 = "-" }'
	faithful "$(image_layers 127)"
}

@test "a directory, too, and its config" {
	"$lib/ociunpack.py" "$(image_nasty --without bigdir)" tree 2>/dev/null || {
		mkdir tree
		"$lib/ociunpack.py" "$(image_nasty --without bigdir)" tree
	}
	echo '{"architecture":"amd64","os":"linux","config":{"User":"7:8","Cmd":["/x"]}}' >c.json
	bootseerctl image convert -q rootfs:tree oci:out --config c.json
	mount_converted out got
	"$lib/treedump.py" got >got.dump
	"$lib/treedump.py" tree >want.dump
	cmp got.dump want.dump
	cmp c.json "out/blobs/sha256/$(part info.json config)"
}

@test "the same bytes each time, whatever -j" {
	local img j
	img=$(image_nasty --without bigdir)
	for j in 1 2 3; do
		bootseerctl image convert -q --json -j $j "oci:$img" "oci:out" >$j.json
	done
	cmp 1.json 2.json
	cmp 1.json 3.json
}

@test "registry to registry; the second time nothing is sent" {
	local img sent
	img=$(image_busybox)
	registry_start r
	image_push "$img" "$REGISTRY/app:1"
	bootseerctl image convert -q --json --plain-http "docker://$REGISTRY/app:1" \
		"docker://$REGISTRY/app:1" >1.json
	sent=$(grep -c '"PUT /v2/app/blobs/uploads' "$BST_LOG/registry-r.log")
	[ "$sent" -gt 4 ]
	bootseerctl image convert -q --json --plain-http "docker://$REGISTRY/app:1" \
		"docker://$REGISTRY/app:1" >2.json
	cmp 1.json 2.json
	[ "$(grep -c '"PUT /v2/app/blobs/uploads' "$BST_LOG/registry-r.log")" = "$sent" ]
	# the artifact does not depend on where it goes
	bootseerctl image convert -q --json "oci:$img" oci:out >3.json
	[ "$(jq -r '.images[0].artifact' 1.json)" = "$(jq -r '.images[0].artifact' 3.json)" ]
	# every way to name it
	local ref
	for ref in ":1" ":1-bootseer" "@$(jq -r '.images[0].artifact' 1.json)" \
		"@$(jq -r '.images[0].source' 1.json)" "@$(jq -r .stub 1.json)"; do
		[ "$(bootseerctl image info --plain-http --json "docker://$REGISTRY/app$ref" |
			jq -r .artifact)" = "$(jq -r '.images[0].artifact' 1.json)" ]
	done
	bootseerctl image verify --plain-http "docker://$REGISTRY/app:1"
	bootseerctl image ls --plain-http "docker://$REGISTRY/app" >tags
	grep -q '^1  *image  *sha256:' tags
	grep -q '^1-bootseer  *stub  *sha256:' tags
}

@test "an image in docker's own manifest format" {
	registry_start r
	image_push "$(image_busybox)" "$REGISTRY/app:1" --format v2s2
	bootseerctl image convert -q --json --plain-http "docker://$REGISTRY/app:1" oci:out >1.json
	[ "$(bootseerctl image info --json oci:out:1 | jq -r .artifact)" = \
		"$(jq -r '.images[0].artifact' 1.json)" ]
	bootseerctl image verify -q oci:out:1-bootseer
}

@test "the stub is an image that engines can unpack" {
	bootseerctl image convert -q "oci:$(image_busybox)" oci:out:x
	skopeo --insecure-policy copy -q oci:out:x-bootseer oci:stub:latest
	mkdir tree
	"$lib/ociunpack.py" stub tree
	[ "$(cd tree && find . -type f | sort | tr '\n' ' ')" = \
		"./.bootseer/image.json ./etc/group ./etc/passwd " ]
	[ -d tree/root ]
	[ "$(jq -r .artifact tree/.bootseer/image.json)" = \
		"$(bootseerctl image info --json oci:out:x | jq -r .artifact)" ]
	[ "$(jq -r .repository tree/.bootseer/image.json)" = "oci:$(realpath out)" ]
}

@test "an image for several platforms" {
	local b m
	cp -r "$(image_busybox)" many
	m=$(jq -r '.manifests[0].digest' many/index.json)
	b=many/blobs/sha256
	jq -nc --arg d "$m" --argjson s "$(stat -c %s "$b/${m#sha256:}")" '{schemaVersion: 2,
		mediaType: "application/vnd.oci.image.index.v1+json", manifests: [
		{mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $s,
			platform: {os: "linux", architecture: "amd64"}},
		{mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $s,
			platform: {os: "linux", architecture: "arm64", variant: "v8"}},
		{mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $d, size: $s,
			platform: {os: "unknown", architecture: "unknown"}}]}' >index
	cp index "$b/$(sha256sum <index | cut -d' ' -f1)"
	jq -c --arg d "sha256:$(sha256sum <index | cut -d' ' -f1)" --argjson s "$(stat -c %s index)" \
		'.manifests = [{mediaType: "application/vnd.oci.image.index.v1+json", digest: $d,
		size: $s, annotations: {"org.opencontainers.image.ref.name": "latest"}}]' \
		many/index.json >i && mv i many/index.json
	bootseerctl image convert -q --json oci:many oci:out >1.json
	[ "$(jq -r '[.images[].platform] | join(" ")' 1.json)" = "linux/amd64 linux/arm64/v8" ]
	bootseerctl image info oci:out:latest-bootseer --platform linux/arm64 --json >info.json
	[ "$(jq -r .artifact info.json)" = "$(jq -r '.images[1].artifact' 1.json)" ]
	bootseerctl image convert -q --json oci:many oci:out2 --platform linux/arm64 >2.json
	[ "$(jq -r '[.images[].platform] | join(" ")' 2.json)" = linux/arm64/v8 ]
	run bootseerctl image convert -q oci:many oci:out3 --platform linux/s390x
	[ "$status" = 1 ]
	[[ $output == *platform* ]]
}

@test "a bundle from a converted image" {
	local img
	cp -r "$(image_busybox)" img
	mkdir tree
	"$lib/ociunpack.py" img tree
	echo '{"architecture":"amd64","os":"linux","config":{"User":"user","Env":["A=b"],
		"Entrypoint":["/bin/sh","-c"],"Cmd":["id"],"WorkingDir":"/home/user",
		"StopSignal":"SIGUSR1","Labels":{"a":"b","dev.bootseer.image":"evil"}}}' >c.json
	bootseerctl image convert -q rootfs:tree oci:out:x --config c.json
	bootseerctl bundle oci:out:x b
	[ -d b/rootfs ]
	[ "$(jq -c .process.user b/config.json)" = '{"uid":1000,"gid":1000,"additionalGids":[1001]}' ]
	[ "$(jq -c .process.args b/config.json)" = '["/bin/sh","-c","id"]' ]
	[ "$(jq -r .process.cwd b/config.json)" = /home/user ]
	[ "$(jq -r '.process.env[0]' b/config.json)" = A=b ]
	[ "$(jq -r '.annotations["org.opencontainers.image.stopSignal"]' b/config.json)" = SIGUSR1 ]
	[ "$(jq -r '.annotations.a' b/config.json)" = b ]
	[ "$(jq -r '.annotations["dev.bootseer.image"]' b/config.json)" = \
		"oci:$(realpath out)@$(bootseerctl image info --json oci:out:x | jq -r .artifact)" ]
	# runc itself takes it, with the real files in place
	rmdir b/rootfs
	mv tree b/rootfs
	bst_require runc
	jq '.linux.namespaces |= map(select(.type != "network")) | .linux.cgroupsPath = "/'"$BST_ID"'"' \
		b/config.json >c && mv c b/config.json
	run runc --root "$BST_ROOT/runc" run -b b "$BST_ID"
	[ "$status" = 0 ]
	[[ $output == *"uid=1000(user) gid=1000(user) groups=1000(user),1001(extra)"* ]] ||
		[[ $output == *"uid=1000(user) gid=1000(user) groups=1001(extra)"* ]]
}

@test "broken images: clear errors, nothing in the destination" {
	local img layer m
	cp -r "$(image_busybox)" img
	layer=img/blobs/sha256/$(images_layer_digest img 0)
	printf 'x' | dd of="$layer" bs=1 seek=5000 conv=notrunc status=none
	run bootseerctl image convert -q oci:img oci:out
	[ "$status" = 1 ]
	[[ $output == *"layer 1 of 1"* ]]
	[ ! -e out/index.json ] || [ "$(jq '.manifests | length' out/index.json)" = 0 ]
	[ -z "$(find out -type f -size +4k)" ]
	truncate -s 5000 "$layer"
	run bootseerctl image convert -q oci:img oci:out
	[ "$status" = 1 ]
	# a wrong diff_id
	rm -rf img
	cp -r "$(image_busybox)" img
	m=img/blobs/sha256/$(jq -r '.manifests[0].digest' img/index.json | cut -d: -f2)
	local c
	c=img/blobs/sha256/$(jq -r .config.digest "$m" | cut -d: -f2)
	sed 's/"diff_ids": \["sha256:..../"diff_ids": ["sha256:0000/' "$c" >c2
	cp c2 "img/blobs/sha256/$(sha256sum <c2 | cut -d' ' -f1)"
	jq -c --arg d "sha256:$(sha256sum <c2 | cut -d' ' -f1)" '.config.digest = $d' "$m" >m2
	cp m2 "img/blobs/sha256/$(sha256sum <m2 | cut -d' ' -f1)"
	jq -c --arg d "sha256:$(sha256sum <m2 | cut -d' ' -f1)" --argjson s "$(stat -c %s m2)" \
		'.manifests[0].digest = $d | .manifests[0].size = $s' img/index.json >i
	mv i img/index.json
	run bootseerctl image convert -q oci:img oci:out
	[ "$status" = 1 ]
	[[ $output == *"uncompressed digest"* ]]
}

@test "a layer that must not be distributed, or of an unknown kind" {
	local m type
	for type in nondistributable.v1.tar+gzip v1.tar+brotli; do
		rm -rf img
		cp -r "$(image_busybox)" img
		m=img/blobs/sha256/$(jq -r '.manifests[0].digest' img/index.json | cut -d: -f2)
		jq -c --arg t "application/vnd.oci.image.layer.$type" '.layers[0].mediaType = $t' "$m" >m2
		cp m2 "img/blobs/sha256/$(sha256sum <m2 | cut -d' ' -f1)"
		jq -c --arg d "sha256:$(sha256sum <m2 | cut -d' ' -f1)" --argjson s "$(stat -c %s m2)" \
			'.manifests[0].digest = $d | .manifests[0].size = $s' img/index.json >i
		mv i img/index.json
		run bootseerctl image convert -q oci:img oci:out
		[ "$status" = 1 ]
		[[ $output == *"$type"* ]]
	done
}

@test "interrupted: nothing half-made, no temporary file, and again" {
	local pid
	python3 - <<'END'
import os
os.mkdir("big")
with open("big/noise", "wb") as f:
    for _ in range(200):
        f.write(os.urandom(1 << 20))
END
	mkdir tmp
	bootseerctl image convert -q rootfs:big oci:out --tmp tmp 3>&- &
	pid=$!
	sleep 0.7
	kill -INT $pid
	run wait $pid
	[ -z "$(ls -A tmp)" ]
	[ ! -e out/index.json ] || [ "$(jq '.manifests | length' out/index.json)" = 0 ]
	bootseerctl image convert -q rootfs:big oci:out --tmp tmp
	bootseerctl image verify -q oci:out
	[ -z "$(ls -A tmp)" ]
}

@test "no room for temporary files is said before the work" {
	mkdir small
	mount -t tmpfs -o size=1m tmpfs small
	bst_defer umount "$BST_ROOT/small"
	run bootseerctl image convert -q "oci:$(image_busybox)" oci:out --tmp small
	[ "$status" = 1 ]
	[[ $output == *"'small'"*"--tmp"* ]]
	# and when it becomes full on the way
	mkdir big
	head -c 3M /dev/urandom >big/f
	run bootseerctl image convert -q rootfs:big oci:out --tmp small
	[ "$status" = 1 ]
	[[ $output == *"'small' is full"* ]]
}

@test "1 GiB in less than 300 MB of memory" {
	bst_require /usr/bin/time
	python3 - <<'END'
import os
os.mkdir("big")
block = os.urandom(1 << 20)
for i in range(64):
    with open("big/%d" % i, "wb") as f:
        for k in range(16):
            f.write(block[k * 1000:] + bytes([i, k]) * (k * 500))
END
	/usr/bin/time -f %M -o rss bootseerctl image convert -q --level 1 rootfs:big oci:out
	echo "peak $(cat rss) KiB"
	[ "$(cat rss)" -lt 300000 ]
}

@test "a verify finds a wrong byte" {
	bootseerctl image convert -q "oci:$(image_busybox)" oci:out
	bootseerctl image info --json oci:out >info.json
	printf 'x' | dd of="out/blobs/sha256/$(part info.json data)" bs=1 seek=100000 conv=notrunc status=none
	run bootseerctl image verify -q oci:out
	[ "$status" = 1 ]
	[[ $output == *"oci:out"*"frame"*"is broken"* ]]
}

@test "mistakes are found before the work, and the error says what would be right" {
	local img
	img=$(image_busybox)
	# what ERROR-TEXT STATUS ARGUMENT...: convert fails so, and sends nothing
	what() {
		local text=$1 code=$2
		shift 2
		run bootseerctl image convert -q "$@"
		echo "$output"
		[ "$status" = "$code" ]
		[[ $output == *"$text"* ]]
		[ "$(find other -type f -size +4k 2>/dev/null | wc -l)" = 0 ]
	}
	bootseerctl image convert -q "oci:$img" oci:out
	what "is the stub of an image" 1 oci:out:latest-bootseer oci:other
	what "for linux/amd64 only" 1 "oci:$img" oci:other --platform linux/s390x
	what "OS/ARCH" 2 "oci:$img" oci:other --platform amd64
	what "'a b' is no tag" 2 "oci:$img" oci:other --stub-tag "a b"
	what "1 to 19" 2 "oci:$img" oci:other --level 20
	what "one or more" 2 "oci:$img" oci:other -j 0
	what "given as 'oci:./other'" 2 "oci:$img" ./other
	what "destination: " 1 "oci:$img" docker://127.0.0.1:9/a/b
	mkdir tree
	echo '{"os":"linux"}' >c.json
	what "'architecture'" 1 rootfs:tree oci:other --config c.json
	run bootseerctl image verify -q oci:out --json
	[ "$(tail -n 1 <<<"$output")" = "}" ]
	bootseerctl image info --json oci:out >info.json
	[ "$(tail -n 1 info.json)" = "}" ]
}

@test "a bundle that is there already is left as it is" {
	bootseerctl image convert -q "oci:$(image_busybox)" oci:out
	bootseerctl bundle oci:out b
	echo mine >b/config.json
	run bootseerctl bundle oci:out b
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"'b' has a config.json"* ]]
	[ "$(cat b/config.json)" = mine ]
}

@test "help goes to stdout within 80 columns, errors to stderr" {
	local c option
	for c in "" image "image convert" "image info" "image ls" "image verify" bundle; do
		# shellcheck disable=SC2086
		bootseerctl $c --help >help 2>err
		[ -s help ]
		[ ! -s err ]
		[ "$(wc -L <help)" -le 80 ]
		while read -r option; do
			[ "$option" = --help ] ||
				grep -qE -- "Fl .*${option#-}\b" "${bst_top:?}/src/man/bootseerctl.1"
		done < <(grep -oE -- '--[a-z][a-z-]+' help | sort -u)
	done
	run bootseerctl image convert only-one
	[ "$status" = 2 ]
	run bootseerctl image convert --nonsense oci:a oci:b
	[ "$status" = 2 ]
	run bootseerctl nonsense
	[ "$status" = 2 ]
	run bootseerctl image info oci:nowhere
	[ "$status" = 1 ]
}
