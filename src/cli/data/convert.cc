// `stoker data convert SOURCE OUT --format KIND`: docs/commands/data-convert.md
#include <array>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/report/pack_report.h"
#include "cli/data/shard_options.h"
#include "cli/data/table_arguments.h"
#include "cli/data/threads.h"
#include "cli/output.h"
#include "pack/pack.h"
#include "pack/verify.h"
#include "sources/shards/shards.h"

namespace stoker::cli {
namespace {

struct ConvertOptions {
  static constexpr std::array<std::string_view, 5> kFormats = {"tar", "tfrecord", "parquet", "hdf5", "zarr"};

  std::string source;
  std::string out;
  std::string format;
  ShardOptions shards;
  TableArguments table;
  ThreadsOption threads;
  bool is_dry_run = false;
};

Result<pack::PackOptions> to_pack_options(const ConvertOptions& o) {
  constexpr std::array<pack::ShardFormat, 5> kKinds = {pack::ShardFormat::tar, pack::ShardFormat::tfrecord,
                                                       pack::ShardFormat::parquet, pack::ShardFormat::hdf5,
                                                       pack::ShardFormat::zarr};
  STOKER_ASSIGN_OR_RETURN(kind, parse_choice("data convert", "--format", o.format, ConvertOptions::kFormats));
  STOKER_ASSIGN_OR_RETURN(threads, o.threads.count("data convert"));
  pack::PackOptions options;
  options.source.where = o.source;
  options.source.threads = threads;
  options.source.allows_lists = false;
  options.out = o.out;
  options.order = pack::SampleOrder::source;
  options.check = pack::ImageCheck::keep_broken;
  options.format = kKinds[kind];
  options.threads = threads;
  STOKER_RETURN_IF_ERROR(o.shards.apply("data convert", options));
  STOKER_ASSIGN_OR_RETURN(table, o.table.options("data convert"));
  options.source.table = std::move(table);
  if (!path_exists(o.source)) return not_found("{}: no such dataset or shards", printable(o.source));
  STOKER_ASSIGN_OR_RETURN(has_shards, sources::is_shard_source(options.source));
  if (has_shards) return options;
  return invalid("{}: neither a dataset nor shards (tar, TFRecord, Parquet, HDF5, Zarr)", printable(o.source))
      .cure("stoker data pack {} {} --format {}", shell_quote(o.source), shell_quote(o.out), o.format);
}

std::string plan_json(const pack::PackPlan& plan) {
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < plan.sizing.size(); ++i) {
    splits.push_back({{"name", plan.source.splits[i]},
                      {"samples", plan.sizing[i].samples},
                      {"shards", plan.sizing[i].shards}});
  }
  return json_text(nlohmann::ordered_json{{"source", printable(plan.dataset_plan.source)},
                                          {"format", plan.dataset_plan.container},
                                          {"splits", splits},
                                          {"notes", plan.source.notes},
                                          {"skipped_fields", plan.source.skipped_fields},
                                          {"table", table_json(plan.source.table)}});
}

}  // namespace

int data_convert(std::span<const std::string> words, Output& out) {
  ConvertOptions o;
  Arguments arguments("data convert", "Convert a dataset's samples, in order, to a different shard format.");
  arguments.positional("SOURCE", &o.source, "Dataset, or a folder of shards from a different tool");
  arguments.positional("OUT", &o.out,
                       "Folder of the new dataset: new, empty, or of an interrupted conversion");
  arguments.option("--format", &o.format, "KIND",
                   "Set the shard format: tar, tfrecord, parquet, hdf5 or zarr");
  arguments.choices(ConvertOptions::kFormats);
  o.shards.declare(arguments);
  o.table.declare(arguments);
  o.threads.declare(arguments, "Use N threads; the output does not depend on N (default: all cores)");
  arguments.flag("--dry-run", &o.is_dry_run,
                 "Print the plan and the parts that cannot be converted, write nothing");
  arguments.example("stoker data convert imagenet-tfrecord/ imagenet --format tar");
  arguments.example(
      "stoker data convert flowers.parquet flowers --format tar --tensor features=petal_*,sepal_*:float32 "
      "--label species");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check_no_empty_arguments("data convert", words); !status.ok())
    return out.fail(status);

  install_stop_signals();
  auto progress = out.progress("");
  const Result<pack::PackPlan> plan = plan_and_print(to_pack_options(o), "converting", *progress, out);
  if (!plan.ok()) return out.fail(plan.error());
  if (o.is_dry_run) {
    progress.reset();
    out.json(plan_json(*plan));
    return exit_code::kOk;
  }
  const Result<pack::PackSummary> summary = pack::run_pack(*plan, *progress);
  if (!summary.ok()) return out.fail(summary.error());
  const auto report =
      pack::verify_dataset(plan->options.out, pack::VerifyDepth::bytes, plan->options.threads, *progress);
  progress.reset();
  if (!report.ok()) return out.fail(report.error());
  if (report->damages > 0) {
    return out.fail(corrupt("{}: {} damaged, first {} in {}", printable(o.out),
                            counted(report->damages, "sample"), report->damaged[0].sample,
                            report->damaged[0].shard));
  }
  print_summary(*plan, *summary, out);
  out.line("  verified: every byte");
  nlohmann::ordered_json json = describe(*plan, *summary);
  json["verified"] = true;
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
