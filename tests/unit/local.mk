# One stanza a program, so that two of them seldom meet in a merge.
if BUILD_TESTS
UNIT_TESTS =

UNIT_TESTS += %D%/test-base-json
tests_unit_test_base_json_SOURCES = %D%/test-base-json.c %D%/unit.h
tests_unit_test_base_json_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-base-fd
tests_unit_test_base_fd_SOURCES = %D%/test-base-fd.c %D%/unit.h
tests_unit_test_base_fd_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-base-latch
tests_unit_test_base_latch_SOURCES = %D%/test-base-latch.c %D%/unit.h
tests_unit_test_base_latch_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-base-spawn
tests_unit_test_base_spawn_SOURCES = %D%/test-base-spawn.c %D%/unit.h
tests_unit_test_base_spawn_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-base-text
tests_unit_test_base_text_SOURCES = %D%/test-base-text.c %D%/unit.h
tests_unit_test_base_text_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-cache-ahead
tests_unit_test_cache_ahead_SOURCES = %D%/test-cache-ahead.c %D%/cache-fake.h %D%/cache-model.h \
	%D%/unit.h
tests_unit_test_cache_ahead_LDADD = $(CACHE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-cache-blob
tests_unit_test_cache_blob_SOURCES = %D%/test-cache-blob.c %D%/cache-model.h %D%/unit.h
tests_unit_test_cache_blob_LDADD = $(CACHE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-cache-fill
tests_unit_test_cache_fill_SOURCES = %D%/test-cache-fill.c %D%/cache-fake.h %D%/cache-model.h \
	%D%/unit.h
tests_unit_test_cache_fill_LDADD = $(CACHE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-cache-flows
tests_unit_test_cache_flows_SOURCES = %D%/test-cache-flows.c %D%/unit.h
tests_unit_test_cache_flows_LDADD = $(CACHE_LIBS) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test-cache-near
tests_unit_test_cache_near_SOURCES = %D%/test-cache-near.c %D%/unit.h
tests_unit_test_cache_near_LDADD = $(CACHE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-cache-stream
tests_unit_test_cache_stream_SOURCES = %D%/test-cache-stream.c %D%/cache-model.h %D%/unit.h
tests_unit_test_cache_stream_LDADD = $(CACHE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-ctl-client
tests_unit_test_ctl_client_SOURCES = %D%/test-ctl-client.c %D%/unit.h
tests_unit_test_ctl_client_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-ctl-conf
tests_unit_test_ctl_conf_SOURCES = %D%/test-ctl-conf.c %D%/unit.h
tests_unit_test_ctl_conf_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-ctl-program
tests_unit_test_ctl_program_SOURCES = %D%/test-ctl-program.c %D%/unit.h
tests_unit_test_ctl_program_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-ctl-msg
tests_unit_test_ctl_msg_SOURCES = %D%/test-ctl-msg.c %D%/unit.h
tests_unit_test_ctl_msg_LDADD = $(CTL_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-daemon-warm
tests_unit_test_daemon_warm_SOURCES = %D%/test-daemon-warm.c %D%/unit.h
tests_unit_test_daemon_warm_LDADD = $(DAEMON_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-conf
tests_unit_test_hdfs_conf_SOURCES = %D%/test-hdfs-conf.c %D%/unit.h
tests_unit_test_hdfs_conf_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-fskeep
tests_unit_test_hdfs_fskeep_SOURCES = %D%/test-hdfs-fskeep.c %D%/unit.h
tests_unit_test_hdfs_fskeep_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-mount
tests_unit_test_hdfs_mount_SOURCES = %D%/test-hdfs-mount.c %D%/unit.h
tests_unit_test_hdfs_mount_LDADD = $(HDFSFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-proto
tests_unit_test_hdfs_proto_SOURCES = %D%/test-hdfs-proto.c %D%/unit.h
tests_unit_test_hdfs_proto_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-readahead
tests_unit_test_hdfs_readahead_SOURCES = %D%/test-hdfs-readahead.c %D%/unit.h
tests_unit_test_hdfs_readahead_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-reply
tests_unit_test_hdfs_reply_SOURCES = %D%/test-hdfs-reply.c %D%/unit.h
tests_unit_test_hdfs_reply_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-stripe
tests_unit_test_hdfs_stripe_SOURCES = %D%/test-hdfs-stripe.c %D%/unit.h
tests_unit_test_hdfs_stripe_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hdfs-units
tests_unit_test_hdfs_units_SOURCES = %D%/test-hdfs-units.c %D%/unit.h
tests_unit_test_hdfs_units_LDADD = $(HDFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-heat
tests_unit_test_hot_heat_SOURCES = %D%/test-hot-heat.c %D%/unit.h
tests_unit_test_hot_heat_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-pack
tests_unit_test_hot_pack_SOURCES = %D%/test-hot-pack.c %D%/unit.h
tests_unit_test_hot_pack_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-profile
tests_unit_test_hot_profile_SOURCES = %D%/test-hot-profile.c %D%/unit.h
tests_unit_test_hot_profile_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-recording
tests_unit_test_hot_recording_SOURCES = %D%/test-hot-recording.c %D%/unit.h
tests_unit_test_hot_recording_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-store
tests_unit_test_hot_store_SOURCES = %D%/test-hot-store.c %D%/unit.h
tests_unit_test_hot_store_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test-daemon-kept
tests_unit_test_daemon_kept_SOURCES = %D%/test-daemon-kept.c %D%/unit.h
tests_unit_test_daemon_kept_LDADD = $(DAEMON_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-daemon-broker
tests_unit_test_daemon_broker_SOURCES = %D%/test-daemon-broker.c %D%/unit.h
tests_unit_test_daemon_broker_LDADD = $(DAEMON_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-daemon-pending
tests_unit_test_daemon_pending_SOURCES = %D%/test-daemon-pending.c %D%/unit.h
tests_unit_test_daemon_pending_LDADD = $(DAEMON_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-daemon-program
tests_unit_test_daemon_program_SOURCES = %D%/test-daemon-program.c %D%/unit.h
tests_unit_test_daemon_program_LDADD = $(DAEMON_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-translate
tests_unit_test_hot_translate_SOURCES = %D%/test-hot-translate.c %D%/unit.h
tests_unit_test_hot_translate_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-use
tests_unit_test_hot_use_SOURCES = %D%/test-hot-use.c %D%/unit.h
tests_unit_test_hot_use_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-hot-warmlist
tests_unit_test_hot_warmlist_SOURCES = %D%/test-hot-warmlist.c %D%/unit.h
tests_unit_test_hot_warmlist_LDADD = $(HOT_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-artifact
tests_unit_test_image_artifact_SOURCES = %D%/test-image-artifact.c %D%/unit.h
tests_unit_test_image_artifact_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-convert
tests_unit_test_image_convert_SOURCES = %D%/test-image-convert.c %D%/tarbuild.c %D%/tarbuild.h %D%/unit.h
tests_unit_test_image_convert_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_image_convert_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-erofs
tests_unit_test_image_erofs_SOURCES = %D%/test-image-erofs.c tests/lib/erofstree.c %D%/unit.h
tests_unit_test_image_erofs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/lib
tests_unit_test_image_erofs_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-frames
tests_unit_test_image_frames_SOURCES = %D%/test-image-frames.c %D%/unit.h
tests_unit_test_image_frames_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-layers
tests_unit_test_image_layers_SOURCES = %D%/test-image-layers.c %D%/tarbuild.c %D%/tarbuild.h %D%/unit.h
tests_unit_test_image_layers_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_image_layers_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-pack
tests_unit_test_image_pack_SOURCES = %D%/test-image-pack.c %D%/tarbuild.c %D%/unit.h
tests_unit_test_image_pack_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_image_pack_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-stub
tests_unit_test_image_stub_SOURCES = %D%/test-image-stub.c %D%/tarbuild.c %D%/unit.h
tests_unit_test_image_stub_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/unit
tests_unit_test_image_stub_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-image-tree
tests_unit_test_image_tree_SOURCES = %D%/test-image-tree.c %D%/unit.h
tests_unit_test_image_tree_LDADD = $(IMAGE_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-kern-bdi
tests_unit_test_kern_bdi_SOURCES = %D%/test-kern-bdi.c %D%/unit.h
tests_unit_test_kern_bdi_LDADD = $(KERN_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-kern-pagecache
tests_unit_test_kern_pagecache_SOURCES = %D%/test-kern-pagecache.c %D%/unit.h
tests_unit_test_kern_pagecache_LDADD = $(KERN_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-kern-memory
tests_unit_test_kern_memory_SOURCES = %D%/test-kern-memory.c %D%/unit.h
tests_unit_test_kern_memory_LDADD = $(KERN_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-kern-overlay
tests_unit_test_kern_overlay_SOURCES = %D%/test-kern-overlay.c %D%/unit.h
tests_unit_test_kern_overlay_LDADD = $(KERN_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-auth
tests_unit_test_net_auth_SOURCES = %D%/test-net-auth.c %D%/unit.h
tests_unit_test_net_auth_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-header
tests_unit_test_net_header_SOURCES = %D%/test-net-header.c %D%/unit.h
tests_unit_test_net_header_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-layout
tests_unit_test_net_layout_SOURCES = %D%/test-net-layout.c %D%/unit.h
tests_unit_test_net_layout_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-loop
tests_unit_test_net_loop_SOURCES = %D%/test-net-loop.c %D%/unit.h
tests_unit_test_net_loop_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-registry
tests_unit_test_net_registry_SOURCES = %D%/test-net-registry.c %D%/unit.h
tests_unit_test_net_registry_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-yield
tests_unit_test_net_yield_SOURCES = %D%/test-net-yield.c %D%/unit.h
tests_unit_test_net_yield_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-timers
tests_unit_test_net_timers_SOURCES = %D%/test-net-timers.c %D%/unit.h
tests_unit_test_net_timers_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-net-pace
tests_unit_test_net_pace_SOURCES = %D%/test-net-pace.c %D%/unit.h
tests_unit_test_net_pace_LDADD = $(NET_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-obs-timeline
tests_unit_test_obs_timeline_SOURCES = %D%/test-obs-timeline.c %D%/unit.h
tests_unit_test_obs_timeline_LDADD = $(OBS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-oci-ckptask
tests_unit_test_oci_ckptask_SOURCES = %D%/test-oci-ckptask.c %D%/unit.h
tests_unit_test_oci_ckptask_LDADD = $(OCI_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-oci-config
tests_unit_test_oci_config_SOURCES = %D%/test-oci-config.c %D%/unit.h
tests_unit_test_oci_config_LDADD = $(OCI_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-oci-ref
tests_unit_test_oci_ref_SOURCES = %D%/test-oci-ref.c %D%/unit.h
tests_unit_test_oci_ref_LDADD = $(OCI_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-rootfs-sources
tests_unit_test_rootfs_sources_SOURCES = %D%/test-rootfs-sources.c %D%/unit.h
tests_unit_test_rootfs_sources_LDADD = $(ROOTFS_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-rootfs-hotfiles
tests_unit_test_rootfs_hotfiles_SOURCES = %D%/test-rootfs-hotfiles.c %D%/unit.h
tests_unit_test_rootfs_hotfiles_LDADD = $(ROOTFS_LIBS) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test-rootfs-hotlook
tests_unit_test_rootfs_hotlook_SOURCES = %D%/test-rootfs-hotlook.c %D%/unit.h
tests_unit_test_rootfs_hotlook_LDADD = $(ROOTFS_LIBS) $(CMOCKA_LIBS)
UNIT_TESTS += %D%/test-oci-workload
tests_unit_test_oci_workload_SOURCES = %D%/test-oci-workload.c %D%/unit.h
tests_unit_test_oci_workload_LDADD = $(OCI_LIBS) $(CMOCKA_LIBS)

UNIT_TESTS += %D%/test-shim-args
tests_unit_test_shim_args_SOURCES = %D%/test-shim-args.c %D%/unit.h
tests_unit_test_shim_args_LDADD = $(SHIM_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)
AM_CFLAGS += $(CMOCKA_CFLAGS)
endif
