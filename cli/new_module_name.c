/* The names that a new module may have. */
#include "new_module.h"

enum { NAME_MOST = 48 };
static const char prefix[] = "tenon-"; /* of the folder and the file */

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The registry's rule: 1 to 48 of a-z 0-9 - _, beginning with a letter or digit. */
static bool is_legal(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > NAME_MOST || !is_small(name[0]))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!is_small(name[i]) && name[i] != '-' && name[i] != '_')
            return false;
    }
    return true;
}

/* The nearest legal name: lower case, '-' for invalid characters; "" if nothing is left. */
static void make_legal(const char *name, char out[NAME_MOST + 1])
{
    size_t length = 0;
    for (; *name && length < NAME_MOST; name++) {
        char c = *name >= 'A' && *name <= 'Z' ? (char)(*name - 'A' + 'a') : *name;
        bool is_sound = is_small(c) || c == '_' || c == '-';
        if (length == 0 && !is_small(c))
            continue;
        if (is_sound)
            out[length++] = c;
        else if (out[length - 1] != '-')
            out[length++] = '-';
    }
    while (length > 0 && out[length - 1] == '-')
        length--;
    out[length] = '\0';
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(*list, name) == 0)
            return true;
    }
    return false;
}

/* Reserved names: platforms that Tenon knows, modules that ship with it, and words that may be used
 * in place of a platform's name. */
static bool is_reserved(const char *name)
{
    static const char *const own[] = {"ref", "described", "best", "unspecified", "unknown", NULL};
    for (int32_t kind = TN_PLATFORM_CPU; kind < TN_PLATFORM_KIND_COUNT; kind++) {
        if (strcmp(tn_platform_kind_name(kind), name) == 0)
            return true;
    }
    return is_one_of(name, own);
}

/* Authors name functions and variables after the module. */
static bool is_keyword(const char *name)
{
    static const char *const keywords[] = {
        "alignas",  "alignof",  "and",     "asm",       "auto",      "bool",     "break",
        "case",     "catch",    "char",    "class",     "const",     "continue", "default",
        "delete",   "do",       "double",  "else",      "enum",      "explicit", "export",
        "extern",   "false",    "float",   "for",       "friend",    "goto",     "if",
        "inline",   "int",      "long",    "mutable",   "namespace", "new",      "not",
        "operator", "or",       "private", "protected", "public",    "register", "restrict",
        "return",   "short",    "signed",  "sizeof",    "static",    "struct",   "switch",
        "template", "this",     "throw",   "true",      "try",       "typedef",  "typename",
        "union",    "unsigned", "using",   "virtual",   "void",      "volatile", "while",
        "xor",      NULL};
    return is_one_of(name, keywords);
}

/* Returns the module that offers a library of this name; NULL for none. A library that Tenon knows
 * and no module offers may be the very one that the new module is for. */
static const char *find_offer(const char *name)
{
    static tn_library_state state;
    const tn_library *library = NULL;
    state = (tn_library_state){.struct_size = sizeof state};
    if (tn_library_get(name, &library, NULL) || tn_library_state_get(library, NULL, &state, NULL) ||
        !state.module[0])
        return NULL;
    return state.module;
}

/* A path in place of a name: suggests --dir. */
static void reject_path(const command *self, const new_module_kind *kind, const char *name)
{
    char legal[NAME_MOST + 1];
    const char *last = strrchr(name, '/');
    make_legal(last + 1, legal);
    fprintf(stderr, "tenon %s: expected a name, got the path \"%s\"", self->name, name);
    if (legal[0] && last > name)
        fprintf(stderr, "; did you mean %s --%s --dir %.*s?", legal, kind->word, (int)(last - name),
                name);
    fprintf(stderr, "\n");
}

static void reject_illegal(const command *self, const char *name)
{
    char legal[NAME_MOST + 1];
    make_legal(name, legal);
    fprintf(
        stderr,
        "tenon %s: a module name has 1 to %d characters of a-z 0-9 - _ and begins with a letter "
        "or digit; got \"%.80s\"%s%s%s\n",
        self->name, NAME_MOST, name, legal[0] ? "; did you mean " : "", legal, legal[0] ? "?" : "");
}

int new_module_check_name(const command *self, const new_module_kind *kind, const char *name)
{
    const size_t before = sizeof prefix - 1;
    const char *module = NULL;
    if (strchr(name, '/')) {
        reject_path(self, kind, name);
    } else if (!is_legal(name)) {
        reject_illegal(self, name);
    } else if (strncmp(name, prefix, before) == 0 && is_legal(name + before)) {
        fprintf(stderr, "tenon %s: the folder is called tenon-NAME already; did you mean %s?\n",
                self->name, name + before);
    } else if (is_reserved(name)) {
        fprintf(stderr, "tenon %s: \"%s\" is reserved by Tenon; did you mean my-%s?\n", self->name,
                name, name);
    } else if (is_keyword(name)) {
        fprintf(stderr,
                "tenon %s: \"%s\" is a keyword of C or C++, so no function could have the module's "
                "name; did you mean my-%s?\n",
                self->name, name, name);
    } else if (strcmp(kind->word, "library") == 0 && (module = find_offer(name))) {
        fprintf(stderr,
                "tenon %s: module %s already offers the library \"%s\"; did you mean my-%s?\n",
                self->name, module, name, name);
    } else {
        return EXIT_DONE;
    }
    return EXIT_WRONG_USE;
}
