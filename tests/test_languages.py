"""Messages in other languages as users see them: with --lang, with the locale, on various terminals."""

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
        "  remède     supprimer des fichiers inutiles, écrire les points de reprise sur un autre disque, ou en garder moins\n"
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


def test_output_is_utf_8_in_every_locale(stoker, log: str):
    output = stoker("explain", log, "--lang", "fr", env={"LC_ALL": "C"}, encoding="utf-8", errors="strict", code=0).out
    assert "remède     supprimer" in output


def test_json_keeps_its_keys_and_names(stoker, log: str):
    english, french = (json.loads(stoker("explain", log, "--json", "--lang", lang).out) for lang in ("en", "fr"))
    assert english["diagnosis"].keys() == french["diagnosis"].keys()
    for same in ("rule", "certainty", "rank", "evidence", "confirm"):
        assert english["diagnosis"][same] == french["diagnosis"][same]
    assert french["diagnosis"]["cause"] == "le disque est plein\u00a0: /a"


def test_an_unsupported_language_is_refused_with_the_choices(stoker, log: str):
    output = stoker("explain", log, "--lang", "de", code=2).err
    assert "unknown language 'de'" in output and "en, fr, auto" in output


def test_an_unknown_log_is_reported_in_french(stoker, tmp_path: Path):
    (tmp_path / "odd.log").write_text("the gizmo turns\n")
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


def test_a_script_is_fixed_identically_in_every_language(stoker, tmp_path: Path):
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
    output = stoker("check", "job.yaml", "--lang", "fr", code=1).out
    assert output.startswith("job.yaml\u00a0: pas prêt, 2 erreurs feraient perdre le job\n")
    assert "  erreur    run: 'trainer' est introuvable dans PATH (job.yaml:2:6)\n" in output
    assert "\n  rangs     1 x 1 x " in output and f"\n  dossier   {tmp_path}/runs\n" in output
    english, french = (json.loads(stoker("check", "job.yaml", "--json", "--lang", lang).out) for lang in ("en", "fr"))
    assert [fact["name"] for fact in english["facts"]] == [fact["name"] for fact in french["facts"]]
    for same in ("rule", "level", "where"):
        assert [finding[same] for finding in english["findings"]] == [finding[same] for finding in french["findings"]]


def test_production_questions_are_in_french(stoker, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("name: x\nrun: 'true'\n")
    output = stoker("check", "job.yaml", "--production", "--lang", "fr", code=0).out
    assert "le jeu de données est-il découpé en fragments (shards)\n" in output
    assert "  oui   6  les rangs de tous les nœuds se sont-ils rencontrés dans un all-reduce\n" in output
    english, french = (
        json.loads(stoker("check", "job.yaml", "--production", "--json", "--lang", lang).out)["points"]
        for lang in ("en", "fr")
    )
    for same in ("number", "name", "answer"):
        assert [point[same] for point in english] == [point[same] for point in french]
    assert all(one["question"] != other["question"] for one, other in zip(english, french, strict=True))
    assert all(one["evidence"] != other["evidence"] for one, other in zip(english, french, strict=True))


def test_hello_prints_french(stoker):
    output = stoker("hello", "--lang", "fr", code=0).out
    assert output.startswith("bonjour de 2 rangs sur ")
    assert "\n  début       2 rangs sont venus\n  noms        1 nom sur 2 rangs, en " in output
    assert "\n  connexion   2 liaisons sur 2 entre 2 rangs\n" in output
    assert "\n  all-reduce  exact par le TCP de stoker, rangs\u00a0: 2\n" in output
    assert "\n  torch       pas de Python d'un job à interroger (--python) (non essayé)\n" in output
    assert "\nlimite\u00a0: ce que la liaison la plus lente permet à elle seule, sans calcul\n" in output
    assert "OPÉRATION" in output and "RANG" in output


def test_hello_prints_french_findings_with_unchanged_rules(stoker):
    environment = {"GLOO_SOCKET_IFNAME": "nosuch", "MASTER_PORT": "port"}
    output = stoker("hello", "--no-speed", "--lang", "fr", env=environment, code=1).out
    assert "GLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active (" in output
    assert (
        "\u00a0: 'port' n'est pas un port\n  à essayer\u00a0: unset MASTER_PORT, et `stoker run` en prend un libre"
        in output
    )
    assert "2 de nature à faire perdre le job, au bout de " in output
    english, french = (
        json.loads(stoker("hello", "--no-speed", "--json", "--lang", lang, env=environment, code=1).out)
        for lang in ("en", "fr")
    )
    for same in ("rule", "level"):
        assert [finding[same] for finding in english["findings"]] == [finding[same] for finding in french["findings"]]
    assert all(one["what"] != other["what"] for one, other in zip(english["findings"], french["findings"], strict=True))
    for same in ("name", "state"):
        assert [step[same] for step in english["checks"]] == [step[same] for step in french["checks"]]
    assert "unknown language 'de'" in stoker("hello", "--lang", "de", code=2).err


def test_check_on_nodes_prints_french(stoker, tmp_path: Path):
    (tmp_path / "job.yaml").write_text("name: x\nrun: 'true'\nresources: {ranks_per_node: 2}\n")
    output = stoker("check", "job.yaml", "--on-nodes", "--lang", "fr", code=0).out
    assert "\nsur les nœuds\u00a0:\n  début       2 rangs sont venus\n" in output
    assert "\n  stockage    2 chemins sont les mêmes sur 2 rangs\n" in output
    assert "\nNŒUD" in output and "DISQUE PROPRE" in output
    output = stoker("check", "job.yaml", "--on-nodes", "--lang", "fr", env={"GLOO_SOCKET_IFNAME": "nosuch"}, code=1).out
    assert "\nGLOO_SOCKET_IFNAME=nosuch ne désigne aucune interface active (" in output
