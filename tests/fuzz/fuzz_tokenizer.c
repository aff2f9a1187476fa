/* fuzz_tokenizer.c: any text through both kinds of tokeniser, in parts, with the vocabularies made below. What is encoded without special pieces decodes to the
 * same bytes; user text never becomes a control piece. The first byte chooses the tokeniser, the second where the text is cut into parts. */
#include "../../core/text/text.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 400 };
#define MARK "\xE2\x96\x81"

static weir_system *s;
static weir__tokenizer *tokenizers[2];
static weir__string pieces[MOST], merges[64];
static int32_t kinds[MOST];
static float scores[MOST];
static char bytes[8192];
static size_t n_pieces, n_merges, used;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(const char *text, int32_t kind, float score) {
    size_t size = strlen(text);
    pieces[n_pieces] = (weir__string){memcpy(bytes + used, text, size), size};
    kinds[n_pieces] = kind;
    scores[n_pieces++] = score;
    used += size;
}

static void add_merge(const char *left, const char *right) {
    char joined[64];
    snprintf(joined, sizeof joined, "%s%s", left, right);
    size_t size = (size_t)snprintf(bytes + used, sizeof bytes - used, "%s %s", left, right);
    merges[n_merges++] = (weir__string){bytes + used, size};
    used += size;
    add(joined, WEIR__NORMAL, 0);
}

static weir__old_vocab vocab(const char *model) {
    return (weir__old_vocab){.model = model,
                         .pre = "smollm",
                         .source = "fuzz",
                         .size = n_pieces,
                         .pieces = pieces,
                         .kinds = kinds,
                         .scores = scores,
                         .merges = merges,
                         .merges_count = n_merges,
                         .bos = -1,
                         .eos = -1,
                         .unk = -1};
}

static void make_bpe(void) {
    static const char *const pairs[][2] = {{"a", "b"},
                                           {"ab", "c"},
                                           {"\xC4\xA0", "a"},
                                           {"a", "a"},
                                           {"aa", "aa"},
                                           {"\xC4\x8A", "\xC4\x8A"},
                                           {"\xC4\xA0", "\xC4\xA0"},
                                           {"\xC3\x83", "\xC2\xA9"}};
    unsigned next = 256;
    n_pieces = n_merges = used = 0;
    for (unsigned c = 0; c < 256; c++) {
        unsigned point = (c >= 33 && c <= 126) || (c >= 161 && c != 173) ? c : next++;
        char text[3] = {(char)(point < 128 ? point : 0xC0 | point >> 6), (char)(point < 128 ? 0 : 0x80 | (point & 0x3F)), 0};
        add(text, WEIR__NORMAL, 0);
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        add_merge(pairs[i][0], pairs[i][1]);
    add("<|im_start|>", WEIR__CONTROL, 0);
    add("<|im_end|>", WEIR__CONTROL, 0);
    add("<", WEIR__USER, 0);
    weir__old_vocab v = vocab("gpt2");
    if (weir__tokenizer_new(s, &v, &tokenizers[0], NULL))
        __builtin_trap();
}

static void make_spm(void) {
    static const char *const words[] = {
        MARK, "a", "b", "ab", "aba", MARK "a", MARK MARK, "a" MARK "b", "\n", "\n\n", "\xC3\xA9", "\xC3\xA9\xC3\xA9", "s>", "<"};
    n_pieces = n_merges = used = 0;
    add("<unk>", WEIR__UNKNOWN, 0);
    add("<s>", WEIR__CONTROL, 0);
    add("</s>", WEIR__CONTROL, 0);
    for (unsigned c = 0; c < 256; c++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", c);
        add(text, WEIR__BYTE, 0);
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add(words[i], WEIR__NORMAL, -(float)(i % 5));
    weir__old_vocab v = vocab("llama");
    v.add_space_prefix = true;
    if (weir__tokenizer_new(s, &v, &tokenizers[1], NULL))
        __builtin_trap();
}

/* Plain text comes back, byte for byte. A mark in SentencePiece's text comes back as a space. */
static void check_plain(const weir__tokenizer *t, const char *text, size_t size, bool spm) {
    weir__ids ids = {0};
    size_t at = 0;
    if (weir__tokenizer_encode(t, &(weir__part){text, size, false}, 1, false, &ids, NULL))
        __builtin_trap();
    for (size_t i = 0; i < ids.size; i++) {
        size_t n;
        const char *piece = weir__tokenizer_bytes(t, ids.data[i], false, &n);
        if (n == 0)
            __builtin_trap();
        if (spm && i == 0 && size > 0) { /* the space before the text */
            if (piece[0] != ' ')
                __builtin_trap();
            piece++, n--;
        }
        for (size_t k = 0; k < n; k++) {
            bool mark = spm && piece[k] == ' ' && size - at >= 3 && memcmp(text + at, MARK, 3) == 0;
            if (at >= size || (!mark && text[at] != piece[k]))
                __builtin_trap();
            at += mark ? 3 : 1;
        }
    }
    if (at != size)
        __builtin_trap();
    weir__ids_free(s, &ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir__ids ids = {0};
    if (size < 2)
        return 0;
    if (!s) {
        if (weir_system_new(NULL, &s, NULL))
            return 0;
        make_bpe();
        make_spm();
    }
    const char *text = (const char *)data + 2;
    size -= 2;
    size_t cut = size > 0 ? data[1] % (size + 1) : 0;
    const weir__tokenizer *t = tokenizers[data[0] % 2];
    weir__part parts[] = {{text, cut, true}, {text + cut, size - cut, data[0] & 2}};
    if (weir__tokenizer_encode(t, parts, 2, true, &ids, NULL))
        __builtin_trap();
    weir__ids_free(s, &ids);
    check_plain(t, text, size, data[0] % 2);
    return 0;
}
