/* tokenizer_gpt2.c: GPT-2's original form: vocab.json, an object of pieces and ids, and merges.txt, a merge a line. What its text goes through is known from the
 * tokenizer class only. */
#include "tokenizer_json_internal.h"
#include "tokenizer_slow.h"

#include <string.h>

#define LETTERS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define QWEN2 LETTERS "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const weir__step byte_level = {.kind = WEIR__BYTE_LEVEL, .use_regex = true};
static const weir__step qwen2[] = {{.kind = WEIR__NFC},
                                   {.kind = WEIR__SPLIT, .pattern = {QWEN2, sizeof QWEN2 - 1}, .regex = true, .behaviour = WEIR__ISOLATED},
                                   {.kind = WEIR__BYTE_LEVEL}};

static int set_qwen2(weir__build *b, weir_error **error) {
    int code = weir__build_step(b, &b->v.normaliser, &qwen2[0], error);
    if (!code)
        code = weir__build_step(b, &b->v.pretokeniser, &qwen2[1], error);
    return code ? code : weir__build_step(b, &b->v.pretokeniser, &qwen2[2], error);
}

static int set_gpt2(weir__build *b, bool prefix, weir_error **error) {
    weir__step step = byte_level;
    step.add_prefix_space = prefix;
    return weir__build_step(b, &b->v.pretokeniser, &step, error);
}

static bool class_is(weir__string class, const char *name) {
    size_t size = strlen(name);
    bool fast = class.size == size + 4 && memcmp(class.data + size, "Fast", 4) == 0;
    return (class.size == size || fast) && memcmp(class.data, name, size) == 0;
}

static int set_steps(weir__build *b, const weir__tokenizer_settings *t, weir_error **error) {
    char name[64];
    int code;
    if (!t->class.data || class_is(t->class, "GPT2Tokenizer"))
        code = set_gpt2(b, t->add_prefix_space, error);
    else if (class_is(t->class, "Qwen2Tokenizer"))
        code = set_qwen2(b, error);
    else
        return weir_fail(error, WEIR_EUNSUPPORTED,
                         "%s: tokenizer_class \"%s\" is not supported without a tokenizer.json; known: GPT2Tokenizer, Qwen2Tokenizer",
                         b->source, weir__quote(name, sizeof name, t->class.data, t->class.size));
    return code ? code : weir__build_step(b, &b->v.decoder, &(weir__step){.kind = WEIR__BYTE_LEVEL}, error);
}

/* The next line of a text without its end; false at the end. */
static bool next_line(const char *text, size_t size, size_t *at, weir__string *line) {
    if (*at >= size)
        return false;
    const char *end = memchr(text + *at, '\n', size - *at);
    size_t n = end ? (size_t)(end - text) - *at : size - *at;
    *line = (weir__string){text + *at, n > 0 && text[*at + n - 1] == '\r' ? n - 1 : n};
    *at += n + 1;
    return true;
}

/* Lines that are no merges: "#version: ..." and empty ones. */
static bool is_merge(weir__string line) {
    return line.size > 0 && !(line.size >= 8 && memcmp(line.data, "#version", 8) == 0);
}

static int read_merges(weir__build *b, const weir__text_file *f, weir_error **error) {
    char shown[48];
    weir__string line;
    size_t n = 0, number = 0, most = weir__merges_most(b);
    for (size_t at = 0; n <= most && next_line(f->data, f->size, &at, &line);)
        n += is_merge(line);
    if (n > most)
        return weir_fail(error, WEIR_EFORMAT, "%s: found more than %zu merges, which is all that the pieces can be made by", f->path, most);
    b->v.merges = b->merges = weir__build_alloc(b, n * sizeof *b->merges + 1);
    if (!b->merges)
        return weir_fail(error, WEIR_ENOMEM, "%s: %zu merges", f->path, n);
    for (size_t at = 0; next_line(f->data, f->size, &at, &line);) {
        number++;
        if (is_merge(line) && !weir__merge_split(line, &b->merges[b->v.n_merges++]))
            return weir_fail(error, WEIR_EFORMAT, "%s: line %zu: found \"%s\", wanted two pieces with a space between them", f->path,
                             number, weir__quote(shown, sizeof shown, line.data, line.size));
    }
    return WEIR_OK;
}

/* The special tokens of the settings are found in texts even where no list of added tokens has them. */
static int add_special(weir__build *b, weir__string text, weir_error **error) {
    int32_t id = text.data ? weir__build_find(b, text.data, text.size) : -1;
    return id < 0 ? WEIR_OK : weir__slow_add(b, &(weir__added){.id = id, .content = text, .special = true}, error);
}

int weir__gpt2_read(weir__build *b, const weir__text_file *vocab, const weir__text_file *merges, const weir__text_file *added,
                    const weir__tokenizer_settings *t, weir_error **error) {
    const weir__tokenizer_file file = {b, vocab->data, vocab->size};
    weir__json j;
    int64_t highest = -1;
    weir__json_init(&j, vocab->path, vocab->data, vocab->size, error);
    weir__json whole = j;
    int code = weir__json_finish(&whole);
    b->v.model = WEIR__BPE;
    if (code || (code = set_steps(b, t, error)) || (code = weir__slow_added(b, added, t, &highest, error)) ||
        (code = weir__pieces_read(&file, j, false, b->v.n_added, highest, error)) || (code = weir__slow_place(b, error)) ||
        (code = read_merges(b, merges, error)) || (code = add_special(b, t->bos, error)))
        return code;
    return add_special(b, t->eos, error);
}
