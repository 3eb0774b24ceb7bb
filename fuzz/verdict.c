/* What a probe process reports about a module: any bytes are refused, or give a verdict within its
 * bounds that survives being written and read again. */
#include "registry/verdict.h"
#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_bounds(const tni_verdict *verdict)
{
    require(verdict->stage >= TN_STAGE_FOUND && verdict->stage <= TN_STAGE_READY);
    require(verdict->status >= TN_OK && verdict->status < TN_STATUS_COUNT);
    require(memchr(verdict->name, 0, sizeof verdict->name) &&
            memchr(verdict->version, 0, sizeof verdict->version) &&
            memchr(verdict->message, 0, sizeof verdict->message) &&
            memchr(verdict->remedy, 0, sizeof verdict->remedy));
}

static void require_same(const tni_verdict *a, const tni_verdict *b)
{
    require(a->stage == b->stage && a->status == b->status && a->abi_major == b->abi_major &&
            a->abi_minor == b->abi_minor && a->ended_badly == b->ended_badly);
    require(strcmp(a->name, b->name) == 0 && strcmp(a->version, b->version) == 0 &&
            strcmp(a->message, b->message) == 0 && strcmp(a->remedy, b->remedy) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tni_verdict verdict, again;
    tni_buffer text = {0};
    tn_error err = {0};
    if (tni_verdict_read((const char *)data, size, &verdict, &err)) {
        require(err.status == TN_CORRUPT && err.message[0]);
    } else {
        require_bounds(&verdict);
        require(tni_verdict_write(&verdict, &text, &err) == TN_OK);
        require(tni_verdict_read(text.text, text.length, &again, &err) == TN_OK);
        require(again.complete);
        require_same(&verdict, &again);
    }
    tni_buffer_release(&text);
    require(tn_allocator_blocks() == 0);
    return 0;
}
