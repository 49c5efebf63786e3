/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "ctl/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ini.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "ctl/program.h"

#define FILE_MAX (256u << 10)
#define WINDOW_MAX_NS (24 * 3600 * BS_NS_PER_S)
#define DURATION_MAX_NS (87600 * 3600 * BS_NS_PER_S)

/* the last seven are lists whose words have a form */
enum type {
	STRING,
	PATH,
	BOOL,
	NUMBER,
	DURATION,
	WINDOW,
	SIZE,
	PERCENT,
	RATE,
	FALLBACK,
	RECORD,
	LIST,
	DIRS,
	MIRRORS,
	STORES,
	HOSTS,
	PATTERNS,
	PLACES,
	TYPE_MAX
};

static const struct {
	const char *name;
	const char *right; /* what would be right, for errors */
} types[] = {
	{ "string", "a text" },
	{ "path", "an absolute path" },
	{ "bool", "yes or no" },
	{ "number", "a number from 1 to 1000" },
	{ "duration",
	  "a number with ms, s, m or h behind, or alone for seconds; no more than 87600h" },
	{ "duration", "a number with ms, s, m or h behind, or alone for seconds; from 1s to 24h" },
	{ "size", "a number of bytes, or with K, M, G or T behind" },
	{ "percent", "a number from 0 to 100 with % behind" },
	{ "rate", "a number of bytes per second, also with K, M or G behind, or 1% to 100%" },
	{ "fallback", "unpack or fail" },
	{ "record", "auto, annotated or never" },
	{ "list", "words between spaces or commas" },
	{ "list", "absolute paths of directories" },
	{ "list", "words HOST=MIRROR or HOST=MIRROR/PREFIX" },
	{ "list", "words oci:/DIR, docker://HOST/NAME or hdfs://HOST/DIR" },
	{ "list", "words HOST or HOST:PORT, without http:// before or a path behind" },
	{ "list", "patterns of HOST/NAME, without docker:// before" },
	{ "list", "words hdfs://NAMESERVICE/PATH, webhdfs://HOST:PORT/PATH or "
		  "swebhdfs://HOST:PORT/PATH" },
};
_Static_assert(BS_ARRAY_LEN(types) == TYPE_MAX, "a row each");

struct key {
	const char *section, *name;
	enum type type;
	size_t at; /* in struct bs_conf */
	const char *def;
	const char *text;
};

#define KEY(section, type, name, def, text)                                                        \
	{                                                                                          \
		section, #name, type, offsetof(struct bs_conf, name), def, text                    \
	}
#define KEY_NS(section, name, def, text)                                                           \
	{                                                                                          \
		section, #name, DURATION, offsetof(struct bs_conf, name##_ns), def, text           \
	}

#define KEY_CKPT(type, name, def, text)                                                            \
	{                                                                                          \
		"checkpoint", #name, type, offsetof(struct bs_conf, ckpt_##name), def, text        \
	}

