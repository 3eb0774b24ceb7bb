/* What a reset of its device leaves of a tensor: a handle that frees nothing. */
#include "memory_spaces.h"

#include "tenon/dlpack.h"
#include "tenon/log.h"
#include "tenon/tensor.h"

static const int64_t shape[] = {64};
static int log_lines;

static void hear(void *user, int32_t level, const char *text)
{
    (void)user, (void)level, (void)text;
    log_lines++;
}

static const tn_log_sink ear = {.struct_size = sizeof ear, .write = hear, .level = TN_LOG_ERROR};

/* A world in which every allocation has one address, as a device that was opened anew may give again
 * what it gave before. */
static void make(spaces *s)
{
    static _Alignas(64) char memory[256];
    spaces_make(s);
    for (size_t i = 0; i < SPACE_DEVICES; i++)
        spaces_keep(s->south[i], false);
    atomic_store(&space_gives, memory);
    log_lines = 0;
    assert_int_equal(tn_log_set(&ear, NULL), TN_OK);
}

static void end(spaces *s)
{
    assert_int_equal(tn_log_set(NULL, NULL), TN_OK);
    spaces_end(s);
}

static tn_memory_stats stats_of(const tn_device *device)
{
    tn_memory_stats stats = {.struct_size = sizeof stats};
    assert_int_equal(tn_memory_stats_get(device, &stats, NULL), TN_OK);
    return stats;
}

/* Loses the device, opens it anew and takes memory, which lies where that of `before` was. */
static void *begin_anew(const spaces *s, const tn_tensor *before)
{
    void *memory = NULL, *none = NULL;
    tn_error err = {0};
    const void *was = before->data;
    space_lose(SOUTH, 0);
    assert_int_equal(tn_memory_alloc(s->south[0], 1, NULL, &none, &err), TN_DEVICE_LOST);
    assert_int_equal(tn_device_reset(s->south[0], &err), TN_OK);
    assert_int_equal(tn_memory_alloc(s->south[0], 256, "new", &memory, &err), TN_OK);
    assert_ptr_equal(memory, was);
    return memory;
}

/* What is held is held still, and nothing was said. */
static void expect_untouched(const spaces *s, int frees)
{
    tn_memory_stats now = stats_of(s->south[0]);
    assert_int_equal(now.count, 1);
    assert_int_equal(now.current, 256);
    assert_int_equal(now.wrong_frees, 0);
    assert_int_equal(space_look(SOUTH).frees, frees);
    assert_int_equal(log_lines, 0);
}

static void tensor_of_an_earlier_life_frees_nothing(void **state)
{
    spaces s;
    tn_tensor tensor = {0}, view = {0}, next = {0};
    tn_error err = {0};
    (void)state;
    make(&s);
    assert_int_equal(tn_tensor_create(s.south[0], TN_F32, shape, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_tensor_view(&tensor, &view, &err), TN_OK);
    void *memory = begin_anew(&s, &tensor);
    int frees = space_look(SOUTH).frees;
    tn_tensor_release(&tensor);
    tn_tensor_release(&view);
    expect_untouched(&s, frees);
    tn_memory_free(s.south[0], memory);
    assert_int_equal(space_look(SOUTH).frees, frees + 1);
    assert_int_equal(tn_tensor_create(s.south[0], TN_F32, shape, 1, &next, &err), TN_OK);
    tn_tensor_release(&next); /* one of this life does */
    assert_int_equal(space_look(SOUTH).frees, frees + 2);
    assert_int_equal(stats_of(s.south[0]).count, 0);
    end(&s);
}

/* The consumer does its duty however late. */
static void exported_tensor_of_an_earlier_life_frees_nothing(void **state)
{
    spaces s;
    tn_tensor tensor = {0};
    tn_dlpack_versioned *versioned = NULL;
    tn_dlpack_managed *legacy = NULL;
    tn_error err = {0};
    (void)state;
    make(&s);
    assert_int_equal(tn_tensor_create(s.south[0], TN_F32, shape, 1, &tensor, &err), TN_OK);
    assert_int_equal(tn_dlpack_export(&tensor, -1, &versioned, &err), TN_OK);
    assert_int_equal(tn_dlpack_export_legacy(&tensor, -1, &legacy, &err), TN_OK);
    void *memory = begin_anew(&s, &tensor);
    int frees = space_look(SOUTH).frees;
    tn_tensor_release(&tensor);
    versioned->deleter(versioned);
    legacy->deleter(legacy);
    expect_untouched(&s, frees);
    tn_memory_free(s.south[0], memory);
    end(&s);
}

/* Memory that the program freed under its tensor is still called a wrong free. */
static void memory_freed_under_its_tensor_is_told(void **state)
{
    spaces s;
    tn_tensor tensor = {0};
    tn_error err = {0};
    (void)state;
    make(&s);
    assert_int_equal(tn_tensor_create(s.south[0], TN_F32, shape, 1, &tensor, &err), TN_OK);
    tn_memory_free(s.south[0], tensor.data);
    tn_tensor_release(&tensor);
    assert_int_equal(stats_of(s.south[0]).wrong_frees, 1);
    assert_int_equal(log_lines, 1);
    end(&s);
}

/* What is kept of an earlier life is given to no request of a later one. */
static void kept_memory_is_of_one_life(void **state)
{
    spaces s;
    void *memory = NULL, *again = NULL;
    uint32_t life = 7;
    tn_error err = {0};
    (void)state;
    make(&s);
    spaces_keep(s.south[1], true);
    assert_int_equal(tni_memory_acquire(s.south[1], 100, NULL, &memory, &life, &err), TN_OK);
    tni_memory_release(s.south[1], memory, life);
    assert_null(tni_keep_reuse(s.south[1]->memory, life + 1, tni_class_of(100), 100, 0));
    again = tni_keep_reuse(s.south[1]->memory, life, tni_class_of(100), 100, 0);
    assert_ptr_equal(again, memory);
    end(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_of_an_earlier_life_frees_nothing),
        cmocka_unit_test(exported_tensor_of_an_earlier_life_frees_nothing),
        cmocka_unit_test(memory_freed_under_its_tensor_is_told),
        cmocka_unit_test(kept_memory_is_of_one_life),
    };
    return run_suite("unit.tensor_reset", tests);
}
