#include "job/site/site.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "job/site/describe.h"
#include "job/site/find.h"
#include "job/site/site_check.h"

namespace stoker::job {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kSmall =
    "name: here\n"
    "what: a cluster\n"
    "sources:\n"
    "  page: {url: \"https://example.org\", date: 2026-04-18}\n";

std::string problem(std::string_view more) {
  return read_site("here.yaml", std::string(kSmall) + std::string(more)).status().to_string();
}

Site site_of(std::string_view more) {
  auto site = read_site("here.yaml", std::string(kSmall) + std::string(more));
  EXPECT_TRUE(site.ok()) << site.status().to_string();
  return site.ok() ? *site : Site{};
}

TEST(Site, reports_errors_with_position_and_suggestion) {
  EXPECT_EQ(problem("limits: {tiem: 1h, from: page}\n"),
            "here.yaml:5:10: unknown key 'tiem'; did you mean 'time'?\n"
            "    5 | limits: {tiem: 1h, from: page}\n"
            "      |          ^");
  EXPECT_THAT(problem("limits: {time: 1 hour, from: page}\n"), HasSubstr("here.yaml:5:16: limits.time: "));
  EXPECT_THAT(problem("modules: {system: tcl, from: page}\n"), HasSubstr("here.yaml:5:19: modules.system: "));
}

TEST(Site, every_group_needs_a_source) {
  EXPECT_THAT(problem("limits: {time: 1h}\n"),
              HasSubstr("limits.from is missing: Key of `sources` with the evidence."));
  EXPECT_THAT(problem("partitions: {gpu: {time: 1h}}\n"), HasSubstr("partitions.gpu.from is missing"));
  EXPECT_THAT(problem("limits: {time: 1h, from: pgae}\n"),
              HasSubstr("here.yaml:5:26: limits.from: unknown source 'pgae'; did you mean 'page'?"));
  EXPECT_THAT(read_site("a", "name: a\nwhat: b\nsources: {p: {url: x}}\n").status().to_string(),
              HasSubstr("sources.p.date is missing"));
  EXPECT_THAT(read_site("a", "name: a\nwhat: b\nsources: {p: {url: x, date: today}}\n").status().to_string(),
              HasSubstr("sources.p.date: 'today' is not a date (such as 2026-04-18)"));
  EXPECT_THAT(problem("network: {first_port: 9000, last_port: 8000, from: page}\n"),
              HasSubstr("network.last_port: 8000 is below network.first_port, 9000"));
}

TEST(Site, a_written_file_reads_back_equal) {
  const Site site = site_of(
      "detect: {clusters: [Here], hosts: [\"login*\"], from: page}\n"
      "limits: {time: 168h, jobs: 1000, from: page}\n"
      "account: {needed: true, what: \"def-<PI>: yours\", from: page}\n"
      "partitions: {gpu: {time: 20h, default_time: 10m, default_qos: long, default_for: gpu, "
      "what: \"a # b\", from: page}}\n"
      "qos: {long: {partitions: [gpu], time: 100h, nodes: 2, gpus: 8, jobs: 9, what: long jobs, from: "
      "page}}\n"
      "nodes: {gpu: {gpus: 4, cores_per_gpu: 12, memory: 510000MiB, options: [\"--gpus-per-node=a100:N\"], "
      "from: page}}\n"
      "storage: {scratch: {path: $SCRATCH, purge_days: 60, quota: 20TB, from: page}}\n"
      "opinions: {conda: {what: no conda, cure: virtualenv, from: page}}\n"
      "network: {internet: false, first_port: 9000, last_port: 9999, from: page}\n");
  EXPECT_THAT(site.clusters, ElementsAre("here"));
  const auto again = read_site("again", site_text(site));
  ASSERT_TRUE(again.ok()) << again.status().to_string() << site_text(site);
  EXPECT_EQ(*again, site);
}

Job job_of(std::string_view text) {
  TempDirectory folder;
  STOKER_CHECK(write_file(folder / "job.yaml", "run: x\n" + std::string(text)).ok());
  auto job = load(folder / "job.yaml", {.current_directory = folder.path()});
  STOKER_CHECK(job.ok());
  return *job;
}

using Variables = std::map<std::string, std::string, std::less<>>;

std::vector<Finding> findings(std::string_view job, const Site& site, const Variables& variables = {}) {
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return check_against_site(site_request(job_of(job), environment), site);
}

std::vector<std::string> texts(const std::vector<Finding>& found) {
  std::vector<std::string> lines;
  for (const Finding& finding : found) {
    lines.push_back(format("{}: {}{}", to_text(finding.level), finding.what.english(),
                           finding.cure.empty() ? "" : " / " + finding.cure.english()));
  }
  return lines;
}
std::vector<std::string> judged(std::string_view job, const Site& site, const Variables& variables = {}) {
  return texts(findings(job, site, variables));
}

TEST(Site, reports_forbidden_requests) {
  const Site site = site_of(
      "limits: {time: 168h, shortest: 1h, nodes: 64, from: page}\n"
      "partitions: {gpu: {time: 20h, default_time: 10m, nodes: 4, from: page}}\n"
      "nodes: {gpu: {gpus: 4, cores_per_gpu: 12, from: page}}\n");
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu}\n", site),
              ElementsAre("job: resources.time: 1d6h is over the limit of partition 'gpu' (20h, site here) / "
                          "chain: {until: done, time_per_link: 20h}"));
  EXPECT_THAT(judged("resources: {time: 200h}\n", site),
              ElementsAre("job: resources.time: 8d8h is over the limit of every job (7d, site here) / "
                          "chain: {until: done, time_per_link: 7d}"));
  EXPECT_THAT(
      judged("resources: {time: 10m, nodes: 5}\nslurm: {partition: gpu}\n", site),
      ElementsAre(
          "advice: resources.time: 10m requested, but jobs should last 1h at least (site here)",
          "job: resources.nodes: 5 requested, but partition 'gpu' allows at most 4 per job (site here)"));
  EXPECT_THAT(
      judged("slurm: {partition: gpu}\n", site),
      ElementsAre("time: resources.time: not set; the default of partition 'gpu' is 10m (site here)"));
  EXPECT_THAT(
      judged("resources: {time: 2h, gpus_per_rank: 1, cpus_per_rank: 24}\n", site),
      ElementsAre(
          "advice: resources.cpus_per_rank: 24 with 1 GPU, whose fair share is 12 at most (site here) / "
          "resources: {cpus_per_rank: 12}"));
  EXPECT_THAT(judged("resources: {time: 2h}\nslurm: {partition: other}\n", site), IsEmpty());
}

