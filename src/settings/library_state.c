/* The state of a library as text. */
#include "base/words.h"
#include "context.h"
#include "library.h"
#include "os/file.h"
#include "reader.h"
#include "registry/registry.h"
#include "tenon/module/kernel.h"
#include "tenon/version.h"

#define REASON(...) tni_text_format(to->reason, sizeof to->reason, __VA_ARGS__)
#define REMEDY(...) tni_text_format(to->remedy, sizeof to->remedy, __VA_ARGS__)

/* "a|b" as "a, b". */
static const char *list_files(const char *files, char *out, size_t size)
{
    size_t used = 0;
    for (; *files && used + 3 < size; files++) {
        out[used++] = *files == '|' ? ',' : *files;
        if (*files == '|')
            out[used++] = ' ';
    }
    out[used] = '\0';
    return out;
}

/* "; skipped /lib/x.so: ...", or "": the files that an unsuccessful search rejected. */
static const char *passed_over(const tni_look *look)
{
    const char *more = strchr(look->text, ';');
    return more ? more : "";
}

static void describe_part(tn_library_state *to)
{
    to->built = 1;
    to->available = TN_AVAILABLE_YES;
    to->version = TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100 + TN_VERSION_PATCH;
    tn_text_fit(to->version_text, sizeof to->version_text, tn_version());
    REASON("part of Tenon");
}

/* A library that no module uses, whether its files exist or not. */
static void describe_foreign(const tni_library_known *known, tn_library_state *to)
{
    static const char bring[] =
        "install a module that offers it into a module folder (`tenon modules` lists them)";
    char names[256];
    tni_look look;
    if (known->only) {
        REASON("no loaded module for %s uses it; it is %s, but this is %s", known->platform,
               known->only, tn_build_get()->target);
        return;
    }
    REMEDY("%s", bring);
    if (!known->files) {
        REASON("no loaded module uses it; a module for %s could", known->platform);
        return;
    }
    (void)tni_library_look(known->files, &look, to);
    if (look.holds > 0) {
        REASON("%s is at %s, but no loaded module uses it", tni_path_name(look.text), look.text);
    } else if (look.holds == 0) {
        REASON("no loaded module uses it; not found: %s%s",
               list_files(known->files, names, sizeof names), passed_over(&look));
        REMEDY("%s; %s", known->remedy, bring);
    } else {
        REASON("no loaded module uses it; %s", look.text);
    }
}

/* Asks the row itself where it would open the library from: it may know more places than the
 * loader. */
static bool describe_located(const tni_library_offer *offer, tn_library_state *to)
{
    const tn_library_row *row = offer->row;
    tn_error said = {0};
    char path[sizeof to->path] = "";
    if (!TN_HAS(row, tn_library_row, look) || !row->look ||
        row->look(&offer->record->host, path, sizeof path, &said))
        return false;
    tn_text_fit(to->path, sizeof to->path, path);
    said.message[sizeof said.message - 1] = '\0';
    REASON("not tried yet%s%s", said.message[0] ? "; " : "", said.message);
    return true;
}

static void describe_untried(const tni_library_offer *offer, tn_library_state *to)
{
    const tn_library_row *row = offer->row;
    char names[256];
    tni_look look;
    to->available = TN_AVAILABLE_UNTRIED;
    if (!row->files) {
        REASON("part of module %s, not tried yet", offer->record->name);
        return;
    }
    if (describe_located(offer, to))
        return;
    const bool is_here = tni_library_look(row->files, &look, to);
    if (look.holds > 0) {
        REASON("not tried yet%s", is_here ? "; already in this process" : "");
        return;
    }
    REMEDY("%s", row->remedy);
    if (look.holds == 0)
        REASON("not tried yet; not found: %s%s", list_files(row->files, names, sizeof names),
               passed_over(&look));
    else
        REASON("not tried yet; %s", look.text);
}

static void describe_tried(const tni_library_offer *offer, const tni_library_trial *trial,
                           tn_library_state *to)
{
    tni_look look;
    bool is_open = trial->stage == TNI_TRIAL_OPEN;
    to->available = is_open ? TN_AVAILABLE_YES : TN_AVAILABLE_NO;
    to->version = trial->version;
    memcpy(to->version_text, trial->version_text, sizeof to->version_text);
    memcpy(to->path, trial->path, sizeof to->path);
    memcpy(to->reason, trial->reason, sizeof to->reason);
    if (!is_open && offer->row->files)
        (void)tni_library_look(offer->row->files, &look, to);
    if (!is_open)
        REMEDY("%s",
               offer->row->remedy ? offer->row->remedy : "report this to the module's author");
    else if (!to->reason[0])
        REASON("part of module %s", offer->record->name);
    if (!offer->row->files && offer->record->path)
        tn_text_fit(to->path, sizeof to->path, offer->record->path);
}

