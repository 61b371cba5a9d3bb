#!/usr/bin/env bash
# The lab as a careful person starts and stops it by hand, for bench/lab_up_down.py: four nodes in network namespaces,
# their names in a private /etc/hosts, daemons in the foreground, ended by SIGTERM and waited for.
#
#   lab_by_hand.sh up FOLDER [accounting]      returns when all nodes are idle
#   lab_by_hand.sh down FOLDER
set -euo pipefail
verb=$1 lab=$2 accounting=${3:-}
bridge=byhand net=10.78.7 host=$(hostname -s) nodes=(n1 n2 n3 n4)
export SLURM_CONF=$lab/etc/slurm.conf PATH=$PATH:/usr/sbin:/sbin

until_true() { # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "not in time: $*" >&2; exit 1; }
    sleep 0.05
  done
}

daemon() { # NAME COMMAND...
  local name=$1
  shift
  setsid "$@" >"$lab/log/$name.out" 2>&1 </dev/null &
  echo $! >"$lab/run/$name.started"
}

# With the lab's names, and in a node's network when one is given.
among_nodes() { # NODE|- COMMAND...
  local node=$1 enter=() name=:
  shift
  if [ "$node" != - ]; then
    enter=(nsenter "--net=/run/netns/$bridge-$node") name="hostname $node"
  fi
  echo "${enter[@]}" unshare --uts --mount sh -c "'$name; mount --bind $lab/etc/hosts /etc/hosts;
    mount --bind $lab/etc/nsswitch.conf /etc/nsswitch.conf; exec $*'"
}

write_files() {
  mkdir -p "$lab"/{etc,log,run,state,spool}
  printf '127.0.0.1 localhost\n%s.254 %s\n' $net "$host" >"$lab/etc/hosts"
  sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf >"$lab/etc/nsswitch.conf"
  cat >"$lab/etc/slurm.conf" <<CONF
ClusterName=$bridge
SlurmctldHost=$host($net.254)
SlurmctldPort=16917
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmdParameters=config_overrides
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
CommunicationParameters=NoCtldInAddrAny
StateSaveLocation=$lab/state
SlurmdSpoolDir=$lab/spool/%n
SlurmctldLogFile=$lab/log/slurmctld.log
SlurmdLogFile=$lab/log/slurmd-%n.log
SlurmctldPidFile=$lab/run/slurmctld.pid
SlurmdPidFile=$lab/run/slurmd-%n.pid
CONF
  echo "AutoDetect=off" >"$lab/etc/gres.conf"
  for gpu in 0 1; do
    ln -s /dev/null "$lab/etc/gpu$gpu"
    echo "Name=gpu File=$lab/etc/gpu$gpu" >>"$lab/etc/gres.conf"
  done
  for i in "${!nodes[@]}"; do
    echo "$net.$((i + 1)) ${nodes[i]}" >>"$lab/etc/hosts"
    echo "NodeName=${nodes[i]} NodeAddr=$net.$((i + 1)) CPUs=2 RealMemory=4000 Gres=gpu:2 State=UNKNOWN" >>"$SLURM_CONF"
    mkdir "$lab/spool/${nodes[i]}"
  done
  echo "PartitionName=cpu Nodes=ALL Default=YES" >>"$SLURM_CONF"
}

make_network() {
  ip link add $bridge type bridge
  ip addr add $net.254/24 dev $bridge
  ip link set $bridge up
  for i in "${!nodes[@]}"; do
    local node=${nodes[i]} link=$bridge-${nodes[i]}
    ip netns add "$link"
    ip link add "$link" type veth peer name eth0 netns "$link"
    ip link set "$link" master $bridge up
    ip -n "$link" addr add "$net.$((i + 1))/24" dev eth0
    ip -n "$link" link set eth0 up
    ip -n "$link" link set lo up
  done
}

start_accounting() {
  cat >>"$SLURM_CONF" <<CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=$net.254
AccountingStoragePort=16919
CONF
  cat >"$lab/etc/slurmdbd.conf" <<CONF
AuthType=auth/none
DbdHost=localhost
DbdAddr=$net.254
DbdPort=16919
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=16920
StorageUser=root
StorageLoc=slurm
LogFile=$lab/log/slurmdbd.log
PidFile=$lab/run/slurmdbd.pid
CONF
  chmod 600 "$lab/etc/slurmdbd.conf"
  mariadb-install-db --no-defaults --auth-root-authentication-method=normal --user=root --skip-test-db \
    "--datadir=$lab/database" >"$lab/log/install-db.out" 2>&1
  daemon mariadbd mariadbd --no-defaults --user=root "--datadir=$lab/database" "--socket=$lab/run/mariadb.socket" \
    --bind-address=127.0.0.1 --port=16920 "--pid-file=$lab/run/mariadbd.pid" --innodb-buffer-pool-size=16M
  until_true 60 mariadb-admin --no-defaults "--socket=$lab/run/mariadb.socket" ping
  daemon slurmdbd slurmdbd -D
  until_true 60 sacctmgr -n show cluster
  sacctmgr -iQ add cluster $bridge >/dev/null
  sacctmgr -iQ add account lab >/dev/null
  sacctmgr -iQ add user root account=lab >/dev/null
}

all_are_idle() { [ "$(sinfo -h -N -o %T | grep -cx idle)" = ${#nodes[@]} ]; }

up() {
  write_files
  make_network
  if [ -n "$accounting" ]; then start_accounting; fi
  eval "daemon slurmctld $(among_nodes - slurmctld -D)"
  until_true 30 scontrol ping
  for node in "${nodes[@]}"; do eval "daemon slurmd-$node $(among_nodes "$node" slurmd -D -N "$node")"; done
  until_true 60 all_are_idle
}

down() {
  local pids=()
  for name in slurmd-n1 slurmd-n2 slurmd-n3 slurmd-n4 slurmctld slurmdbd mariadbd; do
    [ -e "$lab/run/$name.started" ] || continue
    pids=("$(cat "$lab/run/$name.started")")
    kill "${pids[@]}" 2>/dev/null || continue
    # The database last, and only when nobody writes to it any more.
    case $name in
      slurmctld | slurmdbd | mariadbd) until_true 60 eval "! kill -0 ${pids[0]}" ;;
    esac
  done
  for node in "${nodes[@]}"; do ip netns del "$bridge-$node"; done
  ip link del $bridge
  rm -rf "$lab"
}

"$verb"
