# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# common.bash: what every integration test starts from. Loaded by bats files:
#
#	load ../lib/common.bash
#	setup() { bst_setup; }
#	teardown() { bst_teardown; }
#
# bst_setup gives the test a root directory of its own. All that a test makes
# goes below it, and what must be undone is registered with bst_defer at once.
# bst_teardown undoes it in reverse order, then looks for what is still there: a
# mount, process, network namespace, cgroup or undeletable file fails the test.
# (bats runs teardown inside a trap, where a bare "return" gives the status from
# before the trap: in functions for teardown each return has its number.)
# Both also work in setup_file/teardown_file, for a server that all tests of a
# file share. Variables after bst_setup, all exported:
#   BST_ROOT   the root (on a disk file system; the path is short, for sockets)
#   BST_RUN BST_STATE BST_CACHE BST_LOG   directories below it for what is tested
#   BST_ID     a word that is unique to this root, for names outside it

bst_lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bst_top=$(cd "$bst_lib/../.." && pwd)
BOOTSEER_BUILDDIR=${BOOTSEER_BUILDDIR:-$bst_top/build-check}
export BOOTSEER_BUILDDIR

# /var/tmp and not /tmp: a file-backed EROFS mount cannot be on a tmpfs.
bst_setup() {
	umask 022
	BST_ROOT=$(mktemp -d /var/tmp/bst-XXXXXX) || return 1
	chmod 755 "$BST_ROOT"
	BST_ID=${BST_ROOT##*-}
	BST_RUN=$BST_ROOT/run BST_STATE=$BST_ROOT/state
	BST_CACHE=$BST_ROOT/cache BST_LOG=$BST_ROOT/log
	mkdir "$BST_RUN" "$BST_STATE" "$BST_CACHE" "$BST_LOG" "$BST_ROOT/pid"
	: >"$BST_ROOT/defer"
	PATH=$BOOTSEER_BUILDDIR:$PATH
	export BST_ROOT BST_ID BST_RUN BST_STATE BST_CACHE BST_LOG PATH
}

# bst_skip REASON: skip the test; a failure where skipping is not allowed.
bst_skip() {
	if [ "${BOOTSEER_TEST_STRICT:-}" = 1 ]; then
		echo "not allowed to skip: $*"
		return 1
	fi
	skip "$*"
}

# bst_require COMMAND...: skip unless all the commands are there.
bst_require() {
	local c
	for c; do
		command -v "$c" >/dev/null || bst_skip "no $c" || return 1
	done
}

# bst_defer COMMAND [ARG...]: run it at teardown, last registered first.
bst_defer() {
	printf '%q ' "$@" >>"$BST_ROOT/defer"
	echo >>"$BST_ROOT/defer"
}

# bst_wait SECONDS COMMAND [ARG...]: until COMMAND succeeds; fails when late.
bst_wait() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		if [ $SECONDS -ge "$end" ]; then
			echo "waited in vain for: $*"
			return 1
		fi
		sleep 0.05
	done
}

# bst_spawn NAME COMMAND [ARG...]: start a server in the background. Its output
# goes to $BST_LOG/NAME.log, it is stopped at teardown. Its pid: bst_pid NAME.
bst_spawn() {
	local name=$1
	shift
	# bats waits for whoever holds its descriptors 3 and 4
	"$@" >>"$BST_LOG/$name.log" 2>&1 </dev/null 3>&- 4>&- &
	echo $! >"$BST_ROOT/pid/$name"
	bst_defer bst_stop "$name"
}

bst_pid() {
	cat "$BST_ROOT/pid/$1"
}

bst_alive() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
	[ -n "$state" ] && [ "$state" != Z ]
}

bst_dead() {
	! bst_alive "$1"
}

# bst_stop NAME [SIGNAL]: end what bst_spawn started; KILL after ten seconds.
bst_stop() {
	local pid
	pid=$(bst_pid "$1" 2>/dev/null) || return 0
	rm -f "$BST_ROOT/pid/$1"
	kill -s "${2:-TERM}" "$pid" 2>/dev/null || return 0
	bst_wait 10 bst_dead "$pid" && return 0
	kill -s KILL "$pid"
	echo "$1 (pid $pid) had to be killed"
	return 1
}

# bst_free_port [ADDRESS]: print a TCP port that nobody listens on.
bst_free_port() {
	/usr/bin/python3 -c 'import socket, sys
s = socket.socket()
s.bind((sys.argv[1], 0))
print(s.getsockname()[1])' "${1:-127.0.0.1}"
}

# bst_mounts: the mounts below the test's root, in any mount namespace; with
# BOOTSEER_CHECK_SHARED=1 in ours: others' namespaces may have a copy of anything.
bst_mounts() {
	local where=(/proc/[0-9]*/mountinfo)
	[ "${BOOTSEER_CHECK_SHARED:-}" != 1 ] || where=(/proc/self/mountinfo)
	awk -v root="$BST_ROOT/" 'index($5 "/", root) == 1 { print $5 }' \
		"${where[@]}" 2>/dev/null | sort -ru
}

# bst_processes: pids of processes that have to do with the test's root, by
# command line, environment, or working directory. The test itself does not count.
bst_processes() {
	BST_ROOT=$BST_ROOT /usr/bin/python3 - $$ "$BASHPID" <<'EOF'
import os, sys

root = os.environ["BST_ROOT"].encode()


def parents(pid):
    while pid > 0:
        yield pid
        with open("/proc/%d/stat" % pid) as f:
            pid = int(f.read().rsplit(")", 1)[1].split()[1])


own = set(parents(os.getpid())) | set(parents(int(sys.argv[1])))
for name in os.listdir("/proc"):
    if not name.isdigit() or int(name) in own:
        continue
    try:
        with open("/proc/%s/stat" % name) as f:
            if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                continue
        text = os.readlink(b"/proc/%s/cwd" % name.encode())
        for part in ("cmdline", "environ"):
            with open("/proc/%s/%s" % (name, part), "rb") as f:
                text += b"\0" + f.read()
    except OSError:
        continue
    if root in text:
        print(name)
EOF
}

# bst_leftovers: print what is left of the test and remove it; fail if any.
bst_leftovers() {
	local left=0 item
	for item in $(bst_processes); do
		echo "left process: $item $(tr '\0' ' ' <"/proc/$item/cmdline" | cut -c1-200)"
		kill -s KILL "$item" 2>/dev/null
		left=1
	done
	for item in $(bst_mounts); do
		echo "left mount: $item"
		umount -l "$item" 2>/dev/null
		left=1
	done
	for item in /run/netns/*"$BST_ID"*; do
		[ -e "$item" ] || continue
		echo "left network namespace: $item"
		ip netns del "${item##*/}"
		left=1
	done
	while read -r item; do
		echo "left cgroup: $item"
		rmdir "$item"
		left=1
	done < <(find /sys/fs/cgroup -depth -type d -path "*$BST_ID*")
	return $left
}

bst_teardown() {
	local rc=0 line
	[ -n "${BST_ROOT:-}" ] || return 0
	if [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -n "${BATS_TEST_NAME:-}" ]; then
		tail -n 15 "$BST_LOG"/*.log 2>/dev/null | cut -c1-300
	fi
	while read -r line; do
		eval "$line" || {
			echo "clean-up failed: $line"
			rc=1
		}
	done < <(tac "$BST_ROOT/defer")
	bst_leftovers || rc=1
	rm -rf --one-file-system "$BST_ROOT" || rc=1
	[ ! -e "$BST_ROOT" ] || rc=1
	return $rc
}
