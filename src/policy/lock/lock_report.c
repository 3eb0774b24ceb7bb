/* The result of comparing a lock: rows of text. */
#include "base/alloc.h"
#include "base/buffer.h"
#include "lock.h"

struct tn_lock_report {
    tn_lock_row **rows;
    size_t count;
    size_t capacity;
    size_t differences;
    bool failed;
};

const char *tn_lock_row_name(int32_t kind)
{
    switch (kind) {
#define NAME(NAME_, number, word) \
    case number: return word;
        TN_LOCK_ROW_LIST(NAME)
#undef NAME
    default: return "unknown";
    }
}

const char *tni_lock_version(int64_t version, char room[TNI_LOCK_VERSION])
{
    if (version < 0)
        snprintf(room, TNI_LOCK_VERSION, "an unknown version");
    else
        snprintf(room, TNI_LOCK_VERSION, "version %lld", (long long)version);
    return room;
}

tn_lock_report *tni_lock_report_create(void)
{
    return tni_alloc_zeroed(1, sizeof(tn_lock_report));
}

bool tni_lock_report_failed(const tn_lock_report *report)
{
    return report->failed;
}

/* Copies `text` to *at and advances *at past it. */
static const char *copy_text(char **at, const char *text)
{
    char *begin = *at;
    size_t size = strlen(text) + 1;
    memcpy(begin, text, size);
    *at += size;
    return begin;
}

/* Makes one allocation for the row and its texts; returns NULL if out of memory. */
static tn_lock_row *make_row(const tni_lock_line *line, const char *text)
{
    size_t size =
        strlen(line->problem) + strlen(line->locked) + strlen(line->found) + strlen(text) + 4;
    tn_lock_row *row = tni_alloc_zeroed(1, sizeof *row + size);
    if (!row)
        return NULL;
    char *at = (char *)(row + 1);
    row->struct_size = sizeof *row;
    row->kind = line->kind;
    row->problem = copy_text(&at, line->problem);
    row->locked = copy_text(&at, line->locked);
    row->found = copy_text(&at, line->found);
    row->text = copy_text(&at, text);
    return row;
}

void tni_lock_report_add(tn_lock_report *report, const tni_lock_line *line, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!tni_array_reserve((void **)&report->rows, &report->capacity, report->count,
                           report->count + 1, sizeof(tn_lock_row *))) {
        report->failed = true;
        return;
    }
    tn_lock_row *row = make_row(line, text);
    report->failed = report->failed || !row;
    if (row) {
        report->rows[report->count++] = row;
        report->differences += line->kind != TN_LOCK_ROW_SAME;
    }
}

void tn_lock_report_release(tn_lock_report *report)
{
    if (!report)
        return;
    for (size_t i = 0; i < report->count; i++)
        tni_release(report->rows[i]);
    tni_release(report->rows);
    tni_release(report);
}

size_t tn_lock_report_count(const tn_lock_report *report)
{
    return report ? report->count : 0;
}

const tn_lock_row *tn_lock_report_row(const tn_lock_report *report, size_t index)
{
    return report && index < report->count ? report->rows[index] : NULL;
}

size_t tn_lock_report_differences(const tn_lock_report *report)
{
    return report ? report->differences : 0;
}
