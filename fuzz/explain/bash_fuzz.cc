// Batch scripts may be any text: the parser ends, its positions stay inside the text, and the edits of the
// rules can be applied.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bash/parser.h"
#include "script_lint/lint.h"

namespace {

using namespace stoker::bash;
using namespace stoker::script_lint;

void check(const stoker::bash::Span& span, std::size_t size) {
  if (span.begin > span.end || span.end > size) std::abort();
}

void check(const stoker::bash::List& list, std::size_t size);

void check(const stoker::bash::Word& word, std::size_t size) {
  check(word.span, size);
  for (const stoker::bash::WordPiece& piece : word.pieces) {
    check(piece.span, size);
    for (const stoker::bash::List& list : piece.lists) check(list, size);
  }
}

void check(const stoker::bash::List& list, std::size_t size) {
  for (const stoker::bash::Item& item : list.items) {
    for (const stoker::bash::ShellCommand& command : item.pipeline.commands) {
      check(command.span, size);
      for (const stoker::bash::Word& word : command.words) check(word, size);
      for (const stoker::bash::List& part : command.parts) check(part, size);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const stoker::bash::SyntaxTree script = stoker::bash::parse(text);
  check(script.list, size);
  if (script.error && script.error->at > size) std::abort();
  const LintResult lint = lint_script("fuzz.sh", text, {.directory = "/nonexistent", .site = nullptr});
  for (const ScriptFinding& finding : lint.findings) {
    for (const Edit& edit : finding.edits) check(stoker::bash::Span{edit.begin, edit.end}, lint.text.size());
    changed_lines(lint.text, finding.edits);
  }
  const std::string mended = apply_edits(lint.text, lint.findings);
  lint_script("fuzz.sh", mended, {.directory = "/nonexistent", .site = nullptr});
  return 0;
}
