#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 77-hdfs-secure.bats: the HDFS client with Kerberos, delegation tokens, block tokens and TLS.
# needs: hadoop
# timeout: 300
# test-timeout: 60
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0
load ../lib/common.bash
load ../lib/netns.bash
load ../lib/kerberos.bash
load ../lib/hdfs.bash
load ../lib/hdfstool.bash
load ../lib/node.bash

setup_file() {
	bst_setup
	hdfs_start --datanodes 2 --kerberos --tls
	head -c 9000003 /dev/urandom >"$HDFS_ROOT/file"
	hdfs_put "$HDFS_ROOT/file" /file 'replication=2&blocksize=1048576'
}

teardown_file() {
	bst_teardown
}

setup() {
	bst_setup
	nn=$(hdfs_namenode_ip 1)
}

teardown() {
	bst_teardown
}

# same URL [OPTION...]
same() {
	tool "${@:2}" read "$1" | cmp - "$HDFS_ROOT/file"
}

@test "with a ticket; without one, an error that says so" {
	same "$HDFS_URI/file" --kerberos
	same "$HDFS_URI/file" --kerberos --http
	tool --kerberos mkdirs "$HDFS_URI/ticket" 755
	refused EACCES stat "$HDFS_URI/file"
	[[ $output == *"no ticket"* ]]
	KRB5CCNAME=/nowhere refused EACCES --kerberos stat "$HDFS_URI/file"
}

@test "a ticket is shown once, then a cookie" {
	tool --kerberos again "$HDFS_URI/file" 5 1
	[ "$(sed -n 's/.*requests=\([0-9]*\).*/\1/p' "$BST_ROOT/stats")" = 5 ]
}

@test "a delegation token does without a ticket, ours and Hadoop's" {
	export KRB5CCNAME
	tool --kerberos tokenfile "$HDFS_URI/" root "$nn:8020" >"$BST_ROOT/ours"
	hdfs_token_file "$BST_ROOT/hadoops"
	local file
	for file in ours hadoops; do
		KRB5CCNAME=/nowhere same "$HDFS_URI/file" --token-file "$BST_ROOT/$file"
		HADOOP_TOKEN_FILE_LOCATION=$BST_ROOT/$file KRB5CCNAME=/nowhere same "$HDFS_URI/file" --http
	done
	[ "$(tool --kerberos renew "$HDFS_URI/" "$(tool --kerberos token "$HDFS_URI/" root)")" -gt 1000000000000 ]
}

@test "a cancelled token is refused; a new one in its file is found" {
	hdfs_token_file "$BST_ROOT/token"
	cp "$BST_ROOT/token" "$BST_ROOT/old"
	hdfs_token_file "$BST_ROOT/new"
	KRB5CCNAME=/nowhere tool --token-file "$BST_ROOT/token" again "$HDFS_URI/file" 30 100 &
	local asks=$!
	sleep 1
	cp "$BST_ROOT/new" "$BST_ROOT/next" && mv "$BST_ROOT/next" "$BST_ROOT/token"
	hdfs_token_cancel "$BST_ROOT/old"
	wait "$asks"
	export KRB5CCNAME=/nowhere
	refused EACCES --token-file "$BST_ROOT/old" stat "$HDFS_URI/file"
	[[ $output == *"can't be found in cache"* ]]
}

@test "TLS: with its authority; without, an error" {
	same "swebhdfs://$nn:9871/file" --kerberos --ca "$HDFS_CA"
	same "swebhdfs://$nn:9871/file" --kerberos --ca "$HDFS_CA" --http
	refused EACCES --deadline 5s --kerberos stat "swebhdfs://$nn:9871/file"
	[[ $output == *"certificate is not trusted"*"mount.bootseer-hdfs(8)"* ]]
	refused EHOSTUNREACH --deadline 3s --kerberos stat "swebhdfs://$nn:9870/file"
	[[ $output == *"no TLS connection"*"webhdfs:// in mount.bootseer-hdfs(8)"* ]]
}

@test "an image: converted with a ticket; started with a token, with a ticket, refused without" {
	local options image=$HDFS_URI/images/tree
	export HADOOP_CONF_DIR=$HDFS_CONF
	node_tree "$BST_ROOT/tree" 4 1
	convert "rootfs:$BST_ROOT/tree" "$image:v1" --hdfs-options kerberos
	tool --kerberos tokenfile "$HDFS_URI/" root "$nn:8020" >"$BST_ROOT/token"
	cp "${KRB5CCNAME#FILE:}" "$BST_ROOT/ticket"
	chown nobody "$BST_ROOT/token" "$BST_ROOT/ticket"
	chmod 755 "$BST_ROOT"
	for options in "token=$BST_ROOT/token" kerberos ''; do
		node_conf "policy allow_hdfs = $HDFS_URI/images" "fetch start_wait = 3s" \
			"fetch hdfs_options = conf=$HDFS_CONF${options:+,$options}"
		case $options in
		kerberos) KRB5CCNAME=$BST_ROOT/ticket node_start ;;
		*) KRB5CCNAME=/nowhere node_start ;;
		esac
		if [ -n "$options" ]; then
			node_attach one "$digest" "$BST_ROOT/m" "$image"
			diff -r "$BST_ROOT/tree" "$BST_ROOT/m"
			node_detach "$BST_ROOT/m"
		else
			run ! node_attach one "$digest" "$BST_ROOT/m" "$image"
			echo "$output"
			[[ $output == *"no ticket"* ]]
		fi
		node_stop
		rm -rf "${BST_CACHE:?}"/*
	done
}
