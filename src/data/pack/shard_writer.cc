#include "data/pack/shard_writer.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/hash.h"
#include "data/pack/block_file.h"
#include "data/pack/image_check.h"
#include "format/side_index.h"

namespace stoker::data {

namespace {

using formats::SectionBuilder;

constexpr std::uint64_t kWholeFileLimit = 64u << 20;  // larger files that are no image pass through in pieces
constexpr std::uint64_t kImageLimit = 1u << 30;
constexpr std::uint64_t kPiece = 4u << 20;

// One file of the sample at hand.
struct Loaded {
  const SourceFile* file = nullptr;
  std::string extension;
  bool is_image = false;
  bool is_held = false;  // else it is read in pieces when written
  std::vector<std::byte> bytes;
};

class Writer {
 public:
  Writer(const PackPlan& plan, const ShardSpec& spec, BlockFile& file, const FileDone& done)
      : plan_(plan),
        spec_(spec),
        done_(done),
        tar_(file),
        section_(plan.source.has_labels() ? SectionBuilder::Labels::int64 : SectionBuilder::Labels::none) {}

  Status write_all() {
    for (const SourceSample& sample : spec_.samples) RETURN_IF_ERROR(write_sample(sample));
    return tar_.finish();
  }

  ShardFacts facts(const BlockFile& file) {
    ShardFacts facts;
    facts.bytes = file.bytes();
    facts.samples = section_.samples();
    facts.blocks = file.blocks();
    facts.images = images_;
    facts.left_out = std::move(left_out_);
    facts.section = section_.encode(facts.bytes, formats::shard_hash(facts.blocks));
    return facts;
  }

