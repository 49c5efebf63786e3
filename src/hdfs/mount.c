/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "hdfs/mount.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/parse.h"
#include "base/str.h"
#include "hdfs/ckpt.h"
#include "hdfs/fs.h"
#include "hdfs/fskeep.h"
#include "hdfs/namenode.h"
#include "hdfs/place.h"
#include "hdfs/read.h"
#include "hdfs/site.h"
#include "net/http.h"
#include "net/loop.h"

#define ATTR_NS BS_NS_PER_S
#define MEMORY (UINT64_C(512) << 20)
#define UNIT_MAX (UINT64_C(1) << 30)
#define FILES_MAX 64u
#define NOBODY 65534u

enum kind { TEXT, SIZE, COUNT, DURATION, ID, YES, NO, LAYOUT, IGNORED };

static const struct option {
	const char *name;
	enum kind kind;
	size_t at;
} table[] = {
#define AT(MEMBER) offsetof(struct bs_mount_options, MEMBER)
	{ "ro", YES, AT(read_only) },
	{ "rw", NO, AT(read_only) },
	{ "noexec", YES, AT(noexec) },
	{ "exec", NO, AT(noexec) },
	{ "noatime", YES, AT(noatime) },
	{ "atime", NO, AT(noatime) },
	{ "user", TEXT, AT(user) },
	{ "hdfs_user", TEXT, AT(user) },
	{ "conf", TEXT, AT(conf) },
	{ "token", TEXT, AT(token) },
	{ "ca", TEXT, AT(ca) },
	{ "kerberos", YES, AT(kerberos) },
	{ "insecure", YES, AT(insecure) },
	{ "deadline", DURATION, AT(deadline_ns) },
	{ "layout", LAYOUT, AT(plain) },
	{ "unit", SIZE, AT(unit) },
	{ "files", COUNT, AT(files) },
	{ "replication", COUNT, AT(replication) },
	{ "write_file", SIZE, AT(write_file) },
	{ "write_memory", SIZE, AT(write_mount) },
	{ "grace", DURATION, AT(grace_ns) },
	{ "uid", ID, AT(uid) },
	{ "gid", ID, AT(gid) },
	{ "attr_timeout", DURATION, AT(attr_ns) },
	{ "memory", SIZE, AT(memory) },
	{ "runas", TEXT, AT(runas) },
	{ "log", TEXT, AT(log) },
	{ "foreground", YES, AT(foreground) },
#undef AT
	/* always so, or for others to look at */
	{ "nosuid", IGNORED, 0 },
	{ "nodev", IGNORED, 0 },
	{ "allow_other", IGNORED, 0 },
	{ "default_permissions", IGNORED, 0 },
	{ "defaults", IGNORED, 0 },
	{ "auto", IGNORED, 0 },
	{ "noauto", IGNORED, 0 },
	{ "nofail", IGNORED, 0 },
	{ "nouser", IGNORED, 0 },
	{ "_netdev", IGNORED, 0 },
	{ "relatime", IGNORED, 0 },
	{ "comment", IGNORED, 0 },
	{ "suid", IGNORED, 0 },
	{ "dev", IGNORED, 0 },
	{ "async", IGNORED, 0 },
	{ "diratime", IGNORED, 0 },
	{ "nodiratime", IGNORED, 0 },
	{ "users", IGNORED, 0 },
	{ "nousers", IGNORED, 0 },
	{ "owner", IGNORED, 0 },
	{ "noowner", IGNORED, 0 },
	{ "group", IGNORED, 0 },
	{ "nogroup", IGNORED, 0 },
};

static int set(const struct option *o, const char *value, struct bs_mount_options *m,
	       struct bs_error *err)
{
	void *to = (char *)m + o->at;
	bool wants = o->kind != YES && o->kind != NO && o->kind != IGNORED;
	int r = 0;

