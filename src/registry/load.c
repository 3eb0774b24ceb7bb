#include "load.h"

#include "base/alloc.h"
#include "base/words.h"
#include "os/dl.h"

tn_status tni_load_check_sanitizer(tni_record *record, uint64_t sanitizers)
{
    if (sanitizers == TN_MODULE_BUILT_WITH)
        return TN_OK;
    return tni_record_stop(
        record, TN_INCOMPATIBLE, "build the module and Tenon with the same -fsanitize= options",
        "built with %s; this Tenon is built with %s", tni_words_sanitizer(sanitizers),
        tni_words_sanitizer(TN_MODULE_BUILT_WITH));
}

static const char *inspect_remedy(tn_status status)
{
    switch (status) {
    case TN_CORRUPT: return "install the module again, or remove the file";
    case TN_INCOMPATIBLE: return "install the module built for this machine";
    case TN_NOT_FOUND: return "install the module again, or correct the path";
    case TN_NOT_PERMITTED: return "let this user read the file";
    default: return "make sure that the file can be read";
    }
}

static tn_status cannot_be_read(tni_record *record, tn_status status, const tn_error *err)
{
    return tni_record_stop(record, status, inspect_remedy(status), "%s", tni_words_of(err));
}

static tn_status check_folder(tni_record *record, const char *path)
{
    tn_error err = {0};
    tni_file_id id;
    char *folder = tni_path_folder(path);
    if (!folder)
        return tni_record_stop(record, TN_OUT_OF_MEMORY, "", "no memory to check its folder");
    tn_status status = tni_file_identify(folder, &id, &err);
    if (status)
        (void)cannot_be_read(record, status, &err);
    else if (id.anyone_writes)
        status = tni_record_stop(record, TN_NOT_PERMITTED,
                                 "chmod o-w its folder, or install the module elsewhere",
                                 "anyone may write to its folder %s", folder);
    tni_release(folder);
    return status;
}

/* Anyone who can write to the file or its folder could inject code into this process. This also
 * holds for the folder of a link to the file and for the folder of the link's target. */
static tn_status check_writers(tni_record *record)
{
    tn_error err = {0};
    tni_file_id file;
    char *real = NULL;
    tn_status status = tni_file_identify(record->path, &file, &err);
    if (!status)
        status = tni_path_real(record->path, &real, &err);
    if (status)
        return cannot_be_read(record, status, &err);
    if (file.is_folder)
        status = tni_record_stop(record, TN_CORRUPT, "remove it, or give it another name",
                                 "it is a folder");
    else if (!file.is_regular)
        status = tni_record_stop(record, TN_CORRUPT, "remove it, or give it another name",
                                 "it is not a regular file");
    else if (strchr(real, '$'))
        status = tni_record_stop(record, TN_INVALID_ARGUMENT, "move it to a path without $",
                                 "its path has a $, which the loader would replace");
    else if (file.anyone_writes)
        status = tni_record_stop(record, TN_NOT_PERMITTED, "chmod o-w the file",
                                 "anyone may write to it");
    if (!status)
        status = check_folder(record, record->path);
    if (!status)
        status = check_folder(record, real);
    tni_release(real);
    return status;
}

tn_status tni_load_inspect(tni_record *record)
{
    tn_error err = {0};
    tni_elf_facts facts;
    if (!record->path)
        return TN_OK;
    tn_status status = check_writers(record);
    if (status)
        return status;
    status = tni_dl_inspect(record->path, &facts, &err);
    if (status)
        return cannot_be_read(record, status, &err);
    if (!facts.has_entry)
        return tni_record_stop(record, TN_INCOMPATIBLE,
                               "define tn_module_entry with default visibility (docs/modules.md)",
                               "it does not export tn_module_entry");
    return tni_load_check_sanitizer(record, facts.sanitizers);
}

static const char *open_remedy(tn_status status)
{
    return status == TN_UNAVAILABLE
               ? "link no vendor library: open it in the probe with host->library_bind "
                 "(docs/modules.md)"
               : "build the module so that nothing it uses is missing (-Wl,-z,defs)";
}

tn_status tni_load_open(tni_record *record)
{
    tn_error err = {0};
    void *handle = NULL;
    if (record->path) {
        tn_status status = tni_dl_open(record->path, &handle, &err);
        if (status)
            return tni_record_stop(record, status, open_remedy(status), "%s", tni_words_of(&err));
        void *entry = tni_dl_symbol(handle, "tn_module_entry", NULL);
        if (!entry)
            return tni_record_stop(record, TN_INCOMPATIBLE,
                                   "define tn_module_entry with default visibility "
                                   "(docs/modules.md)",
                                   "it uses tn_module_entry but does not define it");
        memcpy(&record->entry, &entry, sizeof entry);
    }
    record->stage = TN_STAGE_OPENED;
    return TN_OK;
}