TEST(Site, reports_a_shape_that_no_node_has) {
  const Site site = site_of(
      "nodes:\n"
      "  gpu: {gpus: 4, cores: 48, memory: 500GB, from: page}\n"
      "  cpu: {cores: 64, memory: 250GB, from: page}\n");
  EXPECT_THAT(judged("resources: {ranks_per_node: 8, gpus_per_rank: 1}\n", site),
              ElementsAre("job: resources.gpus_per_rank: 8 on each node, but no node has more than 4 (site "
                          "here) / nodes: 2, GPUs on each: 4"));
  EXPECT_THAT(judged("resources: {ranks_per_node: 8, cpus_per_rank: 8}\n", site), IsEmpty());
  EXPECT_THAT(judged("resources: {ranks_per_node: 4, gpus_per_rank: 1, cpus_per_rank: 16}\n", site),
              ElementsAre("job: resources.cpus_per_rank: 64 cores on each node, but no node has more than 48 "
                          "(site here)"));
  EXPECT_THAT(judged("resources: {memory_per_node: 600GB}\n", site),
              ElementsAre("job: resources.memory_per_node: 600 GB on each node, but jobs get 500 GB at most "
                          "(site here)"));
}

TEST(Site, reports_a_missing_account) {
  const Site site = site_of("account: {needed: true, what: def-<PI>, command: sshare -U, from: page}\n");
  EXPECT_THAT(judged("", site),
              ElementsAre("job: slurm.account: not set, but site here requires one: def-<PI> / "
                          "sshare -U lists your accounts; slurm: {account: NAME}"));
  EXPECT_THAT(judged("slurm: {account: def-x}\n", site), IsEmpty());
  EXPECT_THAT(judged("", site, {{"SBATCH_ACCOUNT", "def-x"}}), IsEmpty());
}

