/* Types shared by the library, modules and applications: sizes, statuses, errors, bound symbols.
 *
 * The folder tenon/module/ is self-contained: a module is compiled against it only, and links
 * nothing of Tenon. The application headers include this one too, so every type that crosses a
 * boundary has one definition.
 *
 * Thread-safety: types without state; the inline functions access only their arguments. */
#ifndef TENON_MODULE_ABI_H
#define TENON_MODULE_ABI_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
#define TN_BEGIN_DECLS                    extern "C" {
#define TN_END_DECLS                      }
#define TN_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define TN_BEGIN_DECLS
#define TN_END_DECLS
#define TN_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#if defined(__MINGW_PRINTF_FORMAT) /* which printf mingw's <stdio.h> uses: Microsoft's or C's */
#define TN_PRINTF_KIND __MINGW_PRINTF_FORMAT
#else
#define TN_PRINTF_KIND printf
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TN_PRINTF(text, first) __attribute__((format(TN_PRINTF_KIND, text, first)))
#else
#define TN_PRINTF(text, first)
#endif

/* Bytes up to and including `field`: the size of `type` when `field` was its last field. */
#define TN_UP_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* True if the code that filled `*p` knows `field`. Test a field by its own name, never by the size
 * of the whole struct, which grows. */
#define TN_HAS(p, type, field) ((p)->struct_size >= TN_UP_TO(type, field))

