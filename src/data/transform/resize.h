// Resizing as Pillow's Image.resize does it, bit for bit: a filter as wide as the reduction, 22-bit fixed
// point, first across, then down, each rounded to a byte. Rows are made one by one, so that they can go on to
// the batch while they are in the cache. Used by Canvas. Thread-compatible: scratch memory is kept.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/decode/image.h"
#include "data/transform/kernels/kernels.h"

namespace stoker::data {

/// Pillow's filters. All but nearest take the whole area that a pixel of the result stands for.
enum class Filter { nearest, box, bilinear, hamming, bicubic, lanczos };

/// Pixels of a part of an image: the first pixel of `image` is (x, y) of the whole.
struct Held {
  ImageView image;
  std::uint32_t x = 0;
  std::uint32_t y = 0;
};

/// What is to be made: `part` of an image, taken as an image of its own, is resized to width x height, and
/// only `window` of that is wanted. The pixels may be those of the image made `reduction` times smaller, its
/// sides rounded up. REQUIRES: `part` lies in the image, `window` in width x height, and neither is empty.
struct Resizing {
  Region part;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  Region window;
  Filter filter = Filter::bilinear;
  std::uint32_t reduction = 1;
};

/// Resizes parts of images.
class Resizer {
 public:
  /// Other kernels give the same pixels at another speed.
  explicit Resizer(const Kernels& kernels = best_kernels()) : kernels_(kernels) {}

  /// Prepares for one resizing; needed() and row() are about the last one.
  void start(const Resizing& resizing);
  /// The pixels of the (reduced) image that the wanted ones are made of.
  const Region& needed() const { return needed_; }
  /// Where they are. Must be valid as long as row() is called, and hold needed().
  void take(const Held& pixels);
  /// Row `y` of the window, 3 x window.width bytes, valid until the next call. Going downwards is fastest.
  const std::uint8_t* row(std::uint32_t y);
  /// All of the window at once; the view is valid until the next call of anything here.
  ImageView all();

 private:
  // Which source pixels make one result pixel, and their weights in 1 / 2^22.
  struct Tap {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::size_t weights = 0;
  };
  struct Taps {
    std::vector<Tap> taps;
    std::vector<std::int32_t> weights;
    std::vector<double> exact;  // of one tap, before rounding
    std::uint32_t first() const { return taps.front().first; }
    std::uint32_t end() const { return taps.back().first + taps.back().count; }
  };
  // One direction of a resizing: `from` pixels, of which the first begins `offset` behind the first of the
  // `limit` there are, become `to`; `count` of those from `begin` on are wanted.
  struct Side {
    double from = 0;
    double offset = 0;
    std::uint32_t limit = 0;
    std::uint32_t to = 0;
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };
  // Of a part from `first` on, `size` wide; also gives the first pixel that there is.
  static Side side_of(std::uint32_t first, std::uint32_t size, std::uint32_t reduction, std::uint32_t& base);
  static void make_taps(Filter filter, const Side& side, Taps& taps);
  void plan_across();
  void plan_down();
  const std::uint8_t* row_to_read(std::uint32_t y, std::vector<std::uint8_t>& copy) const;
  void across_until(std::uint32_t end);

  const Kernels& kernels_;
  Resizing resizing_;
  std::uint32_t base_x_ = 0;  // where taps count from, in the (reduced) image
  std::uint32_t base_y_ = 0;
  Region needed_;
  Held pixels_;
  Taps horizontal_;
  Taps vertical_;  // after plan_down, rows count from needed_.y and weights are places in pairs_
  AcrossPlan across_;
  std::size_t reach_ = 0;  // bytes of a row that the kernel may read
  std::vector<std::int32_t> pairs_;
  std::array<std::vector<std::uint8_t>, kRowsAtOnce> copies_;
  std::size_t row_bytes_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint8_t> rows_;  // resized across only
  std::uint32_t rows_done_ = 0;     // from needed_.y
  std::vector<const std::uint8_t*> down_rows_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint8_t> all_;
};

}  // namespace stoker::data
