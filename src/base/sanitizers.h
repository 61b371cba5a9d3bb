// Which of the compiler's sanitizers this is built with, for the few places that must do without something
// then. No state.
#pragma once

namespace stoker {

#if defined(__has_feature)
inline constexpr bool kHasAddressSanitizer = __has_feature(address_sanitizer);
/// To it memory is its address and an open file its number.
inline constexpr bool kHasThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kHasAddressSanitizer = false;
inline constexpr bool kHasThreadSanitizer = false;
#endif

}  // namespace stoker
