#include "manual.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "latchkey/version.hpp"
#include "public_commands.hpp"
#include "usage.hpp"

namespace latchkey::app {
namespace {

/// What no option says.
constexpr const char* kMore = R"(.SH ENVIRONMENT
.TP
.B LATCHKEY_CONNECT
Where the service is, as \fB\-\-connect\fR has it.
.TP
.B LATCHKEY_CONFIG
The configuration file, as \fB\-\-config\fR has it.
.TP
.BR XDG_STATE_HOME ", " XDG_RUNTIME_DIR ", " XDG_CONFIG_HOME
Where the user's own server keeps its data, has its socket, and the configuration is.
.TP
.B NO_COLOR
No colours, even on a terminal.
.TP
.BR LATCHKEY_TOKEN ", " LATCHKEY_LOCK ", " LATCHKEY_NODE ", " LATCHKEY_SERVICE
What a command that is run under a lock finds in its environment.
.TP
.B LATCHKEY_COMPLETION_WAIT
How many seconds the completion of a shell waits for the names of locks; 1 if it is not set.
.SH FILES
.TP
.IR ~/.config/latchkey.conf ", " /etc/latchkey.conf
The configuration: the long options of the service without their dashes, one to a line, for example
\fBconnect = zk1:2181,zk2:2181\fR.
.TP
.I ~/.local/state/latchkey
The user's own server: its data, its log. It is started when it is needed, and ends after
ten minutes in which nobody needs it.
.SH EXIT STATUS
That of the command which was run, or
.TP
.B 128+n
a signal n has ended it
.TP
.B 1
busy, or not in time; \fB\-E\fR chooses another
.TP
.B 64
usage
.TP
.B 69
no server
.TP
.B 71
the system refused
.TP
.B 75
the lock was lost
.TP
.B 76
the path holds something that is not such a lock
.TP
.B 77
authentication or access
.TP
.B 78
configuration
.TP
.BR 126 ", " 127
the command cannot be executed, or was not found
)";

std::string troff(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '\\') {
      result += "\\e";
    } else if (letter == '-') {
      result += "\\-";
    } else {
      result += letter;
    }
  }
  const bool control = result.starts_with('.') || result.starts_with('\'');
  return control ? "\\&" + result : result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// "-w, --wait TIME", in bold and italics.
std::string option_head(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames())
    names.push_back("\\fB\\-" + troff(name) + "\\fR");
  for (const std::string& name : option.get_lnames()) {
    names.push_back("\\fB\\-\\-" + troff(name) + "\\fR");
  }
  if (names.empty()) names.push_back("\\fI" + troff(option.get_name(true)) + "\\fR");
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (takes_value(option) && !option.get_option_text().empty()) {
    text += " " + troff(option.get_option_text());
  }
  return text;
}

void list_options(const CLI::App& command, std::string& page) {
  for (const std::string& group : command.get_groups()) {
    if (group.empty()) continue;
    const auto options =
        command.get_options([&](const CLI::Option* one) { return one->get_group() == group; });
    if (options.empty()) continue;
    page += group == "Options" ? ".SH OPTIONS\n" : ".SS " + troff(group) + "\n";
    for (const CLI::Option* option : options) {
      page += ".TP\n" + option_head(*option) + "\n" + troff(option->get_description()) +
              (option->get_required() && option->nonpositional() ? " (required)\n" : "\n");
    }
  }
}

/// The text below the help: what is indented stays as it is, the rest is filled.
void add_footer(const std::string& footer, std::string& page) {
  if (footer.empty()) return;
  page += footer.starts_with("Example") ? "" : ".SH DESCRIPTION\n";
  std::istringstream lines(footer);
  bool verbatim = false;
  const auto end = [&] {
    if (std::exchange(verbatim, false)) page += ".fi\n.RE\n";
  };
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Example") && line.ends_with(':')) {
      end();
      page += ".SH EXAMPLES\n";
    } else if (line.starts_with("  ")) {
      if (!std::exchange(verbatim, true)) page += ".RS\n.nf\n";
      page += troff(line.substr(2)) + "\n";
    } else if (line.empty()) {
      end();
      page += ".PP\n";
    } else {
      end();
      page += troff(line) + "\n";
    }
  }
  end();
}

std::string head_of_page(const std::string& name, const std::string& what) {
  return fmt::format(".TH {} 1 \"\" \"latchkey {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                     upper(troff(name)), LATCHKEY_VERSION, troff(name), troff(what));
}

std::string page_of(const CLI::App& command) {
  std::string page = head_of_page("latchkey-" + command.get_name(), command.get_description());
  page += ".SH SYNOPSIS\n" + troff(usage_of(command)) + "\n";
  list_options(command, page);
  add_footer(command.get_footer(), page);
  return page + ".SH SEE ALSO\n.BR latchkey (1)\n";
}

std::string main_page(const CLI::App& root) {
  std::string page = head_of_page("latchkey", "fair locks for people and scripts");
  page += ".SH SYNOPSIS\n" + troff(usage_of(root)) + "\n.SH SUBCOMMANDS\n";
  std::string group;
  for (const CLI::App* command : public_commands(root)) {
    if (command->get_group() != group) {
      group = command->get_group();
      page += ".SS " + troff(group) + "\n";
    }
    page +=
        ".TP\n.B " + troff(command->get_name()) + "\n" + troff(command->get_description()) + "\n";
  }
  add_footer(root.get_footer(), page);
  page += kMore;
  std::string list;
  for (const CLI::App* command : public_commands(root)) {
    list += fmt::format(".BR latchkey\\-{} (1)\n", troff(command->get_name()));
  }
  return page + ".SH SEE ALSO\n" + list;
}

}  // namespace

std::vector<GeneratedFile> man_pages(const CLI::App& root) {
  std::vector<GeneratedFile> pages{{"latchkey.1", main_page(root)}};
  for (const CLI::App* command : public_commands(root)) {
    pages.push_back({"latchkey-" + command->get_name() + ".1", page_of(*command)});
  }
  return pages;
}

}  // namespace latchkey::app