	if (wants && (!value || !*value))
		return bs_fail(err, -EINVAL, "option '%s' needs a value", o->name);
	if (!wants && value && o->kind != IGNORED)
		return bs_fail(err, -EINVAL, "option '%s' takes no value", o->name);
	switch (o->kind) {
	case TEXT:
		*(const char **)to = value;
		break;
	case SIZE:
		r = bs_parse_size(value, to);
		break;
	case COUNT:
		r = bs_parse_u64(value, to);
		break;
	case DURATION:
		r = bs_parse_duration(value, to);
		break;
	case ID:
		r = bs_parse_u32(value, to);
		m->one_owner = true;
		break;
	case YES:
	case NO:
		*(bool *)to = o->kind == YES;
		break;
	case LAYOUT:
		*(bool *)to = bs_streq(value, "plain");
		r = bs_streq(value, "plain") || bs_streq(value, "striped") ? 0 : -EINVAL;
		break;
	case IGNORED:
	default:
		break;
	}
	return r < 0 ? bs_fail(err, -EINVAL, "option '%s': '%s' is no value for it", o->name, value)
		     : 0;
}

static int one(char *word, bool sloppy, struct bs_mount_options *m, struct bs_error *err)
{
	char *value = strchr(word, '=');

	if (!*word || bs_str_after(word, "x-") || bs_str_after(word, "X-"))
		return 0;
	if (!value && bs_streq(word, "user"))
		return 0; /* mount(8)'s own: who may mount it */
	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < BS_ARRAY_LEN(table); i++)
		if (bs_streq(table[i].name, word))
			return set(&table[i], value, m, err);
	return sloppy ? 0 : bs_fail(err, -EINVAL, "no option '%s'", word);
}

static int check(const struct bs_mount_options *m, struct bs_error *err)
{
	/* who they log in is who one is: another name would be believed by nobody but its giver */
	if (m->user && (m->kerberos || m->token || secure_getenv("HADOOP_TOKEN_FILE_LOCATION")))
		return bs_fail(
			err, -EINVAL,
			"option 'user': '%s' cannot be had with Kerberos or a token: HDFS takes "
			"who logs in; leave it out",
			m->user);
	if (m->unit % (1u << 20) || m->unit > UNIT_MAX)
		return bs_fail(err, -EINVAL, "option 'unit': a multiple of 1 MiB up to 1 GiB");
	if (m->files > FILES_MAX)
		return bs_fail(err, -EINVAL, "option 'files': at most %u", FILES_MAX);
	if (m->replication > UINT16_MAX)
		return bs_fail(err, -EINVAL, "option 'replication': at most %u", UINT16_MAX);
	return 0;
}

int bs_mount_options_parse(const char *text, bool sloppy, struct bs_mount_options *ret,
			   struct bs_error *err)
{
	struct bs_mount_options m = { .attr_ns = ATTR_NS, .memory = MEMORY };
	const struct passwd *nobody;
	char *at, *word;
	int r = 0;

	m.uid = m.gid = NOBODY;
	nobody = getpwnam("nobody");
	if (nobody) {
		m.uid = nobody->pw_uid;
		m.gid = nobody->pw_gid;
	}
	at = m.text = bs_strf("%s", text ? text : "");
	if (!at)
		return bs_fail(err, -ENOMEM, "out of memory");
	while (r == 0 && (word = strsep(&at, ",")))
		r = one(word, sloppy, &m, err);
	if (r == 0)
		r = check(&m, err);
	if (r < 0) {
		bs_mount_options_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}

void bs_mount_options_done(struct bs_mount_options *o)
{
	free(o->text);
	*o = (struct bs_mount_options){ 0 };
}

/* --- the process ------------------------------------------------------------------------------- */

struct bs_mounted {
	struct bs_hdfs_place place;
	struct bs_loop *loop;
	struct bs_nn *nn;
	struct bs_reader *reader;
	struct bs_ckpt *ckpt;
	struct bs_fs *fs;
};

static int connect_to(struct bs_mounted *m, const char *source, const struct bs_mount_options *o,
		      struct bs_error *err)
{
	bs_auto(site) struct bs_site *site = NULL;
	struct bs_nn_options no = { .user = o->user,
				    .token_file = o->token,
				    .kerberos = o->kerberos,
				    .tls_verify = !o->insecure,
				    .ca_file = o->ca,
				    .deadline_ns = o->deadline_ns };
	struct bs_reader_options ro = { 0 };
	int r = bs_site_load(o->conf, &site, err);

