#include "farm/ledger/records.h"

#include <algorithm>
#include <charconv>

#include "base/enum_names.h"
#include "base/hash.h"

namespace stoker::farm {

namespace {

constexpr std::size_t kMarkLength = 10;  // " #" and 8 digits

// One word: blanks, control bytes, '%' and '#' as %XX; "-" for an empty text.
std::string word_of(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain =
        byte > ' ' && c != '%' && c != '#' && byte != 0x7F && !(c == '-' && text.size() == 1);
    word += is_plain ? std::string(1, c) : "%" + hex(std::as_bytes(std::span(&c, 1)));
  }
  return word.empty() ? "-" : word;
}

// The words of a line. The first one that is not as expected makes all that follow fail.
class LedgerWords {
 public:
  explicit LedgerWords(std::string_view line) : rest_(line) {}

  std::string_view next() {
    const std::size_t blank = rest_.find(' ');
    const std::string_view word = rest_.substr(0, blank);
    rest_ = blank == std::string_view::npos ? std::string_view() : rest_.substr(blank + 1);
    is_valid_ = is_valid_ && !word.empty();
    return word;
  }
  template <typename Number>
  Number number() {
    return number_in<Number>(next());
  }
  std::uint64_t key() {
    const std::string_view word = next();
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
    if (problem != std::errc{} || end != word.data() + word.size() || word.size() != 16) is_valid_ = false;
    return value;
  }
  std::string text() {
    const std::string_view word = next();
    std::string result;
    if (word == "-") return result;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (word[i] != '%') {
        result += word[i];
        continue;
      }
      unsigned byte = 0;
      const std::string_view digits = word.substr(i + 1, 2);
      const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      if (problem != std::errc{} || digits.size() != 2 || end != digits.data() + 2) is_valid_ = false;
      result += static_cast<char>(byte);
      i += 2;
    }
    return result;
  }
  // "0-99,105".
  std::vector<TaskIndex> ranges() {
    std::vector<TaskIndex> tasks;
    const std::string_view word = next();
    if (word == "-") return tasks;
    for (std::string_view part : split(word, ',')) {
      const std::size_t dash = part.find('-');
      const auto first = number_in<TaskIndex>(part.substr(0, dash));
      const auto last = dash == std::string_view::npos ? first : number_in<TaskIndex>(part.substr(dash + 1));
      if (!is_valid_ || last < first || (!tasks.empty() && first <= tasks.back()) || last - first > kMost) {
        is_valid_ = false;
        return tasks;
      }
      for (TaskIndex task = first; task <= last; ++task) tasks.push_back(task);
    }
    return tasks;
  }
  bool is_finished() const { return is_valid_ && rest_.empty(); }

 private:
  static constexpr TaskIndex kMost = 100'000'000;

  template <typename Number>
  Number number_in(std::string_view word) {
    Number value{};
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (problem != std::errc{} || end != word.data() + word.size()) is_valid_ = false;
    return value;
  }

  std::string_view rest_;
  bool is_valid_ = true;
};

std::string ranges_of(const std::vector<TaskIndex>& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size();) {
    std::size_t end = i + 1;
    while (end < tasks.size() && tasks[end] == tasks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += format("{}", tasks[i]);
    if (end > i + 1) text += format("-{}", tasks[end - 1]);
    i = end;
  }
  return text.empty() ? "-" : text;
}

std::string words_for(const WorkerStart& record) {
  return format("worker {} {} {} {} {} {} {:016x} {:.3f}", word_of(record.id), word_of(record.who.host),
                word_of(record.who.boot), record.who.pid, record.who.pid_start, word_of(record.job),
                record.list_digest, record.time);
}

std::string words_for(const TaskEnd& record) {
  return format("end {} {:016x} {} {} {} {} {:.3f} {:.4f} {} {} {} {}", record.task, record.key,
                record.attempt, stoker::to_text(record.outcome), record.code, record.signal, record.start,
                record.seconds, record.peak_bytes, record.offset, record.length,
                record.is_kept ? "kept" : "free");
}

std::string words_for(const TasksFreed& record) { return "freed " + ranges_of(record.tasks); }
std::string words_for(const WorkerExit& record) { return format("exit {:.3f}", record.time); }
std::string words_for(const TaskClaim& record) {
  return format("claim {} {}", word_of(record.worker), ranges_of(record.tasks));
}

std::optional<LedgerRecord> parse_end(LedgerWords& words) {
  TaskEnd end;
  end.task = words.number<TaskIndex>();
  end.key = words.key();
  end.attempt = words.number<std::uint32_t>();
  const auto outcome = enum_named<TaskOutcome>(words.next());
  end.code = words.number<int>();
  end.signal = words.number<int>();
  end.start = words.number<double>();
  end.seconds = words.number<double>();
  end.peak_bytes = words.number<std::uint64_t>();
  end.offset = words.number<std::uint64_t>();
  end.length = words.number<std::uint64_t>();
  const std::string_view kept = words.next();
  if (!outcome || *outcome == TaskOutcome::waiting || (kept != "kept" && kept != "free")) return std::nullopt;
  end.outcome = *outcome;
  end.is_kept = kept == "kept";
  return end;
}

std::optional<LedgerRecord> parse_start(LedgerWords& words) {
  WorkerStart start;
  start.id = words.text();
  start.who.host = words.text();
  start.who.boot = words.text();
  start.who.pid = words.number<std::int64_t>();
  start.who.pid_start = words.number<std::int64_t>();
  start.job = words.text();
  start.list_digest = words.key();
  start.time = words.number<double>();
  return start;
}

std::optional<LedgerRecord> parse_kind(std::string_view kind, LedgerWords& words) {
  if (kind == "end") return parse_end(words);
  if (kind == "worker") return parse_start(words);
  if (kind == "freed") return TasksFreed{words.ranges()};
  if (kind == "exit") return WorkerExit{words.number<double>()};
  if (kind != "claim") return std::nullopt;
  TaskClaim claim;
  claim.worker = words.text();
  claim.tasks = words.ranges();
  return claim;
}

}  // namespace

std::string ledger_line(const LedgerRecord& record) {
  std::string line = std::visit([](const auto& alternative) { return words_for(alternative); }, record);
  const std::uint32_t crc = crc32c(std::string_view(line));
  line += format(" #{:08x}\n", crc);
  return line;
}

std::optional<LedgerRecord> parse_ledger_line(std::string_view line) {
  if (line.size() <= kMarkLength) return std::nullopt;
  const std::string_view text = line.substr(0, line.size() - kMarkLength);
  const std::string_view mark = line.substr(text.size());
  std::uint32_t crc = 0;
  const auto [end, problem] = std::from_chars(mark.data() + 2, mark.data() + mark.size(), crc, 16);
  if (!mark.starts_with(" #") || problem != std::errc{} || end != mark.data() + mark.size() ||
      crc != crc32c(text))
    return std::nullopt;
  LedgerWords words(text);
  const std::string_view kind = words.next();
  auto record = parse_kind(kind, words);
  return words.is_finished() ? record : std::nullopt;
}

}  // namespace stoker::farm
