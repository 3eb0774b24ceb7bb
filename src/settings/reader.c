#include "reader.h"

#include <stdbool.h>

static bool reads(const tni_setting_reader *reader, tn_setting setting)
{
    for (const tn_setting *at = reader->settings; *at >= 0; at++) {
        if (*at == setting)
            return true;
    }
    return false;
}

const tni_setting_reader *tni_setting_reader_at(tn_setting setting, size_t index)
{
    for (const tni_setting_reader *const *reader = tni_setting_readers; *reader; reader++) {
        if (reads(*reader, setting) && index-- == 0)
            return *reader;
    }
    return NULL;
}

const char *tn_setting_reader(tn_setting setting, size_t index)
{
    const tni_setting_reader *reader = tni_setting_reader_at(setting, index);
    return reader ? reader->name : NULL;
}
