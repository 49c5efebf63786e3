noinst_LIBRARIES += src/net/libnet.a
src_net_libnet_a_SOURCES = \
	%D%/attach.c \
	%D%/auth.c %D%/auth.h \
	%D%/auth_config.c %D%/auth_config.h \
	%D%/blob.c \
	%D%/call.c %D%/call.h \
	%D%/header.c %D%/header.h \
	%D%/http.c %D%/http.h \
	%D%/layout.c %D%/layout.h \
	%D%/layout_files.c %D%/layout_files.h \
	%D%/layout_impl.h \
	%D%/layout_index.c %D%/layout_index.h \
	%D%/layout_manifests.c \
	%D%/layout_reads.c %D%/layout_reads.h \
	%D%/loop.c %D%/loop.h %D%/loop_impl.h \
	%D%/pace.c %D%/pace.h \
	%D%/push.c \
	%D%/range.c \
	%D%/referrers.c %D%/referrers.h \
	%D%/registry.c %D%/registry.h \
	%D%/repo.c %D%/repo.h \
	%D%/session.c %D%/session.h \
	%D%/timers.c %D%/timers.h \
	%D%/url.c %D%/url.h \
	%D%/yield.c %D%/yield.h
NET_LIBS = src/net/libnet.a $(BASE_LIBS) $(CURL_LIBS) -lpthread
