// What the parts of a preflight note. Internal to this folder; belongs to one call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/language/words.h"
#include "base/time.h"
#include "explain/preflight/last_run.h"
#include "explain/preflight/preflight.h"
#include "format/manifest.h"

namespace stoker::explain {

class Notes {
 public:
  Notes(const job::Job& job, const Words& words) : job_(job), words_(words) {}

  template <typename... Args>
  Said say(std::string_view pattern, const Args&... args) const {
    return words_.say(pattern, args...);
  }

  const Words& words() const { return words_; }

  void fact(std::string name, std::string text) {
    result_.facts.push_back({std::move(name), std::move(text)});
  }
  /// `what` is about the key, whose place in the job file is the evidence.
  void found(std::string_view rule, Level level, std::string_view key, const Said& what,
             std::string cure = "");
  void found(std::string_view rule, std::string_view key, const Status& status);
  /// The same about something that no key decides.
  void found_here(std::string_view rule, Level level, std::string subject, const Said& what,
                  std::string cure = "");

  Preflight take() { return std::move(result_); }

 private:
  const job::Job& job_;
  const Words words_;
  Preflight result_;
};

/// Room for the run's records and for the checkpoints expected; `classes` of the training data, 0 unknown.
void check_storage(const job::Job& job, const std::optional<record::RunFolder>& last, std::uint64_t classes,
                   Deadline deadline, Notes& notes);
/// Whether another tool would do what the job's shell command does by hand.
void check_command(const job::Job& job, Notes& notes);
/// Files that are brought to the nodes, the model's, the image, the wheels.
void check_files(const job::Job& job, Notes& notes);
/// Whether the chunks of one sample of the training data fit into train.chunk_cache.
void check_chunks(const job::Job& job, const formats::Manifest& manifest, Notes& notes);
void check_ports(const job::Job& job, const Surroundings& around, Notes& notes);
/// Limits of this shell, which sbatch takes along into the job.
void check_limits(const Surroundings& around, Notes& notes);
/// Whether the data are those of the job's last run.
void check_history(const job::Job& job, const std::optional<record::RunFolder>& last,
                   const std::map<std::string, std::string>& versions, Notes& notes);

}  // namespace stoker::explain
