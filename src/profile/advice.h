// What to do about the largest part of a step that can be avoided, and the next command. Thread-safe: no
// state.
#pragma once

#include <string>
#include <string_view>

#include "profile/profile.h"

namespace stoker::profile {

/// What a command can name.
struct AdviceContext {
  std::string run;      ///< RUN of a suggested command; "" without a run
  std::string job;      ///< path of the run's job file; "" without one
  std::string dataset;  ///< of data.train.source; "" if unknown
  int hosts = 1;
};

/// Sets advice and command by the largest gain; leaves them empty without one.
void advise(const AdviceContext& context, Profile& profile);

}  // namespace stoker::profile
