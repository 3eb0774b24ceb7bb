/* Selections as text: what is written is read back, whatever is wrong is refused where it stands, and no
 * changed byte goes unseen. */
#include "test.h"

#include "base/alloc.h"
#include "fault/fault.h"
#include "policy/tuning/selection.h"
#include "tenon/module/kernel.h"
#include "tenon/version.h"

/* Dice that fall the same way in every run. */
static uint64_t dice = 1;

static uint32_t roll(uint32_t below)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(dice >> 33) % below;
}

static const char *word_of(char room[64])
{
    static const char *const letters[] = {"a", "Z", "0",  " ", "#", "\"", "\\",
                                          "=", "]", "\t", ".", "ä", "\n", "€"};
    room[0] = '\0';
    for (uint32_t i = roll(12); i > 0; i--)
        strcat(room, letters[roll(sizeof letters / sizeof letters[0])]);
    return room;
}

static void sign(tni_buffer *text)
{
    assert_int_equal(tni_selections_sign(text, NULL), TN_OK);
}

static void assert_setups_same(const tni_setup *a, const tni_setup *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->architecture, b->architecture);
    assert_string_equal(a->driver, b->driver);
    assert_int_equal(a->threads, b->threads);
    assert_string_equal(a->libraries, b->libraries);
}

static void assert_same(const tni_selection *a, const tni_selection *b)
{
    assert_string_equal(a->problem, b->problem);
    assert_string_equal(a->device, b->device);
    assert_string_equal(a->kernel, b->kernel);
    assert_int_equal(a->version, b->version);
    assert_string_equal(a->module, b->module);
    assert_string_equal(a->library, b->library);
    assert_int_equal(a->library_version, b->library_version);
    assert_int_equal(a->numerics, b->numerics);
    assert_string_equal(a->settings, b->settings);
    assert_int_equal(a->ns, b->ns);
}

enum { MOST = 6 };

/* A text of random setups and selections, with the texts that they point to. */
typedef struct sample {
    tni_setup setups[MOST];
    tni_selection selections[MOST];
    size_t setup_count, count;
    bool strict;
    char ids[MOST][16], problems[MOST][64], words[MOST][8][64];
} sample;

static void roll_sample(sample *out)
{
    *out = (sample){.setup_count = 1 + roll(MOST), .count = roll(MOST + 1), .strict = roll(2)};
    for (uint32_t i = 0; i < out->setup_count; i++) {
        snprintf(out->ids[i], sizeof out->ids[i], "dev-%u:%u", i, roll(9));
        out->setups[i] = (tni_setup){.id = out->ids[i],
                                     .name = word_of(out->words[i][0]),
                                     .architecture = word_of(out->words[i][1]),
                                     .driver = word_of(out->words[i][2]),
                                     .threads = roll(3),
                                     .libraries = word_of(out->words[i][3])};
    }
    for (uint32_t i = 0; i < out->count; i++) {
        snprintf(out->problems[i], sizeof out->problems[i], "matmul:f32:m=%u,n=8,k=8", i + 1);
        out->selections[i] = (tni_selection){.problem = out->problems[i],
                                             .device = out->ids[roll((uint32_t)out->setup_count)],
                                             .kernel = "cpu.matmul.some",
                                             .version = 1 + roll(4),
                                             .module = word_of(out->words[i][4]),
                                             .library = word_of(out->words[i][5]),
                                             .library_version = (int64_t)roll(4) - 1,
                                             .numerics = roll(TN_NUM_KNOWN + 1),
                                             .settings = word_of(out->words[i][6]),
                                             .ns = roll(2) ? 0 : (int64_t)roll(2000000) + 1};
    }
}

static void write_sample(const sample *from, tni_buffer *text)
{
    assert_int_equal(tni_selections_begin(text, from->strict, NULL), TN_OK);
    for (size_t i = 0; i < from->setup_count; i++)
        assert_int_equal(tni_selections_add_setup(text, &from->setups[i], NULL), TN_OK);
    for (size_t i = 0; i < from->count; i++)
        assert_int_equal(tni_selections_add(text, &from->selections[i], NULL), TN_OK);
    sign(text);
}

