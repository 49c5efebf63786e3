# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# cache.bash: where the tests keep what is slow to make and never changes.
#
# Engines built from source and sample images are kept outside the tree, one
# directory for each version or content key, so that a second run finds them.
# A directory appears there only when it is complete (it is made beside its
# final name and renamed), and a lock keeps two makers apart.

# cache_root: the directory that holds the cache.
cache_root() {
	printf '%s/bootseer-tests\n' "${XDG_CACHE_HOME:-/var/cache}"
}

# cache_entry KEY MAKER [ARG...]: print the path of cache entry KEY. When it is
# absent, MAKER ARG... DIR is run to fill the new directory DIR first.
# MAKER's output goes to stderr; when it fails nothing is kept.
cache_entry() {
	local key=$1 root final tmp lock
	shift
	root=$(cache_root) && mkdir -p "$root" || return 1
	final=$root/$key
	if [ ! -d "$final" ]; then
		exec {lock}>"$root/.lock-$key" || return 1
		flock "$lock" || return 1
		if [ ! -d "$final" ]; then
			tmp=$root/.new-$key
			rm -rf --one-file-system "$tmp"
			mkdir -p "$tmp" || return 1
			if ! "$@" "$tmp" {lock}>&- >&2; then
				rm -rf --one-file-system "$tmp"
				exec {lock}>&-
				return 1
			fi
			mv -T "$tmp" "$final" || return 1
		fi
		exec {lock}>&-
	fi
	printf '%s\n' "$final"
}

# cache_find_go: put a Go tool chain on PATH, or fail saying that there is none.
cache_find_go() {
	command -v go >/dev/null 2>&1 && return 0
	PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
	command -v go >/dev/null 2>&1 && return 0
	echo "no Go tool chain found: it builds engines that Debian does not have" >&2
	return 1
}
