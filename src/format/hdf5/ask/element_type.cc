
#include "format/chunks/element_type.h"

#include "base/json/json.h"
#include "format/hdf5/ask/element_type_internal.h"

namespace stoker::formats::hdf5 {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostElementBytes = 1u << 20;
// H5T_ORDER_LE, H5T_ORDER_BE
constexpr int kLittle = 0;
constexpr int kBig = 1;

class TypeAsker {
 public:
  TypeAsker(const Api& h5, const std::string& subject) : h5_(h5), subject_(subject) {}

  // Letter and size as NumPy has them.
  Status take(Id type, Json& into) {
    if (is_varying(h5_, type)) return take_varying(type, into);
    return take_fixed(type, into);
  }

 private:
  // What a dataset stores of a value is a reference; its type is what the value is a list of.
  Status take_varying(Id type, Json& into) {
    into["bytes"] = ElementType::kReferenceBytes;
    into["is_big"] = false;
    const bool is_text = static_cast<Class>(h5_.H5Tget_class(type)) == Class::string;
    into["letter"] = std::string(1, is_text ? ElementType::kText : ElementType::kNumbers);
    if (is_text) return {};
    const Handle of(h5_.H5Tget_super(type), h5_.H5Tclose);
    if (!of.is_open()) return broken();
    if (is_varying(h5_, of.get())) return unread("lists of lists of different lengths are not read");
    Json& items = into["of"];
    RETURN_IF_ERROR(take_fixed(of.get(), items));
    constexpr std::string_view kNumbers = "biuf";
    return kNumbers.find(items["letter"].get<std::string>()) != std::string_view::npos
               ? Status()
               : unread("lists of different lengths of what is no number are not read");
  }

  Status take_fixed(Id type, Json& into) {
    const std::uint64_t bytes = h5_.H5Tget_size(type);
    if (bytes == 0 || bytes > kMostElementBytes) return no_type(subject_);
    into["bytes"] = bytes;
    into["is_big"] = h5_.H5Tget_order(type) == kBig;
    switch (static_cast<Class>(h5_.H5Tget_class(type))) {
      case Class::integer:
        return take_integer(type, into);
      case Class::floating:
        return take_float(type, into);
      case Class::string: {
        const int padding = h5_.H5Tget_strpad(type);
        if (padding < 0) return broken();
        into["letter"] = "S";
        into["padding"] = static_cast<unsigned>(padding);
        return {};
      }
      case Class::opaque:
        into["letter"] = "V";
        return {};
      case Class::enumeration: {
        const Handle base(h5_.H5Tget_super(type), h5_.H5Tclose);
        if (!base.is_open()) return broken();
        RETURN_IF_ERROR(take_integer(base.get(), into));
        if (is_truth(type)) into["letter"] = "b";
        return {};
      }
      case Class::compound:
        return take_complex(type, bytes, into);
      case Class::reference:
      case Class::sequence:
      case Class::array:
        break;
    }
    return no_type(subject_);
  }

  static Status no_type(std::string_view subject) {
    return invalid(
        "{}: elements of its type are not read (numbers, complex numbers, enumerations and text of a fixed "
        "size are)",
        subject);
  }

  Status broken() const { return h5_.failure(subject_, "is damaged", h5_.last_error()); }
  Status unread(std::string_view what) const { return invalid("{}: {}", subject_, what); }

  // Whether all bits of a number count, in an order that is read: not VAX's.
  bool is_plain(Id type) const {
    const int order = h5_.H5Tget_order(type);
    return (order == kLittle || order == kBig) && h5_.H5Tget_offset(type) == 0 &&
           h5_.H5Tget_precision(type) == 8 * h5_.H5Tget_size(type);
  }

  Status take_integer(Id type, Json& into) const {
    const std::uint64_t bytes = h5_.H5Tget_size(type);
    into["letter"] = h5_.H5Tget_sign(type) == 0 ? "u" : "i";
    into["is_big"] = h5_.H5Tget_order(type) == kBig;
    if (bytes > 8 || (bytes & (bytes - 1)) != 0) return no_type(subject_);
    if (is_plain(type)) return {};
    return unread(
        format("whole numbers of {} bits in {} bytes are not read", h5_.H5Tget_precision(type), bytes));
  }

  // h5py's truth values; any other enumeration is its numbers.
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
  Status take_float(Id type, Json& into) const {
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
      return unread(
          "its floating-point numbers are neither IEEE's of 16, 32 or 64 bits nor bfloat16, and not read");
    into["letter"] = is(16, 8) ? "E" : "f";
    return {};
  }

  // Two floats of the same size, one after the other.
  Status take_complex(Id type, std::uint64_t bytes, Json& into) {
    if (h5_.H5Tget_nmembers(type) != 2 || (bytes != 8 && bytes != 16)) {
      return unread("elements of several fields are not read");
    }
    for (unsigned i = 0; i < 2; ++i) {
      const Handle member(h5_.H5Tget_member_type(type, i), h5_.H5Tclose);
      const bool is_big = member.is_open() && h5_.H5Tget_order(member.get()) == kBig;
      if (!member.is_open() || static_cast<Class>(h5_.H5Tget_class(member.get())) != Class::floating ||
          h5_.H5Tget_size(member.get()) != bytes / 2 || h5_.H5Tget_member_offset(type, i) != i * bytes / 2 ||
          (i > 0 && into["is_big"] != is_big)) {
        return unread("elements of several fields are not read");
      }
      RETURN_IF_ERROR(take_float(member.get(), into));
      into["is_big"] = is_big;
    }
    into["letter"] = "c";
    return {};
  }

  const Api& h5_;
  const std::string& subject_;
};

}  // namespace

bool is_varying(const Api& h5, Id type) {
  const auto kind = static_cast<Class>(h5.H5Tget_class(type));
  return kind == Class::sequence || (kind == Class::string && h5.H5Tis_variable_str(type) > 0);
}

std::string member_name(const Api& h5, Id type, unsigned member) {
  char* const text = h5.H5Tget_member_name(type, member);
  if (text == nullptr) return {};
  std::string name = text;
  h5.H5free_memory(text);
  return name;
}

Status ask_type(const Api& h5, const std::string& subject, Id type, nlohmann::json& into) {
  return TypeAsker(h5, subject).take(type, into);
}

}  // namespace stoker::formats::hdf5
