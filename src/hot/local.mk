noinst_LIBRARIES += src/hot/libhot.a
src_hot_libhot_a_SOURCES = \
	%D%/format.h \
	%D%/heat.c %D%/heat.h \
	%D%/pack.c %D%/pack.h \
	%D%/packcheck.c %D%/packcheck.h \
	%D%/packwrite.c \
	%D%/profile.c %D%/profile.h \
	%D%/proof.c %D%/proof.h \
	%D%/proofs.c %D%/proofs.h \
	%D%/recording.c %D%/recording.h \
	%D%/store.c %D%/store.h \
	%D%/translate.c %D%/translate.h \
	%D%/use.c %D%/use.h \
	%D%/warmlist.c %D%/warmlist.h
HOT_LIBS = src/hot/libhot.a $(CACHE_LIBS) $(IMAGE_LIBS) $(NET_LIBS) $(OCI_LIBS)
