// stoker._core: Python bindings of the C++ rooms. Imports neither numpy nor torch.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "base/process.h"
#include "base/version.h"
#include "core/checkpoint.h"
#include "core/feed.h"
#include "core/metrics.h"
#include "core/study.h"

namespace nb = nanobind;
using stoker::python::Feed;
using stoker::python::FeedOptions;
using stoker::python::PyBatch;

namespace {

template <typename T>
std::optional<T> optional_of(const nb::dict& dict, const char* name) {
  const nb::object value = dict[name];
  return value.is_none() ? std::nullopt : std::optional<T>(nb::cast<T>(value));
}

// Reads the keywords of loader.py.
FeedOptions options_of(const nb::dict& dict) {
  FeedOptions options;
  options.paths = nb::cast<std::vector<std::string>>(dict["paths"]);
  options.split = optional_of<std::string>(dict, "split");
  options.transform = dict["transform"];
  options.content = dict["content"];
  options.element = nb::cast<std::string>(dict["dtype"]);
  const bool is_last = nb::cast<bool>(dict["channels_last"]);
  options.layout = is_last ? stoker::image::ImageLayout::nhwc : stoker::image::ImageLayout::nchw;
  if (const auto alpha = nb::cast<double>(dict["mixup"]); alpha != 0)
    options.mixing.push_back({stoker::image::MixKind::mixup, alpha});
  if (const auto alpha = nb::cast<double>(dict["cutmix"]); alpha != 0)
    options.mixing.push_back({stoker::image::MixKind::cutmix, alpha});
  options.seed = nb::cast<std::uint64_t>(dict["seed"]);
  options.shuffle = nb::cast<std::string>(dict["shuffle"]);
  options.window = nb::cast<std::uint32_t>(dict["window"]);
  options.weights = nb::cast<std::vector<double>>(dict["weights"]);
  options.batch = nb::cast<std::uint32_t>(dict["batch_size"]);
  options.drops_last = nb::cast<bool>(dict["drop_last"]);
  options.rank = nb::cast<int>(dict["rank"]);
  options.world = nb::cast<int>(dict["world_size"]);
  options.remainder = nb::cast<std::string>(dict["remainder"]);
  options.wanted.threads = optional_of<std::uint32_t>(dict, "threads");
  options.wanted.prefetch = optional_of<std::uint32_t>(dict, "prefetch");
  if (const auto resident = optional_of<std::uint64_t>(dict, "resident"))
    options.wanted.resident = {*resident};
  options.checks = nb::cast<bool>(dict["check"]);
  options.skips = nb::cast<bool>(dict["skip"]);
  options.max_skipped = nb::cast<std::uint64_t>(dict["max_skipped"]);
  options.cache = nb::cast<std::uint64_t>(dict["cache"]);
  options.chunk_cache = nb::cast<std::uint64_t>(dict["chunk_cache"]);
  if (const nb::object memory = dict["page_locked"]; !memory.is_none()) {
    options.page_locked =
        stoker::python::PageLockedOptions{nb::cast<std::string>(memory[0]), nb::cast<int>(memory[1])};
  }
  return options;
}

// A method of PyBatch that returns an array over its memory: the array keeps the batch alive.
template <auto method>
stoker::python::Array array_of(nb::handle self) {
  return (nb::cast<PyBatch&>(self).*method)(self);
}

void define_batch(nb::module_& m) {
  nb::class_<PyBatch>(m, "Batch")
      .def("__len__", &PyBatch::count)
      .def_prop_ro("image", &array_of<&PyBatch::image>)
      .def_prop_ro("data", &array_of<&PyBatch::bytes>)
      .def_prop_ro("offset", &array_of<&PyBatch::offsets>)
      .def_prop_ro("label", &array_of<&PyBatch::label>)
      .def_prop_ro("index", &array_of<&PyBatch::index>)
      .def_prop_ro("key", &PyBatch::key)
      .def(
          "column", [](nb::handle self, std::size_t i) { return nb::cast<PyBatch&>(self).column(self, i); },
          nb::arg("number"));
}

void define_feed(nb::module_& m) {
  nb::class_<Feed>(m, "Feed")
      .def(
          "__init__",
          [](Feed* feed, const nb::dict& options, const std::optional<stoker::python::State>& resume) {
            new (feed) Feed(options_of(options), resume);
          },
          nb::arg("options"), nb::arg("resume") = nb::none())
      .def("next", &Feed::next, nb::arg("timeout_s"))
      .def("restart", &Feed::restart, nb::arg("state"))
      .def("close", &Feed::close)
      .def("stats", &Feed::stats)
      .def("skipped", &Feed::skipped)
      .def("limiting_stage", &Feed::limiting_stage)
      .def_prop_ro("state", &Feed::state)
      .def_prop_ro("is_open", &Feed::is_open)
      .def_prop_ro("batches_per_epoch", &Feed::batches_per_epoch)
      .def_prop_ro("batches_left", &Feed::batches_left)
      .def_prop_ro("reasons", &Feed::reasons)
      .def_prop_ro("small_cache", &Feed::small_cache)
      .def_prop_ro("classes", &Feed::classes)
      .def_prop_ro("samples", &Feed::samples)
      .def_prop_ro("version", &Feed::version)
      .def_prop_ro("split", &Feed::split)
      .def_prop_ro("threads", &Feed::threads)
      .def_prop_ro("prefetch", &Feed::prefetch);
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ part of stoker, for internal use.";
  m.attr("version") = std::string(stoker::version());
  m.def("advised_threads", [] {
    const auto machine = stoker::loader::detect_machine("/", stoker::current_environment());
    return stoker::loader::advise(machine, {}, {}).threads;
  });
  define_batch(m);
  define_feed(m);
  stoker::python::define_checkpoint(m);
  stoker::python::define_metrics(m);
  stoker::python::define_study(m);
  // loader.py closes remaining loaders at interpreter exit; remaining objects are not leaks.
  nb::set_leak_warnings(false);
}
