#include "../../cpu_process.h"
#include "openblas.h"

/* The best instructions that kernels use, in order of speed. */
enum { WITH_SSE = 0, WITH_AVX, WITH_AVX2, WITH_AVX512 };

/* Returns the speed of a core's kernels. Unlisted cores are unknown; the result is such that they
 * are left unchanged. */
static int speed_of(const char *core)
{
    static const struct {
        const char *name;
        int speed;
    } cores[] = {{"Prescott", WITH_SSE},   {"Core2", WITH_SSE},        {"Penryn", WITH_SSE},
                 {"Dunnington", WITH_SSE}, {"Nehalem", WITH_SSE},      {"Atom", WITH_SSE},
                 {"Opteron", WITH_SSE},    {"Opteron_SSE3", WITH_SSE}, {"Barcelona", WITH_SSE},
                 {"Bobcat", WITH_SSE},     {"Nano", WITH_SSE},         {"Sandybridge", WITH_AVX},
                 {"Bulldozer", WITH_AVX},  {"Piledriver", WITH_AVX},   {"Steamroller", WITH_AVX},
                 {"Excavator", WITH_AVX2}, {"Haswell", WITH_AVX2},     {"Zen", WITH_AVX2}};
    for (size_t i = 0; i < sizeof cores / sizeof cores[0]; i++) {
        if (strcmp(cores[i].name, core) == 0)
            return cores[i].speed;
    }
    return WITH_AVX512;
}

/* Returns the variable for the best kernels that OpenBLAS has, that this processor can run and that
 * are faster than `speed`; or NULL. */
static const char *better_than(int speed, const tni_openblas *self, const tn_machine_facts *facts)
{
    const struct {
        const char *needs;
        const void *table;
        int speed;
        const char *variable;
    } sets[] = {{"avx512f,avx512bw,avx512dq,avx512vl", self->has_skylakex, WITH_AVX512,
                 "OPENBLAS_CORETYPE=SkylakeX"},
                {"avx2,fma", self->has_haswell, WITH_AVX2, "OPENBLAS_CORETYPE=Haswell"},
                {"avx", self->has_sandybridge, WITH_AVX, "OPENBLAS_CORETYPE=Sandybridge"}};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        if (sets[i].speed > speed && sets[i].table && tni_cpu_machine_has(facts, sets[i].needs))
            return sets[i].variable;
    }
    return NULL;
}

static void choose_again(void *user)
{
    const tni_openblas *self = user;
    self->forget();
    self->choose();
}

void tni_openblas_improve(const tn_host *host, tni_openblas *self)
{
    tn_machine_facts facts;
    if (!self->choose || !self->forget || !self->get_corename ||
        tni_cpu_variable_is_set("OPENBLAS_CORETYPE") || !tni_cpu_machine_read(host, &facts))
        return;
    const char *core = self->get_corename();
    const char *variable = core ? better_than(speed_of(core), self, &facts) : NULL;
    if (variable)
        (void)tni_cpu_call_with(variable, choose_again, self);
}
