/* Child processes: what they may say, how they end, and that nothing of them stays. */
#include "test.h"

#include "os/clock.h"
#include "os/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t long_enough = INT64_C(60000000000), short_time = 300000000;

typedef struct outcome {
    tni_buffer said;
    tni_process_end end;
} outcome;

/* What becomes of a shell that runs `script`. */
static outcome run_within(const char *script, int64_t limit_ns)
{
    const char *const arguments[] = {"sh", "-c", script, NULL};
    outcome out = {0};
    tn_error err;
    assert_int_equal(tni_process_run("/bin/sh", arguments, limit_ns, &out.said, &out.end, &err),
                     TN_OK);
    return out;
}

static void check_run(const char *script, const char *said, int exit_code, int ended_by)
{
    outcome out = run_within(script, long_enough);
    assert_string_equal(tni_buffer_text(&out.said), said);
    assert_int_equal(out.end.exit_code, exit_code);
    assert_int_equal(out.end.signal, ended_by);
    assert_false(out.end.timed_out || out.end.answered_too_much);
    tni_buffer_release(&out.said);
}

static void answer_and_end_are_told(void **state)
{
    (void)state;
    check_run("echo yes >&3", "yes\n", 0, 0);
    check_run("exit 7", "", 7, 0);
    check_run("echo a >&3; kill -SEGV $$", "a\n", -1, SIGSEGV);
    check_run("kill -KILL $$", "", -1, SIGKILL);
    check_run("exec 3>&-; exit 5", "", 5, 0);
}

static void arguments_and_environment_arrive(void **state)
{
    (void)state;
    assert_int_equal(setenv("PROCESS_TEST", "a b", 1), 0);
    check_run("echo \"$0 $PROCESS_TEST\" >&3", "sh a b\n", 0, 0);
}

static void other_output_leads_nowhere(void **state)
{
    (void)state;
    check_run("echo loud; echo louder >&2; read line; echo \"[$line]\" >&3", "[]\n", 0, 0);
}

static void no_descriptor_is_inherited(void **state)
{
    int file = open("/dev/null", O_RDONLY);
    (void)state;
    assert_int_equal(dup2(file, 9), 9); /* without close-on-exec, as careless programs have them */
    check_run("(: <&9) 2>/dev/null && echo open >&3 || echo closed >&3", "closed\n", 0, 0);
    close(9);
    close(file);
}

/* What this process ignores and blocks, a shell could not undo by itself. */
static void signals_are_the_defaults(void **state)
{
    sigset_t terminate, before;
    (void)state;
    sigemptyset(&terminate);
    sigaddset(&terminate, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &terminate, &before), 0);
    void (*was)(int) = signal(SIGINT, SIG_IGN);
    check_run("kill -TERM $$; exit 1", "", -1, SIGTERM);
    check_run("kill -INT $$; exit 1", "", -1, SIGINT);
    signal(SIGINT, was);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* True when the process is gone or only waits for its parent to notice. */
static bool is_gone(long pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return kill((pid_t)pid, 0) != 0;
    char *line = fgets(text, sizeof text, file);
    fclose(file);
    const char *after = line ? strrchr(text, ')') : NULL;
    return !after || after[2] == 'Z' || after[2] == 'X';
}

/* Killing is not instant; that it never happens is what would fail. */
static void check_goes(const char *pid)
{
    for (int i = 0; i < 2000 && !is_gone(atol(pid)); i++)
        tni_clock_sleep_ns(5000000);
    assert_true(is_gone(atol(pid)));
}

static void what_takes_too_long_is_ended_with_all_it_started(void **state)
{
    (void)state;
    outcome out =
        run_within("trap '' TERM; sleep 1000 & echo $! >&3; wait; sleep 1000", short_time);
    assert_true(out.end.timed_out);
    assert_int_equal(out.end.signal, SIGKILL);
    if (out.said.length > 0) /* a busy machine may not have come so far */
        check_goes(out.said.text);
    tni_buffer_release(&out.said);
}

