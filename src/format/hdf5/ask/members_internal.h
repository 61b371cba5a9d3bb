// The child's side of describe.h: members of records, which are what a dataset of a compound type holds. Used
// only inside this folder.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "format/chunks/box.h"
#include "format/hdf5/api.h"

namespace stoker::formats::hdf5 {

/// What an array is made of: all elements of a dataset, or in each of them, which are records, one member.
struct Element {
  Handle type;
  Extents dimensions;              ///< of an array in each of them
  std::uint64_t record_bytes = 0;  ///< 0: no member of records
  std::uint64_t offset = 0;        ///< of the member in a record
};

/// Whether it is a record of members, which two floats that are a complex number are not.
bool is_record(const Api& h5, Id type);

/// The members of a dataset's records and of records in these, as "position/x". Empty where it holds no
/// records or some whose members are not read.
std::vector<std::string> member_paths(const Api& h5, Id type);

/// The elements themselves, or where `member` is no empty text that member of them. Invalid, beginning with
/// `subject`, for what is not read, NotFound for a member that is not there.
Result<Element> element_of(const Api& h5, const std::string& subject, Id type, const std::string& member);

}  // namespace stoker::formats::hdf5
