# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# containerd.bash: a containerd that is private to a test: own root, state,
# socket, and containerd namespace. Needs common.bash.
#
# Two things are outside the test's root because containerd hard-codes them: the
# shims' sockets (/run/containerd/s) and runc's state (/run/containerd/runc/NS);
# both are empty of ours after containerd_stop.

# containerd_start 1|2 [--cri]: start Debian's containerd, or the one that
# build-containerd2 made. Sets CONTAINERD_ADDRESS and CONTAINERD_NAMESPACE (so
# that a plain ctr finds it) and CONTAINERD_BIN. CRI is off without --cri.
# CONTAINERD_MORE, when set, is more of the configuration of CRI.
containerd_start() {
	local dir=$BST_ROOT/containerd bin conf
	conf=$dir/config.toml
	case $1 in
	1) bin=$(dirname "$(command -v containerd)") || bst_skip "no containerd" || return 1 ;;
	2) bin=$("${bst_lib:?}/build-containerd2") || bst_skip "no containerd 2" || return 1 ;;
	*) echo "containerd_start: 1 or 2"; return 1 ;;
	esac
	mkdir -p "$dir"
	CONTAINERD_ADDRESS=$BST_RUN/containerd.sock
	CONTAINERD_NAMESPACE=bst-$BST_ID
	CONTAINERD_BIN=$bin
	export CONTAINERD_ADDRESS CONTAINERD_NAMESPACE CONTAINERD_BIN
	containerd_config "$dir" "${2:-}" >"$conf"
	# the shim is looked for in PATH
	PATH=$bin:$PATH bst_spawn containerd "$bin/containerd" -c "$conf"
	bst_defer containerd_stop
	bst_wait 20 bctr version
}

containerd_config() {
	local dir=$1
	cat <<-EOF
		version = 2
		root = "$dir/root"
		state = "$dir/state"
		disabled_plugins = [$(containerd_disabled "$2")]
		[debug]
		  level = "warn"
		[grpc]
		  address = "$CONTAINERD_ADDRESS"
		[ttrpc]
		  address = "$CONTAINERD_ADDRESS.ttrpc"
		[plugins."io.containerd.internal.v1.opt"]
		  path = "$dir/opt"
	EOF
	[ "$2" = --cri ] || return 0
	# without CAP_SYS_RESOURCE the oom score cannot be lowered
	cat <<-EOF
		[plugins."io.containerd.grpc.v1.cri"]
		  restrict_oom_score_adj = true
		  disable_apparmor = true
		  disable_tcp_service = true
		${CONTAINERD_MORE:-}
		[plugins."io.containerd.cri.v1.runtime"]
		  restrict_oom_score_adj = true
		  disable_apparmor = true
		[plugins."io.containerd.nri.v1.nri"]
		  disable = true
	EOF
}

containerd_disabled() {
	local p list=()
	[ "$1" = --cri ] || list+=(grpc.v1.cri cri.v1.images cri.v1.runtime podsandbox.controller.v1.podsandbox nri.v1.nri)
	list+=(tracing.processor.v1.otlp internal.v1.tracing)
	for p in devmapper btrfs zfs aufs blockfile; do
		list+=("snapshotter.v1.$p")
	done
	printf '"io.containerd.%s",' "${list[@]}"
}

# bctr ARG...: ctr of the containerd that runs, without its word on cgroup v1.
bctr() {
	"$CONTAINERD_BIN/ctr" "$@" 2> >(grep -v 'support for cgroup v1 is deprecated' >&2)
}

# containerd_load LAYOUT NAME: import an OCI layout directory, its one image as NAME.
containerd_load() {
	tar -C "$1" -c . | bctr images import --index-name "$2" --snapshotter overlayfs - >/dev/null || return 1
	bctr images ls -q | grep -qxF "$2"
}

# containerd_mount IMAGE DIR: unpack and mount an image's root file system
# read-only at DIR. Undo with containerd_umount DIR (done at teardown too).
containerd_mount() {
	mkdir -p "$2" &&
		bctr images mount --snapshotter overlayfs "$1" "$2" >/dev/null &&
		bst_defer containerd_umount "$2"
}

containerd_umount() {
	! mountpoint -q "$1" || umount "$1" || return 1
	bctr snapshots rm "$1" 2>/dev/null || :
}

# containerd_stop: remove all tasks and containers, stop it, and clean up what
# containerd leaves at its end.
containerd_stop() {
	local c m group
	[ -e "$BST_ROOT/pid/containerd" ] || return 0
	for c in $(bctr tasks ls -q); do
		bctr tasks kill -s KILL "$c" >/dev/null 2>&1
		bst_wait 10 bctr tasks rm -f "$c" >/dev/null
	done
	for c in $(bctr containers ls -q); do
		bctr containers rm "$c" >/dev/null
	done
	bst_stop containerd || return 1
	for m in $(bst_mounts | grep "^$BST_ROOT/containerd/"); do
		umount "$m"
	done
	rmdir "/run/containerd/runc/$CONTAINERD_NAMESPACE" 2>/dev/null
	# runc removes a container's cgroup, not the parent that it made
	for group in /sys/fs/cgroup/*/"$CONTAINERD_NAMESPACE" /sys/fs/cgroup/"$CONTAINERD_NAMESPACE"; do
		[ ! -d "$group" ] || rmdir "$group" || return 1
	done
}

# containerd_restart: kill -9 and start again on the same data.
containerd_restart() {
	bst_stop containerd KILL
	PATH=$CONTAINERD_BIN:$PATH bst_spawn containerd "$CONTAINERD_BIN/containerd" \
		-c "$BST_ROOT/containerd/config.toml"
	bst_wait 20 bctr version
}

# cri_start 1|2 PAUSE [LINE...]: containerd_start with CRI, whose default runtime is RUNTIME, as
# handler bootseer, with LINEs of the handler's configuration; PAUSE is the image of sandboxes.
cri_start() {
	local version=$1 pause=$2 more
	shift 2
	more=$(printf '%s\n' "$@")
	CRICTL=$("${bst_lib:?}/build-crictl") || bst_skip "no crictl" || return 1
	export CONTAINERD_MORE="sandbox_image = \"$pause\"
		[plugins.\"io.containerd.grpc.v1.cri\".containerd]
		default_runtime_name = \"bootseer\"
		[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.bootseer]
		runtime_type = \"io.containerd.runc.v2\"
		$more
		[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.bootseer.options]
		BinaryName = \"${RUNTIME:?}\""
	containerd_start "$version" --cri || return 1
	export CONTAINERD_NAMESPACE=k8s.io
	bst_wait 20 cri version
}

# cri ARG...: crictl.
cri() {
	"$CRICTL/crictl" -r "unix://$CONTAINERD_ADDRESS" -i "unix://$CONTAINERD_ADDRESS" -t 60s "$@"
}

# cri_pod FILE [JQ]: what a kubelet would ask for, of a pod, changed by JQ.
# shellcheck disable=SC2016
cri_pod() {
	jq -n --arg id "$BST_ID" --arg log "$BST_LOG" '{metadata: {name: ("pod-" + $id), namespace: "default",
		uid: $id, attempt: 0}, log_directory: $log, linux: {cgroup_parent: ("/bst-" + $id),
		security_context: {namespace_options: {network: 2}}}} | '"${2:-.}" >"$1"
}
