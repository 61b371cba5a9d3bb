#include "data/pack/shard/shard_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/hash.h"
#include "data/pack/shard/block_file.h"
#include "data/pack/shard/container.h"
#include "data/pack/source/tree.h"
#include "format/side_index.h"

namespace stoker::data {

namespace {

using formats::SectionBuilder;

// A thread writes one shard after the other: the pages that files are read into are paid for once, but for
// those of the largest files.
ReadSample& spare_sample() {
  thread_local ReadSample sample;
  return sample;
}

void keep_memory(ReadSample sample) {
  constexpr std::size_t kMostKept = 16u << 20;
  sample.drop_larger_than(kMostKept);
  spare_sample() = std::move(sample);
}

class Writer final : public ShardWriting {
 public:
  Writer(const PackPlan& plan, std::shared_ptr<ReadAhead> samples, BlockFile file)
      : plan_(plan),
        samples_(std::move(samples)),
        file_(std::move(file)),
        container_(Container::make(plan.container, plan.columns, file_)),
        section_(plan.source.has_labels() ? SectionBuilder::Labels::int64 : SectionBuilder::Labels::none),
        own_(std::move(spare_sample())) {}
  ~Writer() override { keep_memory(std::move(own_)); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool is_complete() const override { return samples_->is_over(); }
  Status write_next() override {
    const SourceSample& from = samples_->upcoming();
    ReadSample& sample = samples_->next(own_);
    RETURN_IF_ERROR(sample.status);
    if (!sample.left_out.empty()) {
      std::move(sample.left_out.begin(), sample.left_out.end(), std::back_inserter(left_out_));
      return {};
    }
    images_.add(sample.images);
    return write_members(from, sample);
  }
  Sha256Lane& lane() override { return file_.lane(); }

  Result<ShardFacts> finish() override {
    RETURN_IF_ERROR(container_->finish());
    RETURN_IF_ERROR(file_.finish());
    section_.place(container_->late_offsets());
    ShardFacts facts;
    facts.bytes = file_.bytes();
    facts.samples = section_.samples();
    facts.blocks = file_.blocks();
    facts.images = images_;
    facts.left_out = std::move(left_out_);
    facts.section = section_.encode(facts.bytes, formats::shard_hash(facts.blocks));
    return facts;
  }

 private:
  // The image by itself first, so that the first image of a sample is the picture and not its mask.
  static void sort_members(std::span<ReadFile> files) {
    const auto rank = [](const ReadFile& file) { return is_picture(file.extension) ? 0 : 1; };
    std::sort(files.begin(), files.end(), [&](const ReadFile& a, const ReadFile& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.extension < b.extension;
    });
  }

  Status write_members(const SourceSample& from, ReadSample& sample) {
    const SourceFolder& folder = plan_.source.folders[from.folder];
    entry_.key = plan_.source.key(from);
    entry_.label = from.label;
    entry_.components.clear();
    files_.clear();
    places_.clear();
    if (sample.files().size() > 1) sort_members(sample.files());
    for (const ReadFile& file : sample.files()) {
      if (file.extension == "cls") {
        RETURN_IF_ERROR(read_label(folder, file, entry_.label));
      } else {
        OK_OR_RETURN(found, packed(folder, file));
        files_.push_back(std::move(found));
      }
    }
    if (files_.empty()) {
      return invalid("{}: sample '{}' is a label file and nothing else", plan_.source.tree->shown(""),
                     printable(entry_.key));
    }
    RETURN_IF_ERROR(container_->add(entry_.key, files_, label(), places_));
    for (std::size_t i = 0; i < files_.size(); ++i) {
      entry_.components.push_back({.offset = places_[i].offset,
                                   .length = files_[i].size,
                                   .crc32c = places_[i].crc32c,
                                   .name = section_.name(files_[i].extension)});
    }
    section_.add(entry_);
    return {};
  }

  PackedLabel label() const {
    if (entry_.label < 0) return {};
    PackedLabel label{.number = entry_.label, .extension = {}, .text = {}};
    if (plan_.options.labels == LabelMembers::index || plan_.container != ContainerKind::tar) return label;
    const bool is_json = plan_.options.labels == LabelMembers::json;
    label.extension = is_json ? "json" : "cls";
    label.text = is_json ? label_json(plan_.source.classes, entry_.label) : std::to_string(entry_.label);
    return label;
  }

  std::string shown(const SourceFolder& folder, const ReadFile& file) const {
    return plan_.source.tree->shown(plan_.source.path_of(folder, *file.file));
  }

  Status read_label(const SourceFolder& folder, const ReadFile& file, std::int64_t& label) const {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    if (file.is_held && parse_number(trim(text), &label) && label >= 0) return {};
    return invalid("{}: label '{}' is not a natural number", shown(folder, file),
                   printable(text.substr(0, 20)));
  }

  Result<PackedFile> packed(const SourceFolder& folder, const ReadFile& file) const {
    if (file.is_held) {
      return PackedFile{
          .extension = file.extension, .size = file.bytes().size(), .bytes = file.bytes(), .read = nullptr};
    }
    if (!plan_.source.tree->has_parts(*file.file)) {
      return invalid("{}: is compressed and has {} bytes (at most 1 GiB)", shown(folder, file),
                     file.file->bytes);
    }
    return PackedFile{.extension = file.extension,
                      .size = file.file->bytes,
                      .bytes = {},
                      .read = [this, &folder, &file](std::uint64_t at, std::span<std::byte> out) -> Status {
                        if (!samples_->reader().goes_on()) return cancelled("stopped");
                        return plan_.source.tree->read_part(folder.path, *file.file, at, out);
                      }};
  }

  const PackPlan& plan_;
  const std::shared_ptr<ReadAhead> samples_;
  BlockFile file_;
  std::unique_ptr<Container> container_;
  SectionBuilder section_;
  formats::ImageStatistics images_;
  std::vector<LeftOut> left_out_;
  ReadSample own_;
  formats::SampleEntry entry_;
  std::vector<PackedFile> files_;
  std::vector<PackedPlace> places_;
};

}  // namespace

Result<std::unique_ptr<ShardWriting>> ShardWriting::begin(const PackPlan& plan,
                                                          std::shared_ptr<ReadAhead> samples,
                                                          const Path& path, Hashing hashing) {
  OK_OR_RETURN(file, BlockFile::create(path, plan.options.hash, hashing));
  return std::unique_ptr<ShardWriting>(std::make_unique<Writer>(plan, std::move(samples), std::move(file)));
}

}  // namespace stoker::data
