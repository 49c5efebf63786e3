/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/* RemoteException: Java's names for what went wrong become errno and what can be done. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdfs/reply.h"

struct entry {
	const char *name; /* of the exception, or NULL: any */
	const char *says; /* a part of its message, or NULL: any */
	int code;
	enum bs_hdfs_remedy remedy;
};

/* The first entry that fits counts. */
static const struct entry table[] = {
	/* whose messages have paths in them, which may say anything */
	{ "FileNotFoundException", NULL, ENOENT, BS_HDFS_NONE },
	{ "AccessControlException", NULL, EACCES, BS_HDFS_NONE },
	{ "FileAlreadyExistsException", NULL, EEXIST, BS_HDFS_NONE },
	{ "ParentNotDirectoryException", NULL, ENOTDIR, BS_HDFS_NONE },
	{ "PathIsNotDirectoryException", NULL, ENOTDIR, BS_HDFS_NONE },
	{ "PathIsNotEmptyDirectoryException", NULL, ENOTEMPTY, BS_HDFS_NONE },
	{ "NSQuotaExceededException", NULL, EDQUOT, BS_HDFS_NONE },
	{ "DSQuotaExceededException", NULL, EDQUOT, BS_HDFS_NONE },
	{ "QuotaByStorageTypeExceededException", NULL, EDQUOT, BS_HDFS_NONE },
	{ "QuotaExceededException", NULL, EDQUOT, BS_HDFS_NONE },
	{ "PathComponentTooLongException", NULL, ENAMETOOLONG, BS_HDFS_NONE },
	{ "FSLimitException$PathComponentTooLongException", NULL, ENAMETOOLONG, BS_HDFS_NONE },
	{ "MaxDirectoryItemsExceededException", NULL, ENOSPC, BS_HDFS_NONE },
	{ "FSLimitException$MaxDirectoryItemsExceededException", NULL, ENOSPC, BS_HDFS_NONE },
	{ "InvalidPathException", NULL, EINVAL, BS_HDFS_NONE },
	/* what comes by several names */
	{ "StandbyException", NULL, EHOSTUNREACH, BS_HDFS_STANDBY },
	{ NULL, "not supported in state standby", EHOSTUNREACH, BS_HDFS_STANDBY },
	{ NULL, "not supported in state observer", EHOSTUNREACH, BS_HDFS_STANDBY },
	{ "SafeModeException", NULL, EROFS, BS_HDFS_SAFEMODE },
	{ NULL, "is in safe mode", EROFS, BS_HDFS_SAFEMODE },
	{ "RetriableException", NULL, EAGAIN, BS_HDFS_RETRY },
	{ NULL, "in startup mode", EAGAIN, BS_HDFS_RETRY },
	{ NULL, "Namenode is not started", EAGAIN, BS_HDFS_RETRY },
	{ "InvalidToken", NULL, EACCES, BS_HDFS_LOGIN },
	{ NULL, "InvalidToken", EACCES, BS_HDFS_LOGIN },
	{ "AuthorizationException", NULL, EACCES, BS_HDFS_NONE },
	{ "AuthenticationException", NULL, EACCES, BS_HDFS_LOGIN },
	{ "SecurityException", NULL, EACCES, BS_HDFS_LOGIN },
	{ NULL, "rename destination directory is not empty", ENOTEMPTY, BS_HDFS_NONE },
	{ NULL, "is non empty", ENOTEMPTY, BS_HDFS_NONE },
	{ NULL, "must both be directories", EISDIR, BS_HDFS_NONE },
	{ NULL, "cannot be renamed to itself", EINVAL, BS_HDFS_NONE },
	{ NULL, "is a directory or file under source", EINVAL, BS_HDFS_NONE },
	{ NULL, "cannot be the root", EINVAL, BS_HDFS_NONE },
	{ NULL, "could only be written to 0 of", ENOSPC, BS_HDFS_NONE },
	{ NULL, "could only be replicated to 0 nodes", ENOSPC, BS_HDFS_NONE },
	{ "IllegalArgumentException", NULL, EINVAL, BS_HDFS_NONE },
	{ "HadoopIllegalArgumentException", NULL, EINVAL, BS_HDFS_NONE },
	{ "AlreadyBeingCreatedException", NULL, EBUSY, BS_HDFS_NONE },
	{ "RecoveryInProgressException", NULL, EBUSY, BS_HDFS_NONE },
	{ "LeaseExpiredException", NULL, ESTALE, BS_HDFS_NONE },
	{ "UnsupportedOperationException", NULL, EOPNOTSUPP, BS_HDFS_NONE },
	{ "UnresolvedPathException", NULL, ELOOP, BS_HDFS_NONE },
	{ "SnapshotException", NULL, EPERM, BS_HDFS_NONE },
	{ "SnapshotAccessControlException", NULL, EROFS, BS_HDFS_NONE },
	{ NULL, "attributes provided was not found", ENODATA, BS_HDFS_NONE },
	{ NULL, "No matching attributes found", ENODATA, BS_HDFS_NONE },
	{ NULL, "already exists. The REPLACE flag must be specified", EEXIST, BS_HDFS_NONE },
	{ NULL, "does not exist. The CREATE flag must be specified", ENODATA, BS_HDFS_NONE },
	{ "XAttrNotFoundException", NULL, ENODATA, BS_HDFS_NONE },
	{ NULL, "File does not exist", ENOENT, BS_HDFS_NONE },
};