constexpr std::string_view kWithQos =
    "limits: {jobs: 100, from: page}\n"
    "partitions: {gpu: {time: 20h, nodes: 4, from: page}, small: {time: 20h, from: page}}\n"
    "qos:\n"
    "  long: {partitions: [gpu], time: 100h, nodes: 1, from: page}\n"
    "  large: {partitions: [gpu], nodes: 64, from: page}\n";

TEST(Site, a_qos_overrides_the_limits_of_its_partition) {
  const Site site = site_of(kWithQos);
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu}\n", site),
              ElementsAre("job: resources.time: 1d6h is over the limit of partition 'gpu' (20h, site here) / "
                          "slurm: {qos: long}"));
  EXPECT_THAT(
      judged("resources: {time: 30h}\nslurm: {partition: small}\n", site),
      ElementsAre("job: resources.time: 1d6h is over the limit of partition 'small' (20h, site here) / "
                  "chain: {until: done, time_per_link: 20h}"));
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu, qos: long}\n", site), IsEmpty());
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu}\n", site, {{"SBATCH_QOS", "long"}}),
              IsEmpty());
  EXPECT_THAT(
      judged("resources: {time: 101h, nodes: 2}\nslurm: {partition: gpu, qos: long}\n", site),
      ElementsAre("job: resources.time: 4d5h is over the limit of QoS 'long' (4d4h, site here) / "
                  "chain: {until: done, time_per_link: 4d4h}",
                  "job: resources.nodes: 2 requested, but QoS 'long' allows at most 1 per job (site here)"));
  EXPECT_THAT(judged("resources: {time: 2h, nodes: 9}\nslurm: {partition: gpu, qos: large}\n", site),
              IsEmpty());
  // An unknown QoS is not judged.
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu, qos: other}\n", site), IsEmpty());
}

constexpr std::string_view kWithDefaultQos =
    "partitions:\n"
    "  gpu: {time: 100h, nodes: 64, default_qos: normal, default_for: gpu, from: page}\n"
    "  cpu: {time: 10h, default_for: cpu, from: page}\n"
    "qos:\n"
    "  long: {partitions: [gpu], time: 100h, gpus: 8, from: page}\n"
    "  normal: {partitions: [gpu], time: 20h, gpus: 16, jobs: 9, from: page}\n";

TEST(Site, a_job_without_a_qos_is_checked_against_the_default_of_its_partition) {
  const Site site = site_of(kWithDefaultQos);
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu}\n", site),
              ElementsAre("job: resources.time: 1d6h is over the limit of the default QoS 'normal' (20h, "
                          "site here) / slurm: {qos: long}"));
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu, qos: long}\n", site), IsEmpty());
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {partition: gpu, qos: other}\n", site), IsEmpty());
  EXPECT_THAT(judged("resources: {time: 20h}\nslurm: {partition: gpu}\n", site), IsEmpty());
  // The limit of nodes is the partition's, because the QoS has none.
  EXPECT_THAT(judged("resources: {time: 2h, nodes: 65}\nslurm: {partition: gpu}\n", site),
              ElementsAre("job: resources.nodes: 65 requested, but partition 'gpu' allows at most 64 per job "
                          "(site here)"));
}

