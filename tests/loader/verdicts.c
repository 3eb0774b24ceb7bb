/* The child that looks at unknown modules, and what is remembered of its verdicts. */
#include "support.h"

#include "registry/verdict.h"

#include <sys/time.h>

/* A folder with one module, and a cache beside it. */
typedef struct scene {
    char folder[SCRATCH_PATH];
    tni_cache *cache;
    tni_registry_params params;
} scene;

static void scene_make(scene *to, const char *stub)
{
    scratch_make(to->folder);
    put_stub(to->folder, "m", stub);
    trace_begin(to->folder);
    assert_int_equal(tni_cache_create(path_in(to->folder, "cache").text, 1 << 20, &to->cache, NULL),
                     TN_OK);
    assert_non_null(tni_cache_folder(to->cache));
    to->params = seek_in(to->folder);
    to->params.cache = to->cache;
}

static void scene_remove(scene *from)
{
    tni_cache_release(from->cache);
    scratch_remove(from->folder);
}

/* Loads with a registry of its own and tells what ran of the module, and where it stopped. */
static const char *load_once(const scene *in, const expected *row)
{
    loaded once = load(&in->params);
    check_row(&once, row);
    unload(&once);
    return trace_take();
}

static const expected crashed = {
    "m", TN_STAGE_NEGOTIATED, TN_CRASHED, "its probe crashed (signal 11)",
    "report this to the module's author; `tenon modules --fresh` probes it again"};
static const expected ready = {"m", TN_STAGE_READY, TN_OK, "offers", ""};

static void crash_is_remembered(void **state)
{
    scene in;
    (void)state;
    scene_make(&in, "crashing_probe");
    assert_string_equal(load_once(&in, &crashed), "cep");
    assert_string_equal(load_once(&in, &crashed), "");
    scene_remove(&in);
}

static void success_is_remembered(void **state)
{
    scene in;
    (void)state;
    scene_make(&in, "good");
    assert_string_equal(load_once(&in, &ready), "cepcep"); /* in the child, then here */
    assert_string_equal(load_once(&in, &ready), "ep");     /* here, where it is open already */
    scene_remove(&in);
}

static void another_abi_is_remembered(void **state)
{
    static const expected other = {"m", TN_STAGE_OPENED, TN_INCOMPATIBLE, "built for module ABI",
                                   "build the module with the headers of this Tenon"};
    scene in;
    (void)state;
    scene_make(&in, "other_minor");
    assert_string_equal(load_once(&in, &other), "ce");
    assert_string_equal(load_once(&in, &other), "");
    scene_remove(&in);
}

static void absence_is_not_remembered(void **state)
{
    static const expected absent = {"m", TN_STAGE_NEGOTIATED, TN_UNAVAILABLE,
                                    "no stub card is fitted", "fit a stub card"};
    scene in;
    (void)state;
    scene_make(&in, "unavailable");
    assert_string_equal(load_once(&in, &absent), "cepce");
    assert_string_equal(load_once(&in, &absent), "cepe");
    scene_remove(&in);
}

/* A probe that a signal from outside ended says nothing about the module: the next process probes it again. */
static void signal_from_outside_is_not_remembered(void **state)
{
    const tni_verdict killed = {
        .stage = TN_STAGE_OPENED, .status = TN_CANCELLED, .ended_badly = true};
    const tni_verdict broken = {
        .stage = TN_STAGE_OPENED, .status = TN_CRASHED, .ended_badly = true};
    tni_verdict found;
    scene in;
    (void)state;
    scene_make(&in, "good");
    const struct path file = module_in(in.folder, "m");
    tni_verdict_remember(in.cache, PROBE, file.text, &killed);
    assert_false(tni_verdict_recall(in.cache, PROBE, file.text, &found));
    tni_verdict_remember(in.cache, PROBE, file.text, &broken);
    assert_true(tni_verdict_recall(in.cache, PROBE, file.text, &found));
    scene_remove(&in);
}

static void changed_file_is_probed_anew(void **state)
{
    const struct timeval times[] = {{1000000000, 1}, {1000000000, 1}};
    scene in;
    (void)state;
    scene_make(&in, "crashing_probe");
    assert_string_equal(load_once(&in, &crashed), "cep");
    assert_int_equal(utimes(module_in(in.folder, "m").text, times), 0);
    assert_string_equal(load_once(&in, &crashed), "cep");
    assert_string_equal(load_once(&in, &crashed), "");
    put_stub(in.folder, "m", "good"); /* the author has mended it */
    assert_string_equal(load_once(&in, &ready), "cepcep");
    scene_remove(&in);
}

static void fresh_registry_probes_anew_and_remembers_that(void **state)
{
    scene in;
    (void)state;
    scene_make(&in, "crashing_probe");
    assert_string_equal(load_once(&in, &crashed), "cep");
    in.params.fresh = true;
    assert_string_equal(load_once(&in, &crashed), "cep");
    in.params.fresh = false;
    assert_string_equal(load_once(&in, &crashed), "");
    scene_remove(&in);
}

