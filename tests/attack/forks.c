/* Forks of a process whose threads compute: every child computes too, and exit() ends it. */
#include "attack.h"

#include "tenon/module/module.h"

#if TN_MODULE_BUILT_WITH != 0

/* The run-times of the sanitizers do not survive a fork of a process with busy threads. */
void attack_forks(attack *self)
{
    (void)self;
}

#else

#include <pthread.h>
#include <signal.h>

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUSY = 3, CHILDREN = 40, SIZE = 48, CHILD_SECONDS = 300 };

typedef struct busy {
    dice dice;
    tn_context *context;
    pthread_t thread;
    _Atomic int products, wrong;
} busy;

static _Atomic int stop;

/* Returns whether a product of random size has the right numbers. */
static bool multiply(dice *d, const tn_context *context)
{
    static _Thread_local float memory[3][SIZE * SIZE];
    int64_t m = dice_range(d, 1, SIZE), n = dice_range(d, 1, SIZE), k = dice_range(d, 1, SIZE);
    int64_t shapes[3][2] = {{m, k}, {k, n}, {m, n}};
    tn_tensor t[3];
    tn_error err;
    for (int i = 0; i < 3; i++) {
        for (int64_t e = 0; e < shapes[i][0] * shapes[i][1]; e++)
            memory[i][e] = i < 2 ? 1.0f : -1.0f;
        t[i] = (tn_tensor){.data = memory[i],
                           .device_type = TN_DLPACK_CPU,
                           .ndim = 2,
                           .dtype = TN_F32,
                           .shape = shapes[i]};
    }
    bool right =
        tn_matmul(context, TN_ARGS(matmul, .a = &t[0], .b = &t[1], .out = &t[2]), &err) == TN_OK;
    for (int64_t e = 0; e < m * n; e++)
        right = right && memory[2][e] == (float)k;
    return right;
}

static void *keep_busy(void *user)
{
    busy *b = user;
    while (!atomic_load(&stop)) {
        if (!multiply(&b->dice, b->context))
            atomic_fetch_add(&b->wrong, 1);
        atomic_fetch_add(&b->products, 1);
    }
    return NULL;
}

static void run_child(dice d, const tn_context *context)
{
    bool right = true;
    (void)alarm(CHILD_SECONDS);
    for (int i = 0; i < 3; i++)
        right = multiply(&d, dice_one_in(&d, 2) ? context : NULL) && right;
    exit(right ? 0 : 1);
}

static void check_child(attack *self, pid_t child)
{
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        attack_found(self, "waitpid fails");
    if (WIFSIGNALED(status))
        attack_found(self, "signal %d ended a child%s", WTERMSIG(status),
                     WTERMSIG(status) == SIGALRM ? ": it hung" : "");
    if (WEXITSTATUS(status) != 0)
        attack_found(self, "a child's product is wrong");
}

void attack_forks(attack *self)
{
    static busy threads[BUSY];
    for (int i = 0; i < BUSY; i++) {
        threads[i].dice.state = dice_next(&self->dice);
        threads[i].context = i ? attack_context(self, &self->dice) : NULL;
        if (pthread_create(&threads[i].thread, NULL, keep_busy, &threads[i]))
            attack_found(self, "pthread_create fails");
    }
    for (int i = 0; i < CHILDREN; i++) {
        dice d = {.state = dice_next(&self->dice)};
        self->tried++;
        (void)fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            run_child(d, threads[1].context);
        if (child < 0)
            attack_found(self, "fork fails");
        check_child(self, child);
        self->accepted++;
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < BUSY; i++) {
        (void)pthread_join(threads[i].thread, NULL);
        tn_context_release(threads[i].context);
        if (threads[i].wrong)
            attack_found(self, "%d products of a busy thread are wrong", threads[i].wrong);
    }
}

#endif
