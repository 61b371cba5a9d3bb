#include "sweep/study/journal.h"

#include <array>
#include <charconv>

#include "base/enum_names.h"
#include "base/journal.h"
#include "stoker/text.h"

namespace stoker::sweep {

namespace {

template <typename Number>
void put(std::string& line, Number number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  line += ' ';
  line.append(digits.data(), end.ptr);
}

class TrialWords : public JournalWords {
 public:
  using JournalWords::JournalWords;

  std::vector<double> numbers() {
    std::vector<double> values;
    while (!rest().empty() && rest().front() != ':' && is_valid()) values.push_back(number<double>());
    return values;
  }
  // A word that begins with ':', or "" at the end.
  std::string optional_text() { return rest().empty() ? "" : text().substr(1); }
};

void put_numbers(std::string& line, const std::vector<double>& numbers) {
  for (const double number : numbers) put(line, number);
}

std::string words_of(const TrialStart& record) {
  std::string line = "start";
  put(line, record.number);
  put(line, record.attempt);
  put(line, record.time);
  line += ' ' + journal_word(record.origin);
  put_numbers(line, record.point);
  if (!record.sampler_state.empty()) line += " :" + journal_word(record.sampler_state);
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

std::string words_of(const SeedResult& record) {
  std::string line = "seed";
  put(line, record.number);
  put(line, record.attempt);
  put(line, record.seed);
  put_numbers(line, record.values);
  return line;
}

// A message begins with ':', so that none is a word too.
std::string words_of(const TrialEnd& record) {
  std::string line = "end";
  put(line, record.number);
  put(line, record.attempt);
  put(line, record.time);
  line += format(" {} :{}", stoker::to_text(record.state), journal_word(record.message));
  put_numbers(line, record.values);
  return line;
}

std::optional<Record> parse_words(std::string_view line) {
  TrialWords words(line);
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
  } else if (kind == "seed") {
    SeedResult seed;
    seed.number = words.number<TrialNumber>();
    seed.attempt = words.number<std::uint32_t>();
    seed.seed = words.number<std::uint64_t>();
    seed.values = words.numbers();
    record = std::move(seed);
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

}  // namespace

std::string line_of(const Record& record) {
  return journal_line(std::visit([](const auto& alternative) { return words_of(alternative); }, record));
}

std::optional<Record> record_of(std::string_view line) {
  const auto words = journal_words(line);
  return words ? parse_words(*words) : std::nullopt;
}

// After an error, the records so far count, and the next read() returns the error.
Status JournalReader::read(const std::function<void(Record record)>& sink) {
  bool has_records = false;
  const Status read = read_journal(path_, &offset_, [&](std::string_view line) {
    auto record = record_of(line);
    damaged_ += record ? 0 : 1;
    has_records = has_records || record;
    if (record) sink(*std::move(record));
  });
  return has_records ? Status() : read;
}

}  // namespace stoker::sweep
