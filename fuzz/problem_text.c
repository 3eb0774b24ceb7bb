/* Problems: whatever is taken in is an op whose text is read as the same op, and is its own text. */
#include "base/alloc.h"
#include "ops/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { DEVICE = 64 };

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
    else
        require_text(&op, device);
    tni_release(text);
    return 0;
}
