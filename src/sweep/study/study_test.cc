#include "sweep/study/study.h"

#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::sweep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Definition definition_of(SamplerKind sampler) {
  Definition definition;
  definition.name = "lr-width";
  definition.space = *Space::create({
      {"lr", NumberRange{.low = 1e-4, .high = 1, .is_log = true}, {}},
      {"width", Choices{{std::int64_t{16}, std::int64_t{32}, std::int64_t{64}}}, {}},
  });
  definition.objectives = {{"val_acc", Goal::maximize}};
  definition.sampler = sampler;
  return definition;
}

Definition grid_definition() {
  Definition definition = definition_of(SamplerKind::grid);
  definition.space = *Space::create({{"a", NumberRange{.low = 0, .high = 9, .is_integer = true}, {}},
                                     {"b", NumberRange{.low = 0, .high = 9, .is_integer = true}, {}}});
  return definition;
}

Study create(const TempDirectory& folder, Definition definition) {
  auto study = Study::create(folder / "study", std::move(definition));
  EXPECT_TRUE(study.ok()) << study.status().to_string();
  return *std::move(study);
}

// Runs `work` in a new process, whose exit status is 0 unless an expectation failed.
template <typename Work>
pid_t fork_worker(const Work& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  work();
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

std::vector<Path> journals(const Study& study) {
  std::vector<Path> paths;
  const auto names = list_directory(study.folder() / "journal");
  for (const std::string& name : *names) paths.push_back(study.folder() / "journal" / name);
  return paths;
}

TEST(Journal, records_are_read_back_unchanged) {
  const std::vector<Record> records = {
      TrialStart{7, 1, 1764283749.125, "grid 12", {0.1, kInactive, -3e-300}},
      SkippedPoints{7, 12},
      TrialReport{7, 1, -5, std::nan(""), {0.5, 1}},
      TrialEnd{7, 1, 2e9, TrialState::failed, {}, "out of memory: 50 % # of\nit \xff"},
      TrialEnd{8, 0, 0.1, TrialState::complete, {0.1, -1e308}, ""},
  };
  for (const Record& record : records) {
    std::string line = line_of(record);
    ASSERT_EQ(line.find('\n'), line.size() - 1) << line;
    line.pop_back();
    const auto read = record_of(line);
    ASSERT_TRUE(read.has_value()) << line;
    EXPECT_EQ(line_of(*read), line + "\n");
  }
}

TEST(Journal, a_changed_byte_is_found) {
  std::string line = line_of(TrialEnd{12, 0, 1764283749.5, TrialState::complete, {0.9375}, "fine"});
  line.pop_back();
  for (std::size_t i = 0; i < line.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = line;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      // Digits of the CRC may be in upper case.
      if (to_lower(changed) == line) continue;
      EXPECT_FALSE(record_of(changed).has_value()) << changed;
    }
  }
  for (std::size_t length = 0; length < line.size(); ++length)
    EXPECT_FALSE(record_of(line.substr(0, length)));
}

TEST(Study, is_created_once_and_opened_by_its_folder) {
  TempDirectory folder;
  const Study study = create(folder, definition_of(SamplerKind::random));
  EXPECT_EQ(Study::create(folder / "study", definition_of(SamplerKind::random)).status().code(),
            Code::exists);
  const auto again = Study::open(folder / "study");
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(to_json(again->definition()), to_json(study.definition()));
  EXPECT_EQ(Study::open(folder / "other").status().code(), Code::not_found);
}

