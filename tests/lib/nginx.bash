# SPDX-License-Identifier: Apache-2.0
# Copyright the bootseer authors
#
# nginx.bash: nginx as a plain caching proxy in front of a registry, as a site would put one.
# Needs common.bash.

# nginx_start NAME UPSTREAM: blobs are kept in slices of 1 MiB. Sets NGINX to HOST:PORT. Its
# log has lines "STATUS CACHE-STATUS BYTES URI", one for each request of a client.
nginx_start() {
	local name=$1 upstream=$2 dir=$BST_ROOT/nginx-$1 port
	bst_require nginx || return 1
	port=$(bst_free_port)
	mkdir -p "$dir"
	chmod 755 "$dir"
	cat >"$dir/nginx.conf" <<-EOF
		daemon off;
		user nobody nogroup;
		worker_processes 1;
		pid $dir/pid;
		error_log $BST_LOG/nginx-$name.log warn;
		events { worker_connections 256; }
		http {
			log_format short '\$status \$upstream_cache_status \$body_bytes_sent \$uri';
			access_log $dir/access.log short;
			client_body_temp_path $dir/body;
			proxy_temp_path $dir/temp;
			fastcgi_temp_path $dir/fastcgi;
			uwsgi_temp_path $dir/uwsgi;
			scgi_temp_path $dir/scgi;
			proxy_cache_path $dir/cache keys_zone=blobs:8m max_size=1g;
			server {
				listen 127.0.0.1:$port;
				location ~ /blobs/ {
					slice 1m;
					proxy_cache blobs;
					proxy_cache_key \$uri\$slice_range;
					proxy_set_header Range \$slice_range;
					proxy_set_header Host \$host:\$server_port;
					proxy_http_version 1.1;
					proxy_cache_valid 200 206 1h;
					proxy_cache_lock on;
					proxy_pass http://$upstream;
				}
				location / {
					proxy_set_header Host \$host:\$server_port;
					proxy_pass http://$upstream;
				}
			}
		}
	EOF
	bst_spawn "nginx-$name" nginx -p "$dir" -c "$dir/nginx.conf"
	NGINX=127.0.0.1:$port
	export NGINX
	bst_wait 10 curl -s -o /dev/null "http://$NGINX/v2/"
}

# nginx_log NAME
nginx_log() {
	cat "$BST_ROOT/nginx-$1/access.log"
}
