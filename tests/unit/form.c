/* The text form: what it accepts, how it refuses, and that what is written reads back. */
#include "test.h"

#include "base/alloc.h"
#include "base/form.h"

/* Parses a copy without a terminator, so that the address sanitizer sees a byte read too many. */
static tn_status parse(const char *text, size_t length, tni_form **out, tn_error *err)
{
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    tn_status status = tni_form_parse(copy, length, "t", out, err);
    free(copy);
    return status;
}

/* "[name@line] key@line=<value> ..." for every section but an empty unnamed one. */
static char *describe(const tni_form *form)
{
    tni_buffer text = {0};
    for (size_t s = 0; s < tni_form_section_count(form); s++) {
        const tni_form_section *in = tni_form_section_get(form, s);
        if (s > 0)
            tni_buffer_format(&text, "[%s@%u]", in->name, (unsigned)in->line);
        for (size_t e = 0; e < in->count; e++)
            tni_buffer_format(&text, "%s@%u=<%s>", in->entries[e].key,
                              (unsigned)in->entries[e].line, in->entries[e].value);
    }
    char *result = tni_buffer_detach(&text);
    assert_non_null(result);
    return result;
}

typedef struct accepted {
    const char *text;
    const char *meaning;
} accepted;

static const accepted grammar[] = {
    {"", ""},
    {"\n\n  \n\t", ""},
    {"# only a comment", ""},
    {"  # only a comment\n", ""},
    {"a=b", "a@1=<b>"},
    {"a=b\n", "a@1=<b>"},
    {"  a \t=\t b c  \n", "a@1=<b c>"},
    {"\n\na = 1\nb = 2", "a@3=<1>b@4=<2>"},
    {"cuda.matmul.allow_tf32 = true", "cuda.matmul.allow_tf32@1=<true>"},
    {"A-b_c/d@e:f+9 = x", "A-b_c/d@e:f+9@1=<x>"},
    {"a = x = y", "a@1=<x = y>"},
    {"a =", "a@1=<>"},
    {"a = \t\nb=", "a@1=<>b@2=<>"},
    {"a = 1\na = 2", "a@1=<1>a@2=<2>"},
    {"a = gr\xC3\xBC\xC3\x9F \xF0\x9F\x94\xA9", "a@1=<gr\xC3\xBC\xC3\x9F \xF0\x9F\x94\xA9>"},
    {"a = C:\\dir\\new", "a@1=<C:\\dir\\new>"},
    {"a = b\tc", "a@1=<b\tc>"},
    {"a = x \"y\" z", "a@1=<x \"y\" z>"},
    /* comments */
    {"a = b # c", "a@1=<b>"},
    {"a = b\t#c", "a@1=<b>"},
    {"a = b#c", "a@1=<b#c>"},
    {"a = # c", "a@1=<>"},
    {"a =#c", "a@1=<#c>"},
    {"a = \"b\" # c", "a@1=<b>"},
    {"a = \"b # c\"", "a@1=<b # c>"},
    {"[s] # c\na=b", "[s@1]a@2=<b>"},
    {"[s # t]", "[s # t@1]"},
    /* sections */
    {"[s]", "[s@1]"},
    {"  [ \t a b\t ] \t\n", "[a b@1]"},
    {"a=1\n[s]\na=2\n[t]\n[s]\na=3", "a@1=<1>[s@2]a@3=<2>[t@4][s@5]a@6=<3>"},
    {"[matmul:f32:m=1,n=2@cpu:0]", "[matmul:f32:m=1,n=2@cpu:0@1]"},
    {"[a[b \"c\" =]", "[a[b \"c\" =@1]"},
    {"[\xC3\xA9]", "[\xC3\xA9@1]"},
    /* quotes */
    {"a = \"\"", "a@1=<>"},
    {"a = \"  b  \"", "a@1=<  b  >"},
    {"a = \"\\n\\t\\r\\\"\\\\\"", "a@1=<\n\t\r\"\\>"},
    {"a = \"\\x01\\x7f\\x7F\\x4a\\x4A\"", "a@1=<\x01\x7f\x7fJJ>"},
    {"a = \"b\tc\"", "a@1=<b\tc>"},
    {"a = \"b\"  \nc = d", "a@1=<b>c@2=<d>"},
    /* blocks */
    {"a = \"\"\"\n\"\"\"", "a@1=<>"},
    {"a = \"\"\"\none\n\"\"\"", "a@1=<one\n>"},
    {"a = \"\"\"  # c\n  one  \n\n# two\n[three]\nb = \\n \"\"\"\n \t\"\"\" # c\nd = e",
     "a@1=<  one  \n\n# two\n[three]\nb = \\n \"\"\"\n>d@8=<e>"},
    {"a = \"\"\"\n\n\"\"\"\n", "a@1=<\n>"},
    {"a = \"\"\"\n\"\"\n\"\"\"", "a@1=<\"\"\n>"},
    /* ends of lines and the byte-order mark */
    {"a = b\r\n[s]\r\nc = \"d\"\r\n", "a@1=<b>[s@2]c@3=<d>"},
    {"a = \"\"\"\r\none\r\ntwo\r\n\"\"\"\r\n", "a@1=<one\ntwo\n>"},
    {"\xEF\xBB\xBF# c\na = b", "a@2=<b>"},
    {"\xEF\xBB\xBF"
     "a = b",
     "a@1=<b>"},
    {"a = \xEF\xBB\xBF", "a@1=<\xEF\xBB\xBF>"},
};