static void emptied_cache_means_probing_anew(void **state)
{
    scene in;
    (void)state;
    scene_make(&in, "crashing_probe");
    assert_string_equal(load_once(&in, &crashed), "cep");
    assert_int_equal(tni_cache_prune(in.cache, 0, NULL), TN_OK);
    assert_string_equal(load_once(&in, &crashed), "cep");
    scene_remove(&in);
}

static void without_a_cache_nothing_is_remembered(void **state)
{
    scene in;
    (void)state;
    scene_make(&in, "crashing_probe");
    in.params.cache = NULL;
    assert_string_equal(load_once(&in, &crashed), "cep");
    assert_string_equal(load_once(&in, &crashed), "cep");
    scene_remove(&in);
}

/* A program in the place of tenon-probe. */
static void use_script(scene *in, struct path *script, const char *text)
{
    *script = path_in(in->folder, "probe");
    put_bytes(*script, text, strlen(text));
    assert_int_equal(chmod(script->text, 0755), 0);
    in->params.probe = script->text;
}

static void child_that_answers_nonsense_keeps_the_module_out(void **state)
{
    static const struct {
        const char *script;
        expected row;
    } cases[] = {
        {"#!/bin/sh\nexit 3\n",
         {"m", TN_STAGE_FOUND, TN_IO, "gave no answer", "make sure that tenon-probe can be run"}},
        {"#!/bin/sh\necho 'stage = 2' >&3\nexit 3\n",
         {"m", TN_STAGE_NEGOTIATED, TN_CRASHED, "its probe ended the process (exit code 3)",
          "report"}},
        {"#!/bin/sh\necho 'stage = 2' >&3\n",
         {"m", TN_STAGE_NEGOTIATED, TN_CRASHED,
          "its probe ended the process or closed the pipe to its parent", "report"}},
        {"#!/bin/sh\necho 'stage = 2\nthis is no form' >&3\n",
         {"m", TN_STAGE_FOUND, TN_CRASHED, "ended the process or closed the pipe", "report"}},
        {"#!/bin/sh\necho 'stage = 77\nstatus = 0\ncomplete = 1' >&3\n",
         {"m", TN_STAGE_FOUND, TN_CRASHED, "ended the process or closed the pipe", "report"}},
        {"#!/bin/sh\nhead -c 100000 /dev/zero >&3\n",
         {"m", TN_STAGE_FOUND, TN_CRASHED, "wrote too much to its parent and was ended", "report"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene in;
        struct path script;
        scene_make(&in, "good");
        use_script(&in, &script, cases[i].script);
        assert_string_equal(load_once(&in, &cases[i].row), "");
        scene_remove(&in);
    }
}

static void child_that_cannot_be_started_keeps_the_module_out(void **state)
{
    static const expected stopped = {
        "m", TN_STAGE_FOUND, TN_IO,
        "not probed: /nowhere/tenon-probe: ", "make sure that tenon-probe can be run"};
    scene in;
    (void)state;
    scene_make(&in, "good");
    in.params.probe = "/nowhere/tenon-probe";
    assert_string_equal(load_once(&in, &stopped), "");
    in.params.probe = PROBE; /* and that is not remembered */
    assert_string_equal(load_once(&in, &ready), "cepcep");
    scene_remove(&in);
}

/* The limit is in the words, and a remembered verdict keeps them. */
static void time_limit_holds_and_is_remembered(void **state)
{
    static const expected timed_out = {"m", TN_STAGE_FOUND, TN_TIMEOUT,
                                       "did not finish within 0.3 s and was ended", "report"};
    scene in;
    (void)state;
    scene_make(&in, "hanging_constructor");
    in.params.probe_limit_ns = 300000000;
    (void)load_once(&in, &timed_out);
    assert_string_equal(load_once(&in, &timed_out), "");
    scene_remove(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crash_is_remembered),
        cmocka_unit_test(success_is_remembered),
        cmocka_unit_test(another_abi_is_remembered),
        cmocka_unit_test(absence_is_not_remembered),
        cmocka_unit_test(signal_from_outside_is_not_remembered),
        cmocka_unit_test(changed_file_is_probed_anew),
        cmocka_unit_test(fresh_registry_probes_anew_and_remembers_that),
        cmocka_unit_test(emptied_cache_means_probing_anew),
        cmocka_unit_test(without_a_cache_nothing_is_remembered),
        cmocka_unit_test(child_that_answers_nonsense_keeps_the_module_out),
        cmocka_unit_test(child_that_cannot_be_started_keeps_the_module_out),
        cmocka_unit_test(time_limit_holds_and_is_remembered),
    };
    return run_suite("loader.verdicts", tests);
}
