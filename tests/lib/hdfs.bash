# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# hdfs.bash: a real HDFS, private to a test or to a file of tests: NameNode and DataNodes
# are JVMs in network namespaces of their own, on a bridge that this side is on too.
# Needs common.bash, netns.bash, and for --kerberos kerberos.bash. All is gone at teardown.
#
# A start takes seconds of both cores: start it once for a file, in setup_file after
# bst_setup; then the functions work in the tests too, which have other roots.
# Everything runs as root, HDFS's superuser. Exported by hdfs_start:
#   HDFS_URI        hdfs://HOST:PORT, or hdfs://bst with --ha
#   HDFS_CONF       configuration directory for clients (HADOOP_CONF_DIR)
#   HDFS_NAMENODES  addresses of the NameNodes: RPC at port 8020, HTTP at 9870
#   HDFS_DATANODES  addresses of the DataNodes: data at port 9866, HTTP at 9864, IPC at 9867
# NameNodes are called 1 and 2, DataNodes 1, 2, ...

# hdfs_start [OPTION...]
#   --datanodes N     (4)
#   --rate RATE       of each DataNode's link, both ways: 100mbit; later netns_rate or hdfs_rate
#   --ha              two NameNodes over a shared edits directory; 1 is active
#   --tokens          the NameNode hands out delegation tokens and takes them by RPC (not by
#                     WebHDFS, which looks at them only with Kerberos); DataNodes want block tokens
#   --kerberos        everyone proves who he is; as root from now on (KRB5CCNAME), see kdc_login
#   --tls             HTTPS too, NameNodes at 9871 and DataNodes at 9865; HDFS_CA signed them
#   --capacity SIZE   of each DataNode's disk (a tmpfs): 300m
#   --conf NAME=VALUE of hdfs-site.xml, for servers and clients, over what is here
hdfs_start() {
	local n=4 rate=none capacity='' i more=()
	HDFS_ROOT=$BST_ROOT HDFS_ID=$BST_ID HDFS_HA='' HDFS_KERBEROS='' HDFS_CA=''
	while [ $# -gt 0 ]; do
		case $1 in
		--datanodes) n=$2; shift ;;
		--rate) rate=$2; shift ;;
		--ha) HDFS_HA=1 ;;
		--kerberos) HDFS_KERBEROS=1 ;;
		--tls) HDFS_CA=$HDFS_ROOT/hdfs/tls/ca.pem ;;
		--tokens)
			more+=(dfs.namenode.delegation.token.always-use=true dfs.block.access.token.enable=true)
			;;
		--capacity) capacity=$2; shift ;;
		--conf) more+=("$2"); shift ;;
		*) echo "hdfs_start: what is $1?"; return 1 ;;
		esac
		shift
	done
	bst_require java curl jq || return 1
	HDFS_HADOOP=$("${bst_lib:?}/build-hadoop") || bst_skip "no Hadoop" || return 1
	hdfs_network "$n" "$rate" || return 1
	[ -z "$HDFS_KERBEROS" ] || hdfs_realm || return 1
	hdfs_configure "${more[@]}" || return 1
	export HDFS_ROOT HDFS_ID HDFS_HA HDFS_KERBEROS HDFS_CA HDFS_HADOOP HDFS_NAMENODES HDFS_DATANODES HDFS_CONF HDFS_URI
	bst_defer hdfs_stop
	for ((i = 1; i <= n; i++)); do
		mkdir -p "$(hdfs_datanode_dir "$i")" || return 1
		[ -z "$capacity" ] || mount -t tmpfs -o "size=$capacity" bst "$(hdfs_datanode_dir "$i")" || return 1
	done
	hdfs_names
	hdfs_namenode_start 1
	[ -z "$HDFS_HA" ] || hdfs_namenode_start 2
	for ((i = 1; i <= n; i++)); do
		hdfs_datanode_start "$i"
	done
	if [ -n "$HDFS_HA" ]; then
		bst_wait 120 hdfs_namenode_answers 1 && bst_wait 120 hdfs_namenode_answers 2 && hdfs_failover 1 || return 1
	fi
	bst_wait 120 hdfs_live "$n" && bst_wait 60 hdfs_ready
}

