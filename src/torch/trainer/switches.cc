#include "torch/trainer/switches.h"

#include <array>
#include <optional>

namespace stoker::torch {

namespace {

constexpr std::array kSwitches = {
    Switch{.name = "--epochs", .short_name = "-e", .value = "N", .sets = "train.epochs={}", .what = "epochs"},
    Switch{.name = "--batch-size",
           .short_name = "-b",
           .value = "N",
           .sets = "train.batch={}",
           .what = "samples per rank and step"},
    Switch{.name = "--image-size", .value = "N", .sets = "train.image.size={}", .what = "pixels, squared"},
    Switch{.name = "--lr",
           .value = "X",
           .sets = "train.optimizer.lr={}",
           .what = "learning rate, the schedule's highest"},
    Switch{.name = "--wd", .value = "X", .sets = "train.optimizer.weight_decay={}", .what = "weight decay"},
    Switch{.name = "--mom", .value = "X", .sets = "train.optimizer.momentum={}", .what = "momentum"},
    Switch{.name = "--test",
           .sets = "train.steps=50;train.validate_every=0",
           .what = "50 steps without validation, to measure their time"},
    Switch{.name = "--test-nsteps",
           .value = "N",
           .sets = "train.steps={};train.validate_every=0",
           .what = "the same with N steps; --test may stand beside it"},
    Switch{.name = "--chkpt",
           .sets = "checkpoint.every=1 epoch",
           .what = "a checkpoint after every epoch, in checkpoint.directory or the run's"},
    Switch{.name = "--metric-step",
           .value = "N",
           .sets = "train.print_every={}",
           .what = "steps between progress lines"},
    Switch{.name = "--find-unused-parameters",
           .has_opposite = true,
           .sets = "train.find_unused_parameters={}",
           .what = "some parameters may take no part in a step"},
    Switch{.name = "--num-workers",
           .value = "N",
           .sets = "train.loader_threads={}",
           .what = "decoding threads, not processes; at least 1"},
    Switch{.name = "--prefetch-factor",
           .value = "N",
           .sets = "train.prefetch={}",
           .what = "batches ready ahead of the step, of all threads together"},
    Switch{.name = "--drop-last",
           .has_opposite = true,
           .sets = "train.drop_last={}",
           .what = "an epoch's last batch is left out where it is not full"},
    Switch{.name = "--persistent-workers",
           .has_opposite = true,
           .what = "decoding threads always live as long as the training"},
    Switch{.name = "--pin-memory",
           .has_opposite = true,
           .what = "batches are used where they are made, without a copy to a GPU"},
    Switch{.name = "--non-blocking", .has_opposite = true, .what = "no copy to a GPU has to be waited for"},
};

// What a word says: which switch, whether the opposite, and the value behind '='.
struct Word {
  const Switch* found = nullptr;
  bool is_opposite = false;
  std::optional<std::string> value;
};

Word look_up(std::string_view text) {
  Word word;
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

void apply(const Switch& what, std::string_view value, Switched& switched) {
  // --test only says how many steps where nothing else does.
  const bool is_weak = what.name == "--test";
  std::size_t front = 0;
  for (const std::string_view setting : split(what.sets, ';')) {
    std::string text(setting);
    if (const std::size_t gap = text.find("{}"); gap != std::string::npos) text.replace(gap, 2, value);
    if (is_weak) {
      switched.set.insert(switched.set.begin() + static_cast<std::ptrdiff_t>(front++), std::move(text));
    } else {
      switched.set.push_back(std::move(text));
    }
  }
}

}  // namespace

std::span<const Switch> switches() { return kSwitches; }

Result<bool> read_switch(std::span<const std::string> words, std::size_t& at, Switched& switched) {
  Word word = look_up(words[at]);
  if (word.found == nullptr) return false;
  const Switch& what = *word.found;
  if (what.value.empty()) {
    if (word.value) return invalid("{}: takes no value", printable(words[at]));
    if (what.sets.empty()) switched.notes.push_back(format("{} changes nothing: {}", words[at], what.what));
    word.value = word.is_opposite ? "false" : "true";
  } else if (!word.value) {
    if (at + 1 == words.size()) return invalid("{}: a value is missing", words[at]);
    word.value = words[++at];
  }
  if (!what.sets.empty()) apply(what, *word.value, switched);
  return true;
}

std::string switches_help() {
  std::string text;
  for (const Switch& item : kSwitches) {
    std::string head = item.short_name.empty() ? "" : format("{}, ", item.short_name);
    head += item.has_opposite ? format("--[no-]{}", item.name.substr(2)) : std::string(item.name);
    if (!item.value.empty()) head += format(" {}", item.value);
    text += format("  {:<30} {}\n", head,
                   item.sets.empty() ? format("changes nothing: {}", item.what) : std::string(item.what));
  }
  return text;
}

}  // namespace stoker::torch
