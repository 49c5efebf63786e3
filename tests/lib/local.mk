# Programs that the integration tests run.
check_PROGRAMS += %D%/erofscheck
tests_lib_erofscheck_SOURCES = %D%/erofscheck.c %D%/erofstree.c %D%/erofstree.h
tests_lib_erofscheck_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/lib
tests_lib_erofscheck_LDADD = $(IMAGE_LIBS) $(KERN_LIBS)

check_PROGRAMS += %D%/bst-acquire
tests_lib_bst_acquire_SOURCES = %D%/bst-acquire.c
tests_lib_bst_acquire_LDADD = $(CTL_LIBS) $(KERN_LIBS)
check_PROGRAMS += %D%/repotool
tests_lib_repotool_SOURCES = %D%/repotool.c
tests_lib_repotool_LDADD = $(NET_LIBS) $(OCI_LIBS)
check_PROGRAMS += %D%/tree2erofs
tests_lib_tree2erofs_SOURCES = %D%/tree2erofs.c
tests_lib_tree2erofs_LDADD = $(IMAGE_LIBS)
check_PROGRAMS += %D%/bst-warm
tests_lib_bst_warm_SOURCES = %D%/bst-warm.c
tests_lib_bst_warm_LDADD = $(DAEMON_LIBS)
check_PROGRAMS += %D%/hdfstool
tests_lib_hdfstool_SOURCES = %D%/hdfstool.c
tests_lib_hdfstool_LDADD = $(HDFS_LIBS)
