#include "train/trainer/switches.h"

#include <array>
#include <optional>

namespace stoker::train {

namespace {

constexpr std::array kSwitches = {
    Switch{.name = "--epochs",
           .short_name = "-e",
           .value = "N",
           .sets = "train.epochs={}",
           .what = "number of epochs"},
    Switch{.name = "--batch-size",
           .short_name = "-b",
           .value = "N",
           .sets = "train.batch={}",
           .what = "batch size per rank"},
    Switch{.name = "--image-size",
           .value = "N",
           .sets = "train.image.size={}",
           .what = "image width and height in pixels"},
    Switch{.name = "--lr", .value = "X", .sets = "train.optimizer.lr={}", .what = "peak learning rate"},
    Switch{.name = "--wd", .value = "X", .sets = "train.optimizer.weight_decay={}", .what = "weight decay"},
    Switch{.name = "--mom", .value = "X", .sets = "train.optimizer.momentum={}", .what = "momentum"},
    Switch{.name = "--test",
           .sets = "train.steps=50;train.validate_every=0",
           .what = "run 50 steps without validation, to measure the step time"},
    Switch{.name = "--test-nsteps",
           .value = "N",
           .sets = "train.steps={};train.validate_every=0",
           .what = "like --test, with N steps"},
    Switch{
        .name = "--chkpt", .sets = "checkpoint.every=1 epoch", .what = "save a checkpoint after every epoch"},
    Switch{.name = "--metric-step",
           .value = "N",
           .sets = "train.print_every={}",
           .what = "number of steps between progress lines"},
    Switch{.name = "--find-unused-parameters",
           .has_opposite = true,
           .sets = "train.find_unused_parameters={}",
           .what = "allow parameters that a step does not use"},
    Switch{.name = "--num-workers",
           .value = "N",
           .sets = "train.num_workers={}",
           .what = "number of decoding threads (at least 1)"},
    Switch{.name = "--prefetch-factor",
           .value = "N",
           .sets = "train.prefetch={}",
           .what = "number of batches to load ahead, for all threads together"},
    Switch{.name = "--drop-last",
           .has_opposite = true,
           .sets = "train.drop_last={}",
           .what = "drop the last batch of an epoch if it is incomplete"},
    Switch{.name = "--persistent-workers",
           .has_opposite = true,
           .what = "decoding threads live as long as the training"},
    Switch{.name = "--pin-memory",
           .has_opposite = true,
           .what = "training runs on the CPU, without copies to a GPU"},
    Switch{.name = "--non-blocking",
           .has_opposite = true,
           .what = "training runs on the CPU, without copies to a GPU"},
};

// A parsed argument: the switch, whether it is the opposite, and the value after '='.
struct SwitchArgument {
  const Switch* found = nullptr;
  bool is_opposite = false;
  std::optional<std::string> value;
};

SwitchArgument look_up(std::string_view text) {
  SwitchArgument word;
  if (const std::size_t equals = text.find('='); text.starts_with("--") && equals != std::string_view::npos) {
    word.value = std::string(text.substr(equals + 1));
    text = text.substr(0, equals);
  }
  for (const Switch& candidate : kSwitches) {
    word.is_opposite =
        candidate.has_opposite && text.starts_with("--no-") && text.substr(5) == candidate.name.substr(2);
    const bool is_short = !candidate.short_name.empty() && text == candidate.short_name;
    if (word.is_opposite || is_short || text == candidate.name) {
      word.found = &candidate;
      return word;
    }
  }
  return {};
}

void apply(const Switch& what, std::string_view value, SwitchSettings& settings) {
  // --test sets the number of steps only if no other switch does.
  const bool is_weak = what.name == "--test";
  std::size_t front = 0;
  for (const std::string_view setting : split(what.sets, ';')) {
    std::string text(setting);
    if (const std::size_t gap = text.find("{}"); gap != std::string::npos) text.replace(gap, 2, value);
    if (is_weak) {
      settings.set.insert(settings.set.begin() + static_cast<std::ptrdiff_t>(front++), std::move(text));
    } else {
      settings.set.push_back(std::move(text));
    }
  }
}

}  // namespace

std::span<const Switch> switches() { return kSwitches; }

Result<bool> read_switch(std::span<const std::string> words, std::size_t& at, SwitchSettings& settings) {
  SwitchArgument word = look_up(words[at]);
  if (word.found == nullptr) return false;
  const Switch& what = *word.found;
  if (what.value.empty()) {
    if (word.value) return invalid("{}: takes no value", printable(words[at]));
    if (what.sets.empty()) settings.notes.push_back(format("{} has no effect: {}", words[at], what.what));
    word.value = word.is_opposite ? "false" : "true";
  } else if (!word.value) {
    if (at + 1 == words.size()) return invalid("{}: a value is missing", words[at]);
    word.value = words[++at];
  }
  if (!what.sets.empty()) apply(what, *word.value, settings);
  return true;
}

std::string switches_help() {
  std::string text;
  for (const Switch& item : kSwitches) {
    std::string head = item.short_name.empty() ? "" : format("{}, ", item.short_name);
    head += item.has_opposite ? format("--[no-]{}", item.name.substr(2)) : std::string(item.name);
    if (!item.value.empty()) head += format(" {}", item.value);
    text += format("  {:<30} {}\n", head,
                   item.sets.empty() ? format("no effect: {}", item.what) : std::string(item.what));
  }
  return text;
}

}  // namespace stoker::train
