// Collects facts and findings of a preflight. Internal to this folder; one instance per call.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/language/message.h"
#include "job/job.h"
#include "preflight/preflight.h"
#include "stoker/status.h"

namespace stoker::preflight {

class Notes {
 public:
  explicit Notes(const job::Job& job) : job_(job) {}

  void fact(std::string name, Message text) { result_.facts.push_back({std::move(name), std::move(text)}); }
  /// `what` is about `key`; the evidence is its place in the job file.
  void found(std::string_view rule, Level level, std::string_view key, const Message& what,
             Message cure = {});
  void found(std::string_view rule, std::string_view key, const Status& status);
  /// For findings without a deciding key.
  void found_here(std::string_view rule, Level level, std::string subject, const Message& what,
                  Message cure = {});

  bool has_findings() const { return !result_.findings.empty(); }
  bool is_ready() const { return result_.is_ready(); }
  Preflight take() { return std::move(result_); }

 private:
  const job::Job& job_;
  Preflight result_;
};

}  // namespace stoker::preflight
