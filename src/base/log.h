/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * Log lines of a process. Only programs (rank 6 and 7) log; below that errors
 * are returned. One line is one write(2), so lines of several processes never mix.
 *
 * Sinks: standard error as "bootseer: text", and optionally a file as runc
 * writes it for --log: text, or JSON {"level","msg","time"} (--log-format json).
 */
#ifndef BS_BASE_LOG_H
#define BS_BASE_LOG_H

#include <stdbool.h>

enum bs_log_level { BS_LOG_ERROR, BS_LOG_WARNING, BS_LOG_INFO, BS_LOG_DEBUG, BS_LOG_LEVEL_MAX };

/* Set once at start, before threads: the program's name in each line, what is shown. */
void bs_log_init(const char *program, enum bs_log_level max);

/* Sends lines to fd too (kept, not closed); json as runc's --log-format json. */
void bs_log_to(int fd, bool json);

/* stderr gets nothing below this level even when the file does. */
void bs_log_stderr_max(enum bs_log_level max);

void bs_log(enum bs_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define bs_log_error(...) bs_log(BS_LOG_ERROR, __VA_ARGS__)
#define bs_log_warning(...) bs_log(BS_LOG_WARNING, __VA_ARGS__)
#define bs_log_info(...) bs_log(BS_LOG_INFO, __VA_ARGS__)
#define bs_log_debug(...) bs_log(BS_LOG_DEBUG, __VA_ARGS__)

#endif
