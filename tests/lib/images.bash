# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# images.bash: sample images as OCI layout directories, made on this machine
# from Debian packages. Each is made once and kept in the cache (cache.bash);
# the name says what is in it, the key what it was made from. Each function
# prints the layout's directory; the image in it has the tag "latest". Only for
# reading: copy it before changing it.

images_lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lib/cache.bash
. "$images_lib/cache.bash"

# images_key FILE|FUNCTION|WORD...: a short key from the content of all these.
images_key() {
	local x
	for x; do
		if [ -f "$x" ]; then
			cat "$x"
		else
			# a function's text, where the word is the name of one
			declare -f -- "$x" || echo "$x"
		fi
	done | sha256sum | cut -c1-12
}

images_tar() {
	tar --format=posix --pax-option=delete=atime,delete=ctime --sort=name \
		--numeric-owner --xattrs --xattrs-include='*' -C "$1" -c .
}

# image_busybox: one layer of Debian's static busybox, with its commands as
# symbolic links, root and one ordinary user (1000), and a /tmp.
image_busybox() {
	cache_entry "busybox-$(images_key image_make_busybox images_tar "$images_lib/ocilayout.py")" image_make_busybox
}

image_make_busybox() {
	local out=$1 root=$1/root name
	mkdir -p "$root"/{bin,dev,etc,home/user,proc,root,run,sys,tmp,usr/bin,usr/sbin,var}
	if dpkg -L busybox-static 2>/dev/null | grep -qx /bin/busybox &&
		[ "$(dpkg-query -W -f '${db:Status-Status}' busybox-static)" = installed ]; then
		cp /bin/busybox "$root/bin/"
	else
		(cd "$out" && apt-get download -qq busybox-static && dpkg-deb -x busybox-static*.deb deb &&
			cp deb/bin/busybox root/bin/ && rm -rf deb ./*.deb) || return 1
	fi
	for name in $("$root/bin/busybox" --list); do
		[ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
	done
	ln -s busybox "$root/bin/sh" 2>/dev/null
	printf 'root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nuser:x:1000:\nextra:x:1001:user\n' >"$root/etc/group"
	chmod 1777 "$root/tmp"
	chown -h 1000:1000 "$root/home/user"
	find "$root" -exec touch -hd '2024-01-01 00:00:00 UTC' {} +
	images_tar "$root" >"$out/layer.tar" &&
		"$images_lib/ocilayout.py" "$out" "$out/layer.tar" && rm -rf "$root" "$out/layer.tar"
}

# image_pause: what holds a pod together.
image_pause() {
	cache_entry "pause-$(images_key image_make_pause image_make_busybox images_tar "$images_lib/ocilayout.py")" \
		image_make_pause
}

image_make_pause() {
	local out=$1 base
	base=$(image_busybox) || return 1
	gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" 0)" >"$out/0.tar" &&
		"$images_lib/ocilayout.py" --config '{"Cmd":["/bin/sleep","1000000"]}' "$out" "$out/0.tar" &&
		rm "$out/0.tar"
}

# image_python: two layers: Debian minbase, and python3 with its standard library.
image_python() {
	cache_entry "python-$(images_key image_make_python images_tar "$images_lib/ocilayout.py")" image_make_python
}

image_make_python() {
	local out=$1 base=$1/base upper=$1/upper merged=$1/merged
	mkdir "$upper" "$out/work" "$merged"
	debootstrap --variant=minbase bookworm "$base" || return 1
	rm -rf "$base"/var/cache/apt/archives/*.deb "$base"/var/lib/apt/lists/* "$base"/var/log/*
	mount -t overlay overlay -o "lowerdir=$base,upperdir=$upper,workdir=$out/work" "$merged" || return 1
	cp /etc/resolv.conf "$merged/etc/resolv.conf"
	# how this machine reaches its mirror is nothing for the image
	cp -r /etc/apt/apt.conf.d "$merged/tmp/apt"
	# shellcheck disable=SC2016
	chroot "$merged" sh -c 'export DEBIAN_FRONTEND=noninteractive
		a="apt-get -qq -o Dir::Etc::Parts=/tmp/apt -o Dpkg::Use-Pty=0"
		$a update && $a install -y --no-install-recommends python3 &&
		apt-get clean && rm -rf /tmp/apt && rm -rf /var/lib/apt/lists/* /etc/resolv.conf /var/log/* &&
		python3 -m compileall -q /usr/lib/python3.11 || [ $? = 1 ]'
	local rc=$?
	umount "$merged"
	[ $rc = 0 ] || return $rc
	images_tar "$base" >"$out/1.tar" && images_overlay_tar "$upper" >"$out/2.tar" &&
		"$images_lib/ocilayout.py" --config '{"Cmd":["python3"],"WorkingDir":"/root"}' \
			"$out" "$out/1.tar" "$out/2.tar" || return 1
	rm -rf --one-file-system "$base" "$upper" "$merged" "$out/work" "$out"/[12].tar
}

# image_numpy: the Python image and a layer of scientific wheels, a few hundred MB.
image_numpy() {
	cache_entry "numpy-$(images_key image_make_python image_make_numpy images_tar "$images_lib/ocilayout.py")" image_make_numpy
}

image_make_numpy() {
	local out=$1 base site=$1/root/usr/local/lib/python3.11/dist-packages n tars=()
	base=$(image_python) || return
	/usr/bin/python3 -m pip install -q --no-compile --no-deps --only-binary=:all: --python-version 3.11 \
		--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 --target "$site" \
		numpy==2.4.6 scipy==1.17.1 pyarrow==26.0.1 || return
	# what pip leaves differs from run to run: dates
	find "$out/root" -exec touch -hd '2024-01-01 00:00:00 UTC' {} +
	for n in 0 1; do
		gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" $n)" >"$out/$n.tar" || return
		tars+=("$out/$n.tar")
	done
	images_tar "$out/root" >"$out/2.tar" || return
	"$images_lib/ocilayout.py" --config '{"Cmd":["python3"],"WorkingDir":"/root"}' \
		"$out" "${tars[@]}" "$out/2.tar" && rm -rf "$out/root" "$out"/[012].tar
}

# images_overlay_tar UPPER: an overlay's upper directory as an OCI layer.
images_overlay_tar() {
	local w
	find "$1" -type c | while IFS= read -r w; do
		[ "$(stat -c %t:%T "$w")" = 0:0 ] || continue
		rm "$w" && : >"${w%/*}/.wh.${w##*/}"
	done
	tar --format=posix --pax-option=delete=atime,delete=ctime --sort=name --numeric-owner \
		--xattrs --xattrs-include='*' --xattrs-exclude='trusted.*' -C "$1" -c .
}

