"""What the tree must look like: which room may include which, and the limits of size and form.

`ROOMS` is the table of docs/architecture.md. Change both together.
"""

# What each room under src/ may include besides itself and the public headers.
ROOMS = {
    "base": set(),
    "wire": {"base"},
    "tree": {"base", "wire"},
    "session": {"base", "wire"},
    "queue": {"base"},
    "recipes": {"base", "queue", "session", "wire"},
    "net": {"base", "session"},
    "storage": {"base"},
    "server": {"base", "wire", "tree", "storage", "net"},
    "testing": {"base", "wire", "tree", "session", "storage"},
    "dashboard": {"base", "queue", "session", "net"},
}

# Rooms without threads, files, sockets or clocks of their own.
PURE = {"wire", "tree", "session", "queue"}
IMPURE_HEADERS = {
    "condition_variable", "filesystem", "fstream", "future", "iostream", "latch", "barrier",
    "mutex", "random", "semaphore", "shared_mutex", "thread",
}

# Where a library may be named. A place is a room, a top folder, or one file.
LIBRARIES = {
    "asio": {"net", "server", "dashboard", "include/latchkey/asio.hpp", "tests", "examples"},
    "openssl": {"net", "tests"},
    "CLI": {"apps", "tests"},
    "fmt": {"apps", "server", "tests"},
    "spdlog": {"apps", "server"},
    "nlohmann": {"apps"},
    "prometheus": {"server", "dashboard"},
    "httplib": {"dashboard"},
    "xxhash": {"storage"},
    "gtest": {"tests", "unit tests"},
    "gmock": {"tests", "unit tests"},
    "benchmark": {"bench"},
    "zookeeper": {"tests", "bench"},
}

# The operating system's headers: anywhere but in the public API and the pure rooms.
SYSTEM_FOLDERS = {"arpa", "linux", "net", "netinet", "sys"}

STANDARD = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono
cinttypes climits clocale cmath codecvt compare complex concepts condition_variable coroutine
csetjmp csignal cstdarg cstddef cstdint cstdio cstdlib cstring ctime cuchar cwchar cwctype deque
exception execution filesystem format forward_list fstream functional future initializer_list
iomanip ios iosfwd iostream istream iterator latch limits list locale map memory memory_resource
mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
string_view syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
unordered_set utility valarray variant vector version
""".split())

MAX_COLUMNS = 100
MAX_SOURCE_LINES = 600
MAX_TEST_LINES = 800
MAX_ROOT_CMAKE_LINES = 120
MAX_FUNCTION_LINES = 70

# The hazards of the session, the recipes, the server and the command. Every one has a row in the
# table: its tests, or why it cannot happen here.
HAZARD_TABLE = "docs/hazards.md"
HAZARDS = [f"H{number:02}" for number in range(1, 102)]
MAX_EXCUSED_HAZARDS = 10
