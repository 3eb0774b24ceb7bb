/* Traces that are files, and the system itself: of systems that do not exist and of this one. */
#include "look_check.h"

#include <fcntl.h>
#include <sys/utsname.h>

static tni_look at(const char *root, const char *path)
{
    tni_look look = look_unset();
    tni_look_file(root, path, &look);
    return look_sound(look);
}

static void system_is_the_one_built_for(void **state)
{
    static const char *const others[] = {"darwin/s390x", "windows/x86_64", "linux/s390x", "linux/",
                                         "/x86_64",      "linux/x86_64/",  "lin/x86_64"};
    struct utsname name;
    char text[sizeof name.machine + 16];
    tni_look look;
    (void)state;
    assert_int_equal(uname(&name), 0);
    snprintf(text, sizeof text, "linux/%s", name.machine);
    tni_look_system(text, &look);
    assert_contains(look.text, text);
    assert_true(look.holds == 1 && look.count == 1 && !look.denied);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        tni_look_system(others[i], &look);
        assert_true(look.holds == 0 && look.count == 0);
        assert_contains(look.text, text);
    }
    tni_look_system("linux", &look);
    assert_int_equal(look.holds, -1);
    assert_contains(look.text, "\"linux\" is not a system: write it as linux/");
#if defined(__aarch64__)
    tni_look_system("linux/arm64", &look);
    assert_int_equal(look.holds, 1);
#elif defined(__x86_64__)
    tni_look_system("linux/amd64", &look);
    assert_int_equal(look.holds, 1);
#endif
}

static void files_are_there_or_not(void **state)
{
    char longest[TNI_LOOK_PATH + 8], path[TNI_LOOK_PATH];
    const char *root = look_root();
    (void)state;
    tree_put(root, "/dev/acme0", "%s", "");
    tree_put(root, "/sys/module/acme/version", "1\n");
    look_expect(at(root, "/dev/acme0"), 1, 1, "present");
    look_expect(at(root, "/dev/acme1"), 0, 0, "absent");
    look_expect(at(root, "/dev/acme0/below"), 0, 0, "absent");
    look_expect(at(root, "/sys/module/acme"), 1, 1, "present");
    assert_int_equal(symlink("nowhere", look_below(root, "/dev/dangling")), 0);
    look_expect(at(root, "/dev/dangling"), 0, 0, "absent");
    look_expect(at(root, ""), -1, 0, "\"\" is not an absolute path");
    look_expect(at(root, "dev/acme0"), -1, 0, "\"dev/acme0\" is not an absolute path");
    look_expect(at(root, "*"), -1, 0, "\"*\" is not an absolute path");
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    look_expect(at(root, longest), 0, 0, "absent");
    look_expect(at(NULL, "/"), 1, 1, "present");
    longest[TNI_LOOK_PATH] = '\0';
    assert_false(tni_look_path(path, "%s", longest));
    longest[TNI_LOOK_PATH - 1] = '\0';
    assert_true(tni_look_path(path, "%s", longest));
    assert_string_equal(path, longest);
}

/* "PATH: " and the system's words. */
static const char *words(const char *path, int code)
{
    static char text[160];
    snprintf(text, sizeof text, "%s: %s", path, strerror(code));
    return text;
}

static void what_cannot_be_looked_at_says_why(void **state)
{
    const char *root = look_root();
    (void)state;
    tree_put(root, "/dev/plain", "%s", "");
    assert_int_equal(symlink("loop", look_below(root, "/dev/loop")), 0);
    look_expect(at(root, "/dev/loop"), -1, 0, words("/dev/loop", ELOOP));
    look_expect(at(root, "/dev/loop*"), -1, 0, words("/dev/loop", ELOOP));
    look_expect(at(root, "/dev/lo*"), -1, 0, words("/dev/loop", ELOOP));
    look_expect(at(root, "/dev/loop/*"), -1, 0, words("/dev/loop/", ELOOP));
    look_expect(at(root, "/dev/pl*"), 1, 1, "/dev/plain");
}

static void a_star_stands_for_what_begins_so(void **state)
{
    char path[64];
    const char *root = look_root();
    (void)state;
    look_expect(at(root, "/dev/acme*"), 0, 0, "absent");
    tree_put(root, "/dev/acme1", "%s", "");
    tree_put(root, "/dev/bee", "%s", "");
    tree_put(root, "/dev/.hidden", "%s", "");
    look_expect(at(root, "/dev/acme*"), 1, 1, "/dev/acme1");
    tree_put(root, "/dev/acme0", "%s", "");
    look_expect(at(root, "/dev/acme*"), 1, 2, "2 entries, the first /dev/acme0");
    tree_put(root, "/dev/acme", "%s", "");
    look_expect(at(root, "/dev/acme*"), 1, 3, "3 entries, the first /dev/acme");
    look_expect(at(root, "/dev/acme0*"), 1, 1, "/dev/acme0");
    look_expect(at(root, "/dev/*"), 1, 5, "5 entries, the first /dev/.hidden");
    look_expect(at(root, "/dev/.*"), 1, 1, "/dev/.hidden");
    look_expect(at(root, "/dev/..*"), 0, 0, "absent");
    look_expect(at(root, "/dev/acme0/*"), 0, 0, "absent");
    look_expect(at(root, "/*"), 1, 1, "/dev");
    assert_int_equal(symlink("nowhere", look_below(root, "/dev/cee0")), 0);
    look_expect(at(root, "/dev/cee*"), 0, 0, "absent");
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof path, "/dev/dri/renderD%d", 128 + i);
        tree_put(root, path, "%s", "");
    }
    look_expect(at(root, "/dev/dri/renderD*"), 1, 300,
                "300 entries, the first /dev/dri/renderD128");
}

