// `stoker data pack SOURCE OUT`: docs/commands/data-pack.md
#include "pack/pack.h"

#include <array>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/pack_arguments.h"
#include "cli/data/readers.h"
#include "cli/data/report/pack_report.h"
#include "cli/data/shard_options.h"
#include "cli/data/table_arguments.h"
#include "cli/data/threads.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kCommand = "data pack";

struct PackRequest {
  static constexpr std::array<std::string_view, 2> kLayouts = {"images", "files"};
  static constexpr std::array<std::string_view, 3> kOrders = {"shuffle", "source", "stratified"};
  static constexpr std::array<std::string_view, 2> kChecks = {"scan", "decode"};
  static constexpr std::array<std::string_view, 3> kJpeg = {"keep", "baseline", "restart"};
  static constexpr std::array<std::string_view, 6> kFormats = {"auto",    "tar",  "tfrecord",
                                                               "parquet", "hdf5", "zarr"};
  static constexpr std::array<std::string_view, 2> kHashes = {"sha256", "crc32c"};
  static constexpr std::array<std::string_view, 3> kDvc = {"sizes", "full", "off"};

  std::string source;
  std::string out;
  std::string layout = "images";
  std::string order = "shuffle";
  std::string check = "scan";
  std::string jpeg = "keep";
  std::string format = "tar";
  std::string hash = "sha256";
  std::string dvc = "sizes";
  std::string max_left_out = "1%";
  std::string split;
  std::string readers;
  std::string part;
  ShardOptions shards;
  TableArguments table;
  std::optional<std::int64_t> seed;
  ThreadsOption threads;
  std::optional<std::int64_t> metadata_rate;
  std::optional<std::int64_t> resize;
  std::optional<std::int64_t> quality;
  bool is_strict = false;
};

Result<sources::SourceOptions> to_source_options(const PackRequest& o) {
  STOKER_ASSIGN_OR_RETURN(layout, parse_choice(kCommand, "--layout", o.layout, PackRequest::kLayouts));
  STOKER_ASSIGN_OR_RETURN(splits, parse_split_shares(o.split));
  STOKER_ASSIGN_OR_RETURN(threads, o.threads.count(kCommand));
  STOKER_RETURN_IF_ERROR(check_range(kCommand, "--metadata-rate", o.metadata_rate, 100'000'000));
  if (o.seed && *o.seed < 0) return invalid("data pack: --seed: {} is negative", *o.seed);
  return sources::SourceOptions{.where = o.source,
                                .layout = static_cast<sources::SourceLayout>(layout),
                                .splits = splits,
                                .seed = static_cast<std::uint64_t>(o.seed.value_or(0)),
                                .threads = threads,
                                .metadata_per_s = static_cast<double>(o.metadata_rate.value_or(0))};
}

