# shellcheck shell=sh disable=SC2154
# Builds and runs the consumer against the Latchkey installed in $prefix, with find_package and with
# pkg-config. Sourced by the tests with $source, $work, $prefix and $cxx set.

echo "-- find_package"
cmake -S "$source/tests/install/consumer" -B "$work/consumer" -G Ninja \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx"
cmake --build "$work/consumer"
for consumer in consumer server_consumer server_only_consumer simulation_consumer; do
  "$work/consumer/$consumer"
done

echo "-- pkg-config"
libdir=$(dirname "$(find "$prefix" -name latchkey.pc)")
export PKG_CONFIG_PATH="$libdir"
build_and_run() {
  program=$1
  shift
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 "$source/tests/install/consumer/$program.cpp" -o "$work/$program" \
    $(pkg-config --cflags --libs "$@")
  LD_LIBRARY_PATH="$(dirname "$libdir")" "$work/$program"
}
build_and_run main latchkey
build_and_run server latchkey_server
build_and_run server_only latchkey_server
build_and_run simulation latchkey_testing
