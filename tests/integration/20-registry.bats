#!/usr/bin/env bats
# 20-registry.bats: src/net against Debian's docker-registry, with and without
# faults between the two. tests/lib/repotool.c speaks for us.
# shellcheck disable=SC2030,SC2031,SC2154
# timeout: 400

load ../lib/common.bash
load ../lib/registry.bash

setup() {
	bst_setup
	tool=$BOOTSEER_BUILDDIR/tests/lib/repotool
	bst_require jq docker-registry
	[ -x "$tool" ] || bst_skip "no $tool (make check builds it)"
	MANIFEST=application/vnd.oci.image.manifest.v1+json
	INDEX=application/vnd.oci.image.index.v1+json
	unset DOCKER_CONFIG REGISTRY_AUTH_FILE http_proxy https_proxy
}

teardown() {
	bst_teardown
}

# make_blob BYTES: a random file at $BST_ROOT/blob; sets D (digest) and S (size)
make_blob() {
	head -c "$1" /dev/urandom >"$BST_ROOT/blob"
	D=sha256:$(sha256sum "$BST_ROOT/blob" | cut -d' ' -f1) S=$1
}

# proxied BYTES: registry, fault proxy and a blob in a/b; sets REPO (through the proxy)
proxied() {
	registry_start main
	make_blob "$1"
	"$tool" --plain "docker://$REGISTRY/a/b" put-blob "$BST_ROOT/blob" 2>/dev/null
	faultproxy_start p "$REGISTRY"
	REPO=docker://$FAULTPROXY/a/b
}

# make_manifest FILE [MEMBER]: a small image manifest over the blob
make_manifest() {
	printf '{"schemaVersion":2,"mediaType":"%s",%s"config":{"mediaType":"application/x","digest":"%s","size":%s},"layers":[]}' \
		"$MANIFEST" "${2:-}" "$D" "$S" >"$1"
}

# piece OFF LEN: sha256 of that part of the blob
piece() {
	tail -c +$(($1 + 1)) "$BST_ROOT/blob" | head -c "$2" | sha256sum
}

# refuses ERRNO COMMAND...: it fails, and says so
refuses() {
	local code=$1
	shift
	run --separate-stderr "$@"
	echo "$stderr"
	[ "$status" = 1 ]
	[[ ${stderr_lines[-1]} == "$code "* ]]
}

bats_require_minimum_version 1.5.0

