#include "sweep/runner/command_template.h"

#include <algorithm>
#include <optional>

namespace stoker::sweep {

namespace {

// A part of an argument: text, or the name of a parameter.
struct TemplatePart {
  std::string text;
  bool is_name = false;
};

Result<std::vector<TemplatePart>> parts_of(std::string_view argument) {
  std::vector<TemplatePart> parts(1);
  for (std::size_t i = 0; i < argument.size(); ++i) {
    const char c = argument[i];
    if ((c == '{' || c == '}') && i + 1 < argument.size() && argument[i + 1] == c) {
      parts.back().text += c;
      ++i;
      continue;
    }
    if (c != '{') {
      parts.back().text += c;
      continue;
    }
    const std::size_t end = argument.find('}', i);
    if (end == std::string_view::npos)
      return invalid("command: '{}' has a '{{' without its '}}'", printable(argument))
          .cure("{{{{ for a brace");
    parts.push_back({std::string(argument.substr(i + 1, end - i - 1)), true});
    parts.emplace_back();
    i = end;
  }
  return parts;
}

std::optional<std::string> value_in(const Assignment& values, std::string_view name) {
  for (const auto& [parameter, value] : values) {
    if (parameter == name) return to_text(value);
  }
  return std::nullopt;
}

}  // namespace

Status check_command(const std::vector<std::string>& command, const Space& space, std::string_view extra) {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : space.parameters()) names.push_back(parameter.name);
  for (const std::string& argument : command) {
    STOKER_ASSIGN_OR_RETURN(parts, parts_of(argument));
    for (const TemplatePart& part : parts) {
      if (part.is_name && !space.find(part.text) && (extra.empty() || part.text != extra))
        return invalid("command: {{{}}} is no parameter{}", printable(part.text),
                       suggestion(part.text, names));
    }
  }
  return {};
}

std::vector<std::string> fill_command(const std::vector<std::string>& command, const Space& space,
                                      const Assignment& values) {
  std::vector<std::string> filled;
  bool has_placeholder = false;
  for (const std::string& argument : command) {
    const auto parts = parts_of(argument);
    STOKER_CHECK(parts.ok());
    std::string text;
    bool is_active = true;
    for (const TemplatePart& part : *parts) {
      has_placeholder = has_placeholder || part.is_name;
      const auto value = part.is_name ? value_in(values, part.text) : std::optional(part.text);
      is_active = is_active && value.has_value();
      text += value.value_or("");
    }
    if (is_active) filled.push_back(std::move(text));
  }
  if (has_placeholder) return filled;
  for (const Parameter& parameter : space.parameters()) {
    if (const auto value = value_in(values, parameter.name))
      filled.push_back(format("--{}={}", parameter.name, *value));
  }
  for (const auto& [name, value] : values) {
    if (!space.find(name)) filled.push_back(format("--{}={}", name, to_text(value)));
  }
  return filled;
}

}  // namespace stoker::sweep
