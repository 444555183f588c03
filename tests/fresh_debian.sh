#!/bin/sh
# How long a newcomer waits: runs the commands of the README in a bare Debian 12 made with
# debootstrap, with nothing installed and nothing cached, and prints how long each took.
#
#     sh tests/fresh_debian.sh [FOLDER] [ROW...]
#
# The rows are demo, test, again, unit, offline, user, nowhere, silent, bench and ci; without any
# all but ci are run. again, unit, offline and user go on where test ended, with the compiler cache
# that it has installed and filled; the others begin with nothing at all.
# FOLDER keeps the bare system and the logs; without it a temporary one is removed.
# Needs root, debootstrap, git, iproute2 and unshare. On more than two cores it uses two.
set -eu

repo=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ $# -gt 0 ]; then
  folder=$1
  shift
  mkdir -p "$folder"
else
  folder=$(mktemp -d)
  trap 'rm -rf --one-file-system "$folder"' EXIT
fi
rows=${*:-demo test again unit offline user nowhere silent bench}

if [ ! -x "$folder/bare/bin/sh" ]; then
  debootstrap --variant=minbase bookworm "$folder/bare" >"$folder/debootstrap.log"
  # Where this machine finds its packages, and the network, the new one does too.
  for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/*; do
    [ ! -f "$file" ] || case $file in
      */docker-*) ;;
      *) cp "$file" "$folder/bare$file" ;;
    esac
  done
fi

# fresh NAME: a bare system of that name, with a clone of HEAD in /home/latchkey.
fresh() {
  rm -rf --one-file-system "${folder:?}/$1"
  cp -a "$folder/bare" "$folder/$1"
  git clone -q "$repo" "$folder/$1/home/latchkey"
}

# inside SYSTEM COMMAND: runs a shell command in the clone. NETWORK=none: without a network;
# NETWORK=silent: with one that nothing answers in.
inside() {
  system=$1
  # shellcheck disable=SC2016
  script='mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/tmp"; [ "$3" = any ] || ip link set lo up
    if [ "$3" = silent ]; then
      ip link add silent type veth peer name other; ip link set other up
      ip addr add 192.0.2.1/24 dev silent; ip link set silent up
      echo "nameserver 192.0.2.2" >"$1/etc/resolv.conf"
      echo "deb http://192.0.2.2/debian bookworm main" >"$1/etc/apt/sources.list"
      rm -f "$1"/etc/apt/apt.conf.d/*
    fi
    exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb HOME=/root \
      /bin/sh -ec "cd /home/latchkey; $2"'
  set -- "$folder/$system" "$2" "${NETWORK:-any}"
  isolation=-m
  [ "$3" = any ] || isolation=-mn
  two_cores unshare $isolation sh -ec "$script" sh "$@"
}

two_cores() {
  if [ "$(getconf _NPROCESSORS_ONLN)" -gt 2 ]; then taskset -c 0,1 "$@"; else "$@"; fi
}

table=''
verdict=0
# row NAME WHAT COMMAND...: runs it, and notes how long it took and how it ended.
row() {
  name=$1 what=$2
  shift 2
  echo "==== $what"
  begin=$(date +%s)
  outcome=ok
  "$@" >"$folder/$name.log" 2>&1 || outcome=FAILED
  took=$(($(date +%s) - begin))
  result=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$folder/$name.log" | tail -n 1) || true
  table="$table| $what | $took s | $outcome${result:+, $result} |
"
  [ "$outcome" = ok ] || {
    verdict=1
    tail -n 40 "$folder/$name.log"
  }
}

# One line of the lock's rules changes, and the program with it.
change='echo "static_assert(sizeof(int) == 4, \"$(date +%s%N)\");" >>src/queue/admission.cpp'

# Says that packages are missing, which, and what to do: refuses SYSTEM NETWORK.
refuses() {
  ! NETWORK=$2 inside "$1" './dev test' >"$folder/refusal" 2>&1 || return 1
  cat "$folder/refusal"
  grep -q 'could not be installed' "$folder/refusal"
}

for name in $rows; do
  case $name in
    demo)
      fresh demo
      row demo './dev demo, bare' inside demo './dev demo'
      ;;
    test)
      fresh test
      row test './dev test, bare' inside test './dev test'
      ;;
    again)
      row again './dev test after one line changed' inside test "$change; ./dev test"
      ;;
    unit)
      row unit './dev test dev -L unit after one line changed' \
        inside test "$change; ./dev test dev -L unit"
      ;;
    offline)
      NETWORK=none
      row offline './dev test without a network' inside test './dev test'
      NETWORK=any
      ;;
    user)
      inside test 'apt-get -q -y install sudo && useradd -m sam || true
        echo "sam ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/sam; chown -R sam .' \
        >"$folder/sudo.log" 2>&1
      row user './dev test as a user with sudo, one package missing' inside test \
        'dpkg --purge fish >/dev/null; su sam -c "./dev test"'
      ;;
    nowhere)
      fresh nowhere
      row nowhere './dev test without a network, bare: a refusal' refuses nowhere none
      ;;
    silent)
      fresh silent
      row silent './dev test with a mirror that does not answer: a refusal' refuses silent silent
      ;;
    bench)
      fresh bench
      row bench './dev bench --quick, bare' inside bench './dev bench --quick'
      ;;
    ci)
      fresh ci
      row ci '.ci/run, bare' inside ci '.ci/run'
      ;;
    *)
      echo "no row '$name'" >&2
      exit 2
      ;;
  esac
done

printf '\n| %s | time | end |\n|---|---|---|\n%s' \
  "two cores of $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$table"
exit "$verdict"
