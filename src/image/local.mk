noinst_LIBRARIES += src/image/libimage.a
src_image_libimage_a_SOURCES = \
	%D%/artifact.h \
	%D%/erofs.h \
	%D%/format.h \
	%D%/frames.c %D%/frames.h \
	%D%/table.c %D%/table.h \
	%D%/tree.c %D%/tree.h \
	%D%/treecheck.c %D%/treecheck.h \
	%D%/treewrite.c
IMAGE_LIBS = src/image/libimage.a $(BASE_LIBS) $(ZSTD_LIBS)
