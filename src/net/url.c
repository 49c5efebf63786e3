/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "net/url.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/http.h"

static void curl_url_free_at(CURLU **u)
{
	curl_url_cleanup(*u);
}
#define bs_auto_curlu __attribute__((cleanup(curl_url_free_at)))

int bs_url_resolve(const char *base, const char *location, char **ret)
{
	bs_auto_curlu CURLU *u = curl_url();
	char *text = NULL, *scheme = NULL, *user = NULL;
	bool ok, down;

	if (!u)
		return -ENOMEM;
	if (strlen(location) > BS_HTTP_URL_MAX ||
	    curl_url_set(u, CURLUPART_URL, base, 0) != CURLUE_OK ||
	    curl_url_set(u, CURLUPART_URL, location, 0) != CURLUE_OK ||
	    curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
		return -EINVAL;
	ok = bs_streq(scheme, "https") || bs_streq(scheme, "http");
	down = bs_streq(scheme, "http") && strncasecmp(base, "https:", 6) == 0;
	curl_free(scheme);
	/* libcurl would send a user name in the URL as credentials */
	if (ok && curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK) {
		curl_free(user);
		ok = false;
	}
	if (!ok)
		return -EINVAL;
	if (down)
		return -EPERM;
	if (curl_url_get(u, CURLUPART_URL, &text, 0) != CURLUE_OK)
		return -EINVAL;
	if (strlen(text) > BS_HTTP_URL_MAX) {
		curl_free(text);
		return -EINVAL;
	}
	*ret = bs_strf("%s", text);
	curl_free(text);
	return *ret ? 0 : -ENOMEM;
}

static bool same_part(CURLU *a, CURLU *b, CURLUPart part, unsigned int flags)
{
	char *x = NULL, *y = NULL;
	bool same = curl_url_get(a, part, &x, flags) == CURLUE_OK &&
		    curl_url_get(b, part, &y, flags) == CURLUE_OK && strcasecmp(x, y) == 0;

	curl_free(x);
	curl_free(y);
	return same;
}

bool bs_url_same_origin(const char *a, const char *b)
{
	bs_auto_curlu CURLU *x = curl_url();
	bs_auto_curlu CURLU *y = curl_url();

	return x && y && curl_url_set(x, CURLUPART_URL, a, 0) == CURLUE_OK &&
	       curl_url_set(y, CURLUPART_URL, b, 0) == CURLUE_OK &&
	       same_part(x, y, CURLUPART_SCHEME, 0) && same_part(x, y, CURLUPART_HOST, 0) &&
	       same_part(x, y, CURLUPART_PORT, CURLU_DEFAULT_PORT);
}

int bs_url_add_escaped(struct bs_buf *b, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			(void)bs_buf_add(b, text, 1);
		else
			(void)bs_buf_addf(b, "%%%02X", (unsigned char)*text);
	}
	return b->error;
}

int bs_url_add_query(struct bs_buf *url, const char *name, const char *value)
{
	(void)bs_buf_addf(url, "%c%s=", strchr(bs_buf_str(url), '?') ? '&' : '?', name);
	return bs_url_add_escaped(url, value);
}
