# Programs that the integration tests run.
check_PROGRAMS += %D%/erofscheck
tests_lib_erofscheck_SOURCES = %D%/erofscheck.c %D%/erofstree.c %D%/erofstree.h
tests_lib_erofscheck_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests/lib
tests_lib_erofscheck_LDADD = $(IMAGE_LIBS) $(KERN_LIBS)
