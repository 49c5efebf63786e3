# One archive a folder; RANK_LIBS lists them from the highest rank down, so that a call
# upwards fails at link.
RANK_LIBS =

include src/base/local.mk
include src/net/local.mk
include src/oci/local.mk
include src/image/local.mk
include src/cmd/local.mk
include src/man/local.mk
