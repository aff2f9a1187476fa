/* base64.h: RFC 4648's base64. */
#ifndef WEIR_MODEL_BASE64_H
#define WEIR_MODEL_BASE64_H

#include <stddef.h>

/* Decodes n characters into `to`, which has room for 3 bytes per 4 characters. Returns how many bytes there are; (size_t)-1: n is no multiple of 4, or something
 * else than the alphabet and padding at the end stands there. */
size_t weir__base64_decode(const char *text, size_t n, unsigned char *to);

/* Encodes n bytes into `to`, which has room for 4 characters per 3 bytes begun. Returns how many characters there are. */
size_t weir__base64_encode(const unsigned char *bytes, size_t n, char *to);

#endif
