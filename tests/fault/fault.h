/* Making things fail, one after the other, and seeing that nothing is left behind: the n-th
 * allocation, the n-th system call. One thread arms a fault; any may meet it. */
#ifndef TENON_TEST_FAULT_H
#define TENON_TEST_FAULT_H

#include "test.h"

#include "os/sys.h"
#include "tenon/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>

/* Counts down at every step of its kind; the one at 0 fails, with `rest` all after it too. */
struct fault {
    _Atomic long left; /* negative: passed */
    _Atomic bool fired;
    bool armed;
    bool rest;
    int code;
    const char *call; /* the system call that failed last */
};

static struct fault fault_memory, fault_call;

static inline bool fault_step(struct fault *fault)
{
    if (!fault->armed)
        return false;
    long left = atomic_fetch_sub(&fault->left, 1) - 1;
    bool fails = left == 0 || (left < 0 && fault->rest);
    if (fails)
        atomic_store(&fault->fired, true);
    return fails;
}

static inline void fault_arm(struct fault *fault, long n, bool rest, int code)
{
    atomic_store(&fault->left, n);
    atomic_store(&fault->fired, false);
    fault->rest = rest;
    fault->code = code;
    fault->armed = true;
}

/* True when it came to the fault. */
static inline bool fault_end(struct fault *fault)
{
    fault->armed = false;
    return atomic_load(&fault->fired);
}

static inline void *fault_alloc_(void *self, size_t size, size_t align)
{
    void *memory = NULL;
    (void)self;
    return fault_step(&fault_memory) || posix_memalign(&memory, align, size) != 0 ? NULL : memory;
}

static inline void fault_release_(void *self, void *memory)
{
    (void)self;
    free(memory);
}

/* Before anything of the library is used. */
static inline void fault_memory_install(void)
{
    tn_error err;
    tn_allocator allocator = {
        .struct_size = sizeof allocator, .alloc = fault_alloc_, .release = fault_release_};
    if (tn_allocator_set(&allocator, &err))
        fail_msg("%s", err.message);
}

static inline bool fault_call_(const char *call)
{
    if (!fault_step(&fault_call))
        return false;
    fault_call.call = call;
    errno = fault_call.code;
    return true;
}

static inline void fault_calls_install(void)
{
    tni_sys_fault_set(fault_call_);
}

/* What a call that failed, and one that released all it gave, must leave as it was. */
struct fault_state {
    int64_t blocks;
    int descriptors;
};

/* Without /proc, 0: then only blocks are compared. */
static inline int fault_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        (void)closedir(folder);
    return count;
}

static inline struct fault_state fault_look(void)
{
    return (struct fault_state){tn_allocator_blocks(), fault_descriptors()};
}

/* Says what has changed since `before`; 0 when nothing has. */
static inline int fault_left(struct fault_state before, const char *what, long n)
{
    struct fault_state now = fault_look();
    if (now.blocks != before.blocks)
        print_message("%s, fault %ld: %lld blocks are left, were %lld\n", what, n,
                      (long long)now.blocks, (long long)before.blocks);
    if (now.descriptors != before.descriptors)
        print_message("%s, fault %ld: %d descriptors are open, were %d\n", what, n, now.descriptors,
                      before.descriptors);
    return now.blocks != before.blocks || now.descriptors != before.descriptors;
}

/* Runs with the n-th allocation failing, and once more without. Returns false if there are fewer. */
static inline bool fault_survive_memory(tn_status (*run)(tn_error *), long n)
{
    tn_error err = {0};
    fault_arm(&fault_memory, n, false, 0);
    tn_status status = run(&err);
    bool fired = fault_end(&fault_memory);
    if (status) {
        assert_true(fired);
        assert_int_equal(status, TN_OUT_OF_MEMORY);
        assert_int_equal(err.status, status);
        assert_int_not_equal(err.message[0], '\0');
    }
    if (run(&err))
        fail_msg("after fault %ld: %s", n, err.message);
    return fired;
}

/* No child of this process is there, dead or alive. */
static inline bool fault_childless(void)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

#endif
