/* What the suites of looks share: roots to look below, answers held against what is expected, and
 * looks during which everything fails once. */
#ifndef TENON_TEST_LOOK_CHECK_H
#define TENON_TEST_LOOK_CHECK_H

#include "fault/fault.h"
#include "machine_trees.h"

#include "base/words.h"
#include "os/look/look_read.h"

static char look_scratch[SCRATCH_PATH];

/* A new, empty root. */
static inline const char *look_root(void)
{
    static char root[SCRATCH_PATH + 16];
    static int number;
    snprintf(root, sizeof root, "%s/%d", look_scratch, ++number);
    assert_int_equal(mkdir(root, 0755), 0);
    return root;
}

static inline const char *look_below(const char *root, const char *path)
{
    static char whole[SCRATCH_PATH * 2];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return whole;
}

/* Whatever was found, all of it is set, it is one line of text, and its parts agree. */
static inline tni_look look_sound(tni_look look)
{
    char clean[sizeof look.text];
    assert_true(look.holds >= -1 && look.holds <= 1);
    assert_true(look.holds == 1 ? look.count > 0 : look.count == 0);
    assert_true(look.denied == 0 || (look.denied == 1 && look.holds == 1));
    assert_true(look.text[0] && memchr(look.text, '\0', sizeof look.text));
    memcpy(clean, look.text, sizeof clean);
    tni_words_clean(clean);
    assert_string_equal(clean, look.text);
    return look;
}

/* What an answer is before it is given. */
static inline tni_look look_unset(void)
{
    tni_look look;
    memset(&look, 0x55, sizeof look);
    return look;
}

static inline void look_expect(tni_look look, int holds, int count, const char *text)
{
    if (look.holds != holds || look.count != count || strcmp(look.text, text) != 0)
        fail_msg("holds %d, count %d, \"%s\"; expected %d, %d, \"%s\"", (int)look.holds,
                 (int)look.count, look.text, holds, count, text);
}

typedef tni_look look_fn(const char *root, const char *what);

/* The n-th step of a kind fails. What is there is found all the same or could not be looked at, and
 * is absent only for someone who may not read it, which is said; and nothing is left behind. */
static inline bool look_survives(look_fn *look, const char *root, const char *what,
                                 struct fault *fault, long n, int code)
{
    struct fault_state before = fault_look();
    fault_arm(fault, n, false, code);
    tni_look found = look(root, what);
    bool fired = fault_end(fault);
    if (fault_left(before, what, n))
        fail();
    if (found.holds == 0 && (code != EACCES || strcmp(found.text, "absent") == 0))
        fail_msg("%s: \"%s\" when step %ld fails with error %d", what, found.text, n, code);
    return fired;
}

/* For what is there; at least `least` steps of each kind are expected. */
static inline void look_survives_all(look_fn *look, const char *root, const char *what,
                                     long least_calls, long least_blocks)
{
    static const int codes[] = {EIO, ENOMEM, EACCES, EMFILE};
    tni_look sound = look(root, what);
    assert_int_equal(sound.holds, 1);
    long n = 1;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        for (n = 1; look_survives(look, root, what, &fault_call, n, codes[i]);)
            n++;
        assert_true(n > least_calls);
    }
    for (n = 1; look_survives(look, root, what, &fault_memory, n, 0);)
        n++;
    assert_true(n > least_blocks);
    look_expect(look(root, what), sound.holds, sound.count, sound.text);
}

/* Before the first test of a suite, and after the last. */
static inline void look_begin(void)
{
    fault_memory_install();
    fault_calls_install();
    tree_scratch_make(look_scratch);
    (void)chmod(look_scratch, 0755);
}

static inline void look_end(void)
{
    scratch_remove(look_scratch);
}

#endif
