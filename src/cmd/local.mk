sbin_PROGRAMS += bootseer
bootseer_SOURCES = %D%/bootseer.c
bootseer_LDADD = $(SHIM_LIBS)

sbin_PROGRAMS += bootseerd
bootseerd_SOURCES = %D%/bootseerd.c
bootseerd_LDADD = $(DAEMON_LIBS)
bin_PROGRAMS += bootseerctl
bootseerctl_SOURCES = \
	%D%/bootseerctl.c \
	%D%/ctl-bundle.c \
	%D%/ctl-ckpt.c %D%/ctl-ckpt.h \
	%D%/ctl-ckpt-copy.c \
	%D%/ctl-ckpt-look.c \
	%D%/ctl-convert.c \
	%D%/ctl-doctor.c \
	%D%/ctl-hot.c %D%/ctl-hot.h \
	%D%/ctl-hot-ls.c \
	%D%/ctl-hot-pack.c \
	%D%/ctl-hot-show.c \
	%D%/ctl-hot-svg.c \
	%D%/ctl-hot-ready.c \
	%D%/ctl-hot-trace.c \
	%D%/ctl-image.c \
	%D%/ctl-node.c \
	%D%/ctl-status.c \
	%D%/ctl-timeline.c \
	%D%/ctl.c %D%/ctl.h \
	%D%/options.c %D%/options.h \
	%D%/progress.c %D%/progress.h \
	%D%/spec.c %D%/spec.h
bootseerctl_LDADD = $(HOT_LIBS) $(IMAGE_LIBS) $(CTL_LIBS) $(OCI_LIBS) $(HDFSFS_LIBS) $(OBS_LIBS)

sbin_PROGRAMS += mount.bootseer-hdfs
mount_bootseer_hdfs_SOURCES = %D%/mount-hdfs.c
mount_bootseer_hdfs_LDADD = src/daemon/libdaemon.a $(HDFSFS_LIBS) $(CTL_LIBS)
