noinst_LIBRARIES += src/rootfs/librootfs.a
src_rootfs_librootfs_a_SOURCES = \
	%D%/assemble.c %D%/assemble.h \
	%D%/blockfs.c %D%/blockfs.h \
	%D%/ckptdir.c %D%/ckptdir.h \
	%D%/hotagain.c %D%/hotagain.h \
	%D%/hotbuild.c %D%/hotbuild.h \
	%D%/hotdonor.c %D%/hotdonor.h \
	%D%/hotfiles.c %D%/hotfiles.h \
	%D%/hotkept.c %D%/hotkept.h \
	%D%/hotlook.c %D%/hotlook.h \
	%D%/hotpriv.h \
	%D%/hotrecord.c \
	%D%/hotstart.c %D%/hotstart.h \
	%D%/hotstatus.c \
	%D%/hottell.c \
	%D%/hotwatch.c %D%/hotwatch.h \
	%D%/entry.c %D%/entry.h \
	%D%/images.c %D%/images.h \
	%D%/layers.c %D%/layers.h \
	%D%/rounds.c %D%/rounds.h \
	%D%/share.c %D%/share.h \
	%D%/sources.c %D%/sources.h \
	%D%/teardown.c %D%/teardown.h \
	%D%/unpack.c %D%/unpack.h \
	%D%/verify.c
ROOTFS_LIBS = src/rootfs/librootfs.a src/hot/libhot.a $(CACHE_LIBS) $(IMAGE_LIBS) $(OCI_LIBS) $(NET_LIBS) $(OBS_LIBS) $(KERN_LIBS) \
	$(FUSE_LIBS)
