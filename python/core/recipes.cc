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

data::Parameter parameter_of(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::int_>(value) || nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  std::vector<double> numbers;
  if (!nb::try_cast(value, numbers)) refuse(value, "a parameter's value (True, 4, 'bicubic' or [0.08, 1.0])");
  return numbers;
}

data::Operation operation_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) return {nb::cast<std::string>(value)};
  const bool is_pair = nb::isinstance<nb::sequence>(value) && nb::len(value) == 2;
  if (!is_pair || !nb::isinstance<nb::str>(value[0]) || !nb::isinstance<nb::dict>(value[1]))
    refuse(value, "an operation ('random_horizontal_flip' or ('resize', {'size': 256}))");
  data::Operation operation{nb::cast<std::string>(value[0])};
  for (const auto& [name, parameter] : nb::cast<nb::dict>(value[1]))
    operation.parameters.emplace(nb::cast<std::string>(nb::str(name)), parameter_of(parameter));
  return operation;
}

}  // namespace

std::vector<data::Operation> operations_of(nb::handle value) {
  if (nb::isinstance<nb::str>(value)) {
    Result<std::vector<data::Operation>> found = data::recipe(nb::cast<std::string>(value));
    if (!found.ok()) raise(found.error());
    return std::move(*found);
  }
  if (!nb::isinstance<nb::sequence>(value)) refuse(value, "a recipe's name or a list of operations");
  std::vector<data::Operation> operations;
  for (const nb::handle operation : value) operations.push_back(operation_of(operation));
  return operations;
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
