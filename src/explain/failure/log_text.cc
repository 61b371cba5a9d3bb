#include "explain/failure/log_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "format/expand.h"

namespace stoker::explain {
namespace {

constexpr std::size_t kPiece = 1u << 20;
constexpr std::size_t kJudged = 64u << 10;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Makes blocks of whole lines of pieces, and bytes of letters.
class Blocks {
 public:
  Blocks(const BlockSink& sink, LogReading& reading, const Words& words)
      : sink_(sink), reading_(reading), words_(words) {}

  void add(std::string_view piece) {
    if (reading_.bytes == 0) judge(piece);
    reading_.bytes += piece.size();
    if (is_wide_) {
      add_wide(piece);
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
  void judge(std::string_view beginning) {
    is_wide_ = beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF");
    low_first_ = beginning.starts_with("\xFF\xFE");
    if (is_wide_) {
      reading_.notes.push_back(words_.say("is UTF-16: letters beyond ASCII are not read"));
      return;
    }
    const std::string_view judged = beginning.substr(0, kJudged);
    const auto odd = std::count_if(judged.begin(), judged.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte < ' ' && c != '\0' && c != '\n' && c != '\r' && c != '\t' && c != '\x1b' && c != '\b';
    });
    if (static_cast<std::size_t>(odd) * 10 > judged.size())
      reading_.notes.push_back(words_.say("does not look like a log: it is binary"));
  }

  void add_wide(std::string_view piece) {
    for (const char c : piece) {
      if (!half_) {
        half_ = c;
        continue;
      }
      const char low = low_first_ ? *half_ : c;
      const char high = low_first_ ? c : *half_;
      half_.reset();
      text_.push_back(high == 0 ? low : '?');
    }
  }

  const BlockSink& sink_;
  LogReading& reading_;
  const Words& words_;
  std::string text_;
  bool is_wide_ = false;
  bool low_first_ = false;
  std::optional<char> half_;
};

// Where data begins at or after `offset`; `size` behind the last.
std::uint64_t next_data(const File& file, std::uint64_t offset, std::uint64_t size) {
  const off_t at = ::lseek(file.fd(), static_cast<off_t>(offset), SEEK_DATA);
  if (at < 0) return errno == ENXIO ? size : offset;
  return static_cast<std::uint64_t>(at);
}

void read_plain(const File& file, std::uint64_t size, Blocks& blocks, LogReading& reading,
                const Words& words) {
  std::vector<std::byte> buffer(kPiece);
  std::uint64_t hole = 0;
  for (std::uint64_t offset = 0; offset < size;) {
    const std::uint64_t data = std::min(next_data(file, offset, size), size);
    hole += data - offset;
    offset = data;
    const auto piece = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), size - offset));
    if (piece.empty()) break;
    if (const Status read = file.read_at(offset, piece); !read.ok()) {
      reading.notes.push_back(words.say("changed while it was read ({})", read.message()));
      break;
    }
    blocks.add(text_of(piece));
    offset += piece.size();
  }
  if (hole >= kPiece)
    reading.notes.push_back(words.say("has holes without data ({}), passed over", rounded(ByteCount{hole})));
}

void read_expanded(formats::ExpandingReader& reader, const std::string& name, Blocks& blocks,
                   LogReading& reading, const Words& words) {
  for (;;) {
    const auto piece = reader.next();
    if (!piece.ok()) {
      std::string_view why = piece.error().message();
      const std::string prefix = name + ": ";
      if (why.starts_with(prefix)) why.remove_prefix(prefix.size());
      reading.notes.push_back(words.say("{}: read as far as it goes", why));
      return;
    }
    if (piece->empty()) return;
    blocks.add(text_of(*piece));
  }
}

// A pipe gives what is in it.
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

Result<LogReading> visit_log(const Path& path, const BlockSink& sink, const Words& words) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return posix_error(path.string(), errno);
  if (!S_ISREG(facts.st_mode)) return invalid("{}: is no regular file", path);
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  std::array<std::byte, 4> beginning{};
  const auto read = std::span(beginning).first(std::min<std::uint64_t>(size, beginning.size()));
  RETURN_IF_ERROR(file.read_at(0, read));
  LogReading reading;
  Blocks blocks(sink, reading, words);
  const formats::Packing packing = formats::packing_of(read);
  if (packing == formats::Packing::none) {
    read_plain(file, size, blocks, reading, words);
  } else {
    OK_OR_RETURN(reader, formats::ExpandingReader::open(file, packing));
    read_expanded(reader, path.string(), blocks, reading, words);
  }
  blocks.finish();
  return reading;
}

Result<LogReading> visit_log(int fd, const std::string& name, const BlockSink& sink, const Words& words) {
  std::array<std::byte, 4> beginning{};
  OK_OR_RETURN(count, read_fully(fd, name, beginning));
  std::span<const std::byte> first = std::span(beginning).first(count);
  const formats::Packing packing = formats::packing_of(first);
  const formats::NextBytes next = [&](std::span<std::byte> out) -> Result<std::size_t> {
    const std::size_t known = first.size();
    std::copy(first.begin(), first.end(), out.begin());
    first = {};
    OK_OR_RETURN(more, read_fully(fd, name, out.subspan(known)));
    return known + more;
  };
  OK_OR_RETURN(reader, formats::ExpandingReader::open(name, next, packing));
  LogReading reading;
  Blocks blocks(sink, reading, words);
  read_expanded(reader, name, blocks, reading, words);
  blocks.finish();
  return reading;
}

}  // namespace stoker::explain
