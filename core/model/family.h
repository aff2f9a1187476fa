/* family.h: what a family of decoders is: a name, a table of settings and a table of tensors, each with its name in both formats. A file and a row in
 * families.c each. What all of them share is settings.c's (reading and refusing keys), rope_config.c's, decoder.c's and record.c's. */
#ifndef WEIR_FAMILY_H
#define WEIR_FAMILY_H

#include <stddef.h>

#include "config.h"
#include "source.h"

/* What a tensor of a decoder is for. */
enum weir__role {
    WEIR__EMBEDDING,
    WEIR__OUTPUT_NORM,
    WEIR__HEAD,
    WEIR__ATTN_NORM,
    WEIR__Q,
    WEIR__K,
    WEIR__V,
    WEIR__O,
    WEIR__Q_BIAS,
    WEIR__K_BIAS,
    WEIR__V_BIAS,
    WEIR__O_BIAS,
    WEIR__Q_NORM, /* of each head */
    WEIR__K_NORM,
    WEIR__POST_ATTN_NORM, /* of what attention gives, before it is added */
    WEIR__FFN_NORM,
    WEIR__GATE,
    WEIR__UP,
    WEIR__DOWN,
    WEIR__GATE_BIAS,
    WEIR__UP_BIAS,
    WEIR__DOWN_BIAS,
    WEIR__POST_FFN_NORM,
    WEIR__ROLES
};

/* A tensor's name in both formats, %u for the layer. Rows one after another with the same name are the parts of one fused tensor, in their order. A bias is
 * there if the config says so, the head if it is not tied, everything else always. */
typedef struct weir__tensor_row {
    enum weir__role role;
    const char *gguf, *hf;
} weir__tensor_row;

/* Formats in which a setting must be there: bits 1 << enum weir__format. */
enum { WEIR__NEEDED_GGUF = 1 << WEIR__FORMAT_GGUF, WEIR__NEEDED = WEIR__NEEDED_GGUF | 1 << WEIR__FORMAT_SAFETENSORS };

typedef struct weir__name {
    const char *name;
    int value;
} weir__name;

/* A setting: where it stands in both formats (GGUF: behind "ARCH."; config.json: paths, alternatives separated by a space; NULL: it has no such key) and
 * where it goes. */
typedef struct weir__setting {
    const char *gguf, *hf;
    enum weir__setting_kind {
        WEIR__SET_INT,      /* int32_t */
        WEIR__SET_REAL,     /* double */
        WEIR__SET_FLAG,     /* bool */
        WEIR__SET_NAME,     /* int32_t, one of `names` */
        WEIR__SET_ELSEWHERE /* read by code of its own, or of no meaning to the family */
    } kind;
    uint16_t offset;         /* in weir__config */
    uint8_t needed;          /* formats, WEIR__NEEDED: absent there is EFORMAT */
    bool nullable;           /* config.json's null sets 0; else it is as if the key were absent */
    double min, max;         /* of numbers */
    const weir__name *names; /* ends with NULL */
} weir__setting;

extern const weir__name weir__activations[];
/* A row of every family: under which key config.json says the activation. */
#define WEIR__ACTIVATION(key)                                                                                                              \
    { .hf = key, .kind = WEIR__SET_NAME, .offset = WEIR__AT(activation), .names = weir__activations }

#define WEIR__AT(field) ((uint16_t)offsetof(weir__config, field))

typedef struct weir__family {
    const char *name;              /* model_type, and general.architecture unless gguf says otherwise */
    const char *gguf;              /* the family as which GGUF files of this one are read and written */
    const weir__setting *settings; /* beside those of all decoders */
    size_t n_settings;
    const weir__tensor_row *tensors;
    size_t n_tensors;
    bool gguf_pairs; /* GGUF has the rows of q and k as adjacent rotary pairs */
    /* What the file need not say, before it is read. */
    void (*defaults)(weir__config *c, enum weir__format format);
    /* What follows from what was read: local layers, scales, flags. NULL: nothing. EFORMAT, EUNSUPPORTED. */
    int (*finish)(const weir__source *src, weir__config *c, weir_error **error);
} weir__family;

extern const weir__family weir__llama, weir__mistral, weir__qwen2, weir__qwen3, weir__phi3, weir__gemma2;

/* EFORMAT: a tensor that a family needs is not there. Names the file or folder of the tensors. */
int weir__tensor_missing(const weir__source *src, const char *name, weir_error **error);

/* The names of all families, for an error. */
void weir__family_names(char *to, size_t room);
/* The family of a source. EUNSUPPORTED: none (names what is supported, or says what kind of model it is). */
int weir__family_of(const weir__source *src, const weir__family **out, weir_error **error);
const weir__family *weir__family_at(size_t i); /* NULL beyond the last */

/* Rows that several families share. */
#define WEIR__ATTENTION_ROWS                                                                                                               \
    {WEIR__ATTN_NORM, "blk.%u.attn_norm.weight", "model.layers.%u.input_layernorm.weight"},                                                \
        {WEIR__Q, "blk.%u.attn_q.weight", "model.layers.%u.self_attn.q_proj.weight"},                                                      \
        {WEIR__K, "blk.%u.attn_k.weight", "model.layers.%u.self_attn.k_proj.weight"},                                                      \
        {WEIR__V, "blk.%u.attn_v.weight", "model.layers.%u.self_attn.v_proj.weight"},                                                      \
        {WEIR__O, "blk.%u.attn_output.weight", "model.layers.%u.self_attn.o_proj.weight"},                                                 \
        {WEIR__Q_BIAS, "blk.%u.attn_q.bias", "model.layers.%u.self_attn.q_proj.bias"},                                                     \
        {WEIR__K_BIAS, "blk.%u.attn_k.bias", "model.layers.%u.self_attn.k_proj.bias"},                                                     \
        {WEIR__V_BIAS, "blk.%u.attn_v.bias", "model.layers.%u.self_attn.v_proj.bias"}, {                                                   \
        WEIR__O_BIAS, "blk.%u.attn_output.bias", "model.layers.%u.self_attn.o_proj.bias"                                                   \
    }
