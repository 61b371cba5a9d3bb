// The child's side of describe.h: what the elements of a dataset are. Used only inside this folder.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.h"
#include "format/hdf5/api.h"

namespace stoker::formats::hdf5 {

/// Whether its values have different lengths and lie in heaps: then its size in memory is not that in the
/// file.
bool is_varying(const Api& h5, Id type);

/// The name of a record's member, or an enumeration's.
std::string member_name(const Api& h5, Id type, unsigned member);

/// Adds `letter`, `bytes` and `is_big` as NumPy has them, of text `padding` as HDF5 counts its kinds; of
/// values of different lengths those of ElementType, and in `of` what a list is of. Invalid, beginning with
/// `subject`, for types that are not read.
Status ask_type(const Api& h5, const std::string& subject, Id type, nlohmann::json& into);

}  // namespace stoker::formats::hdf5
