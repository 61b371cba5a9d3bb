#include "image/transform/resize.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace stoker::image {
namespace {

double sinc(double x) {
  if (x == 0) return 1;
  x *= 3.14159265358979323846;
  return std::sin(x) / x;
}

double support_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::nearest:
    case ResizeFilter::box:
      return 0.5;
    case ResizeFilter::bilinear:
    case ResizeFilter::hamming:
      return 1;
    case ResizeFilter::bicubic:
      return 2;
    case ResizeFilter::lanczos:
      return 3;
  }
  return 1;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double hamming(double x) {
  x = std::abs(x);
  if (x == 0) return 1;
  if (x >= 1) return 0;
  x *= 3.14159265358979323846;
  return std::sin(x) / x * (0.54f + 0.46f * std::cos(x));  // Pillow's constants are floats
}

double weight_at(ResizeFilter filter, double x) {
  switch (filter) {
    case ResizeFilter::nearest:
    case ResizeFilter::box:
      return x > -0.5 && x <= 0.5 ? 1 : 0;
    case ResizeFilter::bilinear:
      return std::max(0.0, 1.0 - std::abs(x));
    case ResizeFilter::hamming:
      return hamming(x);
    case ResizeFilter::bicubic:
      return bicubic(x);
    case ResizeFilter::lanczos:
      return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
  }
  return 0;
}

std::int32_t fixed(double weight) {
  return static_cast<std::int32_t>((weight < 0 ? -0.5 : 0.5) + weight * (1 << kWeightBits));
}

// Pillow's rule: when more than twice as many rows as columns are dropped, dropping rows first saves work.
bool should_drop_rows_first(std::int64_t columns_dropped, std::int64_t rows_dropped) {
  return rows_dropped > 0 && rows_dropped > 2 * columns_dropped;
}

// Stores a weight in half `which` of a pair; the upper halves are in *pair, the lower ones `apart` further
// on.
void put_weight(std::int32_t* pair, std::size_t apart, std::uint32_t which, std::int32_t weight) {
  const std::int32_t upper = weight >> kWeightSplit;
  const std::int32_t lower = weight - upper * (1 << kWeightSplit);
  const auto put = [which](std::int32_t& both, std::int32_t half) {
    const std::uint32_t bits = (static_cast<std::uint32_t>(half) & 0xFFFFu) << (16 * which);
    both = static_cast<std::int32_t>(static_cast<std::uint32_t>(both) | bits);
  };
  put(pair[0], upper);
  put(pair[apart], lower);
}

}  // namespace

// The centres are sums of steps, as in Pillow: a product would choose the other of two equally near pixels.
void Resizer::make_nearest_taps(const AxisMap& side, Taps& taps) {
  const double step = side.from / side.to;
  double centre = side.offset + step * 0.5;
  for (std::uint32_t i = 0; i < side.begin; ++i) centre += step;
  for (Tap& tap : taps.taps) {
    tap = {std::min(side.limit - 1, static_cast<std::uint32_t>(centre)), 1, taps.weights.size()};
    taps.weights.push_back(1 << kWeightBits);
    centre += step;
  }
}

void Resizer::make_taps(ResizeFilter filter, const AxisMap& side, Taps& taps) {
  taps.taps.resize(side.count);
  taps.weights.clear();
  if (filter == ResizeFilter::nearest) return make_nearest_taps(side, taps);
  const double scale = side.from / side.to;
  const double stretch = std::max(scale, 1.0);
  const double support = support_of(filter) * stretch;
  const double shrink = 1.0 / stretch;
  for (std::uint32_t i = 0; i < side.count; ++i) {
    const double centre = side.offset + (side.begin + i + 0.5) * scale;
    const auto first = static_cast<std::uint32_t>(std::max(0.0, centre - support + 0.5));
    const auto last = std::min(side.limit, static_cast<std::uint32_t>(centre + support + 0.5));
    taps.taps[i] = {first, last - first, taps.weights.size()};
    double sum = 0;
    taps.exact.clear();
    for (std::uint32_t j = first; j < last; ++j) {
      taps.exact.push_back(weight_at(filter, (j - centre + 0.5) * shrink));
      sum += taps.exact.back();
    }
    for (const double weight : taps.exact) taps.weights.push_back(fixed(weight / sum));
  }
}

