#include "archive/decompress.h"

#include <algorithm>
#include <vector>

#include <isa-l.h>
#include <zstd.h>

#include "base/language/counted.h"

namespace stoker::archive {
namespace {

constexpr std::size_t kPiece = 1u << 20;
constexpr std::byte kGzipMagic[] = {std::byte{0x1F}, std::byte{0x8B}};

struct ZstdDeleter {
  void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
};

}  // namespace

struct DecompressingReader::State {
  std::string name;
  ByteSource source;
  CompressionFormat compression = CompressionFormat::none;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool is_over = false;           // the source
  std::vector<std::byte> packed;  // a compressed piece; `left` bytes from `at` on are unread
  std::size_t at = 0;
  std::size_t left = 0;
  std::vector<std::byte> expanded;
  std::unique_ptr<ZSTD_DStream, ZstdDeleter> zstd;
  std::size_t zstd_left = 1;     // 0: a frame is whole
  std::uint64_t zstd_frame = 0;  // its first byte, also of a skippable frame
  inflate_state gzip;
  bool is_inside = false;  // a member of gzip

  std::span<const std::byte> unread() const { return std::span(packed).subspan(at, left); }
  void consume(std::size_t count) {
    at += count;
    left -= count;
  }
  Status refill() {
    STOKER_ASSIGN_OR_RETURN(count, source(packed));
    is_over = count < packed.size();
    offset += count;
    at = 0;
    left = count;
    return {};
  }
  bool is_at_end() const { return left == 0 && is_over; }
  std::uint64_t position() const { return offset - left; }
  bool is_at_gzip_member() const {
    const std::size_t known = std::min(left, std::size(kGzipMagic));
    return std::equal(kGzipMagic, kGzipMagic + known, unread().begin());
  }
};

namespace {

// REQUIRES: a whole member ends at `end`, or zeros behind one. `size` is 0 for a pipe.
Status trailing_bytes(const std::string& name, std::uint64_t end, std::uint64_t size) {
  if (size <= end) return corrupt("{}: has data after the end of the gzip data at byte {}", name, end);
  const Path path = name;
  const Path whole = path.parent_path() / ("whole-" + path.filename().string());
  return corrupt("{}: {} after the end of the gzip data at byte {}", name, counted(size - end, "byte"), end)
      .cure("head -c {} {} > {}", end, shell_quote(name), shell_quote(whole.string()));
}

}  // namespace

CompressionFormat detect_compression(std::span<const std::byte> beginning) {
  const auto starts_with = [&](std::initializer_list<int> magic) {
    return beginning.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), beginning.begin(),
                      [](int a, std::byte b) { return static_cast<std::byte>(a) == b; });
  };
  if (starts_with({0x1F, 0x8B})) return CompressionFormat::gzip;
  if (starts_with({0x28, 0xB5, 0x2F, 0xFD}) || is_skippable_frame(beginning)) return CompressionFormat::zstd;
  return CompressionFormat::none;
}

bool is_skippable_frame(std::span<const std::byte> beginning) {
  constexpr std::byte kRest[] = {std::byte{0x2A}, std::byte{0x4D}, std::byte{0x18}};
  return beginning.size() >= 4 && (beginning[0] & std::byte{0xF0}) == std::byte{0x50} &&
         std::ranges::equal(beginning.subspan(1, 3), kRest);
}

DecompressingReader::DecompressingReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
DecompressingReader::DecompressingReader(DecompressingReader&&) noexcept = default;
DecompressingReader& DecompressingReader::operator=(DecompressingReader&&) noexcept = default;
DecompressingReader::~DecompressingReader() = default;

Result<DecompressingReader> DecompressingReader::open(const File& file, CompressionFormat compression) {
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  const ByteSource next =
      [&file, size, offset = std::uint64_t{0}](std::span<std::byte> out) mutable -> Result<std::size_t> {
    const std::size_t count = std::min<std::uint64_t>(out.size(), size - offset);
    STOKER_RETURN_IF_ERROR(file.read_at(offset, out.first(count)));
    offset += count;
    return count;
  };
  STOKER_ASSIGN_OR_RETURN(reader, open(file.path().string(), next, compression));
  reader.state_->size = size;
  return std::move(reader);
}