static void random_selections_survive(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 500; i++) {
        sample written;
        tni_selections read = {0};
        tni_buffer text = {0};
        tn_error err;
        roll_sample(&written);
        write_sample(&written, &text);
        if (tni_selections_parse(tni_buffer_text(&text), text.length, "f", &read, &err))
            fail_msg("%s in\n%s", err.message, text.text);
        assert_int_equal(read.strict, written.strict);
        assert_string_equal(read.tenon, tn_version());
        assert_int_equal(read.setup_count, written.setup_count);
        assert_int_equal(read.count, written.count);
        for (size_t j = 0; j < read.setup_count; j++)
            assert_setups_same(&read.setups[j], &written.setups[j]);
        for (size_t j = 0; j < read.count; j++)
            assert_same(&read.selections[j], &written.selections[j]);
        tni_selections_release(&read);
        tni_buffer_release(&text);
    }
}

#define HEAD    "format = 1\ntenon = 9.9.9\nstrict = 0\n"
#define MACHINE "[machine cpu:0]\n"
#define PROBLEM "problem = matmul:f32:m=2,n=3,k=4\n"
#define CHOICE  "device = cpu:0\nkernel = cpu.matmul.a\nversion = 1\n"
#define WHOLE   HEAD MACHINE "[selection]\n" PROBLEM CHOICE

static tn_status parse(const char *text, tni_selections *out, tn_error *err)
{
    return tni_selections_parse(text, strlen(text), "some.lock", out, err);
}

/* Signed, so that what is wrong is seen by whoever reads the rest. */
static void assert_refused(const char *body, const char *words)
{
    tni_selections read = {.count = 77};
    tni_buffer text = {0};
    tn_error err;
    tni_buffer_add(&text, body);
    sign(&text);
    if (parse(tni_buffer_text(&text), &read, &err) != TN_CORRUPT)
        fail_msg("taken, or refused with another status:\n%s", body);
    assert_contains(err.message, words);
    assert_contains(err.message, "some.lock:");
    assert_int_equal(read.count, 77);
    tni_buffer_release(&text);
}

