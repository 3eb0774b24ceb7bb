/* Waiting, the only thing here that needs the operating system. */
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 199309L /* nanosleep; C11 thrd_sleep is optional */
#endif

#include "described.h"

#if defined(_WIN32)

#include <windows.h>

void described_pause(int64_t ns)
{
    enum { TICK_MS = 16 }; /* Sleep may return this much early */
    if (ns > 0)
        Sleep((DWORD)((ns + 999999) / 1000000 + TICK_MS));
}

#else

#include <errno.h>
#include <time.h>

void described_pause(int64_t ns)
{
    struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
                            .tv_nsec = (long)(ns % 1000000000)};
    while (ns > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

#endif