TEST(Site, a_job_without_a_partition_is_checked_against_the_default_for_its_kind) {
  const Site site = site_of(kWithDefaultQos);
  EXPECT_THAT(judged("resources: {time: 30h}\n", site),
              ElementsAre("job: resources.time: 1d6h is over the limit of partition 'cpu' (10h, site here) / "
                          "chain: {until: done, time_per_link: 10h}"));
  EXPECT_THAT(judged("resources: {time: 30h, gpus_per_rank: 1}\n", site),
              ElementsAre(HasSubstr("over the limit of the default QoS 'normal' (20h, site here)")));
  // A constraint may select nodes of a different partition.
  EXPECT_THAT(judged("resources: {time: 30h}\nslurm: {extra: [--constraint=new]}\n", site), IsEmpty());
  EXPECT_THAT(judged("resources: {time: 30h}\n",
                     site_of("partitions: {any: {time: 4h, default_for: all, from: page}}\n")),
              ElementsAre(HasSubstr("over the limit of partition 'any' (4h, site here)")));
}

TEST(Site, a_qos_limits_the_gpus_of_a_job_and_the_jobs_of_a_user) {
  const Site site = site_of(kWithDefaultQos);
  const auto found = [&](std::string_view nodes, std::string_view qos) {
    return judged(format("resources: {{time: 2h, nodes: {}, ranks_per_node: 4, gpus_per_rank: 1}}\n"
                         "slurm: {{partition: gpu{}}}\n",
                         nodes, qos),
                  site);
  };
  EXPECT_THAT(found("4", ""), IsEmpty());
  EXPECT_THAT(found("5", ""),
              ElementsAre("job: resources.gpus_per_rank: 20 requested in total, but the default QoS 'normal' "
                          "allows at most 16 per job (site here)"));
  EXPECT_THAT(found("3", ", qos: long"),
              ElementsAre("job: resources.gpus_per_rank: 12 requested in total, but QoS 'long' allows at "
                          "most 8 per job (site here)"));
  // The longer QoS is no cure for a job with more GPUs than it allows.
  EXPECT_THAT(judged("resources: {time: 30h, nodes: 3, ranks_per_node: 4, gpus_per_rank: 1}\n", site),
              ElementsAre(HasSubstr(" / chain: {until: done, time_per_link: 20h}")));
  SiteRequest request{.written = RequestSource::batch_script, .has_time = true, .time = Duration(2h)};
  request.partition = "gpu";
  request.jobs = 9;
  EXPECT_THAT(texts(check_against_site(request, site)), IsEmpty());
  request.jobs = 10;
  EXPECT_THAT(texts(check_against_site(request, site)),
              ElementsAre("job: --array: 10 jobs, but the default QoS 'normal' allows a user at most 9 at a "
                          "time (site here)"));
}

TEST(Site, an_unknown_default_qos_is_an_error) {
  EXPECT_THAT(
      problem("partitions: {gpu: {default_qos: lnog, from: page}}\n"
              "qos: {long: {time: 100h, from: page}}\n"),
      HasSubstr("here.yaml:5:33: partitions.gpu.default_qos: unknown QoS 'lnog'; did you mean 'long'?"));
  EXPECT_THAT(problem("partitions: {gpu: {default_for: gpus, from: page}}\n"),
              HasSubstr("here.yaml:5:33: partitions.gpu.default_for: "));
}

TEST(Site, a_chain_is_checked_by_the_time_of_a_link) {
  const Site site = site_of(kWithQos);
  EXPECT_THAT(judged("resources: {time: 90h}\nslurm: {partition: small}\n"
                     "chain: {until: done, time_per_link: 20h}\n",
                     site),
              IsEmpty());
  EXPECT_THAT(
      judged("slurm: {partition: small}\nchain: {until: done, time_per_link: 21h}\n", site),
      ElementsAre("job: chain.time_per_link: 21h is over the limit of partition 'small' (20h, site here) / "
                  "chain: {until: done, time_per_link: 20h}"));
}

