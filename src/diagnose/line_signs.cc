#include "diagnose/line_signs.h"

#include <re2/re2.h>

#include "diagnose/matches.h"
#include "diagnose/own_verdict.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// The level is at the start of a line, after times and names.
constexpr std::size_t kLongestHead = 120;
// A message after these words is no end of the program.
constexpr std::size_t kLongestEnd = 400;

}  // namespace

LogLevel level_of(std::string_view line) {
  static const RE2 kWord(
      R"re((?:^|[\s\[|:(="])(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|EXCEPTION|FATAL)(?:[\s\]|:)"]|$))re");
  // "W1121 10:03:11", "I2025-11-21 10:03:11".
  static const RE2 kGlog(
      R"((?:^|[\[\sa-z\d])([IWEF])(?:\d{4} \d\d:\d\d:\d\d|[ :]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d))");
  // "level=warning msg=...", "{\"level\": \"info\"", "[2025-11-21 10:03:11.250] [info] text".
  static const RE2 kLower(
      R"re((?:\blevel(?:name)?"?[=:] ?"?|^(?:\[[^\]]*\] ?){0,2}\[)(debug|info|notice|warn|warning|error|critical|fatal)\b *["\]\s,])re");
  static const RE2 kTensorflow(R"(^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: ([IWEF]) )");
  static const RE2 kRayDaemon(R"(^\((?:raylet|autoscaler)[^)]{0,40}\) )");
  // A level of NCCL does not show its importance, and other programs quote words in capitals.
  static const RE2 kOther(R"(NCCL (?:INFO|WARN)|^[\w.]*(?:Error|Exception|Warning): )");
  const std::string_view head = line.substr(0, kLongestHead);
  if (matches(head, kOther)) return LogLevel::none;
  std::string level;
  const re2::StringPiece subject(head.data(), head.size());
  const bool is_found =
      RE2::PartialMatch(subject, kGlog, &level) || RE2::PartialMatch(subject, kTensorflow, &level) ||
      RE2::PartialMatch(subject, kWord, &level) || RE2::PartialMatch(subject, kLower, &level);
  if (!is_found) return matches(head, kRayDaemon) ? LogLevel::warning : LogLevel::none;
  return std::string_view("IDidn").find(level[0]) != std::string_view::npos ? LogLevel::info
                                                                            : LogLevel::warning;
}

bool is_warning(std::string_view line) {
  static const RE2 kWarning(
      R"((?:^|[\s:])\w*Warning: |(?:^|[\s\[|:(="])(?:WARN|WARNING|[Ww]arning)(?:[\s\]|:)]|$)|)"
      R"((?:^|[\[\sa-z\d])W(?:\d{4} \d\d:\d\d:\d\d|[ :]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d)|)"
      R"(^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: W |\blevel(?:name)?"?[=:] ?"?warn)");
  // Findings of tools that call them warnings.
  static const RE2 kFinding(R"(NCCL WARN|ThreadSanitizer: |^\w+sum: WARNING: \d+ )");
  const std::string_view head = line.substr(0, kLongestHead);
  return matches(head, kWarning) && !matches(head, kFinding);
}

