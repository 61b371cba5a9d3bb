#include "observe/metrics/log_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <re2/re2.h>

namespace stoker::observe {
namespace {

constexpr std::size_t kMaxValues = 256;
constexpr double kLargestStep = 9e15;

struct DictField {
  std::string_view name;
  std::string_view text;  ///< of its value, without quotes
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > 128 || is_digit(name.front())) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("_./- @%()").find(c) != std::string_view::npos;
  });
}

std::optional<double> number_of(std::string_view text) {
  text = trim(text);
  double value = 0;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
  }
  if (text == "NaN") return std::nan("");
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return parse_number(text, &value) ? std::optional(value) : std::nullopt;
}

// What a greedy group like \\S+ takes after a number.
std::string_view without_punctuation(std::string_view text) {
  while (!text.empty() && std::string_view(",;:)]").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> step_of(std::string_view text) {
  const auto value = number_of(text);
  if (!value || !(*value >= 0) || *value > kLargestStep || std::floor(*value) != *value) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

// Removes colours and cursor movements: ESC [ ... letter.
std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
    }
  }
  return plain;
}

// "12/390" at the start of `text`, which is advanced beyond it.
std::optional<std::pair<std::int64_t, std::int64_t>> take_fraction(std::string_view* text) {
  const std::size_t slash = text->find_first_not_of("0123456789");
  if (slash == 0 || slash == std::string_view::npos || (*text)[slash] != '/') return std::nullopt;
  std::size_t end = text->find_first_not_of("0123456789", slash + 1);
  if (end == std::string_view::npos) end = text->size();
  std::int64_t done = 0;
  std::int64_t total = 0;
  if (!parse_number(text->substr(0, slash), &done) ||
      !parse_number(text->substr(slash + 1, end - slash - 1), &total) || total <= 0 || total > 1'000'000'000)
    return std::nullopt;
  text->remove_prefix(end);
  return std::pair(done, total);
}

/// Reads the pairs of a flat Python dict or JSON object. Values that are no numbers are skipped.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : rest_(text) {}

  /// Empty for any other text.
  std::vector<DictField> read() {
    std::vector<DictField> fields;
    if (!take('{')) return {};
    while (fields.size() < kMaxValues) {
      const auto name = quoted();
      if (!name || !take(':')) return {};
      const auto value = scalar();
      if (!value) return {};
      fields.push_back({*name, *value});
      if (take(',')) continue;
      return take('}') && trim(rest_).empty() ? fields : std::vector<DictField>();
    }
    return {};
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of(" \t"))); }
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const char quote = rest_.front();
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  // A text, a number or a word; a nested value as a whole.
  std::optional<std::string_view> scalar() {
    skip_blanks();
    if (rest_.empty()) return std::nullopt;
    if (rest_.front() == '\'' || rest_.front() == '"') return quoted();
    std::size_t depth = 0;
    std::size_t end = 0;
    for (; end < rest_.size(); ++end) {
      const char c = rest_[end];
      if (c == '{' || c == '[' || c == '(') ++depth;
      if (depth == 0 && (c == ',' || c == '}')) break;
      if (c == '}' || c == ']' || c == ')') depth -= depth > 0 ? 1 : 0;
    }
    const std::string_view text = trim(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return text;
  }

  std::string_view rest_;
};

/// The text before the bar of tqdm.
struct BarTitle {
  bool is_training = false;
  std::optional<std::int64_t> epoch;  ///< from 0
};

// " 45", "Epoch 2:  45", "Epoch 2/5:  45", "train:  45"
BarTitle title_of(std::string_view head) {
  while (!head.empty() && (is_digit(head.back()) || head.back() == ' ')) head.remove_suffix(1);
  BarTitle title;
  const std::string text = to_lower(trim(head));
  const auto starts = [&](std::string_view word) { return text.starts_with(word); };
  title.is_training = text.empty() || starts("epoch") || starts("train") || starts("step") || starts("iter");
  constexpr std::string_view kEpoch = "epoch ";
  if (!starts(kEpoch)) return title;
  const std::string_view rest = std::string_view(text).substr(kEpoch.size());
  const std::string_view number = rest.substr(0, rest.find_first_not_of("0123456789"));
  std::int64_t epoch = 0;
  if (!parse_number(number, &epoch) || epoch < 0 || epoch > 1'000'000) return title;
  const bool counts_from_one = rest.substr(number.size()).starts_with('/');
  title.epoch = std::max<std::int64_t>(0, epoch - (counts_from_one ? 1 : 0));
  return title;
}

bool is_step_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames = {"step",      "global_step", "train/global_step",
                                                      "iteration", "iter",        "num_steps"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// A JSON line may be any record of a log: only those about a training have metrics.
bool is_of_training(const std::vector<DictField>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const DictField& field) {
    const std::string name = to_lower(field.name);
    return is_step_name(name) || name == "epoch" || name.find("loss") != std::string::npos ||
           name.find("acc") != std::string::npos;
  });
}

void add_value(std::string_view name, std::string_view text, LineMetrics& metrics) {
  // Lightning's number of the log folder.
  if (!is_name(name) || name == "v_num" || metrics.values.size() == kMaxValues) return;
  if (const auto value = number_of(text)) metrics.values.emplace_back(name, *value);
}

std::optional<LineMetrics> if_any(LineMetrics metrics) {
  return metrics.values.empty() ? std::nullopt : std::optional(std::move(metrics));
}

}  // namespace

LogMetrics::LogMetrics(LogMetrics&&) noexcept = default;
LogMetrics& LogMetrics::operator=(LogMetrics&&) noexcept = default;
LogMetrics::~LogMetrics() = default;

