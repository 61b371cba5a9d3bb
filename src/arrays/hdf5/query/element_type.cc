
#include "codec/chunks/element_type.h"

#include "arrays/hdf5/query/element_type_internal.h"
#include "base/json/json.h"

namespace stoker::arrays::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxElementBytes = 1u << 20;
// H5T_ORDER_LE, H5T_ORDER_BE
constexpr int kLittle = 0;
constexpr int kBig = 1;

class TypeQuery {
 public:
  TypeQuery(const Api& h5, const std::string& subject) : h5_(h5), subject_(subject) {}

  // Letter and size as NumPy has them.
  Status read(Id type, Json& into) {
    if (is_variable_length(h5_, type)) return read_varying(type, into);
    return read_fixed(type, into);
  }

 private:
  // The dataset stores references; the type describes the items of the values.
  Status read_varying(Id type, Json& into) {
    into["bytes"] = codec::ElementType::kReferenceBytes;
    into["is_big"] = false;
    const bool is_text = static_cast<TypeClass>(h5_.H5Tget_class(type)) == TypeClass::string;
    into["letter"] = std::string(1, is_text ? codec::ElementType::kText : codec::ElementType::kNumbers);
    if (is_text) return {};
    const Handle of(h5_.H5Tget_super(type), h5_.H5Tclose);
    if (!of.is_open()) return broken();
    if (is_variable_length(h5_, of.get()))
      return unsupported("nested lists of different lengths are not supported");
    Json& items = into["of"];
    STOKER_RETURN_IF_ERROR(read_fixed(of.get(), items));
    constexpr std::string_view kNumbers = "biuf";
    return kNumbers.find(items["letter"].get<std::string>()) != std::string_view::npos
               ? Status()
               : unsupported("lists of different lengths are supported for numbers only");
  }

  Status read_fixed(Id type, Json& into) {
    const std::uint64_t bytes = h5_.H5Tget_size(type);
    if (bytes == 0 || bytes > kMaxElementBytes) return no_type(subject_);
    into["bytes"] = bytes;
    into["is_big"] = h5_.H5Tget_order(type) == kBig;
    switch (static_cast<TypeClass>(h5_.H5Tget_class(type))) {
      case TypeClass::integer:
        return read_integer(type, into);
      case TypeClass::floating:
        return read_float(type, into);
      case TypeClass::string: {
        const int padding = h5_.H5Tget_strpad(type);
        if (padding < 0) return broken();
        into["letter"] = "S";
        into["padding"] = static_cast<unsigned>(padding);
        return {};
      }
      case TypeClass::opaque:
        into["letter"] = "V";
        return {};
      case TypeClass::enumeration: {
        const Handle base(h5_.H5Tget_super(type), h5_.H5Tclose);
        if (!base.is_open()) return broken();
        STOKER_RETURN_IF_ERROR(read_integer(base.get(), into));
        if (is_truth(type)) into["letter"] = "b";
        return {};
      }
      case TypeClass::compound:
        return read_complex(type, bytes, into);
      case TypeClass::reference:
      case TypeClass::sequence:
      case TypeClass::array:
        break;
    }
    return no_type(subject_);
  }

  static Status no_type(std::string_view subject) {
    return invalid(
        "{}: elements of its type are not supported (numbers, complex numbers, enumerations and text of a "
        "fixed "
        "size are)",
        subject);
  }

  Status broken() const { return h5_.failure(subject_, "is damaged", h5_.last_error()); }
  Status unsupported(std::string_view what) const { return invalid("{}: {}", subject_, what); }

  // Whether all bits of a number count, in an order that is read: not VAX's.
  bool is_plain(Id type) const {
    const int order = h5_.H5Tget_order(type);
    return (order == kLittle || order == kBig) && h5_.H5Tget_offset(type) == 0 &&
           h5_.H5Tget_precision(type) == 8 * h5_.H5Tget_size(type);
  }

