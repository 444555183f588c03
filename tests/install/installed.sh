#!/bin/sh
# Installs the build and uses it from there: installed.sh SOURCE BUILD WORK CXX
set -eu
source=$1 build=$2 work=$3 cxx=$4
prefix=$work/prefix

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$prefix" >/dev/null

. "$source/tests/install/find.sh"
