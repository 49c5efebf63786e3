# One target a parser of foreign bytes. With --enable-fuzzers they are libFuzzer programs;
# else fuzz-main.c replays the files of tests/fuzz/corpus/TARGET in `make check`.
ALL_FUZZERS =
if FUZZERS
FUZZ_DRIVER =
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
else
FUZZ_DRIVER = %D%/fuzz-main.c
FUZZ_LINK = $(AM_LDFLAGS)
endif

ALL_FUZZERS += %D%/fuzz-args
tests_fuzz_fuzz_args_SOURCES = %D%/fuzz-args.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_args_LDADD = $(SHIM_LIBS)
tests_fuzz_fuzz_args_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-auth
tests_fuzz_fuzz_auth_SOURCES = %D%/fuzz-auth.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_auth_LDADD = $(NET_LIBS)
tests_fuzz_fuzz_auth_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-ckptask
tests_fuzz_fuzz_ckptask_SOURCES = %D%/fuzz-ckptask.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_ckptask_LDADD = $(OCI_LIBS)
tests_fuzz_fuzz_ckptask_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-conf
tests_fuzz_fuzz_conf_SOURCES = %D%/fuzz-conf.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_conf_LDADD = $(CTL_LIBS)
tests_fuzz_fuzz_conf_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-config
tests_fuzz_fuzz_config_SOURCES = %D%/fuzz-config.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_config_LDADD = $(OCI_LIBS)
tests_fuzz_fuzz_config_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-frame
tests_fuzz_fuzz_frame_SOURCES = %D%/fuzz-frame.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_frame_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_frame_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-header
tests_fuzz_fuzz_header_SOURCES = %D%/fuzz-header.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_header_LDADD = $(NET_LIBS)
tests_fuzz_fuzz_header_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-hdfsreply
tests_fuzz_fuzz_hdfsreply_SOURCES = %D%/fuzz-hdfsreply.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_hdfsreply_LDADD = $(HDFS_LIBS)
tests_fuzz_fuzz_hdfsreply_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-hdfssite
tests_fuzz_fuzz_hdfssite_SOURCES = %D%/fuzz-hdfssite.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_hdfssite_LDADD = $(HDFS_LIBS)
tests_fuzz_fuzz_hdfssite_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-hdfsstripe
tests_fuzz_fuzz_hdfsstripe_SOURCES = %D%/fuzz-hdfsstripe.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_hdfsstripe_LDADD = $(HDFS_LIBS)
tests_fuzz_fuzz_hdfsstripe_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-hdfstoken
tests_fuzz_fuzz_hdfstoken_SOURCES = %D%/fuzz-hdfstoken.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_hdfstoken_LDADD = $(HDFS_LIBS)
tests_fuzz_fuzz_hdfstoken_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-hdfswire
tests_fuzz_fuzz_hdfswire_SOURCES = %D%/fuzz-hdfswire.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_hdfswire_LDADD = $(HDFS_LIBS)
tests_fuzz_fuzz_hdfswire_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-hotpack
tests_fuzz_fuzz_hotpack_SOURCES = %D%/fuzz-hotpack.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_hotpack_LDADD = $(HOT_LIBS)
tests_fuzz_fuzz_hotpack_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-json
tests_fuzz_fuzz_json_SOURCES = %D%/fuzz-json.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_json_LDADD = $(BASE_LIBS)
tests_fuzz_fuzz_json_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-layer
tests_fuzz_fuzz_layer_SOURCES = %D%/fuzz-layer.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_layer_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_layer_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-manifest
tests_fuzz_fuzz_manifest_SOURCES = %D%/fuzz-manifest.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_manifest_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_manifest_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-marker
tests_fuzz_fuzz_marker_SOURCES = %D%/fuzz-marker.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_marker_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_marker_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-mountinfo
tests_fuzz_fuzz_mountinfo_SOURCES = %D%/fuzz-mountinfo.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_mountinfo_LDADD = $(KERN_LIBS)
tests_fuzz_fuzz_mountinfo_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-msg
tests_fuzz_fuzz_msg_SOURCES = %D%/fuzz-msg.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_msg_LDADD = $(CTL_LIBS)
tests_fuzz_fuzz_msg_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-profile
tests_fuzz_fuzz_profile_SOURCES = %D%/fuzz-profile.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_profile_LDADD = $(HOT_LIBS)
tests_fuzz_fuzz_profile_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-ref
tests_fuzz_fuzz_ref_SOURCES = %D%/fuzz-ref.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_ref_LDADD = $(OCI_LIBS)
tests_fuzz_fuzz_ref_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-table
tests_fuzz_fuzz_table_SOURCES = %D%/fuzz-table.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_table_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_table_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-tree
tests_fuzz_fuzz_tree_SOURCES = %D%/fuzz-tree.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_tree_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_tree_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-userdb
tests_fuzz_fuzz_userdb_SOURCES = %D%/fuzz-userdb.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_userdb_LDADD = $(IMAGE_LIBS)
tests_fuzz_fuzz_userdb_LDFLAGS = $(FUZZ_LINK)

ALL_FUZZERS += %D%/fuzz-warmlist
tests_fuzz_fuzz_warmlist_SOURCES = %D%/fuzz-warmlist.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_warmlist_LDADD = $(HOT_LIBS)
tests_fuzz_fuzz_warmlist_LDFLAGS = $(FUZZ_LINK)

check_PROGRAMS += $(ALL_FUZZERS)
dist_check_SCRIPTS += %D%/replay.sh
TESTS += %D%/replay.sh
EXTRA_DIST += %D%/corpus
