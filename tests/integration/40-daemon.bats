#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 40-daemon.bats: supervisor, keeper and worker: served bytes are right, whoever dies.
# shellcheck disable=SC2016,SC2154
# timeout: 1500
# test-timeout: 400

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

readers=${BATS_TEST_DIRNAME:?}/../lib/readers.py

# tree_image MIB: $BST_ROOT/tree, its sums, and the layout $BST_ROOT/image made of it.
tree_image() {
	node_tree "$BST_ROOT/tree" "$1" 7
	python3 "$readers" sums "$BST_ROOT/tree" >"$BST_ROOT/sums"
	convert "rootfs:$BST_ROOT/tree" "oci:$BST_ROOT/image:latest" --level 1
}

# slow_registry RATE: a registry behind a link, with the converted tree in it.
slow_registry() {
	netns_create reg
	registry_start main --netns reg
	convert "rootfs:$BST_ROOT/tree" "docker://$REGISTRY/tree:latest" --level 1 --plain-http
	netns_rate reg "$1"
}

# kill_often N ROLE...: SIGKILL to one of the roles at random moments.
kill_often() {
	local i role pid
	local n=$1
	shift
	for ((i = 0; i < n; i++)); do
		role=${*:RANDOM%$#+1:1}
		sleep "0.$((RANDOM % 15 + 10))"
		pid=$(node_pid "$role" 2>/dev/null) || continue
		[ "${pid:-0}" -gt 1 ] || continue
		kill -KILL "$pid" 2>/dev/null || :
	done
}

@test "an image is served right, first lazily, complete without FUSE" {
	tree_image 64
	node_conf "fetch background = yes"
	node_start
	[ "$(node_attach one "$digest" "$BST_ROOT/m1" "oci:$BST_ROOT/image")" = lazy ]
	python3 "$readers" check "$BST_ROOT/m1" "$BST_ROOT/sums" 2
	bst_wait 20 eval '[ "$(node_status ".served.images[0].complete")" = true ]'
	[ "$(node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image")" = whole ]
	# natively: the worker may be stopped
	kill -STOP "$(node_pid worker)"
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 2
	kill -CONT "$(node_pid worker)"
	[ "$(node_status '.mounts[0].containers')" = 2 ]
	node_release one
	node_release two
	[ "$(node_status '.mounts[0].containers')" = 0 ]
}

@test "a complete image is read past the page cache, unless it lies there" {
	local blob
	tree_image 64
	node_conf "fetch background = yes"
	node_start
	[ "$(node_attach one "$digest" "$BST_ROOT/m1" "oci:$BST_ROOT/image")" = lazy ]
	bst_wait 20 eval '[ "$(node_status ".served.images[0].complete")" = true ]'
	# just fetched
	[ "$(node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image")" = whole ]
	[[ ",$(findmnt -no OPTIONS "$BST_ROOT/m2")," != *,directio,* ]]
	node_stop
	blob=$(echo "$BST_CACHE"/images/*/blob)
	dd if="$blob" iflag=nocache count=0 status=none
	node_start
	[ "$(node_attach three "$digest" "$BST_ROOT/m3" "oci:$BST_ROOT/image")" = whole ]
	[[ ",$(findmnt -no OPTIONS "$BST_ROOT/m3")," = *,directio,* ]]
	python3 "$readers" check "$BST_ROOT/m3" "$BST_ROOT/sums" 4
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 2
}

@test "one mount an image, shared by all that ask at once" {
	local i pids=()
	tree_image 16
	node_conf "fetch background = no"
	node_start
	for i in 1 2 3 4 5 6 7 8; do
		mkdir "$BST_ROOT/m$i"
		bst_defer umount -l "$BST_ROOT/m$i"
		"$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "c$i" "$digest" "$BST_ROOT/m$i" \
			"oci:$BST_ROOT/image" &
		pids+=($!)
	done
	wait "${pids[@]}"
	# one superblock: one device number
	[ "$(for i in 1 2 3 4 5 6 7 8; do stat -c %d "$BST_ROOT/m$i"; done | sort -u | wc -l)" = 1 ]
	python3 "$readers" check "$BST_ROOT/m5" "$BST_ROOT/sums" 4
	[ "$(node_status '.mounts[0].containers')" = 8 ]
}

@test "the worker is shut in, the supervisor keeps only what it needs" {
	local s
	node_conf
	node_start
	bst_wait 5 eval '[ "$(node_status .worker.ready)" = true ]'
	s=/proc/$(node_pid worker)/status
	[ "$(sed -n 's/^Uid:\t//p' "$s")" = "$(printf '65534\t65534\t65534\t65534')" ]
	[ "$(sed -n 's/^Groups:[\t ]*//p' "$s")" = "" ]
	grep -qx 'CapPrm:.0*' "$s"
	grep -qx 'CapEff:.0*' "$s"
	grep -qx 'CapBnd:.0*' "$s"
	grep -qx 'NoNewPrivs:.1' "$s"
	grep -qx 'Seccomp:.2' "$s"
	# chown dac_override dac_read_search kill setgid setuid setpcap sys_chroot sys_admin
	s=/proc/$(node_pid supervisor)/status
	[ "$((16#$(sed -n 's/^CapEff:\t//p' "$s")))" = $((1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 18 | 1 << 21)) ]
	# the socket is root's
	[ "$(stat -c %a:%u "$BST_RUN/bootseerd.sock")" = 600:0 ]
}

@test "kill -9 of the worker 200 times while 8 readers checksum what is being fetched" {
	tree_image 1024
	slow_registry 400mbit
	node_conf "fetch background = no" "fetch plain_http = $REGISTRY"
	node_start
	node_attach one "$digest" "$BST_ROOT/m" "docker://$REGISTRY/tree"
	kill_often 200 worker &
	killer=$!
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 8
	# readers that were quicker than the killer read once more, from the daemon again
	while kill -0 "$killer" 2>/dev/null; do
		echo 3 >/proc/sys/vm/drop_caches
		python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 8 2
	done
	[ "$(node_status .worker.restarts)" -ge 190 ]
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
}

@test "kill -9 of any one of supervisor, keeper and worker, at random" {
	tree_image 512
	slow_registry 400mbit
	node_conf "fetch background = no" "fetch plain_http = $REGISTRY"
	node_start
	node_attach one "$digest" "$BST_ROOT/m" "docker://$REGISTRY/tree"
	kill_often 60 supervisor keeper worker &
	killer=$!
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 8
	wait "$killer"
	echo 3 >/proc/sys/vm/drop_caches
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 8 2
	# a new container finds the mount that was kept
	node_attach two "$digest" "$BST_ROOT/m2" "docker://$REGISTRY/tree"
	[ "$(stat -c %d "$BST_ROOT/m")" = "$(stat -c %d "$BST_ROOT/m2")" ]
	[ "$(node_status '.mounts[0].containers')" = 2 ]
}

@test "all killed at once: new ones start, old reads fail and nothing hangs" {
	tree_image 64
	node_conf "fetch background = no"
	node_start
	node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	# shellcheck disable=SC2046
	kill -KILL $(node_pids)
	bst_wait 5 node_gone
	run timeout 20 cat "$(find "$BST_ROOT/m" -size +900k -type f | head -n 1)"
	[ "$status" -ne 124 ]
	[ "$status" -ne 0 ]
	node_start
	node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 4
}

@test "a new program on disk is what the next worker runs, under load" {
	tree_image 256
	slow_registry 400mbit
	mkdir "$BST_ROOT/bin"
	cp "$BOOTSEER_BUILDDIR/bootseerd" "$BST_ROOT/bin/bootseerd"
	node_conf "fetch background = no" "fetch plain_http = $REGISTRY"
	"$BST_ROOT/bin/bootseerd" --config "$BOOTSEER_CONFIG" --background
	node_attach one "$digest" "$BST_ROOT/m" "docker://$REGISTRY/tree"
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 8 &
	reading=$!
	sleep 1
	cp "$BOOTSEER_BUILDDIR/bootseerd" "$BST_ROOT/bin/new"
	printf 'new' >>"$BST_ROOT/bin/new"
	mv "$BST_ROOT/bin/new" "$BST_ROOT/bin/bootseerd"
	bootseerctl upgrade
	bst_wait 5 eval '[ "$(node_status .worker.restarts)" = 1 ] && [ "$(node_status .worker.ready)" = true ]'
	[ "$(stat -L -c %s "/proc/$(node_pid worker)/exe")" = "$(stat -c %s "$BST_ROOT/bin/bootseerd")" ]
	grep -q 'is replaced' "$BST_RUN/bootseerd.log"
	[ "$(grep -c 'worker died' "$BST_RUN/bootseerd.log" || :)" = 0 ]
	wait "$reading"
}

@test "power loss: stale bits and cut files never give a wrong byte" {
	local entry
	tree_image 64
	node_conf "fetch background = no"
	node_start
	node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 1
	node_detach "$BST_ROOT/m"
	node_stop
	entry=$(echo "$BST_CACHE"/images/*)
	# the bitmap says present, the bytes never reached the disk; the end is cut off
	python3 - "$entry" <<-'P'
		import os, sys
		blob = open(sys.argv[1] + "/blob", "r+b")
		size = os.fstat(blob.fileno()).st_size
		for at in range(1 << 20, size, 5 << 20):
		    blob.seek(at)
		    blob.write(bytes(300000))
		blob.truncate(size - (3 << 20))
	P
	node_start
	node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 4
	[ "$(node_status .served.cache.fetched_frames)" -gt 10 ]
}

@test "frames that another image has are copied, and the cache can be proven" {
	local old new
	tree_image 64
	old=$digest
	node_tree "$BST_ROOT/tree/more" 8 9
	python3 "$readers" sums "$BST_ROOT/tree" >"$BST_ROOT/sums2"
	convert "rootfs:$BST_ROOT/tree" "oci:$BST_ROOT/image:new" --level 1
	new=$digest
	node_conf "fetch background = yes"
	node_start
	node_attach one "$old" "$BST_ROOT/m1" "oci:$BST_ROOT/image"
	bst_wait 20 eval '[ "$(node_status ".served.images[0].complete")" = true ]'
	node_attach two "$new" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums2" 4
	bst_wait 20 eval '[ "$(node_status "[.served.images[].complete] | all")" = true ]'
	[ "$(node_status .served.cache.copied_frames)" -gt 400 ]
	[ "$(node_status .served.cache.fetched_bytes)" -lt $((76 << 20)) ]
	bootseerctl image verify --cache
	# one wrong byte on the disk is found, forgotten and fetched again
	printf x | dd of="$(ls -d "$BST_CACHE/images/${new#sha256:}/blob")" bs=1 seek=1000000 conv=notrunc status=none
	run bootseerctl image verify --cache --json
	[ "$status" = 1 ]
	[ "$(jq .wrong <<<"$output")" = 1 ]
	run bootseerctl image verify --cache --json
	[ "$status" = 0 ]
}

@test "a full cache disk is served from memory" {
	tree_image 64
	truncate -s 40M "$BST_ROOT/disk"
	mkfs.ext4 -q -O ^has_journal "$BST_ROOT/disk"
	mount -o loop "$BST_ROOT/disk" "$BST_CACHE"
	bst_defer umount -l "$BST_CACHE"
	node_conf "fetch background = no"
	node_start
	node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 4
	[ "$(node_status .served.cache.unstored_frames)" -gt 0 ]
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	node_detach "$BST_ROOT/m"
	node_stop
}

@test "a layout that is replaced by another directory is found again" {
	tree_image 8
	node_conf "fetch background = no"
	node_start
	node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	# the same image in a new directory, the old one empty: what is open goes on
	cp -r "$BST_ROOT/image" "$BST_ROOT/next"
	mv "$BST_ROOT/image" "$BST_ROOT/old"
	mv "$BST_ROOT/next" "$BST_ROOT/image"
	rm -r "$BST_ROOT/old/blobs/sha256"/*
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 4
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
	# another image in a third directory: a start finds it, and the daemon is the same
	rm -r "$BST_ROOT/old"
	mv "$BST_ROOT/image" "$BST_ROOT/old"
	echo more >"$BST_ROOT/tree/more"
	convert "rootfs:$BST_ROOT/tree" "oci:$BST_ROOT/image:latest" --level 1
	node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
	[ "$(cat "$BST_ROOT/m2/more")" = more ]
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 4
	[ "$(node_status .worker.restarts)" = 0 ]
}

@test "a directory that hangs holds up nobody but who needs it, and another source takes its place" {
	local blobs first
	tree_image 24
	cp -a "$BST_ROOT/image" "$BST_ROOT/hangs"
	node_tree "$BST_ROOT/other" 24 8
	python3 "$readers" sums "$BST_ROOT/other" >"$BST_ROOT/other.sums"
	first=$digest
	convert "rootfs:$BST_ROOT/other" "oci:$BST_ROOT/hangs:other" --level 1
	cp -a "$BST_ROOT/hangs" "$BST_ROOT/others"
	node_conf "fetch background = no" "fetch stall_timeout = 1s"
	node_start
	node_attach one "$first" "$BST_ROOT/m1" "oci:$BST_ROOT/hangs"
	node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/hangs" "oci:$BST_ROOT/others"
	(cd "$BST_ROOT/tree" && find . -type f -printf '%s %P\n') | sort -n | head -n 2 | cut -d' ' -f2 |
		grep -F -f - "$BST_ROOT/sums" >"$BST_ROOT/some.sums"
	python3 "$readers" check "$BST_ROOT/m1" "$BST_ROOT/some.sums" 1
	mapfile -t blobs < <(find "$BST_ROOT/hangs/blobs" -type f)
	bst_spawn hang "$BATS_TEST_DIRNAME/../lib/hangfiles.py" "${blobs[@]}"
	bst_wait 5 grep -q ready "$BST_LOG/hang.log"
	# more readers that hang than threads that answer
	bst_spawn readers python3 "$readers" check "$BST_ROOT/m1" "$BST_ROOT/sums" 8
	sleep 3
	echo 3 >/proc/sys/vm/drop_caches
	timeout 20 python3 "$readers" check "$BST_ROOT/m1" "$BST_ROOT/some.sums" 2
	timeout 60 python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/other.sums" 2
	bst_alive "$(bst_pid readers)"
	grep -q 'the store hangs' "$BST_RUN/bootseerd.log"
	# those who wait get their bytes when it is back
	bst_stop hang KILL
	bst_wait 30 bst_dead "$(bst_pid readers)"
	[ ! -s "$BST_LOG/readers.log" ]
	python3 "$readers" check "$BST_ROOT/m1" "$BST_ROOT/sums" 1
}

@test "a source that policy does not allow is refused, and named" {
	tree_image 1
	node_conf
	sed -i "s,^allow_dirs.*,allow_dirs = /nowhere," "$BOOTSEER_CONFIG"
	node_start
	run node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	[ "$status" = 1 ]
	[[ $output == *"$BST_ROOT/image"* ]]
	[[ $output == *allow_dirs* ]]
	# done as the error says, it counts with the next worker
	sed -i "s,^allow_dirs.*,allow_dirs = $BST_ROOT," "$BOOTSEER_CONFIG"
	bootseerctl upgrade
	node_attach one "$digest" "$BST_ROOT/m" "oci:$BST_ROOT/image"
	# a file with an error takes the worker from nobody
	worker=$(node_pid worker)
	sed -i "s,^allow_dirs.*,alow_dirs = $BST_ROOT," "$BOOTSEER_CONFIG"
	sed 's,^alow_dirs,allow_dirs,' "$BOOTSEER_CONFIG" >"$BST_ROOT/right.conf"
	run bootseerctl upgrade -c "$BST_ROOT/right.conf"
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"stays as it is"*alow_dirs* ]]
	mv "$BST_ROOT/right.conf" "$BOOTSEER_CONFIG"
	[ "$(node_pid worker)" = "$worker" ]
	python3 "$readers" check "$BST_ROOT/m" "$BST_ROOT/sums" 1
	node_detach "$BST_ROOT/m"
}

@test "status, timeline and doctor: by others than root, and by the start of an id" {
	local id=0123456789ab0123456789ab c
	node_conf
	bootseerd --config "$BOOTSEER_CONFIG" --background
	chmod 755 "$BST_ROOT"
	for c in status status "timeline x"; do
		# shellcheck disable=SC2086
		run setpriv --reuid 65534 --regid 65534 --clear-groups bootseerctl $c
		echo "$output"
		[ "$status" = 1 ]
		[[ $output == *"only root may"* ]]
		chmod 700 "$BST_RUN"
	done
	run setpriv --reuid 65534 --regid 65534 --clear-groups bootseerctl doctor
	[ "$status" = 1 ]
	[[ $output == *"BAD   root"*"run it as root"* ]]
	[[ $output != *EROFS* ]]
	mkdir -p "$BST_RUN/timeline"
	echo '{"event":"mark","name":"first-read","at_ns":5}' >"$BST_RUN/timeline/$id.jsonl"
	bootseerctl timeline "${id:0:12}" | grep -q "^$id "
	run bootseerctl timeline "${id:0:11}"
	[ "$status" = 1 ]
	[[ $output == *"first 12 digits"* ]]
	cp "$BST_RUN/timeline/$id.jsonl" "$BST_RUN/timeline/${id}1.jsonl"
	bootseerctl timeline "$id" >/dev/null
	run bootseerctl timeline "${id:0:12}"
	[ "$status" = 1 ]
}

@test "a stopped process of the daemon hangs nobody but who needs it" {
	local keeper pid
	tree_image 16
	node_conf "fetch background = no" "fetch start_wait = 3s"
	node_start
	node_attach one "$digest" "$BST_ROOT/m1" "oci:$BST_ROOT/image"
	# a keeper that reads nothing: what is kept is not, until it is replaced
	keeper=$(node_pid keeper)
	kill -STOP "$keeper"
	node_attach two "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
	kill -KILL "$keeper"
	bst_wait 5 eval '[ "$(node_pid keeper)" != "$keeper" ]'
	# a supervisor that answers nothing: readers go on
	pid=$(node_pid supervisor)
	kill -STOP "$pid"
	python3 "$readers" check "$BST_ROOT/m1" "$BST_ROOT/sums" 4
	kill -CONT "$pid"
	# a worker that serves nothing: status and release do not wait for it
	pid=$(node_pid worker)
	kill -STOP "$pid"
	[ "$(node_status .worker.pid)" = "$pid" ]
	node_release two
	kill -CONT "$pid"
	echo 3 >/proc/sys/vm/drop_caches
	python3 "$readers" check "$BST_ROOT/m2" "$BST_ROOT/sums" 4
}

# held N: the containers that the first image has.
held() {
	[ "$(node_status '.mounts[0].containers')" = "$1" ]
}

@test "the image of a container that was deleted while nobody listened is given back" {
	tree_image 1
	node_conf
	node_start
	node_attach gone "$digest" "$BST_ROOT/m1" "oci:$BST_ROOT/image"
	node_attach alive "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
	node_attach young "$digest" "$BST_ROOT/m3" "oci:$BST_ROOT/image"
	held 3
	# alive has a state file, as the shim writes it; of the others one is new
	mkdir "$BST_RUN/state"
	echo '{}' >"$BST_RUN/state/alive.json"
	touch -d '1 hour ago' "$BST_RUN/leases/gone" "$BST_RUN/leases/alive"
	# whether the keeper starts the next supervisor, or it is a new start
	kill -KILL "$(node_pid supervisor)"
	bst_wait 5 held 2
	[ "$(cd "$BST_RUN/leases" && echo *)" = "alive young" ]
	node_detach "$BST_ROOT/m2"
	rm "$BST_RUN/state/alive.json"
	touch -d '1 hour ago' "$BST_RUN/leases/alive"
	node_stop
	node_start
	bst_wait 5 held 1
	[ "$(cd "$BST_RUN/leases" && echo *)" = young ]
	# a clock that was set back makes no lease old
	touch -d '1 hour' "$BST_RUN/leases/young"
	kill -KILL "$(node_pid supervisor)"
	bst_wait 5 held 1
	sleep 0.5
	held 1
	node_release young
	held 0
}

# ended FILE...: all of them are there.
ended() {
	local file
	for file; do
		[ -e "$file" ] || return 1
	done
}

# ask_late NAME DIR: what bst-acquire says about an image of a source that never answers.
ask_late() {
	"$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "$1" "sha256:$(printf %064d 1)" "$2" \
		"docker://127.0.0.1:$port/tree" >"$BST_ROOT/$1.out" 2>&1 || :
	mv "$BST_ROOT/$1.out" "$BST_ROOT/$1"
}

@test "an image that takes worker after worker with it is given up, mounted or unpacked" {
	local i port pid kills
	port=$(bst_free_port)
	bst_spawn silent python3 -c 'import socket, sys, time
s = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=100)
time.sleep(1000)' "$port"
	node_conf "fetch plain_http = 127.0.0.1:$port" "fetch connect_timeout = 1m" "fetch stall_timeout = 1m"
	node_start
	ask_late mount "$BST_ROOT/m" &
	ask_late unpack - &
	bst_wait 5 eval '[ "$(node_status .worker.ready)" = true ]'
	kills=0
	for ((i = 0; i < 400; i++)); do
		! ended "$BST_ROOT/mount" "$BST_ROOT/unpack" || break
		if [ "$(node_status .worker.ready)" = true ] && pid=$(node_pid worker) && [ "$pid" -gt 1 ]; then
			kill -KILL "$pid"
			kills=$((kills + 1))
			bst_wait 10 eval '[ "$(node_status .worker.restarts)" = '"$kills"' ]'
		fi
	done
	echo "kills: $kills"
	[ "$kills" -ge 18 ]
	[ "$kills" -le 24 ]
	grep 'the worker died again and again' "$BST_ROOT/mount"
	grep 'the worker died again and again' "$BST_ROOT/unpack"
	# all others go on
	bst_wait 10 eval '[ "$(node_status .worker.ready)" = true ]'
	tree_image 1
	node_attach other "$digest" "$BST_ROOT/m2" "oci:$BST_ROOT/image"
}

# losers_gone PID...: all but one of them ended.
losers_gone() {
	local pid n=0
	for pid; do
		! bst_alive "$pid" || n=$((n + 1))
	done
	[ "$n" = 1 ]
}

@test "of daemons that are started at once one serves, the others say so and end" {
	local i k pids winner
	node_conf
	for i in $(seq 30); do
		pids=()
		for k in 1 2 3 4; do
			bootseerd --config "$BOOTSEER_CONFIG" 2>"$BST_LOG/$k" >/dev/null 3>&- 4>&- &
			pids+=($!)
		done
		bst_wait 20 losers_gone "${pids[@]}"
		winner=$(node_pid supervisor)
		for k in 1 2 3 4; do
			[ "${pids[k - 1]}" != "$winner" ] || continue
			run wait "${pids[k - 1]}"
			[ "$status" = 1 ]
			grep "another bootseerd listens at '$BST_RUN/bootseerd.sock'.*run_dir" "$BST_LOG/$k"
		done
		# a loser took nothing of the winner's away
		[ "$(node_pid keeper)" -gt 1 ]
		kill -TERM "$winner"
		wait "$winner"
		bst_wait 5 node_gone
	done
}

@test "whoever has a daemon started finds the one that was started meanwhile" {
	convert "oci:$(image_busybox):latest" "oci:$BST_ROOT/image:latest"
	printf '#!/bin/sh\nbootseerd --config %s --background\nexit 1\n' "$BST_ROOT/bootseer.conf" >"$BST_ROOT/late"
	chmod 755 "$BST_ROOT/late"
	node_conf
	sed -i "s,^daemon = .*,daemon = $BST_ROOT/late," "$BOOTSEER_CONFIG"
	bootseerctl bundle "oci:$BST_ROOT/image:latest" "$BST_ROOT/bundle"
	bootseer create -b "$BST_ROOT/bundle" "$BST_ID" </dev/null >"$BST_LOG/create" 2>&1 3>&- 4>&-
	bootseer delete -f "$BST_ID"
}

# soft ROLE: its limit of open files.
soft() {
	awk '/^Max open files/ { print $4 }' "/proc/$(node_pid "$1")/limits"
}

# ticks PID: the processor time that it has used.
ticks() {
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

@test "our processes may open many files, a credential helper gets the limit that we got" {
	registry_start main --htpasswd user:secret
	skopeo --insecure-policy copy -q --dest-tls-verify=false --dest-creds user:secret \
		"oci:$(image_busybox):latest" "docker://$REGISTRY/base:one"
	mkdir "$BST_ROOT/bin"
	cat >"$BST_ROOT/bin/docker-credential-bst" <<-E
		#!/bin/sh
		echo "\$(ulimit -Sn) \$(ulimit -Hn)" >>$BST_ROOT/limits
		echo '{"Username":"user","Secret":"secret"}'
	E
	chmod 755 "$BST_ROOT/bin/docker-credential-bst"
	printf '{"credHelpers":{"%s":"bst"}}' "$REGISTRY" >"$BST_ROOT/docker.json"
	node_conf "fetch plain_http = $REGISTRY" "auth docker_config = $BST_ROOT/docker.json"
	(
		ulimit -Sn 300
		ulimit -Hn 3000
		PATH=$BST_ROOT/bin:$PATH node_start
	)
	bst_wait 5 eval '[ "$(node_status .worker.ready)" = true ]'
	kill -KILL "$(node_pid supervisor)"
	bst_wait 5 eval '[ "$(node_status .worker.ready)" = true ]'
	for role in supervisor keeper worker; do
		[ "$(soft $role)" = 3000 ]
	done
	run "$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" one "sha256:$(printf %064d 1)" \
		"$BST_ROOT" "docker://$REGISTRY/base"
	echo "$output"
	[ "$(sort -u "$BST_ROOT/limits")" = "300 3000" ]
}

@test "without descriptors a connection is refused in words, and the processor is left alone" {
	local pid before
	node_conf
	node_start
	bst_wait 5 eval '[ "$(node_status .worker.ready)" = true ]'
	pid=$(node_pid supervisor)
	prlimit --pid "$pid" --nofile=40:40
	python3 - "$BST_RUN/bootseerd.sock" "$BST_ROOT/hold" <<-'P' &
		import os, socket, sys, time
		held = []
		for _ in range(60):
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
		    s.connect(sys.argv[1])
		    held.append(s)
		open(sys.argv[2], "w").close()
		while os.path.exists(sys.argv[2]):
		    time.sleep(0.05)
	P
	holder=$!
	bst_wait 10 test -e "$BST_ROOT/hold"
	run bootseerctl status
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == *"too many files open"*LimitNOFILE* ]]
	before=$(ticks "$pid")
	sleep 2
	# hundredths of a second
	[ $(($(ticks "$pid") - before)) -lt 20 ]
	[ "$(grep -c 'too many open files' "$BST_RUN/bootseerd.log")" -le 10 ]
	rm "$BST_ROOT/hold"
	wait "$holder"
	bst_wait 5 bootseerctl status
	[ "$(node_pid supervisor)" = "$pid" ]
}
