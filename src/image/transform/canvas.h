// An image while the operations of a transform are applied. Crops, flips, padding and the first resize are
// deferred. Pixels are decoded and computed when an operation needs them or when the sample is written, and
// then only the remaining ones. Used by the operations. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "image/decode/image.h"
#include "image/transform/resize.h"
#include "stoker/status.h"

namespace stoker::image {

class SampleWriter;
using Rgb = std::array<std::uint8_t, 3>;

/// The source of a canvas: a stored image that may be decoded in part.
class PixelSource {
 public:
  virtual ~PixelSource() = default;
  virtual std::uint32_t width() const = 0;
  virtual std::uint32_t height() const = 0;
  /// Whether pixels() can return the image 2, 4 or 8 times smaller, which is cheaper than resizing it.
  virtual bool can_reduce() const { return false; }
  /// At least the pixels of `wanted`, a part of the image made `reduction` times smaller; valid as long as
  /// the source. Called once. REQUIRES: `wanted` is inside the image and not empty.
  virtual Result<PartialImage> pixels(const ImageRegion& wanted, std::uint32_t reduction) = 0;
};

/// Memory that a thread reuses for its canvases.
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

  /// Crops to width x height pixels from (x, y) on, which may be partly outside; the outside has the colour
  /// `fill`. REQUIRES: width and height of 1 to 2^30.
  Status crop(std::int64_t x, std::int64_t y, std::uint32_t width, std::uint32_t height,
              const Rgb& fill = {0, 0, 0});
  /// With `gap`, a picture that is at least that many times larger than the result may be reduced by cheaper
  /// means first; 0: never. Fails with Invalid when the result exceeds 2^30 pixels.
  Status resize(std::uint32_t width, std::uint32_t height, ResizeFilter filter, double gap = 0);
  void flip_horizontally() { flipped_x_ = !flipped_x_; }
  void flip_vertically() { flipped_y_ = !flipped_y_; }

  /// The current pixels, to modify in place: width() x height(). Valid until the next call of pixels() or
  /// replace().
  Result<Image*> pixels();
  /// An image of the same size to write to, after pixels(); replace() then makes it the current image.
  Image& spare() { return *spare_; }
  void replace();
  /// Scratch memory for an operation.
  std::vector<std::uint8_t>& work() { return buffers_.work; }

  /// Writes every pixel to its place in the batch.
  Status write(const SampleWriter& writer, std::span<std::byte> out);

 private:
  // The part of the window [0, width) x [0, height) that is picture; the rest is fill.
  struct Visible {
    std::uint32_t x = 0;
    std::uint32_t y = 0;
    ImageRegion part;  // in the scaled picture; empty: nothing
  };
  Visible visible() const;
  template <typename RowSink>
  Status render(RowSink&& sink);
  template <typename RowSink>
  Status render_resized(const Visible& seen, RowSink&& sink);
  template <typename RowSink>
  Status render_plain(const Visible& seen, RowSink&& sink);
  bool is_cropped() const;
  bool is_padded() const;
  Result<PartialImage> source_pixels(const ImageRegion& wanted, std::uint32_t reduction = 1);
  std::uint32_t reduction() const;

  PixelSource& source_;
  CanvasBuffers& buffers_;
  Image* image_ = nullptr;  // replaces the source after the first call of pixels()
  Image* spare_;

  // The picture: `part_` of source or image, resized to scaled_width_ x scaled_height_.
  ImageRegion part_;
  bool is_resized_ = false;
  ResizeFilter filter_ = ResizeFilter::bilinear;
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

}  // namespace stoker::image
