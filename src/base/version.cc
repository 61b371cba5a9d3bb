#include "base/version.h"

namespace stoker {

namespace {

constexpr std::string_view architecture() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "aarch64";
#elif defined(__powerpc64__)
  return "ppc64le";
#else
  return "unknown architecture";
#endif
}

std::string compiler() {
#if defined(__clang__)
  std::string text = "clang " + std::to_string(__clang_major__);
#elif defined(__GNUC__)
  std::string text = "gcc " + std::to_string(__GNUC__);
#else
  std::string text = "unknown compiler";
#endif
#if defined(_LIBCPP_VERSION)
  text += " libc++";
#elif defined(__GLIBCXX__)
  text += " libstdc++";
#endif
  return text;
}

// Empty for a different C library.
std::string c_library() {
#if defined(__GLIBC__)
  return "glibc ≥ " + std::to_string(__GLIBC__) + "." + std::to_string(__GLIBC_MINOR__);
#else
  return "";
#endif
}

}  // namespace

std::string_view version() { return STOKER_VERSION; }

std::string build_description(std::string_view commit) {
  std::string text(version());
  text += " (";
  if (!commit.empty()) text.append("commit ").append(commit).append(", ");
  text.append(architecture()).append(", ").append(compiler());
  if (const std::string library = c_library(); !library.empty()) text.append(", ").append(library);
  return text + ")";
}

}  // namespace stoker