TEST(Study, one_of_several_processes_creates_it) {
  for (int round = 0; round < 10; ++round) {
    TempDirectory folder;
    std::vector<pid_t> children;
    for (int worker = 0; worker < 4; ++worker) {
      children.push_back(fork_worker([&] {
        auto created = Study::create(folder / "study", definition_of(SamplerKind::random));
        EXPECT_TRUE(created.ok() || created.error().code() == Code::exists) << created.status().to_string();
        if (!created.ok()) created = Study::open(folder / "study");
        EXPECT_TRUE(created->ask().ok());
        const Study again = *Study::open(folder / "study");
        EXPECT_EQ(again.definition().id, created->definition().id);
      }));
    }
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    const Study study = *Study::open(folder / "study");
    EXPECT_EQ(study.trials().size(), 4);
    EXPECT_EQ(*list_directory(folder / "study"),
              (std::vector<std::string>{"claims", "journal", "study.json"}));
  }
}

TEST(Study, definitions_are_read_back_unchanged) {
  Definition definition = definition_of(SamplerKind::tpe);
  definition.id = "x";
  definition.seed = 18446744073709551615u;
  definition.space = *Space::create({{"kind", Choices{{std::string("sgd"), true, 0.5}}, {}},
                                     {"momentum", NumberRange{.low = 0, .high = 0.9, .step = 0.1},
                                      Activation{"kind", {Value(std::string("sgd"))}}}},
                                    {*Expression::parse("momentum < 0.8 or kind == true")});
  definition.pruner = {.kind = PrunerKind::hyperband};
  definition.pruner.max_resource = 27;
  definition.first = {{0, 0.3}, {1, kInactive}};
  const auto read = definition_from_json(to_json(definition), "study.json");
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(to_json(*read), to_json(definition));
}

TEST(Study, only_a_study_with_seeds_has_their_version) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::random);
  EXPECT_THAT(to_json(definition), HasSubstr("\"version\": 1"));
  definition.seeds = {3, 4};
  definition.seed_average = SeedAverage::median;
  const std::string text = to_json(definition);
  EXPECT_THAT(text, HasSubstr("\"version\": 3"));
  const auto read = definition_from_json(text, "study.json");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->seeds, definition.seeds);
  EXPECT_EQ(read->seed_average, SeedAverage::median);
  std::string damaged = text;
  damaged.replace(damaged.find("\"median\""), 8, "\"middle\"");
  EXPECT_EQ(definition_from_json(damaged, "study.json").status().code(), Code::corrupt);
}

TEST(Study, damaged_definitions_are_refused) {
  TempDirectory folder;
  const Study study = create(folder, definition_of(SamplerKind::random));
  const Path file = folder / "study/study.json";
  const std::string text = *read_file(file);
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"maximize\"", "\"upwards\""},
                                                        {"\"space\"", "\"spice\""},
                                                        {"\"min\": 0.0001", "\"min\": -1.0"},
                                                        {"\"seed\": 0", "\"seed\": -1"},
                                                        {text, text.substr(0, text.size() / 2)},
                                                        {text, ""}}) {
    std::string changed = text;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    ASSERT_TRUE(write_file(file, changed.replace(changed.find(from), from.size(), to)).ok());
    EXPECT_EQ(Study::open(folder / "study").status().code(), Code::corrupt) << to;
  }
  std::string newer = text;
  newer.replace(newer.find("\"version\": 1"), 12, "\"version\": 4");
  ASSERT_TRUE(write_file(file, newer).ok());
  EXPECT_THAT(Study::open(folder / "study").status().to_string(),
              HasSubstr("version 4 of a study (this Stoker reads up to 3)"));
}

std::vector<StudyTrial> prior_trials() {
  std::vector<StudyTrial> trials;
  for (std::uint64_t i = 0; i < 30; ++i) {
    StudyTrial trial{.number = i, .state = TrialState::complete, .origin = "other study"};
    const double lr = std::pow(10.0, -4 + static_cast<double>(i) * 4 / 29);
    trial.point = {lr, static_cast<double>(i % 3)};
    trial.values = {-std::abs(std::log10(lr) + 2)};
    trials.push_back(std::move(trial));
  }
  return trials;
}

