# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# shim.bash: bundles, a busybox image, its stub, and a control socket that answers
# as a test wants (fakedaemon.py). Needs common.bash.

# shim_setup: configuration with everything below the test's root; SHIM_DIGEST names
# the image, $BST_ROOT/image holds its tree.
shim_setup() {
	bst_require busybox runc jq mkfs.erofs || return 1
	SHIM_DIGEST=sha256:$(printf '%064d' 7)
	export BOOTSEER_CONFIG=$BST_ROOT/bootseer.conf
	shim_conf
	shim_tree "$BST_ROOT/image"
}

# shim_conf [LINE...]: the configuration, with further lines at its end.
# shellcheck disable=SC2120 # most tests want no further lines
shim_conf() {
	{
		printf '[node]\nrun_dir = %s\nautostart = no\n' "$BST_RUN"
		printf '[policy]\nallow_dirs = %s\n' "$BST_ROOT"
		[ $# = 0 ] || printf '%s\n' "$@"
	} >"$BOOTSEER_CONFIG"
	chmod 644 "$BOOTSEER_CONFIG"
}

# shim_tree DIR: a small complete root file system.
shim_tree() {
	local name
	mkdir -p "$1"/{bin,dev,etc,proc,sys,tmp,run,root,var/data}
	cp "$(command -v busybox)" "$1/bin/busybox"
	for name in sh cat ls echo touch sleep rm mkdir id kill true false stat seq; do
		ln -sf busybox "$1/bin/$name"
	done
	printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/root:/bin/sh\n' >"$1/etc/passwd"
	echo from-image >"$1/etc/origin"
	echo from-image >"$1/var/data/file"
	chmod 1777 "$1/tmp"
}

# shim_stub DIR: what a stub image has.
shim_stub() {
	mkdir -p "$1/.bootseer" "$1/etc"
	printf '{"version":1,"artifact":"%s","repository":"oci:%s/store","source":"%s"}' \
		"$SHIM_DIGEST" "$BST_ROOT" "$SHIM_DIGEST" >"$1/.bootseer/image.json"
}

# shim_bundle DIR COMMAND [ARG...]: a bundle with an empty rootfs that runs COMMAND.
shim_bundle() {
	local dir=$1
	shift
	mkdir -p "$dir/rootfs"
	(cd "$dir" && rm -f config.json && runc spec) || return 1
	# shellcheck disable=SC2016
	shim_edit "$dir" '.process.terminal = false | .root.readonly = false |
		.process.args = $args | .linux.cgroupsPath = $id' --arg id "/bst-$BST_ID" \
		--argjson args "$(/usr/bin/python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))' "$@")"
}

# shim_edit DIR JQ [OPTION...]: change a bundle's config.json.
shim_edit() {
	local dir=$1 program=$2
	shift 2
	jq "$program" "$dir/config.json" "$@" >"$dir/config.new" && mv "$dir/config.new" "$dir/config.json"
}

# shim_daemon [--erofs] [OPTION...]: answer on the control socket; options of fakedaemon.py.
shim_daemon() {
	local image=$BST_ROOT/image
	if [ "${1:-}" = --erofs ]; then
		shift
		mkfs.erofs "$BST_ROOT/image.erofs" "$image" >/dev/null 2>&1 || return 1
		image=$BST_ROOT/image.erofs
	fi
	bst_spawn daemon "${bst_lib:?}/fakedaemon.py" "$BST_RUN/bootseerd.sock" "$image" \
		--log "$BST_ROOT/asked" "$@"
	: >"$BST_ROOT/asked"
	bst_wait 10 test -S "$BST_RUN/bootseerd.sock"
}

# shim COMMAND...: bootseer with a state directory of the test's own, without bats' descriptors.
shim() {
	"$BOOTSEER_BUILDDIR/bootseer" --root "$BST_STATE/oci" "$@" 3>&- 4>&-
}

# shim_clean: nothing of ours is left of any container.
shim_clean() {
	local left
	left=$(find "$BST_RUN/state" "$BST_STATE/oci" -mindepth 1 2>/dev/null || :)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
	! grep -F "$BST_ROOT" /proc/self/mountinfo | grep -v /layers/
}

# shim_stub_layout DIR: the stub as an image in an OCI layout directory.
shim_stub_layout() {
	shim_stub "$BST_ROOT/stub" &&
		cp "$BST_ROOT/image/etc/passwd" "$BST_ROOT/stub/etc/" &&
		tar -C "$BST_ROOT/stub" -cf "$BST_ROOT/stub.tar" . &&
		"${bst_lib:?}/ocilayout.py" "$1" "$BST_ROOT/stub.tar"
}
