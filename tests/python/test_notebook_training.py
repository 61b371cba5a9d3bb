"""controle_technique, turbo_profiler and metric_compute_log on logs as the scripts of the course print them."""

import math

import pytest
from course_logs import HEAD, LOAD, PERFORMANCE, STEP, shown, times, write_log
from stoker import InvalidError, NotFoundError
from stoker.notebook import controle_technique, metric_compute_log, turbo_profiler

__all__ = ["shown"]
PLACE = ">>> Training on  2  nodes and  4  processes\n"
TRIAL = [
    "jobid",
    "num_workers",
    "persistent_workers",
    "pin_memory",
    "non_blocking",
    "prefetch_factor",
    "drop_last",
    "loading_time",
    "1st_step_loading_time",
    "CPU_memory_usage(GB)",
]


def test_throughput_and_times_come_from_the_log(shown, capsys):
    write_log(PLACE + HEAD + PERFORMANCE + ">>> Number of batch per epoch: 1252\nMax Memory Allocated 99 Bytes\n")
    controle_technique(["123"])
    printed = capsys.readouterr().out
    assert "Train throughput: 8533.33 images/second\n" in printed
    assert "GPU throughput: 10240.00 images/second\n" in printed
    assert "epoch time: 150.24 seconds\n" in printed
    texts = shown.texts()
    assert "8 533" in texts and "GPU : 10.24 k" in texts and "4 GPU on 2 nodes" in texts and "1024 = 4 x 256" in texts
    assert "SGD (\nParameter Group 0\n    lr: 0.1\n    weight_decay: 0.0\n)" in texts


def test_the_median_of_the_steps_is_not_called_their_mean(shown, capsys):
    write_log(HEAD + PERFORMANCE)
    controle_technique(123)
    printed = capsys.readouterr().out
    assert "training step time median 0.100000 sec +/- 0.010000 (fwd/bkwd: 33.3%/66.7%)\n" in printed
    assert "loading step time (IO + CPU to GPU transfer) mean 0.020000 sec +/- 0.002000\n" in printed


def test_throughput_uses_the_mean_of_the_single_steps(shown, capsys):
    write_log(HEAD + PERFORMANCE + times([9.0, 0.1, 0.1, 0.4], [9.0, 0.02, 0.02, 0.02]))
    controle_technique(123)
    printed = capsys.readouterr().out
    assert f"Train throughput: {1024 / 0.22:.2f} images/second\n" in printed
    assert "training step time median 0.100000 sec, mean 0.200000 sec" in printed


def test_times_of_the_host_are_called_so(shown, capsys):
    write_log(HEAD + PERFORMANCE)
    controle_technique(123)
    assert "fwd/bkwd are times of the host: without torch.cuda.synchronize()" in capsys.readouterr().out


def test_power_is_that_of_one_gpu_and_its_reading_has_its_share(shown, capsys):
    write_log(
        PLACE + HEAD + PERFORMANCE + ">>> Peak Power during training: 312.5 W)\n" + times([9.0, 0.1], [1.0, 0.02])
    )
    controle_technique(123)
    assert "312 W: highest power of one GPU" in shown.texts()
    assert "1250" not in shown.texts()
    assert "(fwd/bkwd: 30.0%/60.0%, reading the power: 10.0%)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("printed", "seconds"),
    [("0:02:12.346", "132.35"), ("1:00:00", "3600.00"), ("1 day, 1:00:01.5", "90001.50"), ("0:00:12.3", "12.30")],
)
def test_minutes_and_hours_of_the_validation_count(shown, capsys, printed, seconds):
    write_log(HEAD + PERFORMANCE + f">>> Validation time: {printed}\n")
    controle_technique(123)
    assert f"validation time: {seconds} seconds\n" in capsys.readouterr().out


def test_lines_of_a_chronometer_with_only_means_are_read(shown, capsys):
    lines = "".join(
        f">>> {name} performance time: {value} seconds\n"
        for name, value in (("Training", 0.2), ("Loading", 0.05), ("Forward", 0.05), ("Backward", 1.5e-1))
    )
    write_log(HEAD + ">>> Training complete in: 0:01:00\n" + lines)
    controle_technique(123)
    printed = capsys.readouterr().out
    assert "Train throughput: 4096.00 images/second\n" in printed
    assert "training step time mean 0.200000 sec (fwd/bkwd: 25.0%/75.0%)\n" in printed


def test_a_training_without_a_gpu_has_no_gpu_throughput(shown, capsys):
    write_log(PLACE + HEAD + PERFORMANCE + "Max Memory Allocated 0 Bytes\n")
    controle_technique(123)
    printed = capsys.readouterr().out
    assert "CPU throughput: 10240.00 images/second\n" in printed
    assert "GPU throughput" not in printed
    assert "4 processes on 2 nodes" in shown.texts()
    assert "GPU :" not in shown.texts()


