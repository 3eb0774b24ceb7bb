/* Writes operands as text, for a bug report: one section per operand, one number per line. */
#include "base/dtype.h"
#include "base/form.h"
#include "check.h"
#include "op/element.h"
#include "op/walk.h"
#include "os/replace.h"
#include "tenon/version.h"

#include <inttypes.h>

static void add_entry(tni_buffer *to, const char *key, const char *value)
{
    to->failed = tni_form_write_entry(to, key, value, NULL) != TN_OK || to->failed;
}

static void add_numbers(tni_buffer *to, const char *key, const int64_t *numbers, int32_t count)
{
    tni_buffer text = {0};
    for (int32_t i = 0; i < count; i++)
        tni_buffer_format(&text, "%s%" PRId64, i ? " " : "", numbers[i]);
    to->failed = to->failed || text.failed;
    add_entry(to, key, tni_buffer_text(&text));
    tni_buffer_release(&text);
}

/* Floats and 64-bit integers are hexadecimal, to be exact; complex numbers have both parts; other
 * integers are decimal. */
static void add_element(tni_buffer *to, tn_dtype dtype, const char *at)
{
    tni_number x = tni_element_read(dtype, at);
    int64_t whole;
    if (dtype == TN_I64 || dtype == TN_U64) {
        memcpy(&whole, at, sizeof whole);
        tni_buffer_format(to, "0x%" PRIx64 "\n", (uint64_t)whole);
    } else if (tni_dtype_is_integer(dtype))
        tni_buffer_format(to, "%.0f\n", x.re);
    else if (tni_dtype_is_complex(dtype))
        tni_buffer_format(to, "%a %a\n", x.re, x.im);
    else
        tni_buffer_format(to, "%a\n", x.re);
}

/* `first` is the first element; the others follow by the strides of the layout. */
static void add_section(tni_buffer *to, const char *name, const tn_layout *layout,
                        const char *first)
{
    int64_t size = tni_dtype_bytes(layout->dtype);
    tni_place place = {{0}};
    to->failed = tni_form_write_section(to, name, NULL) != TN_OK || to->failed;
    add_entry(to, "dtype", tn_dtype_name(layout->dtype));
    add_numbers(to, "shape", layout->shape, layout->rank);
    add_numbers(to, "strides", layout->stride, layout->rank);
    if (!first)
        return;
    tni_buffer_add(to, "values = \"\"\"\n");
    do
        add_element(to, layout->dtype, first + tni_place_in(&place, layout) * size);
    while (tni_place_next(&place, layout));
    tni_buffer_add(to, "\"\"\"\n");
}

static void add_head(tni_buffer *to, const tni_dump *dump)
{
    tni_buffer problem = {0};
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, dump->seed);
    tni_problem_write(dump->operands->op, tn_device_id(dump->operands->device), &problem);
    to->failed = to->failed || problem.failed;
    add_entry(to, "problem", tni_buffer_text(&problem));
    add_entry(to, "kernel", dump->kernel);
    add_entry(to, "seed", seed);
    add_entry(to, "tenon", tn_version());
    tni_buffer_release(&problem);
}

tn_status tni_dump_write(const tni_dump *dump, tn_error *err)
{
    const tni_operands *operands = dump->operands;
    const tni_op_class *class = tni_op_class_of(operands->op->kind);
    const tn_layout *out = &operands->op->operand[dump->output];
    const tni_operand *written = tni_operands_at(operands, dump->output);
    void *host[TN_OP_OPERANDS_MAX];
    tn_layout dense = *out;
    tni_buffer text = {0};
    tni_operands_on_host(operands, host);
    add_head(&text, dump);
    for (int32_t i = 0; i < operands->op->count; i++) {
        if (operands->op->operand[i].dtype)
            add_section(&text, class->operands[i], &operands->op->operand[i], host[i]);
    }
    tni_layout_dense(&dense);
    add_section(&text, "found", out, (const char *)dump->found + written->first);
    if (dump->expected)
        add_section(&text, "expected", &dense, dump->expected);
    tn_status status = text.failed ? tn_fail(err, TN_OUT_OF_MEMORY, 0, "tn_check",
                                             "no memory for the contents of %s", dump->path)
                                   : tni_file_replace(dump->path, text.text, text.length, err);
    tni_buffer_release(&text);
    return status;
}
