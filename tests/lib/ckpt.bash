# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# ckpt.bash: mounts of checkpoint trees, for tests. Needs common.bash and hdfs.bash.

# ckpt_mount NAME PATH [OPTION,...]: mounts PATH of the test's HDFS at $BST_ROOT/NAME, as root
# of HDFS unless the options say who. Gone at teardown.
ckpt_mount() {
	local dir=$BST_ROOT/$1
	mkdir -p "$dir"
	bst_defer ckpt_umount "$1"
	"$BOOTSEER_BUILDDIR/mount.bootseer-hdfs" "$HDFS_URI$2" "$dir" \
		-o "user=root,conf=$HDFS_CONF,log=$BST_LOG/ckpt-$1.log${3:+,$3}" || {
		cat "$BST_LOG/ckpt-$1.log"
		return 1
	}
}

# ckpt_umount NAME: and its process has ended.
ckpt_umount() {
	local dir=$BST_ROOT/$1 pid
	pid=$(ckpt_pid "$1") || pid=
	! mountpoint -q "$dir" 2>/dev/null || umount "$dir" || umount -l "$dir" || return 1
	[ -z "$pid" ] || ckpt_ended "$pid"
}

# ckpt_ended PID: it ends, now that its mount is gone. On a machine that is shared with others
# their mount namespaces may have a copy of the mount, and so keep it.
ckpt_ended() {
	if [ "${BOOTSEER_CHECK_SHARED:-}" = 1 ]; then
		bst_wait 5 bst_dead "$1" || kill -s KILL "$1"
	fi
	bst_wait 30 bst_dead "$1"
}

# ckpt_pid NAME: of the process that serves it.
ckpt_pid() {
	local pid
	for pid in /proc/[0-9]*; do
		[[ $(readlink "$pid/exe") == */mount.bootseer-hdfs* ]] || continue
		tr '\0' '\n' <"$pid/cmdline" | grep -qxF "$BST_ROOT/$1" || continue
		echo "${pid#/proc/}"
		return
	done
	return 1
}

# servers: of the mounts that this node's bootseerd (node.bash) has, their pids.
servers() {
	pgrep -f -- "bootseerd --role ckpt .*--config $BOOTSEER_CONFIG" || :
}

nothing_served() {
	[ -z "$(servers)" ]
}

# other_server PID: another has taken its place.
other_server() {
	[ -n "$(servers)" ] && [ "$(servers)" != "$1" ]
}
