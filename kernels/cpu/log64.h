/* log64.h: the natural logarithm in double, with explicit fma: the same bits at every level. */
#ifndef WEIR_CPU_LOG64_H
#define WEIR_CPU_LOG64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LN2_HIGH 0x1.62e42fefa39efp-1
#define LN2_LOW 0x1.abc9e3b39803fp-56

/* 2^n for a normal result. */
static inline double power_of_two(int64_t n) {
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* Natural logarithm of a normal x > 0: x = 2^e m, m in [0.7, 1.4]; ln m = 2 atanh s, s = (m - 1) / (m + 1), series to s^23 (|s| < 0.172: below 1e-18). */
static inline double log64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t e = (int64_t)(bits >> 52) - 1023;
    double m = x * power_of_two(-e);
    if (m > 1.4142135623730951) {
        m /= 2;
        e++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int i = 23; i >= 1; i -= 2)
        sum = fma(sum, square, 1.0 / i);
    return fma((double)e, LN2_HIGH, fma((double)e, LN2_LOW, 2 * s * sum));
}

#endif
