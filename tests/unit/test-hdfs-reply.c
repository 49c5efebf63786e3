/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/str.h"
#include "hdfs/reply.h"

static void exceptions_become_errno(void **state)
{
	static const struct {
		int status;
		const char *name, *message;
		int code;
		enum bs_hdfs_remedy remedy;
	} cases[] = {
		{ 403, "StandbyException",
		  "Operation category READ is not supported in state standby", -EHOSTUNREACH,
		  BS_HDFS_STANDBY },
		{ 403, "RemoteException", "READ is not supported in state standby. Visit",
		  -EHOSTUNREACH, BS_HDFS_STANDBY },
		{ 403, "SafeModeException", "Cannot create. Name node is in safe mode.", -EROFS,
		  BS_HDFS_SAFEMODE },
		{ 403, "RetriableException", "x is in safe mode", -EROFS, BS_HDFS_SAFEMODE },
		{ 403, "RetriableException", "NameNode still not started", -EAGAIN, BS_HDFS_RETRY },
		{ 404, "FileNotFoundException", "File does not exist: /x", -ENOENT, BS_HDFS_NONE },
		{ 403, "AccessControlException", "Permission denied", -EACCES, BS_HDFS_NONE },
		{ 403, "InvalidToken", "token (…) is expired", -EACCES, BS_HDFS_LOGIN },
		{ 401, "SecurityException", "Failed to obtain user group information", -EACCES,
		  BS_HDFS_LOGIN },
		{ 403, "FileAlreadyExistsException", "", -EEXIST, BS_HDFS_NONE },
		{ 403, "ParentNotDirectoryException", "", -ENOTDIR, BS_HDFS_NONE },
		{ 403, "PathIsNotEmptyDirectoryException", "", -ENOTEMPTY, BS_HDFS_NONE },
		{ 403, "NSQuotaExceededException", "", -EDQUOT, BS_HDFS_NONE },
		{ 403, "DSQuotaExceededException", "", -EDQUOT, BS_HDFS_NONE },
		{ 403, "FSLimitException$PathComponentTooLongException", "", -ENAMETOOLONG,
		  BS_HDFS_NONE },
		{ 400, "IllegalArgumentException", "", -EINVAL, BS_HDFS_NONE },
		{ 403, "IOException",
		  "File /a could only be written to 0 of the 1 minReplication nodes", -ENOSPC,
		  BS_HDFS_NONE },
		{ 403, "IOException", "At least one of the attributes provided was not found.",
		  -ENODATA, BS_HDFS_NONE },
		{ 403, "IOException", "something about a token", -EREMOTEIO, BS_HDFS_NONE },
		{ 500, "NullPointerException", "", -EREMOTEIO, BS_HDFS_NONE },
		{ 503, NULL, NULL, -EAGAIN, BS_HDFS_RETRY },
		{ 401, NULL, NULL, -EACCES, BS_HDFS_LOGIN },
		{ 404, NULL, NULL, -EREMOTEIO, BS_HDFS_NONE },
		{ 302, NULL, NULL, -EREMOTEIO, BS_HDFS_NONE },
		{ 404, "FileNotFoundException", "File does not exist: /x is in safe mode", -ENOENT,
		  BS_HDFS_NONE },
		{ 403, "AccessControlException", "Permission denied: /InvalidToken in startup mode",
		  -EACCES, BS_HDFS_NONE },
		{ 403, "FileAlreadyExistsException", "/not supported in state standby", -EEXIST,
		  BS_HDFS_NONE },
	};

	for (size_t i = 0; i < BS_ARRAY_LEN(cases); i++) {
		bs_autofree char *text =
			cases[i].name ? bs_strf("{\"RemoteException\":{\"exception\":\"%s\","
						"\"message\":\"%s\"}}",
						cases[i].name, cases[i].message)
				      : bs_strf("<html>");
		struct bs_hdfs_exception e;

		bs_reply_exception(cases[i].status, text, strlen(text), &e);
		if (e.code != cases[i].code || e.remedy != cases[i].remedy)
			fail_msg("%s: %d, %d", cases[i].name, e.code, (int)e.remedy);
	}
}

static void messages_are_shown_safely(void **state)
{
	static const char text[] =
		"{\"RemoteException\":{\"exception\":\"X\",\"message\":\"a\\u001bb\\nat "
		"java\"}}";
	struct bs_hdfs_exception e;

	bs_reply_exception(403, text, sizeof(text) - 1, &e);
	assert_string_equal(e.message, "a\\033b");
}

