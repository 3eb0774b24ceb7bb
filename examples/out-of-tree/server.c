/* ferry-server BYTES [FILE]: a device with so much memory, for the module at the other end of descriptor
 * FERRY_SOCKET. FILE gets its process number. It ends when the module does. */
#include "server.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

ferry_segment *segment;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t change = PTHREAD_COND_INITIALIZER;

void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(segment->cause, sizeof segment->cause, format, arguments);
    va_end(arguments);
    _exit(1);
}

void send_message(const ferry_message *message)
{
    ssize_t sent;
    do {
        sent = send(FERRY_SOCKET, message, sizeof *message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        _exit(0); /* the module has gone */
}

static void answer(uint64_t address)
{
    atomic_store(&segment->address, address);
    atomic_fetch_add(&segment->answered, 1);
    ferry_tell(segment);
}

static void take(const ferry_message *message)
{
    pthread_mutex_lock(&lock);
    switch (message->kind) {
    case FERRY_ALLOC: answer(memory_take(message->bytes)); break;
    case FERRY_FREE: memory_give(message->to); break;
    case FERRY_DONE: stream_done(message->stream); break;
    default: stream_add(message); break;
    }
    pthread_mutex_unlock(&lock);
}

static void write_number(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%d\n", (int)getpid()) < 0 || fclose(file) != 0)
        give_up("it cannot write %s", path);
}

int main(int count, char **arguments)
{
    ferry_message message;
    ssize_t length;
    segment = mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED, FERRY_SEGMENT, 0);
    if (count < 2 || segment == MAP_FAILED) {
        fprintf(stderr, "ferry-server: started by tenon-ferry.so, not by hand\n");
        return 2;
    }
    memory_open(strtoull(arguments[1], NULL, 10));
    if (count > 2)
        write_number(arguments[2]);
    atomic_store(&segment->ready, 1);
    ferry_tell(segment);
    for (;;) {
        length = recv(FERRY_SOCKET, &message, sizeof message, 0);
        if (length == (ssize_t)sizeof message)
            take(&message);
        else if (length >= 0 || errno != EINTR)
            _exit(0); /* the module has gone */
    }
}
