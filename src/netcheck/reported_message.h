// Localizes the messages of `stoker hello`. Ranks report in English, because they have no locale of the user.
// Stoker's own messages are translated here; messages of the system or a library are quoted. Thread-safe: no
// state.
#pragma once

#include <string>
#include <string_view>

#include "base/language/message.h"
#include "stoker/strong.h"

namespace stoker::netcheck {

/// Localizes a rank's message ("no answer within 5.0 s") or the name of a step ("connect"). Unknown text is
/// returned printable but untranslated.
Message reported_message(std::string_view text);

/// "1 rank", "2 ranks".
Message rank_count(std::size_t count);
/// "rank 2 (n3)".
Message rank_on(Rank rank, std::string_view host);

}  // namespace stoker::netcheck
