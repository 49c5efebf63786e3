# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# podman.bash: a podman that is private to a test. Needs common.bash.
#
# No network, no journal, no shared memory: all it keeps is below the test's root.
# The low file limit is for machines without CAP_SYS_RESOURCE.

# podman_setup: prepare; afterwards use bpodman. Containers are removed at teardown.
podman_setup() {
	local dir=$BST_ROOT/podman
	bst_require podman conmon || return 1
	mkdir -p "$dir"/{net,tmp,volumes}
	cat >"$dir/storage.conf" <<-EOF
		[storage]
		driver = "overlay"
		graphroot = "$dir/root"
		runroot = "$dir/run"
	EOF
	cat >"$dir/containers.conf" <<-EOF
		[containers]
		netns = "none"
		cgroups = "enabled"
		default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
		log_driver = "k8s-file"
		[engine]
		cgroup_manager = "cgroupfs"
		events_logger = "none"
		lock_type = "file"
		tmp_dir = "$dir/tmp"
		static_dir = "$dir/root/libpod"
		volume_path = "$dir/volumes"
		[network]
		network_config_dir = "$dir/net"
	EOF
	printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >"$dir/policy.json"
	export CONTAINERS_STORAGE_CONF=$dir/storage.conf
	export CONTAINERS_CONF=$dir/containers.conf
	bst_defer podman_stop
}

# bpodman ARG...: podman; $BST_RUNTIME is the OCI runtime (default: runc).
bpodman() {
	(
		ulimit -n 1024
		podman --root "$BST_ROOT/podman/root" --runroot "$BST_ROOT/podman/run" \
			--runtime "${BST_RUNTIME:-runc}" --log-level error "$@" 3>&- 4>&-
	)
}

# podman_load LAYOUT NAME: import the one image of an OCI layout directory as NAME.
podman_load() {
	local id
	id=$(bpodman pull -q --signature-policy "$BST_ROOT/podman/policy.json" "oci:$1") || return 1
	bpodman tag "$id" "$2"
}

podman_stop() {
	local m group
	bpodman rm -a -f -t 0 >/dev/null 2>&1
	bpodman image umount -a >/dev/null 2>&1
	for m in $(bst_mounts | grep "^$BST_ROOT/podman/"); do
		umount "$m"
	done
	for group in /sys/fs/cgroup/*/libpod_parent /sys/fs/cgroup/libpod_parent; do
		[ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || :
	done
}
