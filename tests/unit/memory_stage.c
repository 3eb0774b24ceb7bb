/* The memory through which copies and fills go that no platform does directly, when waiting for them
 * fails: what is queued goes on using it. And the ways that do not go through it. */
#include "memory_spaces.h"

enum { BYTES = 256 };

static void *take(tn_device *device)
{
    void *memory = NULL;
    tn_error err = {0};
    if (tn_memory_alloc(device, BYTES, "test", &memory, &err))
        fail_msg("%s", err.message);
    return memory;
}

static tn_status copy(tn_device *to_device, void *to, tn_device *from_device, const void *from,
                      tn_stream *stream, tn_error *err)
{
    const tn_memory_copy_args args = {.struct_size = sizeof args,
                                      .to_device = to_device,
                                      .to = to,
                                      .from_device = from_device,
                                      .from = from,
                                      .bytes = BYTES,
                                      .stream = stream};
    return tn_memory_copy(&args, err);
}

/* Begins at an address that is no multiple of the pattern, and so goes through the stage. */
static tn_status fill(tn_device *device, void *to, uint64_t pattern, tn_stream *stream,
                      tn_error *err)
{
    const tn_memory_fill_args args = {.struct_size = sizeof args,
                                      .device = device,
                                      .to = (char *)to + 1,
                                      .bytes = BYTES - 2,
                                      .pattern = pattern,
                                      .pattern_bytes = 2,
                                      .stream = stream};
    return tn_memory_fill(&args, err);
}

static void expect_all(const void *bytes, size_t count, int value)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(at[i], value);
}

/* A staged fill of south:0 on another stream, which would take the stage if it were there. */
static void use_the_stage(const spaces *s, void *to)
{
    tn_stream *other = NULL;
    assert_int_equal(tn_stream_create(s->south[0], NULL, &other, NULL), TN_OK);
    assert_int_equal(fill(s->south[0], to, 0x2222, other, NULL), TN_OK);
    expect_all(space_bytes(SOUTH, to) + 1, BYTES - 2, 0x22);
    tn_stream_release(other);
}

/* The wait failed, what was waited for is still queued, and no one gets the stage. */
static void expect_stuck(tn_status status, const tn_error *err, const spaces *s)
{
    assert_true(space_heal());
    assert_int_equal(status, TN_IO);
    assert_contains(err->message, "south:0: made to fail");
    assert_int_equal(space_look(SOUTH).queued, 1);
    assert_null(atomic_load(&s->south[0]->memory->stage));
    assert_non_null(atomic_load(&s->south[0]->memory->left));
}

