#include "schema.h"

#include "alloc.h"
#include "number.h"
#include "words.h"

#include <inttypes.h>

bool tni_need_set(tni_need *need, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tni_text_format_list(need->text, sizeof need->text, format, arguments);
    va_end(arguments);
    return false;
}

/* Types. */

static bool read_text(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key;
    if (!text[0])
        return tni_need_set(need, "a text");
    memcpy(at, &text, sizeof text);
    return true;
}

static bool write_text(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    const char *text;
    memcpy(&text, at, sizeof text);
    tni_buffer_add(out, text);
    return key->required || text[0];
}

static bool read_line(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    size_t length = strlen(text);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '\177')
            return tni_need_set(need, "one line of text");
    }
    if (length == 0 || length >= key->size)
        return tni_need_set(need, "1 to %zu bytes of text", key->size - 1);
    memcpy(at, text, length + 1);
    return true;
}

static bool write_line(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    const char *text = at;
    (void)key;
    tni_buffer_add(out, text);
    return text[0] != '\0';
}

static bool read_number(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    int64_t number;
    if (!tni_number_parse(text, false, &number) || number > key->most)
        return tni_need_set(need, "a whole number from 0 to %" PRId64, key->most);
    memcpy(at, &number, sizeof number);
    return true;
}

static bool write_number(const tni_schema_key *key, const void *at, tni_buffer *out)
{
    int64_t number;
    memcpy(&number, at, sizeof number);
    tni_buffer_format(out, "%" PRId64, number);
    return key->required || number != key->standard;
}

static bool read_nothing(const tni_schema_key *key, const char *text, void *at, tni_need *need)
{
    (void)key, (void)text, (void)at, (void)need;
    return true;
}

const tni_schema_type tni_schema_text = {read_text, write_text};
const tni_schema_type tni_schema_line = {read_line, write_line};
const tni_schema_type tni_schema_number = {read_number, write_number};
const tni_schema_type tni_schema_ignored = {read_nothing, NULL};

/* Messages. */

tni_shown tni_show(const char *text)
{
    tni_shown out;
    tn_text_fit(out.text, sizeof out.text, text);
    return out;
}

tn_status tni_schema_reject(const tni_schema_source *source, uint32_t line, const char *format, ...)
{
    char place[TNI_FORM_PLACE], text[400];
    va_list arguments;
    va_start(arguments, format);
    tni_text_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    return tn_fail(source->err, source->status, 0, source->where, "%s: %s",
                   tni_form_place(source->origin, line ? line : 1, place), text);
}

tn_status tni_schema_reject_value(const tni_schema_source *source, const tni_form_entry *entry,
                                  const char *expected)
{
    return tni_schema_reject(source, entry->line, "%s = \"%s\": expected %s",
                             tni_show(entry->key).text, tni_show(entry->value).text, expected);
}

static tn_status reject_key(const tni_schema_source *source, const tni_schema *schema,
                            const tni_form_entry *entry)
{
    enum { MOST = 64 };
    const char *words[MOST];
    char list[160], hint[TNI_HINT];
    size_t count = 0;
    for (; schema; schema = schema->also) {
        for (size_t i = 0; i < schema->count && count < MOST; i++)
            words[count++] = schema->keys[i].word;
    }
    const char *nearest = tni_words_nearest(entry->key, words, count);
    tni_words_join(words, count, list, sizeof list);
    return tni_schema_reject(
        source, entry->line, "unknown key \"%s\" (= \"%s\")%s%s", tni_show(entry->key).text,
        tni_show(entry->value).text,
        nearest ? tni_words_hint(nearest, hint) : "; keys: ", nearest ? "" : list);
}

/* Sections. */

const tni_form_entry *tni_section_entry(const tni_form_section *section, const char *key)
{
    for (size_t i = 0; i < section->count; i++) {
        if (strcmp(section->entries[i].key, key) == 0)
            return &section->entries[i];
    }
    return NULL;
}

const char *tni_section_name(const tni_form_section *section, const char *noun)
{
    size_t length = strlen(noun);
    const char *rest = section->name + length;
    if (strncmp(section->name, noun, length) != 0 || (*rest && *rest != ' '))
        return NULL;
    return *rest ? rest + 1 : rest;
}

