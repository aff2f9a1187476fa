/* fuzz_tokenizer.c: any text through every model, normaliser and pre-tokeniser, with vocabularies made below, and any bytes as a pattern and as a character map. A
 * user's text never becomes a control piece; what a pipeline without losses encodes decodes to the same bytes.
 *
 * The first four bytes choose the model, the normaliser, the pre-tokeniser and where the text is cut into parts; a fifth whether the bytes up to the first line end are
 * a pattern or a character map. */
#include "../../core/text/regex.h"
#include "../../core/text/text.h"

#include <stdio.h>
#include <string.h>

#define MARK "\xE2\x96\x81"
enum { MOST = 400, MODELS = 5, NORMALISERS = 16, PRETOKENISERS = 16, MOST_PATTERN = 48, MOST_MATCHED = 64 };
enum { BYTES, CHARACTERS, SPM, UNIGRAM, WORDPIECE };

static weir_system *s;
static struct {
    size_t key; /* of the pipeline, from 1 */
    weir__tokenizer *t;
} made[32]; /* those used last */
static weir__string pieces[MOST];
static weir__merge_pair merges[64];
static weir__added added[16];
static int32_t kinds[MOST];
static double scores[MOST];
static char bytes[8192];
static size_t n_pieces, n_merges, n_added, used;

#define TEXT(t)                                                                                                                            \
    { t, sizeof(t) - 1 }
#define SPLIT(t, b)                                                                                                                        \
    { .kind = WEIR__SPLIT, .pattern = TEXT(t), .regex = true, .behaviour = b }
