#include "support/temp_dir.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace latchkey::test_support {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "latchkey-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace latchkey::test_support
