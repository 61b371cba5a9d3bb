// Positive and negative examples of the shell and sbatch rules.
#include <gmock/gmock.h>

#include "script_lint/test_lint.h"

namespace stoker::script_lint {
namespace {

using ::testing::IsEmpty;

// Findings in a script with one #SBATCH line.
Found of_line(std::string_view rule, std::string_view options) {
  return found(rule, format("#!/bin/bash\n#SBATCH {}\n./a\n", options));
}

std::string fixed(std::string_view text) {
  const TempDirectory folder;
  const LintResult lint = lint_script("a.sh", std::string(text), {.directory = folder.path()});
  return apply_edits(lint.text, lint.findings);
}

TEST(ScriptLines, words_without_an_option_are_reported) {
  const Found second = {"2:job"};
  for (const char* line : {"--job-name=my job", "mem=4G", "--time=1:00:00 (an hour)", "--exclusive user",
                           "-- time=1", "--requeue 1", "- x", "options below", "--comment=it's"})
    EXPECT_EQ(of_line("stray-word", line), second) << line;
  for (const char* line : {"--job-name=\"my job\"", "--time 1:00:00 # an hour", "--exclusive", "hetjob",
                           "-N 2 -n 4 --mem 4G", "--mem=16 GB", "# it's"})
    EXPECT_THAT(of_line("stray-word", line), IsEmpty()) << line;
  EXPECT_EQ(fixed("#!/bin/bash\n#SBATCH mem=4G --time=2\n./a\n"),
            "#!/bin/bash\n#SBATCH --mem=4G --time=2\n./a\n");
}

TEST(ScriptLines, bad_interpreter_lines_are_reported) {
  for (const char* line : {"#!bin/bash", "#!/usr/bin/env bash -l", "#!/bin/bash # of mine", "#!/bin/bash/",
                           "#!", "#!/bin/sh \xe2\x80\x93l", "#!/bin/bash \xe2\x88\x92l", "#!/bin/bash l"})
    EXPECT_EQ(found("bad-interpreter", format("{}\n#SBATCH -n 1\n./a\n", line)), Found{"1:job"}) << line;
  for (const char* line : {"#!/bin/bash -l", "#! /bin/bash", "#!/usr/bin/env -S bash -l",
                           "#!/usr/bin/env python3", "#!/bin/bash +e", "#!/usr/bin/perl w"})
    EXPECT_THAT(found("bad-interpreter", format("{}\n#SBATCH -n 1\n./a\n", line)), IsEmpty()) << line;
  EXPECT_EQ(fixed("#!/bin/sh \xe2\x80\x93l\n#SBATCH -n 1\n./a\n"), "#!/bin/sh -l\n#SBATCH -n 1\n./a\n");
}

TEST(ScriptLines, long_names_after_one_dash_and_unknown_short_options_are_reported) {
  for (const char* line : {"-time=1:00:00", "-partition=gpu", "-job-name=a", "-gres=gpu:1", "-j a",
                           "--walltime=2", "--x11", "--time:2"})
    EXPECT_EQ(of_line("misspelt-option", line), Found{"2:job"}) << line;
  EXPECT_EQ(of_line("misspelt-option", "-output=a.txt"), Found{"2:time"});
  for (const char* line : {"-N1 -n4 -t2", "-pgpu", "-Jtime", "-O -s -H", "-ologs.txt"})
    EXPECT_THAT(of_line("misspelt-option", line), IsEmpty()) << line;
  EXPECT_EQ(fixed("#!/bin/bash\n#SBATCH -time=2\n./a\n"), "#!/bin/bash\n#SBATCH --time=2\n./a\n");
}

TEST(ScriptLines, values_that_sbatch_cannot_read_are_reported) {
  for (const char* line : {"--nodes=one", "--nodes=1:ppn=4", "--nodes=4-2", "--signal=TERM:60",
                           "--exclusive=yes", "--array=1:10", "--array=9-0", "--array=1-4%x",
                           "--gres=gpu:1:v100", "--gres=gpus:1", "--gres=v100:2", "--gres=gpu=2", "--gres=2",
                           "--time", "-o", "--account", "--mail-type=", "--requeue=1", "--open-mode=x"})
    EXPECT_EQ(of_line("option-value", line), Found{"2:job"}) << line;
  for (const char* line :
       {"--nodes=1-4", "--nodes=1,3", "--signal=B:USR1@120", "--signal=SIGTERM", "--exclusive=user",
        "--array=1-9:2%3", "--array=[0-4]", "--gres=gpu:a100:2,tmpfs:10G", "--gres=gpu:2(S:0)", "--gres=gpu",
        "--account=", "--hold", "--open-mode=append", "--gres=shard:4"})
    EXPECT_THAT(of_line("option-value", line), IsEmpty()) << line;
}

TEST(ScriptLines, placeholders_of_templates_are_reported) {
  for (const char* line : {"--account=ACCOUNT",
                           "--account=my_project",
                           "--account=def-user",
                           "--partition=partition_name",
                           "--qos=[qos]",
                           "--account=__ACCOUNT__",
                           "--partition=yourpartition",
                           "--account={{ account }}",
                           "--time=XX:XX:XX",
                           "--nodes=N",
                           "--mem=???",
                           "--account=pXXXX",
                           "--qos=X",
                           "--partition=cluster-name",
                           "--account=YYYYY",
                           "--account=mygroup",
                           "...",
                           "--account=my_acct",
                           "--account=ACCOUNT_CODE",
                           "--partition=QUEUE",
                           "--partition=some_queue,other_queue",
                           "--qos=%qos",
                           "--partition=!!PARTITION!!",
                           "--partition=%(partition)s",
                           "--account=project_1234567",
                           "--account=SNICyyyy-xx-yy",
                           "--account=##ACCOUNT##",
                           "--time=%%time%%",
                           "--nodes=XXXnodesXXX",
                           "--mem=@MEM",
                           "--time=__run_time",
                           "--ntasks={job.tasks}",
                           "--time=TIME_PLACEHOLDER",
                           "--mail-type={type}",
                           "--output=/path/%j.out",
                           "--error=.../a.err",
                           "--account=def-someuser"})
    EXPECT_EQ(of_line("placeholder", line), Found{"2:job"}) << line;
  for (const char* line :
       {"--account=physics", "--partition=gpu", "--account=def-smith", "--nodelist=node[a-c]",
        "--constraint=[rack1|rack2]", "--job-name=XX", "--account=project", "--account=six@a100",
        "--partition=grete:shared", "--qos=medium+", "--partition=cluster", "--account=general",
        "--account=$ACCOUNT", "--account=user_17", "--array=[0-9]"})
    EXPECT_THAT(of_line("placeholder", line), IsEmpty()) << line;
  EXPECT_EQ(found("placeholder", "#!/bin/bash\n#SBATCH -n 2\nsrun bash -c \"login '<TOKEN>'; ./a\"\n"),
            Found{"3:job"});
  EXPECT_EQ(found("placeholder", "#!/bin/bash\nlogin '<TOKEN>'\nsrun !CMD\nB=#/set\n./a $B\n"),
            (Found{"2:job", "3:job", "4:job"}));
  EXPECT_EQ(found("placeholder", "#!/bin/bash\ncd <path to data>/\ncd $HOME/...\n./a -n XX\n"),
            (Found{"2:job", "3:job", "4:job"}));
  EXPECT_THAT(found("placeholder", "#!/bin/bash\n./a <in b>/dev/null\n./a < in > out\n"), IsEmpty());
  EXPECT_THAT(found("placeholder", "#!/bin/bash\nC='#ff0000'\n./a $C '<b>' !x\n"), IsEmpty());
  EXPECT_EQ(found("placeholder", "#!/bin/bash\nexport WANDB_API_KEY=your_key\n./a\n"), Found{"2:job"});
}

TEST(ScriptShell, unexpanded_variables_are_reported) {
  for (const char* line :
       {"cd \\$HOME/a", "source '$HOME/a'", "conda activate \\$WORK/env", "mkdir -p \\${OUT}"})
    EXPECT_EQ(found("kept-variable", format("#!/bin/bash\n{}\n./a\n", line)), Found{"2:job"}) << line;
  for (const char* line :
       {"cd \"$HOME/a\"", "./a '$HOME'", "bash -c \"cd '$HOME/a'\"", "cd a\\$b", "conda list '$A'"})
    EXPECT_THAT(found("kept-variable", format("#!/bin/bash\n{}\n./a\n", line)), IsEmpty()) << line;
  EXPECT_EQ(fixed("#!/bin/bash\ncd '$HOME/a'\n./a\n"), "#!/bin/bash\ncd \"$HOME/a\"\n./a\n");
}

TEST(ScriptShell, the_spool_folder_is_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH -n 1\n";
  for (const char* line : {"cd $(dirname $0)", "D=$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\ncd $D",
                           "D=$(dirname $(realpath $0))\nsource $D/env.sh"})
    EXPECT_EQ(found("spool-folder", format("{}{}\n./a\n", head, line)), Found{"3:job"}) << line;
  for (const char* line : {"D=$(dirname $0)", "D=$(dirname $0)\nexport HF_HOME=${HF_HOME:-$D/hf}",
                           "D=$(dirname $0)\nP=$(cd \"$D/..\" && pwd)", "cat \"$(readlink -f $0)\"",
                           "cd ${SLURM_SUBMIT_DIR:-$(dirname $0)}"})
    EXPECT_THAT(found("spool-folder", format("{}{}\n./a\n", head, line)), IsEmpty()) << line;
  EXPECT_THAT(found("spool-folder", "#!/bin/bash\ncd $(dirname $0)\n./a\n"), IsEmpty());
}

TEST(ScriptLines, a_first_line_without_its_hash_is_reported_once) {
  const std::string script = "!/bin/bash\n#SBATCH -n 1\n./a\n";
  EXPECT_EQ(found("no-interpreter", script), Found{"1:job"});
  EXPECT_THAT(found("late-directive", script), IsEmpty());
  EXPECT_EQ(fixed(script), "#" + script);
  EXPECT_EQ(of_line("option-value", "--partition="), Found{"2:job"});
}

TEST(ScriptShell, unread_variables_are_minor) {
  EXPECT_EQ(found("assignment-blank", "#!/bin/bash\nN = 64\n./a\n"), Found{"2:time"});
  EXPECT_EQ(found("assignment-blank", "#!/bin/bash\nN = 64\n./a $N\n"), Found{"2:job"});
  EXPECT_EQ(found("redirect-folder", "#!/bin/bash\n#SBATCH -n 1\nexec > out/a.txt\n./a\n"), Found{"3:time"});
  EXPECT_EQ(of_line("zero-gpus", "--gres=gpu:p4:0"), Found{"2:time"});
  EXPECT_EQ(found("zero-gpus", "#!/bin/bash\n#SBATCH --gres=gpu:p4:0\npython train.py\n"), Found{"2:job"});
  EXPECT_THAT(of_line("option-value", "--mail-type=START,END"), IsEmpty());
  EXPECT_EQ(of_line("option-value", "--mail-type=START,ABORT"), Found{"2:job"});
  EXPECT_THAT(of_line("placeholder", "--partition=gpu_partition"), IsEmpty());
}

TEST(ScriptSteps, arguments_of_the_program_do_not_belong_to_srun) {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=2\n";
  for (const char* line : {"srun ./a -n 1000", "srun --mpi=pmix ./a -N 4", "srun python a.py --nodes=8"})
    EXPECT_THAT(found("step-too-large", format("{}{}\n", head, line)), IsEmpty()) << line;
  // The program's folder exists.
  EXPECT_THAT(found("redirect-folder", head + "experiments/a.sh > experiments/a.txt\n"), IsEmpty());
  EXPECT_THAT(found("log-folder", "#!/bin/bash\n#SBATCH -o experiments/%j.out\npython experiments/a.py\n"),
              IsEmpty());
  EXPECT_EQ(found("log-folder", "#!/bin/bash\n#SBATCH -o logs/%j.out\npython a.py logs/a\n"), Found{"2:job"});
}

TEST(ScriptSteps, a_loop_piped_into_tee_hides_failures) {
  const std::string head = "#!/bin/bash\n#SBATCH -n 1\n";
  EXPECT_EQ(found("hidden-failure", head + "for i in 1 2; do\n  python a.py $i\ndone | tee log\n"),
            Found{"4:job"});
  EXPECT_EQ(found("hidden-failure", head + "bfc a.fq | gzip > b.gz\n"), Found{"3:job"});
  EXPECT_THAT(
      found("hidden-failure", head + "set -o pipefail\nfor i in 1 2; do python a.py; done | tee log\n"),
      IsEmpty());
  EXPECT_THAT(found("hidden-failure", head + "zcat a.gz | gzip > b.gz\n"), IsEmpty());
  EXPECT_EQ(found("hidden-failure", head + "for i in 1 2; do\n  python a.py | sort > b\n  ./b\ndone\n"),
            Found{"4:time"});
}

TEST(ScriptLines, placeholders_in_commands_are_reported) {
  for (const char* line : {"cd [your folder]",
                           "source {SCRIPT HERE}",
                           "./a --data /yourdata/set",
                           "python your_file.py",
                           "{COMMAND}",
                           "./a --model {model}",
                           "cd {{ folder }}",
                           ". /.../setup.sh",
                           "./a @@name@@",
                           "./a > __OUT__",
                           "ln -s /scratch/userName/x y",
                           "./a /x/PLACEHOLDER.fq",
                           "$YOUR_IMAGE a",
                           "./a /data/<user>/x/",
                           "export HF_HOME=/scratch/xxx/hf",
                           "export KEY_PATH=\"path to the key\"",
                           "export N=##N##",
                           "export PATH=...",
                           "export NXF_DIR=/path/to/cache",
                           "export A_TOKEN=\"your own token\"",
                           "D=[path to the data]\n./a $D",
                           "D=(/path/to/a /path/to/b)\n./a $D",
                           "D=\"<data>/a\"\n./a $D",
                           "D={ROOT}/a\n./a $D",
                           "matlab -batch \"addpath('/path/to/a')\"",
                           "python NOMBRE_DEL_PROGRAMA.py",
                           "./a /data/REPLACE_WITH_YOUR_FILE.pt",
                           "I=\"copy the table to your folder, and give its place here\"\n./a --data $I"})
    EXPECT_EQ(found("placeholder", format("#!/bin/bash\n{}\n", line)), Found{"2:job"}) << line;
  // The value is reported once; other languages have different markers.
  EXPECT_EQ(found("placeholder", "#!/bin/bash\nA=/path/to/a\nB=$A/b\n./a $B\n"), Found{"2:job"});
  for (const char* line :
       {"sed -i \"s/a_XXXXXXXX/b/\" f", "T=$(mktemp -d wb-XXXXX)\n./a $T", "mail -s \"your job is done\" me",
        "awk '{print $1}' f", "./a '{\"b\": 1}'", "parallel ./a {name} ::: 1", "xargs -I{name} ./a {name}",
        "go test ./...", "docker inspect -f '{{.Name}}' a", "python a.py path_to_data=/d",
        "./listen2yourheart", "if [ $H == \"<your machine>\" ]; then ./a; fi",
        "D=$(date +%%Y-%%m-%%d)\n./a $D", "export P='{data_dir}/a'", "./a --path_to_data /d",
        "M=\"your job has ended well in time today\"\n./a $M"})
    EXPECT_THAT(found("placeholder", format("#!/bin/bash\n{}\n", line)), IsEmpty()) << line;
}

TEST(ScriptLines, lines_that_are_comments_are_reported_once) {
  const std::string apart = "#!/bin/bash\n# SBATCH --time=2\n# SBATCH -n 1\n./a\n";
  EXPECT_EQ(found("not-a-directive", apart), Found{"2:job"});
  EXPECT_EQ(fixed("#!/bin/bash\n  #SBATCH --time=2\n  #SBATCH -n 1\n./a\n"),
            "#!/bin/bash\n#SBATCH --time=2\n#SBATCH -n 1\n./a\n");
  // One disabled line among several.
  EXPECT_THAT(found("not-a-directive", "#!/bin/bash\n#SBATCH --time=2\n# SBATCH -n 1\n./a\n"), IsEmpty());
}

TEST(ScriptShell, misspelt_tests_and_assignments_are_reported) {
  EXPECT_EQ(found("test-blank", "#!/bin/bash\nif [ $1 = a]; then ./a; fi\n"), Found{"2:job"});
  EXPECT_EQ(found("test-blank", "#!/bin/bash\nif [[$1 = a ]]; then ./a; fi\n"), Found{"2:job"});
  EXPECT_THAT(found("test-blank", "#!/bin/bash\nif [ $1 = a ] || [[ $2 == b* ]]; then ./a; fi\n"), IsEmpty());
  EXPECT_EQ(found("assignment-blank", "#!/bin/bash\nexport DATA = /x\n./a $DATA\n"), Found{"2:job"});
  EXPECT_EQ(found("assignment-blank", "#!/bin/bash\nDATA= /x/y\n./a $DATA\n"), Found{"2:job"});
  EXPECT_THAT(found("assignment-blank", "#!/bin/bash\nLANG= sort a\nexport A= B\nDATA= ./run\n"), IsEmpty());
  EXPECT_EQ(fixed("#!/bin/bash\nexport DATA = /x\n./a $DATA\n"), "#!/bin/bash\nexport DATA=/x\n./a $DATA\n");
}

TEST(ScriptShell, cut_commands_are_reported) {
  EXPECT_EQ(found("cut-command", "#!/bin/bash\npython a.py\n  --b 3\n"), Found{"3:job"});
  EXPECT_EQ(found("cut-command", "#!/bin/bash\npython a.py \\\n  # --c 2 \\\n  --b 3\n"), Found{"4:job"});
  EXPECT_THAT(found("cut-command", "#!/bin/bash\npython a.py \\\n  --b 3\ncat <<E\n--c\nE\n"), IsEmpty());
  EXPECT_EQ(fixed("#!/bin/bash\nfind . -exec cp {} d/\n"), "#!/bin/bash\nfind . -exec cp {} d/ \\;\n");
  EXPECT_THAT(
      found("cut-command", "#!/bin/bash\nfind . -exec cp {} d \\;\nfind . -exec ls {} +\nfind . -name a\n"),
      IsEmpty());
  EXPECT_EQ(fixed("#!/bin/bash\n./a \\ \n  --b 3\n"), "#!/bin/bash\n./a \\\n  --b 3\n");
  EXPECT_EQ(fixed("#!/bin/bash\n./a\n  --b 3\n"), "#!/bin/bash\n./a \\\n  --b 3\n");
}

TEST(ScriptShell, typographic_characters_are_reported) {
  EXPECT_EQ(found("typographic-character", "#!/bin/bash\n./a\u00A0b\n"), Found{"2:job"});
  EXPECT_EQ(of_line("typographic-character", "--partition=\u201Cgpu\u201D"), Found{"2:job"});
  EXPECT_THAT(
      found("typographic-character", "#!/bin/bash\necho \u201Ca\u201D\n./a 'it\u2019s'\n# \u201Cb\u201D\n"),
      IsEmpty());
}

TEST(ScriptNames, unknown_programs_and_variables_are_reported) {
  EXPECT_EQ(found("misspelt-command", "#!/bin/bash\nmoduel load a\nexprot B=1\n"), (Found{"2:job", "3:job"}));
  EXPECT_EQ(found("misspelt-command", "#!/bin/bash\nmodule laod a\nconda actviate b\nload module c\n"),
            (Found{"2:job", "3:job", "4:job"}));
  EXPECT_EQ(fixed("#!/bin/bash\nmodule laod a\nload module c\n"),
            "#!/bin/bash\nmodule load a\nmodule load c\n");
  EXPECT_THAT(found("misspelt-command",
                    "#!/bin/bash\nsmpirun a\nmodules a\nipython a\ncondas() { :; }\ncond\n"
                    "cond() { :; }\n"),
              IsEmpty());
  EXPECT_EQ(fixed("#!/bin/bash\ncut-d . -f1 a\n"), "#!/bin/bash\ncut -d . -f1 a\n");
  EXPECT_EQ(found("misspelt-variable", "#!/bin/bash\nexport OMP_NUM_THREADS=$SLURM_CPU_PER_TASK\n"),
            Found{"2:time"});
  EXPECT_THAT(
      found("misspelt-variable", "#!/bin/bash\nSLURM_ARRAY_TASKID=3\n./a $SLURM_ARRAY_TASKID $SLURM_JOBID\n"),
      IsEmpty());
  const std::string pbs = "#!/bin/bash\n#SBATCH -n 1\ncd \"$PBS_O_WORKDIR\"\n./a $PBS_ARRAYID\n";
  EXPECT_EQ(found("other-scheduler", pbs), (Found{"3:time", "4:job"}));
  EXPECT_THAT(found("other-scheduler", "#!/bin/bash\n#PBS -l nodes=1\n#SBATCH -n 1\ncd $PBS_O_WORKDIR\n"),
              IsEmpty());
  EXPECT_EQ(found("quoted-tilde", "#!/bin/bash\nD=\"~/a\"\ncd $D\n"), Found{"2:job"});
  EXPECT_THAT(found("quoted-tilde", "#!/bin/bash\nD=~/a\ncd $D\npython a.py \"~/b\"\n"), IsEmpty());
}

TEST(ScriptNames, misspelt_script_variables_are_reported) {
  const std::string head = "#!/bin/bash\ngmxdir=/opt/gmx\n";
  EXPECT_EQ(found("misspelt-variable", head + "$gmxdi/mdrun -v\n"), Found{"3:job"});
  EXPECT_THAT(found("misspelt-variable", head + "$gmxdir/mdrun\nfor gmxdi in a; do ./a $gmxdi; done\n"),
              IsEmpty());
  EXPECT_THAT(found("misspelt-variable", head + "read gmxdi\n$gmxdi/mdrun\n"), IsEmpty());
  EXPECT_THAT(found("misspelt-variable", "#!/bin/bash\nfile1=a\n./a $file2 ${fil:-b}\n"), IsEmpty());
}

TEST(ScriptLines, directives_after_the_first_command_are_reported_once) {
  const std::string late = "#!/bin/bash\nA=1\n#SBATCH -n 1\n#SBATCH -t 2\n./a $A\n";
  EXPECT_EQ(found("late-directive", late), Found{"3:job"});
  EXPECT_EQ(fixed(late), "#!/bin/bash\n#SBATCH -n 1\n#SBATCH -t 2\nA=1\n./a $A\n");
  EXPECT_EQ(found("late-directive", "#!/bin/bash\n#SBATCH -t 2\n./a\n#SBATCH -t 9\n"), Found{"4:advice"});
  EXPECT_EQ(found("late-directive", "#!/bin/bash\nfor i in 1 2; do\n  #SBATCH -c 2\n  ./a $i\ndone\n"),
            Found{"3:job"});
  const std::string named = "#!/bin/bash\nA=1\n#SBATCH -J training\n";
  EXPECT_EQ(found("late-directive", named + "./a $A\n"), Found{"3:advice"}) << "nothing but a name is lost";
  EXPECT_EQ(found("late-directive", named + "#SBATCH -n 1\n./a $A\n"), Found{"3:job"});
}

TEST(ScriptLines, intended_lines_are_not_reported) {
  EXPECT_THAT(found("not-a-directive", "#!/bin/bash\n#xSBATCH -n 1\n#YBATCH -r 2\n#SBATCH -t 2\n"),
              IsEmpty());
  EXPECT_EQ(found("not-a-directive", "#!/bin/bash\n#BATCH --job-name=a\n#SBATCH -t 2\n"), Found{"2:advice"});
  EXPECT_THAT(of_line("stray-word", "--mem=4G \\"), IsEmpty());
  EXPECT_THAT(of_line("time-format", "--time=2-"), IsEmpty());
  EXPECT_THAT(of_line("misspelt-option", "--image=docker:a"), IsEmpty());
}

TEST(ScriptSteps, a_pipe_into_exit_is_reported) {
  const std::string script = "#!/bin/bash\n#SBATCH -n 1\n./a | exit 1\n";
  EXPECT_EQ(found("hidden-failure", script), Found{"3:job"});
  EXPECT_EQ(fixed(script), "#!/bin/bash\n#SBATCH -n 1\n./a || exit 1\n");
}

TEST(ScriptSteps, steps_that_exceed_the_job_are_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=2 --gpus-per-node=2\n";
  for (const char* line : {"srun -N 2 ./a", "srun -n8 ./a", "torchrun --nproc_per_node=4 a.py",
                           "accelerate launch --num_processes 4 a.py"})
    EXPECT_EQ(found("step-too-large", format("{}{}\n", head, line)), Found{"3:job"}) << line;
  for (const char* line : {"srun -n 2 ./a", "srun -n 8 -O ./a", "torchrun --nproc_per_node=2 a.py",
                           "CUDA_VISIBLE_DEVICES=4,5,6,7 torchrun --nproc_per_node=4 a.py"})
    EXPECT_THAT(found("step-too-large", format("{}{}\n", head, line)), IsEmpty()) << line;
}

TEST(ScriptSteps, redirects_into_missing_folders_are_reported) {
  const std::string head = "#!/bin/bash\n#SBATCH -n 1\n";
  EXPECT_EQ(found("redirect-folder", head + "./a > out/a.txt\n"), Found{"3:job"});
  EXPECT_EQ(found("redirect-folder", head + "D=$(pwd)\nF=logs/a.txt\n./a &> $D/$F\n"), Found{"5:job"});
  // Once per folder.
  EXPECT_THAT(found("redirect-folder", "#!/bin/bash\n#SBATCH -o out/%j.txt\n./a > out/a.txt\n"), IsEmpty());
  for (const char* line : {"mkdir -p out\n./a > out/a.txt", "cd /data\n./a > out/a.txt", "./a > a.txt",
                           "git clone b\n./a > b/a.txt", "./a > $OUT/a.txt", "D=/data\n./a > $D/a.txt"})
    EXPECT_THAT(found("redirect-folder", format("{}{}\n", head, line)), IsEmpty()) << line;
}

TEST(ScriptSteps, background_work_before_a_final_echo_is_found) {
  const std::string head = "#!/bin/bash\n#SBATCH -n 1\n";
  EXPECT_EQ(found("no-wait", head + "python a.py &\necho started\n"), Found{"3:job"});
  EXPECT_EQ(found("no-wait", head + "screen -dmS a python a.py\n"), Found{"3:job"});
  EXPECT_THAT(found("no-wait", head + "python a.py &\nwait\necho done\n"), IsEmpty());
  EXPECT_THAT(found("no-wait", head + "nvidia-smi -l > a.txt &\npython a.py\necho done\n"), IsEmpty());
}

}  // namespace
}  // namespace stoker::script_lint
