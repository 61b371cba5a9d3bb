// The time by the machine's clock, for what measures itself and is told no clock. Thread-safe: no state.
#pragma once

#include "base/time.h"

namespace stoker {

/// Of the clock that only goes on.
inline MonoTime mono_now() { return RealClock().mono(); }

}  // namespace stoker
