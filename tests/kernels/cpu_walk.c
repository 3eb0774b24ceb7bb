/* tenon/module/walk.h: every element is met once, and dimensions that can be one are one. */
#include "cpu_make.h"

#include "tenon/module/walk.h"

/* How often each element of an operand is met, and whether the other's is the one of the same place. */
static void check_walk(const cpu_case *it, const tn_walk *walk, bool from_the_middle)
{
    const tn_layout *a = &it->op.operand[0], *b = &it->op.operand[1];
    int64_t count = cpu_elements(a), met = 0, start = from_the_middle ? walk->steps / 2 : 0;
    tn_step step = {{0}, {0}};
    if (walk->steps > 0)
        tn_walk_seek(walk, start, &step);
    for (int64_t s = 0; s < walk->steps; s++, tn_walk_next(walk, &step)) {
        for (int64_t i = 0; i < walk->size; i++, met++) {
            int64_t x = step.offset[0] + i * walk->stride[0];
            int64_t y = step.offset[1] + i * walk->stride[1], n = 0;
            while (n < count && (cpu_offset(a, n) != x || cpu_offset(b, n) != y))
                n++;
            assert_true(n < count);
            assert_int_equal(*(unsigned char *)cpu_at(it, 0, n), CPU_POISON);
            *(unsigned char *)cpu_at(it, 0, n) = 0; /* met */
        }
    }
    assert_int_equal(met, count);
    memset(it->memory[0].low, CPU_POISON, it->memory[0].bytes);
}

static void every_element_is_met_once(void **state)
{
    static const int64_t shapes[][4] = {{2, 3, 4, 5}, {1, 1, 1, 1}, {7, 1, 3, 1},
                                        {1, 6, 1, 2}, {3, 0, 2, 1}, {2, 2, 2, 2}};
    static const int32_t operands[] = {0, 1};
    (void)state;
    for (int c = 0; c < 6 * CPU_LIES * CPU_LIES; c++) {
        cpu_case it = {0};
        tn_walk walk;
        cpu_add_lying(&it, 0, TN_U8, 4, shapes[c % 6], c / 6 % CPU_LIES, 0);
        cpu_add_lying(&it, 1, TN_U8, 4, shapes[c % 6], c / 6 / CPU_LIES, 0);
        tn_walk_over(&walk, &it.op, operands, 2, 0, 4);
        check_walk(&it, &walk, false);
        check_walk(&it, &walk, true);
        cpu_end(&it);
    }
}

/* Strides of a and b, and what is left: steps, size, strides in the inner dimension. */
typedef struct merged {
    int64_t a[3], b[3];
    int64_t steps, size, stride[2];
} merged;

static void what_can_be_one_is_one(void **state)
{
    static const int64_t shape[] = {4, 5, 6};
    static const int32_t operands[] = {0, 1};
    static const merged cases[] = {
        {{30, 6, 1}, {30, 6, 1}, 1, 120, {1, 1}},     /* dense                     */
        {{30, 6, 1}, {60, 12, 2}, 1, 120, {1, 2}},    /* every other               */
        {{40, 6, 1}, {30, 6, 1}, 4, 30, {1, 1}},      /* a gap after each plane    */
        {{30, 6, 1}, {0, 0, 1}, 20, 6, {1, 1}},       /* one row for all           */
        {{30, 6, 1}, {1, 4, 20}, 20, 6, {1, 20}},     /* turned                    */
        {{1, 4, 20}, {1, 4, 20}, 1, 120, {1, 1}},     /* both turned               */
        {{-30, -6, -1}, {30, 6, 1}, 1, 120, {-1, 1}}, /* backwards                 */
        {{30, 6, 1}, {0, 0, 0}, 1, 120, {1, 0}},      /* one element for all       */
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        cpu_case it = {0};
        tn_walk walk;
        cpu_add(&it, 0, TN_F32, 3, shape, cases[c].a, 0);
        cpu_add(&it, 1, TN_F32, 3, shape, cases[c].b, 0);
        tn_walk_over(&walk, &it.op, operands, 2, 0, 3);
        assert_int_equal(walk.steps, cases[c].steps);
        assert_int_equal(walk.size, cases[c].size);
        assert_int_equal(walk.stride[0], cases[c].stride[0]);
        assert_int_equal(walk.stride[1], cases[c].stride[1]);
        cpu_end(&it);
    }
}

static void some_dimensions_are_left_to_the_kernel(void **state)
{
    static const int64_t shape[] = {4, 5, 6};
    static const int32_t operands[] = {0};
    cpu_case it = {0};
    tn_walk walk;
    (void)state;
    cpu_add(&it, 0, TN_F32, 3, shape, NULL, 0);
    tn_walk_over(&walk, &it.op, operands, 1, 0, 2);
    assert_int_equal(walk.steps, 1);
    assert_int_equal(walk.size, 20);
    assert_int_equal(walk.stride[0], 6);
    tn_walk_over(&walk, &it.op, operands, 1, 2, 3);
    assert_int_equal(walk.size, 6);
    tn_walk_over(&walk, &it.op, operands, 1, 1, 1);
    assert_int_equal(walk.steps, 1);
    assert_int_equal(walk.size, 1);
    cpu_end(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_met_once),
        cmocka_unit_test(what_can_be_one_is_one),
        cmocka_unit_test(some_dimensions_are_left_to_the_kernel),
    };
    return run_suite("kernels.cpu_walk", tests);
}
