#include "loader/trials/trial.h"

#include <algorithm>
#include <array>

namespace stoker::loader {
namespace {

constexpr std::string_view kHeader =
    "jobid,dataset,loader,batch,num_workers,pin_memory,non_blocking,prefetch_factor,persistent_workers,drop_"
    "last,"
    "loading_time,1st_step_loading_time,cpu_memory,samples_per_s,limit";
constexpr std::size_t kColumns = 15;

std::string csv_cell(std::string text) {
  for (char& c : text) {
    if (c == ',' || c == '\n' || c == '\r') c = ' ';
  }
  return printable(text);
}

std::string_view bool_text(bool value) { return value ? "True" : "False"; }

// Reads the columns of a line in order, and remembers an invalid one.
class TrialRowReader {
 public:
  explicit TrialRowReader(std::vector<std::string_view> cells) : cells_(std::move(cells)) {}
  bool is_whole() const { return is_good_ && cells_.size() == kColumns; }

  void read(std::string& out) { out = next(); }
  void read(bool& out) {
    const std::string_view cell = next();
    out = cell == "True";
    is_good_ = is_good_ && (out || cell == "False");
  }
  void read(double& out) { is_good_ = parse_number(next(), &out) && is_good_; }
  void read(std::uint64_t& out) { is_good_ = parse_number(next(), &out) && is_good_; }
  void read(std::uint32_t& out) {
    std::uint64_t wide = 0;
    read(wide);
    out = static_cast<std::uint32_t>(wide);
    is_good_ = is_good_ && out == wide;
  }

 private:
  std::string_view next() { return at_ < cells_.size() ? cells_[at_++] : std::string_view(); }

  std::vector<std::string_view> cells_;
  std::size_t at_ = 0;
  bool is_good_ = true;
};

bool parse(std::string_view line, Trial& t) {
  TrialRowReader columns(split(line, ','));
  columns.read(t.job);
  columns.read(t.dataset);
  columns.read(t.loader);
  columns.read(t.batch);
  columns.read(t.workers);
  columns.read(t.pins_memory);
  columns.read(t.is_non_blocking);
  columns.read(t.prefetch);
  columns.read(t.is_persistent);
  columns.read(t.drops_last);
  columns.read(t.batch_s);
  columns.read(t.first_batch_s);
  columns.read(t.memory.value);
  columns.read(t.samples_per_s);
  columns.read(t.limit);
  return columns.is_whole();
}

}  // namespace

std::string to_csv(const Trial& t) {
  return format("{},{},{},{},{},{},{},{},{},{},{:.6f},{:.6f},{},{:.1f},{}\n", csv_cell(t.job),
                csv_cell(t.dataset), csv_cell(t.loader), t.batch, t.workers, bool_text(t.pins_memory),
                bool_text(t.is_non_blocking), t.prefetch, bool_text(t.is_persistent), bool_text(t.drops_last),
                t.batch_s, t.first_batch_s, t.memory.value, t.samples_per_s, csv_cell(t.limit));
}

Result<std::vector<Trial>> read_trials(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file));
  std::vector<std::string_view> lines = split(text, '\n');
  lines.pop_back();  // an empty or torn line after the last line end
  if (lines.empty() || trim(lines[0]) != kHeader) return invalid("{}:1: not a file of loader trials", file);
  std::vector<Trial> trials;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    Trial trial;
    if (!parse(trim(lines[i]), trial)) return invalid("{}:{}: not a loader trial", file, i + 1);
    trials.push_back(std::move(trial));
  }
  return trials;
}

Status append_trials(const Path& file, const std::vector<Trial>& trials) {
  std::string text = path_exists(file) ? "" : std::string(kHeader) + "\n";
  for (const Trial& trial : trials) text += to_csv(trial);
  STOKER_ASSIGN_OR_RETURN(out, File::open_append(file));
  STOKER_RETURN_IF_ERROR(out.write(text));
  return out.close();
}

std::vector<Trial> collect_run_trials(const Path& runs) {
  std::vector<Trial> all;
  const Result<std::vector<std::string>> names = list_directory(runs);
  if (!names.ok()) return all;
  for (const std::string& run : *names) {
    const Result<std::vector<std::string>> attempts = list_directory(runs / run / "attempts");
    if (!attempts.ok()) continue;
    for (const std::string& attempt : *attempts) {
      const Path folder = runs / run / "attempts" / attempt;
      const Result<std::vector<std::string>> files = list_directory(folder);
      if (!files.ok()) continue;
      for (const std::string& file : *files) {
        if (!file.starts_with("loader-") || !file.ends_with(".csv")) continue;
        Result<std::vector<Trial>> found = read_trials(folder / file);
        if (found.ok()) std::move(found->begin(), found->end(), std::back_inserter(all));
      }
    }
  }
  return all;
}

void sort_best_first(std::vector<Trial>& trials) {
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial& a, const Trial& b) { return a.samples_per_s > b.samples_per_s; });
}

}  // namespace stoker::loader
