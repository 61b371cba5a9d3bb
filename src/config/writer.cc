#include "config/writer.h"

#include <algorithm>

#include "stoker/text.h"

namespace stoker::config {
namespace {

constexpr std::size_t kCommentColumn = 44;

std::string default_text(const Setting& setting) {
  if (!setting.fallback.empty()) return format("default {}", setting.fallback);
  return setting.unset.empty() ? "required" : std::string(setting.unset);
}

}  // namespace

void YamlWriter::put(std::string_view path, const Value& value, std::string_view comment) {
  lines_.push_back({std::string(path), yaml_text(value), printable(comment)});
}

std::string YamlWriter::text() const {
  std::string out;
  std::vector<std::string_view> open;
  for (const Line& line : lines_) {
    const std::vector<std::string_view> names = split(line.path, '.');
    std::size_t common = 0;
    while (common < open.size() && common + 1 < names.size() && open[common] == names[common]) ++common;
    open.assign(names.begin(), names.end() - 1);
    for (std::size_t i = common; i + 1 < names.size(); ++i) {
      out += format("{}{}:\n", std::string(2 * i, ' '), yaml_scalar(names[i]));
    }
    std::string row =
        format("{}{}: {}", std::string(2 * (names.size() - 1), ' '), yaml_scalar(names.back()), line.value);
    if (!line.comment.empty()) {
      row += format("{}# {}",
                    std::string(row.size() + 2 > kCommentColumn ? 2 : kCommentColumn - row.size(), ' '),
                    line.comment);
    }
    out += row + "\n";
  }
  return out;
}

std::string text_table(const Schema& schema) {
  std::size_t width = 0;
  for (const Setting& setting : schema.settings()) width = std::max(width, setting.key.size());
  std::string out;
  for (const Setting& setting : schema.settings()) {
    const std::string range = range_text(setting);
    out += format("{:<{}}  {}{}{}\n", setting.key, width, setting.help, setting.note.empty() ? "" : " ",
                  setting.note);
    out += format("{:<{}}  {}{}{}; {}\n", "", width, type_text(setting), range.empty() ? "" : ", ", range,
                  default_text(setting));
  }
  return out;
}

}  // namespace stoker::config
