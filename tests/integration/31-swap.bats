#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 31-swap.bats: an image comes to lie in a container's rootfs, and is taken away again.
# The image comes from a stand-in for bootseerd: a directory or a small EROFS image.

# shellcheck disable=SC2016

load ../lib/common.bash
load ../lib/shim.bash

setup() {
	bst_setup
	shim_setup
	ID=c-$BST_ID
	B=$BST_ROOT/b
	mkdir "$BST_ROOT/layers"
}

teardown() {
	bst_teardown
}

# overlay_bundle OPTIONS: a bundle whose rootfs is an overlay: a stub (1) below, two layers
# above it, upper and work. Unmounted at the end.
overlay_bundle() {
	local l=$BST_ROOT/layers
	shim_stub "$l/1"
	echo from-stub >"$l/1/etc/stub"
	mkdir -p "$l"/{2,3}/etc "$l"/{upper,work}
	echo two >"$l/2/etc/two"
	echo two >"$l/2/etc/origin2"
	echo three >"$l/3/etc/three"
	echo three >"$l/3/etc/origin"
	mount -t overlay engine -o "lowerdir=$l/3:$l/2:$l/1,upperdir=$l/upper,workdir=$l/work$1" "$B/rootfs"
	bst_defer overlay_gone
}

overlay_gone() {
	! mountpoint -q "$B/rootfs" || umount "$B/rootfs"
}

mount_of() {
	awk -v p="$1" '$5 == p { o = $6; for (i = 7; $i != "-"; i++) o = o " " $i
		print o, $(i + 1), $(i + 2), $(i + 3) }' /proc/self/mountinfo | tail -n 1
}

run_to_end() {
	run shim run -b "$B" "$ID"
}

