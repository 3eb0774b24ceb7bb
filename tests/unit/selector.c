/* Selectors: their one form, what is refused, what they match and cover. */
#include "test.h"

#include "settings/rules.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void parse(const char *text, char room[TNI_SELECTOR_MAX], tni_selector *out)
{
    tn_error err = {0};
    if (tni_selector_parse(text, room, out, &err))
        fail_msg("%s: %s", text, err.message);
}

static void selectors_have_one_form(void **state)
{
    static const struct {
        const char *text, *canonical, *op, *name;
        int32_t kind;
        bool open;
    } rows[] = {
        {"matmul/library:mkl", NULL, "matmul", "mkl", TNI_SELECT_LIBRARY, false},
        {"language:triton", NULL, "", "triton", TNI_SELECT_LANGUAGE, false},
        {"cpu.matmul.avx2", NULL, "", "cpu.matmul.avx2", TNI_SELECT_KERNEL, false},
        {"kernel:cpu.matmul.avx2", "cpu.matmul.avx2", "", "cpu.matmul.avx2", TNI_SELECT_KERNEL,
         false},
        {"matmul/kernel:a.b*", "matmul/a.b*", "matmul", "a.b", TNI_SELECT_KERNEL, true},
        {"cpu.*", NULL, "", "cpu.", TNI_SELECT_KERNEL, true},
        {"kernel:cpu*", NULL, "", "cpu", TNI_SELECT_KERNEL, true},
        {"kernel:plain", NULL, "", "plain", TNI_SELECT_KERNEL, false},
        {"matmul/mkl", NULL, "matmul", "mkl", TNI_SELECT_ANY, false},
        {"mkl", NULL, "", "mkl", TNI_SELECT_ANY, false},
        {"*", NULL, "", "", TNI_SELECT_ANY, true},
        {"fft/platform:*", NULL, "fft", "", TNI_SELECT_PLATFORM, true},
        {"library:a.b", NULL, "", "a.b", TNI_SELECT_LIBRARY, false},
        {"Attention/Backend:FLASH_ATTN", "attention/backend:flash_attn", "attention", "flash_attn",
         TNI_SELECT_BACKEND, false},
        {"sparse_2-4/0x", NULL, "sparse_2-4", "0x", TNI_SELECT_ANY, false},
    };
    char room[TNI_SELECTOR_MAX], out[TNI_SELECTOR_MAX];
    tni_selector selector;
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *canonical = rows[i].canonical ? rows[i].canonical : rows[i].text;
        parse(rows[i].text, room, &selector);
        assert_string_equal(selector.op, rows[i].op);
        assert_string_equal(selector.name, rows[i].name);
        assert_int_equal(selector.kind, rows[i].kind);
        assert_int_equal(selector.open, rows[i].open);
        assert_int_equal(tni_selector_write(&selector, out, sizeof out), strlen(canonical));
        assert_string_equal(out, canonical);
        parse(canonical, room, &selector);
        assert_int_equal(tni_selector_write(&selector, out, sizeof out), strlen(canonical));
        assert_string_equal(out, canonical);
    }
}

static void writing_is_cut_to_its_room(void **state)
{
    static const char whole[] = "matmul/library:mkl*";
    char room[TNI_SELECTOR_MAX], out[64];
    tni_selector selector;
    (void)state;
    parse(whole, room, &selector);
    assert_int_equal(tni_selector_write(&selector, NULL, 0), strlen(whole));
    for (size_t size = 1; size <= sizeof whole; size++) {
        memset(out, 'x', sizeof out);
        assert_int_equal(tni_selector_write(&selector, out, size), strlen(whole));
        assert_int_equal(strlen(out), size - 1);
        assert_memory_equal(out, whole, size - 1);
        assert_int_equal(out[size], 'x');
    }
}

static void nonsense_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "\"\" has no name; the form is [op/][kind:]name"},
        {"matmul/", "\"matmul/\" has no name"},
        {"library:", "\"library:\" has no name"},
        {"/mkl", "\"/mkl\" has no op before its /"},
        {"matmul/:mkl", "\"matmul/:mkl\" has no kind before its :"},
        {"matmul/libary:mkl",
         "\"matmul/libary:mkl\": unknown kind \"libary\": expected kernel, library, "
         "backend, platform or language; did you mean library?"},
        {"lang:triton",
         "unknown kind \"lang\": expected kernel, library, backend, platform or language"},
        {"ker\tnel:x", "\"ker\\x09nel:x\": unknown kind \"ker\\x09nel\""},
        {"mat mul/mkl", "\"mat mul/mkl\": invalid character 4, ' ': an op begins with a letter or "
                        "digit and consists of letters, digits and - _; the form is"},
        {"library:matmul/mkl", "invalid character 8, ':': an op begins"},
        {"a.b/mkl", "invalid character 2, '.': an op begins"},
        {"mat*/mkl", "invalid character 4, '*': an op begins"},
        {"a/b/c", "\"a/b/c\": invalid character 4, '/': a name begins with a letter or "
                  "digit and consists of letters, digits and - _ ., and may end in *; the form is"},
        {"library:library:mkl", "invalid character 16, ':': a name begins"},
        {"library: mkl", "invalid character 9, ' '"},
        {"mkl ", "invalid character 4, ' '"},
        {"mk*l", "invalid character 3, '*'"},
        {"mkl**", "invalid character 4, '*'"},
        {"_mkl", "invalid character 1, '_'"},
        {"library:.x", "invalid character 9, '.'"},
        {"a\nb", "\"a\\x0ab\": invalid character 2, '\\x0a'"},
        {"m\xc3\xbcller", "\"m\xc3\xbcller\": invalid character 2, '\xc3\xbc'"},
        {"a\xff", "\"a\\xff\": invalid character 2, '\\xff'"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char room[TNI_SELECTOR_MAX];
        tni_selector selector = {.kind = 77};
        tn_error err = {0};
        assert_int_equal(tni_selector_parse(rows[i].text, room, &selector, &err),
                         TN_INVALID_ARGUMENT);
        assert_contains(err.message, rows[i].words);
        assert_int_equal(selector.kind, 77);
    }
}

