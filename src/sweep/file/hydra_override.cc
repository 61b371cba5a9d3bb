#include "sweep/file/hydra_override.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::sweep {

namespace {

constexpr std::size_t kMostDepth = 16;
constexpr std::array<std::string_view, 9> kFunctions = {"choice", "range", "interval", "tag",    "int",
                                                        "float",  "str",   "bool",     "shuffle"};

// One value, some values, or a range with an open end.
struct Sweep {
  enum class Kind { values, range, interval };
  Kind kind = Kind::values;
  std::vector<Value> values;  // of a range: start, stop, step; of an interval: its ends
  bool is_log = false;
  bool is_integer = false;  // by int(...)
  bool is_float = false;    // by float(...)
};

bool is_one_of(char c, std::string_view characters) { return characters.find(c) != std::string_view::npos; }

Value typed(std::string_view word) {
  const std::string lower = to_lower(word);
  if (lower == "true") return true;
  if (lower == "false") return false;
  if (std::int64_t whole = 0; parse_number(word, &whole)) return whole;
  if (double number = 0; parse_number(word, &number) && std::isfinite(number)) return number;
  return std::string(word);
}

class OverrideParser {
 public:
  explicit OverrideParser(std::string_view text) : text_(text) {}

  Result<Parameter> parse() {
    const std::size_t equals = text_.find('=');
    if (text_.starts_with('~')) return fail("a deletion is no parameter");
    while (at_ < text_.size() && text_[at_] == '+') ++at_;
    if (equals == std::string_view::npos) {
      at_ = text_.size();
      return fail("'=' is missing");
    }
    const std::string name(trim(text_.substr(at_, equals - at_)));
    if (name.empty() || name.find_first_of(" \t,()[]{}'\"@:") != std::string::npos)
      return fail("a name of a parameter is missing");
    at_ = equals + 1;
    STOKER_ASSIGN_OR_RETURN(sweep, parse_list(")", 0));
    if (at_ < text_.size()) return fail(format("'{}' is too much", text_[at_]));
    STOKER_ASSIGN_OR_RETURN(parameter, parameter_of(name, sweep));
    return std::move(parameter);
  }

 private:
  Status fail(std::string_view fact) const {
    return invalid("{}: {} at column {}", printable(text_), fact, at_ + 1);
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_one_of(text_[at_], " \t")) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // "a", "a,b" or a function.
  Result<Sweep> parse_list(std::string_view ends, std::size_t depth) {
    STOKER_ASSIGN_OR_RETURN(first, parse_element(depth));
    Sweep all = std::move(first);
    while (take(',')) {
      STOKER_ASSIGN_OR_RETURN(next, parse_element(depth));
      if (all.kind != Sweep::Kind::values || next.kind != Sweep::Kind::values)
        return fail("a range is beside other values");
      all.values.insert(all.values.end(), next.values.begin(), next.values.end());
    }
    skip_blanks();
    if (at_ < text_.size() && !is_one_of(text_[at_], ends))
      return fail(format("'{}' is unexpected", text_[at_]));
    return all;
  }

  Result<Sweep> parse_element(std::size_t depth) {
    if (depth > kMostDepth) return fail("the nesting is too deep");
    skip_blanks();
    if (at_ >= text_.size()) return fail("a value is missing");
    const char c = text_[at_];
    if (c == '\'' || c == '"') return parse_quoted();
    if (is_one_of(c, "[{")) return fail("a list or dictionary is no value of a parameter");
    const std::size_t begin = at_;
    while (at_ < text_.size() && !is_one_of(text_[at_], ",()[]{}'\"=")) ++at_;
    const std::string_view word = trim(text_.substr(begin, at_ - begin));
    if (at_ < text_.size() && text_[at_] == '(') {
      const std::size_t open = at_;
      at_ = begin;
      STOKER_ASSIGN_OR_RETURN(sweep, parse_function(word, open, depth));
      return std::move(sweep);
    }
    if (word.empty()) return fail("a value is missing");
    return Sweep{.values = {typed(word)}};
  }

