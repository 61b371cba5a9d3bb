#include "stoker/loader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/language/counted.h"
#include "loader/engine.h"

namespace stoker::loader {
namespace {

constexpr std::uint32_t kMaxThreads = 1024;
constexpr std::uint32_t kMaxPrefetch = 4096;
constexpr std::uint64_t kLargestBatch = 16_GiB .value;

Status check(const LoaderOptions& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return invalid("loader: the number of threads is {}, not between 1 and {}", options.threads, kMaxThreads);
  }
  if (options.prefetch < 1 || options.prefetch > kMaxPrefetch) {
    return invalid("loader: prefetch of {} batches is not between 1 and {}", options.prefetch, kMaxPrefetch);
  }
  if (options.batch < 1) return invalid("loader: batch of 0 samples");
  return Status();
}

}  // namespace

std::string limiting_stage(const LoaderStats& stats) {
  const std::pair<const char*, double> stages[] = {{"read", stats.read_s},
                                                   {"check", stats.check_s},
                                                   {"decode and transform", stats.decode_s},
                                                   {"transform", stats.transform_s}};
  double busy = 0;
  for (const auto& stage : stages) busy += stage.second;
  if (busy + stats.idle_s <= 0) return "nothing yet";
  if (stats.idle_s > busy) {
    return format("the consumer (the threads were idle {:.0f} % of the time)",
                  100 * stats.idle_s / (busy + stats.idle_s));
  }
  const auto* most = std::max_element(std::begin(stages), std::end(stages),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  return format("{} ({:.0f} % of the threads' work)", most->first, 100 * most->second / busy);
}

Loader::Loader(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::open(const dataset::ShardSource& source, const LoaderOptions& options,
                                             const std::optional<OrderState>& resume) {
  STOKER_RETURN_IF_ERROR(check(options));
  STOKER_ASSIGN_OR_RETURN(contents, Contents::create(source, options));
  if (contents.row_bytes() > 0 && options.batch > kLargestBatch / contents.row_bytes()) {
    return invalid("loader: a batch of {} samples of {} exceeds {}", options.batch,
                   rounded({contents.row_bytes()}), rounded({kLargestBatch}));
  }
  STOKER_ASSIGN_OR_RETURN(schedule, Schedule::create(order_of(contents, options), options, resume));
  STOKER_ASSIGN_OR_RETURN(mixer, BatchMixer::create(source, contents, options));
  auto engine =
      std::make_unique<Engine>(source, options, std::move(schedule), std::move(contents), std::move(mixer));
  engine->start();
  return std::unique_ptr<Loader>(new Loader(std::move(engine)));
}

Result<std::optional<Batch>> Loader::next(Deadline deadline) { return engine_->next(deadline); }
void Loader::cancel() { engine_->cancel(); }
Status Loader::restart(const OrderState& state) { return engine_->restart(state); }
const std::vector<SkippedSample>& Loader::skipped() const { return engine_->skipped(); }
const OrderState& Loader::state() const { return engine_->state(); }
std::uint64_t Loader::batches_per_epoch() const { return engine_->batches_from(0); }
std::uint64_t Loader::batches_left() const { return engine_->batches_from(state().position); }
LoaderStats Loader::stats() const { return engine_->stats(); }

}  // namespace stoker::loader
