/* Writing into the configuration file: the value is read from then on, everything else stays as it is,
 * and whatever fails leaves the old file whole. */
#include "settings_child.h"

#include "fault/fault.h"
#include "os/sys.h"

#include <dirent.h>

static const char *read_file(const char *path)
{
    static char text[4096];
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    (void)fclose(from);
    return text;
}

static int mode_of(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    return (int)(facts.st_mode & 07777);
}

static size_t names_in(const char *path)
{
    size_t count = 0;
    DIR *open = opendir(path);
    assert_non_null(open);
    while (readdir(open))
        count++;
    (void)closedir(open);
    return count - 2;
}

static const char *lock_file(void)
{
    static char path[sizeof config_file + 8];
    snprintf(path, sizeof path, "%s.lock", config_file);
    return path;
}

/* The status, what it says and whether this process noticed. */
static void say_save(FILE *say, const void *user)
{
    static char before[ALL_TEXT], after[ALL_TEXT];
    tn_error err = {0};
    write_all(NULL, before);
    tn_status status = tn_settings_save(user, &err);
    write_all(NULL, after);
    fprintf(say, "%s%s%s%s", tn_status_name(status), status ? ": " : "", status ? err.message : "",
            strcmp(before, after) == 0 ? "" : ", and the process has changed");
}

static const char *save(const char *text)
{
    return ask_run(config_variable, NULL, say_save, text);
}

static void check_save(const char *before, const char *text, const char *after)
{
    write_file(config_file, before);
    assert_string_equal(save(text), "ok");
    assert_string_equal(read_file(config_file), after);
    assert_int_equal(names_in(scratch), 1);
}

static void every_row_is_saved(void **state)
{
    (void)state;
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        char text[ROW_TEXT], expected[ROW_TEXT], origin[SCRATCH_PATH + 32];
        write_file(config_file, "# mine\n\n");
        snprintf(text, sizeof text, "%s=%s", key_of(i), other_value(i));
        assert_string_equal(save(text), "ok");
        snprintf(text, sizeof text, "# mine\n\n%s = %s\n", key_of(i), other_value(i));
        assert_string_equal(read_file(config_file), text);
        snprintf(origin, sizeof origin, "file: %s:3", config_file);
        expect(i, other_value(i), origin, expected);
        assert_string_equal(ask_with(config_variable, NULL), expected);
    }
}

static void the_other_lines_stay(void **state)
{
    (void)state;
    check_save("", "tuning.limit=3", "tuning.limit = 3\n");
    check_save("# a\nx = 1", "tuning.limit=3", "# a\nx = 1\ntuning.limit = 3\n");
    check_save("# a\ntuning.limit = 1 # b\n# c\n", "tuning.limit=3",
               "# a\ntuning.limit = 3\n# c\n");
    check_save("tuning.limit=1", "tuning.limit= 3 ", "tuning.limit = 3\n");
    check_save("tuning.limit = 1\nnot-known = 1\n[a]\nb = \"c\"\n", "tuning.limit=3",
               "tuning.limit = 3\nnot-known = 1\n[a]\nb = \"c\"\n");
    check_save("tuning.limit = 1\n\ntuning.limit = 2\n", "tuning.limit=3",
               "tuning.limit = 1\n\ntuning.limit = 3\n");
    check_save("a = 1\r\ntuning.limit = 2\r\nb = 2\r\n", "tuning.limit=3",
               "a = 1\r\ntuning.limit = 3\nb = 2\r\n");
}