bool is_progress(std::string_view line) {
  static const RE2 kProgress(
      R"re((?i)(?:\b|_)(?:epoch|step|iteration|iter|loss)\b['"]?[\s:=\[(#]{0,4}\d|\d ?(?:it/s|s/it|m?s/step)\b)re");
  // "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED", the summary of Weights & Biases, bars of tqdm and
  // rich.
  for (const std::string_view other : {"slurmstepd: ", "srun: ", "wandb: ", "%|", "━"}) {
    if (line.find(other) != std::string_view::npos) return false;
  }
  return matches(line, kProgress);
}

bool reports_nothing_found(std::string_view line) {
  static const RE2 kNothing(
      R"((?i)\b(?:found|loaded|read|indexed|collected|got|matched|dataset:|data:|train:|val:|test:|with|has|using)\W{0,2} ?0 (?:\w+ )?(?:images?|samples?|files?|examples?|rows?|records?|documents?|sequences?|videos?|pairs?|shards?|matches|items?)\b|\b0 (?:images|samples|files|examples|rows|records|documents|sequences) (?:found|loaded|in|match\w*)\b|\bno files (?:found|match\w*)\b|\b[\w-]+\.\w{2,7}: 0 (?:rows|samples|records|examples|images|files|lines)\b)");
  static const RE2 kFine(
      R"((?i)\b0 (?:\w+ )?(?:corrupt|damaged|bad|broken|duplicate|missing|invalid|skipped|failed))");
  return matches(line, kNothing) && !matches(line, kFine);
}

bool states_reason(std::string_view line) {
  static const RE2 kReason(
      R"((?i)\b(?:error|cannot|can't|could not|couldn't|failed|failure|invalid|no such|not found|denied|missing|unable|out of (?:range|bounds|memory)|mismatch|unsupported|unknown|illegal|must|overflow|exceed\w*|fatal|too (?:large|small|long|many|few))\b)");
  return matches(line, kReason) && !is_progress(line) && level_of(line) != LogLevel::info;
}

bool is_of_launcher(std::string_view line) {
  static const RE2 kLauncher(
      R"(^\W*$|MPI_ABORT|MPI_COMM_WORLD|^with errorcode|^NOTE: |^You may or may not|^exactly when|^(?:mpirun|mpiexec|prterun|srun|slurmstepd|Primary job|a non-zero exit|Per user)\b|^\s*(?:Process name|Exit code):|^\[[\w.-]+:\d+\] )");
  return matches(line, kLauncher);
}

std::optional<ProgressCount> progress_count(std::string_view line) {
  static const RE2 kUnit(R"re((?i)(?:\b|_)(epoch|step|iteration|iter)\b['"]?[\s:=\[(#]{0,4}(\d{1,9})\b)re");
  constexpr std::int64_t kEpoch = 1'000'000'000;
  if (!is_progress(line)) return std::nullopt;
  ProgressCount count;
  re2::StringPiece rest(line.data(), line.size());
  std::string unit;
  std::int64_t number = 0;
  for (int i = 0; i < 2 && RE2::FindAndConsume(&rest, kUnit, &unit, &number); ++i) {
    const bool is_epoch = unit.size() == 5;
    if (i == 1 && (is_epoch || count.unit != "epoch")) break;
    count.unit += format("{}{}", count.unit.empty() ? "" : " ", to_lower(unit));
    count.number += is_epoch ? number * kEpoch : number;
  }
  if (count.unit.empty()) return std::nullopt;
  return count;
}

bool is_progress_bar(std::string_view line) {
  static const RE2 kSpeed(R"(\d ?(?:it/s|s/it)\b)");
  return matches(line, kSpeed);
}

bool reports_fallback(std::string_view line) {
  static const RE2 kFallback(
      R"((?i)\b(?:fall(?:ing|s)? back (?:to|on)|\b(?:start|train|initiali[sz]|begin|(?:re-?)?build|(?:re-?)?comput|(?:re-?)?creat|(?:re-?)?generating|(?:re-?)?generate)\w* (?:\w+ ){0,2}from scratch|)"
      R"((?:using|use|taking|trying|loading|restoring|switching to|continu\w+ with) (?:the |a |an |its |my )?(?:local|cached|previous|older|old|earlier|last good|next|other|another|second(?:ary)?|alternat\w+|defaults?|smaller|lower|reduced|fewer|built-?in|backup|fallback|slower|bundled|mirror|replacement|substitute|existing|cpu|system|pure|synthetic|dummy|serial|generated|empty|randomly)\b|)"
      R"(re-?(?:starting|running|submitting|computing|generating|building|creating|downloading|queue?ing) (?:with(?:out)? )?(?:the |a |all )?(?:remaining|rest|missing|failed|new|fresh|lost|broken|it|them)\b|)"
      R"((?:generating|building|creating|computing|downloading) (?:it|them|the missing)\b|)"
      R"((?:using|use|taking|with|loading|writing|reading) [^.;]{1,60}\binstead\b)\b)");
  return matches(line, kFallback);
}

bool reports_choice(std::string_view line) {
  static const RE2 kChoice(R"((?i)\b(?:selected|settled on|chose|picked|ended up with)\b.{0,30}\d)");
  return matches(line.substr(0, kLongestHead), kChoice);
}

bool is_of_trial(std::string_view line) {
  static const RE2 kTrial(
      R"((?i)^\W*(?:trial|run|config|candidate|probe|seed|fold|member|attempt)\b ?[#=]?\d+\b)");
  return matches(line, kTrial);
}

bool is_good_trial(std::string_view line) {
  static const RE2 kGood(R"((?i)\b(?:ok|done|finished|succeeded)\b)");
  return is_of_trial(line) && matches(line, kGood);
}

bool reports_retry(std::string_view line) {
  static const RE2 kRetry(
      R"((?i)\b(?:re-?try(?:ing)?|retries|will (?:be )?retr(?:y|ied)|(?:will try|trying) again|attempt \d+ ?(?:of|/) ?\d+|skip(?:s|ped|ping)?|ignor(?:es|ed|ing)|continuing|re-?queue(?:d|ing)?|re-?queuing|re-?connect(?:ed|ing)|attempt \d+:? (?:ok|succe\w+)|(?:ok|succe\w+) (?:on|at|after) attempt \d+|(?:go|going|carry|carrying|moving) on|recovered|can be ignored|proceed(?:s|ing)? (?:without|with|anyway)|non-?fatal|not fatal)\b)");
  static const RE2 kEnd(
      R"((?i)\b(?:(?:cannot|can't|unable to|not) (?:continue|proceed|skip|ignore)|giving up|gave up|exhausted|exceeded|no (?:more )?(?:retries|attempts)|not retr\w+|last attempt|exiting|aborting|stopping)\b)");
  const std::string_view text = line.substr(0, kLongestEnd);
  return matches(text, kRetry) && !matches(text, kEnd);
}

bool reports_error(std::string_view line) {
  static const RE2 kError(
      R"((?:^|[\s\[|:(])(?:ERROR|CRITICAL|FATAL|FAILED)(?:[\s\]|:),]|$)|^(?:\S+: )?(?i:(?:error|fatal|failure):|failed to\b)|\b(?:[Tt]raining|[Rr]un|[Jj]ob|[Ss]cript) failed\b)");
  // pip installed what it was to install.
  static const RE2 kHarmless(R"(^ERROR: pip's dependency resolver does not)");
  return matches(line.substr(0, kLongestHead), kError) && !reports_retry(line) && !matches(line, kHarmless);
}

bool reports_own_error(std::string_view line) {
  static const RE2 kReport(
      R"((?:^|[\s\[|:(="])(?:ERROR|CRITICAL|FATAL)(?:[\s\]|:),"]|$)|^(?:[\w./-]+(?: \w+)?: |\[[^\]]*\] )?(?i:(?:fatal )?(?:error|fatal|failure|abort(?:ed|ing)?):? )|)"
      R"(^(?:\d{4}-\S+ (?:[\d:.,]+ )?)?(?:\[[^\]]*\] ?){0,2}\[(?:E|error|critical|fatal) *\]|^[EF]\d{4} |\blevel(?:name)?"?[=:] ?"?(?:error|fatal|critical)\b)");
  // The end of a program, or a reference to an earlier line.
  static const RE2 kEmpty(
      R"((?i)^\W*(?:(?:error|critical|fatal|abort\w*):? ?)?(?:.*\b(?:see (?:above|the|log)|check the log|for details)\b.*|(?:the )?(?:job|run|script|program|step|task|workflow|pipeline|command|process|stage|training)?(?: \w+)? ?(?:failed|aborted|ended|exited)(?: with)?(?: an?)?(?: error| exit)?(?: code| status)?:? ?\d*|exit\w*(?: with)?(?: code| status)?:? ?\d*|abort\w*|giving up|terminat\w*|shutting down|\d* ?errors?(?: occurred)?|error \d+|.*\bexits with return code = \d+)[.! ]*$)");
  // Reports of launchers and of the shell have rules.
  // So do some tools, and a line "error rate 0.01" states a measure.
  static const RE2 kOther(
      R"(^(?:srun|slurmstepd|sbatch|salloc|make|ninja|gmake)\b|ORTE_ERROR_LOG|: line \d+: |^(?i:errors?|failure|abort\w*) (?:rate|norm|estimate|bound|bars?|tolerance|budget|correction|probability|l[12]|max|mean|rel\w*|abs\w*|level|count)\b|\berror: aborting due to \d|pip's dependency resolver)");
  const std::string_view head = line.substr(0, kLongestHead);
  if (!matches(head, kReport) || matches(head, kOther)) return false;
  if (level_of(line) == LogLevel::info || is_warning(line) || counts_no_failure(line)) return false;
  constexpr std::size_t kShortestWords = 10;
  const std::string_view words = own_words(line);
  return words.size() >= kShortestWords && !matches(words, kEmpty) && !reports_retry(line) &&
         !reports_fallback(line);
}

std::string_view own_words(std::string_view line) {
  static const RE2 kLevel(
      R"(^.{0,80}?\b(?:ERROR|CRITICAL|FATAL)\b[\]\s|:),"]*(?:- )?(?:[\w.]*:[\w.<>]+:\d+ - |root:)?)");
  static const RE2 kTime(
      R"(^(?:\[?\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:?\d*\S* *)?(?:(?:\[[\w.-]+\] )?\[(?:E|error|critical|fatal) *\] )?(?:[EF]\d{4} \S+ +\d+ [\w./-]+:\d+\] )?(?:[Uu]sage: )?)");
  // "level=error msg=\"text\"", {"level": "error", "message": "text"}.
  static const RE2 kMessage(R"re(\b(?:msg|message|event)"?[=:] ?"([^"]+)")re");
  re2::StringPiece rest(line.data(), line.size());
  if (RE2::PartialMatch(rest, kMessage, &rest)) return {rest.data(), rest.size()};
  if (!RE2::Consume(&rest, kLevel) || rest.empty()) {
    rest = re2::StringPiece(line.data(), line.size());
    (void)RE2::Consume(&rest, kTime);
  }
  return {rest.data(), rest.size()};
}

bool prints_usage(std::string_view line) {
  static const RE2 kUsage(R"(^(?:\S+: )?[Uu](?:sage|SAGE): +\S*[\w/]\S*(?: |$))");
  return matches(line, kUsage);
}

bool reports_end_of_part(std::string_view line) {
  static const RE2 kEnd(
      R"((?i)^(?:\S{1,3} )?(?:[\w./-]+ ){1,3}(?:completed?|finished|done|written|saved|uploaded|ok)[.!]{0,3}$|^(?-i)OK(?i)[.!]?$)");
  // Such parts are followed by others.
  static const RE2 kDoubt(
      R"((?i)\b(?:not|no|fail\w*|(?:re)?load\w*|init\w*|set-?up|start\w*|warm\w*|download\w*|epoch|step|fold|batch|compil\w*|import\w*|connect\w*|read\w*|prepar\w*|phase|chunk|shard|rank|worker|node|check\w*|sample|iteration|round|task|tests?|handshake|alloc\w*|tokeniz\w*|preprocess\w*|pre-?flight|config\w*|parsing|until|when)\b)");
  return matches(line, kEnd) && !matches(line, kDoubt) && !is_progress(line);
}

bool reports_success(std::string_view line) {
  static const RE2 kWhole(
      R"((?i)\b(?:training|train(?:er)?|fine-?tuning|pre-?training|run|job|script|program|experiment|pipeline|sweep|everything|all (?:stages|checks|tests|parts|files|shards|tasks|trials|epochs|steps|jobs|experiments|samples|ranks|runs|evaluations))(?: \w+){0,2} (?:completed?|finished|done|succeeded|ended (?:successfully|normally|after \d+)|processed|converged)\b|)"
      R"(\b(?:workflow|simulation|analysis|computation|stage-?in|stage-?out|staging|pipeline) (?:is |has )?(?:completed?|finished|done|succeeded)\b|)"
      R"(\b(?:job|pipeline|workflow|run|script|program|simulation|training|analysis)(?: status)?:? ok[.!]{0,3}$|)"
      R"(\b(?:finished|completed?|done|ended|exited) with(?:out| no| 0) (?:errors?|failures?)\b|)"
      R"(\bnormal termination\b|\bterminated normally\b|)"
      R"(\ball (?:\d+ )?(?:\w+ )?\w+ (?:(?:were|are|have been) )?(?:trained|fine-?tuned|evaluated|exported|converted|uploaded|written|saved|processed|completed?|finished|done|succeeded)\b|)"
      R"(\b(?:finished|completed|done with) (?:the )?(?:training|fine-?tuning|pre-?training|run|job|all (?:epochs|steps|tasks|trials))\b|)"
      R"(\b(?:max(?:imum)?|total|target)[ _](?:number of )?(?:train(?:ing)?[ _])?(?:steps|epochs|iterations|iters|updates|tokens)\b[^.]{0,20}\breached\b|)"
      R"(\breached (?:the )?(?:max(?:imum)?|total|target)[ _](?:number of )?(?:steps|epochs|iterations|iters|updates|tokens)\b|)"
      R"(\bearly[ -]stopping (?:triggered|at (?:epoch|step) \d+)|\bstopp(?:ed|ing) early\b|^Epoch \d+: early stopping$|)"
      R"(^\W*end of training\b|)"
      R"(\bexit(?:ed|ing)?(?: with)?(?: code| status)[ :=]*0\b|)"
      R"(\b(?:exit|rc|(?:exit|return)[ _-]?(?:code|status)) ?[:=] ?0\b|)"
      R"((?-i)(?:^|[\s\[])INFO(?i)[\]:]? +(?:all )?(?:done|finished|completed?)[.!]{0,3}$|)"
      R"(\b(?:finished|completed|ended|exit(?:ed|ing)|terminated|done) (?:successfully|normally|cleanly|OK)\b|)"
      R"(\b(?:build|tests?|checks?|validation|verification|installation|export|conversion|evaluation|compilation|simulation|computation|processing|benchmark|inference|preprocessing|upload|backup) (?:OK|passed|success\w*|completed?|finished|succeeded|done)\b[.!]?$|)"
      R"(\b(?:finished|completed?|done|ended|end|summary|total|run|build)\b\W{1,4}0 (?:errors?|failures?|failed)\b|)"
      R"(`?Trainer\.fit`? stopped: `?max_(?:epochs|steps|time)|'train_runtime'|)"
      R"(\bfinal (?:eval|test|val|acc|loss|error|metric|score|checkpoint|model|weights|result|perplexity)\w*\b|)"
      R"((?-i)^\W{0,4}(?:PASSED|SUCCESS)\b(?i)|(?-i)^\W{0,4}PASS\W{1,3}(?:\d+/\d+|all)\b(?i)|)"
      R"((?:^|[:|\]-] |[^.][.!;] |\d:\d\d(?: [A-Z]{2,5})?(?: \d{4})? )(?:all )?(?:done|finished|completed?)(?: in [\w .:]{1,40})?[.!]{0,3}$)");
  // "Training finished with errors", "will exit when training is done", "data of run 3 was not completed".
  static const RE2 kDoubt(
      R"((?i)\b(?:not|never|unsuccessful\w*|with errors|fail\w*|abort\w*|incomplete|before|until|when|once|after|will|waiting|if)\b)");
  static const RE2 kAfter(R"((?i)\b(?:finished|completed|done|stopped|ended|converged) after\b)");
  // Counts of failures that are none.
  static const RE2 kNone(
      R"((?i)\b(?:0|no|zero|without(?: any)?) (?:tests? |checks? )?(?:failures|failed(?: \w+)?|errors?)\b|\b(?:failures|failed|errors)[ :=]+0\b)");
  std::string text(line.substr(0, kLongestEnd));
  // A step of CMake.
  if (text.starts_with("-- ")) return false;
  if (reports_good_exit(line) || reports_early_stop(line)) return true;
  if (!matches(text, kWhole)) return false;
  RE2::GlobalReplace(&text, kNone, "");
  RE2::GlobalReplace(&text, kAfter, "");
  return !matches(text, kDoubt);
}

bool reports_early_stop(std::string_view line) {
  static const RE2 kStop(
      R"((?:did not improve in the last \d+ records|Stopping threshold reached)\b.*\bSignaling Trainer to stop)");
  return matches(line.substr(0, kLongestEnd), kStop);
}

bool stresses_success(std::string_view line) {
  static const RE2 kSuccess(R"((?i)\b(?:success\w*|succeeded|(?:0|no|without) errors?)\b)");
  return matches(line.substr(0, kLongestEnd), kSuccess) && reports_success(line);
}

bool reports_good_exit(std::string_view line) {
  static const RE2 kGood(
      R"((?i)\bexit(?:ed|ing)?(?: with)?(?: code| status)[ :=]*0\b|\b(?:exit|rc|(?:exit|return)[ _-]?(?:code|status)) ?[:=] ?0\b|)"
      R"(^=*\s*(?:\d+ (?:deselected|skipped|xfailed|xpassed|warnings?), )*\d+ passed\b[^=]* in [\d.:() ]+s?\b[^=]*=*$|)"
      R"(\ball (?:\d+ )?(?:\w+ )?(?:tests|checks) (?:passed|ok)\b|\bBUILD (?:OK|SUCCESS\w*)|^OK \((?:skipped|expected failures)=[^)]*\)$|^100% tests passed|^test result: ok\b)");
  static const RE2 kBad(
      R"((?i)\b[1-9]\d* (?:tests? |checks? )?(?:failed|errors?|failures?)\b|\bnot\b|\bif\b|\bwhen\b)");
  const std::string_view text = line.substr(0, kLongestEnd);
  return matches(text, kGood) && !matches(text, kBad);
}

bool contradicts_success(std::string_view line) {
  static const RE2 kFailure(
      R"((?i)\berrors? occurred\b|^(?:\S+ )?error\b ?:?|^\S+: (?:fatal|\*\*\*|error)\b|\bincomplete\b|\baborted\b|\bgiving up\b|\bnot (?:finished|completed|done)\b|\bfailed[.!]?$)");
  static const RE2 kNone(R"((?i)\b(?:0|no|zero|without)\b|ignored|non-?fatal)");
  const std::string_view text = line.substr(0, kLongestEnd);
  return level_of(text) == LogLevel::none && matches(text, kFailure) && !matches(text, kNone) &&
         !reports_retry(text) && !reports_fallback(text);
}

bool reports_amount(std::string_view line) {
  static const RE2 kAmount(
      R"((?i)\b(?:finished|completed|processed|trained(?: for)?|done(?: with)?)\b:? (?:all )?(\d+)(?:/(\d+))? (?:train(?:ing)? )?(?:steps|epochs|iterations|iters|updates|batches|tasks|jobs|shards|files|samples|images|rounds|trials|folds|experiments|episodes)\b)");
  static const RE2 kDone(R"(^(?:All )?(?:[Dd]one|[Ff]inished)[.!:;,] +\w)");
  static const RE2 kDoubt(
      R"((?i)\b(?:not|fail\w*|abort\w*|errors?|so far|remaining|left$|to go|next|now|waiting|loading|starting)\b)");
  // "41 files up to date, 3 uploaded, 0 failed".
  static const RE2 kGood(
      R"((?i)\b\d+ (?:\w+ ){0,2}(?:passed|copied|uploaded|downloaded|converted|ok|succeeded|processed|done|completed?|identical|up to date)\b)");
  if (counts_no_failure(line) && matches(line, kGood)) return true;
  const std::string_view text = without_head(line.substr(0, kLongestEnd));
  if (matches(text, kDoubt)) return false;
  if (matches(text, kDone)) return true;
  std::string done, all;
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kAmount, &done, &all) &&
         (all.empty() || all == done);
}

