/* regex.c: compiling and matching by PCRE2.
 *
 * PCRE2 bounds the backtracking of one try at one place, not how far each try looks nor how many places there are. So a try sees a short part of the text and gets
 * few steps at first; one that reaches the end of what it sees (a partial match) or needs more steps is made again with more, and what that takes is paid for from an
 * allowance that is proportional to the text. Tries that need no more cost a constant each. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"

#include <pcre2.h>
#include <string.h>

enum {
    JIT_STACK_FIRST = 32 << 10,
    JIT_STACK_MOST = 128 << 20, /* bytes of addresses, taken as used: a repeated group over 1 MiB of letters has some 24 for each */
    HEAP_MOST = 512 << 10,      /* KiB, of the interpreter, which goes on where that ends */
    MOST_PATTERN = 64 << 10,    /* bytes; published ones have under 2,000 */
    FIRST_SIGHT = 256,          /* bytes that a first try sees, */
    FIRST_STEPS = 128,          /* and its backtracking points */
    FREE_WORK = 64 << 20,       /* bytes and backtracking points of tries made again: for a text of any size, */
    WORK_A_BYTE = 64,           /* and for each of its bytes; published patterns need under 5 */
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
    uint64_t work; /* that is left for tries made again */
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
    r->code =
        pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_USE_OFFSET_LIMIT, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, sizeof why);
        return weir_fail(error, code == PCRE2_ERROR_HEAP_FAILED ? WEIR_ENOMEM : WEIR_EUNSUPPORTED, "%s: pattern \"%s\": %s", source,
                         r->shown, why);
    }
    pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD); /* where code may not be made at run time, PCRE2 interprets */
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
    run->work = FREE_WORK;
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

/* A search on its way: the tries from `at` on. */
typedef struct search {
    const weir__regex *r;
    weir__regex_run *run;
    weir__string text;
    size_t at, sight; /* bytes that a try sees */
    uint32_t steps;
    bool single;      /* only the place `at` is tried: one needed more */
    bool interpreted; /* the JIT's stack was not enough */
} search;

/* Where what is seen ends: behind a whole character. */
static size_t seen(const search *f) {
    size_t end = f->text.size - f->at > f->sight ? f->at + f->sight : f->text.size;
    while (end < f->text.size && ((unsigned char)f->text.data[end] & 0xC0) == 0x80)
        end++;
    return end;
}

static int try(search *f, size_t end) {
    uint32_t options =
        PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | (end < f->text.size ? PCRE2_PARTIAL_HARD : 0) | (f->interpreted ? PCRE2_NO_JIT : 0);
    pcre2_set_match_limit(f->run->context, f->steps);
    pcre2_set_offset_limit(f->run->context, f->single ? f->at : end);
    return pcre2_match(f->r->code, (PCRE2_SPTR)f->text.data, end, f->at, options, f->run->match, f->run->context);
}

/* Nothing begins at the places that were tried. */
static void move_on(search *f, size_t end) {
    do
        f->at++;
    while (f->single && f->at < end && ((unsigned char)f->text.data[f->at] & 0xC0) == 0x80);
    f->at = f->single ? f->at : end;
    f->sight = FIRST_SIGHT;
    f->steps = FIRST_STEPS;
}

static int pay(search *f, uint64_t work, weir_error **error) {
    if (work > f->run->work)
        return weir_fail(error, WEIR_EINVAL, "tokeniser: pattern \"%s\" backtracks too much on this text", f->r->shown);
    f->run->work -= work;
    return WEIR_OK;
}

/* Prepares the next try behind one that was not enough. */
static int retry(search *f, int found, weir_error **error) {
    bool more = found == PCRE2_ERROR_MATCHLIMIT;
    if (found == PCRE2_ERROR_PARTIAL) {
        f->at = pcre2_get_ovector_pointer(f->run->match)[0];
        f->single = true;
        f->sight *= 4;
        return pay(f, seen(f) - f->at, error);
    }
    if (more && !f->single) {
        f->single = true;
        return WEIR_OK;
    }
    if (found == PCRE2_ERROR_JIT_STACKLIMIT && !f->interpreted) {
        f->interpreted = true;
        return pay(f, seen(f) - f->at, error);
    }
    if (more) {
        f->steps = f->steps < UINT32_MAX / 4 ? f->steps * 4 : UINT32_MAX;
        return pay(f, f->steps, error);
    }
    if (found == PCRE2_ERROR_NOMEMORY)
        return weir_fail(error, WEIR_ENOMEM, "tokeniser: pattern \"%s\"", f->r->shown);
    if (found == PCRE2_ERROR_HEAPLIMIT)
        return weir_fail(error, WEIR_EINVAL, "tokeniser: pattern \"%s\" needs more than %d MiB to match this text", f->r->shown,
                         HEAP_MOST >> 10);
    return weir_fail(error, WEIR_EINVAL, "tokeniser: pattern \"%s\" fails on this text (PCRE2 result %d)", f->r->shown, found);
}

static int take_match(const search *f, size_t from, size_t *begin, size_t *end, weir_error **error) {
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(f->run->match);
    if (at[0] < from || at[1] <= at[0]) /* \K and lookbehinds may begin before `from` */
        return weir_fail(error, WEIR_EUNSUPPORTED, "tokeniser: pattern \"%s\" matches before the place where it is looked for",
                         f->r->shown);
    *begin = at[0];
    *end = at[1];
    return WEIR_OK;
}

int weir__regex_find(const weir__regex *r, weir__regex_run *run, weir__string text, size_t from, size_t *begin, size_t *end,
                     weir_error **error) {
    search f = {.r = r, .run = run, .text = text, .at = from, .sight = FIRST_SIGHT, .steps = FIRST_STEPS};
    int code = WEIR_OK;
    *begin = *end = text.size;
    if (from == 0)
        run->work += (uint64_t)WORK_A_BYTE * text.size;
    while (f.at < text.size && !code) {
        size_t seen_to = seen(&f);
        int found = try(&f, seen_to);
        if (found >= 0)
            return take_match(&f, from, begin, end, error);
        if (found == PCRE2_ERROR_NOMATCH)
            move_on(&f, seen_to);
        else
            code = retry(&f, found, error);
    }
    return code;
}
