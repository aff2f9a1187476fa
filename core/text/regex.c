/* regex.c: compiling and matching by PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"

#include <pcre2.h>
#include <string.h>

enum {
    JIT_STACK_FIRST = 32 << 10,
    JIT_STACK_MOST = 4 << 20, /* bytes */
    MATCH_MOST = 20 << 20,    /* backtracking points of one match: what a pattern over 1 MiB may need many times over */
    HEAP_MOST = 64 << 10,     /* KiB, of the interpreter */
    MOST_PATTERN = 64 << 10,  /* bytes; published ones have under 2,000 */
};

struct weir__regex {
    weir_system *system;
    pcre2_general_context *memory;
    pcre2_code *code;
    char shown[128]; /* for errors */
};

struct weir__regex_run {
    weir_system *system;
    pcre2_general_context *memory;
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

static void *take(size_t n, void *system) {
    return weir__alloc(system, n);
}
static void give(void *p, void *system) {
    weir__free(system, p);
}

static int compile(weir__regex *r, const char *pattern, const char *source, weir_error **error) {
    pcre2_compile_context *context = pcre2_compile_context_create(r->memory);
    if (!context)
        return weir_fail(error, WEIR_ENOMEM, "%s: pattern \"%s\"", source, r->shown);
    int code;
    PCRE2_SIZE at;
    char why[128] = "";
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    r->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                            &code, &at, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return weir_fail(error, code == PCRE2_ERROR_HEAP_FAILED ? WEIR_ENOMEM : WEIR_EUNSUPPORTED, "%s: pattern \"%s\": %s", source,
                         r->shown, why);
    }
    pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* where code may not be made at run time, PCRE2 interprets */
    return WEIR_OK;
}

int weir__regex_new(weir_system *s, weir__string pattern, const char *source, weir__regex **out, weir_error **error) {
    char *translated = NULL;
    if (pattern.size > MOST_PATTERN)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found a pattern of %zu bytes, wanted at most %d", source, pattern.size,
                         MOST_PATTERN);
    int code = weir__regex_translate(s, pattern, source, &translated, error);
    if (code)
        return code;
    weir__regex *r = weir__alloc(s, sizeof *r);
    if (r) {
        r->system = s;
        r->memory = pcre2_general_context_create(take, give, s);
        weir__quote(r->shown, sizeof r->shown, pattern.data, pattern.size);
    }
    code = r && r->memory ? compile(r, translated, source, error) : weir_fail(error, WEIR_ENOMEM, "%s: pattern", source);
    weir__free(s, translated);
    if (code) {
        weir__regex_free(r);
        return code;
    }
    *out = r;
    return WEIR_OK;
}

void weir__regex_free(weir__regex *r) {
    if (!r)
        return;
    pcre2_code_free(r->code);
    pcre2_general_context_free(r->memory);
    weir__free(r->system, r);
}

weir__regex_run *weir__regex_run_new(weir_system *s) {
    weir__regex_run *run = weir__alloc(s, sizeof *run);
    if (!run)
        return NULL;
    run->system = s;
    run->memory = pcre2_general_context_create(take, give, s);
    if (run->memory) {
        run->match = pcre2_match_data_create(1, run->memory);
        run->context = pcre2_match_context_create(run->memory);
        run->stack = pcre2_jit_stack_create(JIT_STACK_FIRST, JIT_STACK_MOST, run->memory);
    }
    if (!run->match || !run->context) {
        weir__regex_run_free(run);
        return NULL;
    }
    pcre2_jit_stack_assign(run->context, NULL, run->stack);
    pcre2_set_match_limit(run->context, MATCH_MOST);
    pcre2_set_heap_limit(run->context, HEAP_MOST);
    return run;
}

void weir__regex_run_free(weir__regex_run *run) {
    if (!run)
        return;
    pcre2_match_data_free(run->match);
    pcre2_match_context_free(run->context);
    pcre2_jit_stack_free(run->stack);
    pcre2_general_context_free(run->memory);
    weir__free(run->system, run);
}

int weir__regex_find(const weir__regex *r, weir__regex_run *run, weir__string text, size_t from, size_t *begin, size_t *end,
                     weir_error **error) {
    *begin = *end = text.size;
    int found = pcre2_match(r->code, (PCRE2_SPTR)text.data, text.size, from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, run->match, run->context);
    if (found == PCRE2_ERROR_NOMATCH)
        return WEIR_OK;
    if (found == PCRE2_ERROR_NOMEMORY)
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: pattern \"%s\"", r->shown);
    if (found < 0)
        return weir_fail(error, WEIR_EINVAL, "tokeniser: pattern \"%s\" backtracks too much on this text (PCRE2 result %d)", r->shown,
                         found);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(run->match);
    if (at[0] < from || at[1] <= at[0]) /* \K and lookbehinds may begin before `from` */
        return weir_fail(error, WEIR_EUNSUPPORTED, "tokeniser: pattern \"%s\" matches before the place where it is looked for", r->shown);
    *begin = at[0];
    *end = at[1];
    return WEIR_OK;
}
