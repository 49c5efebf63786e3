#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 79-training.bats: PyTorch on a checkpoint mount: do all its ways to save and load work, and
# does a container that is killed while it trains go on where it was, as if nothing had been?
#
# needs: hadoop torch containerd2 crictl image-python
# timeout: 900
# test-timeout: 300
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/hdfs.bash
load ../lib/ckpt.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/lazy.bash
load ../lib/containerd.bash
load ../lib/podman.bash

bats_require_minimum_version 1.5.0

setup_file() {
	bst_setup
	TORCH=$("${bst_lib:?}/build-torch") || bst_skip "no torch"
	export TORCH
	hdfs_start
	hdfs_rest PUT /t op=MKDIRS
	registry_start main
	lazy_publish "$(image_python)" python --level 1
	# who was not killed, nowhere near HDFS
	torch torchtrain.py "$HDFS_ROOT/train" 10 >"$HDFS_ROOT/never-killed"
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
	lazy_node "checkpoint allow_sources = $HDFS_URI/" 'checkpoint user = root' \
		"checkpoint options = conf=$HDFS_CONF replication=1"
}

teardown() {
	bst_defer lazy_cgroups_gone
	bst_teardown
}

# torch PROGRAM [ARG...]: of tests/lib, here.
torch() {
	PYTHONPATH=$TORCH timeout 120 /usr/bin/python3 "${bst_lib:?}/$1" "${@:2}"
}

# --- programs -------------------------------------------------------------------------------

# same_files DIR DIR [OPTION...]
same_files() {
	diff -r --no-dereference "$@"
}

# same_saved DIR DIR [OPTION...]: but for what differs from save to save.
same_saved() {
	same_files "$@" -x .metadata -x sharded
}

# exported DIR: what "bootseerctl ckpt export" makes of the files that DIR, a mount's, has.
exported() {
	local file
	while IFS= read -r file; do
		mkdir -p "$BST_ROOT/exported/$(dirname "$file")"
		bootseerctl ckpt export -q "$HDFS_URI/t/$file" "$BST_ROOT/exported/$file" -o "conf=$HDFS_CONF"
	done < <(cd "$1/.." && find "${1##*/}" -type f)
}

# hdfs_again: all of it is killed and started again.
hdfs_again() {
	local i
	hdfs_namenode_kill 1
	for i in 1 2 3 4; do hdfs_datanode_kill $i; done
	hdfs_namenode_start 1
	for i in 1 2 3 4; do hdfs_datanode_start $i; done
	bst_wait 120 hdfs_live 4
	bst_wait 60 hdfs_ready
}

umount_if() {
	! mountpoint -q "$1" || umount -l "$1"
}

@test "torch, DCP and safetensors: the bytes are right by any mount, export and hdfs dfs, after restarts too" {
	local dir=$BST_ROOT/n pid
	ckpt_mount m /t unit=1M,replication=1
	ckpt_mount p /t layout=plain,replication=1
	torch torchsave.py save "$BST_ROOT/local" "$BST_ROOT/m/striped" "$BST_ROOT/p/plain"
	same_saved "$BST_ROOT/local" "$BST_ROOT/m/striped"
	same_saved "$BST_ROOT/local" "$BST_ROOT/p/plain"
	# a mount of bootseerd's that has read nothing yet, when its server is killed
	mkdir "$dir"
	bootseerctl ckpt mount "$HDFS_URI/t" "$dir" -o ro
	bst_defer umount_if "$dir"
	exec 5<"$dir/striped/state.pt"
	pid=$(servers)
	kill -KILL "$pid"
	bst_wait 20 other_server "$pid"
	cmp - "$BST_ROOT/local/state.pt" <&5
	exec 5<&-
	torch torchsave.py load "$dir/striped" "$dir/plain"
	same_files "$BST_ROOT/m/striped" "$dir/striped"
	same_files "$BST_ROOT/p/plain" "$dir/plain"
	umount "$dir"
	bst_wait 20 nothing_served
	exported "$BST_ROOT/m/striped"
	same_files "$BST_ROOT/m/striped" "$BST_ROOT/exported/striped" -x latest
	# what HDFS starts keeps a copy of the mounts that there are
	ckpt_umount m
	ckpt_umount p
	hdfs_again
	hdfs_dfs -get /t/plain "$BST_ROOT/got"
	ckpt_mount m /t ro
	same_files "$BST_ROOT/exported/striped" "$BST_ROOT/m/striped" -x latest
	same_files "$BST_ROOT/got" "$BST_ROOT/m/plain" -x latest -x .bootseer
	same_saved "$BST_ROOT/local" "$BST_ROOT/m/plain"
}

# --- containers -----------------------------------------------------------------------------

# begin NAME COMMAND...: with an engine, in the foreground; of image IMAGE and with what ASK
# asks for.
begin_podman() {
	# podman takes what has a comma for two annotations
	bpodman run --rm --name "$1" --annotation "dev.bootseer.checkpoint=${ASK//,/;}" \
		-v "$TORCH:/opt/torch:ro" -v "$bst_lib:/opt/lib:ro" "$IMAGE" "${@:2}"
}

