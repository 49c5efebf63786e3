#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 79-checkpoint.bats: does a container get the directory of HDFS that it asks for, and is all
# of it gone with the container, whoever was killed in between?
#
# needs: hadoop
# timeout: 900
# test-timeout: 120
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/hdfs.bash
load ../lib/ckpt.bash
load ../lib/shim.bash
load ../lib/node.bash

setup_file() {
	bst_setup
	hdfs_start
	head -c 50000000 /dev/urandom >"$HDFS_ROOT/data"
	hdfs_rest PUT /r op=MKDIRS
	hdfs_rest PUT /w 'op=MKDIRS&permission=777'
	hdfs_rest PUT /other op=MKDIRS
	hdfs_put "$HDFS_ROOT/data" /r/data 'blocksize=16777216&replication=2'
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
	bst_require busybox runc jq
	shim_tree "$BST_ROOT/image"
	ID=c-$BST_ID
	B=$BST_ROOT/b
	conf
}

teardown() {
	bst_teardown
}

# conf [LINE...]: what policy allows here, and LINEs as node_conf takes them.
conf() {
	node_conf "checkpoint allow_sources = $HDFS_URI/r $HDFS_URI/w" 'checkpoint user = root' \
		"checkpoint options = conf=$HDFS_CONF" 'checkpoint allow_users = root train' "$@"
}

# bundle VALUE COMMAND...: one that asks for a checkpoint.
bundle() {
	local value=$1
	shift
	rm -rf "$B"
	shim_bundle "$B" "$@"
	rmdir "$B/rootfs"
	cp -a "$BST_ROOT/image" "$B/rootfs"
	ask "$value"
}

# ask VALUE [NAME]
ask() {
	shim_edit "$B" '.annotations["dev.bootseer.checkpoint" + $name] = $value' \
		--arg value "$1" --arg name "${2:+.$2}"
}

# all_gone: nothing is left of any container. Where the machine is shared with others, their
# mount namespaces may have a copy of a mount.
all_gone() {
	shim_clean && [ -z "$(ls "$BST_RUN/ckpt" 2>/dev/null)" ] && bst_wait 20 nothing_served &&
		[ -z "$(ls "$BST_RUN/ckpts")" ]
}

@test "run: what is on HDFS is read, what is written is on HDFS, nothing is left" {
	bundle "source=$HDFS_URI/r,target=/ckpt/in,ro" sh -c \
		'cat /ckpt/in/data >/ckpt/out/copy && ls /ckpt/in && ! touch /ckpt/in/x 2>/dev/null'
	ask "source=$HDFS_URI/w,target=/ckpt/out,rw,layout=striped,unit=1M,files=4" out
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = data ]
	all_gone
	ckpt_mount m /w ro
	cmp "$BST_ROOT/m/copy" "$HDFS_ROOT/data"
	hdfs_rest GET /w/.bootseer op=LISTSTATUS | jq -e '.FileStatuses.FileStatus | length >= 1'
}

@test "in a user namespace, in a read-only rootfs, as another user: it reads and writes as its own" {
	bundle "source=$HDFS_URI/w,target=/ckpt,rw" sh -c 'echo x >/ckpt/mapped && cat /ckpt/mapped && stat -c %u /ckpt/mapped'
	chown -R 100000:100000 "$B/rootfs"
	shim_edit "$B" '.root.readonly = true | .linux.namespaces += [{type: "user"}] |
		.linux.uidMappings = [{containerID: 0, hostID: 100000, size: 65536}] |
		.linux.gidMappings = .linux.uidMappings'
	chmod 755 "$BST_ROOT" "$B" # the root of the namespace has to get to the rootfs
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = $'x\n0' ]
	[ "$(hdfs_get /w/mapped)" = x ]
	all_gone
	# no root at all
	bundle "source=$HDFS_URI/w,target=/deep/er/ckpt,rw" sh -c 'echo y >/deep/er/ckpt/user && id -u && stat -c %u /deep/er/ckpt/user'
	shim_edit "$B" '.process.user = {uid: 1000, gid: 1000} | .root.readonly = true'
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = $'1000\n1000' ]
	[ "$(hdfs_get /w/user)" = y ]
	all_gone
}

