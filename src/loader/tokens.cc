#include "loader/tokens.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "codec/npy.h"
#include "loader/contents.h"
#include "stoker/text.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kLongest = 1u << 24;

constexpr std::array kStoredTypes{DType::u8, DType::u16, DType::u32, DType::i32, DType::i64};

bool is_one_of(DType type, std::span<const DType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

Status check_options(const TokenOptions& options) {
  if (options.stored && !is_one_of(*options.stored, kStoredTypes))
    return invalid("tokens: stored as {} (U8, U16, U32, I32 or I64)", to_text(*options.stored));
  constexpr std::array kElements{DType::i32, DType::i64};
  if (!is_one_of(options.element, kElements))
    return invalid("tokens: element type {} (I32 or I64)", to_text(options.element));
  if (options.length < 1 || options.length > kLongest)
    return invalid("tokens: sequence length {} is not between 1 and {}", options.length, kLongest);
  if (options.ahead > options.length)
    return invalid("tokens: ahead is {}, more than the sequence length {}", options.ahead, options.length);
  return Status();
}

// Whole numbers have no signature; files of a known format are not tokens.
Status check_raw(std::span<const std::byte> beginning, std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kSignatures[] = {
      {"\x93NUMPY", "a .npy array"},
      {"\xFF\xD8\xFF\xE0", "a JPEG image"},
      {"\xFF\xD8\xFF\xE1", "a JPEG image"},
      {"\x89PNG\r\n\x1A\n", "a PNG image"},
      {"PK\x03\x04", "a zip archive"}};
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  for (const auto& [signature, what] : kSignatures) {
    if (!text.starts_with(signature)) continue;
    return invalid("tokens: '{}' of the first document is {}, not tokens (component)", name, what)
        .cure("{}", signature.ends_with("NUMPY") ? "files named .npy are read as arrays of tokens"
                                                 : "name the files that hold tokens");
  }
  return Status();
}

template <typename From, typename To>
bool widen(std::span<const std::byte> tokens, std::byte* out) {
  const std::size_t count = tokens.size() / sizeof(From);
  bool fits = true;
  for (std::size_t i = 0; i < count; ++i) {
    From token;
    std::memcpy(&token, tokens.data() + i * sizeof(From), sizeof(From));
    if constexpr (sizeof(From) > sizeof(To) || (sizeof(From) == sizeof(To) && std::is_unsigned_v<From>)) {
      fits = fits && token <= static_cast<From>(std::numeric_limits<To>::max());
    }
    if constexpr (std::is_signed_v<From>) fits = fits && token >= 0;
    const auto wide = static_cast<To>(token);
    std::memcpy(out + i * sizeof(To), &wide, sizeof(To));
  }
  return fits;
}

template <typename To>
bool widen_to(DType stored, std::span<const std::byte> tokens, std::byte* out) {
  switch (stored) {
    case DType::u8:
      return widen<std::uint8_t, To>(tokens, out);
    case DType::u16:
      return widen<std::uint16_t, To>(tokens, out);
    case DType::u32:
      return widen<std::uint32_t, To>(tokens, out);
    case DType::i32:
      return widen<std::int32_t, To>(tokens, out);
    default:
      return widen<std::int64_t, To>(tokens, out);
  }
}

}  // namespace

std::optional<dataset::Locator> find_component(const dataset::SampleTable& samples, std::uint64_t sample,
                                               std::uint16_t component) {
  const std::uint32_t count = samples.component_count(sample);
  for (std::uint32_t which = 0; which < count; ++which) {
    const dataset::Locator file = samples.locate(sample, which);
    if (file.component == component) return file;
  }
  return std::nullopt;
}

bool widen_tokens(DType stored, DType element, std::span<const std::byte> tokens, std::byte* out) {
  return element == DType::i32 ? widen_to<std::int32_t>(stored, tokens, out)
                               : widen_to<std::int64_t>(stored, tokens, out);
}

bool is_npy_name(std::string_view component) { return component == "npy" || component.ends_with(".npy"); }

Status check_npy_tokens(std::span<const std::byte> beginning, std::uint64_t file_bytes,
                        const TokenFile& layout) {
  const Result<codec::NpyInfo> info = codec::read_npy_header(beginning, file_bytes);
  if (!info.ok()) return corrupt("tokens: {}", info.status().message());
  const std::uint64_t tokens = (file_bytes - layout.header) / size_of(layout.stored);
  if (info->shape.size() == 1 && info->element == layout.stored && !info->is_big_endian &&
      info->data_offset == layout.header && static_cast<std::uint64_t>(info->shape[0]) == tokens)
    return Status();
  return corrupt(
      "tokens: a .npy file of {} ({}) is not like the first one of the split: {} {} after {} bytes",
      to_text(info->element), shape_text(info->shape), tokens, to_text(layout.stored), layout.header);
}