static void test_grammar(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof grammar / sizeof *grammar; i++) {
        tni_form *form = NULL;
        tn_error err;
        if (parse(grammar[i].text, strlen(grammar[i].text), &form, &err))
            fail_msg("\"%s\": %s", grammar[i].text, err.message);
        char *meaning = describe(form);
        assert_string_equal(meaning, grammar[i].meaning);
        assert_string_equal(tni_form_section_get(form, 0)->name, "");
        assert_int_equal(tni_form_section_get(form, 0)->line, 0);
        tni_release(meaning);
        tni_form_release(form);
    }
}

typedef struct refused {
    const char *text;
    const char *message;
} refused;

#define A_KEY        "a key (letters, digits and . _ - + / @ :), '[' or '#'"
#define LINE_END     "the end of the line or a comment after a blank"
#define PRINTABLE    "printable UTF-8 text"
#define FOUND_END    ", got the end of the text"
#define FOUND_EOL    ", got the end of the line"
#define AFTER_ESCAPE "one of n t r x \" \\ after \\"

static const refused faults[] = {
    {"= b", "t:1:1: expected " A_KEY ", got '='"},
    {"a = b\n  !x", "t:2:3: expected " A_KEY ", got '!'"},
    {"\xC3\xA9 = b", "t:1:1: expected " A_KEY ", got '\xC3\xA9'"},
    {"\xEF\xBB\xBF!", "t:1:1: expected " A_KEY ", got '!'"},
    {"a", "t:1:2: expected '='" FOUND_END},
    {"a\nb = c", "t:1:2: expected '='" FOUND_EOL},
    {"a \r\nb = c", "t:1:3: expected '='" FOUND_EOL},
    {"a # b = c", "t:1:3: expected '=', got '#'"},
    {"a b = c", "t:1:3: expected '=', got 'b'"},
    {"a\xC3\xA9 = b", "t:1:2: expected '=', got '\xC3\xA9'"},
    {"[", "t:1:2: expected ']' after the section's name" FOUND_END},
    {"[a\nb = c", "t:1:3: expected ']' after the section's name" FOUND_EOL},
    {"[]", "t:1:2: expected a section's name, got ']'"},
    {"[ \t ]", "t:1:5: expected a section's name, got ']'"},
    {"[a\tb]", "t:1:3: expected a section's name without TAB, got byte 0x09"},
    {"[a] b", "t:1:5: expected " LINE_END ", got 'b'"},
    {"[a]# b", "t:1:4: expected " LINE_END ", got '#'"},
    {"a = \"b", "t:1:7: expected '\"' at the end of the quoted value" FOUND_END},
    {"a = \"b\nc\"", "t:1:7: expected '\"' at the end of the quoted value" FOUND_EOL},
    {"a = \"b\" c", "t:1:9: expected " LINE_END ", got 'c'"},
    {"a = \"b\"c", "t:1:8: expected " LINE_END ", got 'c'"},
    {"a = \"b\"# c", "t:1:8: expected " LINE_END ", got '#'"},
    {"a = \"\" \"", "t:1:8: expected " LINE_END ", got '\"'"},
    {"a = \"\\q\"", "t:1:7: expected " AFTER_ESCAPE ", got 'q'"},
    {"a = \"\\", "t:1:7: expected " AFTER_ESCAPE FOUND_END},
    {"a = \"\\\n\"", "t:1:7: expected " AFTER_ESCAPE FOUND_EOL},
    {"a = \"\\\xC3\xA9\"", "t:1:7: expected " AFTER_ESCAPE ", got '\xC3\xA9'"},
    {"a = \"\\x4", "t:1:9: expected two hexadecimal digits after \\x" FOUND_END},
    {"a = \"\\x4g\"", "t:1:9: expected two hexadecimal digits after \\x, got 'g'"},
    {"a = \"\\x00\"", "t:1:8: expected 01 to 7f after \\x, got '0'"},
    {"a = \"\\x80\"", "t:1:8: expected 01 to 7f after \\x, got '8'"},
    {"a = \"\"\"", "t:1:8: expected a line with \"\"\" to close the block of line 1" FOUND_END},
    {"\na = \"\"\"\nb\n",
     "t:4:1: expected a line with \"\"\" to close the block of line 2" FOUND_END},
    {"a = \"\"\"\nb", "t:2:2: expected a line with \"\"\" to close the block of line 1" FOUND_END},
    {"a = \"\"\"b\n\"\"\"", "t:1:8: expected " LINE_END ", got 'b'"},
    {"a = \"\"\"\nb\n  \"\"\"c\n\"\"\"", "t:3:6: expected " LINE_END ", got 'c'"},
    {"a = \"\"\"\n\"\"\"\"", "t:2:4: expected " LINE_END ", got '\"'"},
    {"a = \xC3\xA9\x01", "t:1:6: expected " PRINTABLE ", got byte 0x01"},
    {"a = b\x7F", "t:1:6: expected " PRINTABLE ", got byte 0x7f"},
    {"a = b\rc", "t:1:6: expected " PRINTABLE ", got byte 0x0d"},
    {"a = b\r", "t:1:6: expected " PRINTABLE ", got byte 0x0d"},
    {"\n# \x1B", "t:2:3: expected " PRINTABLE ", got byte 0x1b"},
    {"a = \"\"\"\n\x02\n\"\"\"", "t:2:1: expected " PRINTABLE ", got byte 0x02"},
    /* not UTF-8: lone continuation, cut short, overlong, surrogate, too high, never a byte */
    {"a = \x80", "t:1:5: expected " PRINTABLE ", got byte 0x80"},
    {"a = \xC3", "t:1:5: expected " PRINTABLE ", got byte 0xc3"},
    {"a = \xE2\x82\n", "t:1:5: expected " PRINTABLE ", got byte 0xe2"},
    {"a = \xF0\x9F\x94(", "t:1:5: expected " PRINTABLE ", got byte 0xf0"},
    {"a = \xC0\x80", "t:1:5: expected " PRINTABLE ", got byte 0xc0"},
    {"a = \xC1\xBF", "t:1:5: expected " PRINTABLE ", got byte 0xc1"},
    {"a = \xE0\x9F\xBF", "t:1:5: expected " PRINTABLE ", got byte 0xe0"},
    {"a = \xF0\x8F\xBF\xBF", "t:1:5: expected " PRINTABLE ", got byte 0xf0"},
    {"a = \xED\xA0\x80", "t:1:5: expected " PRINTABLE ", got byte 0xed"},
    {"a = \xF4\x90\x80\x80", "t:1:5: expected " PRINTABLE ", got byte 0xf4"},
    {"a = \xF5\x80\x80\x80", "t:1:5: expected " PRINTABLE ", got byte 0xf5"},
    {"a = \xFF", "t:1:5: expected " PRINTABLE ", got byte 0xff"},
};

