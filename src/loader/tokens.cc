#include "loader/tokens.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "stoker/text.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kLongest = 1u << 24;

bool is_one_of(DType type, std::initializer_list<DType> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
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

Result<TokenTable> TokenTable::create(const dataset::SampleTable& samples, std::uint16_t component,
                                      const TokenOptions& options) {
  if (!is_one_of(options.stored, {DType::u8, DType::u16, DType::u32, DType::i32, DType::i64}))
    return invalid("tokens: stored as {} (U8, U16, U32, I32 or I64)", to_text(options.stored));
  if (!is_one_of(options.element, {DType::i32, DType::i64}))
    return invalid("tokens: element type {} (I32 or I64)", to_text(options.element));
  if (options.length < 1 || options.length > kLongest)
    return invalid("tokens: sequence length {} is not between 1 and {}", options.length, kLongest);
  if (options.ahead > options.length)
    return invalid("tokens: ahead is {}, more than the sequence length {}", options.ahead, options.length);
  TokenTable table(samples, component, options);
  const std::size_t size = size_of(options.stored);
  std::uint64_t sum = 0;
  table.ends_.reserve(samples.size());
  for (std::uint64_t sample = 0; sample < samples.size(); ++sample) {
    const auto file = find_component(samples, sample, component);
    const std::uint64_t length = file ? file->length : 0;
    if (length % size != 0) {
      return corrupt("tokens: sample '{}': {} bytes are not a whole number of {} tokens",
                     printable(samples.key(sample)), length, to_text(options.stored));
    }
    table.ends_.push_back(sum += length / size);
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
    out.push_back(
        {sample, *find_component(*samples_, sample, component_), at - document, until - at, at - begin});
    at = until;
  }
}

}  // namespace stoker::loader
