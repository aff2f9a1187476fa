/* config_json.h: the settings of a config.json as flat keys, "rope_parameters.rope_theta". Owns the text; knows no family and no meaning of a key. */
#ifndef WEIR_CONFIG_JSON_H
#define WEIR_CONFIG_JSON_H

#include "source.h"

typedef struct weir__config_json weir__config_json;

/* Strict JSON, an object, at most WEIR_MAX_CONFIG bytes, WEIR_MAX_SETTINGS settings, keys and paths of WEIR_GGUF_MAX_NAME bytes; a key that is there twice is
 * refused. ENOENT, EIO, EFORMAT, EDEPTH, ENOMEM; ETOOBIG: more bytes. */
int weir__config_json_open(weir_system *s, const char *path, weir__config_json **out, weir_error **error);
/* The same from memory. Copies the text. */
WEIR_API int weir__config_json_parse(weir_system *s, const char *name, const char *text, size_t size, weir__config_json **out,
                                     weir_error **error);
WEIR_API void weir__config_json_free(weir__config_json *c); /* NULL does nothing */

/* As weir__source_get, _element and _each. Lists and objects in a list have a kind and nothing else. `each` passes over objects that are not empty, whose
 * members follow. */
WEIR_API void weir__config_json_get(const weir__config_json *c, const char *key, weir__value *v);
WEIR_API void weir__config_json_element(const weir__config_json *c, const char *key, uint64_t i, weir__value *v);
WEIR_API int weir__config_json_each(const weir__config_json *c, weir__setting_fn *fn, void *data, weir_error **error);

#endif
