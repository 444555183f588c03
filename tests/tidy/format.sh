#!/bin/sh
# clang-format over every source: --write changes the files, --check names those it would change.
set -eu
cd "$(dirname "$0")/../.."
clang-format --version >/dev/null

sources() {
  find include src apps tests fuzz examples bench \
    \( -name '*.hpp' -o -name '*.cpp' \) -type f 2>/dev/null | sort
}

case ${1:-} in
  --write)
    sources | xargs clang-format -i --style=file
    ;;
  --check)
    # Compares results: what --dry-run reports includes changes that change nothing.
    wrong=$(sources | while read -r file; do
      clang-format --style=file "$file" | cmp -s - "$file" || echo "$file"
    done)
    [ -z "$wrong" ] || {
      printf 'These files need ./dev format:\n%s\n' "$wrong"
      exit 1
    }
    ;;
  *)
    echo "usage: $0 --write | --check" >&2
    exit 2
    ;;
esac
