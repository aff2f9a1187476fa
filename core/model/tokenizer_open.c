/* tokenizer_open.c: a tokeniser from whatever has one (source.h): a checkpoint, or tokeniser files without weights. */
#include "source.h"
#include "tokenizer_json.h"

#include <string.h>

/* Names that only tokeniser files have, an index of shards excepted. */
static bool is_tokenizer_file(const char *path) {
    static const char *const ends[] = {".json", ".model"};
    size_t n = strlen(path), index = strlen(".index.json");
    if (n >= index && strcmp(path + n - index, ".index.json") == 0)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

int weir__tokenizer_open(weir_system *s, const char *path, weir__tokenizer **out, weir_error **error) {
    weir__source *source = NULL;
    weir_error *why = NULL;
    *out = NULL;
    if (is_tokenizer_file(path))
        return weir__tokenizer_json_open(s, path, out, error);
    int no_source = weir__source_open(s, path, &source, &why);
    int code = no_source ? weir__tokenizer_json_open(s, path, out, NULL) : weir__source_tokenizer(source, out, error);
    weir__source_free(source);
    if (!code && *out) {
        weir_error_free(why);
        return WEIR_OK;
    }
    if (no_source && error)
        *error = why;
    else
        weir_error_free(why);
    return no_source ? no_source : code;
}
