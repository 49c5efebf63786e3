if BUILD_TESTS
UNIT_TESTS = \
	%D%/test-base-json \
	%D%/test-base-text \
	%D%/test-net-auth \
	%D%/test-net-header \
	%D%/test-net-layout \
	%D%/test-net-loop \
	%D%/test-oci-ref
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)

UNIT_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
UNIT_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)

tests_unit_test_base_json_SOURCES = %D%/test-base-json.c %D%/unit.h
tests_unit_test_base_json_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_base_text_SOURCES = %D%/test-base-text.c
tests_unit_test_base_text_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_net_auth_SOURCES = %D%/test-net-auth.c
tests_unit_test_net_auth_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)
tests_unit_test_net_header_SOURCES = %D%/test-net-header.c
tests_unit_test_net_header_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)
tests_unit_test_net_layout_SOURCES = %D%/test-net-layout.c
tests_unit_test_net_layout_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)
tests_unit_test_net_loop_SOURCES = %D%/test-net-loop.c
tests_unit_test_net_loop_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)
tests_unit_test_oci_ref_SOURCES = %D%/test-oci-ref.c
tests_unit_test_oci_ref_LDADD = $(OCI_LIBS) $(CMOCKA_LIBS)
endif
