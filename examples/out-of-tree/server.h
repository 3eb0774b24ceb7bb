/* The parts of the server. One lock guards all of it; work is done with the lock open. */
#ifndef FERRY_SERVER_H
#define FERRY_SERVER_H

#include "ferry.h"

#include <pthread.h>

extern ferry_segment *segment;
extern pthread_mutex_t lock;
extern pthread_cond_t change;

/* Ends the server, with the cause where the module finds it. */
_Noreturn void give_up(const char *format, ...) __attribute__((format(printf, 1, 2)));

void send_message(const ferry_message *message);

/* The device's memory. Called with the lock held. */
void memory_open(uint64_t bytes);
uint64_t memory_take(uint64_t bytes); /* an address, or 0 */
void memory_give(uint64_t address);

/* That all rows lie within the memory; ends the server otherwise. */
void memory_check(uint64_t address, const ferry_message *job, uint64_t pitch);

/* Streams. Called with the lock held. */
void stream_add(const ferry_message *job);
void stream_done(uint32_t number); /* the module did what the stream had asked for */

#endif
