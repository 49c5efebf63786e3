# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# lazy.bash: converted images in a registry, and what starts containers of them.
# Needs common.bash, registry.bash, images.bash and node.bash.

# lazy_publish LAYOUT NAME [OPTION...]: convert the layout's image to $REGISTRY/NAME:latest
# (the stub's tag is latest-bootseer). Sets digest; keeps it in $REGISTRY_DIR.NAME too.
lazy_publish() {
	local from=$1 name=$2
	shift 2
	convert "oci:$from" "docker://$REGISTRY/$name:latest" --plain-http "$@" || return 1
	echo "${digest:?}" >"$REGISTRY_DIR.$name"
}

# lazy_digest NAME: of what lazy_publish converted.
lazy_digest() {
	cat "$REGISTRY_DIR.$1"
}

# lazy_stub NAME: the stub that an engine pulls.
lazy_stub() {
	printf '%s/%s:latest-bootseer\n' "$REGISTRY" "$1"
}

# lazy_node [LINE...]: a node's configuration (node_conf), and RUNTIME, the program that an
# engine is given: engines do not hand their environment on.
lazy_node() {
	node_conf "fetch plain_http = $REGISTRY" "$@"
	RUNTIME=$BST_ROOT/runtime
	printf '#!/bin/sh\nBOOTSEER_CONFIG=%s exec %s "$@"\n' "$BOOTSEER_CONFIG" \
		"$BOOTSEER_BUILDDIR/bootseer" >"$RUNTIME"
	chmod 755 "$RUNTIME"
}

# lazy_bundle DIR NAME [COMMAND...]: a bundle of the converted image, its rootfs empty.
lazy_bundle() {
	local dir=$1 name=$2
	shift 2
	bootseerctl bundle "docker://$REGISTRY/$name:latest" "$dir" --plain-http || return 1
	lazy_command "$dir" "$@"
}

# lazy_command DIR [COMMAND...]: the bundle runs it, in a cgroup of the test's.
# shellcheck disable=SC2016
lazy_command() {
	local dir=$1
	shift
	lazy_edit "$dir" '.process.terminal = false | .linux.cgroupsPath = $group |
		if $args == [] then . else .process.args = $args end' --arg group "/bst-$BST_ID/${dir##*/}" \
		--argjson args "$(/usr/bin/python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@")"
}

# lazy_edit DIR JQ [OPTION...]: change a bundle's config.json.
lazy_edit() {
	local dir=$1 program=$2
	shift 2
	jq "$program" "$dir/config.json" "$@" >"$dir/config.new" &&
		mv "$dir/config.new" "$dir/config.json"
}

# lazy_run ARG...: bootseer with a state directory of the test's own, without bats' descriptors.
lazy_run() {
	"$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" "$@" 3>&- 4>&-
}

# lazy_unpack_stub NAME DIR: the stub's file system, in a plain directory.
lazy_unpack_stub() {
	local layout=$BST_ROOT/stub-$1
	skopeo --insecure-policy copy -q --src-tls-verify=false "docker://$(lazy_stub "$1")" \
		"oci:$layout:latest" && mkdir -p "$2" && "${bst_lib:?}/ociunpack.py" "$layout" "$2"
}

# lazy_no_state: no container has anything left with us: no state file, no lease, no mount.
lazy_no_state() {
	local left
	left=$(find "$BST_RUN/state" "$BST_STATE/oci" -mindepth 1 2>/dev/null
		find "$BST_RUN" -maxdepth 1 -name 'layer-*'
		[ ! -S "$BST_RUN/bootseerd.sock" ] ||
			node_status '.mounts[] | select(.containers > 0) | "a lease of " + .digest')
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# lazy_cgroups_gone: remove the parent of the bundles' cgroups, which runc does not.
lazy_cgroups_gone() {
	find /sys/fs/cgroup -depth -type d -path "*/bst-$BST_ID" -exec rmdir {} + 2>/dev/null || :
}

# lazy_umount DIR: for bst_defer, when the test may have done it already.
lazy_umount() {
	! mountpoint -q "$1" || umount -l "$1"
}

# lazy_untouched: bootseerd was never started, nothing of ours is there.
lazy_untouched() {
	node_gone && [ ! -e "$BST_RUN/state" ] && [ ! -e "$BST_RUN/timeline" ] &&
		[ ! -e "$BST_RUN/bootseerd.sock" ] && [ -z "$(ls -A "$BST_CACHE")" ]
}