# hdfs_in COMMAND [ARG...]: with the root that HDFS runs in, whichever test calls.
hdfs_in() {
	# shellcheck disable=SC2034
	local BST_ROOT=$HDFS_ROOT BST_ID=$HDFS_ID BST_LOG=$HDFS_ROOT/log
	"$@"
}

hdfs_network() {
	local i
	HDFS_NAMENODES='' HDFS_DATANODES=''
	netns_bridge hdfs 10 || return 1
	for i in 1 ${HDFS_HA:+2}; do
		netns_join hdfs "nn$i" $((i + 1)) || return 1
		HDFS_NAMENODES+="${HDFS_NAMENODES:+ }$NETNS_IP"
	done
	for ((i = 1; i <= $1; i++)); do
		netns_join hdfs "dn$i" $((i + 10)) || return 1
		netns_rate "dn$i" "$2" || return 1
		HDFS_DATANODES+="${HDFS_DATANODES:+ }$NETNS_IP"
	done
}

# hdfs_realm: all servers are one principal, whose short name is root; by HTTP each has its own.
hdfs_realm() {
	local ip names=()
	for ip in $HDFS_NAMENODES $HDFS_DATANODES; do
		names+=("HTTP/$ip")
	done
	kdc_start "$NETNS_HOST_IP" && kdc_principal root root/hdfs "${names[@]}" && kdc_login root
}

# hdfs_kerberos_conf: adds to "core", "client" and "server".
hdfs_kerberos_conf() {
	core+=(hadoop.security.authentication=kerberos)
	client+=(dfs.namenode.kerberos.principal=root/hdfs@BST.TEST dfs.datanode.kerberos.principal=root/hdfs@BST.TEST)
	# WebHDFS's filter must be named, and is of type simple by default: "user not
	# authenticated by filter" for everyone
	server+=(hadoop.http.filter.initializers=org.apache.hadoop.hdfs.web.AuthFilterInitializer
		hadoop.http.authentication.type=kerberos
		"hadoop.http.authentication.kerberos.principal=HTTP/\${bst.ip}@BST.TEST"
		"hadoop.http.authentication.kerberos.keytab=$KDC_DIR/keytab"
		"dfs.web.authentication.kerberos.principal=HTTP/\${bst.ip}@BST.TEST"
		"dfs.namenode.keytab.file=$KDC_DIR/keytab" "dfs.datanode.keytab.file=$KDC_DIR/keytab"
		dfs.block.access.token.enable=true ignore.secure.ports.for.testing=true)
}

# hdfs_tls_conf: one certificate for all servers. Adds to "client" and "server".
hdfs_tls_conf() {
	local tls=$HDFS_ROOT/hdfs/tls san='' ip i=1
	mkdir -p "$tls"
	for ip in $HDFS_NAMENODES $HDFS_DATANODES; do
		san+="${san:+,}IP:$ip"
	done
	(
		cd "$tls" &&
			openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=bootseer-tests-ca \
				-keyout ca-key.pem -out ca.pem &&
			openssl req -newkey rsa:2048 -nodes -subj /CN=hdfs -keyout key.pem -out csr.pem &&
			openssl x509 -req -in csr.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 30 \
				-extfile <(echo "subjectAltName=$san") -out cert.pem &&
			openssl pkcs12 -export -in cert.pem -inkey key.pem -passout pass:bootseer -out store.p12
	) >/dev/null 2>&1 || return 1
	hdfs_xml "$HDFS_ROOT/hdfs/server/ssl-server.xml" "ssl.server.keystore.location=$tls/store.p12" \
		ssl.server.keystore.type=PKCS12 ssl.server.keystore.password=bootseer ssl.server.keystore.keypassword=bootseer
	client+=(dfs.http.policy=HTTP_AND_HTTPS)
	for ip in $HDFS_NAMENODES; do
		client+=("dfs.namenode.https-address${HDFS_HA:+.bst.nn$i}=$ip:9871")
		i=$((i + 1))
	done
	server+=("dfs.datanode.https.address=\${bst.ip}:9865")
}

