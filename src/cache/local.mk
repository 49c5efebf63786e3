noinst_LIBRARIES += src/cache/libcache.a
src_cache_libcache_a_SOURCES = \
	%D%/ahead.c \
	%D%/blob.c %D%/blob.h \
	%D%/blocks.c %D%/blocks.h \
	%D%/bring.c \
	%D%/complete.c \
	%D%/fill.c %D%/fill.h \
	%D%/fillfetch.c \
	%D%/fillpriv.h \
	%D%/fillread.c \
	%D%/flows.c %D%/flows.h \
	%D%/near.c %D%/near.h \
	%D%/origin.c %D%/origin.h \
	%D%/stream.c %D%/stream.h \
	%D%/streampace.c \
	%D%/streampriv.h \
	%D%/streamwait.c
CACHE_LIBS = src/cache/libcache.a $(NET_LIBS)
