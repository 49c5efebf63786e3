/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
/*
 * The sources are asked in order until one knows the host. One that is broken does not
 * hide the others; when none knows the host, the first trouble is what is reported.
 */
#include "config.h"

#include "net/auth.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "net/auth_config.h"

#define HELPER_NS (30 * BS_NS_PER_S)
#define DIR_FILES_MAX 1000
#define PROVIDERS_MAX 100
#define ARGS_MAX 100
#define HUB_SERVER "https://index.docker.io/v1/"

struct search {
	const char *host, *repository;
	struct bs_auth_found found;
	struct bs_error first; /* trouble */
};

/* True when the search is over: found. Else trouble is kept. */
static bool settle(struct search *s, int r, const struct bs_error *err)
{
	if (r == 0)
		return true;
	if (r != -ENOENT && s->first.code == 0) {
		s->first = *err;
		s->first.code = r;
	}
	return false;
}

/* --- helpers of docker ----------------------------------------------------------------------- */

static void trim_line(char *text)
{
	text[strcspn(text, "\r\n")] = '\0';
}

static int run_helper(const char *name, const char *host, struct bs_auth_found *ret,
		      struct bs_error *err)
{
	bs_autofree char *program = bs_strf("docker-credential-%s", name), *out = NULL;
	const char *server = bs_streq(host, "docker.io") ? HUB_SERVER : host;
	const char *argv[] = { program, "get", NULL };
	struct bs_spawn s = BS_SPAWN_INIT;
	size_t len;
	int r;

	if (!program)
		return bs_fail(err, -ENOMEM, "out of memory");
	s.argv = argv;
	r = bs_spawn_capture(&s, server, strlen(server), bs_clock_ns() + HELPER_NS,
			     BS_AUTH_REPLY_MAX, &out, &len, err);
	if (r == 0) {
		r = bs_auth_from_helper(program, out, len, ret, err);
	} else if (r == -ENOENT) { /* not the word for "no credentials" here */
		r = bs_fail(err, -EIO, "%s is not installed, but the configuration names it",
			    program);
	} else if (r > 0) { /* the helpers' protocol: the cause stands on stdout */
		trim_line(out);
		/* their words for "not here", and for a store that nobody set up */
		if (strstr(out, "not found"))
			r = -ENOENT;
		else
			r = bs_fail(err, -EIO, "%s: exit status %d: %.200s", program, r, out);
	}
	if (out)
		explicit_bzero(out, strlen(out));
	return r;
}

/* A helper's name stands for what it answers; entries in the file are the second choice. */
static int resolve(struct search *s, struct bs_auth_found *f, struct bs_error *err)
{
	struct bs_auth_found got = { 0 };
	int r;

	if (!f->helper)
		return 0;
	r = run_helper(f->helper, s->host, &got, err);
	if (r == 0) {
		bs_auth_found_done(f);
		*f = got;
	} else if (f->secret) {
		r = 0;
	}
	return r;
}

/* --- files ----------------------------------------------------------------------------------- */

