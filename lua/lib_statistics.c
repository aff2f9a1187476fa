/* lib_statistics.c: what the elements of a tensor are like, for people who look at one. Sums in double, two passes. Knows no shapes. */
#include <math.h>
#include <string.h>

#include "binding.h"

typedef double element_fn(const void *data, size_t i);

static double f32_at(const void *data, size_t i) {
    return ((const float *)data)[i];
}

static double f64_at(const void *data, size_t i) {
    return ((const double *)data)[i];
}

static double i32_at(const void *data, size_t i) {
    return ((const int32_t *)data)[i];
}

static double i64_at(const void *data, size_t i) {
    return (double)((const int64_t *)data)[i];
}

static double u8_at(const void *data, size_t i) {
    return ((const uint8_t *)data)[i];
}

static element_fn *reader_of(const char *dtype) {
    static const struct {
        const char *name;
        element_fn *at;
    } types[] = {{"F32", f32_at}, {"F64", f64_at}, {"I32", i32_at}, {"I64", i64_at}, {"U8", u8_at}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].at;
    }
    return NULL;
}

typedef struct statistics {
    double min, max, mean, deviation; /* of the finite ones; deviation: of the population */
    size_t nan, inf, finite;
} statistics;

static statistics measure(const void *data, size_t n, element_fn *at) {
    statistics s = {.min = INFINITY, .max = -INFINITY};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double x = at(data, i);
        s.nan += isnan(x) != 0;
        s.inf += isinf(x) != 0;
        if (isfinite(x)) {
            s.min = fmin(s.min, x);
            s.max = fmax(s.max, x);
            sum += x;
        }
    }
    s.finite = n - s.nan - s.inf;
    s.mean = s.finite ? sum / (double)s.finite : 0;
    for (size_t i = 0; i < n; i++) {
        double x = at(data, i);
        squares += isfinite(x) ? (x - s.mean) * (x - s.mean) : 0;
    }
    s.deviation = s.finite ? sqrt(squares / (double)s.finite) : 0;
    return s;
}

/* core.statistics(pointer, dtype, n) -> {min, max, mean, std, nan, inf, finite}: the last three are counts. `pointer` is FFI's, to n elements. */
static int tensor_statistics(lua_State *L) {
    const char *dtype = luaL_checkstring(L, 2);
    element_fn *at = reader_of(dtype);
    if (!at)
        return raise_code(L, WEIR_EINVAL, "statistics of the type %s", dtype);
    const void *data = *(const void *const *)lua_topointer(L, 1); /* of FFI's pointers this is where the pointer is kept */
    statistics s = measure(data, (size_t)luaL_checknumber(L, 3), at);
    const struct {
        const char *name;
        double value;
    } fields[] = {{"min", s.min},
                  {"max", s.max},
                  {"mean", s.mean},
                  {"std", s.deviation},
                  {"nan", (double)s.nan},
                  {"inf", (double)s.inf},
                  {"finite", (double)s.finite}};
    lua_createtable(L, 0, 8);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushnumber(L, fields[i].value);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

void open_statistics(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {{"statistics", tensor_statistics}, {NULL, NULL}};
    binding_register(L, b, functions);
}
