noinst_LIBRARIES += src/base/libbase.a
src_base_libbase_a_SOURCES = \
	%D%/atomicfile.c %D%/atomicfile.h \
	%D%/buf.c %D%/buf.h \
	%D%/clock.c %D%/clock.h \
	%D%/crc32c.c %D%/crc32c.h \
	%D%/digest.c %D%/digest.h \
	%D%/error.c %D%/error.h \
	%D%/fd.c %D%/fd.h \
	%D%/human.c %D%/human.h \
	%D%/json.c %D%/json.h \
	%D%/jsonw.c %D%/jsonw.h \
	%D%/limit.c %D%/limit.h \
	%D%/list.h \
	%D%/latch.c %D%/latch.h \
	%D%/lock.c %D%/lock.h \
	%D%/log.c %D%/log.h \
	%D%/map.c %D%/map.h \
	%D%/mem.c %D%/mem.h \
	%D%/nofile.c %D%/nofile.h \
	%D%/parse.c %D%/parse.h \
	%D%/path.c %D%/path.h \
	%D%/rmtree.c %D%/rmtree.h \
	%D%/spawn.c %D%/spawn.h \
	%D%/str.c %D%/str.h
BASE_LIBS = src/base/libbase.a $(YAJL_LIBS) $(CRYPTO_LIBS)
