// Resizes like Image.resize of Pillow 13, bit for bit: a filter as wide as the reduction, 22-bit fixed point,
// first horizontally, then vertically (images that lose much more height than width: first vertically), each
// rounded to a byte. Rows are computed one by one, so that the caller can write them to the batch while they
// are in the cache. Used by Canvas. Thread-compatible: scratch memory is kept.
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
  static void make_nearest_taps(const AxisMap& side, Taps& taps);
  static void make_taps(ResizeFilter filter, const AxisMap& side, Taps& taps);
  void plan_horizontal();
  void plan_vertical();
  void plan_rows(bool is_vertical_first);
  const std::uint8_t* row_to_read(std::uint32_t y, std::vector<std::uint8_t>& copy) const;
  void resize_rows_until(std::uint32_t end);
  // Row `y` of the window from vertical_rows_, its source rows.
  void sum_rows(std::uint32_t y, std::size_t bytes, std::uint8_t* out);
  void resize_block(std::uint32_t begin);
  void copy_last_rows();

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
  // Horizontally first: the rows that are resized horizontally only, rows_done_ of them, from needed_.y on.
  // Vertically first: kRowsAtOnce rows of the window from block_ on, both ways.
  std::vector<std::uint8_t> rows_;
  std::uint32_t rows_done_ = 0;
  // Vertically first only.
  bool is_vertical_first_ = false;
  std::uint32_t block_ = 0;  // window.height: none yet
  std::size_t tall_stride_ = 0;
  std::vector<std::uint8_t> tall_rows_;           // kRowsAtOnce rows that are resized vertically only
  std::vector<const std::uint8_t*> source_rows_;  // from needed_.y on
  std::vector<std::uint8_t> last_rows_;           // copies of the rows that end near the end of the pixels
  std::vector<const std::uint8_t*> vertical_rows_;
  std::vector<std::uint8_t> row_;
  std::vector<std::uint8_t> all_;
};

}  // namespace stoker::image