static const struct key keys[] = {
	KEY("runtime", STRING, runtime, "runc", "the runtime to wrap: a name in PATH or a path"),
	KEY("node", PATH, run_dir, "/run/bootseer", "sockets, state of containers, timelines"),
	KEY("node", PATH, cache_dir, "/var/cache/bootseer", "cached images"),
	KEY("node", STRING, user, "", "the user that bootseerd's workers run as"),
	KEY("node", STRING, daemon, "", "the path of bootseerd"),
	KEY("node", BOOL, autostart, "yes", "start bootseerd when it does not run"),
	KEY_NS("node", keep_mounts, "10m", "how long an image's mount is kept unused"),
	KEY("fetch", MIRRORS, mirrors, "", "HOST=MIRROR[/PREFIX], tried before HOST"),
	KEY("fetch", STORES, stores, "",
	    "further places of images: oci:DIR, docker://HOST/NAME, hdfs://HOST/DIR"),
	KEY("fetch", HOSTS, plain_http, "", "registries that are spoken to without TLS"),
	KEY("fetch", HOSTS, insecure, "", "registries whose certificate is not checked"),
	KEY("fetch", STRING, ca_file, "", "certificates to trust, in place of the system's"),
	KEY("fetch", STRING, proxy, "", "proxy for all sources"),
	KEY("fetch", LIST, hdfs_options, "",
	    "options for images on HDFS, see mount.bootseer-hdfs(8)"),
	KEY("fetch", NUMBER, connections, "8", "connections to one host"),
	KEY_NS("fetch", connect_timeout, "10s", "for making a connection"),
	KEY_NS("fetch", stall_timeout, "15s", "after which a silent transfer is tried anew"),
	KEY_NS("fetch", start_wait, "2m", "how long a start waits for an unreachable source"),
	KEY_NS("fetch", read_wait, "5m", "how long a reader waits before it gets an error"),
	KEY("fetch", BOOL, background, "yes", "fetch the rest of an image after the start"),
	KEY("fetch", PATTERNS, hot_only, "", "patterns of HOST/NAME for which it is not"),
	KEY("fetch", RATE, background_rate, "0", "bytes per second, or a share; 0: no limit"),
	KEY("hot", BOOL, prefetch, "yes", "stream the hot pack of a workload at its start"),
	KEY("hot", RECORD, record, "auto", "which starts without a hot pack are recorded"),
	{ "hot", "record_window", WINDOW, offsetof(struct bs_conf, record_window_ns), "2m",
	  "how long a start is recorded" },
	KEY("hot", PERCENT, rerecord, "10%", "missed beside a pack: recorded again; 0%: never"),
	KEY("hot", BOOL, publish, "yes", "push what was recorded to where the image came from"),
	{ "hot", "replication", NUMBER, offsetof(struct bs_conf, hot_replication), "1",
	  "copies of hot data that is put on HDFS, at least" },
	KEY("auth", STRING, docker_config, "", "a docker config.json with credentials"),
	KEY("auth", STRING, dockerconfig_dir, "", "a directory of such files"),
	KEY("auth", STRING, provider_config, "", "the kubelet's CredentialProviderConfig"),
	KEY("auth", STRING, provider_bin_dir, "", "where its plug-ins are"),
	KEY("policy", PATTERNS, allow_registries, "*", "patterns of HOST/NAME that may be served"),
	KEY("policy", DIRS, allow_dirs, "", "directories that oci: sources may lie in"),
	KEY("policy", PLACES, allow_hdfs, "", "directories of HDFS that images may lie in"),
	KEY("policy", BOOL, allow_annotations, "yes", "whether dev.bootseer.* annotations count"),
	KEY("policy", FALLBACK, fallback, "unpack", "when an image cannot be served lazily here"),
	KEY_CKPT(PLACES, allow_sources, "", "directories of HDFS that containers may have mounted"),
	KEY_CKPT(LIST, allow_users, "", "users of HDFS that they may name; *: any"),
	KEY_CKPT(DIRS, allow_targets, "/", "where in a container a mount may be"),
	KEY_CKPT(BOOL, allow_writes, "yes", "whether they may have a mount to write to"),
	KEY_CKPT(STRING, user, "", "the user of HDFS for those that name none"),
	KEY_CKPT(LIST, options, "", "options of all mounts, see mount.bootseer-hdfs(8)"),
	KEY_CKPT(BOOL, required, "yes", "no start without a mount that is asked for"),
	{ "checkpoint", "mount_wait", DURATION, offsetof(struct bs_conf, ckpt_mount_wait_ns), "1m",
	  "how long a start waits for HDFS" },
};

bool bs_conf_key(unsigned int i, struct bs_conf_key *ret)
{
	if (i >= BS_ARRAY_LEN(keys))
		return false;
	*ret = (struct bs_conf_key){ keys[i].section, keys[i].name, types[keys[i].type].name,
				     keys[i].def, keys[i].text };
	return true;
}

int bs_fallback_parse(const char *text, enum bs_fallback *ret)
{
	if (bs_streq(text, "unpack"))
		*ret = BS_FALLBACK_UNPACK;
	else if (bs_streq(text, "fail"))
		*ret = BS_FALLBACK_FAIL;
	else
		return -EINVAL;
	return 0;
}

