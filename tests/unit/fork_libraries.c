/* Children of a process whose threads use vendors' libraries: each can compute, and exit() ends it. */
#include "test.h"

#include "os/sys.h"
#include "os/thread.h"
#include "tenon/module/module.h"
#include "tenon/tenon.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child has no thread but its own, so that what only the others point to looks like a leak there. */
TN_MODULE_EXPORT const char *__lsan_default_options(void); // NOLINT(bugprone-reserved-identifier)
const char *__lsan_default_options(void)                   // NOLINT(bugprone-reserved-identifier)
{
    return "detect_leaks=0";
}

#if TN_MODULE_BUILT_WITH == TN_MODULE_SANITIZER_THREAD
enum { CHILDREN_MAY_START_THREADS = 0 }; /* the sanitizer forbids it, and a library may do so */
#else
enum { CHILDREN_MAY_START_THREADS = 1 };
#endif

enum { BUSY = 3, SMALL = 8, LARGE = 96, CHILD_LIMIT_S = 120 };

static tn_context *with_library(const char *library)
{
    tn_context *context = NULL;
    const tn_change change = tn_with_matmul_library(TN_REQUIRE, library);
    assert_int_equal(tn_context_derive(NULL, &change, 1, &context, NULL), TN_OK);
    return context;
}

/* Returns whether the product of two matrices of ones has `size` everywhere. No assertion, as threads and
 * children may not fail one. */
static bool product_is_right(const tn_context *context, int64_t size, float *memory)
{
    int64_t shape[] = {size, size}, elements = size * size;
    tn_tensor t[3];
    for (int i = 0; i < 3; i++)
        t[i] = (tn_tensor){.data = memory + i * elements,
                           .device_type = TN_DLPACK_CPU,
                           .ndim = 2,
                           .dtype = TN_F32,
                           .shape = shape};
    for (int64_t i = 0; i < 2 * elements; i++)
        memory[i] = 1;
    const tn_matmul_args args = {.struct_size = sizeof args, .a = &t[0], .b = &t[1], .out = &t[2]};
    bool right = tn_matmul(context, &args, NULL) == TN_OK;
    for (int64_t i = 0; i < elements; i++)
        right = right && memory[2 * elements + i] == (float)size;
    return right;
}

struct busy {
    const tn_context *context;
    int64_t size;
    tni_thread thread;
    _Atomic int products, wrong;
    float memory[3 * LARGE * LARGE];
};
static struct busy busy[BUSY];
static _Atomic int stop;

static void multiply(void *user)
{
    struct busy *self = user;
    while (!atomic_load(&stop)) {
        if (!product_is_right(self->context, self->size, self->memory))
            atomic_fetch_add(&self->wrong, 1);
        atomic_fetch_add(&self->products, 1);
    }
}

static void start_threads(const tn_context *context)
{
    atomic_store(&stop, 0);
    for (int i = 0; i < BUSY; i++) {
        busy[i].context = context;
        busy[i].size = i % 2 ? SMALL : LARGE;
        atomic_store(&busy[i].products, 0);
        assert_int_equal(tni_thread_create(&busy[i].thread, multiply, &busy[i], NULL), TN_OK);
    }
    for (int i = 0; i < BUSY; i++)
        while (atomic_load(&busy[i].products) == 0)
            (void)usleep(100);
}

static void stop_threads(void)
{
    atomic_store(&stop, 1);
    for (int i = 0; i < BUSY; i++) {
        tni_thread_join(busy[i].thread);
        assert_int_equal(busy[i].wrong, 0);
    }
}

/* A child that hangs is ended by its alarm. */
static pid_t fork_child(const tn_context *context)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        static float memory[3 * LARGE * LARGE];
        (void)alarm(CHILD_LIMIT_S);
        bool right = !CHILDREN_MAY_START_THREADS || (product_is_right(context, SMALL, memory) &&
                                                     product_is_right(context, LARGE, memory));
        exit(right ? 0 : 1);
    }
    return pid;
}

static void check_library(const char *name)
{
    const tn_library *library = NULL;
    tn_error err;
    /* Under the thread sanitizer a child takes almost a second. */
    const int most = CHILDREN_MAY_START_THREADS ? 1000 : 50;
    const int children = test_full() ? most : test_reduced() ? 10 : 50;
    assert_int_equal(tn_library_get(name, &library, NULL), TN_OK);
    if (tn_library_try(library, &err))
        skip_because("%s", err.message);
    tn_context *context = with_library(name);
    start_threads(context);
    for (int i = 0; i < children; i++) {
        int code = -1;
        pid_t pid = fork_child(context);
        assert_true(pid > 0);
        assert_int_equal(tni_sys_waitpid(pid, &code, 0), pid);
        if (code != 0)
            fail_msg("child %d of %d: expected exit status 0, got wait status %#x", i, children,
                     (unsigned)code);
    }
    stop_threads();
    tn_context_release(context);
}

// clang-format off
static void children_end_with_blis(void **state) { (void)state; check_library("blis"); }
static void children_end_with_mkl(void **state) { (void)state; check_library("mkl"); }
static void children_end_with_onednn(void **state) { (void)state; check_library("mkldnn"); }
static void children_end_with_openblas(void **state) { (void)state; check_library("openblas"); }
// clang-format on

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_end_with_openblas),
        cmocka_unit_test(children_end_with_blis),
        cmocka_unit_test(children_end_with_mkl),
        cmocka_unit_test(children_end_with_onednn),
    };
    return run_suite("unit.fork_libraries", tests);
}