  Status read_integer(Id type, Json& into) const {
    const std::uint64_t bytes = h5_.H5Tget_size(type);
    into["letter"] = h5_.H5Tget_sign(type) == 0 ? "u" : "i";
    into["is_big"] = h5_.H5Tget_order(type) == kBig;
    if (bytes > 8 || (bytes & (bytes - 1)) != 0) return no_type(subject_);
    if (is_plain(type)) return {};
    return unsupported(
        format("integers of {} bits in {} bytes are not supported", h5_.H5Tget_precision(type), bytes));
  }

  // h5py's booleans; other enumerations are read as numbers.
  bool is_truth(Id type) const {
    constexpr std::string_view kNames[] = {"FALSE", "TRUE"};
    if (h5_.H5Tget_size(type) != 1 || h5_.H5Tget_nmembers(type) != 2) return false;
    for (unsigned i = 0; i < 2; ++i) {
      std::uint8_t value = 0;
      if (h5_.H5Tget_member_value(type, i, &value) < 0 || value > 1) return false;
      if (member_name(h5_, type, i) != kNames[value]) return false;
    }
    return true;
  }

  // IEEE halves, singles and doubles, and brain floats.
  Status read_float(Id type, Json& into) const {
    std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
    if (h5_.H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
      return broken();
    const std::uint64_t bits = h5_.H5Tget_size(type) * 8;
    const auto is = [&](std::uint64_t all, std::uint64_t of_exponent) {
      return bits == all && exponent_bits == of_exponent && mantissa_bits == all - 1 - of_exponent &&
             sign == all - 1 && exponent == mantissa_bits && mantissa == 0 &&
             h5_.H5Tget_ebias(type) == (std::uint64_t{1} << (of_exponent - 1)) - 1;
    };
    constexpr int kImplied = 0;  // H5T_NORM_IMPLIED: the first bit of the mantissa is not stored
    const bool is_known = is(16, 5) || is(16, 8) || is(32, 8) || is(64, 11);
    if (!is_known || !is_plain(type) || h5_.H5Tget_norm(type) != kImplied)
      return unsupported(
          "its floating-point numbers are neither IEEE's of 16, 32 or 64 bits nor bfloat16, which are not "
          "supported");
    into["letter"] = is(16, 8) ? "E" : "f";
    return {};
  }

  // Two consecutive floats of the same size.
  Status read_complex(Id type, std::uint64_t bytes, Json& into) {
    if (h5_.H5Tget_nmembers(type) != 2 || (bytes != 8 && bytes != 16)) {
      return unsupported("elements of several fields are not supported");
    }
    for (unsigned i = 0; i < 2; ++i) {
      const Handle member(h5_.H5Tget_member_type(type, i), h5_.H5Tclose);
      const bool is_big = member.is_open() && h5_.H5Tget_order(member.get()) == kBig;
      if (!member.is_open() ||
          static_cast<TypeClass>(h5_.H5Tget_class(member.get())) != TypeClass::floating ||
          h5_.H5Tget_size(member.get()) != bytes / 2 || h5_.H5Tget_member_offset(type, i) != i * bytes / 2 ||
          (i > 0 && into["is_big"] != is_big)) {
        return unsupported("elements of several fields are not supported");
      }
      STOKER_RETURN_IF_ERROR(read_float(member.get(), into));
      into["is_big"] = is_big;
    }
    into["letter"] = "c";
    return {};
  }

  const Api& h5_;
  const std::string& subject_;
};

}  // namespace

bool is_variable_length(const Api& h5, Id type) {
  const auto kind = static_cast<TypeClass>(h5.H5Tget_class(type));
  return kind == TypeClass::sequence || (kind == TypeClass::string && h5.H5Tis_variable_str(type) > 0);
}

std::string member_name(const Api& h5, Id type, unsigned member) {
  char* const text = h5.H5Tget_member_name(type, member);
  if (text == nullptr) return {};
  std::string name = text;
  h5.H5free_memory(text);
  return name;
}

Status query_type(const Api& h5, const std::string& subject, Id type, nlohmann::json& into) {
  return TypeQuery(h5, subject).read(type, into);
}

}  // namespace stoker::arrays::hdf5
