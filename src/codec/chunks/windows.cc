#include "codec/chunks/windows.h"

#include "codec/chunks/windows_internal.h"

namespace stoker::codec {

using nlohmann::json;

Extents Windows::window_begin(const Part& part, std::uint64_t row) const {
  Extents begin = part.begin;
  for (std::size_t d = counts.size(); d-- > 0;) {
    begin[d] += row % counts[d] * step[d];
    row /= counts[d];
  }
  return begin;
}

bool fits(const Windows& windows, const Windows::Part& part, const Extents& shape) {
  const std::size_t dimensions = shape.size();
  if (part.begin.size() != dimensions || windows.size.size() != dimensions ||
      windows.step.size() != dimensions || windows.counts.size() != dimensions)
    return false;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (windows.counts[d] == 0 || windows.size[d] == 0 || windows.step[d] == 0) return false;
    if (part.begin[d] > shape[d] || windows.size[d] > shape[d] - part.begin[d]) return false;
    const std::uint64_t room = shape[d] - part.begin[d] - windows.size[d];
    if (windows.counts[d] - 1 > room / windows.step[d]) return false;
  }
  return true;
}

json to_json(const Windows& windows) {
  json parts = json::array();
  for (const Windows::Part& part : windows.parts)
    parts.push_back({{"array", part.array}, {"begin", part.begin}});
  return {{"size", windows.size}, {"step", windows.step}, {"counts", windows.counts}, {"parts", parts}};
}

std::optional<Extents> parse_extents(const json& list) {
  if (!list.is_array() || list.size() > kMaxDimensions) return std::nullopt;
  Extents sizes;
  for (const json& size : list) {
    if (!size.is_number_unsigned()) return std::nullopt;
    sizes.push_back(size.get<std::uint64_t>());
  }
  return sizes;
}

Result<Windows> parse_windows(const json& from, std::string_view subject) {
  constexpr std::size_t kFields = 4;
  constexpr std::size_t kMaxParts = 256;
  const auto damaged = [&] { return corrupt("{}: its windows are damaged", subject); };
  Windows windows;
  if (!from.is_object() || from.size() != kFields || !from.contains("parts") || !from["parts"].is_array() ||
      from["parts"].empty() || from["parts"].size() > kMaxParts)
    return damaged();
  const auto read_field = [&](const char* name, Extents& into) {
    const auto found = from.contains(name) ? parse_extents(from[name]) : std::nullopt;
    if (found) into = *found;
    return found.has_value();
  };
  if (!read_field("size", windows.size) || !read_field("step", windows.step) ||
      !read_field("counts", windows.counts))
    return damaged();
  for (const json& part : from["parts"]) {
    if (!part.is_object() || part.size() != 2 || !part.contains("array") || !part.contains("begin") ||
        !part["array"].is_number_unsigned())
      return damaged();
    const auto begin = parse_extents(part["begin"]);
    const auto array = part["array"].get<std::uint64_t>();
    if (!begin || array > UINT32_MAX) return damaged();
    windows.parts.push_back({static_cast<std::uint32_t>(array), *begin});
  }
  return windows;
}

}  // namespace stoker::codec
