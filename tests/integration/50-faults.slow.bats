#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 50-faults.slow.bats: the faults that take their time.
# test-timeout: 200

load ../lib/common.bash
load ../lib/registry.bash
load ../lib/node.bash
load ../lib/faults.bash

setup() {
	bst_setup
}

teardown() {
	bst_teardown
}

@test "the source is gone for 60 seconds in the middle, then back" {
	faults_setup 48 "fetch background = no"
	faults_gone 60
}
