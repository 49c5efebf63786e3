#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 76-hdfs.bats: the HDFS client (src/hdfs) against a real HDFS with two NameNodes.
# needs: hadoop
# timeout: 600
# test-timeout: 120
# shellcheck disable=SC2030,SC2031

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/hdfs.bash
load ../lib/hdfstool.bash

setup_file() {
	bst_setup
	hdfs_start --ha --tokens
	head -c 41000003 /dev/urandom >"$HDFS_ROOT/file"
	hdfs_put "$HDFS_ROOT/file" /three 'replication=3&blocksize=4194304'
	hdfs_put "$HDFS_ROOT/file" /one 'replication=1&blocksize=4194304'
	: >"$HDFS_ROOT/empty"
	hdfs_put "$HDFS_ROOT/empty" /empty
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
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

# same PATH [OPTION...]
same() {
	tool "${@:2}" read "$HDFS_URI$1" | cmp - "$HDFS_ROOT/file"
}

# slow PATH [OPTION...]: read in small pieces, in the background; then slow_end MS: it got all right, and
# none of the pieces took longer.
slow() {
	timeout 60 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --stats "${@:2}" \
		slow "$HDFS_URI$1" 262144 20 >"$BST_ROOT/slow" 2>"$BST_ROOT/stats" &
	slow_pid=$!
	sleep 0.5
}

slow_end() {
	local worst
	wait "$slow_pid"
	cmp "$BST_ROOT/slow" "$HDFS_ROOT/file"
	worst=$(sed -n 's/^worst \([0-9]*\) ms/\1/p' "$BST_ROOT/stats")
	echo "worst: $worst ms"
	[ "$worst" -lt "$1" ]
}

# part OFF LEN: of the file.
part() {
	tail -c +$(($1 + 1)) "$HDFS_ROOT/file" | head -c "$2"
}

@test "whole files, of three replicas and of one, by both ways" {
	same /three
	[ "$(stat_of bytes)" = 41000003 ]
	[ "$(stat_of http)" = 0 ]
	[ "$(stat_of hedges)" = 0 ]
	same /one
	same /three --http
	[ "$(stat_of http)" = 41000003 ]
	[ "$(stat_of connections)" = 0 ]
	[ "$(tool read "$HDFS_URI/empty" | wc -c)" = 0 ]
	[ "$(tool --http read "$HDFS_URI/empty" | wc -c)" = 0 ]
}

@test "ranges: at the borders of chunks and of blocks, at the end and behind it" {
	local r off len
	for r in '0 1' '511 2' '512 512' '4194303 2' '4194304 1' '4194303 4194306' '41000002 1' '41000002 9' \
		'41000003 5' '99999999 5' '12582911 8388611' '7 0'; do
		read -r off len <<<"$r"
		tool read "$HDFS_URI/three" "$off" "$len" | cmp - <(part "$off" "$len")
		[ "$len" -gt 100000 ] || tool --http read "$HDFS_URI/three" "$off" "$len" | cmp - <(part "$off" "$len")
	done
	tool read "$HDFS_URI/three" 0 100 4194300 10 100 100 | cmp - <(part 0 100; part 4194300 10; part 100 100)
}

@test "connections to DataNodes are used again" {
	tool --piece 256K --node 512K read "$HDFS_URI/three" >/dev/null
	[ "$(stat_of reused)" -gt 100 ]
	[ "$(stat_of connections)" -le 24 ]
}

@test "64 threads read one file, while DataNodes hang and die" {
	tool stress "$HDFS_URI/three" "$HDFS_ROOT/file" 64 4
	tool stress "$HDFS_URI/three" "$HDFS_ROOT/file" 16 24 &
	local reads=$!
	sleep 0.3
	hdfs_datanode_pause 3
	hdfs_datanode_kill 2
	wait "$reads"
	hdfs_datanode_resume 3
	hdfs_datanode_start 2
	bst_wait 30 hdfs_live 4
	tool --http stress "$HDFS_URI/three" "$HDFS_ROOT/file" 16 4
}

@test "a DataNode is killed in mid-read" {
	slow /three
	hdfs_datanode_kill 2
	slow_end 5000
	hdfs_datanode_start 2
	bst_wait 30 hdfs_live 4
}

@test "a DataNode hangs in mid-read" {
	local i
	slow /three
	hdfs_datanode_pause 3
	slow_end 5000
	[ "$(stat_of hedges)" -gt 0 ]
	# over HTTP too
	tool --http slow "$HDFS_URI/three" 1048576 1 | cmp - "$HDFS_ROOT/file"
	cat "$BST_ROOT/stats"
	[ "$(sed -n 's/^worst \([0-9]*\) ms/\1/p' "$BST_ROOT/stats")" -lt 5000 ]
	hdfs_datanode_resume 3
	bst_wait 30 hdfs_live 4
}

@test "a DataNode that only drips keeps nobody waiting for long" {
	hdfs_rate 2 400kbit
	slow /three
	tool --deadline 25s stress "$HDFS_URI/three" "$HDFS_ROOT/file" 16 6
	slow_end 15000
	hdfs_rate 2 none
}

@test "two of four DataNodes hang: three replicas are enough" {
	hdfs_datanode_pause 1
	hdfs_datanode_pause 4
	same /three
	hdfs_datanode_resume 1
	hdfs_datanode_resume 4
	bst_wait 30 hdfs_live 4
}

@test "one replica, and its DataNode hangs: an error in time, and right again afterwards" {
	hdfs_put_at 1 "$HDFS_ROOT/file" /only
	hdfs_datanode_pause 1
	run tool --deadline 4s read "$HDFS_URI/only" 0 1000
	hdfs_datanode_resume 1
	[ "$status" = 1 ]
	[[ $output == ETIMEDOUT:* ]]
	bst_wait 30 hdfs_live 4
	same /only
}

# spoil N PATH OFF: DataNode N's replica of its first block has wrong bytes there.
spoil() {
	printf 'not this' | dd of="$(hdfs_block_file "$1" "$(hdfs_blocks "$2" | head -1 | cut -d' ' -f1)")" \
		bs=1 seek="$3" conv=notrunc status=none
}

@test "a corrupt replica: the bytes of another; all corrupt: EIO, and never a wrong byte" {
	hdfs_put_at 1 "$HDFS_ROOT/file" /bad 'replication=2'
	bst_wait 10 test "$(hdfs_blocks /bad | wc -w)" = 4
	spoil 1 /bad 20000000
	# one piece after the other: whichever is chosen first, one of them meets it
	tool --piece 1M slow "$HDFS_URI/bad" 262144 0 | cmp - "$HDFS_ROOT/file"
	hdfs_put_at 2 "$HDFS_ROOT/file" /worse
	spoil 2 /worse 20000000
	run tool read "$HDFS_URI/worse" 20000000 8
	[ "$status" = 1 ]
	[[ $output == EIO:*"no replica has right bytes" ]]
	[ "$(stat_of bad)" = 1 ]
	# what is around it can be read
	tool read "$HDFS_URI/worse" 0 19000000 | cmp - <(part 0 19000000)
	run tool --deadline 5s --http read "$HDFS_URI/worse" 19999000 4000
	[ "$status" = 1 ]
}

@test "NameNodes: failover in mid-read and by death, the standby first" {
	slow /one
	hdfs_failover 2
	slow_end 5000
	tool stat "$HDFS_URI/one"
	[ "$(stat_of failovers)" = 1 ]
	tool mkdirs "$HDFS_URI/failover" 755
	hdfs_namenode_kill 2
	hdfs_failover 1
	tool stat "$HDFS_URI/failover"
	same /three
	hdfs_namenode_start 2
	bst_wait 30 hdfs_namenode_answers 2
}

# saving NAME: in the background, slowly; then saved NAME: all of it is there.
saving() {
	timeout 100 "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" --repl 1 --unit 1M \
		cksave "$HDFS_URI/save/$1" "$HDFS_ROOT/file" 2>"$BST_ROOT/saving" &
	saving_pid=$!
	bst_wait 20 hdfs_rest GET /save/.bootseer op=GETFILESTATUS
}

saved() {
	wait "$saving_pid" || {
		cat "$BST_ROOT/saving"
		return 1
	}
	tool ckload "$HDFS_URI/save/$1" | cmp - "$HDFS_ROOT/file"
	tool ckrm "$HDFS_URI/save/$1"
	hdfs_rest DELETE /save/.bootseer 'op=DELETE&recursive=true'
}

@test "a file is saved during a failover, in safe mode, and while its NameNode starts again" {
	local i
	tool mkdirs "$HDFS_URI/save" 755
	for i in 1 2 3 4; do hdfs_rate $i 25mbit; done
	saving f
	hdfs_failover 2
	saved f
	saving g
	hdfs_safemode on
	sleep 1
	hdfs_safemode off
	saved g
	saving h
	hdfs_namenode_kill 2
	hdfs_failover 1
	saved h
	for i in 1 2 3 4; do hdfs_rate $i none; done
	hdfs_namenode_start 2
	bst_wait 30 hdfs_namenode_answers 2
}

@test "no NameNode at all: an error in time; it comes back: it is waited for" {
	hdfs_namenode_kill 1
	hdfs_namenode_kill 2
	run tool --deadline 3s stat "$HDFS_URI/one"
	[ "$status" = 1 ]
	[[ $output == EHOSTUNREACH:* ]]
	tool --deadline 50s stat "$HDFS_URI/one" &
	local waits=$!
	hdfs_namenode_start 1
	hdfs_namenode_start 2
	bst_wait 30 hdfs_namenode_answers 1
	bst_wait 30 hdfs_namenode_answers 2
	hdfs_failover 1
	wait "$waits"
	bst_wait 30 hdfs_live 4
	bst_wait 30 hdfs_ready
}

@test "a NameNode that hangs is given up for the other" {
	hdfs_failover 1
	hdfs_failover 2
	kill -STOP "$(hdfs_namenode_pid 1)"
	run tool stat "$HDFS_URI/one"
	kill -CONT "$(hdfs_namenode_pid 1)"
	[ "$status" = 0 ]
	hdfs_failover 1
}

@test "safe mode: reads go on, changes are waited for, and refused in time" {
	hdfs_safemode on
	same /three
	run tool --deadline 2s mkdirs "$HDFS_URI/safe" 755
	[ "$status" = 1 ]
	[[ $output == EROFS:*"safe mode"* ]]
	tool --deadline 30s mkdirs "$HDFS_URI/safe" 755 &
	local waits=$!
	hdfs_safemode off
	wait "$waits"
	tool stat "$HDFS_URI/safe"
}

@test "block tokens are sent; a token file is for its service only, and a broken one is an error" {
	[ "$(hdfs_rest GET /three op=GET_BLOCK_LOCATIONS |
		jq -r '.LocatedBlocks.locatedBlocks[0].blockToken.urlString | length')" -gt 50 ]
	same /three
	same /three --http
	tool --user root tokenfile "$HDFS_URI/" root ha-hdfs:other >"$BST_ROOT/token"
	tool --token-file "$BST_ROOT/token" mkdirs "$HDFS_URI/by-name" 755
	echo rubbish >"$BST_ROOT/token"
	refused EINVAL --token-file "$BST_ROOT/token" stat "$HDFS_URI/by-token"
	[[ $output == *"no Hadoop token file" ]]
	HADOOP_TOKEN_FILE_LOCATION=$BST_ROOT/token refused EINVAL stat "$HDFS_URI/by-token"
	refused ENOENT --token-file "$BST_ROOT/nix" stat "$HDFS_URI/three"
	[[ $output == *"token file '$BST_ROOT/nix'"* ]]
}

@test "names: hostile ones are made, listed, read, renamed, deleted" {
	local n names=('a;b' 'a%41%' 'a+b' 'a#b' 'a?b=c&d' ' a b ' $'a\nb' 'ä€😀' "a'\"\\|<>*~" '...' '.bootseer' 'a,b')
	names+=("$(printf 'x%.0s' {1..255})" "$(printf 'ä%.0s' {1..127})")
	tool mkdirs "$HDFS_URI/names" 755
	for n in "${names[@]}"; do
		tool mkdirs "$HDFS_URI/names/$n" 755
		[[ $(tool stat "$HDFS_URI/names/$n") == "directory 755 "* ]]
		hdfs_put "$HDFS_ROOT/empty" /names/plain
		tool rename "$HDFS_URI/names/plain" "/names/$n/f"
		[[ $(tool stat "$HDFS_URI/names/$n/f") == "file "* ]]
	done
	printf '%s\0' "${names[@]}" | LC_ALL=C sort -z >"$BST_ROOT/want"
	tool ls "$HDFS_URI/names" | LC_ALL=C sort -z | cmp - "$BST_ROOT/want"
	for n in "${names[@]}"; do
		tool delete "$HDFS_URI/names/$n" recursive
	done
	[ "$(tool ls "$HDFS_URI/names" | wc -c)" = 0 ]
	run tool stat "$HDFS_URI/names/a:b"
	[[ $output == EINVAL:* ]]
	run tool stat "$HDFS_URI/names/$(printf 'x%.0s' {1..256})"
	[[ $output == ENAMETOOLONG:* ]]
}

@test "a file of a hostile name is read by both ways" {
	tool mkdirs "$HDFS_URI/hostile" 755
	hdfs_put "$HDFS_ROOT/file" /hostile/plain
	local n='a;b%41+c#d?e f&g=h'
	tool rename "$HDFS_URI/hostile/plain" "/hostile/$n"
	same "/hostile/$n"
	same "/hostile/$n" --http
}

@test "changes, and what is wrong with them" {
	tool mkdirs "$HDFS_URI/c/d" 750
	hdfs_put "$HDFS_ROOT/empty" /c/f
	tool chmod "$HDFS_URI/c/f" 1600
	tool chown "$HDFS_URI/c/f" alice staff
	tool times "$HDFS_URI/c/f" 1000 2000
	tool setrep "$HDFS_URI/c/f" 2
	[ "$(tool stat "$HDFS_URI/c/f")" = 'file 1600 alice staff 0 2 1000' ]
	tool setxattr "$HDFS_URI/c/f" user.a 'v;%+'
	[ "$(tool getxattr "$HDFS_URI/c/f" user.a)" = 'v;%+' ]
	[ "$(tool lsxattr "$HDFS_URI/c/f" | tr -d '\0')" = user.a ]
	tool rmxattr "$HDFS_URI/c/f" user.a
	refused ENODATA getxattr "$HDFS_URI/c/f" user.a
	refused ENOENT stat "$HDFS_URI/c/nix"
	refused ENOENT rename "$HDFS_URI/c/nix" /c/g
	refused ENOENT delete "$HDFS_URI/c/nix"
	refused ENOENT rename "$HDFS_URI/c/f" /c/nix/g
	refused ENOTDIR mkdirs "$HDFS_URI/c/f/g" 755
	refused ENOTEMPTY delete "$HDFS_URI/c"
	refused EISDIR rename "$HDFS_URI/c/f" /c/d overwrite
	refused EISDIR read "$HDFS_URI/c"
	hdfs_put "$HDFS_ROOT/file" /c/g
	refused EEXIST rename "$HDFS_URI/c/f" /c/g
	tool rename "$HDFS_URI/c/g" /c/f overwrite
	same /c/f
	[ "$(tool truncate "$HDFS_URI/c/f" 512)" = recovering ]
	tool delete "$HDFS_URI/c" recursive
}

@test "files are put together without copying" {
	local p
	tool mkdirs "$HDFS_URI/concat" 755
	for p in 0 1 2; do
		part $((p * 8388608)) 8388608 >"$BST_ROOT/part"
		hdfs_put "$BST_ROOT/part" "/concat/p$p" 'replication=3&blocksize=4194304'
	done
	tool concat "$HDFS_URI/concat/p0" /concat/p1 /concat/p2
	tool read "$HDFS_URI/concat/p0" | cmp - <(part 0 25165824)
	refused ENOENT stat "$HDFS_URI/concat/p1"
}

@test "a file that is replaced while it is read: the old bytes or ESTALE, by both ways" {
	local rc way
	for way in '' --http; do
		rc=0
		hdfs_put "$HDFS_ROOT/file" /replaced 'replication=1&blocksize=4194304'
		head -c 41000003 /dev/zero >"$BST_ROOT/zeros"
		hdfs_put "$BST_ROOT/zeros" /new
		slow /replaced $way
		"$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" rename "$HDFS_URI/new" /replaced overwrite
		wait "$slow_pid" || rc=$?
		[ "$(stat -c %s "$BST_ROOT/slow")" -gt 0 ]
		cmp "$BST_ROOT/slow" <(head -c "$(stat -c %s "$BST_ROOT/slow")" "$HDFS_ROOT/file")
		[ "$rc" = 0 ] || grep '^ESTALE:' "$BST_ROOT/stats"
	done
}

@test "a file that is renamed while it is read is read to its end, by both ways" {
	local way
	hdfs_put "$HDFS_ROOT/file" /moves 'replication=1&blocksize=1048576'
	for way in '' --http; do
		slow /moves $way
		hdfs_rest PUT /moves "op=RENAME&destination=/moved"
		hdfs_rest PUT /moves op=MKDIRS
		hdfs_rest PUT /moved "op=RENAME&destination=/moves/f"
		slow_end 10000
		tool rename "$HDFS_URI/moves/f" /moved
		tool delete "$HDFS_URI/moves"
		tool rename "$HDFS_URI/moved" /moves
	done
}

@test "a directory of 2500 entries is listed in batches" {
	local url i
	url=http://$(hdfs_namenode_ip "$(hdfs_active)"):9870/webhdfs/v1
	for ((i = 1; i <= 2500; i++)); do
		printf 'url="%s/many/f%04d?op=MKDIRS&user.name=root"\noutput=/dev/null\n' "$url" $i
	done | curl -sf -X PUT -K - -Z --parallel-max 4
	[ "$(tool ls "$HDFS_URI/many" | tr '\0' '\n' | sort -u | wc -l)" = 2500 ]
	[ "$(stat_of requests)" -ge 3 ]
}

# saying EXCEPTION MESSAGE: a DataNode that refuses to read; sets fake, its URL.
saying() {
	hdfs_rest GET /one op=GETFILESTATUS >"$BST_ROOT/status.json"
	hdfs_rest GET /one op=GET_BLOCK_LOCATIONS >"$BST_ROOT/blocks.json"
	bst_spawn "fake-$1" python3 "${bst_lib:?}/fakehdfs.py" "$BST_ROOT/status.json" "$BST_ROOT/blocks.json" \
		"{\"RemoteException\":{\"exception\":\"$1\",\"message\":\"$2\"}}"
	bst_wait 10 test -s "$BST_LOG/fake-$1.log"
	fake=webhdfs://127.0.0.1:$(head -1 "$BST_LOG/fake-$1.log")/one
}

@test "what a DataNode says over HTTP is told, and a refusal is one when it says so" {
	local fake
	saying BlockMissingException 'Could not obtain block: 17'
	run tool --deadline 2s --http read "$fake" 0 1000
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == ETIMEDOUT:*"BlockMissingException: Could not obtain block: 17"* ]]
	saying AccessControlException 'Permission denied: user=bob'
	run tool --deadline 2s --http read "$fake" 0 1000
	echo "$output"
	[ "$status" = 1 ]
	[[ $output == EACCES:*"Permission denied: user=bob"* ]]
}

@test "a DataNode that wants encrypted transfer is read by HTTP" {
	hdfs_start --datanodes 1 --tokens --conf dfs.encrypt.data.transfer=true
	[ "$HDFS_ROOT" = "$BST_ROOT" ]
	head -c 3000000 /dev/urandom >"$HDFS_ROOT/file"
	hdfs_put "$HDFS_ROOT/file" /file
	same /file
	[ "$(stat_of http)" = 3000000 ]
	hdfs_stop
}