@test "what policy does not allow, or cannot be read, is an error that says what to do" {
	local value
	for value in "source=$HDFS_URI/other,target=/ckpt|allow_sources" \
		"source=$HDFS_URI/r/../other,target=/ckpt|without '..'" \
		"source=hdfs://elsewhere/r,target=/ckpt|allow_sources" \
		"source=$HDFS_URI/r,target=/ckpt,user=hdfs|allow_users" \
		"source=$HDFS_URI/r,target=/proc/ckpt|not '/' nor in /proc" \
		"source=$HDFS_URI/r,target=/ckpt,size=3|'size' is unknown" \
		"source=$HDFS_URI/r|'target' is missing"; do
		bundle "${value%|*}" true
		run shim run -b "$B" "$ID"
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *"${value#*|}"* ]]
		all_gone
	done
	conf 'checkpoint allow_targets = /data' 'checkpoint allow_writes = no'
	bundle "source=$HDFS_URI/r,target=/ckpt" true
	run shim run -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $output == *allow_targets* ]]
	bundle "source=$HDFS_URI/w,target=/data/x,rw" true
	run shim run -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $output == *allow_writes* ]]
	node_conf # nothing is allowed unless the host says so
	bundle "source=$HDFS_URI/r,target=/ckpt" true
	run shim run -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $output == *allow_sources*"[checkpoint]"* ]]
	node_conf 'policy allow_annotations = no'
	bundle "source=$HDFS_URI/r,target=/ckpt" true
	run shim run -b "$B" "$ID"
	[ "$status" = 0 ] # as if it was not there
}

@test "a source that is not there: an error, or, where it is not required, a start that says so" {
	bundle "source=$HDFS_URI/r/none,target=/ckpt" true
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"/r/none"*"/ckpt"* ]]
	all_gone
	bundle "source=$HDFS_URI/r/none,target=/ckpt,required=no" sh -c 'ls -d /ckpt; ls /in'
	ask "source=$HDFS_URI/r,target=/in" in
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"STARTING WITHOUT IT"* ]]
	[[ $output == *$'\ndata' ]]
	all_gone
	conf 'checkpoint required = no' 'checkpoint allow_sources = webhdfs://127.0.0.1:9/' 'checkpoint mount_wait = 2s'
	bundle "source=webhdfs://127.0.0.1:9/,target=/ckpt" true
	run timeout 60 "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *"STARTING WITHOUT IT"* ]]
	bundle "source=webhdfs://127.0.0.1:9/,target=/ckpt,required=yes" true
	run timeout 60 "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" run -b "$B" "$ID"
	[ "$status" = 1 ]
	all_gone
}

@test "the host's noexec and noatime hold in containers; log and foreground are refused" {
	local flags
	conf "checkpoint options = conf=$HDFS_CONF noexec noatime"
	bundle "source=$HDFS_URI/w,target=/ckpt,rw" sh -c \
		'printf "#!/bin/sh\necho ran\n" >/ckpt/tool && chmod 755 /ckpt/tool; /ckpt/tool; grep " /ckpt " /proc/mounts'
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *ran* ]]
	for flags in noexec noatime nosuid nodev; do
		[[ $output == *" /ckpt "*$flags* ]]
	done
	all_gone
	for flags in log=/tmp/x foreground; do
		conf "checkpoint options = conf=$HDFS_CONF $flags"
		bundle "source=$HDFS_URI/r,target=/ckpt" true
		run shim run -b "$B" "$ID"
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *"'${flags%=*}' is mount.bootseer-hdfs(8)'s alone"* ]]
		all_gone
	done
}

@test "without a user it is that of section node, whatever bootseerd was started with" {
	node_conf "checkpoint allow_sources = $HDFS_URI/w" "checkpoint options = conf=$HDFS_CONF"
	HADOOP_USER_NAME=root node_start
	bundle "source=$HDFS_URI/w,target=/ckpt,rw" sh -c 'echo x >/ckpt/whose'
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(hdfs_rest GET /w/whose op=GETFILESTATUS | jq -r .FileStatus.owner)" = nobody ]
	all_gone
}