static void assert_refused(const char *text, size_t length, const char *message)
{
    tni_form *form = NULL;
    tn_error err;
    assert_int_equal(parse(text, length, &form, &err), TN_CORRUPT);
    assert_null(form);
    assert_int_equal(err.status, TN_CORRUPT);
    assert_string_equal(err.message, message);
}

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        assert_refused(faults[i].text, strlen(faults[i].text), faults[i].message);
    assert_refused("a = b\0c", 7, "t:1:6: expected " PRINTABLE ", got byte 0x00");
    assert_int_equal(parse("=", 1, &(tni_form *){NULL}, NULL), TN_CORRUPT);
}

/* However long the origin, the place and the words are there. No folder is shown in part. */
static void test_long_origin(void **state)
{
    (void)state;
    char origin[1000];
    tni_form *form = NULL;
    tn_error err;
    memset(origin, 'o', sizeof origin);
    memcpy(origin + sizeof origin - 8, "/config", 8);
    assert_int_equal(tni_form_parse("a", 1, origin, &form, &err), TN_CORRUPT);
    assert_int_equal(strncmp(err.message, ".../config:1:2: ", 16), 0);
    assert_contains(err.message, "expected '='" FOUND_END);
    origin[sizeof origin - 50] = '/';
    assert_int_equal(tni_form_parse("a", 1, origin, &form, &err), TN_CORRUPT);
    assert_int_equal(strncmp(err.message, ".../oooo", 8), 0);
    assert_contains(err.message, "o/config:1:2: expected '='" FOUND_END);
}

