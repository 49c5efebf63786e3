if BUILD_TESTS
UNIT_TESTS = \
	%D%/test-base-json \
	%D%/test-base-text \
	%D%/test-ctl-msg \
	%D%/test-image-artifact \
	%D%/test-image-erofs \
	%D%/test-image-frames \
	%D%/test-image-layers \
	%D%/test-image-pack \
	%D%/test-image-stub \
	%D%/test-image-tree \
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
tests_unit_test_image_erofs_SOURCES = %D%/test-image-erofs.c tests/lib/erofstree.c
tests_unit_test_image_erofs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/lib
tests_unit_test_image_erofs_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_image_frames_SOURCES = %D%/test-image-frames.c
tests_unit_test_image_frames_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_image_tree_SOURCES = %D%/test-image-tree.c
tests_unit_test_image_tree_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_ctl_msg_SOURCES = %D%/test-ctl-msg.c
tests_unit_test_ctl_msg_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)
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
tests_unit_test_image_layers_SOURCES = %D%/test-image-layers.c %D%/tarbuild.c %D%/tarbuild.h
tests_unit_test_image_layers_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_image_layers_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_image_artifact_SOURCES = %D%/test-image-artifact.c
tests_unit_test_image_artifact_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_image_pack_SOURCES = %D%/test-image-pack.c %D%/tarbuild.c
tests_unit_test_image_pack_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_image_pack_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
tests_unit_test_image_stub_SOURCES = %D%/test-image-stub.c %D%/tarbuild.c
tests_unit_test_image_stub_CPPFLAGS = $(UNIT_CPPFLAGS)
tests_unit_test_image_stub_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)
endif
