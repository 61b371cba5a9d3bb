// Files of loader trials as jobs, spreadsheets or a torn disk may leave them: trials or an error that names
// the line; what is read can be sorted, and written it reads as many.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "data/trials/trial.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  using namespace stoker;
  static const TempDirectory folder{Path("/dev/shm")};
  const Path file = folder / "trials.csv", again = folder / "again.csv";
  (void)remove_file(again);
  CHECK(data::append_trials(again, {}).ok());
  const Result<std::string> header = read_file(again);
  CHECK(header.ok());
  const std::string_view text(reinterpret_cast<const char*>(input), size);
  for (const std::string& content : {std::string(text), *header + std::string(text)}) {
    CHECK(write_file(file, content).ok());
    Result<std::vector<data::Trial>> trials = data::read_trials(file);
    if (!trials.ok()) continue;
    data::sort_best_first(*trials);
    (void)remove_file(again);
    CHECK(data::append_trials(again, *trials).ok());
    const Result<std::vector<data::Trial>> same = data::read_trials(again);
    CHECK(same.ok() && same->size() == trials->size());
  }
  return 0;
}
