/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The worker's end of its control socket: what it may ask of the supervisor because
 * it cannot do so itself, and the way its messages go out.
 *
 * One thread (the control thread) receives; any thread may ask and then waits for
 * the answer that the control thread hands over.
 */
#ifndef BS_DAEMON_BROKER_H
#define BS_DAEMON_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct bs_broker;
struct bs_error;
struct bs_msg;

int bs_broker_new(int sock, struct bs_broker **ret, struct bs_error *err);

/* Any thread. A lost supervisor is no error: the worker ends with it. */
void bs_broker_send(struct bs_broker *b, struct bs_msg *m);
void bs_broker_event(struct bs_broker *b, enum bs_log_level level, const char *text);
void bs_broker_completed(struct bs_broker *b, const char *digest);
/* Never blocks: an unpacker says so. */
void bs_broker_streaming(struct bs_broker *b, const char *digest, const char *workload, bool on);

/* Answers request id: result 0 or -errno with err's text. */
void bs_broker_reply(struct bs_broker *b, uint32_t id, int result, const struct bs_error *err);

/* Credentials of a registry, as bs_credential_fn wants them. */
int bs_broker_credentials(void *broker, const char *host, char **ret_user, char **ret_secret,
			  struct bs_error *err);

/* A descriptor of a layout directory that policy allows. */
int bs_broker_open_layout(struct bs_broker *b, const char *source, struct bs_error *err);

/* Control thread: a REPLY came in (taken over). */
void bs_broker_answered(struct bs_broker *b, struct bs_msg *m);

#endif