@test "push and pull: blob, manifest, tags; the second push sends nothing" {
	registry_start main
	make_blob 3000000
	local repo=docker://$REGISTRY/a/b puts m digest
	[ "$("$tool" --plain "$repo" has "$D")" = 0 ]
	[ "$("$tool" --plain "$repo" put-blob "$BST_ROOT/blob" 2>/dev/null)" = "$D $S" ]
	"$tool" --plain "$repo" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	puts=$(grep -cE '"(POST|PUT|PATCH) ' "$BST_LOG/registry-main.log")
	"$tool" --plain "$repo" put-blob "$BST_ROOT/blob" 2>/dev/null
	[ "$(grep -cE '"(POST|PUT|PATCH) ' "$BST_LOG/registry-main.log")" = "$puts" ]
	m=$BST_ROOT/m
	make_manifest "$m"
	digest=sha256:$(sha256sum "$m" | cut -d' ' -f1)
	"$tool" --plain "$repo" put-manifest v1 "$MANIFEST" "$m"
	"$tool" --plain "$repo" get-manifest v1 2>"$BST_ROOT/type" | cmp - "$m"
	[ "$(cat "$BST_ROOT/type")" = "$MANIFEST $digest" ]
	"$tool" --plain "$repo" get-manifest "$digest" 2>/dev/null | cmp - "$m"
	[ "$("$tool" --plain "$repo" tags)" = v1 ]
	[ "$("$tool" --plain "docker://$REGISTRY/c" mount "$D" a/b)" = 1 ]
	[ "$("$tool" --plain "docker://$REGISTRY/c" has "$D")" = 1 ]
	[ "$("$tool" --plain "docker://$REGISTRY/c" mount "sha256:$(printf %064d 0)" a/b)" = 0 ]
	# the upload that the server began instead was taken back
	[ "$(grep -c '"DELETE /v2/c/blobs/uploads/' "$BST_LOG/registry-main.log")" = 1 ]
	"$tool" --plain "$repo" copy "oci:$BST_ROOT/layout" v1
	"$tool" "oci:$BST_ROOT/layout" get-manifest v1 2>/dev/null | cmp - "$m"
	"$tool" "oci:$BST_ROOT/layout" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
}

@test "an empty blob" {
	registry_start main
	make_blob 0
	"$tool" --plain "docker://$REGISTRY/a/b" put-blob "$BST_ROOT/blob"
	"$tool" --plain "docker://$REGISTRY/a/b" get-blob "$D" 0 | cmp - "$BST_ROOT/blob"
}

@test "what is not there is said to be not there, at once" {
	proxied 1000
	local none
	none=sha256:$(printf %064d 0)
	refuses ENOENT "$tool" --plain "$REPO" get-manifest nope
	refuses ENOENT "$tool" --plain "$REPO" get-blob "$none" 10
	refuses ENOENT "$tool" --plain "$REPO" read "$none" 0 10
	refuses ENOENT "$tool" --plain "docker://$FAULTPROXY/x/y" tags
	[ "$(faultproxy_count p '.status == 404')" = 4 ]
	refuses EHOSTUNREACH "$tool" --plain "docker://127.0.0.1:$(bst_free_port)/x" read "$none" 0 1
	refuses EINVAL "$tool" --plain "$REPO" get-manifest sha256:12
}

@test "connections are kept: one for one reader, eight for many" {
	proxied 8000000
	"$tool" --plain --stats "$REPO" ranges "$D" "$S" 100000 1 2>"$BST_ROOT/stats" | jq -e .good
	[ "$(jq '.connections' "$BST_ROOT/stats")" = 1 ]
	[ "$(jq '.requests[0]' "$BST_ROOT/stats")" = 80 ]
	[ "$(faultproxy_log p | jq -s 'map(.conn) | unique | length')" = 1 ]
	"$tool" --plain --stats "$REPO" ranges "$D" "$S" 100000 64 2>"$BST_ROOT/stats" | jq -e .good
	[ "$(jq '.connections' "$BST_ROOT/stats")" -le 8 ]
	"$tool" --plain --stats --connections 3 "$REPO" ranges "$D" "$S" 100000 64 \
		2>"$BST_ROOT/stats" | jq -e .good
	[ "$(jq '.connections' "$BST_ROOT/stats")" -le 3 ]
}

@test "a demand read starts at once, however much is queued" {
	proxied 8000000
	faultproxy_set p '{"range": true, "action": "delay", "seconds": 0.05}'
	"$tool" --plain --stats "$REPO" ranges "$D" "$S" 100000 70 2 2 2>"$BST_ROOT/stats" |
		jq -e .good
	jq -e '.demand_waited == 0 and .requests == [2, 0, 80]' "$BST_ROOT/stats"
	# seventy were queued before; only those that ran already were asked for earlier
	[ "$(faultproxy_log p | jq -s '[sort_by(.t) | .[].range | . == "bytes=0-65535"] |
		indices(true) | max')" -lt 10 ]
}

@test "the background lane keeps its rate" {
	proxied 3000000
	local ms
	ms=$("$tool" --plain --rate 1000000 "$REPO" ranges "$D" "$S" 250000 8 2 | jq .ms)
	# 3 MB at 1 MB/s; the first of it comes before there is a debt
	[ "${ms%.*}" -gt 2000 ]
	[ "${ms%.*}" -lt 6000 ]
	ms=$("$tool" --plain --rate 1000000 "$REPO" ranges "$D" "$S" 250000 8 1 | jq .ms)
	[ "${ms%.*}" -lt 2000 ]
}

@test "basic auth: right, wrong, changed, none" {
	registry_start main --htpasswd user:secret
	make_blob 1000
	local repo=docker://$REGISTRY/a/b u=$BST_ROOT/user
	echo user:secret >"$u"
	"$tool" --plain --user-file "$u" "$repo" put-blob "$BST_ROOT/blob"
	"$tool" --plain --user-file "$u" "$repo" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	refuses EACCES "$tool" --plain "$repo" get-blob "$D" "$S"
	echo user:wrong >"$u"
	refuses EACCES "$tool" --plain --user-file "$u" "$repo" read "$D" 0 10
	# from docker's file
	mkdir "$BST_ROOT/docker"
	printf '{"auths":{"https://%s/v1/":{"auth":"%s"}}}' "$REGISTRY" \
		"$(printf user:secret | base64)" >"$BST_ROOT/docker/config.json"
	"$tool" --plain --docker-config "$BST_ROOT/docker" "$repo" get-blob "$D" "$S" |
		cmp - "$BST_ROOT/blob"
}

@test "bearer tokens: fetched once for many readers, again when they die" {
	tokenserver_start --user user:secret --require-user
	registry_start main --token
	make_blob 4000000
	local repo=docker://$REGISTRY/a/b u=$BST_ROOT/user
	echo user:secret >"$u"
	"$tool" --plain --user-file "$u" "$repo" put-blob "$BST_ROOT/blob"
	"$tool" --plain --stats --user-file "$u" "$repo" ranges "$D" "$S" 50000 40 \
		2>"$BST_ROOT/stats" | jq -e .good
	[ "$(jq .token_refreshes "$BST_ROOT/stats")" = 1 ]
	# five seconds of life, a read that takes longer, no error
	tokenserver_set '{"life": 5}'
	faultproxy_start p "$REGISTRY"
	faultproxy_set p '{"range": true, "action": "delay", "seconds": 0.15}'
	"$tool" --plain --stats --user-file "$u" "docker://$FAULTPROXY/a/b" \
		ranges "$D" "$S" 40000 2 2>"$BST_ROOT/stats" | jq -e .good
	cat "$BST_ROOT/stats"
	[ "$(jq .token_refreshes "$BST_ROOT/stats")" -ge 2 ]
	[ "$(jq .token_refreshes "$BST_ROOT/stats")" -le 6 ]
	echo user:wrong >"$u"
	refuses EACCES "$tool" --plain --user-file "$u" "$repo" read "$D" 0 10
	[[ $stderr == *"credentials are refused"* ]]
	refuses EACCES "$tool" --plain "$repo" read "$D" 0 10
	tokenserver_set '{"status": 500}'
	echo user:secret >"$u"
	refuses EREMOTEIO "$tool" --plain --user-file "$u" "$repo" read "$D" 0 10
	tokenserver_set '{"status": 429, "retry_after": 7}'
	refuses EAGAIN "$tool" --plain --user-file "$u" "$repo" read "$D" 0 10
	[[ $stderr == *"retry after "[67]* ]]
}

@test "a token that the registry refuses, by 401 or 403, is fetched anew" {
	tokenserver_start
	registry_start main --token
	make_blob 100000
	faultproxy_start p "$REGISTRY"
	REPO=docker://$FAULTPROXY/a/b
	"$tool" --plain "$REPO" put-blob "$BST_ROOT/blob"
	# the first request learns of tokens; the fourth range meets a dead one
	faultproxy_set p '{"range": true, "action": "refuse", "skip": 4, "count": 1}'
	"$tool" --plain --stats "$REPO" ranges "$D" "$S" 10000 1 2>"$BST_ROOT/stats" | jq -e .good
	[ "$(jq .token_refreshes "$BST_ROOT/stats")" = 2 ]
	faultproxy_set p '{"range": true, "action": "status", "status": 403, "skip": 4, "count": 1}'
	"$tool" --plain --stats "$REPO" ranges "$D" "$S" 10000 1 2>"$BST_ROOT/stats" | jq -e .good
	[ "$(jq .token_refreshes "$BST_ROOT/stats")" = 2 ]
	# for ever: given up after a bounded number of requests
	faultproxy_set p '{"action": "status", "status": 403}'
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	refuses EACCES "$tool" --plain "$REPO" read "$D" 0 10
	[ "$(faultproxy_count p)" -le 3 ]
}

@test "429 and 503 say when to come back; synchronous calls do" {
	proxied 100000
	faultproxy_set p '{"range": true, "action": "status", "status": 429, "retry_after": 3}'
	refuses EAGAIN "$tool" --plain "$REPO" read "$D" 0 10
	[[ $stderr == *"retry after 3000 ms"* ]]
	local date
	date=$(date -u -R -d '+60 seconds' | sed 's/+0000/GMT/')
	faultproxy_set p "$(jq -cn --arg d "$date" \
		'{range: true, action: "status", status: 503, headers: {"Retry-After": $d}}')"
	refuses EAGAIN "$tool" --plain "$REPO" read "$D" 0 10
	[[ $stderr =~ "retry after "(5[0-9]|60)000 ]]
	faultproxy_set p '{"range": true, "action": "status", "status": 503}'
	refuses EREMOTEIO "$tool" --plain "$REPO" read "$D" 0 10
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	faultproxy_set p '{"action": "status", "status": 429, "retry_after": 1, "count": 2}'
	"$tool" --plain "$REPO" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	[ "$(faultproxy_log p | jq -s 'map(.t) | max - min >= 2')" = true ]
	faultproxy_set p '{"action": "status", "status": 500, "count": 3}'
	"$tool" --plain "$REPO" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	faultproxy_set p '{"action": "status", "status": 500}'
	refuses EREMOTEIO "$tool" --plain "$REPO" get-manifest v1
	[ "$(faultproxy_count p)" = 5 ]
}

@test "a whole blob comes through truncations, resets and stalls, each byte once" {
	proxied 6000000
	local f
	for f in '{"action": "truncate", "bytes": 2000000, "count": 2}' \
		'{"action": "drop", "bytes": 2500000, "count": 2}' \
		'{"action": "stall", "bytes": 1500000, "count": 2}' \
		'{"action": "truncate", "bytes": 2000000, "count": 1},{"range": true, "action": "ignore_range"}'; do
		faultproxy_set p "$f"
		"$tool" --plain --stall 500 "$REPO" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	done
	# continued, and not begun anew
	[ "$(faultproxy_count p '.range != null')" -ge 6 ]
	faultproxy_set p '{"action": "flip", "offset": 777777}'
	refuses EBADMSG "$tool" --plain "$REPO" get-blob "$D" "$S"
	faultproxy_set p
	refuses EBADMSG "$tool" --plain "$REPO" get-blob "$D" $((S - 1))
	# a slow sink holds the transfer up, not the memory, and no stall is seen in it
	"$tool" --plain --stall 300 "$REPO" get-blob "$D" "$S" 100000 | cmp - "$BST_ROOT/blob"
}

@test "a range read never takes wrong bytes for right ones" {
	proxied 6000000
	faultproxy_set p '{"range": true, "action": "wrong_range", "shift": 5}'
	refuses EBADMSG "$tool" --plain "$REPO" read "$D" 1000 1000
	faultproxy_set p '{"range": true, "action": "truncate", "bytes": 500}'
	refuses EREMOTEIO "$tool" --plain "$REPO" read "$D" 1000 1000
	faultproxy_set p '{"range": true, "action": "stall", "bytes": 500}'
	refuses ETIMEDOUT "$tool" --plain --stall 400 "$REPO" read "$D" 1000 1000
	faultproxy_set p '{"range": true, "action": "stall"}'
	refuses ETIMEDOUT "$tool" --plain --stall 400 "$REPO" read "$D" 1000 1000
	faultproxy_set p '{"range": true, "action": "drop", "bytes": 500}'
	refuses EREMOTEIO "$tool" --plain "$REPO" read "$D" 1000 1000
	faultproxy_set p '{"range": true, "action": "status", "status": 206, "body": "abc"}'
	refuses EBADMSG "$tool" --plain "$REPO" read "$D" 1000 1000
	faultproxy_set p '{"range": true, "action": "chunked"}'
	[ "$("$tool" --plain "$REPO" read "$D" 1000 1000 | sha256sum)" = "$(piece 1000 1000)" ]
	faultproxy_set p
	refuses EBADMSG "$tool" --plain "$REPO" read "$D" $((S - 10)) 11
	refuses EBADMSG "$tool" --plain "$REPO" read "$D" "$S" 1
	[ "$("$tool" --plain "$REPO" read "$D" $((S - 10)) 10 | sha256sum)" = "$(piece $((S - 10)) 10)" ]
}

@test "a server that ignores Range: near the start it is used, further on refused" {
	proxied 40000000
	faultproxy_set p '{"range": true, "action": "ignore_range"}'
	[ "$("$tool" --plain "$REPO" read "$D" 1000000 1000 | sha256sum)" = "$(piece 1000000 1000)" ]
	[ "$(faultproxy_bytes p)" -lt 20000000 ]
	refuses EOPNOTSUPP "$tool" --plain "$REPO" read "$D" 30000000 1000
	[[ $stderr == *"ignores Range"* ]]
	"$tool" --plain "$REPO" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
}

@test "redirects: followed, remembered, resolved anew when they expire" {
	proxied 4000000
	faultproxy_set p '{"method": "GET", "path": "/blobs/", "action": "redirect", "seconds": 600}'
	"$tool" --plain "$REPO" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	"$tool" --plain "$REPO" ranges "$D" "$S" 50000 1 | jq -e .good
	[ "$(faultproxy_count p '.port == "main"')" = 1 ]
	[ "$(faultproxy_count p '.port == "redirect"')" = 80 ]
	# a life of 0.3 s, and a read of several seconds
	faultproxy_set p '{"method": "GET", "path": "/blobs/", "action": "redirect", "seconds": 0.3}' \
		'{"port": "redirect", "action": "delay", "seconds": 0.03}'
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	"$tool" --plain "$REPO" ranges "$D" "$S" 50000 2 | jq -e .good
	[ "$(faultproxy_count p '.port == "main"')" -gt 2 ]
	[ "$(faultproxy_count p '.port == "main"')" -lt 40 ]
	# one that is dead on arrival ends in an error, not in a circle
	faultproxy_set p '{"method": "GET", "path": "/blobs/", "action": "redirect", "seconds": -1}'
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	refuses EACCES "$tool" --plain "$REPO" read "$D" 0 10
	[ "$(faultproxy_count p)" -le 6 ]
	faultproxy_set p '{"method": "GET", "action": "status", "status": 307, "headers": {"Location": "/v2/"}}'
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	refuses EREMOTEIO "$tool" --plain "$REPO" read "$D" 0 10
	[ "$(faultproxy_count p)" -le 6 ]
}

@test "a remembered redirect that is of no use is forgotten, and the registry asked at once" {
	proxied 6000000
	local to='{"method": "GET", "path": "/blobs/", "action": "redirect", "seconds": 600}' f
	# the fourth of 12 answers of the place is bad: one attempt a range is enough nevertheless
	for f in '"action": "status", "status": 400' '"action": "status", "status": 404' \
		'"action": "status", "status": 200, "body": "what?"' \
		'"action": "wrong_range", "shift": 7' \
		'"action": "truncate", "bytes": 1000' '"action": "drop", "bytes": 1000'; do
		faultproxy_set p "$to" '{"port": "redirect", "skip": 3, "count": 1, '"$f"'}' \
			'{"port": "redirect", "skip": 8, "count": 1, "action": "chunked"}'
		: >"$BST_ROOT/proxy-p/requests.jsonl"
		"$tool" --plain "$REPO" ranges "$D" "$S" 500000 1 | jq -e .good
		[ "$(faultproxy_count p '.port == "main"')" = 2 ]
		[ "$(faultproxy_count p '.port == "redirect"')" = 13 ]
	done
	# where an ignored Range is refused, far from the start, it is no word of the registry's
	faultproxy_set p "$to" '{"port": "redirect", "skip": 2, "count": 1, "action": "ignore_range"}' \
		'{"port": "redirect", "skip": 4, "count": 1, "action": "ignore_range"}' \
		'{"port": "redirect", "skip": 6, "count": 1, "action": "ignore_range"}'
	"$tool" --plain "$REPO" ranges "$D" "$S" 500000 1 | jq -e .good
	# whole blobs likewise, each byte once
	for f in '"action": "truncate", "bytes": 1000000' '"action": "status", "status": 400'; do
		faultproxy_set p "$to" '{"port": "redirect", "skip": 1, "count": 1, '"$f"'}' \
			'{"port": "redirect", "count": 1, "action": "truncate", "bytes": 3000000}'
		"$tool" --plain "$REPO" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	done
	# where the new place says the same, it is an error and no circle
	for f in EREMOTEIO:400 EACCES:403 ENOENT:404; do
		faultproxy_set p "$to" \
			'{"port": "redirect", "action": "status", "status": '"${f#*:}"'}'
		: >"$BST_ROOT/proxy-p/requests.jsonl"
		refuses "${f%:*}" "$tool" --plain "$REPO" read "$D" 0 10
		[ "$(faultproxy_count p)" -le 4 ]
	done
}

@test "credentials never reach the host of a redirect" {
	registry_start main --htpasswd user:secret
	make_blob 100000
	echo user:secret >"$BST_ROOT/user"
	"$tool" --plain --user-file "$BST_ROOT/user" "docker://$REGISTRY/a/b" put-blob "$BST_ROOT/blob"
	faultproxy_start p "$REGISTRY"
	bst_spawn store python3 "$bst_lib/objectstore.py" --file "$BST_ROOT/blob" \
		--port-file "$BST_ROOT/store.port" --log "$BST_ROOT/store.jsonl"
	bst_wait 10 test -s "$BST_ROOT/store.port"
	faultproxy_set p "$(jq -cn --arg to "http://127.0.0.1:$(cat "$BST_ROOT/store.port")/x?sig=1" \
		'{method: "GET", path: "/blobs/", skip: 1, action: "status", status: 307,
		  headers: {Location: $to}}')"
	"$tool" --plain --user-file "$BST_ROOT/user" "docker://$FAULTPROXY/a/b" \
		ranges "$D" "$S" 10000 4 | jq -e .good
	[ "$(wc -l <"$BST_ROOT/store.jsonl")" -ge 8 ]
	jq -es 'all(.authorization == null and .cookie == null)' "$BST_ROOT/store.jsonl"
}

@test "uploads: resets, 500s and servers that want pieces" {
	proxied 1000
	make_blob 40000000
	local f pieces
	for f in '{"method": "PUT", "action": "drop", "count": 2}' \
		'{"method": "POST", "action": "status", "status": 500, "count": 2}' \
		'{"method": "PUT", "action": "status", "status": 404, "count": 1}'; do
		make_blob 2000000
		faultproxy_set p "$f"
		"$tool" --plain "$REPO" put-blob "$BST_ROOT/blob" 2>/dev/null
		"$tool" --plain "docker://$REGISTRY/a/b" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	done
	make_blob 40000000
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	faultproxy_set p '{"method": "PUT", "action": "status", "status": 413, "count": 1}'
	"$tool" --plain "$REPO" put-blob "$BST_ROOT/blob" 2>/dev/null
	pieces=$(faultproxy_count p '.method == "PATCH" and .status == 202')
	[ "$pieces" = 3 ]
	"$tool" --plain "docker://$REGISTRY/a/b" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	# refused for good: an error, nothing is visible, and the upload is taken back
	make_blob 100000
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	faultproxy_set p '{"method": "PUT", "action": "status", "status": 403}'
	refuses EACCES "$tool" --plain "$REPO" put-blob "$BST_ROOT/blob"
	[ "$("$tool" --plain "docker://$REGISTRY/a/b" has "$D")" = 0 ]
	[ "$(faultproxy_count p '.method == "DELETE"')" = 1 ]
}

@test "an upload's Location on another host gets no credentials" {
	registry_start main --htpasswd user:secret
	make_blob 1000
	echo user:secret >"$BST_ROOT/user"
	bst_spawn store python3 "$bst_lib/objectstore.py" --file "$BST_ROOT/blob" \
		--port-file "$BST_ROOT/store.port" --log "$BST_ROOT/store.jsonl"
	bst_wait 10 test -s "$BST_ROOT/store.port"
	faultproxy_start q "127.0.0.1:$(cat "$BST_ROOT/store.port")"
	local q=$FAULTPROXY
	faultproxy_start p "$REGISTRY"
	faultproxy_set p "$(jq -cn --arg to "http://$q/up?x=1" '{method: "POST", action: "status",
		status: 202, headers: {Location: $to}}')"
	faultproxy_set q '{"method": "PUT", "action": "status", "status": 201}'
	"$tool" --plain --user-file "$BST_ROOT/user" "docker://$FAULTPROXY/a/b" put-blob "$BST_ROOT/blob"
	[ "$(faultproxy_count q '.method == "PUT" and (.path | startswith("/up?x=1&digest=sha256%3A"))')" = 1 ]
}

@test "referrers: the tag schema with docker-registry, the API where it is" {
	proxied 1000
	local m=$BST_ROOT/m n subject body i
	make_manifest "$m"
	"$tool" --plain "$REPO" put-manifest v1 "$MANIFEST" "$m"
	subject=sha256:$(sha256sum "$m" | cut -d' ' -f1)
	refuses ENOENT "$tool" --plain "$REPO" referrers "$subject"
	for i in 1 2; do
		make_manifest "$m$i" "\"artifactType\":\"x/$i\",\"subject\":{\"mediaType\":\"$MANIFEST\",\"digest\":\"$subject\",\"size\":1},"
		"$tool" --plain "$REPO" put-manifest - "$MANIFEST" "$m$i"
		"$tool" --plain "$REPO" put-manifest - "$MANIFEST" "$m$i"
	done
	[ "$("$tool" --plain "$REPO" referrers "$subject" 2>/dev/null |
		jq -r '[.manifests[].artifactType] | join(" ")')" = "x/1 x/2" ]
	[ "$("$tool" --plain "$REPO" tags | sort | head -1)" = "sha256-${subject#*:}" ]
	# with OCI-Subject the server lists it itself
	: >"$BST_ROOT/proxy-p/requests.jsonl"
	faultproxy_set p "$(jq -cn --arg s "$subject" '{method: "PUT", action: "status", status: 201,
		headers: {"OCI-Subject": $s}}')"
	"$tool" --plain "$REPO" put-manifest - "$MANIFEST" "${m}1"
	[ "$(faultproxy_count p)" = 1 ]
	# the API, in two pages
	n=$(printf '{"schemaVersion":2,"manifests":[{"digest":"sha256:%064d","size":1}]}' 1)
	body=$(printf '{"schemaVersion":2,"manifests":[{"digest":"sha256:%064d","size":1}]}' 2)
	faultproxy_set p "$(jq -cn --arg b "$n" --arg t "$INDEX" --arg l "</v2/a/b/referrers/x?page=2>; rel=\"next\"" \
		'{path: "/referrers/sha256", action: "status", status: 200, body: $b,
		  headers: {"Content-Type": $t, Link: $l}}')" \
		"$(jq -cn --arg b "$body" --arg t "$INDEX" '{path: "page=2", action: "status",
		  status: 200, body: $b, headers: {"Content-Type": $t}}')"
	[ "$("$tool" --plain "$REPO" referrers "$subject" 2>/dev/null | jq '.manifests | length')" = 2 ]
	# a page on another host is none of ours
	faultproxy_set p "$(jq -cn --arg b "$n" --arg t "$INDEX" '{path: "/referrers/", action: "status",
		status: 200, body: $b, headers: {"Content-Type": $t, Link: "<http://127.0.0.1:1/>; rel=next"}}')"
	refuses EBADMSG "$tool" --plain "$REPO" referrers "$subject"
}

@test "a deleted manifest: its tag and its mention are gone, others stay" {
	proxied 1000
	local m=$BST_ROOT/m subject d1 d2 i
	make_manifest "$m"
	"$tool" --plain "$REPO" put-manifest v1 "$MANIFEST" "$m"
	subject=sha256:$(sha256sum "$m" | cut -d' ' -f1)
	for i in 1 2; do
		make_manifest "$m$i" "\"artifactType\":\"x/$i\",\"subject\":{\"mediaType\":\"$MANIFEST\",\"digest\":\"$subject\",\"size\":1},"
		"$tool" --plain "$REPO" put-manifest "t$i" "$MANIFEST" "$m$i"
	done
	d1=sha256:$(sha256sum "${m}1" | cut -d' ' -f1) d2=sha256:$(sha256sum "${m}2" | cut -d' ' -f1)
	# a server that does not delete: nothing has changed, and the error says what helps
	faultproxy_set p '{"method": "DELETE", "action": "status", "status": 405}'
	refuses EOPNOTSUPP "$tool" --plain "$REPO" delete "$d1" "$subject"
	[[ $stderr == *"let its administrator allow deletion"* ]]
	[ "$("$tool" --plain "$REPO" referrers "$subject" 2>/dev/null | jq '.manifests | length')" = 2 ]
	# the list cannot be written: said, and the next time goes on from there
	faultproxy_set p '{"method": "PUT", "path": "manifests/sha256-", "action": "status", "status": 403}'
	refuses EACCES "$tool" --plain "$REPO" delete "$d1" "$subject"
	faultproxy_set p
	refuses ENOENT "$tool" --plain "$REPO" delete "$d1" "$subject"
	refuses ENOENT "$tool" --plain "$REPO" get-manifest t1
	[ "$("$tool" --plain "$REPO" referrers "$subject" 2>/dev/null |
		jq -r '[.manifests[].artifactType] | join(" ")')" = x/2 ]
	"$tool" --plain "$REPO" delete "$d2" "$subject"
	refuses ENOENT "$tool" --plain "$REPO" referrers "$subject"
	# the list under its tag has gone with the last one
	[ "$("$tool" --plain "$REPO" tags)" = v1 ]
}

@test "a list of tags in pages" {
	proxied 1000
	faultproxy_set p "$(jq -cn '{path: "n=1000$", action: "status", status: 200,
		body: "{\"tags\":[\"a\",\"b\"]}",
		headers: {Link: "</v2/a/b/tags/list?n=1000&last=b>; rel=\"next\""}}')" \
		"$(jq -cn '{path: "last=b", action: "status", status: 200, body: "{\"tags\":[\"c\"]}"}')"
	[ "$("$tool" --plain "$REPO" tags | tr '\n' ' ')" = "a b c " ]
	faultproxy_set p '{"path": "tags", "action": "status", "status": 200, "body": "{\"tags\":null}"}'
	[ -z "$("$tool" --plain "$REPO" tags)" ]
}

@test "answers that are too big or make no sense are refused" {
	proxied 1000
	head -c 5000000 /dev/zero | tr '\0' ' ' >"$BST_ROOT/big"
	jq -cRs '{rules: [{path: "/manifests/", action: "status", status: 200, body: .}]}' \
		<"$BST_ROOT/big" >"$BST_ROOT/proxy-p/control.json"
	refuses EFBIG "$tool" --plain "$REPO" get-manifest v1
	jq -cn '{rules: [{path: "/manifests/", action: "status", status: 200,
		headers: {Link: ("x" * 60000), "Content-Type": ("y" * 60000)}}]}' \
		>"$BST_ROOT/proxy-p/control.json"
	refuses EBADMSG "$tool" --plain "$REPO" get-manifest v1
	faultproxy_set p "$(jq -cn --arg d "sha256:$(printf %064d 1)" '{path: "/manifests/",
		action: "status", status: 200, body: "{}", headers: {"Docker-Content-Digest": $d}}')"
	refuses EBADMSG "$tool" --plain "$REPO" get-manifest v1
	refuses EBADMSG "$tool" --plain "$REPO" get-manifest "sha256:$(printf %064d 1)"
}

