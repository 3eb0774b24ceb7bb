/* The lock: the same kernels or a refusal that says which and why, and what differs between a lock and a
 * machine, or two locks. */
#include "sim.h"

#include "base/alloc.h"
#include "fault/fault.h"
#include "os/file.h"
#include "os/thread.h"
#include "policy/lock/lock.h"
#include "policy/tuning/selection.h"
#include "policy/tuning/tuning.h"
#include "scratch.h"

#define NEG(shape) "unary:f32:kind=neg,shape=" shape
static char folder[SCRATCH_PATH], one[SCRATCH_PATH + 16], two[SCRATCH_PATH + 16];
static const char *const problems[] = {NEG("256") "@sim:0", NEG("512") "@sim:0"};

static const double even[] = {1, 1, 1, 1}, rising[] = {1, 2, 3, 4}, falling[] = {4, 3, 2, 1};

static tn_status write_to(const tn_context *context, const char *path, uint64_t flags,
                          tn_error *err)
{
    return tn_lock_write(
        context,
        TN_ARGS(lock_write, .path = path, .problems = problems, .count = 2, .flags = flags), err);
}

/* A lock with everything at its best: a for both. Nothing is in use afterwards. */
static void make_lock(const char *path, uint64_t flags)
{
    tn_error err;
    assert_int_equal(tn_lock_use(NULL, &err), TN_OK);
    sim_set(even, rising);
    if (write_to(NULL, path, flags, &err))
        fail_msg("%s", err.message);
}

static void use(const char *path)
{
    tn_error err;
    if (tn_lock_use(path, &err))
        fail_msg("%s", err.message);
}

/* The caller frees it. */
static char *text_of(const char *path)
{
    char *read = NULL;
    size_t size = 0;
    if (tni_file_read(path, 1 << 20, &read, &size, NULL))
        fail_msg("%s cannot be read", path);
    char *copy = strdup(read);
    assert_non_null(copy);
    tni_release(read);
    return copy;
}

