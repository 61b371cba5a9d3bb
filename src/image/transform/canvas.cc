#include "image/transform/canvas.h"

#include <algorithm>
#include <new>

#include "image/transform/sample_writer.h"

namespace stoker::image {
namespace {

// Limits the result of one operation; decoded images have a separate limit.
constexpr std::uint64_t kMaxPixels = 1u << 30;

Status allocate_pixels(Image& image, std::uint32_t width, std::uint32_t height) {
  try {
    image.pixels.resize(std::size_t{3} * width * height);
  } catch (const std::bad_alloc&) {
    return unavailable("no memory for {} x {} pixels", width, height);
  }
  image.width = width;
  image.height = height;
  return Status();
}

void fill_pixels(std::uint8_t* begin, const std::uint8_t* end, const Rgb& colour) {
  for (; begin != end; begin += 3) std::copy(colour.begin(), colour.end(), begin);
}

void copy_row(const SampleRow& row, std::uint32_t width, std::uint8_t* out) {
  if (!row.is_flipped) {
    fill_pixels(out, out + std::size_t{3} * row.first, row.fill);
    std::copy_n(row.pixels, std::size_t{3} * row.count, out + std::size_t{3} * row.first);
    fill_pixels(out + std::size_t{3} * (row.first + row.count), out + std::size_t{3} * width, row.fill);
    return;
  }
  const std::uint32_t first = width - row.first - row.count;
  fill_pixels(out, out + std::size_t{3} * first, row.fill);
  const std::uint8_t* from = row.pixels + std::size_t{3} * row.count;
  std::uint8_t* to = out + std::size_t{3} * first;
  for (std::uint32_t i = 0; i < row.count; ++i, to += 3) {
    from -= 3;
    std::copy_n(from, 3, to);
  }
  fill_pixels(to, out + std::size_t{3} * width, row.fill);
}

}  // namespace

Canvas::Canvas(PixelSource& source, CanvasBuffers& buffers)
    : source_(source),
      buffers_(buffers),
      spare_(&buffers.first),
      part_{0, 0, source.width(), source.height()},
      scaled_width_(source.width()),
      scaled_height_(source.height()),
      width_(source.width()),
      height_(source.height()) {}

// Whether the window cuts off a part of the picture.
bool Canvas::is_cropped() const {
  return x_ > 0 || y_ > 0 || x_ + width_ < scaled_width_ || y_ + height_ < scaled_height_;
}

bool Canvas::is_padded() const {
  return x_ < 0 || y_ < 0 || x_ + width_ > scaled_width_ || y_ + height_ > scaled_height_;
}

Status Canvas::crop(std::int64_t x, std::int64_t y, std::uint32_t width, std::uint32_t height,
                    const Rgb& fill) {
  // Pixels cut off by an earlier window must not reappear in a later one that reaches out of it.
  const bool reaches_out = x < 0 || y < 0 || x + width > width_ || y + height > height_;
  if ((is_padded() && fill != fill_) || (reaches_out && is_cropped()))
    STOKER_RETURN_IF_ERROR(pixels().status());
  fill_ = fill;
  x_ += flipped_x_ ? std::int64_t{width_} - x - width : x;
  y_ += flipped_y_ ? std::int64_t{height_} - y - height : y;
  width_ = width;
  height_ = height;
  return Status();
}

Status Canvas::resize(std::uint32_t width, std::uint32_t height, ResizeFilter filter, double gap) {
  if (width == 0 || height == 0 || height > kMaxPixels / width) {
    return invalid("image of {} x {} pixels cannot be resized to {} x {}", width_, height_, width, height);
  }
  if (width == width_ && height == height_) return Status();
  // Of two equally near pixels, these filters choose the right one, so flipping first gives a different
  // result.
  const bool is_one_sided = filter == ResizeFilter::nearest || filter == ResizeFilter::box;
  if (is_resized_ || is_padded() || (is_one_sided && (flipped_x_ || flipped_y_)))
    STOKER_RETURN_IF_ERROR(pixels().status());
  part_ = {part_.x + static_cast<std::uint32_t>(x_), part_.y + static_cast<std::uint32_t>(y_), width_,
           height_};
  is_resized_ = true;
  filter_ = filter;
  gap_ = gap;
  x_ = y_ = 0;
  width_ = scaled_width_ = width;
  height_ = scaled_height_ = height;
  return Status();
}

Canvas::Visible Canvas::visible() const {
  const auto bounds = [](std::int64_t begin, std::uint32_t size, std::uint32_t scaled) {
    const std::int64_t first = std::clamp<std::int64_t>(begin, 0, scaled);
    const std::int64_t end = std::clamp<std::int64_t>(begin + size, first, scaled);
    return std::pair(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end - first));
  };
  const auto [x, width] = bounds(x_, width_, scaled_width_);
  const auto [y, height] = bounds(y_, height_, scaled_height_);
  if (width == 0 || height == 0) return {};
  return {static_cast<std::uint32_t>(x - x_), static_cast<std::uint32_t>(y - y_), {x, y, width, height}};
}

