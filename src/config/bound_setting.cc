#include "config/bound_setting.h"

#include "config/yaml_text.h"

namespace stoker::config {

void SettingReader::read_path(std::string_view key, Path& field) const {
  const auto* text = effective_.find<std::string>(key);
  if (text == nullptr) return;
  const Origin origin = effective_.origin(key);
  if (text->starts_with('~')) {
    return errors_.add(origin, format("{}: '~' is not expanded here; write the path in full", key));
  }
  field = ((origin.layer() == Layer::file ? file_folder_ : current_) / *text).lexically_normal();
  if (find_bad_text(field.string())) {
    errors_.add(origin, format("{}: the path '{}' is not valid UTF-8", key, printable(field.string())));
  }
}

std::string key_of(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return std::string(pattern);
  return format("{}{}{}", pattern.substr(0, star), name, pattern.substr(star + 1));
}

std::string_view group_of(std::string_view pattern) {
  const std::size_t star = pattern.find(".*");
  return star == std::string_view::npos ? std::string_view() : pattern.substr(0, star);
}

}  // namespace stoker::config