// Of the first document that has a file.
Status TokenTable::find_layout() {
  const dataset::SampleTable& samples = source_->samples();
  file_ = {.stored = options_.stored.value_or(DType::u16)};
  const std::string& name = samples.components()[component_].name;
  file_.is_npy = is_npy_name(name);
  std::optional<dataset::Locator> first;
  std::uint64_t sample = 0;
  for (; sample < samples.size() && !first; ++sample) first = find_component(samples, sample, component_);
  if (!first) return Status();
  std::vector<std::byte> beginning(std::min<std::uint64_t>(first->length, codec::kMaxNpyHeaderBytes));
  STOKER_RETURN_IF_ERROR(source_->read(first->shard, first->offset, beginning));
  if (!file_.is_npy) return check_raw(beginning, name);
  const auto named = [&](Status status) {
    return std::move(status).with_context(format("tokens: sample '{}'", printable(samples.key(sample - 1))));
  };
  const Result<codec::NpyInfo> info = codec::read_npy_header(beginning, first->length);
  if (!info.ok()) return named(info.status());
  const std::string type = (info->is_big_endian ? "big-endian " : "") + std::string(to_text(info->element));
  if (info->is_big_endian || !is_one_of(info->element, kStoredTypes)) {
    return named(invalid("'{}' is an array of {}, not of tokens (U8, U16, U32, I32 or I64, little-endian)",
                         name, type));
  }
  if (info->shape.size() != 1)
    return named(invalid("'{}' is an array of {}, tokens have one dimension", name, shape_text(info->shape)));
  if (options_.stored && *options_.stored != info->element) {
    return named(invalid("'{}' is an array of {}, not of {} (stored)", name, type, to_text(*options_.stored)))
        .cure("leave out `stored`: .npy files name their type");
  }
  file_.stored = info->element;
  file_.header = info->data_offset;
  return Status();
}

Result<std::uint64_t> TokenTable::count_tokens(std::uint64_t sample, const dataset::Locator& file) const {
  const std::string_view key = source_->samples().key(sample);
  if (file_.is_npy && file.length > kWholeDocument) {
    std::vector<std::byte> header(file_.header);
    STOKER_RETURN_IF_ERROR(source_->read(file.shard, file.offset, header));
    Status status = check_npy_tokens(header, file.length, file_);
    if (!status.ok()) return std::move(status).with_context(format("sample '{}'", printable(key)));
  }
  const std::size_t size = size_of(file_.stored);
  if (file.length < file_.header || (file.length - file_.header) % size != 0) {
    const std::string after = file_.is_npy ? format(" after a header of {} bytes", file_.header) : "";
    return corrupt("tokens: sample '{}': {} bytes are not a whole number of {} tokens{}", printable(key),
                   file.length, to_text(file_.stored), after);
  }
  return (file.length - file_.header) / size;
}

Result<TokenTable> TokenTable::create(const dataset::ShardSource& source, std::uint16_t component,
                                      const TokenOptions& options) {
  STOKER_RETURN_IF_ERROR(check_options(options));
  const dataset::SampleTable& samples = source.samples();
  TokenTable table(source, component, options);
  STOKER_RETURN_IF_ERROR(table.find_layout());
  std::uint64_t sum = 0;
  table.ends_.reserve(samples.size());
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    if (const auto file = find_component(samples, sample, component)) {
      STOKER_ASSIGN_OR_RETURN(tokens, table.count_tokens(sample, *file));
      sum += tokens;
    }
    table.ends_.push_back(sum);
  }
  table.sequences_ = sum > options.ahead ? (sum - options.ahead) / options.length : 0;
  if (table.sequences_ == 0) {
    return invalid("tokens: {} tokens do not fill one sequence of {} and {} ahead", sum, options.length,
                   options.ahead);
  }
  return table;
}

std::uint64_t TokenTable::sequences_before(std::uint64_t sample) const {
  const std::uint64_t tokens = sample > 0 ? ends_[sample - 1] : 0;
  return std::min(sequences_, (tokens + options_.length - 1) / options_.length);
}

void TokenTable::spans(std::uint64_t sequence, std::vector<TokenSpan>& out) const {
  const std::uint64_t begin = sequence * options_.length;
  const std::uint64_t end = begin + options_.length + options_.ahead;
  const auto first = std::upper_bound(ends_.begin(), ends_.end(), begin);
  auto sample = static_cast<std::uint64_t>(first - ends_.begin());
  for (std::uint64_t at = begin; at < end; ++sample) {
    const std::uint64_t document = sample > 0 ? ends_[sample - 1] : 0;
    const std::uint64_t until = std::min(end, ends_[sample]);
    if (until == at) continue;  // an empty document
    out.push_back({sample, *find_component(source_->samples(), sample, component_), at - document, until - at,
                   at - begin});
    at = until;
  }
}

}  // namespace stoker::loader