TEST(Site, findings_include_the_script_line_and_the_source_of_the_limit) {
  const Site site = site_of(kWithQos);
  SiteRequest request{
      .written = RequestSource::batch_script, .has_time = true, .time = Duration(30h), .nodes = 5};
  request.partition = "small,gpu";
  request.jobs = 101;
  request.where = {{"--time", "train.sh:3"}, {"--nodes", "--sbatch"}, {"--array", "train.sh:4"}};
  const std::vector<Finding> found = check_against_site(request, site);
  EXPECT_THAT(
      texts(found),
      ElementsAre("job: --time: 1d6h is over the limit of partition 'small' (20h, site here) / "
                  "#SBATCH --time=20:00:00",
                  "job: --nodes: 5 requested, but partition 'gpu' allows at most 4 per job (site here)",
                  "job: --array: 101 jobs, but a user may have 100 at a time (site here)"));
  EXPECT_EQ(found[0].evidence[0].where, "train.sh:3");
  EXPECT_EQ(found[0].evidence[1].where, "https://example.org");
  EXPECT_EQ(found[0].evidence[1].text, "2026-04-18");
  EXPECT_EQ(found[1].evidence[0].where, "--sbatch");
}

// A folder of profiles as the command finds them.
TEST(Site, a_constraint_selects_the_partition_of_its_nodes) {
  Site site;
  site.name = "jz";
  site.partitions["gpu_p5"].time = 20h;
  site.partitions["gpu_p13"].time = 100h;
  SiteNode node;
  node.partition = "gpu_p5";
  node.options = {"-C a100", "--hint=nomultithread"};
  site.nodes["a100"] = node;
  const auto found = [&](const std::string& slurm) {
    return judged(format("resources: {{time: 30h}}\nslurm: {{{}}}\n", slurm), site);
  };
  EXPECT_THAT(found("extra: [--constraint=a100]"),
              ElementsAre(HasSubstr("is over the limit of partition 'gpu_p5' (20h, site jz)")));
  EXPECT_THAT(found("extra: [-Ca100]"), ElementsAre(HasSubstr("partition 'gpu_p5'")));
  EXPECT_THAT(found("extra: [--constraint=v100-32g]"), IsEmpty());
  EXPECT_THAT(found("partition: gpu_p13, extra: [--constraint=a100]"), IsEmpty());
  const auto option = [](std::string_view name) -> std::optional<GivenOption> {
    if (name == "--time") return GivenOption{"30:00:00", "a.sh:2"};
    if (name == "--constraint") return GivenOption{"a100", "a.sh:3"};
    return std::nullopt;
  };
  const auto in_script =
      check_against_site(site_request(option, "a.sh", [](std::string_view) { return std::nullopt; }), site);
  ASSERT_EQ(in_script.size(), 1u);
  EXPECT_EQ(in_script[0].what, "--time: 1d6h is over the limit of partition 'gpu_p5' (20h, site jz)");
}

class Profiles {
 public:
  Profiles() {
    STOKER_CHECK(make_directories(places.shipped).ok() && make_directories(places.own).ok());
    add(places.shipped / "generic.yaml", "name: generic\nwhat: any\n");
  }
  static void add(const Path& file, const std::string& text) { STOKER_CHECK(write_file(file, text).ok()); }
  std::string found(std::string_view name, const ClusterIdentity& identity = {}) const {
    const auto site = find_site(places, name, identity);
    if (!site.ok()) return site.status().to_string();
    return site->requested_name.empty() ? site->site.name
                                        : format("{} for {}", site->site.name, site->requested_name);
  }

 private:
  TempDirectory box_;

 public:
  SiteSearchPath places{.enforced = box_ / "site.yaml", .own = box_ / "own", .shipped = box_ / "shipped"};
};

