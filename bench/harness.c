#include "harness.h"

#include "os/clock.h"
#include "os/thread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 31,        /* of each side, unless the figure says fewer */
    REPEATS = 5,        /* of everything, while the spread is too large */
    BESIDE = 4,         /* maximum number of calibrators */
    SIDES = 3 + BESIDE, /* ours, the rival, ours again, calibrators */
    SAMPLE_NS = 3000000 /* duration of one sample, or one operation if that is longer */
};
enum { OURS, RIVAL, AGAIN, FIRST_BESIDE };

static const double widest = 0.05;

/* Measurements of one figure, in nanoseconds per operation. */
struct sample {
    double ns[SIDES][ROUNDS];
    int64_t times[SIDES];
    int rounds;
};

struct result {
    double ns[SIDES]; /* medians */
    double ratio;     /* median of the rival's time over ours in the same round */
    double added;     /* median of ours less the rival's */
    double spread;    /* of ours against itself, relative */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quantile `part` of the values. */
static double quantile(const double *values, int count, double part)
{
    double sorted[ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof sorted[0]);
    qsort(sorted, (size_t)count, sizeof sorted[0], by_value);
    return sorted[(int)(part * (count - 1) + 0.5)];
}

/* Nanoseconds of `times` operations, without settling. */
static int64_t run_timed(const bench_side *side, int64_t times)
{
    int64_t took = 0;
    for (int64_t left = times; left > 0;) {
        int64_t now = side->most && side->most < left ? side->most : left;
        int64_t start = tni_clock_ns();
        side->run(side->user, now);
        took += tni_clock_ns() - start;
        if (side->settle)
            side->settle(side->user);
        left -= now;
    }
    return took;
}

/* Nanoseconds per operation, after a tenth as many to warm up. */
static double run_once(const bench_side *side, int64_t times)
{
    if (side->begin)
        side->begin(side->user);
    (void)run_timed(side, times / 10 + 1);
    int64_t took = run_timed(side, times);
    if (side->end)
        side->end(side->user);
    return (double)took / (double)times;
}

/* Number of operations that fill a sample. */
static int64_t fit(const bench_side *side)
{
    int64_t times = 1;
    while (run_once(side, times) * (double)times < SAMPLE_NS && times < INT64_MAX / 4)
        times *= 2;
    return times;
}

/* Each round begins with a different side, so that no side always follows the same one. */
static void measure(const bench_side *sides, struct sample *out)
{
    for (int side = 0; side < SIDES; side++)
        out->times[side] = sides[side].run ? fit(&sides[side]) : 0;
    out->times[AGAIN] = out->times[OURS];
    for (int round = 0; round < out->rounds; round++)
        for (int i = 0; i < SIDES; i++) {
            int side = (i + round) % SIDES;
            out->ns[side][round] = sides[side].run ? run_once(&sides[side], out->times[side]) : 0;
        }
}

/* Half the interquartile range of the ratios ours to ours again, or the distance of their median
 * from 1 if that is larger. */
static double spread_of(const struct sample *sample)
{
    double ratios[ROUNDS];
    for (int i = 0; i < sample->rounds; i++)
        ratios[i] = sample->ns[OURS][i] / sample->ns[AGAIN][i];
    double half =
        (quantile(ratios, sample->rounds, 0.75) - quantile(ratios, sample->rounds, 0.25)) / 2;
    return fmax(half, fabs(quantile(ratios, sample->rounds, 0.5) - 1));
}

static struct result judge(const struct sample *sample)
{
    struct result result = {.spread = spread_of(sample)};
    double ratios[ROUNDS], added[ROUNDS];
    for (int i = 0; i < sample->rounds; i++) {
        ratios[i] = sample->ns[RIVAL][i] / sample->ns[OURS][i];
        added[i] = sample->ns[OURS][i] - sample->ns[RIVAL][i];
    }
    for (int side = 0; side < SIDES; side++)
        result.ns[side] = quantile(sample->ns[side], sample->rounds, 0.5);
    result.ratio = quantile(ratios, sample->rounds, 0.5);
    result.added = quantile(added, sample->rounds, 0.5);
    return result;
}

static double unit_ns(const char *unit)
{
    return strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "us") == 0 ? 1e3 : 1;
}

static const char *verdict(const bench_figure *figure, const struct result *result)
{
    double unit = unit_ns(figure->unit);
    if (figure->rival.name && !figure->rival.run)
        return "not reached: the rival is lacking";
    if (result->spread > widest)
        return "not measurable here";
    bool reached = figure->kind == BENCH_RATIO
                       ? result->ratio >= figure->aim * (1 - result->spread)
                       : (figure->kind == BENCH_TIME ? result->ns[OURS] : result->added) <=
                             figure->aim * unit * (1 + result->spread);
    return reached ? "reached" : "not reached";
}

static void print(const bench_figure *figure, const struct result *result)
{
    const char *unit = figure->unit;
    double ns = unit_ns(unit);
    printf("%-48s ours %9.3f %s  ", figure->name, result->ns[OURS] / ns, unit);
    if (figure->rival.run)
        printf("%s %9.3f %s  ", figure->rival.name, result->ns[RIVAL] / ns, unit);
    else if (figure->rival.name)
        printf("lacking: %s  ", figure->rival.name);
    if (figure->rival.run && figure->kind == BENCH_ADDED)
        printf("added %.3f %s  ", result->added / ns, unit);
    else if (figure->rival.run)
        printf("ratio %.2f  ", result->ratio);
    printf("A/A spread %4.1f %%  aim %s %g %s  %s\n", 100 * result->spread,
           figure->kind == BENCH_RATIO   ? "ratio >="
           : figure->kind == BENCH_ADDED ? "added <="
                                         : "<=",
           figure->aim, figure->kind == BENCH_RATIO ? "" : unit, verdict(figure, result));
    for (int i = 0; figure->beside && i < BESIDE && figure->beside[i].name; i++) {
        if (figure->beside[i].run)
            printf("    %-44s      %9.3f %s\n", figure->beside[i].name,
                   result->ns[FIRST_BESIDE + i] / ns, unit);
        else
            printf("    lacking: %s\n", figure->beside[i].name);
    }
    fflush(stdout);
}

void bench_run(const bench_figure *figure)
{
    static struct sample sample;
    bench_side sides[SIDES] = {[OURS] = figure->ours, [AGAIN] = figure->ours};
    struct result result = {.spread = HUGE_VAL};
    sample.rounds = figure->rounds ? figure->rounds : ROUNDS;
    if (figure->rival.name)
        sides[RIVAL] = figure->rival;
    for (int i = 0; figure->beside && i < BESIDE && figure->beside[i].name; i++)
        sides[FIRST_BESIDE + i] = figure->beside[i];
    for (int i = 0; i < REPEATS && result.spread > widest; i++) {
        measure(sides, &sample);
        result = judge(&sample);
    }
    print(figure, &result);
}

int bench_end(void)
{
    char line[256], model[256] = "unknown";
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "model name : %255[^\n]", model) == 1)
            break;
    if (file)
        fclose(file);
    printf("machine: %s, %d processors; compiler: %s\n", model, (int)tni_thread_processors(),
           __VERSION__);
    return 0;
}

bool bench_wants(const char *word, int argc, char **argv)
{
    bool wanted = argc < 2;
    for (int i = 1; i < argc; i++)
        wanted = wanted || strcmp(argv[i], word) == 0;
    return wanted;
}
