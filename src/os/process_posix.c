#include "process.h"

#include "base/alloc.h"
#include "clock.h"
#include "env.h"
#include "file.h"
#include "sys.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

enum { MOST_ANSWER = 64 << 10 };

static tn_status fail_call(tn_error *err, const char *call, const char *what, int code)
{
    tn_status status = code == ENOMEM                                       ? TN_OUT_OF_MEMORY
                       : code == EAGAIN || code == EMFILE || code == ENFILE ? TN_BUSY
                                                                            : TN_IO;
    char text[128];
    return tn_fail(err, status, code, call, "the child process could not be %s: %s", what,
                   strerror_r(code, text, sizeof text));
}

/* Closes all other descriptors in the child. The function exists from glibc 2.34 on. It is looked up, because linking it
 * would make the library need that version. */
static int add_close_others(posix_spawn_file_actions_t *actions)
{
    int (*add)(posix_spawn_file_actions_t *, int);
    void *found = dlsym(RTLD_DEFAULT, "posix_spawn_file_actions_addclosefrom_np");
    memcpy(&add, &found, sizeof add);
    return found ? add(actions, TNI_PROCESS_ANSWER + 1) : 0;
}

static int set_actions(posix_spawn_file_actions_t *actions, int answer)
{
    int code = posix_spawn_file_actions_adddup2(actions, answer, TNI_PROCESS_ANSWER);
    for (int file = 0; !code && file < 3; file++)
        code = posix_spawn_file_actions_addopen(actions, file, "/dev/null", O_RDWR, 0);
    return code ? code : add_close_others(actions);
}

static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int code = posix_spawnattr_setsigmask(attributes, &none);
    if (!code)
        code = posix_spawnattr_setsigdefault(attributes, &all);
    if (!code)
        code = posix_spawnattr_setpgroup(attributes, 0);
    if (!code)
        code = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                        POSIX_SPAWN_SETPGROUP);
    return code;
}

