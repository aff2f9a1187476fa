/* vocab_pre.c: the pre-tokenisers that GGUF files name (tokenizer.ggml.pre): the steps that the published tokenizer.json of such models have. A row is all that one
 * more name needs. Knows no tokeniser beyond the steps' types. */
#include "vocab_pre.h"

#include <stdio.h>
#include <string.h>

#define SPLIT(text)                                                                                                                        \
    { .kind = WEIR__SPLIT, .pattern = {text, sizeof(text) - 1}, .regex = true, .behaviour = WEIR__ISOLATED }
#define DIGIT                                                                                                                              \
    { .kind = WEIR__DIGITS, .individual = true }
#define NUMBER                                                                                                                             \
    { .kind = WEIR__DIGITS }
#define BYTES                                                                                                                              \
    { .kind = WEIR__BYTE_LEVEL }
#define GPT2                                                                                                                               \
    { .kind = WEIR__BYTE_LEVEL, .use_regex = true }

#define ENDINGS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define GAPS "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SIGNS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define LLAMA3 ENDINGS "|" LETTERS "|\\p{N}{1,3}|" SIGNS "|" GAPS
#define QWEN2 ENDINGS "|" LETTERS "|\\p{N}|" SIGNS "|" GAPS

/* Words whose capitals stand in front. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(ending) "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending
#define PATHS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

#define DEEPSEEK_LETTERS                                                                                                                   \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}"                       \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"                         \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}"                           \
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}"                   \
    "\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}"                    \
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}"                    \
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}"                    \
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}"                     \
    "\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}"                     \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}"                    \
    "\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}"                   \
    "\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"                            \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define DEEPSEEK_HAN "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define DEEPSEEK_V3                                                                                                                        \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" GAPS
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

static const weir__step
    /* where a file says "default" */
    any[] = {SPLIT("[\\p{P}\\$\\+<=>\\^~\\|]+"), SPLIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"),
             SPLIT("\\p{N}+"), SPLIT("[0-9][0-9][0-9]"), BYTES},
    gpt2[] = {GPT2}, digits_gpt2[] = {DIGIT, GPT2}, llama3[] = {SPLIT(LLAMA3), BYTES}, qwen2[] = {SPLIT(QWEN2), BYTES},
    gpt4o[] = {SPLIT(CASED(ENDINGS "?") "|\\p{N}{1,3}|" PATHS "|" GAPS), BYTES},
    tekken[] = {SPLIT(CASED("") "|\\p{N}|" PATHS "|" GAPS), BYTES},
    deepseek_llm[] = {SPLIT("[\\r\\n]"),
                      SPLIT("\\s?[" DEEPSEEK_LETTERS "]+"),
                      SPLIT("\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"),
                      SPLIT("\\s+$"),
                      SPLIT(DEEPSEEK_HAN),
                      DIGIT,
                      BYTES},
    deepseek_coder[] = {SPLIT("[\\r\\n]"), SPLIT("\\s?\\p{L}+"), SPLIT("\\s?\\p{P}+"), SPLIT(DEEPSEEK_HAN), DIGIT, BYTES},
    deepseek_v3[] = {SPLIT("\\p{N}{1,3}"), SPLIT("[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"), SPLIT(DEEPSEEK_V3),
                     BYTES},
    falcon[] = {{.kind = WEIR__PUNCTUATION, .behaviour = WEIR__CONTIGUOUS}, GPT2, NUMBER, SPLIT("[0-9][0-9][0-9]")},
    bloom[] = {SPLIT(BLOOM), BYTES}, viking[] = {SPLIT(BLOOM), DIGIT, BYTES},
    seed_coder[] = {SPLIT(ENDINGS "|" LETTERS "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" GAPS), BYTES},
    bailing[] = {
        SPLIT("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"),
        BYTES};

static const weir__step nfc[] = {{.kind = WEIR__NFC}};

#define STEPS(name)                                                                                                                        \
    { name, sizeof name / sizeof name[0] }
#define NONE                                                                                                                               \
    { NULL, 0 }
