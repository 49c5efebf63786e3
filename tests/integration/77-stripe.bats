#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 77-stripe.bats: striped files and how they are written, against a real HDFS.
# needs: hadoop
# timeout: 900
# test-timeout: 180
# shellcheck disable=SC2030,SC2031

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/hdfs.bash
load ../lib/hdfstool.bash
# shellcheck disable=SC2034 # hdfstool.bash reads them
hdfstool_options=(--repl 1) hdfstool_timeout=100

setup_file() {
	bst_setup
	hdfs_start
	head -c 41943977 /dev/urandom >"$HDFS_ROOT/file"
	head -c 41943977 /dev/urandom >"$HDFS_ROOT/other"
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
	dir=/$BATS_TEST_NUMBER
	url=$HDFS_URI$dir
	tool mkdirs "$url" 755
}

# What a test that failed has left must not fail the next one.
teardown() {
	local i
	for i in 1 2 3 4; do
		hdfs_datanode_resume "$i" || true
		hdfs_rate "$i" none || true
	done
	bst_teardown
}

# refused ERRNO ARG...
refused() {
	run tool "${@:2}"
	echo "$output"
	[ "$status" = 1 ] && [[ $output == *"$1":* ]]
}

# same NAME FILE
same() {
	tool ckload "$url/$1" | cmp - "$HDFS_ROOT/$2"
}

# hidden [DIR]: how many segments there are.
hidden() {
	tool ls "$url${1:+/$1}/.bootseer" | tr '\0' '\n' | grep -cE '^[0-9a-f]{32}$'
}

# collect: twice, since what is found first is marked only.
collect() {
	tool --lease 1ms --grace 1ms ckgc "$url" >"$BST_ROOT/gc"
	sleep 0.1
	tool --lease 1ms --grace 1ms ckgc "$url" >"$BST_ROOT/gc"
}

# saving NAME FILE [OPTION...]: in the background; then saved.
saving() {
	timeout 100 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --stats "${@:3}" \
		cksave "$url/$1" "$HDFS_ROOT/$2" 2>"$BST_ROOT/stats" &
	saving_pid=$!
	sleep 0.7
}

saved() {
	wait "$saving_pid" || {
		cat "$BST_ROOT/stats"
		return 1
	}
	cat "$BST_ROOT/stats"
}

slow_links() {
	local i
	for i in 1 2 3 4; do
		hdfs_rate "$i" 60mbit
	done
}

@test "sizes around a unit come back, striped and plain" {
	local layout n
	for layout in striped plain; do
		for n in 0 1 4095 4096 4097 1048575 1048576 1048577 8388607 8388608 8388609 9437184; do
			head -c "$n" "$HDFS_ROOT/file" >"$HDFS_ROOT/part"
			tool --unit 1M --layout "$layout" cksave "$url/$layout-$n" "$HDFS_ROOT/part"
			same "$layout-$n" part
			[ "$(tool ckstat "$url/$layout-$n" | cut -d' ' -f3)" = "$n" ]
		done
	done
	[ "$(tool ckls "$url" | grep -c .)" = 24 ]
	[ "$(tool ckls "$url" | awk '$1 ~ /-8388609$/ { print $2 }' | sort -u)" = 8388609 ]
	if tool ckls "$url" | grep bootseer; then false; fi
}

@test "a striped file lies on all DataNodes, and its sums are checked" {
	tool cksave "$url/f" "$HDFS_ROOT/file"
	same f file
	[ "$(stat_of sums)" = 11 ]
	local id k
	id=$(tool ls "$url/.bootseer" | tr '\0' '\n')
	[ "$(for k in 0 1 2 3 4 5 6 7; do hdfs_blocks "$dir/.bootseer/$id/0000$k-of-00008"; done | cut -d' ' -f3 | sort | uniq -c | awk '{ print $1 }' | sort | xargs)" = '2 3 3 3' ]
	# the same length, other bytes
	head -c 8388608 /dev/zero >"$BST_ROOT/zero"
	hdfs_put "$BST_ROOT/zero" "$dir/.bootseer/$id/00001-of-00008"
	refused EIO ckload "$url/f"
	tool delete "$url/.bootseer/$id" recursive
	refused ESTALE ckload "$url/f"
}