static int parse_record(const char *text, enum bs_record *ret)
{
	static const char *const names[] = { "auto", "annotated", "never" };

	_Static_assert(BS_ARRAY_LEN(names) == BS_RECORD_MAX, "a name each");
	for (size_t i = 0; i < BS_ARRAY_LEN(names); i++) {
		if (bs_streq(text, names[i])) {
			*ret = (enum bs_record)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_string(char **at, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*at);
	*at = copy;
	return 0;
}

static int set_number(uint32_t *at, const char *value)
{
	uint32_t n;
	int r = bs_parse_u32(value, &n);

	if (r < 0)
		return r;
	if (n < 1 || n > 1000)
		return -ERANGE;
	*at = n;
	return 0;
}

static int set_percent(uint32_t *at, const char *value)
{
	const size_t len = strlen(value);
	char digits[8];
	uint32_t n;
	int r;

	if (len < 2 || len > sizeof(digits) || value[len - 1] != '%')
		return -EINVAL;
	memcpy(digits, value, len - 1);
	digits[len - 1] = '\0';
	r = bs_parse_u32(digits, &n);
	if (r < 0)
		return r;
	if (n > 100)
		return -ERANGE;
	*at = n;
	return 0;
}

static int set_rate(struct bs_rate *at, const char *value)
{
	struct bs_rate rate = { 0 };
	int r = strchr(value, '%') ? set_percent(&rate.percent, value)
				   : bs_parse_size(value, &rate.bytes);

	if (r < 0)
		return r;
	if (strchr(value, '%') && rate.percent == 0)
		return -ERANGE;
	*at = rate;
	return 0;
}

static bool is_list(enum type type)
{
	return type >= LIST && type < TYPE_MAX;
}

static bool place_ok(const char *word)
{
	const char *rest = strstr(word, "://"), *path = rest ? strchr(rest + 3, '/') : NULL;

	return path && bs_path_is_clean(path) &&
	       (bs_str_after(word, "hdfs://") || bs_str_after(word, "webhdfs://") ||
		bs_str_after(word, "swebhdfs://"));
}

static bool word_ok(enum type type, const char *word)
{
	const char *rest = strchr(word, '='), *name;

	switch (type) {
	case DIRS:
		return word[0] == '/';
	case MIRRORS:
		return rest && rest > word && rest[1] && !strstr(word, "://");
	case STORES:
		name = bs_str_after(word, "docker://");
		return name ? name[0] != '/' && strchr(name, '/') && !strstr(name, "://")
			    : bs_str_after(word, "oci:/") != NULL || place_ok(word);
	case HOSTS:
		return !strchr(word, '/');
	case PATTERNS: /* what they are held against has one '/' or more, and no scheme */
		return !strstr(word, "://") && !bs_str_after(word, "oci:/") &&
		       strpbrk(word, "/*?[");
	case PLACES:
		return place_ok(word);
	default:
		return true;
	}
}

/* Words that could never fit anything are mistakes: none of them is passed over. */
static int set_list(struct bs_strv *at, enum type type, const char *value)
{
	size_t i = at->n;
	int r = bs_strv_split(at, value, " \t,");

	for (; r == 0 && i < at->n; i++) {
		if (!word_ok(type, at->v[i]))
			r = -EINVAL;
	}
	return r;
}

/* Bounded, so that adding one to the clock's time always gives one that is later. */
static int set_duration(uint64_t *at, const char *value, uint64_t min, uint64_t max)
{
	uint64_t ns;
	int r = bs_parse_duration(value, &ns);

	if (r < 0)
		return r;
	if (ns < min || ns > max)
		return -ERANGE;
	*at = ns;
	return 0;
}

static int set(struct bs_conf *c, const struct key *k, const char *value)
{
	void *at = (char *)c + k->at;

	switch (k->type) {
	case PATH:
		if (!bs_path_is_clean(value))
			return -EINVAL;
		return set_string(at, value);
	case STRING:
		return set_string(at, value);
	case BOOL:
		return bs_parse_bool(value, at);
	case NUMBER:
		return set_number(at, value);
	case DURATION:
		return set_duration(at, value, 0, DURATION_MAX_NS);
	case WINDOW:
		return set_duration(at, value, BS_NS_PER_S, WINDOW_MAX_NS);
	case SIZE:
		return bs_parse_size(value, at);
	case PERCENT:
		return set_percent(at, value);
	case RATE:
		return set_rate(at, value);
	case FALLBACK:
		return bs_fallback_parse(value, at);
	case RECORD:
		return parse_record(value, at);
	case LIST:
	case DIRS:
	case MIRRORS:
	case STORES:
	case HOSTS:
	case PATTERNS:
	case PLACES:
		return set_list(at, k->type, value);
	case TYPE_MAX:
		break;
	}
	return -EINVAL;
}

/* --- reading the file ----------------------------------------------------------------------- */

struct reading {
	const char *text; /* what is left */
	unsigned int line;
	bool too_long;
	bool seen[BS_ARRAY_LEN(keys)];
	struct bs_conf *conf;
	struct bs_error *err; /* the first error stays */
	int result;
};

/* libinih's fgets: one line a call, so that the handler's line is known. */
static char *next_line(char *buf, int size, void *stream)
{
	struct reading *rd = stream;
	size_t n = strcspn(rd->text, "\n");

	if (*rd->text == '\0')
		return NULL;
	rd->line++;
	/* libinih would take the rest of a long line for a line of its own */
	if (n + 2 > (size_t)size) {
		if (rd->result == 0)
			rd->result = bs_fail(rd->err, -EINVAL,
					     "'%s' line %u is longer than %d bytes; go on in "
					     "indented lines",
					     rd->conf->file, rd->line, size - 2);
		buf[0] = '\n';
		buf[1] = '\0';
	} else {
		memcpy(buf, rd->text, n);
		buf[n] = '\n';
		buf[n + 1] = '\0';
	}
	rd->text += n + (rd->text[n] == '\n');
	return buf;
}

static int complain(struct reading *rd, int code, const char *what, const char *section,
		    const char *name, const char *remedy)
{
	if (rd->result == 0 && !section[0])
		rd->result = bs_fail(rd->err, code, "'%s' line %u: '%s' is in no section; %s",
				     rd->conf->file, rd->line, name, remedy);
	else if (rd->result == 0)
		rd->result = bs_fail(rd->err, code, "'%s' line %u: %s '%s' in section [%s]; %s",
				     rd->conf->file, rd->line, what, name, section, remedy);
	return 1; /* go on: what is right in the file counts */
}

static int take_pair(void *user, const char *section, const char *name, const char *value)
{
	struct reading *rd = user;
	bs_autofree char *remedy = NULL;
	size_t i = 0;
	int r;

	while (i < BS_ARRAY_LEN(keys) &&
	       !(bs_streq(keys[i].section, section) && bs_streq(keys[i].name, name)))
		i++;
	if (i == BS_ARRAY_LEN(keys)) {
		for (size_t j = 0; j < BS_ARRAY_LEN(keys) && !remedy; j++) {
			if (bs_streq(keys[j].name, name))
				remedy = bs_strf("it belongs to section [%s]", keys[j].section);
		}
		return complain(rd, -EINVAL, "unknown key", section, name,
				remedy ?: "see bootseer.conf(5)");
	}
	if (rd->seen[i] && !is_list(keys[i].type))
		return complain(rd, -EINVAL, "a second value for", section, name,
				"leave one of them");
	if (!rd->seen[i] && is_list(keys[i].type))
		bs_strv_done((struct bs_strv *)(void *)((char *)rd->conf + keys[i].at));
	rd->seen[i] = true;
	r = set(rd->conf, &keys[i], value);
	if (r == 0)
		return 1;
	remedy = bs_strf("it must be %s", types[keys[i].type].right);
	return complain(rd, r, "bad value of", section, name, remedy ?: "out of memory");
}

static int check_file(int fd, const char *path, struct bs_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return bs_fail_errno(err, -errno, "look at '%s'", path);
	if (!S_ISREG(st.st_mode))
		return bs_fail(err, -EINVAL, "'%s' is not a regular file", path);
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return bs_fail(err, -EPERM,
			       "'%s' may be written by others than root; chown root and chmod 644 "
			       "it",
			       path);
	return 0;
}

static int read_all(const char *path, char **ret, struct bs_error *err)
{
	bs_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len;
	int r;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0)
		return bs_fail_errno(err, -errno, "open '%s'", path);
	r = check_file(fd, path, err);
	if (r < 0)
		return r;
	r = bs_read_file(fd, FILE_MAX, ret, &len);
	if (r < 0)
		return bs_fail_errno(err, r, "read '%s'", path);
	if (memchr(*ret, '\0', len))
		return bs_fail(err, -EINVAL, "'%s' holds a NUL byte", path);
	return 0;
}

static int defaults(const char *path, struct bs_conf *ret)
{
	int r = set_string(&ret->file, path);

	for (size_t i = 0; r == 0 && i < BS_ARRAY_LEN(keys); i++)
		r = set(ret, &keys[i], keys[i].def);
	return r;
}

int bs_conf_read(const char *path, struct bs_conf *ret, struct bs_error *err)
{
	bs_autofree char *text = NULL;
	struct reading rd = { .conf = ret, .err = err };
	int r;

	if (!path)
		path = secure_getenv("BOOTSEER_CONFIG");
	*ret = (struct bs_conf){ .named = path };
	if (!path)
		path = bs_program_conf_file();
	r = defaults(path, ret);
	if (r < 0)
		return bs_fail(err, r, "read '%s': out of memory", path);
	r = read_all(path, &text, err);
	if (r == -ENOENT && ret->named)
		return bs_fail(err, r, "configuration '%s' does not exist", path);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	rd.text = text;
	r = ini_parse_stream(next_line, &rd, take_pair, &rd);
	if (rd.result < 0)
		return rd.result;
	if (r < 0)
		return bs_fail(err, -ENOMEM, "read '%s': out of memory", path);
	if (r > 0)
		return bs_fail(err, -EINVAL,
			       "'%s' line %d: neither a [section], nor KEY = VALUE, nor a comment",
			       path, r);
	return 0;
}

void bs_conf_done(struct bs_conf *c)
{
	free(bs_take(&c->file));
	for (size_t i = 0; i < BS_ARRAY_LEN(keys); i++) {
		void *at = (char *)c + keys[i].at;

		if (keys[i].type == STRING || keys[i].type == PATH)
			free(bs_take((char **)at));
		else if (is_list(keys[i].type))
			bs_strv_done(at);
	}
}

/* --- policy ---------------------------------------------------------------------------------- */

static int allows_dir(const struct bs_conf *c, const char *dir, struct bs_error *err)
{
	char real[PATH_MAX];
	bs_autofree char *clean = bs_path_clean(dir);

	if (!clean)
		return bs_fail(err, -ENOMEM, "check 'oci:%s': out of memory", dir);
	if (dir[0] != '/')
		return bs_fail(err, -EPERM, "source 'oci:%s': its directory must be absolute", dir);
	/* where it is absent, the way there counts as it is written */
	if (!realpath(clean, real))
		(void)strncpy(real, clean, sizeof(real) - 1);
	real[sizeof(real) - 1] = '\0';
	for (size_t i = 0; i < c->allow_dirs.n; i++) {
		char allowed[PATH_MAX];

		if (realpath(c->allow_dirs.v[i], allowed) && bs_path_is_below(real, allowed))
			return 0;
	}
	return bs_fail(err, -EPERM,
		       "source 'oci:%s' is not allowed here: add its directory to 'allow_dirs' in "
		       "section [policy] of '%s'",
		       dir, c->file);
}

static bool matches(const struct bs_strv *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->n; i++) {
		if (fnmatch(patterns->v[i], name, 0) == 0)
			return true;
	}
	return false;
}