/* The end of a long origin is cut between characters, wherever the cut falls. */
static void test_place(void **state)
{
    (void)state;
    char room[TNI_FORM_PLACE];
    assert_string_equal(tni_form_place("config", 3, room), "config:3");
    for (size_t shift = 0; shift < 3; shift++) {
        char origin[400] = "";
        for (int i = 0; i < 100; i++)
            strcat(origin, "\xE2\x82\xAC");
        strcat(origin, &"end"[shift]);
        const char *place = tni_form_place(origin, UINT32_MAX, room);
        assert_ptr_equal(place, room);
        assert_int_equal(strncmp(place, "...\xE2\x82\xAC", 6), 0);
        assert_contains(place, &"end:4294967295"[shift]);
        assert_in_range(strlen(place), 3 + 158 + 11, 3 + 160 + 11);
    }
}

/* Text of nothing, a length beyond the limit (no byte of which is read), releasing nothing. */
static void test_edges(void **state)
{
    (void)state;
    tni_form *form = NULL;
    tn_error err;
    assert_int_equal(tni_form_parse(NULL, 0, "t", &form, &err), TN_OK);
    assert_int_equal(tni_form_section_count(form), 1);
    assert_int_equal(tni_form_section_get(form, 0)->count, 0);
    tni_form_release(form);
    tni_form_release(NULL);
    form = NULL;
    assert_int_equal(tni_form_parse("a=b", (size_t)TNI_FORM_LIMIT + 1, "t", &form, &err),
                     TN_CORRUPT);
    assert_contains(err.message, "expected at most 268435456 bytes, got 268435457");
    assert_null(form);
}

static void test_find(void **state)
{
    (void)state;
    const char *text = "a=1\n[s]\nb=2\na=3\na=4\n[t]\n[s]\nc=5\n";
    tni_form *form = NULL;
    assert_int_equal(parse(text, strlen(text), &form, NULL), TN_OK);
    assert_string_equal(tni_form_find(form, "", "a"), "1");
    assert_string_equal(tni_form_find(form, "s", "a"), "4");
    assert_string_equal(tni_form_find(form, "s", "b"), "2");
    assert_null(tni_form_find(form, "s", "c"));
    assert_null(tni_form_find(form, "t", "a"));
    assert_null(tni_form_find(form, "u", "a"));
    tni_form_release(form);
}

