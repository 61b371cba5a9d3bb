#include "lab/fault/journal.h"

//   1. the entry is written to faults/<id>.json, with the data for undoing that is known in advance
//   2. the fault is injected                                          <- from 1 on, heal undoes it
//   3. data known only now (the id of a submitted job) is added by replacing the file
//   4. heal undoes the fault and then removes the file
// A crash between 1 and 2 leaves an entry without a fault, one between 3 and 4 an entry of an undone fault:
// undoing is idempotent.

#include "base/file.h"
#include "base/json/json.h"
#include "stoker/time.h"

namespace stoker::lab::fault {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kSuffix = ".json";
constexpr ByteCount kLongestEntry = 64_KiB;

Path folder_of(const Lab& lab) { return lab.folder / "faults"; }
Path file_of(const Lab& lab, const std::string& id) { return folder_of(lab) / (id + kSuffix); }

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

double number_of(const Json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

Result<JournalEntry> load(const Path& file, std::string id) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kLongestEntry));
  const Json object = parse_json<Json>(text);
  JournalEntry entry{.id = std::move(id)};
  if (object.is_object()) {
    entry.kind = text_of(object, "kind");
    entry.target = text_of(object, "target");
    entry.text = text_of(object, "text");
    entry.rank = static_cast<int>(number_of(object, "rank", -1));
    entry.time = number_of(object, "time", 0);
    if (const auto notes = object.find("notes"); notes != object.end() && notes->is_object()) {
      for (const auto& [name, value] : notes->items()) {
        if (value.is_string()) entry.notes[name] = value.get<std::string>();
      }
    }
  }
  if (entry.kind.empty() || entry.target.empty()) {
    return corrupt("{}: not a lab fault", printable(file.string()));
  }
  return entry;
}

}  // namespace

std::string JournalEntry::note(const std::string& name) const {
  const auto found = notes.find(name);
  return found == notes.end() ? "" : found->second;
}

Status write_entry(const Lab& lab, JournalEntry* entry) {
  entry->time = unix_seconds(RealClock().wall());
  entry->id = format("{:.6f}-{}", entry->time, random_name());
  STOKER_RETURN_IF_ERROR(make_directories(folder_of(lab)));
  return update_entry(lab, *entry);
}

Status update_entry(const Lab& lab, const JournalEntry& entry) {
  const Json object = {{"kind", entry.kind}, {"target", entry.target}, {"rank", entry.rank},
                       {"text", entry.text}, {"time", entry.time},     {"notes", entry.notes}};
  return write_file(file_of(lab, entry.id), json_text(object, 2) + "\n");
}

Status remove_entry(const Lab& lab, const JournalEntry& entry) { return remove_file(file_of(lab, entry.id)); }

Result<std::vector<JournalEntry>> active_faults(const Lab& lab) {
  std::vector<JournalEntry> entries;
  const Path folder = folder_of(lab);
  if (!folder_exists(folder)) return entries;
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;  // a temporary file
    STOKER_ASSIGN_OR_RETURN(
        entry, load(folder / name, name.substr(0, name.size() - std::string_view(kSuffix).size())));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace stoker::lab::fault
