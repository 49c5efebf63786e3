noinst_LIBRARIES += src/rootfs/librootfs.a
src_rootfs_librootfs_a_SOURCES = \
	%D%/blockfs.c %D%/blockfs.h \
	%D%/images.c %D%/images.h
ROOTFS_LIBS = src/rootfs/librootfs.a $(CACHE_LIBS) $(IMAGE_LIBS) $(NET_LIBS) $(OBS_LIBS) $(KERN_LIBS) \
	$(FUSE_LIBS)