TEST(Study, trials_of_other_studies_guide_the_sampler_of_each_process) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::tpe);
  definition.warm_start = {"other.study"};
  auto study = Study::create(folder / "study", definition, prior_trials());
  ASSERT_TRUE(study.ok()) << study.status().to_string();
  EXPECT_THAT(study->trials(), IsEmpty());
  Study again = *Study::open(folder / "study");
  ASSERT_EQ(again.prior().size(), 30);
  EXPECT_EQ(again.prior()[29].values, prior_trials()[29].values);
  int near_optimum = 0;
  for (int i = 0; i < 10; ++i) {
    const auto proposal = *again.ask();
    near_optimum += std::abs(std::log10(proposal->point[0]) + 2) < 0.5 ? 1 : 0;
    ASSERT_TRUE(again.tell(proposal->number, {TrialState::complete, {0.5}, ""}).ok());
  }
  EXPECT_GE(near_optimum, 7);  // a random sampler: 2.5
  ASSERT_TRUE(study->refresh().ok());
  EXPECT_EQ(study->trials().size(), 10);
}

TEST(Study, points_of_other_studies_are_skipped) {
  for (const bool skip_tried : {true, false}) {
    TempDirectory folder;
    Definition definition = definition_of(SamplerKind::grid);
    definition.space = *Space::create({{"width", Choices{{std::int64_t{16}, std::int64_t{32}}}, {}}});
    definition.warm_start = {"other.study"};
    definition.skip_tried = skip_tried;
    StudyTrial known{.state = TrialState::complete, .origin = "old.csv", .point = {0}, .values = {0.5}};
    auto created = Study::create(folder / "study", definition, {&known, 1});
    ASSERT_TRUE(created.ok()) << created.status().to_string();
    Study study = *std::move(created);
    EXPECT_EQ((*study.ask())->point, Coordinates{skip_tried ? 1.0 : 0.0});
    EXPECT_EQ((*study.ask()).has_value(), !skip_tried);
  }
}

TEST(Study, damaged_trials_of_other_studies_are_an_error) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::tpe);
  definition.warm_start = {"other.study"};
  const Study study = *Study::create(folder / "study", definition, prior_trials());
  const Path file = folder / format("study/prior-{}.log", study.definition().id);
  const std::string text = *read_file(file);
  for (const std::string& damaged :
       {text.substr(0, text.size() - 1), text.substr(text.find('\n') + 1), text + text, std::string()}) {
    ASSERT_TRUE(write_file(file, damaged).ok());
    EXPECT_EQ(Study::open(folder / "study").status().code(), Code::corrupt);
  }
  ASSERT_TRUE(remove_file(file).ok());
  EXPECT_EQ(Study::open(folder / "study").status().code(), Code::not_found);
}

TEST(Study, trials_are_asked_and_ended) {
  TempDirectory folder;
  Study study = create(folder, definition_of(SamplerKind::random));
  const auto first = study.ask();
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_EQ((*first)->number, 0);
  EXPECT_EQ((*first)->values.size(), 2);
  ASSERT_TRUE(study.tell(0, {TrialState::complete, {0.75}, ""}).ok());
  EXPECT_EQ(study.tell(0, {TrialState::complete, {0.8}, ""}).message(),
            "lr-width: trial 0 has ended (complete)");
  EXPECT_EQ(study.tell(3, {}).message(), "lr-width: no trial 3");
  ASSERT_TRUE(study.ask().ok());
  EXPECT_EQ(study.tell(1, {TrialState::complete, {0.5, 0.5}, ""}).message(),
            "lr-width: 2 values for trial 1 (the study has 1 objective)");
  ASSERT_TRUE(study.tell(1, {TrialState::complete, {NAN}, ""}).ok());
  const auto read = Study::open(folder / "study");
  ASSERT_EQ(read->trials().size(), 2);
  EXPECT_THAT(read->trials()[0].values, ElementsAre(0.75));
  EXPECT_EQ(read->trials()[1].state, TrialState::failed);
  EXPECT_EQ(read->trials()[1].message, "val_acc is nan");
}

