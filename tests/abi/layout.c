/* The binary interface is the recorded one, apart from additions. tests/abi/record.py writes recorded.def and says when it
 * has to; a change that is on purpose also gets its line in docs/abi-changes.md. */
#include "test.h"

#include "tenon/module/attention.h"
#include "tenon/module/attention_sparse.h"
#include "tenon/module/communicator.h"
#include "tenon/module/cpu.h"
#include "tenon/module/device.h"
#include "tenon/module/dtype.h"
#include "tenon/module/kernel.h"
#include "tenon/module/language.h"
#include "tenon/module/library.h"
#include "tenon/module/machine.h"
#include "tenon/module/module.h"
#include "tenon/module/platform.h"
#include "tenon/module/walk.h"
#include "tenon/tenon.h"

#include <stdbool.h>

/* A struct, or a field of the struct before it. For machines whose longs and pointers have 64 bits. */
struct row {
    const char *type;
    const char *field; /* NULL for the struct itself */
    size_t offset, size;
    size_t golden_offset, golden_size;
};

#define STRUCT(type, size) {#type, NULL, 0, sizeof(type), 0, (size)},
#define FIELD(type, field, offset, size) \
    {#type, #field, offsetof(type, field), sizeof(((type *)0)->field), (offset), (size)},
#define NUMBER(name, golden)
#define FUNCTION(result, name, parameters)
static const struct row rows[] = {
#include "recorded.def"
};
#undef STRUCT
#undef FIELD
#undef NUMBER
enum { ROWS = sizeof rows / sizeof rows[0] };

#define STRUCT(type, size)
#define FIELD(type, field, offset, size)
#define NUMBER(name, golden) {#name, (uint64_t)(name), UINT64_C(golden)},
static const struct {
    const char *name;
    uint64_t value, golden;
} numbers[] = {
#include "recorded.def"
};
#undef NUMBER
#undef FUNCTION

#define NUMBER(name, golden)
#define FUNCTION(result, name, parameters) \
    {#name, _Generic(&(name), result(*) parameters : true, default : false)},
static const struct {
    const char *name;
    bool is_same;
} functions[] = {
#include "recorded.def"
};

static const char *field_of(const struct row *row)
{
    return row->field ? row->field : "itself";
}

static void every_field_is_where_it_was(void **state)
{
    int wrong = 0;
    (void)state;
    if (sizeof(void *) != 8 || sizeof(long) != 8)
        skip_because("the golden offsets are those of 64-bit longs and pointers");
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (r->offset == r->golden_offset && r->size == r->golden_size)
            continue;
        print_message("%s %s: %zu bytes at %zu; they were %zu at %zu\n", r->type, field_of(r),
                      r->size, r->offset, r->golden_size, r->golden_offset);
        wrong++;
    }
    if (wrong)
        print_message("see tests/abi/record.py\n");
    assert_int_equal(wrong, 0);
}

/* Nothing lies between fields or behind the last, so a field that is missing in the table, and
 * padding, both show as a gap. */
static void the_fields_of_the_table_fill_each_struct(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS;) {
        const struct row *whole = &rows[i++];
        size_t end = 0;
        assert_null(whole->field);
        for (; i < ROWS && rows[i].field; i++) {
            assert_string_equal(rows[i].type, whole->type);
            if (rows[i].offset != end)
                fail_msg("%s has %zu bytes at %zu, before %s, that the table does not name",
                         whole->type, rows[i].offset - end, end, rows[i].field);
            end += rows[i].size;
        }
        if (end != whole->size)
            fail_msg("%s has %zu bytes; the table's fields end at %zu", whole->type, whole->size,
                     end);
    }
}

static void every_number_means_what_it_did(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value == numbers[i].golden)
            continue;
        print_message("%s is %llu; it was %llu\n", numbers[i].name,
                      (unsigned long long)numbers[i].value, (unsigned long long)numbers[i].golden);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void every_function_has_its_type(void **state)
{
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (functions[i].is_same)
            continue;
        print_message("%s has another result or other parameters than recorded\n",
                      functions[i].name);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_where_it_was),
        cmocka_unit_test(the_fields_of_the_table_fill_each_struct),
        cmocka_unit_test(every_number_means_what_it_did),
        cmocka_unit_test(every_function_has_its_type),
    };
    return run_suite("abi.layout", tests);
}