static void texts_are_one_line_that_fits(void **state)
{
    char path[300], odd[] = "/dev/odd\n\x1b[31m\xff";
    const char *root = look_root();
    (void)state;
    tree_put(root, odd, "%s", "");
    look_expect(at(root, "/dev/odd*"), 1, 1, "/dev/odd\\x0a\\x1b[31m\\xff");
    memset(path, 'y', sizeof path);
    memcpy(path, "/dev/", 5);
    path[250] = '\0';
    tree_put(root, path, "%s", "");
    tni_look look = at(root, "/dev/y*");
    assert_true(look.holds == 1 && strlen(look.text) < sizeof look.text);
    assert_contains(look.text, "/dev/yyyyyyyy");
    assert_contains(look.text, "...");
}

/* Modes mean nothing to the superuser, who therefore looks as someone else meanwhile. */
static void as_someone_else(bool begin)
{
    enum { NOBODY = 65534 };
    if (getuid() == 0 && seteuid(begin ? NOBODY : 0) != 0)
        skip_because("the superuser cannot look as someone else here");
}

static void put_mode(const char *root, const char *path, mode_t mode)
{
    tree_put(root, path, "%s", "");
    assert_int_equal(chmod(look_below(root, path), mode), 0);
}

/* What is in the way itself, so that only the modes of the files decide. */
static bool can_be_reached(const char *root)
{
    as_someone_else(true);
    bool reached = access(root, F_OK) == 0 && faccessat(AT_FDCWD, root, X_OK, AT_EACCESS) == 0;
    as_someone_else(false);
    return reached;
}

static void what_may_not_be_opened_is_denied(void **state)
{
    static const struct {
        const char *path, *text;
        int count, denied;
    } rows[] = {
        {"/dev/open", "present", 1, 0},
        {"/dev/shut", "present, but this process cannot open it", 1, 1},
        {"/dev/read", "present, but this process cannot open it", 1, 1},
        {"/dev/write", "present, but this process cannot open it", 1, 1},
        {"/dev/folder", "present", 1, 0},
        {"/usr/shut", "present", 1, 0},
        {"/devices/shut", "present", 1, 0},
        {"/run/pipe", "present, but this process cannot open it", 1, 1},
        {"/dev/sh*", "/dev/shut, which this process cannot open", 1, 1},
        {"/dev/n/*", "2 entries, the first /dev/n/0, none of which this process can open", 2, 1},
        {"/dev/m/*", "3 entries, the first /dev/m/0; this process cannot open 2 of them", 3, 0},
    };
    const char *root = look_root();
    (void)state;
    put_mode(root, "/dev/open", 0666);
    put_mode(root, "/dev/shut", 0);
    put_mode(root, "/dev/read", 0444);
    put_mode(root, "/dev/write", 0222);
    put_mode(root, "/usr/shut", 0);
    put_mode(root, "/devices/shut", 0);
    put_mode(root, "/dev/n/0", 0);
    put_mode(root, "/dev/n/1", 0444);
    put_mode(root, "/dev/m/0", 0);
    put_mode(root, "/dev/m/1", 0666);
    put_mode(root, "/dev/m/2", 0);
    put_mode(root, "/run/mark", 0666);
    assert_int_equal(mkfifo(look_below(root, "/run/pipe"), 0), 0);
    assert_int_equal(mkdir(look_below(root, "/dev/folder"), 0555), 0);
    if (!can_be_reached(root))
        skip_because("%s cannot be reached by others", root);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        as_someone_else(true);
        tni_look look = at(root, rows[i].path);
        as_someone_else(false);
        look_expect(look, 1, rows[i].count, rows[i].text);
        assert_int_equal(look.denied, rows[i].denied);
    }
    assert_int_equal(chmod(look_below(root, "/run"), 0), 0);
    as_someone_else(true);
    tni_look look = at(root, "/run/mark");
    as_someone_else(false);
    assert_int_equal(chmod(look_below(root, "/run"), 0755), 0);
    look_expect(look, -1, 0, words("/run/mark", EACCES));
}

static int opened;

static bool count_opened(const char *call)
{
    opened += strcmp(call, "open") == 0 || strcmp(call, "openat") == 0;
    return false;
}

static void no_device_is_opened(void **state)
{
    (void)state;
    tni_sys_fault_set(count_opened);
    opened = 0;
    tni_look look = at(NULL, "/dev/null");
    at(NULL, "/dev/tty*");
    tni_sys_fault_set(fault_call_);
    assert_int_equal(opened, 0);
    if (look.holds != 1)
        skip_because("/dev/null: %s", look.text);
    assert_string_equal(look.text, "present");
    assert_int_equal(look.denied, 0);
}

static void looks_survive_every_fault(void **state)
{
    const char *root = look_root();
    (void)state;
    tree_put(root, "/dev/acme0", "%s", "");
    tree_put(root, "/dev/acme1", "%s", "");
    look_survives_all(at, root, "/dev/acme0", 1, 0);
    look_survives_all(at, root, "/dev/acme*", 6, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_is_the_one_built_for),
        cmocka_unit_test(files_are_there_or_not),
        cmocka_unit_test(what_cannot_be_looked_at_says_why),
        cmocka_unit_test(a_star_stands_for_what_begins_so),
        cmocka_unit_test(texts_are_one_line_that_fits),
        cmocka_unit_test(what_may_not_be_opened_is_denied),
        cmocka_unit_test(no_device_is_opened),
        cmocka_unit_test(looks_survive_every_fault),
    };
    look_begin();
    int failed = run_suite("unit.look", tests);
    look_end();
    return failed;
}