static void sections_are_respected(void **state)
{
    (void)state;
    check_save("[tuning]\nlimit = 1\n", "tuning.limit=3", "[tuning]\nlimit = 3\n");
    check_save("[cuda]\nmatmul.allow_tf32 = 0\n[x]\n", "cuda.matmul.allow_tf32=1",
               "[cuda]\nmatmul.allow_tf32 = 1\n[x]\n");
    check_save("[cuda.matmul]\nallow_tf32 = 0\n", "cuda.matmul.allow_tf32=1",
               "[cuda.matmul]\nallow_tf32 = 1\n");
    check_save("a = 1\n[tuning]\n# none\n[x]\ny = 1\n", "tuning.limit=3",
               "a = 1\ntuning.limit = 3\n[tuning]\n# none\n[x]\ny = 1\n");
    check_save("[x]\ny = 1\n", "tuning.limit=3", "tuning.limit = 3\n[x]\ny = 1\n");
    check_save("tuning.limit = 1\n[tuning]\nlimit = 2\n", "tuning.limit=3",
               "tuning.limit = 1\n[tuning]\nlimit = 3\n");
    check_save("\xEF\xBB\xBF[x]\ny = 1\n", "tuning.limit=3",
               "\xEF\xBB\xBFtuning.limit = 3\n[x]\ny = 1\n");
    check_save("\xEF\xBB\xBFtuning.limit = 1\n", "tuning.limit=3",
               "\xEF\xBB\xBFtuning.limit = 3\n");
    check_save("\xEF\xBB\xBF", "tuning.limit=3", "\xEF\xBB\xBFtuning.limit = 3\n");
}

static void a_block_is_replaced_whole(void **state)
{
    (void)state;
    check_save("a = 1\nrules = \"\"\"  # many\nforbid:x,\n  a = 2\n  \"\"\"\nb = 1\n",
               "rules=avoid:y", "a = 1\nrules = avoid:y\nb = 1\n");
    check_save("a = \"\"\"\nrules = 1\n\"\"\"\n", "rules=avoid:y",
               "a = \"\"\"\nrules = 1\n\"\"\"\nrules = avoid:y\n");
}

static void folders_and_file_are_made(void **state)
{
    char variable[SCRATCH_PATH + 64], path[SCRATCH_PATH + 64];
    (void)state;
    mode_t mask = umask(0);
    snprintf(variable, sizeof variable, "TENON_CONFIG=%s/one/two/config", scratch);
    assert_string_equal(ask_run(variable, NULL, say_save, "inference=1"), "ok");
    umask(mask);
    snprintf(path, sizeof path, "%s/one/two/config", scratch);
    assert_string_equal(read_file(path), "inference = 1\n");
    assert_int_equal(mode_of(path), 0600);
    snprintf(path, sizeof path, "%s/one/two", scratch);
    assert_int_equal(mode_of(path), 0700);
    assert_int_equal(names_in(path), 1);
    snprintf(path, sizeof path, "%s/one", scratch);
    assert_int_equal(mode_of(path), 0700);
    scratch_remove(path);
}

static void a_link_stays_one(void **state)
{
    char link_path[SCRATCH_PATH + 16], variable[SCRATCH_PATH + 64], to[8] = "";
    (void)state;
    write_file(config_file, "a = 1\n");
    snprintf(link_path, sizeof link_path, "%s/link", scratch);
    assert_int_equal(symlink("config", link_path), 0);
    snprintf(variable, sizeof variable, "TENON_CONFIG=%s", link_path);
    assert_string_equal(ask_run(variable, NULL, say_save, "inference=1"), "ok");
    assert_int_equal(readlink(link_path, to, sizeof to), 6);
    assert_memory_equal(to, "config", 6);
    assert_string_equal(read_file(config_file), "a = 1\ninference = 1\n");
    assert_int_equal(remove(config_file), 0);
    assert_contains(ask_run(variable, NULL, say_save, "inference=1"), "not-found: ");
    assert_int_equal(readlink(link_path, to, sizeof to), 6);
    assert_int_equal(names_in(scratch), 1);
    assert_int_equal(remove(link_path), 0);
}

