# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# registry.bash: Debian's docker-registry, private to a test, and the servers
# of ours that stand beside it: the token server and the fault proxy.
# Needs common.bash (and netns.bash for --netns). All stop at teardown.

# registry_start NAME [OPTION...]: start a registry. Sets REGISTRY to HOST:PORT
# and REGISTRY_DIR to where it keeps its data. Options:
#   --netns NS           inside that namespace (of netns_create), at NETNS_IP
#   --host ADDRESS       another address of this side, such as NETNS_HOST_IP
#   --data DIR           data directory (default: below the test's root)
#   --htpasswd USER:PW   basic auth
#   --token              bearer tokens; start the token server first
#   --readonly           refuses pushes
#   --port PORT
registry_start() {
	local name=$1 host=127.0.0.1 port='' prefix='' auth='' data=$BST_ROOT/registry-$1
	local readonly=false conf=$BST_ROOT/registry-$1.yml
	shift
	while [ $# -gt 0 ]; do
		case $1 in
		--host) host=$2; shift ;;
		--netns) host=$NETNS_IP prefix=$(netns_prefix "$2") port=${port:-5000}; shift ;;
		--data) data=$2; shift ;;
		--htpasswd) auth=$(registry_htpasswd "$name" "$2"); shift ;;
		--token) auth=$(registry_token_auth) ;;
		--readonly) readonly=true ;;
		--port) port=$2; shift ;;
		*) echo "registry_start: what is $1?"; return 1 ;;
		esac
		shift
	done
	bst_require docker-registry curl || return 1
	port=${port:-$(bst_free_port "$host")}
	mkdir -p "$data"
	cat >"$conf" <<-EOF
		version: 0.1
		log: {level: warn, accesslog: {disabled: false}}
		storage:
		  filesystem: {rootdirectory: $data}
		  delete: {enabled: true}
		  maintenance: {readonly: {enabled: $readonly}}
		http: {addr: "$host:$port", secret: bootseer-tests}
		$auth
	EOF
	# shellcheck disable=SC2086
	bst_spawn "registry-$name" $prefix docker-registry serve "$conf"
	REGISTRY=$host:$port REGISTRY_DIR=$data
	export REGISTRY REGISTRY_DIR
	bst_wait 20 registry_answers "$REGISTRY"
}

registry_stop() {
	bst_stop "registry-$1"
}

# registry_answers HOST:PORT: 401 is an answer too.
registry_answers() {
	local status
	status=$(curl -s -o /dev/null -m 2 -w '%{http_code}' "http://$1/v2/")
	[ "$status" = 200 ] || [ "$status" = 401 ]
}

registry_htpasswd() {
	local file=$BST_ROOT/registry-$1.htpasswd
	htpasswd -nbB "${2%%:*}" "${2#*:}" >"$file"
	printf 'auth: {htpasswd: {realm: bootseer-tests, path: %s}}\n' "$file"
}

registry_token_auth() {
	printf 'auth: {token: {realm: "http://%s/token", service: bootseer-tests,' "$TOKENSERVER"
	printf ' issuer: bootseer-tests, rootcertbundle: %s}}\n' "$BST_ROOT/token/cert.pem"
}

# registry_requests NAME [REGEX]: how many requests its access log has seen.
registry_requests() {
	grep -cE "\"(GET|HEAD|POST|PUT|PATCH|DELETE) ${2:-}" "$BST_LOG/registry-$1.log"
}

# tokenserver_start [OPTION...]: options of tokenserver.py. Sets TOKENSERVER.
# Keys and the control file are in $BST_ROOT/token; its log is requests.jsonl there.
tokenserver_start() {
	local dir=$BST_ROOT/token
	mkdir -p "$dir"
	[ -f "$dir/key.pem" ] || openssl req -x509 -newkey rsa:2048 -nodes -days 30 \
		-subj /CN=bootseer-tests -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null || return 1
	rm -f "$dir/port"
	bst_spawn tokenserver "${bst_lib:?}/tokenserver.py" --key "$dir/key.pem" \
		--port-file "$dir/port" --control "$dir/control.json" \
		--log "$dir/requests.jsonl" "$@"
	bst_wait 10 test -s "$dir/port" || return 1
	TOKENSERVER=127.0.0.1:$(cat "$dir/port")
	export TOKENSERVER
}

# tokenserver_set JSON: change its behaviour; see tokenserver.py.
tokenserver_set() {
	printf '%s\n' "$1" >"$BST_ROOT/token/.new" &&
		mv "$BST_ROOT/token/.new" "$BST_ROOT/token/control.json"
}

# faultproxy_start NAME UPSTREAM [--netns NS] [OPTION...]: options of
# faultproxy.py. Sets FAULTPROXY to HOST:PORT. A second start of the same NAME
# takes the same port. With --netns it stands in that namespace, at NETNS_IP.
faultproxy_start() {
	local name=$1 upstream=$2 dir=$BST_ROOT/proxy-$1 host=127.0.0.1 prefix='' listen
	shift 2
	if [ "${1:-}" = --netns ]; then
		host=$NETNS_IP prefix=$(netns_prefix "$2")
		shift 2
	fi
	mkdir -p "$dir"
	listen=$host:$(cat "$dir/port" 2>/dev/null || echo 0)
	rm -f "$dir/port"
	# shellcheck disable=SC2086
	bst_spawn "faultproxy-$name" $prefix "$bst_lib/faultproxy.py" \
		--upstream "$upstream" --listen "$listen" --port-file "$dir/port" \
		--control "$dir/control.json" --log "$dir/requests.jsonl" "$@"
	bst_wait 10 test -s "$dir/port" || return 1
	FAULTPROXY=$host:$(cat "$dir/port")
	export FAULTPROXY
}

# faultproxy_stop NAME: the source is gone: connections are refused.
faultproxy_stop() {
	bst_stop "faultproxy-$1" KILL
}

# faultproxy_set NAME JSON-RULE...: these rules from now on; none: all is well.
faultproxy_set() {
	local dir=$BST_ROOT/proxy-$1 IFS=,
	shift
	printf '{"rules": [%s]}\n' "$*" >"$dir/.new" && mv "$dir/.new" "$dir/control.json"
}

# faultproxy_log NAME: print its request log, one JSON object a line.
faultproxy_log() {
	cat "$BST_ROOT/proxy-$1/requests.jsonl" 2>/dev/null || :
}

# faultproxy_count NAME [JQ-CONDITION]: number of logged requests, for example
# faultproxy_count p '.method == "GET" and .range != null and .status == 206'
faultproxy_count() {
	faultproxy_log "$1" | jq -s "map(select(${2:-true})) | length"
}

# faultproxy_bytes NAME [JQ-CONDITION]: sum of the body bytes sent to clients.
faultproxy_bytes() {
	faultproxy_log "$1" | jq -s "map(select(${2:-true}).bytes) | add // 0"
}

# tls_cert DIR: make DIR/ca.pem and a certificate of it for 127.0.0.1 and
# localhost, cert.pem and key.pem (for faultproxy_start's --tls-cert, --tls-key).
tls_cert() {
	mkdir -p "$1" || return 1
	(
		cd "$1" || exit 1
		openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=bootseer-tests-ca \
			-keyout ca-key.pem -out ca.pem &&
			openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout key.pem -out csr.pem &&
			openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 30 \
				-extfile <(echo subjectAltName=DNS:localhost,IP:127.0.0.1) -out cert.pem
	) 2>/dev/null
}
