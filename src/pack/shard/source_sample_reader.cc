#include "pack/shard/source_sample_reader.h"

#include <utility>

#include "image/decode/jpeg_rewrite.h"
#include "pack/images/image_check.h"

namespace stoker::pack {

namespace {

constexpr std::uint64_t kWholeFileLimit = 64u << 20;  // larger files, except images, are copied in pieces
constexpr std::uint64_t kImageLimit = 1u << 30;

dataset::ImageStatistics statistics_of(const ImageVerdict& verdict, std::string_view extension) {
  const image::ImageInfo& info = verdict.info;
  const std::string_view last = extension.substr(extension.rfind('.') + 1);
  const bool has_jpeg_extension = last == "jpg" || last == "jpeg";
  const bool is_named_well = info.kind == image::ImageKind::jpeg  ? has_jpeg_extension
                             : info.kind == image::ImageKind::png ? last == "png"
                                                                  : last == "webp";
  const bool is_jpeg = info.kind == image::ImageKind::jpeg;
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

void mark_broken(ImageVerdict& verdict, const Status& status) {
  verdict = {.is_good = false,
             .info = {},
             .channels = {},
             .reason = "broken",
             .detail = std::string(status.message())};
}

}  // namespace

void LoadedSample::begin(std::size_t count) {
  while (files_.size() < count) files_.emplace_back();
  count_ = count;
  status = {};
  images = {};
  left_out.clear();
}

std::size_t LoadedSample::capacity() const {
  std::size_t bytes = 0;
  for (const LoadedFile& file : files_) bytes += file.content.capacity();
  return bytes;
}

void LoadedSample::drop_larger_than(std::size_t most) {
  std::erase_if(files_, [most](const LoadedFile& file) { return file.content.capacity() > most; });
  count_ = 0;
}

void SourceSampleReader::read(const sources::SourceSample& sample, LoadedSample& into) const {
  into.begin(sample.files);
  into.status = load(sample, into);
  if (!into.status.ok()) return;
  const sources::SourceFolder& folder = plan_.source.folders[sample.folder];
  if (const LoadedFile* broken = check_images(folder, into)) exclude_rest(folder, *broken, into);
}

Status SourceSampleReader::load(const sources::SourceSample& sample, LoadedSample& into) const {
  for (std::uint32_t i = 0; i < sample.files; ++i) {
    LoadedFile& file = into.files()[i];
    file.file = &plan_.source.file(sample, i);
    file.extension = sources::extension_of(file.file->name);
    file.is_image = sources::is_image_extension(file.extension);
    STOKER_RETURN_IF_ERROR(load(plan_.source.folders[sample.folder], file));
    if (!done_(file.file->bytes)) return cancelled("stopped");
  }
  return {};
}

// Reads a file, or defers it to be read in pieces.
Status SourceSampleReader::load(const sources::SourceFolder& folder, LoadedFile& file) const {
  const sources::SourceTree& tree = *plan_.source.tree;
  const std::uint64_t size = file.file->bytes;
  file.is_held =
      size <= kWholeFileLimit || (size <= kImageLimit && (file.is_image || !tree.has_parts(*file.file)));
  return file.is_held ? tree.read(folder.path, *file.file, file.content) : Status();
}

// The first invalid image, or null.
const LoadedFile* SourceSampleReader::check_images(const sources::SourceFolder& folder,
                                                   LoadedSample& sample) const {
  for (LoadedFile& file : sample.files()) {
    if (!file.is_image) continue;
    ImageVerdict verdict;
    if (!file.is_held) {
      verdict.reason = "too large";
      verdict.detail = "images may have up to 1 GiB";
    } else {
      verdict =
          plan_.options.check == ImageCheck::decode ? decode_check(file.bytes()) : scan_image(file.bytes());
    }
    if (!verdict.is_good && plan_.options.check == ImageCheck::keep_broken) continue;
    if (verdict.is_good) reencode(file, verdict, sample.images);
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

// Resizes and re-encodes an image by --resize and --quality. An undecodable image is broken.
void SourceSampleReader::reencode(LoadedFile& file, ImageVerdict& verdict,
                                  dataset::ImageStatistics& images) const {
  if (!plan_.options.reencode.is_set()) return;
  const auto reencoded = reencode_image(file.bytes(), verdict.info, plan_.options.reencode);
  if (!reencoded.ok()) return mark_broken(verdict, reencoded.status());
  if (!*reencoded) return;
  file.content.assign((*reencoded)->bytes);
  verdict.info.width = (*reencoded)->width;
  verdict.info.height = (*reencoded)->height;
  verdict.info.channels = verdict.info.channels == 1 ? 1 : 3;
  verdict.info.progressive = false;
  // The sums cover the packed pixels.
  if (plan_.options.check == ImageCheck::decode) verdict.channels = decode_check(file.bytes()).channels;
  ++images.reencoded;
}

// Converts a JPEG by --jpeg. An unconvertible image is broken.
void SourceSampleReader::rewrite(LoadedFile& file, ImageVerdict& verdict) const {
  const JpegMode mode = plan_.options.jpeg;
  const bool is_jpeg = verdict.info.kind == image::ImageKind::jpeg;
  if (!is_jpeg || mode == JpegMode::keep || (mode == JpegMode::baseline && !verdict.info.progressive)) return;
  const Result<std::vector<std::byte>> rewritten = rewrite_jpeg(
      file.bytes(), mode == JpegMode::restart ? image::RestartMarkers::some : image::RestartMarkers::none);
  if (rewritten.status().code() == Code::invalid) return;  // kept unchanged
  if (!rewritten.ok()) return mark_broken(verdict, rewritten.status());
  file.content.assign(*rewritten);
  verdict.info.progressive = false;
}

void SourceSampleReader::exclude_rest(const sources::SourceFolder& folder, const LoadedFile& broken,
                                      LoadedSample& sample) const {
  for (const LoadedFile& file : sample.files()) {
    if (&file == &broken) continue;
    sample.left_out.push_back({plan_.source.path_of(folder, *file.file), "image left out",
                               plan_.source.original_name(*broken.file)});
  }
}

}  // namespace stoker::pack