static void owner_and_mode_stay(void **state)
{
    struct stat facts;
    bool root = geteuid() == 0;
    (void)state;
    write_file(config_file, "a = 1\n");
    assert_int_equal(chmod(config_file, 0644), 0);
    if (root)
        assert_int_equal(chown(config_file, 65534, 65534), 0);
    mode_t mask = umask(077);
    assert_string_equal(save("inference=1"), "ok");
    umask(mask);
    assert_int_equal(stat(config_file, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0644);
    assert_int_equal(facts.st_uid, root ? 65534 : geteuid());
    assert_int_equal(remove(config_file), 0);
}

static void check_refused(const char *text, const char *words)
{
    char before[4096];
    snprintf(before, sizeof before, "%s", read_file(config_file));
    assert_contains(save(text), words);
    assert_string_equal(read_file(config_file), before);
    assert_int_equal(names_in(scratch), 1);
}

static void bad_values_are_not_saved(void **state)
{
    (void)state;
    write_file(config_file, "tuning.limit = 3\n");
    check_refused("tuning.limit=10001", "invalid-argument: tuning.limit cannot be \"10001\"");
    check_refused("tuning.limt=1", "not-found: unknown setting \"tuning.limt\"");
    check_refused("tuning.limit", "expected key=value");
    check_refused("matmul.library=prefer:a b", "invalid-argument: ");
    check_refused("rules=forbid", "invalid-argument: ");
    check_refused(tn_cpu_architecture() == TN_CPU_ARCH_X86 ? "cpu.isa_mask=sve"
                                                           : "cpu.isa_mask=avx2",
                  "is not usable on this processor");
}

/* Saved is what will be read: a line that something else in the file overrules is none. */
static void a_value_that_would_not_be_read_is_not_saved(void **state)
{
    (void)state;
    write_file(config_file, "[cuda.matmul]\nfp32_precision = ieee\n");
    check_refused("cuda.matmul.allow_tf32=true", "config:3 has a different value");
    write_file(config_file, "matmul.library = require:mkldnn\n[x]\nwrong = 1\n");
    check_refused("mkldnn.enabled=false",
                  "config:2: expected rules that agree within the level file, got "
                  "require:matmul/library:mkldnn (matmul.library) and forbid:library:mkldnn "
                  "(mkldnn.enabled)");
    write_file(config_file, "inference\n");
    check_refused("tuning.limit=3", "corrupt: ");
    char many[1500] = "matmul.library = require:mkldnn\n";
    for (int i = 0; i < TNI_PROBLEMS_MOST; i++)
        strncat(many, "nothing = 1\n", 13);
    write_file(config_file, many);
    check_refused("mkldnn.enabled=false", "config:102 would be ignored; fix the problems");
}

static void a_file_is_not_made_too_long(void **state)
{
    char *text = malloc((1 << 20) + 2);
    struct stat facts;
    (void)state;
    assert_non_null(text);
    memset(text, '#', (1 << 20) + 1);
    text[1 << 20] = '\0';
    write_file(config_file, text);
    assert_contains(save("inference=1"), "would be longer than 1048576 bytes");
    text[1 << 20] = '#';
    text[(1 << 20) + 1] = '\0';
    write_file(config_file, text);
    assert_contains(save("inference=1"), "longer than 1048576 bytes");
    assert_int_equal(stat(config_file, &facts), 0);
    assert_int_equal(facts.st_size, (1 << 20) + 1);
    free(text);
}

static void without_a_file_nothing_is_saved(void **state)
{
    (void)state;
    assert_string_equal(ask_run("TENON_CONFIG=", NULL, say_save, "inference=1"),
                        "unavailable: no configuration file: set TENON_CONFIG to a path, or HOME");
}

/* Another user, for whom modes count, if this one is the system's. */
static void say_as_another(FILE *say, const void *user)
{
    if (geteuid() == 0 && setuid(65534) != 0)
        fprintf(say, "no other user");
    say_save(say, user);
}

static void a_folder_that_is_closed_is_told(void **state)
{
    (void)state;
    write_file(config_file, "a = 1\n");
    assert_int_equal(chmod(config_file, 0666), 0);
    assert_int_equal(chmod(scratch, 0555), 0);
    const char *said = ask_run(config_variable, NULL, say_as_another, "inference=1");
    assert_int_equal(chmod(scratch, 0700), 0);
    assert_contains(said, "not-permitted: ");
    assert_contains(said, "config");
    assert_string_equal(read_file(config_file), "a = 1\n");
    assert_int_equal(names_in(scratch), 1);
}

/* A process that saves as soon as the others are there too. */
static pid_t start_saving(const char *text, const int gate[2])
{
    char letter;
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void)close(gate[1]);
    (void)putenv(config_variable);
    _exit(read(gate[0], &letter, 1) == 0 ? (int)tn_settings_save(text, NULL) : 255);
}

