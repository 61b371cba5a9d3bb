// `stoker data pack DIR OUT`: docs/commands/data-pack.md
#include "data/pack/pack.h"

#include <algorithm>
#include <array>
#include <thread>

#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

struct Options {
  std::string source;
  std::string out;
  std::string layout = "images";
  std::string order = "shuffled";
  std::string check = "scan";
  std::string most_left_out = "1%";
  std::optional<ByteCount> shard_size;
  std::optional<std::int64_t> shards;
  std::optional<std::int64_t> threads;
  bool is_strict = false;
};

// The position of `word` among `choices`.
Result<std::size_t> choice(std::string_view option, std::string_view word,
                           std::span<const std::string_view> choices) {
  const auto found = std::find(choices.begin(), choices.end(), word);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  return invalid("data pack: {}: unknown value '{}'{}", option, printable(word), suggestion(word, choices));
}

Result<double> percent(std::string_view text) {
  double value = 0;
  if (text.ends_with('%') && parse_number(trim(text.substr(0, text.size() - 1)), &value) && value >= 0 &&
      value <= 100) {
    return value;
  }
  return invalid("data pack: --most-left-out: '{}' is not a percentage (as in 1% or 0.5%)", printable(text));
}

Status in_range(std::string_view option, std::optional<std::int64_t> value, std::int64_t most) {
  if (!value || (*value >= 1 && *value <= most)) return {};
  return invalid("data pack: {}: {} is not between 1 and {}", option, *value, most);
}

Result<data::PackOptions> to_pack_options(const Options& o) {
  constexpr std::array<std::string_view, 2> kLayouts = {"images", "files"};
  constexpr std::array<std::string_view, 2> kOrders = {"shuffled", "sorted"};
  constexpr std::array<std::string_view, 2> kChecks = {"scan", "decode"};
  OK_OR_RETURN(layout, choice("--layout", o.layout, kLayouts));
  OK_OR_RETURN(order, choice("--order", o.order, kOrders));
  OK_OR_RETURN(check, choice("--check", o.check, kChecks));
  OK_OR_RETURN(most, percent(o.most_left_out));
  RETURN_IF_ERROR(in_range("-j,--jobs", o.threads, 256));
  RETURN_IF_ERROR(in_range("--shards", o.shards, 999'999));
  if (o.shards && o.shard_size) return invalid("data pack: --shards and --shard-size: give one of them");
  if (o.shard_size && o.shard_size->value == 0)
    return invalid("data pack: --shard-size: 0 bytes hold no sample");
  const auto cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  return data::PackOptions{.source = o.source,
                           .out = o.out,
                           .layout = static_cast<data::SourceLayout>(layout),
                           .order = static_cast<data::SampleOrder>(order),
                           .check = static_cast<data::ImageCheck>(check),
                           .sizing = {.shards = o.shards, .shard_size = o.shard_size},
                           .is_strict = o.is_strict,
                           .most_left_out_percent = most,
                           .threads = o.threads ? static_cast<int>(*o.threads) : cores};
}

std::string plural(std::uint64_t count, std::string_view one, std::string_view many) {
  return format("{} {}", grouped(count), count == 1 ? one : many);
}

std::string shards_text(const data::SplitSizing& sizing) {
  return format("{} of {} ({})", plural(sizing.shards, "shard", "shards"),
                rounded({sizing.bytes / sizing.shards}), sizing.reason);
}

void print_plan(const data::PackPlan& plan, Output& out) {
  const data::Source& source = plan.source;
  std::string what = format("packing {}: {}", printable(plan.options.source.string()),
                            plural(source.files, "file", "files"));
  if (!source.classes.empty()) what += format(" in {}", plural(source.classes.size(), "class", "classes"));
  what += format(", {}", rounded({source.bytes}));
  if (plan.sizing.size() == 1) {
    out.line("{} → {}", what, shards_text(plan.sizing[0]));
    return;
  }
  out.line("{}", what);
  std::size_t widest = 0;
  for (const std::string& name : source.splits) widest = std::max(widest, name.size());
  for (std::size_t i = 0; i < plan.sizing.size(); ++i) {
    out.line("  {:<{}}  {} → {}", source.splits[i], widest, plural(plan.sizing[i].files, "file", "files"),
             shards_text(plan.sizing[i]));
  }
}

void print_summary(const data::PackPlan& plan, const data::PackSummary& summary, Output& out) {
  const formats::Manifest& manifest = summary.manifest;
  const std::string name = printable(plan.options.out.string());
  if (summary.was_restarted)
    out.line("  an unfinished packing of other input or options was there: begun anew");
  if (summary.shards_kept > 0) {
    out.line("  {} of {} shards were done before", grouped(summary.shards_kept),
             grouped(manifest.shard_count()));
  }
  out.line("{}: {}, {}, {}, version {}", name, plural(manifest.samples(), "sample", "samples"),
           plural(manifest.shard_count(), "shard", "shards"), rounded({manifest.bytes()}),
           manifest.short_version());
  if (summary.left_out > 0) {
    out.line("  {} left out: {} (list: {}/left-out.csv)", plural(summary.left_out, "file", "files"),
             data::left_out_text(manifest.left_out), name);
  }
  if (manifest.images.progressive > 0) {
    out.line("  progressive JPEGs: {}, decoded about 3x slower", grouped(manifest.images.progressive));
  }
}

std::string to_json(const data::PackPlan& plan, const data::PackSummary& summary) {
  const formats::Manifest& manifest = summary.manifest;
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < manifest.splits.size(); ++i) {
    const formats::SplitInfo& split = manifest.splits[i];
    std::uint64_t bytes = 0;
    for (const formats::ShardInfo& shard : split.shards) bytes += shard.bytes;
    splits.push_back({{"name", split.name},
                      {"samples", split.samples},
                      {"shards", split.shards.size()},
                      {"bytes", bytes},
                      {"why_so_many_shards", plan.sizing[i].reason}});
  }
  const nlohmann::ordered_json json = {{"dataset", printable(plan.options.out.string())},
                                       {"version", manifest.version},
                                       {"samples", manifest.samples()},
                                       {"classes", manifest.schema.classes.size()},
                                       {"shards", manifest.shard_count()},
                                       {"bytes", manifest.bytes()},
                                       {"splits", splits},
                                       {"files_left_out", summary.left_out},
                                       {"left_out", manifest.left_out},
                                       {"shards_done_before", summary.shards_kept}};
  return json.dump();
}

}  // namespace