@test "plain rootfs: the image is there, what is written survives, nothing is left" {
	for how in '' --erofs; do
		rm -rf "$B"
		shim_bundle "$B" sh -c 'cat /etc/origin; [ ! -e /new ] || echo again; echo x >/new; exit 5'
		shim_stub "$B/rootfs"
		shim_daemon $how
		run_to_end
		[ "$status" = 5 ]
		[ "$output" = from-image ]
		run_to_end
		[ "$status" = 5 ]
		[ "$output" = "from-image
again" ]
		[ "$(cat "$B/rootfs.bootseer/upper/new")" = x ]
		[ ! -e "$B/rootfs/new" ]
		[ "$(stat -c '%a %u' "$B/rootfs.bootseer/upper")" = "$(stat -c '%a %u' "$BST_ROOT/image")" ]
		# two acquired, two released
		[ "$(cut -d' ' -f1 "$BST_ROOT/asked" | tr -d '\n')" = 3434 ]
		grep -q "$SHIM_DIGEST oci:$BST_ROOT/store" "$BST_ROOT/asked"
		shim_clean
		bst_stop daemon
		rm -f "$BST_RUN/bootseerd.sock"
	done
}

@test "config.json: what we do not know survives, and the annotation is set" {
	shim_bundle "$B" true
	shim_stub "$B/rootfs"
	sed -i '0,/{/s//{"x":{"n":1.50,"big":123456789012345678901234567890},/' "$B/config.json"
	chmod 640 "$B/config.json"
	shim_daemon
	run_to_end
	[ "$status" = 0 ]
	grep -q '"x":{"n":1.50,"big":123456789012345678901234567890}' "$B/config.json"
	[ "$(jq -r '.annotations["dev.bootseer.served"]' "$B/config.json")" = "$SHIM_DIGEST" ]
	[ "$(stat -c %a "$B/config.json")" = 640 ]
}

@test "create, start, exec, kill, delete; a second create of the same name harms nobody" {
	shim_bundle "$B" sleep 100
	shim_stub "$B/rootfs"
	shim_daemon --erofs
	shim create -b "$B" "$ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	[ -n "$(ls "$BST_RUN/state")" ]
	shim start "$ID"
	run shim create -b "$B" "$ID"
	[ "$status" = 1 ]
	run shim exec "$ID" cat /etc/origin
	[ "$output" = from-image ]
	# not stopped yet: nothing may be taken away
	run shim delete "$ID"
	[ "$status" = 1 ]
	run shim exec "$ID" cat /var/data/file
	[ "$output" = from-image ]
	shim delete -f "$ID"
	shim_clean
}

@test "overlay: order of layers, flags and options are kept, the engine unmounts it" {
	shim_bundle "$B" sh -c 'cd /etc; cat origin two three stub; echo w >written; rm two; sleep 100'
	mkdir -p "$B/rootfs"
	overlay_bundle ,metacopy=on,redirect_dir=on
	mount -o remount,nosuid,nodev,bind "$B/rootfs"
	before=$(mount_of "$B/rootfs")
	shim_daemon --erofs
	shim create -b "$B" "$ID" >"$BST_ROOT/out" 2>&1 </dev/null
	after=$(mount_of "$B/rootfs")
	[ "${after%% overlay *}" = "${before%% overlay *}" ]
	[[ $after == *"overlay bootseer:$SHIM_DIGEST rw,"* ]]
	[[ $after == *"lowerdir+=$BST_ROOT/layers/3,lowerdir+=$BST_ROOT/layers/2,lowerdir+=/proc/self/fd/"*",lowerdir+=$BST_ROOT/layers/1,upperdir=$BST_ROOT/layers/upper,workdir=$BST_ROOT/layers/work"* ]]
	[[ $after == *metacopy=on* ]]
	[ "$(jq -c .layers "$BST_RUN/state/"*)" = "[\"$BST_ROOT/layers/3\",\"$BST_ROOT/layers/2\",\"bootseer:$SHIM_DIGEST\",\"$BST_ROOT/layers/1\"]" ]
	shim start "$ID"
	bst_wait 5 test -e "$BST_ROOT/layers/upper/etc/written"
	[ "$(tr '\n' ' ' <"$BST_ROOT/out")" = "three two three from-stub " ]
	bst_wait 5 test -c "$BST_ROOT/layers/upper/etc/two"
	shim delete -f "$ID"
	[ -z "$(ls "$BST_RUN/state")" ]
	umount "$B/rootfs"
	shim_clean
}

@test "an engine that keeps its mount: the next create finds ours and uses it" {
	shim_bundle "$B" cat /etc/origin
	overlay_bundle ""
	shim_daemon
	for i in 1 2; do
		run_to_end
		[ "$status" = 0 ]
		[ "$output" = three ]
		[[ $(mount_of "$B/rootfs") == *"overlay bootseer:$SHIM_DIGEST "* ]]
		[ "$(grep -c . /proc/self/mountinfo)" -gt 0 ]
	done
	[ "$(grep -cF "$B/rootfs" /proc/self/mountinfo)" = 1 ]
	umount "$B/rootfs"
	shim_clean
}

@test "a volatile overlay stays one, also after its crash marker" {
	shim_bundle "$B" sh -c 'echo x >/x; cat /var/data/file'
	overlay_bundle ,volatile
	shim_daemon
	run_to_end
	[ "$status" = 0 ]
	[ "$output" = from-image ]
	[[ $(mount_of "$B/rootfs") == *volatile* ]]
	umount "$B/rootfs"
}

@test "a link beside the rootfs is not followed, nor one in its place inside" {
	local where
	mkdir "$BST_ROOT/elsewhere"
	for where in rootfs.bootseer rootfs.bootseer/upper rootfs.bootseer/work; do
		rm -rf "$B"
		shim_bundle "$B" sh -c 'echo x >/new'
		shim_stub "$B/rootfs"
		mkdir -p "$(dirname "$B/$where")"
		ln -s "$BST_ROOT/elsewhere" "$B/$where"
		shim_daemon
		run_to_end
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *"'$B/rootfs.bootseer'"*"remove it"* ]]
		[ -z "$(ls "$BST_ROOT/elsewhere")" ]
		[ -L "$B/$where" ]
		shim_clean
		bst_stop daemon
		rm "$BST_RUN/bootseerd.sock"
	done
}

@test "127 layers, and names with colons, commas, spaces and backslashes" {
	shim_bundle "$B" sh -c 'cat /etc/l/1 "/etc/l/odd" /etc/l/126 /var/data/file'
	local l=$BST_ROOT/layers i
	shim_stub "$l/0"
	for i in $(seq 126); do
		mkdir -p "$l/$i/etc/l"
		echo "$i" >"$l/$i/etc/l/$i"
	done
	mkdir -p "$l/o:d,d \\x/etc/l" "$l/u,p:p/er" "$l/w,o:rk"
	echo odd >"$l/o:d,d \\x/etc/l/odd"
	bst_defer overlay_gone
	(
		cd "$l"
		lower='o\:d\,d \\x'
		for i in $(seq 126 -1 0); do lower+=:$i; done
		mount -t overlay engine -o "lowerdir=$lower,upperdir=$l/u\\,p\\:p/er,workdir=$l/w\\,o\\:rk" "$B/rootfs"
	)
	shim_daemon --erofs
	run_to_end
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = "1
odd
126
from-image" ]
	umount "$B/rootfs"
}