static void of_several_at_once_none_is_lost(void **state)
{
    static const char *const texts[] = {"inference=1",       "tuning.limit=3",   "debug.sync=1",
                                        "plan.cache_size=8", "tuning.enabled=1", "admission=never",
                                        "mkl.verbose=on",    "determinism=any"};
    enum { COUNT = sizeof texts / sizeof texts[0] };
    pid_t children[COUNT];
    int gate[2];
    (void)state;
    for (int round = 0; round < (test_reduced() ? 3 : test_full() ? 20 : 6); round++) {
        (void)remove(config_file);
        assert_int_equal(pipe(gate), 0);
        for (int i = 0; i < COUNT; i++)
            children[i] = start_saving(texts[i], gate);
        (void)close(gate[0]);
        (void)close(gate[1]);
        for (int i = 0; i < COUNT; i++) {
            int code = -1;
            assert_int_equal(waitpid(children[i], &code, 0), children[i]);
            assert_int_equal(code, 0);
        }
        for (int i = 0; i < COUNT; i++) {
            char line[64];
            int key = (int)strcspn(texts[i], "=");
            snprintf(line, sizeof line, "%.*s = %s\n", key, texts[i], texts[i] + key + 1);
            assert_contains(read_file(config_file), line);
        }
        assert_int_equal(names_in(scratch), 1);
    }
}

static void a_lock_left_behind_is_nobodys(void **state)
{
    (void)state;
    write_file(lock_file(), "");
    check_save("a = 1\n", "inference=1", "a = 1\ninference = 1\n");
}

/* Another has the lock, and time flies. */
static bool is_taken(const char *call)
{
    errno = strcmp(call, "flock") == 0 ? EWOULDBLOCK : EINTR;
    return strcmp(call, "flock") == 0 || strcmp(call, "poll") == 0;
}

static bool has_no_locks(const char *call)
{
    errno = EOPNOTSUPP;
    return strcmp(call, "flock") == 0;
}

static void say_save_with_fault(FILE *say, const void *user)
{
    tni_sys_fault_set(*(tni_sys_fault_fn *const *)user);
    say_save(say, "inference=1");
}

static void a_lock_that_is_not_given_back_is_told(void **state)
{
    tni_sys_fault_fn *fault = is_taken;
    (void)state;
    write_file(config_file, "a = 1\n");
    const char *said = ask_run(config_variable, NULL, say_save_with_fault, &fault);
    assert_contains(said, "busy: ");
    assert_contains(said, "config.lock: another process has held it for 5 seconds");
    assert_string_equal(read_file(config_file), "a = 1\n");
    (void)remove(lock_file());
    fault = has_no_locks;
    assert_string_equal(ask_run(config_variable, NULL, say_save_with_fault, &fault), "ok");
    assert_string_equal(read_file(config_file), "a = 1\ninference = 1\n");
    assert_int_equal(names_in(scratch), 1);
}

/* One fault, then what became of it: the status, and what has leaked. */
typedef struct trial {
    long n;
    int code; /* 0: an allocation fails */
} trial;

