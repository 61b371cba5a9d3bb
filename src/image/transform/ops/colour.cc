#include "image/transform/ops/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::image {
namespace {

using Lookup = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::uint64_t, 256>;

// ITU-R 601-2 luma in 16-bit fixed point, like convert("L").
std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

// Image.blend: truncated, not rounded; beyond 0..1 clipped.
std::uint8_t blend(int from, int to, float part) {
  const float mixed = static_cast<float>(from) + part * static_cast<float>(to - from);
  return static_cast<std::uint8_t>(std::clamp(mixed, 0.0f, 255.0f));
}

void apply_table(Pixels rgb, const Lookup& table) {
  for (std::uint8_t& byte : rgb) byte = table[byte];
}

template <typename MakeTable>
void apply_table_per_channel(Pixels rgb, MakeTable make) {
  std::array<Histogram, 3> histograms{};
  for (std::size_t i = 0; i < rgb.size(); ++i) ++histograms[i % 3][rgb[i]];
  const std::array<Lookup, 3> tables{make(histograms[0]), make(histograms[1]), make(histograms[2])};
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    for (std::size_t c = 0; c < 3; ++c) rgb[i + c] = tables[c][rgb[i + c]];
  }
}

Lookup identity_table() {
  Lookup table;
  for (std::size_t i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(i);
  return table;
}

Lookup autocontrast_table(const Histogram& histogram) {
  std::size_t low = 0, high = 255;
  while (low < 255 && histogram[low] == 0) ++low;
  while (high > 0 && histogram[high] == 0) --high;
  Lookup table = identity_table();
  if (high <= low) return table;
  const double scale = 255.0 / static_cast<double>(high - low);
  const double offset = -static_cast<double>(low) * scale;
  for (std::size_t i = 0; i < 256; ++i)
    table[i] = static_cast<std::uint8_t>(std::clamp(static_cast<double>(i) * scale + offset, 0.0, 255.0));
  return table;
}

Lookup equalization_table(const Histogram& histogram) {
  std::uint64_t sum = 0, last = 0;
  int used = 0;
  for (std::uint64_t count : histogram) {
    if (count == 0) continue;
    sum += count;
    last = count;
    ++used;
  }
  Lookup table = identity_table();
  const std::uint64_t step = (sum - last) / 255;
  if (used <= 1 || step == 0) return table;
  std::uint64_t n = step / 2;
  for (std::size_t i = 0; i < 256; ++i) {
    table[i] = static_cast<std::uint8_t>(std::min<std::uint64_t>(255, n / step));
    n += histogram[i];
  }
  return table;
}

struct Hsv {
  std::uint8_t hue = 0, saturation = 0, value = 0;
};

// The mix of float and double is Pillow's: it decides the last bit.
Hsv to_hsv(const std::uint8_t* rgb) {
  const std::uint8_t most = std::max({rgb[0], rgb[1], rgb[2]});
  const std::uint8_t least = std::min({rgb[0], rgb[1], rgb[2]});
  if (most == least) return {0, 0, most};
  const auto range = static_cast<float>(most - least);
  const float saturation = range / static_cast<float>(most);
  const float red = static_cast<float>(most - rgb[0]) / range;
  const float green = static_cast<float>(most - rgb[1]) / range;
  const float blue = static_cast<float>(most - rgb[2]) / range;
  float hue;
  if (rgb[0] == most) {
    hue = blue - green;
  } else if (rgb[1] == most) {
    hue = static_cast<float>(2.0 + red - blue);
  } else {
    hue = static_cast<float>(4.0 + green - red);
  }
  const double turned = hue / 6.0 + 1.0;  // 5/6 to 11/6
  hue = static_cast<float>(turned >= 1.0 ? turned - 1.0 : turned);
  return {static_cast<std::uint8_t>(hue * 255.0), static_cast<std::uint8_t>(saturation * 255.0), most};
}

void to_rgb(const Hsv& hsv, std::uint8_t* rgb) {
  const std::uint8_t v = hsv.value;
  if (hsv.saturation == 0) {
    std::fill_n(rgb, 3, v);
    return;
  }
  const double sixth = static_cast<float>(hsv.hue) * 6.0 / 255.0;
  const int sector = static_cast<int>(sixth);
  const auto rest = static_cast<float>(sixth - static_cast<float>(sector));
  const auto s = static_cast<float>(static_cast<float>(hsv.saturation) / 255.0);
  const auto part = [v](double share) {
    return static_cast<std::uint8_t>(std::clamp(std::round(static_cast<float>(v) * share), 0.0, 255.0));
  };
  const std::uint8_t p = part(1.0 - s);
  const std::uint8_t q = part(1.0 - s * rest);
  const std::uint8_t t = part(1.0 - s * (1.0 - rest));
  const std::array<std::array<std::uint8_t, 3>, 6> sectors{
      {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}}};
  std::copy_n(sectors[static_cast<std::size_t>(sector % 6)].begin(), 3, rgb);
}

}  // namespace

