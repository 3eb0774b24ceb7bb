/* AMX on a machine that has it: the kernel gives permission, and a tile product is right. */
#include "os/cpu.h"
#include "test.h"
#include "tiles.h"

static void permission_turns_the_features_on(void **state)
{
    (void)state;
    if (!tni_cpu_amx_request())
        skip_because("no AMX here: %s", tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE)
                                            ? tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE)
                                            : "the processor lacks it");
    uint64_t wanted = TN_CPU_BIT(AMX_TILE) | TN_CPU_BIT(AMX_INT8) | TN_CPU_BIT(AMX_BF16);
    assert_true((tni_cpu_detected() & wanted) == wanted);
    assert_null(tni_cpu_why_not(TN_CPU_INDEX_AMX_TILE));
}

/* 16x64 bytes times 64x16 bytes, against the same sum in plain C. */
static void tile_product_is_right(void **state)
{
#ifdef TENON_ISA_AMX
    int8_t a[16][64], b[64][16], packed[16][64];
    int32_t c[16][16];
    (void)state;
    if (!tni_cpu_amx_request())
        skip_because("no AMX here");
    for (int i = 0; i < 16 * 64; i++) {
        a[i / 64][i % 64] = (int8_t)(i * 37 + 11);
        b[i / 16][i % 16] = (int8_t)(i * 91 + 5);
    }
    for (int k = 0; k < 64; k++) /* four rows of b side by side, as the instruction wants them */
        for (int j = 0; j < 16; j++)
            packed[k / 4][4 * j + k % 4] = b[k][j];
    memset(c, 0x55, sizeof c);
    tiles_multiply(&a[0][0], &packed[0][0], &c[0][0]);
    for (int i = 0; i < 16; i++) {
        for (int j = 0; j < 16; j++) {
            int32_t sum = 0;
            for (int k = 0; k < 64; k++)
                sum += a[i][k] * b[k][j];
            assert_int_equal(c[i][j], sum);
        }
    }
#else
    (void)state;
    skip_because("the compiler makes no AMX code");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permission_turns_the_features_on),
        cmocka_unit_test(tile_product_is_right),
    };
    return run_suite("hw.amx", tests);
}
