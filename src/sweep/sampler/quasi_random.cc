#include "sweep/sampler/quasi_random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "sweep/sampler/trial_random.h"

namespace stoker::sweep {

namespace {

constexpr unsigned kSobolBits = 32;

// A primitive polynomial over GF(2), with its leading and last coefficient, and the initial direction
// numbers, as many as its degree.
struct SobolPolynomial {
  std::uint32_t coefficients;
  std::array<std::uint32_t, 9> initial;
};

// The first dimension has no polynomial. https://web.maths.unsw.edu.au/~fkuo/sobol/new-joe-kuo-6.21201
constexpr std::array<SobolPolynomial, kMostDimensions - 1> kPolynomials = {{
    {3, {1}},
    {7, {1, 3}},
    {11, {1, 3, 1}},
    {13, {1, 1, 1}},
    {19, {1, 1, 3, 3}},
    {25, {1, 3, 5, 13}},
    {37, {1, 1, 5, 5, 17}},
    {41, {1, 1, 5, 5, 5}},
    {47, {1, 1, 7, 11, 19}},
    {55, {1, 1, 5, 1, 1}},
    {59, {1, 1, 1, 3, 11}},
    {61, {1, 3, 5, 5, 31}},
    {67, {1, 3, 3, 9, 7, 49}},
    {91, {1, 1, 1, 15, 21, 21}},
    {97, {1, 3, 1, 13, 27, 49}},
    {103, {1, 1, 1, 15, 7, 5}},
    {109, {1, 3, 1, 15, 13, 25}},
    {115, {1, 1, 5, 5, 19, 61}},
    {131, {1, 3, 7, 11, 23, 15, 103}},
    {137, {1, 3, 7, 13, 13, 15, 69}},
    {143, {1, 1, 3, 13, 7, 35, 63}},
    {145, {1, 3, 5, 9, 1, 25, 53}},
    {157, {1, 3, 1, 13, 9, 35, 107}},
    {167, {1, 3, 1, 5, 27, 61, 31}},
    {171, {1, 1, 5, 11, 19, 41, 61}},
    {185, {1, 3, 5, 3, 3, 13, 69}},
    {191, {1, 1, 7, 13, 1, 19, 1}},
    {193, {1, 3, 7, 5, 13, 19, 59}},
    {203, {1, 1, 3, 9, 25, 29, 41}},
    {211, {1, 3, 5, 13, 23, 1, 55}},
    {213, {1, 3, 7, 3, 13, 59, 17}},
    {229, {1, 3, 1, 3, 5, 53, 69}},
    {239, {1, 1, 5, 5, 23, 33, 13}},
    {241, {1, 1, 7, 7, 1, 61, 123}},
    {247, {1, 1, 7, 9, 13, 61, 49}},
    {253, {1, 3, 3, 5, 3, 55, 33}},
    {285, {1, 3, 1, 15, 31, 13, 49, 245}},
    {299, {1, 3, 5, 15, 31, 59, 63, 97}},
    {301, {1, 3, 1, 11, 11, 11, 77, 249}},
    {333, {1, 3, 1, 11, 27, 43, 71, 9}},
    {351, {1, 1, 7, 15, 21, 11, 81, 45}},
    {355, {1, 3, 7, 3, 25, 31, 65, 79}},
    {357, {1, 3, 1, 1, 19, 11, 3, 205}},
    {361, {1, 1, 5, 9, 19, 21, 29, 157}},
    {369, {1, 3, 7, 11, 1, 33, 89, 185}},
    {391, {1, 3, 3, 3, 15, 9, 79, 71}},
    {397, {1, 3, 7, 11, 15, 39, 119, 27}},
    {425, {1, 1, 3, 1, 11, 31, 97, 225}},
    {451, {1, 1, 1, 3, 23, 43, 57, 177}},
    {463, {1, 3, 7, 7, 17, 17, 37, 71}},
    {487, {1, 3, 1, 5, 27, 63, 123, 213}},
    {501, {1, 1, 3, 5, 11, 43, 53, 133}},
    {529, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
    {539, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
    {545, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
    {557, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
    {563, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
    {601, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
    {607, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
    {617, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
    {623, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
    {631, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
    {637, {1, 1, 3, 13, 25, 47, 39, 87, 257}},
}};

using Directions = std::array<std::uint32_t, kSobolBits>;

constexpr Directions directions_of(unsigned dimension) {
  Directions directions{};
  if (dimension == 0) {
    for (unsigned bit = 0; bit < kSobolBits; ++bit) directions[bit] = 1u << (kSobolBits - 1 - bit);
    return directions;
  }
  const SobolPolynomial& polynomial = kPolynomials[dimension - 1];
  const unsigned degree = static_cast<unsigned>(std::bit_width(polynomial.coefficients)) - 1;
  for (unsigned bit = 0; bit < degree; ++bit)
    directions[bit] = polynomial.initial[bit] << (kSobolBits - 1 - bit);
  for (unsigned bit = degree; bit < kSobolBits; ++bit) {
    std::uint32_t direction = directions[bit - degree] ^ (directions[bit - degree] >> degree);
    for (unsigned k = 1; k < degree; ++k) {
      if ((polynomial.coefficients >> (degree - k) & 1) != 0) direction ^= directions[bit - k];
    }
    directions[bit] = direction;
  }
  return directions;
}

constexpr std::array<Directions, kMostDimensions> kDirections = [] {
  std::array<Directions, kMostDimensions> all{};
  for (unsigned dimension = 0; dimension < kMostDimensions; ++dimension)
    all[dimension] = directions_of(dimension);
  return all;
}();

std::uint32_t sobol_bits(std::uint64_t index, const Directions& directions) {
  const auto low = static_cast<std::uint32_t>(index);
  std::uint32_t bits = 0;
  for (std::uint32_t gray = low ^ (low >> 1); gray != 0; gray &= gray - 1)
    bits ^= directions[static_cast<std::size_t>(std::countr_zero(gray))];
  return bits;
}

// The image of the digits under a random lower triangular matrix over GF(2) with ones on the diagonal: the
// digit at each place is the sum of itself and of random earlier ones.
std::uint32_t scrambled_digits(std::uint32_t bits, TrialRandom& random) {
  std::uint32_t result = 0;
  for (unsigned place = 0; place < kSobolBits; ++place) {
    const std::uint32_t own = 1u << (kSobolBits - 1 - place);
    const std::uint32_t earlier = place == 0 ? 0 : ~0u << (kSobolBits - place);
    const std::uint32_t row = own | (static_cast<std::uint32_t>(random.next()) & earlier);
    if ((std::popcount(bits & row) & 1) != 0) result |= own;
  }
  return result ^ static_cast<std::uint32_t>(random.next());
}

constexpr std::array<std::uint32_t, kMostDimensions> kPrimes = [] {
  std::array<std::uint32_t, kMostDimensions> primes{};
  std::size_t count = 0;
  for (std::uint32_t candidate = 2; count < primes.size(); ++candidate) {
    bool is_prime = true;
    for (std::size_t i = 0; i < count && is_prime; ++i) is_prime = candidate % primes[i] != 0;
    if (is_prime) primes[count++] = candidate;
  }
  return primes;
}();

// Enough digits for a double.
unsigned digits_of(std::uint32_t base) {
  unsigned digits = 0;
  for (double rest = 1; rest > 0x1p-54; rest /= base) ++digits;
  return digits;
}

}  // namespace

std::vector<double> sobol_point(std::uint64_t index, unsigned dimensions) {
  std::vector<double> point(dimensions);
  for (unsigned d = 0; d < dimensions; ++d) point[d] = sobol_bits(index, kDirections[d]) * 0x1p-32;
  return point;
}

std::vector<double> scrambled_sobol_point(std::uint64_t index, unsigned dimensions, std::uint64_t seed) {
  std::vector<double> point(dimensions);
  for (unsigned d = 0; d < dimensions; ++d) {
    TrialRandom random(seed, d);
    point[d] = scrambled_digits(sobol_bits(index, kDirections[d]), random) * 0x1p-32;
  }
  return point;
}

std::vector<double> halton_point(std::uint64_t index, unsigned dimensions) {
  std::vector<double> point(dimensions, 0);
  for (unsigned d = 0; d < dimensions; ++d) {
    double weight = 1;
    for (std::uint64_t rest = index; rest > 0; rest /= kPrimes[d]) {
      weight /= kPrimes[d];
      point[d] += weight * static_cast<double>(rest % kPrimes[d]);
    }
  }
  return point;
}

std::vector<double> scrambled_halton_point(std::uint64_t index, unsigned dimensions, std::uint64_t seed) {
  std::vector<double> point(dimensions, 0);
  for (unsigned d = 0; d < dimensions; ++d) {
    TrialRandom random(seed, d);
    const std::uint32_t base = kPrimes[d];
    std::vector<std::uint32_t> permutation(base);
    std::uint64_t rest = index;
    double weight = 1;
    for (unsigned digit = 0; digit < digits_of(base); ++digit, rest /= base) {
      std::iota(permutation.begin(), permutation.end(), 0u);
      for (std::uint32_t i = base; i > 1; --i) std::swap(permutation[i - 1], permutation[random.below(i)]);
      weight /= base;
      point[d] += weight * permutation[rest % base];
    }
    point[d] = std::min(point[d], 1 - 0x1p-53);
  }
  return point;
}

}  // namespace stoker::sweep
