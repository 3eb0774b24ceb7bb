/* How a machine is built, as a platform tells it: what is kept of that, what is refused, and what
 * becomes of it where a platform cannot tell. */
#include "fault/fault.h"
#include "topology_shape.h"

struct teller {
    tn_topology_object objects[4];
    int count;
    const char *source;  /* NULL: it does not say */
    bool goes_on;        /* after a failure       */
    tn_status status;    /* its own, at the end   */
    const char *message; /* of that; NULL: none   */
    int calls;
};

static tn_status tell(void *self, const tn_topology_sink *sink, tn_error *err)
{
    struct teller *teller = self;
    tn_error unused;
    assert_int_equal(sink->struct_size, sizeof *sink);
    teller->calls++;
    for (int i = 0; i < teller->count; i++) {
        tn_status status = sink->add(sink->self, &teller->objects[i], i % 2 ? NULL : &unused);
        if (status && !teller->goes_on)
            return tn_fail(err, status, 0, "teller", "in its own words");
    }
    if (teller->source && sink->source(sink->self, teller->source, &unused) && !teller->goes_on)
        return TN_INTERNAL;
    if (teller->status && teller->message)
        return tn_fail(err, teller->status, 0, "teller", "%s", teller->message);
    return teller->status;
}

static const tn_platform_row telling = {
    .struct_size = sizeof telling, .name = "teller", .topology = tell};

static const tn_topology_object the_machine = {.struct_size = sizeof the_machine,
                                               .type = TN_TOPOLOGY_MACHINE,
                                               .parent = -1,
                                               .number = -1,
                                               .speed_class = -1};

static tn_topology_object object(int32_t type, int32_t parent, int32_t number)
{
    return (tn_topology_object){.struct_size = sizeof(tn_topology_object),
                                .type = type,
                                .parent = parent,
                                .number = number,
                                .speed_class = -1};
}

static struct teller good_teller(void)
{
    return (struct teller){
        .objects = {the_machine, object(TN_TOPOLOGY_CORE, 0, 7), object(TN_TOPOLOGY_THREAD, 1, 3)},
        .count = 3,
        .source = "teller 1.0"};
}

static void what_is_told_is_kept(void **state)
{
    struct teller teller = good_teller();
    tn_topology *topology = NULL;
    tn_error err;
    (void)state;
    teller.objects[1].speed_class = 2;
    teller.objects[2].usable = 1;
    assert_int_equal(tni_topology_collect(&telling, &teller, &topology, &err), TN_OK);
    assert_string_equal(shape_write(topology), "machine(core 7(thread 3))");
    assert_string_equal(tn_topology_source(topology), "teller 1.0");
    assert_int_equal(tn_topology_get(topology, 1)->speed_class, 2);
    assert_int_equal(tn_topology_get(topology, 2)->usable, 1);
    tn_topology_release(topology);
    teller.source = NULL;
    assert_int_equal(tni_topology_collect(&telling, &teller, &topology, NULL), TN_OK);
    assert_string_equal(tn_topology_source(topology), "platform teller");
    tn_topology_release(topology);
    teller.source = "two\nlines";
    assert_int_equal(tni_topology_collect(&telling, &teller, &topology, NULL), TN_OK);
    assert_string_equal(tn_topology_source(topology), "two?lines");
    tn_topology_release(topology);
}

static void refused(struct teller *teller, const char *words)
{
    tn_topology *topology = NULL;
    int64_t blocks = tn_allocator_blocks();
    for (int goes_on = 0; goes_on <= 1; goes_on++) {
        tn_error err = {0};
        teller->goes_on = goes_on;
        assert_int_equal(tni_topology_collect(&telling, teller, &topology, &err),
                         TN_INVALID_ARGUMENT);
        assert_contains(err.message, words);
        assert_int_equal(tni_topology_collect(&telling, teller, &topology, NULL),
                         TN_INVALID_ARGUMENT);
    }
    assert_null(topology);
    assert_int_equal(tn_allocator_blocks(), blocks);
}

