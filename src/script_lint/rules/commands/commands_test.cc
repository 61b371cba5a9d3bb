// Positive and negative examples of command and variable rules.
#include <gmock/gmock.h>

#include "script_lint/test_lint.h"

namespace stoker::script_lint {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kHead = "#!/bin/bash\n#SBATCH -n 2 --time=10\n";

TEST(Words, a_command_name_instead_of_its_output_is_reported) {
  EXPECT_THAT(found("assigned-command", kHead + "here=pwd\n./run $here/a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("assigned-command", kHead + "N=wc -l list\n./run $N\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("assigned-command", kHead + "now=date\n./run log.$now\n"), ElementsAre("3:time"));
  EXPECT_THAT(found("assigned-command", kHead + "PAGER=cat git log\n"), IsEmpty());
}

TEST(Words, a_blank_within_a_path_is_reported) {
  EXPECT_THAT(found("split-word", kHead + "cd /data/my set\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("split-word", kHead + "python a.py /home/me/Deep Learning/a.yaml\n"),
              ElementsAre("3:job"));
  EXPECT_THAT(found("split-word", kHead + "cp /data/a.yaml b/c.yaml\n"), IsEmpty());
  EXPECT_THAT(found("split-word", kHead + "cd \"/data/my set\"\n"), IsEmpty());
  EXPECT_THAT(found("split-word", kHead + "cd <path to the data>/\n"), IsEmpty());
}

TEST(Words, lists_of_other_languages_are_reported) {
  EXPECT_THAT(found("loop-list", kHead + "for i in 1..10; do\n  ./a $i\ndone\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("loop-list", kHead + "for i in {1-10}; do\n  ./a $i\ndone\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("loop-list", kHead + "sets=( 'a', 'b' )\n./a ${sets[0]}\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("loop-list", kHead + "for i in {1..10} 12; do\n  ./a $i\ndone\n"), IsEmpty());
}

TEST(Programs, calls_without_effect_are_reported) {
  EXPECT_THAT(found("r-without-batch", kHead + "R --no-save < a.R\nR CMD BATCH a.R\nR -f a.R\n"), IsEmpty());
  EXPECT_THAT(found("python-arguments", kHead + "python python a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("python-arguments", kHead + "python -m cProfile a.py -m b.py\n"), IsEmpty());
  EXPECT_THAT(found("quoted-command", kHead + "CMD=\"python a.py\"\n\"$CMD\"\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("quoted-command", kHead + "CMD=\"python a.py\"\n$CMD\n"), IsEmpty());
  EXPECT_THAT(found("not-sourced", kHead + "venv/bin/activate\npython a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("not-sourced", kHead + "/opt/bin/activate x\n/opt/env/bin/python a.py\n"), IsEmpty());
  EXPECT_THAT(found("no-terminal", kHead + "docker run -d -it image\n"), IsEmpty());
  EXPECT_THAT(found("lost-path", kHead + "export PATH=/opt/a:/usr/bin:/bin\nsrun ./a\n"), IsEmpty());
  EXPECT_THAT(found("other-shell", kHead + "source venv/bin/activate.csh\npython a.py\n"),
              ElementsAre("3:job"));
}

TEST(Variables, an_empty_variable_is_reported_if_its_test_ends_the_script) {
  const std::string head = "#!/bin/bash\n#SBATCH --gres=gpu:2 --time=10\n";
  const std::string run = "./run $SLURM_GPUS\n";
  EXPECT_THAT(found("unset-variable", head + "if [ -z \"$SLURM_GPUS\" ] || ./b; then\n  exit 0\nfi\n" + run),
              ElementsAre("3:job"));
  EXPECT_THAT(found("unset-variable", head + "if [ -z \"$SLURM_GPUS\" ]; then\n  echo none\nfi\n" + run),
              ElementsAre("6:job"));
  EXPECT_THAT(found("unset-variable", head + "if [ -z \"$SLURM_GPUS\" ] && ./b; then\n  exit 0\nfi\n./run\n"),
              IsEmpty());
}

TEST(Words, a_log_folder_with_a_variable_is_reported_once) {
  EXPECT_THAT(
      found("variable-in-directive", "#!/bin/bash\n#SBATCH -o $W/a.out\n#SBATCH -e $W/a.err\n./run\n"),
      ElementsAre("2:job"));
}

TEST(Programs, a_folder_is_no_program) {
  EXPECT_THAT(found("folder-as-program", kHead + "/scratch/me/\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("folder-as-program", kHead + "srun ./bin/ a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("folder-as-program", kHead + "cd /scratch/me/\nls /a/\n/scratch/me/run\n"), IsEmpty());
}

TEST(Words, a_quoted_blank_before_a_default_is_reported) {
  EXPECT_THAT(found("blank-in-default", kHead + "M=${1:- a.pt}\n./run --model \"d/$M\"\n"),
              ElementsAre("3:job"));
  EXPECT_THAT(found("blank-in-default", kHead + "M=${1:- a.pt}\n./run $M\n"), IsEmpty());
  EXPECT_THAT(found("blank-in-default", kHead + "M=${1:- -v --all}\n./run \"$M\"\n"), IsEmpty());
  EXPECT_THAT(found("blank-in-default", kHead + "M=${1:-a.pt}\n./run \"$M\"\n"), IsEmpty());
}

TEST(LeftOpen, an_empty_prefix_of_a_file_name_is_reported) {
  EXPECT_THAT(found("placeholder", kHead + "JOB=\n./run -f $JOB.input\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "EXTRA=\n./run $EXTRA a.input\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", kHead + "JOB=\nread JOB < name\n./run $JOB.input\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", kHead + "JOB=\nJOB=a\n./run $JOB.input\n"), IsEmpty());
}

TEST(LeftOpen, a_value_that_is_a_comment_is_reported) {
  EXPECT_THAT(found("placeholder", kHead + "./run --out #path to results\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "./run --verbose # more output\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", kHead + "./run a #path to results\n"), IsEmpty());
}

TEST(LeftOpen, placeholders_after_a_syntax_error_are_reported) {
  EXPECT_THAT(found("placeholder", kHead + "./a <ENV_NAME>\n./run <YOUR_CONFIG>.yaml\n# <OTHER_NAME>\n"),
              ElementsAre("4:job"));
  EXPECT_THAT(found("placeholder", kHead + "./run '[training-dir]/{000..159}.tar'\n"), ElementsAre("3:job"));
}

TEST(Programs, arguments_of_module_are_not_commands) {
  EXPECT_THAT(found("misspelt-command", kHead + "module cuda/12.1\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("misspelt-command", kHead + "module load module load cuda\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("misspelt-command",
                    kHead + "module use /opt/modules\nmodule --force purge\nmodule is-loaded a/1\n"),
              IsEmpty());
}

TEST(Ends, a_blank_after_a_backslash_ends_the_command) {
  EXPECT_THAT(found("cut-command", kHead + "python a.py data \\ \nb.txt\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("cut-command", kHead + "python a.py --b 1 \\ \n"), ElementsAre("3:job"));
  EXPECT_THAT(found("cut-command", kHead + "python a.py \\ \n  --b 1\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("cut-command", kHead + "python a.py \\\n  --b 1 \\\n\necho done\n"), IsEmpty());
}

TEST(Ends, a_command_after_a_backslash_is_an_argument) {
  EXPECT_THAT(found("joined-command", kHead + "python a.py \\\npython b.py\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("joined-command", kHead + "srun \\\n  python a.py\n"), IsEmpty());
  EXPECT_THAT(found("joined-command", kHead + "python a.py --verb echo\n"), IsEmpty());
}

TEST(Variables, slurm_variables_are_empty_without_their_option) {
  EXPECT_THAT(found("unset-variable", kHead + "bwa mem -t $SLURM_CPUS_PER_TASK a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("unset-variable", kHead + "N=$SLURM_CPUS_PER_TASK\nbwa mem -t $N a\n"),
              ElementsAre("3:job"));
  EXPECT_THAT(found("unset-variable", kHead + "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n./a\n"),
              IsEmpty());
  EXPECT_THAT(found("unset-variable", kHead + "bwa mem -t ${SLURM_CPUS_PER_TASK:-1} a\n"), IsEmpty());
  EXPECT_THAT(found("unset-variable", kHead + "echo $SLURM_CPUS_PER_TASK\n"), IsEmpty());
  EXPECT_THAT(found("unset-variable", kHead + "srun bash -c './a $SLURM_CPUS_PER_TASK'\n"), IsEmpty());
}

TEST(Variables, glued_names_and_other_digits_are_reported) {
  EXPECT_THAT(found("glued-variable", kHead + "OUT=/data\n./a $OUTfile.txt\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("glued-variable", kHead + "for lang1 in a b; do\n  ./a $lang2\ndone\n"),
              ElementsAre("4:job"));
  EXPECT_THAT(found("glued-variable", kHead + "data=/data\n./a $data_dir\n"), IsEmpty());
  EXPECT_THAT(found("glued-variable", kHead + "source settings.sh\nOUT=/data\n./a $OUTfile.txt\n"),
              IsEmpty());
}

TEST(Variables, late_and_unexported_values_are_reported) {
  EXPECT_THAT(found("late-value", kHead + "seed=3 python a.py --seed $seed\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("late-value", kHead + "base=/a\nout=$base/b\nbase=/c\n./a $out\n"), IsEmpty());
  EXPECT_THAT(found("late-value", kHead + "export PATH=$CUDA_HOME/bin:$PATH\n./a\n"), IsEmpty());
  EXPECT_THAT(found("not-exported", kHead + "a=1\nexport a\nsrun bash -c './run $a'\n"), IsEmpty());
  EXPECT_THAT(found("not-exported", kHead + "a=1\nsrun bash -c 'a=2; ./run $a'\n"), IsEmpty());
  EXPECT_THAT(found("not-exported", kHead + "a=1\nsrun bash -c \"./run $a\"\n"), IsEmpty());
}

TEST(Variables, lists_start_at_0) {
  const std::string head = "#!/bin/bash\n#SBATCH --array=1-2\n";
  EXPECT_THAT(found("array-index", head + "s=(a b)\n./a ${s[SLURM_ARRAY_TASK_ID]}\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("array-index", head + "s=(a b c)\n./a ${s[$SLURM_ARRAY_TASK_ID]}\n"), IsEmpty());
  EXPECT_THAT(found("array-index", head + "s=(*.txt b)\n./a ${s[$SLURM_ARRAY_TASK_ID]}\n"), IsEmpty());
  EXPECT_THAT(found("array-index", head + "s=(a b)\n./a ${s[$SLURM_ARRAY_TASK_ID-1]}\n"), IsEmpty());
}

TEST(NoWork, only_commented_out_commands_count) {
  EXPECT_THAT(found("nothing-started", kHead + "hostname\n# srun -n 2 python a.py\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("nothing-started", kHead + "hostname\n# python is loaded above\n"), IsEmpty());
  EXPECT_THAT(found("nothing-started", kHead + "# python a.py\n./run\n"), IsEmpty());
}

TEST(Header, ignored_lines_with_the_same_reason_are_reported_once) {
  const std::string bare = "#!/bin/bash\nSBATCH -n 2\nSBATCH --time=3\n#SBATCH --mem=4G\n./a\n";
  EXPECT_THAT(found("not-a-directive", bare), ElementsAre("2:job"));
  EXPECT_THAT(found("late-directive", bare), IsEmpty());
  EXPECT_THAT(found("not-a-directive", "#!/bin/bash\n#SBACTH -J a\n#SBACTH -n 2\n#SBACTH --time=3\n./a\n"),
              ElementsAre("3:job"));
}

TEST(Header, a_byte_order_mark_is_reported_once) {
  const std::string marked = "\xEF\xBB\xBF#!/bin/bash -e\n#SBATCH -n 2\n./a\n";
  EXPECT_THAT(found("no-interpreter", marked), ElementsAre("1:job"));
  EXPECT_THAT(found("late-directive", marked), IsEmpty());
  EXPECT_THAT(found("typographic-character", marked), IsEmpty());
  EXPECT_THAT(found("misspelt-option", "#!/bin/bash\n#SBATCH --ipus=1\n./a\n"), IsEmpty());
}

TEST(Ends, background_ranks_need_no_wait_but_runs_do) {
  EXPECT_THAT(found("no-wait", kHead + "python a.py --rank=1 &\npython a.py --rank=0\n"), IsEmpty());
  EXPECT_THAT(found("no-wait", kHead + "python a.py --seed 1 &\npython a.py --seed 2\n"),
              ElementsAre("3:job"));
  EXPECT_THAT(found("no-wait", kHead + "snakemake -s a & \\\nsnakemake -s b\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("script-as-program", kHead + "srun uv run main.py\n"), IsEmpty());
}

TEST(Header, a_log_folder_with_the_job_name_must_exist) {
  EXPECT_THAT(found("log-folder", "#!/bin/bash\n#SBATCH -J cifar -o %x/%j.out\n./a\n"), ElementsAre("2:job"));
  EXPECT_THAT(found("log-folder", "#!/bin/bash\n#SBATCH -J cifar -o %x-%j.out\n./a\n"), IsEmpty());
}

TEST(Steps, steps_larger_than_the_job_are_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH --ntasks=1 --mem=4G --gres=gpu:1\n";
  EXPECT_THAT(found("step-too-large", head + "srun --mem=8G ./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("step-too-large", head + "srun --gres=gpu:2 ./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("step-too-large", head + "srun -N 2 ./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("step-too-large", head + "srun --mem=2G --gres=gpu:1 -N 1 ./a\n"), IsEmpty());
  EXPECT_THAT(found("redirect-folder", kHead + "srun -o logs/a.out ./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("redirect-folder", kHead + "mkdir -p logs\nsrun -o logs/a.out ./a\n"), IsEmpty());
  EXPECT_THAT(found("options-exclude", "#!/bin/bash\n#SBATCH -n 4 --gpus=2 --gpus-per-task=1\n./a\n"),
              ElementsAre("2:job"));
  EXPECT_THAT(found("options-exclude", "#!/bin/bash\n#SBATCH -n 2 --gpus=2 --gpus-per-task=1\n./a\n"),
              IsEmpty());
}

TEST(Interactive, an_interactive_shell_is_reported_if_nothing_else_runs) {
  EXPECT_THAT(found("no-terminal", kHead + "srun --pty bash\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("no-terminal", kHead + "srun --gres=gpu:1 --pty /bin/bash -l\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("no-terminal", kHead + "salloc -N 1 --mem 4G\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("no-terminal", kHead + "srun --pty bash\npython a.py\n"), ElementsAre("3:time"));
  EXPECT_THAT(found("no-terminal", kHead + "singularity shell --nv a.sif\npython a.py\n"),
              ElementsAre("3:job"));
  EXPECT_THAT(found("no-terminal", kHead + "poetry shell\npython a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("no-terminal", kHead + "srun --pty python a.py\nsrun --pty bash -c './a'\n"), IsEmpty());
  EXPECT_THAT(found("no-terminal", kHead + "salloc -n 1 srun ./a\n"), IsEmpty());
  EXPECT_THAT(found("no-terminal", kHead + "singularity shell a.sif < list.sh\n"), IsEmpty());
}

TEST(Interactive, options_for_a_different_allocation_are_ignored) {
  EXPECT_THAT(found("cut-command", kHead + "salloc -N 1\n--mem=4G\n"), IsEmpty());
  EXPECT_THAT(found("cut-command", kHead + "srun ./a\n--mem=4G\n"), ElementsAre("4:job"));
}

TEST(NoWork, a_template_without_commands_is_reported) {
  EXPECT_THAT(found("nothing-started", kHead + "# INSERT CODE, AND RUN YOUR PROGRAMS HERE\n"),
              ElementsAre("3:job"));
  EXPECT_THAT(found("nothing-started", kHead + "module load a\n# Put your commands here\nexit 0\n"),
              ElementsAre("4:job"));
  EXPECT_THAT(found("nothing-started", kHead + "# Your code\nhostname\n"), IsEmpty());
  EXPECT_THAT(found("nothing-started", kHead + "# insert the job's name above\n./run\n"), IsEmpty());
  EXPECT_THAT(found("nothing-started", kHead + "# bash run.sh a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("nothing-started", kHead + "# bash run.sh a\nsleep infinity\n"), IsEmpty());
}

TEST(NoWork, commands_after_the_end_are_reported) {
  EXPECT_THAT(found("never-reached", kHead + "echo a\nexit 0\npython a.py\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("never-reached", kHead + "exec bash\npython a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("never-reached", kHead + "python a.py\nexit 0\npython b.py\n"), IsEmpty());
  EXPECT_THAT(found("never-reached", kHead + "cd /data || exit 1\npython a.py\n"), IsEmpty());
  EXPECT_THAT(found("never-reached", kHead + "exec > log 2>&1\npython a.py\n"), IsEmpty());
  EXPECT_THAT(found("never-reached", kHead + "[ -z \"$A\" ] && exec ./a\npython a.py\n"), IsEmpty());
}

TEST(NearNames, a_name_that_differs_only_in_case_or_underscores_is_reported) {
  EXPECT_THAT(found("misspelt-variable", kHead + "lr=1\n./a --lr $LR\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("misspelt-variable", kHead + "DATA_DIR=/d\n./a $DATADIR\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("misspelt-variable", kHead + "data_dir=/d\n./a $datadir\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("misspelt-variable", kHead + "for SEED in 1 2; do\n./a $seed\ndone\n"),
              ElementsAre("4:job"));
  EXPECT_THAT(found("misspelt-variable", kHead + "cache_dir=data_cache\n./a \"$data_cache\"\n"),
              ElementsAre("4:job"));
  EXPECT_THAT(found("misspelt-variable", kHead + "user=me\n./a $USER $user\n"), IsEmpty());
  EXPECT_THAT(found("misspelt-variable", kHead + "lr=1\n./a $lr $LR\n"), IsEmpty());
  EXPECT_THAT(found("misspelt-variable", kHead + "model=$MODEL\n./a $MODEL\n"), IsEmpty());
  EXPECT_THAT(found("misspelt-variable", kHead + "lr=1\n[ -n \"$LR\" ] && lr=$LR\n./a $LR\n"), IsEmpty());
  EXPECT_THAT(found("misspelt-variable", kHead + "lr=1\n[[ -n $LR ]] || exit 1\n./a $LR\n"), IsEmpty());
  EXPECT_THAT(found("misspelt-variable", kHead + "source own.sh\nlr=1\n./a $LR\n"), IsEmpty());
}

TEST(LeftOpen, placeholder_names_are_reported) {
  EXPECT_THAT(found("placeholder", kHead + "./a --username \"username\" --user me\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "./a --data_path DATA_PATH\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "./a --in=Your Path --out=b\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "./a --in=Target Folder\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "./a --title=Big Data --opts DATA_DIR /d\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", kHead + "cd PROJECT_DIR\n./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "D_DIR=/d\ncd D_DIR/a\n./a\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("placeholder", kHead + "conda activate env_name\n./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "./a --mask \"<mask>\"\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", kHead + "./a --data \"<data>\"\n"), ElementsAre("3:job"));
}

TEST(LeftOpen, a_placeholder_key_is_reported) {
  EXPECT_THAT(found("placeholder", kHead + "export A_API_TOKEN=\"\"\n./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "export HF_TOKEN=\"hf_...\"\n./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("placeholder", kHead + "export OPENAI_API_KEY=EMPTY\n./a\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", kHead + "export WANDB_MODE=offline WANDB_API_KEY=\"\"\n./a\n"), IsEmpty());
}

TEST(Windows, windows_paths_are_reported) {
  EXPECT_THAT(found("windows-path", kHead + "python a.py --data \"C:\\data\"\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("windows-path", kHead + "D=D:/data\npython a.py $D\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("windows-path", kHead + "python src\\a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("windows-path", kHead + "grep -E a\\.py b\ncp a\\ b.py c\nscp a h:/d\n"), IsEmpty());
}

TEST(Programs, unknown_program_arguments_are_reported) {
  EXPECT_THAT(found("python-arguments", kHead + "python a.ipynb\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("misspelt-command", kHead + "cd..\n./a\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("assignment-blank", kHead + "export $A=3\n./a $A\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("assignment-blank", kHead + "MODEL= resnet\n./a $MODEL\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("assignment-blank", kHead + "LC_ALL= sort a\nIFS= read x\n./a\n"), IsEmpty());
}

TEST(Header, resources_after_all_commands_are_reported_if_the_header_has_none) {
  const std::string head = "#!/bin/bash\n#SBATCH --mem=4G\n./a\n";
  EXPECT_THAT(found("late-directive", head + "#SBATCH --gres=gpu:1\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("late-directive", head + "#SBATCH --mem=8G\n"), ElementsAre("4:advice"));
  EXPECT_THAT(found("late-directive", head + "#SBATCH --mail-type=END\n"), ElementsAre("4:advice"));
}

TEST(Ranks, c10d_rendezvous_ignores_the_node_rank) {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=2\nsrun bash -c \"accelerate launch --rdzv_backend ";
  const std::string tail = " --machine_rank $SLURM_PROCID a.py\"\n";
  EXPECT_THAT(found("expanded-too-early", head + "c10d" + tail), IsEmpty());
  EXPECT_THAT(found("expanded-too-early", head + "static" + tail), ElementsAre("3:job"));
}

TEST(Values, gpu_counts_of_gpu_and_cpu_scripts_are_distinguished) {
  EXPECT_THAT(found("option-value", "#!/bin/bash\n#SBATCH --gpus=gpu:2\n./a\n"), ElementsAre("2:job"));
  EXPECT_THAT(found("option-value", "#!/bin/bash\n#SBATCH --gpus=a100:2\n./a\n"), IsEmpty());
  const std::string none = "#!/bin/bash\n#SBATCH --gres=gpu:a100:0\npython train.py --device ";
  EXPECT_THAT(found("zero-gpus", none + "cpu\n"), IsEmpty());
  EXPECT_THAT(found("zero-gpus", none + "cuda\n"), ElementsAre("2:job"));
}

TEST(Readers, a_file_in_the_wrong_language_is_reported) {
  EXPECT_THAT(found("other-language", kHead + "bash a.py\npython b.sh\nsource c.py\n"),
              ElementsAre("3:job", "4:job", "5:job"));
  EXPECT_THAT(found("other-language", kHead + "java a.jar\nsbatch python a.py\n"),
              ElementsAre("3:job", "4:job"));
  EXPECT_THAT(found("other-language", kHead + "bash a.sh b.py\njava -jar a.jar\njava -cp a.jar Main\n"),
              IsEmpty());
  EXPECT_THAT(found("other-language", kHead + "sbatch a.sh\nsbatch --wrap \"python a.py\"\n"), IsEmpty());
}

TEST(Programs, launchers_start_python_themselves) {
  EXPECT_THAT(found("python-arguments", kHead + "torchrun python a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("python-arguments", kHead + "accelerate launch python a.py\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("python-arguments", kHead + "torchrun a.py --nproc_per_node=2\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("python-arguments", kHead + "torchrun --no-python python a.py\n"), IsEmpty());
  EXPECT_THAT(found("python-arguments", kHead + "torchrun --nproc_per_node=1 a.py --x python\n"), IsEmpty());
}

TEST(Programs, output_files_need_an_existing_folder) {
  EXPECT_THAT(found("script-as-program", kHead + "gcc a.c -o solve\nsolve 1\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("script-as-program", kHead + "chmod +x go.sh\ngo.sh\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("script-as-program", kHead + "run.sh\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("script-as-program", kHead + "gcc a.c -o solve\n./solve\nsrun solve\n"), IsEmpty());
  EXPECT_THAT(found("script-as-program", kHead + "export PATH=$PWD:$PATH\nrun.sh\n"), IsEmpty());
  EXPECT_THAT(found("script-as-program", kHead + "gcc a.c -o test\ntest -f a\nbash run.sh\n"), IsEmpty());
}

TEST(Lists, elements_and_lists_of_other_languages_are_reported) {
  EXPECT_THAT(found("open-index", kHead + "s=(a b)\n./a $s[1]\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("open-index", kHead + "s=(a b)\nt=x\n./a ${s[1]} $t[1]\n"), IsEmpty());
  EXPECT_THAT(found("loop-list", kHead + "s=(\"a\",\"b\")\n./a ${s[1]}\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("loop-list", kHead + "s=[\"a\", \"b\"]\n./a ${s[1]}\n"), ElementsAre("3:job"));
  EXPECT_THAT(found("loop-list", kHead + "s=(\"a,b\")\nx=[1,2]\n./a ${s[0]} $x\n"), IsEmpty());
  EXPECT_THAT(found("kept-variable", kHead + "D=/d\npython a.py --data '$D/x'\n"), ElementsAre("4:job"));
  EXPECT_THAT(found("kept-variable", kHead + "D=/d\nawk '{print $D}' f\npython a.py '${D}' '$'\n"),
              IsEmpty());
}

}  // namespace
}  // namespace stoker::script_lint