static const weir__pre_row table[] = {
    {"default", STEPS(any), NONE, false, false},
    {"gpt-2", STEPS(gpt2), NONE, false, false},
    {"phi-2", STEPS(gpt2), NONE, false, false},
    {"mpt", STEPS(gpt2), STEPS(nfc), false, false},
    {"olmo", STEPS(gpt2), STEPS(nfc), false, false},
    {"jais", STEPS(gpt2), NONE, false, false},
    {"gigachat", STEPS(gpt2), NONE, false, false},
    {"mellum", STEPS(gpt2), NONE, false, false},
    {"exaone4", STEPS(gpt2), NONE, false, false},
    {"trillion", STEPS(gpt2), NONE, false, false},
    {"smollm", STEPS(digits_gpt2), NONE, false, false},
    {"starcoder", STEPS(digits_gpt2), NONE, false, false},
    {"refact", STEPS(digits_gpt2), NONE, false, false},
    {"command-r", STEPS(digits_gpt2), NONE, false, false},
    {"codeshell", STEPS(digits_gpt2), NONE, false, false},
    {"exaone", STEPS(digits_gpt2), NONE, false, false},
    {"minerva-7b", STEPS(digits_gpt2), NONE, false, false},
    {"llama-bpe", STEPS(llama3), NONE, true, true},
    {"llama3", STEPS(llama3), NONE, true, true},
    {"llama-v3", STEPS(llama3), NONE, true, true},
    {"falcon3", STEPS(llama3), NONE, true, true},
    {"falcon-h1", STEPS(llama3), NONE, true, true},
    {"pixtral", STEPS(llama3), NONE, true, true},
    {"lfm2", STEPS(llama3), NONE, true, true},
    {"dbrx", STEPS(llama3), NONE, false, false},
    {"smaug-bpe", STEPS(llama3), NONE, false, false},
    {"chatglm-bpe", STEPS(llama3), NONE, false, false},
    {"glm4", STEPS(llama3), NONE, false, false},
    {"qwen2", STEPS(qwen2), STEPS(nfc), false, false},
    {"deepseek-r1-qwen", STEPS(qwen2), NONE, false, false},
    {"stablelm2", STEPS(qwen2), NONE, false, false},
    {"megrez", STEPS(qwen2), NONE, false, false},
    {"hunyuan", STEPS(qwen2), NONE, false, false},
    {"grok-2", STEPS(qwen2), NONE, false, false},
    {"deepseek-llm", STEPS(deepseek_llm), NONE, false, false},
    {"deepseek-coder", STEPS(deepseek_coder), NONE, false, false},
    {"deepseek-v3", STEPS(deepseek_v3), NONE, false, false},
    {"hunyuan-dense", STEPS(deepseek_v3), NONE, false, false},
    {"gpt-4o", STEPS(gpt4o), NONE, false, false},
    {"llama4", STEPS(gpt4o), NONE, false, false},
    {"minimax-m2", STEPS(gpt4o), NONE, false, false},
    {"tekken", STEPS(tekken), NONE, true, true},
    {"falcon", STEPS(falcon), NONE, false, false},
    {"bloom", STEPS(bloom), NONE, false, false},
    {"poro-chat", STEPS(bloom), NONE, false, false},
    {"gpt3-finnish", STEPS(bloom), NONE, false, false},
    {"viking", STEPS(viking), NONE, false, false},
    {"seed-coder", STEPS(seed_coder), NONE, false, false},
    {"bailingmoe", STEPS(bailing), NONE, false, false},
    {"bailingmoe2", STEPS(bailing), NONE, false, false},
    {"llada-moe", STEPS(bailing), NONE, false, false},
};
enum { ROWS = sizeof table / sizeof table[0] };

int weir__pre_find(const char *name, const char *source, const weir__pre_row **out, weir_error **error) {
    char known[1024] = "", shown[96];
    size_t used = 0;
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *out = &table[i];
            return WEIR_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s\"%s\"", used ? ", " : "", table[i].name);
    }
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: pre-tokeniser \"%s\" is not known, known are %s", source,
                     weir__quote(shown, sizeof shown, name, strlen(name)), known);
}

const char *weir__pre_name(const weir__vocab *v) {
    for (size_t i = 0; i < ROWS; i++)
        if (weir__steps_same(v->pretokeniser, table[i].pretokeniser) && weir__steps_same(v->normaliser, table[i].normaliser) &&
            v->ignore_merges == table[i].ignore_merges)
            return table[i].name;
    return NULL;
}
