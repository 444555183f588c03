#!/bin/sh
# Shows that a clone of this repository needs nothing but a bare Debian 12: makes one in a temporary
# folder with debootstrap, clones HEAD into it, runs ./dev test, ./dev demo and ./dev bench --quick
# there.
#
#     sh tests/fresh_debian.sh [FOLDER]     # FOLDER is kept; without it a temporary one is removed
#
# Needs root, debootstrap, git and unshare.
set -eu

repo=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ $# -gt 0 ]; then
  root=$1
else
  root=$(mktemp -d)
  trap 'rm -rf --one-file-system "$root"' EXIT
fi

if [ ! -x "$root/bin/sh" ]; then
  debootstrap --variant=minbase bookworm "$root"
  # Where this machine finds its packages, and the network, the new one does too.
  for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/*; do
    [ ! -f "$file" ] || case $file in
      */docker-*) ;;
      *) cp "$file" "$root$file" ;;
    esac
  done
fi
rm -rf "$root/root/latchkey"
git clone -q "$repo" "$root/root/latchkey"

# shellcheck disable=SC2016
exec_inside='mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb /bin/sh -ec "
  cd /root/latchkey
  ./dev test
  ./dev demo
  ./dev bench --quick"'
unshare -m sh -ec "$exec_inside" sh "$root"
