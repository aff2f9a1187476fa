/* rope_table.c: cosines and sines of the rotary embedding (Su et al. 2021), in double with explicit fma and our own functions, rounded to float at the end.
 * Runs the same code at every level. */
#include "level.h"
#include "math64.h"

#define HALF_PI_HIGH 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54
#define TWO_OVER_PI 0x1.45f306dc9c883p-1

double weir_log(double x) {
    return log64(x);
}

/* Taylor's series on |r| <= pi / 4, to r^19 and r^18: below 1e-17. */
static double sine(double r) {
    double square = r * r, sum = 1;
    for (int i = 18; i >= 2; i -= 2)
        sum = fma(sum, square * (-1.0 / (i * (i + 1))), 1);
    return sum * r;
}

static double cosine(double r) {
    double square = r * r, sum = 1;
    for (int i = 18; i >= 2; i -= 2)
        sum = fma(sum, square * (-1.0 / (i * (i - 1))), 1);
    return sum;
}

/* scale times cosine and sine of |angle| < 2^31: angle = n pi / 2 + r, pi / 2 as two doubles and every step one fma, so that r is off by less than 1e-15. */
static void cos_sin(double angle, double scale, float *out) {
    int64_t n;
    double whole = nearest64(angle * TWO_OVER_PI, &n), r = fma(-whole, HALF_PI_HIGH, angle);
    r = fma(-whole, HALF_PI_LOW, r);
    double c = n & 1 ? sine(r) : cosine(r), s = n & 1 ? cosine(r) : sine(r);
    out[0] = (float)(scale * ((n + 1) & 2 ? -c : c));
    out[1] = (float)(scale * (n & 2 ? -s : s));
}

enum { POSITIONS = 64 }; /* of a chunk */

static void table_rows(const weir_k_rope_table *a, int first, int end) {
    int half = a->dim / 2;
    for (int i = 0; i < half; i++) {
        for (int p = first; p < end; p++)
            cos_sin((double)p * a->frequency[i], a->scale, a->out + ((size_t)p * (size_t)half + (size_t)i) * 2);
    }
}

void weir__rope_table_generic(const void *args, const weir_work *work) {
    const weir_k_rope_table *a = args;
    uint32_t chunks = (uint32_t)((a->positions + POSITIONS - 1) / POSITIONS);
    for (uint32_t c; c = weir_work_take(work), c < chunks;) {
        int first = (int)c * POSITIONS;
        table_rows(a, first, min_int(first + POSITIONS, a->positions));
    }
}
