# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# node.bash: a node of its own: configuration, run directory, cache, bootseerd.
#
# node_conf writes a configuration below BST_ROOT and exports BOOTSEER_CONFIG, which
# bootseer, bootseerctl and what they start read. Needs common.bash.

# node_conf [LINE...]: each LINE is "SECTION KEY = VALUE". Layouts below BST_ROOT and the
# tests' cached images are allowed as sources.
node_conf() {
	local line section
	BOOTSEER_CONFIG=$BST_ROOT/bootseer.conf
	export BOOTSEER_CONFIG
	{
		printf '[node]\nrun_dir = %s\ncache_dir = %s\nuser = nobody\ndaemon = %s\n' \
			"$BST_RUN" "$BST_CACHE" "$BOOTSEER_BUILDDIR/bootseerd"
		printf '[policy]\nallow_dirs = %s\n' "$BST_ROOT"
		for line; do
			section=${line%% *}
			printf '[%s]\n%s\n' "$section" "${line#* }"
		done
	} >"$BOOTSEER_CONFIG"
	chmod 644 "$BOOTSEER_CONFIG"
	chmod 755 "$BST_CACHE"
	bst_defer node_stop
}

# node_start: bootseerd as the shim starts it.
node_start() {
	bootseerd --config "$BOOTSEER_CONFIG" --background
}

# node_pids: every process of this node's bootseerd.
node_pids() {
	pgrep -f -- "bootseerd.*--config $BOOTSEER_CONFIG" || :
}

# node_pid ROLE: supervisor, keeper or worker, as the daemon says.
node_pid() {
	bootseerctl status --json | jq -r ".$1.pid"
}

# node_status FILTER: of the status as JSON.
node_status() {
	bootseerctl status --json | jq -r "$1"
}

node_gone() {
	[ -z "$(node_pids)" ]
}

# node_stop: SIGTERM as a service manager sends it; what is left is killed.
node_stop() {
	local pid
	pid=$(node_pid supervisor 2>/dev/null) || :
	[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null || :
	bst_wait 5 node_gone || :
	while ! node_gone; do
		for pid in $(node_pids); do
			kill -KILL "$pid" 2>/dev/null || :
		done
	done
	# so that the log of a failed test shows it
	sed 's/^/bootseerd.log: /' "$BST_RUN/bootseerd.log" 2>/dev/null || :
	return 0
}

# node_attach NAME DIGEST DIR SOURCE...: reads an image without a container.
node_attach() {
	local name=$1 digest=$2 dir=$3
	shift 3
	mkdir -p "$dir"
	"$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "$name" "$digest" "$dir" "$@" || return 1
	bst_defer node_detach "$dir"
}

# node_detach DIR: again; done already is fine.
node_detach() {
	! mountpoint -q "$1" || umount -l "$1"
}

# node_release NAME
node_release() {
	"$BOOTSEER_BUILDDIR/tests/lib/bst-acquire" "$BST_RUN" "$1"
}

# convert SRC DST [OPTION...]: sets digest, that of the artifact.
convert() {
	bootseerctl image convert "$@" --json 2>"$BST_LOG/convert.log" >"$BST_LOG/convert.json" || {
		cat "$BST_LOG/convert.log"
		return 1
	}
	digest=$(jq -r '.images[0].artifact' "$BST_LOG/convert.json")
	export digest
}

# node_tree DIR MIB SEED: files of all sizes, so many MiB together, that do not compress.
node_tree() {
	python3 - "$@" <<'P'
import os, random, sys
top, left, rand = sys.argv[1], int(sys.argv[2]) << 20, random.Random(int(sys.argv[3]))
n = 0
while left > 0:
    size = min(left, rand.choice([1, 100, 4096, 5000, 70000, 1 << 20, 9 << 20, 33 << 20]))
    folder = f"{top}/d{n % 17}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/f{n}", "wb") as file:
        file.write(rand.randbytes(size))
    left -= size
    n += 1
P
}