	if (r == 0)
		r = bs_hdfs_place(source, site, &m->place, err);
	if (r == 0)
		r = bs_loop_new(NULL, &m->loop, err);
	if (r < 0)
		return r;
	no.loop = m->loop;
	r = bs_nn_new(&no, &m->place, &m->nn, err);
	if (r < 0)
		return r;
	ro.loop = m->loop;
	ro.peer = bs_nn_peer(m->nn);
	ro.https = bs_nn_https(m->nn);
	return bs_reader_new(&ro, &m->reader, err);
}

static int find_root(struct bs_mounted *m, struct bs_error *err)
{
	struct bs_hdfs_status s = { 0 };
	int r = bs_nn_status(m->nn, m->place.path, &s, err);

	if (r == 0 && s.type != BS_HDFS_DIRECTORY)
		r = bs_fail(err, -ENOTDIR, "%s%s: not a directory", m->place.name, m->place.path);
	bs_hdfs_status_done(&s);
	return r;
}

static void add_nodes(struct bs_mounted *m, struct bs_jsonw *w)
{
	struct bs_reader_node nodes[BS_READER_NODES_MAX];
	const size_t n = bs_reader_nodes(m->reader, nodes);

	bs_jsonw_key(w, "nodes");
	bs_jsonw_array(w);
	for (size_t i = 0; i < n; i++) {
		bs_jsonw_object(w);
		bs_jsonw_kstr(w, "address", nodes[i].address);
		bs_jsonw_ku64(w, "bytes", nodes[i].bytes);
		bs_jsonw_ku64(w, "bytes_per_s", nodes[i].rate);
		bs_jsonw_end(w);
	}
	bs_jsonw_end(w);
}

void bs_mounted_client_stats(struct bs_mounted *m, struct bs_jsonw *w)
{
	struct bs_ckpt_stats c;
	struct bs_reader_stats r;
	struct bs_nn_stats n;

	bs_ckpt_stats(m->ckpt, &c);
	bs_reader_stats(m->reader, &r);
	bs_nn_stats(m->nn, &n);
	bs_jsonw_key(w, "files");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "written_bytes", c.written);
	bs_jsonw_ku64(w, "sent_bytes", c.sent);
	bs_jsonw_ku64(w, "buffered_bytes", c.buffered);
	bs_jsonw_ku64(w, "placed_again", c.placed_again);
	bs_jsonw_ku64(w, "commits", c.commits);
	bs_jsonw_ku64(w, "sums_checked", c.sums_checked);
	bs_jsonw_ku64(w, "sums_wrong", c.sums_wrong);
	bs_jsonw_end(w);
	bs_jsonw_key(w, "datanodes");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "bytes", r.bytes);
	bs_jsonw_ku64(w, "http_bytes", r.http_bytes);
	bs_jsonw_ku64(w, "pieces", r.pieces);
	bs_jsonw_ku64(w, "hedges", r.hedges);
	bs_jsonw_ku64(w, "retries", r.retries);
	bs_jsonw_ku64(w, "bad_replicas", r.bad_replicas);
	bs_jsonw_ku64(w, "connections", r.connections);
	add_nodes(m, w);
	bs_jsonw_end(w);
	bs_jsonw_key(w, "namenodes");
	bs_jsonw_object(w);
	bs_jsonw_ku64(w, "requests", n.requests);
	bs_jsonw_ku64(w, "retries", n.retries);
	bs_jsonw_ku64(w, "failovers", n.failovers);
	bs_jsonw_ku64(w, "logins", n.logins);
	bs_jsonw_end(w);
}

static void add_stats(void *cookie, struct bs_jsonw *w)
{
	bs_mounted_client_stats(cookie, w);
}