/* The last object of a good teller is `bad` instead. */
static void refused_object(tn_topology_object bad, const char *words)
{
    struct teller teller = good_teller();
    teller.objects[2] = bad;
    refused(&teller, words);
}

static void nonsense_is_refused(void **state)
{
    tn_topology_object bad = object(TN_TOPOLOGY_THREAD, 1, 3);
    (void)state;
    refused_object(object(TN_TOPOLOGY_CORE, 2, 5),
                   "object 2 (core 5, parent 2, level 0): its parent must come before it");
    refused_object(object(TN_TOPOLOGY_CORE, -1, 5), "its parent must come before it");
    refused_object(object(TN_TOPOLOGY_CORE, INT32_MAX, 5), "its parent must come before it");
    refused_object(object(TN_TOPOLOGY_MACHINE, 0, -1), "only the first object can be the machine");
    refused_object(object(TN_TOPOLOGY_TYPE_COUNT, 0, 1), "object 2: type: expected 0 to 6, got 7");
    refused_object(object(-1, 0, 1), "type: expected 0 to 6, got -1");
    refused_object(object(TN_TOPOLOGY_CORE, 0, -2), "its number is below -1");
    refused_object(object(TN_TOPOLOGY_CACHE, 0, -1),
                   "a cache needs a level from 1 to 16, other objects need 0");
    bad.level = 1;
    refused_object(bad, "object 2 (thread 3, parent 1, level 1): a cache needs a level");
    bad = object(TN_TOPOLOGY_CACHE, 0, -1);
    bad.level = 17;
    refused_object(bad, "a cache needs a level");
    bad.level = 2;
    bad.bytes = -1;
    refused_object(bad, "its size is negative");
    bad = object(TN_TOPOLOGY_THREAD, 1, 3);
    bad.usable = 2;
    refused_object(bad, "usable is neither 0 nor 1");
    bad.usable = 0;
    bad.speed_class = -2;
    refused_object(bad, "its speed class is below -1");
    bad = object(TN_TOPOLOGY_THREAD, 1, 3);
    bad.struct_size--;
    refused_object(bad, "object 2: struct_size: expected at least");
}

static void misplaced_beginnings_are_refused(void **state)
{
    struct teller teller = good_teller();
    (void)state;
    teller.objects[0] = object(TN_TOPOLOGY_PACKAGE, -1, 0);
    refused(&teller,
            "object 0 (package 0, parent -1, level 0): the first object must be the machine");
    teller.objects[0] = object(TN_TOPOLOGY_MACHINE, 0, -1);
    refused(&teller, "the machine has no parent");
    teller = good_teller();
    teller.objects[3] = object(TN_TOPOLOGY_THREAD, 2, 9);
    teller.count = 4;
    refused(&teller, "object 3 (thread 9, parent 2, level 0): its parent is a thread");
    teller.count = 0;
    refused(&teller, "platform teller returned no objects, not even the machine");
}

/* A module that never ends is ended. */
static tn_status tell_forever(void *self, const tn_topology_sink *sink, tn_error *err)
{
    tn_topology_object next = the_machine;
    tn_status status = TN_OK;
    (void)self;
    for (long i = 0; !status && i < 5000000; i++) {
        status = sink->add(sink->self, &next, err);
        next = object(TN_TOPOLOGY_CORE, 0, (int32_t)i);
    }
    return status;
}