Result<DecompressingReader> DecompressingReader::open(std::string name, ByteSource source,
                                                      CompressionFormat compression) {
  auto state = std::make_unique<State>();
  state->name = std::move(name);
  state->source = std::move(source);
  state->compression = compression;
  state->packed.resize(kPiece);
  if (compression != CompressionFormat::none) state->expanded.resize(kPiece);
  if (compression == CompressionFormat::zstd) {
    state->zstd.reset(ZSTD_createDStream());
    if (!state->zstd) return unavailable("{}: no memory to decompress it", state->name);
  }
  return DecompressingReader(std::move(state));
}

std::uint64_t DecompressingReader::offset() const { return state_->offset; }
std::uint64_t DecompressingReader::size() const { return state_->size; }

Result<std::span<const std::byte>> DecompressingReader::next() {
  if (state_->compression == CompressionFormat::zstd) return next_zstd();
  if (state_->compression == CompressionFormat::gzip) return next_gzip();
  if (state_->is_at_end()) return std::span<const std::byte>();
  STOKER_RETURN_IF_ERROR(state_->refill());
  const auto piece = state_->unread();
  state_->consume(piece.size());
  return piece;
}

Result<std::span<const std::byte>> DecompressingReader::next_zstd() {
  State& s = *state_;
  // A full output buffer may have left more data inside, so call again even without input.
  for (bool is_full = s.zstd_left != 0 && s.offset > 0; !s.is_at_end() || is_full;) {
    if (s.left == 0 && !s.is_over) STOKER_RETURN_IF_ERROR(s.refill());
    if (s.is_at_end() && !is_full) break;
    ZSTD_inBuffer input{s.unread().data(), s.left, 0};
    ZSTD_outBuffer output{s.expanded.data(), s.expanded.size(), 0};
    s.zstd_left = ZSTD_decompressStream(s.zstd.get(), &output, &input);
    s.consume(input.pos);
    if (ZSTD_isError(s.zstd_left) != 0)
      return corrupt("{}: byte {}: {}", s.name, s.position(), ZSTD_getErrorName(s.zstd_left));
    if (s.zstd_left == 0) s.zstd_frame = s.position();
    if (output.pos > 0) return std::span<const std::byte>(s.expanded).first(output.pos);
    is_full = false;
  }
  if (s.zstd_left != 0) {
    return corrupt("{}: ends inside a zstd frame, which begins at byte {}", s.name, s.zstd_frame);
  }
  return std::span<const std::byte>();
}

Result<std::span<const std::byte>> DecompressingReader::next_gzip() {
  State& s = *state_;
  for (bool may_hold_more = s.is_inside; !s.is_at_end() || may_hold_more;) {
    if (s.left == 0 && !s.is_over) STOKER_RETURN_IF_ERROR(s.refill());
    if (!s.is_inside) {
      // Members one after another, as pigz and bgzip write them; zeros may pad the end.
      while (s.position() > 0 && s.left > 0 && s.unread().front() == std::byte{0}) s.consume(1);
      if (s.left == 0) continue;
      if (s.position() > 0 && !s.is_at_gzip_member()) return trailing_bytes(s.name, s.position(), s.size);
      isal_inflate_init(&s.gzip);
      s.gzip.crc_flag = ISAL_GZIP;
      s.is_inside = true;
    }
    s.gzip.next_in = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(s.unread().data()));
    s.gzip.avail_in = static_cast<std::uint32_t>(s.left);
    s.gzip.next_out = reinterpret_cast<std::uint8_t*>(s.expanded.data());
    s.gzip.avail_out = static_cast<std::uint32_t>(s.expanded.size());
    const int code = isal_inflate(&s.gzip);
    s.consume(s.left - s.gzip.avail_in);
    if (code != ISAL_DECOMP_OK && code != ISAL_END_INPUT)
      return corrupt("{}: byte {}: damaged gzip data", s.name, s.position());
    if (s.gzip.block_state == ISAL_BLOCK_FINISH) s.is_inside = false;
    const std::size_t got = s.expanded.size() - s.gzip.avail_out;
    if (got > 0) return std::span<const std::byte>(s.expanded).first(got);
    may_hold_more = false;
  }
  if (s.is_inside || s.offset == 0) return corrupt("{}: ends inside gzip data", s.name);
  return std::span<const std::byte>();
}

}  // namespace stoker::archive
