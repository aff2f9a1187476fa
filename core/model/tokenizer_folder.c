/* tokenizer_folder.c: which of a folder's files make its tokeniser (tokenizer_json.h): tokenizer.json before vocab.json and merges.txt before tokenizer.model. */
#include "tokenizer_json.h"
#include "tokenizer_json_internal.h"
#include "tokenizer_slow.h"

#include <string.h>
#include <sys/stat.h>

/* Everything that must live until the tokeniser is made. */
typedef struct opening {
    weir_system *system;
    char *folder; /* owned; NULL: a file that is read alone */
    weir__text_file file, merges, added;
    weir__tokenizer_settings settings;
    weir__build build;
} opening;

enum form { NO_FORM, TOKENIZER_JSON, GPT2_FILES, SENTENCEPIECE };
static const char *const names[] = {"", "tokenizer.json", "vocab.json", "tokenizer.model"};
enum { FORMS = sizeof names / sizeof names[0] };

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* The form of a single file, by its name. */
static enum form form_of_file(const char *name) {
    for (int i = TOKENIZER_JSON; i < FORMS; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum form)i;
    return ends_with(name, ".json") ? TOKENIZER_JSON : ends_with(name, ".model") ? SENTENCEPIECE : NO_FORM;
}

static enum form form_of_folder(weir_system *s, const char *folder) {
    if (weir__path_is_file(s, folder, names[TOKENIZER_JSON]))
        return TOKENIZER_JSON;
    if (weir__path_is_file(s, folder, names[GPT2_FILES]) && weir__path_is_file(s, folder, "merges.txt"))
        return GPT2_FILES;
    return weir__path_is_file(s, folder, names[SENTENCEPIECE]) ? SENTENCEPIECE : NO_FORM;
}

/* Reads the main file and finds its folder. */
static int read_main(opening *o, const char *path, enum form *form, weir_error **error) {
    struct stat st;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        *form = form_of_folder(o->system, path);
        o->folder = weir__strdup(o->system, path);
        if (!o->folder)
            return weir_fail(error, WEIR_ENOMEM, "%s", path);
        return *form == NO_FORM ? WEIR_OK : weir__text_file_read(o->system, o->folder, names[*form], WEIR__MOST_TOKENIZER, &o->file, error);
    }
    *form = form_of_file(name);
    if (*form == NO_FORM)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: wanted a folder, a tokenizer.json, a vocab.json or a tokenizer.model", path);
    if (strcmp(name, names[*form]) == 0) {
        o->folder = weir__strdup(o->system, slash ? path : ".");
        if (!o->folder)
            return weir_fail(error, WEIR_ENOMEM, "%s", path);
        if (slash)
            o->folder[slash - path + (slash == path)] = 0;
    }
    return weir__text_file_read(o->system, NULL, path, WEIR__MOST_TOKENIZER, &o->file, error);
}

static int read_form(opening *o, enum form form, weir_error **error) {
    const weir__tokenizer_file file = {&o->build, o->file.data, o->file.size};
    int code = WEIR_OK;
    if (form == TOKENIZER_JSON)
        return weir__tokenizer_json_read(&file, error);
    if (o->folder)
        code = weir__text_file_try(o->system, o->folder, "added_tokens.json", WEIR__MOST_SETTINGS, &o->added, error);
    if (code)
        return code;
    if (form == SENTENCEPIECE)
        return weir__sentencepiece_read(&o->build, &o->file, &o->added, &o->settings, error);
    code = weir__text_file_read(o->system, o->folder, "merges.txt", WEIR__MOST_TOKENIZER, &o->merges, error);
    return code ? code : weir__gpt2_read(&o->build, &o->file, &o->merges, &o->added, &o->settings, error);
}

static int open_form(opening *o, enum form form, weir__vocab_fn *fn, void *data, weir_error **error) {
    weir__build_init(&o->build, o->system, o->file.path);
    int code = weir__tokenizer_settings_read(&o->build, o->folder, &o->settings, error);
    if (code || (code = read_form(o, form, error)) || (code = weir__tokenizer_settings_apply(&o->build, &o->settings, error)))
        return code;
    return fn(data, &o->build.v, error);
}

int weir__tokenizer_json_vocab(weir_system *s, const char *path, weir__vocab_fn *fn, void *data, weir_error **error) {
    enum form form;
    opening *o = weir__alloc(s, sizeof *o);
    if (!o)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", path);
    o->system = s;
    int code = read_main(o, path, &form, error);
    if (!code && form != NO_FORM)
        code = open_form(o, form, fn, data, error);
    if (o->build.system)
        weir__build_fini(&o->build);
    weir__tokenizer_settings_fini(&o->settings);
    weir__text_file_fini(&o->file);
    weir__text_file_fini(&o->merges);
    weir__text_file_fini(&o->added);
    weir__free(s, o->folder);
    weir__free(s, o);
    return code;
}

int weir__tokenizer_json_open(weir_system *s, const char *path, weir__tokenizer **out, weir_error **error) {
    weir__making making = {s, out, ""};
    *out = NULL;
    return weir__tokenizer_json_vocab(s, path, weir__make_tokenizer, &making, error);
}
