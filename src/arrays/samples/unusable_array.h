// Why an array of a file is not read as rows, for messages. Used by RowArrays. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "codec/chunks/box.h"
#include "codec/chunks/element_type.h"
#include "stoker/status.h"

namespace stoker::arrays {

/// An array that is not read as rows.
struct UnusableArray {
  std::string name;    ///< "" for a store that is an array itself
  std::string reason;  ///< "complex128 values", "no rows (shape 0 x 3)"
  std::string cure;    ///< may be empty
  Status status;       ///< the whole error of an array that could not be opened
};

/// For an array that was opened. REQUIRES: its rows are neither numbers nor single values of text, bytes or
/// lists.
UnusableArray unusable_array(const std::string& name, const codec::Extents& shape,
                             const codec::ElementType& type);
/// For an array that could not be opened. `subject` is the file's name, which may begin the message.
UnusableArray unopened_array(const std::string& name, const Status& status, const std::string& subject);

/// The error of a file with only these arrays: names up to four of them, with the first cure. The whole error
/// of a single array that could not be opened.
Status no_usable_array(const std::vector<UnusableArray>& arrays, const std::string& subject);

}  // namespace stoker::arrays
