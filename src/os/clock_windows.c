#include "clock.h"

#include <windows.h>

int64_t tni_clock_ns(void)
{
    LARGE_INTEGER now, rate;
    QueryPerformanceFrequency(&rate);
    QueryPerformanceCounter(&now);
    int64_t seconds = now.QuadPart / rate.QuadPart, rest = now.QuadPart % rate.QuadPart;
    return seconds * 1000000000 + rest * 1000000000 / rate.QuadPart;
}

void tni_clock_sleep_ns(int64_t ns)
{
    if (ns > 0)
        Sleep((DWORD)((ns + 999999) / 1000000));
}
