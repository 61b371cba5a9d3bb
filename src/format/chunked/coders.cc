// The coders by their names in an index section.
#include "format/chunked/coders.h"

#include <cstring>

#include "base/json/json.h"
#include "format/chunks/filters.h"
#include "format/parquet/pages/unpack.h"

namespace stoker::formats {

namespace {

using nlohmann::json;

Result<Buffer> buffer_of(std::uint64_t bytes, std::string_view subject) {
  Buffer buffer(bytes);
  if (buffer.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", subject, bytes);
  return buffer;
}

// A piece of an array that nothing packs; the last one is shorter.
class PlainCoder final : public ChunkCoder {
 public:
  explicit PlainCoder(std::size_t swap_unit) : swap_unit_(swap_unit) {}

  Kind kind() const override { return Kind::plain; }
  std::string to_text() const override { return json_text(json{{"swap", swap_unit_}}); }
  Result<Buffer> decode(const StoredChunk& /*place*/, std::uint64_t bytes, std::span<const std::byte> stored,
                        std::string_view subject) const override {
    if (stored.size() > bytes || stored.size() % swap_unit_ != 0)
      return corrupt("{}: holds {} bytes, expected {}", subject, stored.size(), bytes);
    OK_OR_RETURN(elements, buffer_of(bytes, subject));
    std::memcpy(elements.bytes().data(), stored.data(), stored.size());
    std::memset(elements.bytes().data() + stored.size(), 0, bytes - stored.size());
    if (swap_unit_ > 1) swap_bytes(elements.bytes().first(stored.size()), swap_unit_);
    return std::move(elements);
  }

 private:
  std::size_t swap_unit_;  // 1: as it is
};

class PageCoder final : public ChunkCoder {
 public:
  Kind kind() const override { return Kind::page; }
  std::string to_text() const override { return "{}"; }
  Result<Buffer> decode(const StoredChunk& place, std::uint64_t bytes, std::span<const std::byte> stored,
                        std::string_view subject) const override {
    OK_OR_RETURN(values, buffer_of(bytes, subject));
    const auto codec = static_cast<ParquetCodec>(place.codec());
    RETURN_IF_ERROR(unpack_page(codec, stored, values.bytes(), subject));
    return std::move(values);
  }
};

// A small number of a coding that has nothing else, or nothing.
std::optional<std::uint64_t> only_number(const std::string& text, const char* name) {
  const json parsed = parse_json<json>(text);
  const bool holds = parsed.is_object() && parsed.size() == 1 && parsed.contains(name) &&
                     parsed[name].is_number_unsigned() && parsed[name].get<std::uint64_t>() <= 64;
  return holds ? std::optional(parsed[name].get<std::uint64_t>()) : std::nullopt;
}

}  // namespace

std::shared_ptr<const ChunkCoder> plain_coder(std::size_t swap_unit) {
  return std::make_shared<const PlainCoder>(swap_unit);
}

std::shared_ptr<const ChunkCoder> page_coder() { return std::make_shared<const PageCoder>(); }

Result<std::shared_ptr<const ChunkCoder>> parse_coder(std::string_view kind, const std::string& text,
                                                      const ChunkedArray& about, std::string_view subject) {
  const auto damaged = [&] { return corrupt("{}: its coding is damaged", subject); };
  if (kind == "hdf5" || kind == "record") return parse_hdf5_coder(kind, text, about, subject);
  if (kind == "zarr") return parse_zarr_coder(text, about, subject);
  if (kind == "column") return parse_column_coder(text, about, subject);
  if (kind == "plain") {
    const auto unit = only_number(text, "swap");
    if (!unit || *unit == 0 || about.is_list() || about.element_bytes % *unit != 0) return damaged();
    return plain_coder(*unit);
  }
  if (kind != "page") {
    return invalid("{}: is coded as '{}', which this stoker does not know", subject, printable(kind))
        .cure("update stoker");
  }
  if (text != "{}" || !about.is_list()) return damaged();
  return page_coder();
}

}  // namespace stoker::formats
