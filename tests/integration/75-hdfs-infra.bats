#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 75-hdfs-infra.bats: does the tests' own HDFS do what the tests of HDFS need of it?
#
# Nothing of ours runs here: a failure is one of the test house.
# needs: hadoop
# timeout: 500
# test-timeout: 120
# shellcheck disable=SC2030,SC2031

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/kerberos.bash
load ../lib/hdfs.bash

# One for all tests: what a test stops, it starts again.
setup_file() {
	bst_setup
	local start=$EPOCHREALTIME
	hdfs_start --ha --tokens
	echo "# $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s to start HDFS, $(hdfs_cpu) s of CPU" >&3
}

teardown_file() {
	[ -z "${HDFS_ROOT:-}" ] || echo "# $(hdfs_cpu) s of CPU at the end" >&3
	bst_teardown
}

setup() {
	bst_setup
	head -c 20000000 /dev/urandom >"$BST_ROOT/file"
}

teardown() {
	bst_teardown
}

same() {
	hdfs_get "$1" | cmp - "$BST_ROOT/file"
}

# replicas PATH N: its one block has so many.
replicas() {
	[ "$(hdfs_blocks "$1" | wc -w)" = $((2 + $2)) ]
}

@test "put and get: by the client, by WebHDFS" {
	hdfs_dfs -put "$BST_ROOT/file" /by-client
	same /by-client
	hdfs_put "$BST_ROOT/file" /by-rest
	hdfs_dfs -get /by-rest "$BST_ROOT/back"
	cmp "$BST_ROOT/file" "$BST_ROOT/back"
}

@test "replicas are where they were put" {
	local i
	for i in 1 2 3 4; do
		hdfs_put_at $i "$BST_ROOT/file" /at-$i
		[ "$(hdfs_blocks /at-$i | cut -d' ' -f3)" = "$(hdfs_datanode_ip $i)" ]
		cmp "$(hdfs_block_file $i "$(hdfs_blocks /at-$i | cut -d' ' -f1)")" "$BST_ROOT/file"
	done
}

@test "a DataNode is killed: the other replica is read, and it comes back" {
	hdfs_put_at 2 "$BST_ROOT/file" /two 'replication=2'
	bst_wait 10 replicas /two 2
	hdfs_datanode_kill 2
	hdfs_dfs -get /two "$BST_ROOT/back"
	cmp "$BST_ROOT/file" "$BST_ROOT/back"
	hdfs_datanode_start 2
	bst_wait 30 hdfs_live 4
}

@test "a DataNode hangs, and goes on" {
	hdfs_put_at 3 "$BST_ROOT/file" /hung
	hdfs_datanode_pause 3
	run hdfs_rest GET /hung op=OPEN -m 2 -o /dev/null
	[ "$status" = 28 ]
	hdfs_datanode_resume 3
	same /hung
}

@test "a replica is corrupt: the client finds the other" {
	hdfs_put_at 1 "$BST_ROOT/file" /corrupt 'replication=2'
	bst_wait 10 replicas /corrupt 2
	printf 'not this' | dd of="$(hdfs_block_file 1 "$(hdfs_blocks /corrupt | cut -d' ' -f1)")" \
		bs=1 seek=1000000 conv=notrunc status=none
	hdfs_dfs -get /corrupt "$BST_ROOT/back"
	cmp "$BST_ROOT/file" "$BST_ROOT/back"
}

@test "failover, both ways, by order and by death" {
	[ "$(hdfs_active)" = 1 ]
	hdfs_put "$BST_ROOT/file" /failover
	hdfs_failover 2
	[ "$(hdfs_active)" = 2 ]
	same /failover
	hdfs_put "$BST_ROOT/file" /failover2
	hdfs_failover 1
	same /failover2
	hdfs_namenode_kill 1
	hdfs_failover 2
	bst_wait 10 hdfs_ready
	same /failover2
	hdfs_dfs -test -e /failover
	hdfs_namenode_start 1
	bst_wait 30 hdfs_namenode_answers 1
	hdfs_failover 1
	bst_wait 30 hdfs_ready
	same /failover
}

@test "safe mode" {
	hdfs_safemode on
	run hdfs_rest PUT /safe op=MKDIRS
	[ "$status" = 22 ]
	hdfs_safemode off
	hdfs_rest PUT /safe op=MKDIRS
}

