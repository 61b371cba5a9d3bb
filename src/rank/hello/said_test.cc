// What ranks tell, said in another language; and that what they really tell is known here.
#include "rank/hello/said.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "rank/hello/judge/test_report.h"
#include "rank/hello/storage.h"

namespace stoker::rank::hello {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

const Words kFrench(Language::french);

TEST(Said, in_english_a_rank_s_words_stay_but_for_what_steers_a_terminal) {
  EXPECT_EQ(in_words("no answer within 5.0 s", Words()), "no answer within 5.0 s");
  EXPECT_EQ(in_words("Connection refused\x1b[2J", Words()), "Connection refused\\x1b[2J");
}

TEST(Said, a_rank_s_words_are_said_with_what_they_are_filled_with) {
  EXPECT_EQ(in_words("no answer within 5.0 s", kFrench), "pas de réponse en 5.0 s");
  EXPECT_EQ(in_words("connect", kFrench), "connexion");
  EXPECT_EQ(in_words("stalled: 0 of 65536 bytes arrived within 10.0 s", kFrench),
            "bloqué\u00a0: 0 octets sur 65536 sont arrivés en 10.0 s");
  EXPECT_EQ(in_words("port 29500: taken by another program on this host: python3 (process 812)", kFrench),
            "port 29500\u00a0: pris par un autre programme sur cette machine\u00a0: python3 (processus 812)");
  EXPECT_EQ(in_words("all-reduce: element 7 is 3, not 4", kFrench),
            "all-reduce\u00a0: l'élément 7 vaut 3, et non 4");
}

TEST(Said, what_the_system_or_a_library_says_is_quoted) {
  EXPECT_EQ(in_words("Connection refused", kFrench), "Connection refused");
  EXPECT_EQ(in_words("RuntimeError: {} of {1}", kFrench), "RuntimeError: {} of {1}");
  EXPECT_EQ(in_words("no answer within ", kFrench), "no answer within ");
  EXPECT_EQ(in_words("", kFrench), "");
}

TEST(Said, what_ranks_really_tell_is_known) {
  const TempDirectory box;
  EXPECT_EQ(
      in_words(look_at_path({.key = "", .path = (box / "none").string(), .is_written = false, .probe = ""}),
               kFrench),
      "n'existe pas");
  EXPECT_THAT(
      in_words(look_at_path({.key = "", .path = box.path().string(), .is_written = true, .probe = "none"}),
               kFrench),
      EndsWith("le stockage n'est pas partagé"));
  EXPECT_EQ(in_words(net::gloo_choice("nosuch", {}, {}).problem, kFrench),
            "GLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active");
  EXPECT_THAT(in_words(net::nccl_choice("nosuch", {}).problem, kFrench), EndsWith("aucune interface active"));
}

TEST(JudgeInFrench, findings_are_said_and_rules_levels_and_settings_stay) {
  Report report = healthy();
  report.words = kFrench;
  block(report, 1, 2);
  report.absent = {{Rank(0), "n1", "start", "did not come within 30.0 s (--limit)", false}};
  report.ranks[Rank(2)].gloo = {std::nullopt, "GLOO_SOCKET_IFNAME=nosuch names no interface that is up"};
  EXPECT_THAT(
      findings(report),
      ElementsAre(
          StartsWith("job: le rang 0 (n1) n'est pas venu en 30.0 s (--limit) -> slurm: {extra: "),
          "job: GLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active (n3\u00a0; il y a\u00a0: lo, "
          "eth0)"
          " -> environment: {variables: {GLOO_SOCKET_IFNAME: eth0}}      (export GLOO_SOCKET_IFNAME=eth0)",
          format("job: n2 n'atteint pas n3, alors que n3 atteint n2\u00a0: les nouvelles connexions sont "
                 "bloquées "
                 "dans ce sens | de n2 à n3 par 10.0.0.3 (eth0)\u00a0: pas de réponse en 5.0 s -> que n3 "
                 "accepte "
                 "TCP depuis n2 sur tous les ports\u00a0; d'ici là\u00a0: {}",
                 kExcludeN3)));
}

TEST(JudgeInFrench, paths_disks_and_clocks_are_said) {
  Report report = healthy();
  report.words = kFrench;
  report.paths = {{.key = "data.train.source", .path = "/data", .is_written = false, .probe = ""}};
  for (const auto& [rank, facts] : report.ranks) report.views[rank] = {.problems = {""}, .local = "/tmp"};
  report.views[Rank(2)].problems[0] = "gives no answer: its filesystem hangs";
  report.views[Rank(2)].clock_s = 400;
  EXPECT_THAT(findings(report),
              ElementsAre(format("job: data.train.source\u00a0: /data sur n3\u00a0: ne répond pas\u00a0: son "
                                 "système de fichiers "
                                 "est bloqué | tout va bien sur n1, n2 -> {}",
                                 kExcludeN3),
                          StartsWith("time: l'horloge de n3 avance de 400 s sur celle d'ici\u00a0: ")));
}

}  // namespace
}  // namespace stoker::rank::hello
