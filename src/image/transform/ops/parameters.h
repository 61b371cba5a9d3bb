// Reads the parameters of one operation with their types and ranges. Keeps the first error, so that an
// operation reads all parameters and checks status() once. Used by the operations. Thread-compatible.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "image/transform/canvas.h"
#include "stoker/status.h"
#include "stoker/transform_options.h"

namespace stoker::image {

/// Includes both ends.
struct Range {
  double least = 0;
  double most = 0;
};

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

class Parameters {
 public:
  /// `operation` must outlive it.
  explicit Parameters(const TransformOperation& operation);

  /// "random_crop": the start of messages.
  const std::string& name() const { return name_; }
  bool has(std::string_view key) const;
  /// These return `fallback` when the parameter is missing or invalid.
  bool flag(std::string_view key, bool fallback);
  double number(std::string_view key, double fallback, const Range& range);
  /// A whole number.
  std::int64_t count(std::string_view key, std::int64_t fallback, const Range& range);
  /// One number or several; `lengths` are the allowed counts.
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback, const Range& range,
                              std::initializer_list<std::size_t> lengths);
  std::string choice(std::string_view key, std::string_view fallback,
                     std::span<const std::string_view> known);
  /// `size`, required: one number for both sides, or [height, width].
  Size size();
  /// `interpolation`, a filter by Pillow's name.
  ResizeFilter filter(ResizeFilter fallback);
  /// `fill`: one number for all colours, or three.
  Rgb fill();

  void report(Status why);
  /// The first error, or an unknown parameter.
  Status status() const;

 private:
  const Parameter* find(std::string_view key);

  const TransformOperation& operation_;
  std::string name_;
  std::set<std::string, std::less<>> known_;
  Status problem_;
};

}  // namespace stoker::image