# image_nasty [OPTION...]: what no image should contain and some do; options of
# mknasty.py, such as --engine-safe when containerd has to unpack it.
image_nasty() {
	cache_entry "nasty-$(images_key "$images_lib/mknasty.py" "$images_lib/ocilayout.py" "$@")" image_make_nasty "$@"
}

image_make_nasty() {
	local out=${*: -1}
	"$images_lib/mknasty.py" "${@:1:$#-1}" "$out"
}

# image_layers N: busybox with N - 1 more layers of one small file each.
image_layers() {
	cache_entry "layers-$1-$(images_key image_make_layers "$images_lib/ocilayout.py")" image_make_layers "$1"
}

image_make_layers() {
	local n=$1 out=$2 base i tars=()
	base=$(image_busybox) || return 1
	mkdir -p "$out/t/etc/layers"
	gzip -dc "$base/blobs/sha256/$(images_layer_digest "$base" 0)" >"$out/t/0.tar"
	tars=("$out/t/0.tar")
	for ((i = 1; i < n; i++)); do
		echo "layer $i" >"$out/t/etc/layers/$i"
		tar --format=posix --mtime='2024-01-01 UTC' --pax-option=delete=atime,delete=ctime \
			--numeric-owner -C "$out/t" -cf "$out/t/$i.tar" "./etc/layers/$i"
		tars+=("$out/t/$i.tar")
	done
	"$images_lib/ocilayout.py" "$out" "${tars[@]}" && rm -rf "$out/t"
}

# images_layer_digest LAYOUT N: the hex digest of its N-th layer, from 0.
images_layer_digest() {
	local m
	m=$(jq -r '.manifests[0].digest' "$1/index.json")
	jq -r ".layers[$2].digest" "$1/blobs/sha256/${m#sha256:}" | cut -d: -f2
}

# image_push LAYOUT HOST:PORT/REPO:TAG [SKOPEO-OPTION...]: copy to a registry.
image_push() {
	local from=$1 to=$2
	shift 2
	skopeo --insecure-policy copy -q --dest-tls-verify=false "$@" "oci:$from" "docker://$to"
}
