#include "sim.h"

#include "os/clock.h"
#include "policy/tuning/tuning.h"
#include "tenon/module/library.h"
#include "tenon/module/platform.h"

#include <math.h>

sim_kernel sim[SIM_KERNELS];
double sim_scatter;
double sim_wear;
int64_t sim_pause;
int64_t sim_memory_left = -1;
static int64_t clock_ns;
static uint64_t noise;
static double worn;

static tn_status probe(const tn_host *host, void **out_self, int32_t *out_devices, tn_error *err)
{
    (void)host, (void)err;
    *out_self = NULL;
    *out_devices = 2;
    return TN_OK;
}

static tn_status memory_alloc(void *self, int32_t device, uint64_t bytes, void **out, tn_error *err)
{
    (void)self, (void)device;
    if (sim_memory_left == 0)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "sim", "none is left");
    sim_memory_left -= sim_memory_left > 0;
    *out = NULL;
    return posix_memalign(out, 256, bytes + 1) ? TN_OUT_OF_MEMORY : TN_OK;
}

static void memory_free(void *self, int32_t device, void *memory)
{
    (void)self, (void)device;
    free(memory);
}

static tn_status copy(void *self, const tn_copy_job *job, tn_error *err)
{
    (void)self, (void)err;
    for (uint64_t i = 0; i < job->rows; i++)
        memcpy((char *)job->to + i * job->to_pitch, (const char *)job->from + i * job->from_pitch,
               job->bytes);
    return TN_OK;
}

static tn_status properties(void *self, int32_t device, tn_device_properties *out, tn_error *err)
{
    (void)self, (void)device, (void)err;
    tn_text_fit(out->name, sizeof out->name, "Sim Board");
    tn_text_fit(out->architecture, sizeof out->architecture, "sim_1");
    return TN_OK;
}

static const tn_platform_row platform = {.struct_size = sizeof platform,
                                         .name = "sim",
                                         .kind = TN_PLATFORM_OOT,
                                         .flags = TN_PLATFORM_STAND_IN,
                                         .probe = probe,
                                         .memory_alloc = memory_alloc,
                                         .memory_free = memory_free,
                                         .copy = copy,
                                         .device_properties = properties};

static tn_status library_version(void *self, int64_t *out, char *text, size_t size, tn_error *err)
{
    (void)self, (void)err;
    *out = 321;
    snprintf(text, size, "3.2.1");
    return TN_OK;
}

static tn_status library_open(const tn_host *host, void **out_self, tn_error *err)
{
    (void)host, (void)err;
    *out_self = NULL;
    return TN_OK;
}

static const tn_library_row library = {.struct_size = sizeof library,
                                       .name = "simlib",
                                       .platform = "sim",
                                       .open = library_open,
                                       .version = library_version};

static tn_kernel_row rows[SIM_KERNELS];
static const char *const names[] = {"sim.unary.a", "sim.unary.b", "sim.unary.c", "sim.unary.d"};

static double next_uniform(void)
{
    noise = noise * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(noise >> 11) / 9007199254740992.0;
}

static double next_noise(void)
{
    if (noise == 0)
        return 1;
    double scatter = 0;
    for (int i = 0; i < 4; i++)
        scatter += next_uniform() - 0.5;
    double slow = 1 + 0.15 * sin((double)clock_ns / 3e7);
    double hiccup = next_uniform() < 0.002 ? 2 + 40 * next_uniform() : 1;
    return (1 + sim_scatter * scatter) * slow * hiccup;
}

static sim_kernel *kernel_of(const tn_kernel_row *row)
{
    return &sim[row - rows];
}

static tn_status run(const tn_run *run_of, tn_error *err)
{
    sim_kernel *k = kernel_of(run_of->row);
    if (++k->runs == k->fails_at)
        return tn_fail(err, k->failure, 0, "sim", "it was told to fail");
    clock_ns += (int64_t)(k->ns * worn * next_noise());
    worn *= 1 + sim_wear;
    if (sim_pause > 0)
        tni_clock_sleep_ns(sim_pause);
    return TN_OK;
}

