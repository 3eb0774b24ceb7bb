/* Lists of known facts about kernels, and verdicts on them: any file is refused with a place, or
 * gives a list within its bounds; a verdict survives being written and read again. */
#include "base/alloc.h"
#include "op/op.h"
#include "policy/admission/admission_store.h"
#include "policy/admission/notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void require_words(const tni_note_words *words)
{
    require(!words->word[TNI_NOTE_WORDS][0]);
    for (size_t i = 0; i < TNI_NOTE_WORDS; i++)
        require(memchr(words->word[i], 0, sizeof words->word[i]) != NULL);
}

static void require_bounds(const tni_note *note)
{
    require(!note->library != !note->kernel);
    require(note->version_low <= note->version_high && note->version_low >= -1);
    require(note->op == TN_OP_NONE || tni_op_class_of(note->op));
    require(!note->uses || note->op);
    require(!note->dtypes[TN_DEVICE_DTYPES_MAX - 1]);
    require_words(&note->architectures);
    require_words(&note->without);
}

static void try_list(const char *text, size_t size)
{
    tni_notes notes = {0};
    tn_error err = {0};
    if (tni_notes_parse(text, size, "fuzz", &notes, &err)) {
        require(err.status == TN_CORRUPT && strncmp(err.message, "fuzz:", 5) == 0);
        return;
    }
    for (size_t i = 0; i < notes.count; i++)
        require_bounds(&notes.notes[i]);
    tni_notes_release(&notes);
}

static void try_verdict(const char *text, size_t size)
{
    static const tn_kernel_row row = {.name = "a.b.c"};
    static const tni_kernel kernel = {.row = &row};
    tni_trust trust, again;
    tni_buffer written = {0};
    tn_error err = {0};
    if (tni_trust_read(text, size, &trust, &err)) {
        require(err.status == TN_CORRUPT && err.message[0]);
        return;
    }
    require(trust.verdict == TNI_TRUST_PASSED || trust.verdict == TNI_TRUST_APART ||
            trust.verdict == TNI_TRUST_QUARANTINED);
    require(tni_trust_write(&(tni_exam){.kernel = &kernel}, &trust, &written, &err) == TN_OK);
    require(tni_trust_read(written.text, written.length, &again, &err) == TN_OK);
    require(again.verdict == trust.verdict && strcmp(again.text, trust.text) == 0);
    tni_buffer_release(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_list((const char *)data, size);
    try_verdict((const char *)data, size);
    require(tn_allocator_blocks() == 0);
    return 0;
}
