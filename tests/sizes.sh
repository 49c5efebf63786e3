#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The budgets of size: files <= 800 lines, headers <= 250, functions <= 100 lines.
set -eu
cd "${top_srcdir:-.}"
bad=0
for file in src/*/*.[ch] hooks/*.[ch]; do
	[ -f "$file" ] || continue
	lines=$(wc -l <"$file")
	max=800
	case $file in *.h) max=250 ;; esac
	if [ "$lines" -gt "$max" ]; then
		echo "$file: $lines lines, the budget is $max"
		bad=1
	fi
done
# a function begins with a line that starts in column 1 and ends at the next "}" there
awk '
	FNR == 1 { start = 0 }
	/^[a-z].*\(/ && !/;$/ { name = $0; start = FNR }
	/^}/ {
		if (start && FNR - start > 100) {
			printf "%s:%d: a function of %d lines, the budget is 100: %s\n", FILENAME, start, FNR - start, name
			bad = 1
		}
		start = 0
	}
	END { exit bad }' src/*/*.c || bad=1
exit $bad