static void put_text(const char *path, const char *text, size_t size)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    assert_int_equal(fwrite(text, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

/* The lock with every `from` as `to`, signed again. */
static void edit(const char *path, const char *from, const char *to)
{
    char *text = text_of(path);
    const char *at = strchr(text, '\n'), *next;
    tni_buffer edited = {0};
    assert_non_null(at);
    at++;
    assert_contains(at, from);
    while ((next = strstr(at, from))) {
        tni_buffer_add_part(&edited, at, (size_t)(next - at));
        tni_buffer_add(&edited, to);
        at = next + strlen(from);
    }
    tni_buffer_add(&edited, at);
    assert_int_equal(tni_selections_sign(&edited, NULL), TN_OK);
    put_text(path, edited.text, edited.length);
    tni_buffer_release(&edited);
    free(text);
}

/* What became of the kernel with that letter. */
static const tni_contender *verdict_of(const sim_asked *asked, char letter)
{
    for (size_t i = 0; i < asked->choice.count; i++) {
        const char *name = asked->choice.candidates[i].kernel->row->name;
        if (name[strlen(name) - 1] == letter)
            return &asked->choice.candidates[i];
    }
    fail();
    return NULL;
}

static char first_of(const tn_context *context, const char *problem, sim_asked *asked)
{
    sim_ask(asked, context, problem);
    return sim_first(asked);
}

/* Run in a child, as the variable is read once. Exits with 0 when all holds. */
static void in_child(const char *value, void (*run)(void))
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("TENON_LOCK", value, 1);
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void require(bool holds, int line)
{
    if (!holds) {
        print_message("line %d does not hold\n", line);
        _exit(1);
    }
}
#define REQUIRE(holds) require(holds, __LINE__)

static tn_context *untuned; /* without tests of kernels, and without tuning */

static void child_follows(void)
{
    static sim_asked asked;
    char used[SCRATCH_PATH + 32];
    sim_set(even, falling);
    REQUIRE(first_of(untuned, problems[0], &asked) == 'a');
    REQUIRE(first_of(untuned, NEG("128") "@sim:0", &asked) == 'd');
    REQUIRE(tn_lock_used(used, sizeof used) == strlen(one) && strcmp(used, one) == 0);
    REQUIRE(tn_lock_use(NULL, NULL) == TN_OK);
    REQUIRE(first_of(untuned, problems[0], &asked) == 'd');
}

static void child_is_refused(void)
{
    static sim_asked asked;
    tn_error err;
    sim_set(even, rising);
    for (int i = 0; i < 2; i++) { /* every time */
        REQUIRE(first_of(untuned, NEG("128") "@sim:0", &asked) == '-');
        REQUIRE(tni_choice_refused(&asked.question, &asked.choice, &err) == TN_REFUSED);
        REQUIRE(strstr(err.message, "TENON_LOCK"));
        REQUIRE(strstr(err.message, "missing.lock"));
    }
    REQUIRE(tn_prepare(untuned, problems[0], &err) == TN_REFUSED);
    REQUIRE(tn_lock_use(one, NULL) == TN_OK); /* the program's word goes before */
    REQUIRE(first_of(untuned, problems[0], &asked) == 'a');
}

static void child_is_free(void)
{
    static sim_asked asked;
    sim_set(even, falling);
    REQUIRE(first_of(untuned, problems[0], &asked) == 'd');
    REQUIRE(tn_lock_used(NULL, 0) == 0);
}

/* First of all: nothing was decided yet in this process. */
static void variable_names_the_lock(void **state)
{
    char missing[SCRATCH_PATH + 16];
    (void)state;
    snprintf(missing, sizeof missing, "%s/missing.lock", folder);
    tn_error err;
    sim_set(even, rising);
    int status = -1;
    pid_t child = fork(); /* writing decides */
    if (child == 0)
        _exit(write_to(untuned, one, 0, &err) == TN_OK ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    in_child(one, child_follows);
    in_child(missing, child_is_refused);
    in_child("", child_is_free);
}

static void locked_kernels_are_taken(void **state)
{
    sim_asked asked;
    (void)state;
    make_lock(one, 0);
    sim_set(even, falling);
    assert_int_equal(first_of(untuned, problems[0], &asked), 'd');
    uint64_t generation = tni_dispatch_generation();
    use(one);
    assert_true(tni_dispatch_generation() != generation);
    assert_int_equal(first_of(untuned, problems[0], &asked), 'a');
    const tn_refusal *why = &verdict_of(&asked, 'd')->why;
    assert_int_equal(why->code, TN_REFUSE_LOCK);
    assert_string_equal(why->what, "kernel");
    assert_contains(why->text, "one.lock:");
    assert_contains(why->text, "locks sim.unary.a");
    assert_int_equal(first_of(untuned, NEG("128") "@sim:0", &asked), 'd'); /* not named: free */
    assert_int_equal(first_of(untuned, NEG("256") "@sim:1", &asked), 'a'); /* a device like it */
    use(NULL);
    assert_int_equal(first_of(untuned, problems[0], &asked), 'd');
}

static void a_locked_kernel_that_cannot_be_taken_refuses(void **state)
{
    sim_asked asked;
    tn_error err;
    char name[TNI_LOCK_KERNEL];
    (void)state;
    make_lock(one, 0);
    use(one);
    sim[0].refuses = true;
    assert_int_equal(first_of(untuned, problems[0], &asked), '-');
    assert_int_equal(verdict_of(&asked, 'a')->why.code, TN_REFUSE_SHAPE);
    assert_int_equal(verdict_of(&asked, 'b')->why.code, TN_REFUSE_LOCK);
    assert_int_equal(tni_choice_refused(&asked.question, &asked.choice, &err), TN_REFUSED);
    assert_contains(err.message, "sim.unary.a");
    assert_string_equal(tni_lock_names(&asked.question, name), "sim.unary.a");
    assert_int_equal(tn_prepare(untuned, problems[0], &err), TN_REFUSED);
    sim_ask(&asked, untuned, NEG("128") "@sim:0");
    assert_string_equal(tni_lock_names(&asked.question, name), "");
    use(NULL);
}

static void other_versions_are_refused(void **state)
{
    sim_asked asked;
    (void)state;
    make_lock(one, 0);
    use(one);
    sim_version(0, 2);
    assert_int_equal(first_of(untuned, problems[0], &asked), '-');
    const tn_refusal *why = &verdict_of(&asked, 'a')->why;
    assert_int_equal(why->code, TN_REFUSE_LOCK);
    assert_string_equal(why->what, "version");
    assert_int_equal(why->needed, 1);
    assert_int_equal(why->found, 2);
    assert_contains(why->text, "locks its version 1");
    make_lock(one, 0);
    edit(one, "kernel = sim.unary.a",
         "kernel = sim.unary.b\nlibrary = simlib\nlibrary_version = 320");
    use(one);
    assert_int_equal(first_of(untuned, problems[0], &asked), '-');
    why = &verdict_of(&asked, 'b')->why;
    assert_string_equal(why->what, "library version");
    assert_int_equal(why->needed, 320);
    assert_int_equal(why->found, 321);
    assert_contains(why->text, "locks version 320 of simlib");
    make_lock(one, 0);
    edit(one, "kernel = sim.unary.a",
         "kernel = sim.unary.b\nlibrary = simlib\nlibrary_version = 321");
    use(one);
    assert_int_equal(first_of(untuned, problems[0], &asked), 'b');
    use(NULL);
}

static void strict_locks_refuse_what_they_do_not_name(void **state)
{
    sim_asked asked;
    (void)state;
    make_lock(one, TN_LOCK_STRICT);
    use(one);
    assert_int_equal(first_of(untuned, problems[1], &asked), 'a');
    assert_int_equal(first_of(untuned, NEG("128") "@sim:0", &asked), '-');
    assert_contains(verdict_of(&asked, 'a')->why.text,
                    "is strict and does not contain the problem");
    use(NULL);
}

/* Memory lies wherever it is allocated: the lock names a problem at every alignment. */
static void alignments_do_not_count(void **state)
{
    sim_asked asked;
    (void)state;
    make_lock(one, TN_LOCK_STRICT);
    sim_set(even, falling);
    use(one);
    assert_int_equal(first_of(untuned, NEG("256") ",align=64;64@sim:0", &asked), 'a');
    assert_int_equal(first_of(untuned, NEG("256") ",align=16;16@sim:0", &asked), 'a');
    assert_int_equal(first_of(untuned, NEG("256") ",align=4;32@sim:0", &asked), 'a');
    assert_int_equal(first_of(untuned, NEG("128") ",align=16;16@sim:0", &asked), '-');
    use(NULL);
}

/* One plan serves every alpha, so the lock does not tell them apart either. */
static void numbers_do_not_count(void **state)
{
    static const char *const both[] = {"matmul:f32:m=4,n=4,k=4,alpha=0.5@cpu:0",
                                       "matmul:f32:m=4,n=4,k=4,alpha=0.25@cpu:0"};
    sim_asked asked;
    char name[TNI_LOCK_KERNEL];
    tn_error err;
    (void)state;
    use(NULL);
    if (tn_lock_write(untuned, TN_ARGS(lock_write, .path = one, .problems = both, .count = 1),
                      &err))
        fail_msg("%s", err.message);
    use(one);
    sim_ask(&asked, untuned, both[1]);
    assert_true(tni_lock_names(&asked.question, name)[0] != '\0');
    sim_ask(&asked, untuned, "matmul:f32:m=4,n=4,k=4@cpu:0"); /* to have one is a feature */
    assert_string_equal(tni_lock_names(&asked.question, name), "");
    if (tn_lock_write(untuned, TN_ARGS(lock_write, .path = one, .problems = both, .count = 2),
                      &err))
        fail_msg("%s", err.message);
    use(one); /* both agree */
    edit(one, "alpha=0.25\ndevice = cpu:0\nkernel = ", "alpha=0.25\ndevice = cpu:0\nkernel = x");
    assert_int_equal(tn_lock_use(one, &err), TN_CORRUPT);
    assert_contains(err.message, "numbers such as alpha do not affect the choice");
    use(NULL);
}

static void a_lock_that_is_wrong_changes_nothing(void **state)
{
    sim_asked asked;
    tn_error err;
    (void)state;
    make_lock(one, 0);
    make_lock(two, 0);
    use(one);
    sim_set(even, falling);
    char *text = text_of(two);
    for (size_t i = 0; i < strlen(text); i += 7) {
        text[i] ^= 4;
        put_text(two, text, strlen(text));
        assert_int_equal(tn_lock_use(two, &err), TN_CORRUPT);
        assert_contains(err.message, "two.lock:");
        text[i] ^= 4;
    }
    assert_int_equal(tn_lock_use("/nowhere/at.lock", &err), TN_NOT_FOUND);
    assert_int_equal(first_of(untuned, problems[0], &asked), 'a');
    put_text(two, text, strlen(text));
    edit(two, "shape=512", "shape=256");
    assert_int_equal(tn_lock_use(two, &err), TN_CORRUPT); /* one problem twice */
    put_text(two, text, strlen(text));
    edit(two, "shape=512\ndevice = sim:0\nkernel = sim.unary.a",
         "shape=256\ndevice = sim:0\nkernel = sim.unary.b");
    assert_int_equal(tn_lock_use(two, &err), TN_CORRUPT);
    assert_contains(err.message, "expected only sim.unary.a, of line");
    free(text);
    use(NULL);
}

static void writing_is_all_or_nothing(void **state)
{
    static const char *const bad[] = {NEG("256") "@sim:0", "matmul:f32:m=4,n=4,k=4@sim:0"};
    static const char *const twice[] = {NEG("256") "@sim:0", NEG("256") "@sim"};
    tni_selections read = {0};
    tn_error err;
    (void)state;
    make_lock(one, 0);
    char *before = text_of(one);
    assert_int_equal(
        tn_lock_write(NULL, TN_ARGS(lock_write, .path = one, .problems = bad, .count = 2), &err),
        TN_UNSUPPORTED);
    assert_contains(err.message, "matmul");
    assert_int_equal(tn_lock_write(NULL, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_lock_write(NULL, TN_ARGS(lock_write, .path = ""), &err),
                     TN_INVALID_ARGUMENT);
    assert_int_equal(write_to(NULL, one, 2, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "unknown bits: 0x2");
    char *after = text_of(one);
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_int_equal(
        tn_lock_write(NULL, TN_ARGS(lock_write, .path = one, .problems = twice, .count = 2), &err),
        TN_OK);
    assert_int_equal(tni_lock_read(one, &read, &err), TN_OK);
    assert_int_equal(read.count, 1);
    assert_int_equal(read.setup_count, 1);
    assert_string_equal(read.setups[0].name, "Sim Board");
    assert_string_equal(read.setups[0].driver, "sim 1.0");
    assert_string_equal(read.selections[0].module, "sim");
    assert_int_equal(read.selections[0].numerics, TN_NUM_RUN_TO_RUN);
    tni_selections_release(&read);
}

/* The kinds of a report's rows, as words with a blank behind each. */
static const char *kinds(const tn_lock_report *report)
{
    static char words[256];
    words[0] = '\0';
    for (size_t i = 0; i < tn_lock_report_count(report); i++) {
        const tn_lock_row *row = tn_lock_report_row(report, i);
        strcat(words, tn_lock_row_name(row->kind));
        strcat(words, " ");
    }
    return words;
}

static tn_lock_report *checked(const tn_context *context, tn_device *device)
{
    tn_lock_report *report = NULL;
    tn_error err;
    if (tn_lock_check(context, one, device, &report, &err))
        fail_msg("%s", err.message);
    return report;
}

static void assert_checks(const tn_context *context, const char *words, size_t row,
                          const char *text)
{
    tn_lock_report *report = checked(context, NULL);
    assert_string_equal(kinds(report), words);
    assert_contains(tn_lock_report_row(report, row)->text, text);
    tn_lock_report_release(report);
}

static void a_check_says_what_differs(void **state)
{
    tn_context *repeats = NULL;
    (void)state;
    make_lock(one, 0);
    tn_lock_report *report = checked(untuned, NULL);
    const tn_lock_row *row = tn_lock_report_row(report, 0);
    assert_string_equal(row->problem, NEG("256") "@sim:0");
    assert_string_equal(row->locked, "sim.unary.a");
    assert_string_equal(row->found, "sim.unary.a");
    tn_lock_report_release(report);
    edit(one, "numerics = run-to-run", "numerics = run-to-run\nsettings = x=1");
    assert_checks(NULL, "settings settings ", 0,
                  "was chosen with the settings x=1, but here they are none");
    make_lock(one, 0);
    assert_checks(NULL, "same same ", 1, NEG("512") "@sim:0: sim.unary.a");
    sim_set(even, falling);
    assert_checks(NULL, "kernel kernel ", 0,
                  "locked to sim.unary.a; without the lock, sim.unary.d would be chosen");
    sim_set(even, rising);
    sim_version(0, 3);
    assert_checks(NULL, "version version ", 0, "sim.unary.a has version 1 in the lock, 3 here");
    sim_set(even, rising);
    sim[0].refuses = true;
    assert_checks(
        NULL, "refused refused ", 0,
        "which is refused: shape: size: expected 8, got 7; without the lock: sim.unary.b");
    sim_set(even, rising);
    assert_int_equal(
        tn_context_derive(NULL, TN_CHANGES(tn_with_determinism(TN_RUN_TO_RUN)), &repeats, NULL),
        TN_OK);
    assert_checks(repeats, "settings settings ", 0, "here they are determinism=run-to-run");
    tn_context_release(repeats);
    edit(one, "kernel = sim.unary.a", "kernel = sim.unary.z");
    assert_checks(NULL, "refused refused ", 0, "no module has that kernel");
    make_lock(one, 0);
    edit(one, "sim:0", "sim:7");
    assert_checks(NULL, "machine refused refused ", 0, "sim:7");
    make_lock(one, 0);
    edit(one, "driver = sim 1.0", "driver = sim 0.9\nlibraries = simlib 3.2.0");
    edit(one, "kernel = sim.unary.a",
         "kernel = sim.unary.b\nlibrary = simlib\nlibrary_version = 320");
    assert_checks(NULL, "machine machine version version ", 0,
                  "sim:0: driver is sim 0.9 in the lock, sim 1.0 here");
    assert_checks(NULL, "machine machine version version ", 1,
                  "libraries is simlib 3.2.0 in the lock, simlib 3.2.1 here");
    assert_checks(NULL, "machine machine version version ", 2,
                  "uses version 320 of simlib in the lock, version 321 here");
}

/* A lock of this machine's processor, held against one that is not here. */
static void a_check_against_a_described_device(void **state)
{
    static const char *const matmul[] = {"matmul:f32:m=64,n=64,k=64@cpu:0"};
    tn_device *device = NULL;
    tn_error err;
    (void)state;
    use(NULL);
    if (tn_lock_write(NULL, TN_ARGS(lock_write, .path = one, .problems = matmul, .count = 1), &err))
        fail_msg("%s", err.message);
    static const char *const files[] = {"arm-server", "h200"};
    for (size_t i = 0; i < 2; i++) {
        char path[SCRATCH_PATH];
        snprintf(path, sizeof path, SOURCE_FOLDER "/backends/described/devices/%s.device",
                 files[i]);
        if (tn_device_file_add(path, &err) || tn_device_get(files[i], &device, &err))
            fail_msg("%s", err.message);
        tn_lock_report *report = checked(NULL, device);
        assert_true(tn_lock_report_differences(report) > 0);
        const tn_lock_row *row = tn_lock_report_row(report, 0);
        assert_int_equal(row->kind, TN_LOCK_ROW_MACHINE);
        assert_string_equal(row->found, tn_device_name(device));
        row = tn_lock_report_row(report, tn_lock_report_count(report) - 1);
        assert_contains(row->problem, tn_device_id(device));
        if (i == 1)
            assert_int_equal(row->kind, TN_LOCK_ROW_REFUSED);
        tn_lock_report_release(report);
    }
}

static tn_lock_report *diffed(void)
{
    tn_lock_report *report = NULL;
    tn_error err;
    if (tn_lock_diff(one, two, &report, &err))
        fail_msg("%s", err.message);
    return report;
}

static void assert_differs(const char *from, const char *to, const char *words, const char *text)
{
    make_lock(one, 0);
    make_lock(two, 0);
    edit(two, from, to);
    tn_lock_report *report = diffed();
    assert_string_equal(kinds(report), words);
    bool found = false;
    for (size_t i = 0; i < tn_lock_report_count(report); i++)
        found = found || strcmp(tn_lock_report_row(report, i)->text, text) == 0;
    if (!found)
        fail_msg("no row says \"%s\"; the first says \"%s\"", text,
                 tn_lock_report_row(report, 0)->text);
    tn_lock_report_release(report);
}

static void two_locks_are_compared(void **state)
{
    tn_error err;
    tn_lock_report *report = NULL;
    (void)state;
    make_lock(one, 0);
    make_lock(two, 0);
    report = diffed();
    assert_string_equal(kinds(report), "same same ");
    assert_int_equal(tn_lock_report_differences(report), 0);
    assert_null(tn_lock_report_row(report, 2));
    tn_lock_report_release(report);
    assert_differs("strict = 0", "strict = 1", "strict same same ", "only the second is strict");
    assert_differs("kernel = sim.unary.a", "kernel = sim.unary.b", "kernel kernel ",
                   NEG("256") "@sim:0: sim.unary.a in the first, sim.unary.b in the second");
    assert_differs("version = 1", "version = 2", "version version ",
                   NEG("256") "@sim:0: sim.unary.a has version 1 in the first, 2 in the second");
    assert_differs("version = 1", "version = 1\nlibrary = simlib\nlibrary_version = 5",
                   "version version ",
                   NEG("256") "@sim:0: sim.unary.a uses an unknown version of simlib in "
                              "the first, version 5 in the second");
    assert_differs("version = 1", "version = 1\nsettings = k=v", "settings settings ",
                   NEG("256") "@sim:0: sim.unary.a was chosen with the settings none in the first, "
                              "k=v in the second");
    assert_differs("architecture = sim_1", "architecture = sim_2", "machine same same ",
                   "sim:0: architecture is sim_1 in the first, sim_2 in the second");
    assert_differs("shape=512", "shape=513", "same first-only second-only ",
                   NEG("513") "@sim:0: only the second has it, with sim.unary.a");
    assert_int_equal(tn_lock_diff(one, "/nowhere", &report, &err), TN_NOT_FOUND);
    assert_int_equal(tn_lock_diff(one, NULL, &report, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(tn_lock_row_name(TN_LOCK_ROW_COUNT), "unknown");
    tn_lock_report_release(NULL);
    assert_int_equal(tn_lock_report_count(NULL) + tn_lock_report_differences(NULL), 0);
}

static _Atomic int wrong;

static void decide_often(void *user)
{
    sim_asked asked;
    (void)user;
    sim_ask(&asked, untuned, problems[0]);
    for (int i = 0; i < 300; i++) {
        char first = sim_first(&asked);
        wrong += first != 'a' && first != 'd';
    }
}

static void locks_may_change_at_any_time(void **state)
{
    enum { THREADS = 3 };
    tni_thread threads[THREADS];
    (void)state;
    make_lock(one, 0);
    sim_set(even, falling);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&threads[i], decide_often, NULL, NULL), TN_OK);
    for (int i = 0; i < 100; i++)
        use(i % 2 ? NULL : one);
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(wrong, 0);
    use(NULL);
}

static tn_status step_write(void)
{
    return write_to(untuned, two, 0, NULL);
}

static tn_status step_use(void)
{
    return tn_lock_use(one, NULL);
}

static tn_status step_check(void)
{
    tn_lock_report *report = NULL;
    tn_status status = tn_lock_check(untuned, one, NULL, &report, NULL);
    tn_lock_report_release(report);
    return status;
}

static tn_status step_diff(void)
{
    tn_lock_report *report = NULL;
    tn_status status = tn_lock_diff(one, two, &report, NULL);
    tn_lock_report_release(report);
    return status;
}

static void want_of_memory_leaves_nothing(void **state)
{
    static tn_status (*const steps[])(void) = {step_write, step_use, step_check, step_diff};
    (void)state;
    make_lock(one, 0);
    make_lock(two, 0);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        long n = 1;
        assert_int_equal(steps[i](), TN_OK);
        for (bool fired = true; fired; n++) {
            struct fault_state before = fault_look();
            fault_arm(&fault_memory, n, false, 0);
            tn_status status = steps[i]();
            fired = fault_end(&fault_memory);
            if (status != TN_OK && !(fired && status == TN_OUT_OF_MEMORY))
                fail_msg("step %zu, allocation %ld: %s", i, n, tn_status_name(status));
            assert_int_equal(fault_left(before, "lock", n), 0);
        }
        assert_true(n > 5);
    }
    use(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variable_names_the_lock),
        cmocka_unit_test(locked_kernels_are_taken),
        cmocka_unit_test(a_locked_kernel_that_cannot_be_taken_refuses),
        cmocka_unit_test(other_versions_are_refused),
        cmocka_unit_test(strict_locks_refuse_what_they_do_not_name),
        cmocka_unit_test(alignments_do_not_count),
        cmocka_unit_test(numbers_do_not_count),
        cmocka_unit_test(a_lock_that_is_wrong_changes_nothing),
        cmocka_unit_test(writing_is_all_or_nothing),
        cmocka_unit_test(a_check_says_what_differs),
        cmocka_unit_test(a_check_against_a_described_device),
        cmocka_unit_test(two_locks_are_compared),
        cmocka_unit_test(locks_may_change_at_any_time),
        cmocka_unit_test(want_of_memory_leaves_nothing),
    };
    fault_memory_install();
    unsetenv("TENON_LOCK");
    scratch_make(folder);
    snprintf(one, sizeof one, "%s/one.lock", folder);
    snprintf(two, sizeof two, "%s/two.lock", folder);
    setenv("TENON_CACHE", "", 1);
    sim_begin();
    untuned = sim_context(TN_CHANGES(tn_with_tuning_enabled(0)));
    int failed = run_suite("unit.lock", tests);
    tn_context_release(untuned);
    sim_end();
    scratch_remove(folder);
    return failed;
}
