#include "machine_read.h"

enum { WORD = 64, BRIEF = 96 };

bool tni_cpus_has(const tni_cpus *set, int32_t number)
{
    return number >= 0 && number < set->room && (set->bits[number / WORD] >> number % WORD & 1);
}

static uint64_t word_at(const tni_cpus *set, int32_t index)
{
    return index < set->room / WORD ? set->bits[index] : 0;
}

static int32_t ones(uint64_t word)
{
    int32_t count = 0;
    for (; word; word &= word - 1)
        count++;
    return count;
}

int32_t tni_cpus_shared(const tni_cpus *a, const tni_cpus *b)
{
    int32_t count = 0;
    for (int32_t i = 0; i < a->room / WORD; i++)
        count += ones(a->bits[i] & word_at(b, i));
    return count;
}

int32_t tni_cpus_next(const tni_cpus *set, int32_t from)
{
    int32_t number = from < 0 ? 0 : from;
    while (number < set->room) {
        if (tni_cpus_has(set, number))
            return number;
        bool rest_is_empty = set->bits[number / WORD] >> number % WORD == 0;
        number = rest_is_empty ? (number / WORD + 1) * WORD : number + 1;
    }
    return -1;
}

void tni_cpus_write(const tni_cpus *set, tni_buffer *to)
{
    const char *comma = "";
    int32_t last;
    for (int32_t first = tni_cpus_next(set, 0); first >= 0; first = tni_cpus_next(set, last + 1)) {
        last = first;
        while (tni_cpus_has(set, last + 1))
            last++;
        tni_buffer_format(to, last > first ? "%s%d-%d" : "%s%d", comma, (int)first, (int)last);
        comma = ",";
    }
}

const char *tni_cpus_brief(tni_reading *reading, const tni_cpus *set)
{
    char brief[BRIEF] = "none";
    tni_buffer text = {0};
    tni_cpus_write(set, &text);
    if (text.failed)
        reading->failed = true;
    else if (text.length)
        tn_text_fit(brief, sizeof brief, text.text);
    tni_buffer_release(&text);
    return tni_reading_format(reading, "%s", brief);
}

bool tni_cpus_make(tni_reading *reading, int32_t room, tni_cpus *out)
{
    size_t words = ((size_t)room + WORD - 1) / WORD;
    uint64_t *bits = tni_reading_keep(reading, words, sizeof *bits);
    if (!bits)
        return false;
    *out = (tni_cpus){.room = (int32_t)words * WORD, .bits = bits};
    return true;
}

void tni_cpus_add(tni_cpus *set, int32_t first, int32_t last)
{
    for (int32_t number = first; number <= last && number < set->room; number++) {
        bool whole = number % WORD == 0 && number + WORD - 1 <= last;
        set->bits[number / WORD] |= whole ? UINT64_MAX : UINT64_C(1) << number % WORD;
        number += whole ? WORD - 1 : 0;
    }
}

void tni_cpus_count(tni_cpus *set)
{
    set->count = tni_cpus_shared(set, set);
}

/* The first `used` numbers of every `group` numbers, from `first` up to `last`. */
struct part {
    int32_t first, last, used, group;
};

static bool take_number(tni_span *rest, char end, int32_t least, int32_t *out)
{
    tni_span piece;
    int64_t value;
    if (!tni_span_next(rest, end, &piece) || !tni_span_number(piece, &value) || value < least ||
        value >= TNI_CPUS_LIMIT)
        return false;
    *out = (int32_t)value;
    return true;
}

static bool parse_part(tni_span text, struct part *out)
{
    struct part part = {.used = 1, .group = 1};
    tni_span range;
    if (!tni_span_next(&text, ':', &range) || !take_number(&range, '-', 0, &part.first))
        return false;
    part.last = part.first;
    if (range.text && (!take_number(&range, '\0', part.first, &part.last) || range.text))
        return false;
    if (text.text && (!take_number(&text, '/', 1, &part.used) ||
                      !take_number(&text, '\0', part.used, &part.group) || text.text))
        return false;
    *out = part;
    return true;
}

static void add_part(tni_cpus *set, const struct part *part)
{
    if (part->used == part->group) {
        tni_cpus_add(set, part->first, part->last);
        return;
    }
    for (int32_t at = part->first; at <= part->last; at += part->group) {
        int32_t last = at + part->used - 1;
        tni_cpus_add(set, at, last < part->last ? last : part->last);
    }
}

bool tni_cpus_parse(tni_reading *reading, tni_span text, tni_cpus *out)
{
    tni_span trimmed = tni_span_trim(text), rest = trimmed, piece;
    int32_t greatest = -1;
    struct part part;
    tni_cpus set = {0};
    while (trimmed.length && tni_span_next(&rest, ',', &piece)) {
        if (!parse_part(piece, &part))
            return false;
        greatest = part.last > greatest ? part.last : greatest;
    }
    if (!tni_cpus_make(reading, greatest + 1, &set))
        return false;
    rest = trimmed;
    while (trimmed.length && tni_span_next(&rest, ',', &piece) && parse_part(piece, &part))
        add_part(&set, &part);
    tni_cpus_count(&set);
    *out = set;
    return true;
}

static bool parse_cpus(tni_reading *reading, tni_span text, void *out)
{
    return tni_cpus_parse(reading, text, out);
}

TNI_DEFINE_READER(cpus, tni_cpus, "a list such as 0-3,8")
