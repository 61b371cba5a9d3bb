#include "draft/options.h"

#include <algorithm>

#include "base/language/counted.h"
#include "config/setting.h"
#include "script_lint/rule.h"
#include "slurm/script/batch_script.h"
#include "slurm/script/option_names.h"
#include "slurm/script/requested_resources.h"
#include "stoker/bytes.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::draft {
namespace {

constexpr std::size_t kMaxTasks = 100'000;  // of a job array

bool has_placeholder(const std::string& value) {
  return placeholder_in(value) || value.find_first_of("<>${}") != std::string::npos;
}

class OptionConverter {
 public:
  OptionConverter(const Script& script, const Work& work, const std::string& stem, JobFileDraft& job_file,
                  std::vector<DraftFile>& files)
      : request_(script.request),
        script_(script),
        work_(work),
        stem_(stem),
        job_file_(job_file),
        files_(files) {}

  void convert() {
    convert_ranks();
    convert_cores();
    convert_gpus();
    convert_memory();
    for (const Directive& directive : request_.directives) {
      if (request_.find(directive.option.name) != &directive) continue;
      if (has_placeholder(directive.option.value)) {
        mark_unconverted(directive, "has a placeholder");
      } else {
        convert_option(directive);
      }
    }
    for (const Directive& directive : request_.ignored)
      mark_unconverted(directive, "is after the first command, where sbatch ignores it");
  }

 private:
  void mark_unconverted(const Directive& directive, std::string why) {
    const slurm::SbatchOption& option = directive.option;
    std::string what = option.typed;
    if (!option.value.empty()) what += (option.has_equals ? "=" : " ") + option.value;
    job_file_.unconverted.push_back(
        {static_cast<std::uint32_t>(option.line), printable(what), std::move(why)});
  }

