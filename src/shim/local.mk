noinst_LIBRARIES += src/shim/libshim.a
src_shim_libshim_a_SOURCES = \
	%D%/acquire.c %D%/acquire.h \
	%D%/args.c %D%/args.h \
	%D%/ckpts.c %D%/ckpts.h \
	%D%/create.c %D%/create.h \
	%D%/delete.c %D%/delete.h \
	%D%/dispatch.c %D%/dispatch.h \
	%D%/job.c %D%/job.h \
	%D%/passthrough.c %D%/passthrough.h \
	%D%/report.c %D%/report.h \
	%D%/runc.c %D%/runc.h
# No libraries but those of base: what a runtime's start costs is mostly loading them. So
# the archives stand here without theirs, and nothing that needs those may be called.
SHIM_LIBS = src/shim/libshim.a src/rootfs/librootfs.a src/image/libimage.a src/ctl/libctl.a \
	src/oci/liboci.a src/kern/libkern.a src/obs/libobs.a $(BASE_LIBS) $(INIH_LIBS)
