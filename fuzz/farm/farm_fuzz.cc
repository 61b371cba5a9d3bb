// Any bytes as a task list in each format, a command template, a command line and a ledger: no crash and no
// hang; plain words survive quoting, and a record survives a round trip.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "farm/ledger/records.h"
#include "farm/list/task_list.h"

using namespace stoker;

namespace {

[[noreturn]] void differ(std::string_view what, const std::string& text) {
  std::fprintf(stderr, "%.*s\n%s\n", static_cast<int>(what.size()), what.data(), text.c_str());
  std::abort();
}

void check_ledger(std::string_view text) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    if (const auto record = farm::parse_ledger_line(text.substr(0, end))) {
      std::string line = farm::ledger_line(*record);
      line.pop_back();
      const auto again = farm::parse_ledger_line(line);
      if (!again || farm::ledger_line(*again) != line + "\n") differ("the record differs", line);
    }
    text.remove_prefix(end + 1);
  }
}

void check_words(std::string_view text) {
  const auto words = farm::plain_words(text);
  // Without its quotes the first word would be an assignment.
  if (!words || words->front().find('=') != std::string::npos) return;
  std::string line;
  for (const std::string& word : *words) line += (line.empty() ? "" : " ") + shell_quote(word);
  const auto again = farm::plain_words(line);
  if (!again || *again != *words) differ("the words differ", line);
}

void check_list(const std::string& name, std::string_view text, const std::vector<std::string>& command) {
  const auto list = farm::TaskList::parse(name, std::string(text), command, {});
  if (!list.ok()) return;
  for (farm::TaskIndex task = 0; task < list->size() && task < 100; ++task) {
    (void)list->command(task);
    if (list->name(task).empty()) differ("a task without a name", name);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_ledger(text);
  check_words(text);
  check_list("t.txt", text, {});
  check_list("t.yaml", text, {});
  check_list("t.csv", text, {"sim", "{1}", "{#}"});
  check_list("t.tsv", text, {"sim"});
  check_list("t.txt", text, {"sim {} {2}"});
  check_list("t.txt", "1\n", {std::string(text)});
  return 0;
}
