// Any bytes as a job file and as a site profile: no crash and no hang; a loaded file survives a round trip.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "config/layers.h"
#include "config/shell_words.h"
#include "job/read_job.h"
#include "job/site/find.h"
#include "job/site/site.h"

using namespace stoker;

namespace {

[[noreturn]] void differ(std::string_view what, const std::string& text) {
  std::fprintf(stderr, "%.*s\n%s\n", static_cast<int>(what.size()), what.data(), text.c_str());
  std::abort();
}

void check_site(std::string_view text) {
  const Result<job::Site> site = job::read_site("site.yaml", text);
  if (!site.ok()) return;
  const std::string written = job::site_text(*site);
  const Result<job::Site> again = job::read_site("again.yaml", written);
  if (!again.ok()) differ(again.error().to_string(), written);
  if (!(*again == *site)) differ("the site differs", written);
  (void)job::tighten(*site, *again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<std::vector<std::string>> words = config::split_words(text); words.ok()) {
    if (config::split_words(config::join_words(*words)).value() != *words) {
      // The splitter keeps `${...}` whole and the joiner quotes it: only then may they differ.
      if (text.find("${") == std::string_view::npos) differ("words differ", std::string(text));
    }
  }
  check_site(text);
  (void)job::matches_pattern(text.substr(0, text.size() / 2), text);
  const job::TextSource source{.name = "job.yaml", .text = std::string(text), .folder = "/jobs"};
  const Result<job::Job> job = job::read_job(source, {.current_directory = "/here"});
  if (!job.ok()) return 0;
  const std::string effective = job::to_yaml(*job);
  const Result<job::Job> again = job::read_job(
      {.name = "job.yaml", .text = effective, .folder = "/elsewhere"}, {.current_directory = "/there"});
  if (!again.ok()) differ(again.error().to_string(), effective);
  if (*again != *job) differ("the job differs", effective);
  return 0;
}
