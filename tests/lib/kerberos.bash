# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# kerberos.bash: a realm that is private to a test, BST.TEST. Needs common.bash.
#
# kdc_start exports KRB5_CONFIG and KRB5CCNAME, so that programs which are started later
# are in the realm; kdc_login gives them a ticket. Host names are taken as they are.

# kdc_start ADDRESS: at that address of this side. Sets KDC_DIR.
kdc_start() {
	local port
	bst_require krb5kdc kdb5_util kadmin.local kinit || return 1
	KDC_DIR=$BST_ROOT/kdc KRB5_CONFIG=$BST_ROOT/kdc/krb5.conf KRB5CCNAME=FILE:$BST_ROOT/kdc/tickets
	export KDC_DIR KRB5_CONFIG KRB5CCNAME
	port=$(bst_free_port "$1")
	mkdir -p "$KDC_DIR"
	cat >"$KRB5_CONFIG" <<-EOF
		[libdefaults]
		default_realm = BST.TEST
		dns_lookup_kdc = false
		dns_lookup_realm = false
		dns_canonicalize_hostname = false
		rdns = false
		udp_preference_limit = 1
		[realms]
		BST.TEST = {
			kdc = $1:$port
		}
	EOF
	cat >"$KDC_DIR/kdc.conf" <<-EOF
		[realms]
		BST.TEST = {
			database_name = $KDC_DIR/principals
			key_stash_file = $KDC_DIR/stash
			kdc_listen = $1:$port
			kdc_tcp_listen = $1:$port
			max_life = 10h
			max_renewable_life = 7d
		}
		[logging]
		kdc = FILE:$BST_LOG/kdc.log
	EOF
	kdc_admin kdb5_util -r BST.TEST -P bootseer create -s >/dev/null || return 1
	kdc_admin bst_spawn krb5kdc krb5kdc -n -r BST.TEST -P "$KDC_DIR/pid"
	bst_wait 10 test -s "$KDC_DIR/pid"
}

# kdc_admin COMMAND [ARG...]: one that knows the realm's database.
kdc_admin() {
	local KRB5_KDC_PROFILE=$KDC_DIR/kdc.conf
	export KRB5_KDC_PROFILE
	"$@"
}

# kdc_principal NAME...: make them; their keys are in $KDC_DIR/keytab.
kdc_principal() {
	local name
	for name; do
		echo "addprinc -randkey $name"
		echo "ktadd -k $KDC_DIR/keytab $name"
	done | kdc_admin kadmin.local -r BST.TEST >"$KDC_DIR/admin.log" 2>&1
	! grep -q kadmin.local: <(grep -v '^Authenticating\|^kadmin.local:  ' "$KDC_DIR/admin.log")
}

# kdc_login NAME [OPTION...]: a ticket of that principal into KRB5CCNAME; options of kinit.
kdc_login() {
	local name=$1
	shift
	kinit -k -t "$KDC_DIR/keytab" "$@" "$name"
}