Result<PartialImage> Canvas::source_pixels(const ImageRegion& wanted, std::uint32_t reduction) {
  if (image_) return PartialImage{image_->view(), 0, 0};
  return source_.pixels(wanted, reduction);
}

// The reduction to request from the source.
std::uint32_t Canvas::reduction() const {
  if (image_ || gap_ < 1 || !source_.can_reduce()) return 1;
  for (const std::uint32_t reduction : {8u, 4u, 2u}) {
    const double least = gap_ * reduction;
    if (part_.width >= least * scaled_width_ && part_.height >= least * scaled_height_) return reduction;
  }
  return 1;
}

// Calls sink(y, row) for every row of the canvas, in any order.
template <typename RowSink>
Status Canvas::render(RowSink&& sink) {
  const Visible seen = visible();
  const auto place = [&](std::uint32_t y) { return flipped_y_ ? height_ - 1 - y : y; };
  const SampleRow empty{.fill = fill_};
  for (std::uint32_t y = 0; y < height_; ++y) {
    if (y - seen.y >= seen.part.height) sink(place(y), empty);  // above it the difference wraps around
  }
  if (seen.part.width == 0) return Status();
  const auto each = [&](std::uint32_t y, const std::uint8_t* pixels) {
    sink(place(seen.y + y), SampleRow{.pixels = pixels,
                                      .first = seen.x,
                                      .count = seen.part.width,
                                      .fill = fill_,
                                      .is_flipped = flipped_x_});
  };
  return is_resized_ ? render_resized(seen, each) : render_plain(seen, each);
}

template <typename RowSink>
Status Canvas::render_resized(const Visible& seen, RowSink&& sink) {
  Resizer& resizer = buffers_.resizer;
  const std::uint32_t reduced = reduction();
  resizer.start({part_, scaled_width_, scaled_height_, seen.part, filter_, reduced});
  STOKER_ASSIGN_OR_RETURN(pixels, source_pixels(resizer.needed(), reduced));
  resizer.set_source(pixels);
  for (std::uint32_t y = 0; y < seen.part.height; ++y) sink(y, resizer.row(y));
  return Status();
}

template <typename RowSink>
Status Canvas::render_plain(const Visible& seen, RowSink&& sink) {
  const ImageRegion wanted{part_.x + seen.part.x, part_.y + seen.part.y, seen.part.width, seen.part.height};
  STOKER_ASSIGN_OR_RETURN(pixels, source_pixels(wanted));
  const std::size_t stride = std::size_t{3} * pixels.image.width;
  const std::uint8_t* row =
      pixels.image.pixels.data() + (wanted.y - pixels.y) * stride + std::size_t{3} * (wanted.x - pixels.x);
  for (std::uint32_t y = 0; y < wanted.height; ++y, row += stride) sink(y, row);
  return Status();
}

Result<Image*> Canvas::pixels() {
  const bool is_whole = image_ && !is_resized_ && !flipped_x_ && !flipped_y_ && x_ == 0 && y_ == 0 &&
                        width_ == image_->width && height_ == image_->height;
  if (is_whole) return image_;
  if (height_ > kMaxPixels / width_) return invalid("image of {} x {} pixels is too large", width_, height_);
  STOKER_RETURN_IF_ERROR(allocate_pixels(*spare_, width_, height_));
  STOKER_RETURN_IF_ERROR(render([&](std::uint32_t y, const SampleRow& row) {
    copy_row(row, width_, spare_->pixels.data() + std::size_t{3} * width_ * y);
  }));
  replace();
  part_ = {0, 0, width_, height_};
  is_resized_ = flipped_x_ = flipped_y_ = false;
  scaled_width_ = width_;
  scaled_height_ = height_;
  x_ = y_ = 0;
  STOKER_RETURN_IF_ERROR(allocate_pixels(*spare_, width_, height_));
  return image_;
}

void Canvas::replace() {
  image_ = spare_;
  spare_ = image_ == &buffers_.first ? &buffers_.second : &buffers_.first;
}

Status Canvas::write(const SampleWriter& writer, std::span<std::byte> out) {
  if (width_ != writer.form().width || height_ != writer.form().height) {
    return internal("transform: image of {} x {} pixels, expected {} x {}", width_, height_,
                    writer.form().width, writer.form().height);
  }
  return render([&](std::uint32_t y, const SampleRow& row) { writer.write(y, row, out); });
}

}  // namespace stoker::image
