/* Startup cost: whole commands, one module, and the current platform, each in a fresh process. */
#include "harness.h"

#include "registry/registry.h"
#include "tenon/platform.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void broken(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Runs the program of `user`, a NULL-terminated list of words, `times` times. */
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

/* Runs in the child: finds the only module in the module folder, which ships with Tenon, and loads
 * it. */
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

/* Runs in the child: gets the current platform of a fresh process. */
static void resolve(void)
{
    const tn_platform *current;
    _exit(tn_platform_current(&current, NULL) ? 1 : 0);
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

/* Prints the peak resident memory of the command. Uses a separate child, because the system counts
 * all children that were waited for. */
static void print_resident(char **words)
{
    struct rusage usage;
    int status;
    pid_t child = fork();
    if (child == 0) {
        run_program(words, 1);
        if (getrusage(RUSAGE_CHILDREN, &usage) == 0)
            printf("  %s: %.1f MB resident; aim at most 10: %s\n", words[1],
                   (double)usage.ru_maxrss * 1024 / 1e6,
                   usage.ru_maxrss <= 10 * 1000000 / 1024 ? "reached" : "not reached");
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        broken("a child failed");
}

int main(void)
{
    char command[] = TENON_COMMAND, modules[] = "modules", nothing[] = "/bin/true";
    char devices[] = "devices";
    char *ours[] = {command, modules, NULL}, *bare[] = {nothing, NULL};
    char *list[] = {command, devices, NULL};
    job load = {load_module}, find = {resolve}, empty = {leave};
    unsetenv("TENON_MODULE_PATH");
    unsetenv("TENON_PLATFORM");
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
    bench_figure see = {
        .name = "tenon devices, all of it",
        .kind = BENCH_TIME,
        .aim = 15,
        .unit = "ms",
        .ours = {.name = "tenon devices", .run = run_program, .user = list},
        .rival = {.name = "/bin/true", .run = run_program, .user = bare},
    };
    bench_figure current = {
        .name = "the current platform, in a fresh process",
        .kind = BENCH_ADDED,
        .aim = 5,
        .unit = "ms",
        .ours = {.name = "a child that resolves it", .run = run_in_child, .user = &find},
        .rival = {.name = "a child that does nothing", .run = run_in_child, .user = &empty},
    };
    bench_run(&startup);
    bench_run(&open);
    bench_run(&see);
    print_resident(list);
    bench_run(&current);
    return bench_end();
}
