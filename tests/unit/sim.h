/* A platform whose kernels take as long as a test says: running one moves a clock of the test's own,
 * which tuning reads. Devices sim:0 and sim:1, alike; kernels sim.unary.a to d, of f32, where b and d go
 * through the library simlib, of version 321. */
#ifndef TENON_TEST_SIM_H
#define TENON_TEST_SIM_H

#include "test.h"

#include "dispatch/dispatch.h"
#include "tenon/tenon.h"

enum { SIM_KERNELS = 4 };

typedef struct sim_kernel {
    double ns;         /* of one run */
    double predicted;  /* in microseconds */
    int64_t fails_at;  /* the run that fails, from 1; 0: none */
    tn_status failure; /* with this */
    int64_t runs;
    bool refuses; /* its admit does */
} sim_kernel;

extern sim_kernel sim[SIM_KERNELS];
extern double sim_scatter; /* how far runs scatter under noise; 0.04 unless told */
extern double
    sim_wear; /* how much longer than the last one each run takes, as a part; 0 unless told */
extern int64_t sim_pause; /* nanoseconds that a run really takes; 0 unless told */

/* Allocations of a device's memory until there is none left; -1: no end. */
extern int64_t sim_memory_left;

/* Registers the platform, once, and has tuning read its clock; takes both back. */
void sim_begin(void);
void sim_end(void);

/* All kernels well; times and predictions as given, in microseconds. */
void sim_set(const double us[SIM_KERNELS], const double predicted[SIM_KERNELS]);

/* The row gets another version. */
void sim_version(int kernel, uint32_t version);

/* Noise as machines have it: runs scatter by a few percent, now and then one takes several times as long, and the
 * whole machine becomes slower and faster again. `seed` 0: none. */
void sim_noise(uint64_t seed);

/* A context with tuning and without tests of kernels, and `changes` besides. The caller releases it. */
tn_context *sim_context(const tn_change *changes, size_t count);

/* A question about unary neg of f32, of a number of elements, on sim:0. What it points to is the
 * caller's. */
typedef struct sim_asked {
    tn_op op;
    tni_question question;
    tni_choice choice;
} sim_asked;
void sim_ask(sim_asked *out, const tn_context *context, const char *problem);

/* Decides; the first candidate's letter, '-' for none. */
char sim_first(sim_asked *asked);

#endif
