// The child's side of describe.h: the element type of a dataset. Used only inside this folder.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "arrays/hdf5/api.h"
#include "stoker/status.h"

namespace stoker::arrays::hdf5 {

/// Whether its values have variable length and are in heaps: then its size in memory differs from that in the
/// file.
bool is_variable_length(const Api& h5, Id type);

/// The name of a member of a record or an enumeration.
std::string member_name(const Api& h5, Id type, unsigned member);

/// Adds `letter`, `bytes` and `is_big` in NumPy's terms, for text HDF5's `padding`, for variable length
/// ElementType's letters and the item type in `of`. Invalid, beginning with `subject`, for unsupported types.
Status query_type(const Api& h5, const std::string& subject, Id type, nlohmann::json& into);

}  // namespace stoker::arrays::hdf5