/* Returns the key and, in *io, the part of the schema that it belongs to; NULL if unknown. */
static const tni_schema_key *find_key(const tni_schema **io, const char *word)
{
    for (; *io; *io = (*io)->also) {
        for (size_t i = 0; i < (*io)->count; i++) {
            if (strcmp((*io)->keys[i].word, word) == 0)
                return &(*io)->keys[i];
        }
    }
    return NULL;
}

static tn_status read_entry(const tni_schema_source *source, const tni_schema *schema,
                            const tni_form_entry *entry, char *out)
{
    const tni_schema *in = schema;
    const tni_schema_key *key = find_key(&in, entry->key);
    tni_need need;
    if (!key)
        return reject_key(source, schema, entry);
    if (!key->type->read(key, entry->value, out + key->offset, &need))
        return tni_schema_reject_value(source, entry, need.text);
    if (key->known)
        *(uint64_t *)(void *)(out + in->known_at) |= key->known;
    return TN_OK;
}

static tn_status check_required(const tni_schema_source *source, const tni_schema *schema,
                                const tni_form_section *section)
{
    const char *name = section->name;
    for (; schema; schema = schema->also) {
        for (size_t i = 0; i < schema->count; i++) {
            const tni_schema_key *key = &schema->keys[i];
            if (key->required && !tni_section_entry(section, key->word))
                return tni_schema_reject(source, section->line, "%s%s%s has no %s",
                                         name[0] ? "[" : "the text", tni_show(name).text,
                                         name[0] ? "]" : "", key->word);
        }
    }
    return TN_OK;
}

tn_status tni_schema_read(const tni_schema_source *source, const tni_schema *schema,
                          const tni_form_section *section, void *out)
{
    tn_status status = TN_OK;
    for (size_t i = 0; i < section->count && !status; i++) {
        const tni_form_entry *entry = &section->entries[i];
        const tni_form_entry *first = tni_section_entry(section, entry->key);
        if (first != entry)
            status = tni_schema_reject(
                source, entry->line, "%s = \"%s\": duplicate key, first set in line %u",
                tni_show(entry->key).text, tni_show(entry->value).text, (unsigned)first->line);
        else if (!schema->others ||
                 strncmp(entry->key, schema->others, strlen(schema->others)) != 0)
            status = read_entry(source, schema, entry, out);
    }
    return status ? status : check_required(source, schema, section);
}

static tn_status write_key(const tni_schema *schema, const tni_schema_key *key, const char *from,
                           tni_buffer *to, tn_error *err)
{
    tni_buffer text = {0};
    tn_status status = TN_OK;
    bool unknown =
        key->known && !(*(const uint64_t *)(const void *)(from + schema->known_at) & key->known);
    if (unknown || !key->type->write)
        return TN_OK;
    bool written = key->type->write(key, from + key->offset, &text);
    if (text.failed)
        status = tni_no_memory(err, "form", key->word);
    else if (written)
        status = tni_form_write_entry(to, key->word, tni_buffer_text(&text), err);
    tni_buffer_release(&text);
    return status;
}

tn_status tni_schema_write(const tni_schema *schema, const void *from, tni_buffer *to,
                           tn_error *err)
{
    tn_status status = TN_OK;
    for (; schema && !status; schema = schema->also) {
        for (size_t i = 0; i < schema->count && !status; i++)
            status = write_key(schema, &schema->keys[i], from, to, err);
    }
    return status;
}

tn_status tni_schema_write_section(const tni_schema *schema, const char *noun, const char *name,
                                   const void *from, tni_buffer *to, tn_error *err)
{
    tni_buffer whole = {0};
    tni_buffer_format(&whole, "%s%s%s", noun, name[0] ? " " : "", name);
    tn_status status = whole.failed ? tni_no_memory(err, "form", noun)
                                    : tni_form_write_section(to, whole.text, err);
    tni_buffer_release(&whole);
    return status ? status : tni_schema_write(schema, from, to, err);
}
