/* SPDX-License-Identifier: Apache-2.0 */
/* Copyright the bootseer authors */
#include "config.h"

#include "kern/seccomp.h"

#include <errno.h>
#include <seccomp.h>

#include "base/error.h"
#include "base/mem.h"

/* one line a purpose */
/* clang-format off */
static const char *const worker_calls[] = {
	/* memory and threads (curl's resolver starts some) */
	"brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "msync", "mincore", "clone", "clone3", "futex", "futex_waitv",
	"set_robust_list", "get_robust_list", "rseq", "set_tid_address", "sched_yield", "sched_getaffinity",
	"sched_setaffinity", "gettid", "getpid", "getppid", "exit", "exit_group", "membarrier", "prctl", "arch_prctl",
	/* signals */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait", "rt_sigpending", "sigaltstack", "tgkill", "restart_syscall",
	/* the FUSE device, the cache's files */
	"read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "splice", "vmsplice",
	"open", "openat", "openat2", "close", "close_range", "fstat", "stat", "lstat", "newfstatat", "statx", "lseek", "ftruncate", "fallocate",
	"fsync", "fdatasync", "fadvise64", "copy_file_range", "ioctl", "fcntl", "dup", "dup2", "dup3", "getdents64", "mkdir", "mkdirat",
	"unlink", "unlinkat", "link", "linkat", "rename", "renameat", "renameat2", "access", "faccessat", "faccessat2", "readlink",
	"readlinkat", "fchmod", "umask", "memfd_create", "fstatfs", "statfs", "getcwd", "pipe2",
	/* the network, and the control socket */
	"socket", "socketpair", "connect", "bind", "getsockname", "getpeername", "setsockopt", "getsockopt", "sendto", "recvfrom",
	"sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl",
	"epoll_wait", "epoll_pwait", "eventfd2", "timerfd_create", "timerfd_settime", "pipe",
	/* time, identity, randomness */
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "getrandom", "uname", "sysinfo", "getuid",
	"geteuid", "getgid", "getegid", "getrusage", "prlimit64",
};

/* what it needs was opened and allocated before; its root is the mount that it reads */
static const char *const warmer_calls[] = {
	"recvfrom", "poll", "ppoll", "openat2", "close", "fstat", "newfstatat", "fadvise64", "pread64",
	"write", /* standard error */
	"clock_gettime", "rt_sigreturn", "restart_syscall", "exit", "exit_group",
	"sigaltstack", /* AddressSanitizer asks for the stack before an exit */
};
/* clang-format on */

static int allow(scmp_filter_ctx ctx, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int nr = seccomp_syscall_resolve_name(names[i]);
		int r;

		if (nr == __NR_SCMP_ERROR)
			continue; /* not on this architecture, or newer than the library */
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

int bs_seccomp_apply(enum bs_role role, struct bs_error *err)
{
	static const struct {
		const char *const *calls;
		size_t n;
	} lists[BS_ROLE_MAX] = {
		/* the others mount and start programs, and parse nothing foreign */
		[BS_ROLE_WORKER] = { worker_calls, BS_ARRAY_LEN(worker_calls) },
		[BS_ROLE_WARMER] = { warmer_calls, BS_ARRAY_LEN(warmer_calls) },
	};
	scmp_filter_ctx ctx;
	int r;

	if (!lists[role].calls)
		return 0;
	ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return bs_fail(err, -ENOMEM, "seccomp: out of memory");
	r = allow(ctx, lists[role].calls, lists[role].n);
	if (r == 0)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	if (r < 0)
		return bs_fail_errno(err, r, "install the seccomp filter");
	return 0;
}