@test "hostile names are written, by both layouts" {
	local layout d n='a;b%41+c#d?e f&g=h,i'
	for layout in striped plain; do
		d=$url/$layout$n
		tool mkdirs "$d" 755
		tool --unit 1M --layout $layout cksave "$d/$n" "$HDFS_ROOT/file"
		tool ckload "$d/$n" | cmp - "$HDFS_ROOT/file"
		tool --http ckload "$d/$n" | cmp - "$HDFS_ROOT/file"
		tool --create ckedit "$d/$n small" w:0:some
		[ "$(tool ckload "$d/$n small")" = some ]
		[ "$(tool ckls "$d" | sort)" = "$n 41943977"$'\n'"$n small 4" ]
	done
}

@test "layout=plain makes an ordinary file, on all DataNodes" {
	tool --layout plain cksave "$url/f" "$HDFS_ROOT/file"
	hdfs_dfs -get "$dir/f" "$BST_ROOT/back"
	cmp "$BST_ROOT/back" "$HDFS_ROOT/file"
	[ "$(hdfs_blocks "$dir/f" | cut -d' ' -f3 | sort -u | grep -c .)" = 4 ]
	same f file
	[ "$(tool ls "$url/.bootseer" | tr -d '\0')" = '' ]
}

@test "random edits, syncs and truncations, against a model" {
	local i
	for i in 1 2 3; do
		"${bst_lib:?}/stripemodel.py" "$url/s$i" $i 6 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 --unit 1M
	done
	"${bst_lib:?}/stripemodel.py" "$url/p" 4 4 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 --unit 1M --layout plain
}

@test "small writes all over a file that exists, in less memory than they touch" {
	local u edits=()
	head -c 16777216 "$HDFS_ROOT/file" >"$BST_ROOT/model"
	tool --unit 1M cksave "$url/f" "$BST_ROOT/model"
	for u in 0 7 3 12 9 1 15 4 2 14 8 5 11 6 13 10 0 9 15; do
		edits+=("w:$((u * 1048576 + 262144)):unit $u")
		printf 'unit %d' "$u" | dd of="$BST_ROOT/model" bs=1 seek=$((u * 1048576 + 262144)) conv=notrunc status=none
	done
	tool --unit 1M --buffer 2M ckedit "$url/f" "${edits[@]}"
	tool ckload "$url/f" | cmp - "$BST_ROOT/model"
}

@test "a writer that dies at any step of the commit leaves nothing that is seen" {
	local step
	tool cksave "$url/old" "$HDFS_ROOT/other"
	for step in mkdir list concat check sums manifest mark rename; do
		run tool --die $step cksave "$url/new" "$HDFS_ROOT/file"
		[ "$status" = 9 ]
		refused ENOENT ckstat "$url/new"
		run tool --die $step cksave "$url/old" "$HDFS_ROOT/file"
		[ "$status" = 9 ]
		same old other
	done
	run tool --die trash cksave "$url/new" "$HDFS_ROOT/file"
	[ "$status" = 9 ]
	same new file
	[ "$(hidden)" -gt 10 ]
	collect
	[ "$(hidden)" = 2 ]
	same old other
	same new file
	tool ckrm "$url/old"
	tool ckrm "$url/new"
	collect
	[ "$(tool ckls "$url")" = '' ]
	[ "$(tool ls "$url" | tr -d '\0')" = '' ]
}

@test "a DataNode hangs in the middle of writing: one replica, and two" {
	local n
	slow_links
	for n in 1 2; do
		saving f$n file --repl $n
		hdfs_datanode_pause 2
		saved
		[ "$(stat_of again)" -gt 0 ]
		hdfs_datanode_resume 2
		same f$n file
	done
}

