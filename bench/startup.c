/* What it costs to see the modules: the whole command, and one module in a fresh process. */
#include "harness.h"

#include "registry/registry.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void broken(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Runs the program of `user`, a NULL-ended list of words, `times` times. */
static void run_program(void *user, int64_t times)
{
    char **words = user;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    for (int64_t i = 0; i < times; i++) {
        pid_t child;
        int status;
        if (posix_spawn(&child, words[0], &actions, NULL, words, environ) != 0 ||
            waitpid(child, &status, 0) != child || status != 0)
            broken(words[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
}

/* In the child: finds the module folder's one module, which ships with Tenon, and loads it. */
static void load_module(void)
{
    static const char *const shipped[] = {"tenon-described.so", NULL};
    const tni_registry_params params = {.module_folder = TENON_MODULES, .shipped = shipped};
    tni_registry *registry;
    tn_module_list *list;
    if (tni_registry_create(&params, &registry, NULL) || tni_registry_list(registry, &list, NULL) ||
        tn_module_list_count(list) != 1 || tn_module_list_get(list, 0)->stage < TN_STAGE_NEGOTIATED)
        _exit(1);
    _exit(0);
}

static void leave(void)
{
    _exit(0);
}

typedef struct job {
    void (*run)(void);
} job;

static void run_in_child(void *user, int64_t times)
{
    const job *what = user;
    for (int64_t i = 0; i < times; i++) {
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            what->run();
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            broken("a child failed");
    }
}

int main(void)
{
    char command[] = TENON_COMMAND, modules[] = "modules", nothing[] = "/bin/true";
    char *ours[] = {command, modules, NULL}, *bare[] = {nothing, NULL};
    job load = {load_module}, empty = {leave};
    unsetenv("TENON_MODULE_PATH");
    bench_figure startup = {
        .name = "tenon modules, with ref and described",
        .kind = BENCH_ADDED,
        .aim = 3,
        .unit = "ms",
        .ours = {.name = "tenon modules", .run = run_program, .user = ours},
        .rival = {.name = "/bin/true", .run = run_program, .user = bare},
    };
    bench_figure open = {
        .name = "finding and opening one module",
        .kind = BENCH_ADDED,
        .aim = 0.2,
        .unit = "ms",
        .ours = {.name = "a child that loads described", .run = run_in_child, .user = &load},
        .rival = {.name = "a child that does nothing", .run = run_in_child, .user = &empty},
    };
    bench_run(&startup);
    bench_run(&open);
    return bench_end();
}
