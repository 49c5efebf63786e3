#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 60-engines.bats: real converted images from a registry, of which the engines pull only
# the stub, from the first container to the last trace of it.
# shellcheck disable=SC2016,SC2030,SC2031
# needs: containerd2 crictl image-python
# test-timeout: 240

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash
load ../lib/containerd.bash
load ../lib/podman.bash

bats_require_minimum_version 1.5.0

setup_file() {
	bst_setup
	registry_start main
	lazy_publish "$(image_busybox)" busybox
	lazy_publish "$(image_python)" python --level 1
	lazy_publish "$(image_layers 127)" layers
	image_push "$(image_busybox)" "$REGISTRY/plain:latest"
	image_push "$(image_pause)" "$REGISTRY/pause:latest"
	volume_image "$BST_ROOT/volume"
	lazy_publish "$BST_ROOT/volume" volume
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
	lazy_node
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

# volume_image LAYOUT: busybox with a volume that has content of an ordinary user.
volume_image() {
	local t=$1.t base
	base=$(image_busybox)
	mkdir -p "$t/data/sub"
	echo from-image >"$t/data/file"
	echo deeper >"$t/data/sub/file"
	chown -R 1000:1000 "$t/data"
	chmod 2750 "$t/data/sub"
	gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" 0)" >"$1.0.tar"
	images_tar "$t" >"$1.1.tar"
	"${bst_lib:?}/ocilayout.py" --config '{"Volumes":{"/data":{}},"User":"user"}' \
		"$1" "$1.0.tar" "$1.1.tar"
}

# a program that reads a good part of its image
import='import json, ssl, sqlite3, email.mime.text, http.client, os; print(json.dumps([6 * 7, os.getuid()]))'

# --- containerd -----------------------------------------------------------------------------

pull() {
	local name
	for name; do
		bctr images pull --plain-http --snapshotter overlayfs "$(lazy_stub "$name")" >/dev/null
	done
}

containerd_runs() {
	local run=(bctr run --rm --runc-binary "$RUNTIME") user=()
	pull busybox python layers
	run -0 "${run[@]}" "$(lazy_stub busybox)" "a-$BST_ID" sh -c 'echo $((6 * 7)) && ls /bin | wc -l'
	[ "${lines[0]}" = 42 ]
	[ "${lines[1]}" -gt 200 ]
	lazy_no_state
	run -0 "${run[@]}" "$(lazy_stub python)" "b-$BST_ID" python3 -c "$import"
	[ "$output" = "[42, 0]" ]
	run -7 "${run[@]}" "$(lazy_stub python)" "b-$BST_ID" python3 -c 'raise SystemExit(7)'
	lazy_no_state
	# ctr 1.6 knows no --user
	[ "$1" = 1 ] || user=(--user 1000)
	run -0 "${run[@]}" --read-only "${user[@]}" "$(lazy_stub busybox)" "a-$BST_ID" \
		sh -c 'id -u; echo x >/tmp/x || echo refused'
	echo "$output"
	[[ $output == *"${user[1]:-0}"* && $output == *refused* ]]
	[[ $output == *"Read-only file system"* ]]
	run -0 "${run[@]}" "$(lazy_stub layers)" "l-$BST_ID" sh -c 'cat /etc/layers/1 /etc/layers/126'
	[ "$output" = "layer 1
layer 126" ]
	lazy_no_state
}

# a life: exec, kill, start again, usage, diff, commit
containerd_life() {
	local c=c-$BST_ID used
	bctr run -d --runc-binary "$RUNTIME" "$(lazy_stub python)" "$c" sh -c \
		'echo w >>/written; echo x >>/etc/hostname; rm -f /usr/bin/perl; mkdir -p /new/dir; exec sleep 1000'
	bst_wait 20 bctr tasks exec --exec-id e1 "$c" test -d /new/dir
	run -0 bctr tasks exec --exec-id e2 "$c" python3 -c "$import"
	[ "$output" = "[42, 0]" ]
	run -1 bctr tasks exec --exec-id e3 "$c" test -e /usr/bin/perl
	# what the container has written, not the image
	used=$(bctr snapshots usage -b "$c" | awk 'END { print $2 }')
	[ "$used" -gt 0 ]
	[ "$used" -lt 1000000 ]
	# containerd dies and comes back while it runs
	containerd_restart
	run -0 bctr tasks exec --exec-id e4 "$c" python3 -c 'import decimal; print(open("/written").read())'
	[ "$output" = w ]
	bctr tasks kill -s KILL "$c"
	bst_wait 10 eval 'bctr tasks ls | grep -q STOPPED'
	bctr tasks rm "$c"
	lazy_no_state
	bctr tasks start -d "$c"
	bst_wait 20 bctr tasks exec --exec-id f1 "$c" grep -qx w /written
	run -0 bctr tasks exec --exec-id f2 "$c" sh -c 'wc -l </written; [ ! -e /usr/bin/perl ]; ls /usr/lib/python3.11/os.py'
	[ "$output" = "2
/usr/lib/python3.11/os.py" ]
	bctr tasks kill -s KILL "$c"
	bst_wait 10 bctr tasks rm -f "$c"
	lazy_no_state
	run -0 eval 'bctr snapshots diff "$c" | tar -tz'
	[[ $'\n'$output$'\n' == *$'\n'new/dir/$'\n'* && $'\n'$output$'\n' == *$'\n'written$'\n'* ]]
	containerd_commit "$c"
	bctr containers rm "$c" 2>/dev/null || :
}

# the committed snapshot's layer lies above the image's, in a container that knows no image
containerd_commit() {
	local merged=$BST_ROOT/merged
	bctr snapshots commit "done-$BST_ID" "$1"
	bctr snapshots prepare "next-$BST_ID" "done-$BST_ID"
	mkdir -p "$merged"
	bst_defer lazy_umount "$merged"
	eval "$(bctr snapshots mounts "$merged" "next-$BST_ID")"
	run -0 bctr run --rm --runc-binary "$RUNTIME" --rootfs "$merged" "r-$BST_ID" \
		/bin/sh -c 'export PATH=/bin:/usr/bin; cat /written; tail -n 1 /etc/hostname; test -d /new/dir; test ! -e /usr/bin/perl; ls /usr/lib/python3.11/os.py'
	[ "$output" = "w
w
x
/usr/lib/python3.11/os.py" ]
	umount "$merged" || umount -l "$merged"
	bctr snapshots rm "next-$BST_ID"
	bctr snapshots rm "done-$BST_ID" || :
	lazy_no_state
}

engine_containerd() {
	containerd_start "$1"
	containerd_runs "$1"
	containerd_life
	containerd_stop
	[ -z "$(bst_mounts)" ]
}

@test "containerd 1.6: run, read-only, 127 layers, exec, kill, start again, usage, diff, commit, its own death" {
	engine_containerd 1
}

@test "containerd 2: the same, and an ordinary user" {
	engine_containerd 2
}

@test "containerd: an image that is not converted costs no daemon and is left alone" {
	containerd_start 1
	bctr images pull --plain-http --snapshotter overlayfs "$REGISTRY/plain:latest" >/dev/null
	run -0 bctr run --rm --runc-binary "$RUNTIME" "$REGISTRY/plain:latest" "p-$BST_ID" \
		sh -c 'grep " / / " /proc/self/mountinfo'
	[[ $output == *"overlay overlay"* ]]
	lazy_untouched
}

# container FILE IMAGE: what a kubelet would ask for, of a container that runs the program
container() {
	jq -n --arg image "$2" --arg program "$import" '{metadata: {name: "main", attempt: 0},
		image: {image: $image}, log_path: "main.log", linux: {},
		command: ["sh", "-c", "python3 -c \"$0\"; exec sleep 1000", $program]}' >"$1"
}

# a pod of handler bootseer; the sandbox's image is not converted
engine_cri() {
	local pod c
	cri_start "$1" "$REGISTRY/pause:latest"
	cri pull "$(lazy_stub python)"
	cri_pod "$BST_ROOT/pod.json"
	container "$BST_ROOT/main.json" "$(lazy_stub python)"
	pod=$(cri runp --runtime bootseer "$BST_ROOT/pod.json")
	# the pause container asked for nothing
	lazy_untouched
	c=$(cri create "$pod" "$BST_ROOT/main.json" "$BST_ROOT/pod.json")
	cri start "$c"
	bst_wait 20 grep -qF '[42, 0]' "$BST_LOG/main.log"
	run -0 cri exec "$c" ls /usr/lib/python3.11/os.py
	[[ $output == */usr/lib/python3.11/os.py* ]]
	cri stop -t 0 "$c"
	cri rm "$c"
	lazy_no_state
	cri stopp "$pod"
	cri rmp "$pod"
	containerd_stop
	[ -z "$(bst_mounts)" ]
}

@test "CRI, containerd 1.6: a pod of runtime handler bootseer" {
	engine_cri 1
}

@test "CRI, containerd 2: the same" {
	engine_cri 2
}

# --- podman ---------------------------------------------------------------------------------

podman_start() {
	local name
	podman_setup
	export BST_RUNTIME=$RUNTIME
	for name; do
		bpodman pull -q --tls-verify=false --signature-policy "$BST_ROOT/podman/policy.json" \
			"$(lazy_stub "$name")" >/dev/null
		bpodman tag "$(lazy_stub "$name")" "$name"
	done
}

podman_ends() {
	lazy_no_state
	podman_stop
	[ -z "$(bst_mounts)" ]
}

@test "podman: run, exec, restart, stop, start, diff, commit, read-only, user, 127 layers, rm" {
	podman_start busybox python layers
	run -0 bpodman run --rm python python3 -c "$import"
	# and no word of ours in between
	[ "$output" = "[42, 0]" ]
	run -0 bpodman run --rm --user 1000 --read-only busybox sh -c 'id -u; echo x >/x || echo refused'
	[[ $output == *1000* && $output == *refused* && $output == *"Read-only file system"* ]]
	run -0 bpodman run --rm layers cat /etc/layers/1 /etc/layers/126
	[ "$output" = "layer 1
layer 126" ]
	lazy_no_state
	bpodman run -d --name c python sh -c 'echo w >>/written; rm -f /usr/bin/perl; exec sleep 1000'
	bst_wait 20 bpodman exec c test -s /written
	run -0 bpodman exec c python3 -c "$import"
	bpodman kill c
	bst_wait 10 eval '[ "$(bpodman inspect -f "{{.State.Status}}" c)" = exited ]'
	lazy_no_state
	bpodman start c
	bpodman restart -t 0 c
	bst_wait 20 eval '[ "$(bpodman exec c wc -l </dev/null /written)" = "3 /written" ]'
	bpodman stop -t 0 c
	lazy_no_state
	bpodman start c
	# without "container", c may be the first digit of an image
	bpodman container diff c | grep -qx 'A /written'
	bpodman commit -q c committed
	bpodman cp c:/usr/lib/python3.11/os.py "$BST_ROOT/copied"
	grep -q "^def makedirs" "$BST_ROOT/copied"
	bpodman rm -f -t 0 c
	run -0 bpodman run --rm committed sh -c 'grep -c w /written; [ ! -e /usr/bin/perl ]; python3 -c "import json; print(1)"'
	[ "${lines[0]}" -ge 3 ]
	[ "${lines[1]}" = 1 ]
	podman_ends
}

@test "podman: a new volume gets the image's content, with owner and mode" {
	podman_start volume
	run -0 bpodman run --rm volume sh -c 'id -u; cat /data/file /data/sub/file; stat -c "%u:%g %a" /data/sub; echo more >/data/more && ls /data'
	[ "$output" = "1000
from-image
deeper
1000:1000 2750
file
more
sub" ]
	run -0 bpodman run --rm -v named:/data volume sh -c 'cat /data/sub/file; echo kept >/data/kept'
	[ "$output" = deeper ]
	run -0 bpodman run --rm -v named:/data volume cat /data/kept /data/file
	[ "$output" = "kept
from-image" ]
	podman_ends
}

@test "podman: volatile overlays stay volatile, and start again after a crash" {
	podman_start busybox
	bpodman --storage-opt overlay.mountopt=volatile run -d --name c busybox \
		sh -c 'echo w >>/written; exec sleep 1000'
	bst_wait 10 bpodman exec c test -s /written
	bpodman exec c grep ' / / ' /proc/self/mountinfo | grep -q volatile
	bpodman kill c
	bst_wait 10 eval '[ "$(bpodman inspect -f "{{.State.Status}}" c)" = exited ]'
	bpodman --storage-opt overlay.mountopt=volatile start c
	bst_wait 10 eval '[ "$(bpodman exec c wc -l /written)" = "2 /written" ]'
	bpodman rm -f -t 0 c
	podman_ends
}

@test "podman build on a stub runs its steps on the image" {
	podman_start python
	printf 'FROM python\nRUN python3 -c "import json; print(6 * 7)" >/answer && rm /usr/bin/perl\n' \
		>"$BST_ROOT/Containerfile"
	run bpodman build -q --isolation oci --signature-policy "$BST_ROOT/podman/policy.json" \
		-t built -f "$BST_ROOT/Containerfile" "$BST_ROOT/log"
	echo "$output"
	[ "$status" = 0 ]
	run -0 bpodman run --rm built sh -c 'cat /answer; [ ! -e /usr/bin/perl ]; python3 -c "print(1)"'
	[ "$output" = "42
1" ]
	podman_ends
}

@test "podman: an image that is not converted costs no daemon" {
	podman_setup
	export BST_RUNTIME=$RUNTIME
	podman_load "$(image_busybox)" plain
	run -0 bpodman run --rm plain echo ok
	lazy_untouched
	podman_ends
}

# --- without an engine ----------------------------------------------------------------------

@test "bundle: create, start, exec, pause, kill, delete; run; read-only; user" {
	local b=$BST_ROOT/b
	lazy_bundle "$b" python sh -c "echo w >/written; python3 -c '$import'; exec sleep 1000"
	[ -z "$(ls -A "$b/rootfs")" ]
	lazy_run create -b "$b" c >"$BST_ROOT/out" 2>&1 </dev/null
	[ "$(lazy_run state c | jq -r .status)" = created ]
	lazy_run start c
	bst_wait 20 grep -qF '[42, 0]' "$BST_ROOT/out"
	run -0 lazy_run exec c sh -c 'cat /written; ls /usr/lib/python3.11/os.py'
	[ "${lines[0]}" = w ]
	lazy_run pause c
	lazy_run resume c
	run -0 bootseerctl timeline c
	[[ $output == *acquire* && $output == *swap* ]]
	lazy_run kill c KILL
	bst_wait 10 eval '[ "$(lazy_run state c | jq -r .status)" = stopped ]'
	lazy_run delete c
	lazy_no_state
	# what it wrote is there when it starts again
	lazy_command "$b" cat /written
	run -0 lazy_run run -b "$b" c
	[ "$output" = w ]
	lazy_edit "$b" '.root.readonly = true | .process.user = {"uid": 1000, "gid": 1000}'
	lazy_command "$b" sh -c 'id -u; echo x >/written'
	run lazy_run run -b "$b" c
	[ "$status" != 0 ]
	[[ $output == *1000* && $output == *"Read-only file system"* ]]
	lazy_no_state
	[ -z "$(bst_mounts)" ]
}

@test "a rootfs that is a plain directory: what is written stays beside it, the stub as it was" {
	local b=$BST_ROOT/b
	mkdir "$b"
	lazy_unpack_stub python "$b/rootfs"
	"${bst_lib:?}/treedump.py" "$b/rootfs" >"$BST_ROOT/before"
	(cd "$b" && runc spec)
	lazy_edit "$b" '.root.readonly = false'
	lazy_command "$b" sh -c "echo w >>/written; cat /written; python3 -c '$import'"
	run -0 lazy_run run -b "$b" c
	[ "$output" = "w
[42, 0]" ]
	lazy_no_state
	run -0 lazy_run run -b "$b" c
	[ "${lines[1]}" = w ]
	"${bst_lib:?}/treedump.py" "$b/rootfs" | cmp - "$BST_ROOT/before"
	[ -z "$(bst_mounts)" ]
}

@test "a plain rootfs without marker: no daemon, config.json untouched" {
	local b=$BST_ROOT/b
	mkdir "$b" "$b/rootfs"
	"${bst_lib:?}/ociunpack.py" "$(image_busybox)" "$b/rootfs"
	(cd "$b" && runc spec)
	lazy_command "$b" echo ok
	sha256sum "$b/config.json" >"$BST_ROOT/sum"
	stat -c '%i %Y %Z' "$b/config.json" >>"$BST_ROOT/sum"
	run -0 lazy_run run -b "$b" c
	[ "$output" = ok ]
	cmp "$BST_ROOT/sum" <(sha256sum "$b/config.json"; stat -c '%i %Y %Z' "$b/config.json")
	rmdir "$BST_STATE/oci" 2>/dev/null || :
	lazy_untouched
}

@test "hooks of the bundle find the whole image, and may write to it" {
	local b=$BST_ROOT/b stage
	lazy_bundle "$b" python sh -c 'cat /hooked-*'
	for stage in prestart createRuntime createContainer; do
		printf '#!/bin/sh\nroot=$(jq -r .bundle)/rootfs\n{ echo %s; ls "$root/usr/lib/python3.11" | wc -l; } >"$root/hooked-%s"\n' \
			"$stage" "$stage" >"$BST_ROOT/$stage"
		chmod 755 "$BST_ROOT/$stage"
		lazy_edit "$b" '.hooks[$s] = [{path: $p, env: ["PATH=/usr/bin:/bin"]}]' \
			--arg s "$stage" --arg p "$BST_ROOT/$stage"
	done
	run -0 lazy_run run -b "$b" c
	echo "$output"
	[ "${lines[0]}" = createContainer ]
	[ "${lines[2]}" = createRuntime ]
	[ "${lines[4]}" = prestart ]
	[ "${lines[1]}" -gt 150 ]
	[ "${lines[3]}" = "${lines[1]}" ]
	[ "${lines[5]}" = "${lines[1]}" ]
	lazy_no_state
}

@test "the data is looked for where the engine says it pulled the stub" {
	local b=$BST_ROOT/b key
	mkdir "$b"
	lazy_unpack_stub busybox "$b/rootfs"
	sed -i "s,$REGISTRY/,127.0.0.1:1/gone/," "$b/rootfs/.bootseer/image.json"
	grep -q gone/busybox "$b/rootfs/.bootseer/image.json"
	(cd "$b" && runc spec)
	lazy_command "$b" sh -c 'echo $((6 * 7))'
	lazy_node "fetch start_wait = 1s" "fetch connect_timeout = 1s"
	run lazy_run run -b "$b" c
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *127.0.0.1:1* ]]
	for key in io.kubernetes.cri.image-name io.kubernetes.cri-o.ImageName; do
		lazy_edit "$b" 'del(.annotations) | .annotations[$k] = $v' --arg k "$key" --arg v "$(lazy_stub busybox)"
		run -0 lazy_run run -b "$b" c
		[ "$output" = 42 ]
	done
	lazy_no_state
}