int data_pack(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("data pack",
                      "Turns a folder of images into a dataset: tar shards, an index and a manifest.");
  arguments.positional("DIR", &o.source,
                       "a folder per class, or train/, val/ and test/ with a folder per class");
  arguments.positional("OUT", &o.out,
                       "the dataset's folder: new or empty, or one where packing was interrupted");
  arguments.option("--shard-size", &o.shard_size, "SIZE",
                   "about how large a shard becomes (default: chosen, and why)");
  arguments.option("--shards", &o.shards, "N", "how many shards each split gets");
  arguments.option("-j,--jobs", &o.threads, "N",
                   "threads; the result is the same for any (default: the cores)");
  arguments.option("--layout", &o.layout, "KIND",
                   "images: one per sample, with the files of its basename; files: any files, by basename");
  arguments.option("--order", &o.order, "KIND", "shuffled: classes mixed in every shard; sorted: by name");
  arguments.option("--check", &o.check, "KIND", "scan: each image's structure; decode: every pixel too");
  arguments.flag("--strict", &o.is_strict, "a file that must be left out is an error");
  arguments.option("--most-left-out", &o.most_left_out, "PERCENT",
                   "more files left out than this are an error");
  arguments.example("stoker data pack photos/ photos-s");
  if (const auto code = arguments.parse(words, out)) return *code;

  const Result<data::PackOptions> options = to_pack_options(o);
  if (!options.ok()) return out.fail(options.error());
  install_stop_signals();
  auto progress = out.progress("");
  const Result<data::PackPlan> plan = data::plan_pack(*options, *progress);
  if (!plan.ok()) return out.fail(plan.error());
  print_plan(*plan, out);
  const Result<data::PackSummary> summary = data::run_pack(*plan, *progress);
  progress.reset();
  if (!summary.ok()) return out.fail(summary.error());
  print_summary(*plan, *summary, out);
  out.json(to_json(*plan, *summary));
  return exit_code::kOk;
}

}  // namespace stoker::cli
