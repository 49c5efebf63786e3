include tests/unit/local.mk
include tests/lib/local.mk
include tests/bench/local.mk
include tests/fuzz/local.mk

EXTRA_DIST += %D%/lib %D%/integration %D%/unit/cache-model.h
dist_check_SCRIPTS += %D%/layering.sh %D%/headers.sh %D%/sizes.sh %D%/forbidden.sh %D%/help.sh %D%/install.sh
TESTS += %D%/layering.sh %D%/headers.sh %D%/sizes.sh %D%/forbidden.sh %D%/help.sh %D%/install.sh
AM_TESTS_ENVIRONMENT = top_srcdir='$(top_srcdir)' top_builddir='$(top_builddir)' CC='$(CC)' \
	TEST_CPPFLAGS='$(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(AM_CFLAGS)'; \
	export top_srcdir top_builddir CC TEST_CPPFLAGS;
