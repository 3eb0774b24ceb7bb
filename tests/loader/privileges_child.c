/* Says what this process makes of its environment: run by loader.privileges, as itself and from a
 * copy with raised privileges. One "key = value" line each on the descriptor for answers. */
#include "os/cache/cache.h"
#include "os/env.h"
#include "os/process.h"
#include "tenon/module.h"
#include "tenon/setting.h"

#include <stdlib.h>

int main(void)
{
    tni_buffer text = {0}, folder = {0};
    const char *reason = "";
    tn_module_list *list = NULL;
    if (tn_module_list_create(&list, NULL) != TN_OK)
        return 1;
    tni_buffer_format(&text, "privileged = %d\n", tni_env_privileged());
    for (size_t i = 0; i < tn_module_list_place_count(list); i++) {
        const tn_module_place *place = tn_module_list_place_get(list, i);
        tni_buffer_format(&text, "place = %s: %s\n", place->path, place->message);
    }
    for (size_t i = 0; i < tn_module_list_count(list); i++)
        tni_buffer_format(&text, "module = %s\n", tn_module_list_get(list, i)->name);
    if (tni_cache_default_folder(&folder, &reason))
        tni_buffer_format(&text, "cache = %s\n", tni_buffer_text(&folder));
    else
        tni_buffer_format(&text, "no cache = %s\n", reason);
    tni_buffer_format(&text, "threads = %d\nlimit = %d\nfile = %s\n", (int)tn_get_cpu_threads(NULL),
                      (int)tn_get_tuning_limit(NULL), tn_settings_file());
    for (size_t i = 0; tn_settings_problem(i); i++)
        tni_buffer_format(&text, "problem = %s\n", tn_settings_problem(i));
    tni_process_answer(tni_buffer_text(&text), text.length);
    _Exit(text.failed);
}
