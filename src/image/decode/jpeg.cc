#include "image/decode/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstring>
#include <optional>
#include <vector>

#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "image/decode/decode_internal.h"
#include "image/decode/jpeg_scans_internal.h"
#include "image/decode/jpeg_splice.h"

namespace stoker::image::codecs {
namespace {

// A progressive file may hold any number of scans. Each costs a pass over the whole image.
constexpr int kMaxScans = 500;

// libjpeg reports errors by a callback that must not return: it jumps back into attempt(). Every object with
// a destructor therefore lives outside the function given to attempt().
struct JpegFailure {
  std::jmp_buf jump;
  int code = 0;
  char text[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void fail(j_common_ptr jpeg) {
  auto* failure = static_cast<JpegFailure*>(jpeg->client_data);
  failure->code = jpeg->err->msg_code;
  jpeg->err->format_message(jpeg, failure->text);
  std::longjmp(failure->jump, 1);
}

// After these, libjpeg continues with grey or shifted pixels; we fail. Its other warnings (bytes between
// segments, odd JFIF or Adobe markers) do not affect the pixels.
bool corrupts_pixels(int code) {
  switch (code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      return true;
    default:
      return false;
  }
}

void on_message(j_common_ptr jpeg, int level) {
  if (level < 0 && corrupts_pixels(jpeg->err->msg_code)) fail(jpeg);
}

void on_progress(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMaxScans) fail(jpeg);
}

void ignore_message(j_common_ptr) {}

// One decompression. Nothing is reused, because the tables of one image must not serve an image that lacks
// its own.
class Decompressor {
 public:
  Decompressor() {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = fail;
    errors_.emit_message = on_message;
    errors_.output_message = ignore_message;
    jpeg_.client_data = &failure_;
    progress_.progress_monitor = on_progress;
  }
  ~Decompressor() { jpeg_destroy_decompress(&jpeg_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  // Runs `body(jpeg_decompress_struct&)`. Any call of libjpeg may jump out of it.
  template <typename Body>
  Status attempt(Body body) {
    if (setjmp(failure_.jump)) return error();
    body(jpeg_);
    return Status();
  }

  Status read_header(std::span<const std::byte> bytes, const DecodeLimits& limits) {
    STOKER_RETURN_IF_ERROR(attempt([&](jpeg_decompress_struct& jpeg) {
      jpeg_create_decompress(&jpeg);
      jpeg.progress = &progress_;
      jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      jpeg_read_header(&jpeg, TRUE);
    }));
    return check_size(ImageKind::jpeg, jpeg_.image_width, jpeg_.image_height, limits);
  }

  jpeg_decompress_struct& jpeg() { return jpeg_; }

 private:
  Status error() const {
    if (failure_.code == JWRN_JPEG_EOF || failure_.code == JWRN_HIT_MARKER ||
        failure_.code == JERR_INPUT_EOF) {
      return corrupt("JPEG: ends before the image is complete");
    }
    if (jpeg_.input_scan_number > kMaxScans) return corrupt("JPEG: more than {} scans", kMaxScans);
    return corrupt("JPEG: {}", std::string_view(failure_.text));
  }

  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  JpegFailure failure_;
};

bool is_cmyk(const jpeg_decompress_struct& jpeg) {
  return jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
}

// Round to nearest of a * b / 255.
unsigned scaled(unsigned a, unsigned b) {
  const unsigned t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

// Adobe's programs, which write most of these files, store inverted amounts of ink.
void cmyk_to_rgb(const unsigned char* from, std::uint8_t* to, std::size_t pixels) {
  for (std::size_t i = 0; i < pixels; ++i, from += 4, to += 3) {
    const unsigned light = from[3];
    for (int c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(light - scaled(255u - from[c], light));
  }
}

// libjpeg-turbo stores rows at multiples of 16 or 32 bytes past the caches (MOVNTDQ,
// simd/x86_64/jdcolext-*.asm). Rows that are read soon are then fetched from memory again: a fifth of the
// time of a 32 x 32 image.
constexpr std::size_t kUncachedAlignment = 16;
constexpr JDIMENSION kRowsAtOnce = 16;
constexpr std::size_t kMaxCachedStride = 3 * 512;  // for larger images it makes no difference

bool would_bypass_caches(const Image& out, std::size_t stride) {
  return stride % kUncachedAlignment == 0 && stride <= kMaxCachedStride &&
         reinterpret_cast<std::uintptr_t>(out.pixels.data()) % kUncachedAlignment == 0;
}

// Reads the next `out.height` rows.
void read_rgb(jpeg_decompress_struct& jpeg, Image& out) {
  constexpr std::size_t kOffset = kUncachedAlignment / 2;
  alignas(kUncachedAlignment) JSAMPLE aside[kRowsAtOnce * kMaxCachedStride + kOffset];
  JSAMPROW rows[kRowsAtOnce];
  const std::size_t stride = std::size_t{3} * out.width;
  const bool is_aside = would_bypass_caches(out, stride);
  const JDIMENSION begin = jpeg.output_scanline;
  for (JDIMENSION done; (done = jpeg.output_scanline - begin) < out.height;) {
    const JDIMENSION left = std::min(out.height - done, kRowsAtOnce);
    JSAMPLE* const target = out.pixels.data() + done * stride;
    JSAMPLE* const first = is_aside ? aside + kOffset : target;
    for (JDIMENSION i = 0; i < left; ++i) rows[i] = first + i * stride;
    const JDIMENSION read = jpeg_read_scanlines(&jpeg, rows, left);
    if (is_aside) std::memcpy(target, first, read * stride);
  }
}

void read_cmyk(jpeg_decompress_struct& jpeg, Image& out, unsigned char* inks) {
  while (jpeg.output_scanline < jpeg.output_height) {
    std::uint8_t* row = out.pixels.data() + std::size_t{3} * out.width * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &inks, 1);
    cmyk_to_rgb(inks, row, out.width);
  }
}

ImageInfo info_of(const jpeg_decompress_struct& jpeg) {
  return {.kind = ImageKind::jpeg,
          .width = jpeg.image_width,
          .height = jpeg.image_height,
          .channels = static_cast<std::uint32_t>(jpeg.num_components),
          .progressive = jpeg.progressive_mode != 0};
}

// Upsampling mixes in the colour of the neighbours two pixels away, which are missing at the edge of a part.
constexpr std::uint32_t kMargin = 2;

struct ImageSize {
  std::uint32_t width;
  std::uint32_t height;
};

ImageRegion with_margin(const ImageRegion& part, const ImageSize& image, std::uint32_t margin) {
  const std::uint32_t x = part.x - std::min(part.x, margin);
  const std::uint32_t y = part.y - std::min(part.y, margin);
  return {x, y, std::min(image.width, part.x + part.width + margin) - x,
          std::min(image.height, part.y + part.height + margin) - y};
}

// The part of an image that becomes `part` when the image is made `reduction` times smaller.
ImageRegion enlarged(const ImageRegion& part, const ImageSize& image, std::uint32_t reduction) {
  const std::uint32_t x = part.x * reduction;
  const std::uint32_t y = part.y * reduction;
  return {x, y, std::min(image.width - x, part.width * reduction),
          std::min(image.height - y, part.height * reduction)};
}

// Makes the output `reduction` times smaller than the image.
Status reduce(Decompressor& decompressor, std::uint32_t reduction) {
  return decompressor.attempt([&](jpeg_decompress_struct& jpeg) {
    jpeg.scale_num = 1;
    jpeg.scale_denom = reduction;
    jpeg_calc_output_dimensions(&jpeg);
  });
}

// REQUIRES: reduce() was called.
Status decode_whole(Decompressor& decompressor, Image& out) {
  const jpeg_decompress_struct& header = decompressor.jpeg();
  const bool cmyk = is_cmyk(header);
  STOKER_RETURN_IF_ERROR(allocate_pixels(out, header.output_width, header.output_height));
  std::vector<unsigned char> inks(cmyk ? std::size_t{4} * out.width : 0);
  return decompressor.attempt([&](jpeg_decompress_struct& jpeg) {
    jpeg.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    jpeg.dct_method = JDCT_ISLOW;  // integer arithmetic: the same pixels with and without SIMD
    jpeg_start_decompress(&jpeg);
    if (cmyk) {
      read_cmyk(jpeg, out, inks.data());
    } else {
      read_rgb(jpeg, out);
    }
    jpeg_finish_decompress(&jpeg);
  });
}

// Sets `got` to the decoded part: whole blocks horizontally, and a margin that makes `wanted` exact.
// REQUIRES: reduce() was called.
Status decode_part(Decompressor& decompressor, const ImageRegion& wanted, Image& out, ImageRegion& got) {
  const jpeg_decompress_struct& header = decompressor.jpeg();
  const ImageSize size{header.output_width, header.output_height};
  got = with_margin(wanted, size, kMargin);
  const bool is_whole = got.width == size.width && got.height == size.height;
  if (is_whole || is_cmyk(header)) {
    got = {0, 0, size.width, size.height};
    return decode_whole(decompressor, out);
  }
  STOKER_RETURN_IF_ERROR(decompressor.attempt([&](jpeg_decompress_struct& jpeg) {
    jpeg.out_color_space = JCS_RGB;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg);
    // libjpeg guesses missing coefficients from surrounding blocks, so the edge of a part would have
    // different pixels.
    if (is_missing_scans(jpeg)) got = {0, 0, size.width, size.height};
    if (got.width < jpeg.output_width) jpeg_crop_scanline(&jpeg, &got.x, &got.width);
    if (got.y > 0) jpeg_skip_scanlines(&jpeg, got.y);
  }));
  STOKER_RETURN_IF_ERROR(allocate_pixels(out, got.width, got.height));
  return decompressor.attempt([&](jpeg_decompress_struct& jpeg) {
    read_rgb(jpeg, out);
    if (jpeg.output_scanline == jpeg.output_height) jpeg_finish_decompress(&jpeg);
  });
}

}  // namespace

Result<ImageInfo> inspect_jpeg(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  Decompressor decompressor;
  STOKER_RETURN_IF_ERROR(decompressor.read_header(bytes, limits));
  return info_of(decompressor.jpeg());
}

Status decode_jpeg(std::span<const std::byte> bytes, Image& out, const DecodeLimits& limits) {
  Decompressor decompressor;
  STOKER_RETURN_IF_ERROR(decompressor.read_header(bytes, limits));
  STOKER_RETURN_IF_ERROR(reduce(decompressor, 1));
  return decode_whole(decompressor, out);
}

struct JpegReader::Impl {
  std::span<const std::byte> bytes;
  DecodeLimits limits;
  std::optional<Decompressor> decompressor;
  Splicer splicer;
};

JpegReader::JpegReader() : impl_(std::make_unique<Impl>()) {}
JpegReader::~JpegReader() = default;
JpegReader::JpegReader(JpegReader&&) noexcept = default;
JpegReader& JpegReader::operator=(JpegReader&&) noexcept = default;

Result<ImageInfo> JpegReader::open(std::span<const std::byte> bytes, const DecodeLimits& limits) {
  impl_->bytes = bytes;
  impl_->limits = limits;
  impl_->decompressor.emplace();
  STOKER_RETURN_IF_ERROR(impl_->decompressor->read_header(bytes, limits));
  return info_of(impl_->decompressor->jpeg());
}

Status JpegReader::decode(const ImageRegion& wanted, std::uint32_t reduction, Image& out, ImageRegion& got) {
  Decompressor& whole = *impl_->decompressor;
  const jpeg_decompress_struct& header = whole.jpeg();
  if (header.restart_interval > 0) {
    const ImageSize size{header.image_width, header.image_height};
    const ImageRegion needed = with_margin(enlarged(wanted, size, reduction), size, kMargin * reduction);
    ImageRegion spliced;
    const auto layout = restart_layout(impl_->bytes);
    const auto part = layout ? impl_->splicer.splice(impl_->bytes, *layout, needed, spliced) : std::nullopt;
    if (part) {
      Decompressor decompressor;
      STOKER_RETURN_IF_ERROR(decompressor.read_header(*part, impl_->limits));
      STOKER_RETURN_IF_ERROR(reduce(decompressor, reduction));
      // The part begins at a block, which has eight pixels.
      const std::uint32_t x = spliced.x / reduction, y = spliced.y / reduction;
      STOKER_RETURN_IF_ERROR(
          decode_part(decompressor, {wanted.x - x, wanted.y - y, wanted.width, wanted.height}, out, got));
      got.x += x;
      got.y += y;
      return Status();
    }
  }
  STOKER_RETURN_IF_ERROR(reduce(whole, reduction));
  return decode_part(whole, wanted, out, got);
}

}  // namespace stoker::image::codecs
