/* fft when the n-th allocation fails: the call says so and leaves its output, or computes as without a
 * fault, and nothing is left behind. */
#include "fault.h"

#include "tenon/tenon.h"

enum { MOST = 1 << 12 };
static float in[2 * MOST], out[2 * MOST], wanted[2 * MOST], untouched[2 * MOST];
static int64_t length;
static tn_device *device;

static tn_status compute(tn_error *err)
{
    const tn_tensor from = {
        .data = in, .device_type = TN_DLPACK_CPU, .ndim = 1, .dtype = TN_C64, .shape = &length};
    tn_tensor to = from;
    to.data = out;
    tn_plan_cache_clear(device, TN_OP_FFT); /* the plan is made in every call */
    memset(out, 0x5A, sizeof out);
    memset(untouched, 0x5A, sizeof untouched);
    const tn_status status = tn_fft(NULL, TN_ARGS(fft, .in = &from, .out = &to), err);
    const size_t bytes = (size_t)length * 2 * sizeof *out;
    if (status)
        assert_memory_equal(out, untouched, bytes);
    else if (wanted[0] != 0)
        assert_memory_equal(out, wanted, bytes);
    else
        memcpy(wanted, out, bytes);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    static const int64_t lengths[] = {60, 4096, 1009}; /* cells, rows and columns, a chirp */
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct fault_state before = {0};
        length = lengths[i];
        memset(wanted, 0, sizeof wanted);
        for (int pass = 0; pass < 2; pass++) { /* the first makes what is kept */
            long n = 1;
            tn_error err;
            assert_int_equal(compute(&err), TN_OK);
            while (fault_survive_memory(compute, n))
                n++;
            assert_true(n > 8);
            if (pass)
                assert_int_equal(fault_left(before, "fft", n), 0);
            before = fault_look();
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    tn_error err;
    fault_memory_install();
    for (size_t i = 0; i < 2 * MOST; i++)
        in[i] = (float)(i % 7) + 1;
    if (tn_device_get("cpu:0", &device, &err))
        return 1;
    return run_suite("fault.fft", tests);
}
