#include "launch/start/sent_files.h"

#include "stage/listing.h"
#include "stoker/text.h"

namespace stoker::launch {

Status write_sent(const Path& folder, const std::vector<std::string>& files) {
  std::string names;
  for (const std::string& name : files) names += name + '\0';
  return write_file(folder / kSentName, names);
}

Result<std::vector<std::string>> read_sent(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(folder / kSentName));
  std::vector<std::string> files;
  for (std::string_view name : split(text, '\0')) {
    const auto clean = stage::clean_name("", name);
    if (clean.ok() && *clean == name && !name.empty()) files.emplace_back(name);
  }
  return files;
}

}  // namespace stoker::launch
