#include <algorithm>
#include <iterator>

#include "base/hash.h"
#include "data/pack/choose.h"
#include "data/pack/dvc/dvc.h"
#include "data/pack/pack.h"
#include "data/pack/source/tree.h"
#include "data/pack/workspace.h"

namespace stoker::data {

namespace {

// Numbers and texts of the plan on their way into its fingerprint.
class Fingerprint {
 public:
  void add(std::uint64_t number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof number);
    flush(kEnough);
  }
  void add(std::string_view text) {
    add(text.size());
    text_ += text;
  }
  std::string finish() {
    flush(0);
    return hex(hash_.finish());
  }

 private:
  static constexpr std::size_t kEnough = 1u << 16;
  void flush(std::size_t enough) {
    if (text_.size() < enough) return;
    hash_.update(text_);
    text_.clear();
  }
  std::string text_;
  Sha256 hash_;
};

// Everything that decides the result, file by file. Not the number of threads or parts, nor where the output
// goes. On a machine with another byte order the plan of this one counts as another plan.
std::string fingerprint_of(const PackPlan& plan) {
  Fingerprint print;
  const PackOptions& o = plan.options;
  print.add("pack 3");
  print.add(static_cast<std::uint64_t>(o.source.layout));
  print.add(static_cast<std::uint64_t>(o.order));
  print.add(static_cast<std::uint64_t>(o.check));
  print.add(static_cast<std::uint64_t>(o.labels));
  print.add(static_cast<std::uint64_t>(o.jpeg));
  print.add(static_cast<std::uint64_t>(o.hash));
  print.add(static_cast<std::uint64_t>(plan.container));
  print.add(static_cast<std::uint64_t>(o.shrink.shorter_side.value_or(0)));
  print.add(static_cast<std::uint64_t>(o.shrink.quality.value_or(0)));
  print.add(static_cast<std::uint64_t>(plan.source.has_label_files));
  if (o.source.table.is_set()) print.add(o.source.table.fingerprint());
  for (const std::string& name : plan.source.classes) print.add(name);
  for (const ShardSpec& shard : plan.shards) {
    print.add(shard.file);
    for (const SourceSample& sample : shard.samples) {
      print.add(plan.source.folders[sample.folder].path);
      print.add(static_cast<std::uint64_t>(sample.label));
      for (std::uint32_t i = 0; i < sample.files; ++i) {
        const SourceFile& file = plan.source.file(sample, i);
        print.add(file.name);
        print.add(file.bytes);
        print.add(static_cast<std::uint64_t>(file.modified_ns));
      }
    }
  }
  return print.finish();
}

Status check_places(const PackOptions& options) {
  std::error_code ignored;
  const Path source = std::filesystem::weakly_canonical(options.source.where, ignored);
  const Path out = std::filesystem::weakly_canonical(options.out, ignored);
  for (Path above = out; above.has_relative_path(); above = above.parent_path()) {
    if (above == source) {
      return invalid("{}: lies inside {}, which is to be packed", printable(options.out.string()),
                     printable(options.source.where));
    }
  }
  return {};
}

// What there is of the folders above the output, the deepest: on the filesystem that has room for the
// dataset.
Path scratch_beside(const Path& out) {
  std::error_code ignored;
  Path folder = std::filesystem::absolute(out, ignored);
  while (folder.has_relative_path() && !folder_exists(folder)) folder = folder.parent_path();
  return folder;
}

// A source's own "<key>.json" would meet the label's.
Status check_label_members(const Source& source) {
  for (const SourceFolder& folder : source.folders) {
    for (const SourceFile& file : folder.files) {
      if (extension_of(file.name) != "json") continue;
      return invalid("{}: would stand where the label is to go (--labels json)",
                     source.tree->shown(source.path_of(folder, file)));
    }
  }
  return {};
}

// A mask that is not resized with its picture would no longer fit it, and a resized one would no longer hold
// classes.
Status check_single_images(const Source& source) {
  for (const std::vector<SourceSample>& split : source.samples) {
    for (const SourceSample& sample : split) {
      int images = 0;
      for (std::uint32_t i = 0; i < sample.files; ++i)
        images += is_image_extension(extension_of(source.file(sample, i).name)) ? 1 : 0;
      if (images <= 1) continue;
      return invalid("{}: sample '{}' has {} images, which would no longer fit each other (--resize)",
                     source.tree->shown(""), printable(source.key(sample)), images);
    }
  }
  return {};
}

Outline outline_of(const PackPlan& plan) {
  Outline outline;
  outline.source = plan.options.source.where == "-" ? "standard input" : plan.options.source.where;
  outline.splits = plan.source.splits;
  outline.classes = plan.source.classes;
  outline.has_labels = plan.source.has_labels();
  outline.hash = plan.options.hash;
  outline.container = to_text(plan.container);
  outline.is_strict = plan.options.is_strict;
  outline.most_left_out_percent = plan.options.most_left_out_percent;
  outline.files = plan.source.files;
  outline.parts = plan.options.part.value_or(PackPart{}).of;
  outline.left_out = plan.source.left_out;
  outline.version = plan.version;
  for (const SplitSizing& sizing : plan.sizing) outline.shard_bytes += sizing.bytes;
  for (const ShardSpec& shard : plan.shards) outline.shards.push_back({shard.file, shard.split});
  outline.fingerprint = fingerprint_of(plan);
  return outline;
}

// Of the source, if DVC says it; of a dataset else that of what it was packed from.
Result<std::optional<formats::SourceVersion>> version_of(const PackOptions& options, Progress& progress) {
  using Version = std::optional<formats::SourceVersion>;
  const std::string& where = options.source.where;
  if (options.dvc == DvcUse::off || where == "-") return Version();
  OK_OR_RETURN(dvc, dvc_of(where));
  if (!dvc) {
    const bool is_dataset = path_exists(Path(where) / formats::kManifestFile);
    const Result<formats::Manifest> manifest =
        is_dataset ? formats::read_manifest(where) : Result<formats::Manifest>(formats::Manifest());
    return manifest.ok() ? manifest->source : Version();
  }
  const DvcDepth depth = options.dvc == DvcUse::full ? DvcDepth::bytes : DvcDepth::sizes;
  OK_OR_RETURN(compared, compare_with_dvc(where, *dvc, depth, options.threads, progress));
  if (!compared.difference.empty())
    return invalid("{}: {} (--dvc)", printable(where), compared.difference).cure("{}", dvc_cure(where, *dvc));
  if (options.dvc == DvcUse::sizes || compared.ignored_by.empty()) return Version(dvc->version);
  return invalid("{}: cannot be compared: {} leaves files out, only dvc can tell which (--dvc full)",
                 printable(where), compared.ignored_by)
      .cure("dvc status {}", shell_quote(dvc->stage.empty() ? dvc->version.file : dvc->stage));
}

}  // namespace