static bool fits(const struct entry *e, const char *name, const char *message)
{
	return (!e->name || bs_streq(e->name, name)) && (!e->says || strstr(message, e->says));
}

static void by_status(int status, struct bs_hdfs_exception *ret)
{
	ret->remedy = BS_HDFS_NONE;
	switch (status) {
	case 400:
		ret->code = -EINVAL;
		break;
	case 401:
		ret->code = -EACCES;
		ret->remedy = BS_HDFS_LOGIN;
		break;
	case 403:
		ret->code = -EACCES;
		break;
	case 429:
	case 503:
		ret->code = -EAGAIN;
		ret->remedy = BS_HDFS_RETRY;
		break;
	default:
		ret->code = -EREMOTEIO;
	}
}

/* Names and messages come from outside and go to people: the first line, no control characters. */
static void show(char *to, size_t size, const char *text)
{
	size_t len = strcspn(text, "\r\n");
	bs_autofree char *shown = bs_str_shown(text, len);

	(void)snprintf(to, size, "%s", shown ? shown : "");
}

void bs_reply_exception(int status, const char *text, size_t len, struct bs_hdfs_exception *ret)
{
	bs_auto(json) struct bs_json *doc = NULL;
	const char *name = NULL, *message = NULL;

	*ret = (struct bs_hdfs_exception){ 0 };
	by_status(status, ret);
	if (len && bs_json_parse("", text, len, BS_REPLY_MAX, &doc, NULL) == 0) {
		name = bs_json_str(bs_json_find(doc, "RemoteException.exception"));
		message = bs_json_str(bs_json_find(doc, "RemoteException.message"));
	}
	if (!name) {
		(void)snprintf(ret->message, sizeof(ret->message), "HTTP status %d%s", status,
			       status == 404   ? ": there is no WebHDFS"
			       : status == 401 ? ": no token and no ticket that it takes (see "
						 "bootseer-hdfs(7), Authentication)"
					       : "");
		return;
	}
	if (!message)
		message = "";
	show(ret->name, sizeof(ret->name), name);
	show(ret->message, sizeof(ret->message), message);
	/* the status says nothing more: 403 is every IOException's */
	ret->code = status == 403 || status >= 500 ? -EREMOTEIO : ret->code;
	for (size_t i = 0; i < BS_ARRAY_LEN(table); i++) {
		if (fits(&table[i], name, message)) {
			ret->code = -table[i].code;
			ret->remedy = table[i].remedy;
			return;
		}
	}
}
