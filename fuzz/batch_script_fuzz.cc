// Every field of a batch script is a user's text: none may add a line, and a quoted text must be unchanged
// after sbatch's parsing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "slurm/script/batch_script.h"
#include "slurm/script/option_names.h"
#include "slurm/script/user_script.h"

namespace {

using namespace stoker::slurm;

// As sbatch reads one argument of a #SBATCH line (_get_argument of its opt.c).
std::string read_back(std::string_view text) {
  std::string value;
  char quote = '\0';
  bool is_escaped = false;
  for (char c : text) {
    if (is_escaped) {
      value += c;
      is_escaped = false;
    } else if (c == '\\') {
      is_escaped = true;
    } else if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n' || c == '#')) {
      break;
    } else {
      value += c;
    }
  }
  if (quote != '\0' || is_escaped) std::abort();
  return value;
}

std::ptrdiff_t lines_of(const BatchScript& script) {
  const auto written = write_batch_script(script);
  if (!written.ok()) return -1;
  const std::size_t body = written->find("\n\n");
  return std::count(written->begin(), written->begin() + static_cast<std::ptrdiff_t>(body), '\n');
}

// Whatever a user script holds, only its comments reach the generated script.
void wrap(const std::string& text) {
  const auto script = read_user_script("script", "#!/bin/sh\n" + text);
  if (!script.ok()) return;
  Wrapping wrapping;
  wrapping.title = text;
  wrapping.job_name = wrapping.comment = wrapping.log = "x";
  wrapping.command = {"x"};
  const auto wrapped = wrap_user_script(*script, wrapping);
  if (!wrapped.ok()) return;
  for (std::string_view line : stoker::split(*wrapped, '\n')) {
    if (!line.empty() && line.front() != '#' && line != "exec x") std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const bool has_line = text.find('\n') != std::string::npos;
  if (!has_line && read_back(sbatch_quote(text)) != text) std::abort();
  BatchScript plain;
  plain.title = plain.job_name = plain.comment = plain.account = plain.partition = plain.qos = "x";
  plain.reservation = "x";
  plain.directory = plain.log = "/x";
  plain.command = {"x"};
  BatchScript hostile = plain;
  hostile.title = hostile.job_name = hostile.comment = hostile.account = hostile.partition = hostile.qos =
      text;
  hostile.reservation = text;
  hostile.directory = "/" + text;
  hostile.log = "/" + text;
  hostile.command = {"x", text};
  const std::ptrdiff_t lines = lines_of(hostile);
  if (lines >= 0 && !text.empty() && lines != lines_of(plain)) std::abort();
  (void)check_extra(text);
  (void)check_user_option(text);
  wrap(text);
  plain.extra = {text};
  (void)write_batch_script(plain);
  return 0;
}