begin_containerd() {
	bctr run --rm --runc-binary "$RUNTIME" --annotation "dev.bootseer.checkpoint=$ASK" \
		--mount "type=bind,src=$TORCH,dst=/opt/torch,options=rbind:ro" \
		--mount "type=bind,src=$bst_lib,dst=/opt/lib,options=rbind:ro" "$IMAGE" "$1" "${@:2}"
}

kill_podman() {
	bpodman kill "$1" >/dev/null
}

kill_containerd() {
	bctr tasks kill -s KILL "$1"
}

# trains ENGINE: a container is killed while it writes its sixth checkpoint, the next one ends
# what it began. All that was saved is what the program saves that nobody kills.
trains() {
	local engine=$1 pid status=0
	local train=(env PYTHONPATH=/opt/torch python3 /opt/lib/torchtrain.py /ckpt 10)
	hdfs_rest PUT "/train-$BST_ID" op=MKDIRS
	ASK=source=$HDFS_URI/train-$BST_ID,target=/ckpt,rw,unit=1M
	"begin_$engine" "a-$BST_ID" "${train[@]}" 6 >"$BST_ROOT/first" 2>&1 </dev/null 3>&- 4>&- &
	pid=$!
	bst_wait 60 grep -qx half "$BST_ROOT/first" || {
		cat "$BST_ROOT/first"
		return 1
	}
	[ "$(wc -w <<<"$(servers)")" = 1 ]
	"kill_$engine" "a-$BST_ID"
	wait $pid || status=$?
	[ "$status" = 137 ]
	trained_nothing_left
	"begin_$engine" "b-$BST_ID" "${train[@]}" >"$BST_ROOT/second" 2>&1 </dev/null || {
		cat "$BST_ROOT/second"
		return 1
	}
	[ "$(head -n 1 "$BST_ROOT/second")" = "from 5 $(sed -n 's/^saved 5 //p' "$BST_ROOT/first")" ]
	cat "$BST_ROOT/first" "$BST_ROOT/second" | grep -vE '^from [^0]|half' | diff - "$HDFS_ROOT/never-killed"
	trained_nothing_left
	ckpt_mount m "/train-$BST_ID" ro
	[ "$(ls "$BST_ROOT/m")" = $'checkpoint-10\ncheckpoint-9\nlatest' ]
	diff -r "$BST_ROOT/m" "$HDFS_ROOT/train"
}

trained_nothing_left() {
	bst_wait 20 nothing_served
	[ -z "$(ls "$BST_RUN/ckpts")" ]
	lazy_no_state
}

@test "podman, a lazy image: killed while it saves, the next container ends the training" {
	podman_setup
	export BST_RUNTIME=$RUNTIME
	IMAGE=$(lazy_stub python)
	bpodman pull -q --tls-verify=false --signature-policy "$BST_ROOT/podman/policy.json" "$IMAGE" >/dev/null
	trains podman
	podman_stop
}

@test "containerd 2, a lazy image: the same" {
	containerd_start 2
	IMAGE=$(lazy_stub python)
	bctr images pull --plain-http --snapshotter overlayfs "$IMAGE" >/dev/null
	trains containerd
	containerd_stop
}

@test "CRI: what a pod asks for, its containers get, and its sandbox does not" {
	local busybox=$REGISTRY/busybox:latest main=$BST_ROOT/main.json pod c
	image_push "$(image_busybox)" "$busybox"
	image_push "$(image_pause)" "$REGISTRY/pause:latest"
	hdfs_rest PUT "/pod-$BST_ID" op=MKDIRS
	cri_start 2 "$REGISTRY/pause:latest" 'pod_annotations = ["dev.bootseer.*"]'
	cri pull "$busybox"
	cri_pod "$BST_ROOT/pod.json" ".annotations[\"dev.bootseer.checkpoint\"] =
		\"source=$HDFS_URI/pod-$BST_ID,target=/ckpt,rw\""
	pod=$(cri runp --runtime bootseer "$BST_ROOT/pod.json")
	nothing_served
	jq -n --arg image "$busybox" '{metadata: {name: "main", attempt: 0}, image: {image: $image}, log_path: "main.log",
		linux: {}, command: ["sh", "-c", "echo kept >/ckpt/file; exec sleep 1000"]}' >"$main"
	c=$(cri create "$pod" "$main" "$BST_ROOT/pod.json")
	cri start "$c"
	bst_wait 20 eval '[ "$(hdfs_get "/pod-$BST_ID/file")" = kept ]'
	[ "$(wc -w <<<"$(servers)")" = 1 ]
	cri stop -t 0 "$c"
	cri rm "$c"
	trained_nothing_left
	cri stopp "$pod"
	cri rmp "$pod"
	containerd_stop
}