TEST(Study, a_failed_trial_gets_another_attempt_under_its_number) {
  TempDirectory folder;
  Study study = create(folder, definition_of(SamplerKind::random));
  const Proposal before = **study.ask();
  EXPECT_EQ(study.retry(0).status().message(), "lr-width: trial 0 did not fail (running)");
  ASSERT_TRUE(study.tell(0, {TrialState::failed, {}, "node c3 is down"}).ok());
  Study other = *Study::open(folder / "study");
  const auto again = study.retry(0);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->attempt, 1);
  EXPECT_EQ(again->values, before.values);
  EXPECT_EQ(other.retry(0).status().message(), "lr-width: trial 0 did not fail (running)");
  ASSERT_TRUE(study.tell(0, {TrialState::complete, {0.5}, ""}).ok());
  ASSERT_TRUE(other.refresh().ok());
  ASSERT_EQ(other.trials().size(), 1);
  EXPECT_EQ(other.trials()[0].state, TrialState::complete);
}

TEST(Study, first_points_come_first_and_once) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::random);
  definition.first = {{0.5, 2}, {0.25, 1}};
  Study study = create(folder, definition);
  Study other = *Study::open(folder / "study");
  EXPECT_EQ(to_text((*study.ask())->values), "lr=0.5 width=64");
  EXPECT_EQ(to_text((*other.ask())->values), "lr=0.25 width=32");
  ASSERT_TRUE(study.ask().ok());
  EXPECT_EQ(study.find(2)->origin, "random");
}

TEST(Study, a_tried_point_is_skipped_until_all_were_tried) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::tpe);
  definition.space =
      *Space::create({{"width", Choices{{std::int64_t{1}, std::int64_t{2}, std::int64_t{3}}}, {}},
                      {"deep", Choices{{true, false}}, {}}});
  Study study = create(folder, definition);
  std::set<std::string> points;
  for (int i = 0; i < 6; ++i) {
    const auto proposal = study.ask();
    ASSERT_TRUE(proposal.ok() && *proposal);
    points.insert(to_text((*proposal)->values));
    ASSERT_TRUE(study.tell((*proposal)->number, {TrialState::complete, {1.0}, ""}).ok());
  }
  EXPECT_EQ(points.size(), 6);
  const auto skipped_of = [](const Study& one) {
    std::uint64_t count = 0;
    for (const StudyTrial& trial : one.trials()) count += trial.skipped;
    return count;
  };
  EXPECT_GT(skipped_of(study), 0);
  EXPECT_EQ(skipped_of(*Study::open(folder / "study")), skipped_of(study));
  const auto seventh = study.ask();
  ASSERT_TRUE(seventh.ok());
  EXPECT_FALSE(seventh->has_value());
}

TEST(Study, a_grid_counts_each_point_that_was_tried_once) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::grid);
  definition.space = *Space::create({{"a", NumberRange{.low = 0, .high = 3, .is_integer = true}, {}}});
  definition.first = {{0}, {2}};
  Study study = create(folder, definition);
  std::vector<std::string> points;
  while (const auto proposal = *study.ask()) points.push_back(to_text(proposal->values));
  EXPECT_THAT(points, ElementsAre("a=0", "a=2", "a=1", "a=3"));
  EXPECT_EQ(study.find(2)->skipped, 1);
  EXPECT_EQ(study.find(3)->skipped, 1);
  EXPECT_EQ(Study::open(folder / "study")->find(3)->skipped, 1);
}

