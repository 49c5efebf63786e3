# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# hdfstool.bash: the client of HDFS by itself, for tests. Needs common.bash and hdfs.bash.

hdfstool_options=() hdfstool_timeout=60

# tool ARG...: hdfstool; what it says of itself is in $BST_ROOT/stats.
tool() {
	timeout "$hdfstool_timeout" "$BOOTSEER_BUILDDIR/tests/lib/hdfstool" --conf "$HDFS_CONF" \
		"${hdfstool_options[@]}" --stats "$@" 2>"$BST_ROOT/stats" || {
		local rc=$?
		grep -v ^bytes= "$BST_ROOT/stats"
		return "$rc"
	}
}

# stat_of NAME: of the last run.
stat_of() {
	sed -n "s/.*\b$1=\([0-9]*\).*/\1/p" "$BST_ROOT/stats"
}

# refused ERRNO ARG...
refused() {
	run tool "${@:2}"
	# shellcheck disable=SC2154 # run sets them
	[ "$status" = 1 ] && [[ $output == "$1":* ]]
}
