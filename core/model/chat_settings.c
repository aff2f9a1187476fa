/* chat_settings.c: reading of chat_settings.h. */
#include "chat_settings.h"

#include "../text/json.h"
#include "text_file.h"
#include "tokenizer_settings.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TEMPLATES = 64,    /* published models have up to 4 */
    MOST_TEMPLATE = 1 << 20 /* bytes; published ones have under 40,000 */
};

static int set_template(weir__chat_settings *c, weir__string name, weir__string text, weir_error **error) {
    weir__chat_template *to = NULL;
    for (size_t i = 0; i < c->n_templates && !to; i++)
        if (c->templates[i].name.size == name.size && memcmp(c->templates[i].name.data, name.data, name.size) == 0)
            to = &c->templates[i];
    if (!to && c->n_templates == MOST_TEMPLATES)
        return weir_fail(error, WEIR_ETOOBIG, "more than %d chat templates", MOST_TEMPLATES);
    char *memory = weir__alloc(c->system, name.size + text.size + 2);
    if (!memory)
        return weir_fail(error, WEIR_ENOMEM, "chat template");
    if (to)
        weir__free(c->system, (void *)to->name.data);
    else
        to = &c->templates[c->n_templates++];
    to->name = (weir__string){memcpy(memory, name.data, name.size), name.size};
    to->text = (weir__string){memcpy(memory + name.size + 1, text.data, text.size), text.size};
    return WEIR_OK;
}

/* A template from JSON: its escapes are resolved where it lies in the file. */
static int take_template(weir__chat_settings *c, weir__string name, weir__json_text text, weir_error **error) {
    size_t size = weir__json_unescape(text, (char *)text.data);
    return set_template(c, name, (weir__string){text.data, size}, error);
}

static int read_list(weir__chat_settings *c, weir__json at, weir_error **error) {
    static const char *const fields[] = {"name", "template"};
    weir__json field[2];
    weir__json_text name = {0}, text = {0};
    int code = WEIR_OK;
    weir__json_array(&at);
    while (!code && weir__json_next(&at)) {
        code = weir__json_fields(&at, "chat template", fields, 2, field);
        if (code)
            break;
        if (!field[0].text || !field[1].text) {
            weir__json_fail(&at, WEIR_EFORMAT, "chat template: wanted \"name\" and \"template\"");
        } else if (weir__json_string(&field[0], &name) && weir__json_string(&field[1], &text)) {
            size_t size = weir__json_unescape(name, (char *)name.data);
            code = take_template(c, (weir__string){name.data, size}, text, error);
        } else {
            code = field[0].code ? field[0].code : field[1].code;
        }
    }
    return code ? code : at.code;
}

static int read_value(weir__chat_settings *c, weir__json at, weir_error **error) {
    weir__json_text text;
    if (weir__json_peek(&at) == WEIR__JSON_ARRAY)
        return read_list(c, at, error);
    return weir__json_string(&at, &text) ? take_template(c, (weir__string){"default", 7}, text, error) : at.code;
}

/* A JSON file's chat_template, and clean_up_tokenization_spaces. */
static int read_json(weir__chat_settings *c, const char *folder, const char *name, weir_error **error) {
    weir__text_file f;
    weir__json j, at;
    int code = weir__text_file_try(c->system, folder, name, WEIR__MOST_SETTINGS, &f, error);
    if (code || !f.data)
        return code;
    weir__json_init(&j, f.path, f.data, f.size, error);
    at = j;
    if (weir__json_find(&at, "clean_up_tokenization_spaces") && !weir__json_null(&at))
        weir__json_bool(&at, &c->clean_up_spaces);
    code = at.code;
    at = j;
    if (!code && weir__json_find(&at, "chat_template") && !weir__json_null(&at))
        code = read_value(c, at, error);
    code = code ? code : at.code;
    weir__text_file_fini(&f);
    return code;
}

static int read_jinja(weir__chat_settings *c, const char *folder, const char *file, weir__string name, weir_error **error) {
    weir__text_file f;
    int code = weir__text_file_try(c->system, folder, file, MOST_TEMPLATE, &f, error);
    if (code || !f.data)
        return code;
    if (weir__utf8_valid(f.data, f.size) != f.size)
        code = weir_fail(error, WEIR_EFORMAT, "%s: byte %zu is no UTF-8", f.path, weir__utf8_valid(f.data, f.size));
    else
        code = set_template(c, name, (weir__string){f.data, f.size}, error);
    weir__text_file_fini(&f);
    return code;
}

static int read_more(weir__chat_settings *c, const char *folder, weir_error **error) {
    static const char end[] = ".jinja";
    char *path = weir__path_join(c->system, folder, "additional_chat_templates");
    if (!path)
        return weir_fail(error, WEIR_ENOMEM, "%s: chat templates", folder);
    DIR *d = opendir(path);
    int code = WEIR_OK;
    for (struct dirent *e; d && !code && (e = readdir(d));) {
        size_t n = strlen(e->d_name), m = sizeof end - 1;
        if (n > m && strcmp(e->d_name + n - m, end) == 0)
            code = read_jinja(c, path, e->d_name, (weir__string){e->d_name, n - m}, error);
    }
    if (d)
        closedir(d);
    weir__free(c->system, path);
    return code;
}

static int by_name(const void *a, const void *b) {
    const weir__chat_template *x = a, *y = b;
    return strcmp(x->name.data, y->name.data);
}

int weir__chat_settings_read(weir_system *s, const char *folder, weir__chat_settings *c, weir_error **error) {
    *c = (weir__chat_settings){.system = s, .templates = weir__alloc(s, MOST_TEMPLATES * sizeof *c->templates)};
    if (!c->templates)
        return weir_fail(error, WEIR_ENOMEM, "%s: chat templates", folder);
    int code = read_json(c, folder, "tokenizer_config.json", error);
    if (!code)
        code = read_json(c, folder, "chat_template.json", error);
    if (!code)
        code = read_jinja(c, folder, "chat_template.jinja", (weir__string){"default", 7}, error);
    if (!code)
        code = read_more(c, folder, error);
    if (code)
        weir__chat_settings_fini(c);
    else
        qsort(c->templates, c->n_templates, sizeof *c->templates, by_name);
    return code;
}

void weir__chat_settings_fini(weir__chat_settings *c) {
    for (size_t i = 0; i < c->n_templates; i++)
        weir__free(c->system, (void *)c->templates[i].name.data);
    if (c->system)
        weir__free(c->system, c->templates);
    *c = (weir__chat_settings){0};
}

const weir__string *weir__chat_template_find(const weir__chat_settings *c, const char *name) {
    for (size_t i = 0; i < c->n_templates; i++)
        if (strcmp(c->templates[i].name.data, name ? name : "default") == 0)
            return &c->templates[i].text;
    return NULL;
}
