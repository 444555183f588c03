#include <filesystem>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>

#include "exit_code.hpp"
#include "manual.hpp"
#include "words.hpp"

namespace latchkey::app {

Command add_generate(CLI::App& app) {
  const auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("generate", "Write manual pages and completions");
  command->add_option("DIR", *folder)->required();
  const auto write = [folder, &app] {
    std::vector<GeneratedFile> files;
    for (GeneratedFile& page : man_pages(app)) {
      files.push_back({"man1/" + page.name, std::move(page.text)});
    }
    files.push_back({"bash/latchkey", bash_completion(app)});
    files.push_back({"zsh/_latchkey", zsh_completion(app)});
    files.push_back({"fish/latchkey.fish", fish_completion(app)});
    for (const GeneratedFile& file : files) {
      const std::filesystem::path path = std::filesystem::path(*folder) / file.name;
      std::error_code error;
      std::filesystem::create_directories(path.parent_path(), error);
      std::ofstream output(path);
      output << file.text;
      if (output.flush()) continue;
      say("latchkey generate: cannot write {}\n", path.string());
      return static_cast<int>(kOsError);
    }
    return static_cast<int>(kOk);
  };
  return {command, write};
}

}  // namespace latchkey::app
