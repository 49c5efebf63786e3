noinst_LIBRARIES += src/hdfs/libhdfs.a
src_hdfs_libhdfs_a_SOURCES = \
	%D%/attr.c \
	%D%/blocks.c %D%/blocks.h \
	%D%/ckpt.c %D%/ckpt.h %D%/ckptpriv.h \
	%D%/commit.c \
	%D%/datanode.c %D%/datanode.h \
	%D%/ev.c %D%/ev.h \
	%D%/exception.c \
	%D%/file.c %D%/file.h \
	%D%/fs.c %D%/fs.h %D%/fspriv.h \
	%D%/fsadopt.c \
	%D%/fsdir.c \
	%D%/fsfile.c \
	%D%/fsjob.c \
	%D%/fsmeta.c \
	%D%/fskeep.c %D%/fskeep.h \
	%D%/fsnode.c \
	%D%/fsowner.c \
	%D%/mount.c %D%/mount.h \
	%D%/gc.c \
	%D%/marked.c \
	%D%/manifest.c %D%/manifest.h \
	%D%/namenode.c %D%/namenode.h %D%/nnpriv.h \
	%D%/nnchange.c \
	%D%/nnlook.c \
	%D%/open.c \
	%D%/pages.c \
	%D%/path.c %D%/path.h \
	%D%/pick.c \
	%D%/place.c %D%/place.h \
	%D%/pool.c \
	%D%/put.c %D%/put.h \
	%D%/read.c %D%/read.h %D%/readpriv.h \
	%D%/readahead.c %D%/readahead.h \
	%D%/reply.c %D%/reply.h \
	%D%/site.c %D%/site.h \
	%D%/store.c %D%/store.h %D%/storepriv.h \
	%D%/storeread.c \
	%D%/storewrite.c \
	%D%/stripe.c %D%/stripe.h \
	%D%/targets.c %D%/targets.h \
	%D%/token.c %D%/token.h \
	%D%/units.c %D%/units.h \
	%D%/tree.c \
	%D%/view.c \
	%D%/wire.c %D%/wire.h \
	%D%/writer.c %D%/writerpriv.h \
	%D%/xfer.c %D%/xfer.h
HDFS_LIBS = src/hdfs/libhdfs.a $(NET_LIBS) $(EXPAT_LIBS) $(ZLIB_LIBS)
# with the filesystem
HDFSFS_LIBS = $(HDFS_LIBS) $(KERN_LIBS) $(FUSE_LIBS)
