#include "room.h"

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int32_t tni_cpu_processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    long all = count > 0 ? count : sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 ? (int32_t)all : 1;
}

/* The thread waits until all threads were created: the creator holds the lock until then. */
static void *wait_for_end(void *gate)
{
    (void)pthread_mutex_lock(gate);
    (void)pthread_mutex_unlock(gate);
    return NULL;
}

int32_t tni_cpu_threads_possible(int32_t wanted)
{
    enum { MOST = 1024 };
    pthread_t threads[MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int32_t made = 0, count = wanted < MOST ? wanted : MOST;
    (void)pthread_mutex_lock(&gate);
    while (made < count && pthread_create(&threads[made], NULL, wait_for_end, &gate) == 0)
        made++;
    (void)pthread_mutex_unlock(&gate);
    for (int32_t i = 0; i < made; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_mutex_destroy(&gate);
    return made == count ? wanted : made;
}

/* Address space in use in bytes, from the kernel's count of pages; 0 if it cannot be read. */
static int64_t addresses_used(void)
{
    char line[128] = "";
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (!fgets(line, sizeof line, file))
        line[0] = '\0';
    (void)fclose(file);
    return strtoll(line, NULL, 10) * sysconf(_SC_PAGESIZE);
}

int64_t tni_cpu_addresses_left(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    int64_t used = addresses_used();
    return used < (int64_t)limit.rlim_cur ? (int64_t)limit.rlim_cur - used : 0;
}

#else

int32_t tni_cpu_processors(void)
{
    return 1;
}

int32_t tni_cpu_threads_possible(int32_t wanted)
{
    return wanted;
}

int64_t tni_cpu_addresses_left(void)
{
    return INT64_MAX;
}

#endif
