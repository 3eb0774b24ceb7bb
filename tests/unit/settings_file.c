/* The configuration file: every row by it, where it is, and what becomes of one that cannot be read or
 * understood. */
#include "settings_child.h"

#include "fault/fault.h"

/* Plain, and with every part of the key that a section may have. */
static void every_row_by_the_file(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char text[ROW_TEXT], expected[ROW_TEXT];
        const char *key = key_of(i);
        snprintf(text, sizeof text, "# first\n\n%s = %s\n", key, other_value(i));
        expect(i, other_value(i), "file: FILE:3", expected);
        assert_string_equal(ask_file(text), expected);
        for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
            snprintf(text, sizeof text, "[%.*s]\n%s = %s # why\n", (int)(dot - key), key, dot + 1,
                     other_value(i));
            expect(i, other_value(i), "file: FILE:2", expected);
            assert_string_equal(ask_file(text), expected);
        }
    }
}

static void say_file(FILE *say, const void *user)
{
    (void)user;
    fprintf(say, "%s", tn_settings_file());
}

static void make_config(const char *below, const char *text)
{
    char path[SCRATCH_PATH + 64];
    for (const char *at = strchr(below, '/'); at; at = strchr(at + 1, '/')) {
        snprintf(path, sizeof path, "%s/%.*s", scratch, (int)(at - below), below);
        (void)mkdir(path, 0700);
    }
    snprintf(path, sizeof path, "%s/%s", scratch, below);
    write_file(path, text);
}

static void say_place(FILE *say, const void *user)
{
    (void)unsetenv("TENON_CONFIG");
    if (user)
        assert_int_equal(chdir(user), 0);
    if (getenv("TEST_CONFIG"))
        (void)setenv("TENON_CONFIG", getenv("TEST_CONFIG"), 1);
    say_file(say, NULL);
    fprintf(say, " %lld", (long long)tn_get_tuning_limit(NULL));
}

/* The path below the folder, and what was read. */
static void check_place(const char *home, const char *xdg, const char *chosen, const char *expected)
{
    char variables[3][SCRATCH_PATH + 64], whole[SCRATCH_PATH + 64];
    world in = {.run = say_place, .user = scratch};
    size_t used = 0;
    const char *const values[] = {home, xdg, chosen};
    static const char *const names[] = {"HOME", "XDG_CONFIG_HOME", "TEST_CONFIG"};
    for (size_t i = 0; i < 3; i++) {
        const char *value = values[i] ? values[i] : "relative/path";
        bool inside = value[0] == '/';
        snprintf(variables[i], sizeof variables[i], "%s=%s%s", names[i], inside ? scratch : "",
                 value);
        if (values[i] || i < 2)
            in.variables[used++] = variables[i];
    }
    snprintf(whole, sizeof whole, "%s%s", expected[0] == '/' ? scratch : "", expected);
    assert_string_equal(ask(&in), whole);
}

static void the_file_is_found(void **state)
{
    (void)state;
    make_config("home/.config/tenon/config", "tuning.limit = 1\n");
    make_config("xdg/tenon/config", "tuning.limit = 2\n");
    make_config("other", "tuning.limit = 3\n");
    check_place("/home", NULL, NULL, "/home/.config/tenon/config 1");
    check_place("/home", "/xdg", NULL, "/xdg/tenon/config 2");
    check_place("/home", "", NULL, "/home/.config/tenon/config 1");
    check_place("/nothing", "/nowhere", NULL, "/nowhere/tenon/config 10");
    check_place("/home", "/xdg", "/other", "/other 3");
    check_place("/home", "/xdg", "other", "/other 3"); /* from the folder it runs in */
    check_place("/home", "/xdg", "", " 10");
    check_place("", "", NULL, " 10");
    check_place(NULL, NULL, NULL, " 10");
}

static void files_may_be_written_in_every_way(void **state)
{
    (void)state;
    assert_string_equal(ask_file(""), "");
    assert_string_equal(ask_file("\xEF\xBB\xBFtuning.limit = 3\r\n[cudnn]\r\nbenchmark=on\r\n"),
                        "cudnn.benchmark=true [file: FILE:3]\n"
                        "tuning.limit=3 [file: FILE:1]\n");
    assert_string_equal(ask_file("[ cuda ]\nmatmul.fp32_precision = \"tf32\"\n[tuning]\nlimit=4"),
                        "cuda.matmul.fp32_precision=tf32 [file: FILE:2]\n"
                        "tuning.limit=4 [file: FILE:4]\n");
    assert_string_equal(ask_file("tuning.limit = 3\ntuning.limit = 5\n"),
                        "tuning.limit=5 [file: FILE:2]\n");
    assert_string_equal(
        ask_file("cuda.matmul.allow_tf32 = true\ncuda.matmul.fp32_precision = ieee\n"),
        "cuda.matmul.fp32_precision=ieee [file: FILE:2]\n");
}

static void what_is_wrong_in_a_file_is_told_with_its_place(void **state)
{
    (void)state;
    assert_string_equal(
        ask_file("tuning.limt = 3\n[cudnn]\nbenchmark = maybe\nenabled = off\nbenchmark_limit = "
                 "10001\n"),
        "cudnn.enabled=false [file: FILE:4]\n"
        "! FILE:1: unknown setting \"tuning.limt\"; `tenon settings` lists them; did you mean "
        "tuning.limit?\n"
        "! FILE:3: cudnn.benchmark cannot be \"maybe\"; allowed: true, false\n"
        "! FILE:5: cudnn.benchmark_limit cannot be \"10001\"; allowed: 0 to 10000\n");
    assert_string_equal(ask_file("tuning.limit = 3\ninference\n"),
                        "! FILE:2:10: expected '=', got the end of the line; the whole "
                        "file is ignored\n");
    assert_contains(ask_file("tuning.limit = 3\n\xff\n"),
                    "! FILE:2:1: expected printable UTF-8 text, got byte 0xff");
}

