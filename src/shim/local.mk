noinst_LIBRARIES += src/shim/libshim.a
src_shim_libshim_a_SOURCES = \
	%D%/args.c %D%/args.h \
	%D%/dispatch.c %D%/dispatch.h \
	%D%/passthrough.c %D%/passthrough.h \
	%D%/report.c %D%/report.h \
	%D%/runc.c %D%/runc.h
SHIM_LIBS = src/shim/libshim.a $(CTL_LIBS)
