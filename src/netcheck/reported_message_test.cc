// Rank messages in French, and whether all of their patterns are known.
#include "netcheck/reported_message.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/language/translator.h"
#include "netcheck/judge/test_report.h"
#include "netcheck/storage.h"

namespace stoker::netcheck {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

const Translator kFrench(Language::french);

TEST(ReportedMessage, english_is_unchanged_except_control_characters) {
  EXPECT_EQ(reported_message("no answer within 5.0 s"), "no answer within 5.0 s");
  EXPECT_EQ(reported_message("Connection refused\x1b[2J"), "Connection refused\\x1b[2J");
}

TEST(ReportedMessage, known_phrases_are_translated_with_arguments) {
  EXPECT_EQ(kFrench.render(reported_message("no answer within 5.0 s")), "pas de réponse en 5.0 s");
  EXPECT_EQ(kFrench.render(reported_message("connect")), "connexion");
  EXPECT_EQ(kFrench.render(reported_message("stalled: 0 of 65536 bytes arrived within 10.0 s")),
            "bloqué\u00a0: 0 octets sur 65536 sont arrivés en 10.0 s");
  EXPECT_EQ(kFrench.render(reported_message(
                "port 29500: in use by another program on this host: python3 (process 812)")),
            "port 29500\u00a0: pris par un autre programme sur cette machine\u00a0: python3 (processus 812)");
  EXPECT_EQ(kFrench.render(reported_message("all-reduce: element 7 is 3, not 4")),
            "all-reduce\u00a0: l'élément 7 vaut 3, et non 4");
}

TEST(ReportedMessage, system_messages_are_quoted) {
  EXPECT_EQ(kFrench.render(reported_message("Connection refused")), "Connection refused");
  EXPECT_EQ(kFrench.render(reported_message("RuntimeError: {} of {1}")), "RuntimeError: {} of {1}");
  EXPECT_EQ(kFrench.render(reported_message("no answer within ")), "no answer within ");
  EXPECT_EQ(kFrench.render(reported_message("")), "");
}

TEST(ReportedMessage, all_rank_phrases_are_known) {
  const TempDirectory box;
  EXPECT_EQ(kFrench.render(reported_message(
                check_path({.key = "", .path = (box / "none").string(), .is_written = false, .probe = ""}))),
            "n'existe pas");
  EXPECT_THAT(kFrench.render(reported_message(
                  check_path({.key = "", .path = box.path().string(), .is_written = true, .probe = "none"}))),
              EndsWith("le stockage n'est pas partagé"));
  EXPECT_EQ(kFrench.render(reported_message(net::choose_gloo_interface("nosuch", {}, {}).problem)),
            "GLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active");
  EXPECT_THAT(kFrench.render(reported_message(net::choose_nccl_interface("nosuch", {}).problem)),
              EndsWith("aucune interface active"));
}

TEST(JudgeInFrench, findings_are_translated_but_rules_and_settings_are_not) {
  Report report = healthy();
  block(report, 1, 2);
  report.absent = {{Rank(0), "n1", "start", "did not join within 30.0 s (--limit)", false}};
  report.ranks[Rank(2)].gloo = {std::nullopt,
                                "GLOO_SOCKET_IFNAME=nosuch does not name an interface that is up"};
  EXPECT_THAT(
      findings(report, kFrench),
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

TEST(JudgeInFrench, storage_findings_are_translated) {
  Report report = healthy();
  report.paths = {{.key = "data.train.source", .path = "/data", .is_written = false, .probe = ""}};
  for (const auto& [rank, facts] : report.ranks) report.views[rank] = {.problems = {""}, .local = "/tmp"};
  report.views[Rank(2)].problems[0] = "does not answer: its filesystem hangs";
  report.views[Rank(2)].clock_s = 400;
  EXPECT_THAT(findings(report, kFrench),
              ElementsAre(format("job: data.train.source\u00a0: /data sur n3\u00a0: ne répond pas\u00a0: son "
                                 "système de fichiers "
                                 "est bloqué | tout va bien sur n1, n2 -> {}",
                                 kExcludeN3),
                          StartsWith("time: l'horloge de n3 avance de 400 s sur celle d'ici\u00a0: ")));
}

}  // namespace
}  // namespace stoker::netcheck
