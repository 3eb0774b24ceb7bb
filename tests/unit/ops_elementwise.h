/* What the suites of elementwise operators share: makes a problem from arguments, or checks why there is
 * none. A suite op_NAME.c needs no entry in suites.cmake. */
#ifndef TENON_TEST_OPS_ELEMENTWISE_H
#define TENON_TEST_OPS_ELEMENTWISE_H

#include "ops_check.h"

#include "op/op.h"
#include "tenon/tenon.h"

/* What the last call made, and why it failed. */
static tni_problem problem;
static tn_error failure;

/* Returns the problem's op, which a text can express; the test ends if it was not made. */
static inline const tn_op *check_made(tn_status status)
{
    if (status)
        fail_msg("%s", failure.message);
    round_trip(&problem.op);
    return &problem.op;
}

static inline void expect_failure(tn_status status, tn_status needed, const char *where,
                                  const char *part)
{
    assert_int_equal(status, needed);
    assert_int_equal(failure.status, needed);
    assert_string_equal(failure.where, where);
    assert_contains(failure.message, part);
}

/* Fills the problem with garbage: what is made must not depend on it. */
static inline tni_problem *spoil_problem(void)
{
    memset(&problem, 0xA5, sizeof problem);
    return &problem;
}

/* MAKE returns the op that tni_OP_make makes from the given members of its arguments. REFUSED and
 * UNSUPPORTED check that it fails, with `part` in the message. TEXT checks the text of the op. */
#define MAKE(op, ...) \
    check_made(tni_##op##_make(TN_ARGS(op, __VA_ARGS__), spoil_problem(), &failure))
#define REFUSED(op, part, ...)                                                           \
    expect_failure(tni_##op##_make(TN_ARGS(op, __VA_ARGS__), spoil_problem(), &failure), \
                   TN_INVALID_ARGUMENT, "tn_" #op, part)
#define UNSUPPORTED(op, part, ...)                                                       \
    expect_failure(tni_##op##_make(TN_ARGS(op, __VA_ARGS__), spoil_problem(), &failure), \
                   TN_UNSUPPORTED, "tn_" #op, part)
#define TEXT(op, text, ...) assert_string_equal(round_trip(MAKE(op, __VA_ARGS__)), text)

/* Checks that NULL and a size that is too small are rejected, for an op that needs all members of its
 * arguments. */
#define CHECK_ARGS(op)                                                                             \
    do {                                                                                           \
        tn_##op##_args args = {.struct_size = sizeof args - 1};                                    \
        expect_failure(tni_##op##_make(NULL, &problem, &failure), TN_INVALID_ARGUMENT, "tn_" #op,  \
                       "args is NULL");                                                            \
        expect_failure(tni_##op##_make(&args, &problem, &failure), TN_INVALID_ARGUMENT, "tn_" #op, \
                       "args->struct_size: expected at least");                                    \
    } while (0)

#endif
