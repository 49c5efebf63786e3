noinst_LIBRARIES += src/oci/liboci.a
src_oci_liboci_a_SOURCES = \
	%D%/annot.c %D%/annot.h \
	%D%/bundle.c %D%/bundle.h \
	%D%/ckptask.c %D%/ckptask.h \
	%D%/config.c %D%/config.h \
	%D%/edit.c %D%/edit.h \
	%D%/look.c %D%/look.h \
	%D%/ref.c %D%/ref.h \
	%D%/state.c %D%/state.h \
	%D%/workload.c %D%/workload.h
OCI_LIBS = src/oci/liboci.a $(BASE_LIBS)