static int make_tree(struct bs_mounted *m, const struct bs_mount_options *o, struct bs_error *err)
{
	const struct bs_ckpt_options co = { .nn = m->nn,
					    .reader = m->reader,
					    .read_only = o->read_only,
					    .layout = o->plain ? BS_CKPT_PLAIN : BS_CKPT_STRIPED,
					    .unit = (uint32_t)o->unit,
					    .files = (uint32_t)o->files,
					    .replication = (uint32_t)o->replication,
					    .file_bytes = o->write_file,
					    .mount_bytes = o->write_mount,
					    .deadline_ns = o->deadline_ns,
					    .grace_ns = o->grace_ns };

	return bs_ckpt_new(&co, &m->ckpt, err);
}

int bs_mounted_connect(const char *source, const struct bs_mount_options *o,
		       struct bs_mounted **ret, struct bs_error *err)
{
	struct bs_mounted *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = connect_to(m, source, o, err);
	if (r == 0)
		r = make_tree(m, o, err);
	if (r < 0)
		(void)bs_mounted_free(m);
	else
		*ret = m;
	return r;
}

struct bs_ckpt *bs_mounted_ckpt(struct bs_mounted *m)
{
	return m->ckpt;
}

struct bs_nn *bs_mounted_nn(struct bs_mounted *m)
{
	return m->nn;
}

const char *bs_mounted_path(const struct bs_mounted *m)
{
	return m->place.path;
}

struct bs_mounted *bs_mounted_free(struct bs_mounted *m)
{
	if (!m)
		return NULL;
	(void)bs_ckpt_free(m->ckpt);
	(void)bs_reader_free(m->reader);
	(void)bs_nn_free(m->nn);
	(void)bs_loop_free(m->loop);
	bs_hdfs_place_done(&m->place);
	free(m);
	return NULL;
}

int bs_mounted_start(const char *source, const struct bs_mount_options *o, int fuse_fd,
		     const struct bs_mounted_kept *kept, struct bs_mounted **ret,
		     struct bs_error *err)
{
	struct bs_fs_options fo = { .user = o->user,
				    .fuse_fd = fuse_fd,
				    .read_only = o->read_only,
				    .one_owner = o->one_owner,
				    .uid = o->uid,
				    .gid = o->gid,
				    .attr_ns = o->attr_ns,
				    .memory_bytes = o->memory };
	struct bs_mounted *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return bs_fail(err, -ENOMEM, "out of memory");
	r = connect_to(m, source, o, err);
	/* who takes over serves what was found, maybe while HDFS is away */
	if (r == 0 && !(kept && kept->takeover))
		r = find_root(m, err);
	if (r == 0)
		r = make_tree(m, o, err);
	if (r < 0)
		return r;
	fo.ckpt = m->ckpt;
	fo.nn = m->nn;
	fo.root = m->place.path;
	fo.stats = add_stats;
	fo.cookie = m;
	if (kept) {
		r = bs_fskeep_open(kept->fd, kept->generation, &fo.keep, err);
		fo.takeover = kept->takeover;
	}
	if (r < 0)
		return r;
	r = bs_fs_start(&fo, &m->fs, err);
	if (r == 0)
		*ret = m;
	return r;
}

bool bs_mounted_wait(struct bs_mounted *m)
{
	return bs_fs_join(m->fs);
}

void bs_mounted_join(struct bs_mounted *m)
{
	if (bs_mounted_wait(m))
		(void)bs_mounted_free(m);
}

bool bs_mounted_idle(struct bs_mounted *m)
{
	return bs_fs_idle(m->fs);
}

int bs_mounted_stats(struct bs_mounted *m, struct bs_buf *ret)
{
	return bs_fs_stats_text(m->fs, ret);
}

void bs_mounted_load(struct bs_mounted *m, struct bs_mounted_load *ret)
{
	struct bs_fs_stats s;

	bs_fs_stats(m->fs, &s);
	*ret = (struct bs_mounted_load){ s.first_read_ns, s.last_read_ns, s.read_bytes };
}

uint64_t bs_mounted_kept_bytes(void)
{
	return bs_fskeep_bytes();
}
