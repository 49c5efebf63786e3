# Benchmarks are built with the tests, and run by hand.
check_PROGRAMS += %D%/frames
tests_bench_frames_SOURCES = %D%/frames.c
tests_bench_frames_LDADD = $(IMAGE_LIBS)
