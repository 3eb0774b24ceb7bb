/* How a speed is measured here. Ours, the rival and ours again (the A/A pair) run in turn, many
 * times, in one process; what is reported is the median over those rounds, and how far ours is
 * from itself is the spread. A figure is reached at its aim less the spread. When the spread stays
 * above 5 % the figure is "not measurable here", and without its rival it reaches nothing. */
#ifndef TENON_BENCH_HARNESS_H
#define TENON_BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

/* Does the operation `times` times. */
typedef void bench_fn(void *user, int64_t times);

/* `begin` and `end` stand around every sample, untimed, and may be NULL: what a side keeps running,
 * such as threads, must not outlast its turn and slow the next one down. What is queued for a device is
 * done `most` at a time, with `settle` untimed after each time, which waits: a full queue would be timed
 * otherwise. */
typedef struct bench_side {
    const char *name;
    bench_fn *run; /* NULL: it is lacking here, and `name` says what would bring it */
    void *user;
    void (*begin)(void *user);
    void (*end)(void *user);
    int64_t most; /* 0: all at once */
    void (*settle)(void *user);
} bench_side;

enum {
    BENCH_TIME,  /* ours takes at most `aim` units */
    BENCH_ADDED, /* ours takes at most `aim` units more than the rival, the bare operation */
    BENCH_RATIO, /* ours is at least `aim` times as fast as the rival */
};

typedef struct bench_figure {
    const char *name;
    int kind;
    double aim;
    const char *unit; /* "ns", "us" or "ms": of times, and of the aim unless it is a ratio */
    bench_side ours;
    bench_side rival;         /* a name of NULL: none is named */
    const bench_side *beside; /* calibrators, ended by a name of NULL; or NULL */
    int rounds;               /* of each side in turn; 0: 31; at least 15, at most 31 */
} bench_figure;

/* Measures and prints one row, with a row for each calibrator under it. */
void bench_run(const bench_figure *figure);

/* Prints what the machine and the compiler are. Returns what main returns: a figure that is not
 * reached is a result and no failure. */
int bench_end(void);

/* Whether a program is to measure what goes by that word: its arguments name it, or there are none. */
bool bench_wants(const char *word, int argc, char **argv);

#endif