@test "read-only overlay without upper, read-only root, read-only bind mount" {
	shim_bundle "$B" sh -c 'cat /etc/origin; echo x >/x'
	shim_stub "$BST_ROOT/layers/1"
	mkdir -p "$BST_ROOT/layers/2"
	mount -t overlay engine -o "lowerdir=$BST_ROOT/layers/2:$BST_ROOT/layers/1" "$B/rootfs"
	bst_defer overlay_gone
	shim_daemon
	shim_edit "$B" '.root.readonly = true'
	run_to_end
	[ "$status" = 1 ]
	[[ $output == *from-image* && $output == *"Read-only file system"* ]] # in either order
	umount "$B/rootfs"
	shim_stub "$B/rootfs"
	run_to_end
	[ "$status" = 1 ]
	[[ $output == *from-image* && $output == *"Read-only file system"* ]] # in either order
	rm -rf "$B/rootfs.bootseer"
	mount --bind -o ro "$BST_ROOT/layers/1" "$B/rootfs"
	mount -o remount,bind,ro "$B/rootfs"
	run_to_end
	[ "$status" = 1 ]
	[[ $output == *from-image* && $output == *"Read-only file system"* ]] # in either order
	[ ! -e "$B/rootfs.bootseer" ]
	umount "$B/rootfs"
	shim_clean
}

@test "whatever fails, the engine's mount is there again, exactly" {
	shim_bundle "$B" true
	overlay_bundle ,redirect_dir=on
	mount -o remount,nodev,bind "$B/rootfs"
	before=$(mount_of "$B/rootfs")
	# nobody answers
	run shim create -b "$B" "$ID"
	[ "$status" = 1 ]
	[ "$(mount_of "$B/rootfs")" = "$before" ]
	# the image is refused
	shim_daemon --acquire 110
	run shim create -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $output == *"error 110"* ]]
	[ "$(mount_of "$B/rootfs")" = "$before" ]
	bst_stop daemon
	rm "$BST_RUN/bootseerd.sock"
	# the runtime fails after the swap
	shim_daemon
	shim_edit "$B" '.process.args = ["/nonexistent"]'
	run shim create -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $(mount_of "$B/rootfs") == "rw,nodev,relatime"*"overlay engine rw,"*"$BST_ROOT/layers/3"*"$BST_ROOT/layers/1"*"redirect_dir=on"* ]]
	[ "$(cat "$B/rootfs/etc/origin")" = three ]
	[ ! -e "$B/rootfs/var/data/file" ]
	[ "$(tail -n 1 "$BST_ROOT/asked" | cut -d' ' -f1)" = 4 ]
	umount "$B/rootfs"
	shim_clean
}

@test "without a configuration file bootseerd is started all the same" {
	cd "$BST_ROOT"
	mkdir bin
	cp "$BOOTSEER_BUILDDIR/bootseer" bin/
	printf '#!/bin/sh\necho "$@" >%s/args\nexit 3\n' "$BST_ROOT" >bin/bootseerd
	chmod 755 bin/bootseerd
	shim_bundle "$B" true
	shim_edit "$B" '.annotations["dev.bootseer.image"] = "docker://r.test/a@" + $d' \
		--arg d "$SHIM_DIGEST"
	# its default run directory is this machine's
	unshare -m sh -ec 'mount -t tmpfs run /run; unset BOOTSEER_CONFIG; exec "$@"' sh \
		bin/bootseer create -b "$B" "$ID" 2>err || [ $? = 1 ]
	cat err
	grep -q "bin/bootseerd' did not start (exit code 3); see '/run/.*/bootseerd.log'" err
	[ "$(cat args)" = --background ]
	# where one is named it is handed on, and has to be there
	sed -i '/autostart/d' "$BOOTSEER_CONFIG"
	run bin/bootseer create -b "$B" "$ID"
	[ "$status" = 1 ]
	[ "$(cat args)" = "--background --config $BOOTSEER_CONFIG" ]
	BOOTSEER_CONFIG=/nonexistent/conf run bin/bootseer create -b "$B" "$ID"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"'/nonexistent/conf' does not exist"* ]]
}

