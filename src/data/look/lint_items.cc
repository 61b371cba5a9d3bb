#include "data/look/lint_items.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kReadLimit = 1u << 30;

class SourceItems final : public LintItems {
 public:
  explicit SourceItems(Source source) : source_(std::move(source)) {
    splits_ = source_.splits;
    classes_ = source_.classes;
    left_out_ = source_.left_out;
    notes_ = source_.notes;
    for (std::uint32_t split = 0; split < source_.splits.size(); ++split) {
      for (const SourceSample& sample : source_.samples[split]) {
        for (std::uint32_t i = 0; i < sample.files; ++i) {
          const SourceFile& file = source_.file(sample, i);
          items_.push_back({.split = split,
                            .label = sample.label,
                            .bytes = file.bytes,
                            .is_image = is_image_extension(extension_of(file.name)),
                            .folder = sample.folder,
                            .place = sample.first + i,
                            .which = i});
        }
      }
    }
  }
  Status read(const LintItem& item, FileBytes& into) const override {
    if (item.bytes > kReadLimit) return invalid("larger than 1 GiB");
    return source_.tree->read(source_.folders[item.folder].path, file(item), into);
  }
  std::string name(const LintItem& item) const override {
    return source_.path_of(source_.folders[item.folder], file(item));
  }
  std::string extension(const LintItem& item) const override { return extension_of(file(item).name); }
  std::string holder(const LintItem& item) const override { return source_.folders[item.folder].path; }

 private:
  const SourceFile& file(const LintItem& item) const {
    return source_.folders[item.folder].files[item.place];
  }
  Source source_;
};

class DatasetItems final : public LintItems {
 public:
  Status open(const Path& folder) {
    OK_OR_RETURN(manifest, formats::read_manifest(folder));
    manifest_ = std::move(manifest);
    classes_ = manifest_.schema.classes;
    for (std::uint32_t split = 0; split < manifest_.splits.size(); ++split) {
      splits_.push_back(manifest_.splits[split].name);
      OK_OR_RETURN(source, formats::LocalShardSource::open(folder, splits_.back()));
      const formats::SampleTable& samples = source->samples();
      for (std::uint64_t s = 0; s < samples.size(); ++s) {
        for (std::uint32_t c = 0; c < samples.component_count(s); ++c) {
          const formats::Locator at = samples.locate(s, c);
          items_.push_back({.split = split,
                            .label = samples.label(s).value_or(-1),
                            .bytes = at.length,
                            .is_image = samples.components()[at.component].is_image,
                            .folder = at.shard,
                            .place = s,
                            .which = c});
        }
      }
      sources_.push_back(std::move(source));
    }
    return {};
  }
  Status read(const LintItem& item, FileBytes& into) const override {
    if (item.bytes > kReadLimit) return invalid("larger than 1 GiB");
    const formats::ShardSource& source = *sources_[item.split];
    const formats::Locator at = source.samples().locate(item.place, item.which);
    RETURN_IF_ERROR(source.read(at.shard, at.offset, into.resize(at.length)));
    return source.check(item.place, at, into.bytes());
  }
  std::string name(const LintItem& item) const override {
    return format("{}: {}.{}", splits_[item.split], sources_[item.split]->samples().key(item.place),
                  extension(item));
  }
  std::string extension(const LintItem& item) const override {
    const formats::SampleTable& samples = sources_[item.split]->samples();
    return samples.components()[samples.locate(item.place, item.which).component].name;
  }
  std::string holder(const LintItem& item) const override {
    return manifest_.splits[item.split].shards[item.folder].file;
  }
  const formats::Manifest* manifest() const override { return &manifest_; }

 private:
  formats::Manifest manifest_;
  std::vector<std::unique_ptr<formats::LocalShardSource>> sources_;
};

}  // namespace

Result<std::unique_ptr<LintItems>> open_items(const SourceOptions& options, Progress& progress) {
  if (path_exists(Path(options.where) / formats::kManifestFile)) {
    auto items = std::make_unique<DatasetItems>();
    RETURN_IF_ERROR(items->open(options.where));
    return std::unique_ptr<LintItems>(std::move(items));
  }
  OK_OR_RETURN(source, list_source(options, progress));
  return std::unique_ptr<LintItems>(std::make_unique<SourceItems>(std::move(source)));
}

}  // namespace stoker::data