@test "several that nobody answers for: a start waits for all of them at once" {
	local start name
	conf 'checkpoint required = no' \
		"checkpoint allow_sources = webhdfs://127.0.0.1:9/ $HDFS_URI/r" 'checkpoint mount_wait = 3s'
	bundle "source=$HDFS_URI/r,target=/ckpt" ls /ckpt
	for name in a b c d e; do
		ask "source=webhdfs://127.0.0.1:9/$name,target=/ckpt-$name" "$name"
	done
	start=$SECONDS
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[ "$(grep -c "STARTING WITHOUT IT" <<<"$output")" = 5 ]
	[[ $output == *$'\ndata' ]]
	echo "# $((SECONDS - start)) s" >&3
	((SECONDS - start < 20))
	all_gone
}

# mount_of_container: a path to the checkpoint as the container sees it
inside() {
	echo "/proc/$(shim state "$1" | jq .pid)/root/ckpt"
}

@test "created: two containers share one server; it is gone with the last of them" {
	local pid
	bundle "source=$HDFS_URI/r,target=/ckpt" sleep 1000
	shim create -b "$B" "$ID" </dev/null >/dev/null 2>&1
	shim start "$ID"
	pid=$(servers)
	[ "$(wc -w <<<"$pid")" = 1 ]
	[ "$(cat "/proc/$pid/comm")" = bootseer-ckpt ]
	grep -q $'^CapPrm:\t0000000000000000$' "/proc/$pid/status"
	grep -q $'^Seccomp:\t2$' "/proc/$pid/status"
	# the host has no path to it any more
	run grep -F "$BST_RUN/ckpt" /proc/self/mountinfo
	[ "$status" = 1 ]
	B=$BST_ROOT/b2
	bundle "source=$HDFS_URI/r,target=/ckpt" sleep 1000
	shim_edit "$B" '.linux.cgroupsPath += "-2"'
	shim create -b "$B" "$ID-2" </dev/null >/dev/null 2>&1
	[ "$(servers)" = "$pid" ]
	cmp "$(inside "$ID")/data" "$HDFS_ROOT/data"
	cmp "$(inside "$ID-2")/data" "$HDFS_ROOT/data"
	[ "$(node_status '.checkpoints | length')" = 1 ]
	[ "$(node_status '.checkpoints[0].holders | length')" = 2 ]
	[ "$(node_status '.checkpoints[0].source')" = "$HDFS_URI/r" ]
	shim delete --force "$ID"
	[ "$(servers)" = "$pid" ]
	cmp "$(inside "$ID-2")/data" "$HDFS_ROOT/data"
	shim delete --force "$ID-2"
	all_gone
	[ "$(node_status '.checkpoints | length')" = 0 ]
}

# eight_load FILE SUM: so many containers at once, each of which reads the whole FILE.
eight_load() {
	local i pids=()
	for i in {1..8}; do
		B=$BST_ROOT/e$i
		bundle "source=$HDFS_URI/r,target=/ckpt" sh -c "sha256sum /ckpt/$1 >/sum; sleep 1000"
		ln -s busybox "$B/rootfs/bin/sha256sum"
		shim_edit "$B" '.linux.cgroupsPath += $i' --arg i "-$i"
		shim create -b "$B" "$ID-$i" </dev/null >/dev/null 2>&1
	done
	for i in {1..8}; do
		shim start "$ID-$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	for i in {1..8}; do
		bst_wait 30 test -s "$BST_ROOT/e$i/rootfs/sum"
		[ "$(cut -d' ' -f1 "$BST_ROOT/e$i/rootfs/sum")" = "$2" ]
	done
	for i in {1..8}; do shim delete --force "$ID-$i"; done
	all_gone
}

# from_datanodes: bytes that have come over their links.
from_datanodes() {
	local i sum=0
	for i in 1 2 3 4; do sum=$((sum + $(hdfs_in netns_rx_bytes "dn$i"))); done
	echo $sum
}

