#include "cli/data/shard_options.h"

#include <array>

#include "cli/data/choice.h"
#include "cli/data/report/pack_report.h"
#include "cli/output.h"

namespace stoker::cli {

void ShardOptions::declare(Arguments& arguments) {
  arguments.option("--shards", &shards_, "N", "how many shards each split gets (default: chosen, and why)");
  arguments.option("--shard-size", &shard_size_, "SIZE", "about how large a shard becomes");
  arguments.option("--labels", &labels_, "KIND",
                   "index: only there; cls, json: also as members of tar, for readers that know no index");
  arguments.option(
      "--compression", &compression_, "KIND",
      "none: shards hold files as they are; auto: the same, and what compressing would save and cost");
  arguments.option("--zarr-version", &zarr_version_, "2|3",
                   "with --format zarr: 2 for zarr-python before 3 and its relatives (default: 3)");
}

Status ShardOptions::apply(std::string_view command, data::PackOptions& options) const {
  constexpr std::array<std::string_view, 3> kLabels = {"index", "cls", "json"};
  OK_OR_RETURN(labels, choice(command, "--labels", labels_, kLabels));
  constexpr std::array<std::string_view, 2> kCompression = {"none", "auto"};
  OK_OR_RETURN(compression, choice(command, "--compression", compression_, kCompression));
  options.tries_compression = compression == 1;
  RETURN_IF_ERROR(in_range(command, "--shards", shards_, 999'999));
  if (shards_ && shard_size_) return invalid("{}: --shards and --shard-size: give one of them", command);
  if (shard_size_ && shard_size_->value == 0)
    return invalid("{}: --shard-size: 0 bytes hold no sample", command);
  if (zarr_version_ && *zarr_version_ != 2 && *zarr_version_ != 3)
    return invalid("{}: --zarr-version: {} is neither 2 nor 3", command, *zarr_version_);
  if (zarr_version_ && options.format != data::ShardFormat::zarr)
    return invalid("{}: --zarr-version goes with --format zarr", command);
  if (zarr_version_ == 2) options.format = data::ShardFormat::zarr_2;
  options.labels = static_cast<data::LabelMembers>(labels);
  options.sizing.shards = shards_;
  options.sizing.shard_size = shard_size_;
  return {};
}

Status in_range(std::string_view command, std::string_view option, std::optional<std::int64_t> value,
                std::int64_t most) {
  if (!value || (*value >= 1 && *value <= most)) return {};
  return invalid("{}: {}: {} is not between 1 and {}", command, option, *value, most);
}

Result<data::PackPlan> announced_plan(const Result<data::PackOptions>& options, std::string_view doing,
                                      Progress& progress, Output& out) {
  if (!options.ok()) return options.error();
  OK_OR_RETURN(plan, data::plan_pack(*options, progress));
  if (options->tries_compression) {
    OK_OR_RETURN(advice, data::advise_compression(plan.source, progress));
    plan.compression = std::move(advice);
  }
  print_plan(plan, doing, out);
  return std::move(plan);
}

}  // namespace stoker::cli
