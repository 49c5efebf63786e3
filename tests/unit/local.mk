if BUILD_TESTS
UNIT_TESTS = \
	%D%/test-base-json \
	%D%/test-base-text \
	%D%/test-ctl-conf \
	%D%/test-shim-args \
	%D%/test-ctl-msg
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)

UNIT_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
UNIT_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)

tests_unit_test_base_json_SOURCES = %D%/test-base-json.c %D%/unit.h
tests_unit_test_base_json_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_base_text_SOURCES = %D%/test-base-text.c
tests_unit_test_base_text_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_ctl_msg_SOURCES = %D%/test-ctl-msg.c
tests_unit_test_ctl_msg_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
tests_unit_test_ctl_conf_SOURCES = %D%/test-ctl-conf.c
tests_unit_test_ctl_conf_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
tests_unit_test_shim_args_SOURCES = %D%/test-shim-args.c
tests_unit_test_shim_args_LDADD = $(SHIM_LIBS) $(CMOCKA_LIBS)
endif
