noinst_LIBRARIES += src/ctl/libctl.a
src_ctl_libctl_a_SOURCES = \
	%D%/client.c %D%/client.h \
	%D%/msg.c %D%/msg.h
CTL_LIBS = src/ctl/libctl.a $(BASE_LIBS)
