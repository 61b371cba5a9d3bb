#include "stage/listing.h"

#include <algorithm>
#include <unordered_map>

#include "stoker/text.h"

namespace stoker::stage {
namespace {

std::size_t depth_of(std::string_view name) {
  return static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
}

Status refuse_below(std::string_view subject, const std::string& name, std::string_view above) {
  return invalid("{}: member '{}' is below '{}', which is not a folder in the archive", subject,
                 printable(name), printable(above));
}

}  // namespace

Result<std::string> clean_name(std::string_view subject, std::string_view name) {
  const Status leads_out = invalid("{}: member '{}' is outside the folder it is unpacked into", subject,
                                   printable(name.substr(0, 200)));
  if (name.empty() || name.front() == '/' || name.find('\0') != std::string_view::npos) return leads_out;
  std::string clean;
  for (std::string_view part : split(name, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return leads_out;
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

// Only leading ".." are allowed: after a name that may itself be a link, their target is unknown.
bool stays_inside(std::string_view name, std::string_view target) {
  if (target.empty() || target.front() == '/') return false;
  std::size_t up = 0;
  bool is_leading = true;
  for (std::string_view part : split(target, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      is_leading = false;
    } else if (!is_leading || ++up > depth_of(name)) {
      return false;
    }
  }
  return true;
}

Result<std::vector<ArchiveEntry>> resolve(std::string_view subject, std::vector<ArchiveEntry> entries,
                                          OutsideLinks links) {
  std::unordered_map<std::string_view, std::size_t> last;
  last.reserve(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) last.insert_or_assign(entries[i].name, i);
  std::vector<ArchiveEntry> kept;
  kept.reserve(last.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ArchiveEntry& entry = entries[i];
    if (last.at(entry.name) != i) continue;
    for (std::size_t slash = entry.name.find('/'); slash != std::string::npos;
         slash = entry.name.find('/', slash + 1)) {
      const std::string_view above = std::string_view(entry.name).substr(0, slash);
      const auto found = last.find(above);
      if (found != last.end() && entries[found->second].kind != EntryKind::folder)
        return refuse_below(subject, entry.name, above);
    }
    if (entry.kind == EntryKind::symbolic_link && links == OutsideLinks::refused &&
        !stays_inside(entry.name, entry.link)) {
      return invalid("{}: the link '{}' to '{}' points outside the folder (stage.outside_links)", subject,
                     printable(entry.name), printable(entry.link))
          .cure("stage: {{outside_links: true}} keeps such links unchanged");
    }
    if (entry.kind == EntryKind::hard_link) {
      const auto target = last.find(entry.link);
      if (target == last.end() || entries[target->second].kind != EntryKind::file)
        return invalid("{}: the link '{}' to '{}' refers to no file in the archive", subject,
                       printable(entry.name), printable(entry.link));
    }
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (last.at(entries[i].name) == i) kept.push_back(entries[i]);
  }
  return kept;
}

}  // namespace stoker::stage