@test "eight containers load one checkpoint at once: HDFS is read about once" {
	local i file bytes before
	cat "$HDFS_ROOT/data" "$HDFS_ROOT/data" "$HDFS_ROOT/data" >"$BST_ROOT/big"
	bootseerctl ckpt import -q "$BST_ROOT/big" "$HDFS_URI/r/striped" -o replication=1
	hdfs_put "$BST_ROOT/big" /r/plain 'blocksize=33554432&replication=2'
	# so slow that all of them wait for the same bytes
	for i in 1 2 3 4; do hdfs_rate $i 200mbit; done
	for file in striped plain; do
		before=$(from_datanodes)
		eight_load $file "$(sha256sum <"$BST_ROOT/big" | cut -d' ' -f1)"
		bytes=$(($(from_datanodes) - before))
		echo "# $file: $bytes of 150000000 bytes" >&3
		((bytes < 195000000))
	done
	for i in 1 2 3 4; do hdfs_rate $i none; done
	hdfs_rest DELETE /r/plain op=DELETE
	hdfs_rest DELETE /r/striped op=DELETE
	hdfs_rest DELETE /r/.bootseer 'op=DELETE&recursive=true'
}

@test "under crun: it reads and writes, and nothing is left" {
	bst_require crun
	# crun of Debian 12 refuses the hybrid hierarchy
	printf '#!/bin/sh\nexec unshare -m sh -c "! mountpoint -q %s || umount -l %s; exec crun \\"\\$@\\"" - "$@"\n' \
		/sys/fs/cgroup/unified /sys/fs/cgroup/unified >"$BST_ROOT/crun"
	chmod 755 "$BST_ROOT/crun"
	conf "runtime runtime = $BST_ROOT/crun"
	bundle "source=$HDFS_URI/w,target=/ckpt,rw" sh -c 'echo x >/ckpt/crun && cat /ckpt/crun'
	run shim run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = x ]
	[ "$(hdfs_get /w/crun)" = x ]
	all_gone
}

@test "a runtime that fails, and a bundle that is started again, leave nothing" {
	bundle "source=$HDFS_URI/r,target=/ckpt" /bin/no-such-thing
	run shim run -b "$B" "$ID"
	[ "$status" != 0 ]
	all_gone
	shim_edit "$B" '.process.args = ["sh", "-c", "ls /ckpt"]'
	run shim run -b "$B" "$ID"
	[ "$status" = 0 ]
	[ "$output" = data ]
	[ "$(jq '[.mounts[] | select(.destination == "/ckpt")] | length' "$B/config.json")" = 1 ]
	all_gone
}

@test "bootseerd killed: the container reads on, the next one knows the mount and ends it" {
	local pid old
	bundle "source=$HDFS_URI/w,target=/ckpt,rw" sh -c \
		'exec 3>/ckpt/log; i=0; while [ ! -e /stop ]; do i=$((i + 1)); echo $i >&3; sleep 0.1; done; echo end >&3; exec 3>&-; touch /stopped; sleep 1000'
	shim create -b "$B" "$ID" </dev/null >/dev/null 2>&1
	shim start "$ID"
	pid=$(servers)
	old=$(node_pid supervisor)
	kill -KILL "$old"
	bst_wait 10 node_answers
	[ "$(servers)" = "$pid" ]
	kill -KILL "$(node_pid keeper)"
	sleep 0.5
	kill -KILL "$(node_pid supervisor)"
	bst_wait 10 node_answers
	[ "$(servers)" = "$pid" ]
	[ "$(node_status '.checkpoints[0].holders | length')" = 1 ]
	touch "$B/rootfs/stop"
	bst_wait 20 test -e "$B/rootfs/stopped"
	[ "$(hdfs_get /w/log | tail -n 1)" = end ]
	shim delete --force "$ID"
	all_gone
}

node_answers() {
	bootseerctl status >/dev/null 2>&1
}