  void convert_ranks() {
    std::uint64_t nodes = std::min<std::uint64_t>(request_.nodes(), 10'000);
    if (work_.launch == LaunchMode::once) {
      if (nodes > 1 && request_.find("--nodes") != nullptr)
        mark_unconverted(*request_.find("--nodes"), "was omitted: no command runs on more than one node");
      return;
    }
    std::uint64_t per_node = work_.per_node.value_or(0);
    std::uint64_t all = work_.all.value_or(0);
    if (per_node == 0 && all == 0 && work_.launch == LaunchMode::ranks) {
      per_node = request_.tasks_per_node().value_or(0);
      all = request_.tasks();
    }
    if (per_node == 0 && all > 0 && all % nodes == 0) per_node = all / nodes;
    if (nodes > 1) job_file_.set("resources", "nodes", format("{}", nodes));
    if (per_node == 0 && all > nodes) {
      job_file_.set("resources", "ranks", format("{}", all));
      per_node_ = (all + nodes - 1) / nodes;
      return;
    }
    per_node_ = std::clamp<std::uint64_t>(per_node, 1, 1024);
    if (per_node_ > 1) job_file_.set("resources", "ranks_per_node", format("{}", per_node_));
  }

  void convert_cores() {
    const auto each = request_.number("--cpus-per-task");
    const std::uint64_t tasks =
        request_.nodes() > 1 ? request_.tasks_per_node().value_or(1) : request_.tasks();
    if (!each && (tasks < 2 || work_.launch == LaunchMode::ranks)) return;
    std::uint64_t cores = each.value_or(1);
    if (work_.launch != LaunchMode::ranks)
      cores = std::max<std::uint64_t>(cores * std::min<std::uint64_t>(tasks, 4096) / per_node_, 1);
    if (cores > 0 && cores <= 4096) job_file_.set("resources", "cpus_per_rank", format("{}", cores));
  }

  void convert_gpus() {
    for (const GpuRequest& request : request_.gpus()) {
      if (!request.type.empty() && !has_placeholder(request.directive->option.value))
        mark_unconverted(*request.directive,
                         format("of type {}: slurm: {{partition: ...}} or extra: [--constraint=...]",
                                printable(request.type)));
    }
    const std::uint64_t gpus = request_.gpus_per_node().value_or(0);
    if (gpus == 0 || gpus > 1024) return;
    if (gpus % per_node_ == 0 && gpus / per_node_ <= 64) {
      job_file_.set("resources", "gpus_per_rank", format("{}", gpus / per_node_));
    } else if (per_node_ % gpus == 0 && per_node_ / gpus <= 64) {
      job_file_.set("resources", "ranks_per_gpu", format("{}", per_node_ / gpus));
    } else if (!request_.gpus().empty()) {
      mark_unconverted(*request_.gpus().front().directive,
                       format("cannot be divided evenly among {}", counted(per_node_, "rank")));
    }
  }

  void convert_memory() {
    auto memory = request_.asked().memory_per_node();
    const auto amount = [&](std::string_view name, std::uint64_t times) {
      const Directive* directive = request_.find(name);
      const auto each =
          directive == nullptr ? std::nullopt : slurm::parse_slurm_memory(directive->option.value);
      if (each && times > 0 && each->value <= (std::uint64_t{1} << 50) && times <= 100'000)
        memory = ByteCount{each->value * times};
    };
    const std::uint64_t tasks =
        request_.nodes() > 1 ? request_.tasks_per_node().value_or(1) : request_.tasks();
    amount("--mem-per-cpu", tasks * request_.number("--cpus-per-task").value_or(1));
    amount("--mem-per-gpu", request_.gpus_per_node().value_or(0));
    if (memory && *memory >= 1_MiB) job_file_.set("resources", "memory_per_node", to_text(*memory));
  }

  void convert_option(const Directive& directive) {
    const std::string& name = directive.option.name;
    const std::string& value = directive.option.value;
    if (name == "--time") return convert_time(directive);
    if (name == "--array") return convert_array(directive);
    if (is_one_of(name, {"--account", "--partition", "--qos", "--reservation"})) {
      const bool is_word = !value.empty() && value.size() <= 256 && value.front() != '-' &&
                           value.find_first_of(" \t") == std::string::npos;
      return is_word ? job_file_.set("slurm", name.substr(2), config::yaml_scalar(value))
                     : mark_unconverted(directive, "is not a valid name");
    }
    if (name == "--mem" && !request_.asked().memory_per_node())
      return mark_unconverted(directive, "has no key: resources.memory_per_node needs an amount");
    if (is_one_of(name, {"--nodes", "--ntasks", "--ntasks-per-node", "--tasks-per-node", "--cpus-per-task",
                         "--mem", "--mem-per-cpu", "--mem-per-gpu", "--gpus", "--gpus-per-node",
                         "--gpus-per-task", "--job-name", "--open-mode", "--parsable", "--comment"}))
      return;
    if (name == "--gres") {
      if (request_.gpus().empty() || value.find(',') != std::string::npos)
        mark_unconverted(directive, "has no key, except for GPUs");
      return;
    }
    if (name == "--output" || name == "--error")
      return mark_unconverted(directive, "belongs to the run: stoker logs last");
    if (name == "--chdir") {
      job_file_.working_directory = value;
      return;
    }
    if (name == "--export" && to_lower(value) == "all") return;
    if (name == "--signal") return convert_signal(directive);
    if (name == "--dependency")
      return mark_unconverted(directive, "refers to an earlier job: after: [another.yaml]");
    convert_extra(directive);
  }

  void convert_extra(const Directive& directive) {
    const slurm::SbatchOption& option = directive.option;
    if (slurm::look_up_option(option.name) == slurm::OptionName::unknown && option.name.starts_with("--")) {
      const std::string_view likely = slurm::suggest_option(option.name);
      return mark_unconverted(
          directive, likely.empty() ? "is not an option of sbatch"
                                    : format("is not an option of sbatch; did you mean {}?", likely));
    }
    std::string text = option.name;
    if (!option.value.empty()) text += (option.name.starts_with("--") ? "=" : " ") + option.value;
    const Status status = slurm::check_extra(text);
    if (status.ok()) {
      job_file_.extra.push_back(std::move(text));
    } else {
      mark_unconverted(directive, std::string(status.message()));
    }
  }

  void convert_time(const Directive& directive) {
    const auto time = request_.time();
    if (!time || *time < std::chrono::seconds(1)) {
      mark_unconverted(directive, "is not a valid time for sbatch: resources.time");
    } else if (!is_chain()) {
      job_file_.set("resources", "time", duration_text(*time));
    }
  }

  void convert_signal(const Directive& directive) {
    std::string_view value = directive.option.value;
    const std::size_t at = value.find('@');
    const std::string_view signal =
        value.substr(value.find(':') == std::string_view::npos ? 0 : value.find(':') + 1);
    std::uint64_t seconds = 60;
    const bool is_number = at == std::string_view::npos || parse_number(value.substr(at + 1), &seconds);
    if (!signal.starts_with("USR1") && !signal.starts_with("SIGUSR1") && !signal.starts_with("10@"))
      return mark_unconverted(directive, "is a different signal than SIGUSR1, which Stoker sends");
    if (!is_number || seconds > 86'400) return mark_unconverted(directive, "checkpoint.before_end");
    job_file_.set("checkpoint", "before_end", duration_text(std::chrono::seconds(seconds)));
  }

  std::string cap() const {
    const std::string& value = request_.find("--array")->option.value;
    const std::size_t at = value.find('%');
    return at == std::string::npos ? "" : value.substr(at + 1);
  }

  // Tasks run one after another, each from the last checkpoint.
  bool is_chain() const {
    if (request_.find("--array") == nullptr || cap() != "1" || !request_.time()) return false;
    return script_.mentions("checkpoint") || script_.mentions("resume") || script_.mentions("restart");
  }

  void convert_array(const Directive& directive) {
    const std::vector<std::uint32_t> tasks = slurm::array_indices(directive.option.value);
    if (tasks.empty() || tasks.size() > kMaxTasks)
      return mark_unconverted(directive, "is not a valid array of a job file");
    if (is_chain()) {
      job_file_.set("chain", "until", "done");
      job_file_.set("chain", "time_per_link",
                    duration_text(std::max<Duration>(*request_.time(), std::chrono::seconds(1))));
      job_file_.set("chain", "links", format("{}", std::min<std::size_t>(tasks.size(), 1000)));
      return;
    }
    std::string table = "task\n";
    for (std::uint32_t task : tasks) table += format("{}\n", task);
    files_.push_back({stem_ + ".tasks.csv", std::move(table)});
    job_file_.set("array", "over", config::yaml_scalar(stem_ + ".tasks.csv"));
    std::uint64_t at_once = 0;
    if (parse_number(cap(), &at_once) && at_once > 0 && at_once <= 1'000'000)
      job_file_.set("array", "at_once", format("{}", at_once));
    job_file_.references.emplace_back("SLURM_ARRAY_TASK_ID", "${params.task}");
  }

  const SlurmRequest& request_;
  const Script& script_;
  const Work& work_;
  const std::string& stem_;
  JobFileDraft& job_file_;
  std::vector<DraftFile>& files_;
  std::uint64_t per_node_ = 1;
};

}  // namespace

void convert_options(const Script& script, const Work& work, const std::string& stem, JobFileDraft& job_file,
                     std::vector<DraftFile>& files) {
  OptionConverter(script, work, stem, job_file, files).convert();
}

}  // namespace stoker::draft