#define STATUS                                                                                     \
	"\"accessTime\":1,\"blockSize\":2,\"childrenNum\":0,\"fileId\":3,\"group\":\"g\","         \
	"\"length\":4,\"modificationTime\":5,\"owner\":\"o\",\"replication\":3,"

static int status_of(const char *more, struct bs_hdfs_status *ret)
{
	bs_autofree char *text = bs_strf("{\"FileStatus\":{" STATUS "%s}}", more);

	return bs_reply_status(text, strlen(text), ret, NULL);
}

static void statuses_are_checked(void **state)
{
	static const char *const bad[] = {
		"\"pathSuffix\":\"\",\"permission\":\"644\"",
		"\"pathSuffix\":\"\",\"permission\":\"648\",\"type\":\"FILE\"",
		"\"pathSuffix\":\"\",\"permission\":\"\",\"type\":\"FILE\"",
		"\"pathSuffix\":\"\",\"permission\":\"16440\",\"type\":\"FILE\"",
		"\"pathSuffix\":\"a/b\",\"permission\":\"644\",\"type\":\"FILE\"",
		"\"pathSuffix\":\"..\",\"permission\":\"644\",\"type\":\"FILE\"",
		"\"pathSuffix\":\"\",\"permission\":\"644\",\"type\":\"SOCKET\"",
		"\"permission\":\"644\",\"type\":\"FILE\"",
	};
	struct bs_hdfs_status s;

	assert_int_equal(status_of("\"pathSuffix\":\"x\",\"permission\":\"1777\",\"type\":\"FILE\","
				   "\"encBit\":true",
				   &s),
			 0);
	assert_string_equal(s.name, "x");
	assert_true(s.mode == 01777 && s.len == 4 && s.file_id == 3 && s.encrypted &&
		    !s.erasure_coded && s.mtime_ms == 5);
	bs_hdfs_status_done(&s);
	for (size_t i = 0; i < BS_ARRAY_LEN(bad); i++)
		assert_int_equal(status_of(bad[i], &s), -EBADMSG);
	assert_int_equal(bs_reply_status("{}", 2, &s, NULL), -EBADMSG);
	assert_int_equal(bs_reply_status("", 0, &s, NULL), -EBADMSG);
	assert_int_equal(bs_reply_status("{\"FileStatus\":{\"length\":-1}}", 28, &s, NULL),
			 -EBADMSG);
}

#define DN "{\"ipAddr\":\"%s\",\"hostName\":\"%s\",\"xferPort\":%s,\"adminState\":\"%s\"}"
#define BLOCK                                                                                      \
	"{\"block\":{\"blockId\":%s,\"blockPoolId\":\"BP\",\"generationStamp\":1,\"numBytes\":%s}" \
	","                                                                                        \
	"\"startOffset\":%s,\"locations\":[" DN "]}"

static int blocks_of(const char *one, const char *two, struct bs_blocks **ret)
{
	bs_autofree char *text =
		bs_strf("{\"LocatedBlocks\":{\"fileLength\":30,\"locatedBlocks\":[%s%s%s]}}", one,
			two ? "," : "", two ? two : "");

	return bs_reply_blocks(text, strlen(text), ret, NULL);
}

