noinst_LIBRARIES += src/oci/liboci.a
src_oci_liboci_a_SOURCES = \
	%D%/ref.c %D%/ref.h
OCI_LIBS = src/oci/liboci.a $(BASE_LIBS)