#define WEIR__MLP_ROWS                                                                                                                     \
    {WEIR__GATE, "blk.%u.ffn_gate.weight", "model.layers.%u.mlp.gate_proj.weight"},                                                        \
        {WEIR__UP, "blk.%u.ffn_up.weight", "model.layers.%u.mlp.up_proj.weight"},                                                          \
        {WEIR__DOWN, "blk.%u.ffn_down.weight", "model.layers.%u.mlp.down_proj.weight"},                                                    \
        {WEIR__GATE_BIAS, "blk.%u.ffn_gate.bias", "model.layers.%u.mlp.gate_proj.bias"},                                                   \
        {WEIR__UP_BIAS, "blk.%u.ffn_up.bias", "model.layers.%u.mlp.up_proj.bias"}, {                                                       \
        WEIR__DOWN_BIAS, "blk.%u.ffn_down.bias", "model.layers.%u.mlp.down_proj.bias"                                                      \
    }
#define WEIR__DECODER_ROWS                                                                                                                 \
    {WEIR__EMBEDDING, "token_embd.weight", "model.embed_tokens.weight"}, {WEIR__OUTPUT_NORM, "output_norm.weight", "model.norm.weight"},   \
        {WEIR__HEAD, "output.weight", "lm_head.weight"}, WEIR__ATTENTION_ROWS,                                                             \
        {WEIR__FFN_NORM, "blk.%u.ffn_norm.weight", "model.layers.%u.post_attention_layernorm.weight"}, WEIR__MLP_ROWS

enum { WEIR__DECODER_TENSORS = 19 };
extern const weir__tensor_row weir__decoder_tensors[WEIR__DECODER_TENSORS]; /* WEIR__DECODER_ROWS */

/* Calls fn for every tensor of a model with this config, the static ones first (layer -1), then layer by layer; a fused tensor once, with the rows of all its
 * parts. n: 0 for a vector. The first code that is not 0 ends it. decoder.c */
typedef int weir__row_fn(void *data, const weir__tensor_row *row, int32_t layer, int64_t n, int64_t k, weir_error **error);
int weir__family_each(const weir__family *f, const weir__config *c, weir__row_fn *fn, void *data, weir_error **error);

/* ---- settings.c ---- */

/* Reads every key of a source into *c: the decoder's settings and the family's. A key that is neither known nor known to be harmless is refused by its name
 * and value. EFORMAT, EUNSUPPORTED. `factors` of the rotary embedding, if the file has any, are allocated: weir__config_fini. */
int weir__config_read(const weir__source *src, const weir__family *f, weir__config *c, weir_error **error);
void weir__config_fini(weir_system *s, weir__config *c);

/* Setting i of the decoder's and the family's; NULL beyond the last. */
const weir__setting *weir__family_setting(const weir__family *f, size_t i);

/* A value as it is shown in errors. */
const char *weir__value_shown(const weir__value *v, char *to, size_t size);

/* ---- config_check.c ---- */

/* Whether the head is the embedding table: if there is no other one; or if config.json says so and lm_head.weight has the same bytes, as in transformers.
 * Sets tied and own_head. EIO, EFORMAT, ENOMEM. */
int weir__config_head(const weir__source *src, weir__config *c, weir_error **error);
/* The text that tells of own_head. */
#define WEIR__OWN_HEAD                                                                                                                     \
    "tie_word_embeddings is true, but tensor \"lm_head.weight\" is not the embedding table: it is the head, and nothing is tied"
/* config.json's eos_token_id is a number or a list of numbers. EFORMAT. */
int weir__config_ends(const weir__source *src, weir_error **error);
/* One of them that no row of the vocabulary has; false: there is none. */
bool weir__config_end_outside(const weir__source *src, const weir__config *c, int64_t *id);

/* ---- settings_write.c ---- */

/* Calls fn with every setting of a config that is read from a file, under the key that files of `format` have it; NULL stands for config.json's null. A layer's
 * window that differs from layer to layer is not among them. */
typedef void weir__emit_fn(void *data, const char *key, const weir__value *v);
void weir__config_emit(const weir__family *f, const weir__config *c, enum weir__format format, weir__emit_fn *fn, void *data);

/* llama3's parameters from the factors that they make (GGUF's rope_freqs.weight), among those of published models; false: none of them makes these. */
bool weir__rope_guess(weir__config *c);

/* ---- for families ---- */

/* How much longer yarn makes the scores: Peng et al. 2023, equation 22. */
double weir__yarn_magnitude(double factor, double mscale);

/* Which layers are local, if there is a window: those that config.json's layer_types says, else those for which `local` is true. NULL: all layers are alike, and a
 * list that says something else is refused. EFORMAT, EUNSUPPORTED. layer_types.c */
int weir__config_layers(const weir__source *src, weir__config *c, bool (*local)(const weir__config *c, int32_t layer), weir_error **error);
/* The rotary embedding from c->rope_config, dimensions of a head and, in GGUF, tensor rope_freqs.weight. */
int weir__config_rope(const weir__source *src, weir__config *c, weir_error **error);
/* Whether a GGUF file has this tensor in layer 0. */
bool weir__gguf_has(const weir__source *src, const char *name);

#endif