constexpr const char* kNew =
    "name: new\nwhat: New\nsources: {p: {url: x, date: 2026-01-01}}\n"
    "detect: {clusters: [new], hosts: [\"new*\"], from: p}\nlimits: {time: 10h, from: p}\n";

TEST(Site, is_found_by_name_by_cluster_and_by_host) {
  Profiles profiles;
  Profiles::add(profiles.places.shipped / "new.yaml", kNew);
  Profiles::add(profiles.places.shipped / "old.yaml", "name: old\nwhat: Old\nsuccessor: new\n");
  EXPECT_EQ(profiles.found("new"), "new");
  EXPECT_EQ(profiles.found("old"), "new for old");
  EXPECT_EQ(profiles.found("auto", {.cluster = "NEW", .host = "x"}), "new");
  EXPECT_EQ(profiles.found("auto", {.cluster = "", .host = "new1.site"}), "new");
  EXPECT_EQ(profiles.found("auto", {.cluster = "other", .host = "new1.site"}), "generic");
  EXPECT_EQ(profiles.found("auto"), "generic");
  EXPECT_EQ(profiles.found("nwe"), "site nwe: unknown profile; did you mean 'new'?\n  try: stoker site list");
}

TEST(Site, the_users_file_hides_a_shipped_one_and_a_broken_one_is_reported) {
  Profiles profiles;
  Profiles::add(profiles.places.shipped / "new.yaml", kNew);
  Profiles::add(profiles.places.own / "new.yaml", "name: new\nwhat: Mine\n");
  EXPECT_EQ(find_site(profiles.places, "new", {})->site.what, "Mine");
  Profiles::add(profiles.places.own / "new.yaml", "name: new\nwaht: Mine\n");
  EXPECT_THAT(profiles.found("new"), HasSubstr("new.yaml:2:1: unknown key 'waht'; did you mean 'what'?"));
  EXPECT_THAT(list_sites(profiles.places), SizeIs(2));
  Profiles::add(profiles.places.own / "new.yaml", "name: newer\nwhat: Mine\n");
  EXPECT_THAT(profiles.found("new"), HasSubstr("own/new.yaml: its name is 'newer'"));
}

TEST(Site, administrators_limits_cannot_be_relaxed) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: a file of root's";
  Profiles profiles;
  Profiles::add(profiles.places.own / "new.yaml",
                std::string(kNew) +
                    "partitions: {gpu: {default_qos: mine, from: p}}\n"
                    "qos: {mine: {partitions: [gpu], time: 900h, from: p}}\n");
  Profiles::add(profiles.places.enforced,
                "name: new\nwhat: Ours\nsources: {p: {url: x, date: 2026-01-01}}\n"
                "limits: {time: 2h, nodes: 3, from: p}\npartitions: {gpu: {time: 1h, from: p}}\n"
                "account: {needed: true, from: p}\n");
  for (const char* name : {"auto", "new", "generic"}) {
    const auto found = find_site(profiles.places, name, {});
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->site.limits.time, Duration(2h));
    EXPECT_EQ(found->site.limits.nodes, 3u);
    EXPECT_EQ(found->site.partitions.at("gpu").time, Duration(1h));
    EXPECT_TRUE(found->site.needs_account);
    EXPECT_TRUE(found->site.is_enforced);
    EXPECT_EQ(found->site.partitions.at("gpu").default_qos, std::nullopt);
    // The user's own QoS cannot bypass it, requested or by default.
    EXPECT_THAT(judged("resources: {time: 90m}\nslurm: {account: a, partition: gpu}\n", found->site),
                ElementsAre(HasSubstr("is over the limit of partition 'gpu' (1h, site ")));
    EXPECT_THAT(
        judged("resources: {time: 90m}\nslurm: {account: a, partition: gpu, qos: mine}\n", found->site),
        ElementsAre(HasSubstr("is over the limit of partition 'gpu' (1h, site ")));
  }
  ASSERT_EQ(::chmod(profiles.places.enforced.c_str(), 0666), 0);
  EXPECT_THAT(profiles.found("auto"), HasSubstr("site.yaml: ignored because it is not owned by root"));
}