static void what_is_wrong_is_refused_where_it_stands(void **state)
{
    (void)state;
    assert_refused("", "some.lock:1: the text has no format");
    assert_refused("format = one\ntenon = 1\nstrict = 0\n", "format: expected 1, got \"one\"");
    assert_refused("format = 1\nstrict = 0\n", "the text has no tenon");
    assert_refused("format = 1\ntenon = 1\nstrict = 2\n",
                   "strict = \"2\": expected a whole number from 0 to 1");
    assert_refused("format = 1\ntenon = 1\nstrict = -1\n",
                   "some.lock:4: strict = \"-1\": expected a whole number from 0 to 1");
    assert_refused(
        HEAD "color = red\n",
        "some.lock:5: unknown key \"color\" (= \"red\"); keys: checksum, format, tenon, strict");
    assert_refused(HEAD "strict = 0\n",
                   "some.lock:5: strict = \"0\": duplicate key, first set in line 4");
    assert_refused(HEAD "nothing\n", "some.lock:5:8: expected '='");
    assert_refused(HEAD "[machine]\n",
                   "some.lock:5: expected [machine DEVICE] or [selection], got [machine]");
    assert_refused(HEAD "[kernel]\n", "or [selection]");
    assert_refused(
        HEAD MACHINE "clock = 3\n",
        "some.lock:6: unknown key \"clock\" (= \"3\"); keys: name, architecture, driver, "
        "threads, libraries");
    assert_refused(HEAD MACHINE "threads = many\n",
                   "some.lock:6: threads = \"many\": expected a whole number");
    assert_refused(HEAD MACHINE MACHINE, "some.lock:6: duplicate machine cpu:0");
    assert_refused(WHOLE "us = 12\n", "us = \"12\": expected microseconds with three decimals");
    assert_refused(WHOLE "us = 12.34\n", "three decimals");
    assert_refused(WHOLE "us = .345\n", "three decimals");
    assert_refused(WHOLE "us = 1x.345\n", "three decimals");
    assert_refused(WHOLE "us = 99999999999999999999.345\n", "three decimals");
    assert_refused(
        WHOLE "numerics = run-to-run,batch-invariant\n",
        "numerics = \"run-to-run,batch-invariant\": expected names of numeric properties");
    assert_refused(WHOLE "numerics = batch-invariant, run-to-run\n", "expected names of");
    assert_refused(WHOLE "numerics = run-to-run, \n", "expected names of");
    assert_refused(WHOLE "numerics = sloppy\n", "expected names of");
    assert_refused(WHOLE "library_version = -1\n",
                   "library_version = \"-1\": expected a whole number");
    assert_refused(HEAD MACHINE "[selection]\n" CHOICE, "some.lock:6: [selection] has no problem");
    assert_refused(HEAD MACHINE "[selection]\n" PROBLEM, "[selection] has no device");
    assert_refused(HEAD "[selection]\n" PROBLEM CHOICE,
                   "some.lock:5: expected a device with a [machine] section above, got \"cpu:0\"");
    assert_refused(HEAD MACHINE "[selection]\n" PROBLEM "device = cpu:0\nkernel =\nversion = 1\n",
                   "kernel = \"\": expected a text");
    assert_refused(HEAD MACHINE "[selection]\nproblem = matmul:f32:m=2\n" CHOICE, "some.lock:6: ");
    assert_refused(HEAD MACHINE "[selection]\nproblem = matnul:f32:m=2,n=2,k=2\n" CHOICE,
                   "did you mean matmul?");
    assert_refused(HEAD MACHINE "[selection]\nproblem = matmul:f32:n=3,m=2,k=4\n" CHOICE,
                   "expected problem matmul:f32:m=2,n=3,k=4");
    assert_refused(HEAD MACHINE "[selection]\nproblem = matmul:f32:m=2,n=3,k=4@cpu:0\n" CHOICE,
                   "expected problem matmul:f32:m=2,n=3,k=4");
    assert_refused(WHOLE "[selection]\n" PROBLEM CHOICE,
                   "some.lock:11: matmul:f32:m=2,n=3,k=4 on cpu:0: already selected in line 6");
}

static void another_format_is_incompatible(void **state)
{
    tni_selections read = {0};
    tni_buffer text = {0};
    tn_error err;
    (void)state;
    tni_buffer_add(&text, "format = 2\nwhatever = it has\n");
    sign(&text);
    assert_int_equal(parse(tni_buffer_text(&text), &read, &err), TN_INCOMPATIBLE);
    assert_contains(err.message, "expected format 1, got 2");
    tni_buffer_release(&text);
}

/* Every bit of every byte, every byte left out, every end cut off, and what the form could overlook put
 * in. */
static void no_change_goes_unseen(void **state)
{
    tni_buffer text = {0};
    tni_selections read = {0};
    tn_error err;
    (void)state;
    tni_buffer_add(&text, WHOLE "us = 12.345\n# end\n");
    sign(&text);
    char *changed = malloc(text.length + 1);
    assert_non_null(changed);
    for (size_t i = 0; i < text.length * 8; i++) {
        memcpy(changed, text.text, text.length);
        changed[i / 8] = (char)(changed[i / 8] ^ (1 << i % 8));
        if (tni_selections_parse(changed, text.length, "f", &read, &err) != TN_CORRUPT)
            fail_msg("bit %zu of byte %zu", i % 8, i / 8);
    }
    for (size_t i = 0; i < text.length; i++) {
        memcpy(changed, text.text, i);
        memcpy(changed + i, text.text + i + 1, text.length - i - 1);
        assert_int_equal(tni_selections_parse(changed, text.length - 1, "f", &read, &err),
                         TN_CORRUPT);
        assert_int_equal(tni_selections_parse(text.text, i, "f", &read, &err), TN_CORRUPT);
        memcpy(changed, text.text, i);
        changed[i] = i > 0 && text.text[i] == '\n' ? ' ' : '\r';
        memcpy(changed + i + 1, text.text + i, text.length - i);
        assert_int_equal(tni_selections_parse(changed, text.length + 1, "f", &read, &err),
                         TN_CORRUPT);
    }
    free(changed);
    tni_buffer_release(&text);
}