bool bs_conf_is_hot_only(const struct bs_conf *c, const struct bs_strv *sources)
{
	for (size_t i = 0; i < sources->n; i++) {
		const char *rest = bs_str_after(sources->v[i], "docker://");

		if (rest && matches(&c->hot_only, rest))
			return true;
	}
	return false;
}

int bs_conf_allows(const struct bs_conf *c, const char *source, struct bs_error *err)
{
	const char *rest = bs_str_after(source, "oci:");

	if (rest)
		return allows_dir(c, rest, err);
	if (place_ok(source)) {
		if (bs_conf_is_below_any(source, &c->allow_hdfs) || bs_strv_has(&c->stores, source))
			return 0;
		return bs_fail(err, -EPERM,
			       "source '%s' is not allowed here: add a directory that it is below "
			       "to 'allow_hdfs' in section [policy] of '%s'",
			       source, c->file);
	}
	rest = bs_str_after(source, "docker://");
	if (rest && matches(&c->allow_registries, rest))
		return 0;
	return bs_fail(err, -EPERM,
		       "source '%s' is not allowed here: add a pattern for it to "
		       "'allow_registries' in section [policy] of '%s'",
		       source, c->file);
}

static int add_once(struct bs_strv *l, const char *text)
{
	return bs_strv_has(l, text) ? 0 : bs_strv_add(l, text);
}

