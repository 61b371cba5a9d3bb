#include "diagnose/log_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/decompress.h"
#include "base/file.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kPiece = 1u << 20;
constexpr std::size_t kSniffed = 64u << 10;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Assembles blocks of whole lines from pieces of bytes, and decodes UTF-16.
class BlockAssembler {
 public:
  BlockAssembler(const BlockSink& sink, LogReading& reading) : sink_(sink), reading_(reading) {}

  void add(std::string_view piece) {
    if (reading_.bytes == 0) detect_encoding(piece);
    reading_.bytes += piece.size();
    if (is_utf16_) {
      add_utf16(piece);
    } else {
      text_ += piece;
    }
    std::size_t whole = text_.rfind('\n') + 1;
    if (whole == 0 && text_.size() >= kPiece) whole = text_.size();
    if (whole == 0) return;
    sink_(std::string_view(text_).substr(0, whole));
    text_.erase(0, whole);
  }
  void finish() {
    if (!text_.empty()) sink_(text_);
  }

 private:
  void detect_encoding(std::string_view beginning) {
    is_utf16_ = beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF");
    is_little_endian_ = beginning.starts_with("\xFF\xFE");
    if (is_utf16_) {
      reading_.notes.push_back(message("is UTF-16: non-ASCII characters are ignored"));
      return;
    }
    const std::string_view sniffed = beginning.substr(0, kSniffed);
    const auto binary = std::count_if(sniffed.begin(), sniffed.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte < ' ' && c != '\0' && c != '\n' && c != '\r' && c != '\t' && c != '\x1b' && c != '\b';
    });
    if (static_cast<std::size_t>(binary) * 10 > sniffed.size())
      reading_.notes.push_back(message("is binary, not a log"));
  }

  void add_utf16(std::string_view piece) {
    for (const char c : piece) {
      if (!first_byte_) {
        first_byte_ = c;
        continue;
      }
      const char low = is_little_endian_ ? *first_byte_ : c;
      const char high = is_little_endian_ ? c : *first_byte_;
      first_byte_.reset();
      text_.push_back(high == 0 ? low : '?');
    }
  }

  const BlockSink& sink_;
  LogReading& reading_;
  std::string text_;
  bool is_utf16_ = false;
  bool is_little_endian_ = false;
  std::optional<char> first_byte_;
};

// The next offset with data at or after `offset`; `size` after the last one.
std::uint64_t next_data(const File& file, std::uint64_t offset, std::uint64_t size) {
  const off_t at = ::lseek(file.fd(), static_cast<off_t>(offset), SEEK_DATA);
  if (at < 0) return errno == ENXIO ? size : offset;
  return static_cast<std::uint64_t>(at);
}

void read_plain(const File& file, std::uint64_t size, BlockAssembler& blocks, LogReading& reading) {
  std::vector<std::byte> buffer(kPiece);
  std::uint64_t hole = 0;
  for (std::uint64_t offset = 0; offset < size;) {
    const std::uint64_t data = std::min(next_data(file, offset, size), size);
    hole += data - offset;
    offset = data;
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - offset));
    if (piece.empty()) break;
    if (const Status read = file.read_at(offset, piece); !read.ok()) {
      reading.notes.push_back(message("changed during reading ({})", read.message()));
      break;
    }
    blocks.add(text_of(piece));
    offset += piece.size();
  }
  if (hole >= kPiece) reading.notes.push_back(message("has holes ({}), skipped", rounded(ByteCount{hole})));
}

void read_expanded(archive::DecompressingReader& reader, const std::string& name, BlockAssembler& blocks,
                   LogReading& reading) {
  for (;;) {
    const auto piece = reader.next();
    if (!piece.ok()) {
      std::string_view why = piece.error().message();
      const std::string prefix = name + ": ";
      if (why.starts_with(prefix)) why.remove_prefix(prefix.size());
      reading.notes.push_back(message("{}: read up to this point", why));
      return;
    }
    if (piece->empty()) return;
    blocks.add(text_of(*piece));
  }
}

// Reads until the buffer is full or the pipe ends.
Result<std::size_t> read_fully(int fd, const std::string& name, std::span<std::byte> out) {
  std::size_t got = 0;
  while (got < out.size()) {
    const ssize_t count = ::read(fd, out.data() + got, out.size() - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return posix_error(name, errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

}  // namespace

Result<LogReading> read_log(const Path& path, const BlockSink& sink) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return posix_error(path.string(), errno);
  if (!S_ISREG(facts.st_mode)) return invalid("{}: is not a regular file", path);
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  std::array<std::byte, 4> beginning{};
  const auto read = std::span(beginning).first(std::min<std::uint64_t>(size, beginning.size()));
  STOKER_RETURN_IF_ERROR(file.read_at(0, read));
  LogReading reading;
  BlockAssembler blocks(sink, reading);
  const archive::CompressionFormat packing = archive::detect_compression(read);
  if (packing == archive::CompressionFormat::none) {
    read_plain(file, size, blocks, reading);
  } else {
    STOKER_ASSIGN_OR_RETURN(reader, archive::DecompressingReader::open(file, packing));
    read_expanded(reader, path.string(), blocks, reading);
  }
  blocks.finish();
  return reading;
}

Result<LogReading> read_log(int fd, const std::string& name, const BlockSink& sink) {
  std::array<std::byte, 4> beginning{};
  STOKER_ASSIGN_OR_RETURN(count, read_fully(fd, name, beginning));
  std::span<const std::byte> first = std::span(beginning).first(count);
  const archive::CompressionFormat packing = archive::detect_compression(first);
  const archive::ByteSource next = [&](std::span<std::byte> out) -> Result<std::size_t> {
    const std::size_t known = first.size();
    std::copy(first.begin(), first.end(), out.begin());
    first = {};
    STOKER_ASSIGN_OR_RETURN(more, read_fully(fd, name, out.subspan(known)));
    return known + more;
  };
  STOKER_ASSIGN_OR_RETURN(reader, archive::DecompressingReader::open(name, next, packing));
  LogReading reading;
  BlockAssembler blocks(sink, reading);
  read_expanded(reader, name, blocks, reading);
  blocks.finish();
  return reading;
}

}  // namespace stoker::diagnose
