/* Gradients of attention on tensor cores: which queries can see a block of keys, and how much memory the variants of the kernel
 * take: on the host, for random problems and for all sizes of heads. */
#include "test.h"

#include "../../backends/cuda/attention_backward/backward_mma.h"
#include "op/op.h"
#include "params.h"
#include "tenon/module/attention.h"

enum { SIZE_MOST = 256, STEP = 8 };

/* A number from `least` to `most`, from the seed of this run. */
static int random_of(uint64_t *from, int least, int most)
{
    *from = *from * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int)((*from >> 33) % (uint64_t)(most - least + 1));
}

/* Whether a query sees one of `count` keys, by the definition of the operator. */
static bool sees_any(const tn_attention_op *at, int query, int first, int count)
{
    int64_t begin;
    const int64_t seen = tn_attention_seen(at, query, at->queries, at->keys, &begin);
    return seen > 0 && begin < first + count && begin + seen > first;
}

static void no_query_that_sees_a_key_is_left_out(void **state)
{
    enum { PROBLEMS = 3000, LENGTH = 200, COUNT = 64 };
    uint64_t from = test_seed();
    int exact = 0, blocks = 0;
    (void)state;
    for (int problem = 0; problem < PROBLEMS; problem++) {
        const tn_attention_op at = {.queries = random_of(&from, 0, LENGTH),
                                    .keys = random_of(&from, 1, LENGTH),
                                    .left = random_of(&from, -40, LENGTH),
                                    .right = random_of(&from, -40, LENGTH),
                                    .shift = random_of(&from, -LENGTH, LENGTH),
                                    .corner = random_of(&from, 0, 1) ? TN_CORNER_BOTTOM_RIGHT : 0};
        tn_attention_op bounded = at;
        bounded.left = at.left < 0 ? -1 : at.left;
        bounded.right = at.right < 0 ? -1 : at.right;
        const backward_bounds bounds = {bounded.left, bounded.right,
                                        at.shift,     (int)at.queries,
                                        (int)at.keys, at.corner == TN_CORNER_BOTTOM_RIGHT};
        for (int first = 0; first < at.keys; first += COUNT) {
            const backward_range range = backward_queries(&bounds, first, COUNT);
            assert_in_range(range.begin, 0, at.queries);
            assert_in_range(range.end, range.begin, at.queries);
            int least = (int)at.queries, most = 0;
            for (int query = 0; query < at.queries; query++) {
                if (!sees_any(&bounded, query, first, COUNT))
                    continue;
                assert_in_range(query, range.begin, range.end - 1);
                least = query < least ? query : least;
                most = query + 1;
            }
            exact +=
                most == 0 ? range.begin == range.end : range.begin == least && range.end == most;
            blocks++;
        }
    }
    assert_true(exact > blocks * 9 / 10); /* a range may contain queries that see no key */
}

/* A bound beyond all positions has no effect. */
static void far_bounds_do_not_overflow(void **state)
{
    const backward_bounds bounds = {INT64_MAX, INT64_MAX, 1 << 30, 100, 200, 1};
    const backward_range range = backward_queries(&bounds, 128, 64);
    (void)state;
    assert_int_equal(range.begin, 0);
    assert_int_equal(range.end, 100);
}

static void read_problem(const char *text, tn_op *out)
{
    char device[64];
    tn_error err;
    if (tni_problem_parse(text, out, device, sizeof device, &err))
        fail_msg("%s: %s", text, err.message);
}

static void blocks_fit_a_multiprocessor(void **state)
{
    enum { LEAST = 163 << 10, MOST = 228 << 10, RESERVED = 1 << 10 }; /* of an A100, of an H100 */
    enum { REGISTERS = 64 << 10, PER_THREAD = 128, SMALL = 192 };
    (void)state;
    for (int size = STEP; size <= SIZE_MOST; size += STEP) {
        for (int values = STEP; values <= SIZE_MOST; values += STEP) {
            char problem[160];
            tn_op op;
            backward_shape shape;
            snprintf(problem, sizeof problem,
                     "attention-backward:bf16:b=2,h=6,hk=2,lq=77,lk=300,d=%d,dv=%d", size, values);
            read_problem(problem, &op);
            cuda_backward_shape_of(&op, &shape);
            int sums[2] = {0}; /* kernels that compute dK, and dV */
            for (int part = 0; part < BACKWARD_PARTS; part++) {
                const bool of_keys = part != BACKWARD_DQ;
                backward_variant variant;
                if (!cuda_backward_has(&op, (backward_part)part)) {
                    assert_true(of_keys);
                    continue;
                }
                cuda_backward_variant_of(&op, (backward_part)part, &variant);
                const int side = cuda_backward_side(&variant), resident = variant.resident;
                const int shared = (int)cuda_backward_shared(&variant) + RESERVED;
                const int64_t all = of_keys ? shape.key_blocks * side : shape.row_blocks * side;
                assert_true(variant.size >= size && variant.values >= values);
                assert_true(resident * shared <= MOST);
                assert_true(shared <= LEAST || size > SMALL || values > SMALL);
                assert_true(resident * (int)cuda_backward_threads(&variant) * PER_THREAD <=
                            REGISTERS);
                assert_true(shape.padded_rows % variant.width == 0);
                assert_true(all >= (of_keys ? 300 : 77 * 3) && shape.padded_rows % side == 0);
                sums[0] += part == BACKWARD_DK_DV || part == BACKWARD_DK;
                sums[1] += part == BACKWARD_DK_DV || part == BACKWARD_DV;
            }
            assert_true(sums[0] == 1 && sums[1] == 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_query_that_sees_a_key_is_left_out),
        cmocka_unit_test(far_bounds_do_not_overflow),
        cmocka_unit_test(blocks_fit_a_multiprocessor),
    };
    return run_suite("cuda.backward", tests);
}
