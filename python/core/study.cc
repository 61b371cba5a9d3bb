#include "core/study.h"

#include <memory>
#include <mutex>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <optional>
#include <string>
#include <tuple>
#include <unistd.h>
#include <vector>

#include "base/enum_names.h"
#include "core/errors.h"
#include "sweep/file/open_study.h"
#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"

namespace stoker::python {

namespace {

namespace nb = nanobind;

// Number, attempt, and the values as JSON.
using AskedTrial = std::tuple<std::uint64_t, std::uint32_t, std::string>;

// A study for several threads. Each call waits for the disk without the GIL. A forked child opens the study
// again: another thread of its parent may have been inside of it.
class PyStudy {
  using Ranking = std::vector<const sweep::StudyTrial*> (*)(const sweep::Definition&,
                                                            std::span<const sweep::StudyTrial>);
  struct Shared {
    explicit Shared(sweep::Study opened) : study(std::move(opened)) {}
    const pid_t process = ::getpid();
    std::mutex mutex;
    sweep::Study study;
  };

  Shared& shared() {
    if (shared_->process == ::getpid()) return *shared_;
    auto again = sweep::open_study(location_, sweep::MissingStudy::refuse);
    if (!again.ok()) raise(again.error());
    (void)shared_.release();  // its mutex may be locked for ever
    shared_ = std::make_unique<Shared>(std::move(again->study));
    return *shared_;
  }
  template <typename Call>
  auto locked(const Call& call) {
    Shared& shared = this->shared();
    auto result = [&] {
      const nb::gil_scoped_release released;
      const std::lock_guard lock(shared.mutex);
      return call(shared.study);
    }();
    if (!result.ok()) raise(result.error());
    return *std::move(result);
  }

 public:
  PyStudy(const std::string& path, const std::optional<std::string>& name,
          const std::optional<std::string>& text) {
    auto opened = text ? sweep::open_study_text(path, name.value_or(path), *text, sweep::MissingStudy::create)
                       : sweep::open_study(path, sweep::MissingStudy::create);
    if (!opened.ok()) raise(opened.error());
    folder_ = opened->study.folder();
    location_ = opened->study.location();
    notes_ = std::move(opened->notes);
    shared_ = std::make_unique<Shared>(std::move(opened->study));
  }

  std::optional<AskedTrial> ask() {
    const auto proposal = locked([](sweep::Study& study) { return study.ask(); });
    if (!proposal) return std::nullopt;
    return AskedTrial(proposal->number, proposal->attempt, sweep::json_values(proposal->values));
  }
  AskedTrial retry(std::uint64_t number) {
    const sweep::Proposal proposal = locked([&](sweep::Study& study) { return study.retry(number); });
    return {proposal.number, proposal.attempt, sweep::json_values(proposal.values)};
  }
  bool report(std::uint64_t number, std::int64_t step, double value) {
    return locked([&](sweep::Study& study) { return study.report(number, step, value); });
  }
  // Returns the state that the trial has.
  std::string tell(std::uint64_t number, const std::string& state, std::vector<double> values,
                   std::string message) {
    sweep::TrialEnding ending{enum_named<sweep::TrialState>(state).value(), std::move(values),
                              std::move(message)};
    return locked([&](sweep::Study& study) -> Result<std::string> {
      STOKER_RETURN_IF_ERROR(study.tell(number, ending));
      return std::string(stoker::to_text(study.find(number)->state));
    });
  }
  std::string trials() { return listed(&sweep::ranked_trials); }
  std::string best() { return listed(&sweep::best_trials); }
  std::string folder() const { return folder_.string(); }
  std::vector<std::string> notes() const { return notes_; }

 private:
  std::string listed(Ranking ranking) {
    return locked([&](sweep::Study& study) -> Result<std::string> {
      STOKER_RETURN_IF_ERROR(study.refresh());
      return sweep::json_list(study.definition(), ranking(study.definition(), study.trials()));
    });
  }

  Path folder_;
  std::string location_;
  std::vector<std::string> notes_;
  std::unique_ptr<Shared> shared_;
};

}  // namespace

void define_study(nb::module_& m) {
  nb::class_<PyStudy>(m, "Study")
      .def(nb::init<const std::string&, const std::optional<std::string>&,
                    const std::optional<std::string>&>(),
           nb::arg("path"), nb::arg("name").none(), nb::arg("text").none())
      .def("ask", &PyStudy::ask)
      .def("retry", &PyStudy::retry, nb::arg("number"))
      .def("report", &PyStudy::report, nb::arg("number"), nb::arg("step"), nb::arg("value"))
      .def("tell", &PyStudy::tell, nb::arg("number"), nb::arg("state"), nb::arg("values"), nb::arg("message"))
      .def("trials", &PyStudy::trials)
      .def("best", &PyStudy::best)
      .def_prop_ro("folder", &PyStudy::folder)
      .def_prop_ro("notes", &PyStudy::notes);
}

}  // namespace stoker::python
