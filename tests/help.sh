#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the programs say of themselves stands in the manual pages: commands and their
# options, spans of the timeline. (Keys of bootseer.conf and annotations: unit tests.)
# Help goes to standard output, errors to standard error, in 80 columns.
set -u
src=${top_srcdir:-.}
build=$(cd "${top_builddir:-.}" && pwd)
man=$src/src/man
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

complain() {
	echo "$*"
	bad=1
}

# section PAGE TITLE: the lines of a subsection.
section() {
	awk -v title=".Ss $2" '/^\.S[sh] / { on = $0 == title; next } on' "$1"
}

# check_help PAGE TITLE COMMAND...: its --help, whose options stand in that subsection
# of the page, or in all of it when TITLE is empty.
check_help() {
	local page=$man/$1 title=$2 text option
	shift 2
	"$build/$1" "${@:2}" --help >"$tmp/out" 2>"$tmp/err" </dev/null || complain "$* --help: exit code $?"
	[ -s "$tmp/out" ] || complain "$* --help: nothing on standard output"
	[ ! -s "$tmp/err" ] || complain "$* --help: $(cat "$tmp/err")"
	awk 'length > 80' "$tmp/out" | while read -r text; do echo "$* --help: over 80 columns: $text"; done
	[ -z "$(awk 'length > 80' "$tmp/out")" ] || bad=1
	text=$(if [ -n "$title" ]; then section "$page" "$title"; else cat "$page"; fi)
	# "Options: as image info"
	[[ $text != *"Options: as"* ]] || text+=$(section "$page" "image info")
	while read -r option; do
		[ "$option" != --help ] || [ -z "$title" ] || continue
		grep -qE "^\.(It|Op|Nm)? ?.*Fl (.* )?-${option#--}( |\$)|^\.It Fl .*, ${option#-}( |\$)" <<<"$text" ||
			complain "$page${title:+, $title}: no $option"
	done < <(grep -oE -- '^ +(-[a-z], +)?--[a-z][a-z-]*' "$tmp/out" | grep -oE -- '--.*')
	# and what is wrong is said elsewhere
	"$build/$1" "${@:2}" --no-such-option >"$tmp/out" 2>"$tmp/err" </dev/null
	[ $? = 2 ] || complain "$* --no-such-option: exit code is not 2"
	[ ! -s "$tmp/out" ] || complain "$* --no-such-option: something on standard output"
	[ -s "$tmp/err" ] || complain "$* --no-such-option: nothing on standard error"
}

# commands WORD...: what its help lists.
commands() {
	"$build/$1" "${@:2}" --help | sed -n '/^commands:/,/^[^ ]/s/^  \([a-z-]*\) .*/\1/p'
}

check_help bootseerd.8 '' bootseerd
check_help mount.bootseer-hdfs.8 '' mount.bootseer-hdfs
for c in $(commands bootseerctl | grep -vxE 'image|hot|ckpt') $(commands bootseerctl image | sed 's/^/image+/') \
	$(commands bootseerctl hot | sed 's/^/hot+/') $(commands bootseerctl ckpt | sed 's/^/ckpt+/'); do
	# shellcheck disable=SC2086 # "image" and its own command are two words
	check_help bootseerctl.1 "${c/+/ }" bootseerctl ${c/+/ }
	grep -qx "\.Cm ${c/+/ }" "$man/bootseerctl.1" || complain "bootseerctl.1: no synopsis of ${c/+/ }"
done

# the names of spans, each with its meaning
tr '\n\t' '  ' <"$src/src/obs/timeline.c" | grep -oE '\[BS_[A-Z_]+\] = +\{ "[^"]*", +"[^"]*" \}' |
	sed 's/^[^"]*"\([^"]*\)", *"\([^"]*\)" }$/.It Li \1\n\2/' >"$tmp/spans"
[ "$(wc -l <"$tmp/spans")" -gt 20 ] || complain "src/obs/timeline.c: its table is not understood here"
sed -n '/^Spans and marks are:/,/^\.El/p' "$man/bootseerctl.1" | sed '1,2d;$d' >"$tmp/shown"
diff -u "$tmp/spans" "$tmp/shown" || complain "bootseerctl.1: other spans than in src/obs/timeline.c"

# the unit's capabilities are those of the roles
diff -u <(grep -oE '\<CAP_[A-Z_]+ }' "$src/src/kern/caps.c" | cut -d' ' -f1 | sort -u) \
	<(sed -n 's/^CapabilityBoundingSet=//p' "$src/contrib/systemd/bootseerd.service.in" | tr ' ' '\n' | sort -u) ||
	complain "bootseerd.service: other capabilities than in src/kern/caps.c"

# the pages themselves
for page in "$man"/*.[1-8]; do
	grep -qF "${page##*/}" "$man/local.mk" || complain "src/man/local.mk: no ${page##*/}"
	command -v mandoc >/dev/null || continue
	mandoc -T lint "$page" 2>/dev/null | grep -v 'referenced manual not found' >"$tmp/lint" &&
		complain "$(cat "$tmp/lint")"
done
exit $bad
