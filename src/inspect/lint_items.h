// The files that lint checks, from a source or a dataset. Reads are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataset/shard_source.h"
#include "sources/files/tree.h"
#include "stoker/status.h"

namespace stoker::inspect {

struct LintItem {
  std::uint32_t split = 0;
  std::int64_t label = -1;
  std::uint64_t bytes = 0;
  bool is_image = false;
  // Location; the meaning depends on the subclass.
  std::uint32_t folder = 0;  ///< or shard of its split
  std::uint64_t place = 0;
  std::uint32_t component = 0;  ///< number of the file in its sample
};

class LintItems {
 public:
  virtual ~LintItems() = default;
  const std::vector<LintItem>& items() const { return items_; }
  const std::vector<std::string>& splits() const { return splits_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<sources::LeftOut>& left_out() const { return left_out_; }
  /// Unexpected interpretations of the source, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Corrupt if a file of a dataset does not match its index.
  virtual Status read(const LintItem& item, sources::FileBytes& into) const = 0;
  virtual std::string name(const LintItem& item) const = 0;
  /// The part of the name after its first dot.
  virtual std::string extension(const LintItem& item) const = 0;
  /// The folder or shard of the item.
  virtual std::string parent(const LintItem& item) const = 0;
  virtual const dataset::Manifest* manifest() const { return nullptr; }

 protected:
  std::vector<LintItem> items_;
  std::vector<std::string> splits_;
  std::vector<std::string> classes_;
  std::vector<sources::LeftOut> left_out_;
  std::vector<std::string> notes_;
};

/// Opens a dataset if there is a manifest, else a source.
Result<std::unique_ptr<LintItems>> open_items(const sources::SourceOptions& options, Progress& progress);

}  // namespace stoker::inspect