Resizer::AxisMap Resizer::axis_map(std::uint32_t first, std::uint32_t size, std::uint32_t reduction,
                                   std::uint32_t& base) {
  base = first / reduction;
  const std::uint32_t end = (first + size + reduction - 1) / reduction;
  AxisMap side{.from = static_cast<double>(size) / reduction, .limit = end - base};
  side.offset = static_cast<double>(first) / reduction - base;
  return side;
}

void Resizer::start(const ResizeTask& task) {
  task_ = task;
  const ImageRegion& window = task.window;
  AxisMap horizontal = axis_map(task.part.x, task.part.width, task.reduction, base_x_);
  horizontal.to = task.width;
  horizontal.begin = window.x;
  horizontal.count = window.width;
  make_taps(task.filter, horizontal, horizontal_);
  AxisMap vertical = axis_map(task.part.y, task.part.height, task.reduction, base_y_);
  vertical.to = task.height;
  vertical.begin = window.y;
  vertical.count = window.height;
  make_taps(task.filter, vertical, vertical_);
  needed_ = {base_x_ + horizontal_.first(), base_y_ + vertical_.first(),
             horizontal_.end() - horizontal_.first(), vertical_.end() - vertical_.first()};
  plan_horizontal();
  plan_vertical();
  plan_rows(should_drop_rows_first(std::int64_t{horizontal.limit} - task.width,
                                   std::int64_t{vertical.limit} - task.height));
}

void Resizer::plan_rows(bool is_vertical_first) {
  const auto padded = [](std::size_t bytes) {
    return (bytes + kRowPadding) / kRowPadding * kRowPadding + kRowPadding;
  };
  is_vertical_first_ = is_vertical_first;
  row_bytes_ = std::size_t{3} * task_.window.width;
  stride_ = padded(row_bytes_);
  row_.resize(stride_);
  rows_.resize(stride_ *
               ((is_vertical_first ? kRowsAtOnce : needed_.height) + 1));  // the last one is scratch
  rows_done_ = 0;
  block_ = task_.window.height;
  if (!is_vertical_first) return;
  tall_stride_ = padded(std::max(reach_, std::size_t{3} * needed_.width));
  tall_rows_.resize(tall_stride_ * kRowsAtOnce);
}

void Resizer::plan_horizontal() {
  std::uint32_t most = 1;
  for (const Tap& tap : horizontal_.taps) most = std::max(most, tap.count);
  horizontal_plan_.groups = (most + 3) / 4;
  horizontal_plan_.first.clear();
  horizontal_plan_.weights.assign(4 * horizontal_plan_.groups * horizontal_.taps.size(), 0);
  reach_ = 0;
  std::int32_t* pairs = horizontal_plan_.weights.data();
  for (const Tap& tap : horizontal_.taps) {
    horizontal_plan_.first.push_back(tap.first - horizontal_.first());
    const std::int32_t* weights = horizontal_.weights.data() + tap.weights;
    for (std::uint32_t j = 0; j < tap.count; ++j)
      put_weight(pairs + j / 4 * 4 + j / 2 % 2, 2, j % 2, weights[j]);
    pairs += 4 * horizontal_plan_.groups;
    reach_ = std::max(
        reach_, std::size_t{3} * horizontal_plan_.first.back() + 12 * (horizontal_plan_.groups - 1) + 16);
  }
}

void Resizer::plan_vertical() {
  pairs_.clear();
  for (Tap& tap : vertical_.taps) {
    const std::size_t begin = pairs_.size();
    const std::int32_t* weights = vertical_.weights.data() + tap.weights;
    pairs_.resize(begin + std::size_t{2} * ((tap.count + 1) / 2), 0);
    for (std::uint32_t j = 0; j < tap.count; ++j)
      put_weight(pairs_.data() + begin + j / 2 * 2, 1, j % 2, weights[j]);
    tap.first -= needed_.y - base_y_;
    tap.weights = begin;
  }
}

void Resizer::set_source(const PartialImage& pixels) {
  pixels_ = pixels;
  if (is_vertical_first_) copy_last_rows();
}

// The vertical kernel reads up to kRowPadding bytes after the end of a row.
void Resizer::copy_last_rows() {
  const std::span<const std::uint8_t> all = pixels_.image.pixels;
  const std::size_t row = std::size_t{3} * pixels_.image.width;
  const std::size_t used = std::size_t{3} * needed_.width;
  const std::size_t first = (needed_.y - pixels_.y) * row + std::size_t{3} * (needed_.x - pixels_.x);
  std::uint32_t count = 0;
  while (count < needed_.height &&
         first + (needed_.height - 1 - count) * row + used + kRowPadding > all.size())
    ++count;
  last_rows_.assign(count * (used + kRowPadding), 0);
  source_rows_.resize(needed_.height);
  std::uint8_t* copy = last_rows_.data();
  for (std::uint32_t y = 0; y < needed_.height; ++y) {
    source_rows_[y] = all.data() + first + y * row;
    if (y < needed_.height - count) continue;
    std::copy_n(source_rows_[y], used, copy);
    source_rows_[y] = copy;
    copy += used + kRowPadding;
  }
}