bool has_measure(std::string_view line) {
  static const RE2 kMeasure(
      R"((?i)(?:\b|_)(?:acc(?:uracy)?|loss|auc|auroc|f1|score|ppl|perplexity|bleu|rouge\w*|mse|rmse|mae|m?iou|map|top-?[15]|wer|reward|return|psnr|fid|best)\b\W{0,4}\d)");
  return matches(line, kMeasure);
}

bool is_end_of_helper(std::string_view line) {
  static const RE2 kHelper(
      R"(: line \d+:\s+\d+ (?:Killed|Terminated|Hangup)\s+(?:[^\s;|&]*\s){0,2}?(?:\S*/)?(?:sleep|tail|top|htop|nvidia-smi|dstat|vmstat|iostat|mpstat|sar|watch|tensorboard|ssh|ping|\S*(?:monitor|watch|heartbeat|exporter|keepalive)\S*)(?:\s|$))");
  return matches(line, kHelper);
}

bool is_other_command(std::string_view command) {
  static const RE2 kMain(
      R"(^(?:\w+=\S* )*(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|srun|mpirun|mpiexec\S*|horovodrun|julia|Rscript|java|node|bash|sh|time|timeout|env|numactl|nice|apptainer|singularity|docker|podman|stoker\S*|ray|\./\S+)(?:\s|$)|^(?:\w+=\S* )*\.?\.?/|^$)");
  return !matches(command, kMain);
}

