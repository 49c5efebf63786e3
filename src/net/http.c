/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/header.h"

/* RFC 3927; where clouds keep the machine's own credentials, 169.254.169.254 */
#define LINK_LOCAL_V4 0xa9feu

static const char *const header_names[] = {
	[BS_HTTP_CONTENT_RANGE] = "content-range",
	[BS_HTTP_CONTENT_TYPE] = "content-type",
	[BS_HTTP_DOCKER_CONTENT_DIGEST] = "docker-content-digest",
	[BS_HTTP_LINK] = "link",
	[BS_HTTP_LOCATION] = "location",
	[BS_HTTP_OCI_CHUNK_MIN_LENGTH] = "oci-chunk-min-length",
	[BS_HTTP_OCI_SUBJECT] = "oci-subject",
	[BS_HTTP_RETRY_AFTER] = "retry-after",
	[BS_HTTP_SET_COOKIE] = "set-cookie",
	[BS_HTTP_WWW_AUTHENTICATE] = "www-authenticate",
};
_Static_assert(BS_ARRAY_LEN(header_names) == BS_HTTP_HEADER_MAX, "a name for each header");

static void forget_headers(struct bs_http *h)
{
	for (int i = 0; i < BS_HTTP_HEADER_MAX; i++) {
		free(h->header[i]);
		h->header[i] = NULL;
	}
	h->header_bytes = 0;
}

void bs_http_done(struct bs_http *h)
{
	forget_headers(h);
}

void bs_http_reset(struct bs_http *h)
{
	forget_headers(h);
	h->result = h->status = h->stop_code = 0;
	h->length = UINT64_MAX;
	h->retry_after_ns = h->charged = h->received = h->paced = 0;
	h->text[0] = '\0';
	__atomic_store_n(&h->sent, 0, __ATOMIC_RELAXED);
	h->connected = h->head_done = h->paused = h->enough = h->stopped = h->waited = false;
	h->link_local = false;
}

void bs_http_fail(struct bs_http *h, int code, const char *text)
{
	/* the authority alone: the rest of a URL may be a signature */
	const char *host = strstr(h->url, "://");
	int len;

	host = host ? host + 3 : h->url;
	len = (int)strcspn(host, "/?#");
	h->result = code;
	(void)snprintf(h->text, sizeof(h->text), "%.*s: %s", BS_MIN(len, 80), host, text);
}

/* --- callbacks of libcurl ------------------------------------------------------------------ */

/* Ends the transfer from within a callback. */
static void stop(struct bs_http *h, int code)
{
	h->stopped = true;
	h->stop_code = code;
}

static bool keep_header(struct bs_http *h, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t name_len = colon ? (size_t)(colon - line) : 0;

	for (int i = 0; colon && i < BS_HTTP_HEADER_MAX; i++) {
		const char *value = colon + 1, *end = line + len;
		char *old = h->header[i], *joined;

		if (strlen(header_names[i]) != name_len ||
		    strncasecmp(line, header_names[i], name_len) != 0)
			continue;
		while (value < end && (*value == ' ' || *value == '\t'))
			value++;
		while (end > value && strchr(" \t\r\n", end[-1]))
			end--;
		if (memchr(value, '\0', (size_t)(end - value)))
			return false;
		joined = bs_strf("%s%s%.*s", old ? old : "", old ? ", " : "", (int)(end - value),
				 value);
		if (!joined)
			return false;
		free(old);
		h->header[i] = joined;
		return true;
	}
	return true;
}

static size_t on_header(char *line, size_t size, size_t n, void *cookie)
{
	struct bs_http *h = cookie;
	size_t len = size * n;

	/* no sign of life: the body has to begin in time, however long the headers go on */
	if (len >= 5 && memcmp(line, "HTTP/", 5) == 0)
		forget_headers(h); /* of an interim answer such as 100 Continue */
	h->header_bytes += len;
	if (h->header_bytes > BS_HTTP_HEADERS_MAX || !keep_header(h, line, len)) {
		stop(h, -EBADMSG);
		return 0;
	}
	return len;
}

