#pragma once

#include <map>
#include <string>

namespace latchkey::bench {

/// What the driver tells a contestant: words of the form `--name value`, alike for all of them, in
/// whatever language they are written. docs/benchmarks.md has the list.
///
///     const Options options(argc, argv);
///     Session::open(options.text("connect"), ...);
///
/// A word that was not given and has no default throws std::invalid_argument. Thread safety:
/// immutable.
class Options {
 public:
  Options(int argc, char** argv);

  [[nodiscard]] std::string text(const std::string& name) const;
  [[nodiscard]] std::string text(const std::string& name, const std::string& otherwise) const;
  [[nodiscard]] int number(const std::string& name, int otherwise) const;
  [[nodiscard]] double real(const std::string& name, double otherwise) const;

 private:
  std::map<std::string, std::string> words_;
};

}  // namespace latchkey::bench
