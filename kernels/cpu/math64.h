/* math64.h: exp, logarithm and rounding in double, by explicit fma and our own series: the same bits on every machine. For rotary tables and log-probabilities. */
#ifndef WEIR_CPU_MATH64_H
#define WEIR_CPU_MATH64_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LN2_HIGH 0x1.62e42fefa39efp-1
#define LN2_LOW 0x1.abc9e3b39803fp-56
#define ROUND_MAGIC64 0x1.8p+52 /* adding it rounds to an integer, in the low bits of the sum */

/* Nearest even whole number of |x| < 2^51, also as an integer. */
static inline double nearest64(double x, int64_t *n) {
    double t = x + ROUND_MAGIC64;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    *n = (int64_t)(bits - UINT64_C(0x4338000000000000));
    return t - ROUND_MAGIC64;
}

/* 2^n for a normal result. */
static inline double power_of_two(int64_t n) {
    uint64_t bits = (uint64_t)(n + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* exp for |x| < 700: x = n ln 2 + r, Taylor's series of r to r^13 / 13! (|r| <= 0.347: below 1e-17). */
static inline double exp64(double x) {
    int64_t n;
    double whole = nearest64(x / LN2_HIGH, &n), r = fma(-whole, LN2_HIGH, x), sum = 1;
    r = fma(-whole, LN2_LOW, r);
    for (int i = 13; i >= 1; i--)
        sum = fma(sum, r / i, 1);
    return sum * power_of_two(n);
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

/* The largest whole number that is not above x. */
static inline double floor64(double x) {
    double whole = fabs(x) < 0x1p52 ? (double)(int64_t)x : x;
    return whole > x ? whole - 1 : whole;
}

#endif
