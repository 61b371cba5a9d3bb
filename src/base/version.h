// Version of Stoker, as stored in runs, datasets and reports, and the description of the build for people.
#pragma once

#include <string>
#include <string_view>

namespace stoker {

/// "0.1.0": content of the file VERSION at build time.
std::string_view version();

/// "0.1.0 (commit 1a2b3c4d5e6f, x86_64, clang 19 libc++, glibc ≥ 2.28)": version, the given commit (left out
/// if empty), architecture, compiler with its C++ library, and the glibc of the headers, which is new enough
/// to run the program. The same sources and tools give the same text on every machine.
std::string build_description(std::string_view commit);

}  // namespace stoker
