// `stoker data pack SOURCE OUT`: docs/commands/data-pack.md
#include "data/pack/pack.h"

#include <array>

#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/data/choice.h"
#include "cli/data/readers.h"
#include "cli/data/report/pack_report.h"
#include "cli/data/shard_options.h"
#include "cli/data/table_words.h"
#include "cli/data/threads.h"
#include "cli/output.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kCommand = "data pack";

struct PackRequest {
  std::string source;
  std::string out;
  std::string layout = "images";
  std::string order = "shuffle";
  std::string check = "scan";
  std::string jpeg = "keep";
  std::string format = "tar";
  std::string hash = "sha256";
  std::string dvc = "sizes";
  std::string most_left_out = "1%";
  std::string split;
  std::string readers;
  std::string part;
  ShardOptions shards;
  TableWords table;
  std::optional<std::int64_t> seed;
  Threads threads;
  std::optional<std::int64_t> metadata_rate;
  std::optional<std::int64_t> resize;
  std::optional<std::int64_t> quality;
  bool is_strict = false;
};

// "12.5%", or "0.125" where a plain share is allowed.
std::optional<double> percent(std::string_view text) {
  double value = 0;
  if (!text.ends_with('%') || !parse_number(trim(text.substr(0, text.size() - 1)), &value))
    return std::nullopt;
  return value >= 0 && value <= 100 ? std::optional(value) : std::nullopt;
}

Result<double> most_left_out(std::string_view text) {
  if (const std::optional<double> value = percent(text)) return *value;
  return invalid("data pack: --most-left-out: '{}' is not a percentage (as in 1% or 0.5%)", printable(text));
}

// "train=90%,val=10%"
Result<std::vector<data::SplitShare>> split_shares(std::string_view text) {
  std::vector<data::SplitShare> shares;
  if (text.empty()) return shares;
  double sum = 0;
  for (std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = trim(part.substr(0, equals));
    const std::string_view number = equals == std::string_view::npos ? "" : trim(part.substr(equals + 1));
    double share = 0;
    const bool is_share = parse_number(number, &share) && share >= 0 && share <= 1;
    const std::optional<double> hundredths = percent(number);
    const bool is_name = !name.empty() && name.find_first_not_of(
                                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                              "0123456789_-") == std::string_view::npos;
    if (!is_name || (!is_share && !hundredths)) {
      return invalid("data pack: --split: '{}' is not NAME=SHARE (as in train=90%,val=10%)", printable(part));
    }
    for (const data::SplitShare& other : shares) {
      if (other.name == name) return invalid("data pack: --split: '{}' is there twice", name);
    }
    shares.push_back({std::string(name), hundredths ? *hundredths / 100 : share});
    sum += shares.back().share;
  }
  if (sum < 0.999999 || sum > 1.000001) {
    return invalid("data pack: --split: the shares add up to {:.4g} %, not to 100 %", 100 * sum);
  }
  return shares;
}

// "2/8"
Result<std::optional<data::PackPart>> part_of(std::string_view text) {
  if (text.empty()) return std::optional<data::PackPart>();
  const std::size_t slash = text.find('/');
  std::int64_t number = 0;
  std::int64_t of = 0;
  if (slash == std::string_view::npos || !parse_number(text.substr(0, slash), &number) ||
      !parse_number(text.substr(slash + 1), &of) || number < 1 || of < number || of > 9999) {
    return invalid("data pack: --part: '{}' is not I/N with I from 1 to N (as in 2/8)", printable(text));
  }
  return std::optional(
      data::PackPart{.number = static_cast<std::uint32_t>(number), .of = static_cast<std::uint32_t>(of)});
}

