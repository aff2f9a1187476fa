/* tokenizer_json_tables.c: names and settings of components as the tokenizers library has them (tokenizer_json_tables.h). */
#include "tokenizer_json_tables.h"

#include <stddef.h>

const char *const weir__behaviour_words[] = {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous", NULL};
const char *const weir__scheme_words[] = {"never", "first", "always", NULL};

#define AT(field) offsetof(weir__step, field)

const weir__component weir__normalisers[] = {
    {"Prepend", {.kind = WEIR__PREPEND}, {{"prepend", WEIR__OPTION_TEXT, AT(content), true}}},
    {"Replace", {.kind = WEIR__REPLACE}, {{"pattern", WEIR__OPTION_PATTERN, 0, true}, {"content", WEIR__OPTION_TEXT, AT(content), true}}},
    {"Lowercase", {.kind = WEIR__LOWERCASE}, {{0}}},
    {"NFC", {.kind = WEIR__NFC}, {{0}}},
    {"NFD", {.kind = WEIR__NFD}, {{0}}},
    {"NFKC", {.kind = WEIR__NFKC}, {{0}}},
    {"NFKD", {.kind = WEIR__NFKD}, {{0}}},
    {"Strip",
     {.kind = WEIR__STRIP},
     {{"strip_left", WEIR__OPTION_BOOLEAN, AT(left), true}, {"strip_right", WEIR__OPTION_BOOLEAN, AT(right), true}}},
    {"StripAccents", {.kind = WEIR__STRIP_ACCENT}, {{0}}},
    {"Nmt", {.kind = WEIR__NMT}, {{0}}},
    {"ByteLevel", {.kind = WEIR__BYTE_LEVEL}, {{0}}},
    {"Precompiled", {.kind = WEIR__CHARSMAP, .graphemes = true}, {{"precompiled_charsmap", WEIR__OPTION_CHARSMAP, 0, true}}},
    {"BertNormalizer",
     {.kind = WEIR__BERT, .clean_text = true, .chinese = true, .lowercase = true},
     {{"clean_text", WEIR__OPTION_BOOLEAN, AT(clean_text), false},
      {"handle_chinese_chars", WEIR__OPTION_BOOLEAN, AT(chinese), false},
      {"strip_accents", WEIR__OPTION_BOOLEAN, AT(strip_accents), false},
      {"lowercase", WEIR__OPTION_BOOLEAN, AT(lowercase), false}}},
    {0},
};

const weir__component weir__pretokenisers[] = {
    {"ByteLevel",
     {.kind = WEIR__BYTE_LEVEL, .add_prefix_space = true, .use_regex = true},
     {{"add_prefix_space", WEIR__OPTION_BOOLEAN, AT(add_prefix_space), false},
      {"use_regex", WEIR__OPTION_BOOLEAN, AT(use_regex), false},
      {"trim_offsets", WEIR__OPTION_NOTHING, 0, false}}},
    {"Split",
     {.kind = WEIR__SPLIT},
     {{"pattern", WEIR__OPTION_PATTERN, 0, true},
      {"behavior", WEIR__OPTION_BEHAVIOUR, 0, true},
      {"invert", WEIR__OPTION_BOOLEAN, AT(invert), false}}},
    {"CharDelimiterSplit", {.kind = WEIR__SPLIT, .behaviour = WEIR__REMOVED}, {{"delimiter", WEIR__OPTION_CHARACTER, AT(pattern), true}}},
    {"Digits", {.kind = WEIR__DIGITS}, {{"individual_digits", WEIR__OPTION_BOOLEAN, AT(individual), false}}},
    {"Metaspace",
     {.kind = WEIR__METASPACE, .prepend = WEIR__PREPEND_ALWAYS, .split = true},
     {{"replacement", WEIR__OPTION_CHARACTER, AT(content), true},
      {"add_prefix_space", WEIR__OPTION_PREFIX, 0, false},
      {"prepend_scheme", WEIR__OPTION_SCHEME, 0, false},
      {"split", WEIR__OPTION_BOOLEAN, AT(split), false},
      {"str_rep", WEIR__OPTION_NOTHING, 0, false}}},
    {"Whitespace", {.kind = WEIR__WHITESPACE}, {{0}}},
    {"WhitespaceSplit", {.kind = WEIR__WHITESPACE_SPLIT}, {{0}}},
    {"Punctuation", {.kind = WEIR__PUNCTUATION}, {{"behavior", WEIR__OPTION_BEHAVIOUR, 0, false}}},
    {"BertPreTokenizer", {.kind = WEIR__BERT_SPLIT}, {{0}}},
    {"FixedLength", {.kind = WEIR__FIXED_LENGTH, .start = 5}, {{"length", WEIR__OPTION_COUNT, AT(start), false}}},
    {0},
};

const weir__component weir__decoders[] = {
    {"ByteLevel",
     {.kind = WEIR__BYTE_LEVEL},
     {{"add_prefix_space", WEIR__OPTION_NOTHING, 0, false},
      {"trim_offsets", WEIR__OPTION_NOTHING, 0, false},
      {"use_regex", WEIR__OPTION_NOTHING, 0, false}}},
    {"Metaspace",
     {.kind = WEIR__METASPACE, .prepend = WEIR__PREPEND_ALWAYS, .split = true},
     {{"replacement", WEIR__OPTION_CHARACTER, AT(content), true},
      {"add_prefix_space", WEIR__OPTION_PREFIX, 0, false},
      {"prepend_scheme", WEIR__OPTION_SCHEME, 0, false},
      {"split", WEIR__OPTION_NOTHING, 0, false},
      {"str_rep", WEIR__OPTION_NOTHING, 0, false}}},
    {"Replace", {.kind = WEIR__REPLACE}, {{"pattern", WEIR__OPTION_PATTERN, 0, true}, {"content", WEIR__OPTION_TEXT, AT(content), true}}},
    {"ByteFallback", {.kind = WEIR__BYTE_FALLBACK}, {{0}}},
    {"Fuse", {.kind = WEIR__FUSE}, {{0}}},
    {"Strip",
     {.kind = WEIR__STRIP_DECODED},
     {{"content", WEIR__OPTION_CHARACTER, AT(content), true},
      {"start", WEIR__OPTION_COUNT, AT(start), true},
      {"stop", WEIR__OPTION_COUNT, AT(stop), true}}},
    {"WordPiece",
     {.kind = WEIR__WORDPIECE_JOIN, .content = {"##", 2}, .cleanup = true},
     {{"prefix", WEIR__OPTION_TEXT, AT(content), false}, {"cleanup", WEIR__OPTION_BOOLEAN, AT(cleanup), false}}},
    {"BPEDecoder", {.kind = WEIR__BPE_JOIN, .content = {"</w>", 4}}, {{"suffix", WEIR__OPTION_TEXT, AT(content), false}}},
    {"CTC",
     {.kind = WEIR__CTC, .pattern = {"<pad>", 5}, .content = {"|", 1}, .cleanup = true},
     {{"pad_token", WEIR__OPTION_TEXT, AT(pattern), false},
      {"word_delimiter_token", WEIR__OPTION_TEXT, AT(content), false},
      {"cleanup", WEIR__OPTION_BOOLEAN, AT(cleanup), false}}},
    {0},
};
