/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * What changes something. An answer may be lost after the NameNode has done what was asked,
 * and then the repeated request finds it done: "false", "not there", "there already". Each
 * operation here knows what it looks like.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "hdfs/nnpriv.h"
#include "hdfs/path.h"

/* {"boolean":…} */
static int exchange_bool(struct bs_nn *nn, struct bs_nn_call *c, bool *ret, struct bs_error *err)
{
	int r = bs_nn_exchange(nn, c, err);

	if (r < 0)
		return r;
	r = bs_reply_bool(bs_buf_str(&c->body), c->body.len, ret, err);
	return r < 0 ? bs_error_context(err, "HDFS '%s': %s", c->path, c->op) : 0;
}

int bs_nn_mkdirs(struct bs_nn *nn, const char *path, uint32_t mode, struct bs_error *err)
{
	bs_autocall c = { 0 };
	bool done = false;
	int r = bs_nn_call_init(&c, "PUT", "MKDIRS", path, err);

	if (r < 0)
		return r;
	(void)bs_buf_addf(&c.query, "&permission=%o", mode & 01777);
	r = exchange_bool(nn, &c, &done, err);
	if (r < 0)
		return r;
	return done ? 0 : bs_fail(err, -EEXIST, "HDFS '%s': a file is in the way", path);
}

int bs_nn_delete(struct bs_nn *nn, const char *path, bool recursive, struct bs_error *err)
{
	bs_autocall c = { 0 };
	bool done = false;
	int r = bs_nn_call_init(&c, "DELETE", "DELETE", path, err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "recursive", recursive ? "true" : "false");
	r = exchange_bool(nn, &c, &done, err);
	if (r < 0)
		return r;
	return done || c.lost ? 0 : bs_fail(err, -ENOENT, "HDFS '%s': there is no such file", path);
}

/* After an answer was lost: is the thing with id, which was at from, at to now? */
static bool was_renamed(struct bs_nn *nn, const char *to, uint64_t id)
{
	struct bs_hdfs_status s = { 0 };
	bool is = bs_nn_status(nn, to, &s, NULL) == 0 && s.file_id == id;

	bs_hdfs_status_done(&s);
	return is;
}

/*
 * Without renameoptions the NameNode answers 200 "false" for whatever is wrong; with it, it
 * says what. From ends up in no directory that to may be: to is the name.
 */
int bs_nn_rename(struct bs_nn *nn, const char *from, const char *to, bool overwrite,
		 struct bs_error *err)
{
	bs_autocall c = { 0 };
	struct bs_hdfs_status s = { 0 };
	bool directory;
	uint64_t id;
	int r = bs_hdfs_path_check(to);

	if (r < 0)
		return bs_fail(err, r, "'%s': HDFS can have no such name", to);
	r = bs_nn_status(nn, from, &s, err);
	if (r < 0)
		return r;
	id = s.file_id;
	directory = s.type == BS_HDFS_DIRECTORY;
	bs_hdfs_status_done(&s);
	r = bs_nn_call_init(&c, "PUT", "RENAME", from, err);
	if (r < 0)
		return r;
	bs_nn_add(&c, "destination", to);
	bs_nn_add(&c, "renameoptions", overwrite ? "OVERWRITE" : "NONE");
	r = bs_nn_exchange(nn, &c, err);
	if (r < 0 && was_renamed(nn, to, id)) /* by a request that somebody else repeated */
		return 0;
	return r == -EISDIR && directory ? -ENOTDIR : r;
}

/* An operation whose answer says nothing and that may be done twice. */
static int change(struct bs_nn *nn, struct bs_nn_call *c, struct bs_error *err)
{
	return c->query.error ? bs_fail(err, c->query.error, "HDFS '%s': too long", c->path)
			      : bs_nn_exchange(nn, c, err);
}

int bs_nn_set_mode(struct bs_nn *nn, const char *path, uint32_t mode, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "PUT", "SETPERMISSION", path, err);

	(void)bs_buf_addf(&c.query, "&permission=%o", mode & 01777);
	return r < 0 ? r : change(nn, &c, err);
}

int bs_nn_set_owner(struct bs_nn *nn, const char *path, const char *owner, const char *group,
		    struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "PUT", "SETOWNER", path, err);

	if (owner)
		bs_nn_add(&c, "owner", owner);
	if (group)
		bs_nn_add(&c, "group", group);
	return r < 0 ? r : change(nn, &c, err);
}

