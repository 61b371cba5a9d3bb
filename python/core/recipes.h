// The `transform` argument of stoker.Loader. Callers hold the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <string>
#include <vector>

#include "stoker/loader.h"

namespace stoker::python {

/// Converts a recipe's name, or a list of operations: names, and (name, {parameter: value}). Raises
/// ValueError for other values. image::Transform checks that operations and parameters exist.
std::vector<image::TransformOperation> operations_of(nanobind::handle value);

/// Sets content, component, array, tokens and fields from {"kind": "images", "bytes", "arrays" or "tokens",
/// "component": str, "array": (element, shape) or None, "tokens": {...}, "columns": [(component, name, kind),
/// ...]}, as created by contents.py.
void read_content(nanobind::handle value, loader::LoaderOptions& options);

/// "float32", "float16", "bfloat16" or "uint8". Raises ValueError for others.
DType element_of(const std::string& name);

}  // namespace stoker::python
