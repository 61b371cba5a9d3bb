#include "core/checkpoint.h"

#include <atomic>
#include <functional>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <thread>

#include "archive/safetensors.h"
#include "base/enum_names.h"
#include "base/thread.h"
#include "checkpoint/foreign/latest.h"
#include "checkpoint/lease.h"
#include "checkpoint/read/catalog.h"
#include "checkpoint/read/step_reader.h"
#include "checkpoint/save/commit.h"
#include "core/batch.h"
#include "core/errors.h"

namespace stoker::python {
namespace nb = nanobind;
namespace {

Duration seconds(double s) { return std::chrono::duration_cast<Duration>(Seconds(s)); }

Deadline deadline_after(double timeout_s) {
  return timeout_s <= 0 ? Deadline::never() : Deadline::after(seconds(timeout_s));
}

DType dtype_of(const std::string& name) {
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) raise(invalid("checkpoint: dtype '{}' is not supported", printable(name)));
  return *dtype;
}

// Handles Ctrl-C during I/O on a second thread.
class Interrupt final : public Progress {
 public:
  void report(const ProgressState&) override {}
  bool stop_requested() const override { return is_requested_.load(std::memory_order_relaxed); }
  void request_stop() { is_requested_.store(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_requested_{false};
};

// Runs `work` on a thread, and Python signal handlers meanwhile; raises the errors of both.
void run_interruptible(const std::function<Status(Progress&)>& work) {
  Interrupt interrupt;
  Status status;
  Mutex mutex;
  Condition changed;
  bool is_done = false;
  std::thread thread([&] {
    Status ended = work(interrupt);
    const MutexLock lock(mutex);
    status = std::move(ended);
    is_done = true;
    changed.notify_all();
  });
  bool is_interrupted = false;
  for (bool is_over = false; !is_over;) {
    {
      const nb::gil_scoped_release released;
      const MutexLock lock(mutex);
      if (!is_done) changed.wait(mutex, Deadline::after(kSignalPollInterval));
      is_over = is_done;
    }
    if (!is_over && !is_interrupted && PyErr_CheckSignals() != 0) {
      is_interrupted = true;
      interrupt.request_stop();
    }
  }
  thread.join();
  if (is_interrupted) throw nb::python_error();
  if (!status.ok()) raise(status);
}

checkpoint::StepContents contents_of(const std::vector<SavedTensor>& tensors) {
  checkpoint::StepContents contents;
  for (const auto& [kind, name, dtype, shape, address, bytes, whole, first_row] : tensors) {
    const std::span data(reinterpret_cast<const std::byte*>(address), bytes);
    TensorView view{name, dtype_of(dtype), shape, data};
    const bool is_optimizer = (kind & kOptimizer) != 0;
    const bool is_rank0 = (kind & kRank0) != 0;
    if ((kind & kShard) != 0) {
      contents.shards.push_back({std::move(view), whole, first_row, is_optimizer});
    } else if (is_optimizer) {
      (is_rank0 ? contents.rank0_optimizer : contents.optimizer).push_back(std::move(view));
    } else {
      (is_rank0 ? contents.buffers : contents.parameters).push_back(std::move(view));
    }
  }
  return contents;
}

checkpoint::SaverOptions options_of(const nb::dict& dict) {
  checkpoint::SaverOptions options;
  options.directory = nb::cast<std::string>(dict["directory"]);
  options.rank = Rank{nb::cast<int>(dict["rank"])};
  options.world_size = WorldSize{nb::cast<int>(dict["world_size"])};
  options.run = nb::cast<std::string>(dict["run"]);
  options.writer = nb::cast<std::string>(dict["writer"]);
  for (const auto& [step, count] : nb::cast<std::map<std::int64_t, std::uint64_t>>(dict["failed_attempts"]))
    options.failed_attempts.emplace(Step{step}, count);
  options.keep_last = nb::cast<int>(dict["keep_last"]);
  options.keep_every = seconds(nb::cast<double>(dict["keep_every_s"]));
  options.keep_best = nb::cast<int>(dict["keep_best"]);
  options.metric = nb::cast<std::string>(dict["metric"]);
  options.limit = seconds(nb::cast<double>(dict["timeout_s"]));
  options.compares_ranks = true;
  return options;
}

// Memory of an object with DLPack or the buffer protocol, kept alive by this.
class ArrayMemory {
 public:
  explicit ArrayMemory(nb::ndarray<nb::ro, nb::device::cpu> array) : array_(std::move(array)) {
    std::int64_t stride = 1;
    for (std::size_t i = array_.ndim(); i-- > 0;) {
      if (array_.shape(i) > 1 && array_.stride(i) != stride) is_contiguous_ = false;
      stride *= static_cast<std::int64_t>(array_.shape(i));
    }
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(array_.data()); }
  std::size_t bytes() const { return array_.nbytes(); }
  bool is_contiguous() const { return is_contiguous_; }
  std::vector<std::int64_t> shape() const {
    std::vector<std::int64_t> shape;
    for (std::size_t i = 0; i < array_.ndim(); ++i)
      shape.push_back(static_cast<std::int64_t>(array_.shape(i)));
    return shape;
  }
  // Name in safetensors, or nullopt.
  std::optional<std::string> dtype() const {
    for (int i = 0; i <= static_cast<int>(DType::u64); ++i) {
      const DType dtype = static_cast<DType>(i);
      if (dlpack_type(dtype) == array_.dtype()) return std::string(to_text(dtype));
    }
    return std::nullopt;
  }

 private:
  nb::ndarray<nb::ro, nb::device::cpu> array_;
  bool is_contiguous_ = true;
};

// New memory for one tensor, and its address for a reader.
std::pair<Array, std::uintptr_t> make_array(const std::string& dtype_name,
                                            const std::vector<std::int64_t>& shape) {
  const DType dtype = dtype_of(dtype_name);
  const auto bytes = archive::tensor_bytes(dtype, shape);
  if (!bytes) raise(invalid("checkpoint: shape is negative or too large"));
  auto* data = new std::vector<std::byte>(std::max<std::uint64_t>(*bytes, 1));  // owned by the capsule
  const nb::capsule owner(data, [](void* p) noexcept { delete static_cast<std::vector<std::byte>*>(p); });
  const std::vector<std::size_t> sizes(shape.begin(), shape.end());
  return {Array(data->data(), sizes.size(), sizes.data(), owner, nullptr, dlpack_type(dtype)),
          reinterpret_cast<std::uintptr_t>(data->data())};
}

// Who saved a step: the process, and where it is: "self", "running" (on this machine), "elsewhere" (on
// another machine) or "ended"; None if unknown.
std::optional<nb::dict> checkpoint_writer(const std::string& folder) {
  const auto lease = checkpoint::find_lease(folder);
  if (!lease.ok()) return std::nullopt;
  nb::dict dict;
  dict["state"] = std::string(to_text(checkpoint::writer_state(*lease)));
  dict["host"] = printable(lease->host);
  dict["pid"] = lease->pid;
  return dict;
}

// For a rank that cannot even create its saver.
void report_failed_save(const nb::dict& options, std::int64_t step, std::uint64_t repeat,
                        const std::string& why) {
  checkpoint::report_failed_save(options_of(options), Step{step}, repeat, invalid("{}", printable(why)));
}

nb::dict latest_checkpoint(const std::string& folder, const std::string& match, double settle_s) {
  checkpoint::Latest latest;
  run_interruptible([&](Progress& progress) -> Status {
    RealClock clock;
    STOKER_ASSIGN_OR_RETURN(found,
                            checkpoint::find_latest(folder, {match, seconds(settle_s)}, clock, progress));
    latest = std::move(found);
    return {};
  });
  nb::list skipped;
  for (const checkpoint::SkippedStep& step : latest.skipped) {
    skipped.append(nb::make_tuple(step.folder.string(), step.why));
  }
  nb::dict dict;
  dict["path"] = latest.path ? nb::cast(latest.path->string()) : nb::none();
  dict["kind"] = latest.kind;
  dict["step"] = latest.step;
  dict["skipped"] = skipped;
  return dict;
}

}  // namespace

PySaver::PySaver(const nb::dict& options)
    : saver_(value_or_raise(checkpoint::Saver::create(options_of(options)))) {}

checkpoint::Saver& PySaver::saver() const {
  if (!saver_) raise(invalid("checkpoint: the saver was created before a fork"));
  return *saver_;
}

void PySaver::reserve(const std::vector<SavedTensor>& tensors) {
  const checkpoint::StepContents contents = contents_of(tensors);
  Status status;
  {
    const nb::gil_scoped_release released;
    status = saver().reserve(contents);
  }
  if (!status.ok()) raise(status);
}

std::uint64_t PySaver::save(std::int64_t step, const std::vector<SavedTensor>& tensors,
                            const std::string& state, const std::string& rank_state,
                            const std::string& hyper_parameters) {
  checkpoint::Saver& own = saver();
  checkpoint::StepContents contents = contents_of(tensors);
  contents.step = Step{step};
  const auto parse = [&](checkpoint::StateValues& values, std::string_view name, const std::string& text) {
    auto parsed = checkpoint::StateValues::parse(name, text);
    if (parsed.ok()) {
      values = std::move(*parsed);
      return;
    }
    own.abandon(contents.step, parsed.status());
    raise(parsed.status());
  };
  parse(contents.state, "state", state);
  parse(contents.rank_state, "rank_state", rank_state);
  parse(contents.hyper_parameters, "hyper_parameters", hyper_parameters);
  const std::uint64_t save_id = own.save_count();
  Status status;
  {
    const nb::gil_scoped_release released;
    status = own.save(contents);
  }
  // An error of an earlier save is reported through its own save id.
  if (own.save_count() == save_id) raise(status);
  return save_id;
}

void PySaver::abandon(std::int64_t step, const std::string& why) {
  checkpoint::Saver& own = saver();
  const nb::gil_scoped_release released;
  own.abandon(Step{step}, invalid("{}", printable(why)));
}

void PySaver::wait(std::uint64_t save_id, double timeout_s) {
  const Deadline deadline = deadline_after(timeout_s);
  for (bool is_over = false; !is_over;) {
    {
      const nb::gil_scoped_release released;
      is_over = saver().wait_for_save(
          save_id, Deadline::after(std::min<Duration>(kSignalPollInterval, deadline.left())));
    }
    if (is_over) break;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (deadline.passed())
      raise(timeout("checkpoint: still being written after {}", rounded_duration(seconds(timeout_s))));
  }
  const std::optional<Status> outcome = saver().outcome(save_id);
  if (outcome && !outcome->ok()) raise(*outcome);
}

bool PySaver::is_done(std::uint64_t save_id) const {
  return saver().wait_for_save(save_id, Deadline::after(Duration::zero()));
}

std::optional<std::string> PySaver::failure(std::uint64_t save_id) const {
  const std::optional<Status> outcome = saver().outcome(save_id);
  if (!outcome || outcome->ok()) return std::nullopt;
  return outcome->to_string();
}

std::optional<nb::dict> PySaver::times() const {
  const auto times = saver().last_times();
  if (!times) return std::nullopt;
  nb::dict dict;
  dict["step"] = times->step.value;
  dict["stall_s"] = times->stall_s;
  dict["write_s"] = times->write_s;
  dict["commit_s"] = times->commit_s;
  dict["bytes"] = times->bytes;
  return dict;
}

void PySaver::finish(double timeout_s) {
  Status status;
  {
    const nb::gil_scoped_release released;
    status = saver().finish(deadline_after(timeout_s));
  }
  if (!status.ok()) raise(status);
}

StepReader::StepReader(const std::string& folder)
    : folder_(folder), manifest_(value_or_raise(checkpoint::read_step_manifest(folder))) {}

std::vector<std::string> StepReader::rank_states() const {
  std::vector<std::string> states;
  for (const checkpoint::StateValues& state : manifest_.rank_states) states.push_back(state.to_json());
  return states;
}

std::vector<std::tuple<bool, std::string, std::string, std::vector<std::int64_t>>> StepReader::tensors()
    const {
  std::vector<std::tuple<bool, std::string, std::string, std::vector<std::int64_t>>> all;
  for (const checkpoint::StepPart part : checkpoint::kParts) {
    for (const checkpoint::TensorInfo& tensor : manifest_.tensors_of(part)) {
      all.emplace_back(part == checkpoint::StepPart::optimizer, tensor.name,
                       std::string(to_text(tensor.dtype)), tensor.shape);
    }
  }
  return all;
}

void StepReader::verify(const std::vector<RowsToRead>& targets) {
  std::vector<checkpoint::RowTarget> rows;
  for (const auto& [is_optimizer, name, dtype_name, shape, first_row, address, is_in_use] : targets) {
    const DType dtype = dtype_of(dtype_name);
    const std::span data(reinterpret_cast<std::byte*>(address),
                         archive::tensor_bytes(dtype, shape).value_or(0));
    rows.push_back({is_optimizer, {name, dtype, shape, data}, first_row, !is_in_use});
  }
  reader_ = value_or_raise(checkpoint::RowReader::create(folder_, manifest_, std::move(rows)));
  run_interruptible([&](Progress& progress) { return reader_->verify(progress); });
}

void StepReader::fill() {
  run_interruptible([&](Progress& progress) { return reader_->fill(progress); });
  reader_.reset();
}

void define_checkpoint(nb::module_& m) {
  nb::class_<PySaver>(m, "CheckpointSaver")
      .def(nb::init<const nb::dict&>(), nb::arg("options"))
      .def("reserve", &PySaver::reserve, nb::arg("tensors"))
      .def("save", &PySaver::save, nb::arg("step"), nb::arg("tensors"), nb::arg("state"),
           nb::arg("rank_state"), nb::arg("hyper_parameters"))
      .def("abandon", &PySaver::abandon, nb::arg("step"), nb::arg("why"))
      .def("wait", &PySaver::wait, nb::arg("save_id"), nb::arg("timeout_s"))
      .def("is_done", &PySaver::is_done, nb::arg("save_id"))
      .def("failure", &PySaver::failure, nb::arg("save_id"))
      .def("times", &PySaver::times)
      .def("finish", &PySaver::finish, nb::arg("timeout_s"))
      .def("forget", &PySaver::forget);
  nb::class_<StepReader>(m, "CheckpointStep")
      .def(nb::init<const std::string&>(), nb::arg("folder"))
      .def_prop_ro("step", &StepReader::step)
      .def_prop_ro("world_size", &StepReader::world_size)
      .def_prop_ro("run", &StepReader::run)
      .def_prop_ro("save", &StepReader::save)
      .def_prop_ro("state", &StepReader::state)
      .def_prop_ro("hyper_parameters", &StepReader::hyper_parameters)
      .def_prop_ro("rank_states", &StepReader::rank_states)
      .def_prop_ro("tensors", &StepReader::tensors)
      .def("verify", &StepReader::verify, nb::arg("targets"))
      .def("fill", &StepReader::fill);
  nb::class_<ArrayMemory>(m, "Memory")
      .def(nb::init<nb::ndarray<nb::ro, nb::device::cpu>>(), nb::arg("array"))
      .def_prop_ro("address", &ArrayMemory::address)
      .def_prop_ro("bytes", &ArrayMemory::bytes)
      .def_prop_ro("shape", &ArrayMemory::shape)
      .def_prop_ro("dtype", &ArrayMemory::dtype)
      .def_prop_ro("is_contiguous", &ArrayMemory::is_contiguous);
  m.def("make_array", &make_array, nb::arg("dtype"), nb::arg("shape"));
  m.def(
      "checkpoint_steps",
      [](const std::string& directory) {
        std::vector<std::int64_t> steps;
        for (const Step step : value_or_raise(checkpoint::step_folders(directory)))
          steps.push_back(step.value);
        return steps;
      },
      nb::arg("directory"));
  m.def("checkpoint_writer", &checkpoint_writer, nb::arg("folder"));
  m.def("report_failed_save", &report_failed_save, nb::arg("options"), nb::arg("step"), nb::arg("repeat"),
        nb::arg("why"));
  m.def("latest_checkpoint", &latest_checkpoint, nb::arg("folder"), nb::arg("match"), nb::arg("settle_s"));
}

}  // namespace stoker::python