/* Fails to compile unless `type` ends exactly with `last`, so that there is no tail padding. */
#define TN_ENDS_WITH(type, last) \
    TN_STATIC_ASSERT(sizeof(type) == TN_UP_TO(type, last), #type " does not end with " #last)

TN_BEGIN_DECLS

/* The result of a call; 0 is success, so calls can be chained with ||. Fixed width, because the
 * size of an enum depends on the compiler, and an ABI must not. Numbers are never reused. */
typedef int32_t tn_status;

/*  name, number, word in reports, meaning */
#define TN_STATUS_LIST(X)                                                                         \
    X(TN_OK, 0, "ok", "done")                                                                     \
    X(TN_INVALID_ARGUMENT, 1, "invalid-argument", "the request itself is invalid")                \
    X(TN_UNSUPPORTED, 2, "unsupported",                                                           \
      "valid, but nothing that is available and permitted can do it")                             \
    X(TN_UNAVAILABLE, 3, "unavailable", "the hardware, driver or library is missing")             \
    X(TN_INCOMPATIBLE, 4, "incompatible", "present, but of another ABI, architecture or version") \
    X(TN_NOT_FOUND, 5, "not-found", "nothing has that name")                                      \
    X(TN_ALREADY_EXISTS, 6, "already-exists", "the name is already in use")                       \
    X(TN_REFUSED, 7, "refused", "a setting, rule or lock forbids it")                             \
    X(TN_NOT_PERMITTED, 8, "not-permitted", "the system's permissions forbid it")                 \
    X(TN_OUT_OF_MEMORY, 9, "out-of-memory", "not enough memory for the request")                  \
    X(TN_TIMEOUT, 10, "timeout", "it did not finish within its time limit")                       \
    X(TN_BUSY, 11, "busy", "in use now; the same call may succeed later")                         \
    X(TN_NOT_READY, 12, "not-ready", "not complete yet")                                          \
    X(TN_DEVICE_LOST, 13, "device-lost", "the device failed; results of its work are lost")       \
    X(TN_IO, 14, "io", "reading or writing failed")                                               \
    X(TN_CORRUPT, 15, "corrupt", "the data is damaged or has the wrong format")                   \
    X(TN_CRASHED, 16, "crashed", "a module or library ended its process")                         \
    X(TN_CANCELLED, 17, "cancelled", "cancelled on request")                                      \
    X(TN_INTERNAL, 18, "internal", "a bug in Tenon: please report it")

enum {
#define TN_STATUS_ENUM_(name, number, word, meaning) name = number,
    TN_STATUS_LIST(TN_STATUS_ENUM_)
#undef TN_STATUS_ENUM_
        TN_STATUS_COUNT
};

/* Details of a failure, in the caller's storage: nothing to free, and it works even without memory.
 * Written only on failure, so `tn_error err;` needs no initializer. Frozen at 512 bytes.
 * Thread-safety: as for any local variable. */
typedef struct tn_error {
    tn_status status;
    int32_t native_code; /* errno, CUresult, cl_int ...; 0 if none exists      */
    char where[88];      /* the call that failed: "cuInit", "module acme: probe" */
    char message[416];   /* expected, found, and the closest match; one line     */
} tn_error;

TN_STATIC_ASSERT(sizeof(tn_error) == 512, "tn_error is frozen at 512 bytes");

/* Characters that separate paths in a message, and characters that separate the folders of a
 * path. */
#define TN_TEXT_SEPARATORS_ " \t\r\n\"'(),;:=<>|"
#if defined(_WIN32)
#define TN_TEXT_FOLDERS_ "/\\"
#else
#define TN_TEXT_FOLDERS_ "/"
#endif

/* Returns the longest path in `text`: a word that begins like a path. NULL if none exists. */
static inline const char *tn_text_longest_path(const char *text, size_t *out_length)
{
    const char *longest = NULL;
    *out_length = 0;
    for (const char *at = text + strspn(text, TN_TEXT_SEPARATORS_); *at;) {
        size_t length = strcspn(at, TN_TEXT_SEPARATORS_);
        if (length > *out_length && strchr(TN_TEXT_FOLDERS_ "~.", *at) &&
            strcspn(at, TN_TEXT_FOLDERS_) < length) {
            longest = at;
            *out_length = length;
        }
        at += length;
        at += strspn(at, TN_TEXT_SEPARATORS_);
    }
    return longest;
}

/* Returns how many bytes remain if `text` is truncated at `keep`: does not split a character, and
 * does not split a path unless the text begins with it. */
static inline size_t tn_text_cut_at(const char *text, size_t keep)
{
    while (keep > 0 && ((unsigned char)text[keep] & 0xC0u) == 0x80u)
        keep--;
    size_t begin = keep;
    while (begin > 0 && !strchr(TN_TEXT_SEPARATORS_, text[begin - 1]))
        begin--;
    size_t length = strcspn(text + begin, TN_TEXT_SEPARATORS_);
    if (begin == 0 || begin + length == keep || strcspn(text + begin, TN_TEXT_FOLDERS_) >= length)
        return keep;
    return begin;
}

/* Copies `from` into `to`, which holds `size` bytes, at least 4. If the text is too long, "..."
 * replaces as many leading folders of the longest path as needed: ".../lib/libfoo.so". If that is
 * not enough, the text is truncated between characters, not inside a path, and ends in "...". */
static inline void tn_text_fit(char *to, size_t size, const char *from)
{
    size_t length = strlen(from), path_length = 0;
    if (length < size) {
        memcpy(to, from, length + 1);
        return;
    }
    const char *path = tn_text_longest_path(from, &path_length);
    size_t spare = length + 4 - size, at = path ? strcspn(path, TN_TEXT_FOLDERS_) : 0;
    while (path && at < path_length && at < spare)
        at += 1 + strcspn(path + at + 1, TN_TEXT_FOLDERS_);
    size_t keep = path && at < path_length ? (size_t)(path - from) : tn_text_cut_at(from, size - 4);
    memcpy(to, from, keep);
    memcpy(to + keep, "...", 4);
    if (path && at < path_length)
        memcpy(to + keep + 3, path + at, strlen(path + at) + 1);
}

/* Number of bytes of the UTF-8 character (RFC 3629) at the start of `text`; 0 if it is invalid or a
 * control character. */
static inline size_t tn_text_character(const char *text)
{
    const unsigned char *b = (const unsigned char *)text;
    if (b[0] < 0x80)
        return b[0] >= ' ' && b[0] != 0x7F;
    size_t size = b[0] >= 0xF0 ? 4 : b[0] >= 0xE0 ? 3 : 2;
    unsigned char low = b[0] == 0xC2 ? 0xA0 : b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF;
    if (b[0] < 0xC2 || b[0] > 0xF4 || b[1] < low || b[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++)
        if ((b[i] & 0xC0u) != 0x80u)
            return 0;
    return size;
}

/* Replaces the byte at `at` by \xNN in a text of `length` bytes, in a buffer that holds `most`.
 * Returns the new length; the end of the text is dropped if it does not fit. */
static inline size_t tn_text_escape_byte(char *text, size_t at, size_t length, size_t most)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char byte = (unsigned char)text[at];
    const char escaped[4] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    size_t own = most - at < 4 ? most - at : 4, room = most - at - own, rest = length - at - 1;
    if (rest > room)
        rest = room;
    memmove(text + at + own, text + at + 1, rest);
    memcpy(text + at, escaped, own);
    text[at + own + rest] = '\0';
    return at + own + rest;
}

/* Makes a text one line of valid UTF-8, in a buffer of `size` bytes, at least 4: bytes of control
 * characters and bytes that are not UTF-8 become \xNN. If the text then does not fit, it is
 * truncated and ends in "...". */
static inline void tn_text_escape(char *text, size_t size)
{
    size_t at = 0, fits = 0, length = strlen(text), whole = length, bytes;
    for (; at < length; at += bytes) {
        fits = at + 4 <= size ? at : fits;
        bytes = tn_text_character(text + at);
        if (bytes > 0)
            continue;
        length = tn_text_escape_byte(text, at, length, size - 1);
        whole += 3;
        bytes = 4;
    }
    if (whole >= size)
        memcpy(text + fits, "...", 4);
}

/* Fills `err`, unless it is NULL, and returns `status`: `return tn_fail(err, TN_IO, errno, ...)`.
 * `where` and the formatted message are truncated to fit, and each is made one line of UTF-8,
 * because they may quote any bytes. */
TN_PRINTF(5, 0)
static inline tn_status tn_fail_v(tn_error *err, tn_status status, int32_t native_code,
                                  const char *where, const char *format, va_list arguments)
{
    char text[1024];
    if (!err)
        return status;
    if (vsnprintf(text, sizeof text, format, arguments) < 0)
        text[0] = '\0';
    err->status = status;
    err->native_code = native_code;
    tn_text_fit(err->where, sizeof err->where, where ? where : "");
    tn_text_fit(err->message, sizeof err->message, text);
    tn_text_escape(err->where, sizeof err->where);
    tn_text_escape(err->message, sizeof err->message);
    return status;
}

TN_PRINTF(5, 6)
static inline tn_status tn_fail(tn_error *err, tn_status status, int32_t native_code,
                                const char *where, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tn_fail_v(err, status, native_code, where, format, arguments);
    va_end(arguments);
    return status;
}

/* One function of a vendor library, and the offset of its address in the module's own table. `name`
 * may end in "@VERSION" to request that symbol version, and may begin with "?" if the symbol is
 * optional; the slot of a missing optional symbol is NULL. Frozen. */
typedef struct tn_symbol {
    const char *name;
    size_t offset;
} tn_symbol;

TN_STATIC_ASSERT(sizeof(tn_symbol) == 2 * sizeof(void *), "tn_symbol is frozen at two words");

/* Severity of a log line. */
enum { TN_LOG_OFF = 0, TN_LOG_ERROR, TN_LOG_WARNING, TN_LOG_INFO, TN_LOG_DEBUG };

/* One iteration of a parallel loop: `index` is in [0, count). */
typedef void tn_task(void *user, int64_t index);

TN_END_DECLS

#endif
