// What `stoker data pack` and `data convert` share: the options --shards, --shard-size, --labels,
// --compression and --zarr-version, and the plan that is printed before anything is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/arguments.h"
#include "data/pack/pack.h"

namespace stoker::cli {

class ShardOptions {
 public:
  void declare(Arguments& arguments);
  /// Into `options`, whose format is set. Invalid "<command>: --shards: 0 is not between 1 and 999999", and
  /// likewise for the others.
  Status apply(std::string_view command, data::PackOptions& options) const;

 private:
  std::optional<std::int64_t> shards_;
  std::optional<ByteCount> shard_size_;
  std::string labels_ = "index";
  std::string compression_ = "none";
  std::optional<std::int64_t> zarr_version_;
};

/// Nothing, or Invalid "<command>: <option>: 0 is not between 1 and <most>".
Status in_range(std::string_view command, std::string_view option, std::optional<std::int64_t> value,
                std::int64_t most);

/// Lists the source and decides the shards, and prints that; `doing` begins the first line: "packing".
Result<data::PackPlan> announced_plan(const Result<data::PackOptions>& options, std::string_view doing,
                                      Progress& progress, Output& out);

}  // namespace stoker::cli
