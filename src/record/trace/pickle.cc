#include "record/trace/pickle.h"

#include <bit>
#include <unordered_map>
#include <utility>

namespace stoker::record {

namespace {

// The used opcodes of Python's module pickle.
enum Opcode : unsigned char {
  kMark = '(',
  kStop = '.',
  kNone = 'N',
  kPop = '0',
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kEmptyList = ']',
  kEmptyDict = '}',
  kEmptyTuple = ')',
  kTuple = 't',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kBinUnicode = 'X',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kMemoize = 0x94,
  kFrame = 0x95,
};

constexpr std::uint64_t kNewestProtocol = 5;
// A value takes 32 bytes, and may take only one in the pickle.
constexpr std::size_t kMaxValues = 8 << 20;

}  // namespace

class PickleParser {
 public:
  PickleParser(std::string_view name, std::span<const std::byte> bytes) : name_(name), bytes_(bytes) {}

  Result<Pickle> run() {
    while (!is_done_) {
      begin_ = at_;
      STOKER_ASSIGN_OR_RETURN(opcode, number(1));
      STOKER_RETURN_IF_ERROR(apply(static_cast<unsigned char>(opcode)));
    }
    if (stack_.size() != 1) return wrong("ends with more than one value");
    pickle_.root_ = stack_.back();
    return std::move(pickle_);
  }

 private:
  using Index = Pickle::Index;

  template <typename... Arguments>
  Status wrong(std::string_view what, const Arguments&... arguments) const {
    return corrupt("{}: pickle {} (byte {})", name_, format(what, arguments...), begin_);
  }

