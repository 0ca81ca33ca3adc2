#!/usr/bin/env bash
# A real Slurm on this machine, a controller and two nodes, runs an experiment as an array of workers: put back into the queue, the
# daemon of a node killed, cancelled and submitted again. The results must be those of one process, byte for byte.
#
# Needs root, and slurmctld, slurmd and munge (Debian, Ubuntu: apt-get install slurm-wlm munge). No part of scripts/test.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

trainer=${HEADCOUNT_TRAINER:-}
if [ -z "$trainer" ]; then
  cargo build -q -p trainer
  trainer=${CARGO_TARGET_DIR:-target}/debug/trainer
fi
trainer=$(realpath "$trainer")
place=$(mktemp -d)
chmod 755 "$place"
host=$(hostname)
export SLURM_CONF=$place/slurm.conf
say() { printf '\n== %s\n' "$*"; }

stop() {
  for pid in "$place"/slurm*.pid; do [ -f "$pid" ] && kill "$(cat "$pid")" 2>/dev/null; done
  pkill -f "munged --force --socket=$place/munge" 2>/dev/null
  pkill -f "$place/" 2>/dev/null
  rm -rf "$place"
}
trap stop EXIT

cat > "$SLURM_CONF" <<CONF
ClusterName=headcount
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=17000
AuthType=auth/munge
AuthInfo=socket=$place/munge
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmdTimeout=20
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool.%n
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd.%n.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdLogFile=$place/slurmd.%n.log
NodeName=a NodeHostname=$host NodeAddr=127.0.0.1 Port=17001 CPUs=2 RealMemory=4000
NodeName=b NodeHostname=$host NodeAddr=127.0.0.1 Port=17002 CPUs=2 RealMemory=4000
PartitionName=all Nodes=a,b Default=YES State=UP
CONF
mkdir -p "$place/state" "$place/spool.a" "$place/spool.b"
dd if=/dev/urandom of="$place/munge.key" bs=1024 count=1 status=none
chmod 400 "$place/munge.key"
munged --force --socket="$place/munge" --key-file="$place/munge.key" --pid-file="$place/munge.pid" \
  --log-file="$place/munge.log" --seed-file="$place/munge.seed"
slurmctld -f "$SLURM_CONF"
slurmd -N a -f "$SLURM_CONF"
slurmd -N b -f "$SLURM_CONF"
for _ in $(seq 30); do
  [ "$(sinfo -h -o %t | sort -u)" = idle ] && break
  sleep 1
done
sinfo

cd "$place"
cat > exp.toml <<'TOML'
baseline = "h1"
regime = "split"
seeds = 10
looks = [6, 10]
[check]
steps = 2
pairs = 2
[metric]
margin = 0.02
[base.task]
kind = "registers"
registers = 2
values = 3
seq_len = 16
validation_examples = 128
test_examples = 256
[base.model]
d_model = 32
layers = 1
[base.train]
steps = 600
batch_size = 32
eval_every = 100
checkpoint_every = 50
snapshots = 0
[grid]
"model.heads" = [1, 2, 4]
TOML

say "one process"
"$trainer" compare exp.toml --out serial > serial.log 2>&1
same() {
  for file in results.json runs.csv curves.csv; do cmp "serial/exp/$file" "$1/exp/$file"; done
  [ ! -e "$1/exp/working" ] || { ls -R "$1/exp/working"; exit 1; }
  say "$2: the same bytes as one process"
}
# Until no job is left in the queue; jobs that are put back begin two minutes later, unless they are told to begin.
ended() {
  for _ in $(seq 600); do
    [ -z "$(squeue -h)" ] && return
    for job in $(squeue -h -t PENDING -o '%A %r' | awk '$2 == "BeginTime" { print $1 }'); do
      scontrol update JobId="$job" StartTime=now 2>/dev/null || true
    done
    sleep 1
  done
  squeue
  exit 1
}

say "an array of four workers, and the report after it"
"$trainer" slurm exp.toml --out array --workers 4 --submit --patience 15
sleep 4
squeue
"$trainer" runs array | tail -n 5
ended
same array "array"

say "told of its end ahead of it (USR1), and put back into the queue"
"$trainer" slurm exp.toml --out requeue --workers 2 --submit --patience 15
sleep 4
job=$(squeue -h -t RUNNING -o %A | head -n 1)
scancel --batch --signal=USR1 "$job"
sleep 3
squeue -o '%i %T %r'
ended
grep -h "Stopped; every run has saved" requeue/exp/slurm-*.log
same requeue "put back into the queue"

say "the daemon of a node is killed; its workers live on, and the task starts again"
"$trainer" slurm exp.toml --out killed --workers 4 --submit --patience 15
sleep 3
kill -9 "$(cat slurmd.b.pid)"
for _ in $(seq 60); do
  sinfo -h -N -o '%N %t' | grep -q '^b down' && break
  [ -z "$(squeue -h)" ] && break
  sleep 1
done
sinfo -N -o '%N %t'
slurmd -N b -f "$SLURM_CONF"
ended
same killed "a node's daemon killed"

say "cancelled and submitted again"
"$trainer" slurm exp.toml --out cancelled --workers 3 --submit --patience 5
sleep 4
scancel --user=root
sleep 3
"$trainer" runs cancelled | tail -n 1
"$trainer" slurm exp.toml --out cancelled --workers 3 --submit --patience 5
ended
same cancelled "cancelled and submitted again"
