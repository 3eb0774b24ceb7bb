/* Copies and fills between memories that only their own platforms can reach: every pair of them,
 * every shape, in the order of their streams, and with everything failing once. */
#include "fault/fault.h"
#include "memory_spaces.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)

/* Where memory can be: the host's own, and each device's. */
enum { HOST, CPU, NORTH_0, NORTH_1, SOUTH_0, SOUTH_1, PLACES };

typedef struct memory {
    tn_device *device;
    void *address;
    unsigned char *bytes; /* where they really are */
    uint64_t size;
} memory;

static tn_device *device_at(const spaces *s, int place)
{
    tn_device *const devices[PLACES] = {NULL,        s->cpu,      s->north[0],
                                        s->north[1], s->south[0], s->south[1]};
    return devices[place];
}

static memory take(const spaces *s, int place, uint64_t size)
{
    memory m = {.device = device_at(s, place), .size = size};
    tn_error err;
    if (place == HOST)
        m.address = malloc(size ? (size_t)size : 1);
    else if (tn_memory_alloc(m.device, size, "test", &m.address, &err))
        fail_msg("%s", err.message);
    assert_non_null(m.address);
    m.bytes = place <= CPU      ? m.address
              : place < SOUTH_0 ? space_bytes(NORTH, m.address)
                                : space_bytes(SOUTH, m.address);
    return m;
}

static void give(const memory *m)
{
    if (m->device)
        tn_memory_free(m->device, m->address);
    else
        free(m->address);
}

/* Lets everything run that is queued on the default streams. */
static void settle(const spaces *s)
{
    for (int i = 0; i < SPACE_DEVICES; i++)
        assert_int_equal(tn_stream_synchronize(tn_stream_default(s->south[i]), NULL), TN_OK);
}

static uint32_t random_below(uint32_t bound)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % bound;
}

static void scribble(unsigned char *bytes, uint64_t size)
{
    uint32_t value = random_below(1u << 30);
    for (uint64_t i = 0; i < size; i++) {
        value = value * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(value >> 24);
    }
}

typedef struct form {
    uint64_t bytes, rows, to_pitch, from_pitch, to_offset, from_offset;
} form;

static uint64_t span_of(const form *s, uint64_t pitch)
{
    return (s->rows - 1) * pitch + s->bytes;
}

/* Copies one shape and looks at every byte of both sides. */
static void copy_one(const spaces *s, int to_place, int from_place, const form *shape)
{
    enum { AFTER = 5 };
    tn_error err = {0};
    uint64_t to_span = span_of(shape, shape->to_pitch) + shape->to_offset + AFTER;
    uint64_t from_span = span_of(shape, shape->from_pitch) + shape->from_offset + AFTER;
    memory to = take(s, to_place, to_span), from = take(s, from_place, from_span);
    unsigned char *expected = malloc(to_span), *before = malloc(from_span);
    assert_true(expected && before);
    scribble(to.bytes, to_span);
    scribble(from.bytes, from_span);
    memcpy(expected, to.bytes, to_span);
    memcpy(before, from.bytes, from_span);
    for (uint64_t row = 0; row < shape->rows; row++)
        memcpy(expected + shape->to_offset + row * shape->to_pitch,
               before + shape->from_offset + row * shape->from_pitch, shape->bytes);
    if (tn_memory_copy(TN_ARGS(memory_copy, .to_device = to.device,
                               .to = (char *)to.address + shape->to_offset,
                               .from_device = from.device,
                               .from = (const char *)from.address + shape->from_offset,
                               .bytes = shape->bytes, .rows = shape->rows,
                               .to_pitch = shape->to_pitch, .from_pitch = shape->from_pitch),
                       &err))
        fail_msg("%s", err.message);
    settle(s);
    if (memcmp(expected, to.bytes, to_span) != 0 || memcmp(before, from.bytes, from_span) != 0)
        fail_msg("%llu rows of %llu bytes are wrong, from place %d to %d",
                 (unsigned long long)shape->rows, (unsigned long long)shape->bytes, from_place,
                 to_place);
    free(expected);
    free(before);
    give(&to);
    give(&from);
}

