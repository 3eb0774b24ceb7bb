/* A folder of a test's own, for suites on POSIX systems. */
#ifndef TENON_TEST_SCRATCH_H
#define TENON_TEST_SCRATCH_H

#include "test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRATCH_PATH = 1024 };

/* Makes an empty folder, closed to others, under $TMPDIR or /tmp. */
static inline void scratch_make(char out[SCRATCH_PATH])
{
    const char *parent = getenv("TMPDIR");
    snprintf(out, SCRATCH_PATH, "%s/tenon-test-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(out))
        fail_msg("no folder can be made at %s", out);
}

static inline int scratch_remove_one_(const char *path, const struct stat *facts, int type,
                                      struct FTW *position)
{
    (void)facts;
    (void)position;
    return type == FTW_DP || type == FTW_DNR ? rmdir(path) : unlink(path);
}

static inline void scratch_remove(const char *path)
{
    assert_int_equal(nftw(path, scratch_remove_one_, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
