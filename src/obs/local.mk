noinst_LIBRARIES += src/obs/libobs.a
src_obs_libobs_a_SOURCES = %D%/timeline.c %D%/timeline.h
OBS_LIBS = src/obs/libobs.a $(BASE_LIBS)