@test "a DataNode dies in the middle of writing: placed again, nothing is lost" {
	slow_links
	saving f file --repl 1
	hdfs_datanode_kill 3
	saved
	[ "$(stat_of again)" -gt 0 ]
	hdfs_datanode_start 3
	bst_wait 60 hdfs_live 4
	sleep 1
	same f file
}

@test "two writers of one path: one of them, whole" {
	local b
	for _ in 1 2 3; do
		tool cksave "$url/f" "$HDFS_ROOT/file" &
		b=$!
		timeout 60 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 cksave "$url/f" "$HDFS_ROOT/other" 2>"$BST_ROOT/err2" || true
		wait "$b" || true
		same f file || same f other
	done
	refused EEXIST --excl cksave "$url/f" "$HDFS_ROOT/file"
	# created by both at once
	"$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 --excl ckedit "$url/x" w:0:first p:1500 2>"$BST_ROOT/err" &
	b=$!
	sleep 0.6
	tool --excl ckedit "$url/x" w:0:second
	if wait "$b"; then false; fi
	grep EEXIST "$BST_ROOT/err"
	[ "$(tool ckload "$url/x")" = second ]
	# changed by one, replaced by the other
	"$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 ckedit "$url/f" w:0:first p:2500 2>"$BST_ROOT/err" &
	b=$!
	sleep 0.6
	tool cksave "$url/f" "$HDFS_ROOT/other"
	if wait "$b"; then false; fi
	grep ESTALE "$BST_ROOT/err"
	same f other
}

# pausing STEP ARG...: hdfstool in the background, at STEP now, where it stays for five seconds; then
# paused: its end, in status and output as after run.
pausing() {
	timeout 100 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 --pause "$@" \
		>"$BST_ROOT/paused" 2>&1 &
	pausing_pid=$!
	bst_wait 60 grep -q '^at ' "$BST_ROOT/paused"
}

paused() {
	status=0
	wait "$pausing_pid" || status=$?
	output=$(cat "$BST_ROOT/paused")
	echo "$status: $output"
}

@test "what was saved is saved, whatever happens right after it" {
	# another one's comes at once
	head -c 5000000 "$HDFS_ROOT/other" >"$HDFS_ROOT/part"
	pausing trash cksave "$url/f" "$HDFS_ROOT/file"
	tool cksave "$url/f" "$HDFS_ROOT/part"
	paused
	[ "$status" = 0 ]
	same f part
	# it is removed at once; what is there is read by who wrote it
	pausing trash --create ckedit "$url/g" w:0:first s r:0:5
	hdfs_rest DELETE "$dir/g" op=DELETE
	paused
	[ "$status" = 1 ]
	[[ $output == *ESTALE* ]]
	# a further change of what another one replaced is none
	pausing trash --create ckedit "$url/h" w:0:first s w:0:again s
	hdfs_rest DELETE "$dir/h" op=DELETE
	tool --create ckedit "$url/h" w:0:other
	paused
	[ "$status" = 1 ]
	[[ $output == *ESTALE* ]]
	[ "$(tool ckload "$url/h")" = other ]
}

@test "who changes a file leaves its mode, its group and its attributes" {
	local id f
	tool cksave "$url/f" "$HDFS_ROOT/file"
	tool --create ckedit "$url/small" w:0:some
	for f in f small; do
		tool ckchmod "$url/$f" 640
		hdfs_rest PUT "$dir/$f" 'op=SETOWNER&group=crew'
		tool setxattr "$url/$f" user.note 'v;%+'
		tool setxattr "$url/$f" user.bst.two two
		tool ckedit "$url/$f" a:more
		tool cksave "$url/$f" "$HDFS_ROOT/other"
		tool ckedit "$url/$f" t:5000000
		[[ $(tool stat "$url/$f") == 'file 640 root crew '* ]]
		[ "$(tool getxattr "$url/$f" user.note)" = 'v;%+' ]
		[ "$(tool getxattr "$url/$f" user.bst.two)" = two ]
	done
	# also what its bytes are in
	[ "$(tool getxattr "$url/f" user.bootseer.stripe)" = '1 5000000' ]
	for id in $(hdfs_rest GET "$dir/.bootseer" op=LISTSTATUS | jq -r '.FileStatuses.FileStatus[].pathSuffix'); do
		[ "$id" = trash ] || hdfs_rest GET "$dir/.bootseer/trash/$id" op=GETFILESTATUS ||
			hdfs_rest GET "$dir/.bootseer/$id" op=LISTSTATUS |
			jq -e 'all(.FileStatuses.FileStatus[]; .group == "crew" and .permission == "640")'
	done
}

