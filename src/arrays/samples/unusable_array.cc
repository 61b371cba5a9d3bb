#include "arrays/samples/unusable_array.h"

#include <algorithm>

#include "base/language/counted.h"

namespace stoker::arrays {

namespace {

using codec::ElementType;

constexpr std::size_t kMaxNamed = 4;

std::string quoted_name(const std::string& name) {
  return name.empty() ? "the array" : format("'{}'", printable(name));
}

std::string shape_reason(const codec::Extents& shape) {
  if (shape.empty()) return "a single value (no rows)";
  if (shape[0] == 0) return format("no rows (shape {})", codec::shape_text(shape));
  return format("rows without elements (shape {})", codec::shape_text(shape));
}

// Lists of text and values of variable length are read only with one value per row.
UnusableArray several_values(const std::string& name, const codec::Extents& shape, std::string_view values) {
  const std::string cure = format("save each column of {} as a separate array", quoted_name(name));
  return {name, format("several {} per row (shape {})", values, codec::shape_text(shape)), cure, {}};
}

}  // namespace

UnusableArray unusable_array(const std::string& name, const codec::Extents& shape, const ElementType& type) {
  using Kind = ElementType::Kind;
  if (shape.empty() || std::find(shape.begin(), shape.end(), 0u) != shape.end())
    return {name, shape_reason(shape), "", {}};
  const std::string reason = codec::type_name(type) + " values";
  const auto unusable = [&](std::string_view cure) {
    return UnusableArray{name, reason, stoker::format(cure, quoted_name(name)), {}};
  };
  switch (type.kind) {
    case Kind::complex:
      return unusable("save the real and imaginary parts of {} as two arrays");
    case Kind::time:
      return unusable("save {} as int64");
    case Kind::bfloat:
      return unusable("save {} as float32");
    case Kind::text:
      return several_values(name, shape, "texts");
    case Kind::bytes:
      if (type.letter == 'S') return several_values(name, shape, "texts");
      return {name,
              format("opaque values of {}", counted(type.bytes, "byte")),
              format("save {} as uint8, with the bytes of a value along a second axis", quoted_name(name)),
              {}};
    case Kind::variable_length:
      return several_values(name, shape, type.letter == ElementType::kText ? "texts" : "values");
    case Kind::boolean:
    case Kind::signed_integer:
    case Kind::unsigned_integer:
    case Kind::floating:
      break;
  }
  return {name, format("rows that are too large (shape {})", codec::shape_text(shape)), "", {}};
}

UnusableArray unopened_array(const std::string& name, const Status& status, const std::string& subject) {
  std::string_view reason = status.message();
  const bool begins_with_subject = reason.starts_with(subject) && reason.size() > subject.size() &&
                                   (reason[subject.size()] == ':' || reason[subject.size()] == '/');
  if (begins_with_subject) {
    reason.remove_prefix(subject.size());
    reason.remove_prefix(std::min(reason.find_first_not_of(":/ "), reason.size()));
  }
  return {name, std::string(reason), std::string(status.cure()), status};
}

Status no_usable_array(const std::vector<UnusableArray>& arrays, const std::string& subject) {
  if (arrays.empty()) return invalid("{}: has no arrays", subject);
  if (arrays.size() == 1 && !arrays[0].status.ok()) return arrays[0].status;
  std::vector<std::string> reasons;
  std::string cure;
  for (const UnusableArray& array : arrays) {
    if (reasons.size() == kMaxNamed) break;
    // The reason of an array that could not be opened has its name.
    const bool has_name = !array.status.ok() || array.name.empty();
    reasons.push_back(has_name ? array.reason : format("{}: {}", printable(array.name), array.reason));
    if (cure.empty()) cure = array.cure;
  }
  if (arrays.size() > kMaxNamed)
    reasons.push_back(format("and {}", counted(arrays.size() - kMaxNamed, "more array")));
  Status refused = invalid("{}: has no array with rows of numbers: {}", subject, join(reasons, "; "));
  return cure.empty() ? refused : std::move(refused).cure("{}", cure);
}

}  // namespace stoker::arrays
