// The protocol of a transfer over ssh. No user input reaches a remote shell's command line: ssh always starts
// `exec sh -c 'eval "$(dd ...)"'`, which every login shell understands, and the rest goes through standard
// input.
//
//   local                                      remote
//   1. far_side.sh after three assignments ->  runs it; earlier output of a login shell is dropped
//   2.                                         the same version of stoker is there: `stoker remote NONCE`,
//                                              otherwise <- "stoker-shell NONCE <hash program>"
//   3. a line for each request ->              <- its answer, in order; "error <text>" if it failed
//   4. end of input ->                         ends
//
//   look PATH                  "path ...", "state ...", "writable", space ("free", or lines of df), "end"
//   size FILE                  "size <bytes>" or "size -"
//   entries FOLDER             "entries <count>"
//   make FOLDER                "ok"
//   put FILE BLOCK BYTES       followed by the bytes; "ok"; the far side ends after an error
//   hash FILE BLOCK COUNT      "hash <SHA-256> ..."
//   get FILE BLOCK BYTES       "data <bytes>" and the bytes
//   publish PENDING PATH ASIDE "ok"
//
// Functions without state.
#pragma once

#include <string>
#include <string_view>

#include "stoker/status.h"
#include "transfer/endpoint.h"

namespace stoker::transfer {

/// The text of far_side.sh.
std::string_view far_side_script();

/// A path without blanks: letters, digits, "/._-" and "\0ooo", which `printf %b` decodes.
std::string encode_path(std::string_view path);
/// Corrupt for any other word.
Result<std::string> decode_path(std::string_view word);

/// "absent", "empty", "dataset", "folder", "other".
std::string_view to_text(PathState state);

/// The lines between "path" and "end", including both.
std::string facts_text(const PathFacts& facts);
/// Reads them, of either far side. Corrupt for lines without a path or a state.
Result<PathFacts> parse_facts(const std::vector<std::string>& lines);

}  // namespace stoker::transfer