static bool try_file(struct search *s, int dirfd, const char *path, bool globs)
{
	struct bs_error err = BS_ERROR_INIT;
	struct bs_auth_found f = { 0 };
	bs_autofree char *text = NULL;
	size_t len = 0;
	int r = bs_read_file_at(dirfd, path, O_NONBLOCK, BS_AUTH_FILE_MAX, &text, &len);

	if (r == -ENOENT || r == -ENOTDIR)
		return false;
	if (r < 0)
		(void)bs_fail_errno(&err, r, "'%s'", path);
	else
		r = bs_auth_from_config(path, text, len, s->host, s->repository, globs, &f, &err);
	if (r == 0)
		r = resolve(s, &f, &err);
	if (text)
		explicit_bzero(text, len);
	if (r == 0)
		s->found = f;
	else
		bs_auth_found_done(&f);
	return settle(s, r, &err);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* dir: the file, or as docker's own variable has it the directory that holds it. */
static bool try_docker(struct search *s, const char *dir)
{
	const char *home = secure_getenv("HOME"), *said = secure_getenv("DOCKER_CONFIG");
	bs_autofree char *path = NULL;

	if (!dir && said && *said)
		dir = said;
	if (dir)
		path = bs_strf(is_directory(dir) ? "%s/config.json" : "%s", dir);
	else if (home && *home)
		path = bs_strf("%s/.docker/config.json", home);
	return path && try_file(s, AT_FDCWD, path, false);
}

static bool try_containers(struct search *s)
{
	const char *said = secure_getenv("REGISTRY_AUTH_FILE");
	const char *run = secure_getenv("XDG_RUNTIME_DIR");
	bs_autofree char *path = NULL;

	if (said && *said)
		path = bs_strf("%s", said);
	else if (run && *run)
		path = bs_strf("%s/containers/auth.json", run);
	else
		path = bs_strf("/run/containers/%u/auth.json", getuid());
	return path && try_file(s, AT_FDCWD, path, false);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A mounted Secret's files are links through "..data": links are followed here. */
static bool try_dir(struct search *s, const char *dir)
{
	bs_autofd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int own = fd < 0 ? -1 : bs_dup(fd);
	DIR *d = own < 0 ? NULL : fdopendir(own);
	bs_autostrv names = { 0 };
	struct bs_error err = BS_ERROR_INIT;
	const struct dirent *e;
	int r = d ? 0 : -errno;

	while (d && r == 0 && (e = readdir(d))) {
		if (e->d_name[0] == '.' || !bs_str_ends(e->d_name, ".json"))
			continue;
		r = names.n < DIR_FILES_MAX ? bs_strv_add(&names, e->d_name) : -EFBIG;
	}
	if (d)
		(void)closedir(d);
	if (r < 0) {
		(void)bs_fail_errno(&err, r, "'%s'", dir);
		(void)settle(s, r, &err);
	}
	if (names.n)
		qsort(names.v, names.n, sizeof(*names.v), by_name);
	for (size_t i = 0; i < names.n; i++) {
		if (try_file(s, fd, names.v[i], true))
			return true;
	}
	return false;
}

/* --- kubelet's providers --------------------------------------------------------------------- */

static bool wants_image(const struct bs_json *provider, const struct search *s)
{
	const struct bs_json *list = bs_json_get(provider, "matchImages");

	for (size_t i = 0; i < bs_json_n(list); i++) {
		const char *pattern = bs_json_str(bs_json_at(list, i));

		if (pattern && bs_auth_covers(pattern, s->host, s->repository, true))
			return true;
	}
	return false;
}

static int make_argv(const struct bs_json *provider, const char *program, struct bs_strv *argv)
{
	const struct bs_json *args = bs_json_get(provider, "args");
	int r = bs_strv_add(argv, program);

	for (size_t i = 0; r == 0 && i < bs_json_n(args); i++) {
		const char *arg = bs_json_str(bs_json_at(args, i));

		r = arg && i < ARGS_MAX ? bs_strv_add(argv, arg) : -EINVAL;
	}
	return r;
}

static int make_env(const struct bs_json *provider, struct bs_strv *envp)
{
	const struct bs_json *env = bs_json_get(provider, "env");
	int r = 0;

	for (size_t i = 0; r == 0 && i < bs_json_n(env); i++) {
		const char *name = bs_json_str(bs_json_get(bs_json_at(env, i), "name"));
		const char *value = bs_json_str(bs_json_get(bs_json_at(env, i), "value"));

		r = name && value && !strchr(name, '=') && i < ARGS_MAX
			    ? bs_strv_addf(envp, "%s=%s", name, value)
			    : -EINVAL;
	}
	/* the first of equal names counts for most programs */
	for (char **e = environ; r == 0 && e && *e; e++)
		r = bs_strv_add(envp, *e);
	return r;
}

static int make_request(const struct search *s, struct bs_buf *out)
{
	bs_autofree char *image = bs_strf("%s/%s", s->host, s->repository);
	struct bs_jsonw *w = image ? bs_jsonw_new(false) : NULL;

	if (!w)
		return -ENOMEM;
	bs_jsonw_object(w);
	bs_jsonw_kstr(w, "kind", "CredentialProviderRequest");
	bs_jsonw_kstr(w, "apiVersion", "credentialprovider.kubelet.k8s.io/v1");
	bs_jsonw_kstr(w, "image", image);
	bs_jsonw_end(w);
	return bs_jsonw_finish(w, out);
}

static int run_provider(const struct search *s, const struct bs_json *provider, const char *bin_dir,
			struct bs_auth_found *ret, struct bs_error *err)
{
	const char *name = bs_json_str(bs_json_get(provider, "name"));
	bs_autofree char *program = NULL, *out = NULL;
	bs_autostrv argv = { 0 }, envp = { 0 };
	bs_autobuf request = BS_BUF_INIT(16 << 10);
	struct bs_spawn sp = BS_SPAWN_INIT;
	size_t len;
	int r;

	if (!name || !bs_auth_name_ok(name))
		return bs_fail(err, -EINVAL, "credential provider without a usable name");
	program = bs_strf("%s/%s", bin_dir, name);
	r = program ? make_argv(provider, program, &argv) : -ENOMEM;
	if (r == 0)
		r = make_env(provider, &envp);
	if (r == 0)
		r = make_request(s, &request);
	if (r < 0)
		return bs_fail_errno(err, r, "credential provider '%s'", name);
	sp.argv = (const char *const *)argv.v;
	sp.envp = envp.n ? (const char *const *)envp.v : NULL;
	r = bs_spawn_capture(&sp, request.data, request.len, bs_clock_ns() + HELPER_NS,
			     BS_AUTH_REPLY_MAX, &out, &len, err);
	if (r == -ENOENT)
		return bs_fail(err, -EIO, "credential provider '%s' is not in '%s'", name, bin_dir);
	if (r > 0)
		return bs_fail(err, -EIO, "credential provider '%s': exit status %d", name, r);
	if (r == 0)
		r = bs_auth_from_provider(name, out, len, s->host, s->repository, ret, err);
	if (out)
		explicit_bzero(out, strlen(out));
	return r;
}

static bool try_providers(struct search *s, const char *config, const char *bin_dir)
{
	bs_auto(json) struct bs_json *v = NULL;
	struct bs_error err = BS_ERROR_INIT;
	bs_autofree char *text = NULL;
	const struct bs_json *list;
	size_t len;
	int r = bs_read_file_at(AT_FDCWD, config, 0, BS_AUTH_FILE_MAX, &text, &len);

	if (r == -ENOENT)
		return false;
	if (r < 0)
		(void)bs_fail_errno(&err, r, "'%s'", config);
	else
		r = bs_json_parse(config, text, len, BS_AUTH_FILE_MAX, &v, &err);
	if (r < 0)
		return settle(s, r, &err);
	list = bs_json_get(v, "providers");
	for (size_t i = 0; i < bs_json_n(list) && i < PROVIDERS_MAX; i++) {
		if (!wants_image(bs_json_at(list, i), s))
			continue;
		err = BS_ERROR_INIT;
		if (settle(s, run_provider(s, bs_json_at(list, i), bin_dir, &s->found, &err), &err))
			return true;
	}
	return false;
}

int bs_auth_find(const struct bs_auth_options *o, const char *host, const char *repository,
		 char **ret_user, char **ret_secret, struct bs_error *err)
{
	struct search s = { .host = host, .repository = repository };
	bool found = try_docker(&s, o->docker_config) || try_containers(&s);

	if (!found && o->dockerconfig_dir)
		found = try_dir(&s, o->dockerconfig_dir);
	if (!found && o->provider_config && o->provider_bin_dir)
		found = try_providers(&s, o->provider_config, o->provider_bin_dir);
	if (!found && s.first.code)
		return bs_fail(err, s.first.code, "%s", s.first.msg);
	if (!found)
		return bs_fail(err, -ENOENT, "no credentials for %s", host);
	*ret_user = bs_take(&s.found.user);
	*ret_secret = bs_take(&s.found.secret);
	bs_auth_found_done(&s.found);
	return 0;
}
