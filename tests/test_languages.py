"""What is said in another language, as a person meets it: by --lang, by the locale, on a terminal of any kind."""

import json
from pathlib import Path

import pytest

FULL = "OSError: [Errno 28] No space left on device: '/a'\n"
CAUSE = "cause      le disque est plein\u00a0: /a\n"


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "train.log").write_text("epoch 1\n" + FULL)
    return "train.log"


def test_a_log_is_explained_in_french(stoker, log: str):
    assert stoker("explain", log, "--lang", "fr", code=0).out == (
        "train.log\n  " + CAUSE + "  indices    train.log:2  OSError: [Errno 28] No space left on device: '/a'\n"
        "  remède     df -h et df -i disent lequel\u00a0; les points de reprise sur un autre disque, ou moins nombreux "
        "(checkpoint.keep)\n"
        "  vérifier   df -h; df -i\n"
    )


@pytest.mark.parametrize(
    ("locale", "is_french"),
    [
        ({"LANG": "fr_FR.UTF-8"}, True),
        ({"LC_MESSAGES": "fr_CA", "LANG": "en_US.UTF-8"}, True),
        ({"LC_ALL": "fr_BE.ISO-8859-1", "LC_MESSAGES": "C"}, True),
        ({"LC_ALL": "", "LANG": "fr"}, True),
        ({"LC_ALL": "C", "LANG": "fr_FR.UTF-8"}, False),
        ({"LC_MESSAGES": "en_GB.UTF-8", "LANG": "fr_FR.UTF-8"}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({}, False),
    ],
)
def test_the_locale_chooses_the_language(stoker, log: str, locale: dict[str, str], is_french: bool):
    environment = {"LC_ALL": None, "LC_MESSAGES": None, "LANG": None} | locale
    assert (CAUSE in stoker("explain", log, env=environment, code=0).out) is is_french
    assert CAUSE not in stoker("explain", log, "--lang", "en", env=environment, code=0).out


def test_letters_are_utf_8_whatever_the_locale(stoker, log: str):
    said = stoker("explain", log, "--lang", "fr", env={"LC_ALL": "C"}, encoding="utf-8", errors="strict", code=0).out
    assert "remède     df -h" in said


def test_json_keeps_its_keys_and_names(stoker, log: str):
    english, french = (json.loads(stoker("explain", log, "--json", "--lang", lang).out) for lang in ("en", "fr"))
    assert english["diagnosis"].keys() == french["diagnosis"].keys()
    for same in ("rule", "certainty", "rank", "evidence", "confirm"):
        assert english["diagnosis"][same] == french["diagnosis"][same]
    assert french["diagnosis"]["cause"] == "le disque est plein\u00a0: /a"


def test_a_language_that_is_not_spoken_is_refused_with_the_choices(stoker, log: str):
    told = stoker("explain", log, "--lang", "de", code=2).err
    assert "no language 'de'" in told and "en, fr, auto" in told


def test_what_nobody_knows_is_said_in_french(stoker, tmp_path: Path):
    (tmp_path / "odd.log").write_text("the gizmo refused to turn\n")
    assert (
        "  cause      inconnue\u00a0; ces lignes en disent le plus\n"
        in stoker("explain", "odd.log", "--lang", "fr", code=1).out
    )


def test_the_list_of_rules_is_in_french(stoker):
    rules = json.loads(stoker("explain", "--rules", "--json", "--lang", "fr", code=0).out)["rules"]
    assert "/dev/shm est plein" in {rule["cause"] for rule in rules}


SCRIPT = "#!/bin/bash\n#SBATCH --ntaks-per-node=4\n#SBATCH --time=10\npython train.py\n"


def test_a_script_is_checked_in_french(stoker, tmp_path: Path):
    (tmp_path / "job.sh").write_text(SCRIPT)
    assert stoker("check", "job.sh", "--lang", "fr", "--site", "none", code=1).out == (
        "job.sh:2: --ntaks-per-node\u00a0: cette option n'existe pas, et sbatch refuse le script\u00a0; vouliez-vous dire "
        "--ntasks-per-node\u00a0? [perd le job: misspelt-option]\n"
        "    - #SBATCH --ntaks-per-node=4\n"
        "    + #SBATCH --ntasks-per-node=4\n"
        "job.sh:4: Python retient ce qu'il affiche\u00a0: le journal a du retard, et sa fin est perdue quand le job est tué "
        "[conseil: python-buffered]\n"
        "    - python train.py\n"
        "    + python -u train.py\n"
        "2 constats, 1 de nature à faire perdre le job\u00a0; stoker check --fix job.sh écrit job.fixed.sh (--in-place\u00a0: le "
        "fichier même)\n"
    )


def test_a_script_is_mended_alike_in_every_language(stoker, tmp_path: Path):
    for lang in ("en", "fr"):
        (tmp_path / f"{lang}.sh").write_text(SCRIPT)
        stoker("check", f"{lang}.sh", "--fix", "--lang", lang, "--site", "none", code=0)
    assert (tmp_path / "en.fixed.sh").read_text() == (tmp_path / "fr.fixed.sh").read_text()


def test_json_and_sarif_of_a_script_keep_their_keys(stoker, tmp_path: Path):
    (tmp_path / "job.sh").write_text(SCRIPT)
    english, french = (
        json.loads(stoker("check", "job.sh", "--json", "--lang", lang).out)["findings"] for lang in ("en", "fr")
    )
    for same in ("line", "column", "level", "rule", "fix"):
        assert [finding[same] for finding in english] == [finding[same] for finding in french]
    assert all(one["text"] != other["text"] for one, other in zip(english, french, strict=True))
    sarif = json.loads(stoker("check", "job.sh", "--sarif", "--lang", "fr").out)["runs"][0]
    assert [result["ruleId"] for result in sarif["results"]] == [finding["rule"] for finding in french]
    assert "\ncorrection\u00a0: " in sarif["results"][0]["message"]["text"]
    rules = {rule["id"]: rule["shortDescription"]["text"] for rule in sarif["tool"]["driver"]["rules"]}
    assert rules["not-a-directive"] == "un #SBATCH mal orthographié est un commentaire"


def test_a_job_file_is_checked_in_french(stoker, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("name: x\nrun: trainer --fast\ndata: {train: {source: nowhere}}\n")
    told = stoker("check", "job.yaml", "--lang", "fr", code=1).out
    assert told.startswith("job.yaml\u00a0: pas prêt, 2 erreurs feraient perdre le job\n")
    assert "  erreur    run: 'trainer' est introuvable dans PATH (job.yaml:2:6)\n" in told
    assert "\n  rangs     1 x 1 x " in told and f"\n  dossier   {tmp_path}/runs\n" in told
    english, french = (json.loads(stoker("check", "job.yaml", "--json", "--lang", lang).out) for lang in ("en", "fr"))
    assert [fact["name"] for fact in english["facts"]] == [fact["name"] for fact in french["facts"]]
    for same in ("rule", "level", "where"):
        assert [finding[same] for finding in english["findings"]] == [finding[same] for finding in french["findings"]]


def test_the_points_of_production_are_asked_in_french(stoker, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("name: x\nrun: 'true'\n")
    told = stoker("check", "job.yaml", "--production", "--lang", "fr", code=0).out
    assert "le jeu de données est-il découpé en fragments (shards)\n" in told
    assert "  oui   6  les rangs de tous les nœuds se sont-ils rencontrés dans un all-reduce\n" in told
    english, french = (
        json.loads(stoker("check", "job.yaml", "--production", "--json", "--lang", lang).out)["points"]
        for lang in ("en", "fr")
    )
    for same in ("number", "name", "answer"):
        assert [point[same] for point in english] == [point[same] for point in french]
    assert all(one["question"] != other["question"] for one, other in zip(english, french, strict=True))
    assert all(one["evidence"] != other["evidence"] for one, other in zip(english, french, strict=True))


def test_a_hello_is_said_in_french(stoker):
    told = stoker("hello", "--lang", "fr", code=0).out
    assert told.startswith("bonjour de 2 rangs sur ")
    assert "\n  début       2 rangs sont venus\n  noms        1 nom sur 2 rangs, en " in told
    assert "\n  connexion   2 liaisons sur 2 entre 2 rangs\n" in told
    assert "\n  all-reduce  exact sur 2 rangs, par TCP, par stoker lui-même\n" in told
    assert "\n  torch       pas de Python d'un job à interroger (--python) (non essayé)\n" in told
    assert "\nlimite\u00a0: ce que la liaison la plus lente permet à elle seule, sans calcul\n" in told
    assert "OPÉRATION" in told and "RANG" in told


def test_what_a_hello_finds_is_said_in_french_and_keeps_its_rules(stoker):
    environment = {"GLOO_SOCKET_IFNAME": "nosuch", "MASTER_PORT": "port"}
    told = stoker("hello", "--no-speed", "--lang", "fr", env=environment, code=1).out
    assert "GLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active (" in told
    assert (
        "\u00a0: 'port' n'est pas un port\n  à essayer\u00a0: unset MASTER_PORT, et `stoker run` en prend un libre"
        in told
    )
    assert "2 de nature à faire perdre le job, au bout de " in told
    english, french = (
        json.loads(stoker("hello", "--no-speed", "--json", "--lang", lang, env=environment, code=1).out)
        for lang in ("en", "fr")
    )
    for same in ("rule", "level"):
        assert [finding[same] for finding in english["findings"]] == [finding[same] for finding in french["findings"]]
    assert all(one["what"] != other["what"] for one, other in zip(english["findings"], french["findings"], strict=True))
    for same in ("name", "state"):
        assert [rung[same] for rung in english["rungs"]] == [rung[same] for rung in french["rungs"]]
    assert "no language 'de'" in stoker("hello", "--lang", "de", code=2).err


def test_what_the_nodes_see_of_a_job_is_said_in_french(stoker, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("name: x\nrun: 'true'\nresources: {ranks_per_node: 2}\n")
    told = stoker("check", "job.yaml", "--on-nodes", "--lang", "fr", code=0).out
    assert "\nsur les nœuds\u00a0:\n  début       2 rangs sont venus\n" in told
    assert "\n  stockage    2 chemins sont les mêmes sur 2 rangs\n" in told
    assert "\nNŒUD" in told and "DISQUE PROPRE" in told
    told = stoker("check", "job.yaml", "--on-nodes", "--lang", "fr", env={"GLOO_SOCKET_IFNAME": "nosuch"}, code=1).out
    assert "\nGLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active (" in told
