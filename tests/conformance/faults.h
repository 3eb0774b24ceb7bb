/* What the platform "faulty" does wrong when FAULTY asks for it: the word, the case of the conformance
 * suite that must notice, and what is wrong. tests/conformance/faults.py reads this list. */
#ifndef TENON_TEST_FAULTS_H
#define TENON_TEST_FAULTS_H

#define FAULT_LIST(X)                                                                             \
    X(COPY_SHORT, "copy-short", "copy.host-device", "a copy leaves its last byte out")            \
    X(COPY_LONG, "copy-long", "copy.device-device", "a copy writes a byte too many")              \
    X(COPY_FLIPS, "copy-flips", "copy.device-host", "a copy inverts a byte in its middle")        \
    X(COPY_FLAT, "copy-flat", "copy.2d", "a copy of rows ignores the pitch")                      \
    X(COPY_ONE_ROW, "copy-one-row", "tensor.copy.rows", "a copy of rows copies the first")        \
    X(COPY_AWAY, "copy-away", "copy.host-device", "a copy says that it is unavailable")           \
    X(FILL_HALF, "fill-half", "fill.patterns", "a pattern of 8 bytes counts as one of 4")         \
    X(FILL_LONG, "fill-long", "fill.patterns", "a fill writes a byte too many")                   \
    X(MEMORY_SHARED, "memory-shared", "memory.distinct", "allocations overlap")                   \
    X(MEMORY_ODD, "memory-odd", "memory.alignment", "memory is not aligned")                      \
    X(MEMORY_ENDLESS, "memory-endless", "memory.huge", "no request is ever refused")              \
    X(FREE_HASTY, "free-hasty", "memory.order.streams", "a free in order does not wait its turn") \
    X(MEMORY_BOASTS, "memory-boasts", "device.memory", "more is available than there is")         \
    X(MEMORY_HIDES, "memory-hides", "device.memory", "nothing is ever in use")                    \
    X(STREAM_BACKWARDS, "stream-backwards", "stream.order", "the last queued runs first")         \
    X(STREAM_HASTY, "stream-hasty", "stream.synchronize", "waiting for a stream does not wait")   \
    X(DEVICE_HASTY, "device-hasty", "device.synchronize", "waiting for a device forgets streams") \
    X(STREAM_DONE, "stream-done", "stream.query", "a stream says it is done at once")             \
    X(STREAM_NEVER, "stream-never", "stream.query", "a stream never says it is done")             \
    X(WAIT_IGNORED, "wait-ignored", "stream.wait-event", "a stream does not wait for events")     \
    X(WAIT_MOVES, "wait-moves", "stream.wait-record", "a wait is for later records too")          \
    X(EVENT_DONE, "event-done", "event.query", "an event says it is complete at once")            \
    X(EVENT_HASTY, "event-hasty", "event.synchronize", "waiting for an event does not wait")      \
    X(EVENT_NEVER, "event-never", "event.synchronize", "an event never completes")                \
    X(EVENT_FIRST, "event-first", "event.record-again", "the first record counts for good")       \
    X(TIME_SECONDS, "time-seconds", "event.elapsed.advances", "time is told in seconds")          \
    X(TIME_STILL, "time-still", "event.elapsed.advances", "the clock stands still")               \
    X(TIME_FAST, "time-fast", "event.elapsed", "the clock is a thousand times too fast")          \
    X(TIME_UNSIGNED, "time-unsigned", "event.elapsed", "time is never negative")                  \
    X(PROPERTY_BITS, "property-bits", "properties", "a bit of known means nothing")               \
    X(PROPERTY_SENSE, "property-sense", "properties", "there are -3 compute units")               \
    X(PROPERTY_FAILS, "property-fails", "properties", "properties are not told")                  \
    X(DTYPE_TWICE, "dtype-twice", "dtypes", "a dtype is listed twice")                            \
    X(DTYPE_UNKNOWN, "dtype-unknown", "properties", "a dtype does not exist")                     \
    X(CAPABILITY_NEGATIVE, "capability-negative", "properties", "the capability is -1.0")         \
    X(PRIORITY_REFUSED, "priority-refused", "stream.priority", "priorities are unsupported")      \
    X(FORK_IGNORED, "fork-ignored", "device.fork", "it says that it survives fork(), and hangs")  \
    X(PROPERTY_HANGS, "property-hangs", "", "properties never come, but in tenon-probe")          \
    X(PROPERTY_CRASHES, "property-crashes", "", "properties crash, but in tenon-probe")           \
    X(CRASHES, "crashes", "", "a copy of more than 50000 bytes crashes")

typedef enum fault {
    FAULT_NONE,
#define FAULT_ENUM_(name, word, noticed, meaning) FAULT_##name,
    FAULT_LIST(FAULT_ENUM_)
#undef FAULT_ENUM_
        FAULT_COUNT
} fault;

#endif
