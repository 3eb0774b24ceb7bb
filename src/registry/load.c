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

/* Whoever may write to the file or its folder could put code into this process. */
static tn_status check_writers(tni_record *record)
{
    tn_error err = {0};
    tni_file_id file, folder;
    char *folder_path = tni_path_folder(record->path);
    if (!folder_path)
        return tni_record_stop(record, TN_OUT_OF_MEMORY, "", "no memory to look at its folder");
    tn_status status = tni_file_identify(record->path, &file, &err);
    if (!status)
        status = tni_file_identify(folder_path, &folder, &err);
    if (status)
        tni_record_stop(record, status, "", "%s", tni_words_of(&err));
    else if (file.is_folder)
        status = tni_record_stop(record, TN_CORRUPT, "", "it is a folder");
    else if (folder.anyone_writes)
        status = tni_record_stop(record, TN_NOT_PERMITTED,
                                 "chmod o-w its folder, or install the module elsewhere",
                                 "anyone may write to its folder %s", folder_path);
    else if (file.anyone_writes)
        status = tni_record_stop(record, TN_NOT_PERMITTED, "chmod o-w the file",
                                 "anyone may write to it");
    tni_release(folder_path);
    return status;
}

static const char *inspect_remedy(tn_status status)
{
    switch (status) {
    case TN_CORRUPT: return "install the module again, or remove the file";
    case TN_INCOMPATIBLE: return "install the module built for this machine";
    case TN_NOT_PERMITTED: return "let this user read the file";
    default: return "";
    }
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
        return tni_record_stop(record, status, inspect_remedy(status), "%s", tni_words_of(&err));
    if (!facts.has_entry)
        return tni_record_stop(record, TN_INCOMPATIBLE,
                               "define tn_module_entry with default visibility (docs/modules.md)",
                               "it does not export tn_module_entry");
    return tni_load_check_sanitizer(record, facts.sanitizers);
}

tn_status tni_load_open(tni_record *record)
{
    tn_error err = {0};
    void *handle = NULL;
    if (record->path) {
        tn_status status = tni_dl_open(record->path, &handle, &err);
        if (status)
            return tni_record_stop(record, status,
                                   "link no vendor library: open it in the probe with "
                                   "host->library_bind (docs/modules.md)",
                                   "%s", tni_words_of(&err));
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