static void a_long_path_is_shown_by_its_end(void **state)
{
    char name[256], text[SCRATCH_PATH + 320];
    (void)state;
    memset(name, 'd', 240);
    memcpy(name + 240, "/e", 3);
    name[120] = '/';
    make_config(name, "inference = 1\nbad = 1\n");
    snprintf(text, sizeof text, "TENON_CONFIG=%s/%s", scratch, name);
    const char *said = ask_with(text, NULL);
    assert_contains(said, "ddd/e:1]\n! .../ddd");
    assert_contains(said, "ddd/e:2: unknown setting \"bad\"");
}

/* A file of `size` bytes: the value, then a comment. */
static const char *ask_size(size_t size)
{
    static const char value[] = "tuning.limit = 3\n#";
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    memcpy(text, value, sizeof value - 1);
    text[size] = '\0';
    const char *said = ask_file(text);
    free(text);
    return said;
}

static void a_file_has_at_most_a_megabyte(void **state)
{
    (void)state;
    assert_string_equal(ask_size(1 << 20), "tuning.limit=3 [file: FILE:1]\n");
    assert_string_equal(ask_size((1 << 20) + 1), "! FILE: longer than 1048576 bytes\n");
}

/* As many problems as fit, told in time; what is right among them counts. */
static void a_file_of_nothing_but_problems_is_told_in_part(void **state)
{
    enum { LINES = 5000 };
    char *text = malloc(LINES * 4 + 64);
    size_t told = 0, used = 0;
    (void)state;
    assert_non_null(text);
    for (int i = 0; i < LINES; i++)
        used += (size_t)sprintf(text + used, "a=1\n");
    sprintf(text + used, "inference=1\n");
    const char *said = ask_file(text);
    free(text);
    assert_contains(said, "inference=true [file: FILE:5001]\n! FILE:1: unknown setting \"a\"");
    assert_contains(said, "! FILE:99: unknown setting \"a\"");
    assert_contains(said, "! there are more problems; fix these first\n");
    for (; *said; said++)
        told += *said == '!';
    assert_int_equal(told, TNI_PROBLEMS_MOST);
}

/* Another user, for whom modes count, if this one is the system's. */
static void say_as_another(FILE *say, const void *user)
{
    if (geteuid() == 0)
        (void)!setuid(65534);
    say_all(say, user);
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
    char variable[SCRATCH_PATH + 32], pipe_path[SCRATCH_PATH + 16];
    (void)state;
    snprintf(variable, sizeof variable, "TENON_CONFIG=%s", scratch);
    assert_contains(ask_with(variable, "TENON_INFERENCE=1"),
                    "inference=true [environment: TENON_INFERENCE]\n! ");
    assert_contains(ask_with(variable, NULL), "not a regular file");
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", scratch);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    snprintf(variable, sizeof variable, "TENON_CONFIG=%s", pipe_path);
    assert_contains(ask_with(variable, NULL), "pipe: not a regular file");
    write_file(config_file, "tuning.limit = 3\n");
    assert_int_equal(chmod(scratch, 0711), 0);
    assert_int_equal(chmod(config_file, 0), 0);
    snprintf(variable, sizeof variable, "TENON_CONFIG=%s", config_file);
    const char *said = ask_run(variable, NULL, say_as_another, NULL);
    assert_int_equal(strncmp(said, "! ", 2), 0);
    assert_contains(said, "ermission denied");
    assert_int_equal(chmod(config_file, 0600), 0);
    snprintf(variable, sizeof variable, "TENON_CONFIG=%s/not/there", scratch);
    said = ask_with(variable, NULL);
    assert_int_equal(strncmp(said, "! TENON_CONFIG: /", 17), 0);
    assert_contains(said, "/not/there: No such file or directory");
}

static void calls_fail(FILE *say, const void *user)
{
    long n = *(const long *)user;
    fault_calls_install();
    fault_arm(&fault_call, n, false, EIO);
    int64_t limit = tn_get_tuning_limit(NULL);
    bool fired = fault_end(&fault_call);
    const char *problem = tn_settings_problem(0);
    fprintf(say, "%d %lld %s", fired, (long long)limit, problem ? "told" : "not told");
}

static void a_system_that_fails_is_told(void **state)
{
    const char *said = "1";
    (void)state;
    write_file(config_file, "tuning.limit = 3\n");
    for (long n = 1; said[0] == '1'; n++) {
        said = ask_run(config_variable, NULL, calls_fail, &n);
        assert_true(strcmp(said, "1 10 told") == 0 || strcmp(said, "1 3 not told") == 0 ||
                    strcmp(said, "0 3 not told") == 0);
        assert_true(n < 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_by_the_file),
        cmocka_unit_test(the_file_is_found),
        cmocka_unit_test(files_may_be_written_in_every_way),
        cmocka_unit_test(what_is_wrong_in_a_file_is_told_with_its_place),
        cmocka_unit_test(a_long_path_is_shown_by_its_end),
        cmocka_unit_test(a_file_has_at_most_a_megabyte),
        cmocka_unit_test(a_file_of_nothing_but_problems_is_told_in_part),
        cmocka_unit_test(a_file_that_cannot_be_read_is_told),
        cmocka_unit_test(a_system_that_fails_is_told),
    };
    return run_sources("unit.settings_file", tests);
}