@test "bootseerd is stopped: what is mounted goes on, and ends with its container" {
	bundle "source=$HDFS_URI/r,target=/ckpt" sleep 1000
	shim create -b "$B" "$ID" </dev/null >/dev/null 2>&1
	kill -TERM "$(node_pid supervisor)"
	bst_wait 10 test ! -e "$BST_RUN/bootseerd.sock"
	cmp "$(inside "$ID")/data" "$HDFS_ROOT/data"
	shim delete --force "$ID"
	bst_wait 20 nothing_served
}

@test "a container that vanished without a delete: the sweep takes its mount back" {
	bundle "source=$HDFS_URI/r,target=/ckpt" sleep 1000
	shim create -b "$B" "$ID" </dev/null >/dev/null 2>&1
	runc --root "$BST_STATE/oci" delete --force "$ID"
	rm "$BST_RUN/state"/*
	# a new supervisor sweeps at its start
	kill -KILL "$(node_pid supervisor)"
	bst_wait 10 node_answers
	all_gone
}

@test "bootseerctl ckpt: mount, list, unmount; umount(8) does as well" {
	local dir=$BST_ROOT/m
	conf 'node autostart = yes'
	mkdir "$dir"
	bootseerctl ckpt mount "$HDFS_URI/r" "$dir" -o ro,noexec
	bst_defer ctl_umount "$dir"
	cmp "$dir/data" "$HDFS_ROOT/data"
	[[ $(findmnt -no OPTIONS "$dir") == ro,*nosuid*noexec* ]]
	run bootseerctl ckpt ls
	echo "$output"
	[[ $output == *serving*"0 containers"*"$HDFS_URI/r"* ]]
	bootseerctl ckpt ls --json | jq -e '.[0].for_nobody and .[0].read_only'
	exec 4<"$dir/data"
	run bootseerctl ckpt umount "$dir"
	exec 4<&-
	[ "$status" = 1 ]
	[[ $output == *--lazy* ]]
	bootseerctl ckpt umount "$dir"
	run bootseerctl ckpt umount "$dir"
	[ "$status" = 1 ]
	[[ $output == *"no mount of a checkpoint"* ]]
	bst_wait 20 nothing_served
	bootseerctl ckpt mount "$HDFS_URI/w" "$dir"
	echo x >"$dir/from-ctl"
	umount "$dir"
	bst_wait 20 nothing_served
	[ "$(hdfs_get /w/from-ctl)" = x ]
	[ -z "$(bootseerctl ckpt ls)" ]
	run bootseerctl ckpt mount "$HDFS_URI/none" "$dir"
	[ "$status" = 1 ]
	[[ $output == */none* ]]
	run bootseerctl ckpt mount "$HDFS_URI/r" "$dir" -o colour=red
	[ "$status" = 1 ]
	[[ $output == *colour* ]]
}

ctl_umount() {
	! mountpoint -q "$1" || umount -l "$1"
}

