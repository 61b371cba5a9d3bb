#include "cli/data/readers.h"

namespace stoker::cli {

Result<std::optional<pack::TargetReaders>> parse_readers(std::string_view command, std::string_view text) {
  if (text.empty()) return std::optional<pack::TargetReaders>();
  pack::TargetReaders wanted;
  for (std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = trim(part.substr(0, equals));
    std::int64_t number = 0;
    const bool is_number =
        equals != std::string_view::npos && parse_number(trim(part.substr(equals + 1)), &number);
    if (!is_number || number < 1 || number > 999'999 || (name != "ranks" && name != "workers")) {
      return invalid("{}: --for: '{}' is neither ranks=N nor workers=N", command, printable(part));
    }
    (name == "ranks" ? wanted.ranks : wanted.workers) = static_cast<std::uint32_t>(number);
  }
  if (wanted.readers() > 999'999)
    return invalid("{}: --for: {} readers, at most 999999", command, wanted.readers());
  return std::optional(wanted);
}

}  // namespace stoker::cli