std::string_view without_head(std::string_view line) {
  static const RE2 kHead(
      R"(^(?:\[?\d{4}[-/]\S+[ T]\d\d:\d\d:\d\d\S* )?[\W]*(?:(?:INFO|DEBUG|WARNING|ERROR)\b[\]:\s-]*)?(?:[\w.]+: ?)?)");
  re2::StringPiece rest(line.data(), line.size());
  (void)RE2::Consume(&rest, kHead);
  return {rest.data(), rest.size()};
}

bool reports_result(std::string_view line) {
  static const RE2 kResult(
      R"((?i)^(?:[^ ]+ )?(?:(?:saved|wrote|written|exported|uploaded|pushed|stored) (?:\w+ ){0,3}(?:to )?(?:model|weights|results?|metrics|predictions|report|submission|tokenizer|embeddings|features|dataset|outputs?|\S+\.[a-z]\w{0,11})\b|)"
      R"((?:exported|imported|indexed|saved|wrote|written|stored) (?:all )?\d[\d.,]* (?:\w+ ){0,2}\w+|)"
      R"((?:\w+ ){0,3}(?:was |were |has been |have been )?(?:saved|written|exported|uploaded|stored|promoted|published|deployed|registered|released) (?:to|into|in|as|at)\b|)"
      R"(\d+ (?:\w+ ){1,3}(?:migrated|converted|processed|exported|written|saved|uploaded|downloaded|imported|indexed|copied|rendered|registered|archived|synced|transferred|created|generated|updated)\b|)"
      R"((?:\w+ ){0,3}(?:finished|completed?|done|ended)[;,.:] +(?:the )?(?:results?|outputs?|model|report|best|saved|written|wrote|see)\b|)"
      R"((?:downloaded|fetched|received|transferred|converted|processed|indexed) (?:all )?\d[\d.,]* ?(?:[kmgt]i?b|bytes?|files?|documents?|records?|rows?|images?|samples?|shards?)\b|)"
      R"((?:total )?(?:training|elapsed|run|wall|total)[ _]?(?:time|took)\b.{0,20}\d|)"
      R"((?:the )?best (?:\w+ ){0,3}(?:model|checkpoint|epoch|score|accuracy|acc|loss|auc|f1|params|parameters|trial|value)\b.*\d))");
  // "Resuming from the best checkpoint", "checkpoint" lines of a running training.
  static const RE2 kDoubt(
      R"((?i)\b(?:not|fail\w*|error|cannot|could|loading|resum\w*|will|epoch[ =:]*\d+ ?/)\b|)"
      R"(\b(?:saved|saving|wrote|written|uploaded)\b.*(?:\bbest\b|(?:epoch|step|iter|ckpt|checkpoint)[-_=: ]?\d)|)"
      R"(^(?:\w+ )*(?:checkpoints?|ckpt|snapshots?|state|logs?|config\w*|settings|arguments|options|cache) (?:\w+ ){0,2}(?:saved|written|stored|exported)\b)");
  // The best of all trials is known at the end.
  static const RE2 kBestOfAll(
      R"((?i)^(?:the )?best (?:trial|run|config\w*|candidate|solution|hyper\w*)\b.*\b(?:saved|written|stored)\b)");
  const std::string_view text = without_head(line.substr(0, kLongestEnd));
  static const RE2 kTest(R"((?i)^(?:final )?test\b.*\b(?:acc\w*|auc|f1|score|map|bleu|rmse|mae)\W{0,4}\d)");
  if (matches(text, kBestOfAll) || matches(line, kTest)) return true;
  return matches(text, kResult) && !matches(text, kDoubt);
}

