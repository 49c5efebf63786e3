# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# lib.sh: what the scripts in contrib share. Sourced, never run.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034
jobs=${JOBS:-$(nproc)}

say() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
	say "$*"
	exit 1
}

# bootstrap: make configure when it is absent or older than what it comes from.
bootstrap() {
	if [ ! -x "$top/configure" ] ||
		[ -n "$(find "$top/configure.ac" "$top/Makefile.am" "$top/src" "$top/tests" \
			\( -name configure.ac -o -name Makefile.am -o -name '*.mk' \) \
			-newer "$top/configure" -print -quit 2>/dev/null)" ]; then
		(cd "$top" && autoreconf -fi)
	fi
}

# give_back: what root has made in somebody else's checkout is theirs, to go on with.
give_back() {
	[ "$(id -u)" = 0 ] && [ "$(stat -c %u "$top")" != 0 ] || return 0
	find "$top" -xdev -user 0 \( -type d -o -links 1 \) -exec chown -h --reference="$top" {} +
}

# configure_in DIR [OPTION...]: configure out of tree in DIR, unless it was
# configured there with the same options by the same configure script.
configure_in() {
	local dir=$1 stamp
	shift
	stamp="$* $(cksum <"$top/configure")"
	mkdir -p "$dir"
	if [ ! -f "$dir/Makefile" ] || [ "$(cat "$dir/.configured" 2>/dev/null)" != "$stamp" ]; then
		(cd "$dir" && "$top/configure" "$@") && printf '%s\n' "$stamp" >"$dir/.configured"
	fi
}
