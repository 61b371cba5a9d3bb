#include "sweep/study/journal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fcntl.h>
#include <unistd.h>

#include "base/enum_names.h"
#include "base/hash.h"
#include "stoker/text.h"

namespace stoker::sweep {

namespace {

constexpr std::size_t kPieceSize = 32 * 1024;
constexpr std::size_t kCrcLength = 10;  // " #" and 8 digits

template <typename Number>
void put(std::string& line, Number number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  line += ' ';
  line.append(digits.data(), end.ptr);
}

// One word: blanks, line ends, '%' and '#' as %XX.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && c != '%' && c != '#' && byte != 0x7F) {
      result += c;
    } else {
      result += '%';
      result += hex(std::as_bytes(std::span(&c, 1)));
    }
  }
  return result;
}

std::optional<std::string> unescaped(std::string_view word) {
  std::string result;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      result += word[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= word.size()) return std::nullopt;
    const auto [end, problem] = std::from_chars(&word[i + 1], &word[i + 1] + 2, byte, 16);
    if (problem != std::errc{} || end != &word[i + 1] + 2) return std::nullopt;
    result += static_cast<char>(byte);
    i += 2;
  }
  return result;
}

// The words of a line from the left. The first one that is not as expected makes all that follow fail.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view next() {
    const std::size_t blank = rest_.find(' ');
    const std::string_view word = rest_.substr(0, blank);
    rest_ = blank == std::string_view::npos ? std::string_view() : rest_.substr(blank + 1);
    if (word.empty()) is_valid_ = false;
    return word;
  }
  template <typename Number>
  Number number() {
    const std::string_view word = next();
    Number value{};
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size()) is_valid_ = false;
    return value;
  }
  std::vector<double> numbers() {
    std::vector<double> values;
    while (!rest_.empty() && rest_.front() != ':' && is_valid_) values.push_back(number<double>());
    return values;
  }
  std::string text() {
    auto word = unescaped(next());
    if (!word) is_valid_ = false;
    return std::move(word).value_or("");
  }
  // A word that begins with ':', or "" at the end.
  std::string optional_text() { return rest_.empty() ? "" : text().substr(1); }
  bool is_valid() const { return is_valid_; }

 private:
  std::string_view rest_;
  bool is_valid_ = true;
};

void put_numbers(std::string& line, const std::vector<double>& numbers) {
  for (const double number : numbers) put(line, number);
}

std::string words_of(const TrialStart& record) {
  std::string line = "start";
  put(line, record.number);
  put(line, record.attempt);
  put(line, record.time);
  line += ' ' + escaped(record.origin);
  put_numbers(line, record.point);
  if (!record.sampler_state.empty()) line += " :" + escaped(record.sampler_state);
  return line;
}

std::string words_of(const SkippedPoints& record) {
  std::string line = "skip";
  put(line, record.number);
  put(line, record.count);
  return line;
}

std::string words_of(const TrialReport& record) {
  std::string line = "report";
  put(line, record.number);
  put(line, record.attempt);
  put(line, record.step);
  put(line, record.value);
  put_numbers(line, record.rungs);
  return line;
}

// A message begins with ':', so that none is a word too.
std::string words_of(const TrialEnd& record) {
  std::string line = "end";
  put(line, record.number);
  put(line, record.attempt);
  put(line, record.time);
  line += format(" {} :{}", stoker::to_text(record.state), escaped(record.message));
  put_numbers(line, record.values);
  return line;
}

std::optional<Record> parse_words(std::string_view line) {
  Words words(line);
  const std::string_view kind = words.next();
  Record record;
  if (kind == "start") {
    TrialStart start;
    start.number = words.number<TrialNumber>();
    start.attempt = words.number<std::uint32_t>();
    start.time = words.number<double>();
    start.origin = words.text();
    start.point = words.numbers();
    start.sampler_state = words.optional_text();
    record = std::move(start);
  } else if (kind == "skip") {
    SkippedPoints skipped;
    skipped.number = words.number<TrialNumber>();
    skipped.count = words.number<std::uint64_t>();
    record = skipped;
  } else if (kind == "report") {
    TrialReport report;
    report.number = words.number<TrialNumber>();
    report.attempt = words.number<std::uint32_t>();
    report.step = words.number<std::int64_t>();
    report.value = words.number<double>();
    report.rungs = words.numbers();
    record = std::move(report);
  } else if (kind == "end") {
    TrialEnd end;
    end.number = words.number<TrialNumber>();
    end.attempt = words.number<std::uint32_t>();
    end.time = words.number<double>();
    const auto state = enum_named<TrialState>(words.next());
    const std::string message = words.text();
    if (!state || *state == TrialState::running || !message.starts_with(':')) return std::nullopt;
    end.state = *state;
    end.message = message.substr(1);
    end.values = words.numbers();
    record = std::move(end);
  } else {
    return std::nullopt;
  }
  if (!words.is_valid()) return std::nullopt;
  return record;
}

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

std::string line_of(const Record& record) {
  std::string line = std::visit([](const auto& alternative) { return words_of(alternative); }, record);
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(line)));
  return line + format(" #{:08x}\n", crc);
}

std::optional<Record> record_of(std::string_view line) {
  if (line.size() <= kCrcLength) return std::nullopt;
  const std::string_view words = line.substr(0, line.size() - kCrcLength);
  const std::string_view mark = line.substr(words.size());
  std::uint32_t crc = 0;
  const auto [end, problem] = std::from_chars(mark.data() + 2, mark.data() + mark.size(), crc, 16);
  if (!mark.starts_with(" #") || problem != std::errc{} || end != mark.data() + mark.size())
    return std::nullopt;
  if (crc != crc32c(std::as_bytes(std::span(words)))) return std::nullopt;
  return parse_words(words);
}

Result<JournalWriter> JournalWriter::open(const Path& path) {
  JournalWriter writer;
  STOKER_ASSIGN_OR_RETURN(file, File::open_append(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  STOKER_ASSIGN_OR_RETURN(complete, end_of_last_line(path, size));
  if (complete < size) STOKER_RETURN_IF_ERROR(file.truncate(complete));
  writer.file_ = std::move(file);
  return writer;
}

// A write that was cut by a full disk leaves a part of a line; the next record would continue it.
Status JournalWriter::append(const Record& record) {
  STOKER_ASSIGN_OR_RETURN(before, file_.size());
  const Status written = file_.write(line_of(record));
  if (!written.ok()) {
    (void)file_.truncate(before);
    return written;
  }
  is_dirty_ = true;
  return {};
}

Status JournalWriter::sync() {
  if (!is_dirty_) return {};
  if (::fdatasync(file_.fd()) != 0) return posix_error(file_.path().string(), errno);
  is_dirty_ = false;
  return {};
}

// The file is opened for each read: NFS promises fresh contents only then.
Result<std::vector<Record>> JournalReader::read() {
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path_));
  std::vector<Record> records;
  std::string text;
  for (bool is_at_end = false; !is_at_end;) {
    const auto piece = file.read_available(offset_ + text.size(), kPieceSize);
    // The records so far count, and the next read() returns the error.
    if (!piece && records.empty()) return piece.error();
    if (!piece) break;
    is_at_end = piece->size() < kPieceSize;
    text += *piece;
    std::size_t start = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
      if (auto record = record_of(std::string_view(text).substr(start, end - start))) {
        records.push_back(*std::move(record));
      } else {
        ++damaged_;
      }
      start = end + 1;
    }
    offset_ += start;
    text.erase(0, start);
  }
  return records;
}

}  // namespace stoker::sweep