static void say_faulty(FILE *say, const void *user)
{
    const trial *with = user;
    struct fault *fault = with->code ? &fault_call : &fault_memory;
    tn_error err = {0};
    fault_memory_install();
    fault_calls_install();
    (void)tn_get_inference(NULL);
    struct fault_state before = fault_look();
    fault_arm(fault, with->n, false, with->code);
    tn_status status = tn_settings_save("tuning.limit=3", &err);
    bool fired = fault_end(fault);
    struct fault_state after = fault_look();
    fprintf(say, "%s %s%s%s%s", fired ? "fault" : "none", tn_status_name(status),
            status && !err.message[0] ? ", no words" : "",
            before.blocks != after.blocks ? ", blocks left" : "",
            before.descriptors != after.descriptors ? ", descriptors left" : "");
}

/* How an error of the system, or want of memory, is told. */
static const struct {
    int code;
    const char *status;
} codes[] = {
    {0, "out-of-memory"}, {EIO, "io"},      {EACCES, "not-permitted"},
    {ENOSPC, "io"},       {EMFILE, "busy"}, {ENOMEM, "out-of-memory"},
};

/* The file is the old one when it failed and the new one when it did not. */
static bool survive(const char *old, const char *new, const trial *with, const char *status)
{
    char said[128], told[64];
    (void)remove(config_file);
    if (old) {
        write_file(config_file, old);
        assert_int_equal(chmod(config_file, 0640), 0);
    }
    snprintf(said, sizeof said, "%.100s", ask_run(config_variable, NULL, say_faulty, with));
    snprintf(told, sizeof told, "fault %s", status);
    bool saved = strstr(said, " ok") != NULL;
    if (strcmp(said, told) != 0 && strcmp(said, "fault ok") != 0 && strcmp(said, "none ok") != 0)
        fail_msg("fault %ld, error %d: %s", with->n, with->code, said);
    if (old || saved) {
        assert_string_equal(read_file(config_file), saved ? new : old);
        assert_int_equal(mode_of(config_file), old ? 0640 : 0600);
    }
    (void)remove(lock_file()); /* one that could not be removed is nobody's, and the next save's */
    assert_int_equal(names_in(scratch), old || saved);
    return said[0] == 'f';
}

static void whatever_fails_the_old_file_is_whole(void **state)
{
    static const char old[] = "a = 1\ntuning.limit = 1\n", new[] = "a = 1\ntuning.limit = 3\n";
    (void)state;
    (void)remove(config_file);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const char *status = codes[i].status;
        for (trial with = {1, codes[i].code}; survive(old, new, &with, status); with.n++)
            assert_true(with.n < 100);
        for (trial with = {1, codes[i].code}; survive(NULL, "tuning.limit = 3\n", &with, status);
             with.n++)
            assert_true(with.n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_saved),
        cmocka_unit_test(the_other_lines_stay),
        cmocka_unit_test(sections_are_respected),
        cmocka_unit_test(a_block_is_replaced_whole),
        cmocka_unit_test(folders_and_file_are_made),
        cmocka_unit_test(a_link_stays_one),
        cmocka_unit_test(owner_and_mode_stay),
        cmocka_unit_test(bad_values_are_not_saved),
        cmocka_unit_test(a_value_that_would_not_be_read_is_not_saved),
        cmocka_unit_test(a_file_is_not_made_too_long),
        cmocka_unit_test(without_a_file_nothing_is_saved),
        cmocka_unit_test(a_folder_that_is_closed_is_told),
        cmocka_unit_test(of_several_at_once_none_is_lost),
        cmocka_unit_test(a_lock_left_behind_is_nobodys),
        cmocka_unit_test(a_lock_that_is_not_given_back_is_told),
        cmocka_unit_test(whatever_fails_the_old_file_is_whole),
    };
    return run_sources("unit.settings_save", tests);
}