// The needed part of row `y` of the image; copied if the kernel would read beyond the end of the pixels.
const std::uint8_t* Resizer::row_to_read(std::uint32_t y, std::vector<std::uint8_t>& copy) const {
  const std::size_t offset =
      std::size_t{3} * (std::size_t{y - pixels_.y} * pixels_.image.width + needed_.x - pixels_.x);
  const std::span<const std::uint8_t> all = pixels_.image.pixels;
  if (offset + reach_ <= all.size()) return all.data() + offset;
  const std::size_t size = std::min(std::size_t{3} * needed_.width, all.size() - offset);
  copy.assign(std::max(reach_, size), 0);
  std::copy_n(all.data() + offset, size, copy.data());
  return copy.data();
}

void Resizer::resize_rows_until(std::uint32_t end) {
  while (rows_done_ < end) {
    SourceRows from{};
    TargetRows to{};
    from.fill(row_to_read(needed_.y + rows_done_, copies_[0]));
    to.fill(rows_.data() + needed_.height * stride_);
    to[0] = rows_.data() + rows_done_ * stride_;
    const std::uint32_t count = std::min<std::uint32_t>(kRowsAtOnce, needed_.height - rows_done_);
    for (std::uint32_t i = 1; i < count; ++i) {
      from[i] = row_to_read(needed_.y + rows_done_ + i, copies_[i]);
      to[i] = rows_.data() + (rows_done_ + i) * stride_;
    }
    kernels_.horizontal(horizontal_plan_, from, to);
    rows_done_ += kRowsAtOnce;
  }
}

void Resizer::sum_rows(std::uint32_t y, std::size_t bytes, std::uint8_t* out) {
  const Tap& tap = vertical_.taps[y];
  if (tap.count % 2) vertical_rows_.push_back(vertical_rows_.back());  // its weight is 0
  kernels_.vertical({vertical_rows_.data(), pairs_.data() + tap.weights, vertical_rows_.size() / 2}, bytes,
                    out);
}

// Vertically first: the rows of the window from `begin` on.
void Resizer::resize_block(std::uint32_t begin) {
  SourceRows from{};
  TargetRows to{};
  from.fill(tall_rows_.data());
  to.fill(rows_.data() + kRowsAtOnce * stride_);
  const std::uint32_t count = std::min<std::uint32_t>(kRowsAtOnce, task_.window.height - begin);
  for (std::uint32_t i = 0; i < count; ++i) {
    const Tap& tap = vertical_.taps[begin + i];
    const auto rows = std::span(source_rows_).subspan(tap.first, tap.count);
    vertical_rows_.assign(rows.begin(), rows.end());
    std::uint8_t* tall = tall_rows_.data() + i * tall_stride_;
    sum_rows(begin + i, std::size_t{3} * needed_.width, tall);
    from[i] = tall;
    to[i] = rows_.data() + i * stride_;
  }
  kernels_.horizontal(horizontal_plan_, from, to);
  block_ = begin;
}

const std::uint8_t* Resizer::row(std::uint32_t y) {
  if (is_vertical_first_) {
    const auto begin = static_cast<std::uint32_t>(y / kRowsAtOnce * kRowsAtOnce);
    if (begin != block_) resize_block(begin);
    return rows_.data() + (y - begin) * stride_;
  }
  const Tap& tap = vertical_.taps[y];
  resize_rows_until(tap.first + tap.count);
  vertical_rows_.clear();
  for (std::uint32_t j = 0; j < tap.count; ++j)
    vertical_rows_.push_back(rows_.data() + (tap.first + j) * stride_);
  sum_rows(y, row_bytes_, row_.data());
  return row_.data();
}

ImageView Resizer::all() {
  const ImageRegion& window = task_.window;
  all_.resize(row_bytes_ * window.height);
  for (std::uint32_t y = 0; y < window.height; ++y)
    std::copy_n(row(y), row_bytes_, all_.data() + y * row_bytes_);
  return {window.width, window.height, all_};
}

}  // namespace stoker::image