@test "bootseerctl ckpt: import, look, verify, export, collect" {
	local big=$BST_ROOT/big
	hdfs_rest PUT /w/ctl op=MKDIRS
	cat "$HDFS_ROOT/data" "$HDFS_ROOT/data" "$HDFS_ROOT/data" >"$big"
	run bootseerctl ckpt import "$big" "$HDFS_URI/w/ctl/big" -o unit=2M,files=8
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *$'\r'* ]] # no terminal, no bar
	run bootseerctl ckpt import "$big" "$HDFS_URI/w/ctl/big"
	[ "$status" = 1 ]
	bootseerctl ckpt import -q --force "$big" "$HDFS_URI/w/ctl/big" -o unit=2M,files=8
	bootseerctl ckpt info "$HDFS_URI/w/ctl/big"
	bootseerctl ckpt info --json "$HDFS_URI/w/ctl/big" |
		jq -e '.layout == "striped" and .bytes == 150000000 and .unit == 2097152 and .segments[0].files == 8'
	bootseerctl ckpt ls "$HDFS_URI/w/ctl"
	bootseerctl ckpt ls --json "$HDFS_URI/w/ctl" | jq -e '.[0].stripes == 8 and .[0].bytes == 150000000'
	run bootseerctl ckpt verify -q "$HDFS_URI/w/ctl"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == "1 files, "*" 72 sums of units checked, 0 wrong; 0 files"* ]]
	bootseerctl ckpt export -q "$HDFS_URI/w/ctl/big" "$BST_ROOT/back"
	cmp "$BST_ROOT/back" "$big"
	run bootseerctl ckpt export "$HDFS_URI/w/ctl/big" "$BST_ROOT/back"
	[ "$status" = 1 ]
	[[ $output == *--force* ]]
	bootseerctl ckpt export -q "$HDFS_URI/w/ctl/big" "$HDFS_URI/w/ctl/plain"
	bootseerctl ckpt info --json "$HDFS_URI/w/ctl/plain" | jq -e '.layout == "plain"'
	hdfs_get /w/ctl/plain | cmp - "$big"
	# the generation that was replaced is garbage
	run bootseerctl ckpt gc "$HDFS_URI/w/ctl" --lease 1ms -o grace=1ms
	echo "$output"
	[ "$status" = 0 ]
	[[ $output == *" segments with "*removed* ]]
	bootseerctl ckpt export -q --force "$HDFS_URI/w/ctl/big" "$BST_ROOT/back"
	cmp "$BST_ROOT/back" "$big"
	# what is no file takes the bytes, and stays
	mknod "$BST_ROOT/null" c 1 3
	bootseerctl ckpt export -q --force "$HDFS_URI/w/ctl/big" "$BST_ROOT/null"
	run bootseerctl ckpt export -q --force "$HDFS_URI/w/ctl/absent" "$BST_ROOT/null"
	[ "$status" != 0 ]
	[ -c "$BST_ROOT/null" ]
	# a stripe with other bytes, and then without its end
	local stripe
	stripe=$(hdfs_dfs -ls -R /w/ctl/.bootseer 2>/dev/null | awk '/-of-/ { print $NF; exit }')
	head -c "$(hdfs_rest GET "$stripe" op=GETFILESTATUS | jq .FileStatus.length)" /dev/urandom >"$BST_ROOT/junk"
	hdfs_put "$BST_ROOT/junk" "$stripe"
	run bootseerctl ckpt verify -q "$HDFS_URI/w/ctl"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"/w/ctl/big"*"1 files cannot be read"* ]]
	run bootseerctl ckpt export -q "$HDFS_URI/w/ctl/big" "$BST_ROOT/half"
	[ "$status" = 1 ]
	[ ! -e "$BST_ROOT/half" ]
	run bootseerctl ckpt export -q "$HDFS_URI/w/ctl/big" "$HDFS_URI/w/ctl/half"
	[ "$status" = 1 ]
	run hdfs_rest GET /w/ctl/half op=GETFILESTATUS
	[ "$status" != 0 ]
}

@test "status and timeline: what was read, from where, how fast, and when" {
	local spans
	bundle "source=$HDFS_URI/r,target=/ckpt" sh -c 'cat /ckpt/data >/dev/null; touch /read; sleep 1000'
	shim create -b "$B" "$ID" </dev/null >/dev/null 2>&1
	shim start "$ID"
	bst_wait 20 test -e "$B/rootfs/read"
	run bootseerctl status
	echo "$output"
	[[ $output == *"checkpoint "*"$HDFS_URI/r, serving, 1 containers"*" read in "*"DataNode "*:9866* ]]
	node_status '.checkpoints[0].stats' | jq -e '.read_bytes >= 50000000 and .failures == 0 and
		(.datanodes.nodes | length) >= 2 and ([.datanodes.nodes[].bytes] | add) >= 50000000 and
		.datanodes.hedges != null and .datanodes.retries == 0'
	shim delete --force "$ID"
	all_gone
	spans=$(bootseerctl timeline --json "$ID" | jq -r 'select(.name) | "\(.name) \(.program) \(.bytes // 0) \(.text // "")"')
	echo "$spans"
	[[ $spans == *"ckpt-mount bootseer 0 /ckpt"* ]]
	[[ $spans == *"ckpt-read bootseer-ckpt 0"* ]]
	[[ $spans == *"ckpt-load bootseer-ckpt 5"* ]]
}

