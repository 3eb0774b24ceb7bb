#include "rules.h"

#include <stdbool.h>
#include <tenon/tenon.h>

typedef struct search {
    rules_tell *tell;
    void *to;
    const char *key;
} search;

static void look_up(const search *in, const char *name)
{
    const tn_library *library;
    tn_error err;
    char text[sizeof err.message + 64];
    if (tn_library_get(name, &library, &err) != TN_NOT_FOUND)
        return;
    snprintf(text, sizeof text, "%s: %s", in->key, err.message);
    in->tell(in->to, text);
}

/* The library that one item of a value speaks of: "prefer:mkl" of a setting that names libraries,
 * "forbid:matmul/library:mkl" of one that names anything. NULL for none, and for many. */
static const char *library_of(char *item, bool names_libraries)
{
    static const char kind[] = "library:";
    char *colon = strrchr(item, ':'), *found = strstr(item, kind);
    const char *name = found              ? found + strlen(kind)
                       : !names_libraries ? NULL
                       : colon            ? colon + 1
                                          : item;
    return name && name[0] && strcmp(name, "any") != 0 && !strchr(name, '*') ? name : NULL;
}

static void look_at(const search *in, char *value, bool names_libraries)
{
    for (char *item = value, *next; item; item = next) {
        next = strchr(item, ',');
        if (next)
            *next++ = '\0';
        item += strspn(item, " ");
        const char *name = library_of(item, names_libraries);
        if (name)
            look_up(in, name);
    }
}

void rules_find_unknown(rules_tell *tell, void *to)
{
    static const char end[] = ".library";
    char value[2048];
    for (tn_setting i = 0; i < TN_SETTING_COUNT; i++) {
        const tn_setting_facts *facts = tn_setting_info(i);
        size_t length = strlen(facts->key), tail = strlen(end);
        bool names = length > tail && strcmp(facts->key + length - tail, end) == 0;
        const search in = {.tell = tell, .to = to, .key = facts->key};
        if (strncmp(facts->kind, "rule", 4) == 0 &&
            tn_setting_write(NULL, i, value, sizeof value) < sizeof value)
            look_at(&in, value, names);
    }
}

static void say(void *to, const char *text)
{
    (void)to;
    fprintf(stderr, "tenon: settings: %s\n", text);
}

void rules_say_unknown(void)
{
    rules_find_unknown(say, NULL);
}
