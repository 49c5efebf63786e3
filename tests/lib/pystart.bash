# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# pystart.bash: containers of the Python image that say something, and the hot packs of
# their starts in $REGISTRY, repository py. Needs common.bash, registry.bash, images.bash,
# node.bash and lazy.bash.
# shellcheck disable=SC2034,SC2154 # for who loads it; set by bats

script='import json, decimal, email.message, hashlib; print(json.dumps([40 + 2]), decimal.Decimal(1) / 3)'
said='[42] 0.3333333333333333333333333333'

# run_hot ID: the bundle $BST_ROOT/b runs $script.
run_hot() {
	run -0 lazy_run run -b "$BST_ROOT/b" "$1"
	[ "$output" = "$said" ]
}

# another_node: nothing of the image is cached any more.
another_node() {
	node_stop
	rm -rf "${BST_CACHE:?}"/*
}

# hot_tags: of the packs in the registry.
hot_tags() {
	curl -sf "http://$REGISTRY/v2/py/tags/list" | jq -r '.tags[] | select(startswith("bootseer-hot-"))'
}

# hot_packs: how many there are.
hot_packs() {
	hot_tags | wc -l
}

# published: one is.
published() {
	[ "$(hot_packs)" = 1 ]
}

# hot_manifest: of that one.
hot_manifest() {
	curl -sf -H 'Accept: application/vnd.oci.image.manifest.v1+json' \
		"http://$REGISTRY/v2/py/manifests/$(hot_tags)"
}

# hot_state FILTER: of the node's packs and recordings.
hot_state() {
	node_status ".served.hot[] | $1"
}

streamed() {
	hot_state .state | grep -x streamed
}
