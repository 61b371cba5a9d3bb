// Files of loader trials from jobs, spreadsheets or a damaged disk: trials or an error that names the line;
// trials can be sorted and survive a round trip.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file.h"
#include "loader/trials/trial.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  using namespace stoker;
  static const TempDirectory folder{Path("/dev/shm")};
  const Path file = folder / "trials.csv", again = folder / "again.csv";
  (void)remove_file(again);
  STOKER_CHECK(loader::append_trials(again, {}).ok());
  const Result<std::string> header = read_file(again);
  STOKER_CHECK(header.ok());
  const std::string_view text(reinterpret_cast<const char*>(input), size);
  for (const std::string& content : {std::string(text), *header + std::string(text)}) {
    STOKER_CHECK(write_file(file, content).ok());
    Result<std::vector<loader::Trial>> trials = loader::read_trials(file);
    if (!trials.ok()) continue;
    loader::sort_best_first(*trials);
    (void)remove_file(again);
    STOKER_CHECK(loader::append_trials(again, *trials).ok());
    const Result<std::vector<loader::Trial>> same = loader::read_trials(again);
    STOKER_CHECK(same.ok() && same->size() == trials->size());
  }
  return 0;
}
