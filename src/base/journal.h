// Journals: text files to which one process appends records while any number of processes read them, on a
// shared filesystem too. A record is one line of words, written by one write(2), and ends with " #" and the
// CRC-32C of the bytes before it in 8 hexadecimal digits. A line that a killed process did not finish is not
// read, and its next process cuts it off. docs/formats/study.md and docs/formats/farm.md are journals.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker {

/// The line of a record: its words, their CRC and a line end.
std::string journal_line(std::string words);
/// The words of a line without its line end, or nullopt if it is damaged.
std::optional<std::string_view> journal_words(std::string_view line);
/// Any text as one word: blanks, control bytes, '%' and '#' as %XX. An empty text is no word.
std::string journal_word(std::string_view text);

/// The words of a line from the left. The first one that is not as expected makes it invalid, and all that
/// follow may then have any value. Belongs to one thread.
class JournalWords {
 public:
  explicit JournalWords(std::string_view words) : rest_(words) {}

  std::string_view next();
  template <typename Number>
  Number number() {
    return number_in<Number>(next());
  }
  /// Of journal_word().
  std::string text();
  bool is_valid() const { return is_valid_; }
  /// Valid, and no word is left.
  bool is_finished() const { return is_valid_ && rest_.empty(); }

 protected:
  template <typename Number, typename... Base>
  Number number_in(std::string_view word, Base... base) {
    Number value{};
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value, base...);
    if (problem != std::errc{} || end != word.data() + word.size()) is_valid_ = false;
    return value;
  }
  void fail() { is_valid_ = false; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  bool is_valid_ = true;
};

/// Appends records. Belongs to one thread.
class JournalFile {
 public:
  JournalFile() = default;
  /// Opens or creates the file, and cuts off an unfinished line. REQUIRES: no other process writes it.
  static Result<JournalFile> open(const Path& path);

  /// Appends a line in one write. NoSpace when the disk is full: nothing of the line is then read back.
  Status append(std::string_view line);
  /// fdatasync(2), unless nothing was appended since the last one.
  Status sync();
  std::uint64_t size() const { return size_; }
  int fd() const { return file_.fd(); }
  const Path& path() const { return file_.path(); }

 private:
  File file_;
  std::uint64_t size_ = 0;
  bool is_dirty_ = false;
};

/// Passes on the complete lines from `*offset` to `end`, without their line ends, and advances `*offset`
/// past them. The file is opened for each call, because NFS promises fresh contents only then.
Status read_journal(const Path& path, std::uint64_t* offset,
                    const std::function<void(std::string_view line)>& sink,
                    std::uint64_t end = std::numeric_limits<std::uint64_t>::max());

}  // namespace stoker
