// Runs a function in a child process and gives what it returns: for calls into a library that damaged input
// may crash. Used only inside this folder. Thread-safe; the function starts no threads and takes no locks of
// others.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::formats::hdf5 {

/// The text that `work` returns, at most `limit` long. Corrupt "<subject>: libhdf5 crashed on it (SIGSEGV)"
/// if the child dies, Timeout if it does not end before the deadline.
Result<std::string> in_child(const std::function<std::string()>& work, std::string_view subject,
                             Deadline deadline, ByteCount limit);

}  // namespace stoker::formats::hdf5
