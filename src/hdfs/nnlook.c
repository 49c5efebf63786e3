/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* What is asked of NameNodes and changes nothing. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "hdfs/nnpriv.h"
#include "hdfs/path.h"

#define QUERY_MAX (256u << 10)
#define BATCHES_MAX 100000u /* of a directory; a NameNode gives 1000 entries in one */

/* The exchange of an operation without parameters. */
static int ask(struct bs_nn *nn, struct bs_nn_call *c, const char *op, const char *path,
	       struct bs_error *err)
{
	int r = bs_nn_call_init(c, "GET", op, path, err);

	return r < 0 ? r : bs_nn_exchange(nn, c, err);
}

static int in_context(int r, const char *path, struct bs_error *err)
{
	return r == -EBADMSG ? bs_error_context(err, "HDFS '%s'", path) : r;
}

int bs_nn_status(struct bs_nn *nn, const char *path, struct bs_hdfs_status *ret,
		 struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = ask(nn, &c, "GETFILESTATUS", path, err);

	if (r < 0)
		return r;
	return in_context(bs_reply_status(bs_buf_str(&c.body), c.body.len, ret, err), path, err);
}

int bs_nn_list_batch(struct bs_nn *nn, const char *path, const char *after,
		     struct bs_hdfs_list *ret, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "GET", "LISTSTATUS_BATCH", path, err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "startAfter", after);
	r = bs_nn_exchange(nn, &c, err);
	if (r < 0)
		return r;
	return in_context(bs_reply_list(bs_buf_str(&c.body), c.body.len, ret, err), path, err);
}

int bs_nn_list(struct bs_nn *nn, const char *path, struct bs_hdfs_list *ret, struct bs_error *err)
{
	struct bs_hdfs_list list = { 0 };
	const char *after = "";
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < BATCHES_MAX; i++) {
		size_t n = list.n;

		r = bs_nn_list_batch(nn, path, after, &list, err);
		if (r < 0 || list.left == 0 || list.n == n)
			break;
		after = list.v[list.n - 1].name;
	}
	if (r < 0) {
		bs_hdfs_list_done(&list);
		return r;
	}
	*ret = list;
	return 0;
}

int bs_nn_blocks(struct bs_nn *nn, const char *path, uint64_t off, uint64_t len,
		 struct bs_blocks **ret, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "GET", "GET_BLOCK_LOCATIONS", path, err);

	if (r < 0)
		return r;
	bs_nn_add_u64(&c, "offset", off);
	bs_nn_add_u64(&c, "length", len);
	r = bs_nn_exchange(nn, &c, err);
	if (r < 0)
		return r;
	return in_context(bs_reply_blocks(bs_buf_str(&c.body), c.body.len, ret, err), path, err);
}

int bs_nn_summary(struct bs_nn *nn, const char *path, struct bs_hdfs_summary *ret,
		  struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = ask(nn, &c, "GETCONTENTSUMMARY", path, err);

	if (r < 0)
		return r;
	return in_context(bs_reply_summary(bs_buf_str(&c.body), c.body.len, ret, err), path, err);
}

int bs_nn_defaults(struct bs_nn *nn, struct bs_hdfs_defaults *ret, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = ask(nn, &c, "GETSERVERDEFAULTS", "/", err);

	return r < 0 ? r : bs_reply_defaults(bs_buf_str(&c.body), c.body.len, ret, err);
}

int bs_nn_space(struct bs_nn *nn, struct bs_hdfs_space *ret, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = ask(nn, &c, "GETSTATUS", "/", err);

	if (r == -EINVAL) /* what an unknown operation is answered with */
		return bs_fail(err, -EOPNOTSUPP, "this NameNode cannot tell its space");
	return r < 0 ? r : bs_reply_space(bs_buf_str(&c.body), c.body.len, ret, err);
}

int bs_nn_open_query(struct bs_nn *nn, const char *path, char **ret, struct bs_error *err)
{
	bs_autobuf b = BS_BUF_INIT(QUERY_MAX);
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "GET", "OPEN", path, err);

	if (r < 0)
		return r;
	bs_nn_add_u64(&c, "offset", 0);
	bs_nn_add_u64(&c, "length", 1);
	r = bs_nn_where(nn, &c, err);
	if (r < 0)
		return in_context(r, path, err);
	/* its path is not the Location's: NameNodes leave ';' as it is, which cuts the name off */
	(void)bs_buf_adds(&b, "/webhdfs/v1");
	bs_hdfs_path_escape(&b, path);
	(void)bs_buf_adds(&b, "?op=OPEN");
	bs_hdfs_location_params(&b, c.location);
	if (b.error)
		return bs_fail(err, -ENOMEM, "HDFS: out of memory");
	*ret = bs_buf_take(&b);
	return *ret ? 0 : bs_fail(err, -ENOMEM, "HDFS: out of memory");
}

/* "0x0a1b" in place. */
static int unhex(char *text, size_t *ret_len)
{
	const char *at = bs_str_after(text, "0x");
	size_t n = 0;

	for (; at && at[0]; at += 2) {
		int byte = bs_hdfs_hex(at);

		if (byte < 0)
			return -EBADMSG;
		text[n++] = (char)byte;
	}
	*ret_len = n;
	return at ? 0 : -EBADMSG;
}

int bs_nn_get_xattr(struct bs_nn *nn, const char *path, const char *name, void **ret,
		    size_t *ret_len, struct bs_error *err)
{
	bs_autocall c = { 0 };
	bs_autofree char *text = NULL;
	int r = bs_nn_call_init(&c, "GET", "GETXATTRS", path, err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "xattr.name", name);
	bs_nn_add(&c, "encoding", "hex");
	r = bs_nn_exchange(nn, &c, err);
	if (r == 0)
		r = bs_reply_xattr(bs_buf_str(&c.body), c.body.len, &text, err);
	if (r < 0)
		return in_context(r, path, err);
	if (*text && unhex(text, ret_len) < 0)
		return bs_fail(err, -EBADMSG, "HDFS '%s': an attribute's value is not as asked for",
			       path);
	if (!*text)
		*ret_len = 0;
	*ret = bs_take(&text);
	return 0;
}

int bs_nn_list_xattrs(struct bs_nn *nn, const char *path, char **ret, size_t *ret_len,
		      struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = ask(nn, &c, "LISTXATTRS", path, err);

	if (r < 0)
		return r;
	return in_context(bs_reply_xattr_names(bs_buf_str(&c.body), c.body.len, ret, ret_len, err),
			  path, err);
}

int bs_nn_get_token(struct bs_nn *nn, const char *renewer, char **ret, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "GET", "GETDELEGATIONTOKEN", "/", err);

	if (r < 0)
		return r;
	if (renewer)
		bs_nn_add(&c, "renewer", renewer);
	r = bs_nn_exchange(nn, &c, err);
	return r < 0 ? r : bs_reply_token(bs_buf_str(&c.body), c.body.len, ret, err);
}
