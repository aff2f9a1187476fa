/* vocab.h: what a tokeniser is made from: pieces, added tokens, and the steps that text goes through before and after. Readers of files (core/model) fill it;
 * core/text knows no file format. The steps are those of Hugging Face's tokenizers library, whose names stand in the comments; a reader flattens `Sequence`.
 *
 * Encoding: 1. added tokens cut the text (those with `normalized` in the normalised text, the others before); 2. what is between them goes through `normaliser`;
 * 3. then through `pretokeniser`, each step cutting every piece that the one before left; 4. `model` makes ids of each; 5. `before` and `after` stand around them. */
#ifndef WEIR_TEXT_VOCAB_H
#define WEIR_TEXT_VOCAB_H

#include "../rt/rt.h"

typedef struct weir__string {
    const char *data;
    size_t size;
} weir__string;

/* Kinds of pieces, GGUF's numbers (tokenizer.ggml.token_type). CONTROL: special added tokens; never made from text, empty when decoded. UNKNOWN: empty when
 * decoded. USER: other added tokens. BYTE: "<0x0A>". */
enum weir__piece_kind { WEIR__NORMAL = 1, WEIR__UNKNOWN = 2, WEIR__CONTROL = 3, WEIR__USER = 4, WEIR__UNUSED = 5, WEIR__BYTE = 6 };

enum weir__model_kind {
    WEIR__BPE = 1,   /* BPE by ranked merges; of bytes if `pretokeniser` has BYTE_LEVEL, else of characters */
    WEIR__SPM,       /* SentencePiece's BPE: the pair whose piece has the best score merges first */
    WEIR__UNIGRAM,   /* Unigram: the cut of the best sum of scores */
    WEIR__WORDPIECE, /* WordPiece: longest piece first */
    WEIR__WORDLEVEL, /* WordLevel: a chunk is a piece or unknown */
};

enum weir__step_kind {
    /* normalisers */
    WEIR__PREPEND = 1,  /* Prepend: content, before a text that is not empty */
    WEIR__REPLACE,      /* Replace: pattern (regex or text), content. Also a decoder (text only; behind FUSE of one character) */
    WEIR__LOWERCASE,    /* Lowercase */
    WEIR__NFC,          /* NFC ... */
    WEIR__NFD,          /* */
    WEIR__NFKC,         /* */
    WEIR__NFKD,         /* */
    WEIR__STRIP,        /* Strip: left, right (white space) */
    WEIR__STRIP_ACCENT, /* StripAccents */
    WEIR__BERT,         /* BertNormalizer: clean_text, chinese, strip_accents (null there: as lowercase), lowercase */
    WEIR__CHARSMAP, /* Precompiled: pattern = the blob (decoded from base64); graphemes = true for tokenizer.json, false for SentencePiece's own way */
    WEIR__NMT, /* Nmt */
    /* pre-tokenisers */
    WEIR__SPLIT,            /* Split (also CharDelimiterSplit): pattern, regex, behaviour, invert */
    WEIR__DIGITS,           /* Digits: individual */
    WEIR__BYTE_LEVEL,       /* ByteLevel: add_prefix_space, use_regex; the last step. Also a decoder, and a normaliser (no settings) */
    WEIR__METASPACE,        /* Metaspace: content = the replacement, prepend, split. Also a decoder: content, prepend */
    WEIR__WHITESPACE,       /* Whitespace */
    WEIR__WHITESPACE_SPLIT, /* WhitespaceSplit */
    WEIR__PUNCTUATION,      /* Punctuation: behaviour */
    WEIR__BERT_SPLIT,       /* BertPreTokenizer */
    WEIR__FIXED_LENGTH,     /* FixedLength: start = characters of a cut, not 0 */
    /* decoders */
    WEIR__BYTE_FALLBACK,  /* ByteFallback */
    WEIR__FUSE,           /* Fuse */
    WEIR__STRIP_DECODED,  /* Strip: content (one character), start, stop. Behind FUSE only with stop = 0 */
    WEIR__WORDPIECE_JOIN, /* WordPiece: content = the prefix, cleanup */
    WEIR__BPE_JOIN,       /* BPEDecoder: content = the suffix, not empty; the first step */
    WEIR__CTC,            /* CTC: pattern = what is left out, content = what is a space if `cleanup`; the first step */
};