Result<pack::PackOptions> to_pack_options(const PackRequest& o) {
  STOKER_ASSIGN_OR_RETURN(source, to_source_options(o));
  STOKER_ASSIGN_OR_RETURN(order, parse_choice(kCommand, "--order", o.order, PackRequest::kOrders));
  STOKER_ASSIGN_OR_RETURN(check, parse_choice(kCommand, "--check", o.check, PackRequest::kChecks));
  STOKER_ASSIGN_OR_RETURN(jpeg, parse_choice(kCommand, "--jpeg", o.jpeg, PackRequest::kJpeg));
  STOKER_ASSIGN_OR_RETURN(hash, parse_choice(kCommand, "--hash", o.hash, PackRequest::kHashes));
  STOKER_ASSIGN_OR_RETURN(shard_format, parse_choice(kCommand, "--format", o.format, PackRequest::kFormats));
  STOKER_ASSIGN_OR_RETURN(dvc, parse_choice(kCommand, "--dvc", o.dvc, PackRequest::kDvc));
  STOKER_ASSIGN_OR_RETURN(most, parse_max_left_out(o.max_left_out));
  STOKER_ASSIGN_OR_RETURN(wanted, parse_readers(kCommand, o.readers));
  STOKER_ASSIGN_OR_RETURN(part, parse_part(o.part));
  STOKER_RETURN_IF_ERROR(check_range(kCommand, "--resize", o.resize, 65'535));
  STOKER_RETURN_IF_ERROR(check_range(kCommand, "--quality", o.quality, 100));
  pack::ReencodeOptions reencode;
  if (o.resize) reencode.shorter_side = static_cast<std::uint32_t>(*o.resize);
  if (o.quality) reencode.quality = static_cast<int>(*o.quality);
  pack::PackOptions options{
      .source = source,
      .out = o.out,
      .order = static_cast<pack::SampleOrder>(order),
      .check = static_cast<pack::ImageCheck>(check),
      .jpeg = static_cast<pack::JpegMode>(jpeg),
      .hash = static_cast<dataset::BlockHash>(hash),
      .reencode = reencode,
      .format = static_cast<pack::ShardFormat>(shard_format),
      .dvc = static_cast<pack::DvcCheck>(dvc),
      .sizing = {.readers = wanted, .is_text = source.layout == sources::SourceLayout::files},
      .is_strict = o.is_strict,
      .max_left_out_percent = most,
      .threads = source.threads,
      .part = part};
  STOKER_RETURN_IF_ERROR(o.shards.apply(kCommand, options));
  STOKER_ASSIGN_OR_RETURN(table, o.table.options(kCommand));
  options.source.table = std::move(table);
  return options;
}

void declare(Arguments& arguments, PackRequest& o) {
  arguments.positional(
      "SOURCE", &o.source,
      "Folder (one folder per class, optionally in train/, val/, test/), tar or zip archive, dataset or "
      "third-party shards, list (.csv, .tsv, .parquet), or - for paths on standard input");
  arguments.positional("OUT", &o.out, "Folder of the dataset: new, empty, or of an interrupted packing");
  arguments.option("--split", &o.split, "NAME=SHARE,...", "Split the samples per class: train=90%,val=10%");
  arguments.option("--for", &o.readers, "ranks=N,workers=N",
                   "Write at least one shard per reader of this job");
  o.shards.declare(arguments);
  o.table.declare(arguments);
  arguments.option(
      "--order", &o.order, "KIND",
      "Set the sample order: shuffle; stratified (classes evenly mixed); source (by name or as listed)");
  arguments.choices(PackRequest::kOrders);
  arguments.option("--seed", &o.seed, "N", "Seed --order and --split");
  arguments.option(
      "--jpeg", &o.jpeg, "KIND",
      "Convert JPEGs without loss: keep; baseline (from progressive); restart (add restart markers)");
  arguments.choices(PackRequest::kJpeg);
  arguments.option("--resize", &o.resize, "PIXELS", "Shrink larger images to this shorter side (lossy)");
  arguments.option("--quality", &o.quality, "1-100",
                   "Re-encode JPEG and WebP files with this quality (lossy; resized images: 90)");
  arguments.option(
      "--format", &o.format, "KIND",
      "Set the shard format: tar; tfrecord, parquet, hdf5, zarr (less overhead for tiny files); auto");
  arguments.choices(PackRequest::kFormats);
  arguments.option("--hash", &o.hash, "KIND",
                   "Hash shard blocks: sha256; crc32c (faster, detects damage but not tampering)");
  arguments.choices(PackRequest::kHashes);
  arguments.option(
      "--dvc", &o.dvc, "KIND",
      "Compare SOURCE with its DVC file: sizes (number and size of files); full (also MD5); off");
  arguments.choices(PackRequest::kDvc);
  arguments.option(
      "--layout", &o.layout, "KIND",
      "Group files into samples: images (one image and the files with its basename); files (by basename)");
  arguments.choices(PackRequest::kLayouts);
  arguments.option("--check", &o.check, "KIND", "Check images: scan (structure); decode (every pixel)");
  arguments.choices(PackRequest::kChecks);
  arguments.flag("--strict", &o.is_strict, "Fail if any file must be left out");
  arguments.option("--max-left-out", &o.max_left_out, "PERCENT", "Fail if more files than this are left out");
  o.threads.declare(arguments, "Use N threads; the output does not depend on N (default: all cores)");
  arguments.option("--metadata-rate", &o.metadata_rate, "N", "Open or stat at most N files per second");
  arguments.option("--part", &o.part, "I/N",
                   "Pack part I of N, on any host; then run: stoker data merge OUT");
  arguments.example("stoker data pack photos/ photos-s");
  arguments.example("stoker data pack photos/ photos-s --split train=90%,val=10% --labels cls");
}

void print_part(const pack::PackPlan& plan, const pack::PackSummary& summary, Output& out) {
  const std::string name = printable(plan.options.out.string());
  out.line("{}: part {}/{}: {} of {} shards are packed", name, plan.options.part->number,
           plan.options.part->count, grouped(summary.shards_done), grouped(plan.shards.size()));
  out.line("  next, when all parts are packed: stoker data merge {}", shell_quote(plan.options.out.string()));
  const nlohmann::ordered_json json = {{"dataset", name},
                                       {"part", plan.options.part->number},
                                       {"parts", plan.options.part->count},
                                       {"shards_done", summary.shards_done},
                                       {"shards", plan.shards.size()},
                                       {"shards_done_before", summary.shards_kept}};
  out.json(json_text(json));
}

}  // namespace

int data_pack(std::span<const std::string> words, Output& out) {
  PackRequest o;
  Arguments arguments("data pack", "Pack images into a dataset: shards, an index and a manifest.");
  declare(arguments, o);
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = check_no_empty_arguments(kCommand, words); !status.ok()) return out.fail(status);

  install_stop_signals();
  auto progress = out.progress("");
  const Result<pack::PackPlan> plan = plan_and_print(to_pack_options(o), "packing", *progress, out);
  if (!plan.ok()) return out.fail(plan.error());
  const Result<pack::PackSummary> summary = pack::run_pack(*plan, *progress);
  progress.reset();
  if (!summary.ok()) return out.fail(summary.error());
  if (plan->options.part && summary->manifest.version.empty()) {
    print_part(*plan, *summary, out);
    return exit_code::kOk;
  }
  print_summary(*plan, *summary, out);
  out.json(json_text(describe(*plan, *summary)));
  return exit_code::kOk;
}

}  // namespace stoker::cli