# hdfs_rate N RATE: of DataNode N's link; none: as fast as it can.
hdfs_rate() {
	hdfs_in netns_rate "dn$1" "$2"
}

# hdfs_word N WORD...: the Nth.
hdfs_word() {
	echo "${@:$1+1:1}"
}

# hdfs_namenode_ip N, hdfs_datanode_ip N
hdfs_namenode_ip() {
	# shellcheck disable=SC2086
	hdfs_word "$1" $HDFS_NAMENODES
}

hdfs_datanode_ip() {
	# shellcheck disable=SC2086
	hdfs_word "$1" $HDFS_DATANODES
}

# hdfs_xml FILE NAME=VALUE...
hdfs_xml() {
	local file=$1 pair
	shift
	{
		echo '<configuration>'
		for pair; do
			printf '<property><name>%s</name><value>%s</value></property>\n' "${pair%%=*}" "${pair#*=}"
		done
		echo '</configuration>'
	} >"$file"
}

# hdfs_configure NAME=VALUE...: directories of the configurations and of the JVM's options.
hdfs_configure() {
	local dir=$HDFS_ROOT/hdfs core client server
	HDFS_CONF=$dir/client
	# killed servers leave directories of Jetty's in the place for temporary files
	mkdir -p "$dir/server" "$dir/jvm" "$HDFS_CONF" || return 1
	hdfs_conf_names
	core=("fs.defaultFS=$HDFS_URI" "hadoop.tmp.dir=$dir/tmp" "hadoop.proxyuser.root.hosts=*"
		"hadoop.proxyuser.root.groups=*" ipc.client.connect.retry.interval=200
		"hadoop.http.authentication.signature.secret.file=$dir/secret")
	client+=(dfs.replication=$(($(wc -w <<<"$HDFS_DATANODES") < 3 ? 1 : 3)))
	server=("dfs.namenode.name.dir=file://$dir/\${bst.name}" "dfs.datanode.data.dir=file://$dir/\${bst.name}"
		"dfs.datanode.address=\${bst.ip}:9866" "dfs.datanode.http.address=\${bst.ip}:9864"
		"dfs.datanode.ipc.address=\${bst.ip}:9867" "dfs.datanode.hostname=\${bst.ip}"
		dfs.namenode.datanode.registration.ip-hostname-check=false
		dfs.namenode.safemode.extension=0 dfs.namenode.fs-limits.min-block-size=512
		dfs.heartbeat.interval=1 dfs.namenode.heartbeat.recheck-interval=3000
		dfs.namenode.redundancy.interval.seconds=1s dfs.blockreport.initialDelay=0
		dfs.namenode.edits.noeditlogchannelflush=true dfs.namenode.edits.asynclogging=false
		"dfs.namenode.shared.edits.dir=${HDFS_HA:+file://$dir/shared}"
		# else a disk with less than 1 GiB is full
		dfs.datanode.round-robin-volume-choosing-policy.additional-available-space=0
		dfs.ha.tail-edits.period=1s dfs.ha.standby.checkpoints=false)
	[ -z "$HDFS_KERBEROS" ] || hdfs_kerberos_conf
	[ -z "$HDFS_CA" ] || hdfs_tls_conf || return 1
	echo "bst-$HDFS_ID" >"$dir/secret"
	hdfs_xml "$HDFS_CONF/core-site.xml" "${core[@]}"
	hdfs_xml "$HDFS_CONF/hdfs-site.xml" "${client[@]}" "$@"
	hdfs_xml "$dir/server/core-site.xml" "${core[@]}"
	hdfs_xml "$dir/server/hdfs-site.xml" "${client[@]}" "${server[@]}" "$@"
	cat >"$dir/server/log4j.properties" <<-EOF
		log4j.rootLogger=${HDFS_LOG:-WARN},err
		log4j.appender.err=org.apache.log4j.ConsoleAppender
		log4j.appender.err.target=System.err
		log4j.appender.err.layout=org.apache.log4j.PatternLayout
		log4j.appender.err.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{1}: %m%n
	EOF
	sed 's/^log4j.rootLogger=.*/log4j.rootLogger=ERROR,err/' "$dir/server/log4j.properties" \
		>"$HDFS_CONF/log4j.properties"
	# what Jersey tells at length through another log
	printf 'handlers=java.util.logging.ConsoleHandler\n.level=SEVERE\n' >"$dir/logging.properties"
	cp -r "$HDFS_HADOOP/webapps" "$dir/server/"
	hdfs_java_options "$dir/server" >"$dir/server.java"
	hdfs_java_options "$HDFS_CONF" >"$dir/client.java"
}

