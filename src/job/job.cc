#include "job/job.h"

#include <utility>

namespace stoker::job {

std::string_view to_text(Model model) {
  switch (model) {
    case Model::resnet18:
      return "resnet18";
    case Model::resnet50:
      return "resnet50";
    case Model::cifar_resnet20:
      return "cifar-resnet20";
  }
  return "";
}

std::string_view to_text(ScheduleKind kind) {
  return kind == ScheduleKind::one_cycle ? "one-cycle" : "constant";
}

std::string_view to_text(Anneal anneal) { return anneal == Anneal::cosine ? "cosine" : "linear"; }

std::string_view to_text(Crop crop) {
  switch (crop) {
    case Crop::none:
      return "none";
    case Crop::pad:
      return "pad";
    case Crop::resize:
      return "resize";
  }
  return "";
}

std::string_view to_text(Backend) { return "gloo"; }

std::string_view to_text(Launcher launcher) { return launcher == Launcher::srun ? "srun" : "single"; }

std::string Origins::where(std::string_view key) const {
  const auto found = where_.find(key);
  return found == where_.end() ? "default" : found->second;
}

void Origins::add(std::string key, std::string where) {
  where_.insert_or_assign(std::move(key), std::move(where));
}

}  // namespace stoker::job
