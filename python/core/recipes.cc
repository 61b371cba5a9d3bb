#include "core/recipes.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/errors.h"

namespace stoker::python {
namespace nb = nanobind;
namespace {

[[noreturn]] void refuse(nb::handle value, std::string_view expected) {
  raise(invalid("transform: {} is not {}", printable(nb::cast<std::string>(nb::repr(value))), expected));
}

image::Parameter parameter_of(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::int_>(value) || nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  std::vector<double> numbers;
  if (!nb::try_cast(value, numbers)) refuse(value, "a parameter's value (True, 4, 'bicubic' or [0.08, 1.0])");
  return numbers;
}

image::TransformOperation operation_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return {nb::cast<std::string>(value)};
  const bool is_pair = nb::isinstance<nb::sequence>(value) && nb::len(value) == 2;
  if (!is_pair || !nb::isinstance<nb::str>(value[0]) || !nb::isinstance<nb::dict>(value[1]))
    refuse(value, "an operation ('random_horizontal_flip' or ('resize', {'size': 256}))");
  image::TransformOperation operation{nb::cast<std::string>(value[0])};
  for (const auto& [name, parameter] : nb::cast<nb::dict>(value[1]))
    operation.parameters.emplace(nb::cast<std::string>(nb::str(name)), parameter_of(parameter));
  return operation;
}

// numpy's names.
DType number_type(const std::string& name) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"bool", DType::boolean}, {"uint8", DType::u8},    {"int8", DType::i8},       {"int16", DType::i16},
      {"uint16", DType::u16},   {"float16", DType::f16}, {"bfloat16", DType::bf16}, {"int32", DType::i32},
      {"uint32", DType::u32},   {"float32", DType::f32}, {"float64", DType::f64},   {"int64", DType::i64},
      {"uint64", DType::u64}};
  for (const auto& [known, type] : kTypes) {
    if (name == known) return type;
  }
  raise(invalid("loader: '{}' is not a numeric type (float32, int64, ...)", printable(name)));
}

}  // namespace

std::vector<image::TransformOperation> operations_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) {
    Result<std::vector<image::TransformOperation>> found = image::recipe(nb::cast<std::string>(value));
    if (!found.ok()) raise(found.error());
    return std::move(*found);
  }
  if (!nb::isinstance<nb::sequence>(value)) refuse(value, "a recipe's name or a list of operations");
  std::vector<image::TransformOperation> operations;
  for (const nb::handle operation : value) operations.push_back(operation_of(operation));
  return operations;
}

void read_content(nb::handle value, loader::LoaderOptions& options) {
  const auto given = nb::cast<nb::dict>(value);
  const auto kind = nb::cast<std::string>(given["kind"]);
  options.content = kind == "images"   ? loader::Content::images
                    : kind == "bytes"  ? loader::Content::bytes
                    : kind == "arrays" ? loader::Content::arrays
                                       : loader::Content::tokens;
  options.component = nb::cast<std::string>(given["component"]);
  if (const nb::object array = given["array"]; !array.is_none()) {
    options.array =
        loader::ArrayForm{number_type(nb::cast<std::string>(array[0])), nb::cast<Shape>(array[1])};
  }
  if (const nb::object tokens = given["tokens"]; !tokens.is_none()) {
    options.tokens = {.length = nb::cast<std::uint32_t>(tokens["length"]),
                      .ahead = nb::cast<std::uint32_t>(tokens["ahead"]),
                      .element = number_type(nb::cast<std::string>(tokens["dtype"]))};
    if (const nb::object stored = tokens["stored"]; !stored.is_none())
      options.tokens.stored = number_type(nb::cast<std::string>(stored));
  }
  for (const nb::handle column : nb::cast<nb::list>(given["columns"])) {
    const auto type = nb::cast<std::string>(column[2]);
    options.fields.push_back({nb::cast<std::string>(column[0]), nb::cast<std::string>(column[1]),
                              type == "float" ? loader::FieldKind::number
                              : type == "int" ? loader::FieldKind::integer
                                              : loader::FieldKind::text});
  }
}

DType element_of(const std::string& name) {
  if (name == "float32") return DType::f32;
  if (name == "float16") return DType::f16;
  if (name == "bfloat16") return DType::bf16;
  if (name == "uint8") return DType::u8;
  raise(invalid("loader: dtype: unknown type '{}' (one of: float32, float16, bfloat16, uint8)",
                printable(name)));
}

}  // namespace stoker::python