/* Its descendant holds the pipe open; the answer is there all the same, at once and whole. */
static void what_it_leaves_behind_does_not_hold_the_answer_up(void **state)
{
    (void)state;
    int64_t start = tni_clock_ns();
    outcome out = run_within("sleep 1000 & echo $! >&3; exit 4", long_enough);
    assert_true(tni_clock_ns() - start < long_enough);
    assert_false(out.end.timed_out);
    assert_int_equal(out.end.exit_code, 4);
    check_goes(tni_buffer_text(&out.said));
    tni_buffer_release(&out.said);
}

static void who_says_too_much_is_ended(void **state)
{
    (void)state;
    outcome out = run_within("while :; do echo 0123456789abcdef; done >&3", long_enough);
    assert_true(out.end.answered_too_much);
    assert_false(out.end.timed_out);
    assert_true(out.said.length <= 64 << 10);
    tni_buffer_release(&out.said);
    out = run_within("head -c 65536 /dev/zero >&3", long_enough);
    assert_false(out.end.answered_too_much);
    assert_int_equal(out.said.length, 65536);
    tni_buffer_release(&out.said);
}

/* The program may have told the system to throw its children's ends away. */
static void program_that_ignores_its_children_still_hears_them(void **state)
{
    (void)state;
    void (*was)(int) = signal(SIGCHLD, SIG_IGN);
    outcome out = run_within("echo heard >&3; exit 3", long_enough);
    signal(SIGCHLD, was);
    assert_string_equal(tni_buffer_text(&out.said), "heard\n");
    assert_int_equal(out.end.exit_code, -1);
    assert_int_equal(out.end.signal, 0);
    assert_false(out.end.timed_out);
    tni_buffer_release(&out.said);
}

static void no_child_stays_behind(void **state)
{
    (void)state;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none at all, not even a finished one */
}

static void program_that_is_not_there_is_an_error(void **state)
{
    const char *const arguments[] = {"none", NULL};
    tni_buffer said = {0};
    tni_process_end end = {.exit_code = 77};
    tn_error err;
    (void)state;
    if (getenv("TN_TEST_EMULATED"))
        skip_because("qemu-user does not tell a parent that its child found no program");
    assert_int_equal(tni_process_run("/no/such/program", arguments, long_enough, &said, &end, &err),
                     TN_IO);
    assert_string_equal(err.where, "/no/such/program");
    assert_contains(err.message, "could not be started");
    assert_int_equal(end.exit_code, 77);
    assert_int_equal(said.length, 0);
    tni_buffer_release(&said);
}

static void machine_is_the_same_while_it_is_up(void **state)
{
    tni_buffer a = {0}, b = {0};
    (void)state;
    tni_process_machine(&a);
    tni_process_machine(&b);
    assert_string_equal(tni_buffer_text(&a), tni_buffer_text(&b));
#if defined(__linux__)
    assert_true(a.length > 36); /* the boot's number, at least */
#endif
    tni_buffer_release(&a);
    tni_buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answer_and_end_are_told),
        cmocka_unit_test(arguments_and_environment_arrive),
        cmocka_unit_test(other_output_leads_nowhere),
        cmocka_unit_test(no_descriptor_is_inherited),
        cmocka_unit_test(signals_are_the_defaults),
        cmocka_unit_test(what_takes_too_long_is_ended_with_all_it_started),
        cmocka_unit_test(what_it_leaves_behind_does_not_hold_the_answer_up),
        cmocka_unit_test(who_says_too_much_is_ended),
        cmocka_unit_test(program_that_ignores_its_children_still_hears_them),
        cmocka_unit_test(no_child_stays_behind),
        cmocka_unit_test(program_that_is_not_there_is_an_error),
        cmocka_unit_test(machine_is_the_same_while_it_is_up),
    };
    return run_suite("unit.process", tests);
}
