#include "cli/data/shard_options.h"

#include "cli/data/choice.h"
#include "cli/data/report/pack_report.h"
#include "cli/output.h"

namespace stoker::cli {

void ShardOptions::declare(Arguments& arguments) {
  arguments.option("--shards", &shards_, "N", "Write N shards per split (default: automatic)");
  arguments.option("--shard-size", &shard_size_, "SIZE", "Set the approximate shard size");
  arguments.option(
      "--labels", &labels_, "KIND",
      "Store labels: index (only there); cls, json (also in each sample, for readers without the index)");
  arguments.choices(kLabels);
  arguments.option("--compression", &compression_, "KIND",
                   "Set compression: none; auto (none, and measure what compression would save and cost)");
  arguments.choices(kCompression);
  arguments.option("--zarr-version", &zarr_version_, "2|3",
                   "Set the Zarr version; 2 for zarr-python 2 (default: 3)");
}

Status ShardOptions::apply(std::string_view command, pack::PackOptions& options) const {
  STOKER_ASSIGN_OR_RETURN(labels, parse_choice(command, "--labels", labels_, kLabels));
  STOKER_ASSIGN_OR_RETURN(compression, parse_choice(command, "--compression", compression_, kCompression));
  options.tries_compression = compression == 1;
  STOKER_RETURN_IF_ERROR(check_range(command, "--shards", shards_, 999'999));
  if (shards_ && shard_size_) return invalid("{}: --shards and --shard-size: give one of them", command);
  if (shard_size_ && shard_size_->value == 0)
    return invalid("{}: --shard-size: 0 bytes hold no sample", command);
  if (zarr_version_ && *zarr_version_ != 2 && *zarr_version_ != 3)
    return invalid("{}: --zarr-version: {} is neither 2 nor 3", command, *zarr_version_);
  if (zarr_version_ && options.format != pack::ShardFormat::zarr)
    return invalid("{}: --zarr-version requires --format zarr", command);
  if (zarr_version_ == 2) options.format = pack::ShardFormat::zarr_2;
  options.labels = static_cast<pack::LabelMembers>(labels);
  options.sizing.shards = shards_;
  options.sizing.shard_size = shard_size_;
  return {};
}

Status check_range(std::string_view command, std::string_view option, std::optional<std::int64_t> value,
                   std::int64_t most) {
  if (!value || (*value >= 1 && *value <= most)) return {};
  return invalid("{}: {}: {} is not between 1 and {}", command, option, *value, most);
}

Result<pack::PackPlan> plan_and_print(const Result<pack::PackOptions>& options, std::string_view doing,
                                      Progress& progress, Output& out) {
  if (!options.ok()) return options.error();
  STOKER_ASSIGN_OR_RETURN(plan, pack::plan_pack(*options, progress));
  if (options->tries_compression) {
    STOKER_ASSIGN_OR_RETURN(advice, pack::advise_compression(plan.source, progress));
    plan.compression = std::move(advice);
  }
  print_plan(plan, doing, out);
  return std::move(plan);
}

}  // namespace stoker::cli