# hdfs_conf_names: sets HDFS_URI, and begins "client" with where the NameNodes are.
hdfs_conf_names() {
	local i ip
	ip=$(hdfs_namenode_ip 1)
	if [ -z "$HDFS_HA" ]; then
		HDFS_URI=hdfs://$ip:8020
		client=("dfs.namenode.rpc-address=$ip:8020" "dfs.namenode.http-address=$ip:9870")
		return
	fi
	HDFS_URI=hdfs://bst
	client=(dfs.nameservices=bst "dfs.ha.namenodes.bst=nn1,nn2"
		dfs.client.failover.proxy.provider.bst=org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider)
	for i in 1 2; do
		ip=$(hdfs_namenode_ip $i)
		client+=("dfs.namenode.rpc-address.bst.nn$i=$ip:8020" "dfs.namenode.http-address.bst.nn$i=$ip:9870")
	done
}

# hdfs_java_options CONF: a file of options. WebHDFS answers 500 when java.lang is closed
# to it. A small first heap: garbage is collected before it costs memory.
hdfs_java_options() {
	printf '%s\n' -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms32m -Xmx384m -Xss512k -XX:-UsePerfData \
		"-XX:SharedArchiveFile=$HDFS_HADOOP/classes.jsa" -Xlog:cds=off -Xlog:cds+heap=off \
		--add-opens=java.base/java.lang=ALL-UNNAMED -Djava.net.preferIPv4Stack=true \
		"-Djava.util.logging.config.file=$HDFS_ROOT/hdfs/logging.properties" \
		"-Djava.io.tmpdir=$HDFS_ROOT/hdfs/jvm" \
		${HDFS_KERBEROS:+"-Djava.security.krb5.conf=$KRB5_CONFIG"} \
		-cp "$(cat "$HDFS_HADOOP/classpath"):$1"
}

# hdfs_names: every NameNode begins with the formatted directory.
hdfs_names() {
	local i
	for i in 1 ${HDFS_HA:+2}; do
		cp -r "$HDFS_HADOOP/name" "$HDFS_ROOT/hdfs/nn$i"
	done
	[ -z "$HDFS_HA" ] || {
		cp -r "$HDFS_HADOOP/name" "$HDFS_ROOT/hdfs/shared"
		rm "$HDFS_ROOT/hdfs/shared/current/fsimage"*
	}
}

# hdfs_daemon NAME IP CLASS: its environment is its own, not that of the test.
hdfs_daemon() {
	# shellcheck disable=SC2046
	hdfs_in bst_spawn "hdfs-$1" $(hdfs_in netns_prefix "$1") env -i "PATH=$PATH" "HOME=$HDFS_ROOT" LC_ALL=C.UTF-8 \
		java "@$HDFS_ROOT/hdfs/server.java" "-Dbst.name=$1" "-Dbst.ip=$2" "$3"
	# the shell is not to tell that it was killed
	disown
}

# hdfs_namenode_start N, hdfs_datanode_start N: also again, after it was stopped.
hdfs_namenode_start() {
	hdfs_daemon "nn$1" "$(hdfs_namenode_ip "$1")" org.apache.hadoop.hdfs.server.namenode.NameNode
}

hdfs_datanode_start() {
	hdfs_daemon "dn$1" "$(hdfs_datanode_ip "$1")" org.apache.hadoop.hdfs.server.datanode.DataNode
}

