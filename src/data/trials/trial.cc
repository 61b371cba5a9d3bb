#include "data/trials/trial.h"

#include <algorithm>
#include <array>

namespace stoker::data {
namespace {

constexpr std::string_view kHeader =
    "jobid,dataset,loader,batch,num_workers,pin_memory,non_blocking,prefetch_factor,persistent_workers,drop_"
    "last,"
    "loading_time,1st_step_loading_time,cpu_memory,samples_per_s,limit";
constexpr std::size_t kColumns = 15;

std::string plain(std::string text) {
  for (char& c : text) {
    if (c == ',' || c == '\n' || c == '\r') c = ' ';
  }
  return printable(text);
}

std::string_view truth(bool value) { return value ? "True" : "False"; }

// Reads the columns of a line one after the other, and remembers whether one was wrong.
class Columns {
 public:
  explicit Columns(std::vector<std::string_view> cells) : cells_(std::move(cells)) {}
  bool is_whole() const { return is_good_ && cells_.size() == kColumns; }

  void take(std::string& out) { out = next(); }
  void take(bool& out) {
    const std::string_view cell = next();
    out = cell == "True";
    is_good_ = is_good_ && (out || cell == "False");
  }
  void take(double& out) { is_good_ = parse_number(next(), &out) && is_good_; }
  void take(std::uint64_t& out) { is_good_ = parse_number(next(), &out) && is_good_; }
  void take(std::uint32_t& out) {
    std::uint64_t wide = 0;
    take(wide);
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
  Columns columns(split(line, ','));
  columns.take(t.job);
  columns.take(t.dataset);
  columns.take(t.loader);
  columns.take(t.batch);
  columns.take(t.workers);
  columns.take(t.pins_memory);
  columns.take(t.is_non_blocking);
  columns.take(t.prefetch);
  columns.take(t.is_persistent);
  columns.take(t.drops_last);
  columns.take(t.batch_s);
  columns.take(t.first_batch_s);
  columns.take(t.memory.value);
  columns.take(t.samples_per_s);
  columns.take(t.limit);
  return columns.is_whole();
}

}  // namespace

std::string to_csv(const Trial& t) {
  return format("{},{},{},{},{},{},{},{},{},{},{:.6f},{:.6f},{},{:.1f},{}\n", plain(t.job), plain(t.dataset),
                plain(t.loader), t.batch, t.workers, truth(t.pins_memory), truth(t.is_non_blocking),
                t.prefetch, truth(t.is_persistent), truth(t.drops_last), t.batch_s, t.first_batch_s,
                t.memory.value, t.samples_per_s, plain(t.limit));
}

Result<std::vector<Trial>> read_trials(const Path& file) {
  OK_OR_RETURN(text, read_file(file));
  std::vector<std::string_view> lines = split(text, '\n');
  lines.pop_back();  // what follows the last line end: nothing, or a torn line
  if (lines.empty() || trim(lines[0]) != kHeader) return invalid("{}:1: no file of loader trials", file);
  std::vector<Trial> trials;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    Trial trial;
    if (!parse(trim(lines[i]), trial)) return invalid("{}:{}: no loader trial", file, i + 1);
    trials.push_back(std::move(trial));
  }
  return trials;
}

Status append_trials(const Path& file, const std::vector<Trial>& trials) {
  std::string text = path_exists(file) ? "" : std::string(kHeader) + "\n";
  for (const Trial& trial : trials) text += to_csv(trial);
  OK_OR_RETURN(out, File::open_append(file));
  RETURN_IF_ERROR(out.write(text));
  return out.close();
}

std::vector<Trial> trials_of_runs(const Path& runs) {
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

}  // namespace stoker::data
