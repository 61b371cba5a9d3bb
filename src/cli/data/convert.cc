// `stoker data convert SOURCE OUT --format KIND`: docs/commands/data-convert.md
#include <algorithm>
#include <array>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/pack_report.h"
#include "cli/data/threads.h"
#include "cli/json.h"
#include "cli/output.h"
#include "data/pack/pack.h"
#include "data/pack/source/tree.h"
#include "data/pack/verify.h"

namespace stoker::cli {
namespace {

struct Options {
  std::string source;
  std::string out;
  std::string format;
  std::string labels = "index";
  std::optional<std::int64_t> shards;
  std::optional<ByteCount> shard_size;
  Threads threads;
  bool is_dry_run = false;
};

Result<std::size_t> choice(std::string_view option, std::string_view word,
                           std::span<const std::string_view> choices) {
  const auto found = std::find(choices.begin(), choices.end(), word);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  if (word.empty())
    return invalid("data convert: {}: is needed ({})", option,
                   join(std::vector<std::string>(choices.begin(), choices.end()), ", "));
  return invalid("data convert: {}: unknown value '{}'{}", option, printable(word),
                 suggestion(word, choices));
}

Result<data::PackOptions> to_pack_options(const Options& o) {
  constexpr std::array<std::string_view, 3> kFormats = {"tar", "tfrecord", "parquet"};
  constexpr std::array<data::ShardFormat, 3> kKinds = {data::ShardFormat::tar, data::ShardFormat::tfrecord,
                                                       data::ShardFormat::parquet};
  constexpr std::array<std::string_view, 3> kLabels = {"index", "cls", "json"};
  OK_OR_RETURN(kind, choice("--format", o.format, kFormats));
  OK_OR_RETURN(labels, choice("--labels", o.labels, kLabels));
  OK_OR_RETURN(threads, o.threads.count("data convert"));
  if (o.shards && (*o.shards < 1 || *o.shards > 999'999))
    return invalid("data convert: --shards: {} is not between 1 and 999999", *o.shards);
  if (o.shards && o.shard_size) return invalid("data convert: --shards and --shard-size: give one of them");
  if (o.shard_size && o.shard_size->value == 0)
    return invalid("data convert: --shard-size: 0 bytes hold no sample");
  data::PackOptions options;
  options.source.where = o.source;
  options.source.threads = threads;
  options.out = o.out;
  options.order = data::SampleOrder::source;
  options.check = data::ImageCheck::carry;
  options.labels = static_cast<data::LabelMembers>(labels);
  options.format = kKinds[kind];
  options.sizing.shards = o.shards;
  options.sizing.shard_size = o.shard_size;
  options.threads = threads;
  if (!path_exists(o.source)) return not_found("{}: no such dataset or shards", printable(o.source));
  OK_OR_RETURN(has_shards, data::is_source_of_shards(options.source));
  if (has_shards) return options;
  return invalid("{}: is neither a dataset nor shards (tar, TFRecord, Parquet)", printable(o.source))
      .cure("stoker data pack {} {} --format {}", shell_quote(o.source), shell_quote(o.out), o.format);
}

std::string plan_json(const data::PackPlan& plan) {
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < plan.sizing.size(); ++i) {
    splits.push_back({{"name", plan.source.splits[i]},
                      {"samples", plan.sizing[i].samples},
                      {"shards", plan.sizing[i].shards}});
  }
  return dump({{"source", printable(plan.outline.source)},
               {"format", plan.outline.container},
               {"splits", splits},
               {"not_carried", plan.source.not_carried}});
}

}  // namespace

int data_convert(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("data convert",
                      "Writes a dataset's samples, in their order, into shards of another kind.");
  arguments.positional("SOURCE", &o.source, "a dataset, or a folder of other tools' shards");
  arguments.positional("OUT", &o.out,
                       "the new dataset's folder: new or empty, or one where this was interrupted");
  arguments.option("--format", &o.format, "KIND", "tar, tfrecord or parquet");
  arguments.option("--shards", &o.shards, "N", "how many shards each split gets (default: chosen, and why)");
  arguments.option("--shard-size", &o.shard_size, "SIZE", "about how large a shard becomes");
  arguments.option("--labels", &o.labels, "KIND",
                   "index: only there; cls, json: also as members of tar, for readers that know no index");
  o.threads.declare(arguments, "threads; the result is the same for any (default: the cores)");
  arguments.flag("--dry-run", &o.is_dry_run,
                 "say what would be written and what cannot be carried, and stop");
  arguments.example("stoker data convert imagenet-tfrecord/ imagenet --format tar");
  if (const auto code = arguments.parse(words, out)) return *code;

  const Result<data::PackOptions> options = to_pack_options(o);
  if (!options.ok()) return out.fail(options.error());
  install_stop_signals();
  auto progress = out.progress("");
  const Result<data::PackPlan> plan = data::plan_pack(*options, *progress);
  if (!plan.ok()) return out.fail(plan.error());
  print_plan(*plan, "converting", out);
  if (o.is_dry_run) {
    progress.reset();
    out.json(plan_json(*plan));
    return exit_code::kOk;
  }
  const Result<data::PackSummary> summary = data::run_pack(*plan, *progress);
  if (!summary.ok()) return out.fail(summary.error());
  const auto report =
      data::verify_dataset(options->out, data::VerifyDepth::bytes, options->threads, *progress);
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
  out.json(dump(json));
  return exit_code::kOk;
}

}  // namespace stoker::cli