 private:
  Status write_sample(const SourceSample& sample) {
    const SourceFolder& folder = plan_.source.folders[sample.folder];
    loaded_.resize(sample.files);
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

  // Reads a file, or leaves it to be read in pieces. A file that has changed since it was listed would make a
  // rerun give other bytes.
  Status load(const SourceFolder& folder, Loaded& loaded) {
    const std::uint64_t size = loaded.file->bytes;
    loaded.is_held = size <= kWholeFileLimit || (loaded.is_image && size <= kImageLimit);
    if (!loaded.is_held) return {};
    const Path path = path_of(folder, *loaded.file);
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return posix_error(printable(path.string()), errno);
    loaded.bytes.resize(size + 1);  // one more, to see whether the file has grown
    std::size_t have = 0;
    do {
      const ssize_t n = ::read(fd.get(), loaded.bytes.data() + have, loaded.bytes.size() - have);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return posix_error(printable(path.string()), errno);
      if (n == 0) break;
      have += static_cast<std::size_t>(n);
    } while (have < size);
    if (have != size) return changed(path, size);
    loaded.bytes.resize(size);
    return {};
  }

  static Status changed(const Path& path, std::uint64_t size) {
    return unavailable("{}: changed while it was packed (it had {} bytes)", printable(path.string()), size)
        .cure("the same command again, once nothing writes there");
  }

  Path path_of(const SourceFolder& folder, const SourceFile& file) const {
    return plan_.options.source / folder.path / file.name;
  }

  // The first image that is not good, or nothing.
  const Loaded* look_at_images(const SourceFolder& folder, formats::ImageStatistics& images) {
    for (const Loaded& loaded : loaded_) {
      if (!loaded.is_image) continue;
      ImageVerdict verdict;
      if (!loaded.is_held) {
        verdict.reason = "too large";
        verdict.detail = "images may have up to 1 GiB";
      } else {
        verdict =
            plan_.options.check == ImageCheck::decode ? decode_check(loaded.bytes) : scan_image(loaded.bytes);
      }
      if (!verdict.is_good) {
        left_out_.push_back({relative(folder, loaded), std::move(verdict.reason), std::move(verdict.detail)});
        return &loaded;
      }
      const ImageInfo& info = verdict.info;
      images.add({.images = 1,
                  .progressive = info.progressive ? 1u : 0u,
                  .grayscale = info.channels <= 2 ? 1u : 0u,
                  .cmyk = info.kind == ImageKind::jpeg && info.channels == 4 ? 1u : 0u,
                  .width_min = info.width,
                  .width_max = info.width,
                  .height_min = info.height,
                  .height_max = info.height,
                  .pixels = std::uint64_t{info.width} * info.height});
    }
    return nullptr;
  }

  std::string relative(const SourceFolder& folder, const Loaded& loaded) const {
    return folder.path.empty() ? loaded.file->name : format("{}/{}", folder.path, loaded.file->name);
  }

  void leave_out_rest(const SourceFolder& folder, const Loaded& broken) {
    for (const Loaded& loaded : loaded_) {
      if (&loaded == &broken) continue;
      left_out_.push_back({relative(folder, loaded), "image left out", broken.file->name});
    }
  }

  // The image by itself first, so that the first image of a sample is the picture and not its mask.
  void sort_members() {
    const auto rank = [](const Loaded& loaded) {
      return loaded.is_image && loaded.extension.find('.') == std::string::npos ? 0 : 1;
    };
    std::sort(loaded_.begin(), loaded_.end(), [&](const Loaded& a, const Loaded& b) {
      return rank(a) != rank(b) ? rank(a) < rank(b) : a.extension < b.extension;
    });
  }

  Status write_members(const SourceSample& sample, const SourceFolder& folder) {
    formats::SampleEntry entry{.key = plan_.source.key(sample), .label = folder.label, .components = {}};
    if (loaded_.size() > 1) sort_members();
    bool has_label_file = false;
    for (const Loaded& loaded : loaded_) {
      const std::string name = format("{}.{}", entry.key, loaded.extension);
      if (loaded.extension == "cls") {
        has_label_file = true;
        RETURN_IF_ERROR(read_label(folder, loaded, entry.label));
        OK_OR_RETURN(ignored, tar_.add(name, loaded.bytes));
        (void)ignored;
        continue;
      }
      OK_OR_RETURN(component, loaded.is_held ? add_held(name, loaded) : add_in_pieces(name, folder, loaded));
      entry.components.push_back(component);
    }
    if (!has_label_file && folder.label >= 0) {
      const std::string label = std::to_string(folder.label);
      OK_OR_RETURN(ignored, tar_.add(entry.key + ".cls", std::as_bytes(std::span(label))));
      (void)ignored;
    }
    if (entry.components.empty()) {
      return invalid("{}: sample '{}' is a label file and nothing else",
                     printable(plan_.options.source.string()), printable(entry.key));
    }
    section_.add(entry);
    return {};
  }

  Status read_label(const SourceFolder& folder, const Loaded& loaded, std::int64_t& label) const {
    const std::string_view text(reinterpret_cast<const char*>(loaded.bytes.data()), loaded.bytes.size());
    if (loaded.is_held && parse_number(trim(text), &label) && label >= 0) return {};
    return invalid("{}: label '{}' is not a natural number",
                   printable(path_of(folder, *loaded.file).string()), printable(text.substr(0, 20)));
  }

  Result<formats::Component> add_held(const std::string& name, const Loaded& loaded) {
    OK_OR_RETURN(offset, tar_.add(name, loaded.bytes));
    return formats::Component{.offset = offset,
                              .length = loaded.bytes.size(),
                              .crc32c = crc32c(loaded.bytes),
                              .name = section_.name(loaded.extension)};
  }

  Result<formats::Component> add_in_pieces(const std::string& name, const SourceFolder& folder,
                                           const Loaded& loaded) {
    const Path path = path_of(folder, *loaded.file);
    OK_OR_RETURN(file, File::open_read(path));
    OK_OR_RETURN(size, file.size());
    if (size != loaded.file->bytes) return changed(path, loaded.file->bytes);
    OK_OR_RETURN(offset, tar_.begin(name, size));
    std::vector<std::byte> piece(kPiece);
    std::uint32_t crc = 0;
    for (std::uint64_t at = 0; at < size; at += kPiece) {
      const auto part = std::span(piece).first(std::min(kPiece, size - at));
      if (!file.read_at(at, part).ok()) return changed(path, size);
      crc = crc32c(part, crc);
      RETURN_IF_ERROR(tar_.append(part));
      if (!done_(0)) return cancelled("stopped");
    }
    RETURN_IF_ERROR(tar_.end());
    return formats::Component{
        .offset = offset, .length = size, .crc32c = crc, .name = section_.name(loaded.extension)};
  }

  const PackPlan& plan_;
  const ShardSpec& spec_;
  const FileDone& done_;
  formats::TarWriter tar_;
  SectionBuilder section_;
  formats::ImageStatistics images_;
  std::vector<LeftOut> left_out_;
  std::vector<Loaded> loaded_;
};

}  // namespace

Result<ShardFacts> write_shard(const PackPlan& plan, const ShardSpec& spec, const Path& path,
                               const FileDone& done) {
  OK_OR_RETURN(file, BlockFile::create(path));
  Writer writer(plan, spec, file, done);
  RETURN_IF_ERROR(writer.write_all());
  RETURN_IF_ERROR(file.finish());
  return writer.facts(file);
}

}  // namespace stoker::data
