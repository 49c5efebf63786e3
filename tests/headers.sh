#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles by itself.
set -eu
bad=0
for header in "${top_srcdir:-.}"/src/*/*.h; do
	# shellcheck disable=SC2086 # a list of flags
	printf '#include "config.h"\n#include "%s"\n' "${header#"${top_srcdir:-.}"/src/}" |
		${CC:-cc} ${TEST_CPPFLAGS:-} -Wno-unused -fsyntax-only -x c - || {
		echo "$header does not compile alone"
		bad=1
	}
done
exit $bad