# in_python DIR: reads, maps, lists and writes in DIR; halfway it says "now" and waits for a line.
in_python() {
	/usr/bin/python3 -c '
import errno, hashlib, mmap, os, sys
top = sys.argv[1]
f = open(top + "/data", "rb", buffering=0)
whole = os.path.getsize(top + "/data")
first = f.read(3000000)
g = os.open(top + "/data", os.O_RDONLY)
m = mmap.mmap(g, whole, prot=mmap.PROT_READ)
small = m[:10]
entries = os.scandir(top)
next(entries)
w = open(top + "/half", "wb", buffering=0)
w.write(b"x" * 5000000)
s = open(top + "/synced", "wb", buffering=0)
s.write(b"y" * 3000000)
os.fsync(s.fileno())
s.write(b"z" * 3000000)
print("now", flush=True)
sys.stdin.readline()
rest = b""
while True:
	piece = f.read(1 << 20)
	if not piece:
		break
	rest += piece
print(hashlib.sha256(first + rest).hexdigest())
print(hashlib.sha256(m[:]).hexdigest())
print(len({e.name for e in entries if e.name[0] == "e"}))
def fails(what, fn):
	try:
		fn()
	except OSError as e:
		print(what, errno.errorcode[e.errno])
	else:
		print(what, "worked")
fails("write", lambda: w.write(b"x"))
fails("fsync", lambda: os.fsync(w.fileno()))
fails("truncate", lambda: os.ftruncate(w.fileno(), 7))
fails("close", w.close)
fails("synced", s.close)
print(hashlib.sha256(open(top + "/data", "rb").read()).hexdigest())
n = open(top + "/after", "wb")
n.write(b"n")
n.close()
print(os.path.exists(top + "/half"), os.path.getsize(top + "/synced"))
' "$1"
}

