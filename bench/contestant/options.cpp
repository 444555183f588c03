#include "options.hpp"

#include <stdexcept>

namespace latchkey::bench {

Options::Options(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (!name.starts_with("--")) throw std::invalid_argument("not an option: " + name);
    words_[name.substr(2)] = argv[i + 1];
  }
}

std::string Options::text(const std::string& name) const {
  const auto found = words_.find(name);
  if (found == words_.end()) throw std::invalid_argument("--" + name + " is missing");
  return found->second;
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  const auto found = words_.find(name);
  return found == words_.end() ? otherwise : found->second;
}

int Options::number(const std::string& name, int otherwise) const {
  const auto found = words_.find(name);
  return found == words_.end() ? otherwise : std::stoi(found->second);
}

double Options::real(const std::string& name, double otherwise) const {
  const auto found = words_.find(name);
  return found == words_.end() ? otherwise : std::stod(found->second);
}

}  // namespace latchkey::bench
