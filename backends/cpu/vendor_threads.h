/* Limits a vendor's library to the thread that calls it.
 *
 * The libraries' own threads are not used. The sums of a product can depend on their number, they
 * spin for a while after each product and compete with the program's pool, and some libraries serve
 * only one caller at a time. Instead the module splits the work, in the same way for any number of
 * threads, and each part is computed on the calling thread. */
#ifndef TENON_BACKENDS_CPU_VENDOR_THREADS_H
#define TENON_BACKENDS_CPU_VENDOR_THREADS_H

#include <stdatomic.h>
#include <stdbool.h>

/* How to set the number of threads of a library. Zero-initialized except for the fields that a
 * library sets. */
typedef struct tni_vendor_threads {
    /* Get and set the number of threads; both take the library's functions. NULL: the library has
     * no threads of its own. */
    int (*get)(const void *library);
    void (*set)(const void *library, int threads);
    bool shared; /* one number for the process; else each thread has its own */

    /* For a shared number: */
    _Atomic bool locked; /* guards the two below */
    unsigned inside;     /* active calls */
    int before;          /* the number outside of calls; 1: nothing to restore */
} tni_vendor_threads;

/* Must be called once, after the library was opened and before its first call. */
void tni_vendor_threads_init(tni_vendor_threads *threads);

/* Between the two calls, the library computes only on the calling thread. A shared number is
 * restored when the last call ends. `leave` must be given the result of `enter`. fork() waits until
 * no thread is between the two, see fork_gate.h: a child finds the library as if no thread had been
 * in it. */
int tni_vendor_threads_enter(tni_vendor_threads *threads, const void *library);
void tni_vendor_threads_leave(tni_vendor_threads *threads, const void *library, int before);

#endif
