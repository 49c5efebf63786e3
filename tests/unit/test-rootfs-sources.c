/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "unit.h"

#include <string.h>

#include "rootfs/sources.h"

/* Of a directory: who has to be able to write where; of a registry: credentials. */
static void test_push_remedy(void **state)
{
	char buf[BS_SOURCES_REMEDY_LEN], dir[600] = "oci:/";

	(void)state;
	(void)bs_sources_push_remedy("oci:/srv/images", 65534, buf);
	assert_non_null(strstr(buf, "user 65534"));
	assert_non_null(strstr(buf, "'/srv/images'"));
	assert_null(strstr(buf, "credentials"));
	(void)bs_sources_push_remedy("docker://r.test/a", 65534, buf);
	assert_non_null(strstr(buf, "credentials"));
	assert_null(strstr(buf, "65534"));
	memset(dir + 5, 'a', sizeof(dir) - 6);
	(void)bs_sources_push_remedy(dir, 1, buf);
	assert_non_null(strstr(buf, "chown -R"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(test_push_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
