noinst_LIBRARIES += src/kern/libkern.a
src_kern_libkern_a_SOURCES = \
	%D%/bdi.c %D%/bdi.h \
	%D%/caps.c %D%/caps.h \
	%D%/erofs.c %D%/erofs.h \
	%D%/fusedev.c %D%/fusedev.h \
	%D%/fuseserve.c %D%/fuseserve.h \
	%D%/loop.c %D%/loop.h \
	%D%/memory.c %D%/memory.h \
	%D%/mountfd.c %D%/mountfd.h \
	%D%/mountinfo.c %D%/mountinfo.h \
	%D%/overlay.c %D%/overlay.h \
	%D%/pagecache.c %D%/pagecache.h \
	%D%/probe.c %D%/probe.h \
	%D%/sandbox.c %D%/sandbox.h \
	%D%/seccomp.c %D%/seccomp.h
KERN_LIBS = src/kern/libkern.a $(BASE_LIBS) $(CAP_LIBS) $(SECCOMP_LIBS)
