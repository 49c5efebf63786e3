noinst_LIBRARIES += src/image/libimage.a
src_image_libimage_a_SOURCES = \
	%D%/artifact.c %D%/artifact.h \
	%D%/manifest.c %D%/manifest.h \
	%D%/erofs.c %D%/erofs.h \
	%D%/erofsdir.c \
	%D%/erofsdisk.h \
	%D%/erofsinode.c \
	%D%/format.h \
	%D%/frames.c %D%/frames.h \
	%D%/table.c %D%/table.h \
	%D%/tree.c %D%/tree.h \
	%D%/treecheck.c %D%/treecheck.h \
	%D%/treewrite.c
IMAGE_LIBS = src/image/libimage.a $(BASE_LIBS) $(ZSTD_LIBS)
