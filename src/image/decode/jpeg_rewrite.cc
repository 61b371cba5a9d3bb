#include "image/decode/jpeg_rewrite.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>

#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "image/decode/jpeg_scans_internal.h"

namespace stoker::image {

namespace {

constexpr int kMaxScans = 500;  // each costs a pass over the whole image

// libjpeg reports errors by a callback that must not return: it jumps. Objects with destructors therefore
// live outside the functions that it jumps out of.
struct LibjpegError {
  jpeg_error_mgr errors;  // first: libjpeg passes a pointer to it back
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void throw_error(j_common_ptr jpeg) {
  auto* error = reinterpret_cast<LibjpegError*>(jpeg->err);
  jpeg->err->format_message(jpeg, error->text);
  std::longjmp(error->jump, 1);
}

// These warnings mean that coefficients were guessed; others (bytes between segments, odd markers) do not.
void on_message(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  switch (jpeg->err->msg_code) {
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      throw_error(jpeg);
    default:
      return;
  }
}

void on_progress(j_common_ptr jpeg) {
  if (jpeg->is_decompressor && reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMaxScans)
    throw_error(jpeg);
}

struct JpegTranscoder {
  jpeg_decompress_struct from{};
  jpeg_compress_struct to{};
  jpeg_progress_mgr progress{};
  LibjpegError error{};
  bool has_jfif = false;  // before the image data
  bool has_adobe = false;
  bool is_missing_scans = false;
  unsigned char* out = nullptr;
  unsigned long out_bytes = 0;

  JpegTranscoder() {
    from.err = jpeg_std_error(&error.errors);
    to.err = &error.errors;
    error.errors.error_exit = throw_error;
    error.errors.emit_message = on_message;
    error.errors.output_message = [](j_common_ptr) {};
    progress.progress_monitor = on_progress;
  }
  ~JpegTranscoder() {
    jpeg_destroy_compress(&to);
    jpeg_destroy_decompress(&from);
    std::free(out);
  }
  JpegTranscoder(const JpegTranscoder&) = delete;
  JpegTranscoder& operator=(const JpegTranscoder&) = delete;
};

unsigned blocks_in_row(const jpeg_decompress_struct& jpeg) {
  const unsigned factor = jpeg.num_components == 1 ? 1 : static_cast<unsigned>(jpeg.max_h_samp_factor);
  const unsigned width = 8 * factor;
  return (jpeg.image_width + width - 1) / width;
}

// The library writes these itself. After the image data they did not affect its colours, but before it they
// would.
void copy_markers(const JpegTranscoder& t, jpeg_decompress_struct& from, jpeg_compress_struct& to) {
  for (jpeg_saved_marker_ptr m = from.marker_list; m != nullptr; m = m->next) {
    const auto starts = [&](const char* text, unsigned length) {
      return m->data_length >= length && std::equal(text, text + length, m->data);
    };
    const bool is_jfif = m->marker == JPEG_APP0 && starts("JFIF", 5);
    const bool is_adobe = m->marker == JPEG_APP0 + 14 && starts("Adobe", 5);
    if (is_jfif && (to.write_JFIF_header || !t.has_jfif)) continue;
    if (is_adobe && (to.write_Adobe_marker || !t.has_adobe)) continue;
    jpeg_write_marker(&to, m->marker, m->data, m->data_length);
  }
}

// Any call of libjpeg may jump out of it: nothing in it has a destructor.
bool transcode(JpegTranscoder& t, std::span<const std::byte> bytes, RestartMarkers markers) {
  if (setjmp(t.error.jump)) return false;
  jpeg_create_decompress(&t.from);
  jpeg_create_compress(&t.to);
  t.from.progress = &t.progress;
  jpeg_mem_src(&t.from, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_save_markers(&t.from, JPEG_COM, 0xFFFF);
  for (int app = 0; app < 16; ++app) jpeg_save_markers(&t.from, JPEG_APP0 + app, 0xFFFF);
  jpeg_read_header(&t.from, TRUE);
  t.has_jfif = t.from.saw_JFIF_marker != 0;
  t.has_adobe = t.from.saw_Adobe_marker != 0;
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&t.from);
  t.is_missing_scans = codecs::is_missing_scans(t.from);
  if (t.is_missing_scans) return false;
  jpeg_mem_dest(&t.to, &t.out, &t.out_bytes);
  jpeg_copy_critical_parameters(&t.from, &t.to);
  // For CMYK, it would mark the amounts of ink as inverted.
  if (!t.has_adobe) t.to.write_Adobe_marker = FALSE;
  t.to.optimize_coding = TRUE;
  t.to.arith_code = FALSE;
  t.to.restart_interval = markers == RestartMarkers::some ? restart_interval(blocks_in_row(t.from)) : 0;
  jpeg_write_coefficients(&t.to, coefficients);
  copy_markers(t, t.from, t.to);
  jpeg_finish_compress(&t.to);
  jpeg_finish_decompress(&t.from);
  return true;
}

}  // namespace

unsigned restart_interval(unsigned blocks) {
  for (unsigned interval : {4u, 5u, 3u, 6u, 7u, 8u, 2u}) {
    if (blocks % interval == 0) return interval;
  }
  return std::min(blocks, 0xFFFFu);
}

Result<std::vector<std::byte>> rewrite_jpeg(std::span<const std::byte> bytes, RestartMarkers markers) {
  JpegTranscoder t;
  const bool is_transcoded = transcode(t, bytes, markers);
  if (t.is_missing_scans) return invalid("JPEG: scans are missing, and decoders replace them by guesses");
  if (!is_transcoded) return corrupt("JPEG: {}", std::string_view(t.error.text));
  const auto* out = reinterpret_cast<const std::byte*>(t.out);
  return std::vector<std::byte>(out, out + t.out_bytes);
}

}  // namespace stoker::image