static void every_pair_copies_every_shape(void **state)
{
    spaces s;
    int rounds = test_fewest() ? 5 : test_reduced() ? 20 : 200;
    (void)state;
    spaces_make(&s);
    for (int pair = 0; pair < PLACES * PLACES; pair++) {
        for (int i = 0; i < rounds; i++) {
            form shape = {.bytes = 1 + random_below(1u << random_below(12)),
                          .rows = 1 + random_below(i % 2 ? 1 : 20),
                          .to_offset = random_below(70),
                          .from_offset = random_below(70)};
            shape.to_pitch = shape.bytes + random_below(3) * random_below(30);
            shape.from_pitch = shape.bytes + random_below(3) * random_below(30);
            copy_one(&s, pair / PLACES, pair % PLACES, &shape);
        }
    }
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* What goes through the host in many pieces: whole rows and parts of rows, to the byte. */
static void large_copies_go_in_pieces(void **state)
{
    static const form shapes[] = {
        {MIB(2), 1, MIB(2), MIB(2), 0, 0},
        {MIB(2) + 1, 1, MIB(2) + 1, MIB(2) + 1, 1, 0},
        {MIB(9) - 3, 1, MIB(9), MIB(9), 0, 3},
        {MIB(2) + 7, 3, MIB(2) + 9, MIB(2) + 7, 2, 1},
        {MIB(1) + 1, 5, MIB(1) + 1, MIB(1) + 2, 0, 0},
        {1023, 5000, 1024, 1025, 1, 1},
        {1, 100000, 3, 2, 0, 0},
    };
    static const struct {
        int to, from;
    } pairs[] = {{NORTH_0, SOUTH_0}, {SOUTH_1, NORTH_1}, {SOUTH_0, HOST}, {CPU, NORTH_0}};
    spaces s;
    (void)state;
    spaces_make(&s);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
            copy_one(&s, pairs[k].to, pairs[k].from, &shapes[i]);
    }
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static tn_status copy(const memory *to, const memory *from, tn_stream *stream, tn_error *err)
{
    return tn_memory_copy(TN_ARGS(memory_copy, .to_device = to->device, .to = to->address,
                                  .from_device = from->device, .from = from->address,
                                  .bytes = to->size, .stream = stream),
                          err);
}

/* Copies 64 bytes and says whether they had come when the call returned; they must have when the
 * stream is waited for. */
static bool is_done_at_once(const spaces *s, int to_place, int from_place, tn_stream *stream)
{
    memory to = take(s, to_place, 64), from = take(s, from_place, 64);
    tn_error err;
    scribble(from.bytes, 64);
    memset(to.bytes, 0, 64);
    if (copy(&to, &from, stream, &err))
        fail_msg("%s", err.message);
    bool done = memcmp(to.bytes, from.bytes, 64) == 0;
    if (stream)
        assert_int_equal(tn_stream_synchronize(stream, NULL), TN_OK);
    else
        settle(s);
    assert_memory_equal(to.bytes, from.bytes, 64);
    give(&to);
    give(&from);
    return done;
}

static void copies_are_queued_on_streams(void **state)
{
    spaces s;
    tn_stream *own = NULL;
    (void)state;
    spaces_make(&s);
    tn_stream *standard = tn_stream_default(s.south[0]), *of_cpu = tn_stream_default(s.cpu);
    assert_int_equal(tn_stream_create(s.south[0], NULL, &own, NULL), TN_OK);
    assert_false(is_done_at_once(&s, SOUTH_0, HOST, NULL));
    assert_false(is_done_at_once(&s, HOST, SOUTH_0, NULL));
    assert_false(is_done_at_once(&s, SOUTH_0, CPU, NULL));
    assert_false(is_done_at_once(&s, CPU, SOUTH_0, standard));
    assert_false(is_done_at_once(&s, SOUTH_0, SOUTH_0, own));
    assert_false(is_done_at_once(&s, SOUTH_0, SOUTH_1, own));
    assert_false(is_done_at_once(&s, SOUTH_1, SOUTH_0, own));
    assert_false(is_done_at_once(&s, SOUTH_1, SOUTH_0, NULL));
    /* The cpu's stream is the calling thread. */
    assert_true(is_done_at_once(&s, CPU, SOUTH_0, NULL));
    assert_true(is_done_at_once(&s, SOUTH_0, CPU, of_cpu));
    assert_true(is_done_at_once(&s, CPU, CPU, of_cpu));
    assert_true(is_done_at_once(&s, CPU, HOST, NULL));
    assert_true(is_done_at_once(&s, NORTH_0, HOST, NULL));
    /* A row does not know whose default stream is meant, and two platforms meet on the host. */
    assert_true(is_done_at_once(&s, SOUTH_1, SOUTH_0, standard));
    assert_true(is_done_at_once(&s, SOUTH_0, NORTH_0, NULL));
    assert_true(is_done_at_once(&s, NORTH_0, SOUTH_0, own));
    tn_stream_release(own);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* What was queued before a copy, on the stream that it names or that is current, has happened. */
static void copies_through_the_host_keep_the_order(void **state)
{
    spaces s;
    tn_stream *own = NULL;
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_stream_create(s.south[0], NULL, &own, NULL), TN_OK);
    memory host = take(&s, HOST, 256), south = take(&s, SOUTH_0, 256),
           north = take(&s, NORTH_0, 256);
    scribble(host.bytes, 256);
    assert_int_equal(copy(&south, &host, NULL, NULL), TN_OK);
    assert_int_equal(copy(&north, &south, NULL, NULL), TN_OK);
    assert_memory_equal(north.bytes, host.bytes, 256);
    memset(host.bytes, 7, 256);
    assert_int_equal(copy(&south, &host, own, NULL), TN_OK);
    assert_int_equal(copy(&north, &south, own, NULL), TN_OK);
    assert_memory_equal(north.bytes, host.bytes, 256);
    memset(north.bytes, 9, 256);
    memset(host.bytes, 8, 256);
    assert_int_equal(copy(&south, &host, own, NULL), TN_OK);
    assert_int_equal(copy(&south, &north, own, NULL), TN_OK);
    assert_memory_equal(south.bytes, north.bytes, 256);
    memory other = take(&s, SOUTH_1, 256), back = take(&s, SOUTH_0, 256);
    scribble(south.bytes, 256);
    assert_int_equal(copy(&other, &south, own, NULL), TN_OK);
    atomic_store(&space_apart, true);
    assert_int_equal(copy(&back, &other, own, NULL), TN_OK); /* of what its own stream brings */
    assert_memory_equal(back.bytes, south.bytes, 256);
    const memory all[] = {host, south, north, other, back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        give(&all[i]);
    tn_stream_release(own);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void streams_of_others_are_refused(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    memory a = take(&s, SOUTH_0, 8), b = take(&s, HOST, 8), c = take(&s, HOST, 8);
    tn_stream *other = tn_stream_default(s.south[1]);
    assert_int_equal(copy(&a, &b, other, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "the stream belongs to south:1, but the copy is from the host to south:0");
    assert_int_equal(copy(&b, &c, other, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_fill(TN_ARGS(memory_fill, .device = a.device, .to = a.address,
                                            .bytes = 8, .stream = other),
                                    &err),
                     TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the stream belongs to south:1, but the memory to south:0");
    assert_int_equal(
        tn_memory_fill(TN_ARGS(memory_fill, .to = b.address, .bytes = 8, .stream = other), &err),
        TN_INVALID_ARGUMENT);
    give(&a);
    give(&b);
    give(&c);
    spaces_end(&s);
}

/* Directly where the platform can; otherwise through the host. */
static void the_best_way_is_taken(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    memory n0 = take(&s, NORTH_0, 64), n1 = take(&s, NORTH_1, 64), s0 = take(&s, SOUTH_0, 64);
    memory cpu = take(&s, CPU, 64);
    assert_int_equal(copy(&n1, &n0, NULL, NULL), TN_OK);
    assert_int_equal(space_look(NORTH).copies, 1);
    assert_int_equal(copy(&n1, &cpu, NULL, NULL), TN_OK);
    assert_int_equal(space_look(NORTH).copies, 2);
    scribble(n0.bytes, 64);
    atomic_store(&space_apart, true);
    assert_int_equal(copy(&n1, &n0, NULL, NULL), TN_OK);
    assert_int_equal(space_look(NORTH).copies, 5); /* tried, then by two */
    assert_memory_equal(n1.bytes, n0.bytes, 64);
    int before = space_look(NORTH).copies;
    assert_int_equal(copy(&s0, &n0, NULL, NULL), TN_OK);
    assert_int_equal(space_look(NORTH).copies, before + 1);
    assert_int_equal(space_look(SOUTH).copies, 1);
    const memory all[] = {n0, n1, s0, cpu};
    for (size_t i = 0; i < 4; i++)
        give(&all[i]);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void the_stage_is_pinned_and_kept(void **state)
{
    spaces s;
    (void)state;
    spaces_make(&s);
    memory north = take(&s, NORTH_0, 64), south = take(&s, SOUTH_0, 64);
    assert_int_equal(copy(&south, &north, NULL, NULL), TN_OK);
    assert_int_equal(copy(&south, &north, NULL, NULL), TN_OK);
    assert_int_equal(space_look(SOUTH).host_blocks, 1);
    assert_int_equal(copy(&north, &south, NULL, NULL), TN_OK); /* to north it is ordinary memory */
    assert_int_equal(space_look(SOUTH).host_blocks, 1);
    tn_memory_trim(s.south[0]);
    assert_int_equal(space_look(SOUTH).host_blocks, 0);
    space_fail(1, TN_OUT_OF_MEMORY);
    assert_int_equal(copy(&south, &north, NULL, NULL), TN_OK); /* without pinned memory too */
    assert_true(space_heal());
    assert_int_equal(space_look(SOUTH).host_blocks, 0);
    tn_memory_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(tn_memory_stats_get(s.south[0], &stats, NULL), TN_OK);
    assert_int_equal(stats.host | stats.kept, 0);
    give(&north);
    give(&south);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static tn_status copy_inside(const memory *m, const form *shape, tn_error *err)
{
    return tn_memory_copy(
        TN_ARGS(memory_copy, .to_device = m->device, .to = (char *)m->address + shape->to_offset,
                .from_device = m->device, .from = (const char *)m->address + shape->from_offset,
                .bytes = shape->bytes, .rows = shape->rows, .to_pitch = shape->to_pitch,
                .from_pitch = shape->from_pitch),
        err);
}

/* By the definition: every byte of one side against every byte of the other. */
static bool share_a_byte(const form *s)
{
    for (uint64_t i = 0; i < s->rows; i++) {
        for (uint64_t k = 0; k < s->rows; k++) {
            int64_t to = (int64_t)(s->to_offset + i * s->to_pitch);
            int64_t from = (int64_t)(s->from_offset + k * s->from_pitch);
            if (to < from + (int64_t)s->bytes && from < to + (int64_t)s->bytes)
                return true;
        }
    }
    return false;
}

static void sides_that_overlap_are_refused(void **state)
{
    spaces s;
    int refused = 0;
    (void)state;
    spaces_make(&s);
    for (int place = 0; place < PLACES; place++) {
        memory m = take(&s, place, 200);
        tn_error err = {0};
        for (int i = 0; i < 3000; i++) {
            form shape = {.bytes = 1 + random_below(12),
                          .rows = 1 + random_below(6),
                          .to_offset = random_below(70),
                          .from_offset = random_below(70)};
            shape.to_pitch = shape.bytes + random_below(10);
            shape.from_pitch = random_below(2) ? shape.to_pitch : shape.bytes + random_below(10);
            bool wrong = share_a_byte(&shape);
            assert_int_equal(copy_inside(&m, &shape, &err), wrong ? TN_INVALID_ARGUMENT : TN_OK);
            refused += wrong;
        }
        assert_contains(err.message, "source and destination overlap, on ");
        assert_contains(err.message, place <= CPU ? "the host" : tn_device_id(m.device));
        settle(&s);
        give(&m);
    }
    assert_in_range(refused, 3000, 15000);
    memory host = take(&s, HOST, 8), cpu = {.device = s.cpu, .address = host.address, .size = 8};
    assert_int_equal(copy(&cpu, &host, NULL, NULL), TN_INVALID_ARGUMENT); /* the same memory */
    give(&host);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void copies_that_make_no_sense_are_refused(void **state)
{
    char a[16] = "a", b[16] = "b";
    const struct {
        tn_memory_copy_args args;
        const char *words;
    } rows[] = {
        {{.to = NULL, .from = b, .bytes = 1}, "to is NULL"},
        {{.to = a, .from = NULL, .bytes = 1}, "from is NULL"},
        {{.to = a, .from = b, .bytes = 4, .rows = 2, .to_pitch = 3},
         "to_pitch is 3, less than a row of 4 bytes"},
        {{.to = a, .from = b, .bytes = 4, .rows = 2, .from_pitch = 1},
         "from_pitch is 1, less than a row of 4 bytes"},
        {{.to = a, .from = b, .bytes = UINT64_MAX}, "exceed the address space from to"},
        {{.to = a, .from = b, .bytes = 1, .rows = UINT64_MAX, .to_pitch = 2},
         "18446744073709551615 rows of 1 bytes with a pitch of 2 exceed the address space from to"},
        {{.to = a, .from = b, .bytes = 1, .rows = (UINT64_C(1) << 63) + 1, .to_pitch = 2},
         "exceed the address space from to"}, /* a product that wraps to 0 */
        {{.to = a, .from = b, .bytes = 8, .rows = 3, .to_pitch = 8, .from_pitch = UINT64_MAX / 2},
         "exceed the address space from from"},
        {{.to = a, .from = b, .bytes = UINT64_MAX / 2, .rows = 3}, "exceed the address space"},
    };
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_memory_copy(NULL, &err), TN_INVALID_ARGUMENT);
    assert_string_equal(err.message, "args is NULL");
    assert_int_equal(tn_memory_copy(&(tn_memory_copy_args){.struct_size = 8}, &err),
                     TN_INVALID_ARGUMENT);
    assert_string_equal(err.message,
                        "args->struct_size is too small; make args with TN_ARGS(memory_copy, ...)");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_memory_copy_args args = rows[i].args;
        args.struct_size = sizeof args;
        assert_int_equal(tn_memory_copy(&args, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, rows[i].words);
    }
    assert_string_equal(a, "a");
    assert_int_equal(tn_memory_copy(TN_ARGS(memory_copy, .rows = 5, .to_pitch = 1), &err), TN_OK);
    assert_int_equal(tn_memory_copy(TN_ARGS(memory_copy, .to = a, .from = b, .bytes = 2,
                                            .to_pitch = 1, .from_pitch = UINT64_MAX),
                                    &err),
                     TN_OK); /* one row has no pitch */
    assert_string_equal(a, "b");
}

static void fill_one(const spaces *s, int place, uint64_t bytes, uint32_t pattern_bytes,
                     uint64_t offset)
{
    const uint64_t pattern = UINT64_C(0x8f7e6d5c4b3a2910);
    uint64_t size = offset + bytes + 3;
    memory m = take(s, place, size);
    unsigned char *expected = malloc(size);
    tn_error err;
    assert_non_null(expected);
    scribble(m.bytes, size);
    memcpy(expected, m.bytes, size);
    for (uint64_t i = 0; i < bytes; i++)
        expected[offset + i] =
            (unsigned char)(pattern >> i % (pattern_bytes ? pattern_bytes : 1) * 8);
    if (tn_memory_fill(TN_ARGS(memory_fill, .device = m.device, .to = (char *)m.address + offset,
                               .bytes = bytes, .pattern = pattern, .pattern_bytes = pattern_bytes),
                       &err))
        fail_msg("%s", err.message);
    settle(s);
    if (memcmp(expected, m.bytes, size) != 0)
        fail_msg("%llu bytes filled by %u are wrong, place %d", (unsigned long long)bytes,
                 (unsigned)pattern_bytes, place);
    free(expected);
    give(&m);
}

/* The lowest bytes of the pattern count; the expectation is written for little-endian machines. */
static void every_place_is_filled(void **state)
{
    static const uint32_t sizes[] = {0, 1, 2, 4, 8};
    spaces s;
    (void)state;
    spaces_make(&s);
    for (int place = 0; place < PLACES; place++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (uint64_t count = 1; count < 40; count += 3)
                fill_one(&s, place, count * (sizes[i] ? sizes[i] : 1), sizes[i], count % 3);
            if (!test_fewest() || (i + (size_t)place + test_seed()) % 5 == 0)
                fill_one(&s, place, MIB(9), sizes[i], i % 2);
            fill_one(&s, place, 40000, sizes[i], 0);
        }
    }
    assert_true(space_look(SOUTH).fills > 0);
    assert_true(space_look(SOUTH).copies > 0); /* of patterns that lie crosswise */
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void fills_are_queued(void **state)
{
    spaces s;
    tn_stream *own = NULL;
    (void)state;
    spaces_make(&s);
    assert_int_equal(tn_stream_create(s.south[0], NULL, &own, NULL), TN_OK);
    memory m = take(&s, SOUTH_0, 64);
    memset(m.bytes, 1, 64);
    assert_int_equal(tn_memory_fill(TN_ARGS(memory_fill, .device = m.device, .to = m.address,
                                            .bytes = 64, .pattern = 7, .stream = own),
                                    NULL),
                     TN_OK);
    assert_int_equal(m.bytes[0], 1);
    assert_int_equal(tn_stream_synchronize(own, NULL), TN_OK);
    assert_int_equal(m.bytes[63], 7);
    give(&m);
    tn_stream_release(own);
    spaces_end(&s);
}

static void fills_that_make_no_sense_are_refused(void **state)
{
    char a[16] = "as it was";
    const struct {
        tn_memory_fill_args args;
        const char *words;
    } rows[] = {
        {{.to = NULL, .bytes = 1}, "to is NULL"},
        {{.to = a, .bytes = 3, .pattern_bytes = 3}, "pattern_bytes: expected 1, 2, 4 or 8, got 3"},
        {{.to = a, .bytes = 6, .pattern_bytes = 4},
         "6 bytes are not a multiple of the pattern size 4"},
        {{.to = a, .bytes = UINT64_MAX}, "exceed the address space"},
        {{.to = a, .bytes = 1, .reserved = 9}, "args->reserved: expected 0, got 9"},
    };
    tn_error err = {0};
    (void)state;
    assert_int_equal(tn_memory_fill(NULL, &err), TN_INVALID_ARGUMENT);
    assert_int_equal(tn_memory_fill(&(tn_memory_fill_args){.struct_size = 8}, &err),
                     TN_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tn_memory_fill_args args = rows[i].args;
        args.struct_size = sizeof args;
        assert_int_equal(tn_memory_fill(&args, &err), TN_INVALID_ARGUMENT);
        assert_contains(err.message, rows[i].words);
    }
    assert_int_equal(tn_memory_fill(TN_ARGS(memory_fill, .pattern_bytes = 8), &err), TN_OK);
    assert_string_equal(a, "as it was");
}

/* Of two devices the one that is lost is the one that counts as lost. */
static void a_loss_is_kept_with_its_device(void **state)
{
    (void)state;
    for (int32_t lost = 0; lost < 2; lost++) {
        for (int to_first = 0; to_first < 2; to_first++) {
            spaces s;
            tn_error err = {0};
            spaces_make(&s);
            memory a = take(&s, to_first ? SOUTH_0 : SOUTH_1, 64);
            memory b = take(&s, to_first ? SOUTH_1 : SOUTH_0, 64);
            space_lose(SOUTH, lost);
            assert_int_equal(copy(&a, &b, NULL, &err), TN_DEVICE_LOST);
            assert_contains(err.message, "fell off the bus");
            assert_int_equal(tn_device_health(s.south[lost], &err), TN_DEVICE_LOST);
            assert_int_equal(tn_device_health(s.south[1 - lost], &err), TN_OK);
            assert_int_equal(copy(&a, &b, NULL, &err), TN_DEVICE_LOST);
            assert_contains(err.message, "was lost at");
            give(&a);
            give(&b);
            spaces_end(&s);
            assert_true(spaces_are_empty());
        }
    }
}

/* Pinned memory that a reset took away is not used again. */
static void a_reset_may_come_between(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    memory north = take(&s, NORTH_0, 64), south = take(&s, SOUTH_0, 64);
    assert_int_equal(copy(&south, &north, NULL, &err), TN_OK);
    assert_int_equal(space_look(SOUTH).host_blocks, 1);
    for (int i = 0; i < 2; i++) { /* while a stage is in use, while one is made */
        space_reset_meanwhile(s.south[0]);
        (void)copy(&south, &north, NULL, &err); /* to memory that is gone */
        assert_null(atomic_load(&space_meanwhile));
        space_forgive(SOUTH);
        assert_int_equal(space_look(SOUTH).host_blocks, 0);
        tn_memory_trim(s.south[0]);
        south = take(&s, SOUTH_0, 64);
    }
    give(&south);
    south = take(&s, SOUTH_0, 64);
    scribble(north.bytes, 64);
    assert_int_equal(copy(&south, &north, NULL, &err), TN_OK);
    assert_memory_equal(south.bytes, north.bytes, 64);
    assert_int_equal(space_look(SOUTH).host_blocks, 1);
    give(&north);
    give(&south);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* Everything that uses a module, on two platforms. The first failure is the outcome. */
static tn_status work(const memory *north, const memory *south, const memory *host, tn_error *err)
{
    tn_status status = copy(south, north, NULL, err);
    if (!status)
        status = copy(north, south, NULL, err);
    if (!status)
        status = copy(host, south, NULL, err);
    if (!status)
        status = tn_stream_synchronize(tn_stream_default(south->device), err);
    if (!status)
        status = tn_memory_fill(TN_ARGS(memory_fill, .device = north->device, .to = north->address,
                                        .bytes = north->size, .pattern = 5),
                                err);
    if (!status)
        status = tn_memory_fill(TN_ARGS(memory_fill, .device = south->device,
                                        .to = (char *)south->address + 1, .bytes = south->size - 4,
                                        .pattern = 5, .pattern_bytes = 4),
                                err);
    return status;
}

static void every_call_of_a_module_may_fail(void **state)
{
    static const tn_status statuses[] = {TN_OUT_OF_MEMORY, TN_IO, TN_DEVICE_LOST};
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        bool fired = true;
        for (long n = 1; fired; n++) {
            spaces s;
            tn_error err = {0};
            spaces_make(&s);
            memory north = take(&s, NORTH_0, MIB(5)), south = take(&s, SOUTH_0, MIB(5));
            memory host = take(&s, HOST, MIB(5));
            space_fail(n, statuses[i]);
            tn_status status = work(&north, &south, &host, &err);
            fired = space_heal();
            if (status)
                assert_true(fired && err.message[0] && status == statuses[i]);
            if (status && statuses[i] != TN_DEVICE_LOST)
                settle(&s); /* a copy to the host may be left */
            give(&north);
            give(&south);
            spaces_end(&s);
            give(&host);
            assert_true(spaces_are_empty());
            assert_true(fired || n > 20);
        }
    }
}

static void every_allocation_may_fail(void **state)
{
    bool fired = true;
    (void)state;
    for (long n = 1; fired; n++) {
        spaces s;
        tn_error err = {0};
        struct fault_state before = fault_look();
        spaces_make(&s);
        memory north = take(&s, NORTH_0, 64), south = take(&s, SOUTH_0, 64);
        memory host = take(&s, HOST, 64);
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = work(&north, &south, &host, &err);
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        if (fired)
            assert_contains(err.message, "no memory for a copy through the host");
        assert_int_equal(work(&north, &south, &host, &err), TN_OK);
        give(&north);
        give(&south);
        give(&host);
        spaces_end(&s);
        assert_true(spaces_are_empty());
        if (fault_left(before, "copies", n))
            fail();
        assert_true(fired || n > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_copies_every_shape),
        cmocka_unit_test(large_copies_go_in_pieces),
        cmocka_unit_test(copies_are_queued_on_streams),
        cmocka_unit_test(copies_through_the_host_keep_the_order),
        cmocka_unit_test(streams_of_others_are_refused),
        cmocka_unit_test(the_best_way_is_taken),
        cmocka_unit_test(the_stage_is_pinned_and_kept),
        cmocka_unit_test(sides_that_overlap_are_refused),
        cmocka_unit_test(copies_that_make_no_sense_are_refused),
        cmocka_unit_test(every_place_is_filled),
        cmocka_unit_test(fills_are_queued),
        cmocka_unit_test(fills_that_make_no_sense_are_refused),
        cmocka_unit_test(a_loss_is_kept_with_its_device),
        cmocka_unit_test(a_reset_may_come_between),
        cmocka_unit_test(every_call_of_a_module_may_fail),
        cmocka_unit_test(every_allocation_may_fail),
    };
    fault_memory_install();
    return run_suite("unit.memory_copy", tests);
}
