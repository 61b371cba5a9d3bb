#include "arrays/hdf5/coder.h"

#include <cstring>

#include "arrays/hdf5/filters.h"
#include "base/json/json.h"
#include "codec/filters/filters.h"

namespace stoker::arrays {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxValues = 64;

class Hdf5Coder final : public codec::ChunkCoder {
 public:
  Hdf5Coder(std::vector<hdf5::Filter> filters, std::size_t swap_unit,
            std::optional<hdf5::RecordMember> member)
      : filters_(std::move(filters)), swap_unit_(swap_unit), member_(member) {}

  Kind kind() const override { return member_ ? Kind::record : Kind::hdf5; }

  std::string to_text() const override {
    json text = {{"filters", filters_text()}, {"swap", swap_unit_}};
    if (member_) text["member"] = {member_->record_bytes, member_->offset, member_->bytes};
    return json_text(text);
  }

  std::optional<Record> record() const override {
    if (!member_) return std::nullopt;
    return Record{member_->record_bytes, member_->offset, member_->bytes, swap_unit_,
                  json_text(filters_text())};
  }

  std::uint64_t decoded_bytes(std::uint64_t bytes) const override {
    return member_ ? member_->decoded_bytes(bytes) : bytes;
  }

  Result<codec::Buffer> decode(const codec::StoredChunk& place, std::uint64_t bytes,
                               std::span<const std::byte> stored, std::string_view subject) const override {
    const auto skipped = static_cast<std::uint32_t>(place.extra);
    if (!member_) {
      STOKER_ASSIGN_OR_RETURN(elements, hdf5::undo_filters(filters_, skipped, bytes, stored, subject));
      if (swap_unit_ > 1) codec::swap_bytes(elements.bytes(), swap_unit_);
      return std::move(elements);
    }
    if (bytes % member_->bytes != 0 || decoded_bytes(bytes) > codec::kMaxChunkBytes)
      return corrupt("{}: its chunks do not hold whole records", subject);
    if (filters_.empty() && stored.size() <= decoded_bytes(bytes))
      return copied(stored, decoded_bytes(bytes), subject);
    return hdf5::undo_filters(filters_, skipped, decoded_bytes(bytes), stored, subject);
  }

 private:
  json filters_text() const {
    json list = json::array();
    for (const hdf5::Filter& filter : filters_) list.push_back({filter.id, filter.values});
    return list;
  }

  // The last piece of uncompressed records may be shorter; the rest is zero.
  Result<codec::Buffer> copied(std::span<const std::byte> records, std::uint64_t bytes,
                               std::string_view subject) const {
    if (records.size() % member_->record_bytes != 0)
      return corrupt("{}: holds {} bytes, records have {}", subject, records.size(), member_->record_bytes);
    codec::Buffer whole(bytes);
    if (whole.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", subject, bytes);
    std::memcpy(whole.bytes().data(), records.data(), records.size());
    std::memset(whole.bytes().data() + records.size(), 0, bytes - records.size());
    return whole;
  }

  std::vector<hdf5::Filter> filters_;
  std::size_t swap_unit_;  // 1: native order
  std::optional<hdf5::RecordMember> member_;
};

bool is_number(const json& value, std::uint64_t most) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() <= most;
}

bool parse_filter(const json& from, hdf5::Filter& filter) {
  constexpr std::uint64_t kMax = 0xFFFFFFFF;
  if (!from.is_array() || from.size() != 2 || !is_number(from[0], kMax)) return false;
  if (!from[1].is_array() || from[1].size() > kMaxValues) return false;
  filter.id = from[0].get<std::uint32_t>();
  for (const json& value : from[1]) {
    if (!is_number(value, kMax)) return false;
    filter.values.push_back(value.get<std::uint32_t>());
  }
  return true;
}

// nullopt for a member that does not fit the array.
std::optional<hdf5::RecordMember> member_in(const json& from, const codec::ChunkedArray& array) {
  if (!from.is_array() || from.size() != 3) return std::nullopt;
  for (const json& value : from) {
    if (!is_number(value, hdf5::RecordMember::kLargestRecord)) return std::nullopt;
  }
  const hdf5::RecordMember member{from[0].get<std::uint64_t>(), from[1].get<std::uint64_t>(),
                                  from[2].get<std::uint64_t>()};
  const bool fits = member.is_valid() && member.bytes % array.element_bytes == 0;
  return fits ? std::optional(member) : std::nullopt;
}

}  // namespace

Result<std::shared_ptr<const codec::ChunkCoder>> hdf5::parse_hdf5_coder(std::string_view kind,
                                                                        const std::string& text,
                                                                        const codec::ChunkedArray& array,
                                                                        std::string_view subject) {
  const auto damaged = [&] { return corrupt("{}: its coding is damaged", subject); };
  const bool is_member = kind == to_text(codec::ChunkCoder::Kind::record);
  const json parsed = parse_json<json>(text);
  const bool holds =
      parsed.is_object() && parsed.size() == (is_member ? 3 : 2) && parsed.contains("member") == is_member &&
      parsed.contains("filters") && parsed["filters"].is_array() && parsed["filters"].size() <= 32 &&
      parsed.contains("swap") && is_number(parsed["swap"], 64) && !array.is_list() && array.element_bytes > 0;
  if (!holds) return damaged();
  const auto swap_unit = parsed["swap"].get<std::size_t>();
  if (swap_unit == 0 || array.element_bytes % swap_unit != 0) return damaged();
  std::optional<hdf5::RecordMember> member;
  if (is_member) {
    member = member_in(parsed["member"], array);
    if (!member) return damaged();
  }
  std::vector<hdf5::Filter> filters;
  for (const json& from : parsed["filters"]) {
    if (!parse_filter(from, filters.emplace_back())) return damaged();
  }
  STOKER_RETURN_IF_ERROR(hdf5::check_filters(filters, subject));
  return hdf5::chunk_coder(std::move(filters), swap_unit, member);
}

namespace hdf5 {

std::shared_ptr<const codec::ChunkCoder> chunk_coder(std::vector<Filter> filters, std::size_t swap_unit,
                                                     std::optional<RecordMember> member) {
  return std::make_shared<const Hdf5Coder>(std::move(filters), swap_unit, member);
}

}  // namespace hdf5

}  // namespace stoker::arrays
