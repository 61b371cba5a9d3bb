#include "image/transform/ops/warp.h"

#include <cmath>

namespace stoker::image {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Taylor's series, for |x| <= pi: libm's differ between versions.
double sine(double x) {
  double sum = 0;
  for (int n = 35; n >= 1; n -= 2) sum = 1.0 - sum * (x * x / ((n + 1) * (n + 2)));
  return x * sum;
}
double cosine(double x) {
  double sum = 1;
  for (int n = 36; n >= 2; n -= 2) sum = 1.0 - sum * (x * x / (n * (n - 1)));
  return sum;
}

// Python's round(v, 15): removes the 6e-17 at right angles.
double rounded(double v) { return std::nearbyint(v * 1e15) / 1e15; }

// 16.16 fixed point.
std::int64_t fixed(double v) { return static_cast<std::int64_t>(std::floor(v * 65536.0 + 0.5)); }

}  // namespace

Affine sheared(double across, double down) { return {1, across, 0, down, 1, 0}; }

Affine translated(double right, double down) { return {1, 0, -right, 0, 1, -down}; }

Affine rotated(double degrees, std::uint32_t width, std::uint32_t height) {
  const double angle = -degrees * (kPi / 180);
  const double cos = rounded(cosine(angle));
  const double sin = rounded(sine(angle));
  const double x = width / 2.0;
  const double y = height / 2.0;
  return {cos, sin, -cos * x - sin * y + x, -sin, cos, sin * x - cos * y + y};
}

void warp(const Image& from, const Affine& m, const Rgb& fill, Image& to) {
  to.width = from.width;
  to.height = from.height;
  to.pixels.resize(from.pixels.size());
  // The source of the centre of the first pixel.
  std::int64_t row_x = fixed(m[2] + m[0] * 0.5 + m[1] * 0.5);
  std::int64_t row_y = fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  std::uint8_t* out = to.pixels.data();
  for (std::uint32_t line = 0; line < to.height; ++line, row_x += fixed(m[1]), row_y += fixed(m[4])) {
    std::int64_t x = row_x;
    std::int64_t y = row_y;
    for (std::uint32_t column = 0; column < to.width;
         ++column, x += fixed(m[0]), y += fixed(m[3]), out += 3) {
      const std::int64_t from_x = x >> 16;
      const std::int64_t from_y = y >> 16;
      const bool is_inside = from_x >= 0 && from_x < from.width && from_y >= 0 && from_y < from.height;
      const std::uint8_t* pixel =
          is_inside ? &from.pixels[static_cast<std::size_t>(3 * (from_y * from.width + from_x))]
                    : fill.data();
      out[0] = pixel[0];
      out[1] = pixel[1];
      out[2] = pixel[2];
    }
  }
}

}  // namespace stoker::image