Result<PackPlan> plan_pack(const PackOptions& options, Progress& progress) {
  RETURN_IF_ERROR(check_places(options));
  RETURN_IF_ERROR(Workspace::check_output(options.out));
  PackPlan plan{.options = options, .source = {}, .shards = {}, .sizing = {}, .outline = {}};
  SourceOptions listing = options.source;
  if (listing.scratch.empty()) listing.scratch = scratch_beside(options.out);
  OK_OR_RETURN(source, list_source(listing, progress));
  plan.source = std::move(source);
  OK_OR_RETURN(version, version_of(options, progress));
  plan.version = std::move(version);
  const std::string name = printable(options.source.where);
  if (options.order == SampleOrder::stratified && plan.source.classes.empty() &&
      !plan.source.has_number_labels) {
    return invalid("{}: has no classes before its files are read (--order stratified)", name);
  }
  if (options.labels == LabelMembers::json) RETURN_IF_ERROR(check_label_members(plan.source));
  RETURN_IF_ERROR(check_label_kind(options));
  if (options.shrink.shorter_side) RETURN_IF_ERROR(check_single_images(plan.source));
  std::vector<SampleBytes> bytes(plan.source.splits.size());
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    for (const SourceSample& sample : plan.source.samples[split])
      bytes[split].add(sample_bytes(plan.source, sample, options.labels));
  }
  RETURN_IF_ERROR(choose_container(bytes, plan));
  for (std::uint32_t split = 0; split < plan.source.splits.size(); ++split) {
    const std::vector<SourceSample>& samples = plan.source.samples[split];
    Result<SplitSizing> sizing = size_split(format("{}: split '{}'", name, plan.source.splits[split]),
                                            samples.size(), bytes[split].in(plan.container), options.sizing);
    if (!sizing.ok()) return sizing.status();
    for (const SourceSample& sample : samples) sizing->files += sample.files;
    std::vector<ShardSpec> shards =
        deal(plan.source, split, sizing->shards, {options.order, options.source.seed, plan.container});
    std::move(shards.begin(), shards.end(), std::back_inserter(plan.shards));
    plan.sizing.push_back(std::move(*sizing));
  }
  plan.outline = outline_of(plan);
  return plan;
}

}  // namespace stoker::data
