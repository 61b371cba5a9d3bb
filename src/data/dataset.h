// One split of a packed dataset, opened for reading: what a trainer needs to know of it, with no room but
// this one. Thread-safe to read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/text.h"

namespace stoker::formats {
class LocalShardSource;
class ShardSource;
}  // namespace stoker::formats

namespace stoker::data {

/// The most classes that somebody trains: labels from here on are no classes.
inline constexpr std::int64_t kMostClasses = 1'000'000;

/// Whether samples without a class are of use.
enum class Labels { needed, unneeded };

class Dataset {
 public:
  /// The split of that name; empty: the only one. Fails as formats::LocalShardSource::open, with Invalid when
  /// the split has no samples, or the dataset no labels though they are needed.
  static Result<Dataset> open(const Path& folder, const std::string& split, Labels labels = Labels::needed);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  const formats::ShardSource& source() const;
  /// How many unpacked bytes of packed chunks are kept at most; before any is read.
  void keep_chunks(ByteCount limit);
  std::uint64_t samples() const;
  /// Names of the classes, by their number; empty when labels are bare numbers.
  const std::vector<std::string>& class_names() const;
  /// Whether every sample has a class to learn, from 0 to kMostClasses - 1: else Invalid, with the first one
  /// that has none.
  Status check_labels() const;
  /// The largest label and one.
  std::uint64_t label_bound() const;

 private:
  explicit Dataset(std::unique_ptr<formats::LocalShardSource> source);
  std::unique_ptr<formats::LocalShardSource> source_;
};

}  // namespace stoker::data
