#include "data/pack/shard/jpeg_rewrite.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h uses FILE without including it
#include <cstdlib>

#include <jpeglib.h>
// After jpeglib.h.
#include <jerror.h>

#include "data/decode/jpeg_scans_internal.h"

namespace stoker::data {

namespace {

constexpr int kMostScans = 500;  // each costs a pass over the whole image

// libjpeg reports errors by a callback that must not return: it jumps. Objects with destructors live outside
// the function that may be left so.
struct Failure {
  jpeg_error_mgr errors;  // first: libjpeg hands this back
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void give_up(j_common_ptr jpeg) {
  auto* failure = reinterpret_cast<Failure*>(jpeg->err);
  jpeg->err->format_message(jpeg, failure->text);
  std::longjmp(failure->jump, 1);
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
      give_up(jpeg);
    default:
      return;
  }
}

void on_progress(j_common_ptr jpeg) {
  if (jpeg->is_decompressor && reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > kMostScans)
    give_up(jpeg);
}

struct Turn {
  jpeg_decompress_struct from{};
  jpeg_compress_struct to{};
  jpeg_progress_mgr progress{};
  Failure failure{};
  bool has_jfif = false;  // before the image data
  bool has_adobe = false;
  bool lacks_scans = false;
  unsigned char* out = nullptr;
  unsigned long out_bytes = 0;

  Turn() {
    from.err = jpeg_std_error(&failure.errors);
    to.err = &failure.errors;
    failure.errors.error_exit = give_up;
    failure.errors.emit_message = on_message;
    failure.errors.output_message = [](j_common_ptr) {};
    progress.progress_monitor = on_progress;
  }
  ~Turn() {
    jpeg_destroy_compress(&to);
    jpeg_destroy_decompress(&from);
    std::free(out);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
};

unsigned blocks_in_row(const jpeg_decompress_struct& jpeg) {
  const unsigned factor = jpeg.num_components == 1 ? 1 : static_cast<unsigned>(jpeg.max_h_samp_factor);
  const unsigned width = 8 * factor;
  return (jpeg.image_width + width - 1) / width;
}

// Those that the library writes itself are not written twice. Where they stood behind the image data they
// told nothing of its colours, and would before it.
void copy_markers(const Turn& t, jpeg_decompress_struct& from, jpeg_compress_struct& to) {
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

// May be left by a jump at any call of libjpeg: nothing in it has a destructor.
bool turn(Turn& t, std::span<const std::byte> bytes, RestartMarkers markers) {
  if (setjmp(t.failure.jump)) return false;
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
  t.lacks_scans = codecs::lacks_scans(t.from);
  if (t.lacks_scans) return false;
  jpeg_mem_dest(&t.to, &t.out, &t.out_bytes);
  jpeg_copy_critical_parameters(&t.from, &t.to);
  // Of CMYK it would tell readers that the amounts of ink are inverted.
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
  Turn t;
  const bool is_turned = turn(t, bytes, markers);
  if (t.lacks_scans) return invalid("JPEG: lacks scans, and decoders guess what these would tell");
  if (!is_turned) return corrupt("JPEG: {}", std::string_view(t.failure.text));
  const auto* out = reinterpret_cast<const std::byte*>(t.out);
  return std::vector<std::byte>(out, out + t.out_bytes);
}

}  // namespace stoker::data
