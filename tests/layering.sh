#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every #include of ours goes to the file's own folder or to one of a lower rank.
set -eu
cd "${top_srcdir:-.}"

rank() {
	case $1 in
	base) echo 0 ;;
	obs) echo 1 ;;
	kern | net | oci | ctl) echo 2 ;;
	image | cache) echo 3 ;;
	hot | deps | hdfs) echo 4 ;;
	rootfs) echo 5 ;;
	daemon | shim) echo 6 ;;
	cmd) echo 7 ;;
	*) echo unknown ;;
	esac
}

bad=0
for file in src/*/*.[ch]; do
	folder=${file#src/}
	folder=${folder%%/*}
	mine=$(rank "$folder")
	if [ "$mine" = unknown ]; then
		echo "$file: folder '$folder' has no rank in tests/layering.sh"
		bad=1
		continue
	fi
	# shellcheck disable=SC2013 # folders are words
	for other in $(sed -n 's/^#include "\([a-z]*\)\/[^"]*".*/\1/p' "$file" | sort -u); do
		[ "$other" = "$folder" ] && continue
		theirs=$(rank "$other")
		if [ "$theirs" = unknown ] || [ "$theirs" -ge "$mine" ]; then
			echo "$file: includes \"$other/…\" (rank $theirs) from rank $mine"
			bad=1
		fi
	done
done
exit $bad
