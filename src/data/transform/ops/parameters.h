// The parameters of one operation, read with their types and ranges. Collects the first thing that is wrong,
// so that an operation reads all and asks once. Used by the operations. Thread-compatible.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/transform/canvas.h"
#include "data/transform/operation.h"

namespace stoker::data {

/// Both ends are allowed.
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
  explicit Parameters(const Operation& operation);

  /// "random_crop": what messages begin with.
  const std::string& name() const { return name_; }
  bool has(std::string_view key) const;
  /// Each returns `otherwise` when the parameter is not given or is wrong.
  bool flag(std::string_view key, bool otherwise);
  double number(std::string_view key, double otherwise, const Range& range);
  /// A whole number.
  std::int64_t count(std::string_view key, std::int64_t otherwise, const Range& range);
  /// One number or several, as many as one of `lengths`.
  std::vector<double> numbers(std::string_view key, std::vector<double> otherwise, const Range& range,
                              std::initializer_list<std::size_t> lengths);
  std::string word(std::string_view key, std::string_view otherwise, std::span<const std::string_view> known);
  /// `size`, required: one number for both sides, or [height, width].
  Size size();
  /// `interpolation`, a filter by Pillow's name.
  Filter filter(Filter otherwise);
  /// `fill`: one number for all colours, or three.
  Rgb fill();

  void refuse(Status why);
  /// The first thing that was wrong, or a parameter that nobody asked for.
  Status status() const;

 private:
  const Parameter* find(std::string_view key);

  const Operation& operation_;
  std::string name_;
  std::set<std::string, std::less<>> asked_;
  Status problem_;
};

}  // namespace stoker::data