void adjust_brightness(Pixels rgb, float factor) {
  Lookup table;
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = blend(0, i, factor);
  apply_table(rgb, table);
}

void adjust_contrast(Pixels rgb, float factor) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rgb.size(); i += 3) sum += luma(&rgb[i]);
  const int grey = static_cast<int>(static_cast<double>(sum) / static_cast<double>(rgb.size() / 3) + 0.5);
  Lookup table;
  for (int i = 0; i < 256; ++i) table[static_cast<std::size_t>(i)] = blend(grey, i, factor);
  apply_table(rgb, table);
}

void adjust_saturation(Pixels rgb, float factor) {
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    const int grey = luma(&rgb[i]);
    for (std::size_t c = 0; c < 3; ++c) rgb[i + c] = blend(grey, rgb[i + c], factor);
  }
}

void adjust_hue(Pixels rgb, double turns) {
  const auto shift = static_cast<std::uint8_t>(static_cast<int>(turns * 255));
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    Hsv hsv = to_hsv(&rgb[i]);
    hsv.hue = static_cast<std::uint8_t>(hsv.hue + shift);
    to_rgb(hsv, &rgb[i]);
  }
}

void to_grayscale(Pixels rgb) {
  for (std::size_t i = 0; i < rgb.size(); i += 3) std::fill_n(&rgb[i], 3, luma(&rgb[i]));
}

void adjust_sharpness(Image& image, float factor, std::vector<std::uint8_t>& copy) {
  // ImageFilter.SMOOTH; its outermost pixels stay unchanged.
  constexpr float kSide = 1.0f / 13, kMiddle = 5.0f / 13;
  if (image.width < 3 || image.height < 3) return;
  copy = image.pixels;
  const std::size_t stride = std::size_t{3} * image.width;
  for (std::size_t y = 1; y + 1 < image.height; ++y) {
    for (std::size_t x = 3; x + 3 < stride; ++x) {
      const std::uint8_t* at = &copy[y * stride + x];
      const auto line = [](const std::uint8_t* p, float middle) {
        return static_cast<float>(p[-3]) * kSide + static_cast<float>(p[0]) * middle +
               static_cast<float>(p[3]) * kSide;
      };
      float smooth = 0.5f;
      smooth += line(at + stride, kSide);
      smooth += line(at, kMiddle);
      smooth += line(at - stride, kSide);
      const auto soft = static_cast<std::uint8_t>(std::clamp(smooth, 0.0f, 255.0f));
      image.pixels[y * stride + x] = blend(soft, *at, factor);
    }
  }
}

void posterize(Pixels rgb, int bits) {
  const auto mask = static_cast<std::uint8_t>(0xFF << (8 - bits));
  for (std::uint8_t& byte : rgb) byte &= mask;
}

void solarize(Pixels rgb, double threshold) {
  for (std::uint8_t& byte : rgb) byte = byte < threshold ? byte : static_cast<std::uint8_t>(255 - byte);
}

void autocontrast(Pixels rgb) { apply_table_per_channel(rgb, autocontrast_table); }

void equalize(Pixels rgb) { apply_table_per_channel(rgb, equalization_table); }

}  // namespace stoker::image
