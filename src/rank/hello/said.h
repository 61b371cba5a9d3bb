// What `stoker hello` says in the language of who asked. Ranks tell what they see in English: they may be
// many, and none of them has a locale of its own. What of it is Stoker's own is said anew here; what the
// system or a library said is quoted. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "base/language/words.h"
#include "base/strong.h"

namespace stoker::rank::hello {

/// A rank's words ("no answer within 5.0 s"), or the name of a rung ("connect"), for people; as it is where
/// it is not known, but printable.
std::string in_words(std::string_view text, const Words& words);

/// "1 rank", "2 ranks".
std::string rank_count(std::size_t count, const Words& words);
/// "rank 2 (n3)".
std::string rank_on(Rank rank, std::string_view host, const Words& words);

}  // namespace stoker::rank::hello
