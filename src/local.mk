# One archive a folder, in the order of the ranks. NAME_LIBS is the archive with all that it
# needs, lowest rank last, so that a call upwards fails at link.
include src/base/local.mk
include src/obs/local.mk
include src/kern/local.mk
include src/net/local.mk
include src/oci/local.mk
include src/ctl/local.mk
include src/image/local.mk
include src/cache/local.mk
include src/hot/local.mk
include src/hdfs/local.mk
include src/rootfs/local.mk
include src/daemon/local.mk
include src/shim/local.mk
include src/cmd/local.mk
include src/man/local.mk