@test "a reader keeps the generation that it opened" {
	tool cksave "$url/f" "$HDFS_ROOT/file"
	"$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" ckslow "$url/f" 2000000 150 >"$BST_ROOT/old" 2>"$BST_ROOT/err" &
	local reader=$!
	sleep 0.5
	tool cksave "$url/f" "$HDFS_ROOT/other"
	same f other
	wait $reader
	cmp "$BST_ROOT/old" "$HDFS_ROOT/file"
	# when it is gone: an error, and nothing of the other file
	"$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" ckslow "$url/f" 500000 300 >"$BST_ROOT/old" 2>"$BST_ROOT/err" &
	reader=$!
	sleep 0.5
	tool cksave "$url/f" "$HDFS_ROOT/file"
	collect
	wait $reader || grep -E 'ESTALE|EIO' "$BST_ROOT/err"
	cmp -n "$(stat -c %s "$BST_ROOT/old")" "$BST_ROOT/old" "$HDFS_ROOT/other"
}

@test "a full quota is told, and the old file stays" {
	tool cksave "$url/f" "$HDFS_ROOT/file"
	hdfs_quota "$dir" 50000000
	refused EDQUOT cksave "$url/f" "$HDFS_ROOT/other"
	same f file
	refused EDQUOT cksave "$url/new" "$HDFS_ROOT/other"
	refused ENOENT ckstat "$url/new"
	hdfs_quota "$dir" -1
	tool cksave "$url/f" "$HDFS_ROOT/other"
	same f other
}

@test "moving, removing, and directories that only seem empty" {
	tool mkdirs "$url/a" 755
	tool mkdirs "$url/b" 755
	tool cksave "$url/a/f" "$HDFS_ROOT/file"
	tool cksave "$url/b/g" "$HDFS_ROOT/other"
	refused ENOTEMPTY ckrmdir "$url/a"
	tool ckmv "$url/a/f" "$dir/b/g"
	same b/g file
	refused ENOENT ckstat "$url/a/f"
	tool ckrmdir "$url/a"
	refused ENOENT ckstat "$url/a"
	tool ckmv "$url/b" "$dir/c"
	same c/g file
	tool ckmv "$url/c/g" "$dir/c/h"
	same c/h file
	refused EEXIST ckmv "$url/c/h" "$dir/c/h2" no || tool ckmv "$url/c/h2" "$dir/c/h"
	hdfs_rest PUT "$dir/c" "op=RENAME&destination=$dir/d&renameoptions=NONE"
	same d/h file
	refused ENOENT ckstat "$url/d/.bootseer"
	refused EPERM --create ckedit "$url/d/.bootseer/x" w:0:x
	tool ckchmod "$url/d/h" 600
	[ "$(tool ckstat "$url/d/h" | cut -d' ' -f2)" = 600 ]
	tool ckrm "$url/d/h"
	tool ckrmdir "$url/d"
}

