/* FFTW's libraries for f32 and f64, and the lock of its planner. */
#include "fftw.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t planner = PTHREAD_MUTEX_INITIALIZER;

void tni_fftw_planner_enter(void)
{
    (void)pthread_mutex_lock(&planner);
}

void tni_fftw_planner_leave(void)
{
    (void)pthread_mutex_unlock(&planner);
}

/* If no memory is left for the handlers, forks do not wait. */
static void watch_forks(void)
{
    (void)pthread_atfork(tni_fftw_planner_enter, tni_fftw_planner_leave, tni_fftw_planner_leave);
}

#define SYMBOLS(prefix, field)                                                              \
    {                                                                                       \
        {prefix "_plan_guru64_dft", offsetof(fftw_library, field.plan)},                    \
            {prefix "_plan_guru64_dft_r2c", offsetof(fftw_library, field.plan_to_complex)}, \
            {prefix "_plan_guru64_dft_c2r", offsetof(fftw_library, field.plan_to_real)},    \
            {prefix "_destroy_plan", offsetof(fftw_library, field.release)},                \
            {prefix "_execute_dft", offsetof(fftw_library, field.run)},                     \
            {prefix "_execute_dft_r2c", offsetof(fftw_library, field.run_to_complex)},      \
            {prefix "_execute_dft_c2r", offsetof(fftw_library, field.run_to_real)},         \
            {prefix "_alignment_of", offsetof(fftw_library, field.alignment_of)},           \
            {prefix "_version", offsetof(fftw_library, field.version)},                     \
    }
static const tn_symbol of_f32[] = SYMBOLS("fftwf", f32), of_f64[] = SYMBOLS("fftw", f64);
enum { COUNT = sizeof of_f32 / sizeof of_f32[0] };

#if defined(__APPLE__)
#define FILES(name)   "lib" name ".3.dylib"
#define THREADS(name) "lib" name "_threads.3.dylib"
#else
#define FILES(name)   "lib" name ".so.3"
#define THREADS(name) "lib" name "_threads.so.3"
#endif

/* Makes the planner safe for callers other than this module, too, where FFTW's library for threads is
 * installed, which has the function for that. */
static void protect_planner(const tn_host *host, const char *files, const char *function)
{
    struct {
        void (*protect)(void);
    } found = {NULL};
    const tn_symbol symbol = {function, 0};
    if (!host->library_bind(host->self, files, &symbol, 1, &found, NULL))
        found.protect();
}

static tn_status open_fftw(const tn_host *host, void **out_self, tn_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    fftw_library *self = host->alloc(host->self, sizeof *self, _Alignof(fftw_library));
    if (!self)
        return tn_fail(err, TN_OUT_OF_MEMORY, 0, "fftw", "no memory for its functions");
    tn_status status = host->library_bind(host->self, FILES("fftw3"), of_f64, COUNT, self, err);
    if (!status)
        status = host->library_bind(host->self, FILES("fftw3f"), of_f32, COUNT, self, err);
    if (status) {
        host->release(host->self, self);
        return status;
    }
    protect_planner(host, THREADS("fftw3"), "fftw_make_planner_thread_safe");
    protect_planner(host, THREADS("fftw3f"), "fftwf_make_planner_thread_safe");
    (void)pthread_once(&once, watch_forks);
    *out_self = self;
    return TN_OK;
}

/* 3.3.10 is 30310. */
static tn_status version(void *any, int64_t *out_number, char *out_text, size_t size, tn_error *err)
{
    const fftw_library *self = any;
    const char *text = self->f64.version + strcspn(self->f64.version, "0123456789");
    int64_t parts[3] = {0};
    char *at = NULL;
    (void)err;
    (void)snprintf(out_text, size, "%s", text);
    for (size_t i = 0; i < 3; i++, text = *at == '.' ? at + 1 : "")
        parts[i] = strtol(text, &at, 10);
    *out_number = parts[0] * 10000 + parts[1] * 100 + parts[2];
    return TN_OK;
}

const tn_library_row tni_fftw_library = {
    .struct_size = sizeof tni_fftw_library,
    .name = "fftw",
    .platform = "cpu",
    .files = FILES("fftw3"),
    .remedy = "install libfftw3-double3 and libfftw3-single3 (Debian), fftw-libs (Fedora) or fftw "
              "(Arch, Homebrew)",
    .open = open_fftw,
    .version = version,
};