/* Status and headers are complete. */
static int see_head(struct bs_http *h)
{
	curl_off_t length = -1;
	long status = 0;

	h->head_done = true;
	(void)curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(h->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
	h->status = (int)status;
	h->length = length < 0 ? UINT64_MAX : (uint64_t)length;
	if (h->header[BS_HTTP_RETRY_AFTER])
		h->retry_after_ns = bs_header_retry_after(h->header[BS_HTTP_RETRY_AFTER],
							  bs_clock_wall_ns());
	return h->head ? h->head(h) : 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *cookie)
{
	struct bs_http *h = cookie;
	size_t len = size * n;
	int r = 0;

	h->last_ns = bs_clock_ns();
	if (!h->head_done)
		r = see_head(h);
	if (r == 0 && len && h->data)
		r = h->data(h, data, len);
	if (r == BS_HTTP_PAUSE) {
		h->paused = true;
		return CURL_WRITEFUNC_PAUSE;
	}
	h->received += len;
	if (r == BS_HTTP_ENOUGH) {
		h->enough = true;
		return 0;
	}
	if (r < 0) {
		stop(h, r);
		return 0;
	}
	return len;
}

static size_t on_upload(char *to, size_t size, size_t n, void *cookie)
{
	struct bs_http *h = cookie;
	uint64_t at = __atomic_load_n(&h->sent, __ATOMIC_RELAXED);
	size_t len = (size_t)BS_MIN((uint64_t)(size * n), h->body_len - at);
	ssize_t got = (ssize_t)len;

	h->last_ns = bs_clock_ns();
	if (h->body)
		memcpy(to, (const char *)h->body + at, len);
	else if (len)
		got = bs_pread_full(h->body_fd, to, len, h->body_off + at);
	if (got < 0 || (size_t)got != len) {
		stop(h, got < 0 ? (int)got : -ESTALE); /* the file became shorter */
		return CURL_READFUNC_ABORT;
	}
	__atomic_store_n(&h->sent, at + len, __ATOMIC_RELAXED);
	return len;
}

static int on_seek(void *cookie, curl_off_t offset, int origin)
{
	struct bs_http *h = cookie;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > h->body_len)
		return CURL_SEEKFUNC_FAIL;
	__atomic_store_n(&h->sent, (uint64_t)offset, __ATOMIC_RELAXED);
	return CURL_SEEKFUNC_OK;
}

static int on_connected(void *cookie, char *ip, char *local_ip, int port, int local_port)
{
	struct bs_http *h = cookie;

	h->connected = true;
	h->last_ns = bs_clock_ns();
	return CURL_PREREQFUNC_OK;
}

static bool is_link_local(const struct sockaddr *a)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	uint32_t mapped;

	if (a->sa_family == AF_INET) {
		memcpy(&v4, a, sizeof(v4));
		return ntohl(v4.sin_addr.s_addr) >> 16 == LINK_LOCAL_V4;
	}
	if (a->sa_family != AF_INET6)
		return false;
	memcpy(&v6, a, sizeof(v6));
	memcpy(&mapped, &v6.sin6_addr.s6_addr[12], sizeof(mapped));
	return IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && ntohl(mapped) >> 16 == LINK_LOCAL_V4);
}

/* After the name was resolved, so that no name can hide the address. */
static curl_socket_t on_socket(void *cookie, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct bs_http *h = cookie;

	if (is_link_local(&a->addr)) {
		h->link_local = true;
		return CURL_SOCKET_BAD;
	}
	return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* --- setting up, and the end ------------------------------------------------------------------ */

static int make_headers(struct bs_http *h)
{
	struct curl_slist *list;

	for (size_t i = 0; i < h->headers.n; i++) {
		list = curl_slist_append(h->slist, h->headers.v[i]);
		if (!list)
			return -ENOMEM;
		h->slist = list;
	}
	return 0;
}

#define SET(OPTION, VALUE)                                                                         \
	do {                                                                                       \
		if (curl_easy_setopt(easy, OPTION, VALUE) != CURLE_OK)                             \
			return -EINVAL;                                                            \
	} while (0)

static int prepare_method(struct bs_http *h, CURL *easy)
{
	if (h->has_body) {
		/* UPLOAD and a method's name give PUT, POST and PATCH alike, streamed */
		SET(CURLOPT_UPLOAD, 1L);
		SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)h->body_len);
		SET(CURLOPT_READFUNCTION, on_upload);
		SET(CURLOPT_READDATA, h);
		SET(CURLOPT_SEEKFUNCTION, on_seek);
		SET(CURLOPT_SEEKDATA, h);
		SET(CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
	} else if (bs_streq(h->method, "HEAD")) {
		SET(CURLOPT_NOBODY, 1L);
	}
	SET(CURLOPT_CUSTOMREQUEST, h->method);
	return 0;
}