static void what_was_edited_says_how_to_mend_it(void **state)
{
    tni_buffer text = {0};
    tni_selections read = {0};
    tn_error err;
    (void)state;
    assert_int_equal(parse(WHOLE, &read, &err), TN_CORRUPT);
    assert_contains(err.message, "some.lock:1: expected \"checksum = sha256:\" and 64 digits");
    tni_buffer_add(&text, WHOLE);
    sign(&text);
    tni_buffer_add(&text, "us = 1.000\n");
    assert_int_equal(parse(tni_buffer_text(&text), &read, &err), TN_CORRUPT);
    assert_contains(err.message, "write it again with `tenon lock write`");
    tni_buffer_release(&text);
}

/* As files come out of a checkout on Windows. */
static void line_ends_of_both_kinds_are_read(void **state)
{
    tni_buffer text = {0}, windows = {0};
    tni_selections read = {0};
    tn_error err;
    (void)state;
    tni_buffer_add(&text, WHOLE);
    sign(&text);
    for (size_t i = 0; i < text.length; i++) {
        if (text.text[i] == '\n')
            tni_buffer_add_char(&windows, '\r');
        tni_buffer_add_char(&windows, text.text[i]);
    }
    if (parse(tni_buffer_text(&windows), &read, &err))
        fail_msg("%s", err.message);
    assert_string_equal(read.selections[0].kernel, "cpu.matmul.a");
    tni_selections_release(&read);
    tni_buffer_release(&text);
    tni_buffer_release(&windows);
}

static void bad_text_is_not_written(void **state)
{
    tni_buffer text = {0};
    tn_error err;
    (void)state;
    tni_setup setup = {
        .id = "cpu:0", .name = "\xFF", .architecture = "", .driver = "", .libraries = ""};
    assert_int_equal(tni_selections_begin(&text, false, NULL), TN_OK);
    assert_int_equal(tni_selections_add_setup(&text, &setup, &err), TN_INVALID_ARGUMENT);
    tni_buffer_release(&text);
}

static tn_status write_and_read(void)
{
    sample written;
    tni_selections read = {0};
    tni_buffer text = {0};
    dice = 5;
    roll_sample(&written);
    tn_status status = tni_selections_begin(&text, true, NULL);
    for (size_t i = 0; i < written.setup_count && !status; i++)
        status = tni_selections_add_setup(&text, &written.setups[i], NULL);
    for (size_t i = 0; i < written.count && !status; i++)
        status = tni_selections_add(&text, &written.selections[i], NULL);
    if (!status)
        status = tni_selections_sign(&text, NULL);
    if (!status)
        status = tni_selections_parse(text.text, text.length, "f", &read, NULL);
    tni_selections_release(&read);
    tni_buffer_release(&text);
    return status;
}

static void want_of_memory_leaves_nothing(void **state)
{
    long n = 1;
    (void)state;
    for (bool fired = true; fired; n++) {
        struct fault_state before = fault_look();
        fault_arm(&fault_memory, n, false, 0);
        tn_status status = write_and_read();
        fired = fault_end(&fault_memory);
        assert_int_equal(status, fired ? TN_OUT_OF_MEMORY : TN_OK);
        assert_int_equal(fault_left(before, "selections", n), 0);
    }
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_selections_survive),
        cmocka_unit_test(what_is_wrong_is_refused_where_it_stands),
        cmocka_unit_test(another_format_is_incompatible),
        cmocka_unit_test(no_change_goes_unseen),
        cmocka_unit_test(what_was_edited_says_how_to_mend_it),
        cmocka_unit_test(line_ends_of_both_kinds_are_read),
        cmocka_unit_test(bad_text_is_not_written),
        cmocka_unit_test(want_of_memory_leaves_nothing),
    };
    fault_memory_install();
    return run_suite("unit.selection", tests);
}
