#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls that the house does not use, and descriptors that would leak into a child.
set -eu
cd "${top_srcdir:-.}"
bad=0
check() { # PATTERN REMEDY [FILES THAT MAY]
	found=$(grep -nE "$1" src/*/*.[ch] hooks/*.[ch] 2>/dev/null | grep -vE "${3:-^$}" || true)
	if [ -n "$found" ]; then
		printf '%s\n  -> %s\n' "$found" "$2"
		bad=1
	fi
}
check '\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|alloca|atoi|atol|atoll|basename|mktemp|tmpnam)\(' \
	'use base/buf, base/str, base/parse, base/path'
check '\b(strtol|strtoul|strtoll|strtoull)\(' 'use base/parse' '^src/base/parse'
check '\bgetenv\(' 'use secure_getenv'
check '\b(open|openat)\([^)]*O_(RDONLY|WRONLY|RDWR|PATH)[^)]*\)' 'add O_CLOEXEC' 'CLOEXEC|path_open|O_TMPFILE'
check '\bfopen\([^)]*"[rwa]+"' 'add e to the mode'
check 'yajl/' 'only base/json and base/jsonw know yajl' '^src/base/json'
# a clock that is set must hang nobody and end nothing too soon
check '\b(CLOCK_REALTIME|gettimeofday|bs_clock_wall_ns)\b|\btime\((NULL|0|&)' \
	'deadlines are bs_clock_ns; wall time is for people, and for what others wrote down' \
	'^src/(base/(clock|log)|obs/timeline|kern/seccomp|net/(http|layout_files)|daemon/leases|hdfs/writer|cmd/ctl-hot-trace)\.'
check 'pthread_(cond|mutex|rwlock)_(timed|clockwait)|sem_timedwait' 'bs_clock_cond_wait' \
	'^src/(base/clock|daemon/broker)\.c'
check '\b(TODO|FIXME|XXX)\b' 'file an issue instead'
exit $bad
