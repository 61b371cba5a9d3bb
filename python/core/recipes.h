// The `transform` argument of stoker.Loader. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <string>
#include <vector>

#include "data/loader.h"

namespace stoker::python {

/// From a recipe's name, or a list of operations: names, and (name, {parameter: value}). Raises ValueError
/// for what is neither. Whether operations and parameters exist is for data::Transform to say.
std::vector<data::Operation> operations_of(nanobind::handle value);

/// Sets content, component, array, tokens and fields from {"kind": "images", "bytes", "arrays" or "tokens",
/// "component": str, "array": (element, shape) or None, "tokens": {...}, "columns": [(component, name, kind),
/// ...]}, as loader.py makes it.
void read_content(nanobind::handle value, data::LoaderOptions& options);

/// "float32", "float16", "bfloat16" or "uint8". Raises ValueError for others.
DType element_of(const std::string& name);

}  // namespace stoker::python
