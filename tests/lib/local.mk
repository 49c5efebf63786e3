check_PROGRAMS += %D%/repotool
tests_lib_repotool_SOURCES = %D%/repotool.c
tests_lib_repotool_LDADD = $(NET_LIBS) $(OCI_LIBS)
