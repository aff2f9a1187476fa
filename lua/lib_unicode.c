/* lib_unicode.c: letters' cases and characters' categories through utf8proc, for texts of templates. Bytes that are no UTF-8 stay as they are. */
#include <string.h>
#include <utf8proc.h>

#include "binding.h"

enum { LOWER, UPPER, TITLE };

/* Full mappings that are longer than one character (Unicode's SpecialCasing, those without conditions that occur in running text). */
static const struct {
    utf8proc_int32_t from;
    const char *lower, *upper, *title;
} specials[] = {
    {0x00DF, NULL, "SS", "Ss"},   {0x0130, "i\xCC\x87", NULL, NULL}, {0x0149, NULL, "\xCA\xBCN", "\xCA\xBCN"},
    {0xFB00, NULL, "FF", "Ff"},   {0xFB01, NULL, "FI", "Fi"},        {0xFB02, NULL, "FL", "Fl"},
    {0xFB03, NULL, "FFI", "Ffi"}, {0xFB04, NULL, "FFL", "Ffl"},      {0xFB05, NULL, "ST", "St"},
    {0xFB06, NULL, "ST", "St"},
};

static const char *special_case(utf8proc_int32_t c, int to) {
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (specials[i].from == c)
            return to == LOWER ? specials[i].lower : to == UPPER ? specials[i].upper : specials[i].title;
    return NULL;
}

static utf8proc_int32_t simple_case(utf8proc_int32_t c, int to) {
    return to == LOWER ? utf8proc_tolower(c) : to == UPPER ? utf8proc_toupper(c) : utf8proc_totitle(c);
}

static bool is_letter(utf8proc_int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

/* Whether the capital sigma that ends at `at` ends a word, `before` being the character before it. */
static bool ends_word(const utf8proc_uint8_t *s, size_t at, size_t n, utf8proc_int32_t before) {
    utf8proc_int32_t next;
    return is_letter(before) && !(at < n && utf8proc_iterate(s + at, (utf8proc_ssize_t)(n - at), &next) > 0 && is_letter(next));
}

static void add_character(luaL_Buffer *buffer, utf8proc_int32_t c) {
    utf8proc_uint8_t bytes[4];
    luaL_addlstring(buffer, (const char *)bytes, (size_t)utf8proc_encode_char(c, bytes));
}

/* core.unicode_case(text, "lower" | "upper" | "title") */
static int unicode_case(lua_State *L) {
    static const char *const names[] = {"lower", "upper", "title", NULL};
    size_t n;
    const utf8proc_uint8_t *s = (const utf8proc_uint8_t *)luaL_checklstring(L, 1, &n);
    int to = luaL_checkoption(L, 2, NULL, names);
    utf8proc_int32_t c, before = 0;
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    for (size_t i = 0; i < n; before = c) {
        utf8proc_ssize_t size = utf8proc_iterate(s + i, (utf8proc_ssize_t)(n - i), &c);
        if (size <= 0) {
            luaL_addlstring(&buffer, (const char *)s + i++, 1);
            continue;
        }
        i += (size_t)size;
        const char *special = special_case(c, to);
        if (special)
            luaL_addstring(&buffer, special);
        else
            add_character(&buffer, to == LOWER && c == 0x3A3 && ends_word(s, i, n, before) ? 0x3C2 : simple_case(c, to));
    }
    luaL_pushresult(&buffer);
    return 1;
}

/* core.unicode_category(number of a character) -> "Lu" ... */
static int unicode_category(lua_State *L) {
    lua_pushstring(L, utf8proc_category_string((utf8proc_int32_t)luaL_checkinteger(L, 1)));
    return 1;
}

static bool begins_character(char byte) {
    return ((unsigned char)byte & 0xC0) != 0x80;
}

/* core.unicode_length(text) -> how many characters: bytes that begin one */
static int unicode_length(lua_State *L) {
    size_t n, count = 0;
    const char *s = luaL_checklstring(L, 1, &n);
    for (size_t i = 0; i < n; i++)
        count += begins_character(s[i]);
    lua_pushnumber(L, (double)count);
    return 1;
}

/* core.unicode_forward(text, byte, count) -> the byte (from 1) where the character begins that lies `count` characters behind the one at `byte`; size + 1 at the
 * end. */
static int unicode_forward(lua_State *L) {
    size_t n, at = (size_t)luaL_checkinteger(L, 2) - 1;
    const char *s = luaL_checklstring(L, 1, &n);
    for (lua_Number left = luaL_checknumber(L, 3); left > 0 && at < n; left--)
        for (at++; at < n && !begins_character(s[at]); at++)
            ;
    lua_pushnumber(L, (double)at + 1);
    return 1;
}

void open_unicode(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"unicode_case", unicode_case},
                                         {"unicode_category", unicode_category},
                                         {"unicode_length", unicode_length},
                                         {"unicode_forward", unicode_forward},
                                         {NULL, NULL}};
    binding_register(L, b, functions);
}
