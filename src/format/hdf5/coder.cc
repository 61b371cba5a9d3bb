#include "format/hdf5/coder.h"

#include "base/json/json.h"
#include "format/chunks/filters.h"
#include "format/hdf5/filters.h"

namespace stoker::formats {

namespace {

using nlohmann::json;

constexpr std::size_t kMostValues = 64;

class Hdf5Coder final : public ChunkCoder {
 public:
  Hdf5Coder(std::vector<hdf5::Filter> filters, std::size_t swap_unit)
      : filters_(std::move(filters)), swap_unit_(swap_unit) {}

  Kind kind() const override { return Kind::hdf5; }

  std::string to_text() const override {
    json list = json::array();
    for (const hdf5::Filter& filter : filters_) list.push_back({filter.id, filter.values});
    return json_text(json{{"filters", std::move(list)}, {"swap", swap_unit_}});
  }

  Result<Buffer> decode(const StoredChunk& place, std::uint64_t bytes, std::span<const std::byte> stored,
                        std::string_view subject) const override {
    OK_OR_RETURN(elements, hdf5::undo_filters(filters_, static_cast<std::uint32_t>(place.extra), bytes,
                                              stored, subject));
    if (swap_unit_ > 1) swap_bytes(elements.bytes(), swap_unit_);
    return std::move(elements);
  }

 private:
  std::vector<hdf5::Filter> filters_;
  std::size_t swap_unit_;  // 1: as it is
};

bool is_number(const json& value, std::uint64_t most) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= most;
}

bool take_filter(const json& from, hdf5::Filter& filter) {
  constexpr std::uint64_t kMost = 0xFFFFFFFF;
  if (!from.is_array() || from.size() != 2 || !is_number(from[0], kMost)) return false;
  if (!from[1].is_array() || from[1].size() > kMostValues) return false;
  filter.id = from[0].get<std::uint32_t>();
  for (const json& value : from[1]) {
    if (!is_number(value, kMost)) return false;
    filter.values.push_back(value.get<std::uint32_t>());
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<const ChunkCoder>> parse_hdf5_coder(const std::string& text, const ChunkedArray& about,
                                                           std::string_view subject) {
  const auto damaged = [&] { return corrupt("{}: its coding is damaged", subject); };
  const json parsed = parse_json<json>(text);
  const bool holds = parsed.is_object() && parsed.size() == 2 && parsed.contains("filters") &&
                     parsed["filters"].is_array() && parsed["filters"].size() <= 32 &&
                     parsed.contains("swap") && is_number(parsed["swap"], 64) && !about.is_list();
  if (!holds) return damaged();
  const auto swap_unit = parsed["swap"].get<std::size_t>();
  if (swap_unit == 0 || about.element_bytes % swap_unit != 0) return damaged();
  std::vector<hdf5::Filter> filters;
  for (const json& from : parsed["filters"]) {
    if (!take_filter(from, filters.emplace_back())) return damaged();
  }
  RETURN_IF_ERROR(hdf5::check_filters(filters, subject));
  return hdf5::chunk_coder(std::move(filters), swap_unit);
}

namespace hdf5 {

std::shared_ptr<const ChunkCoder> chunk_coder(std::vector<Filter> filters, std::size_t swap_unit) {
  return std::make_shared<const Hdf5Coder>(std::move(filters), swap_unit);
}

}  // namespace hdf5

}  // namespace stoker::formats
