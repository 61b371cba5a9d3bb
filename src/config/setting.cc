#include "config/setting.h"

#include <algorithm>
#include <optional>

#include "config/shell_words.h"
#include "config/yaml_text.h"
#include "stoker/text.h"

namespace stoker::config {
namespace {

std::string_view expected_text(Type type) {
  switch (type) {
    case Type::text:
      return "text";
    case Type::path:
      return "a path";
    case Type::boolean:
      return "true or false";
    case Type::count:
      return "a whole number";
    case Type::number:
      return "a number";
    case Type::size:
      return "a byte count (such as 64GB or 4MiB)";
    case Type::duration:
      return "a duration (such as 90s, 20h or 1:30:00)";
    case Type::choice:
      return "one word";
    case Type::numbers:
      return "a list of numbers";
    case Type::every:
      return "an interval";
    case Type::words:
      return "a command line";
    case Type::texts:
      return "a list of texts";
  }
  return "";
}

std::string_view kind_text(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "one value";
    case Node::Kind::list:
      return "a list";
    case Node::Kind::map:
      return "keys and values";
  }
  return "";
}

// A bound in the notation of the type.
std::string bound_text(Type type, double bound) {
  if (type == Type::duration || type == Type::every)
    return duration_text(std::chrono::duration_cast<Duration>(Seconds(bound)));
  if (type == Type::size) return to_text(ByteCount{static_cast<std::uint64_t>(bound)});
  if (std::abs(bound) < 1e15 && bound == std::floor(bound))
    return format("{}", static_cast<std::int64_t>(bound));
  return format("{}", bound);
}

Status check_range(const Setting& setting, double value, std::string_view shown) {
  if (value < setting.at_least) {
    return invalid("{} is too small (at least {})", shown, bound_text(setting.type, setting.at_least));
  }
  if (value > setting.at_most) {
    return invalid("{} is too large (at most {})", shown, bound_text(setting.type, setting.at_most));
  }
  return {};
}

Status not_quoted(const Setting& setting, const Node& node) {
  if (!node.is_quoted) return {};
  return invalid("expected {}, got the text '{}' (it is quoted)", expected_text(setting.type),
                 printable(node.text));
}

Result<Value> read_boolean(const Setting& setting, const Node& node) {
  STOKER_RETURN_IF_ERROR(not_quoted(setting, node));
  if (node.text == "true") return Value(true);
  if (node.text == "false") return Value(false);
  const std::string lower = to_lower(node.text);
  const bool is_yes = lower == "yes" || lower == "on" || lower == "true" || lower == "y" || lower == "1";
  const bool is_no = lower == "no" || lower == "off" || lower == "false" || lower == "n" || lower == "0";
  return invalid("expected true or false, got '{}'{}", printable(node.text),
                 is_yes  ? "; did you mean 'true'?"
                 : is_no ? "; did you mean 'false'?"
                         : "");
}

Result<Value> read_count(const Setting& setting, const Node& node) {
  STOKER_RETURN_IF_ERROR(not_quoted(setting, node));
  std::int64_t value = 0;
  if (!parse_number(node.text, &value)) {
    const std::string_view digits = std::string_view(node.text).substr(node.text.starts_with('-') ? 1 : 0);
    const bool is_long = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
    if (!is_long) return invalid("'{}' is not a whole number", printable(node.text));
    return invalid("{} is too {}", node.text, node.text.starts_with('-') ? "small" : "large");
  }
  STOKER_RETURN_IF_ERROR(check_range(setting, static_cast<double>(value), node.text));
  return Value(value);
}

Result<double> read_number(const Setting& setting, const Node& node) {
  STOKER_RETURN_IF_ERROR(not_quoted(setting, node));
  double value = 0;
  // No hexadecimal, "inf" or "nan".
  const bool is_plain = node.text.find_first_not_of("0123456789.+-eE") == std::string::npos;
  if (!is_plain || !parse_number(node.text, &value))
    return invalid("'{}' is not a number", printable(node.text));
  if (!std::isfinite(value)) return invalid("{} is too large", node.text);
  const std::string_view digits = std::string_view(node.text).substr(0, node.text.find_first_of("eE"));
  if (value == 0 && digits.find_first_of("123456789") != std::string_view::npos)
    return invalid("{} is too small to represent", node.text);
  STOKER_RETURN_IF_ERROR(check_range(setting, value, node.text));
  return value;
}

Result<Value> read_choice(const Setting& setting, const Node& node) {
  const std::vector<std::string_view> choices = split(setting.choices, '|');
  if (std::find(choices.begin(), choices.end(), node.text) != choices.end()) return Value(node.text);
  return invalid("unknown value '{}'{}", printable(node.text), suggestion(node.text, choices));
}

Result<Value> read_numbers(const Setting& setting, const Node& node) {
  std::vector<double> values;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::scalar) {
      return invalid("expected a list of numbers, but it contains {}", kind_text(item.kind));
    }
    STOKER_ASSIGN_OR_RETURN(value, read_number(setting, item));
    values.push_back(value);
  }
  return Value(std::move(values));
}

