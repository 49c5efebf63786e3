# what a node installs beside the programs: units, engine snippets, an example
systemdunitdir = $(prefix)/lib/systemd/system
systemdunit_DATA = %D%/systemd/bootseerd.service
dist_systemdunit_DATA = %D%/systemd/bootseerd.socket
EXTRA_DIST += %D%/systemd/bootseerd.service.in
CLEANFILES += %D%/systemd/bootseerd.service

%D%/systemd/bootseerd.service: $(srcdir)/%D%/systemd/bootseerd.service.in dirs.h
	$(AM_V_GEN)$(MKDIR_P) %D%/systemd && \
		sed 's,[@]sbindir[@],$(sbindir),' $(srcdir)/%D%/systemd/bootseerd.service.in >$@.new && \
		mv $@.new $@

dist_doc_DATA = README NEWS
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	%D%/bootseer.conf \
	%D%/containerd/containerd-1.toml %D%/containerd/containerd-2.toml \
	%D%/engines/crio.conf \
	%D%/engines/docker-daemon.json \
	%D%/engines/podman.conf \
	%D%/engines/runtimeclass.yaml \
	%D%/systemd/bootseer.sysusers

# for whoever builds: packages, one command to build, one to test everything
EXTRA_DIST += %D%/analyze %D%/check %D%/coverage %D%/cppcheck.suppressions %D%/deps %D%/leftovers %D%/lib.sh %D%/lint \
	%D%/quickstart .ci/run

lint:
	$(AM_V_at)$(srcdir)/%D%/lint
.PHONY: lint

# What gcc's analyzer says; to be judged, not to be obeyed: see contrib/analyze.
analyze:
	$(AM_V_at)CC='$(CC)' $(srcdir)/%D%/analyze $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) \
		$(CPPFLAGS) $(AM_CFLAGS) -O2
.PHONY: analyze
