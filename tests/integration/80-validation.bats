#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 80-validation.bats: the OCI runtime validation over bootseer and over runc.
#
# The suite does not pass whole with runc here (no cgroup v2, no AppArmor, hooks
# that runc runs early), so the measure is runc's own result, line by line.
# needs: runtime-tools
# timeout: 1200
# test-timeout: 900

load ../lib/common.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

@test "validation: bootseer over runc is as good as runc" {
	bst_require bootseer runc
	"${bst_lib:?}/runtime-validation" runc "$BST_ROOT/runc"
	"$bst_lib/runtime-validation" bootseer "$BST_ROOT/bootseer"
	[ "$(grep -c '	ok' "$BST_ROOT/runc")" -gt 3000 ]
	diff "$BST_ROOT/runc" "$BST_ROOT/bootseer"
}