@test "TLS: verified by default, HTTP/2 in several connections" {
	local dir=$BST_ROOT/tls port repo
	bst_require openssl
	mkdir "$dir"
	openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost \
		-addext subjectAltName=DNS:localhost -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null
	port=$(bst_free_port)
	cat >"$dir/registry.yml" <<-END
		version: 0.1
		log: {level: warn, accesslog: {disabled: false}}
		storage: {filesystem: {rootdirectory: $dir/data}}
		http: {addr: "127.0.0.1:$port", secret: x, tls: {certificate: $dir/cert.pem, key: $dir/key.pem}}
	END
	bst_spawn registry-tls docker-registry serve "$dir/registry.yml"
	bst_wait 20 curl -sk -o /dev/null "https://127.0.0.1:$port/v2/"
	make_blob 20000000
	repo=docker://localhost:$port/a/b
	"$tool" --ca "$dir/cert.pem" "$repo" put-blob "$BST_ROOT/blob" 2>/dev/null
	"$tool" --ca "$dir/cert.pem" "$repo" get-blob "$D" "$S" | cmp - "$BST_ROOT/blob"
	"$tool" --ca "$dir/cert.pem" "$repo" get-blob "$D" "$S" 3000 | cmp - "$BST_ROOT/blob"
	"$tool" --stats --ca "$dir/cert.pem" "$repo" ranges "$D" "$S" 500000 16 2>"$BST_ROOT/stats" |
		jq -e .good
	grep -q 'GET /v2/a/b/blobs/.* HTTP/2.0' "$BST_LOG/registry-tls.log"
	[ "$(jq .connections "$BST_ROOT/stats")" -ge 2 ]
	[ "$(jq .connections "$BST_ROOT/stats")" -le 8 ]
	refuses EACCES "$tool" "$repo" read "$D" 0 10
	[[ $stderr == *certificate* ]]
	refuses EACCES "$tool" --ca "$dir/cert.pem" "docker://127.0.0.1:$port/a/b" read "$D" 0 10
	[ "$("$tool" --insecure "$repo" read "$D" 5 10 | sha256sum)" = "$(piece 5 10)" ]
	refuses EREMOTEIO "$tool" --plain "$repo" get-manifest v1
}