Result<data::SourceOptions> to_source_options(const PackRequest& o) {
  constexpr std::array<std::string_view, 2> kLayouts = {"images", "files"};
  OK_OR_RETURN(layout, choice(kCommand, "--layout", o.layout, kLayouts));
  OK_OR_RETURN(splits, split_shares(o.split));
  OK_OR_RETURN(threads, o.threads.count(kCommand));
  RETURN_IF_ERROR(in_range(kCommand, "--metadata-rate", o.metadata_rate, 100'000'000));
  if (o.seed && *o.seed < 0) return invalid("data pack: --seed: {} is negative", *o.seed);
  return data::SourceOptions{.where = o.source,
                             .layout = static_cast<data::SourceLayout>(layout),
                             .splits = splits,
                             .seed = static_cast<std::uint64_t>(o.seed.value_or(0)),
                             .threads = threads,
                             .metadata_per_s = static_cast<double>(o.metadata_rate.value_or(0))};
}

Result<data::PackOptions> to_pack_options(const PackRequest& o) {
  constexpr std::array<std::string_view, 3> kOrders = {"shuffle", "source", "stratified"};
  constexpr std::array<std::string_view, 2> kChecks = {"scan", "decode"};
  constexpr std::array<std::string_view, 3> kJpeg = {"keep", "baseline", "restart"};
  constexpr std::array<std::string_view, 6> kFormats = {"auto", "tar", "tfrecord", "parquet", "hdf5", "zarr"};
  OK_OR_RETURN(source, to_source_options(o));
  OK_OR_RETURN(order, choice(kCommand, "--order", o.order, kOrders));
  OK_OR_RETURN(check, choice(kCommand, "--check", o.check, kChecks));
  OK_OR_RETURN(jpeg, choice(kCommand, "--jpeg", o.jpeg, kJpeg));
  constexpr std::array<std::string_view, 2> kHashes = {"sha256", "crc32c"};
  OK_OR_RETURN(hash, choice(kCommand, "--hash", o.hash, kHashes));
  OK_OR_RETURN(shard_format, choice(kCommand, "--format", o.format, kFormats));
  constexpr std::array<std::string_view, 3> kDvc = {"sizes", "full", "off"};
  OK_OR_RETURN(dvc, choice(kCommand, "--dvc", o.dvc, kDvc));
  OK_OR_RETURN(most, most_left_out(o.most_left_out));
  OK_OR_RETURN(wanted, parse_readers(kCommand, o.readers));
  OK_OR_RETURN(part, part_of(o.part));
  RETURN_IF_ERROR(in_range(kCommand, "--resize", o.resize, 65'535));
  RETURN_IF_ERROR(in_range(kCommand, "--quality", o.quality, 100));
  data::Shrinking shrink;
  if (o.resize) shrink.shorter_side = static_cast<std::uint32_t>(*o.resize);
  if (o.quality) shrink.quality = static_cast<int>(*o.quality);
  data::PackOptions options{
      .source = source,
      .out = o.out,
      .order = static_cast<data::SampleOrder>(order),
      .check = static_cast<data::ImageCheck>(check),
      .jpeg = static_cast<data::JpegMode>(jpeg),
      .hash = static_cast<formats::BlockHash>(hash),
      .shrink = shrink,
      .format = static_cast<data::ShardFormat>(shard_format),
      .dvc = static_cast<data::DvcUse>(dvc),
      .sizing = {.readers = wanted, .is_text = source.layout == data::SourceLayout::files},
      .is_strict = o.is_strict,
      .most_left_out_percent = most,
      .threads = source.threads,
      .part = part};
  RETURN_IF_ERROR(o.shards.apply(kCommand, options));
  OK_OR_RETURN(table, o.table.options(kCommand));
  options.source.table = std::move(table);
  return options;
}

void declare(Arguments& arguments, PackRequest& o) {
  arguments.positional(
      "SOURCE", &o.source,
      "a folder (one folder per class, perhaps in train/, val/, test/), a tar or zip archive, "
      "a dataset or other tools' shards, a list (.csv, .tsv, .parquet), or - for paths on standard input");
  arguments.positional("OUT", &o.out,
                       "the dataset's folder: new or empty, or one where packing was interrupted");
  arguments.option("--split", &o.split, "NAME=SHARE,...",
                   "divides the samples, class by class: train=90%,val=10%");
  arguments.option("--for", &o.readers, "ranks=N,workers=N",
                   "the job that will read: each reader gets its own shards");
  o.shards.declare(arguments);
  o.table.declare(arguments);
  arguments.option(
      "--order", &o.order, "KIND",
      "shuffle: classes mixed in every shard; stratified: evenly; source: by name, or as listed");
  arguments.option("--seed", &o.seed, "N", "of --order and --split");
  arguments.option("--jpeg", &o.jpeg, "KIND",
                   "keep; baseline: progressive ones turned; restart: restart markers; pixels never change");
  arguments.option("--resize", &o.resize, "PIXELS", "lossy: larger images get so many on their shorter side");
  arguments.option("--quality", &o.quality, "1-100",
                   "lossy: JPEG and WebP files are encoded anew (resized ones: 90)");
  arguments.option("--format", &o.format, "KIND",
                   "tar; tfrecord, parquet, hdf5, zarr: less overhead, for tiny files; auto: by their sizes");
  arguments.option("--hash", &o.hash, "KIND",
                   "of shards' blocks: sha256; crc32c: faster, and tells damage but no forgery");
  arguments.option("--dvc", &o.dvc, "KIND",
                   "how SOURCE is compared with what DVC says of it: sizes (number and size of files); full: "
                   "MD5 too; off");
  arguments.option("--layout", &o.layout, "KIND",
                   "images: one per sample, with the files of its basename; files: any files, by basename");
  arguments.option("--check", &o.check, "KIND", "scan: each image's structure; decode: every pixel too");
  arguments.flag("--strict", &o.is_strict, "a file that must be left out is an error");
  arguments.option("--most-left-out", &o.most_left_out, "PERCENT",
                   "more files left out than this are an error");
  o.threads.declare(arguments, "threads; the result is the same for any (default: the cores)");
  arguments.option("--metadata-rate", &o.metadata_rate, "N",
                   "files looked at or opened in a second, at most");
  arguments.option("--part", &o.part, "I/N", "one of N processes on any hosts; then: stoker data merge OUT");
  arguments.example("stoker data pack photos/ photos-s");
  arguments.example("stoker data pack photos/ photos-s --split train=90%,val=10% --labels cls");
}

void print_part(const data::PackPlan& plan, const data::PackSummary& summary, Output& out) {
  const std::string name = printable(plan.options.out.string());
  out.line("{}: part {}/{}: {} of {} shards are packed", name, plan.options.part->number,
           plan.options.part->of, grouped(summary.shards_done), grouped(plan.shards.size()));
  out.line("  next, when all parts are: stoker data merge {}", shell_quote(plan.options.out.string()));
  const nlohmann::ordered_json json = {{"dataset", name},
                                       {"part", plan.options.part->number},
                                       {"parts", plan.options.part->of},
                                       {"shards_done", summary.shards_done},
                                       {"shards", plan.shards.size()},
                                       {"shards_done_before", summary.shards_kept}};
  out.json(json_text(json));
}

}  // namespace

int data_pack(std::span<const std::string> words, Output& out) {
  PackRequest o;
  Arguments arguments("data pack", "Turns images into a dataset: shards, an index and a manifest.");
  declare(arguments, o);
  if (const auto code = arguments.parse(words, out)) return *code;
  if (const Status status = no_empty_words(kCommand, words); !status.ok()) return out.fail(status);

  install_stop_signals();
  auto progress = out.progress("");
  const Result<data::PackPlan> plan = announced_plan(to_pack_options(o), "packing", *progress, out);
  if (!plan.ok()) return out.fail(plan.error());
  const Result<data::PackSummary> summary = data::run_pack(*plan, *progress);
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