static int prepare_peer(struct bs_http *h, CURL *easy)
{
	const struct bs_http_peer *p = h->peer;

	if (!p->verify) {
		SET(CURLOPT_SSL_VERIFYPEER, 0L);
		SET(CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (p->ca_file)
		SET(CURLOPT_CAINFO, p->ca_file);
	if (p->proxy) { /* it is what a socket is for, and resolves the names */
		SET(CURLOPT_PROXY, p->proxy);
	} else if (h->led) {
		SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
		SET(CURLOPT_OPENSOCKETDATA, h);
	}
	return 0;
}

int bs_http_prepare(struct bs_http *h, void *easy, void *share, const char *user_agent,
		    uint64_t connect_timeout_ns, uint64_t max_bytes_per_s)
{
	int r = make_headers(h);

	if (r < 0)
		return r;
	h->last_ns = bs_clock_ns();
	SET(CURLOPT_PRIVATE, h);
	SET(CURLOPT_SHARE, share);
	SET(CURLOPT_URL, h->url);
	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_USERAGENT, user_agent);
	SET(CURLOPT_HTTPHEADER, h->slist);
	SET(CURLOPT_BUFFERSIZE, 128L << 10);
	SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_timeout_ns / BS_NS_PER_MS));
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, h);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, h);
	SET(CURLOPT_PREREQFUNCTION, on_connected);
	SET(CURLOPT_PREREQDATA, h);
	SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	if (h->fresh)
		SET(CURLOPT_FRESH_CONNECT, 1L);
	if (h->negotiate) {
		SET(CURLOPT_HTTPAUTH, CURLAUTH_NEGOTIATE);
		SET(CURLOPT_USERPWD, ":");
	}
	if (max_bytes_per_s)
		SET(CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)max_bytes_per_s);
	r = prepare_method(h, easy);
	return r < 0 ? r : prepare_peer(h, easy);
}

static int code_of(const struct bs_http *h, CURLcode code)
{
	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_OPERATION_TIMEDOUT:
		return h->connected ? -ETIMEDOUT : -EHOSTUNREACH;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
		return -EACCES;
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return -EINVAL;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EREMOTEIO;
	}
}

static const char *why(int code)
{
	switch (code) {
	case -EBADMSG:
		return "an answer of wrong length, range or form";
	case -ESTALE:
		return "the file that is sent became shorter";
	default:
		return strerror(-code);
	}
}

static void fail_hinted(struct bs_http *h, int code, const char *text, const char *hint)
{
	char all[192];

	(void)snprintf(all, sizeof(all), "%s%s%s%s", text, hint ? " (" : "", hint ? hint : "",
		       hint ? ")" : "");
	bs_http_fail(h, code, all);
}

void bs_http_conclude(struct bs_http *h, int curl_code)
{
	CURLcode code = (CURLcode)curl_code;
	int r;

	if (h->enough) {
		h->result = 0;
		return;
	}
	if (code == CURLE_OK && !h->head_done) {
		r = see_head(h);
		if (r < 0)
			stop(h, r);
	}
	if (h->stopped) {
		bs_http_fail(h, h->stop_code, why(h->stop_code));
	} else if (code == CURLE_PEER_FAILED_VERIFICATION) {
		fail_hinted(h, -EACCES, "its certificate is not trusted, or is another host's",
			    h->peer->trust_hint);
	} else if (code == CURLE_COULDNT_CONNECT && h->link_local) {
		bs_http_fail(h, -EHOSTUNREACH,
			     "the registry points to a link-local address, which is not followed");
	} else if (code == CURLE_SSL_CONNECT_ERROR) {
		fail_hinted(h, -EHOSTUNREACH, "no TLS connection", h->peer->plain_hint);
	} else if (code != CURLE_OK) {
		bs_http_fail(h, code_of(h, code), curl_easy_strerror(code));
	}
}
