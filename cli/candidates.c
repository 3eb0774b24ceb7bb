#include "candidates.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

bool candidate_may_run(const tn_candidate *candidate)
{
    return candidate->verdict == TN_VERDICT_CHOSEN || candidate->verdict == TN_VERDICT_ADMITTED ||
           candidate->verdict == TN_VERDICT_UNTESTED;
}

const char *text_time(double us, char room[TEXT_TIME])
{
    return tni_time_text(us, room);
}

const char *text_rate(double giga, const char *unit, char room[TEXT_RATE])
{
    static const char prefixes[] = "KMGTP";
    double value = giga * 1e6;
    size_t at = 0;
    if (!(giga > 0)) {
        snprintf(room, TEXT_RATE, "-");
        return room;
    }
    while (at + 2 < sizeof prefixes && value >= 999.5) {
        value /= 1000;
        at++;
    }
    snprintf(room, TEXT_RATE, "%.*f %c%s/s", tni_decimals(value), value, prefixes[at], unit);
    return room;
}

double spread_of(const tn_bench_result *result)
{
    return result->runs == 1 ? (double)NAN : result->spread;
}

bool is_measurable(double spread)
{
    return spread <= 0.5;
}

/* One cached library version. */
typedef struct asked_library {
    const tn_library *library;
    char version[TNI_VERSION_ROOM];
} asked_library;

const char *library_version_of(const char *library)
{
    enum { MOST = 64 }; /* if full, the last entry is replaced */
    static asked_library asked[MOST];
    static size_t count;
    const tn_library *found;
    size_t i = 0;
    if (!library[0] || tn_library_get(library, &found, NULL))
        return "";
    while (i < count && asked[i].library != found)
        i++;
    if (i < count)
        return asked[i].version;
    asked_library *to = &asked[count < MOST ? count++ : MOST - 1];
    to->library = found;
    tni_library_version(library, to->version);
    return to->version;
}

void phrase_candidate(const tn_candidate *candidate, text_line *out)
{
    tni_phrase_candidate(candidate, library_version_of(candidate->library), out);
}
