/* The worker view: a child that was forked, or a process that was started anew, knows the devices
 * and touches no driver. */
#include "world.h"

#include "base/buffer.h"
#include "device/worker/worker.h"
#include "fault/fault.h"
#include "os/file.h"
#include "os/thread.h"
#include "scratch.h"
#include "worker_trap.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *program; /* this one */

enum { FALSE_ANSWER = TRAP_TOUCHED + 1 }; /* how a worker ends that was told something else */

/* The modules of world.h and the trap. */
static void make(world *out)
{
    static tni_builtin builtins[8];
    const tni_registry_params params = {.builtins = builtins};
    tn_error err = {0};
    memcpy(builtins, world_builtins(WORLD_ALL), 6 * sizeof builtins[0]);
    builtins[6] = trap_builtin();
    if (tni_registry_create(&params, &out->registry, &err) ||
        tni_platforms_create(out->registry, NULL, &out->set, &err))
        fail_msg("%s", err.message);
}

static void take(world *w)
{
    tn_error err = {0};
    if (tni_worker_snapshot_take(w->set, &err))
        fail_msg("%s", err.message);
}

static char *save(void)
{
    char *text = NULL;
    tn_error err = {0};
    if (tn_worker_snapshot_save(&text, &err))
        fail_msg("%s", err.message);
    return text;
}

static void add_properties(tni_buffer *to, const tn_device_properties *p)
{
    tni_buffer_format(to, " %s|%s|%s|%s|%d.%d|", p->name, p->uuid, p->bus, p->architecture,
                      (int)p->capability.major, (int)p->capability.minor);
    for (const tn_dtype *dtype = p->dtypes; *dtype; dtype++)
        tni_buffer_format(to, "%x,", (unsigned)*dtype);
#define NUMBER(field, word, unit, meaning) tni_buffer_format(to, " %lld", (long long)p->field);
    TN_DEVICE_NUMBER_LIST(NUMBER)
#undef NUMBER
    tni_buffer_format(to, " %llx\n", (unsigned long long)p->known);
}

/* The answer to every question, as one text; no assertion, as children ask too. */
static char *ask_everything(void)
{
    static const char *const platforms[] = {"cpu",   "acme", "bolt", "rocm",    "cuda",
                                            "stand", "trap", "tpu",  "nothing", ""};
    tni_buffer text = {0};
    for (size_t i = 0; i < sizeof platforms / sizeof platforms[0]; i++) {
        int32_t count = -7, current = -7;
        tn_error err = {0};
        tn_status status = tn_worker_device_count(platforms[i], &count, &err);
        tni_buffer_format(&text, "%s: %d %d %s\n", platforms[i], (int)status, (int)count,
                          err.message);
        status = tn_worker_current_device(platforms[i], &current, &err);
        tni_buffer_format(&text, "%d %d\n", (int)status, (int)current);
        for (int32_t index = -2; index < 4; index++) {
            tn_device_properties p = {.struct_size = sizeof p};
            status = tn_worker_properties(platforms[i], index, &p, &err);
            tni_buffer_format(&text, "%d %d %s", (int)index, (int)status,
                              status ? err.message : "");
            add_properties(&text, &p);
        }
    }
    return tni_buffer_detach(&text);
}