TEST(Study, the_pruner_compares_with_other_workers_trials) {
  TempDirectory folder;
  Definition definition = definition_of(SamplerKind::random);
  definition.pruner = {.kind = PrunerKind::asha};
  definition.pruner.min_resource = 1;
  definition.pruner.reduction_factor = 2;
  Study study = create(folder, definition);
  Study other = *Study::open(folder / "study");
  ASSERT_TRUE(study.ask().ok());
  EXPECT_EQ(*study.report(0, 1, 0.9), false);
  ASSERT_TRUE(other.ask().ok());
  EXPECT_EQ(*other.report(1, 1, 0.5), true);
  ASSERT_TRUE(other.tell(1, {TrialState::pruned, {}, ""}).ok());
  ASSERT_TRUE(study.refresh().ok());
  EXPECT_EQ(study.find(1)->state, TrialState::pruned);
  EXPECT_THAT(study.find(1)->rungs, ElementsAre(0.5));
  EXPECT_THAT(study.find(0)->rungs, ElementsAre(0.9));
}

TEST(Study, processes_divide_a_grid_without_overlap) {
  TempDirectory folder;
  create(folder, grid_definition());
  std::vector<pid_t> children;
  for (int worker = 0; worker < 4; ++worker) {
    children.push_back(fork_worker([&] {
      Study study = *Study::open(folder / "study");
      for (auto proposal = study.ask(); proposal.ok() && *proposal; proposal = study.ask())
        EXPECT_TRUE(study.tell((*proposal)->number, {TrialState::complete, {1.0}, ""}).ok());
    }));
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Study study = *Study::open(folder / "study");
  std::set<std::string> points;
  for (const StudyTrial& trial : study.trials()) {
    EXPECT_EQ(trial.state, TrialState::complete);
    points.insert(to_text(study.definition().space.decode(trial.point)));
  }
  EXPECT_EQ(study.trials().size(), 100);
  EXPECT_EQ(points.size(), 100);
  EXPECT_EQ(study.damaged(), 0);
  EXPECT_LE(journals(study).size(), 4);
}

// A child of a process that has a journal open must not write to it.
TEST(Study, a_forked_process_gets_its_own_journal) {
  TempDirectory folder;
  Study study = create(folder, definition_of(SamplerKind::random));
  ASSERT_TRUE(study.ask().ok());
  const pid_t child = fork_worker([&] {
    EXPECT_TRUE(study.ask().ok());
    EXPECT_TRUE(study.tell(1, {TrialState::complete, {1.0}, ""}).ok());
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(journals(study).size(), 2);
  ASSERT_TRUE(study.tell(0, {TrialState::complete, {0.5}, ""}).ok());
  EXPECT_EQ(study.trials().size(), 2);
}

TEST(Study, kill_9_loses_no_ended_trial) {
  TempDirectory folder;
  create(folder, definition_of(SamplerKind::random));
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = fork_worker([&] {
      Study study = *Study::open(folder / "study");
      for (;;) {
        const Proposal proposal = **study.ask();
        if (!study.tell(proposal.number, {TrialState::complete, {1.0}, ""}).ok()) ::_exit(1);
        if (::write(ends[1], &proposal.number, sizeof proposal.number) < 0) ::_exit(1);
      }
    });
    ::close(ends[1]);
    TrialNumber last = 0;
    for (int count = 0; count < 10 + round; ++count)
      ASSERT_EQ(::read(ends[0], &last, sizeof last), static_cast<ssize_t>(sizeof last));
    ::kill(child, SIGKILL);
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    const Study study = *Study::open(folder / "study");
    EXPECT_EQ(study.damaged(), 0);
    for (const StudyTrial& trial : study.trials()) {
      if (trial.number <= last && trial.number + 10 > last) {
        EXPECT_EQ(trial.state, TrialState::complete) << trial.number;
      }
    }
    ASSERT_NE(study.find(last), nullptr);
  }
}

TEST(Study, an_unfinished_line_is_cut_off_and_damage_is_counted) {
  TempDirectory folder;
  {
    Study study = create(folder, definition_of(SamplerKind::random));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(study.ask().ok());
      ASSERT_TRUE(study.tell(static_cast<TrialNumber>(i), {TrialState::complete, {1.0}, ""}).ok());
    }
  }
  Study study = *Study::open(folder / "study");
  const Path journal = journals(study)[0];
  std::string text = *read_file(journal);
  text[text.find("end 1 ") + 4] = '2';
  ASSERT_TRUE(write_file(journal, text + "start 9 0 17").ok());
  Study damaged = *Study::open(folder / "study");
  EXPECT_EQ(damaged.damaged(), 1);
  EXPECT_EQ(damaged.first_damaged(), journal.string());
  EXPECT_EQ(damaged.find(1)->state, TrialState::running);
  EXPECT_EQ(damaged.find(9), nullptr);
  ASSERT_TRUE(damaged.ask().ok());
  const Study after = *Study::open(folder / "study");
  EXPECT_EQ(after.damaged(), 1);
  EXPECT_EQ(after.trials().size(), 4);
}

// A process was killed between the claim of a cell and the start of its trial.
void make_old(const Path& claim) {
  const timespec old[2] = {{.tv_sec = 1'700'000'000, .tv_nsec = 0}, {.tv_sec = 1'700'000'000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, claim.c_str(), old, 0), 0);
}

TEST(Study, an_abandoned_start_does_not_cost_a_trial) {
  TempDirectory folder;
  Definition definition = grid_definition();
  definition.most_trials = 2;
  Study study = create(folder, definition);
  const Path claim = folder / "study/claims/start-0";
  ASSERT_TRUE(write_file(claim, "").ok());
  ASSERT_TRUE((*study.ask()).has_value());  // start-1
  ASSERT_FALSE((*study.ask()).has_value());
  EXPECT_TRUE(study.is_undecided());
  make_old(claim);
  make_old(folder / "study/claims/start-1");
  ASSERT_TRUE((*study.ask()).has_value());
  EXPECT_FALSE((*study.ask()).has_value());
  EXPECT_FALSE(study.is_undecided());
}

TEST(Study, an_abandoned_retry_is_possible_after_a_minute) {
  TempDirectory folder;
  Study study = create(folder, grid_definition());
  ASSERT_TRUE((*study.ask()).has_value());
  ASSERT_TRUE(study.tell(0, {TrialState::failed, {}, ""}).ok());
  const Path claim = folder / "study/claims/0.1";
  ASSERT_TRUE(write_file(claim, "").ok());
  EXPECT_EQ(study.retry(0).status().code(), Code::exists);
  make_old(claim);
  EXPECT_EQ(study.retry(0)->attempt, 1U);
}

TEST(Study, an_abandoned_cell_is_tried_after_a_minute) {
  TempDirectory folder;
  Study study = create(folder, grid_definition());
  const Path claim = folder / "study/claims/grid-0";
  ASSERT_TRUE(write_file(claim, "").ok());
  EXPECT_EQ(to_text((*study.ask())->values), "a=0 b=1");
  make_old(claim);
  EXPECT_EQ(to_text((*study.ask())->values), "a=0 b=0");
  EXPECT_EQ(to_text((*study.ask())->values), "a=0 b=2");
}

TEST(Study, the_earlier_of_two_endings_counts) {
  TempDirectory folder;
  Study study = create(folder, definition_of(SamplerKind::random));
  ASSERT_TRUE(study.ask().ok());
  // Two workers ended the trial before they read of it.
  const std::string late = line_of(TrialEnd{0, 0, 2000, TrialState::complete, {0.25}, ""});
  const std::string early = line_of(TrialEnd{0, 0, 1000, TrialState::complete, {0.75}, ""});
  ASSERT_TRUE(write_file(study.folder() / "journal/a.log", late).ok());
  ASSERT_TRUE(write_file(study.folder() / "journal/z.log", early).ok());
  ASSERT_TRUE(study.refresh().ok());
  EXPECT_THAT(study.trials()[0].values, ElementsAre(0.75));
}

}  // namespace
}  // namespace stoker::sweep
