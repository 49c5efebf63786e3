noinst_LIBRARIES += src/ctl/libctl.a
src_ctl_libctl_a_SOURCES = \
	%D%/client.c %D%/client.h \
	%D%/conf.c %D%/conf.h \
	%D%/confckpt.c \
	%D%/msg.c %D%/msg.h \
	%D%/program.c %D%/program.h
%D%/program.$(OBJEXT): dirs.h
CTL_LIBS = src/ctl/libctl.a $(BASE_LIBS) $(INIH_LIBS)