Result<LogMetrics> LogMetrics::create(std::string_view regex) {
  LogMetrics metrics;
  if (regex.empty()) return metrics;
  metrics.regex_ = std::make_unique<re2::RE2>(re2::StringPiece(regex.data(), regex.size()), re2::RE2::Quiet);
  if (!metrics.regex_->ok()) return invalid("metrics_from.regex: {}", metrics.regex_->error());
  for (const auto& [name, number] : metrics.regex_->NamedCapturingGroups()) {
    if (name == "step") {
      metrics.step_group_ = number;
    } else {
      metrics.groups_.emplace_back(name, number);
    }
  }
  return metrics;
}

std::optional<LineMetrics> LogMetrics::read(std::string_view line) {
  std::string plain;
  if (line.find('\x1b') != std::string_view::npos) {
    plain = without_escapes(line);
    line = plain;
  }
  if (regex_) return read_regex(line);
  line = trim(line);
  if (line.starts_with('{')) return read_dict(line);
  if (line.find("%|") != std::string_view::npos) return read_bar(line);
  if (line.starts_with("Epoch ")) read_epoch(line);
  if (!line.empty() && is_digit(line.front())) return read_keras(line);
  return std::nullopt;
}

void LogMetrics::read_unfinished(std::string_view line) {
  if (!regex_ && line.find("%|") != std::string_view::npos) (void)read_bar(trim(without_escapes(line)));
}

std::optional<LineMetrics> LogMetrics::read_regex(std::string_view line) {
  const int count = regex_->NumberOfCapturingGroups() + 1;
  std::vector<re2::StringPiece> found(static_cast<std::size_t>(count));
  const re2::StringPiece text(line.data(), line.size());
  if (!regex_->Match(text, 0, line.size(), re2::RE2::UNANCHORED, found.data(), count)) return std::nullopt;
  const auto group = [&](int number) {
    const re2::StringPiece& piece = found[static_cast<std::size_t>(number)];
    return std::string_view(piece.data(), piece.size());
  };
  LineMetrics metrics;
  for (const auto& [name, number] : groups_) {
    if (const auto value = number_of(without_punctuation(group(number))))
      metrics.values.emplace_back(name, *value);
  }
  if (metrics.values.empty()) return std::nullopt;
  const auto step = step_group_ > 0 ? step_of(without_punctuation(group(step_group_))) : std::nullopt;
  lines_ = step.value_or(lines_ + 1);
  metrics.step = lines_;
  return metrics;
}

// "Epoch 3/10" of Keras.
void LogMetrics::read_epoch(std::string_view line) {
  line.remove_prefix(std::string_view("Epoch ").size());
  if (const auto epoch = take_fraction(&line); epoch && line.empty())
    epoch_ = std::max<std::int64_t>(0, epoch->first - 1);
}

// "Epoch 2:  45%|####5     | 45/100 [00:01<00:01, 33.2it/s, loss=0.5, acc=0.9]"
std::optional<LineMetrics> LogMetrics::read_bar(std::string_view line) {
  const std::size_t bar = line.find("%|");
  const std::size_t end = line.find('|', bar + 2);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view rest = trim(line.substr(end + 1));
  const auto fraction = take_fraction(&rest);
  if (!fraction) return std::nullopt;
  const auto [done, total] = *fraction;
  const BarTitle title = title_of(line.substr(0, bar));
  std::int64_t step = done;
  // Bars of downloads, of evaluations and of data preparation have other titles or totals.
  if (title.is_training && (bar_total_ == 0 || total == bar_total_)) {
    if (done < bar_done_ && !title.epoch) ++bar_rounds_;
    bar_total_ = total;
    bar_done_ = done;
    step += total * title.epoch.value_or(bar_rounds_);
    bar_step_ = step;
  } else {
    step = bar_step_.value_or(done);
  }
  LineMetrics metrics{.step = step, .values = {}};
  const std::size_t open = rest.find('[');
  if (open == std::string_view::npos) return std::nullopt;
  for (std::string_view part : split(rest.substr(open + 1, rest.find(']', open) - open - 1), ',')) {
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos)
      add_value(trim(part.substr(0, equals)), part.substr(equals + 1), metrics);
  }
  return if_any(std::move(metrics));
}

// "45/100 [====>...] - 1s 12ms/step - loss: 0.5 - accuracy: 0.9"
std::optional<LineMetrics> LogMetrics::read_keras(std::string_view line) {
  std::string_view rest = line;
  const auto fraction = take_fraction(&rest);
  if (!fraction || !(rest.starts_with(' ') || rest.empty())) return std::nullopt;
  LineMetrics metrics{.step = epoch_ * fraction->second + fraction->first, .values = {}};
  for (std::size_t at = rest.find(" - "); at != std::string_view::npos; at = rest.find(" - ")) {
    rest.remove_prefix(at + 3);
    const std::string_view part = rest.substr(0, rest.find(" - "));
    const std::size_t colon = part.find(": ");
    if (colon != std::string_view::npos)
      add_value(trim(part.substr(0, colon)), part.substr(colon + 2), metrics);
  }
  return if_any(std::move(metrics));
}

// "{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 0.5}", {"step": 10, "loss": 0.5}
std::optional<LineMetrics> LogMetrics::read_dict(std::string_view line) {
  const std::vector<DictField> fields = DictReader(line).read();
  if (!is_of_training(fields)) return std::nullopt;
  LineMetrics metrics;
  std::optional<std::int64_t> step;
  for (const DictField& field : fields) {
    if (is_step_name(field.name)) {
      if (const auto own = step_of(field.text)) step = own;
    } else {
      add_value(field.name, field.text, metrics);
    }
  }
  if (metrics.values.empty()) return std::nullopt;
  ++lines_;
  metrics.step = step ? *step : bar_step_.value_or(lines_);
  return metrics;
}

}  // namespace stoker::observe
