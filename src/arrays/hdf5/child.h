// Runs a function in a child process and returns its result: for calls into a library that damaged input may
// crash. Used only inside this folder. Thread-safe; the function must not start threads or take locks of
// other threads.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::arrays::hdf5 {

/// The text that `work` returns, at most `limit` long. Corrupt "<subject>: libhdf5 crashed on it (SIGSEGV)"
/// if the child dies, Timeout if it does not end before the deadline.
Result<std::string> call_in_child(const std::function<std::string()>& work, std::string_view subject,
                                  Deadline deadline, ByteCount limit);

}  // namespace stoker::arrays::hdf5