static const weir__step normalisers[NORMALISERS][3] = {
    {{0}},
    {{.kind = WEIR__PREPEND, .content = TEXT(MARK)}, {.kind = WEIR__REPLACE, .pattern = TEXT(" "), .content = TEXT(MARK)}},
    {{.kind = WEIR__NFC}},
    {{.kind = WEIR__NFD}, {.kind = WEIR__STRIP_ACCENT}},
    {{.kind = WEIR__NFKC}},
    {{.kind = WEIR__NFKD}, {.kind = WEIR__LOWERCASE}},
    {{.kind = WEIR__BERT, .clean_text = true, .chinese = true, .strip_accents = true, .lowercase = true}},
    {{.kind = WEIR__BERT, .clean_text = true}},
    {{.kind = WEIR__STRIP, .left = true, .right = true}, {.kind = WEIR__NMT}},
    {{.kind = WEIR__REPLACE, .pattern = TEXT(" {2,}"), .regex = true, .content = TEXT(MARK)}},
    {{.kind = WEIR__REPLACE, .pattern = TEXT("\\A | \\z"), .regex = true}},
    {{.kind = WEIR__LOWERCASE}, {.kind = WEIR__STRIP, .right = true}},
    {{.kind = WEIR__NMT}, {.kind = WEIR__NFKC}},
    {{.kind = WEIR__REPLACE, .pattern = TEXT("\\s+$"), .regex = true}},
    {{.kind = WEIR__NFD}, {.kind = WEIR__NFC}},
    {{.kind = WEIR__REPLACE, .pattern = TEXT("aa"), .content = TEXT("a")}, {.kind = WEIR__BYTE_LEVEL}},
};
static const weir__step pretokenisers[PRETOKENISERS][3] = {
    {{0}},
    {{.kind = WEIR__METASPACE, .content = TEXT(MARK), .prepend = WEIR__PREPEND_ALWAYS, .split = true}},
    {{.kind = WEIR__METASPACE, .content = TEXT(MARK), .prepend = WEIR__PREPEND_FIRST}},
    {{.kind = WEIR__WHITESPACE}},
    {{.kind = WEIR__WHITESPACE_SPLIT}, {.kind = WEIR__METASPACE, .content = TEXT(MARK), .prepend = WEIR__PREPEND_NEVER, .split = true}},
    {{.kind = WEIR__PUNCTUATION, .behaviour = WEIR__CONTIGUOUS}, {.kind = WEIR__DIGITS, .individual = true}},
    {{.kind = WEIR__BERT_SPLIT}},
    {SPLIT("\\s+", WEIR__REMOVED)},
    {SPLIT("[a-c]", WEIR__MERGED_WITH_PREVIOUS), {.kind = WEIR__DIGITS}},
    {SPLIT(" ", WEIR__MERGED_WITH_NEXT), {.kind = WEIR__FIXED_LENGTH, .start = 3}},
    {{.kind = WEIR__SPLIT, .pattern = TEXT("\\w+"), .regex = true, .behaviour = WEIR__REMOVED, .invert = true}},
    {{.kind = WEIR__SPLIT, .pattern = TEXT("a"), .behaviour = WEIR__CONTIGUOUS}},
    {SPLIT("\\s+$", WEIR__ISOLATED)},
    {SPLIT("\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", WEIR__ISOLATED)},
    {{.kind = WEIR__PUNCTUATION, .behaviour = WEIR__MERGED_WITH_NEXT}, {.kind = WEIR__WHITESPACE_SPLIT}},
    {{.kind = WEIR__METASPACE, .content = TEXT("_"), .prepend = WEIR__PREPEND_ALWAYS, .split = true}, SPLIT("_a", WEIR__ISOLATED)},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int32_t add(const char *text, int32_t kind, double score) {
    size_t size = strlen(text);
    pieces[n_pieces] = (weir__string){memcpy(bytes + used, text, size), size};
    kinds[n_pieces] = kind;
    scores[n_pieces] = score;
    used += size;
    size_t n = n_added;
    if (kind == WEIR__CONTROL || kind == WEIR__USER)
        added[n_added++] = (weir__added){.id = (int32_t)n_pieces,
                                         .content = pieces[n_pieces],
                                         .special = kind == WEIR__CONTROL,
                                         .lstrip = n % 2 == 1,
                                         .rstrip = n % 3 == 1,
                                         .normalized = n % 2 == 0,
                                         .single_word = n % 5 == 4};
    return (int32_t)n_pieces++;
}

static void add_merge(const char *left, const char *right) {
    char joined[64];
    snprintf(joined, sizeof joined, "%s%s", left, right);
    merges[n_merges].left = (weir__string){memcpy(bytes + used, left, strlen(left)), strlen(left)};
    used += strlen(left);
    merges[n_merges++].right = (weir__string){memcpy(bytes + used, right, strlen(right)), strlen(right)};
    used += strlen(right);
    add(joined, WEIR__NORMAL, 0);
}

static void add_bytes(void) {
    unsigned next = 256;
    for (unsigned c = 0; c < 256; c++) {
        unsigned point = (c >= 33 && c <= 126) || (c >= 161 && c != 173) ? c : next++;
        char text[3] = {(char)(point < 128 ? point : 0xC0 | point >> 6), (char)(point < 128 ? 0 : 0x80 | (point & 0x3F)), 0};
        add(text, WEIR__NORMAL, 0);
    }
}

static void add_fallback(void) {
    for (unsigned c = 0; c < 256; c++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", c);
        add(text, WEIR__BYTE, 0);
    }
}

static void add_pairs(void) {
    static const char *const pairs[][2] = {
        {"a", "b"}, {"ab", "c"}, {"\xC4\xA0", "a"}, {"a", "a"}, {"aa", "aa"}, {"\xC4\x8A", "\xC4\x8A"}, {"\xC4\xA0", "\xC4\xA0"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        add_merge(pairs[i][0], pairs[i][1]);
}

static void add_words(void) {
    static const char *const words[] = {
        MARK,           "a",  "b", "c",   "ab",  "aba",        MARK "a", MARK MARK, "a" MARK, "\xC3\xA9",  "e", "\xCC\x81",
        "\xE4\xB8\xAD", "s>", "<", "##a", "##b", "##\xC3\xA9", "\n",     ".",       "1",      "a" MARK "b"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add(words[i], WEIR__NORMAL, -1.0 - (double)(i % 5));
}

static void add_specials(void) {
    add("<|im_start|>", WEIR__CONTROL, 0);
    add("[tool]", WEIR__USER, 0);
    add("</s>", WEIR__CONTROL, 0);
    add("<mask>", WEIR__CONTROL, 0);
    add("aba", WEIR__USER, 0);
}

static const weir__step decoder[] = {{.kind = WEIR__REPLACE, .pattern = TEXT(MARK), .content = TEXT(" ")}, {.kind = WEIR__FUSE}};
static const weir__step byte_level = {.kind = WEIR__BYTE_LEVEL, .use_regex = true};

static size_t count(const weir__step *steps) {
    size_t n = 0;
    while (n < 3 && steps[n].kind)
        n++;
    return n;
}

/* The tokeniser of these steps; bytes go without pre-tokenisers of characters in every second one. */
static weir__tokenizer *make(int model, size_t normaliser, size_t pretokeniser, const weir__step *extra, bool normal) {
    weir__step before[4], cuts[5];
    weir__tokenizer *t = NULL;
    n_pieces = n_merges = n_added = used = 0;
    int32_t unk = add("<unk>", WEIR__UNKNOWN, 0);
    (model == BYTES ? add_bytes : model == WORDPIECE ? add_words : add_fallback)();
    (model == BYTES ? add_pairs : model == WORDPIECE ? add_specials : add_words)();
    if (model != WORDPIECE)
        add_specials();
    if (model == CHARACTERS)
        merges[n_merges++] = (weir__merge_pair){TEXT("a"), TEXT("b")};
    size_t n = count(normalisers[normaliser]), m = count(pretokenisers[pretokeniser]);
    memcpy(before, normalisers[normaliser], n * sizeof *before);
    memcpy(cuts, pretokenisers[pretokeniser], m * sizeof *cuts);
    if (extra && normal)
        before[n++] = *extra;
    else if (extra)
        cuts[m++] = *extra;
    if (model == BYTES)
        cuts[m++] = byte_level;
    static const enum weir__model_kind model_kinds[] = {WEIR__BPE, WEIR__BPE, WEIR__SPM, WEIR__UNIGRAM, WEIR__WORDPIECE};
    weir__vocab v = {.source = "fuzz", .model = model_kinds[model], .size = n_pieces, .pieces = pieces, .scores = scores, .kinds = kinds};
    if (model == WORDPIECE && pretokeniser % 2)
        v.model = WEIR__WORDLEVEL;
    v.merges = merges;
    v.n_merges = n_merges;
    v.added = added;
    for (size_t i = 0; i < n_added && normaliser == 0 && pretokeniser == 0; i++)
        added[i].lstrip = added[i].rstrip = false; /* white space that a token takes does not come back */
    v.n_added = n_added;
    v.normaliser = (weir__steps){before, n};
    v.pretokeniser = (weir__steps){cuts, m};
    v.decoder = model == BYTES ? (weir__steps){&byte_level, 1} : (weir__steps){decoder, 2};
    v.bos = v.eos = -1;
    v.unk = model == BYTES ? -1 : unk;
    v.byte_fallback = model != BYTES && model != WORDPIECE;
    v.fuse_unk = pretokeniser % 2;
    v.ignore_merges = normaliser % 2;
    v.continuing_prefix = model == WORDPIECE ? (weir__string)TEXT("##") : (weir__string){"", 0};
    v.max_word = 20;
    if (weir__tokenizer_new(s, &v, &t, NULL) && !extra)
        __builtin_trap();
    return t;
}

static void check_ids(const weir__tokenizer *t, const weir__ids *ids) {
    for (size_t i = 0; i < ids->size; i++) {
        if (ids->data[i] < 0 || (size_t)ids->data[i] >= weir__tokenizer_size(t))
            __builtin_trap();
    }
}

/* A user's text: no control piece; in a pipeline without losses every byte comes back, a mark as a space. */
static void check_plain(const weir__tokenizer *t, const char *text, size_t size, bool lossless) {
    weir__ids ids = {0};
    size_t at = 0;
    if (weir__tokenizer_encode(t, &(weir__part){text, size, false}, 1, false, &ids, NULL))
        __builtin_trap();
    check_ids(t, &ids);
    for (size_t i = 0; i < ids.size; i++) {
        size_t n;
        weir__string piece = weir__tokenizer_piece(t, ids.data[i]);
        if ((piece.size == 12 && memcmp(piece.data, "<|im_start|>", 12) == 0) || (piece.size == 4 && memcmp(piece.data, "</s>", 4) == 0))
            __builtin_trap();
        const char *bytes_of = weir__tokenizer_bytes(t, ids.data[i], false, &n);
        for (size_t k = 0; lossless && k < n; k++) {
            bool mark = bytes_of[k] == ' ' && size - at >= 3 && memcmp(text + at, MARK, 3) == 0;
            if (at >= size || (!mark && text[at] != bytes_of[k]))
                __builtin_trap();
            at += mark ? 3 : 1;
        }
    }
    if (lossless && at != size)
        __builtin_trap();
    weir__ids_free(s, &ids);
}

static void run(const weir__tokenizer *t, const char *text, size_t size, size_t cut, bool special) {
    weir__ids ids = {0};
    weir__part parts[] = {{text, cut, true}, {text + cut, size - cut, special}};
    if (weir__tokenizer_encode(t, parts, 2, true, &ids, NULL) == WEIR_OK)
        check_ids(t, &ids);
    weir__ids_free(s, &ids);
}

/* The bytes up to the first line end are a step. */
static void run_foreign(int model, uint8_t how, const char *text, size_t size) {
    const char *end = memchr(text, '\n', size);
    size_t n = end ? (size_t)(end - text) : size, limit = how & 1 ? MOST_PATTERN : size;
    weir__step step = {.kind = WEIR__CHARSMAP, .pattern = {text, n < limit ? n : limit}, .graphemes = how & 2};
    if (how & 1)
        step = (weir__step){.kind = WEIR__SPLIT, .pattern = step.pattern, .regex = true, .behaviour = WEIR__ISOLATED};
    weir__tokenizer *t = make(model, 0, 0, &step, !(how & 1));
    if (!t)
        return;
    size_t rest = end ? size - n - 1 : 0;
    run(t, text + size - rest, how & 1 && rest > MOST_MATCHED ? MOST_MATCHED : rest, 0, true);
    weir__tokenizer_free(t);
}

static const weir__tokenizer *find(int model, size_t normaliser, size_t pretokeniser) {
    size_t key = 1 + ((size_t)model * NORMALISERS + normaliser) * PRETOKENISERS + pretokeniser, i = key % (sizeof made / sizeof made[0]);
    if (made[i].key != key) {
        weir__tokenizer_free(made[i].t);
        made[i].t = make(model, normaliser, pretokeniser, NULL, false);
        made[i].key = key;
    }
    return made[i].t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 5 || (!s && weir_system_new(NULL, &s, NULL)))
        return 0;
    int model = data[0] % MODELS;
    size_t normaliser = data[1] % NORMALISERS, pretokeniser = data[2] % PRETOKENISERS;
    const char *text = (const char *)data + 5;
    size -= 5;
    if (data[4] & 0x80) {
        run_foreign(model, data[4], text, size);
        return 0;
    }
    const weir__tokenizer *t = find(model, normaliser, pretokeniser);
    run(t, text, size, size > 0 ? data[3] % (size + 1) : 0, data[4] & 1);
    check_plain(t, text, size, normaliser == 0 && pretokeniser == 0 && model != WORDPIECE);
    return 0;
}