/* The first test: before there is any snapshot. */
static void nothing_is_known_without_a_snapshot(void **state)
{
    tn_device_properties p = {.struct_size = sizeof p};
    char *text = NULL;
    int32_t out = 7;
    tn_error err;
    (void)state;
    assert_int_equal(tn_worker_device_count("cpu", &out, &err), TN_UNAVAILABLE);
    assert_string_equal(err.message,
                        "there is no snapshot; take one before fork(), or load the text "
                        "from tn_worker_snapshot_save");
    assert_int_equal(tn_worker_set_device("cpu", 0, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_worker_set_device("cpu", -1, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_worker_current_device("cpu", &out, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_worker_properties("cpu", 0, &p, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_worker_snapshot_save(&text, &err), TN_UNAVAILABLE);
    assert_null(text);
    assert_int_equal(out, 7);
}

static void answers_are_those_of_the_devices(void **state)
{
    world w;
    tn_error err;
    (void)state;
    make(&w);
    take(&w);
    for (size_t i = 0; i < tni_platforms_count(w.set); i++) {
        const tn_platform *platform = tni_platforms_at(w.set, i);
        int32_t count = -1, current = -7;
        assert_int_equal(tn_worker_device_count(tn_platform_name(platform), &count, &err), TN_OK);
        assert_int_equal(count, tn_platform_device_count(platform));
        assert_int_equal(tn_worker_current_device(tn_platform_name(platform), &current, &err),
                         TN_OK);
        assert_int_equal(current, count > 0 ? 0 : -1);
    }
    for (int32_t i = 0; i < 3; i++) {
        tn_device_properties p = {.struct_size = sizeof p};
        const tn_device_properties *real =
            tn_device_properties_get(tni_devices_of(world_platform(&w, "acme"), i));
        assert_int_equal(tn_worker_properties("acme", i, &p, &err), TN_OK);
        assert_memory_equal(&p, real, sizeof p);
    }
    tn_device_properties p = {.struct_size = sizeof p};
    assert_int_equal(tn_worker_properties("trap", 1, &p, &err), TN_OK);
    assert_true(p.known == 0 && p.memory_bytes == 0 && p.capability.major == 0);
    assert_string_equal(p.name, "Trap \"1\" # caf\xc3\xa9");
    world_end(&w);
}

/* A platform that was replaced has the devices of the one that serves it, and no others. */
static void replaced_devices_are_not_seen(void **state)
{
    world w;
    tn_registration *registration = NULL;
    int32_t count = -1;
    tn_error err;
    (void)state;
    make(&w);
    (void)world_platform(&w, "acme");
    assert_int_equal(tni_platforms_register(w.set, world_builtins(WORLD_ACME)[0].entry,
                                            TN_MODULE_REPLACE, &registration, &err),
                     TN_OK);
    take(&w);
    assert_int_equal(tn_worker_device_count("acme", &count, &err), TN_OK);
    assert_int_equal(count, 3);
    tn_registration_release(registration);
    world_end(&w);
}

static void numbers_follow_one_rule(void **state)
{
    world w;
    int32_t current = -7;
    tn_device_properties p = {.struct_size = sizeof p};
    tn_error err;
    (void)state;
    make(&w);
    (void)world_platform(&w, "acme");
    assert_int_equal(tn_device_set(world_platform(&w, "acme"), 1, &err), TN_OK);
    take(&w);
    assert_int_equal(tn_worker_current_device("acme", &current, &err), TN_OK);
    assert_int_equal(current, 1); /* begins as the thread's */
    assert_int_equal(tn_worker_set_device("acme", 2, &err), TN_OK);
    assert_int_equal(tn_worker_current_device("acme", &current, &err), TN_OK);
    assert_int_equal(current, 2);
    assert_int_equal(tn_device_current(world_platform(&w, "acme")), 1); /* recorded, no more */
    assert_int_equal(tn_worker_set_device("acme", -1, &err), TN_OK);
    assert_int_equal(tn_worker_set_device("acme", 3, &err), TN_NOT_FOUND);
    assert_string_equal(err.message, "no device \"acme:3\" in the snapshot: acme has 3");
    assert_int_equal(tn_worker_set_device("acme", -2, &err), TN_NOT_FOUND);
    assert_int_equal(tn_worker_set_device("tpu", 0, &err), TN_UNAVAILABLE);
    assert_contains(err.message, "platform tpu is "); /* the verdict */
    assert_int_equal(tn_worker_set_device("tpu", -1, &err), TN_OK);
    assert_int_equal(tn_worker_set_device("acne", 0, &err), TN_NOT_FOUND);
    assert_contains(err.message, "unknown platform \"acne\" in the snapshot; platforms: cpu, cuda");
    assert_contains(err.message, "did you mean acme?");
    assert_int_equal(tn_worker_current_device("acme", &current, &err), TN_OK);
    assert_int_equal(current, 2);
    assert_int_equal(tn_worker_current_device("tpu", &current, &err), TN_OK);
    assert_int_equal(current, -1);
    assert_int_equal(tn_worker_properties("acme", -1, &p, &err), TN_OK);
    assert_string_equal(p.name, ""); /* of device 2, which does not tell */
    assert_int_equal(tn_worker_properties("acme", 1, &p, &err), TN_OK);
    assert_string_equal(p.name, "Acme Board 1");
    assert_int_equal(tn_worker_properties("tpu", -1, &p, &err), TN_UNAVAILABLE);
    assert_int_equal(tn_worker_properties("acme", 9, &p, &err), TN_NOT_FOUND);
    assert_string_equal(p.name, "Acme Board 1");
    p.struct_size = 8;
    assert_int_equal(tn_worker_properties("acme", 1, &p, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_worker_properties("acme", 1, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_worker_device_count("acme", NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_worker_current_device("acme", NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_worker_device_count(NULL, &current, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_worker_snapshot_save(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_worker_snapshot_load(NULL, &err), TN_INVALID_ARGUMENT);
    tn_worker_text_release(NULL);
    world_end(&w);
}

static void text_is_exact(void **state)
{
    world w;
    tn_error err;
    (void)state;
    make(&w);
    take(&w);
    assert_int_equal(tn_worker_set_device("trap", 1, &err), TN_OK);
    char *text = save(), *answers = ask_everything();
    assert_contains(text, "worker = 1\n");
    assert_contains(text, "[platform trap]\nkind = out-of-tree\ncurrent = 1\n");
    assert_contains(text, "[device trap:0]\n");
    assert_contains(text, "capability = 3.2147483647\ndtypes = bf16, f8_e5m2fnuz\n"
                          "memory = 9223372036854775807\nphysical_index = 0\n");
    assert_contains(text, "\n[end]\nsections = ");
    assert_contains(text, "[device acme:1]\nname = Acme Board 1\nuuid = ACME-00000001\n"
                          "bus = 0000:01:00.0\ncapability = 3.12\ndtypes = bf16, f32\n"
                          "memory = 17179869184\nphysical_index = 2\n");
    assert_contains(text, "[platform tpu]\nkind = tpu\nreason = platform tpu is ");
    assert_contains(text,
                    "[platform stand]\nkind = out-of-tree\nreason = platform stand has no device "
                    "yet: describe one (tn_device_file_add)\n");
    assert_int_equal(tn_worker_set_device("trap", 0, &err), TN_OK);
    assert_int_equal(tn_worker_snapshot_load(text, &err), TN_OK);
    char *again = save(), *same = ask_everything();
    assert_string_equal(again, text);
    assert_string_equal(same, answers);
    tni_release(again), tni_release(same), tni_release(answers);
    tn_worker_text_release(text);
    world_end(&w);
}

/* Loads a text that ends as one does. */
static tn_status load_whole(const char *text, tn_error *err)
{
    tni_buffer whole = {0};
    size_t sections = 0;
    for (const char *at = text; (at = strchr(at, '[')) != NULL; at++)
        sections++;
    tni_buffer_format(&whole, "%s[end]\nsections = %zu\n", text, sections);
    tn_status status = tn_worker_snapshot_load(tni_buffer_text(&whole), err);
    tni_buffer_release(&whole);
    return status;
}

static void device_for_planning_says_so(void **state)
{
    int32_t plans = 7;
    tn_error err;
    (void)state;
    assert_int_equal(load_whole("worker = 1\n[platform a]\nkind = npu\ncurrent = 0\n"
                                "[device a:0]\nplans_only = 1\n[device a:1]\n",
                                &err),
                     TN_OK);
    assert_int_equal(tn_worker_plans_only("a", -1, &plans, &err), TN_OK);
    assert_int_equal(plans, 1);
    assert_int_equal(tn_worker_plans_only("a", 1, &plans, &err), TN_OK);
    assert_int_equal(plans, 0);
    assert_int_equal(tn_worker_plans_only("a", 2, &plans, &err), TN_NOT_FOUND);
    assert_int_equal(tn_worker_plans_only("b", 0, &plans, &err), TN_NOT_FOUND);
    assert_int_equal(tn_worker_plans_only("a", 0, NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(plans, 0);
    char *text = save();
    assert_contains(text, "[device a:0]\nplans_only = 1\n\n[device a:1]\n\n[end]\n"
                          "sections = 3\n");
    tn_worker_text_release(text);
}

/* Whatever a text lacks at its end, but for the end of its last line. */
static void text_that_is_cut_off_is_corrupt(void **state)
{
    world w;
    tn_error err;
    (void)state;
    make(&w);
    take(&w);
    char *text = save();
    size_t length = strlen(text);
    text[length - 1] = '\0';
    assert_int_equal(tn_worker_snapshot_load(text, &err), TN_OK);
    for (size_t i = length - 1; i-- > 0;) {
        text[i] = '\0';
        if (tn_worker_snapshot_load(text, &err) != TN_CORRUPT)
            fail_msg("%zu of %zu bytes are taken for the whole", i, length);
    }
    tn_worker_text_release(text);
    assert_int_equal(tn_worker_snapshot_load("worker = 1\n", &err), TN_CORRUPT);
    assert_contains(err.message, "snapshot:1: the text is cut off: it ends with [end] and the "
                                 "number of its sections");
    assert_int_equal(tn_worker_snapshot_load("worker = 1\n[x]\n[end]\nsections = 2\n", &err),
                     TN_CORRUPT);
    assert_contains(err.message,
                    "snapshot:4: sections = \"2\": expected 1, or the text is cut off");
    world_end(&w);
}

static void sections_of_others_are_left_alone(void **state)
{
    int32_t count = -1;
    tn_error err;
    (void)state;
    assert_int_equal(load_whole("# a comment\nworker = 1\n[library blas]\nx = 1\n"
                                "[device  a:7 ]\n[platform a]\nkind = npu\n"
                                "current = 7\n[devices]\n",
                                &err),
                     TN_CORRUPT); /* two blanks are no name */
    assert_int_equal(load_whole("# a comment\nworker = 1\n[library blas]\nx = 1\n"
                                "[device a:7]\n[platform a]\nkind = npu\n"
                                "current = 7\n[devices]\n",
                                &err),
                     TN_OK);
    assert_int_equal(tn_worker_device_count("a", &count, &err), TN_OK);
    assert_int_equal(count, 1);
    assert_int_equal(tn_worker_set_device("a", 0, &err), TN_NOT_FOUND);
    assert_int_equal(tn_worker_current_device("a", &count, &err), TN_OK);
    assert_int_equal(count, 7);
}

static void wrong_text_changes_nothing(void **state)
{
#define A "[platform a]\nkind = npu\n"
#define D "[device a:0]\n"
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {"", "snapshot:1: the text has no worker"},
        {A, "snapshot:1: the text has no worker"},
        {"worker = 2\n", "snapshot:1: worker = \"2\": expected 1: another version of Tenon"},
        {"worker = 1\nwork = 2\n",
         "snapshot:2: unknown key \"work\" (= \"2\"); did you mean worker?"},
        {"worker = 1\nworker = 1\n",
         "snapshot:2: worker = \"1\": duplicate key, first set in line 1"},
        {"worker = 1\n[platform A]\n", "snapshot:2: [platform A]: not a valid platform name"},
        {"worker = 1\n[platform a]\n", "snapshot:2: [platform a] has no kind"},
        {"worker = 1\n[platform a]\nkind = unspecified\n",
         "snapshot:3: kind = \"unspecified\": expected a kind of platform"},
        {"worker = 1\n" A "kind = npu\n",
         "snapshot:4: kind = \"npu\": duplicate key, first set in line 3"},
        {"worker = 1\n" A, "snapshot:2: [platform a] has neither devices nor a reason"},
        {"worker = 1\n" A "reason = x\n" A, "snapshot:5: duplicate [platform a]"},
        {"worker = 1\n" A "reason = \"\"\n",
         "snapshot:4: reason = \"\": expected 1 to 415 bytes of text"},
        {"worker = 1\n" A "reason = \"a\\nb\"\n",
         "snapshot:4: reason = \"a\\x0ab\": expected one line"},
        {"worker = 1\n" A "reason = x\ncurrent = 0\n",
         "snapshot:5: current = \"0\": expected the number of a device of the platform"},
        {"worker = 1\n" A D, "snapshot:2: [platform a] does not state the current device"},
        {"worker = 1\n" A "current = 1\n" D, "snapshot:4: current = \"1\": expected the number"},
        {"worker = 1\n" A "curent = 0\n" D,
         "snapshot:4: unknown key \"curent\" (= \"0\"); did you mean current?"},
        {"worker = 1\n" A "current = +0\n" D,
         "snapshot:4: current = \"+0\": expected a whole number"},
        {"worker = 1\n" D, "snapshot:2: [device a:0]: expected a platform that has a section"},
        {"worker = 1\n" A "current = 0\n" D "[device a]\n", "snapshot:6: [device a]: expected"},
        {"worker = 1\n" A "current = 0\n" D "[device a:-1]\n",
         "snapshot:6: [device a:-1]: expected"},
        {"worker = 1\n" A "current = 0\n" D "[device a:99999999999]\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D D, "snapshot:6: duplicate [device a:0]"},
        {"worker = 1\n" A "current = 0\n" D "memroy = 1\n",
         "snapshot:6: unknown key \"memroy\" (= \"1\"); did you mean memory?"},
        {"worker = 1\n" A "current = 0\n" D "memory = 1\nmemory = 1\n",
         "snapshot:7: memory = \"1\": duplicate key, first set in line 6"},
        {"worker = 1\n" A "current = 0\n" D "memory = 1 GB/s\n",
         "snapshot:6: memory = \"1 GB/s\": expected bytes, as in 96 GiB"},
        {"worker = 1\n" A "current = 0\n" D "memory = -1\n",
         "snapshot:6: memory = \"-1\": expected"},
        {"worker = 1\n" A "current = 0\n" D "capability = -1.0\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "plans_only = 2\n",
         "snapshot:6: plans_only = \"2\": expected a whole number from 0 to 1"},
        {"worker = 1\n" A "current = 0\n" D "memory = 9223372036854775808\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "memory = +1\n",
         "snapshot:6: memory = \"+1\": expected"},
        {"worker = 1\n" A "current = 0\n" D "memory =\n", "snapshot:6: memory = \"\": expected"},
        {"worker = 1\n" A "current = 0\n" D "capability = nine\n",
         "snapshot:6: capability = \"nine\": expected a capability, as in 9.0"},
        {"worker = 1\n" A "current = 0\n" D "capability = 9.\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "capability = 9.0.1\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "capability = 99999999999999999.0\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "dtypes = f33\n",
         "snapshot:6: dtypes = \"f33\": expected dtypes separated by commas; did you mean f32?"},
        {"worker = 1\n" A "current = 0\n" D "dtypes = f32 bf16\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "dtypes = f32,\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "dtypes = 0x0\n", "snapshot:6: "},
        {"worker = 1\n" A "current = 0\n" D "bus = 0123456789012345678901234567890123456789\n",
         "expected 1 to 31 bytes of text"},
        {"worker = 1\n[platform a\n", "snapshot:2:"},
    };
    world w;
    (void)state;
    make(&w);
    take(&w);
    char *before = save();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_error err = {0};
        if (load_whole(rows[i].text, &err) != TN_CORRUPT)
            fail_msg("taken: %s", rows[i].text);
        assert_contains(err.message, rows[i].words);
        char *after = save();
        assert_string_equal(after, before);
        tn_worker_text_release(after);
    }
    tn_worker_text_release(before);
    world_end(&w);
#undef A
#undef D
}

/* Whatever part of a text there is, and whichever byte is another: it is taken or it is corrupt. */
static void damaged_text_is_corrupt_or_sound(void **state)
{
    world w;
    (void)state;
    make(&w);
    take(&w);
    char *text = save();
    size_t length = strlen(text), step = test_reduced() ? 37 : 3;
    for (size_t i = 0; i < length; i += step) {
        char kept = text[i];
        for (int change = 0; change < 4; change++) {
            static const char others[] = {'\0', '\n', '[', '9'};
            tn_error err = {0};
            text[i] = others[change];
            tn_status status = tn_worker_snapshot_load(text, &err);
            assert_true(status == TN_OK || (status == TN_CORRUPT && err.message[0]));
        }
        text[i] = kept;
    }
    assert_int_equal(tn_worker_snapshot_load(text, NULL), TN_OK);
    tn_worker_text_release(text);
    world_end(&w);
}

/* A child that hangs is ended by its alarm, and its parent sees that. */
static pid_t fork_watched(void)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        trap_armed = true;
        (void)alarm(TEST_HANG_SECONDS);
    }
    return pid;
}

static int code_of(pid_t pid)
{
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* In the child: every question, and what it may do besides. */
static void be_a_worker(const char *expected)
{
    int32_t current = -1;
    tn_error err;
    char *answers = ask_everything();
    if (!answers || strcmp(answers, expected) != 0 || tn_worker_set_device("trap", 1, &err) ||
        tn_worker_current_device("trap", &current, &err) || current != 1 ||
        tn_worker_snapshot_take(&err) != TN_REFUSED ||
        !strstr(err.message, "take the snapshot before fork()"))
        _exit(FALSE_ANSWER);
    _exit(0);
}

static void child_answers_without_a_driver(void **state)
{
    world w;
    tn_device_memory memory = {.struct_size = sizeof memory};
    int32_t current = -1;
    tn_error err;
    (void)state;
    make(&w);
    take(&w);
    tn_device *device = world_device(&w, "trap:0");
    char *expected = ask_everything();
    pid_t worker = fork_watched();
    if (worker == 0)
        be_a_worker(expected);
    assert_int_equal(code_of(worker), 0);
    assert_int_equal(tn_worker_current_device("trap", &current, &err), TN_OK);
    assert_int_equal(current, 0); /* the child's is its own */
    pid_t careless = fork_watched();
    if (careless == 0)
        _exit(tn_device_memory_get(device, &memory, &err) == TN_UNAVAILABLE ? 0 : FALSE_ANSWER);
    assert_int_equal(code_of(careless), 0);
    pid_t reckless = fork_watched();
    if (reckless == 0) /* the trap works */
        _exit(device->offer->platform->row->device_memory(NULL, 0, &memory, &err) ? 1 : 2);
    assert_int_equal(code_of(reckless), TRAP_TOUCHED);
    assert_int_equal(tni_worker_snapshot_take(w.set, &err), TN_OK); /* the parent may, still */
    tni_release(expected);
    world_end(&w);
}

/* Threads that look for devices, take, load and ask, all the time. */
enum { THREADS = 4 };
typedef struct bustle {
    world *w;
    const char *text;
    const char *answers; /* to which every one of them is equal */
    _Atomic bool stop;
    _Atomic int wrong;
    tni_thread threads[THREADS];
} bustle;

static void bustle_take(void *user)
{
    bustle *b = user;
    while (!b->stop)
        b->wrong += tni_worker_snapshot_take(b->w->set, NULL) != TN_OK;
}

static void bustle_load(void *user)
{
    bustle *b = user;
    while (!b->stop)
        b->wrong += tn_worker_snapshot_load(b->text, NULL) != TN_OK;
}

static void bustle_ask(void *user)
{
    bustle *b = user;
    while (!b->stop) {
        char *answers = ask_everything();
        b->wrong += !answers || strcmp(answers, b->answers) != 0;
        tni_release(answers);
    }
}

static void bustle_find(void *user)
{
    bustle *b = user;
    tn_device *device = NULL;
    while (!b->stop)
        b->wrong += tni_devices_get(b->w->set, "trap:1", &device, NULL) != TN_OK;
}

static void bustle_begin(bustle *b)
{
    static void (*const runs[THREADS])(void *) = {bustle_take, bustle_load, bustle_ask,
                                                  bustle_find};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(tni_thread_create(&b->threads[i], runs[i], b, NULL), TN_OK);
}

static void bustle_end(bustle *b)
{
    b->stop = true;
    for (int i = 0; i < THREADS; i++)
        tni_thread_join(b->threads[i]);
    assert_int_equal(b->wrong, 0);
}

static void child_answers_whatever_others_were_at(void **state)
{
    world w;
    (void)state;
    skip_unless_fork_is_safe();
    make(&w);
    take(&w);
    char *text = save(), *answers = ask_everything();
    bustle b = {.w = &w, .text = text, .answers = answers};
    bustle_begin(&b);
    for (int i = 0; i < (test_reduced() ? 10 : 60); i++) {
        pid_t worker = fork_watched();
        if (worker == 0)
            be_a_worker(answers);
        assert_int_equal(code_of(worker), 0);
    }
    bustle_end(&b);
    tni_release(text), tni_release(answers);
    world_end(&w);
}

static void replaced_snapshots_are_released(void **state)
{
    world w;
    (void)state;
    make(&w);
    take(&w);
    char *text = save(), *answers = ask_everything();
    bustle b = {.w = &w, .text = text, .answers = answers};
    take(&w);
    int64_t blocks = tn_allocator_blocks();
    bustle_begin(&b);
    for (int i = 0; i < (test_reduced() ? 50 : 1000); i++)
        assert_int_equal(tn_worker_snapshot_load(text, NULL), TN_OK);
    bustle_end(&b);
    take(&w); /* no one reads now: what was left goes */
    assert_int_equal(tn_allocator_blocks(), blocks);
    tni_release(text), tni_release(answers);
    world_end(&w);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[SCRATCH_PATH + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* What a process that was started anew does: it knows nothing, reads the text, and knows all. */
static int be_a_spawned_worker(const char *folder)
{
    char *text = NULL, *expected = NULL, *answers = NULL;
    char text_path[SCRATCH_PATH + 16], answers_path[SCRATCH_PATH + 16];
    size_t size;
    int32_t count;
    snprintf(text_path, sizeof text_path, "%s/text", folder);
    snprintf(answers_path, sizeof answers_path, "%s/answers", folder);
    bool right = tn_worker_device_count("cpu", &count, NULL) == TN_UNAVAILABLE &&
                 tni_file_read(text_path, 1 << 24, &text, &size, NULL) == TN_OK &&
                 tni_file_read(answers_path, 1 << 24, &expected, &size, NULL) == TN_OK &&
                 tn_worker_snapshot_load(text, NULL) == TN_OK;
    answers = ask_everything();
    right = right && answers && strcmp(answers, expected) == 0;
    tni_release(text), tni_release(expected), tni_release(answers);
    return right ? 0 : FALSE_ANSWER;
}

static void spawned_process_reads_the_text(void **state)
{
    char folder[SCRATCH_PATH], path[SCRATCH_PATH], option[] = "--worker";
    world w;
    pid_t pid = -1;
    tn_error err;
    (void)state;
    if (getenv("TN_TEST_EMULATED"))
        skip_because("qemu-user has the system start a program, which is not one of its own");
    make(&w);
    take(&w);
    assert_int_equal(tn_worker_set_device("acme", 2, &err), TN_OK);
    scratch_make(folder);
    char *text = save(), *answers = ask_everything();
    write_file(folder, "text", text);
    write_file(folder, "answers", answers);
    tn_text_fit(path, sizeof path, program);
    char *arguments[] = {path, option, folder, NULL};
    assert_int_equal(posix_spawn(&pid, path, NULL, NULL, arguments, environ), 0);
    assert_int_equal(code_of(pid), 0);
    scratch_remove(folder);
    tni_release(text), tni_release(answers);
    world_end(&w);
}

static tn_status take_save_load(world *w)
{
    char *text = NULL;
    tn_status status = tni_worker_snapshot_take(w->set, NULL);
    if (!status)
        status = tn_worker_snapshot_save(&text, NULL);
    if (!status)
        status = tn_worker_snapshot_load(text, NULL);
    assert_true(!status || !text || status == TN_OUT_OF_MEMORY);
    tn_worker_text_release(text);
    return status;
}

/* The looks behind a verdict do without memory, and say so: then all goes well but for its words. */
static void every_allocation_may_fail(void **state)
{
    world w;
    long n = 0, refused = 0;
    bool fired = true;
    (void)state;
    make(&w);
    assert_int_equal(take_save_load(&w), TN_OK);
    char *answers = ask_everything();
    while (fired) {
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, ++n, false, 0);
        tn_status status = take_save_load(&w);
        fired = fault_end(&fault_memory);
        assert_true(status == TN_OK || (fired && status == TN_OUT_OF_MEMORY));
        refused += status != TN_OK;
        assert_int_equal(fault_left(before, "worker", n), 0);
        if (!status)
            take(&w);
        char *same = ask_everything();
        assert_string_equal(same, answers);
        tni_release(same);
    }
    assert_true(refused >= 8);
    tni_release(answers);
    world_end(&w);
}

static void process_takes_its_own(void **state)
{
    const tn_device_properties *real;
    tn_device_properties p = {.struct_size = sizeof p};
    tn_device *device = NULL;
    tn_error err;
    (void)state;
    assert_int_equal(tn_worker_snapshot_take(&err), TN_OK);
    assert_int_equal(tn_device_get("cpu", &device, &err), TN_OK);
    real = tn_device_properties_get(device);
    assert_int_equal(tn_worker_properties("cpu", -1, &p, &err), TN_OK);
    assert_memory_equal(&p, real, sizeof p);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_known_without_a_snapshot),
    cmocka_unit_test(answers_are_those_of_the_devices),
    cmocka_unit_test(replaced_devices_are_not_seen),
    cmocka_unit_test(numbers_follow_one_rule),
    cmocka_unit_test(text_is_exact),
    cmocka_unit_test(device_for_planning_says_so),
    cmocka_unit_test(text_that_is_cut_off_is_corrupt),
    cmocka_unit_test(sections_of_others_are_left_alone),
    cmocka_unit_test(wrong_text_changes_nothing),
    cmocka_unit_test(damaged_text_is_corrupt_or_sound),
    cmocka_unit_test(child_answers_without_a_driver),
    cmocka_unit_test(child_answers_whatever_others_were_at),
    cmocka_unit_test(replaced_snapshots_are_released),
    cmocka_unit_test(spawned_process_reads_the_text),
    cmocka_unit_test(every_allocation_may_fail),
    cmocka_unit_test(process_takes_its_own),
};

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--worker") == 0)
        return be_a_spawned_worker(argv[2]);
    program = argv[0];
    fault_memory_install();
    return run_suite("unit.worker", tests);
}
