// Batch scripts are people's own text, and may be anything: the reader keeps its places inside the text,
// ends, and what the rules would change can be changed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "explain/bash/parser.h"
#include "explain/script/lint.h"

namespace {

using namespace stoker::explain;

void check(const bash::Span& span, std::size_t size) {
  if (span.begin > span.end || span.end > size) std::abort();
}

void check(const bash::List& list, std::size_t size);

void check(const bash::Word& word, std::size_t size) {
  check(word.span, size);
  for (const bash::Piece& piece : word.pieces) {
    check(piece.span, size);
    for (const bash::List& list : piece.lists) check(list, size);
  }
}

void check(const bash::List& list, std::size_t size) {
  for (const bash::Item& item : list.items) {
    for (const bash::Command& command : item.pipeline.commands) {
      check(command.span, size);
      for (const bash::Word& word : command.words) check(word, size);
      for (const bash::List& part : command.parts) check(part, size);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const bash::Script script = bash::parse(text);
  check(script.list, size);
  if (script.error && script.error->at > size) std::abort();
  const Lint lint = lint_script("fuzz.sh", text, {.directory = "/nonexistent", .site = nullptr});
  for (const ScriptFinding& finding : lint.findings) {
    for (const Edit& edit : finding.edits) check(bash::Span{edit.begin, edit.end}, lint.text.size());
    changed_lines(lint.text, finding.edits);
  }
  const std::string mended = apply_edits(lint.text, lint.findings);
  lint_script("fuzz.sh", mended, {.directory = "/nonexistent", .site = nullptr});
  return 0;
}
