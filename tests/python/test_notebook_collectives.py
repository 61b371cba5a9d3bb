"""comm_profiler on lines of NCCL."""

import pytest
from course_logs import shown, write_log
from stoker import InvalidError, NotFoundError
from stoker.notebook import comm_profiler

__all__ = ["shown"]
COLUMNS = [
    *("local_rank", "coll_operation", "comm", "Count", "datatype", "op", "root", "stream", "sendbuff", "recvbuff"),
    *("train_step", "global_rank", "nranks", "bus_bytes"),
]
PLACE = ">>> Training on  1  nodes and  2  processes\n"


def init(host: str, pid: int, comm: str, rank: int, ranks: int = 2, name: str = "ncclCommInitRank") -> str:
    tail = "parent 0x5 splitCount 1 color 3 key 0" if name == "ncclCommSplit" else "commId 0x77"
    place = f"comm {comm} rank {rank} nranks {ranks} cudaDev {rank} nvmlDev {rank} busId 1b000"
    return f"{host}:{pid}:{pid + 9} [{rank}] NCCL INFO {name} {place} {tail} - Init COMPLETE\n"


def call(
    host: str, pid: int, comm: str, count: int = 4, name: str = "AllReduce", kind: int = 7, number: int = 1
) -> str:
    buffers = "sendbuff 0x7f10 recvbuff 0x7f20"
    what = f"{name}: opCount {number:x} {buffers} count {count} datatype {kind} op 0 root 0 comm {comm} [nranks=2] stream 0x99"
    return f"{host}:{pid}:{pid + 9} [0] NCCL INFO {what}\n"


def mark(step: int, rank: int) -> str:
    return f"Train step {step} - rank {rank}\n"


INIT = PLACE + init("n1", 10, "0xa", 0) + init("n1", 20, "0xb", 1)


def test_collectives_have_the_columns_of_the_course_and_their_bytes(shown):
    write_log(INIT + call("n1", 10, "0xa", 5, number=0x3B) + mark(1, 1) + call("n1", 20, "0xb", 3, kind=9))
    table = comm_profiler(["123"])
    assert table.index.name == "opCount" and table.index.tolist() == [0x3B, 1]
    assert list(table.columns) == COLUMNS
    assert table["Count"].tolist() == [20, 6]
    assert table["global_rank"].tolist() == [0, 1]
    assert table["train_step"].tolist() == ["init.", "step 1"]
    assert table.iloc[0][["comm", "stream", "sendbuff", "recvbuff"]].tolist() == ["0xa", "0x99", "0x7f10", "0x7f20"]


def test_the_same_address_in_two_processes_is_two_communicators(shown):
    lines = init("n1", 10, "0xa", 0) + init("n2", 10, "0xa", 1)
    write_log(PLACE + lines + call("n2", 10, "0xa", 8) + call("n1", 10, "0xa", 2))
    assert comm_profiler(123)[["global_rank", "Count"]].values.tolist() == [[1, 32], [0, 8]]


@pytest.mark.parametrize("prefix", ["", "0: ", "[2026-01-31 10:00:00] ", "[default1]:", "12: 2026-01-31T10:00:00.123 "])
def test_prefixes_of_lines_do_not_matter(shown, prefix):
    text = "".join(prefix + line for line in (INIT + mark(2, 1) + call("n1", 20, "0xb", 8)).splitlines(keepends=True))
    write_log(text)
    table = comm_profiler(123)
    assert table[["global_rank", "Count", "train_step"]].values.tolist() == [[1, 32, "step 2"]]


def test_lines_of_rccl_have_their_rank(shown):
    line = call("n1", 20, "0xb", 8).replace("] NCCL", "] 1558545003174220 NCCL").strip()
    write_log(f"{line} task 0 globalrank 1\n")
    assert comm_profiler(123)[["global_rank", "Count"]].values.tolist() == [[1, 32]]


def test_a_split_communicator_keeps_the_ranks_of_all_processes(shown):
    split = init("n1", 20, "0xc", 0, ranks=1, name="ncclCommSplit")
    write_log(INIT + split + call("n1", 20, "0xc", 8))
    assert comm_profiler(123)["global_rank"].tolist() == [1]


def test_a_collective_before_its_communicator_is_complete_counts(shown):
    write_log(PLACE + call("n1", 10, "0xa").replace(" [nranks=2]", "") + init("n1", 10, "0xa", 0))
    assert comm_profiler(123)[["global_rank", "nranks", "Count"]].values.tolist() == [[0, 2, 16]]


def test_types_of_8_bits_have_their_bytes_and_unknown_types_are_reported(shown, capsys):
    write_log(
        INIT + call("n1", 10, "0xa", 8, kind=10) + call("n1", 10, "0xa", 8, kind=11) + call("n1", 10, "0xa", kind=40)
    )
    assert comm_profiler(123)["Count"].fillna(-1).tolist() == [8, 8, -1]
    assert "unknown NCCL data types 40: their bytes are missing\n" in capsys.readouterr().out


