noinst_LIBRARIES += src/image/libimage.a
src_image_libimage_a_SOURCES = \
	%D%/artifact.c %D%/artifact.h \
	%D%/convert.c %D%/convert.h \
	%D%/convertindex.c %D%/convertindex.h \
	%D%/encoder.c %D%/encoder.h \
	%D%/erofs.c %D%/erofs.h \
	%D%/erofsdir.c \
	%D%/erofsdisk.h \
	%D%/erofsinode.c \
	%D%/find.c \
	%D%/format.h \
	%D%/frames.c %D%/frames.h \
	%D%/layer.c %D%/layer.h \
	%D%/layerfetch.c \
	%D%/layers.c %D%/layers.h \
	%D%/manifest.c %D%/manifest.h \
	%D%/nodes.c %D%/nodes.h \
	%D%/open.c %D%/open.h \
	%D%/pack.c %D%/pack.h \
	%D%/readlayers.c %D%/readlayers.h \
	%D%/rootfs.c %D%/rootfs.h \
	%D%/samefile.c %D%/samefile.h \
	%D%/spool.c %D%/spool.h \
	%D%/stub.c %D%/stub.h \
	%D%/stubtar.c %D%/stubtar.h \
	%D%/table.c %D%/table.h \
	%D%/tarhead.c %D%/tarhead.h \
	%D%/tree.c %D%/tree.h \
	%D%/treecheck.c %D%/treecheck.h \
	%D%/treewrite.c \
	%D%/userdb.c %D%/userdb.h
IMAGE_LIBS = src/image/libimage.a $(NET_LIBS) $(BASE_LIBS) $(ZSTD_LIBS) $(ARCHIVE_LIBS)
