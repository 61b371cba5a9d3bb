#include "data/pack/shard/sample_reader.h"

#include <utility>

#include "data/pack/shard/image_check.h"
#include "data/pack/shard/jpeg_rewrite.h"

namespace stoker::data {

namespace {

constexpr std::uint64_t kWholeFileLimit = 64u << 20;  // larger files that are no image pass through in pieces
constexpr std::uint64_t kImageLimit = 1u << 30;

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

void break_off(ImageVerdict& verdict, const Status& status) {
  verdict = {.is_good = false,
             .info = {},
             .channels = {},
             .reason = "broken",
             .detail = std::string(status.message())};
}

}  // namespace

void ReadSample::begin(std::size_t count) {
  while (files_.size() < count) files_.emplace_back();
  count_ = count;
  status = {};
  images = {};
  left_out.clear();
}

std::size_t ReadSample::capacity() const {
  std::size_t bytes = 0;
  for (const ReadFile& file : files_) bytes += file.content.capacity();
  return bytes;
}

void ReadSample::drop_larger_than(std::size_t most) {
  std::erase_if(files_, [most](const ReadFile& file) { return file.content.capacity() > most; });
  count_ = 0;
}

void SampleReader::read(const SourceSample& sample, ReadSample& into) const {
  into.begin(sample.files);
  into.status = load(sample, into);
  if (!into.status.ok()) return;
  const SourceFolder& folder = plan_.source.folders[sample.folder];
  if (const ReadFile* broken = look_at_images(folder, into)) leave_out_rest(folder, *broken, into);
}

Status SampleReader::load(const SourceSample& sample, ReadSample& into) const {
  for (std::uint32_t i = 0; i < sample.files; ++i) {
    ReadFile& file = into.files()[i];
    file.file = &plan_.source.file(sample, i);
    file.extension = extension_of(file.file->name);
    file.is_image = is_image_extension(file.extension);
    RETURN_IF_ERROR(load(plan_.source.folders[sample.folder], file));
    if (!done_(file.file->bytes)) return cancelled("stopped");
  }
  return {};
}

// Reads a file, or leaves it to be read in pieces.
Status SampleReader::load(const SourceFolder& folder, ReadFile& file) const {
  const SourceTree& tree = *plan_.source.tree;
  const std::uint64_t size = file.file->bytes;
  file.is_held =
      size <= kWholeFileLimit || (size <= kImageLimit && (file.is_image || !tree.has_parts(*file.file)));
  return file.is_held ? tree.read(folder.path, *file.file, file.content) : Status();
}

// The first image that is not good, or nothing.
const ReadFile* SampleReader::look_at_images(const SourceFolder& folder, ReadSample& sample) const {
  for (ReadFile& file : sample.files()) {
    if (!file.is_image) continue;
    ImageVerdict verdict;
    if (!file.is_held) {
      verdict.reason = "too large";
      verdict.detail = "images may have up to 1 GiB";
    } else {
      verdict =
          plan_.options.check == ImageCheck::decode ? decode_check(file.bytes()) : scan_image(file.bytes());
    }
    if (!verdict.is_good && plan_.options.check == ImageCheck::carry) continue;
    if (verdict.is_good) shrink(file, verdict, sample.images);
    if (verdict.is_good) rewrite(file, verdict);
    if (!verdict.is_good) {
      sample.left_out.push_back(
          {plan_.source.path_of(folder, *file.file), std::move(verdict.reason), std::move(verdict.detail)});
      return &file;
    }
    sample.images.add(statistics_of(verdict, file.extension));
  }
  return nullptr;
}

// Makes an image smaller as --resize and --quality say; one that cannot be decoded is broken.
void SampleReader::shrink(ReadFile& file, ImageVerdict& verdict, formats::ImageStatistics& images) const {
  if (!plan_.options.shrink.is_wanted()) return;
  const auto shrunk = shrink_image(file.bytes(), verdict.info, plan_.options.shrink);
  if (!shrunk.ok()) return break_off(verdict, shrunk.status());
  if (!*shrunk) return;
  file.content.assign((*shrunk)->bytes);
  verdict.info.width = (*shrunk)->width;
  verdict.info.height = (*shrunk)->height;
  verdict.info.channels = verdict.info.channels == 1 ? 1 : 3;
  verdict.info.progressive = false;
  // The sums are of the pixels that are packed.
  if (plan_.options.check == ImageCheck::decode) verdict.channels = decode_check(file.bytes()).channels;
  ++images.encoded_anew;
}

// Turns a JPEG as --jpeg says; one that cannot be turned is broken.
void SampleReader::rewrite(ReadFile& file, ImageVerdict& verdict) const {
  const JpegMode mode = plan_.options.jpeg;
  const bool is_jpeg = verdict.info.kind == ImageKind::jpeg;
  if (!is_jpeg || mode == JpegMode::keep || (mode == JpegMode::baseline && !verdict.info.progressive)) return;
  const Result<std::vector<std::byte>> turned =
      rewrite_jpeg(file.bytes(), mode == JpegMode::restart ? RestartMarkers::some : RestartMarkers::none);
  if (turned.status().code() == Code::invalid) return;  // stays as it is
  if (!turned.ok()) return break_off(verdict, turned.status());
  file.content.assign(*turned);
  verdict.info.progressive = false;
}

void SampleReader::leave_out_rest(const SourceFolder& folder, const ReadFile& broken,
                                  ReadSample& sample) const {
  for (const ReadFile& file : sample.files()) {
    if (&file == &broken) continue;
    sample.left_out.push_back(
        {plan_.source.path_of(folder, *file.file), "image left out", plan_.source.own_name(*broken.file)});
  }
}

}  // namespace stoker::data
