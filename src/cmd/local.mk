sbin_PROGRAMS += bootseer
bootseer_SOURCES = %D%/bootseer.c
bootseer_LDADD = $(SHIM_LIBS)
