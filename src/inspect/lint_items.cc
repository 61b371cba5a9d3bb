#include "inspect/lint_items.h"

#include "sources/merged_names.h"

namespace stoker::inspect {

namespace {

constexpr std::uint64_t kReadLimit = 1u << 30;

class SourceItems final : public LintItems {
 public:
  explicit SourceItems(sources::PackSource source) : source_(std::move(source)) {
    splits_ = source_.splits;
    classes_ = source_.classes;
    left_out_ = source_.left_out;
    notes_ = source_.notes;
    for (std::uint32_t split = 0; split < source_.splits.size(); ++split) {
      for (const sources::SourceSample& sample : source_.samples[split]) {
        for (std::uint32_t i = 0; i < sample.files; ++i) {
          const sources::SourceFile& file = source_.file(sample, i);
          items_.push_back({.split = split,
                            .label = sample.label,
                            .bytes = file.bytes,
                            .is_image = sources::is_image_extension(sources::extension_of(file.name)),
                            .folder = sample.folder,
                            .place = sample.first + i,
                            .component = i});
        }
      }
    }
  }
  Status read(const LintItem& item, sources::FileBytes& into) const override {
    if (item.bytes > kReadLimit) return invalid("larger than 1 GiB");
    return source_.tree->read(source_.folders[item.folder].path, file(item), into);
  }
  std::string name(const LintItem& item) const override {
    return source_.path_of(source_.folders[item.folder], file(item));
  }
  std::string extension(const LintItem& item) const override {
    return sources::extension_of(file(item).name);
  }
  std::string parent(const LintItem& item) const override { return source_.folders[item.folder].path; }

 private:
  const sources::SourceFile& file(const LintItem& item) const {
    return source_.folders[item.folder].files[item.place];
  }
  sources::PackSource source_;
};

class DatasetItems final : public LintItems {
 public:
  Status open(const Path& folder) {
    STOKER_ASSIGN_OR_RETURN(manifest, dataset::read_manifest(folder));
    manifest_ = std::move(manifest);
    classes_ = manifest_.schema.classes;
    sources::MergedNames merged;
    std::vector<std::string_view> extensions;
    for (std::uint32_t split = 0; split < manifest_.splits.size(); ++split) {
      splits_.push_back(manifest_.splits[split].name);
      STOKER_ASSIGN_OR_RETURN(source, dataset::LocalShardSource::open(folder, splits_.back()));
      const dataset::SampleTable& samples = source->samples();
      for (std::uint64_t s = 0; s < samples.size(); ++s) {
        extensions.clear();
        for (std::uint32_t c = 0; c < samples.component_count(s); ++c) {
          const dataset::Locator at = samples.locate(s, c);
          extensions.push_back(samples.components()[at.component].name);
          items_.push_back({.split = split,
                            .label = samples.label(s).value_or(-1),
                            .bytes = at.length,
                            .is_image = samples.components()[at.component].is_image,
                            .folder = at.shard,
                            .place = s,
                            .component = c});
        }
        merged.add(samples.key(s), extensions);
      }
      sources_.push_back(std::move(source));
    }
    if (std::string note = merged.note(); !note.empty()) notes_.push_back(std::move(note));
    return {};
  }
  Status read(const LintItem& item, sources::FileBytes& into) const override {
    if (item.bytes > kReadLimit) return invalid("larger than 1 GiB");
    const dataset::ShardSource& source = *sources_[item.split];
    const dataset::Locator at = source.samples().locate(item.place, item.component);
    STOKER_RETURN_IF_ERROR(source.read(at.shard, at.offset, into.resize(at.length)));
    return source.check(item.place, at, into.bytes());
  }
  std::string name(const LintItem& item) const override {
    return format("{}: {}.{}", splits_[item.split], sources_[item.split]->samples().key(item.place),
                  extension(item));
  }
  std::string extension(const LintItem& item) const override {
    const dataset::SampleTable& samples = sources_[item.split]->samples();
    return samples.components()[samples.locate(item.place, item.component).component].name;
  }
  std::string parent(const LintItem& item) const override {
    return manifest_.splits[item.split].shards[item.folder].file;
  }
  const dataset::Manifest* manifest() const override { return &manifest_; }

 private:
  dataset::Manifest manifest_;
  std::vector<std::unique_ptr<dataset::LocalShardSource>> sources_;
};

}  // namespace

Result<std::unique_ptr<LintItems>> open_items(const sources::SourceOptions& options, Progress& progress) {
  if (path_exists(Path(options.where) / dataset::kManifestFile)) {
    auto items = std::make_unique<DatasetItems>();
    STOKER_RETURN_IF_ERROR(items->open(options.where));
    return std::unique_ptr<LintItems>(std::move(items));
  }
  STOKER_ASSIGN_OR_RETURN(source, list_source(options, progress));
  return std::unique_ptr<LintItems>(std::make_unique<SourceItems>(std::move(source)));
}

}  // namespace stoker::inspect
