# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# netns.bash: a network namespace at the end of a link of known speed.
#
# Put a server there, and what clients on this side fetch from it crosses a
# token bucket filter. NAME is a short word; the names on the system carry BST_ID.
# Needs common.bash. All is removed at teardown.

netns_name() {
	printf 'bst-%s-%s\n' "$BST_ID" "$1"
}

netns_link() {
	printf 'b%s%s\n' "$BST_ID" "$1" | cut -c1-15
}

# netns_subnet N: set n to the first N or above whose subnet 10.231.n.0/24 is free. The
# descriptor "lock", which the caller closes when it is taken, keeps other tests from it.
netns_subnet() {
	exec {lock}>/run/lock/bst-netns.lock
	flock "$lock"
	for ((n = $1; n < 254; n++)); do
		ip -4 -o addr show to "10.231.$n.0/24" | grep -q . || break
	done
}

# netns_veth NAME: make the namespace and its link, both ends down.
netns_veth() {
	local ns link
	ns=$(netns_name "$1") link=$(netns_link "$1")
	bst_require ip tc ethtool || return 1
	ip netns add "$ns" || return 1
	bst_defer netns_delete "$1"
	ip link add "$link" type veth peer name eth0 netns "$ns" || return 1
	# offloads would hand 64 KiB packets to the filter
	ethtool -K "$link" tso off gso off gro off >/dev/null 2>&1 || :
	ip netns exec "$ns" ethtool -K eth0 tso off gso off gro off >/dev/null 2>&1 || :
}

# netns_up_at NAME ADDRESS/PREFIX: the inside gets its address, and both ends come up.
netns_up_at() {
	local ns
	ns=$(netns_name "$1")
	ip link set "$(netns_link "$1")" up
	ip -n "$ns" addr add "$2" dev eth0
	ip -n "$ns" link set eth0 up
	ip -n "$ns" link set lo up
}

# netns_create NAME [N]: make it and the link. Sets NETNS_IP, its address, and
# NETNS_HOST_IP, the address of this side: of the subnet 10.231.N.0, or of a free one.
netns_create() {
	local n lock
	netns_veth "$1" || return 1
	netns_subnet "${2:-1}"
	NETNS_HOST_IP=10.231.$n.1 NETNS_IP=10.231.$n.2
	export NETNS_HOST_IP NETNS_IP
	ip addr add "$NETNS_HOST_IP/30" dev "$(netns_link "$1")"
	exec {lock}>&-
	netns_up_at "$1" "$NETNS_IP/30"
}

# netns_bridge NAME [N]: a bridge that namespaces of netns_join are on, where all reach
# each other. Sets NETNS_HOST_IP, the address of this side on it.
netns_bridge() {
	local n lock bridge
	bridge=$(netns_link "$1")
	bst_require ip || return 1
	# an address of its own: one taken from the ports changes when a port comes
	ip link add "$bridge" address 02:00:00:00:00:01 type bridge || return 1
	bst_defer netns_bridge_delete "$1"
	netns_subnet "${2:-1}"
	NETNS_HOST_IP=10.231.$n.1
	export NETNS_HOST_IP
	ip addr add "$NETNS_HOST_IP/24" dev "$bridge"
	exec {lock}>&-
	ip link set "$bridge" up
}

# netns_join BRIDGE NAME K: make namespace NAME, at the end of a link of its own to the
# bridge. Sets NETNS_IP, its address there, which ends in K.
netns_join() {
	local host
	host=$(ip -4 -o addr show dev "$(netns_link "$1")" | sed -n 's,.* inet \([0-9.]*\)/.*,\1,p')
	netns_veth "$2" || return 1
	NETNS_IP=${host%.*}.$3
	export NETNS_IP
	ip link set "$(netns_link "$2")" master "$(netns_link "$1")" || return 1
	netns_up_at "$2" "$NETNS_IP/24"
}

netns_bridge_delete() {
	ip link del "$(netns_link "$1")" 2>/dev/null || :
}

# netns_rate NAME RATE: shape both directions: 200mbit, 1gbit, or none.
netns_rate() {
	local ns link
	ns=$(netns_name "$1") link=$(netns_link "$1")
	tc -n "$ns" qdisc del dev eth0 root 2>/dev/null || :
	tc qdisc del dev "$link" root 2>/dev/null || :
	[ "$2" != none ] || return 0
	tc -n "$ns" qdisc add dev eth0 root tbf rate "$2" burst 256kb latency 50ms &&
		tc qdisc add dev "$link" root tbf rate "$2" burst 256kb latency 50ms
}

# netns_exec NAME COMMAND [ARG...]: run it inside (exec'ed when in a subshell,
# so that bst_spawn NAME2 netns_exec ... is to be avoided: use netns_prefix).
netns_exec() {
	local ns
	ns=$(netns_name "$1")
	shift
	ip netns exec "$ns" "$@"
}

# netns_prefix NAME: print the command prefix that enters it and execs.
netns_prefix() {
	echo "ip netns exec $(netns_name "$1")"
}

# netns_rx_bytes NAME: what this side has received over the link so far.
netns_rx_bytes() {
	cat "/sys/class/net/$(netns_link "$1")/statistics/rx_bytes"
}

# netns_down NAME, netns_up NAME: cut the link, and join it again.
netns_down() {
	ip link set "$(netns_link "$1")" down
}

netns_up() {
	ip link set "$(netns_link "$1")" up
}

netns_delete() {
	local ns
	ns=$(netns_name "$1")
	[ -e "/run/netns/$ns" ] || return 0
	ip link del "$(netns_link "$1")" 2>/dev/null || :
	ip netns del "$ns"
}