static void blocks_are_checked(void **state)
{
	bs_autofree char *good = bs_strf(BLOCK, "1", "10", "0", "10.0.0.1", "h", "9866", "NORMAL");
	bs_autofree char *next = bs_strf(BLOCK, "-9", "20", "10", "::1", "h", "1",
					 "DECOMMISSIONED");
	bs_autofree char *overlap = bs_strf(BLOCK, "2", "20", "9", "10.0.0.1", "h", "1", "NORMAL");
	bs_autofree char *host = bs_strf(BLOCK, "2", "2", "0", "10.0.0.1", "h/x", "1", "NORMAL");
	bs_autofree char *address = bs_strf(BLOCK, "2", "2", "0", "evil", "h", "1", "NORMAL");
	bs_autofree char *port = bs_strf(BLOCK, "2", "2", "0", "10.0.0.1", "h", "65536", "NORMAL");
	bs_autofree char *zero = bs_strf(BLOCK, "2", "2", "0", "10.0.0.1", "h", "0", "NORMAL");
	bs_autofree char *huge = bs_strf(BLOCK, "2", "9223372036854775808", "0", "1.1.1.1", "h",
					 "1", "N");
	bs_autofree char *far = bs_strf(BLOCK, "2", "1", "9223372036854775807", "1.1.1.1", "h", "1",
					"N");
	bs_auto(blocks) struct bs_blocks *b = NULL;
	struct bs_blocks *none = NULL;

	assert_int_equal(blocks_of(good, next, &b), 0);
	assert_int_equal(b->n, 2);
	assert_ptr_equal(bs_blocks_find(b, 0), &b->v[0]);
	assert_ptr_equal(bs_blocks_find(b, 9), &b->v[0]);
	assert_ptr_equal(bs_blocks_find(b, 10), &b->v[1]);
	assert_ptr_equal(bs_blocks_find(b, 29), &b->v[1]);
	assert_null(bs_blocks_find(b, 30));
	assert_true(b->v[1].id == (uint64_t)-9);
	assert_true(b->v[1].replicas[0].last_resort && !b->v[0].replicas[0].last_resort);
	assert_int_equal(blocks_of(good, overlap, &none), -EBADMSG);
	assert_int_equal(blocks_of(host, NULL, &none), -EBADMSG);
	assert_int_equal(blocks_of(address, NULL, &none), -EBADMSG);
	assert_int_equal(blocks_of(port, NULL, &none), -EBADMSG);
	assert_int_equal(blocks_of(zero, NULL, &none), -EBADMSG);
	assert_int_equal(blocks_of(huge, NULL, &none), -EBADMSG);
	assert_int_equal(blocks_of(far, NULL, &none), -EBADMSG);
	assert_null(none);
}

static void lists_say_what_is_left(void **state)
{
	static const char entry[] =
		"{" STATUS "\"pathSuffix\":\"a\",\"permission\":\"0\",\"type\":\"DIRECTORY\"}";
	bs_autofree char *batch =
		bs_strf("{\"DirectoryListing\":{\"partialListing\":{\"FileStatuses\":{"
			"\"FileStatus\":[%s,%s]}},\"remainingEntries\":7}}",
			entry, entry);
	struct bs_hdfs_list l = { 0 };

	assert_int_equal(bs_reply_list(batch, strlen(batch), &l, NULL), 0);
	assert_true(l.n == 2 && l.left == 7 && l.v[0].type == BS_HDFS_DIRECTORY);
	assert_int_equal(bs_reply_list("{\"FileStatuses\":{\"FileStatus\":[]}}",
				       sizeof("{\"FileStatuses\":{\"FileStatus\":[]}}") - 1, &l,
				       NULL),
			 0);
	assert_true(l.n == 2 && l.left == 0);
	assert_int_equal(bs_reply_list("{\"FileStatuses\":{}}", sizeof("{\"FileStatuses\":{}}") - 1,
				       &l, NULL),
			 -EBADMSG);
	bs_hdfs_list_done(&l);
}

static void small_answers(void **state)
{
	bs_autofree char *token = NULL, *names = NULL, *value = NULL;
	size_t len;
	bool b;

	assert_int_equal(bs_reply_token("{\"Token\":null}", 14, &token, NULL), 0);
	assert_null(token);
	assert_int_equal(bs_reply_token("{\"Token\":{\"urlString\":\"x\"}}", 27, &token, NULL), 0);
	assert_string_equal(token, "x");
	assert_int_equal(bs_reply_bool("{\"boolean\":false}", 17, &b, NULL), 0);
	assert_false(b);
	assert_int_equal(bs_reply_bool("{\"boolean\":\"true\"}", 18, &b, NULL), -EBADMSG);
	assert_int_equal(bs_reply_xattr("{\"XAttrs\":[]}", 13, &value, NULL), -ENODATA);
	assert_int_equal(bs_reply_xattr_names("{\"XAttrNames\":\"[\\\"a\\\",\\\"b\\\"]\"}", 30,
					      &names, &len, NULL),
			 0);
	assert_int_equal(len, 4);
	assert_memory_equal(names, "a\0b", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(exceptions_become_errno), UNIT_TEST(messages_are_shown_safely),
		UNIT_TEST(statuses_are_checked),    UNIT_TEST(blocks_are_checked),
		UNIT_TEST(lists_say_what_is_left),  UNIT_TEST(small_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
