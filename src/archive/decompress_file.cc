#include "archive/decompress_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace stoker::archive {

namespace {

static_assert(std::endian::native == std::endian::little, "frame sizes are read in place");

// The first bytes of a file, or those behind its skippable frames.
struct FileHead {
  std::array<std::byte, 16> bytes{};
  std::size_t size = 0;
  std::uint64_t offset = 0;

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), size}; }
};

Result<FileHead> read_head(const File& file) {
  constexpr int kMaxFrames = 1024;
  constexpr std::uint64_t kFrameHeader = 8;
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  FileHead head;
  for (int frames = 0;; ++frames) {
    head.size = std::min<std::uint64_t>(head.bytes.size(), size - head.offset);
    STOKER_RETURN_IF_ERROR(file.read_at(head.offset, std::span(head.bytes).first(head.size)));
    if (head.size < kFrameHeader || !is_skippable_frame(head.bytes) || frames == kMaxFrames) return head;
    std::uint32_t length = 0;
    std::memcpy(&length, head.bytes.data() + 4, sizeof length);
    if (length > size - head.offset - kFrameHeader) return head;  // truncated: the decompressor reports it
    head.offset += kFrameHeader + length;
  }
}

bool is_lz4(std::string_view head) {
  return head.starts_with("\x04\x22\x4D\x18") || head.starts_with("\x02\x21\x4C\x18");
}

// lzma files have no magic number: usual parameters, a dictionary size, then the size or all ones.
bool is_lzma(std::string_view head) {
  if (head.size() < 13 || !head.starts_with(std::string_view("\x5D\0\0", 3))) return false;
  const std::string_view size = head.substr(5, 8);
  const bool is_plausible = size.substr(5) == std::string_view("\0\0\0", 3);  // below 1 TiB
  return head.substr(3, 2) != std::string_view("\0\0", 2) && (is_plausible || size == std::string(8, '\xFF'));
}

struct OtherCompression {
  std::string_view name;
  std::string_view command;  // decompresses to standard output
};

std::optional<OtherCompression> other_compression(std::string_view head) {
  if (head.starts_with("BZh")) return OtherCompression{"bzip2", "bzip2 -dc"};
  if (head.starts_with("\xFD"
                       "7zXZ"))
    return OtherCompression{"xz", "xz -dc"};
  if (head.starts_with("\x1F\x9D")) return OtherCompression{"compress", "gzip -dc"};
  if (head.starts_with("LZIP")) return OtherCompression{"lzip", "lzip -dc"};
  if (head.starts_with("\x89LZO")) return OtherCompression{"lzop", "lzop -dc"};
  if (is_lz4(head)) return OtherCompression{"lz4", "lz4 -dc"};
  if (is_lzma(head)) return OtherCompression{"lzma", "xz -dc"};
  return std::nullopt;
}

}  // namespace

Result<CompressionFormat> detect_compression(const File& file) {
  STOKER_ASSIGN_OR_RETURN(head, read_head(file));
  if (head.offset == 0) return detect_compression(std::span(head.bytes).first(head.size));
  return is_lz4(head.text()) ? CompressionFormat::none : CompressionFormat::zstd;
}

Status reject_other_compression(const File& file, const std::string& subject) {
  STOKER_ASSIGN_OR_RETURN(head, read_head(file));
  const std::optional<OtherCompression> found = other_compression(head.text());
  if (!found || (head.offset > 0 && !is_lz4(head.text()))) return {};
  Path converted = file.path();
  converted.replace_extension(".zst");
  if (converted == file.path()) converted += ".zst";
  return invalid("{}: is compressed with {}, but only gzip and zstd are supported", subject, found->name)
      .cure("{} {} | zstd -T0 > {}", found->command, shell_quote(file.path().string()),
            shell_quote(converted.string()));
}

Result<File> create_unnamed_file(const Path& folder) {
  const Path path = folder / (".expanded-" + random_name());
  STOKER_RETURN_IF_ERROR(File::create_new(path).status());
  STOKER_ASSIGN_OR_RETURN(file, File::open_read_write(path));
  STOKER_RETURN_IF_ERROR(remove_file(path));
  return std::move(file);
}

Result<File> decompress_file(File file, const Scratch& scratch, Progress& progress) {
  constexpr std::uint64_t kReservedShare = 20;  // a twentieth stays
  STOKER_ASSIGN_OR_RETURN(compression, detect_compression(file));
  if (compression == CompressionFormat::none) return file;
  STOKER_ASSIGN_OR_RETURN(free, free_space(scratch.folder));
  const ByteCount most = scratch.limit.value_or(ByteCount{free.value - free.value / kReservedShare});
  STOKER_ASSIGN_OR_RETURN(out, create_unnamed_file(scratch.folder));
  STOKER_ASSIGN_OR_RETURN(reader, DecompressingReader::open(file, compression));
  for (std::uint64_t written = 0;;) {
    if (progress.stop_requested()) return cancelled("{}: interrupted during decompression", file.path());
    STOKER_ASSIGN_OR_RETURN(piece, reader.next());
    if (piece.empty()) return std::move(out);
    written += piece.size();
    if (written > most.value)
      return no_space("{}: decompresses to over {}, more than the free space", file.path(), rounded(most));
    STOKER_RETURN_IF_ERROR(out.write(piece));
    progress.report(
        {.done = reader.offset(), .total = reader.size(), .unit = "bytes", .bytes = {reader.offset()}});
  }
}

}  // namespace stoker::archive