// The interval choice that takes no count.
constexpr std::string_view kAutomatic = "auto";

std::string every_examples(const Setting& setting, std::string_view count) {
  std::string text;
  for (std::string_view unit : split(setting.choices, '|')) {
    text += unit == kAutomatic ? format("{}, ", unit) : format("{} {}, ", count, unit);
  }
  return text + format("{}min or never", count);
}

Result<Value> read_every(const Setting& setting, const Node& node) {
  Period period;
  if (node.text == "never") return Value(period);
  const std::string_view text = node.text;
  for (std::string_view choice : split(setting.choices, '|')) {
    if (choice != kAutomatic || text != choice) continue;
    period.unit = std::string(choice);
    return Value(std::move(period));
  }
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = trim(text.substr(digits));
  if (digits > 0 && unit.empty()) {
    return invalid("'{}' has no unit (write {})", printable(text), every_examples(setting, text));
  }
  for (std::string_view choice : split(setting.choices, '|')) {
    const bool is_singular = choice.ends_with('s') && unit == choice.substr(0, choice.size() - 1);
    if ((unit != choice && !is_singular) || choice == kAutomatic) continue;
    if (!parse_number(text.substr(0, digits), &period.count))
      return invalid("{} is too large", text.substr(0, digits));
    if (period.count == 0) return invalid("0 {} is too small (write never to disable)", choice);
    period.unit = std::string(choice);
    return Value(std::move(period));
  }
  const Result<Duration> time = parse_duration(text);
  if (!time)
    return invalid("'{}' is not an interval (such as {})", printable(text), every_examples(setting, "10"));
  STOKER_RETURN_IF_ERROR(check_range(setting, Seconds(*time).count(), text));
  if (*time <= Duration::zero()) return invalid("{} is too small (write never to disable)", text);
  period.time = *time;
  return Value(std::move(period));
}

Result<Value> read_words(const Setting& setting, const Node& node) {
  std::vector<std::string> words;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::scalar)
      return invalid("expected a list of texts, got {}", kind_text(item.kind));
    words.push_back(item.text);
  }
  if (node.kind == Node::Kind::scalar) {
    STOKER_ASSIGN_OR_RETURN(split,
                            setting.type == Type::words ? split_command(node.text) : split_words(node.text));
    words = std::move(split);
  }
  if (setting.type == Type::words && (words.empty() || words.front().empty()))
    return invalid("does not name a program");
  return Value(std::move(words));
}

Result<Value> read_scalar(const Setting& setting, const Node& node) {
  switch (setting.type) {
    case Type::boolean:
      return read_boolean(setting, node);
    case Type::count:
      return read_count(setting, node);
    case Type::number: {
      STOKER_ASSIGN_OR_RETURN(value, read_number(setting, node));
      return Value(value);
    }
    case Type::size: {
      STOKER_ASSIGN_OR_RETURN(bytes, parse_bytes(node.text));
      STOKER_RETURN_IF_ERROR(check_range(setting, static_cast<double>(bytes.value), node.text));
      return Value(bytes);
    }
    case Type::duration: {
      STOKER_ASSIGN_OR_RETURN(time, parse_duration(node.text));
      STOKER_RETURN_IF_ERROR(check_range(setting, Seconds(time).count(), node.text));
      return Value(time);
    }
    case Type::choice:
      return read_choice(setting, node);
    case Type::every:
      return read_every(setting, node);
    case Type::path:
      if (node.text.empty()) return invalid("is empty");
      return Value(node.text);
    default:
      return Value(node.text);
  }
}

