/* A process with elevated privileges takes no module, no cache and no setting from the
 * environment. Tested with a set-uid copy of a small program where one can be made. */
#include "support.h"

#include "os/process.h"

#include <sys/prctl.h>
#include <sys/statvfs.h>

#define CONFIG ".config/tenon/config"

enum { NOBODY = 65534 };

/* Another group than its own that this process is in; its own when there is none. */
static gid_t other_group(void)
{
    gid_t groups[64];
    int count = getgroups(64, groups);
    for (int i = 0; i < count; i++) {
        if (groups[i] != getgid())
            return groups[i];
    }
    return getgid();
}

/* Gives the copy rights that this process does not have: as root another owner's, otherwise those
 * of another group. NULL, or why that cannot be. */
static const char *raise_privileges(const char *program)
{
    struct statvfs system;
    bool root = geteuid() == 0;
    if (statvfs(program, &system) != 0 || (system.f_flag & ST_NOSUID))
        return "the temporary folder's file system ignores set-uid";
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0)
        return "this process may gain no privileges";
    if (!root && other_group() == getgid())
        return "neither root nor a member of a second group";
    if (chown(program, root ? NOBODY : (uid_t)-1, root ? (gid_t)-1 : other_group()) != 0 ||
        chmod(program, root ? 04755 : 02755) != 0)
        return "the system makes no set-uid copy";
    return NULL;
}

/* What the program says of itself with the variables set to the folder, and with the configuration file
 * there named by `config`, TENON_CONFIG or HOME. */
static void ask(const char *program, const char *folder, const char *config, tni_buffer *out)
{
    const char *const arguments[] = {"privileges_child", NULL};
    tni_process_end end;
    tn_error err;
    assert_int_equal(setenv("TENON_MODULE_PATH", folder, 1), 0);
    assert_int_equal(setenv("TENON_CACHE", path_in(folder, "cache").text, 1), 0);
    assert_int_equal(setenv("TENON_CPU_THREADS", "3", 1), 0);
    assert_int_equal(unsetenv("TENON_CONFIG") | unsetenv("XDG_CONFIG_HOME"), 0);
    bool home = strcmp(config, "HOME") == 0;
    assert_int_equal(setenv(config, home ? folder : path_in(folder, CONFIG).text, 1), 0);
    assert_int_equal(tni_process_run(program, arguments, INT64_C(30000000000), out, &end, &err),
                     TN_OK);
    assert_int_equal(end.signal, 0);
    assert_int_equal(end.exit_code, 0);
}

static void check_honoured(const char *program, const char *folder, const char *config)
{
    tni_buffer said = {0}, place = {0}, cache = {0}, file = {0};
    ask(program, folder, config, &said);
    tni_buffer_format(&place, "place = %s: 1 module\n", folder);
    tni_buffer_format(&cache, "cache = %s/cache\n", folder);
    tni_buffer_format(&file, "threads = 3\nlimit = 7\nfile = %s/" CONFIG "\n", folder);
    assert_contains(tni_buffer_text(&said), "privileged = 0\n");
    assert_contains(tni_buffer_text(&said), place.text);
    assert_contains(tni_buffer_text(&said), "module = candidate\n");
    assert_contains(tni_buffer_text(&said), cache.text);
    assert_contains(tni_buffer_text(&said), file.text);
    assert_null(strstr(tni_buffer_text(&said), "problem = "));
    tni_buffer_release(&file);
    tni_buffer_release(&cache);
    tni_buffer_release(&place);
    tni_buffer_release(&said);
}

static void check_ignored(const char *program, const char *folder, const char *config)
{
    tni_buffer said = {0}, told = {0};
    ask(program, folder, config, &said);
    const char *text = tni_buffer_text(&said);
    assert_contains(text, "privileged = 1\n");
    assert_contains(
        text, "place = $TENON_MODULE_PATH: ignored: this process runs with elevated privileges\n");
    assert_contains(text, "module = ref\n");
    assert_null(strstr(text, "module = candidate"));
    assert_contains(text, "no cache = ");
    assert_contains(text, "threads = 0\nlimit = 10\nfile = \n");
    tni_buffer_format(&told, "problem = %s is ignored: the process runs with elevated privileges",
                      config);
    assert_contains(text, told.text);
    assert_contains(text, "problem = TENON_CPU_THREADS is ignored: the process runs");
    assert_null(strstr(text, folder));
    tni_buffer_release(&told);
    tni_buffer_release(&said);
}

static void put_config(const char *folder)
{
    static const char text[] = "tuning.limit = 7\n";
    assert_int_equal(mkdir(path_in(folder, ".config").text, 0755), 0);
    assert_int_equal(mkdir(path_in(folder, ".config/tenon").text, 0755), 0);
    put_bytes(path_in(folder, CONFIG), text, strlen(text));
}

static void raised_privileges_ignore_the_environment(void **state)
{
    char folder[SCRATCH_PATH];
    (void)state;
    scratch_make(folder);
    assert_int_equal(chmod(folder, 0755), 0);
    put_bytes(module_in(folder, "candidate"), "x", 1);
    struct path program = path_in(folder, "child");
    put_copy(program, CHILD);
    assert_int_equal(chmod(program.text, 0755), 0);
    put_config(folder);
    check_honoured(program.text, folder, "TENON_CONFIG");
    check_honoured(program.text, folder, "HOME");
    const char *reason = raise_privileges(program.text);
    if (!reason) {
        check_ignored(program.text, folder, "TENON_CONFIG");
        check_ignored(program.text, folder, "HOME");
    }
    scratch_remove(folder);
    if (reason)
        skip_because("no set-uid copy: %s", reason);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raised_privileges_ignore_the_environment),
    };
    return run_suite("loader.privileges", tests);
}
