// The child's side of describe.h: what the elements of a dataset are. Used by ask.cc only.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "format/hdf5/api.h"

namespace stoker::formats::hdf5 {

/// Adds `letter`, `bytes` and `is_big` as NumPy has them. Invalid, beginning with `subject`, for types that
/// are not read.
Status ask_type(const Api& h5, const std::string& subject, Id type, nlohmann::json& into);

}  // namespace stoker::formats::hdf5