/* "docker://HOST/NAME" by way of each "HOST=MIRROR[/PREFIX]". */
static int add_mirrors(const struct bs_conf *c, const char *source, struct bs_strv *l)
{
	const char *rest = bs_str_after(source, "docker://");
	size_t host = rest ? strcspn(rest, "/") : 0;
	int r = 0;

	for (size_t i = 0; rest && r == 0 && i < c->mirrors.n; i++) {
		const char *m = c->mirrors.v[i];
		bs_autofree char *text = NULL;

		if (strncmp(m, rest, host) != 0 || m[host] != '=')
			continue;
		text = bs_strf("docker://%s%s", m + host + 1, rest + host);
		r = text ? add_once(l, text) : -ENOMEM;
	}
	return r;
}

int bs_conf_sources(const struct bs_conf *c, const char *source, struct bs_strv *ret,
		    struct bs_error *err)
{
	bs_autostrv l = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ret->n; i++) {
		if (!bs_strv_has(&c->stores, ret->v[i]))
			r = bs_strv_add(&l, ret->v[i]);
	}
	if (r == 0)
		r = add_mirrors(c, source, &l);
	if (r == 0)
		r = add_once(&l, source);
	for (size_t i = 0; r == 0 && i < c->stores.n; i++)
		r = add_once(&l, c->stores.v[i]);
	if (r < 0)
		return bs_fail(err, r, "list the sources of '%s': out of memory", source);
	bs_strv_done(ret);
	*ret = l;
	l = (struct bs_strv){ 0 };
	return 0;
}
