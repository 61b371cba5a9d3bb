// exp and log by operations that IEEE 754 rounds alike everywhere. The results of libm differ in the last
// digit between C libraries, and the randomness of a sample must not. Accurate to about 1e-15. Thread-safe:
// no state.
#pragma once

#include <cmath>

namespace stoker::image {

inline constexpr double kLn2 = 0.693147180559945309417;

/// REQUIRES: |x| < 700.
inline double portable_exp(double x) {
  const double halvings = std::nearbyint(x / kLn2);
  const double rest = x - halvings * kLn2;
  double sum = 1.0;
  for (int n = 16; n >= 1; --n) sum = 1.0 + sum * (rest / n);
  return std::ldexp(sum, static_cast<int>(halvings));
}

/// REQUIRES: x > 0, finite.
inline double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);  // 0.5 to 1
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);  // log m = 2 artanh s, |s| < 0.172
  double sum = 0;
  for (int n = 23; n >= 1; n -= 2) sum = sum * (s * s) + 1.0 / n;
  return 2 * s * sum + exponent * kLn2;
}

}  // namespace stoker::image