def test_bus_bytes_are_what_each_rank_sends(shown):
    names = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast")
    four = "".join(call("n1", 10, "0xa", 100, name=name).replace("nranks=2", "nranks=4") for name in names)
    write_log(INIT + four)
    assert comm_profiler(123)["bus_bytes"].tolist() == [600.0, 1200.0, 1200.0, 400.0]


def test_step_100_after_99_is_a_step_and_else_the_validation(shown):
    lines = ""
    for step in (99, 100, 100):
        lines += mark(step, 0) + call("n1", 10, "0xa")
    for step in (50, 100):
        lines += mark(step, 1) + call("n1", 20, "0xb")
    write_log(INIT + lines)
    assert comm_profiler(123)["train_step"].tolist() == ["step 99", "step 100", "valid.", "step 50", "valid."]


def test_marks_of_two_ranks_in_one_line_both_count(shown):
    write_log(INIT + mark(1, 0).strip() + mark(1, 1) + call("n1", 10, "0xa") + call("n1", 20, "0xb"))
    assert comm_profiler(123)["train_step"].tolist() == ["step 1", "step 1"]


def test_two_collectives_in_one_line_both_count(shown):
    write_log(INIT + call("n1", 10, "0xa", 1).strip() + " " + call("n1", 20, "0xb", 2))
    assert comm_profiler(123)[["global_rank", "Count"]].values.tolist() == [[0, 4], [1, 8]]


def test_damaged_lines_are_counted(shown, capsys):
    write_log(INIT + call("n1", 10, "0xa")[:90] + "\n" + call("n1", 10, "0xa"))
    assert len(comm_profiler(123)) == 1
    assert "1 damaged line of NCCL with 'opCount'\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "value"),
    [("count 4", "count " + "9" * 5000), ("opCount 1", "opCount " + "f" * 5000)],
    ids=["count", "opCount"],
)
def test_numbers_without_end_are_damage(shown, capsys, word, value):
    write_log(INIT + call("n1", 10, "0xa").replace(word, value) + call("n1", 10, "0xa"))
    assert len(comm_profiler(123)) == 1
    assert "1 damaged line of NCCL" in capsys.readouterr().out


def test_a_process_without_a_known_rank_is_shown_by_its_name(shown, capsys):
    write_log(PLACE + call("n1", 10, "0xa"))
    assert comm_profiler(123)["global_rank"].isna().tolist() == [True]
    assert "ranks of n1:10 are unknown" in capsys.readouterr().out
    assert "n1:10" in shown.texts()


def test_the_figure_has_a_bar_for_each_collective_and_rank(shown):
    each = call("n1", 10, "0xa", 1) + call("n1", 20, "0xb", 1)
    write_log(INIT + each + mark(1, 0) + mark(1, 1) + each + each)
    comm_profiler(123)
    single, summed = (figure.axes[0] for figure in shown)
    assert [[bar.get_height() for bar in group] for group in single.containers] == [[4, 4, 4], [4, 4, 4]]
    names = [label.get_text() for label in summed.get_xticklabels()]
    assert names == ["init. - AllReduce (ncclFloat32)", "step 1 - AllReduce (ncclFloat32)"]
    assert [[bar.get_height() for bar in group] for group in summed.containers] == [[4, 8], [4, 8]]
    assert single.get_title() == "Collective Communication Profiler - Nbr of operations: 6"
    assert summed.get_title() == "Aggregate Collective Communication Profiler - global count: 24 Bytes"


def test_n_display_shows_the_begin_and_the_end_and_zoom_the_small_ones(shown):
    write_log(INIT + "".join(call("n1", 10, "0xa", count) for count in (1, 2, 3, 1000)))
    comm_profiler(123, n_display=2)
    assert [[bar.get_height() for bar in figure.axes[0].containers[0]] for figure in shown[:2]] == [[4, 8], [12, 4000]]
    shown.clear()
    comm_profiler(123, zoom=True)
    assert len(shown) == 1 and shown[0].axes[0].get_ylim() == (0, 100)


def test_hundreds_of_collectives_are_shown_in_part_with_a_note(shown, capsys):
    write_log(INIT + call("n1", 10, "0xa") * 400)
    assert len(comm_profiler(123)) == 400
    assert [len(figure.axes[0].containers[0]) for figure in shown] == [150, 150, 1]
    assert (
        "the figures show the first and the last 150 of 400 collectives of a rank (n_display)\n"
        in capsys.readouterr().out
    )


def test_steps_after_the_tenth_are_only_in_the_table_with_a_note(shown, capsys):
    write_log(INIT + "".join(mark(step, 0) + call("n1", 10, "0xa") for step in range(1, 13)))
    assert len(comm_profiler(123)) == 12
    assert "the figure shows steps 1 to 10; the DataFrame also has steps 11 to 12\n" in capsys.readouterr().out
    assert len(shown[0].axes[0].containers[0]) == 10


def test_a_log_without_collectives_raises_an_error_with_a_cure(shown):
    write_log(PLACE)
    with pytest.raises(
        NotFoundError, match=r"has no collectives of NCCL\n  try: gpu_jobs_submitter\(\.\.\., verbose=1\)"
    ):
        comm_profiler(123)
    with pytest.raises(InvalidError, match="n_display=0: must be an integer from 1"):
        comm_profiler(123, n_display=0)