@test "its server killed: readers go on, writers get EIO, nothing looks whole that is not" {
	local dir=$BST_ROOT/m sum pid i
	hdfs_rest PUT /w/kill op=MKDIRS
	hdfs_put "$HDFS_ROOT/data" /w/kill/data 'blocksize=16777216&replication=2'
	sum=$(sha256sum <"$HDFS_ROOT/data" | cut -d' ' -f1)
	mkdir "$dir"
	conf 'node autostart = yes'
	bootseerctl ckpt mount "$HDFS_URI/w/kill" "$dir"
	bst_defer ctl_umount "$dir"
	for ((i = 0; i < 300; i++)); do # more than one getdents(2) takes
		echo "$dir/e$i-$(printf '%0200d' 0)"
	done | xargs mkdir
	mkfifo "$BST_ROOT/go"
	in_python "$dir" <"$BST_ROOT/go" >"$BST_ROOT/out" 2>&1 3>&- 4>&- &
	exec 4>"$BST_ROOT/go"
	bst_wait 20 grep -q now "$BST_ROOT/out"
	for i in 1 2; do # a server that took over can be killed as well
		pid=$(servers)
		kill -KILL "$pid"
		bst_wait 10 bst_dead "$pid"
		bst_wait 10 other_server "$pid"
	done
	echo >&4
	exec 4>&-
	wait $!
	cat "$BST_ROOT/out"
	[ "$(cat "$BST_ROOT/out")" = "now
$sum
$sum
300
write EIO
fsync EIO
truncate EIO
close EIO
synced EIO
$sum
False 3000000" ]
	[ "$(hdfs_get /w/kill/after)" = n ]
	run hdfs_rest GET /w/kill/half op=GETFILESTATUS
	[ "$status" != 0 ]
	# a program that reads all the time notices nothing
	(for ((i = 0; i < 30; i++)); do sha256sum <"$dir/data"; done) >"$BST_ROOT/sums" 2>&1 3>&- 4>&- &
	for i in 1 2 3; do
		sleep 0.7
		kill -KILL "$(servers)"
	done
	wait $!
	[ "$(sort -u "$BST_ROOT/sums")" = "$sum  -" ]
	[ "$(wc -l <"$BST_ROOT/sums")" = 30 ]
	# with a supervisor that took over, too
	kill -KILL "$(node_pid supervisor)"
	bst_wait 10 node_answers
	pid=$(servers)
	kill -KILL "$pid"
	bst_wait 10 other_server "$pid"
	cmp "$dir/data" "$HDFS_ROOT/data"
	umount "$dir"
	bst_wait 20 nothing_served
}

# namenodes SIGNAL
namenodes() {
	local n=0
	# shellcheck disable=SC2086
	for _ in $HDFS_NAMENODES; do
		n=$((n + 1))
		kill -s "$1" "$(hdfs_namenode_pid "$n")"
	done
}

@test "its server killed while HDFS is away: who reads waits, and goes on when it is back" {
	local dir=$BST_ROOT/m pid reading
	mkdir "$dir"
	conf 'node autostart = yes'
	bootseerctl ckpt mount "$HDFS_URI/r" "$dir" -o ro,deadline=2s
	bst_defer ctl_umount "$dir"
	mkfifo "$BST_ROOT/go"
	# nobody else has it open, for a close waits for the server as well
	(read -r _ <"$BST_ROOT/go" || :; exec cmp - "$HDFS_ROOT/data") <"$dir/data" 3>&- 4>&- &
	reading=$!
	exec 5>"$BST_ROOT/go"
	bst_defer namenodes CONT
	namenodes STOP
	pid=$(servers)
	kill -KILL "$pid"
	exec 5>&-
	bst_wait 30 grep -q 'cannot go on yet' "$BST_RUN/bootseerd.log"
	[ "$(node_status '.checkpoints[0].state')" = serving ]
	kill -0 "$reading"
	namenodes CONT
	wait "$reading"
	cmp "$dir/data" "$HDFS_ROOT/data"
	umount "$dir"
	bst_wait 20 nothing_served
}

# unit_ready N: a service manager saw bootseerd ready more than N times, and a server is there.
unit_ready() {
	[ "$(grep -cx ready "$BST_ROOT/events")" -gt "$1" ] && [ -n "$(servers)" ] &&
		[ "$(node_status '.checkpoints[0].state')" = serving ]
}

@test "under a service manager all processes are killed: the container reads on, the next ones serve it" {
	local i
	bst_spawn unit "${bst_lib:?}/fakesystemd.py" "$BST_RUN/bootseerd.sock" "$BST_ROOT/events" \
		"$BOOTSEER_BUILDDIR/bootseerd" --config "$BOOTSEER_CONFIG"
	bst_wait 10 grep -qx ready "$BST_ROOT/events"
	bundle "source=$HDFS_URI/r,target=/ckpt" sleep 1000
	shim create -b "$B" "$ID" </dev/null >/dev/null 2>&1
	shim start "$ID"
	exec 5<"$(inside "$ID")/data"
	for i in 1 2; do
		# shellcheck disable=SC2046
		kill -KILL $(pgrep -f -- "^$BOOTSEER_BUILDDIR/bootseerd .*--config $BOOTSEER_CONFIG") || :
		bst_wait 20 unit_ready "$i"
	done
	cmp - "$HDFS_ROOT/data" <&5
	exec 5<&-
	cmp "$(inside "$ID")/data" "$HDFS_ROOT/data"
	[ "$(node_status '.checkpoints[0].holders | length')" = 1 ]
	# the supervisor alone: the manager ends the rest
	kill -KILL "$(node_pid supervisor)"
	bst_wait 20 unit_ready 3
	cmp "$(inside "$ID")/data" "$HDFS_ROOT/data"
	shim delete --force "$ID"
	all_gone
	[ "$(grep -c '^store ckpt-fuse@' "$BST_ROOT/events")" -ge 1 ]
	[ "$(grep -c '^remove ckpt-' "$BST_ROOT/events")" = 3 ]
	bst_stop unit
}
