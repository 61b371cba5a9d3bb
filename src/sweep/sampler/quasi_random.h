// Low-discrepancy sequences: Sobol with the direction numbers of Joe and Kuo (new-joe-kuo-6), and Halton.
// Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace stoker::sweep {

/// The largest dimension of both.
inline constexpr unsigned kMostDimensions = 64;

/// Point `index` of the Sobol sequence in Gray-code order, each coordinate at least 0 and below 1. The first
/// point is the origin. REQUIRES: dimensions <= kMostDimensions. Repeats after 2^32 points. Joe and Kuo, SIAM
/// J. Sci. Comput. 30 (2008).
std::vector<double> sobol_point(std::uint64_t index, unsigned dimensions);
/// The same with a scrambling by the seed: a random linear map of the digits and a digital shift (Matoušek,
/// J. Complexity 14, 1998).
std::vector<double> scrambled_sobol_point(std::uint64_t index, unsigned dimensions, std::uint64_t seed);

/// Point `index` of the Halton sequence in bases 2, 3, 5, 7, ... REQUIRES: dimensions <= kMostDimensions.
std::vector<double> halton_point(std::uint64_t index, unsigned dimensions);
/// The same with random permutations of the digits by the seed (Owen, arXiv:1706.02808).
std::vector<double> scrambled_halton_point(std::uint64_t index, unsigned dimensions, std::uint64_t seed);

}  // namespace stoker::sweep
