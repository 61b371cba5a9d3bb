#include "base/journal.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/hash.h"
#include "stoker/text.h"

namespace stoker {

namespace {

constexpr std::size_t kCrcLength = 10;  // " #" and 8 digits
constexpr std::uint64_t kReadSize = 64 * 1024;

// Where the last complete line ends: looks from the end of the file back.
Result<std::uint64_t> end_of_last_line(const Path& path, std::uint64_t size) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  constexpr std::uint64_t kPart = 4096;
  for (std::uint64_t end = size; end > 0;) {
    const std::uint64_t begin = end - std::min(end, kPart);
    std::string part(end - begin, '\0');
    STOKER_RETURN_IF_ERROR(file.read_at(begin, std::as_writable_bytes(std::span(part))));
    if (const std::size_t found = part.rfind('\n'); found != std::string::npos) return begin + found + 1;
    end = begin;
  }
  return std::uint64_t{0};
}

}  // namespace

std::string journal_line(std::string words) {
  words += format(" #{:08x}\n", crc32c(std::string_view(words)));
  return words;
}

std::optional<std::string_view> journal_words(std::string_view line) {
  if (line.size() <= kCrcLength) return std::nullopt;
  const std::string_view words = line.substr(0, line.size() - kCrcLength);
  const std::string_view mark = line.substr(words.size());
  std::uint32_t crc = 0;
  const auto [end, problem] = std::from_chars(mark.data() + 2, mark.data() + mark.size(), crc, 16);
  const bool is_number = problem == std::errc{} && end == mark.data() + mark.size();
  if (!mark.starts_with(" #") || !is_number || crc != crc32c(words)) return std::nullopt;
  return words;
}

std::string journal_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && c != '%' && c != '#' && byte != 0x7F) {
      word += c;
    } else {
      word += '%';
      word += hex(std::as_bytes(std::span(&c, 1)));
    }
  }
  return word;
}

std::string_view JournalWords::next() {
  const std::size_t blank = rest_.find(' ');
  const std::string_view word = rest_.substr(0, blank);
  rest_ = blank == std::string_view::npos ? std::string_view() : rest_.substr(blank + 1);
  if (word.empty()) is_valid_ = false;
  return word;
}

std::string JournalWords::text() {
  const std::string_view word = next();
  std::string result;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      result += word[i];
      continue;
    }
    const std::string_view digits = word.substr(i + 1, 2);
    if (digits.size() != 2) is_valid_ = false;
    result += static_cast<char>(number_in<unsigned>(digits, 16));
    i += 2;
  }
  return result;
}

Result<JournalFile> JournalFile::open(const Path& path) {
  JournalFile journal;
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  STOKER_ASSIGN_OR_RETURN(complete, end_of_last_line(path, size));
  if (complete < size) STOKER_RETURN_IF_ERROR(file.truncate(complete));
  journal.file_ = std::move(file);
  journal.size_ = complete;
  return journal;
}

// A write that was cut by a full disk leaves a part of a line; the next record would continue it.
Status JournalFile::append(std::string_view line) {
  if (const Status written = file_.write(line); !written.ok()) {
    (void)file_.truncate(size_);
    return written;
  }
  size_ += line.size();
  is_dirty_ = true;
  return {};
}

Status JournalFile::sync() {
  if (!is_dirty_) return {};
  if (::fdatasync(file_.fd()) != 0) return posix_error(file_.path().string(), errno);
  is_dirty_ = false;
  return {};
}

Status read_journal(const Path& path, std::uint64_t* offset,
                    const std::function<void(std::string_view line)>& sink, std::uint64_t end) {
  if (*offset >= end) return {};
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  std::string text;
  for (bool is_at_end = false; !is_at_end;) {
    const std::uint64_t from = *offset + text.size();
    const std::uint64_t most = std::min(end - from, kReadSize);
    STOKER_ASSIGN_OR_RETURN(piece, file.read_available(from, most));
    is_at_end = piece.size() < kReadSize;
    const std::size_t old = text.size();
    text += piece;
    std::size_t start = 0;
    for (std::size_t at = text.find('\n', old); at != std::string::npos; at = text.find('\n', start)) {
      sink(std::string_view(text).substr(start, at - start));
      start = at + 1;
    }
    *offset += start;
    text.erase(0, start);
  }
  return {};
}

}  // namespace stoker
