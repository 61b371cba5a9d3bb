#include "farm/ledger/records.h"

#include <algorithm>

#include "base/enum_names.h"
#include "base/journal.h"

namespace stoker::farm {

namespace {

// An empty text is "-".
std::string word_of(std::string_view text) {
  if (text.empty()) return "-";
  return text == "-" ? "%2d" : journal_word(text);
}

class LedgerWords : public JournalWords {
 public:
  using JournalWords::JournalWords;

  std::uint64_t key() {
    constexpr std::size_t kDigits = 16;
    const std::string_view word = next();
    if (word.size() != kDigits) fail();
    return number_in<std::uint64_t>(word, 16);
  }
  // Of word_of().
  std::string text() {
    const bool is_empty = rest() == "-" || rest().starts_with("- ");
    std::string word = JournalWords::text();
    return is_empty ? "" : word;
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
      if (!is_valid() || last < first || (!tasks.empty() && first <= tasks.back()) || last - first > kMost) {
        fail();
        return tasks;
      }
      for (TaskIndex task = first; task <= last; ++task) tasks.push_back(task);
    }
    return tasks;
  }

 private:
  static constexpr TaskIndex kMost = 100'000'000;
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
  return journal_line(std::visit([](const auto& alternative) { return words_for(alternative); }, record));
}

std::optional<LedgerRecord> parse_ledger_line(std::string_view line) {
  const auto text = journal_words(line);
  if (!text) return std::nullopt;
  LedgerWords words(*text);
  const std::string_view kind = words.next();
  auto record = parse_kind(kind, words);
  return words.is_finished() ? record : std::nullopt;
}

}  // namespace stoker::farm
