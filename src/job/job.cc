#include "job/job.h"

#include <utility>

namespace stoker::job {

std::string_view to_text(Model model) {
  switch (model) {
    case Model::resnet18:
      return "resnet18";
    case Model::resnet34:
      return "resnet34";
    case Model::resnet50:
      return "resnet50";
    case Model::resnet101:
      return "resnet101";
    case Model::resnet152:
      return "resnet152";
    case Model::cifar_resnet20:
      return "cifar-resnet20";
    case Model::cifar_resnet32:
      return "cifar-resnet32";
    case Model::cifar_resnet44:
      return "cifar-resnet44";
    case Model::cifar_resnet56:
      return "cifar-resnet56";
    case Model::cifar_resnet110:
      return "cifar-resnet110";
    case Model::vit_s16:
      return "vit-s16";
    case Model::gpt:
      return "gpt";
    case Model::mlp:
      return "mlp";
    case Model::torchscript:
      return "torchscript";
  }
  return "";
}

std::string_view to_text(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::lamb:
      return "lamb";
    case OptimizerKind::lars:
      return "lars";
  }
  return "";
}

std::string_view to_text(LrScaling scaling) {
  switch (scaling) {
    case LrScaling::none:
      return "none";
    case LrScaling::linear:
      return "linear";
    case LrScaling::square_root:
      return "square-root";
  }
  return "";
}

std::string_view to_text(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::one_cycle:
      return "one-cycle";
    case ScheduleKind::cosine:
      return "cosine";
    case ScheduleKind::step:
      return "step";
    case ScheduleKind::constant:
      return "constant";
  }
  return "";
}

std::string_view to_text(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
  }
  return "";
}

std::string_view to_text(GradientCompression compression) {
  switch (compression) {
    case GradientCompression::none:
      return "none";
    case GradientCompression::fp16:
      return "fp16";
    case GradientCompression::bf16:
      return "bf16";
  }
  return "";
}

std::string_view to_text(TokenType type) {
  switch (type) {
    case TokenType::u8:
      return "u8";
    case TokenType::u16:
      return "u16";
    case TokenType::u32:
      return "u32";
    case TokenType::i32:
      return "i32";
    case TokenType::i64:
      return "i64";
  }
  return "";
}

std::string_view to_text(Anneal anneal) { return anneal == Anneal::cosine ? "cosine" : "linear"; }

std::string_view to_text(ShuffleKind kind) {
  switch (kind) {
    case ShuffleKind::every_epoch:
      return "every_epoch";
    case ShuffleKind::full:
      return "full";
    case ShuffleKind::by_shard:
      return "by_shard";
    case ShuffleKind::by_chunk:
      return "by_chunk";
    case ShuffleKind::none:
      return "none";
  }
  return "";
}

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

std::string_view to_text(Backend backend) {
  switch (backend) {
    case Backend::automatic:
      return "auto";
    case Backend::shm:
      return "shm";
    case Backend::gloo:
      return "gloo";
  }
  return "";
}

std::string_view to_text(Launcher launcher) {
  switch (launcher) {
    case Launcher::srun:
      return "srun";
    case Launcher::torchrun:
      return "torchrun";
    case Launcher::single:
      return "single";
  }
  return "";
}

std::string_view to_text(Until until) { return until == Until::done ? "done" : ""; }

std::string Origins::where(std::string_view key) const {
  const auto found = where_.find(key);
  return found == where_.end() ? "default" : found->second;
}

void Origins::add(std::string key, std::string where) {
  where_.insert_or_assign(std::move(key), std::move(where));
}

}  // namespace stoker::job
