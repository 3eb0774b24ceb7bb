/* What only a GPU can show of memory and events: memory in the order of streams beside a kernel that runs, want of
 * memory in the driver's own pool, and an event that another process opens. Skipped without one.
 *
 * A kernel that runs is one that waits for a number in pinned memory: nothing here is decided by a clock. */
#include "hardware.h"

#include "hardware_driver.h"

#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };
#define GIB (UINT64_C(1) << 30)

static cu_function waiting;
static tn_stream *stream, *other;
static _Atomic uint32_t *gate; /* the kernel ends when it is not 0 */
static unsigned char *back;    /* pinned, BYTES */

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .entry waiting(.param .u64 at)\n{\n"
                           "    .reg .pred %shut;\n    .reg .b32 %now;\n    .reg .b64 %from;\n"
                           "    ld.param.u64 %from, [at];\n"
                           "AGAIN:\n"
                           "    ld.volatile.global.u32 %now, [%from];\n"
                           "    setp.eq.u32 %shut, %now, 0;\n"
                           "    @%shut bra AGAIN;\n"
                           "    ret;\n}\n";

/* A kernel on the stream that runs until the gate is open. */
static void launch_gate(tn_stream *on)
{
    void *at = (void *)(uintptr_t)gate;
    void *values[] = {&at};
    assert_int_equal(
        driver.launch(waiting, 1, 1, 1, 1, 1, 1, 0, (cu_stream)tn_stream_raw(on), values, NULL),
        CUDA_SUCCESS);
}

static void shut(tn_stream *on)
{
    atomic_store(gate, 0);
    launch_gate(on);
}

static void fill(void *memory, unsigned char pattern, tn_stream *on)
{
    must(tn_memory_fill(TN_ARGS(memory_fill, .device = gpu, .to = memory, .bytes = BYTES,
                                .pattern = pattern, .stream = on),
                        &err));
}

static void copy_back(const void *memory, tn_stream *on)
{
    must(tn_memory_copy(TN_ARGS(memory_copy, .to = back, .from_device = gpu, .from = memory,
                                .bytes = BYTES, .stream = on),
                        &err));
}

/* What the driver loads at its first use it may not load while a kernel runs. */
static void warm_up(void)
{
    tn_stream *const both[] = {stream, other};
    for (int i = 0; i < 2; i++) {
        void *memory = NULL;
        atomic_store(gate, 1);
        launch_gate(both[i]);
        must(tn_memory_alloc_on(both[i], BYTES, "test", &memory, &err));
        fill(memory, 0, both[i]);
        copy_back(memory, both[i]);
        must(tn_memory_free_on(both[i], memory, &err));
        must(tn_stream_wait_stream(both[1 - i], both[i], &err));
    }
    must(tn_device_synchronize(gpu, &err));
}

static void begin(void)
{
    cu_module module = NULL;
    void *pinned = NULL;
    begin_gpu();
    if (stream) { /* after a test that failed the kernel may still run */
        atomic_store(gate, 1);
        must(tn_device_synchronize(gpu, &err));
        return;
    }
    bind_driver();
    must(tn_device_set(tn_device_platform(gpu), 0, &err));
    must(tn_stream_create(gpu, NULL, &stream, &err));
    must(tn_stream_create(gpu, NULL, &other, &err));
    must(tn_memory_host_alloc(gpu, sizeof *gate, "test", &pinned, &err));
    gate = pinned;
    must(tn_memory_host_alloc(gpu, BYTES, "test", &pinned, &err));
    back = pinned;
    assert_int_equal(driver.module_load(&module, text), CUDA_SUCCESS);
    assert_int_equal(driver.module_function(&waiting, module, "waiting"), CUDA_SUCCESS);
    warm_up();
}

static void expect_bytes(unsigned char pattern)
{
    for (size_t i = 0; i < BYTES; i++) {
        if (back[i] != pattern)
            fail_msg("byte %zu is %#x, expected %#x", i, back[i], pattern);
    }
}

static bool is_done(tn_stream *on)
{
    int32_t done = 0;
    must(tn_stream_query(on, &done, &err));
    return done;
}

static tn_memory_stats stats(void)
{
    tn_memory_stats now = {.struct_size = sizeof now};
    must(tn_memory_stats_get(gpu, &now, &err));
    return now;
}

/* Were any of these to wait for the stream, the test would not end: the gate opens after them. */
static void memory_in_order_waits_for_nothing(void **state)
{
    void *memory = NULL, *another = NULL;
    (void)state;
    begin();
    const tn_memory_stats before = stats();
    shut(stream);
    must(tn_memory_alloc_on(stream, BYTES, "test", &memory, &err));
    fill(memory, 0x11, stream);
    copy_back(memory, stream);
    must(tn_memory_free_on(stream, memory, &err));
    assert_false(is_done(stream));
    /* What is freed behind the kernel is no other stream's yet: this one comes to its end before. */
    must(tn_memory_alloc_on(other, BYTES, "test", &another, &err));
    fill(another, 0x22, other);
    must(tn_memory_free_on(other, another, &err));
    must(tn_stream_synchronize(other, &err));
    assert_false(is_done(stream));
    atomic_store(gate, 1);
    must(tn_stream_synchronize(stream, &err));
    expect_bytes(0x11);
    assert_int_equal(stats().current, before.current);
    assert_int_equal(stats().allocations, before.allocations + 2);
}

/* Another stream has it as events say: nothing of it is there while the kernel runs. */
static void events_let_another_stream_have_it(void **state)
{
    void *memory = NULL;
    tn_event *event = NULL;
    (void)state;
    begin();
    memset(back, 0, BYTES);
    must(tn_event_create(gpu, NULL, &event, &err));
    shut(stream);
    must(tn_memory_alloc_on(stream, BYTES, "test", &memory, &err));
    must(tn_event_record(event, stream, &err));
    must(tn_stream_wait_event(other, event, &err));
    fill(memory, 0x33, other);
    copy_back(memory, other);
    must(tn_event_record(event, other, &err));
    must(tn_stream_wait_event(stream, event, &err));
    must(tn_memory_free_on(stream, memory, &err));
    assert_false(is_done(other));
    atomic_store(gate, 1);
    must(tn_stream_synchronize(stream, &err));
    assert_true(is_done(other));
    expect_bytes(0x33);
    tn_event_release(event);
}

static uint64_t left(uint64_t *out_total)
{
    size_t available = 0, total = 0;
    assert_int_equal(driver.memory_info(&available, &total), CUDA_SUCCESS);
    if (out_total)
        *out_total = total;
    return available;
}

enum { BALLAST = 256 };

/* Takes memory past Tenon's pool, which gives back what it keeps once it has more than an eighth of the device in all,
 * until about an eighth is left. */
static int load(cu_deviceptr ballast[BALLAST])
{
    uint64_t total = 0;
    int count = 0;
    tn_memory_trim(gpu);
    while (count < BALLAST && left(&total) > total / 8 + 2 * GIB &&
           driver.memory_alloc(&ballast[count], GIB) == CUDA_SUCCESS)
        count++;
    return count;
}

static void *take(tn_stream *on, uint64_t bytes)
{
    void *memory = NULL;
    must(on ? tn_memory_alloc_on(on, bytes, "test", &memory, &err)
            : tn_memory_alloc(gpu, bytes, "test", &memory, &err));
    return memory;
}

/* What is freed stays with the pool: the driver has less than is asked for, until Tenon has trimmed the pool and asks
 * again. */
static void ask_for_more_than_is_left(tn_stream *on)
{
    uint64_t total = 0;
    tn_memory_trim(gpu);
    const uint64_t all = left(&total), kept = total / 10;
    void *memory = take(on, kept);
    if (on)
        must(tn_memory_free_on(on, memory, &err));
    else
        tn_memory_free(gpu, memory);
    must(tn_device_synchronize(gpu, &err));
    const uint64_t now = left(NULL), asked = now + kept / 2;
    if (asked > all)
        fail_msg("the pool kept nothing: %llu bytes were left, and are %llu",
                 (unsigned long long)all, (unsigned long long)now);
    const tn_memory_stats before = stats();
    memory = take(on, asked);
    print_message("the driver had %llu bytes, and gave %llu\n", (unsigned long long)now,
                  (unsigned long long)asked);
    fill(memory, 1, on);
    must(tn_device_synchronize(gpu, &err));
    assert_int_equal(stats().failures, before.failures);
    tn_memory_free(gpu, memory);
    tn_memory_trim(gpu);
}

static void want_of_memory_trims_the_pool_and_asks_again(void **state)
{
    cu_deviceptr ballast[BALLAST];
    void *none = NULL;
    uint64_t total = 0;
    (void)state;
    begin();
    const int count = load(ballast);
    ask_for_more_than_is_left(NULL);
    ask_for_more_than_is_left(stream);
    (void)left(&total);
    assert_int_equal(tn_memory_alloc_on(stream, 2 * total, "test", &none, &err), TN_OUT_OF_MEMORY);
    print_message("%s\n", err.message);
    assert_contains(err.message, "CUDA_ERROR_OUT_OF_MEMORY");
    for (int i = 0; i < count; i++)
        assert_int_equal(driver.memory_free(ballast[i]), CUDA_SUCCESS);
    must(tn_device_synchronize(gpu, &err)); /* it is well */
}

/* The other process: a word for each thing that it did, and the status it ends with. It hears when to go on. */
static int open_event(const char *hex)
{
    tn_event_handle handle;
    tn_event *event = NULL, *timed = NULL;
    int32_t done = 1;
    double ms = 0;
    char word = 0;
    if (tn_module_file_add(CUDA_MODULE, TN_MODULE_TRUSTED, &err) ||
        tn_device_get("cuda:0", &gpu, &err))
        return 2;
    for (size_t i = 0; i < sizeof handle.bytes; i++) {
        const char two[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        handle.bytes[i] = (unsigned char)strtoul(two, NULL, 16);
    }
    if (tn_event_import(gpu, &handle, &event, &err) || write(STDOUT_FILENO, "o", 1) != 1 ||
        read(STDIN_FILENO, &word, 1) != 1)
        return 3;
    if (tn_event_query(event, &done, &err) || done) /* the other's kernel runs */
        return 4;
    if (tn_stream_wait_event(tn_stream_default(gpu), event, &err) ||
        write(STDOUT_FILENO, "w", 1) != 1)
        return 5;
    if (tn_event_synchronize(event, &err) || tn_event_query(event, &done, &err) || !done ||
        tn_device_synchronize(gpu, &err))
        return 6;
    if (tn_event_create(gpu, TN_ARGS(event, .enable_timing = 1), &timed, &err) ||
        tn_event_elapsed_time(timed, event, &ms, &err) != TN_UNSUPPORTED)
        return 7;
    tn_event_release(timed);
    tn_event_release(event);
    return 0;
}

typedef struct peer {
    pid_t process;
    int to, from;
} peer;

static peer start(const char *hex)
{
    char self[] = "/proc/self/exe";
    char *const arguments[] = {self, (char *)(uintptr_t)hex, NULL};
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    posix_spawn_file_actions_t actions;
    peer out;
    assert_int_equal(pipe(to) || pipe(from), 0);
    assert_int_equal(posix_spawn_file_actions_init(&actions) ||
                         posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO) ||
                         posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO) ||
                         posix_spawn_file_actions_addclose(&actions, to[1]) ||
                         posix_spawn_file_actions_addclose(&actions, from[0]),
                     0);
    assert_int_equal(posix_spawn(&out.process, self, &actions, NULL, arguments, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(to[0]);
    (void)close(from[1]);
    out.to = to[1];
    out.from = from[0];
    return out;
}

/* 0 when it ended before it said a word. */
static char hear(const peer *from)
{
    char word = 0;
    return read(from->from, &word, 1) == 1 ? word : '\0';
}

static void an_event_is_opened_and_waited_for_in_another_process(void **state)
{
    char hex[2 * sizeof(tn_event_handle) + 1];
    tn_event_handle handle;
    tn_event *event = NULL;
    int how = -1;
    (void)state;
    begin();
    must(tn_event_create(gpu, TN_ARGS(event, .interprocess = 1), &event, &err));
    must(tn_event_export(event, &handle, &err));
    for (size_t i = 0; i < sizeof handle.bytes; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", handle.bytes[i]);
    const peer child = start(hex);
    const char opened = hear(&child);
    shut(stream);
    must(tn_event_record(event, stream, &err));
    const bool told = write(child.to, "g", 1) == 1;
    const char waits = hear(&child);
    const bool early = waitpid(child.process, &how, WNOHANG) != 0;
    atomic_store(gate, 1);
    must(tn_stream_synchronize(stream, &err));
    if (!early)
        assert_int_equal(waitpid(child.process, &how, 0), child.process);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_true(opened == 'o' && told && waits == 'w' && !early);
    assert_int_equal(tn_event_import(gpu, &handle, &event, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "in another process than its own");
    tn_event_release(event);
    (void)close(child.to);
    (void)close(child.from);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_in_order_waits_for_nothing),
        cmocka_unit_test(events_let_another_stream_have_it),
        cmocka_unit_test(an_event_is_opened_and_waited_for_in_another_process),
        cmocka_unit_test(want_of_memory_trims_the_pool_and_asks_again),
    };
    return argc == 2 ? open_event(argv[1]) : run_suite("cuda.hardware_memory", tests);
}