def test_language_models_count_sequences(shown, capsys):
    write_log(HEAD + "Step 5 / 50 | Loss: 2.000 | Perplexity: 7.389 | LR: 1.000e-04 | Wall: 0.5\n" + PERFORMANCE)
    controle_technique(123)
    assert "Train throughput: 8533.33 sequences/second\n" in capsys.readouterr().out


def test_prefixes_of_lines_do_not_matter(shown, capsys):
    text = "".join(f"0: {line}\n" for line in (PLACE + HEAD + PERFORMANCE).splitlines())
    write_log(text + "1: Train step 3 - rank 1\n")
    controle_technique(123)
    assert "Train throughput: 8533.33 images/second\n" in capsys.readouterr().out
    assert "SGD (\nParameter Group 0\n    lr: 0.1" in shown.texts()


def test_out_of_memory_is_named_with_its_cause(shown, capsys):
    write_log(PLACE + HEAD, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    controle_technique(123)
    assert "CUDA Out of Memory: GPU is out of memory: 2.00 GiB more requested\n  try: " in capsys.readouterr().out
    assert "CUDA Out of Memory" in shown.texts()


def test_a_different_failure_is_not_called_out_of_memory(shown, capsys):
    write_log(PLACE + HEAD, "Traceback (most recent call last):\nModuleNotFoundError: No module named 'apex'\n")
    controle_technique(123)
    printed = capsys.readouterr().out
    assert printed.startswith("Some error: Python finds no module apex on that node\n  try: ")
    assert "Memory" not in shown.texts()


def test_a_host_without_memory_is_not_called_a_gpu_out_of_memory(shown, capsys):
    write_log(
        PLACE,
        "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0. Some of the step tasks have been OOM Killed.\n",
    )
    controle_technique(123)
    printed = capsys.readouterr().out
    assert printed.startswith("Some error: ")
    assert "CUDA" not in printed + shown.texts()


def test_a_log_without_times_and_failure_is_reported_as_not_measured(shown, capsys):
    write_log(PLACE + HEAD)
    controle_technique(123)
    assert "Not measured: the log has no line with the times of the steps\n  try: " in capsys.readouterr().out


def test_times_that_are_no_numbers_are_reported(shown, capsys):
    write_log(HEAD + '>>> Training performance time: min nan avg nan seconds (+/- nan)\n>>>JSON {"GPU')
    controle_technique(123)
    printed = capsys.readouterr().out
    assert "no time of a step after the first" in printed
    assert "the times of the single steps are damaged" in printed


@pytest.mark.parametrize(
    "line",
    [
        "global batch size: " + "9" * 5000,
        ">>> Number of batch per epoch: " + "9" * 5000,
        ">>> Validation time: " + "9" * 5000 + ":00:00",
        ">>> Peak Power during training: " + "9" * 5000 + " W)",
        "Max Memory Allocated " + "9" * 5000 + " Bytes",
        ">>>JSON " + "[" * 100000,
        f'>>>JSON {{"{STEP}": [1{"0" * 4000}], "{LOAD}": [1]}}',
        f'>>>JSON {{"{STEP}": [NaN], "{LOAD}": [1]}}',
        f'>>>JSON {{"{STEP}": 5, "{LOAD}": null}}',
        "DATALOADER",
        "Optimizer: Evil (" + "(" * 1000 + "\nlr: $0.1\n$\\frac{",
        "\x00\x1b[31m\ufffd",
    ],
    ids=range(12),
)
def test_damaged_and_hostile_lines_do_not_matter(shown, capsys, line):
    write_log(HEAD + PERFORMANCE + line + "\n")
    controle_technique(123)
    assert "Train throughput: 8533.33 images/second\n" in capsys.readouterr().out


def test_bytes_that_are_no_text_are_read(shown, capsys):
    log = write_log("")
    log.write_bytes(b"\xff\xfe\x00" + (HEAD + PERFORMANCE).replace("\n", "\r\n").encode())
    controle_technique(123)
    assert "Train throughput: 8533.33 images/second\n" in capsys.readouterr().out


def test_the_log_of_a_different_job_is_never_read(shown, capsys):
    write_log(HEAD + PERFORMANCE, job=1234)
    with pytest.raises(
        NotFoundError, match=r"job 123: no log in slurm/log and no run in runs\n  try: display_slurm_queue"
    ):
        controle_technique(123)
    with pytest.raises(NotFoundError):
        controle_technique(2026)  # a year in the name of the log


def test_a_path_is_a_log_and_several_jobs_are_noted(shown, capsys):
    log = write_log(HEAD + PERFORMANCE)
    controle_technique(log)
    assert capsys.readouterr().out.startswith("Train throughput: 8533.33")
    controle_technique(["123", "124"])
    assert capsys.readouterr().out.startswith("controle_technique: job 123, the first of 2 jobs\n")


@pytest.mark.parametrize("wrong", [[], "", "--help", None, True, 1.5])
def test_arguments_that_name_no_job_are_refused(shown, wrong):
    with pytest.raises(InvalidError, match="controle_technique: "):
        controle_technique(wrong)


def test_hours_of_the_training_count(shown, capsys):
    write_log(">>> Training complete in: 2:03:04.5\n" + times([1.0, 1.0], [0.1, 0.1]))
    turbo_profiler(["123"])
    assert capsys.readouterr().out == "Turbo Profiler >>> Training complete in 7384.50 s (2:03:04.50)\n"


def bars(figure) -> dict[str, list[float]]:
    (axes,) = figure.axes
    names = axes.get_legend_handles_labels()[1]
    return {name: [bar.get_height() for bar in group] for name, group in zip(names, axes.containers, strict=True)}


def test_every_iteration_is_shown_and_the_worst_is_not_cut(shown):
    write_log(times([1.0, 1.0, 20.0, 1.0], [9.5, 0.1, 0.1, 30.0]))
    assert turbo_profiler(123) is None
    assert bars(shown[0]) == {STEP: [1.0, 1.0, 20.0, 1.0], LOAD: [9.5, 0.1, 0.1, 30.0]}
    assert shown[0].axes[0].get_ylim()[1] > 30


def test_a_long_first_iteration_is_cut_with_its_value(shown):
    write_log(times([60.0, 1.0, 1.5], [0.1, 0.1, 0.1]))
    turbo_profiler(123)
    assert 1.5 < shown[0].axes[0].get_ylim()[1] < 2
    assert "60 s" in shown.texts()


def test_thousands_of_iterations_are_lines(shown):
    write_log(times([1.0] * 5000, [0.1] * 5000))
    turbo_profiler(123)
    assert [len(line.get_xdata()) for line in shown[0].axes[0].lines] == [5000, 5000]


def test_a_trial_is_a_row_with_the_columns_of_the_course(shown):
    loader = "DATALOADER 8 True True                         False 2 False \n"
    memory = "VmPeak:  1000 kB  VmHWM:  \t4194304 kB\n"
    write_log(loader + PERFORMANCE + ">>> First step loading time: 9.25\n" + times([1.0, 1.0], [9.25, 0.1]) + memory)
    trial = turbo_profiler(123, dataloader_info=True)
    assert list(trial.columns) == TRIAL
    assert trial.iloc[0].tolist() == ["123", 8, "True", "True", "False", 2, "False", 0.02, 9.25, 4.0]


def test_missing_lines_are_gaps_of_the_row(shown, capsys):
    write_log("DATALOADER 0 False True True None False \n" + times([1.0, 1.0], [9.5, 0.1]))
    trial = turbo_profiler(123, dataloader_info=True)
    assert trial["1st_step_loading_time"][0] == 9.5  # the first of the single times
    assert trial["num_workers"][0] == 0 and trial["prefetch_factor"][0] is None
    assert math.isnan(trial["CPU_memory_usage(GB)"].astype(float)[0])
    assert "no line 'VmHWM ...', so the row has gaps\n" in capsys.readouterr().out


def test_a_log_without_single_times_has_no_profile(shown):
    write_log(HEAD + PERFORMANCE)
    with pytest.raises(NotFoundError, match=r"has no times of single iterations \(line '>>>JSON \.\.\.'\)\n  try: "):
        turbo_profiler(123)


def metric(step: int, moment: str, gpu: int) -> str:
    return f"Step {step} - {moment} metric compute GPU{gpu}: loss: {gpu}.5, accuracy: 0.25"


def test_metrics_are_sorted_by_step_moment_and_gpu(shown, capsys):
    lines = [metric(100, "After", 0), metric(100, "Before", 1) + metric(100, "Before", 0), metric(50, "After", 10)]
    write_log("other\n" + "\n".join([*lines, metric(100, "After", 1), metric(50, "After", 2)]) + "\n")
    metric_compute_log(["123"])
    assert capsys.readouterr().out.splitlines() == [
        metric(50, "After", 2),
        metric(50, "After", 10),
        metric(100, "Before", 0),
        metric(100, "Before", 1),
        metric(100, "After", 0),
        metric(100, "After", 1),
    ]


def test_a_log_without_metrics_is_reported(shown, capsys):
    write_log(HEAD)
    metric_compute_log(123)
    assert "no line 'Step N - Before metric compute GPUn: ...'" in capsys.readouterr().out
