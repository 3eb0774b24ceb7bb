/* Problems: an accepted text gives an op whose text parses to the same op and is already in normal
 * form; each of the CPU's own rows reports whether it admits the op, or why not, and its time and
 * memory. */
#include "base/alloc.h"
#include "op/fields.h"
#include "tenon/module/kernel.h"
#include "tenon/module/module.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEVICE = 64 };

tn_module_entry_fn tni_cpu_module_entry;

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_text(const tn_op *op, const char *device)
{
    uint64_t key[TNI_KEY_MOST], again_key[TNI_KEY_MOST];
    tni_buffer text = {0}, again_text = {0};
    char again_device[DEVICE];
    double flops, bytes;
    tn_op again;
    tni_op_class_of(op->kind)->cost(op, &flops, &bytes);
    require(flops >= 0 && bytes >= 0);
    tni_problem_write(op, device, &text);
    require(!text.failed &&
            !tni_problem_parse(text.text, &again, again_device, sizeof again_device, NULL));
    size_t count = tni_op_key(op, key);
    require(count <= TNI_KEY_MOST && tni_op_key(&again, again_key) == count);
    require(memcmp(key, again_key, count * sizeof key[0]) == 0);
    tni_problem_write(&again, again_device, &again_text);
    require(!again_text.failed && strcmp(text.text, again_text.text) == 0);
    tni_buffer_release(&again_text);
    tni_buffer_release(&text);
}

static void require_row(const tn_kernel_row *row, const tn_op *op, int32_t threads)
{
    const tn_query query = {
        .struct_size = sizeof query, .op = op, .library_version = -1, .threads = threads};
    tn_refusal why = {.struct_size = sizeof why};
    tn_status status = row->admit ? row->admit(row, &query, &why) : TN_OK;
    require(status == TN_OK || (status == TN_UNSUPPORTED && why.code != TN_REFUSE_NONE));
    if (status)
        return;
    if (row->workspace)
        (void)row->workspace(row, &query);
    if (row->cost)
        (void)row->cost(row, &query);
}

static bool computes_with(const tn_kernel_row *row, tn_dtype dtype)
{
    const tn_dtype *known = row->dtypes;
    while (known && *known && *known != dtype)
        known++;
    return known && *known;
}

/* Calls only the rows that the core would call: those that honour all features of the op and
 * compute with its dtype. */
static void require_rows(const tn_op *op)
{
    static const tn_host host = {.struct_size = sizeof host};
    const tn_module *module = NULL;
    require(tni_cpu_module_entry(&host, &module, NULL) == TN_OK);
    for (const tn_kernel_row *const *row = module->kernels; *row; row++) {
        if ((*row)->op != op->kind || (*row)->library || op->uses & ~(*row)->honours ||
            !computes_with(*row, op->operand[0].dtype))
            continue;
        require_row(*row, op, 1);
        require_row(*row, op, 64);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char device[DEVICE] = "untouched";
    tn_error err = {0};
    tn_op op;
    char *text = tni_text_copy_part(size > 0 ? (const char *)data : "", size);
    require(text != NULL);
    tn_status status = tni_problem_parse(text, &op, device, sizeof device, &err);
    if (status)
        require(err.status == status && status == TN_INVALID_ARGUMENT && err.message[0] &&
                strcmp(device, "untouched") == 0);
    else {
        require_text(&op, device);
        require_rows(&op);
    }
    tni_release(text);
    return 0;
}
