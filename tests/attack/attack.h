/* A random campaign against the public interface. attack.py runs it; each batch is one process, so that a
 * crash or a hang is traced to the kind and the seed that repeat it:
 *
 *     attack KIND SEED [DEVICE]
 *
 * A batch prints one line of counts and exits with 0, or prints what it found and exits with 1.
 *
 * Thread-safety: a `dice` and an `attack` belong to one thread. */
#ifndef TENON_TEST_ATTACK_H
#define TENON_TEST_ATTACK_H

#include "tenon/tenon.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct dice {
    uint64_t state;
} dice;

/* One of 2^64 numbers, by splitmix64. */
static inline uint64_t dice_next(dice *d)
{
    uint64_t x = d->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* One of low..high, both included. */
static inline int64_t dice_range(dice *d, int64_t low, int64_t high)
{
    return low + (int64_t)(dice_next(d) % (uint64_t)(high - low + 1));
}

static inline bool dice_one_in(dice *d, int64_t n)
{
    return dice_range(d, 1, n) == 1;
}

#define DICE_PICK(d, list) \
    ((list)[dice_range(d, 0, (int64_t)(sizeof(list) / sizeof((list)[0])) - 1)])

/* A batch. */
typedef struct attack {
    dice dice;
    const char *kind;
    const char *device; /* "cpu:0" */
    uint64_t seed;
    int64_t tried;    /* calls or problems */
    int64_t accepted; /* of these: what was computed rather than rejected */
} attack;

/* Prints a finding and ends the process. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3), noreturn))
#endif
void attack_found(const attack *self, const char *format, ...);

/* Prints the finding that `status` is not one that the interface allows there: only bad input, an unsupported
 * combination, an absent device and a refusal by settings are. */
void attack_check_status(const attack *self, const char *what, tn_status status,
                         const tn_error *err);

/* Writes a random problem text, mostly valid. */
enum { ATTACK_PROBLEM = 512 };
void attack_problem(dice *d, const char *device, char out[ATTACK_PROBLEM]);

/* Returns random settings, to be released. */
tn_context *attack_context(const attack *self, dice *d);

/* The kinds. */
void attack_numerics(attack *self);  /* every kernel of random problems against the reference */
void attack_arguments(attack *self); /* calls with damaged arguments */
void attack_bits(attack *self);      /* the same bits whatever the threads and the batch */
void attack_threads(attack *self);   /* everything at once from several threads */
void attack_forks(attack *self);     /* forks of a process with busy threads */
void attack_texts(attack *self);     /* damaged problem texts, settings and rules */

#endif