static void test_written_text(void **state)
{
    (void)state;
    tni_buffer text = {0};
    tn_status failed = tni_form_write_entry(&text, "plain", "a b#", NULL) ||
                       tni_form_write_entry(&text, "empty", "", NULL) ||
                       tni_form_write_section(&text, "one", NULL) ||
                       tni_form_write_entry(&text, "word", "C:\\x y\"z\"", NULL) ||
                       tni_form_write_entry(&text, "hidden", " \x01\x7f\t\r\"\\", NULL) ||
                       tni_form_write_section(&text, "two words", NULL) ||
                       tni_form_write_entry(&text, "lines", "x\n\ty # z\n", NULL) ||
                       tni_form_write_entry(&text, "cut", "x\ny", NULL) ||
                       tni_form_write_entry(&text, "mark", "x\n \"\"\"\n", NULL);
    assert_int_equal(failed, 0);
    assert_string_equal(tni_buffer_text(&text), "plain = \"a b#\"\n"
                                                "empty = \"\"\n"
                                                "\n[one]\n"
                                                "word = C:\\x y\"z\"\n"
                                                "hidden = \" \\x01\\x7f\\t\\r\\\"\\\\\"\n"
                                                "\n[two words]\n"
                                                "lines = \"\"\"\nx\n\ty # z\n\"\"\"\n"
                                                "cut = \"x\\ny\"\n"
                                                "mark = \"x\\n \\\"\\\"\\\"\\n\"\n");
    tni_buffer_release(&text);
    assert_int_equal(tni_form_write_section(&text, "first", NULL), TN_OK);
    assert_string_equal(tni_buffer_text(&text), "[first]\n");
    tni_buffer_release(&text);
}

static void assert_unwritable(const char *section, const char *key, const char *value,
                              const char *words)
{
    tni_buffer text = {0};
    tn_error err;
    tni_buffer_add(&text, "before\n");
    tn_status status = section ? tni_form_write_section(&text, section, &err)
                               : tni_form_write_entry(&text, key, value, &err);
    assert_int_equal(status, TN_INVALID_ARGUMENT);
    assert_contains(err.message, words);
    assert_null(strchr(err.message, '\n'));
    assert_string_equal(tni_buffer_text(&text), "before\n");
    tni_buffer_release(&text);
}

static void test_unwritable(void **state)
{
    (void)state;
    assert_unwritable(NULL, "", "v",
                      "a key: expected one or more letters, digits and . _ - + / @ :; "
                      "got nothing");
    assert_unwritable(NULL, "a b", "v", "got byte 0x20 after \"a\"");
    assert_unwritable(NULL, "a\n", "v", "got byte 0x0a after \"a\"");
    assert_unwritable(NULL, "a=b", "v", "got byte 0x3d after \"a\"");
    assert_unwritable(NULL, "\xC3\xA9", "v", "got byte 0xc3 after \"\"");
    assert_unwritable(NULL, "k", "ab\xFF", "got byte 0xff at offset 2 of the value of \"k\"");
    assert_unwritable(NULL, "k", "\xED\xA0\x80", "got byte 0xed at offset 0");
    assert_unwritable("", NULL, NULL, "a section's name: expected UTF-8 text without ']'");
    assert_unwritable(" a", NULL, NULL, "got byte 0x20 after \"\"");
    assert_unwritable("a\t", NULL, NULL, "got byte 0x09 after \"a\"");
    assert_unwritable("a ", NULL, NULL, "got byte 0x20 after \"a\"");
    assert_unwritable("a]b", NULL, NULL, "got byte 0x5d after \"a\"");
    assert_unwritable("a\nb", NULL, NULL, "got byte 0x0a after \"a\"");
    assert_unwritable("a\x80", NULL, NULL, "got byte 0x80 after \"a\"");
}