bool states_number(std::string_view line) {
  static const RE2 kNumber(
      R"((?i)\b(?:results?|answer|sum|total|mean|average|median|final|score|accuracy|auc|f1|rmse|mae|energy|norm|residual|speed-?up|bandwidth|throughput|(?:g|m|t)flops?(?:/s)?|checksum|pi|integral|area|probability|error)\b[\w ()/\[\]%^]{0,24}(?: ?[=:] ?| +)[-+]?\d)");
  static const RE2 kDoubt(
      R"((?i)\b(?:params?|parameters|weights|layers|batch|size|rank|world|gpus?|nodes|ranks|workers|threads|memory|samples|images|files|tokens|steps|epochs?|code|errno|line|port|loss|lr|eta|free|used)\b|[Ee]rror:|\*\*\*|[Ee]rror \d+$)");
  const std::string_view text = without_head(line.substr(0, kLongestEnd));
  return matches(text, kNumber) && !matches(text, kDoubt) && !is_progress(text);
}

bool reports_failed_end(std::string_view line) {
  static const RE2 kFailed(
      R"((?i)\bexit(?:ed|ing)?(?: with)?(?: exit)?(?: code| status)[ :=]*-?[1-9]\d*\b|\breturned non-zero|)"
      R"(\b(?:exit|rc|(?:exit|return)[ _-]?(?:code|status)) ?[:=] ?-?[1-9]\d{0,2}\b|)"
      R"((?-i)\bFAILED\b|(?:^|[\s:])(?:Killed|Terminated|Aborted|Segmentation fault)\b|core dumped|CANCELLED AT|\bterminate called)");
  return matches(line, kFailed);
}

}  // namespace stoker::diagnose
