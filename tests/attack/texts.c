/* Damaged texts for everything that reads one. Each is taken or rejected with a message of printable UTF-8. */
#include "attack.h"

enum { TEXTS = 3000, ROOM = 2048 };

/* Returns whether `text` is UTF-8 without control characters. */
static bool is_printable(const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int more = *at < 0x80       ? 0
                   : *at >> 5 == 6  ? 1
                   : *at >> 4 == 14 ? 2
                   : *at >> 3 == 30 ? 3
                                    : -1;
        if (more < 0 || *at < ' ' || *at == 0x7F)
            return false;
        for (at++; more > 0; more--, at++)
            if ((*at & 0xC0) != 0x80)
                return false;
    }
    return true;
}

static void check_answer(const attack *self, const char *what, tn_status status,
                         const tn_error *err)
{
    if (status == TN_OK || status == TN_NOT_FOUND || status == TN_UNAVAILABLE)
        ;
    else
        attack_check_status(self, what, status, err);
    if (status && !is_printable(err->message))
        attack_found(self, "%s: its message is not printable: %s", what, err->message);
}

/* A few bytes of the text are changed, removed, doubled, or joined by words and bytes that mean something. */
static void damage_text(dice *d, char text[ROOM])
{
    static const char *const parts[] = {":",
                                        ",",
                                        "=",
                                        ";",
                                        "@",
                                        "x",
                                        "-1",
                                        "0",
                                        "9",
                                        "nan",
                                        "\n",
                                        "inf",
                                        "\xff",
                                        "\xc3\xa9",
                                        "  ",
                                        "1e999",
                                        "99999999999999999999",
                                        "%s%n",
                                        "\"",
                                        "\\",
                                        "*",
                                        "/"};
    for (int64_t n = dice_range(d, 1, 4); n-- > 0;) {
        size_t length = strlen(text), at = (size_t)dice_range(d, 0, (int64_t)length);
        switch (dice_range(d, 0, 3)) {
        case 0: text[at] = (char)(at < length ? dice_range(d, 1, 255) : 0); break;
        case 1: memmove(text + at, text + at + (at < length), length - at + (at == length)); break;
        case 2:
            if (length + 40 < ROOM) {
                const char *part = DICE_PICK(d, parts);
                memmove(text + at + strlen(part), text + at, length - at + 1);
                memcpy(text + at, part, strlen(part));
            }
            break;
        default:
            if (length * 2 < ROOM)
                memmove(text + length, text + at, length - at + 1);
            break;
        }
    }
}

static void random_text(dice *d, const char *device, char text[ROOM])
{
    static const char *const others[] = {"determinism=batch-invariant",
                                         "rules=forbid:library:openblas,prefer:matmul/backend:ref",
                                         "cpu.threads=4",
                                         "workspace.limit=16m",
                                         "cuda.sdp_priority=math,flash",
                                         "debug.sample=0.5",
                                         "matmul/library:openblas",
                                         "cpu.matmul.*",
                                         "attention.backend=FLASH_ATTN",
                                         "9.0",
                                         "sm_90a",
                                         "best",
                                         "cpu:0",
                                         "cuda",
                                         "cpu[memory>1g]",
                                         "warning"};
    if (dice_one_in(d, 2))
        attack_problem(d, device, text);
    else
        snprintf(text, ROOM, "%s", DICE_PICK(d, others));
}

static void read_text(attack *self, const char *text)
{
    tn_error err = {0};
    tn_decision *decision = NULL;
    tn_context *context = NULL;
    tn_change change;
    tn_capability capability;
    tn_device *device;
    const tn_library *library;
    int32_t level;
    tn_status status = tn_explain(NULL, text, &decision, &err);
    check_answer(self, "tn_explain", status, &err);
    self->accepted += status == TN_OK;
    tn_decision_release(decision);
    status = tn_setting_parse(text, &change, &err);
    check_answer(self, "tn_setting_parse", status, &err);
    if (!status) {
        self->accepted++;
        check_answer(self, "tn_context_derive", tn_context_derive(NULL, &change, 1, &context, &err),
                     &err);
        tn_context_release(context);
    }
    check_answer(self, "tn_selector_check", tn_selector_check(text, &err), &err);
    check_answer(self, "tn_capability_parse", tn_capability_parse(text, &capability, &err), &err);
    check_answer(self, "tn_device_get", tn_device_get(text, &device, &err), &err);
    check_answer(self, "tn_library_get", tn_library_get(text, &library, &err), &err);
    check_answer(self, "tn_log_level_parse", tn_log_level_parse(text, &level, &err), &err);
}

void attack_texts(attack *self)
{
    char text[ROOM];
    for (int i = 0; i < TEXTS; i++) {
        random_text(&self->dice, self->device, text);
        damage_text(&self->dice, text);
        self->tried++;
        read_text(self, text);
    }
}