struct YamlFormatter {
  std::string operator()(const std::string& value) const { return yaml_scalar(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return format("{}", value); }
  std::string operator()(double value) const { return format("{}", value); }
  std::string operator()(ByteCount value) const { return to_text(value); }
  std::string operator()(Duration value) const { return duration_text(value); }
  std::string operator()(const std::vector<double>& values) const {
    std::string text;
    for (double value : values) text += format("{}{}", text.empty() ? "" : ", ", value);
    return format("[{}]", text);
  }
  std::string operator()(const Period& period) const {
    if (period.count == 1 && period.unit.ends_with('s')) {
      return format("1 {}", period.unit.substr(0, period.unit.size() - 1));
    }
    if (period.unit == kAutomatic) return period.unit;
    if (!period.unit.empty()) return format("{} {}", period.count, period.unit);
    return period.time == Duration::zero() ? "never" : duration_text(period.time);
  }
  std::string operator()(const std::vector<std::string>& words) const {
    return yaml_scalar(join_words(words));
  }
};

// One character inside double quotes. Escapes characters that parse_yaml rejects.
std::string quoted_character(std::string_view character) {
  const unsigned char first = static_cast<unsigned char>(character[0]);
  if (character == "\"" || character == "\\") return format("\\{}", character);
  if (character.size() == 1)
    return first < 0x20 || first == 0x7F ? format("\\x{:02x}", int{first}) : std::string(character);
  if (!find_bad_text(character)) return std::string(character);
  // Two or three bytes: longer characters are never rejected.
  std::uint32_t code = first & (character.size() == 2 ? 0x1Fu : 0x0Fu);
  for (char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return format("\\u{:04x}", code);
}

bool needs_quotes(std::string_view text) {
  double number = 0;
  const std::string lower = to_lower(text);
  return parse_number(text, &number) || lower == "true" || lower == "false" || lower == "null" ||
         lower == "yes" || lower == "no" || lower == "on" || lower == "off";
}

}  // namespace

Result<Value> read_value(const Setting& setting, const Node& node) {
  const bool takes_words = setting.type == Type::words || setting.type == Type::texts;
  const bool takes_list = setting.type == Type::numbers || takes_words;
  const bool takes_scalar = setting.type != Type::numbers;
  const bool fits =
      (takes_list && node.kind == Node::Kind::list) || (takes_scalar && node.kind == Node::Kind::scalar);
  if (!fits) return invalid("expected {}, got {}", expected_text(setting.type), kind_text(node.kind));
  if (setting.type == Type::numbers) return read_numbers(setting, node);
  if (takes_words) return read_words(setting, node);
  return read_scalar(setting, node);
}

std::string yaml_scalar(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("${")) escaped += '$';
    escaped += text[i];
  }
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./ =+@%,^~";
  const bool is_plain = !escaped.empty() && escaped.find_first_not_of(kSafe) == std::string::npos &&
                        std::string_view(" -,@%~=").find(escaped.front()) == std::string_view::npos &&
                        escaped.back() != ' ' && escaped.find(',') == std::string::npos &&
                        !needs_quotes(escaped);
  if (is_plain) return escaped;
  std::string quoted = "\"";
  for (std::size_t i = 0; i < escaped.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(std::string_view(escaped).substr(i)));
    const std::string_view character = std::string_view(escaped).substr(i, length);
    quoted += quoted_character(character);
    i += length;
  }
  return quoted + "\"";
}

std::string yaml_text(const Value& value) { return std::visit(YamlFormatter{}, value); }

std::string type_text(const Setting& setting) {
  std::string choices;
  for (std::string_view choice : split(setting.choices, '|'))
    choices += (choices.empty() ? "" : ", ") + std::string(choice);
  switch (setting.type) {
    case Type::boolean:
      return "true or false";
    case Type::choice:
      return "one of " + choices;
    case Type::every:
      return "interval: " + choices + ", a duration, or never";
    case Type::count:
      return "whole number";
    case Type::numbers:
      return "list of numbers";
    case Type::words:
      return "command line";
    case Type::texts:
      return "list of texts";
    case Type::size:
      return "byte count";
    case Type::text:
      return "text";
    case Type::path:
      return "path";
    case Type::number:
      return "number";
    case Type::duration:
      return "duration";
  }
  return "";
}

std::string range_text(const Setting& setting) {
  std::string text;
  if (std::isfinite(setting.at_least))
    text = format("at least {}", bound_text(setting.type, setting.at_least));
  if (std::isfinite(setting.at_most)) {
    text += format("{}at most {}", text.empty() ? "" : ", ", bound_text(setting.type, setting.at_most));
  }
  return text;
}

}  // namespace stoker::config
