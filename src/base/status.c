#include "tenon/status.h"

const char *tn_status_name(tn_status status)
{
    switch (status) {
#define NAME(name, number, word, meaning) \
    case name: return word;
        TN_STATUS_LIST(NAME)
#undef NAME
    default: return "unknown";
    }
}

const char *tn_status_meaning(tn_status status)
{
    switch (status) {
#define MEANING(name, number, word, meaning) \
    case name: return meaning;
        TN_STATUS_LIST(MEANING)
#undef MEANING
    default: return "a status unknown to this version";
    }
}
