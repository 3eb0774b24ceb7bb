// What the parts of the test program share.
#ifndef TENON_TESTS_CPP_CHECK_HPP
#define TENON_TESTS_CPP_CHECK_HPP

#include <cstdio>

inline int wrong;

inline void check(bool holds, const char *file, int line)
{
    if (holds)
        return;
    std::printf("%s:%d does not hold\n", file, line);
    wrong++;
}
#define CHECK(condition) check(condition, __FILE__, __LINE__)

void check_without_exceptions(); // nonthrowing.cc

#endif
