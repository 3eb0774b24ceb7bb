/* Keeps fork() and calls of vendors' libraries apart.
 *
 * A library's locks and threads do not survive a fork() that comes while another thread is inside the
 * library: the child would wait for ever, at the latest in the library's destructor, which exit() runs.
 * So fork() waits until no thread is inside, and lets none in until it is done. */
#ifndef TENON_BACKENDS_CPU_FORK_GATE_H
#define TENON_BACKENDS_CPU_FORK_GATE_H

/* Must be called when the module is initialized, and after each library was opened, before its first
 * call: fork handlers run newest first, and this one must run before the library's own. If no memory
 * is left for the handler, forks do not wait. */
void tni_fork_gate_watch(void);

/* Between the two, the calling thread is inside a library. Pairs may be nested. A thread that is inside must not
 * wait for a lock that a fork handler takes. fork() does not wait for the thread that calls it. */
void tni_fork_gate_enter(void);
void tni_fork_gate_leave(void);

#endif
