#include "data/pack/shard/shard_writer.h"

#include <algorithm>

#include "base/hash.h"
#include "data/pack/shard/block_file.h"
#include "data/pack/shard/container.h"
#include "data/pack/shard/image_check.h"
#include "data/pack/shard/jpeg_rewrite.h"
#include "data/pack/source/tree.h"
#include "format/side_index.h"

namespace stoker::data {

namespace {

using formats::SectionBuilder;

constexpr std::uint64_t kWholeFileLimit = 64u << 20;  // larger files that are no image pass through in pieces
constexpr std::uint64_t kImageLimit = 1u << 30;

// One file of the sample at hand.
struct Loaded {
  const SourceFile* file = nullptr;
  std::string extension;
  bool is_image = false;
  bool is_held = false;  // else it is read in pieces when written
  FileBytes content;
  std::span<const std::byte> bytes() const { return content.bytes(); }
};

// A thread writes one shard after the other: the pages that files are read into are paid for once, but for
// those of the largest files.
std::vector<Loaded>& spare_files() {
  thread_local std::vector<Loaded> files;
  return files;
}

void keep_memory(std::vector<Loaded> files) {
  constexpr std::size_t kMostKept = 16u << 20;
  std::erase_if(files, [](const Loaded& loaded) { return loaded.content.capacity() > kMostKept; });
  spare_files() = std::move(files);
}

formats::ImageStatistics statistics_of(const ImageVerdict& verdict, std::string_view extension) {
  const ImageInfo& info = verdict.info;
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  const bool says_jpeg = last == "jpg" || last == "jpeg";
  const bool is_named_well = info.kind == ImageKind::jpeg  ? says_jpeg
                             : info.kind == ImageKind::png ? last == "png"
                                                           : last == "webp";
  const bool is_jpeg = info.kind == ImageKind::jpeg;
  return {.images = 1,
          .progressive = info.progressive ? 1u : 0u,
          .grayscale = info.channels <= 2 ? 1u : 0u,
          .cmyk = is_jpeg && info.channels == 4 ? 1u : 0u,
          .alpha = !is_jpeg && info.channels % 2 == 0 ? 1u : 0u,
          .misnamed = is_named_well ? 0u : 1u,
          .width_min = info.width,
          .width_max = info.width,
          .height_min = info.height,
          .height_max = info.height,
          .pixels = std::uint64_t{info.width} * info.height,
          .channels = verdict.channels};
}

class Writer final : public ShardWriting {
 public:
  Writer(const PackPlan& plan, const ShardSpec& spec, BlockFile file, FileDone done)
      : plan_(plan),
        spec_(spec),
        done_(std::move(done)),
        file_(std::move(file)),
        container_(Container::make(plan.container, plan.columns, file_)),
        section_(plan.source.has_labels() ? SectionBuilder::Labels::int64 : SectionBuilder::Labels::none),
        loaded_(std::move(spare_files())) {}
  ~Writer() override { keep_memory(std::move(loaded_)); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  bool is_complete() const override { return next_ == spec_.samples.size(); }
  Status write_next() override { return write_sample(spec_.samples[next_++]); }
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
  Status write_sample(const SourceSample& sample) {
    const SourceFolder& folder = plan_.source.folders[sample.folder];
    while (loaded_.size() < sample.files) loaded_.emplace_back();
    count_ = sample.files;
    for (std::uint32_t i = 0; i < sample.files; ++i) {
      Loaded& loaded = loaded_[i];
      loaded.file = &plan_.source.file(sample, i);
      loaded.extension = extension_of(loaded.file->name);
      loaded.is_image = is_image_extension(loaded.extension);
      RETURN_IF_ERROR(load(folder, loaded));
      if (!done_(loaded.file->bytes)) return cancelled("stopped");
    }
    formats::ImageStatistics images;
    if (const Loaded* broken = look_at_images(folder, images)) {
      leave_out_rest(folder, *broken);
      return {};
    }
    images_.add(images);
    return write_members(sample, folder);
  }

  // The files of the sample at hand. Their memory stays for the next one.
  std::span<Loaded> loaded() { return std::span(loaded_).first(count_); }

  // Reads a file, or leaves it to be read in pieces.
  Status load(const SourceFolder& folder, Loaded& loaded) {
    const SourceTree& tree = *plan_.source.tree;
    const std::uint64_t size = loaded.file->bytes;
    loaded.is_held = size <= kWholeFileLimit ||
                     (size <= kImageLimit && (loaded.is_image || !tree.has_parts(*loaded.file)));
    return loaded.is_held ? tree.read(folder.path, *loaded.file, loaded.content) : Status();
  }

  // The first image that is not good, or nothing.
  Loaded* look_at_images(const SourceFolder& folder, formats::ImageStatistics& images) {
    for (Loaded& loaded : this->loaded()) {
      if (!loaded.is_image) continue;
      ImageVerdict verdict;
      if (!loaded.is_held) {
        verdict.reason = "too large";
        verdict.detail = "images may have up to 1 GiB";
      } else {
        verdict = plan_.options.check == ImageCheck::decode ? decode_check(loaded.bytes())
                                                            : scan_image(loaded.bytes());
      }
      if (!verdict.is_good && plan_.options.check == ImageCheck::carry) continue;
      if (verdict.is_good) shrink(loaded, verdict, images);
      if (verdict.is_good) rewrite(loaded, verdict);
      if (!verdict.is_good) {
        left_out_.push_back({relative(folder, loaded), std::move(verdict.reason), std::move(verdict.detail)});
        return &loaded;
      }
      images.add(statistics_of(verdict, loaded.extension));
    }
    return nullptr;
  }

  // Makes an image smaller as --resize and --quality say; one that cannot be decoded is broken.
  void shrink(Loaded& loaded, ImageVerdict& verdict, formats::ImageStatistics& images) {
    if (!plan_.options.shrink.is_wanted()) return;
    const auto shrunk = shrink_image(loaded.bytes(), verdict.info, plan_.options.shrink);
    if (!shrunk.ok()) return break_off(verdict, shrunk.status());
    if (!*shrunk) return;
    loaded.content.assign((*shrunk)->bytes);
    verdict.info.width = (*shrunk)->width;
    verdict.info.height = (*shrunk)->height;
    verdict.info.channels = verdict.info.channels == 1 ? 1 : 3;
    verdict.info.progressive = false;
    // The sums are of the pixels that are packed.
    if (plan_.options.check == ImageCheck::decode) verdict.channels = decode_check(loaded.bytes()).channels;
    ++images.encoded_anew;
  }

  static void break_off(ImageVerdict& verdict, const Status& status) {
    verdict = {.is_good = false,
               .info = {},
               .channels = {},
               .reason = "broken",
               .detail = std::string(status.message())};
  }

  // Turns a JPEG as --jpeg says; one that cannot be turned is broken.
  void rewrite(Loaded& loaded, ImageVerdict& verdict) {
    const JpegMode mode = plan_.options.jpeg;
    const bool is_jpeg = verdict.info.kind == ImageKind::jpeg;
    if (!is_jpeg || mode == JpegMode::keep || (mode == JpegMode::baseline && !verdict.info.progressive))
      return;
    const Result<std::vector<std::byte>> turned =
        rewrite_jpeg(loaded.bytes(), mode == JpegMode::restart ? RestartMarkers::some : RestartMarkers::none);
    if (turned.status().code() == Code::invalid) return;  // stays as it is
    if (!turned.ok()) return break_off(verdict, turned.status());
    loaded.content.assign(*turned);
    verdict.info.progressive = false;
  }

  std::string relative(const SourceFolder& folder, const Loaded& loaded) const {
    return plan_.source.path_of(folder, *loaded.file);
  }

  void leave_out_rest(const SourceFolder& folder, const Loaded& broken) {
    for (const Loaded& loaded : this->loaded()) {
      if (&loaded == &broken) continue;
      left_out_.push_back({relative(folder, loaded), "image left out", plan_.source.own_name(*broken.file)});
    }
  }

  // The image by itself first, so that the first image of a sample is the picture and not its mask.
  void sort_members() {
    const auto rank = [](const Loaded& loaded) { return is_picture(loaded.extension) ? 0 : 1; };
    std::sort(loaded().begin(), loaded().end(), [&](const Loaded& a, const Loaded& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.extension < b.extension;
    });
  }

  Status write_members(const SourceSample& sample, const SourceFolder& folder) {
    entry_.key = plan_.source.key(sample);
    entry_.label = sample.label;
    entry_.components.clear();
    files_.clear();
    places_.clear();
    if (count_ > 1) sort_members();
    for (const Loaded& loaded : this->loaded()) {
      if (loaded.extension == "cls") {
        RETURN_IF_ERROR(read_label(folder, loaded, entry_.label));
      } else {
        OK_OR_RETURN(file, packed(folder, loaded));
        files_.push_back(std::move(file));
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

  std::string shown(const SourceFolder& folder, const Loaded& loaded) const {
    return plan_.source.tree->shown(relative(folder, loaded));
  }

  Status read_label(const SourceFolder& folder, const Loaded& loaded, std::int64_t& label) const {
    const std::string_view text(reinterpret_cast<const char*>(loaded.bytes().data()), loaded.bytes().size());
    if (loaded.is_held && parse_number(trim(text), &label) && label >= 0) return {};
    return invalid("{}: label '{}' is not a natural number", shown(folder, loaded),
                   printable(text.substr(0, 20)));
  }

  Result<PackedFile> packed(const SourceFolder& folder, const Loaded& loaded) const {
    if (loaded.is_held) {
      return PackedFile{.extension = loaded.extension,
                        .size = loaded.bytes().size(),
                        .bytes = loaded.bytes(),
                        .read = nullptr};
    }
    if (!plan_.source.tree->has_parts(*loaded.file)) {
      return invalid("{}: is compressed and has {} bytes (at most 1 GiB)", shown(folder, loaded),
                     loaded.file->bytes);
    }
    return PackedFile{.extension = loaded.extension,
                      .size = loaded.file->bytes,
                      .bytes = {},
                      .read = [this, &folder, &loaded](std::uint64_t at, std::span<std::byte> out) -> Status {
                        if (!done_(0)) return cancelled("stopped");
                        return plan_.source.tree->read_part(folder.path, *loaded.file, at, out);
                      }};
  }

  const PackPlan& plan_;
  const ShardSpec& spec_;
  FileDone done_;
  BlockFile file_;
  std::unique_ptr<Container> container_;
  SectionBuilder section_;
  formats::ImageStatistics images_;
  std::vector<LeftOut> left_out_;
  std::vector<Loaded> loaded_;
  std::size_t next_ = 0;   // of the samples
  std::size_t count_ = 0;  // how many of loaded_ the sample at hand has
  formats::SampleEntry entry_;
  std::vector<PackedFile> files_;
  std::vector<PackedPlace> places_;
};

}  // namespace

Result<std::unique_ptr<ShardWriting>> ShardWriting::begin(const PackPlan& plan, const ShardSpec& spec,
                                                          const Path& path, FileDone done, Hashing hashing) {
  OK_OR_RETURN(file, BlockFile::create(path, plan.options.hash, hashing));
  return std::unique_ptr<ShardWriting>(
      std::make_unique<Writer>(plan, spec, std::move(file), std::move(done)));
}

}  // namespace stoker::data
