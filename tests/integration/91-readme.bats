#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# 91-readme.bats: the commands of README, in its order, with a registry and engines.
# needs: containerd2
# test-timeout: 240

load ../lib/common.bash
load ../lib/netns.bash
load ../lib/registry.bash
load ../lib/images.bash
load ../lib/node.bash
load ../lib/containerd.bash
load ../lib/podman.bash

readme=${BATS_TEST_DIRNAME:?}/../../README

setup() {
	bst_setup
	cd "$BST_ROOT" || return 1
	layout=$(image_busybox) || return 1
	last=extra:x:1001:user # of its /etc/group; a stub has that too, but not cat
	# engines do not hand their environment on
	RUNTIME=$BST_ROOT/bootseer
	printf '#!/bin/sh\nBOOTSEER_CONFIG=%s exec %s "$@"\n' "$BST_ROOT/bootseer.conf" \
		"$BOOTSEER_BUILDDIR/bootseer" >"$RUNTIME"
	chmod 755 "$RUNTIME"
}

teardown() {
	bst_teardown
}

@test "without a registry: convert, ls, info, verify, bundle, run, timeline, status" {
	mkdir srv tree
	cp -r "$layout" app
	echo x >tree/x
	echo '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":[]}}' >config.json
	bootseerctl image convert oci:app:latest "oci:$BST_ROOT/srv/images:1.2"
	bootseerctl image convert "rootfs:$BST_ROOT/tree" "oci:$BST_ROOT/srv/images:tree" --config config.json
	[ "$(bootseerctl image ls "oci:$BST_ROOT/srv/images" | wc -l)" = 2 ]
	bootseerctl image info "oci:$BST_ROOT/srv/images:1.2"
	bootseerctl image verify "oci:$BST_ROOT/srv/images:1.2"
	node_conf
	bootseerctl doctor
	bootseerctl bundle "oci:$BST_ROOT/srv/images:1.2" bundle
	"$RUNTIME" --root "$BST_STATE/oci" run --bundle bundle "c1-$BST_ID" </dev/null 3>&- 4>&-
	bootseerctl timeline "c1-$BST_ID" | grep -q ' runtime '
	bootseerctl status | grep -q '^image '
}

@test "with a registry: convert, pull the stub, run by containerd 1 and 2, and podman" {
	local v
	registry_start main
	image_push "$layout" "$REGISTRY/team/app:1.2"
	bootseerctl image convert "docker://$REGISTRY/team/app:1.2" "docker://$REGISTRY/team/app:1.2" --plain-http
	node_conf "fetch plain_http = $REGISTRY"
	for v in 1 2; do
		containerd_start "$v"
		bctr image pull --plain-http "$REGISTRY/team/app:1.2-bootseer" >/dev/null
		run bctr run --rm --runc-binary "$RUNTIME" "$REGISTRY/team/app:1.2-bootseer" "c1-$BST_ID" \
			cat /etc/group
		[ "$status" = 0 ]
		[[ $output == *"$last" ]]
		containerd_stop
		rm -rf "$BST_ROOT/containerd"
	done
	podman_setup
	export BST_RUNTIME=$RUNTIME
	run bpodman run --rm --tls-verify=false "$REGISTRY/team/app:1.2-bootseer" cat /etc/group
	[ "$status" = 0 ]
	[[ $output == *"$last" ]]
	podman_stop
}

@test "the engines' snippets are in README as in contrib, and containerd reads them" {
	local v bin contrib=${readme%README}contrib
	for v in 1 2; do
		sed -n '/^version/,$p' "$contrib/containerd/containerd-$v.toml" | grep -v '^ *#' >snippet
		sed "s/^ *//" snippet >want
		# shellcheck disable=SC2016
		sed -n "/# containerd $v.x/,/BinaryName/p" "$readme" | sed '1d;s/^ *//' >got
		diff want got
		bin=containerd
		[ "$v" = 1 ] || bin=$("${bst_lib:?}/build-containerd2")/containerd
		"$bin" -c snippet config dump 2>/dev/null | grep -A1 'runtimes.bootseer.options' |
			grep -qE 'BinaryName = ["'\'']/usr/sbin/bootseer'
	done
	sed -n '/^apiVersion/,$p' "$contrib/engines/runtimeclass.yaml" >want
	sed -n '/^    apiVersion/,/^    handler/s/^    //p' "$readme" >got
	diff want got
	grep -v '^#\|allowed_annotations' "$contrib/engines/crio.conf" >want
	sed -n '/^    \[crio/,/runtime_root/s/^    //p' "$readme" >got
	diff want got
	[ "$(jq -c . "$contrib/engines/docker-daemon.json")" = "$(grep '^    { "runtimes"' "$readme" | jq -c .)" ]
}
