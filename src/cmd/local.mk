bin_PROGRAMS += bootseerctl
bootseerctl_SOURCES = \
	%D%/bootseerctl.c \
	%D%/ctl-bundle.c \
	%D%/ctl-convert.c \
	%D%/ctl-image.c \
	%D%/ctl.c %D%/ctl.h \
	%D%/options.c %D%/options.h \
	%D%/progress.c %D%/progress.h \
	%D%/spec.c %D%/spec.h
bootseerctl_LDADD = $(IMAGE_LIBS) $(OCI_LIBS)