static int start_child(const char *program, const char *const *arguments, int answer, pid_t *out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (!code) {
        code = set_actions(&actions, answer);
        if (!code)
            code = set_attributes(&attributes);
        if (!code)
            code = tni_sys_spawn(out, program, &actions, &attributes, arguments, tni_env_all());
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

/* Reads available data. Returns false at the end of the answer, if the answer is too long, or if
 * the read fails (then with *out_code). */
static bool read_more(int file, tni_buffer *answer, tni_process_end *end, int *out_code)
{
    char piece[4096];
    ssize_t count = tni_sys_read(file, piece, sizeof piece);
    if (count < 0)
        *out_code = errno;
    if (count <= 0)
        return false;
    if ((size_t)count > MOST_ANSWER - answer->length) {
        end->answered_too_much = true;
        return false;
    }
    tni_buffer_add_part(answer, piece, (size_t)count);
    return true;
}

typedef enum state { RUNNING, ENDED, TAKEN } state;

/* TAKEN: the program ignores SIGCHLD, or its own code reaped the child first. */
static state poll_child(pid_t child)
{
    siginfo_t info = {0};
    if (tni_sys_waitid(child, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
        return errno == ECHILD ? TAKEN : RUNNING;
    return info.si_pid == child ? ENDED : RUNNING;
}

/* Reads until the child closes its end of the pipe or the deadline passes. Checks the child at
 * least every 50 ms, because a descendant may keep the pipe open; and checks it before polling, so
 * that the last output of a child that ends in between is not lost. Returns 0, or the errno of a
 * failed call: then the child's state is unknown. */
static int listen_to(pid_t child, int file, int64_t deadline, tni_buffer *answer,
                     tni_process_end *end)
{
    int code = 0;
    for (;;) {
        int64_t left = deadline - tni_clock_ns();
        struct pollfd poll_file = {.fd = file, .events = POLLIN};
        if (left <= 0) {
            end->timed_out = true;
            return 0;
        }
        bool ended = poll_child(child) != RUNNING;
        int64_t wait_ms = left / 1000000 + 1;
        int ready = tni_sys_poll(&poll_file, 1, ended ? 0 : wait_ms < 50 ? (int)wait_ms : 50);
        if (ready < 0 && errno != EINTR)
            return errno;
        if (ready > 0 && !read_more(file, answer, end, &code))
            return code;
        if (ready == 0 && ended)
            return 0;
    }
}

/* Children that did not end when they were killed, for example blocked in a hanging driver. A later
 * call reaps them after they have ended. */
static _Atomic pid_t stuck[16];

static void reap_stuck(void)
{
    for (size_t i = 0; i < sizeof stuck / sizeof stuck[0]; i++) {
        pid_t child = atomic_exchange(&stuck[i], 0);
        if (child != 0 && tni_sys_waitpid(child, NULL, WNOHANG) == 0)
            atomic_store(&stuck[i], child);
    }
}

static void leave_stuck(pid_t child)
{
    for (size_t i = 0; i < sizeof stuck / sizeof stuck[0]; i++) {
        pid_t none = 0;
        if (atomic_compare_exchange_strong(&stuck[i], &none, child))
            return;
    }
}

/* True for signals sent by a terminal, an administrator or a system that lacks a resource. */
static bool is_from_outside(int signal)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (signals[i] == signal)
            return true;
    }
    return false;
}

/* Waits until the child ends or `deadline` passes, with increasing pauses. */
static state wait_for(pid_t child, int64_t deadline)
{
    state now = poll_child(child);
    for (int64_t pause = 50000; now == RUNNING && tni_clock_ns() < deadline;) {
        tni_clock_sleep_ns(pause);
        pause = pause < 2000000 ? pause * 2 : pause;
        now = poll_child(child);
    }
    return now;
}

/* Waits for the child until `deadline`, then kills it together with its group, which includes what
 * it started. The group is killed before the child is reaped: afterwards its number may belong to
 * another process. A child that still does not end is left for a later call; nobody waits for
 * it. */
static void reap_child(pid_t child, int64_t deadline, tni_process_end *end)
{
    enum { GRACE_NS = 500000000 };
    int status = 0;
    pid_t got = 0;
    bool late = end->timed_out || end->answered_too_much;
    state now = late ? poll_child(child) : wait_for(child, deadline);
    end->timed_out = end->timed_out || (now == RUNNING && !late);
    if (now != TAKEN) {
        kill(-child, SIGKILL);
        kill(child, SIGKILL); /* it may have left its group */
    }
    if (now == RUNNING)
        now = wait_for(child, tni_clock_ns() + GRACE_NS);
    for (int tries = 0; now == ENDED && got != child && tries < 3; tries++)
        got = tni_sys_waitpid(child, &status, WNOHANG);
    if (now != TAKEN && got != child)
        leave_stuck(child);
    end->exit_code = got == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    end->signal = got == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end->from_outside = is_from_outside(end->signal);
}

tn_status tni_process_run(const char *program, const char *const *arguments, int64_t limit_ns,
                          tni_buffer *answer, tni_process_end *out_end, tn_error *err)
{
    int ends[2];
    pid_t child = 0;
    tni_process_end end = {0};
    int64_t deadline = tni_clock_ns() + limit_ns;
    reap_stuck();
    if (tni_sys_pipe(ends) != 0)
        return fail_call(err, "pipe", "started", errno);
    int code = start_child(program, arguments, ends[1], &child), deaf = 0;
    tni_sys_close(ends[1]);
    if (!code) {
        deaf = listen_to(child, ends[0], deadline, answer, &end);
        reap_child(child, deaf ? 0 : deadline, &end);
    }
    tni_sys_close(ends[0]);
    if (code || deaf)
        return fail_call(err, program, code ? "started" : "heard", code ? code : deaf);
    if (answer->failed)
        return tni_no_memory(err, program, "the child's answer");
    *out_end = end;
    return TN_OK;
}

/* The descriptor to the parent, moved to a high number, since other code may close or reuse low
 * ones. Identified by device and inode: the answer must not go to another file. */
static struct {
    int file;
    dev_t device;
    ino_t inode;
} way = {.file = -1};

static void find_way(void)
{
    enum { OUT_OF_THE_WAY = 200 };
    struct stat facts;
    int file = fcntl(TNI_PROCESS_ANSWER, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    if (file < 0)
        file = TNI_PROCESS_ANSWER;
    else
        close(TNI_PROCESS_ANSWER);
    if (fstat(file, &facts) != 0)
        return;
    way.file = file;
    way.device = facts.st_dev;
    way.inode = facts.st_ino;
}

void tni_process_answer(const char *text, size_t length)
{
    struct stat facts;
    if (way.file < 0)
        find_way();
    if (fstat(way.file, &facts) != 0 || facts.st_dev != way.device || facts.st_ino != way.inode)
        return;
    while (length > 0) {
        ssize_t count = write(way.file, text, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return;
        text += count;
        length -= (size_t)count;
    }
}

void tni_process_spare(unsigned seconds)
{
    struct rlimit none = {0, 0};
    find_way();
    setrlimit(RLIMIT_CORE, &none);
    alarm(seconds);
#if defined(__linux__)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

void tni_process_machine(tni_buffer *to)
{
    static const char *const facts[] = {
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/kernel/osrelease",
        "/proc/driver/nvidia/version",
        "/sys/module/amdgpu/version",
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        char *text = NULL;
        size_t size;
        if (tni_file_read(facts[i], 4096, &text, &size, NULL) != TN_OK)
            continue;
        tni_buffer_format(to, "%s;", text);
        tni_release(text);
    }
}
