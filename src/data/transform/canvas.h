// An image on its way through the operations of a transform. Crops, flips, padding and the first resize are
// only noted; pixels are decoded and computed when an operation asks for them or when the sample is written,
// and then only those that are still in the picture. Used by the operations. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "data/decode/image.h"
#include "data/transform/resize.h"

namespace stoker::data {

class SampleWriter;
using Rgb = std::array<std::uint8_t, 3>;

/// Where a canvas has its first pixels from: a stored image that may be decoded in part.
class PixelSource {
 public:
  virtual ~PixelSource() = default;
  virtual std::uint32_t width() const = 0;
  virtual std::uint32_t height() const = 0;
  /// Whether pixels() may be asked for an image made 2, 4 or 8 times smaller: cheaper than to make it so.
  virtual bool can_reduce() const { return false; }
  /// At least the pixels of `wanted`, a part of the image made `reduction` times smaller; valid as long as
  /// the source. Asked for once. REQUIRES: `wanted` lies in it and is not empty.
  virtual Result<Held> pixels(const Region& wanted, std::uint32_t reduction) = 0;
};

/// Memory that a thread keeps between its canvases.
struct CanvasBuffers {
  Resizer resizer;
  Image first;
  Image second;
  std::vector<std::uint8_t> work;  // of an operation
};

class Canvas {
 public:
  /// `source` and `buffers` must outlive the canvas.
  Canvas(PixelSource& source, CanvasBuffers& buffers);

  std::uint32_t width() const { return width_; }
  std::uint32_t height() const { return height_; }

  /// Keeps width x height pixels from (x, y) on, which may begin and end outside; there everything has the
  /// colour `fill`. REQUIRES: width and height of 1 to 2^30.
  Status crop(std::int64_t x, std::int64_t y, std::uint32_t width, std::uint32_t height,
              const Rgb& fill = {0, 0, 0});
  /// With `gap`, a picture that is still so many times larger than asked for may be made smaller by cheaper
  /// means first; 0: never. Fails with Invalid when that would take over 2^30 pixels.
  Status resize(std::uint32_t width, std::uint32_t height, Filter filter, double gap = 0);
  void flip_horizontally() { flipped_x_ = !flipped_x_; }
  void flip_vertically() { flipped_y_ = !flipped_y_; }

  /// The pixels as they are now, to be changed in place: width() x height(). Valid until the next call of
  /// pixels() or replace().
  Result<Image*> pixels();
  /// An image of the same size to be written to, after pixels(); replace() then takes it in its place.
  Image& spare() { return *spare_; }
  void replace();
  /// Scratch memory for an operation.
  std::vector<std::uint8_t>& work() { return buffers_.work; }

  /// Writes every pixel to its place in the batch.
  Status write(const SampleWriter& writer, std::span<std::byte> out);

 private:
  // What of the window [0, width) x [0, height) is picture; the rest is fill.
  struct Visible {
    std::uint32_t x = 0;
    std::uint32_t y = 0;
    Region part;  // in the scaled picture; empty: nothing
  };
  Visible visible() const;
  template <typename RowSink>
  Status render(RowSink&& sink);
  template <typename RowSink>
  Status render_resized(const Visible& seen, RowSink&& sink);
  template <typename RowSink>
  Status render_plain(const Visible& seen, RowSink&& sink);
  bool is_cut() const;
  bool is_padded() const;
  Result<Held> held(const Region& wanted, std::uint32_t reduction = 1);
  std::uint32_t reduction() const;

  PixelSource& source_;
  CanvasBuffers& buffers_;
  Image* image_ = nullptr;  // in place of the source, once pixels were asked for
  Image* spare_;

  // The picture: `part_` of source or image, resized to scaled_width_ x scaled_height_.
  Region part_;
  bool is_resized_ = false;
  Filter filter_ = Filter::bilinear;
  double gap_ = 0;
  std::uint32_t scaled_width_;
  std::uint32_t scaled_height_;
  // The window onto it, before flipping.
  std::int64_t x_ = 0;
  std::int64_t y_ = 0;
  std::uint32_t width_;
  std::uint32_t height_;
  Rgb fill_{0, 0, 0};
  bool flipped_x_ = false;
  bool flipped_y_ = false;
};

}  // namespace stoker::data
