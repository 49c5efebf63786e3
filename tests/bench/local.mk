# Benchmarks are built with the tests, and run by hand.
check_PROGRAMS += %D%/frames
tests_bench_frames_SOURCES = %D%/frames.c
tests_bench_frames_LDADD = $(IMAGE_LIBS)
check_PROGRAMS += %D%/linkproxy
tests_bench_linkproxy_SOURCES = %D%/linkproxy.c
EXTRA_DIST += %D%/README %D%/coldstart %D%/convert %D%/hdfs %D%/latency.py %D%/link %D%/memory %D%/pairs.py %D%/reads.py %D%/shim \
	%D%/tree %D%/warmer
EXTRA_DIST += %D%/README %D%/coldstart %D%/convert %D%/images.bash %D%/memory %D%/pairs.py %D%/reads.py \
	%D%/shim %D%/tree %D%/warmer
EXTRA_DIST += %D%/README %D%/coldstart %D%/convert %D%/images.bash %D%/latency.py %D%/link %D%/memory \
	%D%/pairs.py %D%/reads.py %D%/shim %D%/tree %D%/warmer
