// `stoker data purge --older-than TIME FOLDER`: docs/commands/data-purge.md
#include "transfer/purge/purge.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/site/node_cache.h"
#include "stage/cache/cache_folder.h"

namespace stoker::cli {
namespace {

constexpr std::array<std::string_view, 2> kKinds = {"copy", "unfinished"};
constexpr Duration kShortestAge = std::chrono::hours(1);
constexpr std::size_t kMostListed = 10;

struct PurgeChoice {
  std::string folder;
  std::optional<Duration> age;
  std::vector<std::string> runs;
  std::string cache;
  bool is_removing = false;
};

// "30d", where duration_text() has hours.
std::string age_text(Duration age) {
  constexpr Duration kDay = std::chrono::hours(24);
  return age % kDay == Duration::zero() ? format("{}d", age / kDay) : duration_text(age);
}

std::string since(double last_used) {
  const double seconds = unix_seconds(RealClock().wall()) - last_used;
  return rounded_duration(std::chrono::seconds(static_cast<std::int64_t>(std::max(seconds, 0.0))));
}

void print(const transfer::PurgeEntry& entry, bool is_removing, Output& out) {
  const std::string name = printable(entry.folder.string());
  if (!entry.kept.empty()) {
    out.line("{}: kept: {}", name, entry.kept);
    return;
  }
  const std::string what =
      entry.kind == transfer::PurgeKind::copy
          ? format("copy of {} (version {})", printable(entry.source), printable(entry.version.substr(0, 8)))
          : "unfinished transfer";
  out.line("{}: {}: {}, {}, last {} {} ago", name, is_removing ? "removed" : "would be removed", what,
           rounded({entry.bytes}), entry.used_by, since(entry.last_used));
}

void print(const PurgeChoice& choice, const transfer::PurgeReport& report, Output& out) {
  std::uint64_t removed = 0;
  for (const transfer::PurgeEntry& entry : report.entries) {
    print(entry, choice.is_removing, out);
    removed += entry.kept.empty() ? 1 : 0;
  }
  out.line("{}: {} {}, {}; {} used within {}", printable(report.folder.string()),
           counted(removed, "copy", "copies"), choice.is_removing ? "removed" : "would be removed",
           rounded({report.bytes}), grouped(report.young), age_text(*choice.age));
  if (removed > 0 && !choice.is_removing)
    out.line("  next  stoker data purge --older-than {} {} --yes", age_text(*choice.age),
             shell_quote(choice.folder));
  for (std::size_t i = 0; i < std::min(report.foreign.size(), kMostListed); ++i)
    out.note("kept: {}: not copied by `stoker data push` or `pull`", printable(report.foreign[i].string()));
  if (report.foreign.size() > kMostListed)
    out.note("kept: {}", counted(report.foreign.size() - kMostListed, "more dataset that was not copied",
                                 "more datasets that were not copied"));
  for (std::size_t i = 0; i < std::min(report.unread.size(), kMostListed); ++i)
    out.note("not searched: {}", printable(report.unread[i]));
  if (report.unread.size() > kMostListed)
    out.note("not searched: {}", counted(report.unread.size() - kMostListed, "more folder"));
  if (!report.has_read_times)
    out.note("this filesystem does not record reads (noatime): only writes, runs and the cache count");
}

std::string to_json(const PurgeChoice& choice, const transfer::PurgeReport& report) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const transfer::PurgeEntry& entry : report.entries) {
    entries.push_back({{"folder", printable(entry.folder.string())},
                       {"kind", std::string(kKinds[static_cast<std::size_t>(entry.kind)])},
                       {"version", entry.version},
                       {"source", entry.source},
                       {"files", entry.files},
                       {"bytes", entry.bytes},
                       {"last_used", entry.last_used},
                       {"used_by", entry.used_by},
                       {"in_use", entry.is_in_use},
                       {"kept", entry.kept}});
  }
  nlohmann::ordered_json foreign = nlohmann::ordered_json::array();
  for (const Path& path : report.foreign) foreign.push_back(printable(path.string()));
  nlohmann::ordered_json unread = nlohmann::ordered_json::array();
  for (const std::string& path : report.unread) unread.push_back(printable(path));
  return json_text(nlohmann::ordered_json{{"folder", printable(report.folder.string())},
                                          {"removed", choice.is_removing},
                                          {"bytes", report.bytes},
                                          {"entries", entries},
                                          {"recently_used", report.young},
                                          {"not_copied", foreign},
                                          {"not_searched", unread},
                                          {"has_read_times", report.has_read_times}});
}

Result<transfer::PurgeReport> purge(const PurgeChoice& choice, Output& out) {
  if (!choice.age)
    return invalid("data purge: --older-than is required")
        .cure("stoker data purge --older-than 30d {}", shell_quote(choice.folder));
  if (*choice.age < kShortestAge) return invalid("data purge: --older-than: must be at least 1h");
  transfer::PurgeRequest request{.folder = choice.folder,
                                 .age = *choice.age,
                                 .runs = {},
                                 .cache = node_cache(choice.cache, "auto").folder,
                                 .is_removing = choice.is_removing};
  request.runs.assign(choice.runs.begin(), choice.runs.end());
  if (request.runs.empty()) request.runs = {"runs"};
  install_stop_signals();
  const auto progress = out.progress("");
  return transfer::purge_copies(request, *progress);
}

}  // namespace

int data_purge(std::span<const std::string> words, Output& out) {
  PurgeChoice choice;
  Arguments arguments("data purge", "Remove copied datasets that were not used for a long time.");
  arguments.positional("FOLDER", &choice.folder, "Folder to search, such as your scratch folder");
  arguments.option("--older-than", &choice.age, "TIME", "Not read or written for TIME, such as 30d");
  arguments.flag("--yes", &choice.is_removing, "Remove them; otherwise they are only listed");
  arguments.option("--runs", &choice.runs, "DIR", "Runs whose data counts as used; may be repeated [runs]");
  arguments.option("--cache", &choice.cache, "DIR", "Node-local cache, as in stoker cache stage");
  arguments.example("stoker data purge --older-than 30d .");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto report = purge(choice, out);
  if (!report.ok()) return out.fail(report.error());
  print(choice, *report, out);
  out.json(to_json(choice, *report));
  const bool has_failed = choice.is_removing &&
                          std::any_of(report->entries.begin(), report->entries.end(), [](const auto& entry) {
                            return !entry.kept.empty() && !entry.is_in_use;
                          });
  return has_failed ? exit_code::kFailed : exit_code::kOk;
}

}  // namespace stoker::cli