@test "where bootseerd is not to be started the error says what to do" {
	shim_bundle "$B" true
	shim_stub "$B/rootfs"
	run shim create -b "$B" "$ID"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"bootseerd is not running"*"start it, or set 'autostart = yes'"*"'$BOOTSEER_CONFIG'"* ]]
	shim_clean
}

@test "hostile markers are refused by name, and not followed" {
	shim_bundle "$B" true
	shim_daemon
	mkdir "$B/rootfs/etc"
	try() {
		run shim --log "$BST_ROOT/l" --log-format json create -b "$B" "$ID"
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *"/.bootseer/image.json"* ]]
		[[ $output != *"o such file"* && $output != *"ermission denied"* ]]
		rm -rf "$B/rootfs/.bootseer"
	}
	shim_stub "$BST_ROOT/host"
	ln -s "$BST_ROOT/host/.bootseer" "$B/rootfs/.bootseer"
	try
	mkdir "$B/rootfs/.bootseer"
	ln -s "$BST_ROOT/host/.bootseer/image.json" "$B/rootfs/.bootseer/image.json"
	try
	mkdir -p "$B/rootfs/.bootseer/image.json"
	try
	mkdir "$B/rootfs/.bootseer"
	mkfifo "$B/rootfs/.bootseer/image.json"
	try
	mkdir "$B/rootfs/.bootseer"
	head -c 5000 /dev/zero | tr '\0' ' ' >"$B/rootfs/.bootseer/image.json"
	try
	mkdir "$B/rootfs/.bootseer"
	printf '%2000s' '' | tr ' ' '[' >"$B/rootfs/.bootseer/image.json"
	try
	# a source that policy forbids
	shim_stub "$B/rootfs"
	sed -i "s,oci:[^\"]*,oci:/etc," "$B/rootfs/.bootseer/image.json"
	run shim create -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $output == *"oci:/etc"*"allow_dirs"*"$BOOTSEER_CONFIG"* ]]
	[ ! -s "$BST_ROOT/asked" ]
	shim_clean
}

@test "a marker that the container wrote itself is refused" {
	shim_bundle "$B" true
	overlay_bundle ""
	shim_daemon
	sed 's/7"/8"/' "$BST_ROOT/layers/1/.bootseer/image.json" >"$BST_ROOT/new"
	cat "$BST_ROOT/new" >"$B/rootfs/.bootseer/image.json"
	run shim create -b "$B" "$ID"
	[ "$status" = 1 ]
	[[ $output == *"none of the image's layers"* ]]
	[ ! -s "$BST_ROOT/asked" ]
	umount "$B/rootfs"
}

@test "a config.json that can be read in two ways is refused when we have to act" {
	shim_bundle "$B" true
	shim_stub "$B/rootfs"
	mkdir "$B/other"
	shim_daemon
	good=$(cat "$B/config.json")
	for change in 's/"root": {/"ROOT": {"path": "rootfs"}, &/' 's/"path": "rootfs"/&, "path": "rootfs"/' \
		's/"root": {/"root": {"path": "other"}, &/' 's/^{/& "Process": {},/'; do
		sed "$change" <<<"$good" >"$B/config.json"
		cp "$B/config.json" "$BST_ROOT/before"
		run shim create -b "$B" "$ID"
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *"config.json"* ]]
		cmp "$B/config.json" "$BST_ROOT/before"
	done
	[ ! -s "$BST_ROOT/asked" ]
}