static void length_is_bounded(void **state)
{
    char text[TNI_SELECTOR_MAX + 1] = "library:", room[TNI_SELECTOR_MAX], out[TNI_SELECTOR_MAX];
    tni_selector selector;
    tn_error err = {0};
    (void)state;
    memset(text + 8, 'y', sizeof text - 9);
    text[TNI_SELECTOR_MAX - 1] = '\0';
    parse(text, room, &selector);
    assert_int_equal(tni_selector_write(&selector, out, sizeof out), TNI_SELECTOR_MAX - 1);
    assert_string_equal(out, text);
    text[TNI_SELECTOR_MAX - 1] = 'y';
    assert_int_equal(tni_selector_parse(text, room, &selector, &err), TN_INVALID_ARGUMENT);
    assert_contains(err.message, "\"library:yyy");
    assert_contains(err.message, "...\": a selector has at most 159 bytes");
}

static void matching_is_by_kind_op_and_name(void **state)
{
    static const tni_candidate candidate = {.op = "matmul",
                                            .kernel = "cpu.matmul.avx2",
                                            .library = "mkl",
                                            .backend = "FLASH_ATTN",
                                            .platform = "cpu",
                                            .language = "",
                                            .library_other = "Math-Kernel"};
    static const char *const yes[] = {"mkl",
                                      "matmul/mkl",
                                      "library:mkl",
                                      "library:math-kernel",
                                      "matmul/math-*",
                                      "matmul/library:mk*",
                                      "cpu.matmul.avx2",
                                      "cpu.*",
                                      "kernel:cpu*",
                                      "platform:cpu",
                                      "cpu",
                                      "*",
                                      "matmul/*",
                                      "library:*",
                                      "backend:flash_attn",
                                      "Flash_Attn",
                                      "MATMUL/Library:MKL",
                                      "cpu.matmul.avx2*"};
    static const char *const no[] = {
        "fft/mkl",     "library:mk",    "library:mklx",        "platform:mkl",
        "mk",          "mklx*",         "cpu.matmul",          "kernel:cpu",
        "language:*",  "fft/*",         "library:cpu*",        "mat/mkl",
        "matmulx/mkl", "library:mkl.x", "backend:math-kernel", "library:math"};
    char room[TNI_SELECTOR_MAX];
    tni_selector selector;
    (void)state;
    for (size_t i = 0; i < COUNT(yes); i++) {
        parse(yes[i], room, &selector);
        if (!tni_selector_matches(&selector, &candidate))
            fail_msg("%s does not match", yes[i]);
    }
    for (size_t i = 0; i < COUNT(no); i++) {
        parse(no[i], room, &selector);
        if (tni_selector_matches(&selector, &candidate))
            fail_msg("%s matches", no[i]);
    }
}

/* Every selector of a small world against every other one, by all candidates there are: names with
 * a '~' are those that no selector has. */
static void covering_is_matching_all_that_the_other_does(void **state)
{
    static const char *const ops[] = {"", "matmul/", "fft/"};
    static const char *const kinds[] = {"", "kernel:", "library:", "backend:", "language:"};
    static const char *const names[] = {"a", "ab", "a.b", "*", "a*", "ab*", "a.*"};
    static const char *const taken[] = {"a", "ab", "a.b", "~", "a~", "ab~", "a.~"};
    static const char *const of_ops[] = {"matmul", "fft", "~"};
    enum { ALL = COUNT(ops) * COUNT(kinds) * COUNT(names) };
    static char rooms[ALL][TNI_SELECTOR_MAX];
    static tni_selector all[ALL];
    size_t covered = 0;
    (void)state;
    for (size_t i = 0; i < ALL; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s%s%s", ops[i % COUNT(ops)],
                 kinds[i / COUNT(ops) % COUNT(kinds)], names[i / COUNT(ops) / COUNT(kinds)]);
        parse(text, rooms[i], &all[i]);
    }
    for (size_t pair = 0; pair < (size_t)ALL * ALL; pair++) {
        const tni_selector *a = &all[pair / ALL], *b = &all[pair % ALL];
        bool always = true;
        for (size_t c = 0; c < COUNT(of_ops) * 5 * COUNT(taken) && always; c++) {
            const char *parts[5] = {"", "", "", "", ""};
            parts[c / COUNT(of_ops) % 5] = taken[c / COUNT(of_ops) / 5];
            tni_candidate candidate = {of_ops[c % COUNT(of_ops)],
                                       parts[0],
                                       parts[1],
                                       parts[2],
                                       parts[3],
                                       parts[4],
                                       "",
                                       NULL,
                                       NULL};
            always = !tni_selector_matches(b, &candidate) || tni_selector_matches(a, &candidate);
        }
        assert_int_equal(tni_selector_covers(a, b), always);
        covered += always;
    }
    assert_in_range(covered, ALL + 1, (size_t)ALL * ALL / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selectors_have_one_form),
        cmocka_unit_test(writing_is_cut_to_its_room),
        cmocka_unit_test(nonsense_is_refused_with_its_place),
        cmocka_unit_test(length_is_bounded),
        cmocka_unit_test(matching_is_by_kind_op_and_name),
        cmocka_unit_test(covering_is_matching_all_that_the_other_does),
    };
    return run_suite("unit.selector", tests);
}