int bs_nn_set_times(struct bs_nn *nn, const char *path, uint64_t mtime_ms, uint64_t atime_ms,
		    struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "PUT", "SETTIMES", path, err);

	if (mtime_ms != UINT64_MAX)
		bs_nn_add_u64(&c, "modificationtime", mtime_ms);
	if (atime_ms != UINT64_MAX)
		bs_nn_add_u64(&c, "accesstime", atime_ms);
	return r < 0 ? r : change(nn, &c, err);
}

int bs_nn_set_replication(struct bs_nn *nn, const char *path, uint32_t replication,
			  struct bs_error *err)
{
	bs_autocall c = { 0 };
	bool done = false;
	int r = bs_nn_call_init(&c, "PUT", "SETREPLICATION", path, err);

	if (r < 0)
		return r;
	bs_nn_add_u64(&c, "replication", replication);
	r = exchange_bool(nn, &c, &done, err);
	if (r < 0)
		return r;
	return done ? 0 : bs_fail(err, -EISDIR, "HDFS '%s': no file, or it is gone", path);
}

int bs_nn_truncate(struct bs_nn *nn, const char *path, uint64_t len, struct bs_error *err)
{
	bs_autocall c = { 0 };
	bool done = false;
	int r = bs_nn_call_init(&c, "POST", "TRUNCATE", path, err);

	if (r < 0)
		return r;
	bs_nn_add_u64(&c, "newlength", len);
	r = exchange_bool(nn, &c, &done, err);
	if (r == -EBUSY && c.lost) /* our own first request's recovery */
		return 0;
	return r < 0 ? r : done;
}

int bs_nn_concat(struct bs_nn *nn, const char *path, const char *const *sources, size_t n,
		 struct bs_error *err)
{
	bs_autocall c = { 0 };
	struct bs_hdfs_status s = { 0 };
	int r = bs_nn_call_init(&c, "POST", "CONCAT", path, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		/* the list has no way to write a comma */
		r = strchr(sources[i], ',') ? -EINVAL : bs_hdfs_path_check(sources[i]);
		if (r < 0)
			return bs_fail(err, r, "'%s': CONCAT can have no such name", sources[i]);
		(void)bs_buf_adds(&c.query, i ? "," : "&sources=");
		bs_hdfs_path_escape(&c.query, sources[i]);
	}
	r = change(nn, &c, err);
	if (r < 0 && c.lost && n && bs_nn_status(nn, sources[0], &s, NULL) == -ENOENT)
		r = 0; /* it went into path */
	bs_hdfs_status_done(&s);
	return r;
}

int bs_nn_set_xattr(struct bs_nn *nn, const char *path, const char *name, const void *value,
		    size_t len, bool create, bool replace, struct bs_error *err)
{
	const unsigned char *bytes = value;
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "PUT", "SETXATTR", path, err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "xattr.name", name);
	(void)bs_buf_adds(&c.query, "&xattr.value=0x");
	for (size_t i = 0; i < len; i++)
		(void)bs_buf_addf(&c.query, "%02x", bytes[i]);
	bs_nn_add(&c, "flag", create ? "CREATE" : replace ? "REPLACE" : "CREATE,REPLACE");
	r = change(nn, &c, err);
	return r == -EEXIST && c.lost ? 0 : r;
}

int bs_nn_remove_xattr(struct bs_nn *nn, const char *path, const char *name, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int r = bs_nn_call_init(&c, "PUT", "REMOVEXATTR", path, err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "xattr.name", name);
	r = change(nn, &c, err);
	return r == -ENODATA && c.lost ? 0 : r;
}

int bs_nn_renew_token(struct bs_nn *nn, const char *token, uint64_t *ret_ms, struct bs_error *err)
{
	bs_autocall c = { 0 };
	int64_t ms = 0;
	int r = bs_nn_call_init(&c, "PUT", "RENEWDELEGATIONTOKEN", "/", err);

	if (r < 0)
		return r;
	bs_nn_add(&c, "token", token);
	r = bs_nn_exchange(nn, &c, err);
	if (r == 0)
		r = bs_reply_long(bs_buf_str(&c.body), c.body.len, &ms, err);
	if (r == 0)
		*ret_ms = (uint64_t)ms;
	return r;
}
