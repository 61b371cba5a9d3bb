// What goes into a drafted job file, filled in by those who read the script. Internal to this folder.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explain/draft/draft.h"
#include "explain/script/script.h"

namespace stoker::explain::draft {

/// A command of the script's outermost list, with what is joined to it by && and ||.
struct Unit {
  bash::Span span;  ///< up to where the next one begins
  std::uint32_t line = 1;
  bool is_simple = true;           ///< no loop, condition, group or function
  std::vector<const Call*> calls;  ///< in it, those in its here-documents too
  std::vector<const Setting*> settings;
};

/// The job file as it grows. Values of `groups` are YAML.
struct Sheet {
  std::optional<std::string> working_directory;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> groups;
  std::vector<std::string> modules;
  std::optional<std::string> conda;
  std::optional<std::string> venv;
  std::optional<std::string> wheelhouse;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::pair<std::string, std::string>> references;  ///< variables whose value is another key's
  std::string made_environment;  ///< the folder that virtualenv makes in the job
  std::vector<std::string> requirement_files;
  std::vector<std::string> packages;
  std::vector<std::string> unpack, copy, back;
  std::vector<std::pair<std::string, std::string>> places;  ///< text of the script → text for the ranks
  std::vector<std::string> extra;                           ///< options for sbatch
  std::vector<LeftBehind> left;

  void set(const std::string& group, std::string key, std::string yaml) {
    groups[group].emplace_back(std::move(key), std::move(yaml));
  }
};

/// Who starts the command, and how often.
enum class Start {
  once,      ///< the batch script itself
  ranks,     ///< srun or mpirun
  torchrun,  ///< torchrun on each node
};

struct Work {
  Start start = Start::once;
  std::optional<std::uint64_t> per_node;  ///< as the launcher says
  std::optional<std::uint64_t> all;
  std::vector<std::string> words;  ///< plain: the command; empty: `lines` in a file of their own
  std::string lines;
  std::uint64_t arguments = 0;  ///< of the script that `lines` use: $1 to $N
};

/// The text of a word when no shell is needed for it: variables that hold one thing all along are replaced,
/// ~ too. Nothing for anything else.
class Words {
 public:
  /// `place` must outlive this.
  Words(const Script& script, const DraftPlace& place);
  std::optional<std::string> literal(const bash::Word& word) const;
  /// A path as the job file takes it: the same, with $HOME, $SCRATCH and $SLURM_SUBMIT_DIR known.
  std::optional<std::string> path(const bash::Word& word) const;

 private:
  std::optional<std::string> text_of(const bash::Word& word, bool is_path) const;
  std::optional<std::string> outside(std::string_view name, bool is_path) const;

  /// What a variable holds from where it is set, which is before `at`, to the end.
  std::optional<std::string> constant(std::string_view name, std::size_t at) const;

  const DraftPlace& place_;
  std::map<std::string, std::pair<std::string, std::size_t>, std::less<>> constants_;
};

/// Takes the unit into the sheet as modules, environment, staging; false, and the sheet as it was, when a
/// part of it is none of those.
bool take_unit(const Words& words, const Unit& unit, Sheet& sheet);

/// Whether Stoker sets the variable for every rank.
bool is_set_by_stoker(std::string_view name);

/// What the options for sbatch ask for.
void take_options(const Script& script, const Work& work, const std::string& stem, Sheet& sheet,
                  std::vector<DraftFile>& files);

/// What is run: the units that `taken` has not, as one command or as lines.
Work find_work(const Script& script, const Words& words, const std::vector<Unit>& units,
               const std::vector<bool>& taken, Sheet& sheet);

/// The first line of the unit's text, shortened.
std::string summary(const Script& script, const Unit& unit);

}  // namespace stoker::explain::draft
