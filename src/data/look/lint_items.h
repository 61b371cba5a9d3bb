// The files that lint looks at, of a source or of a dataset. Reads are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/pack/source/tree.h"
#include "format/shard_source.h"

namespace stoker::data {

struct LintItem {
  std::uint32_t split = 0;
  std::int64_t label = -1;
  std::uint64_t bytes = 0;
  bool is_image = false;
  // Where it lies; what these mean is up to the list.
  std::uint32_t folder = 0;  ///< or shard of its split
  std::uint64_t place = 0;
  std::uint32_t which = 0;  ///< of its sample's files
};

class LintItems {
 public:
  virtual ~LintItems() = default;
  const std::vector<LintItem>& items() const { return items_; }
  const std::vector<std::string>& splits() const { return splits_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  /// What one may not expect of the source, each in a sentence.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Corrupt where a dataset's copy is not as packed.
  virtual Status read(const LintItem& item, FileBytes& into) const = 0;
  virtual std::string name(const LintItem& item) const = 0;
  /// The part of the name behind its first dot.
  virtual std::string extension(const LintItem& item) const = 0;
  /// The folder or shard it lies in.
  virtual std::string holder(const LintItem& item) const = 0;
  virtual const formats::Manifest* manifest() const { return nullptr; }

 protected:
  std::vector<LintItem> items_;
  std::vector<std::string> splits_;
  std::vector<std::string> classes_;
  std::vector<LeftOut> left_out_;
  std::vector<std::string> notes_;
};

/// A dataset where there is a manifest, else a source.
Result<std::unique_ptr<LintItems>> open_items(const SourceOptions& options, Progress& progress);

}  // namespace stoker::data
