#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzz target over its corpus; a crash or a sanitizer report fails.
set -eu
bad=0
for target in "${top_builddir:-.}"/tests/fuzz/fuzz-*; do
	case $target in *.o | *.c | *.sh) continue ;; esac
	[ -x "$target" ] || continue
	corpus=${top_srcdir:-.}/tests/fuzz/corpus/${target##*/fuzz-}
	set -- "$corpus"/*
	if [ ! -e "$1" ]; then
		echo "${target##*/}: no corpus"
		bad=1
		continue
	fi
	"$target" "$@" >/dev/null || {
		echo "${target##*/}: failed"
		bad=1
	}
done
exit $bad