static void stage_of_a_copy_that_is_still_queued_is_left(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    void *from = take(s.north[0]), *to = take(s.south[0]), *spare = take(s.south[0]);
    memset(space_bytes(NORTH, from), 0x11, BYTES);
    space_fail(6, TN_IO); /* pinned memory, a wait, in, a wait, out, the last wait */
    tn_status status = copy(s.south[0], to, s.north[0], from, NULL, &err);
    expect_stuck(status, &err, &s);
    use_the_stage(&s, spare);
    assert_int_equal(tn_stream_synchronize(tn_stream_default(s.south[0]), &err), TN_OK);
    expect_all(space_bytes(SOUTH, to), BYTES, 0x11);
    assert_int_equal(space_look(SOUTH).host_blocks, 2);
    tn_memory_trim(s.south[0]); /* takes the other one only */
    assert_int_equal(space_look(SOUTH).host_blocks, 1);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

static void stage_of_a_fill_that_is_still_queued_is_left(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    void *to = take(s.south[0]), *spare = take(s.south[0]);
    space_fail(3, TN_IO); /* pinned memory, out, the wait */
    tn_status status = fill(s.south[0], to, 0x1111, NULL, &err);
    expect_stuck(status, &err, &s);
    use_the_stage(&s, spare);
    assert_int_equal(tn_stream_synchronize(tn_stream_default(s.south[0]), &err), TN_OK);
    expect_all(space_bytes(SOUTH, to) + 1, BYTES - 2, 0x11);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* To north, which has no streams: what is on its way into the stage comes from south's. */
static void stage_that_is_still_written_to_is_left(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    void *from = take(s.south[0]), *to = take(s.north[0]);
    space_fail(2, TN_IO); /* in, the wait */
    assert_int_equal(copy(s.north[0], to, s.south[0], from, NULL, &err), TN_IO);
    assert_true(space_heal());
    assert_int_equal(space_look(SOUTH).queued, 0); /* the second wait went well */
    assert_null(atomic_load(&s.north[0]->memory->left));
    assert_non_null(atomic_load(&s.north[0]->memory->stage));
    atomic_store(&space_stuck, true);
    assert_int_equal(copy(s.north[0], to, s.south[0], from, NULL, &err), TN_IO);
    atomic_store(&space_stuck, false);
    assert_int_equal(space_look(SOUTH).queued, 1);
    assert_null(atomic_load(&s.north[0]->memory->stage));
    assert_non_null(atomic_load(&s.north[0]->memory->left));
    assert_int_equal(tn_stream_synchronize(tn_stream_default(s.south[0]), &err), TN_OK);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* Nothing was queued yet: the stage is free, however often this happens. */
static void stage_that_nothing_uses_is_given_back(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    void *from = take(s.north[0]), *to = take(s.south[0]);
    atomic_store(&space_stuck, true);
    for (int i = 0; i < 3; i++)
        assert_int_equal(copy(s.south[0], to, s.north[0], from, NULL, &err), TN_IO);
    atomic_store(&space_stuck, false);
    assert_null(atomic_load(&s.south[0]->memory->left));
    assert_int_equal(space_look(SOUTH).host_blocks, 1);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* What was queued is given up with everything else, and the stage is no one's any more. */
static void reset_ends_what_was_left(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    void *to = take(s.south[0]);
    space_fail(3, TN_IO);
    tn_status status = fill(s.south[0], to, 0x1111, NULL, &err);
    expect_stuck(status, &err, &s);
    assert_int_equal(tn_device_reset(s.south[0], &err), TN_OK);
    assert_null(atomic_load(&s.south[0]->memory->left));
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* Between two devices of a platform that does not join them the host helps out; within one device it
 * would hide that the module cannot do what every module must. */
static void unsupported_copy_within_a_device_is_told(void **state)
{
    spaces s;
    tn_error err = {0};
    (void)state;
    spaces_make(&s);
    for (int i = 0; i < SPACES; i++) {
        tn_device *device = i == NORTH ? s.north[1] : s.south[1];
        void *from = take(device), *to = take(device);
        int copies = space_look(i).copies;
        space_fail(1, TN_UNSUPPORTED);
        assert_int_equal(copy(device, to, device, from, NULL, &err), TN_UNSUPPORTED);
        assert_true(space_heal());
        assert_contains(err.message, "made to fail");
        assert_int_equal(space_look(i).copies, copies + 1);
        assert_int_equal(space_look(i).host_blocks, 0);
    }
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

/* A copy that names the default stream of where it comes from comes after what is queued there. */
static void copy_follows_the_default_stream_of_its_source(void **state)
{
    spaces s;
    tn_error err = {0};
    unsigned char bytes[BYTES];
    (void)state;
    spaces_make(&s);
    void *from = take(s.south[0]), *to = take(s.south[1]);
    tn_stream *standard = tn_stream_default(s.south[0]);
    memset(bytes, 0x77, sizeof bytes);
    memset(space_bytes(SOUTH, from), 0, BYTES);
    assert_int_equal(copy(s.south[0], from, NULL, bytes, standard, &err), TN_OK);
    assert_int_equal(space_look(SOUTH).queued, 1);
    assert_int_equal(copy(s.south[1], to, s.south[0], from, standard, &err), TN_OK);
    assert_int_equal(space_look(SOUTH).queued, 0);
    expect_all(space_bytes(SOUTH, to), BYTES, 0x77);
    spaces_end(&s);
    assert_true(spaces_are_empty());
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(stage_of_a_copy_that_is_still_queued_is_left),
        cmocka_unit_test(stage_of_a_fill_that_is_still_queued_is_left),
        cmocka_unit_test(stage_that_is_still_written_to_is_left),
        cmocka_unit_test(stage_that_nothing_uses_is_given_back),
        cmocka_unit_test(reset_ends_what_was_left),
        cmocka_unit_test(unsupported_copy_within_a_device_is_told),
        cmocka_unit_test(copy_follows_the_default_stream_of_its_source),
    };
    return run_suite("unit.memory_stage", tests);
}