@test "a directory is not removed under what another client saves in it" {
	head -c 5000000 "$HDFS_ROOT/file" >"$HDFS_ROOT/part"
	tool mkdirs "$url/a" 755
	tool cksave "$url/a/f" "$HDFS_ROOT/other"
	tool ckrm "$url/a/f"
	pausing rmdir ckrmdir "$url/a"
	tool cksave "$url/a/f" "$HDFS_ROOT/part"
	paused
	[ "$status" = 1 ]
	[[ $output == *ENOTEMPTY:*"'$dir/a'"* ]]
	same a/f part
	# the same by a directory that takes its place
	tool ckrm "$url/a/f"
	tool mkdirs "$url/b" 755
	pausing rmdir ckmv "$url/b" "$dir/a"
	tool cksave "$url/a/f" "$HDFS_ROOT/part"
	paused
	[[ $output == *ENOTEMPTY:* ]]
	same a/f part
	tool ckrm "$url/a/f"
	tool ckmv "$url/b" "$dir/a"
	[ "$(tool ls "$url" | tr '\0' ' ')" = 'a ' ]
	# who removes it dies
	tool cksave "$url/a/g" "$HDFS_ROOT/other"
	tool ckrm "$url/a/g"
	pausing rmdir --die aside ckrmdir "$url/a"
	tool cksave "$url/a/f" "$HDFS_ROOT/part"
	paused
	[ "$status" = 9 ]
	refused ENOENT ckstat "$url/a"
	collect
	same a/f part
	tool ckrm "$url/a/f"
	run tool --die aside ckrmdir "$url/a"
	[ "$status" = 9 ]
	collect
	[ "$(tool ls "$url" | tr -d '\0')" = '' ]
}

@test "a marked file is there with its mark, or nothing is seen of it" {
	tool mkdirs "$url/a" 755
	tool ckmark "$url/a/l" user.bst target
	[[ $(tool stat "$url/a/l") == 'file 1777 root '*' 0 1 '* ]]
	[ "$(tool getxattr "$url/a/l" user.bst)" = target ]
	refused EEXIST ckmark "$url/a/l" user.bst other
	tool ckrm "$url/a/l"
	# who makes it dies: the directory is empty, as far as anybody sees
	run tool --die link ckmark "$url/a/l" user.bst target
	[ "$status" = 9 ]
	[ "$(tool ckls "$url/a")" = '' ]
	[ "$(hidden a)" = 1 ]
	tool ckrmdir "$url/a"
	# and garbage collection finds it
	run tool --die link ckmark "$url/l" user.bst target
	[ "$(hidden)" = 1 ]
	collect
	[ "$(tool ls "$url" | tr -d '\0')" = '' ]
}

@test "a move that stopped halfway can be repeated, also after garbage was collected" {
	tool mkdirs "$url/a" 755
	tool mkdirs "$url/b" 755
	tool cksave "$url/a/f" "$HDFS_ROOT/file"
	run tool --die move ckmv "$url/a/f" "$dir/b/f"
	[ "$status" = 9 ]
	refused ESTALE ckload "$url/a/f"
	url=$url/b collect
	url=$url/b collect
	tool ckmv "$url/a/f" "$dir/b/f"
	same b/f file
	# it is garbage as any other when it is not needed any more
	tool ckrm "$url/b/f"
	url=$url/b collect
	[ "$(tool ls "$url/b" | tr -d '\0')" = '' ]
}

@test "hostile manifests are refused" {
	local text
	for text in '"size":9223372036854775808,"unit":1048576' \
		'"size":1,"unit":1048576,"generation":1,"writer":"00000000000000000000000000000000","segments":[{"id":"../../../../../../../../../../..","len":1,"files":1,"sums":"00000000"}],"map":[[0,1,0,0]]' \
		'"size":1}'; do
		printf '%-4096s' "{\"bootseer\":\"stripe\",\"version\":1,$text}" >"$BST_ROOT/bad"
		hdfs_put "$BST_ROOT/bad" "$dir/bad"
		refused EIO ckload "$url/bad"
		tool ckstat "$url/bad"
		tool ckls "$url"
	done
	printf '%-4096s' '{"bootseer":"stripe","version":2}' >"$BST_ROOT/bad"
	hdfs_put "$BST_ROOT/bad" "$dir/bad"
	refused EPROTONOSUPPORT ckload "$url/bad"
	tool cksave "$url/bad" "$HDFS_ROOT/file"
	same bad file
	# a plain file that looks like one is none
	cp "$BST_ROOT/bad" "$HDFS_ROOT/part"
	tool cksave "$url/looks" "$HDFS_ROOT/part"
	same looks part
}