# hdfs_stop: everything at once, without ceremony; what they keep is thrown away.
hdfs_stop() {
	local name
	for name in "$HDFS_ROOT"/pid/hdfs-*; do
		[ ! -e "$name" ] || hdfs_in bst_stop "${name##*/}" KILL
	done
	for name in "$HDFS_ROOT"/hdfs/dn*; do
		! mountpoint -q "$name" || umount "$name"
	done
}

# hdfs_curl ARG...: curl, as who is logged in to Kerberos.
hdfs_curl() {
	curl -sf ${HDFS_KERBEROS:+--negotiate -u :} "$@"
}

# hdfs_jmx N BEAN FILTER: of NameNode N.
hdfs_jmx() {
	hdfs_curl -m 5 "http://$(hdfs_namenode_ip "$1"):9870/jmx?qry=Hadoop:service=NameNode,name=$2" | jq -re ".beans[0] | $3"
}

# hdfs_namenode_answers N: by HTTP, which comes first, and by RPC. Prints its state.
hdfs_namenode_answers() {
	(: <"/dev/tcp/$(hdfs_namenode_ip "$1")/8020") 2>/dev/null && hdfs_jmx "$1" NameNodeStatus .State
}

# hdfs_active: the number of the NameNode that is active.
hdfs_active() {
	local i
	for i in 1 ${HDFS_HA:+2}; do
		[ "$(hdfs_namenode_answers "$i")" != active ] || {
			echo "$i"
			return
		}
	done
	return 1
}

# hdfs_live N: the active NameNode has so many DataNodes.
hdfs_live() {
	[ "$(hdfs_jmx "$(hdfs_active)" FSNamesystemState .NumLiveDataNodes)" = "$1" ]
}

# hdfs_ready: it is out of safe mode.
hdfs_ready() {
	[ "$(hdfs_jmx "$(hdfs_active)" NameNodeInfo .Safemode)" = "" ]
}

# hdfs_cpu: seconds of CPU that its JVMs have used.
hdfs_cpu() {
	local file
	for file in "$HDFS_ROOT"/pid/hdfs-*; do
		sed 's/.*) //' "/proc/$(cat "$file")/stat"
	done | awk -v hz="$(getconf CLK_TCK)" '{ n += $12 + $13 } END { printf "%.1f\n", n / hz }'
}

# Most of what a test does with HDFS is done with curl: a JVM as client takes a second.

# hdfs_rest METHOD PATH QUERY [CURL-OPTION...]: WebHDFS of the active NameNode, redirections
# followed: hdfs_rest PUT /dir op=MKDIRS. PATH is encoded already. As root, or who is logged
# in to Kerberos, unless QUERY says who.
hdfs_rest() {
	local method=$1 path=$2 query=$3
	shift 3
	case $query in
	*user.name=* | *delegation=*) ;;
	*) [ -n "$HDFS_KERBEROS" ] || query+="&user.name=root" ;;
	esac
	hdfs_curl -L -m 120 -X "$method" "$@" "http://$(hdfs_namenode_ip "$(hdfs_active)"):9870/webhdfs/v1$path?$query"
}

# hdfs_put FILE PATH [QUERY]: QUERY as replication=1&blocksize=1048576.
hdfs_put() {
	hdfs_rest PUT "$2" "op=CREATE&overwrite=true&${3:-}" -T "$1"
}

# hdfs_put_at N FILE PATH [QUERY]: the first replica is DataNode N's; without QUERY the only one.
hdfs_put_at() {
	local query="op=CREATE&overwrite=true&createparent=true&${4:-replication=1}"
	if [ -n "$HDFS_KERBEROS" ]; then
		query+="&delegation=$(hdfs_token)"
	else
		query+="&user.name=root"
	fi
	curl -sf -m 120 -T "$2" \
		"http://$(hdfs_datanode_ip "$1"):9864/webhdfs/v1$3?$query&namenoderpcaddress=${HDFS_URI#hdfs://}"
}

# hdfs_get PATH [QUERY]: to the standard output.
hdfs_get() {
	hdfs_rest GET "$1" "op=OPEN&${2:-}"
}

