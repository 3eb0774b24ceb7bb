/* Holding a vendor's library to the thread that calls it.
 *
 * Threads of the libraries themselves are not used. The sums of a product can depend on how many there are,
 * they spin for a while after each product beside the program's pool, and some give all of them to one
 * caller at a time. Work is split by the module instead, the same way for any number of threads, and each
 * part is computed on the thread that asks for it. */
#ifndef TENON_BACKENDS_CPU_HOLD_H
#define TENON_BACKENDS_CPU_HOLD_H

#include <stdatomic.h>
#include <stdbool.h>

/* How a library is told its number of threads. Zeroed but for what a library sets. */
typedef struct tni_hold {
    /* The number it has, and telling it another one; both get the library's functions. NULL: it has no
     * threads of its own. */
    int (*get)(const void *library);
    void (*set)(const void *library, int threads);
    bool shared; /* one number for the process; else every thread has its own */

    /* Of a shared number. */
    _Atomic bool locked; /* guards the two below                                  */
    unsigned inside;     /* calls under way                                       */
    int before;          /* the number outside of them; 1: nothing is to be undone */
} tni_hold;

/* Must be called once, after the library was opened and before its first call. */
void tni_hold_begin(tni_hold *hold);

/* Between the two, the library computes on the calling thread alone. A shared number is restored when the
 * last call ends. `leave` takes what `enter` returned. fork() waits until no thread is between the two, see
 * fork_gate.h: a child finds the library as if no thread had been in it. */
int tni_hold_enter(tni_hold *hold, const void *library);
void tni_hold_leave(tni_hold *hold, const void *library, int before);

#endif
