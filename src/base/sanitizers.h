// The sanitizers of this build, for the few places that need a workaround. No state.
#pragma once

namespace stoker {

#if defined(__has_feature)
inline constexpr bool kHasAddressSanitizer = __has_feature(address_sanitizer);
/// ThreadSanitizer identifies memory by address and open files by descriptor.
inline constexpr bool kHasThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kHasAddressSanitizer = false;
inline constexpr bool kHasThreadSanitizer = false;
#endif

}  // namespace stoker
