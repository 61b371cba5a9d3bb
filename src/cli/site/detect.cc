// `stoker site detect`: docs/commands/site-detect.md
#include "base/file.h"
#include "base/json/json.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "cli/site/sites.h"
#include "job/site/describe.h"

namespace stoker::cli {
namespace {

struct DetectOptions {
  std::string out;
  bool force = false;
};

// Those that clusters name their folders and their quotas by.
job::SeenHere look_here() {
  job::SeenHere seen;
  seen.day = utc_text(RealClock().wall()).substr(0, 10);
  for (const char* variable : {"SCRATCH", "WORK", "PROJECT", "STORE"}) {
    if (environment_value(variable)) seen.storage.emplace_back(variable);
  }
  seen.has_lmod = environment_value("LMOD_CMD").has_value();
  seen.has_modules = !seen.has_lmod && environment_value("MODULESHOME").has_value();
  const std::string search = environment_value("PATH").value_or("");
  for (const char* command : {"diskusage_report", "idr_quota_user", "cindata", "myquota"}) {
    for (std::string_view folder : split(search, ':')) {
      if (seen.quota_command.empty() && !folder.empty() && path_exists(Path(folder) / command))
        seen.quota_command = command;
    }
  }
  return seen;
}

Status write(const DetectOptions& o, const Path& file, const std::string& text) {
  if (path_exists(file) && !o.force)
    return exists("{}: is there already", near(file)).cure("stoker site detect --force");
  RETURN_IF_ERROR(make_directories(file.parent_path().empty() ? Path(".") : file.parent_path()));
  return write_file(file, text);
}

}  // namespace

int site_detect(std::span<const std::string> words, Output& out) {
  DetectOptions o;
  bool dry_run = false;
  Arguments arguments(
      "site detect",
      "Tells which cluster this is; describes one that is not known in a profile of your own.");
  arguments.option("-o,--out", &o.out, "FILE",
                   "where the profile is written [~/.config/stoker/sites/NAME.yaml]");
  arguments.flag("--force", &o.force,
                 "describe a cluster that is known too, and replace a profile that is there");
  arguments.flag("--dry-run", &dry_run, "show the profile, and write nothing");
  arguments.example("stoker site detect --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto places = own_site_places();
  if (!places.ok()) return out.fail(places.error());
  const auto here = site_named("auto");
  if (!here.ok() && here.error().code() != Code::not_found) return out.fail(here.error());
  const bool is_known = here.ok() && here->site.name != "generic";
  if (is_known && !o.force && o.out.empty() && !dry_run) {
    out.line("this is {}: {}", here->site.name, here->site.what);
    out.line("  next  stoker site show");
    out.json(json_text(nlohmann::ordered_json{
        {"name", here->site.name}, {"known", true}, {"file", here->site.file.string()}}));
    return exit_code::kOk;
  }
  auto scheduler = make_scheduler();
  const auto facts = scheduler.cluster(Deadline::after(std::chrono::seconds(30)));
  if (!facts.ok()) return out.fail(facts.error());
  const job::Site site = job::describe_cluster(*facts, look_here());
  const std::string text =
      "# Written by `stoker site detect` from what the cluster says; what you know better belongs here.\n" +
      job::site_text(site);
  if (dry_run) {
    out.raw(text);
    out.json(json_text(nlohmann::ordered_json{
        {"name", site.name}, {"known", is_known}, {"file", nullptr}, {"profile", text}}));
    return exit_code::kOk;
  }
  const Path file = o.out.empty() ? places->own / (site.name + ".yaml") : Path(o.out);
  if (const Status written = write(o, file, text); !written.ok()) return out.fail(written);
  out.line("this is {}: {} partitions, {} kinds of nodes", site.name, site.partitions.size(),
           site.nodes.size());
  out.line("  wrote {}", near(file));
  out.line("  next  stoker site show");
  out.json(json_text(nlohmann::ordered_json{
      {"name", site.name}, {"known", is_known}, {"file", file.string()}, {"profile", text}}));
  return exit_code::kOk;
}

}  // namespace stoker::cli
