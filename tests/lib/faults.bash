# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# faults.bash: a converted tree in a real registry, a fault proxy before it, and a node
# that only knows the proxy. Needs common.bash, registry.bash and node.bash.

faults_readers=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/readers.py

# faults_setup MIB [LINE...]: such a tree (random: it does not compress), published, and
# bootseerd started. Sets SOURCE, digest, DATA (hex digest of the data blob).
faults_setup() {
	local mib=$1
	shift
	node_tree "$BST_ROOT/tree" "$mib" 11
	faults_publish
	faults_node "$@"
}

faults_publish() {
	python3 "$faults_readers" sums "$BST_ROOT/tree" >"$BST_ROOT/sums"
	[ -n "${REGISTRY:-}" ] || registry_start main
	convert "rootfs:$BST_ROOT/tree" "docker://$REGISTRY/tree:latest" --level 1 --plain-http
	bootseerctl image info "docker://$REGISTRY/tree:latest" --json --plain-http >"$BST_ROOT/info"
	DATA=$(jq -r .data.digest "$BST_ROOT/info" | cut -d: -f2)
	DATA_SIZE=$(jq .data.size "$BST_ROOT/info")
	faultproxy_start p "$REGISTRY"
	SOURCE=docker://$FAULTPROXY/tree
	export DATA DATA_SIZE SOURCE
}

faults_node() {
	node_conf "fetch plain_http = $FAULTPROXY" "$@"
	node_start
}

# faults_attach [SOURCE...]: at $BST_ROOT/m, from the proxy when nothing else is given.
faults_attach() {
	[ $# -gt 0 ] || set -- "$SOURCE"
	node_attach one "${digest:?}" "$BST_ROOT/m" "$@"
}

# faults_check N [SEED]: so many readers find every byte right.
faults_check() {
	python3 "$faults_readers" check "$BST_ROOT/m" "$BST_ROOT/sums" "$@"
}

# faults_unharmed: no reader got an error, and the worker is the first one.
faults_unharmed() {
	[ "$(node_status .served.cache.failed_reads)" = 0 ] && [ "$(node_status .worker.restarts)" = 0 ]
}

# faults_gone SECONDS: the source goes away for so long while readers are in the middle.
faults_gone() {
	local reading
	faultproxy_set p '{"range": true, "action": "slow", "rate": 3000000}'
	faults_attach
	faults_check 4 &
	reading=$!
	sleep 2
	faultproxy_stop p
	sleep "$1"
	kill -0 "$reading"
	faultproxy_start p "$REGISTRY"
	faultproxy_set p
	wait "$reading"
	faults_unharmed
	[ "$(node_status .served.cache.retries)" -gt 0 ]
}
