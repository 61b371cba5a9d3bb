// The child's side of describe.h: members of the records of a compound type. Used only inside this folder.
#pragma once

#include <string>
#include <vector>

#include "arrays/hdf5/api.h"
#include "codec/chunks/box.h"
#include "stoker/status.h"

namespace stoker::arrays::hdf5 {

/// The elements of an array: all elements of a dataset, or one member of its records.
struct DatasetElement {
  Handle type;
  codec::Extents dimensions;       ///< of an array type in each element
  std::uint64_t record_bytes = 0;  ///< 0: not a member of records
  std::uint64_t offset = 0;        ///< of the member in a record
};

/// Whether it is a record of members; two floats that form a complex number are not.
bool is_record(const Api& h5, Id type);

/// The members of a dataset's records and nested records, as "position/x". Empty without records or with
/// unsupported members.
std::vector<std::string> member_paths(const Api& h5, Id type);

/// The elements of a dataset, or that member of them if `member` is not empty. Invalid, beginning with
/// `subject`, for unsupported types, NotFound for a missing member.
Result<DatasetElement> resolve_element(const Api& h5, const std::string& subject, Id type,
                                       const std::string& member);

}  // namespace stoker::arrays::hdf5
