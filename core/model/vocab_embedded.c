/* vocab_embedded.c: a vocabulary from the tokenizer.json that a GGUF file may carry as a whole (the key tokenizer.huggingface.json of GGUF's specification): for
 * pipelines that tokenizer.ggml.* has no words for. Special ids stand in the usual keys. */
#include "gguf_internal.h"
#include "tokenizer_json_internal.h"

#include <string.h>

static int read_text(weir__build *b, const weir__gguf *g, weir__string text, int32_t *ends, weir_error **error) {
    weir__vocab *v = &b->v;
    char *copy = weir__build_alloc(b, text.size + 1);
    if (!copy)
        return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", b->source);
    memcpy(copy, text.data, text.size);
    int code = weir__tokenizer_json_read(&(weir__tokenizer_file){b, copy, text.size}, error);
    if (code || (code = weir__gguf_id(g, "tokenizer.ggml.bos_token_id", v, &v->bos, error)) ||
        (code = weir__gguf_id(g, "tokenizer.ggml.eos_token_id", v, &v->eos, error)) ||
        (code = weir__gguf_id(g, "tokenizer.ggml.padding_token_id", v, &v->pad, error)))
        return code;
    v->ends = ends;
    return weir__gguf_ends(g, v, ends, error);
}

int weir__gguf_embedded_vocab(const weir__gguf *g, weir__vocab_fn *fn, void *data, weir_error **error) {
    weir__string text = {NULL, 0};
    int32_t ends[2];
    int code = weir__gguf_get_string(g, "tokenizer.huggingface.json", false, &text, error);
    weir__build *b = !code && text.data ? weir__alloc(g->system, sizeof *b) : NULL;
    if (code || !text.data)
        return code;
    if (!b)
        return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", weir__gguf_path(g));
    weir__build_init(b, g->system, weir__gguf_path(g));
    code = read_text(b, g, text, ends, error);
    if (!code)
        code = fn(data, &b->v, error);
    weir__build_fini(b);
    weir__free(g->system, b);
    return code;
}
