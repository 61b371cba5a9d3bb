// `stoker data convert SOURCE OUT --format KIND`: docs/commands/data-convert.md
#include <array>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/report/pack_report.h"
#include "cli/data/shard_options.h"
#include "cli/data/table_words.h"
#include "cli/data/threads.h"
#include "cli/output.h"
#include "data/pack/pack.h"
#include "data/pack/source/tree.h"
#include "data/pack/verify.h"

namespace stoker::cli {
namespace {

struct ConvertOptions {
  std::string source;
  std::string out;
  std::string format;
  ShardOptions shards;
  TableWords table;
  Threads threads;
  bool is_dry_run = false;
};

Result<data::PackOptions> to_pack_options(const ConvertOptions& o) {
  constexpr std::array<std::string_view, 5> kFormats = {"tar", "tfrecord", "parquet", "hdf5", "zarr"};
  constexpr std::array<data::ShardFormat, 5> kKinds = {data::ShardFormat::tar, data::ShardFormat::tfrecord,
                                                       data::ShardFormat::parquet, data::ShardFormat::hdf5,
                                                       data::ShardFormat::zarr};
  OK_OR_RETURN(kind, choice("data convert", "--format", o.format, kFormats));
  OK_OR_RETURN(threads, o.threads.count("data convert"));
  data::PackOptions options;
  options.source.where = o.source;
  options.source.threads = threads;
  options.out = o.out;
  options.order = data::SampleOrder::source;
  options.check = data::ImageCheck::carry;
  options.format = kKinds[kind];
  options.threads = threads;
  RETURN_IF_ERROR(o.shards.apply("data convert", options));
  OK_OR_RETURN(table, o.table.options("data convert"));
  options.source.table = std::move(table);
  if (!path_exists(o.source)) return not_found("{}: no such dataset or shards", printable(o.source));
  OK_OR_RETURN(has_shards, data::is_source_of_shards(options.source));
  if (has_shards) return options;
  return invalid("{}: is neither a dataset nor shards (tar, TFRecord, Parquet, HDF5, Zarr)",
                 printable(o.source))
      .cure("stoker data pack {} {} --format {}", shell_quote(o.source), shell_quote(o.out), o.format);
}

std::string plan_json(const data::PackPlan& plan) {
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < plan.sizing.size(); ++i) {
    splits.push_back({{"name", plan.source.splits[i]},
                      {"samples", plan.sizing[i].samples},
                      {"shards", plan.sizing[i].shards}});
  }
  return json_text(nlohmann::ordered_json{{"source", printable(plan.outline.source)},
                                          {"format", plan.outline.container},
                                          {"splits", splits},
                                          {"not_carried", plan.source.not_carried},
                                          {"table", table_json(plan.source.table)}});
}

}  // namespace

int data_convert(std::span<const std::string> words, Output& out) {
  ConvertOptions o;
  Arguments arguments("data convert",
                      "Writes a dataset's samples, in their order, into shards of another kind.");
  arguments.positional("SOURCE", &o.source, "a dataset, or a folder of other tools' shards");
  arguments.positional("OUT", &o.out,
                       "the new dataset's folder: new or empty, or one where this was interrupted");
  arguments.option("--format", &o.format, "KIND", "tar, tfrecord, parquet, hdf5 or zarr");
  o.shards.declare(arguments);
  o.table.declare(arguments);
  o.threads.declare(arguments, "threads; the result is the same for any (default: the cores)");
  arguments.flag("--dry-run", &o.is_dry_run,
                 "say what would be written and what cannot be carried, and stop");
  arguments.example("stoker data convert imagenet-tfrecord/ imagenet --format tar");
  arguments.example(
      "stoker data convert flowers.parquet flowers --format tar --tensor features=petal_*,sepal_*:float32 "
      "--label species");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = no_empty_words("data convert", words); !status.ok()) return out.fail(status);

  install_stop_signals();
  auto progress = out.progress("");
  const Result<data::PackPlan> plan = announced_plan(to_pack_options(o), "converting", *progress, out);
  if (!plan.ok()) return out.fail(plan.error());
  if (o.is_dry_run) {
    progress.reset();
    out.json(plan_json(*plan));
    return exit_code::kOk;
  }
  const Result<data::PackSummary> summary = data::run_pack(*plan, *progress);
  if (!summary.ok()) return out.fail(summary.error());
  const auto report =
      data::verify_dataset(plan->options.out, data::VerifyDepth::bytes, plan->options.threads, *progress);
  progress.reset();
  if (!report.ok()) return out.fail(report.error());
  if (report->damages > 0) {
    return out.fail(corrupt("{}: {} of it is not as written: the first is {} in {}", printable(o.out),
                            grouped(report->damages), report->damaged[0].sample, report->damaged[0].shard));
  }
  print_summary(*plan, *summary, out);
  out.line("  read back: every byte as written");
  nlohmann::ordered_json json = describe(*plan, *summary);
  json["verified"] = true;
  out.json(json_text(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
