sbin_PROGRAMS += bootseer
bootseer_SOURCES = %D%/bootseer.c
bootseer_LDADD = $(SHIM_LIBS)

sbin_PROGRAMS += bootseerd
bootseerd_SOURCES = %D%/bootseerd.c
bootseerd_LDADD = $(DAEMON_LIBS)