# hdfs_blocks PATH: a line for each block: its number, its length, the DataNodes' addresses.
hdfs_blocks() {
	hdfs_rest GET "$1" op=GET_BLOCK_LOCATIONS | jq -r '.LocatedBlocks.locatedBlocks[] |
		[.block.blockId, .block.numBytes, .locations[].ipAddr] | map(tostring) | join(" ")'
}

# hdfs_block_file N BLOCK: DataNode N's file of it; the sums are beside it.
hdfs_block_file() {
	find "$(hdfs_datanode_dir "$1")" -name "blk_$2" | grep .
}

# hdfs_quota DIR BYTES [NAMES]: of a directory; -1 is none.
hdfs_quota() {
	hdfs_rest PUT "$1" "op=SETQUOTA&storagespacequota=$2&namespacequota=${3:--1}"
}

# hdfs_token: a new delegation token as WebHDFS takes it, with --kerberos.
hdfs_token() {
	hdfs_rest GET / "op=GETDELEGATIONTOKEN&renewer=root" | jq -re .Token.urlString
}

# hdfs_token_file FILE: a new delegation token, for HADOOP_TOKEN_FILE_LOCATION.
hdfs_token_file() {
	hdfs_client org.apache.hadoop.hdfs.tools.DelegationTokenFetcher --renewer root "$1"
}

# hdfs_token_cancel FILE: from now on it is worth nothing.
hdfs_token_cancel() {
	hdfs_client org.apache.hadoop.hdfs.tools.DelegationTokenFetcher --cancel "$1"
}

# hdfs_client CLASS [ARG...]: a program of Hadoop's, as a client on this side.
hdfs_client() {
	LC_ALL=C.UTF-8 java "@$HDFS_ROOT/hdfs/client.java" "$@"
}

# hdfs_dfs ARG...: "hdfs dfs".
hdfs_dfs() {
	hdfs_client org.apache.hadoop.fs.FsShell "$@"
}

# hdfs_dfsadmin ARG...: "hdfs dfsadmin".
hdfs_dfsadmin() {
	hdfs_client org.apache.hadoop.hdfs.tools.DFSAdmin "$@"
}

# hdfs_safemode on|off
hdfs_safemode() {
	case $1 in
	on) hdfs_dfsadmin -safemode enter ;;
	off) hdfs_dfsadmin -safemode leave ;;
	*) return 1 ;;
	esac
}

# hdfs_failover N: NameNode N becomes the active one; the other, if it lives, standby.
hdfs_failover() {
	local old
	old=$(hdfs_active) || old=
	[ "$old" != "$1" ] || return 0
	[ -z "$old" ] || hdfs_client org.apache.hadoop.hdfs.tools.DFSHAAdmin -transitionToStandby "nn$old" || return 1
	hdfs_client org.apache.hadoop.hdfs.tools.DFSHAAdmin -transitionToActive --forceactive "nn$1"
}

# hdfs_datanode_dir N: where it keeps its data.
hdfs_datanode_dir() {
	echo "$HDFS_ROOT/hdfs/dn$1"
}

# hdfs_datanode_pid N, hdfs_namenode_pid N
hdfs_datanode_pid() {
	hdfs_in bst_pid "hdfs-dn$1"
}

hdfs_namenode_pid() {
	hdfs_in bst_pid "hdfs-nn$1"
}

# hdfs_datanode_stop N, hdfs_datanode_kill N, hdfs_namenode_kill N
hdfs_datanode_stop() {
	hdfs_in bst_stop "hdfs-dn$1"
}

hdfs_datanode_kill() {
	hdfs_in bst_stop "hdfs-dn$1" KILL
}

hdfs_namenode_kill() {
	hdfs_in bst_stop "hdfs-nn$1" KILL
}

# hdfs_datanode_pause N, hdfs_datanode_resume N: it hangs, with its connections open.
hdfs_datanode_pause() {
	kill -s STOP "$(hdfs_datanode_pid "$1")"
}

hdfs_datanode_resume() {
	kill -s CONT "$(hdfs_datanode_pid "$1")"
}
