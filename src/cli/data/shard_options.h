// Shared by `stoker data pack` and `data convert`: the options --shards, --shard-size, --labels,
// --compression and --zarr-version, and the plan, printed before any output is written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/arguments.h"
#include "pack/pack.h"
#include "stoker/bytes.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::cli {

class ShardOptions {
 public:
  void declare(Arguments& arguments);
  /// Applies the options to `options`, whose format is set. Invalid "<command>: --shards: 0 is not between 1
  /// and 999999".
  Status apply(std::string_view command, pack::PackOptions& options) const;

 private:
  static constexpr std::array<std::string_view, 3> kLabels = {"index", "cls", "json"};
  static constexpr std::array<std::string_view, 2> kCompression = {"none", "auto"};

  std::optional<std::int64_t> shards_;
  std::optional<ByteCount> shard_size_;
  std::string labels_ = "index";
  std::string compression_ = "none";
  std::optional<std::int64_t> zarr_version_;
};

/// Ok, or Invalid "<command>: <option>: 0 is not between 1 and <most>".
Status check_range(std::string_view command, std::string_view option, std::optional<std::int64_t> value,
                   std::int64_t most);

/// Lists the source, plans the shards and prints the plan; `doing` begins the first line: "packing".
Result<pack::PackPlan> plan_and_print(const Result<pack::PackOptions>& options, std::string_view doing,
                                      Progress& progress, Output& out);

}  // namespace stoker::cli
