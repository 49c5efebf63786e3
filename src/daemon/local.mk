noinst_LIBRARIES += src/daemon/libdaemon.a
src_daemon_libdaemon_a_SOURCES = \
	%D%/broker.c %D%/broker.h \
	%D%/children.c \
	%D%/ckptrecord.c \
	%D%/ckpts.c %D%/ckpts.h \
	%D%/ckptworker.c %D%/ckptworker.h \
	%D%/clients.c \
	%D%/hots.c \
	%D%/jobs.c %D%/jobs.h \
	%D%/keeper.c %D%/keeper.h \
	%D%/kept.c \
	%D%/leases.c \
	%D%/leave.c %D%/leave.h \
	%D%/mounts.c \
	%D%/pending.c %D%/pending.h \
	%D%/program.c %D%/program.h \
	%D%/resolves.c \
	%D%/sources.c %D%/sources.h \
	%D%/hots.h \
	%D%/super.h \
	%D%/supervisor.c %D%/supervisor.h \
	%D%/systemd.c %D%/systemd.h \
	%D%/unpacks.c \
	%D%/user.c %D%/user.h \
	%D%/warm.c %D%/warm.h \
	%D%/worker.c %D%/worker.h \
	%D%/workers.c
DAEMON_LIBS = src/daemon/libdaemon.a $(ROOTFS_LIBS) $(HDFSFS_LIBS) $(OCI_LIBS) $(CTL_LIBS)
