# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# hot.bash: starts of a workload without containers: an image is acquired as a start does,
# and read. Needs common.bash, registry.bash, node.bash and faults.bash.
# shellcheck disable=SC2030,SC2031 # hot_node's subshell is meant

# hot_setup MIB [LINE...]: as faults_setup; half of the files are hot: $BST_ROOT/hot.
hot_setup() {
	faults_setup "$@" "fetch background = no" "node keep_mounts = 1s"
	hot_list
}

hot_list() {
	awk 'NR % 2' "$BST_ROOT/sums" >"$BST_ROOT/hot"
	awk 'NR % 2 == 0' "$BST_ROOT/sums" >"$BST_ROOT/cold"
}

# hot_start NAME [SOURCE...]: a start of workload train, its files below $BST_ROOT/m-NAME.
hot_start() {
	local name=$1
	shift
	[ $# -gt 0 ] || set -- "$SOURCE"
	BST_WORKLOAD=train node_attach "$name" "${digest:?}" "$BST_ROOT/m-$name" "$@"
}

# hot_end NAME: and of its container.
hot_end() {
	node_detach "$BST_ROOT/m-$1"
	node_release "$1"
}

# hot_read NAME [LIST [N]]: every byte that N readers want of it is right.
hot_read() {
	python3 "${faults_readers:?}" check "$BST_ROOT/m-$1" "$BST_ROOT/${2:-hot}" "${3:-1}"
}

# hot_tag: the tag of the only hot pack in $REGISTRY; fails when there is none.
hot_tag() {
	curl -sf "http://$REGISTRY/v2/tree/tags/list" |
		jq -er '[.tags[] | select(startswith("bootseer-hot-"))] | select(length == 1)[0]'
}

# hot_manifest: of the hot pack in $REGISTRY.
hot_manifest() {
	curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
		"http://$REGISTRY/v2/tree/manifests/$(hot_tag)"
}

# hot_fresh: the node is another one, that has nothing yet.
hot_fresh() {
	node_stop >/dev/null
	rm -rf "${BST_CACHE:?}"/*
	node_start
}

# hot_made: a first start has been recorded, its pack published; then the node is fresh.
# Sets PACK and PACK_SIZE, those of the pack's blob.
hot_made() {
	hot_start made
	hot_read made
	hot_end made
	bst_wait 15 hot_tag
	hot_pack
	hot_fresh
}

hot_pack() {
	hot_manifest >"$BST_ROOT/hot.json"
	PACK=$(jq -r '.layers[1].digest' "$BST_ROOT/hot.json" | cut -d: -f2)
	PACK_SIZE=$(jq '.layers[1].size' "$BST_ROOT/hot.json")
	export PACK PACK_SIZE
}

# hot_state STATE: whether a pack or recording of the node is in it.
hot_state() {
	node_status '.served.hot[].state' | grep -qx "$1"
}

# hot_arriving: some of a pack has come.
hot_arriving() {
	[ "$(node_status .served.cache.hot_blocks)" -gt 0 ]
}

# hot_slow RATE: each range of the pack comes at so many bytes a second.
hot_slow() {
	faultproxy_set p '{"range": true, "blob": "'"$PACK"'", "action": "slow", "rate": '"$1"'}'
}

# hot_right: no reader got an error.
hot_right() {
	[ "$(node_status .served.cache.failed_reads)" = 0 ]
}

# hot_node N COMMAND...: run it as node N, which has its own run directory, cache and
# configuration, a copy of the first one's but for those.
hot_node() (
	local root=$BST_ROOT/n$1
	shift
	mkdir -p "$root/run" "$root/cache"
	chmod 755 "$root" "$root/cache"
	[ -f "$root/bootseer.conf" ] || sed "s|^run_dir = .*|run_dir = $root/run|; s|^cache_dir = .*|cache_dir = $root/cache|" \
		"$BST_ROOT/bootseer.conf" >"$root/bootseer.conf"
	export BST_RUN=$root/run BST_CACHE=$root/cache BOOTSEER_CONFIG=$root/bootseer.conf
	"$@"
)

# hot_nodes N: so many nodes are started, and end with the test.
hot_nodes() {
	local i
	for ((i = 1; i <= $1; i++)); do
		bst_defer hot_node "$i" node_stop
		hot_node "$i" node_start || return 1
	done
}
