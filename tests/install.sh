#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What "make install" puts where, and what the installed files say of it; and that another
# configure with other directories builds anew what knows them.
set -u
build=$(cd "${top_builddir:-.}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
bad=0

complain() {
	echo "$*"
	bad=1
}

# value VARIABLE: of the Makefile.
value() {
	# shellcheck disable=SC2016
	printf 'include Makefile\nprint-it:; @echo $(%s)\n' "$1" |
		make -s --no-print-directory -C "$build" -f - print-it
}

make -C "$build" install DESTDIR="$tmp" >"$tmp/log" 2>&1 || {
	tail -n 40 "$tmp/log"
	exit 1
}
bindir=$(value bindir) sbindir=$(value sbindir) sysconfdir=$(value sysconfdir)
mandir=$(value mandir) unitdir=$(value systemdunitdir)

for f in "$bindir/bootseerctl" "$sbindir/bootseer" "$sbindir/bootseerd"; do
	[ -x "$tmp$f" ] || complain "$f is not installed"
done
for f in "$mandir/man1/bootseerctl.1" "$mandir/man5/bootseer.conf.5" "$mandir/man8/bootseerd.8" \
	"$unitdir/bootseerd.service" "$unitdir/bootseerd.socket"; do
	[ -s "$tmp$f" ] || complain "$f is not installed"
done

grep -qx "ExecStart=$sbindir/bootseerd" "$tmp$unitdir/bootseerd.service" ||
	complain "bootseerd.service: $(grep ExecStart "$tmp$unitdir/bootseerd.service"), not $sbindir/bootseerd"
# what was to be replaced and was not
found=$(grep -nE '@[a-z_]+@|\$\{?(exec_)?prefix|\$\(' "$tmp$unitdir"/bootseerd.* || :)
[ -z "$found" ] || complain "$found"
for f in "$bindir/bootseerctl" "$sbindir/bootseer" "$sbindir/bootseerd"; do
	grep -qaF "$sysconfdir/bootseer/bootseer.conf" "$tmp$f" || complain "$f reads another file than $sysconfdir/bootseer/bootseer.conf"
done

# after configure with other directories
outdated() { # CHANGED TARGET
	make -q -C "$build" -W "$1" "$2" >"$tmp/log" 2>&1
	[ $? = 1 ] || complain "when $1 changes, $2 is not made anew"
}
outdated Makefile dirs.stamp
outdated dirs.h src/ctl/libctl.a
outdated dirs.h contrib/systemd/bootseerd.service
make -q -C "$build" dirs.h || complain "dirs.h is made anew each time"
exit $bad