/* A generator of its own, so that a seed gives the same texts everywhere. */
static uint64_t random_next(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

static void random_text(uint64_t *seed, const char *const *pieces, size_t count, size_t most,
                        tni_buffer *to)
{
    tni_buffer_release(to);
    for (size_t length = random_next(seed, most + 1); length > 0; length--)
        tni_buffer_add(to, pieces[random_next(seed, count)]);
    assert_false(to->failed);
}

static const char *const key_pieces[] = {"a", "Z", "0", "9", ".", "_", "-", "+", "/", "@", ":"};
static const char *const value_pieces[] = {"a",
                                           "b",
                                           "\"",
                                           "\"\"\"",
                                           " ",
                                           "  ",
                                           "\t",
                                           "\n",
                                           "\r",
                                           "\r\n",
                                           "#",
                                           " #",
                                           "\\",
                                           "\\n",
                                           "=",
                                           "[",
                                           "]",
                                           "\x01",
                                           "\x1F",
                                           "\x7F",
                                           "\xC2\x80",
                                           "\xDF\xBF",
                                           "\xE0\xA0\x80",
                                           "\xEF\xBF\xBF",
                                           "\n\"",
                                           "'",
                                           "\n ",
                                           "x\n",
                                           "\\x41",
                                           "\"\"\"\n",
                                           "\xEF\xBB\xBF",
                                           "\xF4\x8F\xBF\xBF"};

/* A legal section's name: what the writer accepts of random text. */
static const char *random_name(uint64_t *seed, tni_buffer *scratch)
{
    tni_buffer probe = {0};
    tn_status status = TN_INVALID_ARGUMENT;
    while (status) {
        random_text(seed, value_pieces, sizeof value_pieces / sizeof *value_pieces, 4, scratch);
        status = tni_form_write_section(&probe, tni_buffer_text(scratch), NULL);
    }
    tni_buffer_release(&probe);
    return tni_buffer_text(scratch);
}

/* Writes random entries and sections into `text` and what they should read as into `meaning`. */
static void random_form(uint64_t *seed, tni_buffer *text, tni_buffer *meaning)
{
    tni_buffer key = {0}, value = {0};
    for (uint64_t steps = random_next(seed, 12); steps > 0; steps--) {
        if (random_next(seed, 4) == 0) {
            const char *name = random_name(seed, &value);
            assert_int_equal(tni_form_write_section(text, name, NULL), TN_OK);
            tni_buffer_format(meaning, "[%s]", name);
            continue;
        }
        random_text(seed, key_pieces, sizeof key_pieces / sizeof *key_pieces, 4, &key);
        tni_buffer_add(&key, "k");
        random_text(seed, value_pieces, sizeof value_pieces / sizeof *value_pieces, 9, &value);
        const char *v = tni_buffer_text(&value);
        assert_int_equal(tni_form_write_entry(text, tni_buffer_text(&key), v, NULL), TN_OK);
        tni_buffer_format(meaning, "%s=<%s>", tni_buffer_text(&key), v);
    }
    tni_buffer_release(&key);
    tni_buffer_release(&value);
}

static void add_meaning(const tni_form *form, tni_buffer *to)
{
    for (size_t s = 0; s < tni_form_section_count(form); s++) {
        const tni_form_section *in = tni_form_section_get(form, s);
        if (s > 0)
            tni_buffer_format(to, "[%s]", in->name);
        for (size_t e = 0; e < in->count; e++)
            tni_buffer_format(to, "%s=<%s>", in->entries[e].key, in->entries[e].value);
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 20240229;
    int rounds = test_reduced() ? 2000 : 20000;
    print_message("seed %llu, %d rounds\n", (unsigned long long)seed, rounds);
    for (int i = 0; i < rounds; i++) {
        tni_buffer text = {0}, meaning = {0}, again = {0};
        tni_form *form = NULL;
        tn_error err;
        random_form(&seed, &text, &meaning);
        if (parse(tni_buffer_text(&text), text.length, &form, &err))
            fail_msg("round %d: %s in\n%s", i, err.message, tni_buffer_text(&text));
        add_meaning(form, &again);
        assert_string_equal(tni_buffer_text(&meaning), tni_buffer_text(&again));
        tni_form_release(form);
        tni_buffer_release(&text);
        tni_buffer_release(&meaning);
        tni_buffer_release(&again);
    }
}

/* Every beginning of a text that uses all of the form is a form or a fault on its last line. */
static void test_every_beginning(void **state)
{
    (void)state;
    const char *text = "# c\na = b # c\n[s \xC3\xA9]\nk = \"\\x41\\n\"\nl = \"\"\"\nx\n\"\"\"\n";
    for (size_t length = 0; length <= strlen(text); length++) {
        tni_form *form = NULL;
        tn_error err;
        unsigned lines = 1;
        char place[16];
        for (size_t i = 0; i < length; i++)
            lines += text[i] == '\n';
        snprintf(place, sizeof place, "t:%u:", lines);
        if (parse(text, length, &form, &err))
            assert_int_equal(strncmp(err.message, place, strlen(place)), 0);
        tni_form_release(form);
    }
}

static int64_t allocations_left;

static void *failing_alloc(void *self, size_t size, size_t align)
{
    (void)self;
    (void)align;
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

static void failing_release(void *self, void *memory)
{
    (void)self;
    free(memory);
}

/* Parsing needs exactly one allocation; it fails without, and changes nothing. */
static void test_parse_without_memory(void **state)
{
    (void)state;
    tn_allocator failing = {sizeof failing, NULL, failing_alloc, failing_release};
    const char *text = "a = b\n[s]\nc = \"d\"\n";
    tni_form *form = NULL;
    tn_error err;
    assert_int_equal(tn_allocator_set(&failing, &err), TN_OK);
    allocations_left = 0;
    assert_int_equal(tni_form_parse(text, strlen(text), "t", &form, &err), TN_OUT_OF_MEMORY);
    assert_null(form);
    allocations_left = 1;
    assert_int_equal(tni_form_parse(text, strlen(text), "t", &form, &err), TN_OK);
    tni_form_release(form);
    assert_int_equal(tn_allocator_blocks(), 0);
    assert_int_equal(tn_allocator_set(NULL, &err), TN_OK);
}

static tn_status write_some(tni_buffer *text, tn_error *err)
{
    tn_status status = tni_form_write_section(text, "a section's name of some length", err);
    if (!status)
        status = tni_form_write_entry(text, "a-key-of-some-length", "x\n\"y\"", err);
    if (!status)
        status = tni_form_write_entry(text, "another-key", "some lines\nof text\n", err);
    return status;
}

/* For every n, with the n-th allocation failing: whole sections and entries or nothing. */
static void test_write_without_memory(void **state)
{
    (void)state;
    tn_allocator failing = {sizeof failing, NULL, failing_alloc, failing_release};
    const char *const wholes[] = {
        "", "[a section's name of some length]\n",
        "[a section's name of some length]\na-key-of-some-length = \"x\\n\\\"y\\\"\"\n"};
    tn_status status = TN_OUT_OF_MEMORY;
    int64_t n = 0;
    assert_int_equal(tn_allocator_set(&failing, NULL), TN_OK);
    for (; status; n++) {
        tni_buffer text = {0};
        tn_error err;
        bool whole = false;
        allocations_left = n;
        status = write_some(&text, &err);
        for (size_t i = 0; status && i < sizeof wholes / sizeof *wholes; i++)
            whole = whole || strcmp(tni_buffer_text(&text), wholes[i]) == 0;
        assert_true(!status || (status == TN_OUT_OF_MEMORY && whole));
        assert_int_equal(text.length, strlen(tni_buffer_text(&text)));
        tni_buffer_release(&text);
        assert_int_equal(tn_allocator_blocks(), 0);
    }
    assert_true(n > 2);
    assert_int_equal(tn_allocator_set(NULL, NULL), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grammar),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_long_origin),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_written_text),
        cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_beginning),
        cmocka_unit_test(test_parse_without_memory),
        cmocka_unit_test(test_write_without_memory),
    };
    return run_suite("unit.form", tests);
}