enum weir__behaviour {
    WEIR__ISOLATED,
    WEIR__REMOVED,
    WEIR__MERGED_WITH_PREVIOUS,
    WEIR__MERGED_WITH_NEXT,
    WEIR__CONTIGUOUS,
};

enum weir__prepend { WEIR__PREPEND_NEVER, WEIR__PREPEND_FIRST, WEIR__PREPEND_ALWAYS }; /* old files: add_prefix_space = true is ALWAYS */

typedef struct weir__step {
    enum weir__step_kind kind;
    weir__string pattern, content;
    enum weir__behaviour behaviour;
    enum weir__prepend prepend;
    uint32_t start, stop; /* characters */
    bool regex;           /* pattern is one, in Oniguruma's syntax */
    bool invert;
    bool individual;
    bool add_prefix_space, use_regex;
    bool split;
    bool left, right;
    bool clean_text, chinese, strip_accents, lowercase;
    bool graphemes;
    bool cleanup;
} weir__step;

typedef struct weir__steps {
    const weir__step *data;
    size_t size;
} weir__steps;

/* A token that is found as a whole in the text, before the model sees it. Special ones only where the text is not a user's, and always in the raw text. */
typedef struct weir__added {
    int32_t id; /* inside the vocabulary: pieces has its content there */
    weir__string content;
    bool special, lstrip, rstrip, single_word, normalized;
    bool outside; /* of the model: a piece of added tokens only, which the model never makes. Files that do not tell: false */
} weir__added;

typedef struct weir__merge_pair {
    weir__string left, right;
} weir__merge_pair;

typedef struct weir__vocab {
    const char *source;  /* file name for errors */
    const char *warning; /* what its files say that does not fit; NULL: nothing */
    enum weir__model_kind model;
    size_t size;                /* highest id + 1, added tokens included */
    const weir__string *pieces; /* [size]; an id that has none: empty, kind UNUSED */
    const double *scores;       /* [size] SPM, UNIGRAM; else NULL */
    const int32_t *kinds; /* [size] enum weir__piece_kind, NULL: all normal. `added`, `unk` and byte_fallback's pieces need not be marked */
    const weir__merge_pair *merges;
    size_t n_merges; /* BPE */
    const weir__added *added;
    size_t n_added;
    weir__steps normaliser, pretokeniser, decoder;
    int32_t bos, eos, unk; /* -1: none. Outside the vocabulary: treated as none */
    int32_t pad;           /* the same; means nothing to a tokeniser, is carried from file to file */
    const int32_t *before,
        *after;               /* [n_before], [n_after] put around a text with bounds: TemplateProcessing's `single`, add_bos, add_eos */
    size_t n_before, n_after; /* */
    const int32_t *ends;      /* [n_ends] further ids that end a turn (generation_config.json) */
    size_t n_ends;            /* */
    bool byte_fallback;       /* BPE, SPM, UNIGRAM: what is no piece becomes "<0xNN>" pieces */
    bool fuse_unk;            /* BPE, UNIGRAM (there always true in files): neighbouring unknown characters are one unknown piece */
    bool ignore_merges;       /* BPE: a chunk that is a piece is that piece */
    weir__string continuing_prefix; /* BPE, WORDPIECE ("##"): before pieces that do not begin a word */
    weir__string word_prefix;       /* WORDPIECE: before pieces that begin a word (GGUF: U+2581) */
    weir__string end_suffix;        /* BPE: behind a word's last piece ("</w>") */
    size_t max_word;                /* WORDPIECE: characters of a word; a longer one is unknown */
} weir__vocab;

#endif