@test "annotation: image by digest, policy, fallback to the complete rootfs" {
	shim_bundle "$B" cat /etc/origin
	shim_daemon
	image="oci:$BST_ROOT/store@$SHIM_DIGEST"
	shim_edit "$B" '.annotations["dev.bootseer.image"] = $i' --arg i "$image"
	run_to_end
	[ "$status" = 0 ]
	[ "$output" = from-image ]
	rm -rf "$B/rootfs.bootseer"
	# a tag, in a directory that is not allowed
	shim_edit "$B" '.annotations["dev.bootseer.image"] = "oci:/x:tag"'
	run_to_end
	[ "$status" = 1 ]
	[[ $output == *"dev.bootseer.image"*"/x"*allow_dirs* ]]
	# annotations do not count
	shim_tree "$B/rootfs"
	echo plain >"$B/rootfs/etc/origin"
	shim_conf "allow_annotations = no"
	run_to_end
	[ "$output" = plain ]
	shim_conf
	# nor those of the pod with its sandbox container, which has an image of its own
	shim_edit "$B" '.annotations["dev.bootseer.image"] = $i |
		.annotations["io.kubernetes.cri.container-type"] = "sandbox"' --arg i "$image"
	run_to_end
	[ "$output" = plain ]
	shim_edit "$B" 'del(.annotations["io.kubernetes.cri.container-type"])'
	# the image cannot be had, but the rootfs is complete
	shim_edit "$B" '.annotations["dev.bootseer.image"] = $i' --arg i "$image"
	bst_stop daemon
	rm "$BST_RUN/bootseerd.sock"
	run_to_end
	[ "$status" = 0 ]
	[[ $output == *"starting from the rootfs as it is"*plain ]]
	shim_edit "$B" '.annotations["dev.bootseer.fallback"] = "fail"'
	run_to_end
	[ "$status" = 1 ]
	shim_clean
}

@test "annotation: a tag means what bootseerd says, but an overlay that is kept has its image" {
	other=sha256:$(printf '%064d' 8)
	shim_bundle "$B" cat /etc/origin
	overlay_bundle ""
	shim_edit "$B" '.annotations["dev.bootseer.image"] = $i' --arg i "oci:$BST_ROOT/store:v1"
	rm -r "$BST_ROOT/layers/1/.bootseer"
	for digest in "$SHIM_DIGEST" "$other"; do
		shim_daemon --resolve "$digest"
		run_to_end
		[ "$status" = 0 ]
		[ "$output" = three ]
		[[ $(mount_of "$B/rootfs") == *"overlay bootseer:$SHIM_DIGEST "* ]]
		grep "$SHIM_DIGEST oci:$BST_ROOT/store" "$BST_ROOT/asked"
		[ "$(jq -r '.annotations["dev.bootseer.served"]' "$B/config.json")" = "$SHIM_DIGEST" ]
		bst_stop daemon
		rm "$BST_RUN/bootseerd.sock"
	done
	umount "$B/rootfs"
	# it answers nonsense
	shim_daemon --resolve latest
	run_to_end
	[ "$status" = 1 ]
	[[ $output == *"did not say which image"* ]]
	shim_clean
}

@test "what the host cannot serve lazily is unpacked, said once; or fails, by policy" {
	shim_bundle "$B" cat /etc/origin
	shim_stub "$B/rootfs"
	mv "$BST_ROOT/image" "$BST_ROOT/unpacked"
	mkdir "$BST_ROOT/image"
	shim_daemon --acquire 95 --unpack "$BST_ROOT/unpacked"
	run shim --log "$BST_ROOT/l" run -b "$B" "$ID"
	echo "$output"
	[ "$status" = 0 ]
	[[ ${lines[-1]} == from-image ]]
	[ "$(grep -c unpacked "$BST_ROOT/l")" = 1 ]
	grep -q '"name":"fallback"' "$BST_RUN/timeline/$ID.jsonl"
	shim_conf "fallback = fail"
	run_to_end
	[ "$status" = 1 ]
	[[ $output == *"error 95"* ]]
	shim_clean
}

@test "a bootseerd that is stopped or dead does not hold up delete" {
	shim_bundle "$B" sleep 100
	shim_stub "$B/rootfs"
	shim_daemon
	shim create -b "$B" "$ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	kill -STOP "$(bst_pid daemon)"
	SECONDS=0
	run shim delete -f "$ID"
	[ "$status" = 0 ]
	[ $SECONDS -lt 8 ]
	kill -CONT "$(bst_pid daemon)"
	shim_clean
	shim create -b "$B" "$ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	bst_stop daemon KILL
	run shim delete -f "$ID"
	[ "$status" = 0 ]
	shim_clean
}

@test "delete of half-made containers, also when the runtime does not know them" {
	shim_bundle "$B" sleep 100
	shim_stub "$B/rootfs"
	shim_daemon
	shim create -b "$B" "$ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	runc --root "$BST_STATE/oci" delete -f "$ID"
	mountpoint -q "$B/rootfs"
	run shim delete "$ID"
	[ "$status" = 1 ]
	shim_clean
	# left behind, then made anew
	shim create -b "$B" "$ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	runc --root "$BST_STATE/oci" delete -f "$ID"
	umount "$B/rootfs"
	shim create -b "$B" "$ID" >"$BST_LOG/c.log" 2>&1 </dev/null
	shim delete -f "$ID"
	shim_clean
}

