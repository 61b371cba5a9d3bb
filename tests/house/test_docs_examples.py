"""tests/docs_examples.py: how the examples of a page are read and compared."""

import docs_examples
import pytest
from docs_examples import Command, File, Until

PAGE = """\
# A page
<!-- setup: images, dataset -->
```yaml
# job.yaml
name: x
```
```console
$ stoker data info cifar10
cifar10: 6 000 samples, version …
$ echo $?
0
```
```sh
script/demo
```
"""


def test_a_page_is_read_in_order():
    assert docs_examples.setups(PAGE) == ["images", "dataset"]
    assert list(docs_examples.examples(PAGE)) == [
        File("job.yaml", "# job.yaml\nname: x\n"),
        Command("stoker data info cifar10", "cifar10: 6 000 samples, version …\n", 8),
        Command("echo $?", "0\n", 10),
    ]


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a   \n\n", True),
        ("a\n", "a\nb\n", False),
        ("", "", True),
        ("", "a\n", False),
        ("run … done\n", "run 12 (x) done\n", True),
        ("run … done\n", "run 12\n done\n", False),
        ("a\n…\nz\n", "a\nb\nc\nz\n", True),
        ("a\n…\nz\n", "a\nz\n", True),
        ("a\n…\n", "a\nb\nc\n", True),
        ("a\n…\nz\n", "a\nb\n", False),
        ("a (b)\n", "a b\n", False),
    ],
)
def test_an_ellipsis_matches_any_text(expected, actual, same):
    assert docs_examples.matches(expected, actual) == same


def test_blessing_replaces_the_output_alone():
    example = list(docs_examples.examples(PAGE))[2]
    assert docs_examples.with_output(PAGE, example, "3\n") == PAGE.replace("0\n```\n```sh", "3\n```\n```sh")


SESSION = """\
<!-- session: lab -->
```sh
#!/bin/bash
# toy.sh
hostname
```
```console
$ sbatch toy.sh
Submitted batch job 1
```
<!-- until: test -s slurm-1.out -->
```console
$ cat slurm-1.out
n1
```
"""


def test_a_page_may_be_one_session_with_scripts_and_waits():
    assert docs_examples.session(SESSION) == "lab"
    assert docs_examples.session(PAGE) is None
    assert list(docs_examples.examples(SESSION)) == [
        File("toy.sh", "#!/bin/bash\n# toy.sh\nhostname\n"),
        Command("sbatch toy.sh", "Submitted batch job 1\n", 8),
        Until("test -s slurm-1.out"),
        Command("cat slurm-1.out", "n1\n", 13),
    ]
