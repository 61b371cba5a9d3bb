// The coders by their names in an index section.
#include "codec/chunks/coders.h"

#include <cstring>

#include "base/json/json.h"
#include "codec/filters/filters.h"
#include "codec/filters/unpack.h"

namespace stoker::codec {

namespace {

using nlohmann::json;

Result<Buffer> allocate_buffer(std::uint64_t bytes, std::string_view subject) {
  Buffer buffer(bytes);
  if (buffer.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", subject, bytes);
  return buffer;
}

// An uncompressed piece of an array; the last one may be shorter.
class PlainCoder final : public ChunkCoder {
 public:
  explicit PlainCoder(std::size_t swap_unit) : swap_unit_(swap_unit) {}

  Kind kind() const override { return Kind::plain; }
  std::string to_text() const override { return json_text(json{{"swap", swap_unit_}}); }
  Result<Buffer> decode(const StoredChunk& /*place*/, std::uint64_t bytes, std::span<const std::byte> stored,
                        std::string_view subject) const override {
    if (stored.size() > bytes || stored.size() % swap_unit_ != 0)
      return corrupt("{}: holds {} bytes, expected {}", subject, stored.size(), bytes);
    STOKER_ASSIGN_OR_RETURN(elements, allocate_buffer(bytes, subject));
    std::memcpy(elements.bytes().data(), stored.data(), stored.size());
    std::memset(elements.bytes().data() + stored.size(), 0, bytes - stored.size());
    if (swap_unit_ > 1) swap_bytes(elements.bytes().first(stored.size()), swap_unit_);
    return std::move(elements);
  }

 private:
  std::size_t swap_unit_;  // 1: native order
};

class PageCoder final : public ChunkCoder {
 public:
  Kind kind() const override { return Kind::page; }
  std::string to_text() const override { return "{}"; }
  Result<Buffer> decode(const StoredChunk& place, std::uint64_t bytes, std::span<const std::byte> stored,
                        std::string_view subject) const override {
    STOKER_ASSIGN_OR_RETURN(values, allocate_buffer(bytes, subject));
    const auto codec = static_cast<ParquetCodec>(place.codec());
    STOKER_RETURN_IF_ERROR(unpack_page(codec, stored, values.bytes(), subject));
    return std::move(values);
  }
};

// The only field of a coding, a small number; nullopt otherwise.
std::optional<std::uint64_t> parse_single_number(const std::string& text, const char* name) {
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
                                                      const ChunkedArray& array, std::string_view subject) {
  const auto damaged = [&] { return corrupt("{}: its coding is damaged", subject); };
  if (kind == "plain") {
    const auto unit = parse_single_number(text, "swap");
    if (!unit || *unit == 0 || array.is_list() || array.element_bytes % *unit != 0) return damaged();
    return plain_coder(*unit);
  }
  if (kind != "page") {
    return invalid("{}: has the coding '{}', which this Stoker version does not support", subject,
                   printable(kind))
        .cure("update Stoker");
  }
  if (text != "{}" || !array.is_list()) return damaged();
  return page_coder();
}

}  // namespace stoker::codec