static void describe_offer(const tni_library_offer *offer, const tni_library_trial *trial,
                           tn_library_state *to)
{
    to->platform = offer->row->platform;
    to->module = offer->record->name;
    to->verbose = offer->row->verbose_setting ? offer->row->verbose_setting : "";
    to->built = 1;
    if (trial->stage >= TNI_TRIAL_OPEN) {
        describe_tried(offer, trial, to);
        return;
    }
    describe_untried(offer, to);
    if (trial->stage == TNI_TRIAL_RUNS)
        REASON("being opened now, on another thread");
}

static void describe_known(const tni_library_known *known, tn_library_state *to)
{
    switch (known->kind) {
    case TNI_LIBRARY_PART: describe_part(to); break;
    case TNI_LIBRARY_OPENMP: tni_library_describe_openmp(known, to); break;
    default: describe_foreign(known, to); break;
    }
}

/* Counts the kernels of all modules whose rows are in effect. */
static int32_t count_kernels(const char *name, const char *other)
{
    tni_registry *registry;
    const tni_record *record;
    int32_t count = 0;
    if (tni_registry_process(&registry, NULL))
        return 0;
    for (size_t i = 0; (record = tni_registry_record(registry, i)); i++) {
        const tn_kernel_row *const *row = tni_record_counts(record) ? record->table->kernels : NULL;
        for (; row && *row; row++) {
            const char *library = (*row)->library ? (*row)->library : "";
            count += strcmp(library, name) == 0 || (other && strcmp(library, other) == 0);
        }
    }
    return count;
}

void tni_library_describe(const tn_library *library, tn_library_state *out)
{
    tni_library_trial trial = {0};
    tni_libraries_lock();
    const tni_library_offer *offer = tni_library_served(library);
    if (offer)
        trial = offer->trial;
    if (offer && trial.stage == TNI_TRIAL_RUNS && !tni_library_is_being_tried(offer))
        trial.stage = TNI_TRIAL_NONE;
    tni_libraries_unlock();
    *out = (tn_library_state){
        .struct_size = sizeof *out,
        .name = library->name,
        .platform = library->known ? library->known->platform : "",
        .what = library->known ? library->known->what : "",
        .module = "",
        .verbose = "",
        .enabled = 1,
        .version = -1,
        .kernels = count_kernels(library->name, offer ? offer->row->other : NULL),
    };
    if (offer)
        describe_offer(offer, &trial, out);
    else if (library->known)
        describe_known(library->known, out);
    else
        tni_text_format(out->reason, sizeof out->reason,
                        "the program removed the module that offered it");
}

/* Settings whose rules apply to libraries for every operator, and those for verbosity. */
static const tn_setting read_here[] = {TN_SETTING_RULES,
                                       TN_SETTING_CUDNN_ENABLED,
                                       TN_SETTING_MKLDNN_ENABLED,
                                       TN_SETTING_NNPACK_ENABLED,
                                       TN_SETTING_MKL_VERBOSE,
                                       TN_SETTING_MKLDNN_VERBOSE,
                                       -1};
const tni_setting_reader tni_library_reader = {"libraries", read_here, TNI_READS_FOR_KERNELS};

static bool is_forbidden(const tn_library *library, const char *platform, const tni_rules *rules)
{
    tni_judgement said;
    tni_libraries_lock();
    const tni_library_offer *offer = tni_library_served(library);
    const char *other = offer ? offer->row->other : NULL;
    tni_libraries_unlock();
    const tni_candidate candidate = {.op = "",
                                     .kernel = "",
                                     .library = library->name,
                                     .backend = "",
                                     .platform = platform,
                                     .language = "",
                                     .library_other = other ? other : ""};
    tni_rules_judge(rules, &candidate, &said);
    return said.says == TNI_JUDGED_FORBIDDEN;
}

tn_status tn_library_state_get(const tn_library *library, const tn_context *context,
                               tn_library_state *out, tn_error *err)
{
    static const char where[] = "tn_library_state_get";
    tn_library_state state;
    if (!library || !out)
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where, "%s is NULL",
                       library ? "out" : "the library");
    if (!TN_HAS(out, tn_library_state, name))
        return tn_fail(err, TN_INVALID_ARGUMENT, 0, where,
                       "out->struct_size: expected at least %zu, got %zu",
                       TN_UP_TO(tn_library_state, name), out->struct_size);
    tni_library_describe(library, &state);
    const tn_context *holds = tni_context_or_current(context);
    state.enabled = !is_forbidden(library, state.platform, holds->rules);
    state.struct_size = out->struct_size < sizeof state ? out->struct_size : sizeof state;
    memcpy(out, &state, state.struct_size);
    return TN_OK;
}
