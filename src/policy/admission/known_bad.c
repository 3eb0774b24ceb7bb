/* The lists that ship with Tenon, and the user's own list of bad kernels. */
#include "admission.h"
#include "base/alloc.h"
#include "base/log.h"
#include "dispatch/judge.h"
#include "notes.h"
#include "os/file.h"
#include "os/thread.h"
#include "tenon/module/op/attention.h"
#include "tenon/setting.h"

static tni_once read_once = TNI_ONCE_INIT;
static tni_notes shipped, users, tested; /* immutable once read */

static void read_embedded(const unsigned char *text, size_t size, const char *origin, tni_notes *to)
{
    tn_error err;
    if (tni_notes_parse((const char *)text, size, origin, to, &err))
        tni_log(TN_LOG_ERROR, "%s", err.message);
}

/* Reads the file `known-bad` next to the configuration file, if it exists. A file that cannot be
 * read is ignored. */
static void read_users(void)
{
    enum { LIMIT = 1 << 20 };
    const char *settings = tn_settings_file();
    char *folder = settings[0] ? tni_path_folder(settings) : NULL;
    char *path = folder ? tni_path_join(folder, "known-bad") : NULL;
    char *text = NULL;
    size_t size;
    tn_error err;
    tn_status status = path ? tni_file_read(path, LIMIT, &text, &size, &err) : TN_NOT_FOUND;
    if (!status)
        status = tni_notes_parse(text, size, path, &users, &err);
    if (status && status != TN_NOT_FOUND)
        tni_log(TN_LOG_WARNING, "%s is ignored: %s", path, err.message);
    tni_release(text);
    tni_release(path);
    tni_release(folder);
}

static void read_lists(void)
{
    read_embedded(tni_embedded_known_bad, tni_embedded_known_bad_size, "known_bad.form", &shipped);
    read_embedded(tni_embedded_tested, tni_embedded_tested_size, "tested.form", &tested);
    read_users();
}

bool tni_tested(const tni_kernel *kernel, const tn_device *device, int64_t library_version)
{
    tni_once_run(&read_once, read_lists);
    return kernel->own &&
           tni_notes_find(&tested, kernel, NULL, device->platform->name,
                          tni_device_described(device)->architecture, library_version);
}

bool tni_known_bad(const tni_kernel *kernel, const tn_op *op, const tn_device_properties *device,
                   int64_t library_version, tn_refusal *why)
{
    tni_once_run(&read_once, read_lists);
    const tni_note *note = tni_notes_find(&shipped, kernel, op, kernel->row->platform,
                                          device->architecture, library_version);
    if (!note)
        note = tni_notes_find(&users, kernel, op, kernel->row->platform, device->architecture,
                              library_version);
    if (!note || kernel->reference)
        return false;
    char here[64] = "";
    if (note->keys)
        snprintf(here, sizeof here, "%lld keys, at most %lld are safe; ",
                 (long long)TN_PARAMS(op, attention)->keys, (long long)note->keys - 1);
    const char *reason = note->reason ? note->reason : "known to give wrong results";
    const char *source = note->source ? note->source : "";
    (void)tni_refuse(why, TN_REFUSE_KNOWN_BAD, note->name, note->version_high + 1, library_version,
                     "%s%s%s%s%s%s", here, reason, source[0] ? " (" : "", source,
                     source[0] ? ")" : "",
                     kernel->row->library ? "; `tenon libraries --try` lists its other files" : "");
    return true;
}
