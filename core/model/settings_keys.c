/* settings_keys.c: the keys of a file that no table reads: known to change nothing, switched off, or refused by name and value. */
#include "settings_internal.h"

#include <stdio.h>
#include <string.h>

/* Keys that change nothing when a model is run: training, dropout, how text is generated, what the checkpoint is called, how transformers 4 and 5 keep and run
 * it. Those that would change logits where they are switched on (pruned_heads, add_cross_attention, is_encoder_decoder) are not here. */
static const char harmless_hf[] =
    /* what the checkpoint is */
    " architectures model_type transformers_version transformers.js_config torch_dtype dtype _name_or_path name_or_path _commit_hash "
    "license"
    " auto_map tokenizer_class finetuning_task problem_type id2label label2id num_labels task_specific_params prefix unsloth_fixed"
    " unsloth_version is_llama_config is_qwen2_config is_starcoder2_config is_decoder tf_legacy_loss use_bfloat16 torchscript"
    /* training */
    " initializer_range attention_dropout hidden_dropout hidden_dropout_prob attention_probs_dropout_prob embd_pdrop resid_pdrop attn_pdrop"
    " dropout classifier_dropout gradient_checkpointing pretraining_tp"
    /* how it is run */
    " use_cache cache_implementation attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal"
    " experts_implementation _experts_implementation use_flash_attn use_flash_attention_2 _flash_attn_2_enabled output_attentions"
    " _output_attentions output_hidden_states return_dict keys_to_ignore_at_inference chunk_size_feed_forward max_sequence_length"
    " model_max_length"
    /* families without windows that begin at a layer */
    " max_window_layers"
    /* tokens and parts that a decoder has not */
    " bos_token_id pad_token_id sep_token_id cls_token_id mask_token_id unk_token_id decoder_start_token_id cross_attention_hidden_size"
    " tie_encoder_decoder"
    /* generation */
    " max_length min_length max_new_tokens min_new_tokens max_time do_sample temperature top_k top_p min_p typical_p top_h epsilon_cutoff"
    " eta_cutoff repetition_penalty encoder_repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size"
    " bad_words_ids force_words_ids sequence_bias num_beams num_beam_groups diversity_penalty penalty_alpha num_return_sequences"
    " early_stopping output_scores output_logits return_dict_in_generate remove_invalid_values renormalize_logits"
    " exponential_decay_length_penalty suppress_tokens begin_suppress_tokens forced_bos_token_id forced_eos_token_id forced_decoder_ids"
    " guidance_scale low_memory stop_strings constraints num_assistant_tokens num_assistant_tokens_schedule"
    " assistant_confidence_threshold assistant_lookbehind target_lookbehind is_assistant prompt_lookup_num_tokens"
    " max_matching_ngram_size token_healing watermarking_config generation_config ";
static const char harmless_gguf[] = " rope.scaling.finetuned attention.causal tensor_data_layout ";

static bool has_word(const char *words, const char *word, size_t n) {
    for (const char *at = words; n > 0 && at && (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == 0))
            return true;
    return false;
}

static bool known(const weir__settings *r, const char *key) {
    const weir__setting *s;
    for (size_t i = 0; (s = weir__family_setting(r->family, i)); i++)
        if (has_word(r->gguf ? s->gguf : s->hf, key, strlen(key)))
            return true;
    return has_word(r->gguf ? harmless_gguf : harmless_hf, key, strlen(key));
}

/* A part of a harmless object, such as id2label; such a name may have dots itself. */
static bool inside_harmless(const char *key) {
    char outer[64];
    for (const char *dot = key; (dot = strchr(dot, '.')) && (size_t)(dot - key) < sizeof outer; dot++) {
        snprintf(outer, sizeof outer, "%.*s", (int)(dot - key), key);
        if (has_word(harmless_hf, outer, strlen(outer)))
            return true;
    }
    return false;
}

/* Switched off: nothing, false, zero, an empty list. */
static bool is_off(const weir__value *v) {
    return v->kind == WEIR__ABSENT || v->kind == WEIR__NULL ||
           ((v->kind == WEIR__BOOLEAN || v->kind == WEIR__INTEGER) && v->integer == 0) || (v->kind == WEIR__REAL && v->real == 0) ||
           (v->kind == WEIR__LIST && v->count == 0) || v->kind == WEIR__MAP;
}

/* A list with an element a layer, all of which are switched off. */
static bool is_off_everywhere(const weir__settings *r, const char *key, const weir__value *list) {
    weir__value v;
    if (list->kind != WEIR__LIST || list->count > WEIR_MAX_LAYERS)
        return false;
    for (uint64_t i = 0; i < list->count; i++) {
        weir__source_element(r->src, key, i, &v);
        if (!is_off(&v))
            return false;
    }
    return true;
}

static int check_key(void *data, const char *key, const weir__value *v, weir_error **error) {
    const weir__settings *r = data;
    char found[96];
    size_t n = strlen(r->prefix);
    if (r->gguf && strncmp(key, r->prefix, n) != 0)
        return WEIR_OK;
    if (is_off(v) || is_off_everywhere(r, key, v) || known(r, key + n) ||
        (!r->gguf && (inside_harmless(key) || weir__settings_passed_over(r, key))))
        return WEIR_OK;
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: %s is %s: weir has no such setting for \"%s\"", weir__source_settings_path(r->src), key,
                     weir__value_shown(v, found, sizeof found), r->family->name);
}

int weir__settings_check_keys(weir__settings *r, weir_error **error) {
    return weir__source_each(r->src, check_key, r, error);
}

static int look_for_scaling(void *data, const char *key, const weir__value *v, weir_error **error) {
    weir__settings *r = data;
    (void)v, (void)error;
    r->rope_scaling |= strncmp(key, "rope_scaling.", 13) == 0;
    return WEIR_OK;
}

void weir__settings_begin(weir__settings *r) {
    if (!r->gguf)
        weir__source_each(r->src, look_for_scaling, r, NULL);
}

bool weir__settings_passed_over(const weir__settings *r, const char *key) {
    return r->rope_scaling && strncmp(key, "rope_parameters.", 16) == 0;
}