static tn_status admit(const tn_kernel_row *row, const tn_query *query, tn_refusal *why)
{
    (void)query;
    return kernel_of(row)->refuses ? tn_refuse(why, TN_REFUSE_SHAPE, "size", 8, 7) : TN_OK;
}

static tn_status entry(const tn_host *host, const tn_module **out, tn_error *err)
{
    static const tn_platform_row *const platforms[] = {&platform, NULL};
    static const tn_library_row *const libraries[] = {&library, NULL};
    static const tn_kernel_row *const kernels[] = {&rows[0], &rows[1], &rows[2], &rows[3], NULL};
    static const tn_module module = {.struct_size = sizeof module,
                                     TN_MODULE_ABI,
                                     .name = "sim",
                                     .version = "1.0",
                                     .platforms = platforms,
                                     .libraries = libraries,
                                     .kernels = kernels};
    (void)host, (void)err;
    *out = &module;
    return TN_OK;
}

static int64_t read_clock(void *user)
{
    (void)user;
    return clock_ns;
}

void sim_set(const double us[SIM_KERNELS], const double predicted[SIM_KERNELS])
{
    static const tn_dtype dtypes[] = {TN_F32, 0};
    for (int i = 0; i < SIM_KERNELS; i++) {
        sim[i] = (sim_kernel){.ns = us[i] * 1000, .predicted = predicted[i]};
        rows[i] = (tn_kernel_row){.struct_size = sizeof rows[i],
                                  .name = names[i],
                                  .platform = "sim",
                                  .library = i % 2 ? "simlib" : NULL,
                                  .op = TN_OP_UNARY,
                                  .version = 1,
                                  .dtypes = dtypes,
                                  .numerics = TN_NUM_RUN_TO_RUN,
                                  .honours = TN_ELEMENTWISE_USES_STRIDES,
                                  .flops_per_us = 1e18,
                                  .bytes_per_us = 1e18,
                                  .overhead_us = predicted[i],
                                  .admit = admit,
                                  .run = run};
    }
    sim_scatter = 0.04;
    sim_wear = 0;
    worn = 1;
    sim_pause = 0;
    sim_memory_left = -1;
}

void sim_version(int kernel, uint32_t version)
{
    rows[kernel].version = version;
}

void sim_noise(uint64_t seed)
{
    noise = seed;
}

static tn_registration *registration;

void sim_begin(void)
{
    tn_error err;
    sim_set((double[]){1, 1, 1, 1}, (double[]){1, 2, 3, 4});
    if (tn_module_register(entry, 0, &registration, &err))
        fail_msg("%s", err.message);
    tni_tuning_clock_set(read_clock, NULL);
}

void sim_end(void)
{
    tni_tuning_clock_set(NULL, NULL);
    tn_registration_release(registration);
}

tn_context *sim_context(const tn_change *changes, size_t count)
{
    tn_context *plain = NULL, *changed = NULL;
    tn_error err;
    if (tn_context_derive(
            NULL, TN_CHANGES(tn_with_tuning_enabled(1), tn_with_admission(TN_ADMISSION_NEVER)),
            &plain, &err) ||
        tn_context_derive(plain, changes, count, &changed, &err))
        fail_msg("%s", err.message);
    tn_context_release(plain);
    return changed;
}

void sim_ask(sim_asked *out, const tn_context *context, const char *problem)
{
    tn_device *device;
    tn_error err;
    if (tni_question_parse(problem, &out->op, &device, &err))
        fail_msg("%s", err.message);
    out->question = (tni_question){.context = context, .op = &out->op, .device = device};
}

char sim_first(sim_asked *asked)
{
    tn_error err;
    if (tni_decide(&asked->question, &asked->choice, &err))
        fail_msg("%s", err.message);
    if (asked->choice.admitted == 0)
        return '-';
    const char *name = asked->choice.candidates[0].kernel->row->name;
    return name[strlen(name) - 1];
}