@test "run: signals and exit codes, detached, and killed" {
	shim_bundle "$B" sh -c 'trap "exit 21" USR1; echo up; while :; do sleep 0.1; done'
	shim_stub "$B/rootfs"
	shim_daemon
	shim run -b "$B" "$ID" >"$BST_ROOT/out" 2>&1 </dev/null &
	pid=$!
	bst_wait 10 grep -q up "$BST_ROOT/out"
	kill -USR1 "$(pgrep -P $pid -f bootseer || echo $pid)" 2>/dev/null || kill -USR1 $pid
	rc=0
	wait $pid || rc=$?
	[ $rc = 21 ]
	shim_clean
	shim run -d -b "$B" "$ID" >"$BST_ROOT/out" 2>&1 </dev/null
	[ "$(shim state "$ID" | jq -r .status)" = running ]
	shim delete -f "$ID"
	shim_clean
}

# old_kernel CALL...: run the bundle where these system calls are missing
old_kernel() {
	run "${bst_lib:?}/without" "$@" -- "$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" \
		run -b "$B" "$ID" 3>&- 4>&-
}

@test "kernels without fsopen: by mount(2), in a place of its own" {
	shim_bundle "$B" sh -c 'cat /etc/origin /var/data/file /etc/two; echo x >/x'
	overlay_bundle ,volatile
	mount -o remount,nosuid,nodev,noatime,bind "$B/rootfs"
	shim_daemon --erofs
	old_kernel fsopen
	echo "$output"
	[ "$status" = 0 ]
	[ "$output" = "three
from-image
two" ]
	[[ $(mount_of "$B/rootfs") == "rw,nosuid,nodev,noatime"*" overlay bootseer:$SHIM_DIGEST rw,"*volatile* ]]
	[ -e "$BST_ROOT/layers/upper/x" ]
	umount "$B/rootfs"
	shim_clean
	[ -z "$(find "$BST_RUN" -name '*-??????')" ]
}

@test "without openat2: the marker is found, and a symlink still not followed" {
	shim_bundle "$B" cat /etc/origin
	shim_stub "$B/rootfs"
	shim_daemon
	for how in openat2 openat2=EPERM; do
		old_kernel "$how"
		[ "$status" = 0 ]
		[ "${lines[-1]}" = from-image ] # runc has words of its own on openat2
	done
	mv "$B/rootfs/.bootseer" "$BST_ROOT/host"
	ln -s "$BST_ROOT/host" "$B/rootfs/.bootseer"
	old_kernel openat2
	[ "$status" = 1 ]
	[[ $output == *"not followed"* ]]
	rm "$B/rootfs/.bootseer"
	mkdir "$B/rootfs/.bootseer"
	ln -s "$BST_ROOT/host/image.json" "$B/rootfs/.bootseer/image.json"
	old_kernel openat2
	[ "$status" = 1 ]
	[[ $output == *"not followed"* ]]
	shim_clean
}

@test "many at once: no mount, state, descriptor or process is left" {
	local n pids
	shim_daemon --erofs
	mounts=$(grep -c " $BST_ROOT" /proc/self/mountinfo || :)
	for n in $(seq 24); do
		shim_bundle "$BST_ROOT/b$n" cat /etc/origin
		shim_edit "$BST_ROOT/b$n" '.linux.cgroupsPath += "-" + $n' --arg n "$n"
		shim_stub "$BST_ROOT/b$n/rootfs"
	done
	for _ in 1 2; do
		pids=()
		for n in $(seq 24); do
			shim run -b "$BST_ROOT/b$n" "$ID-$n" >"$BST_ROOT/out-$n" 2>&1 </dev/null &
			pids+=($!)
		done
		wait "${pids[@]}"
		for n in $(seq 24); do
			[ "$(cat "$BST_ROOT/out-$n")" = from-image ]
		done
	done
	shim_clean
	[ "$(grep -c " $BST_ROOT" /proc/self/mountinfo)" = "$mounts" ]
	[ "$(grep -c '^3 ' "$BST_ROOT/asked")" = 48 ]
	[ "$(grep -c '^4 ' "$BST_ROOT/asked")" = 48 ]
}