@test "quota" {
	hdfs_rest PUT /quota op=MKDIRS
	hdfs_quota /quota 10000000
	run hdfs_put "$BST_ROOT/file" /quota/file 'replication=1&blocksize=1048576'
	[ "$status" != 0 ]
	hdfs_quota /quota -1
	hdfs_put "$BST_ROOT/file" /quota/file 'replication=1&blocksize=1048576'
}

@test "delegation tokens: good, and cancelled; block tokens" {
	hdfs_token_file "$BST_ROOT/token"
	HADOOP_TOKEN_FILE_LOCATION=$BST_ROOT/token hdfs_dfs -mkdir /token
	hdfs_token_cancel "$BST_ROOT/token"
	HADOOP_TOKEN_FILE_LOCATION=$BST_ROOT/token run hdfs_dfs -mkdir /token2
	[ "$status" = 1 ]
	[[ $output == *"can't be found in cache"* ]]
	hdfs_put "$BST_ROOT/file" /tokens
	[ "$(hdfs_rest GET /tokens op=GET_BLOCK_LOCATIONS |
		jq -r '.LocatedBlocks.locatedBlocks[0].blockToken.urlString | length')" -gt 50 ]
}

# took COMMAND...: milliseconds.
took() {
	local start
	start=$(date +%s%N)
	"$@" >/dev/null || return
	echo $((($(date +%s%N) - start) / 1000000))
}

@test "a DataNode's link has the rate that it was given" {
	local ms
	hdfs_put_at 4 "$BST_ROOT/file" /shaped
	hdfs_rate 4 100mbit
	ms=$(took same /shaped)
	echo "read: $ms ms"
	[ "$ms" -gt 1500 ] && [ "$ms" -lt 6000 ]
	ms=$(took hdfs_put_at 4 "$BST_ROOT/file" /shaped2)
	echo "written: $ms ms"
	[ "$ms" -gt 1500 ] && [ "$ms" -lt 6000 ]
	hdfs_rate 4 none
}

@test "a small one of its own: full, stopped in order, nothing left" {
	hdfs_start --datanodes 1 --capacity 30m
	[ "$HDFS_ROOT" = "$BST_ROOT" ]
	hdfs_put "$BST_ROOT/file" /one 'blocksize=1048576'
	run hdfs_put "$BST_ROOT/file" /two 'blocksize=1048576'
	[ "$status" != 0 ]
	same /one
	hdfs_datanode_stop 1
	hdfs_stop
	run bst_processes
	[ "$output" = "" ]
}

# status_of CURL-ARG...
status_of() {
	curl -sL -m 20 -o "$BST_ROOT/back" -w '%{http_code}' "$@"
}

@test "one with Kerberos and TLS: tickets, tokens, certificates" {
	local url token
	hdfs_start --datanodes 1 --kerberos --tls
	hdfs_put "$BST_ROOT/file" /file
	hdfs_put_at 1 "$BST_ROOT/file" /file2
	same /file2
	url=http://$(hdfs_namenode_ip 1):9870/webhdfs/v1
	[ "$(status_of "$url/file?op=OPEN&user.name=root")" = 401 ]
	token=$(hdfs_token)
	[ "$(status_of "$url/file?op=OPEN&delegation=$token")" = 200 ]
	cmp "$BST_ROOT/file" "$BST_ROOT/back"
	hdfs_rest PUT / "op=CANCELDELEGATIONTOKEN&token=$token"
	[ "$(status_of "$url/file?op=OPEN&delegation=$token")" = 403 ]
	# another user, with a ticket of his own
	kdc_principal user
	hdfs_rest PUT / 'op=SETPERMISSION&permission=777'
	KRB5CCNAME=FILE:$BST_ROOT/user kdc_login user
	KRB5CCNAME=FILE:$BST_ROOT/user hdfs_rest PUT /of-user op=MKDIRS
	[ "$(hdfs_rest GET /of-user op=GETFILESTATUS | jq -r .FileStatus.owner)" = user ]
	url=https://$(hdfs_namenode_ip 1):9871/webhdfs/v1
	[ "$(status_of --negotiate -u : --cacert "$HDFS_CA" "$url/file?op=OPEN")" = 200 ]
	cmp "$BST_ROOT/file" "$BST_ROOT/back"
	run status_of --negotiate -u : "$url/file?op=OPEN"
	[ "$status" = 60 ]
	hdfs_dfs -rm -skipTrash /file
	KRB5CCNAME=FILE:$BST_ROOT/nothing run hdfs_dfs -ls /
	[ "$status" != 0 ]
}
