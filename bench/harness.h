/* How speed is measured. Ours, the rival and ours again (the A/A pair) run alternately, many times,
 * in one process. The result is the median over these rounds; the difference between the two runs
 * of ours is the spread. A figure is reached if it meets its aim within the spread. If the spread
 * stays above 5 %, the figure is "not measurable here"; without its rival it is not reached. */
#ifndef TENON_BENCH_HARNESS_H
#define TENON_BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

/* Performs the operation `times` times. */
typedef void bench_fn(void *user, int64_t times);

/* `begin` and `end` are called before and after every sample, untimed, and may be NULL: things that
 * a side keeps running, such as threads, must not outlast its turn and slow down the next one. Work
 * queued to a device is done in groups of at most `most`; after each group `settle` waits, untimed,
 * because otherwise a full queue would be timed. */
typedef struct bench_side {
    const char *name;
    bench_fn *run; /* NULL: not available here; `name` says how to get it */
    void *user;
    void (*begin)(void *user);
    void (*end)(void *user);
    int64_t most; /* 0: no limit */
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
    bench_side rival;         /* name NULL: there is no rival */
    const bench_side *beside; /* calibrators, ended by a NULL name; or NULL */
    int rounds;               /* of each side; 0: 31; at least 15, at most 31 */
} bench_figure;

/* Measures and prints one row, followed by a row for each calibrator. */
void bench_run(const bench_figure *figure);

/* Prints the machine and the compiler. Returns the exit code of main: a figure that is not reached
 * is a result, not a failure. */
int bench_end(void);

/* Whether the program should measure `word`: it is among the arguments, or none exist. */
bool bench_wants(const char *word, int argc, char **argv);

#endif
