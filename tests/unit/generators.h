/* What the suites of generators and of fills share. */
#ifndef TENON_TEST_GENERATORS_H
#define TENON_TEST_GENERATORS_H

#include "tenon/random.h"

#include "test.h"

static inline tn_generator *generator_at(uint64_t key, uint64_t subsequence, uint64_t offset)
{
    const tn_generator_state state = {sizeof state, key, subsequence, offset};
    tn_generator *g = NULL;
    assert_int_equal(tn_generator_create(1, &g, NULL), TN_OK);
    assert_int_equal(tn_generator_state_set(g, &state, NULL), TN_OK);
    return g;
}

static inline tn_generator_state state_of(const tn_generator *g)
{
    tn_generator_state state = {.struct_size = sizeof state};
    assert_int_equal(tn_generator_state_get(g, &state, NULL), TN_OK);
    return state;
}

#endif