  // Only a quote and backslashes before it are escaped.
  Result<Sweep> parse_quoted() {
    const std::size_t begin = at_;
    const char quote = text_[at_++];
    std::string value;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && is_one_of(text_[at_ + 1], "\\'\"")) ++at_;
      value += text_[at_];
    }
    if (at_ >= text_.size()) {
      at_ = begin;
      return fail("a quote is not closed");
    }
    ++at_;
    return Sweep{.values = {std::move(value)}};
  }

  Result<Sweep> parse_function(std::string_view name, std::size_t open, std::size_t depth) {
    if (name == "glob") return fail("glob needs Hydra's config groups (choice(a, b) has the names)");
    if (name == "shuffle" || name == "sort") return fail(format("{}: the sampler decides the order", name));
    if (std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end())
      return fail(format("'{}' is no function{}", name, suggestion(name, std::span(kFunctions).first(8))));
    const std::size_t begin = at_;
    at_ = open + 1;
    std::vector<Sweep> arguments;
    std::vector<std::string> names;
    if (!take(')')) {
      do {
        names.push_back(parse_argument_name());
        if (!names.back().empty() && name != "range" && name != "interval")
          return fail(format("'{}' is no argument", names.back()));
        STOKER_ASSIGN_OR_RETURN(argument, parse_element(depth + 1));
        arguments.push_back(std::move(argument));
      } while (take(','));
      if (!take(')')) return fail("')' is missing");
    }
    skip_blanks();
    const std::size_t end = at_;
    at_ = begin;
    STOKER_ASSIGN_OR_RETURN(sweep, apply(name, std::move(arguments), names));
    at_ = end;
    return std::move(sweep);
  }
  // "step=" before an argument.
  std::string parse_argument_name() {
    skip_blanks();
    std::size_t end = at_;
    while (end < text_.size() && text_[end] >= 'a' && text_[end] <= 'z') ++end;
    if (end == at_ || end >= text_.size() || text_[end] != '=') return "";
    std::string name(text_.substr(at_, end - at_));
    at_ = end + 1;
    return name;
  }

  Result<Sweep> apply(std::string_view name, std::vector<Sweep> arguments,
                      const std::vector<std::string>& names) const {
    if (name == "choice") return choice(std::move(arguments));
    if (name == "range") return numbers(Sweep::Kind::range, arguments, names, {"start", "stop", "step"});
    if (name == "interval") return numbers(Sweep::Kind::interval, arguments, names, {"start", "end"});
    if (name == "tag") return tagged(std::move(arguments));
    if (arguments.size() != 1) return fail(format("{} has one argument", name));
    return cast(name, std::move(arguments[0]));
  }
  Result<Sweep> choice(std::vector<Sweep> arguments) const {
    Sweep all;
    for (Sweep& argument : arguments) {
      if (argument.kind != Sweep::Kind::values) return fail("a range is beside other values");
      all.values.insert(all.values.end(), argument.values.begin(), argument.values.end());
    }
    if (all.values.empty()) return fail("choice has no values");
    return all;
  }
  Result<Sweep> numbers(Sweep::Kind kind, const std::vector<Sweep>& arguments,
                        const std::vector<std::string>& names,
                        const std::vector<std::string_view>& known) const {
    std::vector<std::optional<Value>> found(known.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto place = names[i].empty()
                             ? known.begin() + static_cast<std::ptrdiff_t>(std::min(i, known.size()))
                             : std::find(known.begin(), known.end(), names[i]);
      if (place == known.end())
        return fail(names[i].empty() ? format("over {} numbers", known.size())
                                     : format("'{}' is no argument", names[i]));
      const Sweep& argument = arguments[i];
      const bool is_number = argument.kind == Sweep::Kind::values && argument.values.size() == 1 &&
                             !std::holds_alternative<bool>(argument.values[0]) &&
                             number_of(argument.values[0]);
      if (!is_number) return fail("a number is missing");
      found[static_cast<std::size_t>(place - known.begin())] = argument.values[0];
    }
    // range(10) is range(0, 10).
    if (kind == Sweep::Kind::range && found[0] && !found[1]) {
      found[1] = found[0];
      found[0] = std::int64_t{0};
    }
    if (kind == Sweep::Kind::range && !found[2]) found[2] = std::int64_t{1};
    if (kind == Sweep::Kind::range && !found[0]) found[0] = std::int64_t{0};
    Sweep sweep{.kind = kind};
    for (const auto& value : found) {
      if (!value) return fail("a number is missing");
      sweep.values.push_back(*value);
    }
    return sweep;
  }
  Result<Sweep> tagged(std::vector<Sweep> arguments) const {
    if (arguments.empty()) return fail("tag has no values");
    Sweep sweep = std::move(arguments.back());
    arguments.pop_back();
    for (const Sweep& tag : arguments) {
      const std::string word = tag.values.size() == 1 ? to_text(tag.values[0]) : "";
      if (word != "log") return fail(format("tag '{}' has no meaning here (log has)", printable(word)));
      sweep.is_log = true;
    }
    return sweep;
  }
  Result<Sweep> cast(std::string_view name, Sweep sweep) const {
    if (sweep.kind != Sweep::Kind::values) {
      if (name != "int" && name != "float") return fail(format("{} of a range", name));
      sweep.is_integer = name == "int";
      sweep.is_float = name == "float";
      return sweep;
    }
    for (Value& value : sweep.values) {
      const std::string text = to_text(value);
      const Value read = typed(text);
      const auto number = number_of(read);
      if (name == "str") {
        value = text;
      } else if (!number) {
        return fail(format("'{}' is no {}", printable(text), name));
      } else if (name == "int") {
        value = static_cast<std::int64_t>(std::clamp(std::trunc(*number), -1e15, 1e15));
      } else if (name == "float") {
        value = *number;
      } else {
        value = *number != 0;
      }
    }
    return sweep;
  }

  Result<Parameter> parameter_of(const std::string& name, const Sweep& sweep) {
    if (sweep.kind == Sweep::Kind::values) {
      if (sweep.is_log) return fail("tag log is for a range or an interval");
      return Parameter{.name = name, .domain = Choices{sweep.values}, .when = {}};
    }
    NumberRange range{.low = *number_of(sweep.values[0]), .high = *number_of(sweep.values[1])};
    range.is_log = sweep.is_log;
    range.is_integer = sweep.is_integer;
    if (sweep.kind == Sweep::Kind::range) {
      const double step = *number_of(sweep.values[2]);
      const bool is_whole = std::all_of(sweep.values.begin(), sweep.values.end(), [](const Value& value) {
        return std::holds_alternative<std::int64_t>(value);
      });
      range.is_integer = !sweep.is_float && (is_whole || sweep.is_integer);
      if (!(step > 0) || range.low >= range.high) return fail("the range is empty");
      // As in Hydra, the end is no value.
      const double count = std::ceil((range.high - range.low) / step - 1e-9);
      range.step = step;
      range.high = number_at(range, range.low + step * (count - 1));
      range.step = range.is_integer && step == 1 ? 0 : step;
    }
    return Parameter{.name = name, .domain = range, .when = {}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Parameter> parse_hydra_override(std::string_view text) { return OverrideParser(text).parse(); }

}  // namespace stoker::sweep