static void there_is_an_end(void **state)
{
    tn_platform_row row = telling;
    tn_topology *topology = NULL;
    tn_error err = {0};
    (void)state;
    row.topology = tell_forever;
    assert_int_equal(tni_topology_collect(&row, NULL, &topology, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "expected at most 1048576 objects");
}

/* Where a platform cannot tell, the system is read; where it fails, that is said. */
static void what_is_not_told_is_read(void **state)
{
    static const tn_platform_row silent = {.struct_size = sizeof silent, .name = "silent"};
    static const tn_platform_row old = {
        .struct_size = TN_UP_TO(tn_platform_row, copy), .name = "old", .topology = tell};
    struct teller teller = good_teller();
    tn_topology *topology = NULL;
    tn_error err = {0};
    (void)state;
    assert_int_equal(tni_topology_collect(NULL, NULL, &topology, &err), TN_OK);
    shape_check(topology);
    assert_string_equal(tn_topology_source(topology),
                        "a basic reading of the system: no module offers the platform cpu");
    tn_topology_release(topology);
    assert_int_equal(tni_topology_collect(&silent, NULL, &topology, &err), TN_OK);
    assert_contains(tn_topology_source(topology), "system: platform silent does not report it");
    tn_topology_release(topology);
    assert_int_equal(tni_topology_collect(&old, &teller, &topology, &err), TN_OK);
    assert_contains(tn_topology_source(topology), "system: platform old does not report it");
    tn_topology_release(topology);
    assert_int_equal(teller.calls, 0);
    teller.status = TN_UNAVAILABLE;
    teller.message = "it is\tabroad";
    assert_int_equal(tni_topology_collect(&telling, &teller, &topology, &err), TN_OK);
    assert_string_equal(tn_topology_source(topology), "a basic reading of the system: it is\\x09"
                                                      "abroad");
    assert_int_equal(
        shape_thread(topology, 3) >= 0 && shape_count(topology, TN_TOPOLOGY_THREAD, 0) == 1, 0);
    tn_topology_release(topology);
    teller.message = NULL;
    assert_int_equal(tni_topology_collect(&telling, &teller, &topology, &err), TN_OK);
    assert_contains(tn_topology_source(topology), "system: it gave no reason");
    tn_topology_release(topology);
}

static void failures_are_passed_on(void **state)
{
    struct teller teller = good_teller();
    tn_topology *topology = NULL;
    tn_error err = {0};
    int64_t blocks = tn_allocator_blocks();
    (void)state;
    teller.status = TN_IO;
    teller.message = "it broke";
    assert_int_equal(tni_topology_collect(&telling, &teller, &topology, &err), TN_IO);
    assert_string_equal(err.message, "it broke");
    assert_null(topology);
    assert_int_equal(tn_allocator_blocks(), blocks);
}

static void collecting_without_memory(void **state)
{
    bool fired = true;
    (void)state;
    for (long n = 1; fired; n++) {
        struct teller teller = good_teller();
        tn_topology *topology = NULL;
        tn_error err = {0};
        struct fault_state before = fault_look();
        teller.goes_on = n % 2;
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = tni_topology_collect(&telling, &teller, &topology, &err);
        fired = fault_end(&fault_memory);
        if (fired)
            assert_true(status == TN_OUT_OF_MEMORY || status == TN_INTERNAL);
        assert_true(fired == !topology);
        tn_topology_release(topology);
        assert_int_equal(fault_left(before, "collect", n), 0);
    }
}

static void types_have_words(void **state)
{
    static const char *const words[] = {"machine", "package", "die",   "node",
                                        "cache",   "core",    "thread"};
    (void)state;
    for (int32_t i = 0; i < TN_TOPOLOGY_TYPE_COUNT; i++)
        assert_string_equal(tn_topology_type_name(i), words[i]);
    assert_string_equal(tn_topology_type_name(-1), "unknown");
    assert_string_equal(tn_topology_type_name(TN_TOPOLOGY_TYPE_COUNT), "unknown");
    assert_int_equal(tn_topology_count(NULL), 0);
    assert_null(tn_topology_get(NULL, 0));
    assert_string_equal(tn_topology_source(NULL), "");
    tn_topology_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_kept),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(misplaced_beginnings_are_refused),
        cmocka_unit_test(there_is_an_end),
        cmocka_unit_test(what_is_not_told_is_read),
        cmocka_unit_test(failures_are_passed_on),
        cmocka_unit_test(collecting_without_memory),
        cmocka_unit_test(types_have_words),
    };
    fault_memory_install();
    return run_suite("unit.topology_told", tests);
}
