// One split of a packed dataset, opened for reading: everything that training needs, without other rooms.
// Thread-safe to read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::dataset {
class LocalShardSource;
class ShardSource;
}  // namespace stoker::dataset

namespace stoker::dataset {

/// Limit on classes: larger labels are no classes.
inline constexpr std::int64_t kMaxClasses = 1'000'000;

/// Whether samples without a class are allowed.
enum class LabelPolicy { required, optional };

class Dataset {
 public:
  /// Opens the named split, or the only one if the name is empty. Fails as dataset::LocalShardSource::open,
  /// with Invalid when the split has no samples, or the dataset has no required labels.
  static Result<Dataset> open(const Path& folder, const std::string& split,
                              LabelPolicy labels = LabelPolicy::required);
  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  const dataset::ShardSource& source() const;
  /// Limit on cached decompressed bytes of chunks; call before reading.
  void set_chunk_cache_limit(ByteCount limit);
  std::uint64_t samples() const;
  /// Class names by number; empty when labels have no names.
  const std::vector<std::string>& class_names() const;
  /// Invalid, with the first offending sample, unless every sample has a class from 0 to kMaxClasses - 1.
  Status check_labels() const;
  /// The largest label plus one.
  std::uint64_t label_bound() const;

 private:
  explicit Dataset(std::unique_ptr<dataset::LocalShardSource> source);
  std::unique_ptr<dataset::LocalShardSource> source_;
};

}  // namespace stoker::dataset
