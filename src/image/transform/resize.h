// Resizes like Pillow's Image.resize, bit for bit: a filter as wide as the reduction, 22-bit fixed point,
// first horizontally, then vertically, each rounded to a byte. Rows are computed one by one, so that the
// caller can write them to the batch while they are in the cache. Used by Canvas. Thread-compatible: scratch
// memory is kept.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "image/decode/image.h"
#include "image/transform/kernels/kernels.h"

namespace stoker::image {

/// Pillow's filters. All but nearest average the whole area of a result pixel.
enum class ResizeFilter { nearest, box, bilinear, hamming, bicubic, lanczos };

/// Pixels of a part of an image: the first pixel of `image` is (x, y) of the whole.
struct PartialImage {
  ImageView image;
  std::uint32_t x = 0;
  std::uint32_t y = 0;
};

/// Resizes `part` of an image to width x height; only `window` of the result is needed. The pixels may come
/// from the image made `reduction` times smaller, its sides rounded up. REQUIRES: `part` is inside the
/// image, `window` inside width x height, and neither is empty.
struct ResizeTask {
  ImageRegion part;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  ImageRegion window;
  ResizeFilter filter = ResizeFilter::bilinear;
  std::uint32_t reduction = 1;
};

/// Resizes parts of images.
class Resizer {
 public:
  /// All kernels compute the same pixels.
  explicit Resizer(const Kernels& kernels = best_kernels()) : kernels_(kernels) {}

  /// Prepares a task; needed() and row() refer to the last one.
  void start(const ResizeTask& task);
  /// The region of the (reduced) image that the result depends on.
  const ImageRegion& needed() const { return needed_; }
  /// Sets the pixels, which must stay valid while row() is called, and include needed().
  void set_source(const PartialImage& pixels);
  /// Row `y` of the window, 3 x window.width bytes, valid until the next call. Ascending order is fastest.
  const std::uint8_t* row(std::uint32_t y);
  /// The whole window; the view is valid until the next call.
  ImageView all();

 private:
  // The source pixels of one result pixel, and their weights in 1 / 2^22.
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
  // One axis of a task: `from` source pixels become `to`. The first begins at `offset` from the first of the
  // `limit` available ones. `count` results from `begin` on are needed.
  struct AxisMap {
    double from = 0;
    double offset = 0;
    std::uint32_t limit = 0;
    std::uint32_t to = 0;
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };
  // Maps a part from `first` on, `size` wide; sets `base` to the first available pixel.
  static AxisMap axis_map(std::uint32_t first, std::uint32_t size, std::uint32_t reduction,
                          std::uint32_t& base);
  static void make_taps(ResizeFilter filter, const AxisMap& side, Taps& taps);
  void plan_horizontal();
  void plan_vertical();
  const std::uint8_t* row_to_read(std::uint32_t y, std::vector<std::uint8_t>& copy) const;
  void resize_rows_until(std::uint32_t end);

  const Kernels& kernels_;
  ResizeTask task_;
  std::uint32_t base_x_ = 0;  // origin of taps, in the (reduced) image
  std::uint32_t base_y_ = 0;
  ImageRegion needed_;
  PartialImage pixels_;
  Taps horizontal_;
  Taps vertical_;  // after plan_vertical, rows count from needed_.y and weights are indexes into pairs_
  HorizontalPlan horizontal_plan_;
  std::size_t reach_ = 0;  // bytes of a row that the kernel may read
  std::vector<std::int32_t> pairs_;
  std::array<std::vector<std::uint8_t>, kRowsAtOnce> copies_;
  std::size_t row_bytes_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint8_t> rows_;  // resized horizontally only
  std::uint32_t rows_done_ = 0;     // from needed_.y
  std::vector<const std::uint8_t*> vertical_rows_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint8_t> all_;
};

}  // namespace stoker::image
