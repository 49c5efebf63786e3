/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "hdfs/mount.h"

static void refused(const char *text, const char *word)
{
	struct bs_mount_options o;
	struct bs_error err = BS_ERROR_INIT;

	assert_int_equal(bs_mount_options_parse(text, false, &o, &err), -EINVAL);
	if (!strstr(bs_error_text(&err), word))
		fail_msg("'%s': '%s' says nothing of '%s'", text, bs_error_text(&err), word);
}

static void taken(const char *text)
{
	struct bs_mount_options o;

	assert_int_equal(bs_mount_options_parse(text, false, &o, NULL), 0);
	bs_mount_options_done(&o);
}

static void a_name_is_not_had_with_the_login_of_another(void **state)
{
	assert_int_equal(unsetenv("HADOOP_TOKEN_FILE_LOCATION"), 0);
	taken("user=alice");
	taken("kerberos");
	taken("token=/etc/token");
	refused("kerberos,ro,user=alice", "'alice'");
	refused("hdfs_user=alice,token=/etc/token", "'alice'");
	assert_int_equal(setenv("HADOOP_TOKEN_FILE_LOCATION", "/etc/token", 1), 0);
	refused("user=alice", "'alice'");
	taken("ro");
	assert_int_equal(unsetenv("HADOOP_TOKEN_FILE_LOCATION"), 0);
}

static void values_have_bounds(void **state)
{
	taken("unit=1G,files=64,layout=plain,deadline=5s");
	refused("unit=5000", "'unit'");
	refused("unit=1025M", "'unit'");
	refused("files=65", "'files'");
	refused("replication=65536", "'replication'");
	refused("deadline=fast", "'deadline'");
	refused("colour=red", "'colour'");
	refused("ro=1", "'ro'");
	refused("token", "'token'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_name_is_not_had_with_the_login_of_another),
		UNIT_TEST(values_have_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