TEST(Site, the_transfer_node_is_that_of_the_hosts_site) {
  const TempDirectory box;
  ASSERT_TRUE(make_directory(box / "own").ok());
  const std::string text =
      "name: ours\nwhat: x\nsources: {p: {url: \"https://x\", date: 2026-01-01}}\n"
      "detect: {hosts: [\"Login*\"], from: p}\ntransfer: {host: data.ours, from: p}\n";
  ASSERT_TRUE(write_file(box / "own/ours.yaml", text).ok());
  const SiteSearchPath places{.enforced = "", .own = box / "own", .shipped = ""};
  EXPECT_EQ(transfer_node_of(places, "login1.ours"), "data.ours");
  EXPECT_EQ(transfer_node_of(places, "ada@LOGIN1"), "data.ours");
  EXPECT_EQ(transfer_node_of(places, "login@elsewhere"), "");
}

TEST(Site, host_patterns_match_stars) {
  EXPECT_TRUE(matches_pattern("narval*", "narval1.narval.calcul.quebec"));
  EXPECT_TRUE(matches_pattern("*.a*c", "x.abc"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_FALSE(matches_pattern("narval", "narval1"));
  EXPECT_FALSE(matches_pattern("*.quebec", "quebec"));
  EXPECT_FALSE(matches_pattern("a*b*c", "acb"));
}

TEST(Site, detects_the_cluster_from_its_configuration) {
  TempDirectory folder;
  const std::string conf = (folder / "slurm.conf").string();
  ASSERT_TRUE(write_file(conf, "# ClusterName=no\n clustername = Narval # ours\nSlurmctldHost=x\n").ok());
  const auto environment = [&](std::string_view name) -> std::optional<std::string> {
    return name == "SLURM_CONF" ? std::optional(conf) : std::nullopt;
  };
  EXPECT_EQ(detect_cluster(environment).cluster, "Narval");
  const auto job = [](std::string_view name) -> std::optional<std::string> {
    return name == "SLURM_CLUSTER_NAME" ? std::optional<std::string>("fir") : std::nullopt;
  };
  EXPECT_EQ(detect_cluster(job).cluster, "fir");
}

TEST(Site, generates_a_profile_that_reads_back) {
  slurm::ClusterInfo facts{.name = "Lab 1", .version = "22.05.8", .max_array_size = 1001, .partitions = {}};
  facts.partitions = {{.partition = "gpu",
                       .is_default = true,
                       .time = Duration(1h),
                       .default_time = Duration(10min),
                       .nodes = 2,
                       .cores = 8,
                       .memory = ByteCount{4000ull << 20},
                       .disk = {},
                       .gpu = "a100",
                       .gpus = 4},
                      {.partition = "2;x",
                       .time = {},
                       .default_time = {},
                       .nodes = 1,
                       .cores = 1,
                       .memory = {},
                       .disk = {},
                       .gpu = "",
                       .gpus = 0}};
  facts.accounts = {"def-pi"};
  const Site site = describe_cluster(facts, {.day = "2026-11-21", .has_lmod = true, .storage = {"SCRATCH"}});
  const auto again = read_site("detected", site_text(site));
  ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << site_text(site);
  EXPECT_EQ(*again, site);
  EXPECT_EQ(site.name, "lab_1");
  EXPECT_EQ(site.nodes.at("gpu").cores_per_gpu, 2u);
  EXPECT_EQ(site.nodes.at("gpu").options, std::vector<std::string>{"--gpus-per-node=a100:N"});
  EXPECT_THAT(site.partitions, SizeIs(1));
  EXPECT_THAT(site.nodes, SizeIs(2));
}

}  // namespace
}  // namespace stoker::job
