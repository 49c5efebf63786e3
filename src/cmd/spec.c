/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The basis is what "runc spec" gives, but without a terminal and with a writable
 * root, since nobody is there to attach and images expect to write. On top of it
 * goes what image-spec's conversion.md says about Entrypoint, Cmd, Env, User and so on.
 */
#include "config.h"

#include "cmd/spec.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "image/userdb.h"

/* clang-format off */
#define CAPABILITIES "[\"CAP_AUDIT_WRITE\",\"CAP_KILL\",\"CAP_NET_BIND_SERVICE\"]"

static const char basis[] =
	"{\"ociVersion\":\"1.0.2\",\"process\":{\"terminal\":false,\"user\":{\"uid\":0,\"gid\":0},"
	"\"args\":[],\"env\":[],\"cwd\":\"/\",\"capabilities\":{"
	"\"bounding\":" CAPABILITIES ",\"effective\":" CAPABILITIES ","
	"\"permitted\":" CAPABILITIES ",\"ambient\":" CAPABILITIES "},"
	"\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"hard\":1024,\"soft\":1024}],"
	"\"noNewPrivileges\":true},\"root\":{\"path\":\"rootfs\",\"readonly\":false},"
	"\"hostname\":\"bootseer\",\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
	"\"options\":[\"nosuid\",\"strictatime\",\"mode=755\",\"size=65536k\"]},"
	"{\"destination\":\"/dev/pts\",\"type\":\"devpts\",\"source\":\"devpts\",\"options\":"
	"[\"nosuid\",\"noexec\",\"newinstance\",\"ptmxmode=0666\",\"mode=0620\",\"gid=5\"]},"
	"{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"shm\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\",\"size=65536k\"]},"
	"{\"destination\":\"/dev/mqueue\",\"type\":\"mqueue\",\"source\":\"mqueue\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\"]},"
	"{\"destination\":\"/sys\",\"type\":\"sysfs\",\"source\":\"sysfs\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"ro\"]},"
	"{\"destination\":\"/sys/fs/cgroup\",\"type\":\"cgroup\",\"source\":\"cgroup\","
	"\"options\":[\"nosuid\",\"noexec\",\"nodev\",\"relatime\",\"ro\"]}],"
	"\"linux\":{\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}]},"
	"\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},"
	"{\"type\":\"uts\"},{\"type\":\"mount\"}],"
	"\"maskedPaths\":[\"/proc/acpi\",\"/proc/asound\",\"/proc/kcore\",\"/proc/keys\","
	"\"/proc/latency_stats\",\"/proc/timer_list\",\"/proc/timer_stats\","
	"\"/proc/sched_debug\",\"/sys/firmware\",\"/proc/scsi\"],"
	"\"readonlyPaths\":[\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\","
	"\"/proc/sysrq-trigger\"]}}";
/* clang-format on */

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static int copy_texts(struct bs_json *to, const struct bs_json *from)
{
	for (size_t i = 0; bs_json_is(from, BS_JSON_ARRAY) && i < from->n_items; i++)
		if (bs_json_append(to, bs_json_copy(from->items[i])) < 0)
			return -ENOMEM;
	return 0;
}

static bool has_path(const struct bs_json *env)
{
	for (size_t i = 0; i < bs_json_n(env); i++) {
		const char *text = bs_json_str(bs_json_at(env, i));

		if (text && bs_str_after(text, "PATH="))
			return true;
	}
	return false;
}

static int set_process(struct bs_json *p, const struct bs_json *c, const struct bs_user *user)
{
	struct bs_json *args = bs_json_make(p, "args", BS_JSON_ARRAY);
	struct bs_json *env = bs_json_make(p, "env", BS_JSON_ARRAY);
	struct bs_json *who = bs_json_make(p, "user", BS_JSON_OBJECT), *groups;
	const char *dir = bs_json_str(bs_json_get(c, "WorkingDir"));
	int r = 0;

	if (!args || !env || !who)
		return -ENOMEM;
	if (copy_texts(args, bs_json_get(c, "Entrypoint")) < 0 ||
	    copy_texts(args, bs_json_get(c, "Cmd")) < 0 ||
	    copy_texts(env, bs_json_get(c, "Env")) < 0)
		return -ENOMEM;
	if (bs_json_n(args) == 0)
		r = bs_json_append(args, bs_json_new_str("sh"));
	if (r == 0 && !has_path(env))
		r = bs_json_append(env, bs_json_new_str(DEFAULT_PATH));
	if (r == 0 && dir && dir[0])
		r = bs_json_set(p, "cwd", dir[0] == '/' ? bs_json_new_str(dir) : NULL);
	if (r == 0)
		r = bs_json_set(who, "uid", bs_json_new_u64(user->uid));
	if (r == 0)
		r = bs_json_set(who, "gid", bs_json_new_u64(user->gid));
	if (r < 0 || user->n_groups == 0)
		return r;
	groups = bs_json_make(who, "additionalGids", BS_JSON_ARRAY);
	for (size_t i = 0; groups && i < user->n_groups; i++)
		if (bs_json_append(groups, bs_json_new_u64(user->groups[i])) < 0)
			return -ENOMEM;
	return groups ? 0 : -ENOMEM;
}

static int set_annotations(struct bs_json *spec, const struct bs_json *c, const char *image)
{
	struct bs_json *a = bs_json_make(spec, "annotations", BS_JSON_OBJECT);
	const struct bs_json *labels = bs_json_get(c, "Labels");
	const char *signal = bs_json_str(bs_json_get(c, "StopSignal"));
	int r = a ? 0 : -ENOMEM;

	/* labels are the image author's, our own keys are not */
	for (size_t i = 0; r == 0 && bs_json_is(labels, BS_JSON_OBJECT) && i < labels->n_items; i++)
		if (bs_json_is(labels->items[i], BS_JSON_STRING) &&
		    !bs_str_after(labels->keys[i], "dev.bootseer."))
			r = bs_json_set(a, labels->keys[i], bs_json_copy(labels->items[i]));
	if (r == 0 && signal)
		r = bs_json_set(a, "org.opencontainers.image.stopSignal", bs_json_new_str(signal));
	if (r == 0)
		r = bs_json_set(a, "dev.bootseer.image", bs_json_new_str(image));
	return r;
}

int ctl_spec_make(const struct bs_json *config, const struct bs_user *user, const char *image,
		  char **ret, size_t *ret_len, struct bs_error *err)
{
	bs_auto(json) struct bs_json *spec = NULL;
	bs_autobuf out = BS_BUF_INIT(16u << 20);
	const struct bs_json *c = bs_json_get(config, "config");
	const char *dir = bs_json_str(bs_json_get(c, "WorkingDir"));
	int r = bs_json_parse("default config.json", basis, sizeof(basis) - 1, sizeof(basis), &spec,
			      err);

	if (r < 0)
		return r;
	if (dir && dir[0] && dir[0] != '/')
		return bs_fail(err, -EINVAL, "the image's WorkingDir '%.200s' is not absolute",
			       dir);
	r = set_process(bs_json_get(spec, "process"), c, user);
	if (r == 0)
		r = set_annotations(spec, c, image);
	if (r == 0)
		r = bs_json_write_pretty(spec, &out);
	if (r < 0)
		return bs_fail_errno(err, r, "config.json");
	*ret_len = out.len;
	*ret = bs_buf_take(&out);
	return 0;
}