  Result<std::string_view> text(std::uint64_t size) {
    if (size > bytes_.size() - at_) return wrong("ends early");
    const std::string_view found(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return found;
  }

  // A little-endian number of `size` bytes, at most 8.
  Result<std::uint64_t> number(std::size_t size) {
    STOKER_ASSIGN_OR_RETURN(found, text(size));
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(found[i]);
    return value;
  }

  Status push(Pickle::Value value) {
    if (pickle_.values_.size() == kMaxValues) return wrong("has more than {} values", kMaxValues);
    stack_.push_back(static_cast<Index>(pickle_.values_.size()));
    pickle_.values_.push_back(std::move(value));
    return {};
  }

  Status push_text(std::size_t size_bytes) {
    STOKER_ASSIGN_OR_RETURN(size, number(size_bytes));
    STOKER_ASSIGN_OR_RETURN(found, text(size));
    return push(found);
  }

  Status push_unsigned(std::size_t size) {
    STOKER_ASSIGN_OR_RETURN(value, number(size));
    return push(static_cast<std::int64_t>(value));
  }

  // Two's complement of any length.
  Status push_long() {
    STOKER_ASSIGN_OR_RETURN(size, number(1));
    if (size > 8) return wrong("has a number of {} bytes", size);
    STOKER_ASSIGN_OR_RETURN(value, number(size));
    const std::size_t unused = 64 - 8 * size;
    return push(size == 0 ? std::int64_t{0} : static_cast<std::int64_t>(value << unused) >> unused);
  }

  Status push_float() {
    STOKER_ASSIGN_OR_RETURN(found, text(8));
    std::uint64_t value = 0;
    for (const char byte : found) value = value << 8 | static_cast<unsigned char>(byte);
    return push(std::bit_cast<double>(value));
  }

  // The topmost `count` values, which the last mark must precede.
  Result<std::vector<Index>> pop(std::size_t count) {
    const std::size_t least = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - least < count) return wrong("has too few values");
    std::vector<Index> taken(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return taken;
  }

  Result<std::vector<Index>> pop_to_mark() {
    if (marks_.empty()) return wrong("has no mark");
    auto taken = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return taken;
  }

  Status push_tuple(Result<std::vector<Index>> items) {
    if (!items.ok()) return std::move(items).error();
    return push(Pickle::List{*std::move(items)});
  }

  Status append(Result<std::vector<Index>> items) {
    if (!items.ok()) return std::move(items).error();
    auto* list = top<Pickle::List>();
    if (list == nullptr) return wrong("appends to no list");
    list->items.insert(list->items.end(), items->begin(), items->end());
    return {};
  }

  Status set(Result<std::vector<Index>> pairs) {
    if (!pairs.ok()) return std::move(pairs).error();
    auto* dictionary = top<Pickle::Dictionary>();
    if (dictionary == nullptr || pairs->size() % 2 != 0) return wrong("sets items of no dictionary");
    dictionary->pairs.insert(dictionary->pairs.end(), pairs->begin(), pairs->end());
    return {};
  }

  template <typename Container>
  Container* top() {
    const std::size_t least = marks_.empty() ? 0 : marks_.back();
    return stack_.size() <= least ? nullptr : std::get_if<Container>(&pickle_.values_[stack_.back()]);
  }

  Status remember(std::uint64_t key) {
    if (stack_.empty()) return wrong("remembers no value");
    memo_[key] = stack_.back();
    return {};
  }

  Status put(std::size_t size) {
    STOKER_ASSIGN_OR_RETURN(key, number(size));
    return remember(key);
  }

  Status get(std::size_t size) {
    STOKER_ASSIGN_OR_RETURN(key, number(size));
    const auto found = memo_.find(key);
    if (found == memo_.end()) return wrong("refers to a value that it does not have");
    stack_.push_back(found->second);
    return {};
  }

  Status apply(unsigned char opcode);
  Status apply_value(unsigned char opcode);

  const std::string_view name_;
  const std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;  // of the current opcode
  bool is_done_ = false;
  Pickle pickle_;
  std::vector<Index> stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint64_t, Index> memo_;
};

Status PickleParser::apply(unsigned char opcode) {
  switch (opcode) {
    case kProto: {
      STOKER_ASSIGN_OR_RETURN(protocol, number(1));
      return protocol <= kNewestProtocol ? Status() : wrong("has protocol {}", protocol);
    }
    case kFrame:
      return number(8).status();
    case kMark:
      marks_.push_back(stack_.size());
      return {};
    case kStop:
      is_done_ = true;
      return {};
    case kPop:
      return pop(1).status();
    case kAppend:
      return append(pop(1));
    case kAppends:
      return append(pop_to_mark());
    case kSetItem:
      return set(pop(2));
    case kSetItems:
      return set(pop_to_mark());
    case kBinPut:
      return put(1);
    case kLongBinPut:
      return put(4);
    case kMemoize:
      return remember(memo_.size());
    case kBinGet:
      return get(1);
    case kLongBinGet:
      return get(4);
    default:
      return apply_value(opcode);
  }
}

Status PickleParser::apply_value(unsigned char opcode) {
  switch (opcode) {
    case kNone:
      return push(std::monostate());
    case kNewTrue:
    case kNewFalse:
      return push(opcode == kNewTrue);
    case kBinInt: {
      STOKER_ASSIGN_OR_RETURN(value, number(4));
      return push(std::int64_t{static_cast<std::int32_t>(value)});
    }
    case kBinInt1:
      return push_unsigned(1);
    case kBinInt2:
      return push_unsigned(2);
    case kLong1:
      return push_long();
    case kBinFloat:
      return push_float();
    case kShortBinUnicode:
      return push_text(1);
    case kBinUnicode:
      return push_text(4);
    case kBinUnicode8:
      return push_text(8);
    case kEmptyList:
    case kEmptyTuple:
      return push(Pickle::List{});
    case kEmptyDict:
      return push(Pickle::Dictionary{});
    case kTuple:
      return push_tuple(pop_to_mark());
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return push_tuple(pop(opcode - kTuple1 + std::size_t{1}));
    default:
      return wrong("has opcode {}, which plain values do not need", static_cast<int>(opcode));
  }
}

Result<Pickle> Pickle::parse(std::string_view name, std::span<const std::byte> bytes) {
  return PickleParser(name, bytes).run();
}

std::optional<Pickle::Index> Pickle::find(Index index, std::string_view key) const {
  const auto* dictionary = std::get_if<Dictionary>(&at(index));
  if (dictionary == nullptr) return std::nullopt;
  for (std::size_t i = 0; i + 1 < dictionary->pairs.size(); i += 2) {
    const auto* text = std::get_if<std::string_view>(&at(dictionary->pairs[i]));
    if (text != nullptr && *text == key) return dictionary->pairs[i + 1];
  }
  return std::nullopt;
}

}  // namespace stoker::record
