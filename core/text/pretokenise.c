/* pretokenise.c: the table of pre-tokenisers and their patterns, and matching them.
 *
 * A row here is all that one more pre-tokeniser needs; its pattern must match at every position (each alternative set ends with a class of spaces and one
 * of everything else), so that no text is lost, and must not repeat a repetition, so that matching stays linear. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "pretokenise.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

/* White space as Unicode, Rust and Python's regex have it, for use inside a class. PCRE2's own \s also has U+180E. */
#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define CONTRACTIONS "'(?:s|t|re|ve|m|ll|d)"
#define OTHERS " ?[^" SPACE "\\p{L}\\p{N}]+"

/* GPT-2's pattern (github.com/openai/gpt-2, encoder.py): a run of spaces leaves its last one to the word behind it. */
#define GPT2 CONTRACTIONS "| ?\\p{L}+| ?\\p{N}+|" OTHERS "|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"

/* Each digit alone, then GPT-2's pattern on what is between digits: there a digit ends the text, so spaces before one stay together. */
#define DIGITS_GPT2 "\\p{N}|" CONTRACTIONS "| ?\\p{L}+|" OTHERS "|[" SPACE "]+(?![^" SPACE "\\p{N}])|[" SPACE "]+"

static const struct {
    const char *name, *pattern;
} table[] = {
    {"gpt-2", GPT2},
    {"smollm", DIGITS_GPT2},
    {"starcoder", DIGITS_GPT2},
};
enum { ROWS = sizeof table / sizeof table[0] };

enum { JIT_STACK_FIRST = 32 << 10, JIT_STACK_MOST = 4 << 20 }; /* bytes */

struct weir__pre {
    weir_system *system;
    pcre2_general_context *memory;
    pcre2_code *code;
};

struct weir__pre_run {
    const weir__pre *pre;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
    const char *text;
    size_t size, at;
    size_t begin, end; /* the run of valid UTF-8 around `at` */
};

static void *take(size_t n, void *system) {
    return weir__alloc(system, n);
}
static void give(void *p, void *system) {
    weir__free(system, p);
}

static int find(const char *name, const char *source, size_t *row, weir_error **error) {
    char known[256] = "", shown[96];
    size_t used = 0;
    for (*row = 0; *row < ROWS; ++*row) {
        if (strcmp(table[*row].name, name) == 0)
            return WEIR_OK;
        used += (size_t)snprintf(known + used, sizeof known - used, "%s\"%s\"", used ? ", " : "", table[*row].name);
    }
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: pre-tokeniser \"%s\" is not known, known are %s", source,
                     weir__quote(shown, sizeof shown, name, strlen(name)), known);
}

static int compile(weir__pre *p, size_t row, weir_error **error) {
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    if (!context)
        return weir_fail(error, WEIR_ENOMEM, "pre-tokeniser \"%s\"", table[row].name);
    int code;
    PCRE2_SIZE at;
    p->code =
        pcre2_compile((PCRE2_SPTR)table[row].pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!p->code)
        return weir_fail(error, WEIR_ENOMEM, "pre-tokeniser \"%s\": PCRE2 error %d", table[row].name, code);
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* where code may not be made at run time, PCRE2 interprets */
    return WEIR_OK;
}

int weir__pre_new(weir_system *s, const char *name, const char *source, weir__pre **out, weir_error **error) {
    size_t row;
    int code = find(name, source, &row, error);
    if (code)
        return code;
    weir__pre *p = weir__alloc(s, sizeof *p);
    if (!p)
        return weir_fail(error, WEIR_ENOMEM, "pre-tokeniser \"%s\"", name);
    p->system = s;
    p->memory = pcre2_general_context_create(take, give, s);
    code = p->memory ? compile(p, row, error) : weir_fail(error, WEIR_ENOMEM, "pre-tokeniser \"%s\"", name);
    if (code) {
        weir__pre_free(p);
        return code;
    }
    *out = p;
    return WEIR_OK;
}

void weir__pre_free(weir__pre *p) {
    if (!p)
        return;
    pcre2_code_free(p->code);
    pcre2_general_context_free(p->memory);
    weir__free(p->system, p);
}

weir__pre_run *weir__pre_run_new(const weir__pre *p) {
    weir__pre_run *r = weir__alloc(p->system, sizeof *r);
    if (!r)
        return NULL;
    r->pre = p;
    r->match = pcre2_match_data_create(1, p->memory);
    r->context = pcre2_match_context_create(p->memory);
    r->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MOST, p->memory);
    if (!r->match || !r->context) {
        weir__pre_run_free(r);
        return NULL;
    }
    pcre2_jit_stack_assign(r->context, NULL, r->stack);
    return r;
}

void weir__pre_run_free(weir__pre_run *r) {
    if (!r)
        return;
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->context);
    pcre2_jit_stack_free(r->stack);
    weir__free(r->pre->system, r);
}

void weir__pre_start(weir__pre_run *r, const char *text, size_t size) {
    r->text = text;
    r->size = size;
    r->at = r->begin = r->end = 0;
}

/* Takes the bytes from `at` that are no UTF-8. */
static void take_invalid(weir__pre_run *r, weir__string *chunk) {
    size_t from = r->at;
    while (r->at < r->size && weir__utf8_step(r->text + r->at, r->size - r->at) <= 0)
        r->at++;
    *chunk = (weir__string){r->text + from, r->at - from};
}

int weir__pre_next(weir__pre_run *r, weir__string *chunk, weir_error **error) {
    *chunk = (weir__string){r->text, 0};
    if (r->at == r->size)
        return WEIR_OK;
    if (r->at == r->end) {
        r->begin = r->at;
        r->end = r->at + weir__utf8_valid(r->text + r->at, r->size - r->at);
        if (r->end == r->at) {
            take_invalid(r, chunk);
            r->end = r->at;
            return WEIR_OK;
        }
    }
    PCRE2_SPTR subject = (PCRE2_SPTR)r->text + r->begin;
    int found = pcre2_match(r->pre->code, subject, r->end - r->begin, r->at - r->begin, PCRE2_NO_UTF_CHECK, r->match, r->context);
    if (found == PCRE2_ERROR_NOMEMORY)
        return weir_fail(error, WEIR_ENOMEM, "pre-tokeniser");
    size_t end = found > 0 ? r->begin + pcre2_get_ovector_pointer(r->match)[1] : r->at;
    if (end <= r->at)
        return weir_fail(error, WEIR_EINVAL, "pre-tokeniser: no match at byte %zu (PCRE2 result %d)", r->at, found);
    *chunk = (weir__string){r->text + r->at, end - r->at};
    r->at = end;
    return WEIR_OK;
}
